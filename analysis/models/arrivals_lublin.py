"""Arrivals of Lublin and Feitelson: logs of interarrival times are gamma, in a daily cycle."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Literal, Self, override

import numpy as np
from pydantic import Field, field_validator, model_validator

from analysis.features.workload import Workload
from analysis.models.cycle import checked_rates, clock_times, operational_times
from analysis.models.part import ArrivalModel, Floats
from environment.clock import DAY
from environment.errors import ModelFitError, QuantityError

#: Half hours of a day, and the length of one in s.
BUCKETS, BUCKET_S = 48, 1800

#: Bounds of the ratio that is sought when a fit has to meet the rate of a trace.
LEAST_RATIO, MOST_RATIO = 1e-3, 1e3

#: Share of gaps below the cap under which their mean is that of the cap.
LEAST_BELOW = 1e-6

#: Fewest interarrival times that the variance of their logs is told from (chosen here).
FEWEST_GAPS = 10

#: Variance of logs of gaps, (ln s)^2, below which gaps are equal but for rounding.
NO_VARIANCE = 1e-9

Kind = Literal["batch", "interactive", "typeless"]

#: Published parameters: aarr, barr, anum, bnum, arar (m_lublin99.c, program of the authors).
PUBLISHED: dict[str, tuple[float, float, float, float, float]] = {
    "batch": (6.0415, 0.8531, 6.1271, 5.2740, 1.0519),
    "interactive": (6.5510, 0.6621, 8.9186, 3.6680, 0.9797),
    "typeless": (10.2303, 0.4871, 8.1737, 3.9631, 1.0225),
}


class Lublin(ArrivalModel):
    """Independent gaps whose logs are gamma, in a time that goes by at the pace of the day.

    A job pays for the time until the next one arrives: ``exp(gamma)`` s at the mean rate. Each
    half hour of the day is worth as much as its weight, 1 in the mean.

    Notes
    -----
    The authors' program goes bucket by bucket; here the same is done at once for all jobs, as the
    inverse of the integral of the weights. It shifts the day by 11 although its buckets are half
    hours and the comment there speaks of hours; ``cyclic_start`` is 11, as in the program.
    """

    name: ClassVar[str] = "lublin"
    title: ClassVar[str] = "logs of gaps are gamma, in a daily cycle"
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
        13.0, gt=0, description="ln(s); gaps whose log is larger are drawn again (5.1 days)"
    )
    weights: tuple[float, ...] = Field(
        (),
        description="measured rate in each half hour from 00:00 on, over the mean; "
        "none: from anum and bnum",
    )

    @field_validator("weights")
    @classmethod
    def _of_a_day(cls, weights: tuple[float, ...]) -> tuple[float, ...]:
        if len(weights) not in (0, BUCKETS):
            raise ValueError(f"weights must be {BUCKETS}, or none")
        return checked_rates(weights)

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

        Parameters
        ----------
        kind
            ``batch``, ``interactive``, or ``typeless`` for all jobs together.

        Raises
        ------
        QuantityError
            When there is no such kind.
        """
        if kind not in PUBLISHED:
            raise QuantityError(f"kind {kind!r}: not known; choose {', '.join(PUBLISHED)}")
        aarr, barr, anum, bnum, arar = PUBLISHED[kind]
        return cls(aarr=aarr, barr=barr, anum=anum, bnum=bnum, arar=arar)

    @classmethod
    @override
    def fit(cls, submit: Floats) -> Self:
        """Return the model of recorded arrivals, as if 0 s were midnight."""
        return cls._fit(submit, submit, ["lublin: the time of day is counted from 0 s on"])

    @classmethod
    @override
    def fit_workload(cls, workload: Workload) -> Self:
        """Return the model of the arrivals of a workload, in its local time.

        Weights are the trace's own. The gamma has the mean and variance of the logs of gaps, in
        the time that goes by at the pace of the weights; gaps below 1 s count as 1 s, those above
        the cap are left out. The ratio ``arar`` is such that the mean rate is the trace's, which
        is what it is for in the paper.
        """
        seconds = np.floor(workload.submit).astype(np.int64)
        ahead = workload.clock.walls(seconds) - seconds
        note = workload.clock.note
        return cls._fit(workload.submit, workload.submit + ahead, [note] if note else [])

    @classmethod
    def _fit(cls, submit: Floats, local: Floats, notes: list[str]) -> Self:
        if len(submit) < FEWEST_GAPS + 1 or submit[-1] <= submit[0]:
            raise ModelFitError(
                f"arrivals {cls.name}: {len(submit)} jobs",
                f"{FEWEST_GAPS + 1} at different times are needed; take poisson",
            )
        weights = _day(local)
        if submit[-1] - submit[0] < DAY:
            weights = np.ones(BUCKETS)
            notes = [*notes, "lublin: shorter than a day, no daily cycle"]
        gaps = np.diff(operational_times(local, weights, BUCKET_S)).clip(0)
        cap = float(cls.model_fields["cap_log_s"].default)
        logs = np.log(gaps.clip(1))
        kept = logs[logs <= cap]
        if len(kept) < len(logs):
            notes = [*notes, f"lublin: {len(logs) - len(kept)} gaps above {np.exp(cap):,.0f} s"]
        mean, variance = float(kept.mean()), float(kept.var(ddof=1)) if len(kept) > 1 else 0.0
        if not variance > NO_VARIANCE:
            raise ModelFitError(
                f"arrivals {cls.name}: aarr, variance of the logs of gaps {variance:g}",
                "must be positive; take poisson",
            )
        aarr, barr = mean**2 / variance, variance / mean
        anum, bnum = _weights_gamma(weights)
        arar, told = _ratio(aarr, barr, cap, float(gaps.mean()))
        return cls(
            aarr=aarr,
            barr=barr,
            arar=arar,
            anum=anum,
            bnum=bnum,
            cap_log_s=cap,
            weights=tuple(weights.tolist()),
            notes=(*notes, *told),
        )

    @cached_property
    def day_weights(self) -> Floats:
        """Rate in each half hour of the day over the mean, shape (48,)."""
        from scipy.special import gammainc

        if self.weights:
            return np.array(self.weights)
        edge = np.arange(self.cyclic_start, self.cyclic_start + BUCKETS + 1) - 0.5
        found = np.roll(
            np.diff(gammainc(self.anum, edge.clip(0) / self.bnum)), self.cyclic_start - 1
        )
        weights: Floats = found / found.mean() if found.max() > 0 else found
        return weights

    @cached_property
    def _below_cap(self) -> float:
        """Share of gaps that are not drawn again."""
        from scipy.special import gammainc

        return float(gammainc(self.aarr * self.arar, self.cap_log_s / self.barr))

    @cached_property
    def mean_gap_s(self) -> float:
        """Mean time between two arrivals, s."""
        return _mean_gap(self.aarr * self.arar, self.barr, self.cap_log_s)

    @override
    def times(self, count: int, random: np.random.Generator) -> Floats:
        from scipy.special import gammaincinv

        # Drawing again above the cap is drawing from the distribution cut off there.
        share = random.random(count) * self._below_cap
        gaps = np.exp(self.barr * gammaincinv(self.aarr * self.arar, share))
        return clock_times(np.cumsum(gaps), self.day_weights, BUCKET_S)


