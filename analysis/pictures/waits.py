"""Waits of users by their work, and of jobs by their size and requested time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.metrics import bounded_slowdown, per_user
from hpcrowd.analysis.numbers import number_text
from hpcrowd.analysis.pictures import over_time, plots
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Users with the most work, who are named in the picture.
NAMED = 8

#: Least distance of two names, as a part of the height of the picture.
BETWEEN = 0.055

#: An axis with more powers of ten than this is labelled at them only.
FEW_TENS = 4

#: Shorter waits are drawn as this on a logarithmic axis, s.
LEAST = 1


def users_data(run: Run) -> over_time.Columns:
    """Return a row for each user, the one with the most work first.

    Returns
    -------
    dict
        ``user``, ``user_name`` if the trace has names, ``jobs``, ``work_processor_h`` (of jobs that
        ran), ``share_of_work``, ``wait_mean_s``, ``bounded_slowdown_mean``; with a record,
        ``recorded_wait_mean_s`` and ``lateness_mean_s``; and ``behaviour`` if the configuration
        assigns behaviours to users. NaN where a user has no value.
    """
    jobs = run.jobs
    users, which = np.unique(jobs.user, return_inverse=True)
    held = np.where(jobs.over, jobs.end - jobs.start, 0).astype(float)
    work = np.bincount(which, jobs.processors * held, len(users)) / HOUR
    order = np.lexsort((users, -work))
    total = float(work.sum())
    found: over_time.Columns = {
        **jobs.with_names(users[order]),
        "jobs": np.bincount(which, minlength=len(users))[order],
        "work_processor_h": work[order],
        "share_of_work": (work / total if total else work)[order],
    }
    of_users = per_user(jobs)
    for name in ("wait_mean_s", "bounded_slowdown_mean"):
        found[name] = _placed(users, *of_users[name])[order]
    before = over_time.recorded_jobs(run)
    if before is not None:
        wait = (before.start - before.submit).astype(float)
        owners, whose = np.unique(before.user, return_inverse=True)
        mean = np.bincount(whose, wait) / np.bincount(whose)
        found["recorded_wait_mean_s"] = _placed(users, owners, mean)[order]
        found["lateness_mean_s"] = _placed(users, *of_users["lateness_mean_s"])[order]
    behaviours = behaviours_of(run)
    if behaviours:
        found["behaviour"] = [behaviours.get(user, "") for user in users[order].tolist()]
    return found


def behaviours_of(run: Run) -> dict[int, str]:
    """Return the behaviour by user, as far as the configuration assigns it.

    Users who got theirs by shares of a mixture are not included.
    """
    asked = run.configuration.get("users")
    entries: list[dict[str, Any]] = list(asked.get("users", ())) if isinstance(asked, dict) else []
    if len(entries) < 2:
        return {}  # the same for all; the label has it
    owners, first = np.unique(run.jobs.user, return_index=True)
    groups = run.jobs.group[first]
    found: dict[int, str] = {}
    for user, group in zip(owners.tolist(), groups.tolist(), strict=True):
        for field, number in (("user", user), ("group", group)):
            whom = {number, str(number), run.jobs.who(number, field)}
            named = [n for n, one in enumerate(entries) if whom & set(one.get(f"{field}s", ()))]
            if named and user not in found:
                found[user] = entries[named[0]].get("behaviour") or f"entry {named[0] + 1}"
    return found


def users_waits(run: Run) -> Figure:
    """Return a picture of users' mean waits by their work, with recorded waits if known."""
    figure = plots.new_figure(12, 4.6, "Mean waits of users by their work", plots.run_name(run))
    axes = figure.add_axes((0.065, 0.11, 0.85, 0.71))
    plots.tidy(axes, "Mean wait of a user; dot size: number of jobs")
    found = users_data(run)
    work, wait = found["work_processor_h"], found["wait_mean_s"]
    known = (work > 0) & ~np.isnan(wait)
    if not known.any():
        plots.say_nothing(axes, "no job ran")
        return figure
    before = "recorded_wait_mean_s" in found
    if before:
        _draw_recorded(axes, work, wait, found["recorded_wait_mean_s"], known)
    size = 8 + 60 * found["jobs"][known] / found["jobs"].max()
    axes.scatter(
        work[known], np.maximum(wait[known], LEAST), s=size, color=plots.COLOURS["blue"],
        alpha=0.75, linewidth=0.4, edgecolor="white",
        label="recorded" if run.is_record else "simulated", zorder=3,
    )  # fmt: skip
    _axes_of_waits(axes, wait[known], (found["recorded_wait_mean_s"] if before else wait)[known])
    _axis_of_work(axes, work[known])
    axes.set_xlabel("work of the user, processor-hours", fontsize=8.5)
    named = np.flatnonzero(known)[:NAMED]
    names = [run.jobs.who(user) for user in found["user"][named].tolist()]
    _name_users(axes, names, work[named], np.maximum(wait[named], LEAST))
    plots.legend_at_right(figure, axes, 2)
    return figure


