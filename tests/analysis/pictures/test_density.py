"""Gantt charts of long windows as density: shares, days, rows, and when they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis import Run, gantt
from hpcrowd.analysis.pictures import gantt as gantt_module
from hpcrowd.analysis.pictures.density import (
    FEWEST_ROWS,
    MOST_CELLS,
    MOST_ROWS,
    density,
    density_of,
    stretches,
)
from hpcrowd.analysis.pictures.gantt import COLOURED_BY, STYLES, fitting_style
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.environment import JobTable, QuantityError, Trace, write_swf
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.scenarios.kinds.replay import replay
from matplotlib.figure import Figure

#: A trace that says when and where it was; the clocks change on its third day.
HEADER = "; UnixStartTime: 953852400\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 8"


@pytest.fixture(scope="module")
def year(make_trace: Callable[..., Trace]) -> Run:
    """A year of twenty users; user n has more work than user n + 1."""
    jobs = (
        {
            "submit": 6 * HOUR * n,
            "run": (25 - n % 20) * 1500,
            "requested_processors": 1 + n % 4,
            "user": n % 20,
            "queue": n % 2,
        }
        for n in range(1460)
    )
    return replay(make_trace(*jobs, header=HEADER), users="rigid")


def texts(figure: Figure) -> list[str]:
    """Everything that is written in a figure."""
    found = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return [artist.get_text() for artist in found]


def test_shares_are_those_of_the_jobs(make_trace: Callable[..., Trace]) -> None:
    """Two users hold 2 and 4 of 8 processors for parts of ten hours: the shares are known."""
    trace = make_trace(
        {"submit": 0, "run": 5 * HOUR, "requested_processors": 2, "user": 1},
        {"submit": 0, "run": 10 * HOUR, "requested_processors": 4, "user": 2},
        header=HEADER,
    )
    found = density_of(replay(trace), 0, 10 * HOUR)
    assert ["user 2", "user 1"] == found.names
    assert [0.8, 0.2] == pytest.approx(found.work.tolist())
    begins = found.edges[:-1]
    assert [0.5] * len(begins) == found.share[0].tolist()
    assert np.where(begins < 5 * HOUR, 0.25, 0.0).tolist() == found.share[1].tolist()


def test_rows_add_up_to_the_use_of_the_machine(year: Run) -> None:
    """The shares of all rows, over all of the window, are the processor time of its jobs."""
    first, last = 10 * DAY, 300 * DAY
    found = density_of(year, first, last)
    jobs = year.jobs
    held = np.maximum(np.minimum(jobs.end, last) - np.maximum(jobs.start, first), 0)
    work = float((held * jobs.processors).sum())
    assert work == pytest.approx(float((found.share @ np.diff(found.edges)).sum()) * 8)
    assert work == pytest.approx(float(found.held @ np.diff(found.edges)))


def test_busiest_users_have_rows_and_the_others_share_one(year: Run) -> None:
    """The rows are in the order of their work; the last one stands for all other users."""
    found = density_of(year, 0, 365 * DAY)
    assert MOST_ROWS + 1 == len(found.names)
    assert f"{20 - MOST_ROWS} other users" == found.names[-1]
    assert sorted(found.work[:-1], reverse=True) == found.work[:-1].tolist()
    assert 1 == pytest.approx(found.work.sum())


def test_a_single_other_user_keeps_the_name(make_trace: Callable[..., Trace]) -> None:
    """A row of others with one member would only hide who it is."""
    users = MOST_ROWS + 1
    trace = make_trace(
        *({"submit": n, "run": 60, "requested_processors": 1, "user": n + 1} for n in range(users))
    )
    names = density_of(replay(trace), 0, HOUR).names
    assert {f"user {n + 1}" for n in range(users)} == set(names)


@pytest.mark.parametrize("days", [0.01, 1, 40, 365, 5000])
def test_stretches_cover_the_window(year: Run, days: float) -> None:
    """They begin and end with the window, rise, are few, and days begin at local midnight."""
    first, last = 1234, 1234 + int(days * DAY)
    width, edges = stretches(year.clock, first, last)
    assert (first, last) == (edges[0], edges[-1])
    assert (np.diff(edges) > 0).all()
    assert len(edges) <= MOST_CELLS + 3
    if width % DAY == 0:
        assert [0] * (len(edges) - 2) == [year.clock.wall(int(e)) % DAY for e in edges[1:-1]]


@pytest.mark.parametrize("by", COLOURED_BY)
def test_pictures_say_what_they_show(year: Run, by: str) -> None:
    """Title with the trace, what a colour means, the averaging, queue and use are named."""
    figure = gantt(year, (None, None), by=by, style="density")
    assert figure_png(figure).startswith(b"\x89PNG")
    shown = texts(figure)
    assert "Density of use, made: rigid, easy" in shown
    head = f"Share of the machine that each {by} held, averages over "
    assert any(text.startswith(head) for text in shown)
    for part in (
        "% of the machine; white: less than 0.1 %",
        "Processors in use; dashed: size of the machine",
        "Jobs in the queue",
        "Processors requested by the queue",
    ):
        assert part in shown
    names = {"user": "user 0", "queue": "queue 1", "cluster": "cluster 0", "state": "completed"}
    assert names[by] in shown


def test_panels_do_not_touch(make_trace: Callable[..., Trace]) -> None:
    """A picture of one user has room for the titles of its panels, like one of many."""
    one = replay(make_trace({"submit": 0, "run": HOUR, "requested_processors": 1, "user": 1}))
    figure = density(one, 0, HOUR)
    assert FEWEST_ROWS > 1
    boxes = [axes.get_position() for axes in figure.axes[:4]]
    gaps = [above.y0 - below.y1 for above, below in pairwise(boxes)]
    assert [] == [gap for gap in gaps if gap * figure.get_figheight() < 0.3]


def test_nothing_to_draw() -> None:
    """A window in which nothing ran says so."""
    assert "no job ran in this window" in texts(density(Run(JobTable(), 4, "x", {}), 0, DAY))


def test_style_follows_what_fits(year: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day is drawn job by job; a year of short jobs, or of too many, is not."""
    assert "jobs" == fitting_style(year, 0, DAY)
    assert "density" == fitting_style(year, 0, 365 * DAY)
    monkeypatch.setattr(gantt_module, "MOST_JOBS", 3)
    assert "density" == fitting_style(year, 0, 2 * DAY)


