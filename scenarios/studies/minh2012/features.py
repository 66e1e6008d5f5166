"""Minh 2012, chapter 3: the study, its output, and how it is run.

Several versions of a log may be available. The one whose number of completed jobs is nearest to
that of Table 3.1 is measured; the others are listed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.bags import (
    PARAMETERS,
    SHORT_S,
    TITLES,
    bag_fit,
    bag_hurst,
    bags,
    real_bags,
    same_job_gaps,
)
from hpcrowd.analysis.features.draw import (
    BETWEEN,
    draw_acf,
    draw_bag_gaps,
    draw_ccdf,
    draw_repetitions,
)
from hpcrowd.analysis.features.jobs import arrival_counts, arrival_hurst, gaps
from hpcrowd.analysis.features.locality import Zipf, bag_zipf, repetition_zipf, repetitions
from hpcrowd.analysis.features.panels import begin, label_below, logarithmic_times, nothing, percent
from hpcrowd.analysis.features.stats import FEATURES
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, margins, new_figure, panels
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.scenarios.studies.minh2012.features_measures import (
    LAGS,
    STUDIED,
    TABLED,
    TABLES,
    UNREADABLE,
    WHITE_NOISE,
    Cell,
    TraceOutcomes,
    nothing_required,
    published_jobs,
    study_trace,
)
from hpcrowd.scenarios.studies.options import TRACES
from hpcrowd.scenarios.studies.render import Picture, Table
from hpcrowd.scenarios.studies.running import nearest_versions
from hpcrowd.scenarios.studies.study import (
    Claim,
    Finding,
    PublishedStudy,
    Requirement,
    claims_of,
    rules_of,
)
from hpcrowd.scenarios.terminal import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# ---- statements of the text ------------------------------------------------------------------
# Statements on all traces are checked on every available trace, including those not in the thesis.
# The bounds of the rules are ours, each with its reason; most were set after the features of HPC,
# LLN, SDD and FS1 had been seen, so on these four they do not test the statements.

#: A correlation below this is negligible: it explains less than 1 % of the variance.
NONE = 0.1

#: "Much larger" than a CV of 1: four times the variance of Poisson arrivals of the same rate.
MUCH_LARGER = 2.0

#: A cycle counts from here on: a smaller one cannot be seen on an axis from 0 to 1. A clear one has
#: twice that. Measured is the autocorrelation at the cycle's length less that around it.
CYCLE, CLEAR_CYCLE = 0.05, 0.1

#: "Most": more than half. "Almost 100 %": at least 95 %.
MOST, ALMOST_ALL = 0.5, 0.95

#: Bags are "common" from the smallest share of Table 3.7 on, roughly: a third of the jobs.
COMMON = 1 / 3

#: "Hundreds of jobs" in the largest bag.
HUNDREDS = 100

#: KS distances "close to 0": the thesis says so of 0.074 and 0.054.
CLOSE = 0.1

#: Measures a workload.
Check = Callable[[Workload], Finding]


def _number(workload: Workload, name: str) -> float:
    return float(FEATURES[name].measure(workload))


def _bound(name: str, holds: Callable[[float], bool], digits: int = 2) -> Check:
    """Return a check of one feature of the catalogue."""

    def check(workload: Workload) -> Finding:
        number = _number(workload, name)
        percent = name.endswith("_share")
        text = f"{100 * number:.1f} %" if percent else f"{number:.{digits}f}"
        return {name: number}, text, holds(number)

    return check


def _mean_correlation(values: Floats) -> float:
    return float(np.abs(series.autocorrelation(values, LAGS)[1:]).mean())


def _uncorrelated(workload: Workload) -> Finding:
    times, rate = _mean_correlation(gaps(workload)), _mean_correlation(arrival_counts(workload))
    band = WHITE_NOISE / len(arrival_counts(workload)) ** 0.5
    numbers = {"interarrival_times": times, "rates": rate, "white_noise_of_rates": band}
    words = f"{times:.3f}, rates {rate:.3f} (noise {band:.3f})"
    return numbers, words, times < NONE and rate > max(band, times)


def _dependent(workload: Workload) -> Finding:
    found = arrival_hurst(workload)
    words = f"{found.mean:.2f} ± {found.sd:.2f}"
    return {"mean": found.mean, "sd": found.sd}, words, found.mean - found.sd > 0.5


def _pareto(workload: Workload) -> Finding:
    ks = {name: bag_fit(workload, name).ks for name in PARAMETERS}
    best = min(ks, key=lambda name: ks[name])
    words = f"{ks['generalized_pareto']:.3f}; best {TITLES[best]}"
    words += "" if best == "generalized_pareto" else f", {ks[best]:.3f}"
    return ks, words, ks["generalized_pareto"] <= max(ks[best], CLOSE * (best == "weibull"))


def _zipf(lengths: Int64s, fitted: Zipf) -> Finding:
    """Return the distance of the lengths from the likeliest Zipf distribution."""
    x = np.arange(1, int(lengths.max()) + 1)
    data = np.cumsum(np.bincount(lengths)[1:]) / len(lengths)
    ks = float(np.abs(data - np.cumsum(fitted.probability(x))).max())
    numbers = {"ks": ks, "exponent": fitted.exponent}
    return numbers, f"{ks:.3f} (exponent {fitted.exponent:.2f})", ks < CLOSE


def _run_lengths(workload: Workload) -> Finding:
    return _zipf(repetitions(workload), repetition_zipf(workload))


def _bag_sizes(workload: Workload) -> Finding:
    return _zipf(bags(workload).size, bag_zipf(workload))


def _cycles(workload: Workload, expected: Mapping[str, Callable[[float], bool]]) -> Finding:
    numbers = {name: _number(workload, name) for name in expected}
    words = ", ".join(f"{_SHORT[name]} {number:.2f}" for name, number in numbers.items())
    return numbers, words, all(expected[name](number) for name, number in numbers.items())


#: Cycles in few words.
_SHORT = {
    "daily_cycle": "jobs daily",
    "weekly_cycle": "jobs weekly",
    "bag_daily_cycle": "bags daily",
    "bag_weekly_cycle": "bags weekly",
}


def _absent(number: float) -> bool:
    return number < CYCLE


def _there(number: float) -> bool:
    return number >= CYCLE


def _clear(number: float) -> bool:
    return number >= CLEAR_CYCLE


def _cycle(**expected: Callable[[float], bool]) -> Check:
    """Return a check of cycles by name."""
    return partial(_cycles, expected=expected)


def _compared(workload: Workload, larger: str) -> Finding:
    jobs, bags = arrival_hurst(workload), bag_hurst(workload)
    numbers = {"jobs": jobs.mean, "jobs_sd": jobs.sd, "bags": bags.mean, "bags_sd": bags.sd}
    words = f"jobs {jobs.mean:.2f} ± {jobs.sd:.2f}, bags {bags.mean:.2f} ± {bags.sd:.2f}"
    if larger == "none":
        return numbers, words, abs(bags.mean - jobs.mean) <= jobs.sd + bags.sd
    return numbers, words, (bags.mean > jobs.mean) is (larger == "bags")


def _bag_run_times(workload: Workload) -> Finding:
    bags = int(np.count_nonzero(real_bags(workload).real))
    number, band = _number(workload, "bag_run_time_acf1"), WHITE_NOISE / bags**0.5
    return {"lag_1": number, "noise": band}, f"{number:.2f} (noise {band:.2f})", number > band


def _jobs_more_than_bags(workload: Workload) -> Finding:
    jobs = float(series.autocorrelation(workload.run_time, 1)[1])
    bags = _number(workload, "bag_run_time_acf1")
    return {"jobs": jobs, "bags": bags}, f"jobs {jobs:.2f}, bags {bags:.2f}", jobs > bags


def _waits(workload: Workload) -> Finding:
    wait, work = _number(workload, "bag_wait_share"), _number(workload, "bag_occupation_share")
    words = f"{100 * wait:.0f} % of waits, {100 * work:.0f} % of occupation"
    return {"waits": wait, "occupation": work}, words, wait > MOST and wait > work


def _short_bag_jobs(workload: Workload) -> Finding:
    inside, every = (_number(workload, f"{name}run_time_mean_s") for name in ("bag_job_", ""))
    numbers = {"in_bags_s": inside, "all_s": every}
    return numbers, f"{inside / 60:.1f} min, all {every / 60:.1f} min", inside < every / 2


#: Every statement that is checked, in the order of the text.
RULES = rules_of(
    "minh2012/features_statements",
    {
        "rates are correlated, interarrival times are not": _uncorrelated,
        "long range dependence": _dependent,
        "jobs are bursty": _bound("interarrival_cv", lambda number: number >= MUCH_LARGER),
        "negative correlation": _bound(
            "run_time_processors_spearman", lambda number: number <= -NONE, 3
        ),
        "no correlation": _bound(
            "run_time_processors_spearman", lambda number: abs(number) < NONE, 3
        ),
        "positive correlation": _bound(
            "run_time_processors_spearman", lambda number: number >= NONE, 3
        ),
        "run lengths are Zipf's": _run_lengths,
        "spatial burstiness": _bound("normalized_entropy", lambda number: number < 0.5, 3),
        "like neighbours follow soon": _bound(
            "bag_same_job_gap_share", lambda number: number > MOST
        ),
        "bags are common": _bound("jobs_in_bags_share", lambda number: number >= COMMON),
        "like run times in a bag": _bound("bag_run_time_cv_mean", lambda number: number < 0.5),
        "bags are submitted soon": _bound(
            "bag_duration_short_share", lambda number: number >= ALMOST_ALL
        ),
        "bag sizes are Zipf's": _bag_sizes,
        "generalized Pareto": _pareto,
        "bags are bursty": _bound("bag_interarrival_cv", lambda number: number >= MUCH_LARGER),
        "LLN: weekly cycles": _cycle(weekly_cycle=_there, bag_weekly_cycle=_there),
        "HPC: daily cycle of bags": _cycle(
            daily_cycle=_absent, weekly_cycle=_absent, bag_daily_cycle=_clear
        ),
        "FS3: daily cycle of bags": _cycle(daily_cycle=_absent, bag_daily_cycle=_there),
        "FS2: daily cycle of jobs": _cycle(
            daily_cycle=lambda number: _there(number) and not _clear(number),
            bag_daily_cycle=_absent,
            bag_weekly_cycle=_absent,
        ),
        "FS0: weekly of jobs, daily of bags": _cycle(weekly_cycle=_there, bag_daily_cycle=_there),
        "jobs and bags equally dependent": partial(_compared, larger="none"),
        "bags more dependent": partial(_compared, larger="bags"),
        "jobs more dependent": partial(_compared, larger="jobs"),
        "run times of bags": _bag_run_times,
        "run times of jobs": _jobs_more_than_bags,
        "bags are large": _bound("bag_size_max", lambda number: number >= HUNDREDS, 0),
        "large bags run longer": _bound("bag_size_run_time_spearman", lambda number: number > 0, 3),
        "large bags of small jobs": _bound(
            "bag_size_processors_spearman", lambda number: number < 0, 3
        ),
        "large bags ask for less": _bound(
            "bag_size_requested_time_spearman", lambda number: number <= -NONE, 3
        ),
        "large bags ask for more": _bound(
            "bag_size_requested_time_spearman", lambda number: number >= NONE, 3
        ),
        "estimates of LLN": _bound(
            "requested_time_share", lambda number: abs(number - 0.35) <= 0.005
        ),
        "short jobs in bags": _short_bag_jobs,
        "bags wait": _waits,
    },
)


# ---- the study -------------------------------------------------------------------------------


#: Tables of the fits, which are shown separately.
FITS = ("3.9", "3.10")


@dataclass
class Minh2012Features(PublishedStudy):
    """Features of the traces of Table 3.1."""

    listed = TABLED
    unreadable = UNREADABLE
    written: ClassVar = {"traces": "traces", "rules": "tables_required", "figures": "cells"}

    traces: dict[str, TraceOutcomes]  #: The results by the abbreviation of the trace.

    @cached_property
    def cells(self) -> list[Cell]:
        """Every published figure of the available traces, table by table."""
        cells = [cell for one in self.traces.values() for cell in one.cells]
        return sorted(cells, key=lambda cell: TABLES.index(cell.table))

    @cached_property
    def requirements(self) -> list[Requirement]:
        """The required figures."""
        return [
            Requirement(
                cell.trace,
                f"{cell.table.number}, {cell.title}",
                cell.text,
                f"{cell.published.text}, {cell.table.rule}",
                bool(cell.met),
            )
            for cell in self.cells
            if cell.required
        ]

    @cached_property
    def claims(self) -> list[Claim]:
        """Every statement of the text on every trace where it can be checked."""
        return claims_of(RULES, {name: one.workload for name, one in self.traces.items()})

    def tables(self) -> Sequence[Table]:
        """Return the traces, the figures with ours, and what is required."""
        return self.tables_of(
            {
                "traces": map(trace_row, self.traces.values()),
                "figures": figure_rows(self, fits=False),
                "fits": figure_rows(self, fits=True),
                "rules": rule_rows(),
            }
        )

    def summary(self) -> list[str]:
        """Return what was reached and what holds, a line each."""
        required = [cell for cell in self.cells if cell.required]
        to_the_digit = sum(cell.reached == "digit" for cell in required)
        return [
            f"{self.score} required figures reached, {to_the_digit} of them to the printed digit",
            self.checked,
            *nothing_required(self.traces),
        ]

    def pictures(self) -> Sequence[Picture]:
        """Return a sheet for each trace."""
        return [Picture.of(name.lower(), sheet, one) for name, one in self.traces.items()]

    @property
    def tables_required(self) -> list[dict[str, str]]:
        """What is required of each table."""
        heading = self.declared["rules"]["heading"]
        return [dict(zip(heading, row, strict=True)) for row in rule_rows()]


def reached_text(cell: Cell) -> str:
    """Return how our figure agrees, in words; "no" only for required figures."""
    if cell.required and not cell.met:
        return "no"
    if cell.ours.number is None:
        return "-"
    if cell.reached == "digit":
        return "yes"
    if cell.reached == "within":
        return cell.table.rule
    if cell.reached == "orders":
        return "over orders"
    return "differs"


def figure_row(cell: Cell) -> list[str]:
    """Return a figure as a row of its table."""
    printed = f"{cell.published.value:,.{cell.published.decimals}f}"
    first = [cell.table.number, cell.title, cell.trace]
    return [*first, cell.text, cell.range_text or "-", printed, reached_text(cell)]


def figure_rows(study: Minh2012Features, fits: bool) -> list[list[str]]:
    """Return the figures of the fits, or those of all other tables."""
    return [figure_row(cell) for cell in study.cells if (cell.table.number in FITS) is fits]


def rule_rows() -> list[list[str]]:
    """Return the requirements of each table."""
    return [
        [
            table.number,
            table.title,
            "all" if table.required is None else ", ".join(table.required) or "-",
            table.rule,
            table.reason,
        ]
        for table in TABLES
    ]


def trace_row(one: TraceOutcomes) -> list[str]:
    """Return the file of a trace."""
    return [
        one.trace,
        str(one.file.get("source", one.workload.name)),
        f"{len(one.workload):,}",
        f"{published_jobs(one.trace):,}",
        "yes" if one.is_that_of_the_thesis else "other jobs, none required",
    ]


def reproduce_minh2012_features(
    traces: Annotated[str | os.PathLike[str], TRACES],
    progress: Progress | None = None,
    *,
    only: Iterable[str] = STUDIED,
) -> Minh2012Features:
    """Run the study on every available trace.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    progress
        Called before each step.
    only
        Abbreviations of the traces to look for.

    Raises
    ------
    TraceError
        When there is no trace at all, or one that cannot be read or has no job.
    """
    wanted = set(only)
    logs = {name: log for name, log in STUDIED.items() if name in wanted}
    read = nearest_versions(traces, logs, published_jobs, progress)
    outcomes = {name: study_trace(name, workload, facts) for name, workload, facts in read}
    return Minh2012Features(outcomes)


# ---- pictures: Figures 3.1 to 3.8, a sheet for each trace ------------------------------------

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
