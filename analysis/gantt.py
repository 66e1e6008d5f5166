"""Gantt pictures of runs: who held which processors when, and who waited meanwhile.

:func:`gantt` draws any window of a run. The rows of processors are computed for the picture (see
:mod:`environment.placement`): in the simulation a job holds so many processors, not certain ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis import curves
from analysis.gantt_colours import Look, Looks, looks_of
from analysis.gantt_window import Window, find_window, window_name
from analysis.hours_axis import label_hours
from analysis.platform_accounts import processor_seconds, size_steps, sizes_of
from analysis.plots import COLOURS, DPI, LEGEND, TITLE, new_figure, say_nothing, tidy
from analysis.run import Run
from environment.jobs import UNKNOWN, Int64s, JobTable, State
from environment.placement import Placement, place
from environment.quantities import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Size of a picture, inches.
WIDTH, HEIGHT = 12.0, 7.6

#: More pieces than this are drawn as pixels also in SVG and PDF files, which stay small.
MOST_SHAPES = 4000

#: More changes of the queue than this are averaged over bins.
MOST_STEPS = 4000

#: A piece has an edge, and a hatch if that is its look, from this width and height on, pixels.
EDGED = 4.0, 3.0
HATCHED = 8.0, 6.0

#: Share of white in smaller pieces instead of a hatch.
PALE = 0.45

#: Most ends of killed jobs that are drawn as thick lines.
MOST_THICK = 100

#: Jobs are named where a picture has at most so many, and a name has room, in pixels a letter.
MOST_NAMES = 150
LETTER = 6.0, 11.0


def gantt(
    run: Run,
    window: Window | None = None,
    *,
    by: str = "user",
    names: Mapping[int, str] | None = None,
    promises: bool = False,
    title: str = "",
) -> Figure:
    """Return a Gantt picture of a window of a run, with the queue below it.

    Parameters
    ----------
    run
        A run; :func:`analysis.loading.read_run` reads one from a folder of results, or a recorded
        trace.
    window
        Its first and last moment, s since the origin; None as one of them stands for the beginning
        or the end of the run, None as the window for the :func:`busiest_day`.
    by
        What colours tell: ``user``, ``queue``, ``cluster`` or ``state``.
    names
        Names of jobs by job number; the others have their number.
    promises
        Mark the start that each job was first promised, where it started earlier or later.
    title
        Of the picture; the label of the run unless given.

    Raises
    ------
    QuantityError
        When the window is empty, or ``by`` is not known.
    """
    looks = looks_of(run.jobs, by)
    first, last = find_window(run, window)
    jobs = run.jobs
    figure = new_figure(WIDTH, HEIGHT, title or run.label, "")
    grid = figure.add_gridspec(
        3, 1, left=0.06, right=0.985, bottom=0.085, top=0.855, hspace=0.24, height_ratios=(5, 1, 1)
    )
    machine, count, asked = (figure.add_subplot(grid[place]) for place in range(3))
    rows = running_between(jobs, first, last)
    begin, end = jobs.start[rows], _ends(jobs, last)[rows]
    steps = size_steps(run.processors, sizes_of(run.platform), first, last)
    fewest, most = min(size for _, size in steps), max(size for _, size in steps)
    where = place(begin, end, jobs.processors[rows], most)
    held = np.minimum(end, last) - np.maximum(begin, first)
    work = (jobs.processors[rows] * held).astype(float)
    there = processor_seconds(run.processors, sizes_of(run.platform), first, last)
    share = work.sum() / there if there else 0.0
    there_were = f"{fewest:,} to {most:,}" if fewest < most else f"{most:,}"
    _subtitle(
        figure,
        run,
        f"{window_name(run, first, last)}: {plural(len(rows), 'job')} of "
        f"{plural(len(np.unique(jobs.user[rows])), 'user')} ran on {there_were} processors, "
        f"{100 * share:.1f} % of them in use",
    )
    tidy(machine)
    machine.grid(visible=False)
    bounded = fewest < most or where.rows > most
    dashed = "; dashed: all there are" if bounded else ""
    machine.set_title(
        f"Processors; which of them a job holds is drawn by first fit{dashed}", **TITLE
    )
    label_hours(machine, run.clock, first, last, named=False)
    machine.set_ylim(0, max(where.rows, most, 1))
    count_axis(machine)
    if len(rows):
        draw_pieces(machine, looks, rows, (begin, end), where)
        killed = by != "state" and bool((jobs.state[rows] == State.KILLED).any())
        if killed:
            _draw_killed(machine, jobs, rows, where)
        if promises:
            draw_promises(machine, jobs, rows, where)
        _draw_names(machine, jobs, rows, (begin, end), where, looks, names or {})
        _draw_legend(
            figure, looks.legend(work, rows), bool((jobs.state[rows] == State.KILLED).any())
        )
    else:
        say_nothing(machine, "nothing ran then")
    if bounded:
        times, sizes = zip(*steps, (last, steps[-1][1]), strict=True)
        style: dict[str, Any] = {"color": "black", "linewidth": 1, "linestyle": (0, (4, 3))}
        machine.step(times, sizes, where="post", **style)
    draw_queue_steps(count, asked, run, first, last)
    return figure


def count_axis(axes: Axes) -> None:
    """Label an axis that counts at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))


