"""Arrivals of the multifractal wavelet model: bursts on all time scales, long range dependence.

Riedi, Crouse, Ribeiro and Baraniuk, *A multifractal wavelet model with application to network
traffic*, IEEE Trans. Information Theory 45(3), 1999, as applied to jobs by Minh 2012 (sections 4.1
and 4.3). Scales are numbered from 1, the coarsest, as there. :class:`Auto` takes the variant of the
model that is closest to the trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, override

import numpy as np
from pydantic import Field, PositiveFloat, model_validator

from hpcrowd.analysis.features.series import counts, hurst, interarrivals, moments
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import ArrivalModel, Floats, Poisson
from hpcrowd.environment.errors import ModelFitError, UnavailableError, missing
from hpcrowd.environment.limits.numbers import check_memory
from hpcrowd.environment.streams import Streams

#: Bytes for each arrival that is generated.
BYTES_PER_ARRIVAL = 40


def integrate_and_fire(
    expected: Floats, interval_s: float, carried: float = 0.0
) -> tuple[Floats, float]:
    """Return the times at which the integral of a piecewise constant rate reaches whole numbers.

    A rate process gives the expected number of arrivals in each interval, not their times. Minh
    2012 (section 4.5.2) converts it by *integrate-and-fire*: the rate is summed up, and each time
    the sum reaches the next whole number, a job arrives. Within an interval the integral is linear,
    so the times are exact. Nothing arrives in an interval with 0 expected arrivals: a whole number
    reached at the end of an interval counts there, however long the following pause.

    ``carried`` is the sum before the first interval, 0 to 1. Times are s from the beginning of the
    first interval, rising; the remainder is below 1.
    """
    if not len(expected):
        return np.zeros(0), carried
    reached = carried + np.cumsum(expected)
    need = BYTES_PER_ARRIVAL * reached[-1]
    check_memory(f"{reached[-1]:,.0f} arrivals", need, "generate fewer jobs or days")
    whole = np.arange(1.0, np.floor(reached[-1]) + 1)
    place = np.searchsorted(reached, whole, side="left")
    before = np.where(place > 0, reached[place - 1], carried)
    part = ((whole - before) / expected[place]).clip(0, 1)
    return (place + part) * interval_s, float(reached[-1] - len(whole))


def random_events(expected: Floats, interval_s: float, random: np.random.Generator) -> Floats:
    """Return random arrivals with a piecewise constant rate: Poisson in each interval.

    Otherwise as :func:`integrate_and_fire`.
    """
    number = random.poisson(expected)
    place = np.repeat(np.arange(len(expected)), number)
    return np.sort(place + random.random(len(place))) * interval_s


#: Fewest coarse coefficients: the length of a trace is cut to C of 4 to 7 times a power of two
#: (chosen here; the thesis cuts 52 to 3 x 16, and the toolbox of the model's authors requires a
#: least number).
FEWEST_COARSE = 4


class Wavelet(ArrivalModel):
    """A rate process that is split repeatedly into halves, and its arrivals.

    Eq. 4.9 draws normal coarse scaling coefficients, again if one is not positive. Each coefficient
    c gets the wavelet coefficient A x c with A symmetric beta in [-1, 1] (Eq. 4.5), and becomes two
    of the next scale, (c + A c) / sqrt(2) and (c - A c) / sqrt(2) (Eqs. 4.3 and 4.4). The last
    scale gives the arrivals in each interval.

    Notes
    -----
    All intervals have a positive rate, so there are no long pauses;
    :class:`analysis.models.parts.wavelet.WaveletZeros` has them. One synthesis has as many
    intervals as the cut trace; for more arrivals, further ones follow.
    """

    name: ClassVar[str] = "wavelet"
    title: ClassVar[str] = "multifractal wavelet model of the rate"
    source: ClassVar[str] = "Minh 2012, sections 4.1 and 4.3; Riedi et al. 1999"

    time_scale_s: float = Field(gt=0, description="s; T, length of an interval")
    coarse: int = Field(ge=1, description="C; coefficients of the coarsest scale")
    mean: float = Field(gt=0, description="mu_c; mean of the coarse scaling coefficients")
    sd: float = Field(ge=0, description="sigma_c; their standard deviation, with n - 1")
    p: tuple[PositiveFloat, ...] = Field(
        min_length=1, description="beta parameter of the multipliers at each scale, coarsest first"
    )
    events: Literal["exact", "poisson"] = Field(
        "exact",
        description="exact: integrate and fire; poisson: random with this rate",
    )

    @classmethod
    @override
    def fit(cls, workload: Workload, **others: Any) -> Self:
        """Return the model of the arrivals of a workload; ``others`` are as for :meth:`of_scales`.

        The settings of the workload have T, the counting interval (15 min to 3 h in the thesis).

        Raises
        ------
        ModelFitError
            When there are too few intervals, or a parameter is not positive.
        UnavailableError
            When PyWavelets is not installed.
        """
        return cls.of_scales(scales_of(workload, cls.name), **others)

    @classmethod
    def of_scales(cls, scales: Scales, **others: Any) -> Self:
        """Return the model of a transformed series; ``others`` are further fields."""
        p = beta_parameters(scales, cls.name)
        top = scales.scaling[0]
        notes = [*others.pop("notes", ())]
        left_out = scales.intervals - len(scales.counts)
        if left_out:
            notes.append(
                f"{cls.name}: the last {left_out:,} of {scales.intervals:,} intervals are not used,"
                f" to get a length of {len(top)} x 2^{len(p)}"
            )
        return cls(
            time_scale_s=scales.time_scale_s,
            coarse=len(top),
            mean=float(top.mean()),
            sd=float(top.std(ddof=1)),
            p=tuple(p),
            notes=tuple(notes),
            **others,
        )

    @override
    def times(self, count: int, random: np.random.Generator) -> Floats:
        found: list[Floats] = []
        have, begin, carried = 0, 0.0, 0.0
        while have < count:
            expected = self.rates(random)
            if self.events == "exact":
                times, carried = integrate_and_fire(expected, self.time_scale_s, carried)
            else:
                times = random_events(expected, self.time_scale_s, random)
            found.append(begin + times)
            begin += len(expected) * self.time_scale_s
            have += len(times)
        return np.concatenate(found)[:count]

    def rates(self, random: np.random.Generator) -> Floats:
        """Return one synthesis: the expected arrivals of each interval, shape (C x 2^S,)."""
        scaling = self._coarse(random)
        for scale, p in enumerate(self.p, start=1):
            multiplier = 2 * random.beta(p, p, len(scaling)) - 1
            scaling = split(scaling, self._changed(multiplier, scaling, scale, random))
        return scaling

    def _coarse(self, random: np.random.Generator) -> Floats:
        found = self.mean + self.sd * random.standard_normal(self.coarse)
        while (again := found <= 0).any():
            found[again] = self.mean + self.sd * random.standard_normal(int(again.sum()))
        return found

    def _changed(
        self, multiplier: Floats, scaling: Floats, scale: int, random: np.random.Generator
    ) -> Floats:
        """Return the multipliers of a scale; subclasses may change some of them."""
        return multiplier


@dataclass(frozen=True)
class Scales:
    """A series and its Haar transform."""

    #: T, s, and the number of intervals before the series was cut.
    time_scale_s: float
    intervals: int
    counts: Floats  #: arrivals in each interval, shape (C x 2^S,)

    #: Coefficients of each scale, coarsest first: S of each.
    scaling: list[Floats]
    wavelet: list[Floats]


def split(scaling: Floats, multiplier: Floats) -> Floats:
    """Return the scaling coefficients of the next scale (Eqs. 4.3 to 4.5), shape (2 n,).

    A multiplier of 1 or -1 gives an exact 0.
    """
    found = np.empty(2 * len(scaling))
    found[0::2] = scaling * (1 + multiplier) / np.sqrt(2)
    found[1::2] = scaling * (1 - multiplier) / np.sqrt(2)
    return found


def scales_of(workload: Workload, name: str) -> Scales:
    """Return arrivals counted over T, cut to C x 2^S, and their Haar transform (Eqs. 4.1, 4.2).

    ``name`` is that of the model, for messages.

    Raises
    ------
    ModelFitError
        When there are too few intervals, or far too many.
    UnavailableError
        When PyWavelets is not installed.
    """
    time_scale_s = workload.settings.time_scale_s
    try:
        import pywt
    except ImportError:
        raise UnavailableError(missing("PyWavelets")) from None
    try:
        counted = counts(workload.submit, time_scale_s)
    except UnavailableError as error:
        raise ModelFitError(f"arrivals {name}", str(error)) from None
    if len(counted) < 2 * FEWEST_COARSE:
        raise ModelFitError(
            f"arrivals {name}: {len(counted)} intervals of {time_scale_s:g} s",
            f"at least {2 * FEWEST_COARSE} are needed; take poisson, or a shorter time scale",
        )
    levels = (len(counted) // FEWEST_COARSE).bit_length() - 1
    used = counted[: len(counted) >> levels << levels]
    scaling, wavelet = [], []
    found = used
    for _ in range(levels):
        found, detail = pywt.dwt(found, "haar", mode="periodization")
        scaling.append(found)
        wavelet.append(detail)
    return Scales(time_scale_s, len(counted), used, scaling[::-1], wavelet[::-1])


def beta_parameters(scales: Scales, name: str) -> list[float]:
    """Return the parameter of the multipliers at each scale, coarsest first.

    The first follows from the variance of the multipliers (Eq. 4.7), the others from the ratio of
    the wavelet coefficients' mean squares (Eq. 4.8). ``name`` is that of the model, for messages.

    Raises
    ------
    ModelFitError
        When one is not positive or not finite; the message has the scale and the value.
    """
    top, detail = scales.scaling[0], scales.wavelet[0]
    # An empty part of the trace, c = 0, has no multiplier.
    multiplier = detail[top > 0] / top[top > 0]
    variance = float(multiplier.var(ddof=1)) if len(multiplier) > 1 else 0.0
    if not variance > 0:
        raise _not_positive(name, 1, f"multipliers of variance {variance:g}")
    found = [0.5 / variance - 0.5]
    square = [float((wavelet**2).mean()) for wavelet in scales.wavelet]
    for scale in range(1, len(square) + 1):
        if scale > 1:
            if not square[scale - 1] > 0:
                raise _not_positive(name, scale, "wavelet coefficients that are all 0")
            ratio = square[scale - 2] / square[scale - 1]
            found.append((ratio * (found[-1] + 1) - 1) / 2)
        if not found[-1] > 0:
            raise _not_positive(name, scale, f"p = {found[-1]:.3g}")
    return found


def _not_positive(name: str, scale: int, what: str) -> ModelFitError:
    return ModelFitError(
        f"arrivals {name}: p_{scale}, scale {scale} of the coarsest first, has {what}",
        "p must be positive and finite; take poisson, or another time scale",
    )


#: How runs of empty intervals are weighted at their scale.
Weighing = Literal["length", "number"]


class WaveletZeros(Wavelet):
    """The wavelet model with some multipliers of 1 or -1, which leave a half without arrivals.

    A run of r empty intervals belongs to scale M - log2(r), where it is one coefficient. The share
    z of empty intervals is divided among the scales in proportion to their runs (section 4.4, steps
    1 to 4), and each scale gets its share of zeros, among coefficients that are not yet zero.

    Notes
    -----
    The thesis counts runs (``number``). On Thunder that gives a third of the trace's CV, as there
    are many short runs; weighting runs by ``length`` gives 0.8 of it. Scales are rounded and
    limited to 2 to M.
    """

    name: ClassVar[str] = "wavelet-zeros"
    title: ClassVar[str] = "wavelet model of the rate with empty intervals"
    source: ClassVar[str] = "Minh 2012, section 4.4"

    zeros: tuple[float, ...] = Field(
        description="z_j; share of coefficients that become 0 at scale j = 2 to M"
    )
    weighing: Weighing = Field(
        "length", description="weight of runs in the fit: by length, or by number as in the thesis"
    )

    @model_validator(mode="after")
    def _one_a_scale(self) -> Self:
        if len(self.zeros) != len(self.p):
            raise ValueError(f"zeros: {len(self.zeros)} scales, but p has {len(self.p)}")
        if self.zeros and not (min(self.zeros) >= 0 and sum(self.zeros) < 1 + 1e-9):
            raise ValueError("zeros: must be shares that add up to at most 1")
        return self

    @classmethod
    @override
    def of_scales(cls, scales: Scales, *, weighing: Weighing = "length", **others: Any) -> Self:
        """Return the model of a transformed series; ``weighing`` is the weight of runs."""
        shares = zero_shares(scales.counts, len(scales.scaling), weighing)
        return super().of_scales(scales, zeros=shares, weighing=weighing, **others)

    @override
    def _changed(
        self, multiplier: Floats, scaling: Floats, scale: int, random: np.random.Generator
    ) -> Floats:
        wanted = round(2 * len(scaling) * self.zeros[scale - 1])
        if wanted:
            parents = np.flatnonzero(scaling > 0)
            chosen = random.choice(parents, min(wanted, len(parents)), replace=False)
            multiplier[chosen] = random.choice([-1.0, 1.0], len(chosen))
        return multiplier


def zero_shares(counted: Floats, splits: int, weighing: Weighing) -> tuple[float, ...]:
    """Return z_j for j = 2 to M: the share of coefficients that become 0 at each scale.

    ``splits`` is M - 1; ``weighing`` is the weight of runs of empty intervals.
    """
    runs = zero_runs(counted)
    if not len(runs):
        return (0.0,) * splits
    last = splits + 1
    scale = np.rint(last - np.log2(runs)).astype(np.int64).clip(2, last)
    weight = runs if weighing == "length" else np.ones(len(runs))
    share = np.bincount(scale, weights=weight, minlength=last + 1)[2:] / weight.sum()
    return tuple((share * (counted == 0).mean()).tolist())


def zero_runs(counted: Floats) -> Floats:
    """Return the lengths of maximal runs of empty intervals, in order."""
    edges = np.diff(np.concatenate([[0], counted == 0, [0]]).astype(np.int64))
    return (np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)).astype(np.float64)


#: Number of workloads generated from each candidate, and their seed, so that the choice is fixed.
REPLICATIONS, SEED = 5, 0


@dataclass(frozen=True)
class Evidence:
    """Statistics of arrivals.

    These are the CV of interarrival times, the share of intervals without an arrival, and the Hurst
    parameter of the counts, None if not available.
    """

    cv: float
    empty: float
    hurst: float | None

    @classmethod
    def of(cls, times: Floats, time_scale_s: float) -> Evidence:
        """Measure arrivals.

        Raises
        ------
        UnavailableError
            When there are fewer than three arrivals, or all come at once.
        """
        counted = counts(times, time_scale_s)
        try:
            found = hurst(counted).mean
        except UnavailableError:
            found = None
        return cls(moments(interarrivals(times)).cv, float((counted == 0).mean()), found)

    @classmethod
    def mean(cls, several: list[Evidence]) -> Evidence:
        """Return the means over several; for the CV the geometric mean."""
        known = [one.hurst for one in several if one.hurst is not None]
        return cls(
            float(np.exp(np.mean([np.log(max(one.cv, 1e-9)) for one in several]))),
            float(np.mean([one.empty for one in several])),
            float(np.mean(known)) if known else None,
        )

    def apart(self, other: Evidence) -> float:
        """Return the distance: |ln(ratio of CVs)| + |differences| of the others.

        A CV twice as large counts 0.69, a Hurst parameter off by 0.1 counts 0.1, and ten percentage
        points of empty intervals count 0.1 (chosen here).
        """
        found = abs(np.log(max(self.cv, 1e-9) / max(other.cv, 1e-9)))
        found += abs(self.empty - other.empty)
        if self.hurst is not None and other.hurst is not None:
            found += abs(self.hurst - other.hurst)
        return float(found)

    def __str__(self) -> str:
        dependence = "unknown" if self.hurst is None else f"{self.hurst:.2f}"
        return f"CV {self.cv:.2f}, Hurst {dependence}, empty {self.empty:.0%}"


class Auto(ArrivalModel):
    """A name for fitting only: the result is the wavelet model, or the one with empty intervals.

    Each is fitted, and a few workloads are generated from it. The closest by
    :meth:`Evidence.apart` is taken; its notes have the numbers of all. Arrivals that are too few or
    too regular for them become Poisson.
    """

    name: ClassVar[str] = "auto"
    title: ClassVar[str] = "wavelet or wavelet-zeros, whichever is closer to the trace"
    source: ClassVar[str] = "the choice is our own"

    @classmethod
    @override
    def fit(cls, workload: Workload) -> ArrivalModel:
        """Return the model that is closest to the arrivals of a workload.

        Raises
        ------
        ModelFitError
            When there are no two arrivals at different times.
        UnavailableError
            When PyWavelets is not installed.
        """
        try:
            scales = scales_of(workload, Wavelet.name)
            candidates: dict[str, Wavelet] = {
                "wavelet": Wavelet.of_scales(scales),
                "wavelet-zeros by length": WaveletZeros.of_scales(scales, weighing="length"),
                "wavelet-zeros by number": WaveletZeros.of_scales(scales, weighing="number"),
            }
        except ModelFitError as error:
            plain = Poisson.fit(workload)
            return plain.model_copy(update={"notes": (f"auto: poisson, because {error}",)})
        trace = Evidence.of(workload.submit, scales.time_scale_s)
        streams, found = Streams(SEED), {}
        for label, model in candidates.items():
            drawn = (
                model.times(len(workload), streams.generator("auto", label, number))
                for number in range(REPLICATIONS)
            )
            found[label] = Evidence.mean([Evidence.of(one, model.time_scale_s) for one in drawn])
        nearest = min(found, key=lambda label: trace.apart(found[label]))
        told = [f"auto: {nearest}; the trace has {trace}"]
        told += [f"auto: {label} has {evidence}" for label, evidence in found.items()]
        model = candidates[nearest]
        return model.model_copy(update={"notes": (*told, *model.notes)})
