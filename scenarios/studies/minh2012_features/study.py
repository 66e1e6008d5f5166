"""Minh 2012, chapter 3: the study, its output, and how it is run.

Several versions of a log may be available. The one whose number of completed jobs is nearest to
that of Table 3.1 is measured; the others are listed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, ClassVar

import numpy as np

from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.bags import PARAMETERS, TITLES, bag_fit, bag_hurst, bags, real_bags
from hpcrowd.analysis.features.jobs import arrival_counts, arrival_hurst, gaps
from hpcrowd.analysis.features.locality import Zipf, bag_zipf, repetition_zipf, repetitions
from hpcrowd.analysis.features.stats import FEATURES
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.environment.jobs import Int64s
from hpcrowd.scenarios.studies.minh2012_features.figures import sheet
from hpcrowd.scenarios.studies.minh2012_features.measures import (
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
from hpcrowd.scenarios.studies.published import MINH
from hpcrowd.scenarios.studies.render import (
    Picture,
    Table,
)
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
    "minh2012_features",
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

#: Headings of the figures, of the requirements of each table, and of traces.
FIGURE_TABLE = ("table", "figure", "trace", "ours", "over orders", "published", "reached")
RULE_TABLE = ("table", "what", "required", "how near", "why so")
TRACE_TABLE = ("trace", "file", "jobs", "Table 3.1", "figures required")

#: Headings of the figures on a terminal.
SHOWN = dict(enumerate((*FIGURE_TABLE[:5], "paper", "reached")))

#: Tables of the fits, which are shown separately.
FITS = ("3.9", "3.10")


@dataclass
class Minh2012Features(PublishedStudy):
    """Features of the traces of Table 3.1.

    Attributes
    ----------
    traces
        The results by the abbreviation of the trace.
    """

    counted_in = "Table 3.1"
    name = "minh2012-features"
    about = "Minh 2012, chapter 3: features of workloads, Tables 3.2 to 3.20 and the text."
    title = "Features of workloads, reproduced"
    source = f"{MINH}, chapter 3"
    published: ClassVar = {
        "minh2012_table3_1": f"{MINH}, Table 3.1: traces, and how many of their jobs completed",
        "minh2012_chapter3": f"{MINH}, Tables 3.2 to 3.8 and 3.11 to 3.20: figures of traces",
        "minh2012_bag_fits": f"{MINH}, Tables 3.9 and 3.10: distributions fitted to the times "
        "between bags of tasks, their parameters and KS distances",
    }
    setting = "trace"
    listed = TABLED
    unreadable = UNREADABLE
    written: ClassVar = {"traces": "traces", "rules": "tables_required", "figures": "cells"}

    traces: dict[str, TraceOutcomes]

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
        return (
            Table(
                "Traces", TRACE_TABLE, list(map(trace_row, self.traces.values())), 2, "traces",
                terminal=False,
            ),
            Table(
                "Tables 3.2 to 3.8 and 3.11 to 3.20: ours and published", FIGURE_TABLE,
                figure_rows(self, fits=False), 3, "figures", columns=SHOWN, wrap=True,
            ),
            Table(
                "Tables 3.9 and 3.10: distributions fitted to the times between bags", FIGURE_TABLE,
                figure_rows(self, fits=True), 3, "fits", columns=SHOWN, wrap=True,
            ),
            Table("What is required", RULE_TABLE, rule_rows(), 5, "rules", terminal=False),
        )  # fmt: skip

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
        return [dict(zip(RULE_TABLE, row, strict=True)) for row in rule_rows()]


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
    """Return a figure as the texts of :data:`FIGURE_TABLE`."""
    printed = f"{cell.published.value:,.{cell.published.decimals}f}"
    first = [cell.table.number, cell.title, cell.trace]
    return [*first, cell.text, cell.range_text or "-", printed, reached_text(cell)]


def figure_rows(study: Minh2012Features, fits: bool) -> list[list[str]]:
    """Return the figures of the fits, or those of all other tables."""
    return [figure_row(cell) for cell in study.cells if (cell.table.number in FITS) is fits]


def rule_rows() -> list[list[str]]:
    """Return the requirements of each table as the texts of :data:`RULE_TABLE`."""
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
    """Return the file of a trace as the texts of :data:`TRACE_TABLE`."""
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
