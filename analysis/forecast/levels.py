"""Levels that come true: which quantiles of earlier forecasts held which share of waits.

A forecast says a distribution of the wait of each job. The share of it that is at or below the wait
that came, its probability integral transform, is spread evenly from 0 to 1 if forecasts are right
(Dawid, Journal of the Royal Statistical Society A 147, 1984). Where it is not, the level of a bound
is exchanged for that below which the wanted share of earlier transforms lies (Kuleshov, Fenner and
Ermon, ICML 2018).

This is for jobs just submitted, many of which start at once. Where half of all waits are 0, a lower
bound stays 0, while an offset that is added to bounds
(:class:`~hpcrowd.analysis.forecast.conformal.Recalibration`) lifts it above them. Jobs that wait
already are rarely alike; offsets serve them better, as they can also leave the distribution.

Two things are particular to waits. Many are equal, and what came is then a range of the
distribution, over which the case is spread evenly (Czado, Gneiting and Held, Biometrics 65, 2009).
And jobs that still wait are known to be above what they have waited (Kaplan and Meier, JASA 53,
1958).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.forecast.conformal import LEVELS
from hpcrowd.analysis.forecast.scores import checked_levels
from hpcrowd.environment.jobs import UNKNOWN, Int64s

#: Levels of the quantiles that stand for a distribution.
STEPS = 200
GRID = np.arange(1, STEPS + 1) / STEPS

#: Cases of a right forecast that are put to the known ones (our choice): levels hardly move before
#: as many have come.
TRUST = 100.0


class TrueLevels:
    """Exchanges levels of bounds for those that came true.

    Parameters
    ----------
    levels
        Shares of waits that should be at or below each bound; ascending, between 0 and 1.
    trust
        Cases of a right forecast that are put to the known ones.

    Examples
    --------
    >>> levels = TrueLevels(levels=(0.5,))
    >>> said = np.arange(1.0, 201)[None, :]  # a wait of 1 to 200 s, evenly
    >>> levels.bounds(said, now=0).tolist()
    [[100.0]]
    >>> for now in range(0, 300_000, 1_000):  # and all wait for 150 to 200 s
    ...     levels.add(said, now, [now + 150 + now // 1_000 % 51])
    >>> 150 < levels.bounds(said, now=400_000).item() < 175
    True
    """

    def __init__(self, levels: ArrayLike = LEVELS, *, trust: float = TRUST) -> None:
        self.levels = checked_levels(levels)
        self.trust = float(trust)
        self._said = np.zeros((0, STEPS))
        self._asked_at = np.zeros(0, np.int64)
        self._start = np.zeros(0, np.int64)

    def add(self, said: Floats, asked_at: int, start: ArrayLike) -> None:
        """Add the jobs of one forecast.

        Parameters
        ----------
        said
            Quantiles of their waits at :data:`GRID`, s, shape (jobs, levels of the grid).
        asked_at
            Second of the forecast.
        start
            Their starts, s; -1 if that is not known. What is later than the second of a later
            question does not count there.
        """
        self._said = np.concatenate((self._said, said))
        self._asked_at = np.concatenate((self._asked_at, np.full(len(said), asked_at)))
        self._start = np.concatenate((self._start, np.asarray(start, np.int64)))

    def bounds(self, said: Floats, now: int) -> Floats:
        """Return bounds of waits, s, shape (jobs, levels), by what is known at a second.

        Parameters
        ----------
        said
            As for :meth:`add`.
        now
            Second of the question.
        """
        place = np.ceil(STEPS * self.exchanged(now) - 1e-9).astype(np.int64)
        found: Floats = said[:, np.clip(place, 1, STEPS) - 1]
        return found

    def exchanged(self, now: int) -> Floats:
        """Return the level to take for each level, by what is known at a second."""
        said, start, asked_at = self._said, self._start, self._asked_at
        waits = (start == UNKNOWN) | (start > now)
        waited = (np.where(waits, now, start) - asked_at)[:, None]
        low = np.minimum((said < waited).sum(axis=1), STEPS - 1)
        high = np.minimum((said <= waited).sum(axis=1), STEPS - 1)
        # Each case that is over is spread over its range; others leave below theirs.
        share = np.where(waits, 0.0, 1 / (high - low + 1))
        ended = np.full(STEPS, self.trust / STEPS)
        ended += np.cumsum(_counts(low, share) - _counts(high + 1, share))[:STEPS]
        left = _counts(low[waits], np.ones(int(waits.sum())))[:STEPS]
        there = self.trust + len(said) - np.cumsum(left) - np.concatenate(
            ([0.0], np.cumsum(ended)[:-1])
        )  # fmt: skip
        below = 1 - np.cumprod(1 - np.minimum(ended / np.maximum(there, 1e-300), 1.0))
        found: Floats = np.interp(
            self.levels, np.concatenate(([0.0], below)), np.concatenate(([0.0], GRID))
        )
        return found


def _counts(place: Int64s, weight: Floats) -> Floats:
    """Return the sum of weights at each place from 0 to the number of steps."""
    return np.bincount(place, weight, STEPS + 1)
