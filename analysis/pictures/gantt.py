"""Gantt charts of runs: which job held which processors when, and the queue below.

:func:`gantt` draws any window of a run; one with more jobs than a picture can show becomes a
density, see :mod:`hpcrowd.analysis.pictures.density`. The rows of processors are computed for the
picture (see :mod:`platform.placement`): in the simulation a job holds a number of processors, not
particular ones. Jobs are coloured by user, queue, state or cluster (:func:`looks_of`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis import curves
from hpcrowd.analysis.curves import processor_seconds, size_steps
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.pictures.density import density
from hpcrowd.analysis.run import Run, check_run
from hpcrowd.environment.clock import DAY, Moment, parse_window, second_of
from hpcrowd.environment.engine.attempts import runs_of
from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, State
from hpcrowd.environment.platform.placement import Placement, place
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Colours, in the order in which they are assigned.
HUES = ("blue", "orange", "green", "vermilion", "sky", "purple", "yellow")

#: Hatches, in the order in which they are assigned, each for all hues.
HATCHES = ("", "///")

#: Greys of users without a colour, by number, so that neighbours differ.
GREYS = ("#b3b3b3", "#c6c6c6", "#d6d6d6")

#: Styles of states; unfinished jobs still run when the simulation ends.
OF_STATES = {
    State.COMPLETED: "blue",
    State.KILLED: "vermilion",
    State.UNFINISHED: "yellow",
    State.CANCELLED: "purple",
    State.REJECTED: "orange",
    State.RENOUNCED: "green",
    State.FAILED: "sky",
}

#: States whose jobs ended before their time, with the word for the legend.
STOPPED = {State.KILLED: "killed", State.CANCELLED: "taken back", State.FAILED: "stopped"}

#: Columns that jobs can be coloured by.
COLOURED_BY = ("user", "queue", "cluster", "state")

#: Most entries of a legend.
MOST_ENTRIES = 9


@dataclass(frozen=True)
class Look:
    """The style of some jobs."""

    colour: str
    hatch: str = ""
    label: str = ""  #: name in the legend; empty if the colour is shared


@dataclass(frozen=True)
class Looks:
    """The styles of all jobs of a run."""

    looks: list[Look]  #: all styles
    which: Int64s  #: index of each job's style, shape (jobs,)
    others: str  #: name of the jobs without their own style, such as ``other users``

    def legend(self, weight: Int64s | NDArray[np.float64], rows: Int64s) -> list[Look]:
        """Return the legend entries for jobs, those with the most ``weight`` first."""
        total = np.bincount(self.which[rows], weights=weight, minlength=len(self.looks))
        seen = [int(place) for place in np.argsort(-total, kind="stable") if total[place] > 0]
        named = [self.looks[place] for place in seen if self.looks[place].label]
        kept = named[:MOST_ENTRIES]
        if len(kept) < len(named):
            kept.append(Look("none", "", f"{len(named) - len(kept)} more"))
        if any(not self.looks[place].label for place in seen):
            kept.append(Look(GREYS[1], "", self.others))
        return kept


def looks_of(jobs: JobTable, by: str, count: int | None = None) -> Looks:
    """Return the style of each job of a run, by ``user``, ``queue``, ``cluster`` or ``state``.

    ``count`` is the number of jobs, if further runs of them follow, whose work does not count.
    """
    check_choice("coloured by", by, COLOURED_BY)
    if by == "state":
        looks = [Look(plots.COLOURS[OF_STATES[state]], "", state.name.lower()) for state in State]
        return Looks(looks, jobs.state.copy(), "")
    return _by_work(getattr(jobs, by), jobs, by, len(jobs) if count is None else count)


def _by_work(column: Int64s, jobs: JobTable, what: str, count: int) -> Looks:
    """Assign styles by work: those with the most work in the trace come first.

    A user's colour is therefore the same in every picture: it depends only on the work of the run,
    not on the scheduler or the window. The users with the most work get their own colours, the
    others share greys. Colour-blind people can tell seven colours apart; the next seven users get
    them again, hatched.
    """
    numbers, which = np.unique(column, return_inverse=True)
    each = jobs.processors * np.maximum(jobs.run_time, 1).astype(float)
    work = np.bincount(which[:count], weights=each[:count], minlength=len(numbers))
    coloured = len(HUES) * len(HATCHES)
    order = np.argsort(-work, kind="stable") if len(numbers) > coloured else np.arange(len(numbers))
    looks = [
        Look(
            plots.COLOURS[hue],
            hatch,
            f"{what} "
            + ("unknown" if numbers[place] == UNKNOWN else jobs.who(int(numbers[place]), what)),
        )
        for place, (hatch, hue) in zip(
            order[:coloured].tolist(), ((h, c) for h in HATCHES for c in HUES), strict=False
        )
    ]
    look = np.empty(len(numbers), np.int64)
    look[order] = np.arange(len(numbers))
    grey = len(looks) + numbers % len(GREYS)
    look = np.where(look < coloured, look, grey)
    looks += [Look(grey) for grey in GREYS]
    return Looks(looks, look[which], f"other {what}s")


#: First and last second; None stands for the beginning or the end of the run.
Window = tuple[Moment | str | None, Moment | str | None]


def busiest_day(run: Run) -> tuple[int, int] | None:
    """Return the local day, s, with the most processors in use; the first one if several tie.

    For a run of at most one and a half days, return the whole run; None if nothing happened.
    """
    span = curves.span_of(run.runs)
    if span is None or span[1] - span[0] <= 1.5 * DAY:
        return None if span is None else (span[0], max(span[1], span[0] + 1))
    # Between two events all days are alike: those with one, and those after them, are enough.
    runs = run.runs
    events = np.concatenate([np.array(span), runs.start, runs.end])
    events = np.unique(events[(events >= span[0]) & (events <= span[1])])
    days = np.unique(run.clock.walls(events) // DAY)
    days = np.union1d(days, days[:-1] + 1)
    every = np.union1d(days, days + 1)
    edges = np.array([run.clock.second_at(day * DAY) for day in every.tolist()])
    level = curves.processors_in_use(runs, edges)
    places = np.searchsorted(every, days)
    place = int(places[level[places].argmax()])
    return int(edges[place]), int(edges[place + 1])


def window_name(run: Run, first: int, last: int) -> str:
    """Return the name of a window: the date of a single day, else its first and last moment."""
    if run.clock.nominal:
        whole = first % DAY == 0 and last - first == DAY
        return f"day {first // DAY} since the origin" if whole else f"{first:,} to {last:,} s"
    begin, end = run.clock.local(first), run.clock.local(last)
    if run.clock.wall(first) % DAY == 0 and run.clock.wall(last) - run.clock.wall(first) == DAY:
        return f"{begin:%a} {begin.day} {begin:%b %Y}"
    return f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}"


def find_window(run: Run, window: Window | str | None) -> tuple[int, int]:
    """Return the window that :func:`gantt` draws, s; a QuantityError says that it is empty."""
    if window is None:
        return busiest_day(run) or (0, DAY)
    pair = parse_window(window) if isinstance(window, str) else window
    if len(pair) != 2:
        raise QuantityError(f"window {pair!r}: not a pair of moments, nor a text such as '2d..3d'")
    first, last = (None if one is None else second_of(one, run.clock) for one in pair)
    begin, end = curves.span_of(run.runs) or (0, 1)
    first = begin if first is None else first
    last = max(end, begin + 1) if last is None else last
    if first >= last:
        raise QuantityError(
            f"window from {first} to {last} s is empty; the run lasts from {begin} to {end} s"
        )
    return first, last


#: What a picture shows: each job, or who held which share of the machine; auto for what fits.
STYLES = ("auto", "jobs", "density")

#: A window with more jobs is drawn as density: few of them would be wider than a pixel or two.
MOST_JOBS = 3000

#: So is one in which less than this share of the work is in jobs that are large enough to be seen.
LEAST_SEEN = 0.7

#: Size of the panel with the jobs, pixels.
PANEL = 1110.0, 360.0

#: Size of a picture, inches.
WIDTH, HEIGHT = 12.0, 7.6

#: More pieces than this are drawn as pixels even in SVG and PDF files, to keep them small.
MOST_SHAPES = 4000

#: More changes of the queue than this are averaged over bins.
MOST_STEPS = 4000

#: Least width and height of a piece that gets an edge, and a hatch if it has one, pixels.
EDGED = 4.0, 3.0
HATCHED = 8.0, 6.0

#: Share of white in smaller pieces instead of a hatch, which gives about the same shade.
PALE = 0.45

#: Most killed jobs whose end is drawn as a thick line.
MOST_THICK = 100

#: Jobs are numbered if there are at most this many and the number fits, in pixels per letter.
MOST_NAMES = 150
LETTER = 6.0, 11.0


def gantt(
    run: Run,
    window: Window | str | None = None,
    *,
    by: str = "user",
    promises: bool = False,
    title: str = "",
    style: str = "auto",
) -> Figure:
    """Return a Gantt chart of a window of a run, with the queue below it.

    Parameters
    ----------
    run
        A run; :func:`hpcrowd.analysis.results.read_run` reads one from a folder of results or
        from a recorded trace.
    window
        First and last second since the origin, or dates, or a text such as ``2d..3d``; None for
        either stands for the beginning or end of the run. None instead of the pair stands for the
        :func:`busiest_day`.
    by
        What to colour by: ``user``, ``queue``, ``cluster`` or ``state``.
    promises
        Mark the start first promised to each job, if it started earlier or later.
    title
        Title; by default the trace and the label of the run.
    style
        ``jobs`` draws each job; ``density`` the share of the machine that the busiest users held
        over time; ``auto`` the jobs if a picture can show them, see :func:`fitting_style`.

    Raises
    ------
    QuantityError
        When the window is empty, or ``by`` or ``style`` is not known.
    """
    check_run(run)
    check_choice("style", style, STYLES)
    check_choice("coloured by", by, COLOURED_BY)
    first, last = find_window(run, window)
    if (fitting_style(run, first, last) if style == "auto" else style) == "density":
        return density(run, first, last, by=by, title=title)
    jobs, looks = run.runs, looks_of(run.runs, by, len(run.jobs))
    figure = plots.new_figure(WIDTH, HEIGHT, title or plots.run_name(run))
    places = {"left": 0.06, "bottom": 0.085, "top": 0.855, "hspace": 0.24}
    machine, count, asked = plots.panels(figure, 3, 1, height_ratios=(5, 1, 1), **places)
    rows, held = _held_between(jobs, first, last)
    begin, end = jobs.start[rows], _ends(jobs, last)[rows]
    steps = size_steps(run.processors, run.parts.sizes, first, last)
    fewest, most = min(size for _, size in steps), max(size for _, size in steps)
    where = place(begin, end, jobs.processors[rows], most)
    work = (jobs.processors[rows] * held).astype(float)
    there = processor_seconds(run.processors, run.parts.sizes, first, last)
    share = work.sum() / there if there else 0.0
    there_were = f"{fewest:,} to {most:,}" if fewest < most else f"{most:,}"
    ran = plural(len(np.unique(runs_of(run.jobs, run.attempts).row[rows])), "job")
    text = (
        f"{window_name(run, first, last)}: {ran} of "
        f"{plural(len(np.unique(jobs.user[rows])), 'user')} ran on {there_were} processors, "
        f"{100 * share:.1f} % of them in use"
    )
    figure.text(0.012, 1 - 0.36 / HEIGHT, text, va="top", fontsize=9.5, color="#444444")
    bounded = fewest < most or where.rows > most
    dashed = "; dashed: size of the machine" if bounded else ""
    plots.tidy(machine, f"Processors; jobs are placed by first fit{dashed}")
    machine.grid(visible=False)
    plots.label_hours(machine, run.clock, first, last, named=False)
    machine.set_ylim(0, max(where.rows, most, 1))
    plots.count_axis(machine)
    if len(rows):
        draw_pieces(machine, looks, rows, (begin, end), where)
        stopped = [] if by == "state" else _stopped(jobs, rows)
        if stopped:
            _draw_stopped(machine, jobs, rows, where)
        if promises:
            draw_promises(machine, jobs, rows, where)
        _draw_names(machine, jobs, rows, (begin, end), where, looks)
        _draw_legend(figure, looks.legend(work, rows), " or ".join(stopped))
    else:
        plots.say_nothing(machine, "no job ran in this window")
    if bounded:
        plots.draw_size(machine, steps, last, 1)
    draw_queue_steps(count, asked, run, first, last)
    return figure


def fitting_style(run: Run, first: int, last: int) -> str:
    """Return ``jobs`` if a picture can show the jobs of a window (s) one by one, or ``density``."""
    jobs = run.runs
    rows, held = _held_between(jobs, first, last)
    work = (jobs.processors[rows] * held).astype(float)
    seen = (held * PANEL[0] / (last - first) >= EDGED[0]) & (
        jobs.processors[rows] * PANEL[1] / max(run.processors, 1) >= EDGED[1]
    )
    crowded = len(rows) > MOST_JOBS or work[seen].sum() < LEAST_SEEN * work.sum()
    return "density" if crowded else "jobs"


def running_between(jobs: JobTable, first: int, last: int) -> Int64s:
    """Return the rows of the jobs that ran at some time in a window."""
    end = _ends(jobs, last)
    ran = (jobs.start != UNKNOWN) & (jobs.start < last) & (end >= first)
    return np.flatnonzero(ran & ((end > first) | (jobs.start == first)))


def _held_between(jobs: JobTable, first: int, last: int) -> tuple[Int64s, Int64s]:
    """Return the rows of the jobs that ran at some time in a window, and how long in it, s."""
    rows = running_between(jobs, first, last)
    return rows, np.minimum(_ends(jobs, last)[rows], last) - np.maximum(jobs.start[rows], first)


def _ends(jobs: JobTable, last: int) -> Int64s:
    """Return the end of each job; jobs still running end with the window."""
    return np.where(jobs.end == UNKNOWN, max(last, int(jobs.start.max(initial=0))), jobs.end)


def draw_pieces(
    axes: Axes, looks: Looks, rows: Int64s, times: tuple[Int64s, Int64s], where: Placement
) -> None:
    """Draw the jobs in ``rows``, which begin and end at ``times`` (s), as rectangles."""
    from matplotlib.collections import PolyCollection

    left, right = axes.get_xlim()
    begin = np.clip(times[0], left, right)[where.job]
    end = np.clip(times[1], left, right)[where.job]
    corners = corners_of(begin, end, where)
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
                    facecolors=plots.paler(look.colour, PALE)
                    if look.hatch and not hatched
                    else look.colour,
                    edgecolors="white",
                    linewidths=np.where(edged[mine], 0.6, 0.0),
                    hatch=look.hatch if hatched else None,
                    rasterized=crowded,
                ),
                autolim=False,
            )


def corners_of(begin: Int64s, end: Int64s, where: Placement) -> NDArray[Any]:
    """Return the corners of pieces by their begin and end (s), shape (pieces, 4, 2)."""
    low, high = where.row, where.row + where.height
    corners = ((begin, low), (begin, high), (end, high), (end, low))
    return np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)


def _pixels(axes: Axes) -> tuple[float, float]:
    """Return the pixels per second and per processor."""
    box = axes.get_position()
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    left, right = axes.get_xlim()
    low, high = axes.get_ylim()
    return box.width * width * plots.DPI / (right - left), box.height * height * plots.DPI / (
        high - low
    )


def _stopped(jobs: JobTable, rows: Int64s) -> list[str]:
    """Return in words how some of these jobs ended before their time."""
    found = jobs.state[rows]
    return [word for state, word in STOPPED.items() if (found == state).any()]


def _draw_stopped(axes: Axes, jobs: JobTable, rows: Int64s, where: Placement) -> None:
    """Mark the ends of jobs that were killed, or taken back while they ran."""
    from matplotlib.collections import LineCollection

    killed = np.flatnonzero(np.isin(jobs.state[rows][where.job], list(STOPPED)))
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
    """Draw a line from the start of each job to its first promised start."""
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
) -> None:
    """Write the number of each job into its largest piece if it fits."""
    if len(rows) > MOST_NAMES:
        return
    left, right = axes.get_xlim()
    begin, end = np.clip(times[0], left, right), np.clip(times[1], left, right)
    wide, tall = _pixels(axes)
    for job, row in enumerate(rows.tolist()):
        mine = np.flatnonzero(where.job == job)
        piece = mine[where.height[mine].argmax()]
        text = str(jobs.number[row])
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
    """Return the text style for a job's style: light on dark, with a box on hatches."""
    found: dict[str, Any] = {"color": "white" if plots.is_dark(look.colour) else "black"}
    if look.hatch:
        found["bbox"] = {"facecolor": look.colour, "edgecolor": "none", "pad": 1.5}
    return found