def _day(local: Floats) -> Floats:
    """Return arrivals in each half hour of the day over the mean; partly seen ones by their part.

    Parameters
    ----------
    local
        s since a midnight.
    """
    place = np.floor(local / BUCKET_S).astype(np.int64)
    first, last = int(place.min()), int(place.max())
    seen = np.bincount(np.arange(first, last + 1) % BUCKETS, minlength=BUCKETS)
    arrived = np.bincount(place % BUCKETS, minlength=BUCKETS)
    rate = arrived / np.maximum(seen, 1)
    found: Floats = rate / rate.mean()
    return found


def _weights_gamma(weights: Floats) -> tuple[float, float]:
    """Return shape and scale of the gamma with mean and variance of the weights' half hours."""
    start = int(Lublin.model_fields["cyclic_start"].default)
    half_hour = np.arange(start, start + BUCKETS)
    share = np.roll(weights, 1 - start) / weights.sum()
    mean = float((share * half_hour).sum())
    # One half hour alone has no spread within the day, but the width of a half hour.
    variance = float((share * (half_hour - mean) ** 2).sum()) + 1 / 12
    return mean**2 / variance, variance / mean


def _mean_gap(shape: float, scale: float, cap: float) -> float:
    """Return the mean of exp(gamma), s, where the gamma is cut off at the cap."""
    from scipy.special import gammainc, gammaln, hyp1f1

    below = float(gammainc(shape, cap / scale))
    if scale < 1:
        inside = float(gammainc(shape, cap * (1 - scale) / scale))
        return float(np.exp(-shape * np.log1p(-scale)) * inside / below)
    # The same integral where exp(gamma) has no mean without the cap: of x^(a-1) exp(kx).
    whole = hyp1f1(shape, shape + 1, cap * (1 - 1 / scale))
    logs = shape * np.log(cap / scale) - gammaln(shape + 1)
    return float(np.exp(logs) * whole / below)


def _ratio(aarr: float, barr: float, cap: float, mean_gap_s: float) -> tuple[float, list[str]]:
    """Return the ratio at which the mean gap is that of the trace, and what is to be said."""
    from scipy.optimize import brentq
    from scipy.special import gammainc

    def off(log_ratio: float) -> float:
        shape = aarr * float(np.exp(log_ratio))
        if not gammainc(shape, cap / barr) > LEAST_BELOW:
            return cap - float(np.log(mean_gap_s))
        return float(np.log(_mean_gap(shape, barr, cap) / mean_gap_s))

    low, high = np.log(LEAST_RATIO), np.log(MOST_RATIO)
    if not off(low) < 0 < off(high):
        found = _mean_gap(aarr, barr, cap)
        return 1.0, [f"lublin: mean gap {found:,.0f} s instead of the trace's {mean_gap_s:,.0f} s"]
    return float(np.exp(brentq(off, low, high, xtol=1e-12))), []
