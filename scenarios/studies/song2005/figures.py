"""Pictures of Song et al. 2005: Figures 8 to 11, the jobs of each group of users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.features.panels import begin
from hpcrowd.analysis.features.workload import Floats
from hpcrowd.analysis.models.jobs.mugm import GROUPS
from hpcrowd.analysis.pictures.plots import margins, new_figure
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import Int64s
from hpcrowd.scenarios.studies.song2005.measures import COUNTS, TraceOutcomes, published_groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: The figure of the paper by log and number of groups.
FIGURES = {("KTH", 2): "Fig. 8", ("KTH", 4): "Fig. 9", ("KTH", 6): "Fig. 10",
           ("LANL-CM5", 4): "Fig. 11"}  # fmt: skip

#: Size of a panel with its labels, and height of the titles, inches.
WIDTH, HEIGHT, HEAD = 4.1, 3.35, 0.85

#: Cells of a map: log2 of processors in halves, run times twelve for a factor of 10.
WIDTH_LOG2, A_DECADE = 0.5, 6

#: Labels of run times, s.
TIMES = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", HOUR: "1 h", 10 * HOUR: "10 h",
         10 * DAY: "10 days"}  # fmt: skip

#: Smallest and largest share of a group's jobs in a cell on the scale of colours, %.
SHADES = (0.01, 10.0)


def groups_figure(one: TraceOutcomes, count: int) -> Figure:
    """Return a map of processors and run times for each group of users; Figs. 8 to 11."""
    from matplotlib.colors import LogNorm

    grouping = one.groupings[count]
    label = grouping.label[one.jobs.place]
    columns = 2 if len(grouping.shares) != 6 else 3
    rows = -(-len(grouping.shares) // columns)
    width, height = columns * WIDTH + 0.9, HEAD + rows * HEIGHT
    where = FIGURES.get((one.trace, count))
    figure = new_figure(
        width, height, f"{one.trace}: {len(grouping.shares)} groups of users",
        f"{one.workload.name}, {len(label):,} jobs" + (f"; {where} of Song et al. 2005" if where
        else ""),
    )  # fmt: skip
    room = margins(figure, 0.75, 1.15, 0.55, HEAD + 0.35)
    grid = figure.add_gridspec(rows, columns, **room, wspace=0.24, hspace=0.52)
    edges = _edges(one.jobs.processors, one.jobs.run_time)
    printed = published_groups(one.trace, count)
    norm = LogNorm(*SHADES, clip=True)
    image: Any = None
    for group, shares in enumerate(grouping.shares):
        axes = figure.add_subplot(grid[divmod(group, columns)])
        title = (
            f"{group + 1}: {shares.area:.1f} % of area, {shares.jobs:.1f} % of jobs, "
            f"{shares.users:.1f} % of users"
        )
        if printed:
            paper = ", ".join(printed[group][name].text for name in ("area", "jobs", "users"))
            title += f"\n(paper: {paper})"
        begin(axes, title)
        axes.grid(False)
        mine = label == group
        image = _map(axes, one.jobs.processors[mine], one.jobs.run_time[mine], edges, norm)
        _label(axes, edges)
        if group % columns == 0:
            axes.set_ylabel("run time", fontsize=9)
        if group >= len(grouping.shares) - columns:
            axes.set_xlabel("processors", fontsize=9)
    place = figure.add_axes((1 - 0.85 / width, 0.55 / height, 0.16 / width, 2.4 / height))
    bar = figure.colorbar(image, cax=place)
    bar.set_ticks([0.01, 0.1, 1, 10], labels=["0.01", "0.1", "1", "10"])
    bar.ax.tick_params(labelsize=8)
    bar.set_label("jobs of the group, %", fontsize=8.5)
    return figure


def _edges(processors: Int64s, run_time: Floats) -> tuple[Floats, Floats]:
    """Return edges of cells: log2 of processors, log10 of run times (s)."""
    most = np.ceil(np.log2(processors.max()) / WIDTH_LOG2) * WIDTH_LOG2
    across = np.arange(-WIDTH_LOG2 / 2, most + WIDTH_LOG2, WIDTH_LOG2)
    last = np.ceil(np.log10(max(run_time.max(), 10)) * A_DECADE)
    return across, np.arange(-1, last + 1) / A_DECADE


def _map(
    axes: Axes, processors: Int64s, run_time: Floats, edges: tuple[Floats, Floats], norm: Any
) -> Any:
    count, _, _ = np.histogram2d(np.log2(processors), np.log10(run_time), bins=edges)
    share = 100 * count / len(processors)
    masked = np.ma.masked_equal(share.T, 0)
    return axes.pcolormesh(*edges, masked, norm=norm, cmap="viridis_r", rasterized=True)


def _label(axes: Axes, edges: tuple[Floats, Floats]) -> None:
    across, up = edges
    powers = np.arange(0, int(across[-1]) + 1, 1 if across[-1] < 8 else 2)
    axes.set_xticks(powers, labels=[f"{2**power:,}" for power in powers.tolist()])
    times = {s: name for s, name in TIMES.items() if np.log10(s) <= up[-1]}
    axes.set_yticks(np.log10(list(times)), labels=list(times.values()))
    axes.set_xlim(across[0], across[-1])
    axes.set_ylim(up[0], up[-1])
    axes.tick_params(labelsize=8)


def figures_of(one: TraceOutcomes) -> list[int]:
    """Return the numbers of groups that a trace is drawn with: those of the paper, or 4."""
    return [count for count in COUNTS if (one.trace, count) in FIGURES] or [GROUPS]
