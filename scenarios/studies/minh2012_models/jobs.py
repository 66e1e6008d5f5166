"""Minh 2012, chapter 5: jobs of a trace and of the comprehensive model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.bags import bags
from hpcrowd.analysis.features.distance import apart
from hpcrowd.analysis.features.panels import exceeding, not_exceeding
from hpcrowd.analysis.features.sizes import normalized_entropy
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.analysis.models.jobs.comprehensive import Comprehensive
from hpcrowd.analysis.models.judgement import Spread, generated
from hpcrowd.analysis.models.model import WorkloadModel
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.streams import Streams
from hpcrowd.scenarios.studies.minh2012_models.arrivals import Curve

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
    """Measures of jobs.

    Attributes
    ----------
    figures
        By name of :data:`TITLES`; those not available are left out.
    distances
        Kolmogorov-Smirnov distance to the trace by name of :data:`DISTANCES`; likewise.
    curves
        Figs. 5.1 and 5.2, by name of :data:`DISTANCES`: share of bags larger than x, share of jobs
        with at most x.
    """

    figures: Mapping[str, float]
    distances: Mapping[str, float]
    curves: Mapping[str, Curve]


def bag_run_times(workload: Workload) -> Floats:
    """Return the mean run time of every bag of two jobs or more, s (section 5.2.1)."""
    found = bags(workload)
    return found.run_time[found.real]


def measured(workload: Workload, trace: Workload, drawn: Floats | None = None) -> Jobs:
    """Return the measures of jobs.

    Parameters
    ----------
    workload
        The jobs.
    trace
        The trace to compare with.
    drawn
        Sizes of bags as a model draws them, before arrivals cut them; None without a model.
    """
    found = bags(workload).size
    real = found[found > 1]
    figures: dict[str, float] = {"run_time_mean": float(workload.run_time.mean())}
    if len(real):
        figures |= {"bag_mean": float(real.mean()), "bag_largest": float(real.max())}
    for name, find in (
        ("entropy", normalized_entropy),
        ("spearman", lambda w: series.spearman(w.run_time, w.processors)),
    ):
        try:
            figures[name] = find(workload)
        except UnavailableError:
            continue
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
    tell its bounds.
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
    """Generate a workload and measure it.

    Parameters
    ----------
    model
        A comprehensive model.
    trace
        The trace to compare with, which gives the number of jobs and the size of the machine.
    seed
        Seed of the workload.

    Returns
    -------
    jobs
        The measures of its jobs.
    uniform
        Normalized entropy of a workload of the naive model; None if there is none.
    """
    assert isinstance(model.jobs, Comprehensive)
    made = generated(model, trace, seed)
    random = Streams(seed).generator("minh2012", "bags as drawn")
    drawn = model.jobs.bags.draw(len(bags(trace)), model.jobs.bag_sizes, random)
    found = measured(made, trace, drawn.astype(np.float64))
    try:
        naive = normalized_entropy(uniform(trace, seed))
    except UnavailableError:
        naive = None
    return found, naive


@dataclass(frozen=True)
class JobRuns:
    """A trace, and workloads generated from the model fitted to it.

    Attributes
    ----------
    trace
        The recorded jobs.
    model
        The generated jobs for each seed.
    uniform
        Normalized entropies of the naive model.
    arrivals
        The arrivals of the model.
    """

    trace: Jobs
    model: Sequence[Jobs]
    uniform: Sequence[float]
    arrivals: str

    def spread(self, figure: str) -> Spread | None:
        """Return mean and spread over seeds of a figure or a distance; None if there is none."""
        known = [{**one.figures, **one.distances} for one in self.model]
        return Spread.of(one[figure] for one in known if figure in one)

    def mean(self, figure: str) -> float:
        """Return the mean over seeds of a figure or of a distance.

        Raises
        ------
        UnavailableError
            When there is none.
        """
        found = self.spread(figure)
        if found is None:
            raise UnavailableError(f"{figure}: not available")
        return found.mean

    def of_trace(self, figure: str) -> float:
        """Return a figure of the trace.

        Raises
        ------
        UnavailableError
            When there is none.
        """
        if figure not in self.trace.figures:
            raise UnavailableError(f"{figure}: not available")
        return self.trace.figures[figure]

    def off(self, figure: str) -> float:
        """Return the mean over seeds less the figure of the trace; raises likewise."""
        return self.mean(figure) - self.of_trace(figure)
