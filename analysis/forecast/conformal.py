"""Bounds of waits that correct themselves: conformal recalibration as outcomes come in.

Each level of a forecast, such as the 95 % bound, has an offset that moves up a little with each
wait above the bound, and down with each below, in the proportion that leaves it where it is when
the coverage is right. Whatever the forecast and the waits do, the share of waits below the bound
goes to the level in the long run, because errors in one direction would move the offset without
end.

Offsets are added to ``log(1 + wait / 1 min)``, so that they are minutes for short waits and a
factor for long ones.

Sources:

- Adaptive conformal inference: Gibbs and Candes 2021, NeurIPS 34.
- Quantile tracking, with a step in proportion to recent errors: Angelopoulos, Candes and Tibshirani
  2023, Conformal PID Control for Time Series Prediction, NeurIPS 36, section 2.1. Only this part of
  the controller is here; its integrator and scorecaster are left out. They scale the step by the
  largest recent error, here it is the mean (our choice: waits have heavy tails).
- Crossing bounds are sorted, which never makes them worse in the mean pinball loss: Chernozhukov,
  Fernandez-Val and Galichon 2010, Econometrica 78.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.analysis.curves import Floats, log_minutes
from hpcrowd.analysis.forecast.scores import checked_levels
from hpcrowd.environment.errors import QuantityError, echo
from hpcrowd.environment.jobs import UNKNOWN, Int64s

type Bools = NDArray[np.bool_]

#: Levels of the bounds of a wait: median, and ends of the central 50 % and 90 %.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)

#: Waits at which offsets turn from minutes to factors, in seconds (our choice).
UNIT = 60.0

#: Step of an offset, in recent mean errors, in the long run (our choice: the offset of a calibrated
#: forecast then strays by less than a tenth of the spread of the waits).
RATE = 0.02

#: How much larger the first step is, and after how many outcomes it has halved (our choice).
FIRST = 10.0
HALVED = 50.0

#: Outcomes that the mean error is taken over (our choice).
RECENT = 200

#: Smallest mean error that steps are in proportion to, in the units of offsets: 1 % or 0.6 s
#: (our choice). Without it, an offset is stuck after a time when no job waits.
LEAST_ERROR = 0.01

#: Outcomes of a class at which its own offset has half its weight (our choice).
SHRUNK = 50.0


def wait_classes(medians: ArrayLike, ends: ArrayLike) -> NDArray[np.int64]:
    """Return the class of each job by its raw median, s, infinite beyond the horizon.

    Medians have shape (jobs,); ends are those of all classes but the last, s, ascending.
    """
    return np.searchsorted(np.asarray(ends, float), np.asarray(medians, float), "right").astype(
        np.int64
    )


class Recalibration:
    """Offsets of the bounds of forecasts, learned online.

    Levels are shares of waits that should be at or below each bound; ascending, between 0 and 1.
    Each class of jobs has offsets of its own, which are the common ones in the beginning and move
    away from them with the outcomes of the class. The rate is the step of an offset, in recent mean
    errors. ``common`` are the offsets for all jobs, in units of ``log(1 + wait / 1 min)``, shape
    (levels,).

    Examples
    --------
    >>> recalibration = Recalibration(levels=(0.5,))
    >>> recalibration.adjusted([[600.0]]).tolist()
    [[600.0]]
    >>> for wait in range(1200, 1600):
    ...     _ = recalibration.learn([[600.0]], [wait])
    >>> bool(recalibration.adjusted([[600.0]])[0, 0] > 1200)
    True

    Notes
    -----
    Over T outcomes of one class, the share above the bound of a level differs from ``1 - level`` by
    at most (range of the offset + step) / (T step) for a constant step. An outcome equal to its
    bound moves nothing: where many jobs do not wait at all, a bound of 0 stays there, and the
    shares strictly below and at most at the bound enclose the level.
    """

    def __init__(self, levels: ArrayLike = LEVELS, *, classes: int = 1, rate: float = RATE) -> None:
        self.levels = checked_levels(levels)
        if classes < 1:
            raise QuantityError(f"classes {echo(classes)}: there is 1 class or more")
        if not 0 < rate <= 1:
            raise QuantityError(f"rate {echo(rate)}: above 0 and at most 1, such as {RATE}")
        self.classes, self.rate = int(classes), float(rate)
        count = len(self.levels)
        self.common = np.zeros(count)
        # Row 0 is for all jobs, row 1 + c for class c.
        self._own = np.zeros((self.classes, count))
        self._learned = np.zeros((1 + self.classes, count))
        self._error = np.zeros((1 + self.classes, count))
        self._errors = np.zeros((1 + self.classes, count))

    def offsets(self) -> Floats:
        """Return the offsets of each class; shape (classes, levels)."""
        if self.classes == 1:
            return self.common[None, :].copy()
        learned = self._learned[1:]
        return self.common + learned / (learned + SHRUNK) * self._own

    def adjusted(self, raw: ArrayLike, classes: ArrayLike | None = None) -> Floats:
        """Return recalibrated bounds, s, 0 or more, ascending in the levels.

        Raw bounds have the same shape (jobs, levels), infinite beyond the horizon; infinite ones
        stay so. Classes of jobs count from 0, shape (jobs,); None is class 0.
        """
        raw, classes = self._checked(raw, classes)
        bounds = np.maximum(log_minutes(raw) + self.offsets()[classes], 0)
        result: Floats = np.sort(UNIT * np.expm1(bounds), axis=1)
        # Adding and taking away of an offset of 0 must change nothing.
        untouched = ~self.offsets().any(axis=1)[classes]
        result[untouched] = np.sort(raw[untouched], axis=1)
        return result

    def learn(
        self,
        raw: ArrayLike,
        outcome: ArrayLike,
        censored: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        *,
        known: ArrayLike | None = None,
    ) -> Bools:
        """Move the offsets by what happened, job after job; return which levels have learned.

        Raw bounds and classes are as given to :meth:`adjusted`; outcomes are waits, s, in the order
        in which they became known, shape (jobs,). A job that still waits is ``censored``: its wait
        is longer than its outcome. It is a miss of the bounds that have passed, and says nothing of
        the others yet. Levels that are ``known``, shape (jobs, levels), have learned from this wait
        before, when it was censored; they are left out. The result includes them: it is what to
        pass as ``known`` when a wait has gone on or ended.

        A bound counts as the offsets of now would make it, not as it was when it was issued: waits
        become known late, and offsets that still answer to bounds of long ago overshoot. Infinite
        bounds are of no account: no offset changes them.
        """
        raw, classes = self._checked(raw, classes)
        outcome = np.asarray(outcome, float)
        if outcome.shape != (len(raw),) or not (outcome >= 0).all():
            raise QuantityError(
                f"outcome of shape {outcome.shape}: one wait of 0 s or more for each job"
            )
        late = np.zeros(len(raw), bool) if censored is None else np.asarray(censored, bool)
        if late.shape != outcome.shape:
            raise QuantityError(f"censored of shape {late.shape}: one answer for each job")
        learned = np.zeros(raw.shape, bool) if known is None else np.array(known, bool)
        if learned.shape != raw.shape:
            raise QuantityError(f"known of shape {learned.shape}: give {raw.shape}, as raw")
        if not np.isfinite(outcome[~late]).all():
            raise QuantityError("an outcome that is infinite: pass it as censored, with its wait")
        values, reached = log_minutes(raw), log_minutes(outcome)
        for job in range(len(raw)):
            use = np.isfinite(values[job]) & ~learned[job]
            learned[job] |= self._move(values[job], reached[job], late[job], classes[job], use)
        return learned

    def _move(self, raw: Floats, reached: float, late: bool, kind: int, use: Bools) -> Bools:
        """Move the offsets by one job; return which levels have learned."""
        if self.classes == 1:
            push, moved = self._step(0, raw, self.common, reached, late, use)
            self.common += push
            return moved
        row, own = 1 + kind, self._own[kind]
        learned = self._learned[row]
        offset = self.common + learned / (learned + SHRUNK) * own
        push, moved = self._step(row, raw, offset, reached, late, use)
        own += push
        # A job counts once; if only the bound of its class has passed, the common one does without.
        push, _ = self._step(0, raw, self.common, reached, late, moved)
        self.common += push
        return moved

    def _step(
        self, row: int, raw: Floats, offset: Floats, reached: float, late: bool, use: Bools
    ) -> tuple[Floats, Bools]:
        """Return by how much offsets move, and which of them have learned."""
        error = reached - np.maximum(np.where(use, raw, 0) + offset, 0)
        if late:
            moved = use & (error >= 0)
            push = np.where(moved, self.levels, 0)
        else:
            moved = use
            push = np.where(error > 0, self.levels, np.where(error < 0, self.levels - 1, 0)) * use
            # How far a wait that goes on will be above is not known yet.
            self._errors[row] += moved
            weight = moved / np.minimum(np.maximum(self._errors[row], 1), RECENT)
            self._error[row] += weight * (np.abs(error) - self._error[row])
        faster = FIRST / (1 + self._learned[row] / HALVED)
        step = self.rate * np.maximum(faster, 1) * np.maximum(self._error[row], LEAST_ERROR)
        self._learned[row] += moved
        return step * push, moved

    def _checked(
        self, raw: ArrayLike, classes: ArrayLike | None
    ) -> tuple[Floats, NDArray[np.int64]]:
        raw = np.asarray(raw, float)
        if raw.ndim != 2 or raw.shape[1] != len(self.levels):
            raise QuantityError(
                f"bounds of shape {raw.shape}: give (jobs, {len(self.levels)}), one for each level"
            )
        if not (raw >= 0).all():
            raise QuantityError("bounds that are negative or not numbers: a wait is 0 s or more")
        if classes is None:
            return raw, np.zeros(len(raw), np.int64)
        classes = np.asarray(classes)
        if classes.shape != (len(raw),) or not np.isin(classes, np.arange(self.classes)).all():
            raise QuantityError(
                f"classes of shape {classes.shape}: one for each job, from 0 to {self.classes - 1}"
            )
        return raw, classes.astype(np.int64)


class OpenForecasts:
    """Forecasts that are still open, from which a recalibration learns as outcomes come in."""

    def __init__(self, recalibration: Recalibration) -> None:
        self.recalibration = recalibration
        self._open: list[_Open] = []

    def add(
        self,
        raw: Floats,
        asked_at: int,
        start: NDArray[np.int64],
        classes: NDArray[np.int64] | None = None,
    ) -> None:
        """Add the bounds of one moment, s.

        Raw bounds and classes are as for :meth:`Recalibration.learn`. Jobs start at a second each;
        -1 if that is never known.
        """
        classes = np.zeros(len(raw), np.int64) if classes is None else classes
        never = np.where(start < 0, np.iinfo(np.int64).max, start)
        self._open.append(_Open(raw, asked_at, never, classes, np.zeros(raw.shape, bool)))

    def learn(self, now: int) -> None:
        """Learn what is known at a second; those that are over are forgotten."""
        left = []
        for one in self._open:
            waits = one.start > now
            outcome = np.where(waits, now, one.start) - one.asked_at
            known = self.recalibration.learn(one.raw, outcome, waits, one.classes, known=one.known)
            if waits.any():
                left.append(_Open(
                    one.raw[waits], one.asked_at, one.start[waits], one.classes[waits],
                    known[waits],
                ))  # fmt: skip
        self._open = left


class _Open(NamedTuple):
    """The jobs of one moment that have not started yet."""

    raw: Floats
    asked_at: int
    start: NDArray[np.int64]
    classes: NDArray[np.int64]
    known: Bools


# ---- levels that come true ----------------------------------------------------------------------

#: Levels of the quantiles that stand for a distribution.
STEPS = 200
GRID = np.arange(1, STEPS + 1) / STEPS

#: Cases of a right forecast that are put to the known ones (our choice): levels hardly move before
#: as many have come.
TRUST = 100.0


class TrueLevels:
    """Exchanges levels of bounds for those that came true.

    A forecast says a distribution of the wait of each job. The share of it that is at or below the
    wait that came, its probability integral transform, is spread evenly from 0 to 1 if forecasts
    are right (Dawid, Journal of the Royal Statistical Society A 147, 1984). Where it is not, the
    level of a bound is exchanged for that below which the wanted share of earlier transforms lies
    (Kuleshov, Fenner and Ermon, ICML 2018).

    This is for jobs just submitted, many of which start at once. Where half of all waits are 0, a
    lower bound stays 0, while an offset that is added to bounds
    (:class:`Recalibration`) lifts it above them. Jobs that
    wait already are rarely alike; offsets serve them better, as they can also leave the
    distribution.

    Two things are particular to waits. Many are equal, and what came is then a range of the
    distribution, over which the case is spread evenly (Czado, Gneiting and Held, Biometrics 65,
    2009). And jobs that still wait are known to be above what they have waited (Kaplan and Meier,
    JASA 53, 1958).

    Levels are shares of waits that should be at or below each bound; ascending, between 0 and 1.
    Trust is the number of cases of a right forecast that are put to the known ones.

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
        """Add the jobs of one forecast, asked at a second.

        What was said are quantiles of their waits at :data:`GRID`, s, shape (jobs, levels of the
        grid). Their starts are in s, -1 if not known; what is later than the second of a later
        question does not count there.
        """
        self._said = np.concatenate((self._said, said))
        self._asked_at = np.concatenate((self._asked_at, np.full(len(said), asked_at)))
        self._start = np.concatenate((self._start, np.asarray(start, np.int64)))

    def bounds(self, said: Floats, now: int) -> Floats:
        """Return bounds of waits, s, shape (jobs, levels), by what is known at a second.

        What was said is as for :meth:`add`.
        """
        place = np.ceil(STEPS * self.exchanged(now) - 1e-9).astype(np.int64)
        return said[:, np.clip(place, 1, STEPS) - 1]

    def exchanged(self, now: int) -> Floats:
        """Return the level to take for each level, by what is known at a second."""
        below = np.concatenate(([0.0], self._below(now)))
        return np.interp(self.levels, below, np.concatenate(([0.0], GRID)))

    def came_true(self, shares: Floats, now: int) -> Floats:
        """Return the share of waits that were below bounds said to be at shares, at a second."""
        return np.interp(
            shares, np.concatenate(([0.0], GRID)), np.concatenate(([0.0], self._below(now)))
        )

    def _below(self, now: int) -> Floats:
        """Return the share of the transforms that are below each step of the grid."""
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
        found: Floats = 1 - np.cumprod(1 - np.minimum(ended / np.maximum(there, 1e-300), 1.0))
        return found


def _counts(place: Int64s, weight: Floats) -> Floats:
    """Return the sum of weights at each place from 0 to the number of steps."""
    return np.bincount(place, weight, STEPS + 1)
