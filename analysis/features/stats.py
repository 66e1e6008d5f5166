"""Workload statistics of traces and runs: read, measure and compare workloads, return data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.analysis.features import bags as bag_features
from hpcrowd.analysis.features import jobs, users
from hpcrowd.analysis.features import locality as repetition
from hpcrowd.analysis.features.feature import Feature, Features, Group, measure
from hpcrowd.analysis.features.workload import Settings, Which, Workload
from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import TraceError, UnavailableError
from hpcrowd.environment.traces.formats.common.base import FormatOptions
from hpcrowd.environment.traces.trace import Trace

#: All groups, in the order in which they are shown.
GROUPS: tuple[Group, ...] = (
    jobs.ARRIVALS,
    jobs.JOBS,
    repetition.GROUP,
    bag_features.GROUP,
    users.GROUP,
)

#: All features by name.
FEATURES: dict[str, Feature] = {
    feature.name: feature for group in GROUPS for feature in group.features
}


def read_workload(
    path: str | os.PathLike[str] | Trace | Run,
    which: Which = "completed",
    settings: Settings | None = None,
    options: FormatOptions | None = None,
) -> Workload:
    """Return the workload of a trace, of a run, or of a folder of results.

    Parameters
    ----------
    path
        A trace in any format, or a folder that ``hpcrowd replay --out`` wrote; or a trace or run.
    which, settings
        As for :meth:`hpcrowd.analysis.features.workload.Workload.from_trace`.
    options
        What the file of a trace itself does not say.

    Raises
    ------
    TraceError, ResultsError
        When it cannot be read, or has no job to measure.
    """
    from hpcrowd.analysis.results import read_results
    from hpcrowd.environment.traces.formats.registry import read_trace

    if isinstance(path, Run):
        return Workload.from_run(path, which, settings=settings)
    if isinstance(path, Trace):
        return Workload.from_trace(path, which, settings=settings)
    place = Path(path)
    if place.is_dir():
        return Workload.from_run(
            read_results(place, options), which, name=place.name, settings=settings
        )
    trace = read_trace(place, options=options)
    if not len(trace):
        raise TraceError(f"{place}: has no jobs; there is nothing to measure")
    return Workload.from_trace(trace, which, name=place.name, settings=settings)


def measure_all(
    workloads: Iterable[Workload],
    progress: Callable[[str, int, int], Any] | None = None,
) -> list[Features]:
    """Measure all features of several workloads.

    Parameters
    ----------
    workloads
        The workloads.
    progress
        Called before each feature with its title, the number done and the total.
    """
    all_of_them, wanted = list(workloads), list(FEATURES.values())

    def announced(workload: Workload, place: int) -> Iterator[Feature]:
        for done, feature in enumerate(wanted, place * len(wanted)):
            if progress is not None:
                title = f"{workload.name}: {feature.title}"
                progress(title, done, len(all_of_them) * len(wanted))
            yield feature

    return [measure(one, announced(one, place)) for place, one in enumerate(all_of_them)]


def stats_json(measured: Sequence[Features]) -> dict[str, Any]:
    """Return the measurements as plain data, fit for JSON; names of features carry units."""
    traces = []
    for features in measured:
        workload = features.workload
        facts = {
            "name": workload.name,
            "sha256": workload.sha256 or None,
            "jobs": len(workload),
            "left_out": dict(workload.left_out),
            **({"given_up": workload.given_up} if workload.given_up else {}),
            "notes": list(workload.notes),
            "remarks": list(workload.remarks),
            "clock_note": workload.clock.note,
            "processors_of_machine": workload.machine,
            "settings": asdict(workload.settings),
        }
        traces.append(facts | features.to_json())
    return {"traces": traces}


@dataclass(frozen=True)
class Variable:
    """A quantity with a distribution in a workload."""

    title: str  #: printed name

    #: Returns its values for a workload, or raises :class:`UnavailableError`.
    values: Callable[[Workload], ArrayLike]
    unit: str = ""  #: unit of the values; empty for numbers of jobs or processors


#: The quantities compared, by name.
VARIABLES: dict[str, Variable] = {
    "interarrival": Variable("interarrival time", jobs.gaps, "s"),
    "run_time": Variable("run time", lambda w: w.run_time, "s"),
    "processors": Variable("processors", lambda w: w.processors),
    "requested_time": Variable("requested time", jobs.requested_time, "s"),
    "wait": Variable("wait", jobs.wait, "s"),
    "run_length": Variable("run length", repetition.repetitions),
    "bag_size": Variable("bag size", bag_features.bag_sizes),
    "bag_interarrival": Variable("time between bags", bag_features.bag_gaps, "s"),
    "jobs_per_user": Variable("jobs of a user", users.jobs_per_user),
    "jobs_per_session": Variable("jobs of a session", users.jobs_per_session),
    "think_time": Variable("think time", users.think_time, "s"),
}


@dataclass(frozen=True)
class Apart:
    """The distances between two distributions."""

    ks: float  #: largest distance between the distribution functions (Kolmogorov-Smirnov), 0 to 1

    #: Mean distance by which values must move to turn one into the other, in their unit.
    wasserstein: float

    #: The same over the mean of the first; None where that is 0.
    wasserstein_relative: float | None


@dataclass(frozen=True)
class Difference:
    """The values of a feature of two workloads."""

    first: float
    second: float

    @property
    def difference(self) -> float:
        """Second minus first."""
        return self.second - self.first

    @property
    def relative(self) -> float | None:
        """The difference over the first; None if that is 0."""
        return None if self.first == 0 else self.difference / abs(self.first)


@dataclass(frozen=True)
class Distance:
    """The comparison of two workloads.

    Attributes
    ----------
    first, second
        Their features.
    distributions
        Distances by name of :data:`VARIABLES`, or the reason why there is none.
    """

    first: Features
    second: Features
    distributions: Mapping[str, Apart | str]

    @property
    def differences(self) -> dict[str, Difference | str]:
        """The features by name: both values, or the reason why one is not available."""
        found: dict[str, Difference | str] = {}
        for name, one in self.first.items():
            other = self.second[name]
            if one.number is not None and other.number is not None:
                found[name] = Difference(one.number, other.number)
            else:
                which, reason = ("first", one.reason) if one.reason else ("second", other.reason)
                found[name] = reason if one.reason == other.reason else f"{which}: {reason}"
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain data, fit for JSON."""
        features = {
            name: asdict(one) | {"difference": one.difference, "relative": one.relative}
            for name, one in self.differences.items()
            if not isinstance(one, str)
        }
        missing = {name: one for name, one in self.differences.items() if isinstance(one, str)}
        missing |= {
            f"{name} (distribution)": one
            for name, one in self.distributions.items()
            if isinstance(one, str)
        }
        return {
            "first": self.first.workload.name,
            "second": self.second.workload.name,
            "distributions": {
                name: asdict(apart) | {"unit": VARIABLES[name].unit}
                for name, apart in self.distributions.items()
                if not isinstance(apart, str)
            },
            "features": features,
            "not_available": missing,
        }


