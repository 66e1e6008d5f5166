"""Figures 5 to 10 of Zakay and Feitelson 2015, drawn from our own simulations.

Each function takes the simulations of some logs and returns a figure with a panel for each log;
:func:`pictures_of` names them. Curves are means over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import WEEK_HOURS, Floats
from hpcrowd.analysis.pictures.plots import (
    COLOURS,
    TITLE,
    legend_above,
    new_figure,
    tidy,
)
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.scenarios.studies.render import Picture
from hpcrowd.scenarios.studies.zakay2015.measures import LogOutcomes, mean_shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Days of the week, for the axis.
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

#: Number of narrow panels side by side.
COLUMNS = 3

#: Styles of the record and the simulation.
RECORDED: dict[str, Any] = {"color": COLOURS["grey"], "linewidth": 2.6, "label": "recorded"}
SIMULATED: dict[str, Any] = {"color": COLOURS["blue"], "linewidth": 1.3}

#: Styles of the four lines of Figure 10: black FIFO and blue EASY, feedback dashed.
QUEUES: dict[tuple[str, str], dict[str, Any]] = {
    ("conventional", "easy"): {"color": COLOURS["sky"], "label": "conventional, EASY"},
    ("conventional", "fcfs"): {"color": "black", "label": "conventional, FIFO"},
    ("fluid", "easy"): {"color": COLOURS["sky"], "label": "fluid, EASY", "dashes": (4, 1.5)},
    ("fluid", "fcfs"): {"color": "black", "label": "fluid, FIFO", "dashes": (4, 1.5)},
}


def _panels(
    logs: Sequence[LogOutcomes], columns: int, size: tuple[float, float], title: str, below: str
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each log; ``size`` of a panel in inches."""
    columns = min(columns, len(logs))
    rows = -(-len(logs) // columns)
    width, height = max(columns * size[0], 6.0), rows * size[1] + 1.25
    figure = new_figure(width, height, title, below)
    grid = figure.add_gridspec(
        rows,
        columns,
        left=0.62 / width,
        right=1 - 0.15 / width,
        bottom=0.55 / height,
        top=1 - 1.05 / height,
        hspace=0.52,
        wspace=0.22,
    )
    axes = [
        figure.add_subplot(grid[place // columns, place % columns]) for place in range(len(logs))
    ]
    for panel, log in zip(axes, logs, strict=True):
        tidy(panel)
        panel.set_title(log.log, **TITLE)
    return figure, axes


def _week(logs: Sequence[LogOutcomes], model: str, number: int) -> Figure:
    """Draw the week of a model and the recorded one."""
    figure, axes = _panels(
        logs, 1, (7.6, 1.25), f"Fig. {number}: arrivals in the week, {model} users",
        "jobs in each hour of the local week",
    )  # fmt: skip
    edges = np.arange(WEEK_HOURS + 1)
    for panel, log in zip(axes, logs, strict=True):
        jobs = int(log.user_jobs.sum())
        mean: Floats = np.mean([one.profile for one in log.of(model)], axis=0)
        panel.stairs(jobs * log.recorded.profile, edges, baseline=None, **RECORDED)
        panel.stairs(jobs * mean, edges, baseline=None, **SIMULATED, label=model)
        panel.set_xlim(0, WEEK_HOURS)
        panel.set_ylim(bottom=0)
        panel.set_xticks(range(0, WEEK_HOURS, DAY // HOUR), DAYS)
        for label in panel.get_xticklabels():
            label.set_horizontalalignment("left")
    axes[-1].set_xlabel("local time", fontsize=8.5)
    legend_above(figure, axes[0])
    return figure


def _activity(logs: Sequence[LogOutcomes], model: str, number: int) -> Figure:
    """Draw the distribution over users of their activity lengths."""
    figure, axes = _panels(
        logs, COLUMNS, (2.6, 1.9), f"Fig. {number}: activity length of users, {model}",
        "share of users active for at most so long",
    )  # fmt: skip
    for panel, log in zip(axes, logs, strict=True):
        pooled = np.concatenate([one.activity_s for one in log.of(model)])
        longest = max(int(pooled.max()), int(log.recorded.activity_s.max()), DAY) / DAY
        lines = ((log.recorded.activity_s, RECORDED), (pooled, {**SIMULATED, "label": model}))
        for lengths, style in lines:
            days = np.concatenate([[0.0], np.sort(lengths) / DAY, [1.02 * longest]])
            share = np.concatenate([[0.0], np.arange(1, len(lengths) + 1) / len(lengths), [1.0]])
            panel.step(days, share, where="post", **style)
        panel.set_xlim(0, 1.02 * longest)
        panel.set_ylim(0, 1.02)
    for panel in axes[-min(COLUMNS, len(axes)) :]:
        panel.set_xlabel("days from first to last submission", fontsize=8.5)
    legend_above(figure, axes[0])
    return figure


def figure10(logs: Sequence[LogOutcomes]) -> Figure:
    """Queue lengths, conventional and fluid users under EASY and FIFO (Fig. 10)."""
    figure, axes = _panels(
        logs, COLUMNS, (2.6, 1.9), "Fig. 10: queue lengths, with and without feedback",
        "share of time with at most so many jobs waiting",
    )  # fmt: skip
    for panel, log in zip(axes, logs, strict=True):
        drawn = {key: mean_shares([one.queue for one in log.of(*key)]) for key in QUEUES}
        longest = max(max(map(len, drawn.values())) - 1, 1)
        for key, style in QUEUES.items():
            share = np.minimum(np.cumsum(drawn[key]), 1.0)
            jobs = np.append(np.arange(len(share)), longest)
            panel.step(jobs, np.append(share, share[-1]), where="post", linewidth=1.5, **style)
        panel.set_xscale("symlog", linthresh=1, linscale=0.35)
        panel.set_xlim(0, 1.1 * longest)
        ticks = [0, *(10**power for power in range(6) if 10**power <= 1.1 * longest)]
        panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        panel.minorticks_off()
        panel.set_ylim(0, 1.02)
    for panel in axes[-min(COLUMNS, len(axes)) :]:
        panel.set_xlabel("jobs waiting", fontsize=8.5)
    legend_above(figure, axes[0])
    return figure


#: Figures that compare a model with the record, by number.
BESIDE_RECORD = {
    5: (_week, "adjusted"),
    6: (_week, "distribution"),
    7: (_activity, "distribution"),
    8: (_week, "fluid"),
    9: (_activity, "fluid"),
}

#: Captions of these.
WORDS = {_week: "Arrivals in the week", _activity: "Activity length per user"}


def pictures_of(logs: Sequence[LogOutcomes]) -> list[Picture]:
    """Return Figures 5 to 10."""
    found = [
        Picture(
            f"figure{number}",
            f"{WORDS[draw]}, {model} users and the record (Fig. {number}).",
            partial(draw, logs, model, number),
        )
        for number, (draw, model) in BESIDE_RECORD.items()
    ]
    return [*found, Picture.of("figure10", figure10, logs)]
