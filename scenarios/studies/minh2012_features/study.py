"""Minh 2012, chapter 3: the study, its output, and how it is run.

Several versions of a log may be available. The one whose number of completed jobs is nearest to
that of Table 3.1 is measured; the others are listed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

from hpcrowd.scenarios.studies.minh2012_features.figures import sheet
from hpcrowd.scenarios.studies.minh2012_features.measures import (
    STUDIED,
    TABLED,
    Cell,
    TraceOutcomes,
    absence_lines,
    published_jobs,
    reasons_of,
    study_trace,
)
from hpcrowd.scenarios.studies.minh2012_features.statements import RULES
from hpcrowd.scenarios.studies.minh2012_features.tables import TABLES
from hpcrowd.scenarios.studies.options import TRACES
from hpcrowd.scenarios.studies.published import MINH
from hpcrowd.scenarios.studies.render import (
    Picture,
    Rows,
    Table,
    record_rows,
    required_table,
    statement_tables,
)
from hpcrowd.scenarios.studies.running import nearest_versions
from hpcrowd.scenarios.studies.study import (
    REQUIRED_FIRST,
    Claim,
    PublishedStudy,
    Requirement,
    claims_of,
)
from hpcrowd.scenarios.studies.versions import Version
from hpcrowd.scenarios.terminal import Progress

#: Headings of the figures, of the requirements of each table, and of traces.
FIGURE_TABLE = ("table", "figure", "trace", "ours", "over orders", "published", "reached")
RULE_TABLE = ("table", "what", "required", "how near", "why so")
TRACE_TABLE = ("trace", "file", "jobs", "Table 3.1", "figures required")

#: Headings of the figures on a terminal.
SHOWN = dict(enumerate((*FIGURE_TABLE[:5], "paper", "reached")))

#: Tables of the fits, which are shown separately.
FITS = ("3.9", "3.10")


@dataclass
class Minh2012Features(PublishedStudy):
    """Features of the traces of Table 3.1.

    Attributes
    ----------
    traces
        The results by the abbreviation of the trace.
    """

    counted_in = "Table 3.1"
    name = "minh2012-features"
    about = "Minh 2012, chapter 3: features of workloads, Tables 3.2 to 3.20 and the text."
    title = "Features of workloads, reproduced"
    source = f"{MINH}, chapter 3"
    published: ClassVar = {
        "minh2012_table3_1": f"{MINH}, Table 3.1: traces, and how many of their jobs completed",
        "minh2012_chapter3": f"{MINH}, Tables 3.2 to 3.8 and 3.11 to 3.20: figures of traces",
        "minh2012_bag_fits": f"{MINH}, Tables 3.9 and 3.10: distributions fitted to the times "
        "between bags of tasks, their parameters and KS distances",
    }
    setting = "trace"
    listed = TABLED
    verdict_names = REQUIRED_FIRST
    statements_listed = False

    traces: dict[str, TraceOutcomes]

    @cached_property
    def cells(self) -> list[Cell]:
        """Every published figure of the available traces, table by table."""
        cells = [cell for one in self.traces.values() for cell in one.cells]
        return sorted(cells, key=lambda cell: TABLES.index(cell.table))

    @cached_property
    def requirements(self) -> list[Requirement]:
        """The required figures."""
        return [
            Requirement(
                cell.trace,
                f"{cell.table.number}, {cell.title}",
                cell.text,
                f"{cell.published.text}, {cell.table.rule}",
                cell.met,
            )
            for cell in self.cells
            if cell.required
        ]

    @cached_property
    def claims(self) -> list[Claim]:
        """Every statement of the text on every trace where it can be checked."""
        return claims_of(RULES, {name: one.workload for name, one in self.traces.items()})

    def tables(self) -> Sequence[Table]:
        """Return the traces, the figures with ours, statements, and requirements."""
        return (
            Table(
                "Traces", TRACE_TABLE, list(map(trace_row, self.traces.values())), 2, "traces",
                terminal=False,
            ),
            Table(
                "Tables 3.2 to 3.8 and 3.11 to 3.20: ours and published", FIGURE_TABLE,
                figure_rows(self, fits=False), 3, "figures", columns=SHOWN, wrap=True,
            ),
            Table(
                "Tables 3.9 and 3.10: distributions fitted to the times between bags", FIGURE_TABLE,
                figure_rows(self, fits=True), 3, "fits", columns=SHOWN, wrap=True,
            ),
            *statement_tables(self.claims, self.traces),
            Table("What is required", RULE_TABLE, rule_rows(), 5, "rules", terminal=False),
            required_table(self.requirements, "trace", terminal=False),
        )  # fmt: skip

    def summary(self) -> list[str]:
        """Return what was reached, what holds, and which traces were missing, a line each."""
        required = [cell for cell in self.cells if cell.required]
        to_the_digit = sum(cell.reached == "digit" for cell in required)
        lines = [
            f"{self.score} required figures reached, {to_the_digit} of them to the printed digit",
            self.checked,
            *absence_lines("Not measured", self.absent),
        ]
        for name, one in self.traces.items():
            if not one.is_that_of_the_thesis:
                lines.append(f"{name}: another version of the log, so nothing is required of it")
            if others := one.facts.get("other_versions"):
                lines.append(f"{name}: {one.facts['source']} is measured, not {', '.join(others)}")
        return lines

    def versions(self) -> Sequence[Version]:
        """Return the completed jobs of each trace."""
        return [
            Version(name, len(one.workload), published_jobs(name))
            for name, one in self.traces.items()
        ]

    def pictures(self) -> Sequence[Picture]:
        """Return a sheet for each trace."""
        return [Picture.of(name.lower(), sheet, one) for name, one in self.traces.items()]

    def data(self) -> dict[str, Any]:
        """Return the traces, the rules, and every figure with ours."""
        return {
            **self.origin(),
            "absent": reasons_of(self.absent),
            "rules": [dict(zip(RULE_TABLE, row, strict=True)) for row in rule_rows()],
            "figures": list(map(_plain_cell, self.cells)),
        }

    def rows(self) -> Rows:
        """Return every figure of the tables with ours."""
        return record_rows(list(map(_plain_cell, self.cells)))

    def origin(self) -> dict[str, Any]:
        """Return the traces."""
        return {"traces": {name: one.plain() for name, one in self.traces.items()}}


def reached_text(cell: Cell) -> str:
    """Return how our figure agrees, in words; "no" only for required figures."""
    if cell.required and not cell.met:
        return "no"
    if cell.ours.number is None:
        return "-"
    if cell.reached == "digit":
        return "yes"
    if cell.reached == "within":
        return cell.table.rule
    if cell.reached == "orders":
        return "over orders"
    return "differs"


def figure_row(cell: Cell) -> list[str]:
    """Return a figure as the texts of :data:`FIGURE_TABLE`."""
    printed = f"{cell.published.value:,.{cell.published.decimals}f}"
    first = [cell.table.number, cell.title, cell.trace]
    return [*first, cell.text, cell.range_text or "-", printed, reached_text(cell)]


def figure_rows(study: Minh2012Features, fits: bool) -> list[list[str]]:
    """Return the figures of the fits, or those of all other tables."""
    return [figure_row(cell) for cell in study.cells if (cell.table.number in FITS) is fits]


def rule_rows() -> list[list[str]]:
    """Return the requirements of each table as the texts of :data:`RULE_TABLE`."""
    return [
        [
            table.number,
            table.title,
            "all" if table.required is None else ", ".join(table.required) or "-",
            table.rule,
            table.reason,
        ]
        for table in TABLES
    ]


def trace_row(one: TraceOutcomes) -> list[str]:
    """Return the file of a trace as the texts of :data:`TRACE_TABLE`."""
    return [
        one.trace,
        str(one.facts.get("source", one.workload.name)),
        f"{len(one.workload):,}",
        f"{published_jobs(one.trace):,}",
        "yes" if one.is_that_of_the_thesis else "other jobs, none required",
    ]


def _plain_cell(cell: Cell) -> dict[str, Any]:
    low, high = cell.orders or (None, None)
    return {
        "table": cell.table.number,
        "figure": cell.figure.name,
        "unit": cell.figure.unit,
        "trace": cell.trace,
        "ours": cell.ours.number,
        "not_available": cell.ours.reason or None,
        "least_over_orders": low,
        "most_over_orders": high,
        "published": cell.published.value,
        "required": cell.required,
        "reached": cell.reached or None,
        "met": cell.met if cell.required else None,
    }


def reproduce_minh2012_features(
    traces: Annotated[str | os.PathLike[str], TRACES],
    progress: Progress | None = None,
    *,
    only: Iterable[str] = STUDIED,
) -> Minh2012Features:
    """Run the study on every available trace.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    progress
        Called before each step.
    only
        Abbreviations of the traces to look for.

    Raises
    ------
    TraceError
        When there is no trace at all, or one that cannot be read or has no job.
    """
    wanted = set(only)
    logs = {name: log for name, log in STUDIED.items() if name in wanted}
    read = nearest_versions(traces, logs, published_jobs, progress)
    outcomes = {name: study_trace(name, workload, facts) for name, workload, facts in read}
    return Minh2012Features(outcomes)
