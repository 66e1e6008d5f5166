"""Minh 2012, chapter 3: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.scenarios.studies.minh2012_features.figures import sheet, write_figures
from hpcrowd.scenarios.studies.minh2012_features.statements import RULES
from hpcrowd.scenarios.studies.minh2012_features.study import (
    Cell,
    Comparison,
    TraceOutcomes,
    published_jobs,
)
from hpcrowd.scenarios.studies.minh2012_features.tables import TABLES
from hpcrowd.scenarios.studies.pages import markdown_table
from hpcrowd.scenarios.studies.published import SOURCES
from hpcrowd.scenarios.studies.report import (
    Rows,
    StudyReport,
    claim_grid,
    claim_table,
    console_table,
    html_page,
    html_section,
    required_rows,
)
from hpcrowd.scenarios.studies.study import as_data

if TYPE_CHECKING:
    from rich.console import Console


#: Headings of the figures, of what is required of each table, of traces and of statements.
FIGURE_TABLE = ("table", "figure", "trace", "ours", "over orders", "published", "reached")
SHOWN = ("table", "figure", "trace", "ours", "over orders", "paper", "reached")
RULE_TABLE = ("table", "what", "required", "how near", "why so")
TRACE_TABLE = ("trace", "file", "jobs", "Table 3.1", "figures required")
REQUIRED = ("trace", "what", "ours", "required", "reached")

#: Tables of the fits, which are shown by themselves.
FITS = ("3.9", "3.10")

#: The tables of published figures.
PUBLISHED = ("minh2012_table3_1", "minh2012_chapter3", "minh2012_bag_fits")


def reached_text(cell: Cell) -> str:
    """Return how near our figure comes, in words; what need not be reached is no "no"."""
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


def figure_rows(study: Comparison, fits: bool) -> list[list[str]]:
    """Return the figures of all tables but those of the fits, or these."""
    return [figure_row(cell) for cell in study.cells if (cell.table.number in FITS) is fits]


def rule_rows() -> list[list[str]]:
    """Return what is required of each table as the texts of :data:`RULE_TABLE`."""
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


def trace_rows(study: Comparison) -> list[list[str]]:
    """Return which file each trace is as the texts of :data:`TRACE_TABLE`."""
    return [
        [
            name,
            str(one.facts.get("source", one.workload.name)),
            f"{len(one.workload):,}",
            f"{published_jobs(name):,}",
            "yes" if one.is_that_of_the_thesis else "other jobs, none required",
        ]
        for name, one in study.traces.items()
    ]


def summary(study: Comparison) -> list[str]:
    """Return what was reached, what holds, and which traces were not there, a line each."""
    checked = [claim for claim in study.claims if claim.holds is not None]
    hold = sum(bool(claim.holds) for claim in checked)
    required = [cell for cell in study.cells if cell.required]
    to_the_digit = sum(cell.reached == "digit" for cell in required)
    lines = [
        f"{study.score} required figures reached, {to_the_digit} of them to the printed digit",
        f"{hold} of {len(checked)} checked statements hold",
    ]
    for reason in dict.fromkeys(study.absent.values()):
        names = [name for name, why in study.absent.items() if why == reason]
        lines.append(f"Not measured: {', '.join(names)} ({reason})")
    for name, one in study.traces.items():
        if not one.is_that_of_the_thesis:
            lines.append(
                f"{name}: {len(one.workload):,} jobs completed, {published_jobs(name):,} in Table "
                "3.1: another version of the log, so nothing is required of it"
            )
        if others := one.facts.get("other_versions"):
            lines.append(f"{name}: {one.facts['source']} is measured, not {', '.join(others)}")
    return lines


def page_parts(study: Comparison) -> dict[str, str]:
    """Return the generated parts of the page."""
    return {
        "traces": markdown_table(TRACE_TABLE, trace_rows(study), 2),
        "rules": markdown_table(RULE_TABLE, rule_rows(), 5),
        "figures": markdown_table(FIGURE_TABLE, figure_rows(study, fits=False), 3),
        "fits": markdown_table(FIGURE_TABLE, figure_rows(study, fits=True), 3),
        "claims": markdown_table(*claim_table(study.claims, RULES, study.traces), 2),
        "summary": "\n".join(f"- {line}." for line in summary(study)),
    }


def _plain_trace(one: TraceOutcomes) -> dict[str, Any]:
    return {
        **one.facts,
        "jobs": len(one.workload),
        "jobs_published": published_jobs(one.trace),
        "figures_required": one.is_that_of_the_thesis,
        "jobs_left_out": dict(one.workload.left_out),
        "notes": list(one.workload.notes),
    }


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


class Reproduction(Comparison, StudyReport):
    """The whole study: data, tables, and a folder with both and the pictures."""

    name = "minh2012-features"
    about = "Minh 2012, chapter 3: features of workloads, Tables 3.2 to 3.20 and the text."

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        return {
            "study": self.name,
            "sources": {name: SOURCES[name] for name in PUBLISHED},
            "traces": {name: _plain_trace(one) for name, one in self.traces.items()},
            "absent": self.absent,
            "rules": [dict(zip(RULE_TABLE, row, strict=True)) for row in rule_rows()],
            "figures": list(map(_plain_cell, self.cells)),
            "required": as_data(self.requirements, "trace"),
            "claims": as_data(self.claims, "trace"),
            "reached": self.reached,
        }

    def show(self, console: Console) -> None:
        """Print the tables on a ``rich`` console."""
        for title, fits in (
            ("Tables 3.2 to 3.8 and 3.11 to 3.20: ours and published", False),
            ("Tables 3.9 and 3.10: distributions fitted to the times between bags", True),
        ):
            rows = figure_rows(self, fits)
            if rows:
                console.print(console_table(title, SHOWN, rows, 3, wrap=True))
        heading, rows = claim_grid(self.claims, RULES, self.traces)
        console.print(console_table("Statements of the text", heading, rows, 1))
        for line in summary(self):
            console.print(line, highlight=False)

    def rows(self) -> Rows:
        """Return every figure of the tables with ours."""
        cells = list(map(_plain_cell, self.cells))
        return list(cells[0]), [list(cell.values()) for cell in cells]

    def origin(self) -> dict[str, Any]:
        """Return the traces."""
        return {"traces": {name: _plain_trace(one) for name, one in self.traces.items()}}

    def write_pictures(self, place: Path) -> list[str]:
        """Write the pictures into a folder and return the names of the files."""
        return write_figures(list(self.traces.values()), place)

    def page(self, pictures: Sequence[str]) -> str:
        """Return a page in HTML with the tables and the pictures beside it."""
        source = SOURCES["minh2012_chapter3"].partition(", Tables")[0]
        return html_page(
            "Features of workloads, reproduced",
            [f"{source}, chapter 3", *summary(self)],
            [
                html_section("Traces", TRACE_TABLE, trace_rows(self), 2),
                html_section("Figures", FIGURE_TABLE, figure_rows(self, fits=False), 3),
                html_section("Times between bags", FIGURE_TABLE, figure_rows(self, fits=True), 3),
                html_section(
                    "Statements of the text", *claim_table(self.claims, RULES, self.traces), 2
                ),
                html_section("What is required", RULE_TABLE, rule_rows(), 5),
                html_section("Required", REQUIRED, required_rows(self.requirements), 5),
            ],
            [(file, sheet) for file in pictures],
        )
