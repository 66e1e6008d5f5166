"""Madon et al. 2024: what the text says in ranges, and what Fig. 5c leaves open.

Fig. 5c prints percentiles over users of their additional lateness, but not what becomes of a user
with a single job, for whom Eq. 6 divides by zero, nor how a percentile between two users is taken.
:func:`figure5c_readings` tries the readings against the printed figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.madon2024 import WINDOW_MONTHS, Comparison, window_of
from analysis.metrics import PERCENTILES
from analysis.published import Printed, published_rows
from analysis.run import Run

#: s; the distance to a published percentile smaller than this is relative to this instead.
SMALLEST_SCALE = 100.0

#: What becomes of users with a single job.
SINGLES = ("left out", "0", "lateness")

#: What twice the mean lateness of n jobs is divided by; Eq. 6 says n - 1.
DIVISORS = ("n - 1", "n")

#: Jobs that count: all that were submitted, or those that ran (rejected ones left out).
JOBS = ("submitted", "ran")

Method = Literal[
    "linear", "lower", "higher", "nearest", "midpoint", "hazen", "weibull", "median_unbiased"
]

#: Percentile methods, as ``numpy.percentile`` names them.
METHODS: tuple[Method, ...] = (
    "linear",
    "lower",
    "higher",
    "nearest",
    "midpoint",
    "hazen",
    "weibull",
    "median_unbiased",
)


@dataclass(frozen=True)
class Reading:
    """One reading of Fig. 5c and how near it comes.

    Attributes
    ----------
    log, singles, divisor, jobs, method
        What was tried.
    distance
        Mean over the cells of |ours - published| / max(|published|, 100 s).
    exact
        Cells equal at the printed precision.
    """

    log: str
    singles: str
    divisor: str
    jobs: str
    method: str
    distance: float
    exact: int


def figure5c_readings(study: Comparison) -> list[Reading]:
    """Return every reading of Fig. 5c tried on every log, nearest to the published one first."""
    found = []
    rows = published_rows("madon2024_figure5c")
    for log in study.logs.values():
        printed = [[Printed(row[f"{log.log.lower()}_p{p}_s"]) for p in PERCENTILES] for row in rows]
        published = np.array([[cell.value for cell in row] for row in printed])
        half = np.array([[cell.half_unit for cell in row] for row in printed])
        runs = [log.runs[row["experiment"], row["replay"]] for row in rows]
        for singles, divisor, jobs in product(SINGLES, DIVISORS, JOBS):
            users = [_additional(run, singles, divisor, jobs) for run in runs]
            if not all(len(values) for values in users):
                continue
            for method in METHODS:
                ours = np.array(
                    [np.percentile(values, PERCENTILES, method=method) for values in users]
                )
                off = np.abs(ours - published)
                scale = np.maximum(np.abs(published), SMALLEST_SCALE)
                found.append(
                    Reading(
                        log=log.log,
                        singles=singles,
                        divisor=divisor,
                        jobs=jobs,
                        method=method,
                        distance=round(float((off / scale).mean()), 6),
                        exact=int(np.count_nonzero(off <= half)),
                    )
                )
    return sorted(found, key=lambda reading: reading.distance)


def _additional(run: Run, singles: str, divisor: str, which: str) -> NDArray[Any]:
    """Return the additional lateness of each user in one reading, s."""
    jobs = run.jobs
    counted = jobs.over if which == "ran" else np.ones(len(jobs), bool)
    _, user = np.unique(jobs.user[counted], return_inverse=True)
    late = (jobs.submit - jobs.recorded_submit)[counted]
    count = np.bincount(user)
    mean = np.bincount(user, late) / count
    below = np.maximum(count - 1 if divisor == "n - 1" else count, 1)
    values: NDArray[Any] = np.where(count > 1, 2 * mean / below, mean if singles != "0" else 0)
    return values[count > 1] if singles == "left out" else values


@dataclass(frozen=True)
class Statement:
    """A range that the text gives, and the range we find.

    Attributes
    ----------
    what, place, unit
        What is said, and where.
    low, high
        Published.
    our_low, our_high
        Ours, over the named runs and, for Fig. 9, its three windows.
    """

    what: str
    place: str
    unit: str
    low: float
    high: float
    our_low: float
    our_high: float


#: Words for the statements in ``published/madon2024_text.csv``.
_WORDS = {
    "mean_wait": "mean wait, all replays",
    "utilization_rigid": "utilization, rigid",
    "utilization_feedback": "utilization, a0 and a60",
    "utilization_all": "utilization, all replays",
    "throughput_gain": "throughput gain of a0 and a60 over rigid",
}


def statements(study: Comparison) -> list[Statement]:
    """Return the ranges of the text that concern KTH, with ours."""
    log = study.logs["KTH"]
    found = []
    for row in published_rows("madon2024_text"):
        kind, values = row["statement"], []
        for experiment in row["experiments"].split():
            runs = {replay: log.runs[experiment, replay] for replay in ("rigid", "a0", "a60")}
            if kind == "mean_wait":
                values += [run.metrics["wait_mean_s"] or 0.0 for run in runs.values()]
            elif kind == "throughput_gain":
                values += _gains(runs["rigid"], (runs["a0"], runs["a60"]))
            else:
                chosen = {"rigid": ("rigid",), "feedback": ("a0", "a60"), "all": tuple(runs)}
                for replay in chosen[kind.partition("_")[2]]:
                    values += _utilizations(runs[replay])
        found.append(
            Statement(
                what=f"{_WORDS[kind]}, {row['experiments'].replace(' ', ', ')}",
                place=row["place"],
                unit=row["unit"],
                low=float(row["low"]),
                high=float(row["high"]),
                our_low=min(values),
                our_high=max(values),
            )
        )
    return found


def _utilizations(run: Run) -> list[float]:
    """Return the utilization in each window, %."""
    return [100 * window_of(run, months).utilization for months in WINDOW_MONTHS]


def _gains(rigid: Run, others: Iterable[Run]) -> list[float]:
    """Return the gain in throughput over ``rigid`` in each window, %."""
    gains = []
    for run in others:
        for months in WINDOW_MONTHS:
            base = window_of(rigid, months).throughput_jobs_per_day
            if base:
                ratio = window_of(run, months).throughput_jobs_per_day / base
                gains.append(100 * (ratio - 1))
    return gains or [0.0]
