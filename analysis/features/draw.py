"""Panels of pictures of workloads: arrivals, single jobs, bags and repetitions, users.

Arrivals: jobs per day, the week, autocorrelation, interarrival times. Jobs: run times, processors,
waits, run time x processors. Bags: times between them with fitted distributions, repetitions.
Users: jobs by rank, share of the jobs, think times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.curves import time_ticks
from hpcrowd.analysis.features.bags import (
    PARAMETERS,
    TITLES,
    bag_correlation,
    bag_fit,
    bag_gaps,
    bags,
)
from hpcrowd.analysis.features.jobs import (
    arrival_correlation,
    gaps,
    hours_of_week,
    requested_time,
    span_s,
    wait,
)
from hpcrowd.analysis.features.locality import bag_zipf, repetition_zipf, repetitions
from hpcrowd.analysis.features.panels import (
    LETTERS,
    POINTS,
    drawable,
    exceeding,
    label_below,
    labels_of_shares,
    logarithmic_counts,
    logarithmic_times,
    not_exceeding,
    panel,
    percent,
)
from hpcrowd.analysis.features.users import batch_response, jobs_per_user, think_time
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, TITLE
from hpcrowd.environment.clock import DAY, WEEK
from hpcrowd.environment.errors import UnavailableError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Longest trace that is drawn by days: a century.
MOST_DAYS = 36_525

#: Names of the days of the week.
WEEK_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

#: Most labels of the axis of days.
LABELS = 8

#: Labelled hours of the day.
HOURS = (0, 6, 12, 18)

#: Colours of hours and cells, from few to many; they also differ in lightness.
SHADES = "YlGnBu"

#: Days over which the autocorrelation is drawn (Minh 2012, Fig. 3.7).
ACF_DAYS = 10

#: The autocorrelations by name: function, colour and line width.
COUNTED: dict[str, tuple[Any, str, float]] = {
    "jobs": (arrival_correlation, "orange", 2.4),
    "bags": (bag_correlation, "blue", 1.0),
}


def jobs_per_day(workload: Workload) -> tuple[Floats, Floats]:
    """Return the edges of local days, s since the origin, and the jobs submitted on each.

    Raises
    ------
    UnavailableError
        When there are no jobs, or they span more than a century.
    """
    if not len(workload):
        raise UnavailableError("no jobs")
    if max(abs(workload.submit[0]), abs(workload.submit[-1])) > MOST_DAYS * DAY:
        raise UnavailableError("longer than a century")
    days = workload.clock.walls(np.floor(workload.submit).astype(np.int64)) // DAY
    first = int(days[0])
    jobs = np.bincount(np.maximum(days - first, 0)).astype(np.float64)
    return workload.clock.second_at(first * DAY) + DAY * np.arange(len(jobs) + 1.0), jobs


def draw_days(axes: Axes, workload: Workload, title: str) -> None:
    """Draw the jobs of each local day of a workload, and their mean over the week around it."""
    with panel(axes, title):
        edges, jobs = jobs_per_day(workload)
        axes.stairs(jobs, edges, fill=True, color=COLOURS["sky"])
        week = WEEK // DAY
        if len(jobs) > 2 * week:
            around = np.convolve(jobs, np.ones(week), "same")
            around /= np.convolve(np.ones(len(jobs)), np.ones(week), "same")
            middle = (edges[1:] + edges[:-1]) / 2
            axes.plot(middle, around, color=COLOURS["blue"], linewidth=1.3)
            axes.set_title(f"{title}; line: mean of 7 days", **TITLE)
        places, texts, name = time_ticks(workload.clock, int(edges[0]), int(edges[-1]))
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(0, 1.08 * jobs.max())
        axes.yaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
        every = -(-len(places) // LABELS)
        axes.set_xticks(places[::every], texts[::every])
        label_below(axes, name)


def week_shares(workload: Workload) -> Floats:
    """Return the submissions in each local hour of the week over the mean hour, (7, 24)."""
    if abs(workload.submit).max(initial=0) > MOST_DAYS * DAY:
        raise UnavailableError("longer than a century")
    if span_s(workload) < WEEK:
        raise UnavailableError("shorter than a week")
    hours = hours_of_week(workload)
    if hours.mean() <= 0:
        raise UnavailableError("no submissions")
    return (hours / hours.mean()).reshape(len(WEEK_DAYS), -1)


def draw_week(axes: Axes, workload: Workload, most: float | None, title: str) -> Any:
    """Draw a map of the hours of the week in which jobs are submitted.

    ``most`` is the value of the darkest shade, in mean hours; None if there is nothing to draw.
    Returns the mesh for a colour bar, or None.
    """
    with panel(axes, title):
        shares = week_shares(workload)
        mesh = axes.pcolormesh(
            np.arange(shares.shape[1] + 1), np.arange(len(shares) + 1), shares,
            cmap=SHADES, vmin=0, vmax=most, edgecolor="white", linewidth=0.3,
        )  # fmt: skip
        axes.grid(visible=False)
        axes.set_ylim(len(shares), 0)
        axes.set_yticks(np.arange(len(WEEK_DAYS)) + 0.5, WEEK_DAYS)
        axes.set_xticks(HOURS, [f"{hour}:00" for hour in HOURS])
        clock = workload.clock
        zone = "the origin counts as Monday 0:00" if clock.nominal else f"local time, {clock.zone}"
        label_below(axes, zone)
        return mesh
    return None


def draw_acf(axes: Axes, workload: Workload, title: str) -> None:
    """Draw the autocorrelation of the counts of arrivals over ten days (Minh 2012, Fig. 3.7).

    Vertical lines mark days, a darker one the week.
    """
    scale = workload.settings.time_scale_s
    reasons = {}
    with panel(axes, title):
        for name, (find, colour, width) in COUNTED.items():
            try:
                found = find(workload)[1 : int(ACF_DAYS * DAY / scale) + 1]
                if len(found) * scale < DAY:
                    raise UnavailableError("shorter than two days")
            except UnavailableError as error:
                reasons[name] = str(error)
                continue
            lags = np.arange(1, len(found) + 1) * scale / DAY
            axes.plot(lags, found, color=COLOURS[colour], linewidth=width, label=name)
        if len(reasons) == len(COUNTED):
            raise UnavailableError("; ".join(dict.fromkeys(reasons.values())))
        axes.set_xlim(0, ACF_DAYS)
        axes.set_xticks(range(ACF_DAYS + 1))
        axes.axvline(WEEK / DAY, color="#aaaaaa", linewidth=1, zorder=0.6)
        axes.axhline(0, color="#888888", linewidth=0.8, zorder=0.6)
        axes.legend(**LEGEND, loc="upper right", ncols=2)
        missing = "; ".join(f"not drawn: {name} ({reason})" for name, reason in reasons.items())
        label_below(axes, "lag, days", missing)


#: Cells of run times per factor of ten.
CELLS = 8

#: Share of jobs, or of occupation, of the lightest shade, and the least of the darkest one; cells
#: below the lightest stay white.
LEAST, MOST_LIGHT = 1e-4, 1e-2

#: Most processors and seconds on the axes.
MOST = 1e12


class Column(NamedTuple):
    """A quantity of jobs or bags whose distribution is drawn."""

    title: str  #: title of the panel
    axis: str  #: name of its axis
    values: Callable[[Workload], NDArray[Any]]
    is_time: bool = True
    above: str = "time above 1 s"  #: what is missing if nothing can be drawn


#: Quantities of jobs for :func:`draw_ccdf`, by name.
COLUMNS = {
    "run_time": Column(
        "Jobs that ran longer than ...", "run time", lambda w: w.run_time,
        above="run time above 1 s",
    ),
    "processors": Column(
        "Jobs that requested more processors than ...", "processors", lambda w: w.processors,
        False, "job of more than one processor",
    ),
    "requested_time": Column(
        "Jobs whose requested time was longer than ...", "requested time",
        requested_time, above="requested time above 1 s",
    ),
    "wait": Column("Jobs that waited longer than ...", "wait", wait, above="wait above 1 s"),
}  # fmt: skip

#: Quantities of arrivals; bags include single jobs.
BETWEEN = {
    of: Column(f"Times between {of} longer than ...", "time between two arrivals", find)
    for of, find in (("jobs", gaps), ("bags", bag_gaps))
}


def draw_ccdf(
    axes: Axes,
    workloads: Sequence[Workload],
    column: Column,
    *,
    title: str = "",
    tail: bool = False,
) -> None:
    """Draw the share of jobs, or of arrivals, whose value is larger than x, on a logarithmic axis.

    The column is one of :data:`COLUMNS` or :data:`BETWEEN`, which has the title unless it is given.
    With ``tail`` the y axis is logarithmic too, as in Minh 2012, Figs. 3.1 and 3.6 (a).
    """
    with panel(axes, title or column.title):
        drawn, missing = drawable(
            workloads, lambda one: exceeding(column.values(one), column.above)
        )
        for one in drawn:
            axes.plot(*one.found, **one.look)
        last = 1.3 * max(float(one.found[0][-1]) for one in drawn)
        if tail:
            labels_of_shares(axes)
            axes.set_ylim(0.5 / max(len(one.workload) for one in drawn), 1.3)
        else:
            percent(axes)
        if column.is_time:
            logarithmic_times(axes, 1, last)
        else:
            logarithmic_counts(axes, last)
            axes.set_xlim(left=1)
        label_below(axes, column.axis, missing)


class Grid(NamedTuple):
    """Cells of run time and processors, shared by several workloads."""

    run_time: Floats  #: edges, s
    processors: Floats  #: edges


def grid_of(workloads: Sequence[Workload]) -> Grid:
    """Return cells of equal ratios that hold all jobs; the ratio of processors is two.

    Raises
    ------
    UnavailableError
        When there are no jobs.
    """
    if not any(len(workload) for workload in workloads):
        raise UnavailableError("no jobs")
    longest = max(float(workload.run_time.max(initial=1)) for workload in workloads)
    widest = max(int(workload.processors.max(initial=1)) for workload in workloads)
    decades = max(np.log10(min(longest, MOST)), 1)
    cells = int(np.ceil(decades * CELLS + 0.001))
    # Run times are whole seconds, so there is no room for two cells between 1 and 2 s.
    edges: Floats = np.unique(np.round(10.0 ** (np.arange(cells + 1) / CELLS)))
    doublings = max(int(np.ceil(np.log2(min(widest, MOST)) + 0.5)), 2)
    return Grid(edges, np.exp2(np.arange(doublings + 1) - 0.5))


def cells_of(workload: Workload, grid: Grid, *, weighted: bool) -> Floats:
    """Return the share of jobs, or of run time x processors, by cell (processors, run time).

    Raises
    ------
    UnavailableError
        When there are no jobs, or all run times are 0.
    """
    weights = workload.run_time * workload.processors if weighted else np.ones(len(workload))
    if weights.sum() <= 0:
        raise UnavailableError("all run times are 0" if len(workload) else "no jobs")
    across = np.searchsorted(grid.run_time, workload.run_time, side="right") - 1
    up = np.searchsorted(grid.processors, workload.processors, side="right") - 1
    shape = len(grid.processors) - 1, len(grid.run_time) - 1
    place = np.clip(up, 0, shape[0] - 1) * shape[1] + np.clip(across, 0, shape[1] - 1)
    summed = np.bincount(place, weights=weights, minlength=shape[0] * shape[1])
    return summed.reshape(shape) / weights.sum()


def darkest(workloads: Sequence[Workload], grid: Grid) -> float:
    """Return the largest share of any cell, by jobs or by occupation."""
    found = [MOST_LIGHT]
    for workload in workloads:
        for weighted in (False, True):
            with suppress(UnavailableError):
                found.append(float(cells_of(workload, grid, weighted=weighted).max()))
    return max(found)


def draw_cells(
    axes: Axes, workload: Workload, grid: Grid, title: str, *, weighted: bool, most: float
) -> Any:
    """Draw run time and processors as a map (a 3D histogram in Minh 2012, Fig. 2.6).

    Jobs shorter than 1 s are drawn at 1 s. The grid is :func:`grid_of` all workloads drawn side by
    side. With ``weighted`` shades show the share of occupation (run time x processors) instead of
    jobs; ``most`` is that of the darkest shade, such as :func:`darkest`. Returns the mesh for a
    colour bar, or None.
    """
    from matplotlib.colors import LogNorm

    with panel(axes, title):
        shares = cells_of(workload, grid, weighted=weighted)
        logarithmic_times(axes, 1, float(grid.run_time[-1]))
        axes.set_yscale("log", base=2)
        axes.set_ylim(grid.processors[0], grid.processors[-1])
        steps = max(1, -(-len(grid.processors) // 9))
        ticks = 2 ** np.arange(0, len(grid.processors) - 1, steps)
        axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("run time", fontsize=LETTERS)
        return axes.pcolormesh(
            grid.run_time, grid.processors, np.where(shares >= LEAST, shares, np.nan),
            cmap=SHADES, norm=LogNorm(LEAST, most, clip=True),
        )  # fmt: skip
    return None


#: Colours and dashes of the fitted distributions; the data are a broad grey line.
LOOKS = {
    "generalized_pareto": ("vermilion", "-"),
    "weibull": ("blue", (0, (5, 2))),
    "lognormal": ("green", (0, (1, 1.2))),
    "gamma": ("purple", (0, (5, 1.5, 1, 1.5))),
    "exponential": ("orange", "-"),
}

#: Axis labels of repetitions.
REPEATED = {"runs": "length in jobs", "bags": "size in jobs"}


def draw_bag_gaps(axes: Axes, workload: Workload, title: str) -> None:
    """Draw the distribution of times between bags with five fits (Minh 2012, Fig. 3.6)."""
    with panel(axes, title):
        x, share = not_exceeding(bag_gaps(workload))
        axes.plot(x, share, color=COLOURS["grey"], linewidth=4, alpha=0.7, label="data")
        reasons = []
        for name in PARAMETERS:
            try:
                fit = bag_fit(workload, name)
            except UnavailableError as error:
                reasons.append(str(error))
                continue
            colour, dashes = LOOKS[name]
            label = f"{TITLES[name]}, KS {fit.ks:.3f}"
            axes.plot(x, fit.cdf(x), color=COLOURS[colour], linestyle=dashes, label=label)
        percent(axes)
        logarithmic_times(axes, 1, float(x[-1]))
        axes.legend(**LEGEND, loc="lower right")
        missing = "; ".join(dict.fromkeys(reasons))
        label_below(axes, "time between bags", f"not fitted: {missing}" if missing else "")


def draw_repetitions(axes: Axes, workload: Workload, of: str, title: str) -> None:
    """Draw a log-log histogram of repetitions and the fitted Zipf distribution.

    They are ``runs`` of similar run times (Minh 2012, Fig. 3.2) or ``bags`` of tasks (Fig. 3.5).
    """
    with panel(axes, title):
        lengths = bags(workload).size if of == "bags" else repetitions(workload)
        length, count = np.unique(lengths, return_counts=True)
        axes.scatter(length, count, s=12, color=COLOURS["blue"], linewidth=0, zorder=3)
        logarithmic_counts(axes, float(length[-1]))
        logarithmic_counts(axes, float(count.max()), vertical=True)
        missing = ""
        try:
            law = bag_zipf(workload) if of == "bags" else repetition_zipf(workload)
            x = np.geomspace(1, max(length[-1], 2), POINTS)
            label = f"Zipf, exponent {law.exponent:.2f}"
            axes.plot(x, count.sum() * law.probability(x), color=COLOURS["vermilion"], label=label)
            axes.legend(**LEGEND, loc="upper right")
        except UnavailableError as error:
            missing = f"no Zipf distribution: {error}"
        label_below(axes, REPEATED[of], missing)


#: Bins of response times per factor of ten, and the fewest batches of a drawn bin.
BINS, FEWEST = 2, 10

#: Most workloads whose quartiles are drawn as bands; with more, only medians.
BANDS = 3


def draw_users(axes: Axes, workloads: Sequence[Workload], *, together: bool) -> None:
    """Draw the jobs of users by rank on logarithmic axes, or the joint share of the busiest."""
    with panel(
        axes,
        "Joint share of the busiest users" if together else "Jobs of each user, busiest first",
    ):
        drawn, missing = drawable(workloads, jobs_per_user)
        for one in drawn:
            rank = np.arange(1, len(one.found) + 1)
            jobs = np.cumsum(one.found) / one.found.sum() if together else one.found
            axes.plot(rank, jobs, **one.look, marker=".", markersize=3.5)
        logarithmic_counts(axes, max(len(one.found) for one in drawn))
        if together:
            percent(axes)
        else:
            logarithmic_counts(axes, max(int(one.found[0]) for one in drawn), vertical=True)
        label_below(axes, "number of busiest users" if together else "rank of the user", missing)


def think_quartiles(workload: Workload) -> Floats:
    """Return the quartiles of the think time by bin of the response time, s, shape (4, bins).

    Rows are the middle of the bin in logarithms, the lower quartile, median and upper quartile.

    Raises
    ------
    UnavailableError
        When no bin has :data:`FEWEST` batches.
    """
    response = np.maximum(batch_response(workload), 1)
    think = np.maximum(think_time(workload), 1)
    place = np.floor(np.log10(response) * BINS).astype(np.int64)
    bins, count = np.unique(place, return_counts=True)
    kept = bins[count >= FEWEST]
    if not len(kept):
        raise UnavailableError(f"fewer than {FEWEST} batches of similar response times")
    middle = 10 ** ((kept + 0.5) / BINS)
    quartiles = [np.percentile(think[place == which], (25, 50, 75)) for which in kept]
    return np.vstack([middle, np.transpose(quartiles)])


def draw_think_times(axes: Axes, workloads: Sequence[Workload]) -> None:
    """Draw medians and quartiles of think times over the response time of the previous batch.

    Zakay and Feitelson 2015, section IV; times below 1 s are drawn at 1 s.
    """
    with panel(axes, "Think time after a batch"):
        drawn, missing = drawable(workloads, think_quartiles)
        for one in drawn:
            middle, low, median, high = one.found
            axes.plot(middle, median, **one.look, marker="o", markersize=4)
            if len(drawn) <= BANDS:
                colour = one.look["color"]
                axes.fill_between(middle, low, high, color=colour, alpha=0.2, linewidth=0)
        found = np.hstack([one.found for one in drawn])
        logarithmic_times(axes, found[0].min() / 1.8, found[0].max() * 1.8)
        logarithmic_times(axes, max(found[1].min() / 1.5, 0.8), found[3].max() * 1.5, vertical=True)
        axes.set_ylabel("think time", fontsize=LETTERS)
        label_below(axes, "response time of the previous batch", missing)