def distance_of(first: Features, second: Features) -> Distance:
    """Compare two measured workloads.

    Parameters
    ----------
    first, second
        Features measured alike; the first is the reference, such as the trace that a model was
        fitted to.
    """
    return Distance(first, second, distributions_of(first.workload, second.workload))


def distributions_of(first: Workload, second: Workload) -> dict[str, Apart | str]:
    """Return the distances of all distributions of two workloads, see :class:`Distance`."""
    found: dict[str, Apart | str] = {}
    for name, variable in VARIABLES.items():
        try:
            found[name] = apart(variable.values(first), variable.values(second))
        except UnavailableError as error:
            found[name] = str(error)
    return found


def apart(first: ArrayLike, second: ArrayLike) -> Apart:
    """Return the distances between the distributions of two sets of values.

    Raises
    ------
    UnavailableError
        When one of them is empty.
    """
    from scipy.stats import wasserstein_distance

    one, other = np.sort(np.asarray(first, np.float64)), np.sort(np.asarray(second, np.float64))
    if not len(one) or not len(other):
        raise UnavailableError("no values")
    places = np.concatenate([one, other])
    shares = [np.searchsorted(side, places, side="right") / len(side) for side in (one, other)]
    moved = float(wasserstein_distance(one, other))
    mean = float(abs(one.mean()))
    return Apart(
        ks=float(np.abs(shares[0] - shares[1]).max()),
        wasserstein=moved,
        wasserstein_relative=moved / mean if mean else None,
    )
