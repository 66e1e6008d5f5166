"""The posterior of free parameters: weighted draws, in a file that sweeps draw from.

A file is JSON: ``parameters`` are the priors; ``draws`` has one line for each draw, with the
parameters in their order, its weight and its distance from the log; ``statistics`` compares the log
with simulations of draws of the posterior; ``settings`` are those of the scenario that was
calibrated, and ``provenance`` says with what.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hpcrowd.analysis.calibration.priors import Prior
from hpcrowd.analysis.calibration.regression import (
    Table,
    Weighted,
    posterior_of,
    weighted_quantiles,
)
from hpcrowd.analysis.calibration.statistics import STATISTICS
from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.errors import HpcrowdError, ModelFileError, QuantityError
from hpcrowd.environment.files import ModelFormat
from hpcrowd.environment.quantities import notebook_table
from hpcrowd.environment.streams import Streams

#: The files of posteriors.
FILES = ModelFormat("hpcrowd posterior", 1, "a posterior", "hpcrowd calibrate", "calibrate again")

#: Levels of intervals.
LEVELS = (0.5, 0.9)

#: Standard deviation of a prior, as shares of it are uniform.
PRIOR_SPREAD = 12**-0.5

#: A parameter whose spread shrinks by less than this is one that the log says little about. Chance
#: alone makes about 0.1 with a hundred draws (our choice).
LITTLE = 0.2

#: Largest difference of the sum of weights from 1 in a file.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Predicted:
    """A statistic of the log, and of simulations of draws of the posterior."""

    name: str  #: One of :data:`hpcrowd.analysis.calibration.statistics.NAMES`.
    record: float  #: Of the log.
    median: float  #: Of the simulations.
    #: Ends of predictive intervals.
    low_50: float
    high_50: float
    low_90: float
    high_90: float

    @property
    def inside(self) -> bool:
        """Whether the log is within the 90 % interval."""
        return self.low_90 <= self.record <= self.high_90


def predicted(record: Floats, simulated: Floats) -> list[Predicted]:
    """Return each statistic of a log, shape (statistics,), beside its quantiles over simulations.

    These have shape (simulations, statistics).
    """
    quantiles = np.quantile(simulated, (0.5, 0.25, 0.75, 0.05, 0.95), axis=0)
    return [
        Predicted(one.name, float(record[k]), *map(float, quantiles[:, k]))
        for k, one in enumerate(STATISTICS)
    ]


@dataclass(frozen=True)
class Posterior:
    """What a log says about free parameters.

    Attributes
    ----------
    method
        ``regression`` or ``smc``.
    priors
        The free parameters.
    drawn
        Draws of the posterior.
    statistics
        The log beside simulations of draws.
    settings
        Settings of the calibrated scenario, as in a TOML file, without its input and seed.
    folder
        Folder of the files that they name, relative to the file of the posterior.
    provenance
        The log, its days, seed, draws and versions.
    """

    method: str
    priors: tuple[Prior, ...]
    drawn: Weighted
    statistics: tuple[Predicted, ...] = ()
    settings: Mapping[str, Any] | None = None
    folder: str = ""
    provenance: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.drawn.weights)

    def __repr__(self) -> str:
        names = ", ".join(prior.name for prior in self.priors)
        return f"<Posterior of {names}: {len(self)} draws by {self.method}>"

    def _repr_html_(self) -> str:
        """Return the median and the 95 % interval of each parameter, for notebooks."""
        rows = [
            (prior.name, *(f"{value:.4g}" for value in self.quantiles(n, (0.5, 0.025, 0.975))))
            for n, prior in enumerate(self.priors)
        ]
        return notebook_table(f"{self!r}: median, 2.5 %, 97.5 %", rows)

    def quantiles(self, parameter: int, shares: Sequence[float]) -> list[float]:
        """Return quantiles of a parameter by its place, not rounded."""
        drawn = self.drawn
        found = weighted_quantiles(drawn.values[:, parameter], drawn.weights, shares)
        return [float(value) for value in found]

    def shrinkage(self, parameter: int) -> float:
        """Return by how much the log shrinks the spread of a parameter: 0 not at all, 1 to nothing.

        It is 1 - (standard deviation in the posterior) / (that in the prior), on the scale on which
        the prior is uniform; negative if the posterior is wider.
        """
        shares = self.priors[parameter].shares(self.drawn.values[:, parameter])
        weights = self.drawn.weights
        middle = np.average(shares, weights=weights)
        spread = np.sqrt(np.average((shares - middle) ** 2, weights=weights))
        return float(1 - spread / PRIOR_SPREAD)

    def draw(self, number: int) -> dict[str, float]:
        """Return a draw of all parameters, jointly, by name; each number has its own.

        Parameters
        ----------
        number
            Such as the seed of a run; the same number gives the same draw.
        """
        stream = Streams(number).generator("posterior")
        line = self.drawn.values[stream.choice(len(self), p=self.drawn.weights)]
        return {
            prior.name: prior.rounded(float(value))
            for prior, value in zip(self.priors, line, strict=True)
        }

    def to_json(self) -> dict[str, Any]:
        """Return it fit for JSON."""
        drawn = self.drawn
        lines = zip(drawn.values.tolist(), drawn.weights, drawn.distances, strict=True)
        return {
            "method": self.method,
            "parameters": [prior.to_json() for prior in self.priors],
            "draws": [[*values, float(weight), float(far)] for values, weight, far in lines],
            "statistics": [asdict(one) for one in self.statistics],
            "settings": dict(self.settings or {}),
            "folder": self.folder,
            "provenance": dict(self.provenance or {}),
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file that appears only when it is complete.

        Raises
        ------
        ModelFileError
            When it cannot be written.
        """
        FILES.write(self.to_json(), path)


