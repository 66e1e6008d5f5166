"""Panels on bags of tasks: times between them with fitted distributions, and repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.features.bag_features import TITLES, bag_fit, bag_gaps
from analysis.features.bag_fits import PARAMETERS
from analysis.features.bags import bags
from analysis.features.panels import (
    POINTS,
    begin,
    histogram,
    label_below,
    logarithmic_counts,
    logarithmic_times,
    not_exceeding,
    nothing,
    percent,
)
from analysis.features.repetition import bag_zipf, repetition_zipf, repetitions
from analysis.features.workload import Workload
from analysis.plots import COLOURS, LEGEND
from environment.errors import UnavailableError

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


#: Titles of panels on repetitions.
REPEATED = {
    "runs": "Runs of similar run times by length in jobs",
    "bags": "Bags by size in jobs",
}


def draw_bag_gaps(
    axes: Axes, workload: Workload, title: str = "Times between bags up to ..."
) -> None:
    """Draw the distribution of times between bags and the five fitted ones; Minh 2012, Fig. 3.6."""
    begin(axes, title)
    try:
        x, share = not_exceeding(bag_gaps(workload))
    except UnavailableError as error:
        return nothing(axes, str(error))
    axes.plot(x, share, color=COLOURS["grey"], linewidth=4, alpha=0.7, label="data")
    reasons = {}
    for name in PARAMETERS:
        try:
            fit = bag_fit(workload, name)
        except UnavailableError as error:
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


def draw_repetitions(axes: Axes, workload: Workload, of: str = "bags", title: str = "") -> None:
    """Draw a log-log histogram of repetitions and the fitted Zipf distribution.

    Parameters
    ----------
    axes
        Where.
    workload
        Whose repetitions.
    of
        ``runs`` of similar run times (Minh 2012, Fig. 3.2) or ``bags`` of tasks (Fig. 3.5).
    title
        Of the panel.
    """
    begin(axes, title or REPEATED[of])
    try:
        length, count = histogram(bags(workload).size if of == "bags" else repetitions(workload))
    except UnavailableError as error:
        return nothing(axes, str(error))
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
    label_below(axes, REPEATED[of].partition(" by ")[2], missing)
