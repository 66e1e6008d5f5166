"""Minh 2012, chapter 4: arrivals of a trace and of generated workloads, by time scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.distance import apart
from hpcrowd.analysis.features.panels import exceeding
from hpcrowd.analysis.features.series import hurst
from hpcrowd.analysis.features.workload import Floats, Settings, Workload
from hpcrowd.analysis.models.arrivals.auto import Auto
from hpcrowd.analysis.models.arrivals.wavelet import Wavelet, WaveletZeros
from hpcrowd.analysis.models.judgement import Spread
from hpcrowd.analysis.models.parts.base import ArrivalModel
from hpcrowd.environment.errors import ModelFitError, UnavailableError
from hpcrowd.environment.streams import Streams

#: Time scales of Tables 4.1 to 4.3, s; the first one is that of all other chapters.
TIME_SCALES_S = (900, 1800, 3600, 7200)

#: Lags over which Fig. 4.5 is drawn, intervals (chosen here).
LAGS = 200

#: The models of the chapter by our short names. In the thesis the plain one is *MWM*, the modified
#: one *Model*; ``written`` counts runs of empty intervals by their number, as its step 4 says.
FITS: dict[str, Callable[[Workload], ArrivalModel]] = {
    "plain": Wavelet.fit,
    "modified": WaveletZeros.fit,
    "written": partial(WaveletZeros.fit, weighing="number"),
}

#: The model that ``auto`` chooses, usually one of these.
CHOSEN = "chosen"

#: x and y of a line of a picture.
Curve = tuple[Floats, Floats]


@dataclass(frozen=True)
class Arrivals:
    """Measures of arrivals.

    Attributes
    ----------
    cv
        Coefficient of variation of interarrival times.
    zeros
        Share of zeros in the rate process: in the counts of a trace, or in the rates that a model
        draws before jobs arrive. None if a model has no such process.
    empty
        Share of intervals without an arrival.
    hurst, hurst_sd
        Mean and standard deviation of three estimators of the Hurst parameter; None if they are not
        available.
    ks
        Kolmogorov-Smirnov distance of the interarrival times to those of the trace.
    gaps
        Fig. 4.6: share of the interarrival times longer than x s; None if all are short.
    correlation
        Fig. 4.5: autocorrelation of the counts at lags 1 to :data:`LAGS`; None of short ones.
    """

    cv: float
    zeros: float | None
    empty: float
    hurst: float | None
    hurst_sd: float | None
    ks: float
    gaps: Curve | None
    correlation: Floats | None


def measured(submit: Floats, scale: float, trace: Floats, rates: Floats | None = None) -> Arrivals:
    """Return the measures of arrivals.

    Parameters
    ----------
    submit
        s, rising.
    scale
        s; T.
    trace
        Interarrival times of the trace for comparison, s.
    rates
        Expected arrivals of a model in each interval; None without a model.

    Raises
    ------
    UnavailableError
        When there are fewer than three arrivals.
    """
    counted, gaps = series.counts(submit, scale), series.interarrivals(submit)
    found = or_none(lambda: hurst(counted))
    empty = float((counted == 0).mean())
    return Arrivals(
        cv=series.moments(gaps).cv,
        zeros=empty if rates is None else float((rates == 0).mean()),
        empty=empty,
        hurst=None if found is None else found.mean,
        hurst_sd=None if found is None else found.sd,
        ks=apart(trace, gaps).ks,
        gaps=or_none(lambda: exceeding(gaps)),
        correlation=or_none(lambda: series.autocorrelation(counted, LAGS)[1:]),
    )


def or_none[Found](find: Callable[[], Found]) -> Found | None:
    """Return the result of ``find``; None if it is not available."""
    try:
        return find()
    except UnavailableError:
        return None


@dataclass(frozen=True)
class ArrivalRuns:
    """A trace at a time scale, and arrivals generated from the models fitted to it.

    Attributes
    ----------
    scale_s
        T.
    trace
        The recorded arrivals.
    models
        The generated arrivals for each seed, by name of :data:`FITS`, and :data:`CHOSEN`.
    choice
        The model that ``auto`` chooses.
    reasons
        Why models could not be fitted, by name.
    """

    scale_s: float
    trace: Arrivals
    models: Mapping[str, Sequence[Arrivals]]
    choice: str
    reasons: Mapping[str, str]

    def spread(self, model: str, figure: str) -> Spread | None:
        """Return mean and spread over seeds of a figure of a model; None if there is none."""
        found = (getattr(one, figure) for one in self.models.get(model, ()))
        return Spread.of(number for number in found if number is not None)

    def mean(self, model: str, figure: str) -> float:
        """Return the mean over seeds.

        Raises
        ------
        UnavailableError
            When there is none.
        """
        found = self.spread(model, figure)
        if found is None:
            why = self.reasons.get(model, "not available in the generated arrivals")
            raise UnavailableError(f"{model}: {why}")
        return found.mean

    def of_trace(self, figure: str) -> float:
        """Return a figure of the trace.

        Raises
        ------
        UnavailableError
            When there is none.
        """
        found: float | None = getattr(self.trace, figure)
        if found is None:
            raise UnavailableError(f"{figure}: not available, the trace is too short")
        return found


def study_arrivals(submit: Floats, scale: float, seeds: Sequence[int]) -> ArrivalRuns:
    """Fit the models to arrivals and generate as many from each.

    Parameters
    ----------
    submit
        s, rising, shape (jobs,).
    scale
        s; T.
    seeds
        Seeds; arrivals are generated with each.

    Raises
    ------
    UnavailableError
        When there are fewer than three arrivals.
    """
    gaps = series.interarrivals(submit)
    workload = Workload.of(submit, 0, settings=Settings(time_scale_s=scale))
    models, reasons = {}, {}
    for name, fit in FITS.items():
        try:
            models[name] = fit(workload)
        except ModelFitError as error:
            reasons[name] = str(error)
    chosen = Auto.fit(workload)
    found = {
        name: [_generated(model, submit, scale, seed, gaps) for seed in seeds]
        for name, model in models.items()
    }
    plain = chosen.model_copy(update={"notes": ()})
    for name, model in models.items():
        if plain == model.model_copy(update={"notes": ()}):
            return ArrivalRuns(
                scale, measured(submit, scale, gaps), {**found, CHOSEN: found[name]}, name, reasons
            )
    found[CHOSEN] = [_generated(chosen, submit, scale, seed, gaps) for seed in seeds]
    return ArrivalRuns(scale, measured(submit, scale, gaps), found, chosen.name, reasons)


def _generated(
    model: ArrivalModel, submit: Floats, scale: float, seed: int, gaps: Floats
) -> Arrivals:
    def generator() -> np.random.Generator:
        return Streams(seed).generator("arrivals")  # as in generate()

    # The same stream gives the rates that the arrivals came from.
    rates = model.rates(generator()) if isinstance(model, Wavelet) else None
    return measured(model.times(len(submit), generator()), scale, gaps, rates)
