"""Minh 2012, chapters 4 and 5: measures of a trace and of generated workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.bags import bags
from hpcrowd.analysis.features.jobs import normalized_entropy
from hpcrowd.analysis.features.panels import exceeding, not_exceeding
from hpcrowd.analysis.features.series import hurst
from hpcrowd.analysis.features.stats import apart
from hpcrowd.analysis.features.workload import Floats, Settings, Workload
from hpcrowd.analysis.models.jobs.comprehensive import Comprehensive
from hpcrowd.analysis.models.judgement import Spread, generated
from hpcrowd.analysis.models.model import WorkloadModel
from hpcrowd.analysis.models.parts.base import ArrivalModel
from hpcrowd.analysis.models.parts.wavelet import Auto, Wavelet, WaveletZeros
from hpcrowd.environment.errors import ModelFitError, UnavailableError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import round_half_up
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
    """Measures of arrivals."""

    written: ClassVar = ("cv", "zeros", "empty", "hurst", "hurst_sd", "ks")

    cv: float  #: Coefficient of variation of interarrival times.
    #: Share of zeros in the rate process: in the counts of a trace, or in the rates that a model
    #: draws before jobs arrive. None if a model has no such process.
    zeros: float | None
    empty: float  #: Share of intervals without an arrival.
    #: Mean and standard deviation of three estimators of the Hurst parameter; None if they are not
    #: available.
    hurst: float | None
    hurst_sd: float | None
    ks: float  #: Kolmogorov-Smirnov distance of the interarrival times to those of the trace.
    #: Fig. 4.6: share of the interarrival times longer than x s; None if all are short.
    gaps: Curve | None
    #: Fig. 4.5: autocorrelation of the counts at lags 1 to :data:`LAGS`; None of short ones.
    correlation: Floats | None


def measured_arrivals(
    submit: Floats, scale: float, trace: Floats, rates: Floats | None = None
) -> Arrivals:
    """Return the measures of arrivals: rising submit times, s, counted over ``scale``, s.

    They are compared with the interarrival times of the trace, s; ``rates`` are the expected
    arrivals of a model in each interval. Raises UnavailableError when there are fewer than three
    arrivals.
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
    """A trace at a time scale, and arrivals generated from the models fitted to it."""

    written: ClassVar = {
        "chosen": "choice", "not_fitted": "reasons", "trace": "trace", "models": "spreads",
    }  # fmt: skip

    scale_s: float  #: T.
    trace: Arrivals  #: The recorded arrivals.
    #: The generated arrivals for each seed, by name of :data:`FITS`, and :data:`CHOSEN`.
    models: Mapping[str, Sequence[Arrivals]]
    choice: str  #: The model that ``auto`` chooses.
    reasons: Mapping[str, str]  #: Why models could not be fitted, by name.

    def spread(self, model: str, figure: str) -> Spread | None:
        """Return mean and spread over seeds of a figure of a model; None if there is none."""
        found = (getattr(one, figure) for one in self.models.get(model, ()))
        return Spread.of(number for number in found if number is not None)

    def spreads(self) -> dict[str, dict[str, Spread | None]]:
        """Return mean and spread of every figure of every model."""
        names = Arrivals.written
        return {one: {name: self.spread(one, name) for name in names} for one in self.models}

    def mean(self, model: str, figure: str) -> float:
        """Return the mean over seeds; UnavailableError when there is none."""
        found = self.spread(model, figure)
        if found is None:
            why = self.reasons.get(model, "not available in the generated arrivals")
            raise UnavailableError(f"{model}: {why}")
        return found.mean

    def of_trace(self, figure: str) -> float:
        """Return a figure of the trace; UnavailableError when there is none."""
        found: float | None = getattr(self.trace, figure)
        if found is None:
            raise UnavailableError(f"{figure}: not available, the trace is too short")
        return found


