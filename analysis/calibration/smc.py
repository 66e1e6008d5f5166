"""Sequential Monte Carlo (ABC-SMC) with pyabc: draws that come nearer to a log step by step.

The first population comes from the prior. Each further one disturbs draws of the one before, and
keeps those nearer to the log than half of that one (Toni et al. 2009, in pyabc: Schaelte et al.
2022). Distances are Euclidean, each statistic in standard deviations over the prior.

pyabc draws from numpy's global stream and writes a database. Here that stream begins at the seed
and is put back afterwards, everything happens in this process, and the database is in a temporary
folder, so that the same seed gives the same bytes and nothing is left.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hpcrowd.analysis.calibration.priors import Prior
from hpcrowd.analysis.calibration.regression import CONSTANT, Table, Weighted
from hpcrowd.analysis.calibration.statistics import on_scales
from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.errors import UnavailableError, missing
from hpcrowd.environment.limits.numbers import LARGEST_SEED

#: Populations at most; the budget of simulations usually ends earlier.
POPULATIONS = 12

#: Share of the simulations in one population.
POPULATION = 0.2

#: Loggers of pyabc, which would report each population.
LOGGERS = ("ABC", "ABC.History", "ABC.Sampler", "ABC.Distance", "ABC.Adaptation")

#: Simulates parameters, in the order of the priors, with a seed; returns the statistics.
Simulate = Callable[[Sequence[float], int], Floats]


def check_available() -> Any:
    """Return pyabc.

    Raises
    ------
    UnavailableError
        When it is not installed.
    """
    try:
        import pyabc
    except ImportError:
        raise UnavailableError(f"--method smc: {missing('pyabc', 'calibration')}") from None
    return pyabc


def sample(
    priors: Sequence[Prior],
    record: Floats,
    table: Table,
    simulate: Simulate,
    simulations: int,
    seed: int = 0,
) -> Weighted:
    """Return the posterior for a log.

    Parameters
    ----------
    priors
        The free parameters.
    record
        Statistics of the log, shape (statistics,).
    table
        Simulations of some draws of the prior, which say how much each statistic varies. What none
        of them comes up to does not count, as in the regression.
    simulate
        Simulates draws.
    simulations
        About how many; a population that has begun is completed.
    seed
        Seed of everything random.

    Raises
    ------
    UnavailableError
        When pyabc is not installed.
    """
    pyabc = check_available()
    names = [f"p{place}" for place in range(len(priors))]
    scales = table.spread()
    scales[scales <= CONSTANT] = np.inf
    scales[table.outside(record)] = np.inf
    target = on_scales(record) / scales

    def model(parameters: Any) -> dict[str, Floats]:
        values = [prior.at(parameters[name]) for prior, name in zip(priors, names, strict=True)]
        number = int(np.random.randint(LARGEST_SEED, dtype=np.int64))  # noqa: NPY002 - as pyabc
        return {"s": on_scales(simulate(values, number)) / scales}

    def distance(one: dict[str, Floats], other: dict[str, Floats]) -> float:
        return float(np.sqrt(((one["s"] - other["s"]) ** 2).sum()))

    with _alone(seed), tempfile.TemporaryDirectory(prefix="hpcrowd-calibrate-") as folder:
        search = pyabc.ABCSMC(
            model,
            pyabc.Distribution(**{name: pyabc.RV("uniform", 0, 1) for name in names}),
            pyabc.FunctionDistance(distance),
            population_size=max(round(POPULATION * simulations), 2 * len(priors) + 2),
            sampler=pyabc.sampler.SingleCoreSampler(),
        )
        search.new(f"sqlite:///{Path(folder) / 'search.db'}", {"s": target})
        history = search.run(max_nr_populations=POPULATIONS, max_total_nr_simulations=simulations)
        frame, weights = history.get_distribution()
        distances = history.get_weighted_distances()["distance"].to_numpy()
        shares = frame[names].to_numpy()
        history.done()
    values = [prior.values(shares[:, k]) for k, prior in enumerate(priors)]
    weights = np.asarray(weights, np.float64)
    return Weighted(np.column_stack(values), weights / weights.sum(), distances)


@contextmanager
def _alone(seed: int) -> Iterator[None]:
    """Begin numpy's global stream at a seed, and put it back; pyabc says nothing meanwhile."""
    before = np.random.get_state()  # noqa: NPY002 - pyabc draws from it
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [one.level for one in loggers]
    np.random.seed(np.random.SeedSequence(seed).generate_state(4))  # noqa: NPY002
    for one in loggers:
        one.setLevel(logging.ERROR)
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)
