"""Zakay and Feitelson 2015: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

import csv
import html
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.pages import HTML_HEAD, PLAIN_TABLE, markdown_table
from analysis.published import SOURCES
from analysis.results import versions, whole_folder, write_json
from analysis.zakay2015 import Cell, Comparison, LogOutcomes, Spread
from analysis.zakay2015_claims import RULES, Claim, claims_of
from analysis.zakay2015_figures import FIGURES, write_figures

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


class Reproduction(Comparison):
    """The whole study: data, tables, and a folder with both and the pictures."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        return plain(self)

    def show(self, console: Console) -> None:
        """Print the tables on a console."""
        show(self, console)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write data, pictures and a page into a folder that is whole or absent."""
        write(self, folder)


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
    required = len(study.requirements)
    lines = [
        f"{required - len(study.failures)} of {required} required figures reached; "
        f"{sum(claim.holds for claim in claims)} of {len(claims)} statements hold"
    ]
    if study.absent:
        lines.append(f"Logs of Table I that are not there: {', '.join(study.absent)}")
    return lines


def show(study: Comparison, console: Console) -> None:
    """Print Table I, the statements and what was required on a ``rich`` console."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    look: dict[str, Any] = {**PLAIN_TABLE, "box": SIMPLE_HEAD}
    view = Table(title="Table I: mean wait by user model under EASY, s", **look)
    for place, heading in enumerate(SHOWN):
        number: dict[str, Any] = {"justify": "right", "no_wrap": True} if place > 1 else {}
        view.add_column(heading, style="dim" if heading == "paper" else None, **number)
    before = None
    for cell in study.cells:
        row = table1_row(cell)
        # The range of the last ratio is for the page; it does not fit beside the rest.
        view.add_row("" if cell.log == before else cell.log, *row[1:8], row[9])
        before = cell.log
    console.print(view)
    claims = claims_of(study.logs.values())
    console.print("[bold]Statements of the text[/bold]")
    for rule in RULES:
        console.print(f"\n{rule.what} ({rule.section})", highlight=False)
        view = Table(box=None, show_header=False, padding=(0, 1))
        for claim in claims:
            if claim.name == rule.name:
                verdict = "holds" if claim.holds else "[yellow]does not hold[/yellow]"
                view.add_row(f"  {claim.log}", verdict, claim.text)
        console.print(view)
    console.print()
    view = Table(title="Required", **look)
    for heading in ("log", "what", "ours", "required", "reached"):
        view.add_column(heading)
    for one in study.requirements:
        reached = "yes" if one.holds else "[red]no[/red]"
        view.add_row(one.log, one.what, one.ours, one.required, reached)
    console.print(view)
    for line in summary(study, claims):
        console.print(line, highlight=False)


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
    lines = [
        [one.log, one.what, one.ours, one.required, "yes" if one.holds else "**no**"]
        for one in study.requirements
    ]
    return markdown_table(["log", "what", "ours", "required", "reached"], lines, 5)


def page_parts(study: Comparison) -> dict[str, str]:
    """Return the generated parts of the page that come from the study itself."""
    logs = list(study.logs.values())
    return {
        "table 1": markdown_table1(study),
        "statements": markdown_claims(logs),
        "required": markdown_required(study),
    }


def plain(study: Comparison) -> dict[str, Any]:
    """Return everything as plain data, fit for JSON."""
    claims = claims_of(study.logs.values())
    return {
        "study": "zakay2015",
        "sources": {name: text for name, text in SOURCES.items() if "zakay2015" in name},
        "logs": {name: _plain_log(log) for name, log in study.logs.items()},
        "absent": study.absent,
        "table1": [asdict(cell) for cell in study.cells],
        "statements": [asdict(claim) for claim in claims],
        "required": [asdict(one) for one in study.requirements],
        "reached": study.reached,
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


def write(study: Comparison, folder: str | os.PathLike[str]) -> None:
    """Write ``zakay2015.json``, ``.csv``, the pictures and ``report.html``; whole or absent."""
    data = plain(study)
    with whole_folder(folder) as place:
        write_json(data, place / "zakay2015.json")
        write_csv(study, place / "zakay2015.csv")
        pictures = write_figures(list(study.logs.values()), place)
        (place / "report.html").write_text(report(study, pictures), encoding="utf-8")
        traces = {name: log.facts for name, log in study.logs.items()}
        settings = {name: {**log.settings, "seeds": log.seeds} for name, log in study.logs.items()}
        origin = {"study": "zakay2015", "traces": traces, "settings": settings}
        write_json({**origin, "versions": versions()}, place / "provenance.json")


def write_csv(study: Comparison, path: Path) -> None:
    """Write every simulation in long form, one seed a line, with the published figure."""
    published = {(cell.log, cell.model): cell.published for cell in study.cells}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ("log", "users", "scheduler", "seed", "wait_mean_s", "published_s", "queue_mean_jobs")
        )
        for log in study.logs.values():
            for (model, scheduler), outcomes in log.outcomes.items():
                printed = published[log.log, model] if scheduler == "easy" else ""
                for one in outcomes:
                    row = (log.log, model, scheduler, one.seed, one.wait_mean_s, printed)
                    writer.writerow((*row, one.queue_mean))


def report(study: Comparison, pictures: Sequence[str]) -> str:
    """Return a page with the tables and the pictures beside it."""
    claims = claims_of(study.logs.values())
    source = SOURCES["zakay2015_table1"].partition(", Table")[0]
    parts = [
        HTML_HEAD.format(title="User behaviour in trace-based simulation, reproduced"),
        f"<p>{html.escape(source)}.</p>",
        *(f"<p>{html.escape(line)}.</p>" for line in summary(study, claims)),
        "<h2>Table I</h2>",
        _html_table(TABLE1, [table1_row(cell) for cell in study.cells], 2),
        "<h2>Required</h2>",
        _html_table(
            ("log", "what", "ours", "required", "reached"),
            [
                (one.log, one.what, one.ours, one.required, "yes" if one.holds else "no")
                for one in study.requirements
            ],
            5,
        ),
        "<h2>Statements of the text</h2>",
        _html_table(
            ("statement: measure; rule", "section", "log", "found", "holds"),
            [
                (one.what, one.section, one.log, one.text, "yes" if one.holds else "no")
                for one in claims
            ],
            5,
        ),
    ]
    for file in pictures:
        words = html.escape((FIGURES[file.removesuffix(".png")].__doc__ or file).strip())
        parts.append(f'<h3>{words}</h3>\n<img src="{file}" alt="{words}">')
    return "\n".join([*parts, "</body></html>\n"])


def _html_table(heading: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Return a table; the first ``left`` columns are words, a "no" at the end stands out."""
    kind = [" class=word"] * left + [""] * (len(heading) - left)
    head = "".join(
        f"<th{mark}>{html.escape(text)}</th>" for mark, text in zip(kind, heading, strict=True)
    )
    lines = [f"<tr>{head}</tr>"]
    for row in rows:
        marks = [*kind[:-1], " class=failed" if row[-1] == "no" else kind[-1]]
        cells = "".join(
            f"<td{mark}>{html.escape(text)}</td>" for mark, text in zip(marks, row, strict=True)
        )
        lines.append(f"<tr>{cells}</tr>")
    return "<table>\n" + "\n".join(lines) + "\n</table>"
