"""A run over time: load, submissions and lateness, users who come and go, a period of reactions.

Most pictures have a function that gives what they show as columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.behaviours.visits import LEAVING, Happening
from hpcrowd.analysis import curves
from hpcrowd.analysis.curves import weekly_profile
from hpcrowd.analysis.metrics import submitted
from hpcrowd.analysis.pictures.overview import (
    Line,
    draw_queue,
    draw_submissions,
    draw_usage,
    lines_of,
)
from hpcrowd.analysis.pictures.platform_marks import draw_marks
from hpcrowd.analysis.pictures.plots import (
    COLOURS,
    LEGEND,
    TITLE,
    averaged,
    label_week,
    new_figure,
    say_nothing,
    tidy,
    time_axis,
)
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Columns of a picture as data: names with their units, and values of equal length.
Columns = dict[str, Any]

#: Most bins of curves that are lines.
LINE_BINS = 180

#: Percentiles of lateness that are drawn.
LATENESS = (10, 50, 90)

#: Fewest submissions of a bin whose lateness is drawn.
FEWEST = 5

#: Units of lateness: from so many s on, s of one, name.
LATE_UNITS = ((3 * DAY, DAY, "days"), (3 * HOUR, HOUR, "h"), (0, 60, "min"))


def use_over_time(run: Run) -> Figure:
    """Return processors in use and jobs in the queue over time, as recorded, too, where known.

    Changes of the platform are marked, see :mod:`hpcrowd.analysis.pictures.platform_marks`.
    """
    figure = new_figure(12, 5.4, "Processors in use and the queue", run.label)
    grid = figure.add_gridspec(2, 1, left=0.055, right=0.985, bottom=0.085, top=0.85, hspace=0.36)
    above, below = (figure.add_subplot(grid[row]) for row in (0, 1))
    draw_usage(above, run)
    draw_queue(below, run)
    span = curves.span_of(run.jobs)
    before = recorded_jobs(run)
    if span is None:
        return figure
    if before is not None:
        edges = curves.time_edges(*span, LINE_BINS)
        levels = curves.processors_in_use(before, edges), curves.jobs_waiting(before, edges)
        for axes, level in zip((above, below), levels, strict=True):
            if level.any():
                axes.stairs(
                    level, edges, baseline=None, color="#222222", linewidth=1.0,
                    label=f"recorded, {averaged(edges)}",
                )  # fmt: skip
                top = max(axes.get_ylim()[1], 1.05 * float(level.max()))
                axes.set_ylim(0, top)
        figure.legend(
            *above.get_legend_handles_labels(), loc="upper right", bbox_to_anchor=(0.985, 0.99),
            **LEGEND,
        )  # fmt: skip
    draw_marks((above, below), run)
    return figure


def use_data(run: Run) -> Columns:
    """Return what :func:`use_over_time` shows: averages over bins, which begin at ``begin_s``."""
    span = curves.span_of(run.jobs)
    edges = curves.time_edges(*(span or (0, DAY)), 720)
    found: Columns = {
        "begin_s": edges[:-1],
        "begin_local_time": local_times(run, edges[:-1]),
        "processors_in_use": curves.processors_in_use(run.jobs, edges),
        "jobs_in_queue": curves.jobs_waiting(run.jobs, edges),
    }
    before = recorded_jobs(run)
    if before is not None:
        found["recorded_processors_in_use"] = curves.processors_in_use(before, edges)
        found["recorded_jobs_in_queue"] = curves.jobs_waiting(before, edges)
    return found


def submissions_over_time(run: Run) -> Figure:
    """Return submissions until a time, recorded and simulated, and how late they are.

    Without a record, submissions and ends; and instead of lateness the submissions per day.
    """
    title = "Submissions, and how late they are" if is_late(run) else "Submissions"
    figure = new_figure(12, 3.9, title, run.label)
    grid = figure.add_gridspec(1, 2, left=0.06, right=0.985, bottom=0.13, top=0.78, wspace=0.16)
    left, right = (figure.add_subplot(grid[place]) for place in (0, 1))
    draw_submissions(left, run)
    draw = _draw_lateness if is_late(run) else _draw_rate
    draw(right, run)
    return figure


def submissions_data(run: Run) -> Columns:
    """Return what :func:`submissions_over_time` shows; lateness by the recorded submission."""
    jobs = run.jobs
    first, last = curves.span_of(jobs) or (0, DAY)
    recorded = jobs.recorded_submit[jobs.recorded_submit != UNKNOWN]
    first, last = int(recorded.min(initial=first)), int(recorded.max(initial=last))
    edges = curves.time_edges(first, last, LINE_BINS)
    found: Columns = {
        "end_s": edges[1:],
        "end_local_time": local_times(run, edges[1:]),
        "submitted_until_then": curves.cumulative(jobs.submit, edges[1:]),
        "ended_until_then": curves.cumulative(jobs.end, edges[1:]),
    }
    if is_late(run):
        found["recorded_until_then"] = curves.cumulative(jobs.recorded_submit, edges[1:])
        for p, values in zip(LATENESS, _lateness_bands(jobs, edges), strict=True):
            found[f"lateness_p{p}_s"] = values
    return found


def week_of(run: Run) -> Figure:
    """Return which share of the jobs comes in each hour of the week, recorded and simulated."""
    figure = new_figure(12, 3.2, "The week of the users", run.label)
    axes = figure.add_axes((0.045, 0.15, 0.94, 0.59))
    tidy(axes)
    axes.set_title("Share of all jobs submitted in each hour of the week, %", **TITLE)
    found = _weeks(run)
    if not found:
        say_nothing(axes, "nothing was submitted")
        return figure
    hours = np.arange(curves.WEEK_HOURS + 1)
    for (name, _, colour, width), share in found:
        axes.stairs(share, hours, color=COLOURS[colour], linewidth=width, label=name, baseline=None)
    label_week(axes, run.clock)
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])  # room for the legend
    axes.legend(**LEGEND, loc="upper right", ncols=len(found))
    return figure


def week_data(run: Run) -> Columns:
    """Return what :func:`week_of` shows, for each hour of the week from Monday 00:00 on."""
    return {
        "hour_of_week": np.arange(curves.WEEK_HOURS),
        **{f"{line[0]}_percent": share for line, share in _weeks(run)},
    }


def _weeks(run: Run) -> list[tuple[Line, Any]]:
    """Return the lines of :func:`week_of` with their values, %."""
    recorded = run.jobs.recorded_submit
    lines = lines_of(run, recorded[recorded != UNKNOWN], run.jobs.submit)
    found = [(line, 100 * weekly_profile(line[1], run.clock)) for line in lines]
    return [(line, share) for line, share in found if share.any()]


def has_record(run: Run) -> bool:
    """Return whether a run has a record to be set against; a record itself has none."""
    jobs = run.jobs
    known = (jobs.recorded_submit != UNKNOWN) & (jobs.recorded_start != UNKNOWN)
    return not run.is_record and bool(known.any())


def recorded_jobs(run: Run) -> JobTable | None:
    """Return the jobs as they were recorded; None without, or where the run is the record."""
    jobs = run.jobs
    if not has_record(run):
        return None
    known = (jobs.recorded_submit != UNKNOWN) & (jobs.recorded_start != UNKNOWN)
    before = jobs.take(np.flatnonzero(known))
    before.submit[:], before.start[:] = before.recorded_submit, before.recorded_start
    before.end[:] = before.recorded_end
    return before


def local_times(run: Run, seconds: Int64s) -> list[str]:
    """Return local times in ISO 8601; nothing where the trace does not say when it began."""
    if run.clock.nominal:
        return [""] * len(seconds)
    return [run.clock.local(second).isoformat() for second in seconds.tolist()]


def is_late(run: Run) -> bool:
    """Return whether the lateness of a run says something: a simulation of recorded jobs."""
    return not run.is_record and bool(submitted(run.jobs).any())


def _lateness_bands(jobs: JobTable, edges: Int64s) -> np.ndarray:
    """Return percentiles of lateness by the bin of the recorded submission, s; NaN for few jobs."""
    rows = np.flatnonzero(submitted(jobs))
    rows = rows[np.argsort(jobs.recorded_submit[rows], kind="stable")]
    late = jobs.submit[rows] - jobs.recorded_submit[rows]
    cuts = np.searchsorted(jobs.recorded_submit[rows], edges)
    found = np.full((len(LATENESS), len(edges) - 1), np.nan)
    for place, (begin, end) in enumerate(pairwise(cuts.tolist())):
        if end - begin >= FEWEST:
            found[:, place] = np.percentile(late[begin:end], LATENESS)
    return found


def _draw_lateness(axes: Axes, run: Run) -> None:
    jobs = run.jobs
    which = submitted(jobs)
    recorded = jobs.recorded_submit[which]
    first, last = int(recorded.min()), int(recorded.max())
    edges = curves.time_edges(first, last, LINE_BINS // 3)
    tidy(axes)
    low, middle, high = _lateness_bands(jobs, edges)
    if np.isnan(middle).all():
        axes.set_title("Lateness", **TITLE)
        return say_nothing(axes, f"fewer than {FEWEST} submissions at a time")
    furthest = float(np.nanmax(np.abs([low, high])))
    size, unit = next((size, unit) for least, size, unit in LATE_UNITS if furthest >= least)
    axes.set_title(f"Lateness, {unit}: simulated minus recorded submission, by the latter", **TITLE)
    axes.stairs(
        high / size, edges, baseline=low / size, fill=True, color=COLOURS["sky"], alpha=0.55,
        label="10 to 90 % of the jobs",
    )  # fmt: skip
    axes.stairs(
        middle / size, edges, baseline=None, color=COLOURS["blue"], linewidth=1.4, label="median"
    )
    axes.axhline(0, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    if furthest == 0:
        axes.set_ylim(-1, 1)
    axes.legend(**LEGEND, loc="best")
    return time_axis(axes, run, first, last, labels=6)


def _draw_rate(axes: Axes, run: Run) -> None:
    """Draw the submissions per day."""
    tidy(axes)
    axes.set_title("Jobs submitted per day", **TITLE)
    known = run.jobs.submit[run.jobs.submit != UNKNOWN]
    if not len(known):
        return say_nothing(axes, "nothing was submitted")
    first, last = int(known.min()), int(known.max())
    edges = curves.time_edges(first, last, LINE_BINS // 3)
    rate = np.histogram(known, edges)[0] * DAY / np.diff(edges)
    axes.stairs(rate, edges, fill=True, color=COLOURS["sky"])
    axes.set_ylim(0, 1.08 * float(rate.max()))
    return time_axis(axes, run, first, last, labels=6)


#: What is drawn upward and downward: colour and hatch.
VISITS = {
    Happening.ARRIVED: ("blue", ""),
    Happening.CAME_BACK: ("sky", "///"),
    Happening.DONE: ("grey", ""),
    Happening.WENT_AWAY: ("orange", "///"),
    Happening.GAVE_UP: ("vermilion", ""),
}


def comings_and_goings(run: Run) -> Figure:
    """Return how many users are there over time, and who came and left in each week."""
    figure = new_figure(12, 4.6, "Users who come and go", run.label)
    grid = figure.add_gridspec(2, 1, left=0.055, right=0.985, bottom=0.1, top=0.82, hspace=0.42)
    above, below = (figure.add_subplot(grid[row]) for row in (0, 1))
    times, there = users_there(run)
    first, last = curves.span_of(run.jobs) or (0, WEEK)
    last = max(last, int(times[-1]) if len(times) else 0)
    tidy(above)
    above.stairs(there, np.append(times, max(last, times[-1] + 1)), fill=True, color=COLOURS["sky"])
    above.set_ylim(0, 1.08 * max(1, int(there.max())))
    above.set_title("Users who are there", **TITLE)
    time_axis(above, run, first, last, named=False)
    tidy(below)
    edges, counts = _by_week(run, first, last)
    up, down = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for what, (colour, hatch) in VISITS.items():
        if not counts[what].any():
            continue
        leaves = what in LEAVING
        base = down if leaves else up
        top = base - counts[what] if leaves else base + counts[what]
        below.stairs(
            top, edges, baseline=base, fill=True, facecolor=COLOURS[colour], hatch=hatch,
            edgecolor="white", linewidth=0.3, label=what.value,
        )  # fmt: skip
        up, down = (up, top) if leaves else (top, down)
    below.axhline(0, color="black", linewidth=0.8)
    below.set_title("Users per week: upward who come, downward who leave", **TITLE)
    time_axis(below, run, first, last)
    handles, labels = below.get_legend_handles_labels()
    if handles:
        figure.legend(
            handles, labels, loc="upper right", bbox_to_anchor=(0.985, 0.99), ncols=len(handles),
            **LEGEND,
        )  # fmt: skip
    return figure


def users_there(run: Run) -> tuple[Int64s, Int64s]:
    """Return the seconds at which the users who are there change, and how many there are then."""
    present: dict[int, bool] = {}
    changes: dict[int, int] = {}
    for visit in run.visits:
        now = visit.what not in LEAVING
        step = int(now) - int(present.get(visit.user, False))
        present[visit.user] = now
        changes[visit.at] = changes.get(visit.at, 0) + step
    times = np.array(sorted(changes), np.int64)
    return times, np.cumsum([changes[at] for at in times.tolist()], dtype=np.int64)


def visits_data(run: Run) -> Columns:
    """Return what :func:`comings_and_goings` shows, week by week from the first event on."""
    first, last = curves.span_of(run.jobs) or (0, WEEK)
    edges, counts = _by_week(run, first, last)
    times, there = users_there(run)
    place = np.searchsorted(times, edges[1:], side="left") - 1
    return {
        "week_begins_s": edges[:-1],
        "week_begins_local_time": local_times(run, edges[:-1]),
        "users_there_at_its_end": there[place],
        **{what.value.replace(" ", "_"): counts[what] for what in VISITS},
    }


def _by_week(run: Run, first: int, last: int) -> tuple[Int64s, dict[Happening, Int64s]]:
    """Return weeks of 7 times 24 hours that cover a span, and how often what happened in each."""
    latest = max([last, *(visit.at for visit in run.visits)])
    edges = np.arange(min(0, first), latest + WEEK + 1, WEEK, dtype=np.int64)
    return edges, {
        what: np.histogram([visit.at for visit in run.visits if visit.what is what], edges)[0]
        for what in VISITS
    }


#: Width of the averages, s.
BIN = HOUR

#: What is shown before and after the period, s.
BEFORE, AFTER = 2 * DAY, 4 * DAY


def mean_use(run: Run, begin: int, end: int) -> float:
    """Return the mean number of processors in use between two seconds of a run."""
    return float(curves.processors_in_use(run.jobs, np.array([begin, end]))[0])


def reaction_figure(
    columns: Mapping[str, Mapping[str, Run]],
    period: tuple[int, int],
    title: str,
    subtitle: str = "",
) -> Figure:
    """Return processors in use around a period: users in columns, responses in rows.

    Parameters
    ----------
    columns
        For each kind of users its runs by the name of the response. The first of them is the run
        without one, and is shown with each of the others.
    period
        (from, to), s of the run; shaded.
    title, subtitle
        Of the picture.
    """
    rows = max(len(runs) for runs in columns.values()) - 1
    height = 0.95 + 1.55 * rows
    figure = new_figure(11, height, title, subtitle)
    grid = figure.add_gridspec(
        rows,
        len(columns),
        left=0.05,
        right=0.985,
        bottom=0.5 / height,
        top=1 - 0.95 / height,
        hspace=0.42,
        wspace=0.12,
    )
    for column, (users, runs) in enumerate(columns.items()):
        (_, without), *others = runs.items()
        for row, (name, run) in enumerate(others):
            axes = figure.add_subplot(grid[row, column])
            _draw_response(axes, without, run, period)
            axes.set_title(f"{users} users: {name}", **TITLE)
            time_axis(axes, run, *_span_around(period), named=row == len(others) - 1)
            if not row and not column:
                _explain_response(axes)
    return figure


def _span_around(period: tuple[int, int]) -> tuple[int, int]:
    return max(0, period[0] - BEFORE), period[1] + AFTER


def _draw_response(axes: Axes, without: Run, run: Run, period: tuple[int, int]) -> None:
    first, last = _span_around(period)
    edges = np.arange(first, last + BIN, BIN, dtype=np.int64)
    tidy(axes)
    axes.axvspan(*period, color=COLOURS["yellow"], alpha=0.35, linewidth=0, zorder=0)
    level = curves.processors_in_use(run.jobs, edges)
    axes.stairs(level, edges, fill=True, color=COLOURS["sky"], zorder=1)
    level = curves.processors_in_use(without.jobs, edges)
    axes.stairs(level, edges, color="#333333", linewidth=1.0, baseline=None, zorder=2)
    axes.set_ylim(0, 1.14 * run.processors)


def _explain_response(axes: Axes) -> None:
    """Say once what the colours mean, above the panel at the right."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: Sequence[Patch | Line2D] = (
        Patch(color=COLOURS["sky"], label="with the reaction"),
        Line2D([], [], color="#333333", linewidth=1.0, label="without"),
        Patch(color=COLOURS["yellow"], alpha=0.35, label="period of the call"),
    )
    figure = axes.get_figure()
    assert figure is not None
    figure.legend(
        handles=handles,
        loc="upper right",
        bbox_to_anchor=(0.985, 1.0),
        ncols=3,
        fontsize=8.5,
        frameon=False,
        handlelength=1.6,
    )
