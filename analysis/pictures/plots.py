"""Pictures of one run: :func:`overview`, and :func:`write_overview` for the folder of a run.

Every function returns a matplotlib ``Figure`` without a window or a global state; matplotlib is
loaded when the first one is called. Colours are those of Okabe and Ito, which colour-blind people
can tell apart. :mod:`hpcrowd.analysis.comparison.pictures` has the pictures of several runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.accounts.platform import size_steps, sizes_of
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Colours by name (Okabe and Ito 2008, Color Universal Design).
COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermilion": "#D55E00",
    "sky": "#56B4E9",
    "purple": "#CC79A7",
    "yellow": "#F0E442",
    "grey": "#999999",
}

#: Dots per inch of PNG files.
DPI = 100

#: Most bins of a curve over time; pictures are about a thousand pixels wide.
TIME_BINS = 720

#: Looks of axis titles and legends.
TITLE: dict[str, Any] = {"fontsize": 9.5, "loc": "left"}
LEGEND: dict[str, Any] = {"fontsize": 8, "frameon": False, "handlelength": 1.6}

#: A line of a picture: its label, the values behind it (s), the name of its colour, its width.
type Line = tuple[str, Int64s, str, float]

#: Units of bin widths, s.
UNITS = ((DAY, "days"), (HOUR, "h"), (60, "min"), (1, "s"))

#: Waits at which the axis of a distribution is labelled, s.
WAIT_LABELS = {1: "1 s", 60: "1 min", HOUR: "1 h", DAY: "1 day", 30 * DAY: "30 days"}


def new_figure(width: float, height: float, title: str, subtitle: str = "") -> Figure:
    """Return an empty figure with a title; sizes in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white")
    figure.text(0.012, 1 - 0.12 / height, title, va="top", fontsize=13, weight="bold")
    if subtitle:
        figure.text(0.012, 1 - 0.40 / height, subtitle, va="top", fontsize=9.5, color="#444444")
    return figure


def overview(run: Run) -> Figure:
    """Return the overview of a run: processors in use, queue, submissions, waits, weekly profile.

    Where there is a record, submissions, waits and profile show it beside the simulation.
    """
    jobs = run.jobs
    ended = int(np.count_nonzero(jobs.over))
    of = "" if run.source is None else f"{run.source['source']}: "
    figure = new_figure(
        12,
        8.2,
        run.label,
        f"{of}{len(jobs):,} jobs, {ended:,} ran to an end, on {run.processors:,} processors",
    )
    grid = figure.add_gridspec(
        3, 3, left=0.055, right=0.985, bottom=0.065, top=0.895, hspace=0.42, wspace=0.24
    )
    draw_usage(figure.add_subplot(grid[0, :]), run)
    draw_queue(figure.add_subplot(grid[1, :]), run)
    draw_submissions(figure.add_subplot(grid[2, 0]), run)
    draw_waits(figure.add_subplot(grid[2, 1]), run)
    draw_week(figure.add_subplot(grid[2, 2]), run)
    return figure


def write_overview(run: Run, folder: str | Path) -> list[Path]:
    """Draw :func:`overview` as ``overview.png`` in an existing folder; return the paths."""
    path = Path(folder) / "overview.png"
    path.write_bytes(figure_png(overview(run)))
    return [path]


