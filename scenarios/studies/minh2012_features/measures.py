"""Minh 2012, chapter 3: features of traces measured, next to the published ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hpcrowd.analysis.features.feature import Features, Value, value_of
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.scenarios.studies.minh2012_features.tables import (
    JOBS_WITHIN,
    MEASURED,
    Figure,
    Table,
    published_figures,
)
from hpcrowd.scenarios.studies.published import Printed, published_rows
from hpcrowd.scenarios.studies.running import ARCHIVE, Log

#: Orders of the jobs of the same second that bags are measured in, besides that of job numbers:
#: from last to first, and shuffled with each of these seeds.
SHUFFLES = range(1, 11)

#: The logs of Table 3.1 that can be read, by their abbreviations; cleaned where there is such a
#: version, as in the thesis.
STUDIED = {
    "FS0": Log("DAS2-fs0-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "FS1": Log("DAS2-fs1-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "FS2": Log("DAS2-fs2-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "FS3": Log("DAS2-fs3-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "FS4": Log("DAS2-fs4-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "OSC": Log("OSC-Clust-2000-*-cln.swf", f"{ARCHIVE}/l_osc/"),
    "HPC": Log("HPC2N-2002-*-cln.swf", f"{ARCHIVE}/l_hpc2n/"),
    "LLU": Log("LLNL-uBGL-2006-*.swf", f"{ARCHIVE}/l_llnl_ubgl/"),
    "LLA": Log("LLNL-Atlas-2006-*-cln.swf", f"{ARCHIVE}/l_llnl_atlas/"),
    "LLN": Log("LLNL-Thunder-2007-*-cln.swf", f"{ARCHIVE}/l_llnl_thunder/"),
    "SDB": Log("SDSC-BLUE-2000-*-cln.swf", f"{ARCHIVE}/l_sdsc_blue/"),
    "SDD": Log("SDSC-DS-2004-*-cln.swf", f"{ARCHIVE}/l_sdsc_ds/"),
    "LAN": Log("LANL-O2K-1999-*.swf", f"{ARCHIVE}/l_lanl_o2k/"),
}

#: Reasons why traces of Table 3.1 cannot be read.
UNREADABLE = {
    "NOR": "Grid Workloads Archive, in another format",
    "AUV": "Grid Workloads Archive, in another format",
    "NIK": "not public",
}

#: How our figure may agree with a published one: it rounds to it, is within the tolerance of the
#: table, or lies in the range over orders.
HOW_NEAR = ("digit", "within", "orders")

#: Rounding error of floating-point numbers.
ROUNDING = 1e-9


#: The traces of Table 3.1.
TABLED = tuple(row["trace"] for row in published_rows("minh2012_table3_1"))


def reasons_of(absent: Iterable[str]) -> dict[str, str]:
    """Return why traces are not available."""
    return {name: UNREADABLE.get(name, "no trace found") for name in absent}


def absence_lines(words: str, absent: Iterable[str]) -> list[str]:
    """Return the unavailable traces, a line for each reason."""
    found = reasons_of(absent)
    names = {why: [one for one in found if found[one] == why] for why in found.values()}
    return [f"{words}: {', '.join(ones)} ({why})" for why, ones in names.items()]


def published_jobs(trace: str) -> int:
    """Return the number of completed jobs of a trace, Table 3.1."""
    rows = published_rows("minh2012_table3_1")
    return next(int(row["jobs"]) for row in rows if row["trace"] == trace)


@dataclass(frozen=True)
class Cell:
    """A figure of a trace with ours.

    Attributes
    ----------
    trace, table, figure
        Its place.
    published
        As printed.
    ours
        Our value, in the unit of the table.
    orders
        Smallest and largest over orders of the jobs of the same second; None if the order does not
        matter.
    required
        Whether it has to be reached.
    """

    trace: str
    table: Table
    figure: Figure
    published: Printed
    ours: Value
    orders: tuple[float, float] | None
    required: bool

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
        if self.orders is None or self.table.within is not None:
            return ""
        wider = printed.half_unit + self.table.slack + ROUNDING
        low, high = self.orders
        return "orders" if low - wider <= printed.value <= high + wider else ""

    @property
    def met(self) -> bool:
        """Whether ours agrees as well as its table requires."""
        return self.reached in (("digit", "within") if self.table.strict else HOW_NEAR)

    @property
    def text(self) -> str:
        """Ours as text, with one digit more than the published figure."""
        return self.shown(self.ours.number) if self.ours.number is not None else str(self.ours)

    @property
    def range_text(self) -> str:
        """The range over orders as text; empty if there is none or it is a single value."""
        if self.orders is None:
            return ""
        low, high = map(self.shown, self.orders)
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
    """A trace of the thesis.

    Attributes
    ----------
    trace
        Its abbreviation in Table 3.1.
    workload
        Its completed jobs.
    facts
        Its file, and the other available versions.
    """

    trace: str
    workload: Workload
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def is_that_of_the_thesis(self) -> bool:
        """Whether the number of completed jobs is that of Table 3.1."""
        return abs(len(self.workload) - published_jobs(self.trace)) <= JOBS_WITHIN

    @property
    def is_required(self) -> bool:
        """Whether figures are required of it."""
        return self.is_that_of_the_thesis

    def plain(self) -> dict[str, Any]:
        """Return the description of the trace, as plain data."""
        return {
            **self.facts,
            "jobs": len(self.workload),
            "jobs_published": published_jobs(self.trace),
            "figures_required": self.is_required,
            "jobs_left_out": dict(self.workload.left_out),
        }


@dataclass(kw_only=True)
class TraceOutcomes(ThesisTrace):
    """What was measured on one trace.

    Attributes
    ----------
    features
        Its features.
    orders
        Smallest and largest value of features over orders of the jobs of the same second.
    """

    features: Features
    orders: dict[str, tuple[float, float]]

    def plain(self) -> dict[str, Any]:
        """Return the description of the trace and the notes on its jobs, as plain data."""
        return {**super().plain(), "notes": list(self.workload.notes)}

    @cached_property
    def cells(self) -> list[Cell]:
        """Every figure of the trace in the published tables."""
        return list(self._cells())

    def _cells(self) -> Iterator[Cell]:
        for table, figure, published in published_figures(self.trace):
            value, orders = self.features[figure.feature], self.orders.get(figure.feature)
            if value.number is not None:
                value = Value(figure.in_unit(value.number))
            if orders is not None:
                orders = figure.in_unit(orders[0]), figure.in_unit(orders[1])
            required = table.requires(self.trace) and self.is_that_of_the_thesis
            yield Cell(self.trace, table, figure, published, value, orders, required)


def study_trace(
    trace: str, workload: Workload, facts: dict[str, Any] | None = None
) -> TraceOutcomes:
    """Measure one trace.

    Parameters
    ----------
    trace
        Its abbreviation in Table 3.1.
    workload
        Its completed jobs.
    facts
        Its file.
    """
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
        facts=facts or {},
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
