"""Panels on arrivals: jobs per day, the week, autocorrelation, times between arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.curves import time_ticks
from analysis.features.arrivals import arrival_correlation, gaps, hours_of_week, span
from analysis.features.bag_features import bag_correlation, bag_gaps
from analysis.features.panels import (
    begin,
    drawable,
    exceeding,
    label_below,
    labels_of_shares,
    logarithmic_times,
    nothing,
)
from analysis.features.workload import Floats, Workload
from analysis.plots import COLOURS, LEGEND, TITLE
from environment.clock import DAY, WEEK
from environment.errors import UnavailableError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Days beyond which a trace has no calendar: a century.
MOST_DAYS = 36_525

#: Days of a week by name.
WEEK_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

#: Most labels below the days.
LABELS = 8

#: Hours of the day that are labelled.
HOURS = (0, 6, 12, 18)

#: Colours of hours and of cells, from few to many; they differ in lightness too.
SHADES = "YlGnBu"

#: Days over which the autocorrelation is drawn (Minh 2012, Fig. 3.7).
ACF_DAYS = 10

#: What the autocorrelation is of, by name: its function, its colour and the width of its line.
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


def draw_days(axes: Axes, workload: Workload, title: str = "Jobs submitted per day") -> None:
    """Draw the jobs of each local day of a workload, and their mean over the week around it."""
    begin(axes, title)
    try:
        edges, jobs = jobs_per_day(workload)
    except UnavailableError as error:
        return nothing(axes, str(error))
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
    """Return submissions in each local hour of the week over those of the mean hour, (7, 24)."""
    if abs(workload.submit).max(initial=0) > MOST_DAYS * DAY:
        raise UnavailableError("longer than a century")
    if span(workload) < WEEK:
        raise UnavailableError("shorter than a week")
    hours = hours_of_week(workload)
    if hours.mean() <= 0:
        raise UnavailableError("no submissions")
    shares: Floats = (hours / hours.mean()).reshape(len(WEEK_DAYS), -1)
    return shares


def draw_week(
    axes: Axes, workload: Workload, most: float | None = None, title: str = "Hours of the week"
) -> Any:
    """Draw when in the week jobs are submitted, in shades of the mean hour.

    Parameters
    ----------
    axes
        Where.
    workload
        Of which jobs.
    most
        What the darkest shade stands for, in mean hours; by default the busiest hour.
    title
        Of the panel.

    Returns
    -------
    QuadMesh or None
        For a colour bar.
    """
    begin(axes, title)
    try:
        shares = week_shares(workload)
    except UnavailableError as error:
        return nothing(axes, str(error))
    top = float(shares.max()) if most is None else most
    mesh = axes.pcolormesh(
        np.arange(shares.shape[1] + 1), np.arange(len(shares) + 1), shares,
        cmap=SHADES, vmin=0, vmax=top, edgecolor="white", linewidth=0.3,
    )  # fmt: skip
    axes.grid(visible=False)
    axes.set_ylim(len(shares), 0)
    axes.set_yticks(np.arange(len(WEEK_DAYS)) + 0.5, WEEK_DAYS)
    axes.set_xticks(HOURS, [f"{hour}:00" for hour in HOURS])
    clock = workload.clock
    zone = "the origin counts as Monday 0:00" if clock.nominal else f"local time, {clock.zone}"
    label_below(axes, zone)
    return mesh


def draw_acf(
    axes: Axes,
    workload: Workload,
    of: Sequence[str] = ("jobs", "bags"),
    title: str = "Autocorrelation of counts",
) -> None:
    """Draw the autocorrelation of arrivals per time scale over ten days; Minh 2012, Fig. 3.7.

    Parameters
    ----------
    axes
        Where; vertical lines mark days, a darker one the week.
    workload
        Of which arrivals.
    of
        Names of :data:`COUNTED`.
    title
        Of the panel.
    """
    begin(axes, title)
    scale = workload.settings.time_scale_s
    reasons = {}
    for name in of:
        find, colour, width = COUNTED[name]
        try:
            found = find(workload)[1 : int(ACF_DAYS * DAY / scale) + 1]
            if len(found) * scale < DAY:
                raise UnavailableError("shorter than two days")
        except UnavailableError as error:
            reasons[name] = str(error)
            continue
        lags = np.arange(1, len(found) + 1) * scale / DAY
        axes.plot(lags, found, color=COLOURS[colour], linewidth=width, label=name)
    if len(reasons) == len(of):
        return nothing(axes, "; ".join(dict.fromkeys(reasons.values())))
    axes.set_xlim(0, ACF_DAYS)
    axes.set_xticks(range(ACF_DAYS + 1))
    axes.axvline(WEEK / DAY, color="#aaaaaa", linewidth=1, zorder=0.6)
    axes.axhline(0, color="#888888", linewidth=0.8, zorder=0.6)
    axes.legend(**LEGEND, loc="upper right", ncols=2)
    missing = "; ".join(f"not drawn: {name} ({reason})" for name, reason in reasons.items())
    label_below(axes, "lag, days", missing)


def draw_gaps(axes: Axes, workloads: Sequence[Workload], of: str = "jobs", title: str = "") -> None:
    """Draw the CCDF of interarrival times on logarithmic axes; Minh 2012, Figs. 3.1 and 3.6 (a).

    Parameters
    ----------
    axes
        Where.
    workloads
        Of which arrivals.
    of
        ``jobs`` or ``bags``, single jobs among them.
    title
        Of the panel.
    """
    begin(axes, title or f"Times between {of} longer than ...")
    times = {"jobs": gaps, "bags": bag_gaps}[of]
    drawn, missing = drawable(workloads, lambda workload: exceeding(times(workload)))
    if not drawn:
        return nothing(axes, missing)
    for one in drawn:
        axes.plot(*one.found, **one.look)
    labels_of_shares(axes)
    axes.set_ylim(0.5 / max(len(one.workload) for one in drawn), 1.3)
    logarithmic_times(axes, 1, 1.3 * max(float(one.found[0][-1]) for one in drawn))
    label_below(axes, "time between two arrivals", missing)
