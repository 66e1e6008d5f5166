"""Pictures of what reactions do: processors in use around a period, with and without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.pictures.plots import (
    COLOURS,
    TITLE,
    new_figure,
    tidy,
    time_axis,
)
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, HOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Width of the averages, s.
BIN = HOUR


#: What is shown before and after the period, s.
BEFORE, AFTER = 2 * DAY, 4 * DAY


def mean_use(run: Run, begin: int, end: int) -> float:
    """Return the mean number of processors in use between two seconds of a run."""
    return float(curves.processors_in_use(run.jobs, np.array([begin, end]))[0])


def reaction_figure(
    columns: Mapping[str, Mapping[str, Run]],
    period: tuple[int, int],
    title: str,
    subtitle: str = "",
) -> Figure:
    """Return processors in use around a period: users in columns, responses in rows.

    Parameters
    ----------
    columns
        For each kind of users its runs by the name of the response. The first of them is the run
        without one, and is shown with each of the others.
    period
        (from, to), s of the run; shaded.
    title, subtitle
        Of the picture.
    """
    rows = max(len(runs) for runs in columns.values()) - 1
    height = 0.95 + 1.55 * rows
    figure = new_figure(11, height, title, subtitle)
    grid = figure.add_gridspec(
        rows,
        len(columns),
        left=0.05,
        right=0.985,
        bottom=0.5 / height,
        top=1 - 0.95 / height,
        hspace=0.42,
        wspace=0.12,
    )
    for column, (users, runs) in enumerate(columns.items()):
        (_, without), *others = runs.items()
        for row, (name, run) in enumerate(others):
            axes = figure.add_subplot(grid[row, column])
            _draw(axes, without, run, period)
            axes.set_title(f"{users} users: {name}", **TITLE)
            time_axis(axes, run, *_span(period), named=row == len(others) - 1)
            if not row and not column:
                _explain(axes)
    return figure


def _span(period: tuple[int, int]) -> tuple[int, int]:
    return max(0, period[0] - BEFORE), period[1] + AFTER


def _draw(axes: Axes, without: Run, run: Run, period: tuple[int, int]) -> None:
    first, last = _span(period)
    edges = np.arange(first, last + BIN, BIN, dtype=np.int64)
    tidy(axes)
    axes.axvspan(*period, color=COLOURS["yellow"], alpha=0.35, linewidth=0, zorder=0)
    level = curves.processors_in_use(run.jobs, edges)
    axes.stairs(level, edges, fill=True, color=COLOURS["sky"], zorder=1)
    level = curves.processors_in_use(without.jobs, edges)
    axes.stairs(level, edges, color="#333333", linewidth=1.0, baseline=None, zorder=2)
    axes.set_ylim(0, 1.14 * run.processors)


def _explain(axes: Axes) -> None:
    """Say once what the colours mean, above the panel at the right."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: Sequence[Patch | Line2D] = (
        Patch(color=COLOURS["sky"], label="with the reaction"),
        Line2D([], [], color="#333333", linewidth=1.0, label="without"),
        Patch(color=COLOURS["yellow"], alpha=0.35, label="period of the call"),
    )
    figure = axes.get_figure()
    assert figure is not None
    figure.legend(
        handles=handles,
        loc="upper right",
        bbox_to_anchor=(0.985, 1.0),
        ncols=3,
        fontsize=8.5,
        frameon=False,
        handlelength=1.6,
    )
