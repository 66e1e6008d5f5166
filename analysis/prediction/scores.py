"""How well run times are predicted: a predictor driven through a recorded trace; and requests.

The jobs of the trace arrive and end in the order of time, as recorded, and the very predictor that
a simulation would ask is asked at each arrival. It is given a table in which no run time stands: a
job's becomes known when it ends, and not before. The first part of the jobs trains, or fills the
history; figures are of the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, State
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.schedulers.predictors.base import Events, Predictor
from hpcrowd.environment.traces.requested_times import POPULAR, most_popular
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace

#: Status of jobs that finished successfully; only they are predicted (thesis section 8.2).
COMPLETED = 1

#: Jobs that train (our reading of thesis section 8.3.3, which says "the first part"); a trace that
#: would leave fewer than half as many for the test is cut in half.
TRAINING_JOBS = 30_000

#: Seconds in a minute: errors are in minutes, as published.
MINUTE = 60


@dataclass
class PastJobs:
    """Jobs of a trace to predict, and what a predictor hears of them.

    Attributes
    ----------
    jobs
        The jobs as a predictor may see them: run times and ends are unknown.
    run
        Their run times, s, shape (jobs,).
    end
        When each ended, s since the origin, shape (jobs,).
    left_out
        Jobs of the trace that are not among them, by reason.
    facts
        Which trace it is.
    """

    jobs: JobTable
    run: Int64s
    end: Int64s
    left_out: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.events = Events.of(self.jobs.submit, self.end)

    def __len__(self) -> int:
        return len(self.jobs)

    def first(self, count: int) -> PastJobs:
        """Return the first ``count`` jobs as if there were no others."""
        rows = np.arange(min(count, len(self)))
        jobs = self.jobs.copy() if len(rows) == len(self) else self.jobs.take(rows)
        jobs.matrix = np.ascontiguousarray(jobs.matrix)
        return PastJobs(jobs, self.run[rows], self.end[rows], facts=self.facts)

    @property
    def size_s(self) -> float:
        """Sum of all run times, s."""
        return float(self.run.sum())


def past_jobs(trace: Trace, years: tuple[int, int] | None = None) -> PastJobs:
    """Return the jobs of a trace that can be predicted: status 1, with a requested time.

    Parameters
    ----------
    trace
        What was recorded.
    years
        Only jobs that were submitted from the first to the last of these calendar years, in local
        time; None takes all.

    Raises
    ------
    TraceError
        When no job is left, or the trace does not say when it began and years are asked for.
    """
    keep = np.ones(len(trace), bool)
    left_out: dict[str, int] = {}

    def leave_out(reason: str, which: np.ndarray) -> None:
        count = int(np.count_nonzero(which & keep))
        if count:
            left_out[reason] = count
            keep[which] = False

    if years is not None:
        begin, end = _edges(trace, years)
        submit = trace["submit"]
        leave_out(f"not submitted in {_named(years)}", (submit < begin) | (submit >= end))
    leave_out("status is not 1", trace["status"] != COMPLETED)
    # A request that is made from the run time would tell it.
    leave_out("no requested time", trace["requested_time"] <= 0)
    if not keep.any():
        reasons = ", ".join(f"{plural(n, 'job')} {why}" for why, n in left_out.items())
        raise TraceError(f"{trace.source}: no job to predict: {reasons or 'it has no jobs'}")
    columns = {name: values[keep] for name, values in trace.columns.items()}
    converted = jobs_from_trace(Trace(trace.header, columns, source=trace.source))
    jobs = converted.jobs
    order = np.lexsort((jobs.number, jobs.recorded_submit))
    jobs = jobs.take(order.astype(np.int64))
    jobs.matrix = np.ascontiguousarray(jobs.matrix)
    left_out |= converted.dropped
    run, end_of = jobs.run_time.copy(), jobs.recorded_end.copy()
    jobs.submit[:], jobs.start[:] = jobs.recorded_submit, jobs.recorded_start
    jobs.run_time[:] = jobs.recorded_end[:] = UNKNOWN
    facts = {
        "source": Path(trace.source).name,
        "sha256": trace.sha256,
        "years": None if years is None else list(years),
        "jobs": len(jobs),
        "left_out": left_out,
    }
    return PastJobs(jobs, run, end_of, left_out, facts)


def parse_years(text: str) -> tuple[int, int]:
    """Return the first and last calendar year that ``text`` means: ``2004``, ``2005-2006``.

    Raises
    ------
    QuantityError
        When it means none.
    """
    first, dash, last = text.partition("-")
    if not re.fullmatch(r"\d{4}(-\d{4})?", text, re.ASCII) or (dash and last < first):
        raise QuantityError(f"years {text!r}: write a year, or two in order, such as 2005-2006")
    return int(first), int(last or first)


def _named(years: tuple[int, int]) -> str:
    return f"{years[0]}" if years[0] == years[1] else f"{years[0]} to {years[1]}"


def _edges(trace: Trace, years: tuple[int, int]) -> tuple[int, int]:
    """Return the seconds at which calendar years begin and end in local time."""
    clock = Clock.of(trace.header)
    if clock.nominal:
        raise TraceError(
            f"{trace.source}: no UnixStartTime in the header, so no job is of {_named(years)}; "
            "leave the years out"
        )
    first, last = (
        int(datetime(year, 1, 1, tzinfo=clock.zone).timestamp()) - clock.unix_start
        for year in (years[0], years[1] + 1)
    )
    return first, last


def training_jobs(text: str, jobs: int) -> int:
    """Return how many jobs train: ``30000``, a share such as ``0.5``, or ``auto``.

    ``auto`` is 30,000, or half of the jobs where that leaves fewer than 15,000 for the test.

    Raises
    ------
    QuantityError
        When ``text`` is none of these, or leaves no job on either side.
    """
    if text == "auto":
        return TRAINING_JOBS if jobs >= 1.5 * TRAINING_JOBS else jobs // 2
    try:
        count = int(text) if text.isdigit() else int(float(text) * jobs)
    except (ValueError, OverflowError):
        count = -1
    if not text.isdigit() and not 0 <= count < jobs:
        raise QuantityError(
            f"split {text!r}: not a number of jobs, a share below 1, or auto; "
            "write for example 30000 or 0.5"
        )
    if not 0 <= count < jobs:
        raise QuantityError(
            f"split {text!r}: trains with {plural(count, 'job')} of {jobs:,}; "
            "at least one has to be left to test"
        )
    return count


@dataclass(frozen=True)
class Accuracy:
    """How well run times were predicted (thesis section 8.4.1).

    Attributes
    ----------
    jobs
        How many were predicted.
    underestimated_share
        Share of jobs that ran longer than predicted, in whole seconds.
    mae_min
        Mean absolute error, min (Eq. 8.10).
    wae_min
        Absolute error weighted with processors times run time, min (Eq. 8.12).
    normalized_error
        Sum of absolute errors over the sum of run times (Eq. 8.11).
    """

    jobs: int
    underestimated_share: float
    mae_min: float
    wae_min: float
    normalized_error: float

    @classmethod
    def of(cls, predicted: Int64s, run: Int64s, processors: Int64s) -> Accuracy:
        """Return the figures of predictions; all in s, shape (jobs,).

        Figures over nothing, such as the weighted error of jobs that all ran 0 s, are 0.
        """
        error = np.abs(predicted - run).astype(np.float64)
        weight = processors.astype(np.float64) * run
        count, area, total = len(run), float(weight.sum()), float(run.sum())
        return cls(
            jobs=count,
            underestimated_share=float(np.mean(predicted < run)) if count else 0.0,
            mae_min=float(error.mean()) / MINUTE if count else 0.0,
            wae_min=float((error * weight).sum()) / area / MINUTE if area else 0.0,
            normalized_error=float(error.sum()) / total if total else 0.0,
        )

    @property
    def fitness(self) -> float:
        """Return Eq. 8.9; it is negative, and the nearer to 0 the better."""
        return -self.normalized_error / float(np.exp((1 - self.underestimated_share) ** 2))


def predict_all(past: PastJobs, predictor: Predictor) -> Int64s:
    """Return what is predicted of each job at its arrival, s, shape (jobs,)."""
    predictor.begin(past.jobs)
    return predictor.follow(past.events)


def evaluate(past: PastJobs, predictor: Predictor, training: int = 0) -> Accuracy:
    """Return how well the jobs after the first ``training`` are predicted.

    The predictor goes through all jobs: those that train are its history.
    """
    return accuracy(past, predict_all(past, predictor), training)


def accuracy(past: PastJobs, predicted: Int64s, training: int = 0) -> Accuracy:
    """Return how good predictions of all jobs are after the first ``training``."""
    return Accuracy.of(predicted[training:], past.run[training:], past.jobs.processors[training:])


def estimate_accuracy(jobs: JobTable) -> Accuracy:
    """Return how good the estimates of a run were, of the jobs that ran to their end.

    Jobs that were killed at their requested time do not count: how long they would have run is not
    known to anybody there.
    """
    rows = np.flatnonzero(jobs.state == State.COMPLETED)
    ran = jobs.end[rows] - jobs.start[rows]
    return Accuracy.of(jobs.estimate[rows], ran, jobs.processors[rows])


def looks_ahead(make: Callable[[], Predictor], past: PastJobs) -> bool:
    """Return whether a predictor looks at run times of jobs that have not ended.

    It is asked three times, with nothing and with two wrong run times in the table. Who does not
    look there says the same each time.
    """
    said = []
    for wrong in (UNKNOWN, 1, 7 * 86_400):
        jobs = past.jobs.copy()
        jobs.run_time[:] = wrong
        for column in (jobs.end, jobs.recorded_end):
            column[:] = UNKNOWN if wrong == UNKNOWN else jobs.start + wrong
        predictor = make()
        predictor.begin(jobs)
        said.append(predictor.follow(past.events))
    return any(not np.array_equal(said[0], other) for other in said[1:])


class RequestScores(NamedTuple):
    """How two sets of requested times differ.

    Attributes
    ----------
    distinct, distinct_other
        Different requests.
    popular_share, popular_share_other
        Share of jobs with one of the twenty most popular requests of their own set.
    in_common
        Requests that are among the twenty most popular ones of both.
    total_variation
        Share of jobs whose request would have to change to get the other distribution, 0 to 1.
    ks
        Largest difference of the cumulative distributions (Kolmogorov and Smirnov), 0 to 1.
    """

    distinct: int
    distinct_other: int
    popular_share: float
    popular_share_other: float
    in_common: int
    total_variation: float
    ks: float


def compare_requests(requested: Int64s, other: Int64s) -> RequestScores:
    """Compare two sets of requested times (s, at least one each); the sets may differ in size.

    Examples
    --------
    >>> import numpy as np
    >>> compare_requests(np.array([60, 60, 300, 900]), np.array([60, 300])).ks
    0.25
    """
    both, places = np.unique(np.concatenate([requested, other]), return_inverse=True)
    first = np.bincount(places[: len(requested)], minlength=len(both)) / len(requested)
    second = np.bincount(places[len(requested) :], minlength=len(both)) / len(other)
    times, counts = most_popular(requested, POPULAR)
    times_other, counts_other = most_popular(other, POPULAR)
    return RequestScores(
        distinct=int(np.count_nonzero(first)),
        distinct_other=int(np.count_nonzero(second)),
        popular_share=int(counts.sum()) / len(requested),
        popular_share_other=int(counts_other.sum()) / len(other),
        in_common=len(np.intersect1d(times, times_other)),
        total_variation=float(np.abs(first - second).sum() / 2),
        ks=float(np.abs(np.cumsum(first - second)).max()),
    )
