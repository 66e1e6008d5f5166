"""Regression-adjusted approximate Bayesian computation on a table of prior simulations.

A table has one line for each draw of the prior: the parameters and the statistics of a simulation
with them. From it and the statistics of a log:

1. *Summaries*: a ridge regression of the parameters on the statistics (and their squares) turns the
   statistics into one number for each parameter, its expected value (Fearnhead and Prangle 2012,
   "semi-automatic"). The penalty is the one with the smallest leave-one-out error.
2. *Acceptance*: the draws whose summaries are nearest to those of the log stay, with Epanechnikov
   weights by their distance.
3. *Adjustment*: a weighted linear regression of the parameters on the summaries moves each accepted
   draw to where it would lie if its summaries were those of the log (Beaumont, Zhang and Balding
   2002), its spread scaled by that at the log (Blum and Francois 2010).

A statistic of the log that no draw of the prior comes up to is left out: users of this kind do not
have it whatever their parameters, and a regression would be extrapolated to it.

Parameters are logits of shares of their priors meanwhile, so that no adjustment leaves the prior.
The table does not depend on the log. Hence the same procedure can be tested on any of its own
lines, without further simulations: see :mod:`hpcrowd.analysis.calibration.posterior`. A sequential
sampler (:func:`sample`) needs new simulations for each log.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hpcrowd.analysis.calibration.priors import Prior, from_inside, inside
from hpcrowd.analysis.calibration.statistics import NAMES, on_scales
from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.errors import QuantityError, UnavailableError, missing
from hpcrowd.environment.limits.numbers import LARGEST_SEED

#: Share of the prior draws that are accepted (our choice, by coverage on made-up tables of 200 to
#: 1,000 draws: of 90 % intervals, a tenth covers 0.83 to 0.87, a quarter 0.84 to 0.89, four tenths
#: 0.88 to 0.90).
ACCEPTED = 0.4

#: Fewest accepted draws for each parameter, so that the adjustment is not one through few points.
LEAST_ACCEPTED = 20

#: Fewest draws of the prior.
LEAST_DRAWS = 40

#: Penalties that the ridge regression chooses from, as multiples of the number of draws; columns
#: have variance 1.
PENALTIES = tuple(10.0**power for power in range(-4, 3))

#: Spread below which a statistic does not vary over the prior, on its scale.
CONSTANT = 1e-9

#: Smallest distance, as a share of the spread of a residual, whose logarithm is taken.
LEAST_RESIDUAL = 1e-3


@dataclass(frozen=True)
class Table:
    """Draws of the prior and their simulations."""

    priors: tuple[Prior, ...]  #: The free parameters.
    values: Floats  #: Parameters of each draw, shape (draws, parameters).
    statistics: Floats  #: Statistics of each simulation, shape (draws, statistics).
    names: tuple[str, ...] = NAMES  #: Names of the statistics that count; all unless given.

    def __len__(self) -> int:
        return len(self.values)

    def without(self, line: int) -> Table:
        """Return the table without one line."""
        kept = np.arange(len(self)) != line
        return replace(self, values=self.values[kept], statistics=self.statistics[kept])

    def shares(self) -> Floats:
        """Return the parameters as shares of their priors, same shape."""
        columns = [prior.shares(self.values[:, k]) for k, prior in enumerate(self.priors)]
        return np.column_stack(columns)

    def spread(self) -> Floats:
        """Return the standard deviation of each statistic over the prior, on its scale."""
        return on_scales(self.statistics).std(axis=0, ddof=1)

    def outside(self, record: Floats) -> list[int]:
        """Return the places of statistics of a log that no simulation comes up to or down to."""
        low, high = self.statistics.min(axis=0), self.statistics.max(axis=0)
        beyond = (record < low) | (record > high)
        return [int(k) for k in np.flatnonzero(beyond) if NAMES[k] in self.names]


@dataclass(frozen=True)
class Weighted:
    """Draws of a posterior with their weights."""

    values: Floats  #: Parameters of each draw, shape (draws, parameters); not rounded.
    weights: Floats  #: Of each draw; they add up to 1.
    distances: Floats  #: Distance of each draw from the log; in standard deviations.


def posterior_of(table: Table, record: Floats) -> Weighted:
    """Return the posterior for the statistics of a log, shape (statistics,).

    The table has simulations of draws of the prior. A QuantityError is raised if there are too few
    draws, or no statistic depends on the parameters.
    """
    if len(table) < LEAST_DRAWS:
        raise QuantityError(f"draws {len(table)}: at least {LEAST_DRAWS} are needed")
    scaled, target = _standardised(table, record)
    logits = inside(table.shares())
    summaries, mine = _summaries(scaled, target, logits)
    spread = summaries.std(axis=0, ddof=1)
    summaries, mine = summaries / spread, mine / spread
    distances = np.sqrt(((summaries - mine) ** 2).sum(axis=1))
    count = max(round(ACCEPTED * len(table)), LEAST_ACCEPTED * len(table.priors))
    nearest = np.argsort(distances, kind="stable")[: min(count, len(table))]
    width = distances[nearest].max()
    weights = 1 - (distances[nearest] / width) ** 2 if width > 0 else np.ones(len(nearest))
    weights = np.maximum(weights, CONSTANT)
    weights /= weights.sum()
    moved = _adjusted(logits[nearest], summaries[nearest] - mine, weights)
    shares = from_inside(moved)
    values = [prior.values(shares[:, k]) for k, prior in enumerate(table.priors)]
    return Weighted(np.column_stack(values), weights, distances[nearest])


def likeness(table: Table, record: Floats) -> float:
    """Return the share of draws that are as far from all others as the log is from all draws.

    A small share, such as below 0.05, says that no parameters make simulations like the log in all
    statistics together, even if they do in each of them alone. The posterior is then that of the
    least unlike users, and its intervals say too much.
    """
    scaled, target = _standardised(table, record)
    squares = ((scaled[:, None, :] - scaled[None, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    mine = ((scaled - target) ** 2).sum(axis=1).min()
    return float((squares.min(axis=1) >= mine).mean())


def _standardised(table: Table, record: Floats) -> tuple[Floats, Floats]:
    """Return the statistics that count, and those of the log, with mean 0 and variance 1."""
    counts = (table.spread() > CONSTANT) & np.isin(NAMES, table.names)
    counts[table.outside(record)] = False
    if not counts.any():
        raise QuantityError(
            "free: no statistic of the log is among those of these users, or none depends on what "
            "is free; free other parameters, or widen the priors"
        )
    scaled, target = on_scales(table.statistics)[:, counts], on_scales(record)[counts]
    middle, spread = scaled.mean(axis=0), scaled.std(axis=0, ddof=1)
    return (scaled - middle) / spread, (target - middle) / spread


def _summaries(scaled: Floats, target: Floats, logits: Floats) -> tuple[Floats, Floats]:
    """Return the expected parameters of each draw and of the log, by ridge regression.

    Those of a draw come from a fit without it. Otherwise draws would look better explained than the
    log, which is in no fit, and intervals would be too narrow.
    """
    columns = np.hstack([scaled, scaled**2])
    middle, spread = columns.mean(axis=0), columns.std(axis=0)
    spread[spread < CONSTANT] = 1
    matrix = (columns - middle) / spread
    mine = (np.concatenate([target, target**2]) - middle) / spread
    count = len(matrix)
    sizes, axes = np.linalg.eigh(_product(matrix, matrix))
    sizes = np.maximum(sizes, 0.0)
    along = _product(matrix.T, axes)
    centre = logits.mean(axis=0)
    wanted = logits - centre
    inner = _product(along, wanted)
    found, at_log = np.empty_like(logits), np.empty(logits.shape[1])
    best = np.full(logits.shape[1], np.inf)
    for penalty in PENALTIES:
        shrunk = 1 / (sizes + penalty * count)
        coefficients = shrunk[:, None] * inner
        # The error of each draw by a fit without it, but with the mean of all: a draw's own share
        # of the mean would be the only difference where statistics say nothing.
        leverage = (along**2 * shrunk).sum(axis=1)
        missed = (wanted - _product(along.T, coefficients)) / np.maximum(1 - leverage, CONSTANT)[
            :, None
        ]
        error = (missed**2).sum(axis=0)
        better = error < best
        best[better] = error[better]
        found[:, better] = (logits - missed)[:, better]
        at_log[better] = (centre + _product((mine @ axes)[:, None], coefficients)[0])[better]
    return found, at_log


def _adjusted(logits: Floats, gaps: Floats, weights: Floats) -> Floats:
    """Return accepted draws, moved to where they would be without their gaps to the log."""
    matrix = np.column_stack([np.ones(len(gaps)), gaps])
    slope = _least_squares(matrix, logits, weights)
    residual = logits - matrix @ slope
    typical = np.sqrt(np.average(residual**2, axis=0, weights=weights))
    floor = np.maximum(LEAST_RESIDUAL * typical, CONSTANT)
    logs = np.log(np.maximum(np.abs(residual), floor))
    trend = _least_squares(matrix, logs, weights)
    # The spread at the log over that at the draw.
    ratio = np.exp(np.clip(trend[0] - matrix @ trend, -MOST_RATIO, MOST_RATIO))
    # Residuals of a fit are smaller than errors, by the coefficients that were fitted.
    effective = 1 / float((weights**2).sum())
    freed = np.sqrt(effective / max(effective - matrix.shape[1], 1))
    found: Floats = slope[0] + residual * ratio * freed
    return found


#: Largest change of a residual by the difference of spreads, as a natural logarithm: a factor of 2.
MOST_RATIO = 0.7


def _least_squares(matrix: Floats, wanted: Floats, weights: Floats) -> Floats:
    """Return the coefficients of a weighted linear regression, shape (columns, wanted)."""
    weighted = weights[:, None] * matrix
    found: Floats = np.linalg.lstsq(_product(weighted, matrix), _product(weighted, wanted))[0]
    return found


def _product(left: Floats, right: Floats) -> Floats:
    """Return the transpose of one matrix times another.

    Not by a library that shares the work among threads: these matrices are small, and a check makes
    thousands of them.
    """
    found: Floats = np.einsum("ij,ik->jk", left, right)
    return found


def weighted_quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> Floats:
    """Return quantiles of weighted values, linear between them, shape (shares,)."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    places = (total - weights[order] / 2) / total[-1]
    return np.interp(shares, places, values[order])


