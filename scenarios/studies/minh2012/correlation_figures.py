"""Figures 7.3 to 7.5 of Minh 2012, drawn from our own simulations.

Lines are means over replications, bands their 95 % intervals. Slowdowns are on a logarithmic scale:
between policies they differ by orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.pictures.plots import COLOURS, TITLE, legend_above, margins, new_figure, tidy
from hpcrowd.scenarios.studies.minh2012.correlation_measures import (
    CATEGORIZED,
    OVERLOADED,
    POLICIES,
    UNCATEGORIZED,
    CorrelationRuns,
    Floats,
    LocalityRuns,
    interval,
    load_name,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.scenarios.studies.minh2012.correlation import Minh2012Correlation


#: Loads from light to heavy, as colours and marks.
LOADS: tuple[dict[str, Any], ...] = (
    {"color": COLOURS["sky"], "marker": "o"},
    {"color": COLOURS["blue"], "marker": "s"},
    {"color": COLOURS["vermilion"], "marker": "^"},
    {"color": COLOURS["purple"], "marker": "v"},
    {"color": COLOURS["green"], "marker": "D"},
    {"color": "black", "marker": "x"},
)

#: With locality and without.
LOCALITY: tuple[dict[str, Any], ...] = (
    {"color": COLOURS["vermilion"], "marker": "o", "label": "with locality"},
    {"color": COLOURS["blue"], "marker": "s", "label": "without"},
)

#: Style of all lines.
LINE: dict[str, Any] = {"linewidth": 1.4, "markersize": 3.5}

#: Ticks in each decade of slowdown, on an axis of several and of less than one.
TICKS, FINE = (1.0, 3.0), (1.0, 1.5, 2.0, 3.0, 5.0)

#: Ticks of correlation.
DEGREES = (-1, -0.5, 0, 0.5, 1)

#: Width and height of a panel, and margins around all of them, in inches.
PANEL, LEFT, RIGHT, BOTTOM, TOP = (2.75, 2.15), 0.62, 0.15, 0.55, 1.15


def panels(rows: int, columns: int, title: str, below: str) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with rows of panels that share the axes of their row."""
    width = max(columns * PANEL[0], 6.4) + LEFT + RIGHT
    figure = new_figure(width, rows * PANEL[1] + BOTTOM + TOP, title, below)
    room = margins(figure, LEFT, RIGHT, BOTTOM, TOP)
    grid = figure.add_gridspec(rows, columns, **room, hspace=0.42, wspace=0.1)
    axes: list[list[Axes]] = []
    for row in range(rows):
        line: list[Axes] = []
        for column in range(columns):
            panel = figure.add_subplot(grid[row, column], sharey=line[0] if line else None)
            panel.set_yscale("log")
            tidy(panel)
            panel.tick_params(labelleft=not line, which="both")
            panel.yaxis.set_minor_formatter("")
            line.append(panel)
        axes.append(line)
    return figure, axes


def curve(panel: Axes, x: Sequence[float], values: Floats, **style: Any) -> None:
    """Draw means and intervals; values of shape (points, replications)."""
    estimates = [interval(one) for one in values]
    panel.plot(x, [one.mean for one in estimates], **LINE, **style)
    low = [one.mean if one.low is None else max(one.low, 1.0) for one in estimates]
    high = [one.mean if one.high is None else one.high for one in estimates]
    panel.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0)


def finish(figure: Figure, panel: Axes) -> None:
    """Put the legend of a panel under the title of the figure, and ticks where lines end now."""
    from matplotlib.ticker import LogLocator

    for one in figure.axes:
        low, high = one.get_ylim()
        one.yaxis.set_major_locator(LogLocator(subs=FINE if high < 10 * low else TICKS))
    legend_above(figure, panel)