def study_arrivals(submit: Floats, scale: float, seeds: Sequence[int]) -> ArrivalRuns:
    """Fit the models to arrivals and generate as many from each, with each seed.

    Submit times, s, rise; the scale is T, s. Raises UnavailableError when there are fewer than
    three.
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
                scale,
                measured_arrivals(submit, scale, gaps),
                {**found, CHOSEN: found[name]},
                name,
                reasons,
            )
    found[CHOSEN] = [_generated(chosen, submit, scale, seed, gaps) for seed in seeds]
    return ArrivalRuns(scale, measured_arrivals(submit, scale, gaps), found, chosen.name, reasons)


def _generated(
    model: ArrivalModel, submit: Floats, scale: float, seed: int, gaps: Floats
) -> Arrivals:
    def generator() -> np.random.Generator:
        return Streams(seed).generator("arrivals")  # as in generate()

    # The same stream gives the rates that the arrivals came from.
    rates = model.rates(generator()) if isinstance(model, Wavelet) else None
    return measured_arrivals(model.times(len(submit), generator()), scale, gaps, rates)


# ---- jobs ------------------------------------------------------------------------------------

#: Titles of the measures by name.
TITLES = {
    "entropy": "normalized entropy",
    "spearman": "run time and processors (Spearman)",
    "bag_mean": "jobs of a bag of two or more, mean",
    "bag_largest": "jobs of the largest bag",
    "run_time_mean": "run time, mean (s)",
}

#: Titles of the distributions whose distances are measured, by name.
DISTANCES = {
    "run_time": "run time",
    "processors": "processors",
    "bags": "bag size, as found in the workload",
    "bags_drawn": "bag size, as drawn",
    "bag_run_time": "run time of a bag",
}


@dataclass(frozen=True)
class Jobs:
    """Measures of jobs."""

    figures: Mapping[str, float]  #: By name of :data:`TITLES`; those not available are left out.
    #: Kolmogorov-Smirnov distance to the trace by name of :data:`DISTANCES`; likewise.
    distances: Mapping[str, float]
    #: Figs. 5.1 and 5.2, by name of :data:`DISTANCES`: share of bags larger than x, share of jobs
    #: with at most x.
    curves: Mapping[str, Curve]


def bag_run_times(workload: Workload) -> Floats:
    """Return the mean run time of every bag of two jobs or more, s (section 5.2.1)."""
    found = bags(workload)
    return found.run_time[found.real]


def measured_jobs(workload: Workload, trace: Workload, drawn: Floats | None = None) -> Jobs:
    """Return the measures of jobs, compared with a trace.

    Sizes of bags are also compared as a model draws them, before arrivals cut them, if given.
    """
    found = bags(workload).size
    real = found[found > 1]
    figures: dict[str, float] = {"run_time_mean": float(workload.run_time.mean())}
    if len(real):
        figures |= {"bag_mean": float(real.mean()), "bag_largest": float(real.max())}
    known = {
        "entropy": or_none(lambda: normalized_entropy(workload)),
        "spearman": or_none(lambda: series.spearman(workload.run_time, workload.processors)),
    }
    figures |= {name: number for name, number in known.items() if number is not None}
    pairs = {
        "run_time": (trace.run_time, workload.run_time),
        "processors": (trace.processors, workload.processors),
        "bags": (bags(trace).size, found),
        "bags_drawn": (bags(trace).size, found if drawn is None else drawn),
        "bag_run_time": (bag_run_times(trace), bag_run_times(workload)),
    }
    distances = {
        name: apart(*pair).ks for name, pair in pairs.items() if all(len(side) for side in pair)
    }
    curves = {}
    for name in ("run_time", "processors", "bags", "bag_run_time"):
        draw = exceeding if name.startswith("bag") else not_exceeding
        try:
            curves[name] = draw(np.asarray(pairs[name][1], np.float64))
        except UnavailableError:
            continue
    return Jobs(figures, distances, curves)


def uniform(workload: Workload, seed: int) -> Workload:
    """Return the naive model of section 5.2.2: run times and processors are uniform.

    Run times go up to the longest, processors up to those of the largest job: the thesis does not
    say which bounds it has.
    """
    random = Streams(seed).generator("minh2012", "uniform")
    run_time = np.floor(random.random(len(workload)) * (workload.run_time.max() + 1))
    processors = random.integers(1, workload.processors.max() + 1, len(workload))
    return replace(
        workload,
        run_time=run_time,
        processors=processors,
        allocated=processors,
        remarks=[],
        _known={},
    )


def study_jobs(model: WorkloadModel, trace: Workload, seed: int) -> tuple[Jobs, float | None]:
    """Generate a workload of a comprehensive model, as large as the trace, and measure it.

    The second figure is the normalized entropy of the naive model; None if there is none.
    """
    assert isinstance(model.jobs, Comprehensive)
    made = generated(model, trace, seed)
    random = Streams(seed).generator("minh2012", "bags as drawn")
    drawn = model.jobs.bags.draw(len(bags(trace)), model.jobs.bag_sizes, random)
    found = measured_jobs(made, trace, drawn.astype(np.float64))
    return found, or_none(lambda: normalized_entropy(uniform(trace, seed)))


@dataclass(frozen=True)
class JobRuns:
    """A trace, and workloads generated from the model fitted to it."""

    written: ClassVar = {
        "arrivals": "arrivals", "trace": "trace.figures", "generated": "generated",
        "ks": "distances", "uniform_entropy": "uniform",
    }  # fmt: skip

    trace: Jobs  #: The recorded jobs.
    model: Sequence[Jobs]  #: The generated jobs for each seed.
    uniform: Sequence[float]  #: Normalized entropies of the naive model.
    arrivals: str  #: The arrivals of the model.

    def spread(self, figure: str) -> Spread | None:
        """Return mean and spread over seeds of a figure or a distance; None if there is none."""
        known = [{**one.figures, **one.distances} for one in self.model]
        return Spread.of(one[figure] for one in known if figure in one)

    def generated(self) -> dict[str, Spread | None]:
        """Return mean and spread of every figure."""
        return {name: self.spread(name) for name in TITLES}

    def distances(self) -> dict[str, Spread | None]:
        """Return mean and spread of every distance."""
        return {name: self.spread(name) for name in DISTANCES}

    def mean(self, figure: str) -> float:
        """Return the mean over seeds of a figure or of a distance; UnavailableError if none."""
        found = self.spread(figure)
        if found is None:
            raise UnavailableError(f"{figure}: not available")
        return found.mean

    def of_trace(self, figure: str) -> float:
        """Return a figure of the trace; UnavailableError when there is none."""
        if figure not in self.trace.figures:
            raise UnavailableError(f"{figure}: not available")
        return self.trace.figures[figure]

    def off(self, figure: str) -> float:
        """Return the mean over seeds less the figure of the trace; raises likewise."""
        return self.mean(figure) - self.of_trace(figure)


# ---- slowdown against load -------------------------------------------------------------------

#: Policies of Fig. 5.3 by our names, with their names in the thesis.
POLICIES = {"fcfs": "FIFO", "easy": "EASY"}

#: System loads that are simulated; those of the thesis are not given (chosen here).
LOADS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)

#: System loads at which the trace has to lie in the band: those of our study of chapter 7, and
#: between. Below, Thunder's record is smoother than any workload, because its submit times are
#: start times: it has no waits. Beyond, responses take weeks under FIFO, in a log of months.
REQUIRED_LOADS = (0.7, 0.75, 0.8, 0.85, 0.9)


#: Largest share of the jobs that may be left out because they are wider than the system: with more,
#: the workload would be another one. For LLN it is less than 0.1 %.
MOST_LEFT_OUT = 0.05


class System(NamedTuple):
    """A system of the size that gives a load."""

    processors: int
    fits: NDArray[np.bool_]  #: the jobs that fit; the others are left out


def system_of(workload: Workload, load: float, widest: int | None = None) -> System:
    """Return the system on which a workload has a load (arrival rate x E[run x size] / N).

    Jobs wider than the system, or than ``widest`` at any load, are left out, also from the load: it
    is the largest system on which the jobs that fit make the load. Raises UnavailableError when all
    jobs have the same submit time, or more than :data:`MOST_LEFT_OUT` do not fit.
    """
    span = float(workload.submit[-1] - workload.submit[0]) if len(workload) else 0.0
    if span <= 0:
        raise UnavailableError("all jobs were submitted in the same second")
    work = workload.run_time * workload.processors
    processors = int(workload.processors.max()) if widest is None else widest
    fits = workload.processors <= processors
    while fits.mean() >= 1 - MOST_LEFT_OUT:
        found = max(int(round_half_up(float(work[fits].sum()) / (span * load))), 1)
        holds = fits & (workload.processors <= found)
        if (holds == fits).all():
            return System(found, fits)
        fits = holds
    raise UnavailableError(
        f"more than {100 * MOST_LEFT_OUT:g} % of the jobs are wider than a system of load {load:g}"
    )


def slowdown_text(number: float) -> str:
    """Return a slowdown with three digits or so."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


