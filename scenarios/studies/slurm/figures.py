"""Pictures of the study: starts, the differences between starts, mean waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis.features.panels import begin
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, new_figure
from hpcrowd.environment.clock import HOUR
from hpcrowd.scenarios.studies.slurm.outcomes import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Labels of waits, s.
TIMES = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", HOUR: "1 h", 10 * HOUR: "10 h"}


def starts_figure(one: Outcome) -> Figure:
    """Return simulated starts by those of the nearest run, and the distribution of differences.

    On the left is the typical simulation, on the right each of them with each run.
    """
    figure = new_figure(
        11, 5.2, f"Starts of {one.ours[0].starts.jobs:,} jobs",
        f"{one.name}; left: typical simulation, {one.nearest}; right: each simulation, each run",
    )  # fmt: skip
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.07, right=0.98, bottom=0.11, top=0.82, wspace=0.2)
    begin(left, "start of each job, h since the plan's start")
    name = f"recorded, {one.nearest}"
    compared = next(pair for pair in one.ours if pair.second == one.nearest)
    starts = np.array(compared.starts_of, float).reshape(-1, 2) / HOUR
    most = float(starts.max(initial=1.0))
    left.plot([0, most], [0, most], color=COLOURS["grey"], linewidth=0.8)
    left.scatter(starts[:, 1], starts[:, 0], s=7, color=COLOURS["blue"], alpha=0.6, linewidths=0)
    left.set(xlabel=name, ylabel=f"simulated, {compared.first}")
    begin(right, "cumulative distribution of the differences between starts")
    simulated = [pair for pairs in one.draws for pair in pairs]
    for pairs, colour, width, label in (
        (simulated, "blue", 0.5, "simulated and recorded"),
        (one.own, "orange", 1.6, "between recorded runs"),
    ):
        for place, pair in enumerate(pairs):
            apart = np.sort([abs(a - b) for a, b in pair.starts_of])
            share = np.arange(1, len(apart) + 1) / len(apart)
            right.step(np.maximum(apart, 1), 100 * share, where="post", color=COLOURS[colour],
                       linewidth=width, label=label if not place else None)  # fmt: skip
    right.set_xscale("log")
    right.set_xticks(list(TIMES), labels=list(TIMES.values()))
    right.set(ylabel="jobs, %", ylim=(0, 100))
    right.legend(**LEGEND, loc="lower right")
    return figure


def waits_figure(one: Outcome) -> Figure:
    """Return the mean wait in each partition and of each user, with that of each recorded run."""
    figure = new_figure(
        11, 4.4, "Mean waits", f"{one.name}; bars: the recorded range; points: each simulation"
    )
    panels = figure.subplots(
        1, 2, width_ratios=[max(len(one.partitions), 1), max(len(one.users), 1)]
    )
    figure.subplots_adjust(left=0.07, right=0.98, bottom=0.1, top=0.8, wspace=0.16)
    for axes, what, waits in zip(
        panels, ("partition", "user"), (one.partitions, one.users), strict=True
    ):
        begin(axes, f"mean wait by {what}, min")
        for place, found in enumerate(waits.values()):
            low, high = min(found.runs) / 60, max(found.runs) / 60
            axes.bar(place, high - low, 0.5, bottom=low, color=COLOURS["grey"], alpha=0.35)
            axes.scatter([place - 0.12] * len(found.runs), np.array(found.runs) / 60, s=14,
                         color=COLOURS["grey"], label=None if place else "recorded")  # fmt: skip
            axes.scatter([place + 0.12] * len(found.draws), np.array(found.draws) / 60, s=5,
                         color=COLOURS["blue"], alpha=0.6)  # fmt: skip
            axes.scatter([place + 0.12], [found.ours / 60], s=30, marker="D",
                         color=COLOURS["blue"],
                         label=None if place else "simulated, median")  # fmt: skip
        axes.set_xticks(range(len(waits)), labels=list(waits))
        axes.set_ylim(bottom=0)
    panels[0].legend(**LEGEND)
    return figure