def legend_handles(shown: list[Look]) -> list[Any]:
    """Return the handles of styles for a matplotlib legend."""
    from matplotlib.patches import Patch

    return [
        Patch(facecolor=look.colour, hatch=look.hatch or None, edgecolor="white", label=look.label)
        for look in shown
    ]


def _draw_legend(figure: Figure, shown: list[Look], stopped: str) -> None:
    from matplotlib.lines import Line2D

    handles = legend_handles(shown)
    if stopped:
        mark: dict[str, Any] = {"color": "black", "marker": "|", "markeredgewidth": 1.8}
        handles.append(Line2D([], [], linestyle="", label=stopped, **mark))
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.052, 1 - 0.56 / HEIGHT),
        ncols=len(handles),
        columnspacing=1.2,
        handletextpad=0.4,
        **plots.LEGEND,
    )


def draw_queue_steps(count: Axes, asked: Axes, run: Run, first: int, last: int) -> None:
    """Draw the waiting jobs and the processors that they request, in two panels."""
    jobs = run.runs
    # Jobs that were rejected or renounced count as never having waited.
    waits, until = jobs.waited, jobs.wait_ended
    until = np.where(until == UNKNOWN, max(last, int(jobs.submit.max(initial=0))), until)
    rows = np.flatnonzero(waits & (jobs.submit < last) & (until > first) & (until > jobs.submit))
    begin, end, processors = jobs.submit[rows], until[rows], jobs.processors[rows]
    for axes, height, title, colour in (
        (count, np.ones(len(rows), np.int64), "Jobs in the queue", "orange"),
        (asked, processors, "Processors requested by the queue", "vermilion"),
    ):
        plots.tidy(axes, title)
        edges, level = levels(begin, end, height, first, last)
        axes.stairs(level, edges, fill=True, color=plots.COLOURS[colour])
        axes.set_ylim(0, max(1.0, 1.08 * float(level.max(initial=0))))
        plots.count_axis(axes)
        plots.label_hours(axes, run.clock, first, last, named=axes is asked)


def levels(
    begin: Int64s, end: Int64s, height: Int64s, first: int, last: int
) -> tuple[Int64s, curves.Floats]:
    """Return a sum of blocks over a window as steps: edges (s) and levels.

    With few changes it is exact, else averaged over bins as wide as a pixel.
    """
    inside = np.concatenate([begin, end])
    edges = np.unique(np.concatenate([[first, last], inside[(inside > first) & (inside < last)]]))
    if len(edges) > MOST_STEPS:
        edges = np.unique(np.linspace(first, last, 1200).astype(np.int64))
    return edges, curves.mean_level(begin, end, height, edges)