def waits_apart(run: Run) -> Figure:
    """Return a picture of the shares of jobs, and of users, that waited longer than a time."""
    figure = plots.new_figure(12, 3.5, "How long jobs and users wait", plots.run_name(run))
    left, right = plots.panels(figure, 1, 2, left=0.06, bottom=0.14, top=0.76, wspace=0.14)
    over_time.draw_waits(left, run)
    over_time.draw_exceedance(
        right,
        over_time.lines_of(run, *_means(run)),
        "Share of users whose mean wait was longer than ...",
    )
    return figure


def waits_data(run: Run) -> over_time.Columns:
    """Return the data of :func:`waits_apart`."""
    at = np.concatenate([[0], np.unique(np.round(np.geomspace(1, 1e7, 141)).astype(np.int64))])
    found: over_time.Columns = {"wait_s": at}
    both = zip(("jobs", "users"), (over_time.waits_of(run), _means(run)), strict=True)
    for what, (recorded, simulated) in both:
        for name, values in (("recorded", recorded), ("simulated", simulated)):
            if len(values) and not (run.is_record and name == "simulated"):
                longer = 1 - np.searchsorted(np.sort(values), at, side="right") / len(values)
                found[f"share_of_{what}_{name}"] = longer
    return found


def _means(run: Run) -> tuple[Int64s, Int64s]:
    """Return users' mean waits, recorded and simulated, in whole s."""
    found = users_data(run)
    none = np.full(len(found["user"]), np.nan)
    wait = found["wait_mean_s"]
    recorded = wait if run.is_record else found.get("recorded_wait_mean_s", none)
    first, other = (np.rint(one[~np.isnan(one)]).astype(np.int64) for one in (recorded, wait))
    return first, other


def _draw_recorded(axes: Axes, work: Floats, wait: Floats, recorded: Floats, known: Any) -> None:
    """Draw recorded waits as rings, joined to the simulated ones."""
    both = known & ~np.isnan(recorded)
    axes.vlines(
        work[both], np.maximum(wait[both], LEAST), np.maximum(recorded[both], LEAST),
        color="#bbbbbb", linewidth=0.6, zorder=1,
    )  # fmt: skip
    axes.scatter(
        work[both], np.maximum(recorded[both], LEAST), s=14, facecolor="none", linewidth=0.8,
        edgecolor="#666666", label="recorded", zorder=2,
    )  # fmt: skip


def _name_users(axes: Axes, names: Sequence[str], work: Floats, wait: Floats) -> None:
    """Write names of users at the right edge, below each other, with lines to their dots."""
    low, high = np.log(axes.get_ylim())
    order = np.argsort(wait, kind="stable")
    heights = (np.log(wait[order]) - low) / (high - low)
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + BETWEEN)
    heights -= max(0.0, heights[-1] - 1)  # labels at the top push the others down
    for place in range(len(heights) - 1, 0, -1):
        heights[place - 1] = min(heights[place - 1], heights[place] - BETWEEN)
    for place, height in zip(order.tolist(), heights.tolist(), strict=True):
        axes.annotate(
            f"user {names[place]}", (work[place], wait[place]), (1.012, height),
            textcoords="axes fraction", fontsize=8, va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "#999999", "linewidth": 0.5,
                        "shrinkA": 1, "shrinkB": 3},
        )  # fmt: skip