def read_posterior(path: str | os.PathLike[str]) -> Posterior:
    """Return the posterior in a file.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged, not a posterior, or of a newer version.
    """
    wire = FILES.read(path)
    try:
        return _posterior(wire)
    except (KeyError, TypeError, ValueError, IndexError, HpcrowdError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(f"{Path(path)}: damaged: {what}; calibrate again") from None


def _posterior(wire: dict[str, Any]) -> Posterior:
    priors = tuple(Prior.from_json(one) for one in wire["parameters"])
    lines = np.array(wire["draws"], np.float64)
    if not priors or lines.ndim != 2 or lines.shape[1] != len(priors) + 2:
        raise ValueError(f"draws: not lines of {len(priors)} parameters, a weight and a distance")
    values, weights = lines[:, :-2], lines[:, -2]
    for place, prior in enumerate(priors):
        column = values[:, place]
        if not (prior.low <= column.min() and column.max() <= prior.high):
            raise ValueError(f"draws: {prior.name} outside its prior")
    if not np.isfinite(lines).all() or (weights < 0).any() or abs(weights.sum() - 1) > ROUNDING:
        raise ValueError("draws: weights are not positive numbers that add up to 1")
    for name, kind in (("settings", dict), ("provenance", dict), ("method", str), ("folder", str)):
        if not isinstance(wire[name], kind):
            raise TypeError(f"{name}: not {'a table' if kind is dict else 'text'}")
    return Posterior(
        method=wire["method"],
        priors=priors,
        drawn=Weighted(values, weights, lines[:, -1]),
        statistics=tuple(Predicted(**one) for one in wire["statistics"]),
        settings=wire["settings"],
        folder=wire["folder"],
        provenance=wire["provenance"],
    )


# ---- the check ----------------------------------------------------------------------------------

#: Bins of the histogram of ranks.
BINS = 10

#: Standard errors on each side of a coverage, for its interval of about 95 %.
ERRORS = 2.0


@dataclass(frozen=True)
class Coverage:
    """How often intervals contain known parameters: as often as they say?

    Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari and Gelman 2018): parameters
    are drawn from the prior, a log is simulated with them, and the posterior for that log is found.
    Over many such truths, 50 % and 90 % intervals have to contain the truth in 50 % and 90 % of the
    cases, and the share of the posterior that lies below the truth (its rank) has to be uniform: a
    histogram with a hump means intervals that are too wide; with a valley, too narrow; with a
    slope, a bias.

    Each truth is a line of the table of prior simulations, and its posterior is found from all
    others. No simulation is done for a check.
    """

    names: tuple[str, ...]  #: Of the parameters.
    ranks: Floats  #: Share of the posterior below the truth, shape (truths, parameters).
    #: By level, whether the interval contains the truth, shape (truths, parameters).
    inside: dict[float, Any]

    def __len__(self) -> int:
        return len(self.ranks)

    def share(self, parameter: int, level: float) -> float:
        """Return the share of the truths that the intervals contain."""
        return float(self.inside[level][:, parameter].mean())

    def expected(self, level: float) -> tuple[float, float]:
        """Return between what such a share lies by chance if intervals are right, in 95 %."""
        error = ERRORS * (level * (1 - level) / len(self)) ** 0.5
        return max(level - error, 0.0), min(level + error, 1.0)

    def histogram(self, parameter: int) -> list[int]:
        """Return the number of truths in each of :data:`BINS` bins of the rank."""
        places = np.minimum((self.ranks[:, parameter] * BINS).astype(int), BINS - 1)
        return np.bincount(places, minlength=BINS).tolist()

    def uniform(self, parameter: int) -> float:
        """Return the p-value of the chi-squared test that ranks are uniform."""
        from scipy.special import chdtrc

        counts = np.array(self.histogram(parameter))
        each = len(self) / BINS
        return float(chdtrc(BINS - 1, ((counts - each) ** 2 / each).sum()))

    def to_json(self) -> dict[str, Any]:
        """Return it fit for JSON."""
        return {
            "truths": len(self),
            "parameters": [
                {
                    "name": name,
                    **{f"coverage_{round(100 * level)}": self.share(k, level) for level in LEVELS},
                    "ranks": self.histogram(k),
                    "uniform_p": self.uniform(k),
                }
                for k, name in enumerate(self.names)
            ],
        }


def check(
    table: Table,
    truths: int,
    seed: int = 0,
    progress: Callable[[str, int, int], Any] | None = None,
) -> Coverage:
    """Return how often the posteriors for lines of a table contain their parameters.

    The table has simulations of draws of the prior; ``truths`` of its lines, chosen by the seed,
    are taken for logs, and ``progress`` is called before each. A QuantityError is raised when the
    table has fewer lines.
    """
    if not 1 <= truths <= len(table):
        raise QuantityError(
            f"check {truths:,}: from 1 to as many as there are draws, {len(table):,}; each truth "
            "is one of them"
        )
    lines = np.sort(Streams(seed).generator("check").permutation(len(table))[:truths])
    ranks = np.empty((truths, len(table.priors)))
    inside = {level: np.empty(ranks.shape, bool) for level in LEVELS}
    for place, line in enumerate(lines.tolist()):
        if progress is not None:
            progress("checking", place, truths)
        found = posterior_of(table.without(line), table.statistics[line])
        for k, truth in enumerate(table.values[line].tolist()):
            values = found.values[:, k]
            equal = found.weights[values == truth].sum()
            ranks[place, k] = found.weights[values < truth].sum() + equal / 2
            for level in LEVELS:
                tail = (1 - level) / 2
                low, high = weighted_quantiles(values, found.weights, (tail, 1 - tail))
                inside[level][place, k] = low <= truth <= high
    return Coverage(tuple(prior.name for prior in table.priors), ranks, inside)
