"""Pictures of Minh 2012, chapters 4 and 5: Figures 4.5, 4.6 and 5.1 to 5.3, a row per trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.features.panels import (
    label_below,
    labels_of_shares,
    logarithmic_counts,
    logarithmic_times,
    nothing,
    percent,
)
from hpcrowd.analysis.pictures.plots import (
    COLOURS,
    TITLE,
    legend_above,
    margins,
    new_figure,
    panels,
    tidy,
)
from hpcrowd.scenarios.studies.minh2012.models_experiments import (
    REQUIRED_WAY,
    SCHEDULED,
    TraceModels,
)
from hpcrowd.scenarios.studies.minh2012.models_measures import (
    LAGS,
    LOADS,
    POLICIES,
    REQUIRED_LOADS,
    TIME_SCALES_S,
    Curve,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.scenarios.studies.minh2012.models import Minh2012Models


#: Size of a panel, and space around and between panels, inches.
PANEL, LEFT, RIGHT, BOTTOM, TOP = (3.3, 2.5), 0.65, 0.2, 0.6, 1.15

#: Looks of the lines.
TRACE: dict[str, Any] = {"color": "black", "linewidth": 1.8, "zorder": 4}
MODIFIED: dict[str, Any] = {"color": COLOURS["vermilion"], "linewidth": 1.4, "zorder": 3}
PLAIN: dict[str, Any] = {"color": COLOURS["blue"], "linewidth": 1.4, "zorder": 2}
THIN: dict[str, Any] = {"linewidth": 0.7, "alpha": 0.6}
DOTTED: dict[str, Any] = {"linewidth": 1.0, "linestyle": (0, (1, 1.6)), "zorder": 2}


def _panels(
    study: Minh2012Models, columns: int, title: str, below: str
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with a row of panels for each trace."""
    rows = len(study.traces)
    width = max(columns * PANEL[0], 6.6) + LEFT + RIGHT
    figure = new_figure(width, rows * PANEL[1] + BOTTOM + TOP, title, below)
    room = margins(figure, LEFT, RIGHT, BOTTOM, TOP)
    axes = panels(figure, rows, columns, **room, hspace=0.5, wspace=0.2)
    for panel in axes:
        tidy(panel)
    return figure, [axes[row * columns :][:columns] for row in range(rows)]


def _means(curves: Sequence[Any]) -> Any:
    known = [curve for curve in curves if curve is not None]
    return np.array(known) if known else None


def figure4_5(study: Minh2012Models) -> Figure:
    """Autocorrelation of rates at four time scales, trace and models (Fig. 4.5)."""
    figure, axes = _panels(
        study, len(TIME_SCALES_S), "Fig. 4.5: autocorrelation of the rates",
        f"means of {study.seeds} generated workloads, shaded from the least to the most",
    )  # fmt: skip
    lags = np.arange(1, LAGS + 1)
    for one, line in zip(study.traces.values(), axes, strict=True):
        for scale, panel in zip(TIME_SCALES_S, line, strict=True):
            panel.set_title(f"{one.trace}, T = {scale} s", **TITLE)
            runs = one.arrivals[scale]
            if runs.trace.correlation is None:
                nothing(panel, f"fewer than {LAGS} intervals")
                continue
            panel.plot(lags, runs.trace.correlation, **TRACE, label="trace")
            for name, look, label in (
                ("modified", MODIFIED, "modified model"),
                ("plain", PLAIN, "plain model"),
            ):
                found = _means([made.correlation for made in runs.models.get(name, ())])
                if found is None:
                    continue
                panel.plot(lags, found.mean(axis=0), **look, label=label)
                panel.fill_between(
                    lags, found.min(axis=0), found.max(axis=0), color=look["color"], alpha=0.15,
                    linewidth=0,
                )  # fmt: skip
            panel.axhline(0, color="#888888", linewidth=0.8, zorder=0.6)
            panel.set_xlim(0, LAGS)
            panel.set_ylim(-0.2, 0.8)
            label_below(panel, "lag, intervals")
    legend_above(figure, axes[0][0])
    return figure


def _lines(panel: Axes, curves: Sequence[Curve | None], look: dict[str, Any], label: str) -> None:
    """Draw a thin line for each generated workload."""
    for curve in curves:
        if curve is not None:
            panel.plot(*curve, **{**look, **THIN}, label=label)
            label = "_"


def _last(curves: Sequence[Curve | None]) -> float:
    return max((float(curve[0][-1]) for curve in curves if curve is not None), default=1.0)


def figure4_6(study: Minh2012Models) -> Figure:
    """Distribution of times between jobs, trace and models (Fig. 4.6)."""
    figure, axes = _panels(
        study, 2, "Fig. 4.6: times between jobs longer than ...",
        f"T = {TIME_SCALES_S[0]} s, a line for each of {study.seeds} generated workloads",
    )  # fmt: skip
    for one, line in zip(study.traces.values(), axes, strict=True):
        runs = one.arrivals[TIME_SCALES_S[0]]
        for name, look, label, panel in (
            ("modified", MODIFIED, "modified model", line[0]),
            ("plain", PLAIN, "plain model", line[1]),
        ):
            curves = [made.gaps for made in runs.models.get(name, ())]
            panel.set_title(f"{one.trace}, {label}", **TITLE)
            _lines(panel, curves, look, label)
            if runs.trace.gaps is None:
                nothing(panel, "no time above 1 s")
                continue
            panel.plot(*runs.trace.gaps, **TRACE, label="trace")
            labels_of_shares(panel)
            panel.set_ylim(0.5 / len(one.workload), 1.3)
            logarithmic_times(panel, 1, 1.3 * _last([*curves, runs.trace.gaps]))
            label_below(panel, "time between two jobs")
    _legend(figure, axes[0])
    return figure


