"""Gantt pictures: what they show, of which window, in which colours."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis import (
    Run,
    busiest_day,
    gantt,
    read_run,
    small_gantt,
    write_picture,
    write_results,
)
from hpcrowd.analysis.pictures.gantt import (
    COLOURED_BY,
    HATCHES,
    HUES,
    levels,
    looks_of,
    window_name,
)
from hpcrowd.analysis.pictures.plots import figure_png, hour_ticks
from hpcrowd.environment import JobTable, QuantityError, State, Trace, parse_swf
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.scenarios.kinds.replay import replay
from matplotlib.figure import Figure

HEADER = "; UnixStartTime: 953852400\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 8"


@pytest.fixture(scope="module")
def trace(make_trace: Callable[..., Trace]) -> Trace:
    """Five days of five users on a small machine; the clocks change on the third day."""
    return make_trace(
        *(
            {
                "submit": 3600 * n,
                "run": 1800 + 1700 * (n % 7),
                "requested_processors": 1 + n % 5,
                "requested_time": 9000,
                "user": n % 5,
                "queue": n % 2,
            }
            for n in range(120)
        ),
        header=HEADER,
    )


@pytest.fixture(scope="module")
def run(trace: Trace) -> Run:
    """A run in which jobs wait and are killed."""
    return replay(trace, users="rigid", overrun="kill")


def texts(figure: Figure) -> list[str]:
    """Everything that is written in a figure."""
    found = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return [artist.get_text() for artist in found]


def rectangles(figure: Figure) -> float:
    """The area of all jobs that are drawn, processor-seconds."""
    area = 0.0
    for collection in figure.axes[0].collections:
        for path in collection.get_paths():
            low, high = path.vertices.min(axis=0), path.vertices.max(axis=0)
            area += float(np.prod(high - low))
    return area


def test_jobs_are_drawn_with_their_size(run: Run) -> None:
    """The rectangles of a run add up to the processor time that its jobs held."""
    held = run.jobs.processors * (run.jobs.end - run.jobs.start)
    assert held.sum() == pytest.approx(rectangles(gantt(run, (0, None))), rel=1e-9)


def test_window_cuts_jobs(run: Run) -> None:
    """Of jobs that reach beyond the window, the part inside is drawn."""
    first, last = 30_000, 40_000
    held = np.minimum(run.jobs.end, last) - np.maximum(run.jobs.start, first)
    inside = (np.maximum(held, 0) * run.jobs.processors).sum()
    assert inside == pytest.approx(rectangles(gantt(run, (first, last))), rel=1e-9)


@pytest.mark.parametrize("by", list(COLOURED_BY))
def test_pictures_say_what_they_show(run: Run, by: str) -> None:
    """Title, day, legend and the two pictures of the queue are there, without a warning."""
    figure = gantt(run, by=by)
    shown = texts(figure)
    assert figure_png(figure).startswith(b"\x89PNG")
    assert f"made: {run.label}" in shown
    for part in ("Jobs in the queue", "Processors requested by the queue", "killed"):
        assert part in shown
    first, last = busiest_day(run) or (0, 0)
    assert any(window_name(run, first, last) in text for text in shown)
    legend = {"user": "user 4", "queue": "queue 1", "cluster": "cluster 0", "state": "completed"}
    assert legend[by] in shown


def test_busiest_day(run: Run) -> None:
    """It is a local day, midnight to midnight, and no other has more processor time a second."""
    first, last = busiest_day(run) or (0, 0)
    assert (0, 0) == (run.clock.wall(first) % DAY, run.clock.wall(last) % DAY)
    jobs = run.jobs

    def used(begin: int, end: int) -> float:
        held = np.minimum(jobs.end, end) - np.maximum(jobs.start, begin)
        return float((np.maximum(held, 0) * jobs.processors).sum() / (end - begin))

    assert all(used(first, last) >= used(first + n * DAY, last + n * DAY) for n in range(-5, 6))


def test_short_runs_are_drawn_whole(make_trace: Callable[..., Trace]) -> None:
    """A run of some hours has no busiest day but itself; one of nothing has none."""
    short = replay(make_trace({"submit": 5, "run": 100, "requested_processors": 1}))
    assert (5, 105) == busiest_day(short)
    empty = Run(JobTable(), 4, "nothing", {})
    assert busiest_day(empty) is None
    assert "no job ran in this window" in texts(gantt(empty))


def test_window_has_to_end_after_it_began(run: Run) -> None:
    """An empty window, and one after the end of the run, are reported with the span of the run."""
    for first, last in ((50, 50), (90, 20), (10**9, None)):
        with pytest.raises(QuantityError, match=r"is empty; the run lasts from 0 to \d+ s"):
            gantt(run, (first, last))


def test_unknown_colouring(run: Run) -> None:
    """The message lists what jobs may be coloured by."""
    with pytest.raises(QuantityError, match="'size': not known; choose user, queue"):
        gantt(run, by="size")


def test_users_keep_their_colours(trace: Trace) -> None:
    """Colours are those of the work, whatever the schedule: the same under every scheduler."""
    found = [looks_of(replay(trace, scheduler=s).jobs, "user") for s in ("easy", "fcfs")]
    assert found[0].looks == found[1].looks
    assert found[0].which.tolist() == found[1].which.tolist()


def test_largest_users_have_colours_of_their_own(make_jobs: Callable[..., JobTable]) -> None:
    """With many users the largest have a look each and the others greys, named together."""
    jobs = make_jobs(*((0, 10 + user, 1, 100, user) for user in range(30)))
    looks = looks_of(jobs, "user")
    coloured = len(HUES) * len(HATCHES)
    named = {looks.looks[place].label for place in looks.which if looks.looks[place].label}
    assert {f"user {user}" for user in range(30 - coloured, 30)} == named
    legend = looks.legend(jobs.run_time, np.arange(30))
    assert ["user 29", "5 more", "other users"] == [
        legend[0].label,
        *(e.label for e in legend[-2:]),
    ]


def test_capacity_may_be_exceeded(make_jobs: Callable[..., JobTable]) -> None:
    """A recorded schedule with more than the machine is drawn, with a line where it ends."""
    jobs = make_jobs((0, 10, 3), (0, 10, 3))
    jobs.submit[:], jobs.start[:], jobs.end[:] = 0, 0, 10
    jobs.state[:] = State.COMPLETED
    axes = gantt(Run(jobs, 4, "recorded", {})).axes[0]
    assert ((0, 6), [4, 4]) == (axes.get_ylim(), list(axes.lines[0].get_ydata()))


def test_jobs_that_still_run_and_wait(make_jobs: Callable[..., JobTable]) -> None:
    """Jobs without an end, and waiting ones without a start, are drawn up to the edge."""
    jobs = make_jobs((0, 10, 3), (2, 10, 3))
    jobs.submit[:] = 0, 2
    jobs.start[0] = 1
    unfinished = Run(jobs, 4, "unfinished", {})
    assert 3 * 19 == rectangles(gantt(unfinished, (0, 20)))
    assert 3 * 2 == rectangles(gantt(unfinished, (18, 20)))


def test_queue_is_exact_where_it_is_short() -> None:
    """Steps of the queue lie at the seconds at which it changes; long ones are averaged."""
    edges, level = levels(np.array([1, 4]), np.array([6, 9]), np.array([1, 5]), 0, 8)
    assert ([0, 1, 4, 6, 8], [0, 1, 6, 5]) == (edges.tolist(), level.tolist())
    begin = np.arange(10_000)
    edges, level = levels(begin, begin + 1, np.ones(10_000, np.int64), 0, 10_000)
    assert len(edges) < 1500
    assert [1.0] * len(level) == level.tolist()


def test_ticks_follow_the_wall() -> None:
    """Labels are whole local hours, also when clocks change; the first of each day has its date."""
    clock = Clock.of(parse_swf(f"{HEADER}\n1 0 0 1 1 -1 -1 1 1 -1 1 1 1 -1 1 -1 -1 -1").header)
    midnight = clock.second_at(clock.wall(0) // DAY * DAY + 2 * DAY)  # clocks go forward at 2:00
    places, labels, name = hour_ticks(clock, midnight, midnight + 23 * HOUR)
    assert ["00:00\nSun 26 Mar", "04:00", "06:00"] == labels[:3]
    assert [0, 3 * HOUR, 5 * HOUR] == [place - midnight for place in places[:3]]
    assert "local time 2000, Europe/Stockholm" == name
    assert (["0", "5", "10"], "min since the origin") == hour_ticks(Clock(), 0, 600, 3)[1:]


def test_many_jobs_are_drawn_quickly(make_jobs: Callable[..., JobTable]) -> None:
    """20,000 jobs in a window, many at a time, take some seconds, not minutes."""
    jobs = make_jobs(*((n // 4, 300 + n % 500, 1 + n % 9, 1000, n % 40) for n in range(20_000)))
    jobs.submit[:] = jobs.start[:] = jobs.recorded_submit
    jobs.end[:] = jobs.recorded_end
    jobs.state[:] = State.COMPLETED
    began = time.perf_counter()
    figure_png(gantt(Run(jobs, 12_000, "many", {}), (0, None)))
    assert time.perf_counter() - began < 20


def test_small_picture_names_every_job(trace: Trace) -> None:
    """A tiny run has each job by name on its processors and in the queue."""
    few = Trace(trace.header, {name: values[:9] for name, values in trace.columns.items()}, "few")
    figure = small_gantt(replay(few, users="rigid"), names={1: "first"}, title="Nine jobs")
    expected = ["first", *map(str, range(2, 10))]
    above, below = figure.axes
    assert figure_png(figure).startswith(b"\x89PNG")
    assert set(expected) == {text.get_text() for text in above.texts}
    assert expected == [label.get_text() for label in below.get_yticklabels()]
    assert "Nine jobs" in texts(figure)


def test_small_picture_is_for_few_jobs(run: Run) -> None:
    """More than 20 jobs, or none, are refused."""
    for wrong in (run, Run(JobTable(), 4, "nothing", {})):
        with pytest.raises(QuantityError, match="must have 1 to 20"):
            small_gantt(wrong)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_are_the_same_every_time(run: Run, tmp_path: Path, suffix: str) -> None:
    """The same picture gives the same bytes, in each format, and nothing else is left."""
    for name in ("a", "b"):
        write_picture(gantt(run), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    assert 2 == len(list(tmp_path.iterdir()))


def test_results_folder_can_be_drawn(run: Run, tmp_path: Path) -> None:
    """A run that is read back has the same picture."""
    write_results(run, tmp_path / "run", plots=False)
    assert figure_png(gantt(run)) == figure_png(gantt(read_run(tmp_path / "run")))


def test_small_picture_shows_what_was_asked_for(make_jobs: Callable[..., JobTable]) -> None:
    """A dashed line leads to the requested end, or to the start of the next job in the way."""
    jobs = make_jobs((0, 10, 2, 40), (20, 10, 1, 10))
    jobs.submit[:], jobs.start[:], jobs.end[:] = 0, (0, 20), (10, 30)
    jobs.state[:] = State.COMPLETED
    lines = [
        tuple(segment[:, 0])
        for collection in small_gantt(Run(jobs, 4, "two", {}), last=50).axes[0].collections
        if hasattr(collection, "get_segments")
        for segment in collection.get_segments()
    ]
    assert [(10, 20)] == lines
    jobs.start[1], jobs.end[1] = 40, 50
    small = small_gantt(Run(jobs, 4, "two", {}), last=50)
    assert [40] == [line.get_xdata()[0] for line in small.axes[0].lines]


def test_promises_are_marked(run: Run) -> None:
    """On request a mark is at the start that a job was promised, if that was another one."""
    jobs = run.jobs.copy()
    jobs.promised[:] = -1
    jobs.promised[0], jobs.promised[1] = jobs.start[0], jobs.start[1] + 600
    figure = gantt(Run(jobs, 8, "promised", {}), (0, None), promises=True)
    marks = [x for line in figure.axes[0].lines for x in line.get_xdata()]
    assert [jobs.promised[1]] == marks
