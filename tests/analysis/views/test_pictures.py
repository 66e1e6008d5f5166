"""Pictures of a moment: what they say, what they leave out and say so, how large they are."""

from collections.abc import Callable
from typing import Any

import pytest
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.behaviours import DecisionLog
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.views import (
    Moment,
    decisions_picture,
    gantt_picture,
    graph_picture,
    load_picture,
    pauses_picture,
    queue_picture,
    submissions_picture,
    users_picture,
    week_picture,
)
from matplotlib.figure import Figure

from tests.analysis.views.view_cases import paused

PICTURES: dict[str, Callable[[Moment], Figure]] = {
    "load": load_picture,
    "load of the run": lambda moment: load_picture(moment, None),
    "submissions": submissions_picture,
    "queue": queue_picture,
    "gantt": gantt_picture,
    "users": users_picture,
    "graph": lambda moment: graph_picture(moment, 1),
    "week": lambda moment: week_picture(moment, 1),
    "pauses": lambda moment: pauses_picture(moment, 1),
    "decisions": lambda moment: decisions_picture(moment, 1),
}


def texts(figure):
    """Everything that is written in a figure."""
    found: list[Any] = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return "\n".join(artist.get_text() for artist in found)


@pytest.fixture(scope="module")
def jobs(make_jobs):
    """Four users with a job each hour of ten days; the machine is too small by day two."""
    return make_jobs(*((HOUR * n, 8000, 1 + n % 3, 9000, 1 + n % 4) for n in range(10 * 24)))


@pytest.mark.parametrize("until", [0, 1, 3 * DAY, None])
@pytest.mark.parametrize("name", PICTURES)
def test_drawn(jobs, name, until):
    """Each view is drawn at the beginning, in the middle and at the end, and names its moment.

    The same moment gives the same bytes.
    """
    moment = paused(jobs, 2, until=until, log=DecisionLog())
    figure = PICTURES[name](moment)
    assert "run" in texts(figure)
    assert "week 1 Mon 00:00:0" in texts(figure) or until not in (0, 1)
    png = figure_png(figure)
    assert png.startswith(b"\x89PNG")
    assert until != 3 * DAY or png == figure_png(PICTURES[name](moment))


def test_queue_says_how_many(jobs):
    """A picture of a long queue shows its head and says how many wait."""
    moment = paused(jobs, 3, "rigid", until=9 * DAY)
    total = len(moment.queue)
    assert total > 25
    assert f"the first 25 of {total:,} waiting jobs" in texts(queue_picture(moment))
    row = int(moment.queue[1])
    told = texts(queue_picture(moment, reasons={row: "asks too much"}))
    assert "why it waits" in told
    assert "asks too much" in told
    assert f"Jobs in the queue; now {total:,}" in texts(load_picture(moment))


def test_gantt_says_what_it_leaves_out(jobs):
    """Of many jobs the largest are drawn, with their share of the work."""
    moment = paused(jobs, 6, "rigid", until=5 * DAY)
    words = texts(gantt_picture(moment, most=10))
    assert "the largest 10 shown, " in words
    assert "% of the work" in words
    assert "shown" not in texts(gantt_picture(moment))
    assert moment.now in [line.get_xdata()[0] for line in gantt_picture(moment).axes[0].lines]


def test_graph_tells_states_by_letter(jobs):
    """Each state has its letter in the legend, and the title says which sessions are shown."""
    moment = paused(jobs, 2, until=3 * DAY)
    words = texts(graph_picture(moment, 1, 20))
    assert "sessions " in words
    assert " to " in words.split("sessions ")[1].split("\n")[0]
    for legend in ("F finished", "R running", "Q in the queue", "T free", "W waiting for other"):
        assert legend in words


def test_sizes_are_given(jobs):
    """Pictures are as large as asked for, in inches."""
    moment = paused(jobs, 2, until=3 * DAY)
    for draw in load_picture, submissions_picture, gantt_picture:
        assert [6.0, 4.0] == list(draw(moment, width=6, height=4).get_size_inches())
    assert 7.0 == graph_picture(moment, 1, width=7).get_figwidth()
