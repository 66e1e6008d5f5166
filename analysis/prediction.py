"""Accuracy of run time predictions, and training of the history-based predictor.

A predictor goes through a recorded trace: jobs arrive and end in order of time, as recorded, and
each arrival asks the same predictor as a simulation would. Its table of jobs has no run times: a
job's run time becomes known when it ends, not before. The first part of the jobs trains the
predictor, or fills its history; figures are of the rest.

Training is an evolutionary search (thesis section 8.3.3). Differential evolution
(``scipy.optimize.differential_evolution``) looks for the template, the pivot and N, K, alpha and
beta of both groups that maximize Eq. 8.9 on the training part; nothing else is used. Several seeds
search in parallel, one per thread, since evaluations are compiled code that runs in parallel; the
best of them is taken.

A budget of evaluations gives the same parameters on any machine; a budget of time does not.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, State
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.schedulers.estimates import Events, Predictor
from hpcrowd.environment.schedulers.predictors.experience import ATTRIBUTES
from hpcrowd.environment.schedulers.predictors.history import (
    Group,
    HistoryParameters,
    HistoryPredictor,
)
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace, tally

#: Status of jobs that finished successfully; only they are predicted (thesis section 8.2).
COMPLETED = 1

#: Training jobs (our reading of thesis section 8.3.3, which says "the first part"); if fewer than
#: half as many would be left for the test, the trace is cut in half.
TRAINING_JOBS = 30_000

#: Seconds in a minute: errors are in minutes, as published.
MINUTE = 60


@dataclass
class PastJobs:
    """Jobs of a trace to predict, and what a predictor may see of them.

    Attributes
    ----------
    jobs
        The jobs as a predictor may see them: run times and ends are unknown.
    run
        Their run times, s, shape (jobs,).
    end
        When each ended, s since the origin, shape (jobs,).
    left_out
        Number of jobs of the trace that are left out, by reason.
    facts
        Facts about the trace.
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


def past_jobs(trace: Trace, years: tuple[int, int] | None = None) -> PastJobs:
    """Return the jobs of a trace that can be predicted: those of status 1 with a requested time.

    Parameters
    ----------
    trace
        The recorded trace.
    years
        Take only jobs submitted from the first to the last of these calendar years, local time;
        None takes all.

    Raises
    ------
    TraceError
        When no job is left, or years are given but the trace does not give its start.
    """
    keep = np.ones(len(trace), bool)
    left_out: Counter[str] = Counter()

    def leave_out(reason: str, which: np.ndarray) -> None:
        tally(left_out, reason, which & keep)
        keep[which] = False

    if years is not None:
        begin, end = _edges(trace, years)
        submit = trace["submit"]
        leave_out(f"not submitted in {_named(years)}", (submit < begin) | (submit >= end))
    leave_out("status is not 1", trace["status"] != COMPLETED)
    # A request derived from the run time would reveal it.
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
    """Return the first and last calendar year of a text such as ``2004`` or ``2005-2006``.

    Raises
    ------
    QuantityError
        When it is neither.
    """
    first, dash, last = text.partition("-")
    if not re.fullmatch(r"\d{4}(-\d{4})?", text, re.ASCII) or (dash and last < first):
        raise QuantityError(f"years {text!r}: write a year, or two in order, such as 2005-2006")
    return int(first), int(last or first)


def _named(years: tuple[int, int]) -> str:
    return f"{years[0]}" if years[0] == years[1] else f"{years[0]} to {years[1]}"


def _edges(trace: Trace, years: tuple[int, int]) -> tuple[int, int]:
    """Return the seconds at which a range of calendar years begins and ends, local time."""
    clock = Clock.of(trace.header)
    if clock.nominal:
        raise TraceError(
            f"{trace.source}: no UnixStartTime in the header, so no job can be assigned to "
            f"{_named(years)}; leave the years out"
        )
    first, last = (
        int(datetime(year, 1, 1, tzinfo=clock.zone).timestamp()) - clock.unix_start
        for year in (years[0], years[1] + 1)
    )
    return first, last


