"""Panels on single jobs: how long, how wide, how long they waited, run time x processors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.features import sizes
from analysis.features.draw_arrivals import SHADES
from analysis.features.panels import (
    LETTERS,
    begin,
    drawable,
    exceeding,
    label_below,
    logarithmic_counts,
    logarithmic_times,
    nothing,
    percent,
)
from analysis.features.workload import Floats, Workload
from environment.errors import UnavailableError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Cells of run times to a factor of ten.
CELLS = 8

#: Shares of jobs, or of occupation, that the lightest shade stands for and that the darkest one
#: stands for at least; cells with less stay white.
LEAST, MOST_LIGHT = 1e-4, 1e-2

#: Most processors and seconds that have a place on the axes.
MOST = 1e12


class Column(NamedTuple):
    """A column of jobs whose distribution is drawn."""

    title: str  #: of the panel
    axis: str  #: name of its axis
    values: Callable[[Workload], NDArray[Any]]
    is_time: bool
    above: str  #: what there is none of when nothing can be drawn


#: What :func:`draw_ccdf` draws, by name.
COLUMNS = {
    "run_time": Column(
        "Jobs that ran longer than ...", "run time", lambda w: w.run_time, True,
        "run time above 1 s",
    ),
    "processors": Column(
        "Jobs that asked for more processors than ...", "processors", lambda w: w.processors,
        False, "job of more than one processor",
    ),
    "requested_time": Column(
        "Jobs whose requested time was longer than ...", "requested time",
        sizes.requested_times, True, "requested time above 1 s",
    ),
    "wait": Column(
        "Jobs that waited longer than ...", "wait", sizes.waits, True, "wait above 1 s",
    ),
}  # fmt: skip


def draw_ccdf(axes: Axes, workloads: Sequence[Workload], column: str) -> None:
    """Draw which share of jobs has more than so much of a column of :data:`COLUMNS`."""
    title, axis, values, is_time, above = COLUMNS[column]
    begin(axes, title)
    drawn, missing = drawable(workloads, lambda one: exceeding(values(one), above))
    if not drawn:
        return nothing(axes, missing)
    for one in drawn:
        axes.plot(*one.found, **one.look)
    last = 1.3 * max(float(one.found[0][-1]) for one in drawn)
    percent(axes)
    if is_time:
        logarithmic_times(axes, 1, last)
    else:
        logarithmic_counts(axes, last)
        axes.set_xlim(left=1)
    label_below(axes, axis, missing)


class Grid(NamedTuple):
    """Cells of run time x processors that several workloads share."""

    run_time: Floats  #: edges, s
    processors: Floats  #: edges


def grid_of(workloads: Sequence[Workload]) -> Grid:
    """Return cells in equal ratios that hold all jobs; those of processors are a factor of two.

    Raises
    ------
    UnavailableError
        When there are no jobs.
    """
    if not any(len(workload) for workload in workloads):
        raise UnavailableError("no jobs")
    longest = max(float(workload.run_time.max(initial=1)) for workload in workloads)
    widest = max(int(workload.processors.max(initial=1)) for workload in workloads)
    decades = max(np.log10(min(longest, MOST)), 1)
    cells = int(np.ceil(decades * CELLS + 0.001))
    # Whole seconds: between 1 and 2 s there is no run time, and no room for two cells.
    edges: Floats = np.unique(np.round(10.0 ** (np.arange(cells + 1) / CELLS)))
    doublings = max(int(np.ceil(np.log2(min(widest, MOST)) + 0.5)), 2)
    return Grid(edges, np.exp2(np.arange(doublings + 1) - 0.5))


def cells_of(workload: Workload, grid: Grid, *, weighted: bool) -> Floats:
    """Return the share of jobs, or of run time x processors, in each cell (processors, run time).

    Raises
    ------
    UnavailableError
        When there is nothing to share.
    """
    weights = workload.run_time * workload.processors if weighted else np.ones(len(workload))
    if weights.sum() <= 0:
        raise UnavailableError("all run times are 0" if len(workload) else "no jobs")
    across = np.searchsorted(grid.run_time, workload.run_time, side="right") - 1
    up = np.searchsorted(grid.processors, workload.processors, side="right") - 1
    shape = len(grid.processors) - 1, len(grid.run_time) - 1
    place = np.clip(up, 0, shape[0] - 1) * shape[1] + np.clip(across, 0, shape[1] - 1)
    summed = np.bincount(place, weights=weights, minlength=shape[0] * shape[1])
    shares: Floats = summed.reshape(shape) / weights.sum()
    return shares


def darkest(workloads: Sequence[Workload], grid: Grid) -> float:
    """Return the largest share of a cell, by jobs or by occupation."""
    found = [MOST_LIGHT]
    for workload in workloads:
        for weighted in (False, True):
            try:
                found.append(float(cells_of(workload, grid, weighted=weighted).max()))
            except UnavailableError:
                continue
    return max(found)


def draw_cells(
    axes: Axes,
    workload: Workload,
    grid: Grid,
    *,
    weighted: bool = False,
    most: float = 1,
    title: str = "",
) -> Any:
    """Draw run time x processors as a map; Minh 2012, Fig. 2.6 has it as a 3D histogram.

    Parameters
    ----------
    axes
        Where.
    workload
        Of which jobs; those shorter than 1 s stand at 1 s.
    grid
        :func:`grid_of` all workloads that stand beside each other.
    weighted
        Whether shades tell the share of occupation (run time x processors) instead of jobs.
    most
        Share that the darkest shade stands for, such as :func:`darkest`.
    title
        Of the panel.

    Returns
    -------
    QuadMesh or None
        For a colour bar.
    """
    from matplotlib.colors import LogNorm

    what = "occupation" if weighted else "jobs"
    begin(axes, title or f"Share of {what}")
    try:
        shares = cells_of(workload, grid, weighted=weighted)
    except UnavailableError as error:
        return nothing(axes, str(error))
    logarithmic_times(axes, 1, float(grid.run_time[-1]))
    axes.set_yscale("log", base=2)
    axes.set_ylim(grid.processors[0], grid.processors[-1])
    steps = max(1, -(-len(grid.processors) // 9))
    ticks = 2 ** np.arange(0, len(grid.processors) - 1, steps)
    axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    mesh = axes.pcolormesh(
        grid.run_time, grid.processors, np.where(shares >= LEAST, shares, np.nan),
        cmap=SHADES, norm=LogNorm(LEAST, most, clip=True),
    )  # fmt: skip
    axes.set_xlabel("run time", fontsize=LETTERS)
    return mesh
