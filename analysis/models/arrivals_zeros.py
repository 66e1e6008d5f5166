"""The multifractal wavelet model with empty intervals, as many and as long as in the trace."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, override

import numpy as np
from pydantic import Field, model_validator

from analysis.features.workload import Settings
from analysis.models.arrivals_wavelet import Scales, Wavelet, scales_of
from analysis.models.part import Floats

#: How runs of empty intervals count for the scale that they belong to.
Weighing = Literal["length", "number"]


class WaveletZeros(Wavelet):
    """The wavelet model, some of whose multipliers are 1 or -1 and give a half without arrivals.

    A run of r empty intervals belongs to scale M - log2(r), where it is one coefficient. The share
    z of empty intervals is divided among the scales by the share of runs that belong to each
    (section 4.4, steps 1 to 4), and each scale gets its share of zeros, in coefficients that are
    not zero yet.

    Notes
    -----
    The thesis counts runs, ``number``. On Thunder that gives a third of the trace's CV, as short
    runs are many; weighing a run by its ``length`` gives 0.8 of it. Scales are rounded and kept in
    2 to M.
    """

    name: ClassVar[str] = "wavelet-zeros"
    title: ClassVar[str] = "wavelet model of the rate with its empty intervals"
    source: ClassVar[str] = "Minh 2012, section 4.4"

    zeros: tuple[float, ...] = Field(
        description="z_j; share of coefficients of scale j = 2 to M that become 0 there"
    )
    weighing: Weighing = Field(
        "length", description="how runs counted in the fit: by length, or by number as written"
    )

    @model_validator(mode="after")
    def _one_a_scale(self) -> Self:
        if len(self.zeros) != len(self.p):
            raise ValueError(f"zeros: {len(self.zeros)} scales, p has {len(self.p)}")
        if self.zeros and not (min(self.zeros) >= 0 and sum(self.zeros) < 1 + 1e-9):
            raise ValueError("zeros must be shares that add up to at most 1")
        return self

    @classmethod
    @override
    def fit(
        cls,
        submit: Floats,
        *,
        time_scale_s: float = Settings.time_scale_s,
        weighing: Weighing = "length",
    ) -> Self:
        """Return the model of recorded arrivals.

        Parameters
        ----------
        submit, time_scale_s
            As for the wavelet model, with its errors.
        weighing
            How runs of empty intervals count.
        """
        return cls.of_scales(scales_of(submit, time_scale_s, cls.name), weighing=weighing)

    @classmethod
    @override
    def of_scales(cls, scales: Scales, *, weighing: Weighing = "length", **others: Any) -> Self:
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

    Parameters
    ----------
    counted
        Arrivals in each interval.
    splits
        How often the coarsest scale is split, M - 1.
    weighing
        How runs of empty intervals count.
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
    """Return the lengths of the longest runs of empty intervals, in their order."""
    edges = np.diff(np.concatenate([[0], counted == 0, [0]]).astype(np.int64))
    return (np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)).astype(np.float64)
