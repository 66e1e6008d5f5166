"""The check of a calibration: does it find parameters that are known, as often as it says?

Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari and Gelman 2018): parameters are
drawn from the prior, a log is simulated with them, and the posterior for that log is found. Over
many such truths, 50 % and 90 % intervals have to contain the truth in 50 % and 90 % of the cases,
and the share of the posterior that lies below the truth (its rank) has to be uniform: a histogram
with a hump means intervals that are too wide; with a valley, too narrow; with a slope, a bias.

Each truth is a line of the table of prior simulations, and its posterior is found from all others.
No simulation is done for a check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcrowd.analysis.calibration.posterior import LEVELS
from hpcrowd.analysis.calibration.regression import Table, posterior_of, weighted_quantiles
from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.streams import Streams

#: Bins of the histogram of ranks.
BINS = 10

#: Standard errors on each side of a coverage, for its interval of about 95 %.
ERRORS = 2.0


@dataclass(frozen=True)
class Coverage:
    """How often intervals contain known parameters.

    Attributes
    ----------
    names
        Of the parameters.
    ranks
        Share of the posterior below the truth, shape (truths, parameters).
    inside
        By level, whether the interval contains the truth, shape (truths, parameters).
    """

    names: tuple[str, ...]
    ranks: Floats
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

    Parameters
    ----------
    table
        Simulations of draws of the prior.
    truths
        How many lines are taken for logs.
    seed
        Seed of which lines.
    progress
        Called before each truth.

    Raises
    ------
    QuantityError
        When the table has fewer lines.
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
