"""Train the history-based predictor: an evolutionary search for its parameters (thesis 8.3.3).

Differential evolution (``scipy.optimize.differential_evolution``) looks for the template, the pivot
and N, K, alpha and beta of both groups that make Eq. 8.9 largest on the training part; nothing else
is looked at. Several seeds search side by side, one a thread, since an evaluation is compiled code
that runs beside others; the best of them is taken.

A budget of evaluations gives the same parameters wherever it is run. A budget of time does not.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.prediction.scores import PastJobs, evaluate
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.schedulers.predictors.experience import ATTRIBUTES
from hpcrowd.environment.schedulers.predictors.history import (
    Group,
    HistoryParameters,
    HistoryPredictor,
)
from hpcrowd.environment.streams import Streams

Floats = NDArray[np.float64]

#: Ranges that are searched, lower and upper end. The thesis does not give its own; these hold every
#: value of its Table 8.3 (unconfirmed).
N_RANGE, K_RANGE = (100, 10_000), (1, 10)
ALPHA_RANGE, BETA_RANGE = (0.0, 1.0), (0.5, 1.0)

#: Digits after the point of alpha and beta, as in Table 8.3.
DIGITS = 3

#: s; how long all seeds search together, and how many seeds there are.
BUDGET_S, SEEDS = 120.0, 4

#: Individuals for each of the 13 parameters.
POPULATION = 5

#: s; how often progress is told.
HEARTBEAT_S = 0.5


@dataclass(frozen=True)
class Trained:
    """What a search found.

    Attributes
    ----------
    parameters
        The best.
    fitness
        Eq. 8.9 on the training part; negative, and the nearer to 0 the better.
    seed
        The seed that found it.
    each
        The best fitness of each seed.
    evaluations
        How many sets of parameters were tried, by all seeds together.
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
    """The budget is spent, or somebody asked to stop."""


class Search:
    """The search of one seed.

    Parameters
    ----------
    part
        The jobs to train with.
    history
        Kind of history, see :class:`~environment.schedulers.predictors.history.HistoryPredictor`.
    seed
        Seed of the search.
    evaluations
        Most sets of parameters to try; None for no limit.
    stop
        Set by somebody else to stop.
    """

    def __init__(
        self,
        part: PastJobs,
        history: str,
        seed: int,
        evaluations: int | None,
        stop: threading.Event,
    ) -> None:
        self.part = part
        self.history = history
        self.seed = seed
        self.limit = evaluations
        self.stop = stop
        self.tried = 0
        self.fitness = -np.inf
        self.parameters: HistoryParameters | None = None
        requested = part.jobs.requested_time
        self._least, self._largest = int(requested.min()), int(requested.max())

    def run(self, seconds: float | None) -> None:
        """Search for so many seconds, or without a limit; or until nothing changes any more."""
        from scipy.optimize import differential_evolution

        until = None if seconds is None else time.monotonic() + seconds

        def cost(individual: Floats) -> float:
            spent = self.limit is not None and self.tried >= self.limit
            late = until is not None and self.tried > 0 and time.monotonic() >= until
            if spent or late or self.stop.is_set():
                raise _Stopped
            return -self.try_out(parameters_of(individual, self._least, self._largest))

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
        """Return the fitness of parameters, and keep them if they are the best so far."""
        fitness = evaluate(self.part, HistoryPredictor(parameters, history=self.history)).fitness
        self.tried += 1
        if fitness > self.fitness:
            self.fitness, self.parameters = fitness, parameters
        return fitness


def space() -> tuple[list[tuple[float, float]], list[bool]]:
    """Return the bounds of the 13 parameters, and which of them are whole numbers."""
    group = [N_RANGE, K_RANGE, ALPHA_RANGE, BETA_RANGE]
    bounds = [(0.0, 1.0)] * (len(ATTRIBUTES) + 1) + group + group
    whole = [True] * len(ATTRIBUTES) + [False] + [True, True, False, False] * 2
    return bounds, whole


def parameters_of(individual: Floats, least: int, largest: int) -> HistoryParameters:
    """Return what an individual stands for: (x1, x2, x3, x4, Pivot, N1, K1, alpha1, beta1, ...).

    Parameters
    ----------
    individual
        13 numbers in the :func:`space`; the pivot is a part of the way from the least to the
        largest requested time.
    least, largest
        These requested times, s.
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
        The jobs to train with, and no others: see :meth:`first`.
    history
        Kind of history.
    budget_s
        s; how long all seeds may take together. None for no limit.
    evaluations
        Most sets of parameters that each seed tries; takes the place of the time.
    seeds
        How many searches; the best counts.
    seed
        Seed of the first; the others follow.
    workers
        Searches side by side; as many as there are processors unless given.
    progress
        Called now and then with a text, how much is done, and of how much.

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
        raise QuantityError("no job to train with; let more jobs train")
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

    # Compile before the clock of any seed starts.
    evaluate(part.first(1), HistoryPredictor(HistoryParameters.published("SDSC04")))
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