def training_jobs(text: str, jobs: int) -> int:
    """Return the number of training jobs: ``30000``, a share such as ``0.5``, or ``auto``.

    ``auto`` is 30,000, or half of the jobs if that would leave fewer than 15,000 for the test.

    Raises
    ------
    QuantityError
        When ``text`` is none of these, or leaves no jobs to train or to test.
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
    """Accuracy of predictions of run times (thesis section 8.4.1).

    Attributes
    ----------
    jobs
        Number of predicted jobs.
    underestimated_share
        Share of jobs that ran longer than predicted, in whole seconds.
    mae_min
        Mean absolute error, min (Eq. 8.10).
    wae_min
        Mean absolute error, weighted with processors times run time, min (Eq. 8.12).
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
        """Return the accuracy of predictions; all arguments have shape (jobs,), times are in s.

        Figures without a denominator, such as the weighted error of jobs that all ran 0 s, are 0.
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
        """Return Eq. 8.9: negative, and the closer to 0 the better."""
        return -self.normalized_error / float(np.exp((1 - self.underestimated_share) ** 2))


def predict_all(past: PastJobs, predictor: Predictor) -> Int64s:
    """Return the prediction for each job at its arrival, s, shape (jobs,)."""
    predictor.begin(past.jobs)
    return predictor.follow(past.events)


def evaluate(past: PastJobs, predictor: Predictor, training: int = 0) -> Accuracy:
    """Return the accuracy for the jobs after the first ``training``.

    The predictor goes through all jobs; the training jobs are its history.
    """
    return accuracy(past, predict_all(past, predictor), training)


def accuracy(past: PastJobs, predicted: Int64s, training: int = 0) -> Accuracy:
    """Return the accuracy of given predictions for the jobs after the first ``training``."""
    return Accuracy.of(predicted[training:], past.run[training:], past.jobs.processors[training:])


def estimate_accuracy(jobs: JobTable) -> Accuracy:
    """Return the accuracy of a run's estimates, for the jobs that ran to their end.

    Jobs killed at their requested time do not count, as their full run time is unknown.
    """
    rows = np.flatnonzero(jobs.state == State.COMPLETED)
    ran = jobs.end[rows] - jobs.start[rows]
    return Accuracy.of(jobs.estimate[rows], ran, jobs.processors[rows])


def looks_ahead(make: Callable[[], Predictor], past: PastJobs) -> bool:
    """Return whether a predictor uses run times of jobs that have not ended.

    It goes through the jobs three times: without run times in the table, and with two wrong ones. A
    predictor that does not look gives the same answers each time.
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


#: Ranges of the search, lower and upper end. The thesis does not give its own; these contain every
#: value of its Table 8.3 (unconfirmed).
N_RANGE, K_RANGE = (100, 10_000), (1, 10)
ALPHA_RANGE, BETA_RANGE = (0.0, 1.0), (0.5, 1.0)

#: Decimals of alpha and beta, as in Table 8.3.
DIGITS = 3

#: Default time of the whole search (s), and default number of seeds.
BUDGET_S, SEEDS = 120.0, 4

#: Individuals per parameter; there are 13 parameters.
POPULATION = 5

#: s; interval of progress reports.
HEARTBEAT_S = 0.5


@dataclass(frozen=True)
class Trained:
    """The result of a search.

    Attributes
    ----------
    parameters
        The best parameters.
    fitness
        Eq. 8.9 on the training part: negative, and the closer to 0 the better.
    seed
        The seed that found it.
    each
        The best fitness of each seed.
    evaluations
        Number of parameter sets tried, by all seeds together.
    wall_s
        s; how long it took.
    """

    parameters: HistoryParameters
    fitness: float
    seed: int
    each: dict[int, float]
    evaluations: int
    wall_s: float


class _Stopped(Exception):
    """The budget is spent, or the search was stopped."""


@dataclass
class Search:
    """The search of one seed among parameters, with a part of the jobs and a kind of history.

    It tries ``limit`` parameter sets at most, None for no limit, and ends early when ``stop`` is
    set. ``tried`` counts them; ``fitness`` and ``parameters`` are the best so far.
    """

    part: PastJobs
    history: str
    seed: int
    limit: int | None
    stop: threading.Event
    tried: int = 0
    fitness: float = -np.inf
    parameters: HistoryParameters | None = None

    def run(self, seconds: float | None) -> None:
        """Search for a number of seconds, or without a limit (None), or until convergence."""
        from scipy.optimize import differential_evolution

        until = None if seconds is None else time.monotonic() + seconds
        requested = self.part.jobs.requested_time
        least, largest = int(requested.min()), int(requested.max())

        def cost(individual: Floats) -> float:
            spent = self.limit is not None and self.tried >= self.limit
            late = until is not None and self.tried > 0 and time.monotonic() >= until
            if spent or late or self.stop.is_set():
                raise _Stopped
            return -self.try_out(parameters_of(individual, least, largest))

        bounds, whole = space()
        with suppress(_Stopped):
            differential_evolution(
                cost,
                bounds,
                integrality=whole,
                popsize=POPULATION,
                maxiter=10**6,
                polish=False,
                rng=Streams(self.seed).generator("training"),
            )

    def try_out(self, parameters: HistoryParameters) -> float:
        """Return the fitness of parameters; keep them if they are the best so far."""
        fitness = evaluate(self.part, HistoryPredictor(parameters, history=self.history)).fitness
        self.tried += 1
        if fitness > self.fitness:
            self.fitness, self.parameters = fitness, parameters
        return fitness


