"""Features: named numbers of a workload, each with unit, definition and source."""

from __future__ import annotations

import inspect
import math
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from hpcrowd.environment.errors import QuantityError, UnavailableError

if TYPE_CHECKING:
    from hpcrowd.analysis.features.workload import Workload


#: What happens to a feature when times are told in another unit, with all settings in it too:
#: it is a time, one over a time, an area (processors x time), stays as it is, or is bound to days.
Scaling = Literal["time", "rate", "none", "calendar"]

#: That by the unit of a feature; others stay as they are.
SCALINGS: dict[str, Scaling] = {"s": "time", "1/h": "rate"}

#: What returns a feature for a workload.
Measure = Callable[["Workload"], float]

#: What returns statistics of values, by their names in :data:`STATISTICS`.
Kinds = Mapping[str, Callable[[Any], Any]]

#: What of a quantity may be a feature, by the end of its name: in words, and what it is; the mean
#: is described by what it is of.
STATISTICS = {
    "mean": ("mean", ""),
    "sd": ("standard deviation", "from the variance with n - 1"),
    "cv": ("CV", "standard deviation over mean"),
    "median": ("median", "half are not larger"),
    "max": ("largest", "the largest"),
}


@dataclass(frozen=True)
class Feature:
    """A number of a workload.

    Attributes
    ----------
    name
        Unique; carries the unit at its end where there is one.
    title
        For people.
    definition
        What it is.
    source
        Where the definition comes from.
    measure
        Returns it for a workload, or raises :class:`~hpcrowd.environment.errors.UnavailableError`.
    unit
        Such as ``s``; empty for a number without one.
    by_order
        Whether it depends on the order of jobs submitted in the same second.
    calendar
        Whether it is bound to days and weeks.
    least
        Jobs without which there is nothing to measure.
    """

    name: str
    title: str
    definition: str
    source: str
    measure: Measure
    unit: str = ""
    by_order: bool = False
    calendar: bool = False
    least: int = 1

    @property
    def scaling(self) -> Scaling:
        """What a change of the unit of time does to it."""
        return "calendar" if self.calendar else SCALINGS.get(self.unit, "none")


@dataclass(frozen=True, eq=False)
class Group:
    """Features that are shown together, each declared where it is measured.

    Attributes
    ----------
    name, title
        Of the group.
    by_order
        Whether its features depend on the order of jobs submitted in the same second, unless one
        says otherwise.
    features
        In the order they are declared and shown in.
    """

    name: str
    title: str
    by_order: bool = False
    features: list[Feature] = field(default_factory=list)

    def add(
        self, name: str, title: str, definition: str, source: str, measure: Measure, **others: Any
    ) -> None:
        """Add a feature with these attributes; a name that ends with ``_s`` has the unit s."""
        others = {"by_order": self.by_order, "unit": "s" if name.endswith("_s") else ""} | others
        self.features.append(Feature(name, title, definition, source, measure, **others))

    def feature[Measured: Measure](
        self, title: str, source: str, **others: Any
    ) -> Callable[[Measured], Measured]:
        """Declare what a function returns as a feature.

        The feature has the name of the function; the first paragraph of its documentation is the
        definition.

        Parameters
        ----------
        title, source, **others
            As the attributes of a feature.
        """

        def declare(measure: Measured) -> Measured:
            self.add(measure.__name__, title, _definition(measure), source, measure, **others)
            return measure

        return declare

    def statistics[Values: Callable[[Workload], Any]](
        self, title: str, source: str, kinds: Kinds, unit: str = ""
    ) -> Callable[[Values], Values]:
        """Declare statistics of what a function returns as features, such as mean and median.

        Parameters
        ----------
        title, source, unit
            Of the quantity, as the attributes of a feature.
        kinds
            Which of :data:`STATISTICS`, and what returns each of the values.
        """

        def declare(values: Values) -> Values:
            for kind, reduce in kinds.items():
                words, meaning = STATISTICS[kind]
                name = f"{values.__name__}_{kind}"
                self.add(
                    f"{name}_{unit}" if unit and kind != "cv" else name,
                    f"{title}, {words}",
                    meaning or _definition(values),
                    source,
                    partial(_statistic, values, reduce),
                )
            return values

        return declare


def _statistic(
    values: Callable[[Workload], Any], reduce: Callable[[Any], Any], workload: Workload
) -> float:
    return float(reduce(values(workload)))


def _definition(function: Callable[..., Any]) -> str:
    """Return what the documentation of a function says first, as words within a sentence."""
    first = inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0]
    words = " ".join(first.split()).removesuffix(".")
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


@dataclass(frozen=True)
class Value:
    """What a feature is on one workload.

    Attributes
    ----------
    number
        The number; None where it is not available.
    reason
        Why not; empty where it is.
    """

    number: float | None
    reason: str = ""

    def __str__(self) -> str:
        return f"not available: {self.reason}" if self.number is None else f"{self.number:g}"


class Features(UserDict[str, Value]):
    """The features of one workload by name.

    Parameters
    ----------
    workload
        What was measured.
    values
        By name.
    """

    def __init__(self, workload: Workload, values: Mapping[str, Value]) -> None:
        super().__init__(values)
        self.workload = workload

    def __missing__(self, name: str) -> Value:
        raise QuantityError(f"feature {name!r}: not measured, or not known")

    def __repr__(self) -> str:
        known = sum(value.number is not None for value in self.values())
        return f"<Features of {self.workload.name}: {known} of {len(self)} available>"

    def number(self, name: str) -> float:
        """Return the number of a feature.

        Raises
        ------
        UnavailableError
            When it is not available.
        QuantityError
            When there is no such feature.
        """
        value = self[name]
        if value.number is None:
            raise UnavailableError(value.reason)
        return value.number

    def to_json(self) -> dict[str, Any]:
        """Return numbers by name, and the reasons of those that are not available."""
        return {
            "features": {name: value.number for name, value in self.items()},
            "not_available": {name: value.reason for name, value in self.items() if value.reason},
        }


def value_of(feature: Feature, workload: Workload) -> Value:
    """Return a feature of a workload, with the reason where it is not available."""
    if len(workload) < feature.least:
        return Value(None, "no jobs")
    try:
        number = feature.measure(workload)
    except UnavailableError as error:
        return Value(None, str(error))
    if not math.isfinite(number):
        return Value(None, "no finite number")
    return Value(int(number) if isinstance(number, int) else float(number))


def measure(workload: Workload, features: Iterable[Feature]) -> Features:
    """Measure features of a workload.

    A feature that cannot be measured is told as such, with the reason; it never stops the others.
    """
    return Features(workload, {one.name: value_of(one, workload) for one in features})