@pytest.mark.parametrize("style", STYLES)
def test_either_style_can_be_had(year: Run, style: str) -> None:
    """The style that is asked for is drawn, whatever fits."""
    title = gantt(year, (None, None), style=style).texts[0].get_text()
    assert (style != "jobs") == title.startswith("Density of use")


def test_unknown_style(year: Run) -> None:
    """Another word is refused with the choices."""
    with pytest.raises(QuantityError, match=r"style 'heat'.*auto.*jobs.*density"):
        gantt(year, style="heat")


def test_command_draws_a_recorded_trace(call: Any, tmp_path: Path, year: Run) -> None:
    """It draws the busiest day, or the whole run as density, and says which."""
    path, picture = tmp_path / "log.swf", tmp_path / "a.png"
    assert year.trace is not None
    write_swf(year.trace, path)
    code, out, err = call("gantt", path, "-o", picture)
    assert (0, "") == (code, out)
    assert f"The Gantt picture is {picture} (jobs, " in err
    assert "the busiest day)" in err
    code, _, err = call("gantt", path, "-o", picture, "--window", "..", "--by", "queue")
    assert 0 == code
    assert "(density, " in err
    assert "the whole run)" in err
    code, _, err = call("gantt", path, "-o", picture, "--window", "..", "--style", "jobs")
    assert (0, True) == (code, "(jobs, " in err)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-o", "a.gif"], ".png, .svg, .pdf"),
        (["--window", "5"], "FROM..TO"),
        (["--window", "2d..1d"], "is empty"),
        (["--style", "heat"], "'density'"),
    ],
)
def test_command_refuses(
    call: Any, tmp_path: Path, year: Run, options: list[str], told: str
) -> None:
    """A mistake is reported before anything is drawn."""
    path = tmp_path / "log.swf"
    assert year.trace is not None
    write_swf(year.trace, path)
    code, out, err = call("gantt", path, *options)
    assert (2, "") == (code, out)
    assert told in " ".join(err.split())