# ---- a sequential sampler ------------------------------------------------------------------------

#: Populations at most; the budget of simulations usually ends earlier.
POPULATIONS = 12

#: Share of the simulations in one population.
POPULATION = 0.2

#: Loggers of pyabc, which would report each population.
LOGGERS = ("ABC", "ABC.History", "ABC.Sampler", "ABC.Distance", "ABC.Adaptation")

#: Simulates parameters, in the order of the priors, with a seed; returns the statistics.
Simulate = Callable[[Sequence[float], int], Floats]


def check_available() -> Any:
    """Return pyabc; an UnavailableError when it is not installed."""
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
    """Return the posterior for a log by sequential Monte Carlo (ABC-SMC) with pyabc.

    The first population comes from the prior. Each further one disturbs draws of the one before,
    and keeps those nearer to the log than half of that one (Toni et al. 2009, in pyabc: Schaelte et
    al. 2022). Distances are Euclidean, each statistic in standard deviations over the prior: the
    table has simulations of some draws of it. What none of them comes up to does not count, as in
    the regression. There are about as many simulations as given; a population that has begun is
    completed.

    pyabc draws from numpy's global stream and writes a database. Here that stream begins at the
    seed and is put back afterwards, everything happens in this process, and the database is in a
    temporary folder, so that the same seed gives the same bytes and nothing is left.
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