def figure_png(figure: Figure, scale: float = 1) -> bytes:
    """Return a figure as the bytes of a PNG file, without the date and the program's name.

    Parameters
    ----------
    figure
        Any; its size in inches times :data:`DPI` is that on a screen.
    scale
        Pixels of the file for each of the screen; 2 is sharp on paper, too.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(
        buffer,
        format="png",
        dpi=scale * DPI,
        metadata={"Software": None},
        pil_kwargs={"compress_level": 4},
    )
    return buffer.getvalue()


def write_figures_of[What](
    figures: Mapping[str, Callable[[What], Figure]], what: What, folder: Path
) -> list[str]:
    """Draw every figure of something as PNG, by name, and return the names of the files."""
    for name, draw in figures.items():
        (folder / f"{name}.png").write_bytes(figure_png(draw(what)))
    return [f"{name}.png" for name in figures]


def legend_above(figure: Figure, panel: Axes, below: float = 0.56) -> None:
    """Put the legend of a panel under the title of its figure, ``below`` inches from the top."""
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="upper left", ncols=len(handles),
        bbox_to_anchor=(0.0, 1 - below / figure.get_figheight()), **LEGEND,
    )  # fmt: skip


def draw_usage(axes: Axes, run: Run) -> None:
    """Draw the processors in use over time."""
    span = curves.span_of(run.jobs)
    tidy(axes)
    if span is None:
        return say_nothing(axes, "nothing was submitted")
    edges = curves.time_edges(*span, TIME_BINS)
    level = curves.processors_in_use(run.jobs, edges)
    axes.stairs(level, edges, fill=True, color=COLOURS["sky"])
    steps = size_steps(run.processors, sizes_of(run.platform), *span)
    times, sizes = zip(*steps, (span[1], steps[-1][1]), strict=True)
    style: dict[str, Any] = {"color": "black", "linewidth": 0.8, "linestyle": (0, (4, 3))}
    axes.step(times, sizes, where="post", **style)
    axes.set_ylim(0, 1.08 * max(1, *sizes))
    axes.set_title(f"Processors in use, {averaged(edges)}; dashed: all", **TITLE)
    time_axis(axes, run, *span, named=False)


def draw_queue(axes: Axes, run: Run) -> None:
    """Draw the jobs in the queue over time."""
    span = curves.span_of(run.jobs)
    tidy(axes)
    if span is None:
        return say_nothing(axes, "nothing was submitted")
    edges = curves.time_edges(*span, TIME_BINS)
    level = curves.jobs_waiting(run.jobs, edges)
    axes.set_title(f"Jobs in the queue, {averaged(edges)}", **TITLE)
    if not level.any():
        return say_nothing(axes, "nobody waited")
    axes.stairs(level, edges, fill=True, color=COLOURS["orange"])
    axes.set_ylim(0, max(1.0, 1.05 * float(level.max())))
    time_axis(axes, run, *span)


def draw_submissions(axes: Axes, run: Run) -> None:
    """Draw how many jobs were submitted by when: recorded and simulated, or submitted and ended."""
    jobs = run.jobs
    span = curves.span_of(jobs)
    tidy(axes)
    if span is None:
        return say_nothing(axes, "nothing was submitted")
    recorded = jobs.recorded_submit[jobs.recorded_submit != UNKNOWN]
    first, last = span
    if len(recorded):
        last = max(int(jobs.submit.max()), int(recorded.max()))
        first = min(first, int(recorded.min()))
        pairs = lines_of(run, recorded, jobs.submit)
    else:
        pairs = [("submitted", jobs.submit, "blue", 1.3), ("ended", jobs.end, "vermilion", 1.3)]
    edges = curves.time_edges(first, last, TIME_BINS // 2)
    for name, times, colour, width in pairs:
        counts = curves.cumulative(times, edges)
        axes.plot(edges, counts, color=COLOURS[colour], linewidth=width, label=name)
    axes.set_ylim(bottom=0)
    axes.set_title("Jobs submitted until then" if len(recorded) else "Jobs until then", **TITLE)
    axes.legend(**LEGEND, loc="upper left")
    time_axis(axes, run, first, last, labels=4)


def draw_waits(axes: Axes, run: Run) -> None:
    """Draw the share of jobs that waited longer than so long."""
    draw_exceedance(axes, lines_of(run, *waits_of(run)))


def waits_of(run: Run) -> tuple[Int64s, Int64s]:
    """Return recorded waits, and simulated waits of jobs that ran, s; without a record none."""
    jobs = run.jobs
    known, ran = jobs.recorded_start != UNKNOWN, jobs.over
    recorded = (jobs.recorded_start - jobs.recorded_submit)[known]
    return recorded, (jobs.start - jobs.submit)[ran]


def lines_of(run: Run, recorded: Int64s, simulated: Int64s) -> list[Line]:
    """Return the lines of a picture of record and simulation; a record alone is one line."""
    if run.is_record:
        return [("recorded", simulated, "blue", 1.3)]
    lines = [("simulated", simulated, "blue", 1.3)]
    return [("recorded", recorded, "grey", 2.8), *lines] if len(recorded) else lines


def draw_exceedance(
    axes: Axes, lines: Sequence[Line], title: str = "Share of jobs that waited longer than ..."
) -> None:
    """Draw the exceedance of waits (s): for each line its label, waits, colour and width."""
    tidy(axes)
    axes.set_title(title, **TITLE)
    found = [(line, curves.exceedance(line[1])) for line in lines]
    drawn = [(line, curve) for line, curve in found if curve is not None]
    if not drawn:
        return say_nothing(axes, "nobody waited" if any(len(w) for _, w, *_ in lines) else "no job")
    from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

    for (name, _, colour, width), (x, share) in drawn:
        axes.plot(x, share, color=COLOURS[colour], linewidth=width, label=name)
    axes.set_xscale("log")
    axes.set_ylim(0, 1)
    right = max(float(x[-1]) for _, (x, _) in drawn)
    axes.set_xlim(1, max(1.5 * right, 60))
    shown = {second: text for second, text in WAIT_LABELS.items() if second <= axes.get_xlim()[1]}
    axes.xaxis.set_major_locator(FixedLocator(list(shown)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(list(shown.values()))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("wait", fontsize=8.5)
    axes.legend(**LEGEND, loc="upper right")


def draw_week(axes: Axes, run: Run) -> None:
    """Draw the submissions per hour over a mean week."""
    recorded = run.jobs.recorded_submit
    draw_profiles(axes, run, lines_of(run, recorded[recorded != UNKNOWN], run.jobs.submit))


def draw_profiles(axes: Axes, run: Run, lines: Sequence[Line]) -> None:
    """Draw weekly profiles of submissions: for each line its label, times, colour and width."""
    tidy(axes)
    axes.set_title("Jobs submitted per h over a mean week", **TITLE)
    found = [(line, curves.weekly_profile(line[1], run.clock)) for line in lines]
    hours = np.arange(curves.WEEK_HOURS + 1)
    empty = True
    for (name, _, colour, width), profile in found:
        if profile is not None:
            empty = False
            axes.stairs(
                profile, hours, color=COLOURS[colour], linewidth=width, label=name, baseline=None
            )
    if empty:
        return say_nothing(axes, "nothing was submitted")
    label_week(axes, run)
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])  # room for the legend
    axes.legend(**LEGEND, loc="upper right", ncols=len(found))


def label_week(axes: Axes, run: Run) -> None:
    """Label the hours of a week in local time, with the zone."""
    axes.set_xlim(0, curves.WEEK_HOURS)
    axes.set_xticks(
        range(0, curves.WEEK_HOURS, 24), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    )
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("left")
    zone = "the origin counts as Monday" if run.clock.nominal else f"local time, {run.clock.zone}"
    axes.set_xlabel(zone, fontsize=8.5)


def tidy(axes: Axes) -> None:
    """Give axes the common look; what the vertical axis counts stands in the title."""
    axes.tick_params(labelsize=8, length=3, color="#888888")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#888888")
    axes.grid(visible=True, color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.yaxis.set_major_formatter("{x:,.10g}")


def say_nothing(axes: Axes, why: str) -> None:
    """Say in an empty picture why it is empty."""
    axes.set(xticks=[], yticks=[])
    axes.text(
        0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color=COLOURS["grey"]
    )


def time_axis(
    axes: Axes, run: Run, first: int, last: int, labels: int | None = None, named: bool = True
) -> None:
    """Label a time axis in local time; ``labels`` limits their number, ``named`` tells the zone."""
    places, texts, name = curves.time_ticks(run.clock, first, last)
    every = 1 if labels is None else max(1, -(-len(places) // labels))
    axes.set_xlim(min([first, *places]), max(last, first + 1))
    axes.set_xticks(places[::every], texts[::every])
    if named:
        axes.set_xlabel(name, fontsize=8.5)


def averaged(edges: Int64s) -> str:
    """Return over what a curve is averaged, in words."""
    width = int(edges[1] - edges[0])
    size, unit = next((size, unit) for size, unit in UNITS if width % size == 0)
    return f"averages over {width // size} {'day' if width == DAY else unit}"