def space() -> tuple[list[tuple[float, float]], list[bool]]:
    """Return the bounds of the 13 parameters, and which of them are integers."""
    group = [N_RANGE, K_RANGE, ALPHA_RANGE, BETA_RANGE]
    bounds = [(0.0, 1.0)] * (len(ATTRIBUTES) + 1) + group + group
    whole = [True] * len(ATTRIBUTES) + [False] + [True, True, False, False] * 2
    return bounds, whole


def parameters_of(individual: Floats, least: int, largest: int) -> HistoryParameters:
    """Return the parameters of an individual (x1, x2, x3, x4, Pivot, N1, K1, alpha1, beta1, ...).

    These are 13 numbers in the :func:`space`; the pivot is a relative position between the least
    and the largest requested time, s.
    """
    bits, pivot, rest = individual[:4], float(individual[4]), individual[5:]
    template = "".join(
        letter if round(float(bit)) else "." for letter, bit in zip(ATTRIBUTES, bits, strict=True)
    )
    small, big = (
        Group(
            n=round(float(n)),
            k=round(float(k)),
            alpha=round(float(alpha), DIGITS),
            beta=round(float(beta), DIGITS),
        )
        for n, k, alpha, beta in (rest[:4], rest[4:])
    )
    return HistoryParameters(template, float(round(least + pivot * (largest - least))), small, big)


def train(
    part: PastJobs,
    *,
    history: str = "submission",
    budget_s: float | None = BUDGET_S,
    evaluations: int | None = None,
    seeds: int = SEEDS,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
) -> Trained:
    """Search for the best parameters of the history-based predictor.

    Parameters
    ----------
    part
        Only the jobs to train with, see :meth:`first`.
    history
        Kind of history.
    budget_s
        s; time for the whole search. None for no limit.
    evaluations
        Most parameter sets that each seed tries; replaces the time.
    seeds
        Number of searches; the best counts.
    seed
        Seed of the first; the others follow.
    workers
        Searches in parallel; by default one per processor.
    progress
        Called regularly with a text, the amount done and the total.

    Raises
    ------
    QuantityError
        When the budget or the number of seeds is not positive, or there is no job to train with.
    """
    for what, value in (("budget", budget_s), ("evaluations", evaluations), ("seeds", seeds)):
        if value is not None and value <= 0:
            raise QuantityError(f"{what} {value}: must be more than 0")
    if budget_s is None and evaluations is None:
        raise QuantityError("no budget: give a time or a number of evaluations")
    if not len(part):
        raise QuantityError("no job to train with; choose a larger training part")
    HistoryPredictor(history=history)
    workers = min(workers or os.cpu_count() or 1, seeds)
    rounds = -(-seeds // workers)
    seconds = None if evaluations is not None or budget_s is None else budget_s / rounds
    stop = threading.Event()
    searches = [Search(part, history, one, evaluations, stop) for one in range(seed, seed + seeds)]
    began = time.monotonic()

    def tell() -> None:
        if progress is None:
            return
        best = max(search.fitness for search in searches)
        text = f"training: best fitness {best:.4f}" if np.isfinite(best) else "training"
        if evaluations is not None:
            progress(text, sum(search.tried for search in searches), evaluations * seeds)
        else:
            total = round(budget_s or 0)
            progress(text, min(int(time.monotonic() - began), total), total)

    with ThreadPoolExecutor(workers) as pool:
        try:
            waiting = {pool.submit(search.run, seconds) for search in searches}
            while waiting:
                done, waiting = wait(waiting, HEARTBEAT_S, FIRST_COMPLETED)
                for one in done:
                    one.result()
                tell()
        except BaseException:
            stop.set()  # the others end at their next evaluation
            pool.shutdown(cancel_futures=True)
            raise
    best = max(searches, key=lambda search: search.fitness)
    assert best.parameters is not None
    return Trained(
        parameters=best.parameters,
        fitness=best.fitness,
        seed=best.seed,
        each={search.seed: search.fitness for search in searches},
        evaluations=sum(search.tried for search in searches),
        wall_s=time.monotonic() - began,
    )
