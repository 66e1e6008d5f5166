"""Minh 2012, chapter 3: features of traces measured, next to the published ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hpcrowd.analysis.features.bags import PARAMETERS, TITLES, bag_fit, bag_gaps, distance
from hpcrowd.analysis.features.feature import Feature, Features, Value, value_of
from hpcrowd.analysis.features.stats import FEATURES
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.scenarios.studies.published import Printed, csv_rows, published_rows
from hpcrowd.scenarios.studies.running import logs_of

# ---- tables ----------------------------------------------------------------------------------
# Figures are shown for every available trace; :data:`TABLES` has all requirements. A figure is
# required on a trace only if that is the data of the thesis: as many jobs completed as in Table
# 3.1, up to :data:`JOBS_WITHIN` more or fewer. If a table depends on the definition of bags, only
# the logs on which readings were tried count, :data:`CHECKED`.

#: Difference to the jobs in Table 3.1 with which a log is that of the thesis: SDSC-DataStar, whose
#: correlation is met to the digit, has one more. HPC2N 2.2 has five fewer than 2.1, and gives
#: other figures.
JOBS_WITHIN = 1

#: Logs on which readings of bags were tried against the published figures.
CHECKED = ("HPC", "LLN")

#: Scale of a feature in each unit of the tables.
UNITS = {"": 1.0, "%": 100.0, "min": 1 / 60}

#: Digits after the point in Table 3.9, if they are not two.
FIT_DIGITS = {"gamma_scale_s": 0}


@dataclass(frozen=True)
class Figure:
    """A figure of a table."""

    name: str  #: Name of the row of published figures.
    feature: str  #: Name of our feature for it.
    title: str  #: Text for output.
    unit: str = ""  #: As printed: ``%``, ``min`` or none.

    def in_unit(self, number: float) -> float:
        """Return our number in the unit of the table."""
        return number * UNITS[self.unit]


@dataclass(frozen=True)
class Table:
    """A table of the thesis, and the requirements on ours."""

    #: Of the table.
    number: str
    title: str
    figures: tuple[Figure, ...]  #: Its figures of each trace.
    #: Names of traces on which it is required, if available; None for all, empty for none.
    required: tuple[str, ...] | None
    reason: str  #: Reason for that.
    #: Accepted deviation, in the unit of the table; None: all printed digits have to agree.
    within: float | None = None
    #: Whether it depends on the order of jobs of the same second, which logs do not contain, so
    #: that the printed figure may lie in the range over orders.
    by_order: bool = False
    #: Extension of that range, chosen by us: orders within a second can change a correlation of
    #: bags by this much more than the orders that are tried show.
    slack: float = 0.0
    #: Whether the range does not count: ours has to agree in the order of job numbers.
    strict: bool = False

    def requires(self, trace: str) -> bool:
        """Return whether figures of a trace are required, if it is the data of the thesis."""
        return self.required is None or trace in self.required

    @property
    def rule(self) -> str:
        """The required agreement, in words."""
        if self.required == ():
            return "-"
        unit = {"%": " point", "min": " min"}.get(self.figures[0].unit, "")
        near = "to the printed digit" if self.within is None else f"within {self.within:g}{unit}"
        if self.by_order and not self.strict and self.within is None:
            near += ", or in the range over orders"
            near += f" ± {self.slack:g} and half a digit" if self.slack else " ± half a digit"
        return near


def _tables() -> Iterator[Table]:
    """Yield the tables in ``features_tables.csv``, with those in ``features_figures.csv``."""
    here = Path(__file__).parent
    figures: dict[str, list[Figure]] = {}
    for row in csv_rows(here / "features_figures.csv"):
        figures.setdefault(row.pop("table"), []).append(Figure(**row))
    for row in csv_rows(here / "features_tables.csv"):
        yield Table(
            row["number"],
            row["title"],
            tuple(figures[row["number"]]),
            None if row["required"] == "all" else tuple(row["required"].split()),
            row["reason"],
            float(row["within"]) if row["within"] else None,
            row["by_order"] == "yes",
            float(row["slack"] or 0),
            row["strict"] == "yes",
        )


#: The tables of the thesis, in its order.
TABLES = tuple(_tables())


def published_figures(trace: str) -> Iterator[tuple[Table, Figure, Printed]]:
    """Yield the published figures of a trace."""
    rows = {row["figure"]: row for row in published_rows("minh2012_chapter3")}
    fits = {row["trace"]: row for row in published_rows("minh2012_bag_fits")}
    for table in TABLES:
        for figure in table.figures:
            if figure.name in rows:
                text = rows[figure.name][trace]
            else:
                text = _padded(figure.name, fits.get(trace, {}).get(figure.name, ""))
            if text:
                yield table, figure, Printed(text)


def _padded(name: str, text: str) -> str:
    """Return a figure of Table 3.9 with the zeros at its end that the table leaves out."""
    digits = _digits_of(name)
    return f"{float(text):.{digits}f}" if text and not name.endswith("_ks") else text


def _digits_of(parameter: str) -> int:
    return FIT_DIGITS.get(parameter, 2)


def distance_as_printed(workload: Workload, distribution: str) -> float:
    """Return the KS distance of a fit with its parameters rounded as Table 3.9 prints them."""
    found = bag_fit(workload, distribution).parameters
    rounded = {
        name: round(number, _digits_of(f"{distribution}_{name}")) for name, number in found.items()
    }
    return distance(bag_gaps(workload), distribution, rounded)


#: Features of the tables by name: those of the catalogue, and distances as in Table 3.10.
MEASURED = FEATURES | {
    f"bag_interarrival_{distribution}_ks_printed": Feature(
        f"bag_interarrival_{distribution}_ks_printed",
        f"{TITLES[distribution]}: KS distance, parameters rounded",
        "largest distance of the distribution functions, parameters rounded as in Table 3.9",
        "Minh 2012, Table 3.10",
        partial(distance_as_printed, distribution=distribution),
        by_order=True,
    )
    for distribution in PARAMETERS
}


# ---- measures --------------------------------------------------------------------------------

#: Orders of the jobs of the same second that bags are measured in, besides that of job numbers:
#: from last to first, and shuffled with each of these seeds.
SHUFFLES = range(1, 11)

#: The logs of Table 3.1 that can be read, by their abbreviations; cleaned where there is such a
#: version, as in the thesis.
STUDIED = logs_of("minh2012-features")

#: Reasons why traces of Table 3.1 cannot be read.
UNREADABLE = {
    "NOR": "Grid Workloads Archive, in another format",
    "AUV": "Grid Workloads Archive, in another format",
    "NIK": "not public",
}

#: How our figure may agree with a published one: it rounds to it, is within the tolerance of the
#: table, or lies in the range over orders.
HOW_NEAR = ("digit", "within", "orders")

#: Lags over which correlation is measured: one day of the rate process at T = 900 s.
LAGS = 96

#: The autocorrelation of white noise of n values lies within this over the root of n, 19 of 20
#: times.
WHITE_NOISE = 1.96

#: Rounding error of floating-point numbers.
ROUNDING = 1e-9


#: The traces of Table 3.1.
TABLED = tuple(row["trace"] for row in published_rows("minh2012_table3_1"))


def published_jobs(trace: str) -> int:
    """Return the number of completed jobs of a trace, Table 3.1."""
    rows = published_rows("minh2012_table3_1")
    return next(int(row["jobs"]) for row in rows if row["trace"] == trace)


@dataclass(frozen=True)
class Cell:
    """A figure of a trace with ours."""

    written: ClassVar[Mapping[str, str]] = {
        "table": "table.number", "figure": "figure.name", "unit": "figure.unit", "trace": "trace",
        "ours": "ours.number", "not_available": "ours.reason", "least_over_orders": "least",
        "most_over_orders": "most", "published": "published", "required": "required",
        "reached": "reached", "met": "met",
    }  # fmt: skip

    #: Its place.
    trace: str
    table: Table
    figure: Figure
    published: Printed  #: As printed.
    ours: Value  #: Our value, in the unit of the table.
    #: Smallest and largest over orders of the jobs of the same second; None if the order does not
    #: matter.
    least: float | None
    most: float | None
    required: bool  #: Whether it has to be reached.

    @property
    def reached(self) -> str:
        """The first of :data:`HOW_NEAR` that is true; empty for none."""
        number, printed = self.ours.number, self.published
        if number is None:
            return ""
        off = abs(number - printed.value)
        if off <= printed.half_unit + ROUNDING:
            return "digit"
        if self.table.within is not None and off <= self.table.within + ROUNDING:
            return "within"
        if self.least is None or self.most is None or self.table.within is not None:
            return ""
        wider = printed.half_unit + self.table.slack + ROUNDING
        return "orders" if self.least - wider <= printed.value <= self.most + wider else ""

    @property
    def met(self) -> bool | None:
        """Whether ours agrees as well as its table requires; None if nothing is required."""
        if not self.required:
            return None
        return self.reached in (("digit", "within") if self.table.strict else HOW_NEAR)

    @property
    def text(self) -> str:
        """Ours as text, with one digit more than the published figure."""
        return self.shown(self.ours.number) if self.ours.number is not None else str(self.ours)

    @property
    def range_text(self) -> str:
        """The range over orders as text; empty if there is none or it is a single value."""
        if self.least is None or self.most is None:
            return ""
        low, high = map(self.shown, (self.least, self.most))
        return f"{low} to {high}" if low != high else ""

    def shown(self, number: float) -> str:
        """Return a number of this figure with one digit more than the published one."""
        if number == round(number) and not self.published.decimals:
            return f"{number:,.0f}"
        return f"{number:,.{self.published.decimals + 1}f}"

    @property
    def title(self) -> str:
        """The title of the figure."""
        return self.figure.title + (f" ({self.figure.unit})" if self.figure.unit else "")


@dataclass(kw_only=True)
class ThesisTrace:
    """A trace of the thesis."""

    written: ClassVar[Sequence[str] | Mapping[str, str]] = ("facts",)

    trace: str  #: Its abbreviation in Table 3.1.
    workload: Workload  #: Its completed jobs.
    #: Its file, and the other available versions.
    file: dict[str, Any] = field(default_factory=dict)

    @property
    def is_that_of_the_thesis(self) -> bool:
        """Whether the number of completed jobs is that of Table 3.1."""
        return abs(len(self.workload) - published_jobs(self.trace)) <= JOBS_WITHIN

    @property
    def is_required(self) -> bool:
        """Whether figures are required of it."""
        return self.is_that_of_the_thesis

    @property
    def facts(self) -> dict[str, Any]:
        """The description of the trace."""
        return {
            **self.file,
            "jobs": len(self.workload),
            "jobs_published": published_jobs(self.trace),
            "figures_required": self.is_required,
            "jobs_left_out": dict(self.workload.left_out),
            "notes": list(self.workload.notes),
        }


def nothing_required(traces: Mapping[str, ThesisTrace]) -> list[str]:
    """Return a line for each trace of which nothing is required, as it is another version."""
    return [
        f"{name}: another version of the log, so nothing is required of it"
        for name, one in traces.items()
        if not one.is_that_of_the_thesis
    ]


@dataclass(kw_only=True)
class TraceOutcomes(ThesisTrace):
    """What was measured on one trace."""

    features: Features  #: Its features.
    #: Smallest and largest value of features over orders of the jobs of the same second.
    orders: dict[str, tuple[float, float]]

    @cached_property
    def cells(self) -> list[Cell]:
        """Every figure of the trace in the published tables."""
        return list(self._cells())

    def _cells(self) -> Iterator[Cell]:
        for table, figure, published in published_figures(self.trace):
            value, orders = self.features[figure.feature], self.orders.get(figure.feature)
            if value.number is not None:
                value = Value(figure.in_unit(value.number))
            low, high = (None, None) if orders is None else map(figure.in_unit, orders)
            required = table.requires(self.trace) and self.is_that_of_the_thesis
            yield Cell(self.trace, table, figure, published, value, low, high, required)


def study_trace(
    trace: str, workload: Workload, file: dict[str, Any] | None = None
) -> TraceOutcomes:
    """Measure the completed jobs of one trace, by its abbreviation in Table 3.1."""
    names = dict.fromkeys(figure.feature for _, figure, _ in published_figures(trace))
    values = {name: measured(workload, name) for name in names}
    moved = [
        figure.feature
        for table, figure, _ in published_figures(trace)
        if table.by_order and MEASURED[figure.feature].by_order
    ]
    return TraceOutcomes(
        trace=trace,
        workload=workload,
        features=Features(workload, values),
        orders=ranges(workload, list(dict.fromkeys(moved))),
        file=file or {},
    )


def measured(workload: Workload, feature: str) -> Value:
    """Return a feature of a workload by name."""
    return value_of(MEASURED[feature], workload)


def ranges(workload: Workload, features: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the smallest and the largest value of features over orders of the same second.

    Those are the order of job numbers, the opposite, and :data:`SHUFFLES`. What is not available
    in the first is left out.
    """
    found = {
        name: [value.number]
        for name in features
        if (value := measured(workload, name)).number is not None
    }
    if not found:
        return {}
    for order in _orders(len(workload)):
        other = reordered(workload, order)
        for name, numbers in found.items():
            number_there = measured(other, name).number
            if number_there is not None:
                numbers.append(number_there)
    return {name: (min(numbers), max(numbers)) for name, numbers in found.items()}


def _orders(jobs: int) -> Iterator[np.ndarray[Any, Any]]:
    """Yield numbers by which the jobs of the same second are ordered."""
    yield np.arange(jobs)[::-1]
    for seed in SHUFFLES:
        yield np.random.default_rng(seed).permutation(jobs)


def reordered(workload: Workload, number: np.ndarray[Any, Any]) -> Workload:
    """Return a workload with the jobs of the same second in the order of ``number``."""
    return workload.take(np.lexsort((number, workload.submit)))