def running_between(jobs: JobTable, first: int, last: int) -> Int64s:
    """Return the rows of the jobs that ran at some time of a window."""
    end = _ends(jobs, last)
    ran = (jobs.start != UNKNOWN) & (jobs.start < last) & (end >= first)
    return np.flatnonzero(ran & ((end > first) | (jobs.start == first)))


def _ends(jobs: JobTable, last: int) -> Int64s:
    """Return the end of each job; jobs that were still running end with the window."""
    return np.where(jobs.end == UNKNOWN, max(last, int(jobs.start.max(initial=0))), jobs.end)


def draw_pieces(
    axes: Axes, looks: Looks, rows: Int64s, times: tuple[Int64s, Int64s], where: Placement
) -> None:
    """Draw the jobs in ``rows``, which begin and end at ``times``, s, as rectangles."""
    from matplotlib.collections import PolyCollection

    left, right = axes.get_xlim()
    begin = np.clip(times[0], left, right)[where.job]
    end = np.clip(times[1], left, right)[where.job]
    low, high = where.row, where.row + where.height
    corners = np.stack(
        [
            np.stack(pair, axis=-1)
            for pair in ((begin, low), (begin, high), (end, high), (end, low))
        ],
        axis=1,
    )
    wide, tall = (end - begin) * _pixels(axes)[0], where.height * _pixels(axes)[1]
    crowded = len(corners) > MOST_SHAPES
    edged = (wide >= EDGED[0]) & (tall >= EDGED[1]) & (not crowded)
    roomy = (wide >= HATCHED[0]) & (tall >= HATCHED[1]) & (not crowded)
    which = looks.which[rows][where.job]
    for number, look in enumerate(looks.looks):
        for hatched in (False, True):
            mine = (which == number) & (roomy == hatched if look.hatch else not hatched)
            if not mine.any():
                continue
            axes.add_collection(
                PolyCollection(
                    corners[mine],
                    facecolors=_paler(look.colour) if look.hatch and not hatched else look.colour,
                    edgecolors="white",
                    linewidths=np.where(edged[mine], 0.6, 0.0),
                    hatch=look.hatch if hatched else None,
                    rasterized=crowded,
                ),
                autolim=False,
            )


def _paler(colour: str) -> Any:
    """Return a colour as a white hatch makes it look from afar."""
    from matplotlib.colors import to_rgb

    return tuple(PALE + (1 - PALE) * part for part in to_rgb(colour))


def _pixels(axes: Axes) -> tuple[float, float]:
    """Return the pixels of a second and of a processor."""
    box = axes.get_position()
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    left, right = axes.get_xlim()
    low, high = axes.get_ylim()
    return box.width * width * DPI / (right - left), box.height * height * DPI / (high - low)


def _draw_killed(axes: Axes, jobs: JobTable, rows: Int64s, where: Placement) -> None:
    """Mark the ends of jobs that were killed."""
    from matplotlib.collections import LineCollection

    killed = np.flatnonzero(jobs.state[rows][where.job] == State.KILLED)
    ends = jobs.end[rows][where.job[killed]]
    lines = [
        [(end, low), (end, low + height)]
        for end, low, height in zip(
            ends.tolist(), where.row[killed].tolist(), where.height[killed].tolist(), strict=True
        )
    ]
    width = 1.8 if len(lines) <= MOST_THICK else 0.5
    axes.add_collection(LineCollection(lines, colors="black", linewidths=width), autolim=False)


def draw_promises(axes: Axes, jobs: JobTable, rows: Int64s, where: Placement) -> None:
    """Draw a line from the start of each job to the one that it was first promised."""
    promised = jobs.promised[rows]
    start = jobs.start[rows]
    _, lowest = np.unique(where.job, return_index=True)
    middle = where.row[lowest] + where.height[lowest] / 2
    other = (promised != UNKNOWN) & (promised != start)
    axes.hlines(middle[other], start[other], promised[other], color="black", linewidth=1)
    for later, marker in ((True, 4), (False, 5)):
        some = other & ((start > promised) == later)
        axes.plot(
            promised[some], middle[some], marker=marker, color="black", linestyle="", markersize=6
        )


