"""Choice of arrivals by evidence: fit and generate from each, take the closest to the trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, override

import numpy as np

from hpcrowd.analysis.features.series import counts, hurst, interarrivals, moments
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.arrivals.poisson import Poisson
from hpcrowd.analysis.models.arrivals.wavelet import Wavelet, WaveletZeros, scales_of
from hpcrowd.analysis.models.parts.base import ArrivalModel, Floats
from hpcrowd.environment.errors import ModelFitError, UnavailableError
from hpcrowd.environment.streams import Streams

#: Number of workloads generated from each candidate, and their seed, so that the choice is fixed.
REPLICATIONS, SEED = 5, 0


@dataclass(frozen=True)
class Evidence:
    """Statistics of arrivals.

    Attributes
    ----------
    cv
        Coefficient of variation of interarrival times.
    empty
        Share of intervals without an arrival.
    hurst
        Hurst parameter of the counts; None if not available.
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
