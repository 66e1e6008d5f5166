"""Features: named numbers of a workload with unit, definition and source."""

from __future__ import annotations

import inspect
import math
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from hpcrowd.environment.errors import QuantityError, UnavailableError
from hpcrowd.environment.quantities import MOST_SHOWN, notebook_table

if TYPE_CHECKING:
    from hpcrowd.analysis.features.workload import Workload


#: How a feature scales if the unit of all times and settings changes: as a time, as one over a
#: time, as an area (processors x time), not at all, or it is bound to days.
Scaling = Literal["time", "rate", "none", "calendar"]

#: The scaling by unit of a feature; others do not scale.
SCALINGS: dict[str, Scaling] = {"s": "time", "1/h": "rate"}

#: Function that measures a feature of a workload.
Measure = Callable[["Workload"], float]

#: Functions that return statistics of values, by name in :data:`STATISTICS`.
Kinds = Mapping[str, Callable[[Any], Any]]

#: Statistics of a quantity, by the end of the feature's name: in words, and the definition; the
#: mean takes the definition of the quantity.
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
        Unique name, which ends with the unit if there is one.
    title
        Printed name.
    definition
        What it is.
    source
        Source of the definition.
    measure
        Measures a workload, or raises :class:`~hpcrowd.environment.errors.UnavailableError`.
    unit
        Such as ``s``; empty for a number without one.
    by_order
        Whether it depends on the order of jobs submitted in the same second.
    calendar
        Whether it depends on days and weeks.
    least
        Fewest jobs that can be measured.
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
        """How it scales with the unit of time."""
        return "calendar" if self.calendar else SCALINGS.get(self.unit, "none")


@dataclass(frozen=True, eq=False)
class Group:
    """Features that are shown together; each is declared where it is measured."""

    #: Name and title of the group.
    name: str
    title: str

    #: Whether its features depend on the order of jobs submitted in the same second, by default.
    by_order: bool = False

    #: In the order in which they are declared and shown.
    features: list[Feature] = field(default_factory=list)

    def add(
        self, name: str, title: str, definition: str, source: str, measure: Measure, **others: Any
    ) -> None:
        """Add a feature with these attributes; if its name ends with ``_s``, the unit is s."""
        others = {"by_order": self.by_order, "unit": "s" if name.endswith("_s") else ""} | others
        self.features.append(Feature(name, title, definition, source, measure, **others))

    def feature[Measured: Measure](
        self, title: str, source: str, **others: Any
    ) -> Callable[[Measured], Measured]:
        """Declare the result of a function as a feature.

        The feature takes the name of the function, and the first paragraph of its docstring as
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
        """Declare statistics of a function's result as features, such as mean and median.

        Parameters
        ----------
        title, source, unit
            Of the quantity, as the attributes of a feature.
        kinds
            Names of :data:`STATISTICS`, with the functions that compute them.
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
    """Return the first paragraph of a function's docstring, as words within a sentence."""
    first = inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0]
    words = " ".join(first.split()).removesuffix(".")
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


@dataclass(frozen=True)
class Value:
    """The value of a feature for one workload.

    Attributes
    ----------
    number
        The number; None where it is not available.
    reason
        Why it is not available; empty if it is.
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
        The workload that was measured.
    values
        Values by name.
    """

    def __init__(self, workload: Workload, values: Mapping[str, Value]) -> None:
        super().__init__(values)
        self.workload = workload

    def __missing__(self, name: str) -> Value:
        raise QuantityError(f"feature {name!r}: not measured, or not known")

    def __repr__(self) -> str:
        known = sum(value.number is not None for value in self.values())
        return f"<Features of {self.workload.name}: {known} of {len(self)} available>"

    def _repr_html_(self) -> str:
        """Return the first features that are available, for notebooks."""
        known = [(name, f"{n:,.6g}") for name, one in self.items() if (n := one.number) is not None]
        return notebook_table(repr(self), known[:MOST_SHOWN])

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
        """Return numbers by name, and the reasons why others are not available."""
        return {
            "features": {name: value.number for name, value in self.items()},
            "not_available": {name: value.reason for name, value in self.items() if value.reason},
        }


def value_of(feature: Feature, workload: Workload) -> Value:
    """Return a feature of a workload, or the reason why it is not available."""
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

    A feature that cannot be measured has a reason instead of a number; it never stops the others.
    """
    return Features(workload, {one.name: value_of(one, workload) for one in features})