def _axes_of_waits(axes: Axes, *waits: Floats) -> None:
    """Make the vertical axis logarithmic, with readable times as labels."""
    longest = max(float(np.nanmax(one)) if len(one) else 0.0 for one in waits)
    axes.set_yscale("log")
    axes.set_ylim(0.6 * LEAST, max(1.8 * longest, 60))
    shown = {second: text for second, text in plots.WAIT_LABELS.items() if second <= 1.8 * longest}
    shown[LEAST] = "1 s or less"
    plots.label_at(axes.yaxis, shown)


def _axis_of_work(axes: Axes, work: Floats) -> None:
    """Make the horizontal axis logarithmic, with labels even if all values are about the same."""
    low, high = 0.6 * float(work.min()), 1.7 * float(work.max())
    tens = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if len(tens) > FEW_TENS else (1, 2, 5)
    marks = [step * 10.0**ten for ten in tens.tolist() for step in steps]
    shown = [mark for mark in marks if low <= mark <= high]
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    plots.label_at(axes.xaxis, {mark: f"{mark:,.10g}" for mark in shown})


def _placed(users: Int64s, owners: Int64s, values: Floats) -> Floats:
    """Spread the values of some users over all users; NaN for the others."""
    found = np.full(len(users), np.nan)
    found[np.searchsorted(users, owners)] = values
    return found


#: Ratio of the upper ends of successive size classes, starting from one processor.
STEP = 4

#: Upper ends of time classes, s, and their names.
TIMES = (
    (600, "to 10 min"),
    (HOUR, "to 1 h"),
    (4 * HOUR, "to 4 h"),
    (12 * HOUR, "to 12 h"),
    (DAY, "to 1 day"),
    (3 * DAY, "to 3 days"),
    (None, "longer"),
)

#: Name of the row and column that hold all classes.
ALL = "all"

#: A cell with fewer jobs is pale and hatched, as its mean is unreliable.
FEW = 10

#: Share of white in such a cell.
PALE = 0.55


@dataclass(frozen=True)
class WaitClasses:
    """Means by class of size (rows, rising, then all) and of time (columns, rising, then all)."""

    sizes: list[str]  #: names of the classes
    times: list[str]
    by: str  #: ``requested time``, or ``run time`` if no job has a requested time
    jobs: Int64s  #: number of jobs, shape (sizes, times)
    wait: Floats  #: s; mean wait, NaN without jobs
    slowdown: Floats  #: mean bounded slowdown, NaN without jobs


def wait_classes(run: Run) -> WaitClasses:
    """Return the means of the jobs that ran; classes without jobs are left out."""
    jobs = run.jobs.take(np.flatnonzero(run.jobs.over))
    told = bool((jobs.requested_time != UNKNOWN).any())
    time = jobs.requested_time if told else jobs.end - jobs.start
    ends = np.array([end for end, _ in TIMES if end is not None])
    column = np.searchsorted(ends, time)
    names = [name for _, name in TIMES]
    if (time == UNKNOWN).any():
        column = np.where(time == UNKNOWN, len(TIMES), column)
        names.append("unknown")
    largest = int(jobs.processors.max(initial=1))
    count = next(n for n in range(64) if STEP**n >= largest) + 1
    row = np.searchsorted(STEP ** np.arange(count), jobs.processors)
    wait = jobs.start - jobs.submit
    slow = bounded_slowdown(jobs.end - jobs.submit, jobs.end - jobs.start)
    shape = (count, len(names))
    cells = row * len(names) + column
    sums = [
        _with_all(np.bincount(cells, weight, count * len(names)).reshape(shape))
        for weight in (np.ones(len(row)), wait, slow)
    ]
    rows = np.flatnonzero(np.append(sums[0][:-1, -1] > 0, True))
    columns = np.flatnonzero(np.append(sums[0][-1, :-1] > 0, True))
    number, waits, slows = (one[np.ix_(rows, columns)] for one in sums)
    with np.errstate(invalid="ignore"):
        means = waits / number, slows / number
    powers = [STEP**place for place in range(count)]
    sizes = ["1", *(f"{low + 1:,} to {high:,}" for low, high in pairwise(powers)), ALL]
    return WaitClasses(
        [sizes[place] for place in rows],
        [[*names, ALL][place] for place in columns],
        "requested time" if told else "run time",
        number.astype(np.int64),
        *means,
    )