def _legend(figure: Figure, line: Sequence[Axes]) -> None:
    """Put one legend for a row of panels under the title."""
    found = {
        label: handle
        for panel in line
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    for label, handle in found.items():
        line[0].plot([], [], color=handle.get_color(), linewidth=1.6, label=label)  # type: ignore[attr-defined]
    handles = line[0].get_legend_handles_labels()[0][-len(found) :]
    figure.legend(
        handles, list(found), loc="upper left", ncols=len(found), fontsize=8, frameon=False,
        bbox_to_anchor=(0.0, 1 - 0.56 / figure.get_figheight()),
    )  # fmt: skip


def _of_jobs(one: TraceModels, panel: Axes, name: str) -> list[Curve]:
    """Draw a distribution of trace and generated workloads and return the lines."""
    runs = one.jobs[REQUIRED_WAY]
    curves = [made.curves[name] for made in runs.model if name in made.curves]
    _lines(panel, curves, MODIFIED, "comprehensive model")
    if name in runs.trace.curves:
        panel.plot(*runs.trace.curves[name], **TRACE, label="trace")
        curves.append(runs.trace.curves[name])
    if not curves:
        nothing(panel, "nothing to draw")
    return curves


def figure5_1(study: Minh2012Models) -> Figure:
    """Sizes and run times of bags, trace and model (Fig. 5.1)."""
    figure, axes = _panels(
        study, 2, "Fig. 5.1: bags larger, and running longer, than ...",
        f"comprehensive model, a line for each of {study.seeds} generated workloads",
    )  # fmt: skip
    for one, (left, right) in zip(study.traces.values(), axes, strict=True):
        left.set_title(f"{one.trace}, bags by size, single jobs too", **TITLE)
        right.set_title(f"{one.trace}, bags of two or more by run time", **TITLE)
        if curves := _of_jobs(one, left, "bags"):
            labels_of_shares(left)
            logarithmic_counts(left, _last(curves))
            left.set_xlim(left=1)
            left.set_ylim(1e-5, 1.3)
            label_below(left, "jobs of a bag")
        if curves := _of_jobs(one, right, "bag_run_time"):
            percent(right)
            logarithmic_times(right, 1, 1.3 * _last(curves))
            label_below(right, "mean run time of a bag")
    _legend(figure, axes[0])
    return figure


def figure5_2(study: Minh2012Models) -> Figure:
    """Run times and processors of jobs, trace and model (Fig. 5.2)."""
    figure, axes = _panels(
        study, 2, "Fig. 5.2: jobs that run, or ask for processors, up to ...",
        f"comprehensive model, a line for each of {study.seeds} generated workloads",
    )  # fmt: skip
    for one, (left, right) in zip(study.traces.values(), axes, strict=True):
        left.set_title(f"{one.trace}, run time", **TITLE)
        right.set_title(f"{one.trace}, processors", **TITLE)
        if curves := _of_jobs(one, left, "run_time"):
            percent(left)
            logarithmic_times(left, 1, 1.3 * _last(curves))
            label_below(left, "run time")
        if curves := _of_jobs(one, right, "processors"):
            percent(right)
            logarithmic_counts(right, _last(curves))
            right.set_xlim(left=1)
            label_below(right, "processors")
    _legend(figure, axes[0])
    return figure


def figure5_3(study: Minh2012Models) -> Figure:
    """Slowdown against load, trace and generated workloads (Fig. 5.3)."""
    figure, axes = _panels(
        study, len(POLICIES), "Fig. 5.3: slowdown against load",
        "mean response time / mean run time; shaded: loads at which the trace has to lie in "
        "the band",
    )  # fmt: skip
    for one, line in zip(study.traces.values(), axes, strict=True):
        schedule = one.schedules[REQUIRED_WAY]
        for row, (policy, panel) in enumerate(zip(POLICIES, line, strict=True)):
            panel.set_title(f"{one.trace}, {POLICIES[policy]}", **TITLE)
            if not schedule.known[row].any():
                nothing(panel, "more jobs than may be left out are wider than the systems")
                continue
            panel.set_yscale("log")
            label = "generated workloads"
            for values in schedule.slowdowns:
                panel.plot(LOADS, values[row], color=COLOURS["sky"], **DOTTED, label=label)
                label = "_"
            panel.plot(LOADS, schedule.mean[row], **MODIFIED, label="their mean")
            panel.plot(LOADS, schedule.trace.slowdown[row], **TRACE, label="trace")
            if one.is_required and one.trace == SCHEDULED:
                panel.axvspan(
                    REQUIRED_LOADS[0], REQUIRED_LOADS[-1], color="#dddddd", alpha=0.45,
                    linewidth=0, zorder=0.5,
                )  # fmt: skip
            _numbers(panel)
            label_below(panel, "system load")
    drawn = [panel for panel in figure.axes if panel.get_legend_handles_labels()[0]]
    if drawn:
        legend_above(figure, drawn[0])
    return figure


def _numbers(panel: Axes) -> None:
    """Label a logarithmic axis of slowdowns in plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = panel.get_ylim()
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())


#: The figures.
FIGURES = (figure4_5, figure4_6, figure5_1, figure5_2, figure5_3)
