"""Comparison of two workloads: distances of distributions, differences of all features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.analysis.features import arrivals, sizes, users
from hpcrowd.analysis.features import bags as bag_features
from hpcrowd.analysis.features import locality as repetition
from hpcrowd.analysis.features.feature import Features
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.environment.errors import UnavailableError


@dataclass(frozen=True)
class Variable:
    """A quantity with a distribution in a workload.

    Attributes
    ----------
    title
        Printed name.
    values
        Returns its values for a workload, or raises :class:`UnavailableError`.
    unit
        Unit of the values; empty for numbers of jobs or processors.
    """

    title: str
    values: Callable[[Workload], ArrayLike]
    unit: str = ""


#: The quantities compared, by name.
VARIABLES: dict[str, Variable] = {
    "interarrival": Variable("interarrival time", arrivals.gaps, "s"),
    "run_time": Variable("run time", lambda w: w.run_time, "s"),
    "processors": Variable("processors", lambda w: w.processors),
    "requested_time": Variable("requested time", sizes.requested_time, "s"),
    "wait": Variable("wait", sizes.wait, "s"),
    "run_length": Variable("run length", repetition.repetitions),
    "bag_size": Variable("bag size", bag_features.bag_sizes),
    "bag_interarrival": Variable("time between bags", bag_features.bag_gaps, "s"),
    "jobs_per_user": Variable("jobs of a user", users.jobs_per_user),
    "jobs_per_session": Variable("jobs of a session", users.jobs_per_session),
    "think_time": Variable("think time", users.think_time, "s"),
}


@dataclass(frozen=True)
class Apart:
    """The distances between two distributions.

    Attributes
    ----------
    ks
        Largest distance between the distribution functions (Kolmogorov-Smirnov), 0 to 1.
    wasserstein
        Mean distance by which values must move to turn one into the other, in their unit.
    wasserstein_relative
        The same over the mean of the first; None where that is 0.
    """

    ks: float
    wasserstein: float
    wasserstein_relative: float | None


@dataclass(frozen=True)
class Difference:
    """A feature of two workloads.

    Attributes
    ----------
    first, second
        Its values.
    """

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
