"""How long users think after how long an answer: the whole population, recorded and simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.features.draw import FEWEST, think_quartiles
from hpcrowd.analysis.features.panels import LETTERS, logarithmic_times
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.pictures.over_time import Columns, recorded_jobs
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, TITLE, new_figure, say_nothing, tidy
from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import HpcrowdError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Colour, dashes, marker and width of the record and of the simulation.
LOOKS: dict[str, dict[str, Any]] = {
    "recorded": {"color": "#666666", "linestyle": "--", "marker": "s", "linewidth": 1.3},
    "simulated": {"color": COLOURS["blue"], "linestyle": "-", "marker": "o", "linewidth": 1.5},
}

#: Where the axis of think times is labelled, s.
MARKS = {1: "1 s", 5: "5 s", 20: "20 s", 60: "1 min", 120: "2 min", 300: "5 min", 600: "10 min"}


MARKS |= {1200: "20 min", 2400: "40 min", 3600: "1 h", 7200: "2 h", 6 * 3600: "6 h"}


MARKS |= {86400: "1 day"}


def think_against_response(run: Run) -> Figure:
    """Return medians and quartiles of think times by the response time of the batch before.

    A batch is what a user submits without waiting (Zakay and Feitelson 2015); think times are those
    inside of sessions, which end when nothing is submitted for an hour.
    """
    figure = new_figure(12, 3.9, "Think times against response times", run.label)
    axes = figure.add_axes((0.075, 0.13, 0.91, 0.67))
    tidy(axes)
    axes.set_title(
        f"Think time after a batch: median, band from quartile to quartile, {FEWEST} or more "
        "batches a dot", **TITLE
    )  # fmt: skip
    found = think_times_of(run)
    if not found:
        say_nothing(axes, "too few batches that follow others")
        return figure
    for name, (middle, low, median, high) in found.items():
        look = LOOKS[name]
        axes.plot(middle, median, markersize=4.5, label=name, **look)
        band: dict[str, Any] = {"facecolor": look["color"], "alpha": 0.2, "linewidth": 0}
        if name == "recorded" and len(found) > 1:
            band = {"facecolor": "none", "edgecolor": "#999999", "hatch": "....", "linewidth": 0.6}
        axes.fill_between(middle, low, high, **band)
    every = np.hstack(list(found.values()))
    logarithmic_times(axes, every[0].min() / 1.8, every[0].max() * 1.8)
    _label_think_times(axes, max(every[1].min() / 1.4, 0.8), every[3].max() * 1.4)
    axes.set_ylabel("think time", fontsize=LETTERS)
    axes.set_xlabel("response time of the batch before, from submission to end", fontsize=LETTERS)
    figure.legend(
        *axes.get_legend_handles_labels(), loc="upper right", bbox_to_anchor=(0.985, 0.99),
        ncols=2, **LEGEND,
    )  # fmt: skip
    return figure


def _label_think_times(axes: Axes, low: float, high: float) -> None:
    """Make the vertical axis logarithmic, with labels that people read."""
    from matplotlib.ticker import NullLocator

    shown = [second for second in MARKS if low <= second <= high]
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_yticks(shown, [MARKS[second] for second in shown])


def think_times_of(run: Run) -> dict[str, Floats]:
    """Return :func:`~hpcrowd.analysis.features.draw.think_quartiles`, recorded and simulated.

    What has too few batches is left out.
    """
    tables = {"recorded": recorded_jobs(run)}
    if not run.is_record and tables["recorded"] is None:
        del tables["recorded"]
    tables["recorded" if run.is_record else "simulated"] = run.jobs.take(
        np.flatnonzero(run.jobs.over)
    )
    found = {}
    for name, jobs in tables.items():
        if jobs is None or not len(jobs):
            continue
        try:
            found[name] = think_quartiles(Workload.from_jobs(jobs, name=name))
        except HpcrowdError:
            continue  # too few: the picture says so
    return found


def think_data(run: Run) -> Columns:
    """Return what :func:`think_against_response` shows."""
    found = think_times_of(run)
    names = ("response_s", "think_p25_s", "think_p50_s", "think_p75_s")
    columns: Columns = {
        "of": [name for name, table in found.items() for _ in range(table.shape[1])]
    }
    every = np.hstack(list(found.values())) if found else np.zeros((len(names), 0))
    return columns | dict(zip(names, every, strict=True))
