"""Madon et al. 2024: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.scenarios.studies.madon2024.figures import FIGURES, NAMES, write_figures
from hpcrowd.scenarios.studies.madon2024.measures import (
    QUANTITIES,
    ROUNDING,
    TITLES,
    WINDOW_MONTHS,
    Cell,
    Comparison,
    Reading,
    figure5c_readings,
    statements,
    window_of,
)
from hpcrowd.scenarios.studies.pages import markdown_table
from hpcrowd.scenarios.studies.published import SOURCES
from hpcrowd.scenarios.studies.report import (
    Rows,
    StudyReport,
    console_look,
    console_table,
    html_page,
    html_section,
)
from hpcrowd.scenarios.studies.running import trace_facts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


_RECORDED = "recorded log"

#: The ranges in the text: their title and headings.
RANGES, RANGE_HEADINGS = "Ranges in the text, KTH", ("what", "ours", "published", "where")


def rows_of(cells: Iterable[Cell]) -> dict[tuple[str, str, str, str], list[Cell]]:
    """Return the cells by table, log, experiment and replay, in the order printed."""
    rows: dict[tuple[str, str, str, str], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.table, cell.log, cell.experiment, cell.replay), []).append(cell)
    return rows


def texts(cell: Cell) -> tuple[str, str, str]:
    """Return ours, published and the deviation of a cell as printed.

    Ours has the digits of the published one. The deviation is in percent of the published figure
    where that has a unit and is at least a hundred units of its last digit, else in its unit.
    """
    decimals = len(cell.printed.partition(".")[2])
    if cell.ours is None or cell.deviation is None:
        return "-", cell.printed, "-"
    ours = f"{round(cell.ours, decimals) + 0.0:.{decimals}f}"
    large = cell.unit and abs(cell.published) >= 100 * 10**-decimals
    if cell.relative_deviation is not None and large:
        percent = 100 * cell.relative_deviation
        places = 1 if abs(percent) < 100 else 0
        deviation = f"{round(percent, places) + 0.0:+.{places}f} %"
    else:
        places = decimals + 1 if decimals else 0
        deviation = f"{round(cell.deviation, places) + 0.0:+.{places}f}"
    return ours, cell.printed, deviation


def name_of(experiment: str) -> str:
    """Return the name of an experiment as printed."""
    return NAMES.get(experiment, _RECORDED)


def _verdict(row: list[Cell]) -> str:
    """Return ``yes`` or ``no`` for the bounds of a row, ``-`` where it has none."""
    bounded = [cell.holds for cell in row if cell.holds is not None]
    return "-" if not bounded else "yes" if all(bounded) else "no"


def _groups(study: Comparison) -> Iterable[tuple[str, str, list[list[Cell]]]]:
    """Yield (table, log, rows) in the order printed."""
    rows = rows_of(study.cells)
    for table in TITLES:
        short = table.partition("_")[2]
        for log in study.logs:
            yield table, log, [row for key, row in rows.items() if key[:2] == (short, log)]


def _headings(table: str) -> list[str]:
    """Return the headings of the three quantities of a table, with their units."""
    return [
        f"{quantity.title} ({quantity.unit})" if quantity.unit else quantity.title
        for quantity in QUANTITIES
        if quantity.table == table
    ]


def summary(study: Comparison) -> str:
    """Return one line: how many bounds hold."""
    return f"{study.score} bounds hold; {len(study.cells)} figures compared"


def range_rows(study: Comparison) -> list[list[str]]:
    """Return our ranges and the published ones as printed, as :data:`RANGE_HEADINGS`."""
    return [
        [
            found.what,
            f"{found.our_low:.1f} to {found.our_high:.1f} {found.unit}",
            f"{found.low:g} to {found.high:g} {found.unit}",
            found.place,
        ]
        for found in statements(study)
    ]


def _tables(study: Comparison, failed: str) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Yield title, headings and rows of each table; ``failed`` marks ours where it fails."""
    for table, log, rows in _groups(study):
        heading = ["experiment", "users"]
        for name in _headings(table):
            heading += [name, "published", "deviation"]
        lines = []
        for row in rows:
            line = [name_of(row[0].experiment), row[0].replay]
            for cell in row:
                ours, *others = texts(cell)
                line += [failed.format(ours) if cell.holds is False else ours, *others]
            lines.append([*line, _verdict(row)])
        yield f"{TITLES[table]}, {log}", [*heading, "bounds hold"], lines


def markdown_tables(study: Comparison) -> str:
    """Return ours, published and deviation of every figure as tables in Markdown."""
    parts = []
    for title, heading, rows in _tables(study, "{}"):
        parts += [f"**{title}**", markdown_table(heading, rows, 2)]
    parts.append(f"**{RANGES}**")
    parts.append(markdown_table(RANGE_HEADINGS, range_rows(study), 4))
    parts.append(f"{summary(study)}.")
    return "\n\n".join(parts)