def figure7_3(study: Minh2012Correlation) -> Figure:
    """Slowdown against correlation, a panel for each policy (Fig. 7.3)."""
    runs = study.correlation
    columns = min(3, len(runs.policies))
    rows = -(-len(runs.policies) // columns)
    figure, axes = panels(
        rows, columns, "Fig. 7.3: slowdown against correlation",
        f"mean response time / mean run time; jobs of HPC2N without locality, "
        f"{study.replications} workloads of {study.jobs:,} jobs",
    )  # fmt: skip
    flat = [panel for line in axes for panel in line]
    for place, panel in enumerate(flat):
        if place >= len(runs.policies):
            panel.remove()
            continue
        policy = runs.policies[place]
        panel.set_title(POLICIES[policy].label, **TITLE)
        for load, style in zip(runs.loads, LOADS, strict=False):
            curve(panel, runs.degrees, runs.of(policy, load), **style, label=load_name(load))
        panel.set_xticks(DEGREES)
        if place + columns >= len(runs.policies):
            panel.set_xlabel("degree of correlation", fontsize=8.5)
    finish(figure, flat[0])
    return figure


def figure7_4(study: Minh2012Correlation) -> Figure:
    """Categorized and Uncategorized Selective against correlation (Fig. 7.4)."""
    runs: CorrelationRuns = study.correlation
    figure, (line,) = panels(
        1, len(runs.loads), "Fig. 7.4: two selective schedulers against correlation",
        "mean response time / mean run time",
    )  # fmt: skip
    for load, panel in zip(runs.loads, line, strict=True):
        panel.set_title(load_name(load), **TITLE)
        for policy, marker in ((CATEGORIZED, "o"), (UNCATEGORIZED, "s")):
            _, label, colour = POLICIES[policy]
            style = {"color": COLOURS[colour], "marker": marker, "label": label}
            curve(panel, runs.degrees, runs.of(policy, load), **style)
        panel.set_xticks(DEGREES)
        panel.set_xlabel("degree of correlation", fontsize=8.5)
    finish(figure, line[0])
    return figure


def _locality(cases: Sequence[LocalityRuns], title: str) -> Figure:
    """Draw slowdown against load: a column for each case, a row for each policy."""
    policies = cases[0].policies
    figure, axes = panels(
        len(policies), len(cases), title, "mean response time / mean run time; dashed: load 1"
    )
    for policy, line in zip(policies, axes, strict=True):
        for runs, panel in zip(cases, line, strict=True):
            correlation = round(float(runs.correlation.mean()), 2) + 0.0  # no -0.00
            words = f"{POLICIES[policy].label}, {runs.log} ({correlation:.2f})"
            panel.set_title(words, **TITLE)
            for values, style in zip(runs.of(policy), LOCALITY, strict=True):
                curve(panel, runs.loads, values, **style)
            panel.axvline(OVERLOADED, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)))
    for panel in axes[-1]:
        panel.set_xlabel("system load", fontsize=8.5)
    finish(figure, axes[0][0])
    return figure


def figure7_5(study: Minh2012Correlation) -> Figure:
    """Slowdown with and without locality against load, correlation as of the logs (Fig. 7.5)."""
    return _locality(
        [runs for runs in study.locality if runs.degree is None],
        "Fig. 7.5: locality, models of logs (their correlation)",
    )


def figure7_5_set(study: Minh2012Correlation) -> Figure:
    """Slowdown with and without locality against load, correlation set (Fig. 7.5)."""
    return _locality(
        [runs for runs in study.locality if runs.degree is not None],
        "Fig. 7.5: locality, correlation set by Control_Correlation",
    )


def figures_of(study: Minh2012Correlation) -> list[Callable[[Minh2012Correlation], Figure]]:
    """Return the figures that can be drawn from what was run."""
    found: list[Callable[[Minh2012Correlation], Figure]] = [figure7_3]
    if {CATEGORIZED, UNCATEGORIZED} <= set(study.correlation.policies):
        found.append(figure7_4)
    degrees = [runs.degree for runs in study.locality]
    if None in degrees:
        found.append(figure7_5)
    if any(degree is not None for degree in degrees):
        found.append(figure7_5_set)
    return found
