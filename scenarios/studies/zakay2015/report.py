"""Zakay and Feitelson 2015: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.scenarios.studies.pages import markdown_table
from hpcrowd.scenarios.studies.published import SOURCES
from hpcrowd.scenarios.studies.report import (
    Rows,
    StudyReport,
    console_table,
    html_page,
    html_section,
    required_rows,
)
from hpcrowd.scenarios.studies.study import Claim, as_data
from hpcrowd.scenarios.studies.zakay2015.figures import FIGURES, write_figures
from hpcrowd.scenarios.studies.zakay2015.measures import Cell, Comparison, LogOutcomes, Spread
from hpcrowd.scenarios.studies.zakay2015.statements import RULES, claims_of

if TYPE_CHECKING:
    from rich.console import Console


#: Headings of Table I with ours beside it.
TABLE1 = (
    "log", "users", "mean wait (s)", "least to largest", "published",
    "to conventional", "published", "to adjusted", "least to largest", "published",
)  # fmt: skip

#: The same for a terminal.
SHOWN = (
    "log", "users", "wait", "least to largest", "paper", "/ conv.", "paper", "/ adj.", "paper",
)  # fmt: skip

#: Headings of what was required, and of the statements on a page.
REQUIRED = ("log", "what", "ours", "required", "reached")
STATEMENTS = ("statement: measure; rule", "section", "log", "found", "holds")


def table1_row(cell: Cell) -> list[str]:
    """Return a figure of Table I as the texts of :data:`TABLE1`."""
    return [
        cell.log,
        cell.model,
        f"{cell.ours.mean:,.0f}",
        _range(cell.ours, ",.0f"),
        f"{cell.published:,}",
        _text(cell.to_conventional.mean),
        f"{cell.published_to_conventional:.2f}",
        _text(cell.to_adjusted.mean),
        _range(cell.to_adjusted, ".2f"),
        f"{cell.published_to_adjusted:.2f}",
    ]


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _range(spread: Spread, form: str) -> str:
    if spread.low is None or spread.high is None:
        return "-"
    return f"{spread.low:{form}} to {spread.high:{form}}"


def summary(study: Comparison, claims: Sequence[Claim]) -> list[str]:
    """Return what was reached, what holds, and which logs were not there, a line each."""
    lines = [
        f"{study.score} required figures reached; "
        f"{sum(claim.holds is True for claim in claims)} of {len(claims)} statements hold"
    ]
    if study.absent:
        lines.append(f"Logs of Table I that are not there: {', '.join(study.absent)}")
    return lines


def markdown_claims(logs: Sequence[LogOutcomes]) -> str:
    """Return the statements as a table in Markdown, a column for each log."""
    claims = claims_of(logs)
    lines = []
    for rule in RULES:
        cells = [markdown_claim(claim) for claim in claims if claim.name == rule.name]
        lines.append([f"{rule.what} ({rule.section})", *cells])
    return markdown_table(["statement: measure; rule", *(log.log for log in logs)], lines, 1)


def markdown_claim(claim: Claim) -> str:
    """Return a statement on a log as a cell."""
    return f"{'yes' if claim.holds else '**no**'}: {claim.text}"


def markdown_table1(study: Comparison) -> str:
    """Return Table I with ours beside it in Markdown."""
    return markdown_table(TABLE1, [table1_row(cell) for cell in study.cells], 2)


def markdown_required(study: Comparison) -> str:
    """Return what was required in Markdown."""
    rows = [
        [*row, "yes" if verdict == "yes" else "**no**"]
        for *row, verdict in required_rows(study.requirements)
    ]
    return markdown_table(REQUIRED, rows, 5)


def page_parts(study: Comparison) -> dict[str, str]:
    """Return the generated parts of the page that come from the study itself."""
    logs = list(study.logs.values())
    return {
        "table 1": markdown_table1(study),
        "statements": markdown_claims(logs),
        "required": markdown_required(study),
    }


def _plain_log(log: LogOutcomes) -> dict[str, Any]:
    return {
        "trace": log.facts,
        "settings": log.settings,
        "seeds": log.seeds,
        "simulations": [
            {
                "users": model,
                "scheduler": scheduler,
                "seed": one.seed,
                "wait_mean_s": one.wait_mean_s,
                "lateness_mean_s": one.lateness_mean_s,
                "queue_mean_jobs": one.queue_mean,
                "submitted_after_last_recorded": one.after_last_share,
            }
            for (model, scheduler), outcomes in log.outcomes.items()
            for one in outcomes
        ],
    }


class Reproduction(Comparison, StudyReport):
    """The whole study: data, tables, and a folder with both and the pictures."""

    name = "zakay2015"

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        return {
            "study": self.name,
            "sources": {name: text for name, text in SOURCES.items() if self.name in name},
            "logs": {name: _plain_log(log) for name, log in self.logs.items()},
            "absent": self.absent,
            "table1": [asdict(cell) for cell in self.cells],
            "statements": as_data(claims_of(self.logs.values()), "log"),
            "required": as_data(self.requirements, "log"),
            "reached": self.reached,
        }

    def show(self, console: Console) -> None:
        """Print Table I, the statements and what was required on a ``rich`` console."""
        from rich.table import Table

        # The range of the last ratio is for the page; it does not fit beside the rest.
        rows = [[*row[:8], row[9]] for row in map(table1_row, self.cells)]
        title = "Table I: mean wait by user model under EASY, s"
        console.print(console_table(title, SHOWN, rows, 2, once=True))
        claims = claims_of(self.logs.values())
        console.print("[bold]Statements of the text[/bold]")
        for rule in RULES:
            console.print(f"\n{rule.what} ({rule.section})", highlight=False)
            view = Table(box=None, show_header=False, padding=(0, 1))
            for claim in claims:
                if claim.name == rule.name:
                    verdict = "holds" if claim.holds else "[yellow]does not hold[/yellow]"
                    view.add_row(f"  {claim.setting}", verdict, claim.text)
            console.print(view)
        console.print()
        console.print(console_table("Required", REQUIRED, required_rows(self.requirements), 5))
        for line in summary(self, claims):
            console.print(line, highlight=False)

    def rows(self) -> Rows:
        """Return every simulation, one seed a row, with the published figure."""
        published = {(cell.log, cell.model): cell.published for cell in self.cells}
        heading = (
            "log", "users", "scheduler", "seed", "wait_mean_s", "published_s", "queue_mean_jobs",
        )  # fmt: skip
        rows = [
            (
                name, model, scheduler, one.seed, one.wait_mean_s,
                published[name, model] if scheduler == "easy" else None, one.queue_mean,
            )
            for name, log in self.logs.items()
            for (model, scheduler), outcomes in log.outcomes.items()
            for one in outcomes
        ]  # fmt: skip
        return heading, rows

    def origin(self) -> dict[str, Any]:
        """Return the traces, and the settings of their simulations."""
        return {
            "traces": {name: log.facts for name, log in self.logs.items()},
            "settings": {
                name: {**log.settings, "seeds": log.seeds} for name, log in self.logs.items()
            },
        }

    def write_pictures(self, place: Path) -> list[str]:
        """Write the pictures into a folder and return the names of the files."""
        return write_figures(list(self.logs.values()), place)

    def page(self, pictures: Sequence[str]) -> str:
        """Return a page in HTML with the tables and the pictures beside it."""
        claims = claims_of(self.logs.values())
        source = SOURCES["zakay2015_table1"].partition(", Table")[0]
        statements = [
            (one.what, one.section, one.setting, one.text, "yes" if one.holds else "no")
            for one in claims
        ]
        return html_page(
            "User behaviour in trace-based simulation, reproduced",
            [source, *summary(self, claims)],
            [
                html_section("Table I", TABLE1, map(table1_row, self.cells), 2),
                html_section("Required", REQUIRED, required_rows(self.requirements), 5),
                html_section("Statements of the text", STATEMENTS, statements, 5),
            ],
            [(file, FIGURES[file.removesuffix(".png")]) for file in pictures],
        )