def markdown_readings(readings: list[Reading], most: int = 6) -> str:
    """Return the nearest readings of Fig. 5c and the best of each other kind in Markdown."""
    shown = readings[:most]
    for kind in ("singles", "divisor", "jobs", "method"):
        seen = {getattr(reading, kind) for reading in shown}
        for reading in readings:
            if getattr(reading, kind) not in seen:
                seen.add(getattr(reading, kind))
                shown.append(reading)
    shown.sort(key=lambda reading: reading.distance)
    heading = ["users with one job", "divisor", "jobs", "method", "distance", "equal as printed"]
    lines = [
        [one.singles, one.divisor, one.jobs, one.method, f"{one.distance:.3f}", str(one.exact)]
        for one in shown
    ]
    return markdown_table(heading, lines, 4)


def page_parts(study: Comparison) -> dict[str, str]:
    """Return the generated parts of the page that come from the study itself."""
    readings = [one for one in figure5c_readings(study) if one.log == "KTH"]
    return {"tables": markdown_tables(study), "readings": markdown_readings(readings)}


def _terminal_table(table: str, log: str, rows: list[list[Cell]]) -> Table:
    """Return a table for a terminal; a column that tells what held only where there are bounds."""
    from rich.table import Table

    bounded = any(cell.holds is not None for row in rows for cell in row)
    view = Table(title=f"{TITLES[table]}, {log}", **console_look())
    view.add_column("experiment", no_wrap=True)
    view.add_column("users", no_wrap=True)
    numbers: dict[str, Any] = {"justify": "right", "no_wrap": True}
    for heading in _headings(table):
        words = "\n".join(heading.rsplit(" ", 1 if heading.count(" ") < 2 else 2))
        view.add_column(words, min_width=9, **numbers)
        view.add_column("paper", **numbers)
        view.add_column("off by", style="dim", **numbers)
    if bounded:
        view.add_column("holds", **numbers)
    before = None
    for row in rows:
        name = name_of(row[0].experiment)
        users = "" if row[0].replay == "recorded" else row[0].replay
        shown = ["" if name == before else name, users]
        before = name
        for cell in row:
            ours, printed, deviation = texts(cell)
            failed = cell.holds is False
            shown += [f"[red]{ours}[/red]" if failed else ours, printed, deviation]
        view.add_row(*shown, *([_verdict(row)] if bounded else []))
    return view


class Reproduction(Comparison, StudyReport):
    """The whole study: data, tables, and a folder with both and the pictures."""

    name = "madon2024"
    about = (
        "Madon et al. 2024: Tables 1 and 2, Fig. 5c and the pictures, on KTH-SP2 (and SDSC-SP2)."
    )

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        bounded = len(self.requirements)
        runs = [
            {
                "log": log.log,
                "experiment": experiment,
                "replay": replay,
                "processors": run.processors,
                "configuration": run.configuration,
                "metrics": run.metrics,
                "windows": [asdict(window_of(run, months)) for months in WINDOW_MONTHS],
            }
            for log in self.logs.values()
            for (experiment, replay), run in log.runs.items()
        ]
        return {
            "study": self.name,
            "sources": {name: text for name, text in SOURCES.items() if self.name in name},
            **self.origin(),
            "rounding": ROUNDING,
            "bounds": {"cells": bounded, "hold": bounded - len(self.failures)},
            "cells": [asdict(cell) for cell in self.cells],
            "statements": [asdict(found) for found in statements(self)],
            "figure5c_readings": [asdict(found) for found in figure5c_readings(self)],
            "runs": runs,
        }

    def show(self, console: Console) -> None:
        """Print the tables on a ``rich`` console, with what held at the end."""
        for group in _groups(self):
            console.print(_terminal_table(*group))
        console.print(console_table(RANGES, RANGE_HEADINGS, range_rows(self), 4))
        console.print(summary(self), highlight=False)
        for cell in self.failures:
            console.print(
                f"not held: {cell.log} {name_of(cell.experiment)} {cell.replay} {cell.quantity}: "
                f"ours {cell.ours}, published {cell.printed}, accepted deviation {cell.tolerance}",
                highlight=False,
            )

    def rows(self) -> Rows:
        """Return every cell."""
        names = [field.name for field in fields(Cell)]
        return names, [[getattr(cell, name) for name in names] for cell in self.cells]

    def origin(self) -> dict[str, Any]:
        """Return the traces."""
        return {"traces": {name: trace_facts(log.baseline) for name, log in self.logs.items()}}

    def write_pictures(self, place: Path) -> list[str]:
        """Write the pictures into a folder and return the names of the files."""
        return write_figures(self, place)

    def page(self, pictures: Sequence[str]) -> str:
        """Return a page in HTML with the tables and the pictures beside it."""
        source = SOURCES["madon2024_table1"].partition(", Table")[0]
        rounding = ROUNDING[0].upper() + ROUNDING[1:]
        tables = [
            html_section(*table, 2, failed=lambda text: text.startswith("**"))
            for table in _tables(self, "**{}**")
        ]
        return html_page(
            "Replay with feedback, reproduced",
            [source, f"{summary(self)}. {rounding}"],
            [*tables, html_section(RANGES, RANGE_HEADINGS, range_rows(self), 1)],
            [(file, FIGURES[file.partition("_")[0]]) for file in pictures],
        )
