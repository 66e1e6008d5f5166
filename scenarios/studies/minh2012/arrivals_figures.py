"""Figures 6.1 to 6.3 of Minh 2012, drawn from our own simulations.

Points and bars are means over replications, bands and whiskers their 95 % intervals. Slowdowns are
on a logarithmic scale: between patterns they differ by orders of magnitude.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.paired import Estimate
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, TITLE, new_figure, tidy
from hpcrowd.analysis.pictures.plots import panels as plain_panels
from hpcrowd.scenarios.studies.minh2012.arrivals_measures import (
    LEIDEN,
    PATTERNS,
    POLICIES,
    log_ratio,
)
from hpcrowd.scenarios.studies.minh2012.correlation_figures import (
    LINE,
    TICKS,
    curve,
    finish,
    panels,
)
from hpcrowd.scenarios.studies.minh2012.correlation_measures import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.scenarios.studies.minh2012.arrivals import Minh2012Arrivals


#: Look of each pattern of the background, or of the cluster.
LOOKS: dict[str, dict[str, Any]] = {
    "N": {"color": COLOURS["sky"], "marker": "o"},
    "L": {"color": COLOURS["blue"], "marker": "s"},
    "LB": {"color": COLOURS["vermilion"], "marker": "^"},
}

#: Policies of Fig. 6.2 with their marks.
COMPARED = {"easy": "s", "conservative": "o"}

#: Patterns of Fig. 6.2.
CIRCUMSTANCES = ("N", "LB")

#: Bars of Fig. 6.3: width of one, room between sub-groups and between groups, in bars.
BAR, BETWEEN, APART = 0.9, 0.7, 2.2

#: Position of grid loads under the bars, as a part of the height of a panel.
BELOW = -0.085


def figure6_1(study: Minh2012Arrivals) -> Figure:
    """Slowdown against system load by pattern, under FIFO and Aggressive (Fig. 6.1)."""
    runs = study.cluster
    figure, (line,) = panels(1, 2, "Fig. 6.1: arrivals and a single cluster", _below(study))
    for policy, panel in zip(("fcfs", "easy"), line, strict=True):
        panel.set_title(POLICIES[policy].label, **TITLE)
        for pattern, look in LOOKS.items():
            values = [runs.of(policy, load, pattern) for load in runs.loads]
            label = f"b_{pattern}: {PATTERNS[pattern].label}"
            curve(panel, runs.loads, values, **look, label=label)  # type: ignore[arg-type]
        panel.set_xlabel("system load", fontsize=8.5)
    finish(figure, line[0])
    return figure


def figure6_2(study: Minh2012Arrivals) -> Figure:
    """Slowdowns of Aggressive and Conservative, calm and bursty, and their ratio (Fig. 6.2)."""
    runs = study.cluster
    figure, (line,) = panels(1, 3, "Fig. 6.2: backfilling and arrivals", _below(study))
    for pattern, panel in zip(CIRCUMSTANCES, line, strict=False):
        panel.set_title(f"b_{pattern}: {PATTERNS[pattern].label}", **TITLE)
        for policy, marker in COMPARED.items():
            _, label, colour = POLICIES[policy]
            values = [runs.of(policy, load, pattern) for load in runs.loads]
            style = {"color": COLOURS[colour], "marker": marker, "label": label}
            curve(panel, runs.loads, values, **style)  # type: ignore[arg-type]
        panel.set_xlabel("system load", fontsize=8.5)
    place = line[-1].get_position()
    line[-1].remove()
    finish(figure, line[0])
    panel = figure.add_axes(place.bounds)
    tidy(panel)
    panel.set_title("Conservative / Aggressive", **TITLE)
    for pattern in CIRCUMSTANCES:
        ratios = [
            log_ratio(runs.of("conservative", load, pattern), runs.of("easy", load, pattern))
            for load in runs.loads
        ]
        mean, low, high = np.exp([_ends(one) for one in ratios]).T
        panel.plot(runs.loads, mean, **LOOKS[pattern], **LINE, label=f"b_{pattern}")
        panel.fill_between(runs.loads, low, high, color=LOOKS[pattern]["color"], alpha=0.18)
    panel.axhline(1, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)))
    panel.set_xlabel("system load", fontsize=8.5)
    panel.legend(**LEGEND, loc="lower left")
    return figure


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    """Return a mean and the ends of its interval; the mean again if it has none."""
    mean, low, high = estimate.mean, estimate.low, estimate.high
    return mean, mean if low is None else low, mean if high is None else high


def _below(study: Minh2012Arrivals) -> str:
    return (
        f"mean response time / mean run time; {study.cluster.machine} processors, "
        f"{study.cluster_replications} workloads of {study.jobs:,} jobs"
    )


def figure6_3(study: Minh2012Arrivals) -> Figure:
    """Slowdown of local jobs of the LU and of grid jobs, by both patterns and load (Fig. 6.3)."""
    width, height = 9.2, 7.0
    figure = new_figure(
        width, height, "Fig. 6.3: arrivals of local and of grid jobs on DAS-3",
        f"mean response time / mean run time; {study.grid_replications} sets of six workloads of "
        f"{study.jobs:,} jobs",
    )  # fmt: skip
    upper, lower = plain_panels(figure, 2, 1, left=0.07, bottom=0.075, top=0.845, hspace=0.32)
    upper.set_title("(a) local jobs of the cluster in Leiden", **TITLE)
    lower.set_title("(b) grid jobs", **TITLE)
    _bars(upper, study, LEIDEN)
    _bars(lower, study, "grid")
    lower.set_xlabel("pattern of grid jobs", fontsize=8.5, labelpad=15)
    handles, labels = upper.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="upper left", ncols=len(handles),
        bbox_to_anchor=(0.0, 1 - 0.56 / height), **LEGEND,
    )  # fmt: skip
    return figure


def _bars(panel: Axes, study: Minh2012Arrivals, measure: str) -> None:
    """Draw bars by background, in sub-groups by pattern of the grid, in groups by grid load."""
    from matplotlib.ticker import LogLocator

    runs = study.grid
    panel.set_yscale("log")
    tidy(panel)
    panel.grid(visible=False, axis="x")
    places, ticks, names = 0.0, [], []
    bars: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in LOOKS}
    for load in runs.loads:
        for own in runs.patterns:
            ticks.append(places + 1)
            names.append(f"g_{own}")
            for behind in bars:
                mean, low, high = _ends(interval(runs.of(measure, load, own, behind)))
                bars[behind].append((places, mean, max(low, 1.0), high))
                places += 1
            places += BETWEEN
        panel.text(
            ticks[-len(runs.patterns) // 2], BELOW, f"grid load {load:g}", fontsize=8,
            transform=panel.get_xaxis_transform(), ha="center", va="top",
        )  # fmt: skip
        places += APART - BETWEEN
    for behind, drawn in bars.items():
        x, means, lows, highs = np.array(drawn).T
        panel.bar(
            x, means - 1, width=BAR, bottom=1, color=LOOKS[behind]["color"],
            label=f"b_{behind}: background {PATTERNS[behind].label}",
        )  # fmt: skip
        panel.vlines(x, lows, highs, color="black", linewidth=0.8)
    panel.set_xlim(-1.2, places - APART + 0.2)
    panel.set_ylim(bottom=1)
    panel.set_xticks(ticks, names, fontsize=8)
    panel.tick_params(axis="x", length=0)
    panel.yaxis.set_minor_formatter("")
    panel.yaxis.set_major_locator(LogLocator(subs=TICKS))


#: The figures.
FIGURES = (figure6_1, figure6_2, figure6_3)
