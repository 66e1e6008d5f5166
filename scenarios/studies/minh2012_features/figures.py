"""Pictures of Minh 2012, chapter 3: Figures 3.1 to 3.8, one sheet per trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.bags import SHORT_S, real_bags, same_job_gaps
from hpcrowd.analysis.features.draw import (
    BETWEEN,
    draw_acf,
    draw_bag_gaps,
    draw_ccdf,
    draw_repetitions,
)
from hpcrowd.analysis.features.jobs import arrival_counts, gaps
from hpcrowd.analysis.features.panels import begin, label_below, logarithmic_times, nothing, percent
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, margins, new_figure, panels
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.scenarios.studies.minh2012_features.measures import LAGS, WHITE_NOISE, TraceOutcomes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Panels side by side, and the size of one with its labels, inches.
COLUMNS, WIDTH, HEIGHT = 3, 4.3, 2.95

#: Height of the titles, inches.
HEAD = 0.85

Panel = Callable[["Axes", Workload], None]


def times_between_jobs(axes: Axes, workload: Workload) -> None:
    """Draw the distribution of times between jobs; Fig. 3.1."""
    title = "Fig. 3.1: times between jobs longer than ..."
    draw_ccdf(axes, [workload], BETWEEN["jobs"], title=title, tail=True)


def correlation_of_arrivals(axes: Axes, workload: Workload) -> None:
    """Draw the autocorrelation of interarrival times and of rates; Fig. 3.1."""
    begin(axes, "Fig. 3.1: autocorrelation of arrivals")
    for label, find, colour in (
        (f"rates, T = {workload.settings.time_scale_s:g} s", arrival_counts, "orange"),
        ("interarrival times", gaps, "blue"),
    ):
        _correlation(axes, find(workload), label, colour)
    label_below(axes, "lag, intervals of the rates or jobs")
    axes.legend(**LEGEND, loc="upper right")


def correlation_of_bag_run_times(axes: Axes, workload: Workload) -> None:
    """Draw the autocorrelation of the run times of bags; Fig. 3.8."""
    begin(axes, "Fig. 3.8: autocorrelation of the run times of bags")
    found = real_bags(workload)
    values = found.run_time[found.real]
    _correlation(axes, values, "mean run time of a bag", "green")
    noise = WHITE_NOISE / len(values) ** 0.5
    axes.axhspan(-noise, noise, color=COLOURS["grey"], alpha=0.35, linewidth=0, label="white noise")
    label_below(axes, "lag, bags of two jobs or more")
    axes.legend(**LEGEND, loc="upper right")


def like_neighbours(axes: Axes, workload: Workload) -> None:
    """Draw the times between neighbours with the same requests; Fig. 3.3."""
    begin(axes, "Fig. 3.3: times between like neighbours up to ...")
    found = same_job_gaps(workload)
    if not len(found):
        raise UnavailableError("no two neighbours ask for the same")
    bound = workload.settings.bag_gap_s
    _shares(axes, found, "vermilion", bound, f"{bound:g} s")
    label_below(axes, "time between two that ask for the same")


def bag_durations(axes: Axes, workload: Workload) -> None:
    """Draw how long it takes to submit a bag; Fig. 3.4."""
    begin(axes, "Fig. 3.4: bags submitted within ...")
    found = real_bags(workload)
    _shares(axes, found.duration[found.real], "purple", SHORT_S, "15 min")
    label_below(axes, "from the first job of a bag to its last")


def repeated_run_times(axes: Axes, workload: Workload) -> None:
    """Draw how many repetitions of like run times have each length; Fig. 3.2."""
    draw_repetitions(axes, workload, "runs", "Fig. 3.2: repetitions of like run times, by length")


def sizes_of_bags(axes: Axes, workload: Workload) -> None:
    """Draw how many bags there are of each size; Fig. 3.5."""
    draw_repetitions(axes, workload, "bags", "Fig. 3.5: bags by size, single jobs too")


def times_between_bags(axes: Axes, workload: Workload) -> None:
    """Draw the times between bags with the five fits; Fig. 3.6."""
    draw_bag_gaps(axes, workload, "Fig. 3.6: times between bags up to ...")
    legend = axes.get_legend()
    if legend is not None:  # on panels of this size it would cover lines
        legend.set_frame_on(True)
        legend.get_frame().set(facecolor="white", edgecolor="none", alpha=0.85)


def cycles(axes: Axes, workload: Workload) -> None:
    """Draw the autocorrelation of the rates of jobs and bags; Fig. 3.7."""
    draw_acf(axes, workload, title="Fig. 3.7: autocorrelation of rates")


def _correlation(axes: Axes, values: Floats, label: str, colour: str) -> None:
    lags = min(LAGS, len(values) - 1)
    found = series.autocorrelation(values, lags)[1:]
    axes.plot(np.arange(1, lags + 1), found, color=COLOURS[colour], linewidth=1.4, label=label)
    axes.axhline(0, color="#888888", linewidth=0.8, zorder=0.6)
    axes.set_xlim(0, LAGS)


def _shares(axes: Axes, times: Floats, colour: str, bound: float, name: str) -> None:
    """Draw the cumulative share of times (s), and a line at a bound of the text."""
    x, share = series.cdf(np.maximum(times, 1))
    axes.step(x, share, where="post", color=COLOURS[colour], linewidth=1.6)
    axes.axvline(bound, color="black", linewidth=0.8, linestyle=(0, (4, 3)), label=name)
    logarithmic_times(axes, 1, max(float(x[-1]), 10 * HOUR))
    percent(axes)
    axes.legend(**LEGEND, loc="lower right")


#: What a sheet shows.
PANELS: tuple[Panel, ...] = (
    times_between_jobs,
    correlation_of_arrivals,
    repeated_run_times,
    like_neighbours,
    bag_durations,
    sizes_of_bags,
    times_between_bags,
    cycles,
    correlation_of_bag_run_times,
)


def sheet(one: TraceOutcomes) -> Figure:
    """Figures 3.1 to 3.8 on one trace."""
    rows = -(-len(PANELS) // COLUMNS)
    width, height = COLUMNS * WIDTH, HEAD + rows * HEIGHT
    figure = new_figure(
        width, height, f"{one.trace}: {one.workload.name}",
        f"{len(one.workload):,} completed jobs; figures of Minh 2012, chapter 3; "
        "dashed: bounds of the text",
    )  # fmt: skip
    room = margins(figure, 0.55, 0.2, 0.5, HEAD)
    axes = panels(figure, rows, COLUMNS, **room, wspace=0.2, hspace=0.45)
    for panel, draw in zip(axes, PANELS, strict=True):
        try:
            draw(panel, one.workload)
        except UnavailableError as error:
            nothing(panel, f"not available: {error}")
    return figure
