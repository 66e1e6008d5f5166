"""Arrivals of Lublin and Feitelson: gamma distributed logs of gaps, with a daily cycle."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, Self, override

import numpy as np
from pydantic import Field, field_validator, model_validator

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import (
    ArrivalModel,
    Floats,
    Rates,
    clock_times,
    operational_times,
)
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import ModelFitError, check_choice
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.limits.numbers import check_memory

#: Half hours of a day, and the length of one, s.
BUCKETS, BUCKET_S = 48, 1800

#: Bounds of shape and scale in a fit.
SHAPES, SCALES = (1e-5, 1e6), (1e-3, 50.0)

#: Share of gaps below the cap under which their mean is that of the cap.
LEAST_BELOW = 1e-6

#: Least excess of the log of the mean gap over the mean of the logs; below, gaps count as equal.
LEAST_SPREAD = 1e-6

#: A relative error of a mean above this is noted.
TOLERANCE = 0.01

#: Fewest interarrival times to estimate a spread (chosen here).
FEWEST_GAPS = 10

#: Bytes for each half hour of a trace while its daily rhythm is measured.
BYTES_PER_HALF_HOUR = 16

Kind = Literal["batch", "interactive", "typeless"]

#: Published parameters: aarr, barr, anum, bnum, arar (m_lublin99.c, program of the authors).
PUBLISHED: dict[str, tuple[float, float, float, float, float]] = {
    "batch": (6.0415, 0.8531, 6.1271, 5.2740, 1.0519),
    "interactive": (6.5510, 0.6621, 8.9186, 3.6680, 0.9797),
    "typeless": (10.2303, 0.4871, 8.1737, 3.9631, 1.0225),
}


class Lublin(ArrivalModel):
    """Independent gaps with gamma distributed logs, in a time that runs at the rate of the day.

    The time until the next job is ``exp(gamma)`` s at the mean rate. It passes faster in half hours
    of the day with a larger weight; the mean weight is 1.

    Notes
    -----
    The authors' program goes bucket by bucket; here the same is done for all jobs at once, by the
    inverse of the integral of the weights. The program shifts the day by 11 buckets of half an
    hour, although its comment speaks of hours; ``cyclic_start`` is 11, as in the program.
    """

    name: ClassVar[str] = "lublin"
    title: ClassVar[str] = "gamma distributed logs of gaps, with a daily cycle"
    source: ClassVar[str] = "Lublin and Feitelson 2003; their program m_lublin99.c"

    aarr: float = Field(gt=0, description="shape of the gamma of ln(gap in s) in the rush hours")
    barr: float = Field(gt=0, description="its scale")
    arar: float = Field(
        1.0, gt=0, description="arrive-rush-to-all ratio: factor of aarr for the whole day"
    )
    anum: float = Field(gt=0, description="shape of the gamma that weighs the half hours")
    bnum: float = Field(gt=0, description="its scale, half hours")
    cyclic_start: int = Field(
        11, ge=0, lt=BUCKETS, description="half hour at which the gamma of weights begins"
    )
    cap_log_s: float = Field(
        13.0, gt=0, description="ln(s); gaps with a larger log are drawn again (5.1 days)"
    )
    weights: Rates = Field(
        (),
        description="measured rate in each half hour from 00:00 on, over the mean; "
        "if empty: from anum and bnum",
    )

    @field_validator("weights")
    @classmethod
    def _of_a_day(cls, weights: tuple[float, ...]) -> tuple[float, ...]:
        if len(weights) not in (0, BUCKETS):
            raise ValueError(f"weights: must be {BUCKETS} numbers, or none")
        return weights

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Self:
        if not self._below_cap > 0:
            raise ValueError(f"gaps: none is below the cap of exp({self.cap_log_s:g}) s")
        if not self.day_weights.max() > 0:
            raise ValueError(f"anum {self.anum}, bnum {self.bnum}: no weight in the day")
        return self

    @classmethod
    def published(cls, kind: Kind = "typeless") -> Self:
        """Return the model with the authors' parameters.

        The kind is ``batch``, ``interactive``, or ``typeless`` for all jobs together.

        Raises
        ------
        QuantityError
            When there is no such kind.
        """
        check_choice("kind", kind, PUBLISHED)
        aarr, barr, anum, bnum, arar = PUBLISHED[kind]
        return cls(aarr=aarr, barr=barr, anum=anum, bnum=bnum, arar=arar)

    @classmethod
    @override
    def fit(cls, workload: Workload) -> Self:
        """Return the model of the arrivals of a workload, in its local time.

        Weights are those of the trace. In the time that runs at their rate, the gamma matches the
        trace's mean gap and mean log of gaps; gaps below 1 s count as 1 s in the logs. (A match of
        mean and variance of the logs would give two to three times the trace's CV; this gives
        twice.) The rate is right for the whole day, so ``arar`` is 1; anum and bnum are only for
        comparison with the published ones.
        """
        seconds = np.floor(workload.submit).astype(np.int64)
        ahead = workload.clock.walls(seconds) - seconds
        submit, local = workload.submit, workload.submit + ahead
        notes = [workload.clock.note] if workload.clock.note else []
        if len(submit) < FEWEST_GAPS + 1 or submit[-1] <= submit[0]:
            raise ModelFitError(
                f"arrivals {cls.name}: {len(submit)} jobs",
                f"{FEWEST_GAPS + 1} at different times are needed; take poisson",
            )
        weights = _day(local)
        if submit[-1] - submit[0] < DAY:
            weights = np.ones(BUCKETS)
            notes.append("lublin: trace shorter than a day, no daily cycle")
        gaps = np.diff(operational_times(local, weights, BUCKET_S)).clip(0)
        cap = float(cls.model_fields["cap_log_s"].default)
        mean_gap, mean_log = float(gaps.mean()), float(np.log(gaps.clip(1)).mean())
        if not 1 < mean_gap < np.exp(cap):
            raise ModelFitError(
                f"arrivals {cls.name}: mean gap {mean_gap:.3g} s",
                f"must be between 1 s and {np.exp(cap):,.0f} s in this model; take poisson",
            )
        if np.log(mean_gap) - mean_log < LEAST_SPREAD:
            raise ModelFitError(
                f"arrivals {cls.name}: aarr, gaps of {mean_gap:.3g} s that hardly vary",
                "gaps must vary; take poisson",
            )
        aarr, barr, told = _gamma(mean_log, mean_gap, cap)
        anum, bnum = _weights_gamma(weights)
        return cls(
            aarr=aarr,
            barr=barr,
            anum=anum,
            bnum=bnum,
            cap_log_s=cap,
            weights=tuple(weights.tolist()),
            notes=(*notes, *told),
        )

    @property
    def day_weights(self) -> Floats:
        """Rate in each half hour of the day over the mean rate, shape (48,)."""
        from scipy.special import gammainc

        if self.weights:
            return np.array(self.weights)
        edge = np.arange(self.cyclic_start, self.cyclic_start + BUCKETS + 1) - 0.5
        found = np.roll(
            np.diff(gammainc(self.anum, edge.clip(0) / self.bnum)), self.cyclic_start - 1
        )
        weights: Floats = found / found.mean() if found.max() > 0 else found
        return weights

    @property
    def _below_cap(self) -> float:
        """Share of gaps below the cap, which are not drawn again."""
        from scipy.special import gammainc

        return float(gammainc(self.aarr * self.arar, self.cap_log_s / self.barr))

    @property
    def mean_gap_s(self) -> float:
        """Mean time between two arrivals, s."""
        return _mean_gap(self.aarr * self.arar, self.barr, self.cap_log_s)

    @override
    def times(self, count: int, random: np.random.Generator) -> Floats:
        from scipy.special import gammaincinv

        # Drawing again above the cap is the same as drawing from the truncated distribution.
        share = random.random(count) * self._below_cap
        gaps = np.exp(self.barr * gammaincinv(self.aarr * self.arar, share))
        return clock_times(np.cumsum(gaps), self.day_weights, BUCKET_S)


def _day(local: Floats) -> Floats:
    """Return the rate in each half hour of the day over the mean; partial ones count in part.

    Times are s since a midnight.
    """
    place = np.floor(local / BUCKET_S).astype(np.int64)
    first, last = int(place.min()), int(place.max())
    check_memory(
        f"{last - first + 1:,} half hours from the first to the last job",
        BYTES_PER_HALF_HOUR * (last - first),
        "correct the times in the trace",
    )
    seen = np.bincount(np.arange(first, last + 1) % BUCKETS, minlength=BUCKETS)
    arrived = np.bincount(place % BUCKETS, minlength=BUCKETS)
    rate = arrived / np.maximum(seen, 1)
    return rate / rate.mean()


def _weights_gamma(weights: Floats) -> tuple[float, float]:
    """Return shape and scale of the gamma with the mean and variance of the weighted half hours."""
    start = int(Lublin.model_fields["cyclic_start"].default)
    half_hour = np.arange(start, start + BUCKETS)
    share = np.roll(weights, 1 - start) / weights.sum()
    mean = float((share * half_hour).sum())
    # A single half hour has no spread except its own width.
    variance = float((share * (half_hour - mean) ** 2).sum()) + 1 / 12
    return mean**2 / variance, variance / mean


def _mean_gap(shape: float, scale: float, cap: float) -> float:
    """Return the mean of exp(gamma), s, with the gamma truncated at the cap."""
    from scipy.special import gammainc, gammaln, hyp1f1

    below = float(gammainc(shape, cap / scale))
    if scale < 1:
        inside = float(gammainc(shape, cap * (1 - scale) / scale))
        return float(np.exp(-shape * np.log1p(-scale)) * inside / below)
    # The same integral, of x^(a-1) exp(kx), if exp(gamma) has no mean without the cap.
    whole = hyp1f1(shape, shape + 1, cap * (1 - 1 / scale))
    logs = shape * np.log(cap / scale) - gammaln(shape + 1)
    return float(np.exp(logs) * whole / below)


def _mean_log(shape: float, scale: float, cap: float) -> float:
    """Return the mean of the gamma truncated at the cap."""
    from scipy.special import gammainc

    return float(shape * scale * gammainc(shape + 1, cap / scale) / gammainc(shape, cap / scale))


def _gamma(mean_log: float, mean_gap_s: float, cap: float) -> tuple[float, float, list[str]]:
    """Return shape and scale for a mean gap and a mean of its log, with notes."""
    from scipy.special import gammainc

    def shape(scale: float) -> float:
        """Return the shape that gives the mean gap."""

        def off(log_shape: float) -> float:
            tried = float(np.exp(log_shape))
            if not gammainc(tried, cap / scale) > LEAST_BELOW:
                return cap - float(np.log(mean_gap_s))
            return float(np.log(_mean_gap(tried, scale, cap) / mean_gap_s))

        return float(np.exp(_root(off, *SHAPES)))

    def below(log_scale: float) -> float:
        tried = float(np.exp(log_scale))
        return mean_log - _mean_log(shape(tried), tried, cap)

    # At the same mean gap, the mean of the logs falls with their spread.
    scale = float(np.exp(_root(below, *SCALES)))
    found = shape(scale)
    notes = []
    for what, reached, wanted in (
        ("mean gap, s,", _mean_gap(found, scale, cap), mean_gap_s),
        ("mean of ln(gap in s)", _mean_log(found, scale, cap), mean_log),
    ):
        if abs(reached - wanted) > TOLERANCE * wanted:
            notes.append(f"lublin: {what} {reached:.4g} instead of the trace's {wanted:.4g}")
    return found, scale, notes


def _root(function: Callable[[float], float], least: float, most: float) -> float:
    """Return the zero of a rising function of a logarithm, or the closer end."""
    from scipy.optimize import brentq

    low, high = float(np.log(least)), float(np.log(most))
    if function(low) >= 0:
        return low
    if function(high) <= 0:
        return high
    return float(brentq(function, low, high, xtol=1e-12))


#: Kinds of jobs: their queue numbers in the authors' program.
INTERACTIVE, BATCH = 0, 1

#: Fewest jobs of a kind to treat it separately (chosen here).
FEWEST = 100


class LublinTypes(ArrivalModel):
    """Lublin's arrivals, separate for batch and interactive jobs, merged in order of time."""

    name: ClassVar[str] = "lublin-types"
    title: ClassVar[str] = "the same, separate for batch and interactive jobs"
    source: ClassVar[str] = Lublin.source

    batch: Lublin = Field(description="arrivals of batch jobs")
    interactive: Lublin = Field(description="arrivals of interactive jobs")

    @classmethod
    @override
    def fit(cls, workload: Workload) -> ArrivalModel:
        """Return the arrivals of both kinds, or Lublin's of all jobs if there is only one kind.

        Jobs of queue 0 are interactive, as in logs of the Parallel Workloads Archive.
        """
        kinds = kinds_of(workload)
        if kinds is None:
            return Lublin.fit(workload)
        found = [
            Lublin.fit(workload.take(np.flatnonzero(kinds == kind)))
            for kind in (BATCH, INTERACTIVE)
        ]
        return cls(batch=found[0], interactive=found[1])

    @classmethod
    def published(cls) -> Self:
        """Return the model with the authors' parameters."""
        return cls(batch=Lublin.published("batch"), interactive=Lublin.published("interactive"))

    @property
    def interactive_share(self) -> float:
        """Mean share of interactive jobs."""
        batch, interactive = 1 / self.batch.mean_gap_s, 1 / self.interactive.mean_gap_s
        return interactive / (batch + interactive)

    @override
    def times(self, count: int, random: np.random.Generator) -> Floats:
        return self.times_and_kinds(count, random)[0]

    @override
    def times_and_kinds(self, count: int, random: np.random.Generator) -> tuple[Floats, Int64s]:
        times = np.concatenate(
            [self.batch.times(count, random), self.interactive.times(count, random)]
        )
        first = np.argsort(times, kind="stable")[:count]
        return times[first], np.where(first < count, BATCH, INTERACTIVE)


def kinds_of(workload: Workload) -> Int64s | None:
    """Return the kind of each job by its queue; None if one kind has too few jobs."""
    kinds = np.where(workload.queue == INTERACTIVE, INTERACTIVE, BATCH)
    few = np.bincount(kinds, minlength=2).min() < FEWEST
    return None if few else kinds