def _draw_names(
    axes: Axes,
    jobs: JobTable,
    rows: Int64s,
    times: tuple[Int64s, Int64s],
    where: Placement,
    looks: Looks,
    names: Mapping[int, str],
) -> None:
    """Write the name of each job into its largest piece, where it has room."""
    if len(rows) > MOST_NAMES:
        return
    left, right = axes.get_xlim()
    begin, end = np.clip(times[0], left, right), np.clip(times[1], left, right)
    wide, tall = _pixels(axes)
    for job, row in enumerate(rows.tolist()):
        mine = np.flatnonzero(where.job == job)
        piece = mine[where.height[mine].argmax()]
        number = int(jobs.number[row])
        text = names.get(number, str(number))
        width = (end[job] - begin[job]) * wide
        if width < LETTER[0] * (len(text) + 1) or where.height[piece] * tall < LETTER[1]:
            continue
        axes.text(
            (begin[job] + end[job]) / 2,
            where.row[piece] + where.height[piece] / 2,
            text,
            fontsize=8,
            ha="center",
            va="center",
            **text_look(looks.looks[looks.which[row]]),
        )


def text_look(look: Look) -> dict[str, Any]:
    """Return how to write on a look: light on dark colours, on hatches with a box behind."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(look.colour)
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
    found: dict[str, Any] = {"color": "white" if dark else "black"}
    if look.hatch:
        found["bbox"] = {"facecolor": look.colour, "edgecolor": "none", "pad": 1.5}
    return found


def legend_handles(shown: list[Look]) -> list[Any]:
    """Return what matplotlib needs to name looks in a legend."""
    from matplotlib.patches import Patch

    return [
        Patch(facecolor=look.colour, hatch=look.hatch or None, edgecolor="white", label=look.label)
        for look in shown
    ]


def _draw_legend(figure: Figure, shown: list[Look], killed: bool) -> None:
    from matplotlib.lines import Line2D

    handles = legend_handles(shown)
    if killed:
        mark: dict[str, Any] = {"color": "black", "marker": "|", "markeredgewidth": 1.8}
        handles.append(Line2D([], [], linestyle="", label="killed", **mark))
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.052, 1 - 0.56 / HEIGHT),
        ncols=len(handles),
        columnspacing=1.2,
        handletextpad=0.4,
        **LEGEND,
    )


def draw_queue_steps(count: Axes, asked: Axes, run: Run, first: int, last: int) -> None:
    """Draw the jobs that wait, and the processors that they ask for, in two pictures."""
    jobs = run.jobs
    begin, end, rows = waits_between(jobs, first, last)
    processors = jobs.processors[rows]
    for axes, height, title, colour in (
        (count, np.ones(len(rows), np.int64), "Jobs in the queue", "orange"),
        (asked, processors, "Processors that the queue asks for", "vermilion"),
    ):
        tidy(axes)
        edges, level = levels(begin, end, height, first, last)
        axes.stairs(level, edges, fill=True, color=COLOURS[colour])
        axes.set_title(title, **TITLE)
        axes.set_ylim(0, max(1.0, 1.08 * float(level.max(initial=0))))
        count_axis(axes)
        label_hours(axes, run.clock, first, last, named=axes is asked)


def waits_between(jobs: JobTable, first: int, last: int) -> tuple[Int64s, Int64s, Int64s]:
    """Return when jobs that waited in a window began and ceased to wait, s, and their rows.

    Jobs that left without running count as never having waited.
    """
    started = jobs.start != UNKNOWN
    waits = (jobs.submit != UNKNOWN) & (started | (jobs.state == State.UNFINISHED))
    until = np.where(started, jobs.start, max(last, int(jobs.submit.max(initial=0))))
    rows = np.flatnonzero(waits & (jobs.submit < last) & (until > first) & (until > jobs.submit))
    return jobs.submit[rows], until[rows], rows


def levels(
    begin: Int64s, end: Int64s, height: Int64s, first: int, last: int
) -> tuple[Int64s, curves.Floats]:
    """Return a sum of blocks over a window as steps: their edges, s, and their levels.

    Exact where there are few changes, else averaged over bins as wide as a pixel.
    """
    inside = np.concatenate([begin, end])
    edges = np.unique(np.concatenate([[first, last], inside[(inside > first) & (inside < last)]]))
    if len(edges) > MOST_STEPS:
        edges = np.unique(np.linspace(first, last, 1200).astype(np.int64))
    return edges, curves.mean_level(begin, end, height, edges)


def _subtitle(figure: Figure, run: Run, text: str) -> None:
    of = "" if run.source is None else f"{run.source['source']}, "
    figure.text(0.012, 1 - 0.36 / HEIGHT, f"{of}{text}", va="top", fontsize=9.5, color="#444444")