def waits_by_class(run: Run) -> Figure:
    """Return a picture of mean waits and bounded slowdowns by class, with the number of jobs."""
    found = wait_classes(run)
    height = 1.65 + 0.43 * len(found.sizes)
    figure = plots.new_figure(12, height, "Who waits", plots.run_name(run))
    bottom, top = 0.62 / height, 1 - 0.95 / height
    left, right = plots.panels(
        figure, 1, 2, left=0.11, right=0.99, bottom=bottom, top=top, wspace=0.04
    )
    left.set_title("Mean wait (jobs)", **plots.TITLE)
    right.set_title("Mean bounded slowdown (jobs)", **plots.TITLE)
    if not found.jobs.any():
        for axes in (left, right):
            plots.say_nothing(axes, "no job ran")
        return figure
    _draw_cells(left, found, found.wait, "Blues", _short_time)
    _draw_cells(right, found, found.slowdown, "Oranges", number_text)
    left.set_ylabel("processors", fontsize=8.5)
    right.set_yticks([])
    return figure


def classes_data(run: Run) -> over_time.Columns:
    """Return the data of :func:`waits_by_class`, a row for each cell."""
    found = wait_classes(run)
    rows, columns = np.indices(found.jobs.shape).reshape(2, -1)
    return {
        "processors": [found.sizes[row] for row in rows],
        found.by.replace(" ", "_"): [found.times[column] for column in columns],
        "jobs": found.jobs.ravel(),
        "wait_mean_s": found.wait.ravel(),
        "bounded_slowdown_mean": found.slowdown.ravel(),
    }


def _draw_cells(axes: Axes, found: WaitClasses, values: Floats, colours: str, form: Any) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    scale = np.log10(np.maximum(values, 60 if form is _short_time else 1))
    low, high = float(np.nanmin(scale)), float(np.nanmax(scale))
    shade = 0.85 * (scale - low) / (high - low) if high > low else 0.3 * np.ones_like(scale)
    for (row, column), count in np.ndenumerate(found.jobs):
        if not count:
            continue
        few = count < FEW
        colour = plots.paler(colormaps[colours](float(shade[row, column])), PALE if few else 0)
        look: dict[str, Any] = {"facecolor": colour, "edgecolor": "white"}
        axes.add_patch(
            Rectangle((column, row), 1, 1, linewidth=1, hatch="///" if few else None, **look)
        )
        ink: dict[str, Any] = {"color": "white" if plots.is_dark(colour) else "black"}
        ink |= {"ha": "center", "va": "center"}
        middle = column + 0.5
        axes.text(middle, row + 0.33, form(values[row, column]), fontsize=8.5, **ink)
        axes.text(middle, row + 0.73, f"({count:,})", fontsize=7, **ink)
    rows, columns = found.jobs.shape
    axes.set(xlim=(0, columns), ylim=(rows, 0))
    axes.axhline(rows - 1, color="black", linewidth=1)
    axes.axvline(columns - 1, color="black", linewidth=1)
    axes.set_xlabel(found.by, fontsize=8.5)
    axes.set_xticks(np.arange(columns) + 0.5, found.times, fontsize=8)
    axes.set_yticks(np.arange(rows) + 0.5, found.sizes, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _with_all(sums: Floats) -> Floats:
    """Return sums with a row and a column of totals added."""
    wider = np.hstack([sums, sums.sum(axis=1, keepdims=True)])
    return np.vstack([wider, wider.sum(axis=0, keepdims=True)])


def _short_time(seconds: float) -> str:
    """Return a time short enough for a cell."""
    for least, size, unit in ((2 * DAY, DAY, "d"), (2 * HOUR, HOUR, "h"), (120, 60, "min")):
        if seconds >= least:
            count = seconds / size
            return f"{count:.{1 if count < 100 else 0}f} {unit}"
    return f"{seconds:.0f} s"