class Points(NamedTuple):
    """Results of simulating one workload; shapes (policies, loads) and (loads,)."""

    slowdown: Floats  #: mean response time / mean run time; not a number without a system
    processors: Int64s  #: of the systems; 0 without one
    left_out: Floats  #: share of the jobs wider than the system


@dataclass(frozen=True)
class Schedule:
    """A trace and generated workloads in simulations."""

    written: ClassVar = {
        "processors": "trace.processors", "jobs_left_out_share": "trace.left_out",
        "trace": "trace.slowdown", "least": "least", "mean": "mean", "most": "most",
        "known": "known", "inside": "inside",
    }  # fmt: skip

    trace: Points  #: Results of the trace.
    workloads: Sequence[Points]  #: Results of each generated workload.

    @property
    def slowdowns(self) -> Floats:
        """Slowdowns of the generated workloads, shape (workloads, policies, loads)."""
        return np.array([one.slowdown for one in self.workloads])

    @property
    def least(self) -> Floats:
        """The smallest of them, shape (policies, loads)."""
        found: Floats = self.slowdowns.min(axis=0)
        return found

    @property
    def mean(self) -> Floats:
        """Their mean, shape (policies, loads)."""
        found: Floats = self.slowdowns.mean(axis=0)
        return found

    @property
    def most(self) -> Floats:
        """The largest of them, shape (policies, loads)."""
        found: Floats = self.slowdowns.max(axis=0)
        return found

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether trace and workloads could be simulated, shape (policies, loads)."""
        every = np.concatenate([self.trace.slowdown[None], self.slowdowns])
        known: NDArray[np.bool_] = np.isfinite(every).all(axis=0)
        return known

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether the trace lies in the band of the workloads, shape (policies, loads)."""
        trace = self.trace.slowdown
        inside: NDArray[np.bool_] = self.known & (self.least <= trace) & (trace <= self.most)
        return inside

    def points(self) -> Iterator[tuple[str, float, int, int]]:
        """Yield policy, load and their places."""
        for row, policy in enumerate(POLICIES):
            for column, load in enumerate(LOADS):
                yield policy, load, row, column

    def count_inside(self, loads: Sequence[float] = LOADS) -> tuple[int, int]:
        """Return the number of points of the trace in the band, and of all known points."""
        columns = [LOADS.index(load) for load in loads]
        return int(self.inside[:, columns].sum()), int(self.known[:, columns].sum())
