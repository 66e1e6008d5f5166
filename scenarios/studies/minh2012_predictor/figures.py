"""Pictures of Minh 2012, chapter 8: Tables 8.4 to 8.6, kinds of history, and Figure 8.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, TITLE, legend_above, new_figure, tidy
from hpcrowd.scenarios.studies.minh2012_predictor.measures import (
    MEASURES,
    TraceOutcomes,
    cells_of,
    figure_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Names of the columns of the tables.
NAMES = {"tsafrir": "Tsafrir's, last-two", "li": "Li's", "minh": "the thesis', history"}

#: Colours of the columns, and of the kinds of history.
COLUMN_COLOURS = {"tsafrir": "orange", "li": "grey", "minh": "blue"}
KINDS = {
    "history": ("by submission", "blue", "o"),
    "history by completion": ("by completion", "vermilion", "s"),
    "history by category": ("by category", "green", "D"),
}

#: Colours of the traces.
TRACE_COLOURS = ("blue", "vermilion", "green", "purple")

#: Heights of a trace and of everything else in pictures with a line for each trace, inches.
LINE, REST = 0.62, 1.75


def _panels(traces: Sequence[TraceOutcomes], title: str, below: str) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each measure and a line for each trace."""
    height = LINE * len(traces) + REST
    figure = new_figure(9.0, height, title, below)
    grid = figure.add_gridspec(
        1, len(MEASURES), left=0.085, right=0.98, wspace=0.12,
        bottom=0.55 / height, top=1 - 1.12 / height,
    )  # fmt: skip
    axes = [figure.add_subplot(grid[0, place]) for place in range(len(MEASURES))]
    for place, (panel, (_, name, unit, _)) in enumerate(zip(axes, MEASURES, strict=True)):
        tidy(panel)
        panel.set_title({"underestimated": "underestimated jobs"}.get(name, name), **TITLE)
        panel.set_xlabel(unit, fontsize=8.5)
        panel.set_ylim(len(traces) - 0.5, -0.5)
        labels = [one.trace for one in traces] if place == 0 else []
        panel.set_yticks(range(len(traces)) if place == 0 else [], labels)
    return figure, axes


def tables(traces: Sequence[TraceOutcomes]) -> Figure:
    """Tables 8.4 to 8.6: published figures as rings, ours as dots."""
    figure, axes = _panels(
        traces, "Tables 8.4 to 8.6: predictors, published and ours",
        "rings: published; dots: ours, with the published parameters. Li's cannot be run",
    )  # fmt: skip
    for panel, (measure, *_) in zip(axes, MEASURES, strict=True):
        for line, one in enumerate(traces):
            for cell in cells_of(one):
                if cell.measure != measure:
                    continue
                colour = COLOURS[COLUMN_COLOURS[cell.predictor]]
                at = line + 0.24 * (list(NAMES).index(cell.predictor) - 1)
                label = NAMES[cell.predictor] if line == 0 else None
                ring: dict[str, Any] = {"facecolors": "none", "edgecolors": colour}
                panel.scatter(cell.published.value, at, s=70, linewidths=1.6, label=label, **ring)
                if cell.ours is not None:
                    panel.scatter(cell.ours, at, s=16, color=colour)
        panel.set_xlim(0, 1.03 * panel.get_xlim()[1])
    legend_above(figure, axes[0], 0.58)
    return figure


def histories(traces: Sequence[TraceOutcomes]) -> Figure:
    """The three kinds of history on the same test part, relative to the one by submission."""
    figure, axes = _panels(
        traces, "Which jobs are the last N?",
        "history-based predictor with the published parameters, on the test part; by submission: 1",
    )  # fmt: skip
    for panel, (measure, *_) in zip(axes, MEASURES, strict=True):
        panel.set_xlabel("relative to by submission", fontsize=8.5)
        panel.axvline(1.0, color=COLOURS["grey"], linewidth=1.2, zorder=1)
        for line, one in enumerate(traces):
            base = figure_of(one.test["history"], measure)
            for place, (model, (name, colour, marker)) in enumerate(KINDS.items()):
                value = figure_of(one.test[model], measure) / base if base else 1.0
                panel.scatter(
                    value, line + 0.24 * (place - 1), s=34, color=COLOURS[colour], marker=marker,
                    label=name if line == 0 else None, zorder=2,
                )  # fmt: skip
        low, high = panel.get_xlim()
        panel.set_xlim(min(low, 0.72), max(high, 1.13))
    legend_above(figure, axes[0], 0.58)
    return figure


def figure8_2(traces: Sequence[TraceOutcomes]) -> Figure:
    """Run times of the traces (Fig. 8.2)."""
    figure = new_figure(
        6.4, 3.6, "Fig. 8.2: run times of the traces", "share of jobs that run at most so long"
    )
    panel = figure.add_axes((0.08, 0.15, 0.89, 0.66))
    tidy(panel)
    for colour, one in zip(TRACE_COLOURS, traces, strict=False):
        run = np.sort(np.maximum(one.run_s, 1))
        share = np.arange(1, len(run) + 1) / len(run)
        panel.step(run, share, where="post", color=COLOURS[colour], linewidth=1.5, label=one.trace)
    panel.set_xscale("log")
    panel.set_xticks(
        [1, 10, 100, 1000, 10_000, 100_000], ["1", "10", "100", "1,000", "10,000", "100,000"]
    )
    panel.minorticks_off()
    panel.set_ylim(0, 1.02)
    panel.set_xlabel("run time (s); shorter ones count as 1 s", fontsize=8.5)
    panel.legend(**LEGEND, loc="upper left")
    return figure


#: Every picture by its file name.
FIGURES: dict[str, Callable[[Sequence[TraceOutcomes]], Figure]] = {
    "tables": tables,
    "histories": histories,
    "figure8-2": figure8_2,
}
