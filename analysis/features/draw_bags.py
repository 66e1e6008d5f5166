"""Panels on bags of tasks: times between them with fitted distributions, and their sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.features.bag_features import TITLES, bag_fit, bag_gaps
from analysis.features.bag_fits import PARAMETERS
from analysis.features.bags import bags
from analysis.features.feature import Unavailable
from analysis.features.panels import (
    begin,
    histogram,
    label_below,
    logarithmic_counts,
    logarithmic_times,
    not_exceeding,
    nothing,
    percent,
)
from analysis.features.workload import Workload
from analysis.plots import COLOURS, LEGEND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colours and dashes of the fitted distributions; the data are grey and broad.
LOOKS = {
    "generalized_pareto": ("vermilion", "-"),
    "weibull": ("blue", (0, (5, 2))),
    "lognormal": ("green", (0, (1, 1.2))),
    "gamma": ("purple", (0, (5, 1.5, 1, 1.5))),
    "exponential": ("orange", "-"),
}


def draw_bag_gaps(
    axes: Axes, workload: Workload, title: str = "Times between bags up to ..."
) -> None:
    """Draw the distribution of times between bags and the five fitted ones; Minh 2012, Fig. 3.6."""
    begin(axes, title)
    try:
        x, share = not_exceeding(bag_gaps(workload))
    except Unavailable as error:
        return nothing(axes, str(error))
    axes.plot(x, share, color=COLOURS["grey"], linewidth=4, alpha=0.7, label="data")
    reasons = {}
    for name in PARAMETERS:
        try:
            fit = bag_fit(workload, name)
        except Unavailable as error:
            reasons[name] = str(error)
            continue
        colour, dashes = LOOKS[name]
        label = f"{TITLES[name]}, KS {fit.ks:.3f}"
        axes.plot(x, fit.cdf(x), color=COLOURS[colour], linestyle=dashes, label=label)
    percent(axes)
    logarithmic_times(axes, 1, float(x[-1]))
    axes.legend(**LEGEND, loc="lower right")
    missing = "; ".join(dict.fromkeys(reasons.values()))
    label_below(axes, "time between bags", f"not fitted: {missing}" if missing else "")


def draw_bag_sizes(axes: Axes, workload: Workload, title: str = "Bags by size") -> None:
    """Draw how many bags have so many jobs, single jobs among them; Minh 2012, Fig. 3.5."""
    begin(axes, title)
    try:
        size, count = histogram(bags(workload).size)
    except Unavailable as error:
        return nothing(axes, str(error))
    axes.scatter(size, count, s=14, color=COLOURS["blue"], linewidth=0, zorder=3)
    logarithmic_counts(axes, float(size[-1]))
    logarithmic_counts(axes, float(count.max()), vertical=True)
    label_below(axes, "jobs of the bag")
