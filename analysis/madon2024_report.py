"""Madon et al. 2024: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

import csv
import html
import os
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from analysis.madon2024 import (
    QUANTITIES,
    ROUNDING,
    TITLES,
    WINDOW_MONTHS,
    Cell,
    Comparison,
    window_of,
)
from analysis.madon2024_figures import FIGURES, NAMES, write_figures
from analysis.madon2024_readings import Reading, Statement, figure5c_readings, statements
from analysis.pages import HTML_HEAD, PLAIN_TABLE, markdown_table, trace_facts
from analysis.published import SOURCES
from analysis.results import versions, whole_folder, write_json

_RECORDED = "recorded log"


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


def show(study: Comparison, console: Any) -> None:
    """Print the tables on a ``rich`` console, with what held at the end."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    look: dict[str, Any] = {**PLAIN_TABLE, "box": SIMPLE_HEAD}
    for table, log, rows in _groups(study):
        bounded = any(cell.holds is not None for row in rows for cell in row)
        view = Table(title=f"{TITLES[table]}, {log}", **look)
        view.add_column("experiment", no_wrap=True)
        view.add_column("users", no_wrap=True)
        for heading in _headings(table):
            words = "\n".join(heading.rsplit(" ", 1 if heading.count(" ") < 2 else 2))
            numbers: dict[str, Any] = {"justify": "right", "no_wrap": True}
            view.add_column(words, min_width=9, **numbers)
            view.add_column("paper", **numbers)
            view.add_column("off by", style="dim", **numbers)
        if bounded:
            view.add_column("holds", no_wrap=True, justify="right")
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
            verdict = _verdict(row)
            view.add_row(*shown, *([verdict] if bounded else []))
        console.print(view)
    view = Table(title="Ranges in the text, KTH", **look)
    for heading in ("what", "ours", "published", "where"):
        view.add_column(heading)
    for found in statements(study):
        view.add_row(found.what, *_ranges(found), found.place)
    console.print(view)
    console.print(summary(study), highlight=False)
    for cell in study.failures:
        console.print(
            f"not held: {cell.log} {name_of(cell.experiment)} {cell.replay} {cell.quantity}: ours "
            f"{cell.ours}, published {cell.printed}, accepted deviation {cell.tolerance}",
            highlight=False,
        )


def summary(study: Comparison) -> str:
    """Return one line: how many bounds hold."""
    bounded = [cell for cell in study.cells if cell.holds is not None]
    hold = len(bounded) - len(study.failures)
    return f"{hold} of {len(bounded)} bounds hold; {len(study.cells)} figures compared"


def _ranges(found: Statement) -> tuple[str, str]:
    """Return our range and the published one as printed."""
    ours = f"{found.our_low:.1f} to {found.our_high:.1f} {found.unit}"
    return ours, f"{found.low:g} to {found.high:g} {found.unit}"


def markdown_tables(study: Comparison) -> str:
    """Return ours, published and deviation of every figure as tables in Markdown."""
    parts = []
    for table, log, rows in _groups(study):
        heading = ["experiment", "users"]
        for name in _headings(table):
            heading += [name, "published", "deviation"]
        lines = []
        for row in rows:
            line = [name_of(row[0].experiment), row[0].replay]
            for cell in row:
                line += texts(cell)
            lines.append([*line, _verdict(row)])
        parts.append(f"**{TITLES[table]}, {log}**")
        parts.append(markdown_table([*heading, "bounds hold"], lines, 2))
    lines = [[found.what, *_ranges(found), found.place] for found in statements(study)]
    parts.append("**Ranges in the text, KTH**")
    parts.append(markdown_table(["what", "ours", "published", "where"], lines, 4))
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


def plain(study: Comparison) -> dict[str, Any]:
    """Return everything as plain data, fit for JSON."""
    bounded = [cell for cell in study.cells if cell.holds is not None]
    runs = []
    for log in study.logs.values():
        for (experiment, replay), run in log.runs.items():
            runs.append(
                {
                    "log": log.log,
                    "experiment": experiment,
                    "replay": replay,
                    "processors": run.processors,
                    "configuration": run.configuration,
                    "metrics": run.metrics,
                    "windows": [asdict(window_of(run, months)) for months in WINDOW_MONTHS],
                }
            )
    return {
        "study": "madon2024",
        "sources": {name: text for name, text in SOURCES.items() if "madon2024" in name},
        "traces": {name: trace_facts(log.baseline) for name, log in study.logs.items()},
        "rounding": ROUNDING,
        "bounds": {"cells": len(bounded), "hold": len(bounded) - len(study.failures)},
        "cells": [asdict(cell) for cell in study.cells],
        "statements": [asdict(found) for found in statements(study)],
        "figure5c_readings": [asdict(found) for found in figure5c_readings(study)],
        "runs": runs,
    }


def write(study: Comparison, folder: str | os.PathLike[str]) -> None:
    """Write ``madon2024.json``, ``.csv``, the pictures and ``report.html``; whole or absent."""
    data = plain(study)
    with whole_folder(folder) as place:
        write_json(data, place / "madon2024.json")
        write_csv(study.cells, place / "madon2024.csv")
        pictures = write_figures(study, place)
        (place / "report.html").write_text(report(study, pictures), encoding="utf-8")
        provenance = {"study": data["study"], "traces": data["traces"], "versions": versions()}
        write_json(provenance, place / "provenance.json")


def write_csv(cells: list[Cell], path: Path) -> None:
    """Write the cells in long form, one a line, floats in full; unknown is empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Cell)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(cell) for cell in cells)


_PAGE = (
    HTML_HEAD
    + """<p>{source}.</p>
<p>{summary}. {rounding}.</p>
{body}
</body></html>
"""
)


def report(study: Comparison, pictures: list[str]) -> str:
    """Return a page with the tables and the pictures beside it."""
    parts = []
    for table, log, rows in _groups(study):
        head = "<th class=word>experiment</th><th class=word>users</th>"
        for name in _headings(table):
            head += f"<th>{html.escape(name)}</th><th>published</th><th>deviation</th>"
        lines = [f"<tr>{head}<th>bounds hold</th></tr>"]
        for row in rows:
            line = f"<td class=word>{name_of(row[0].experiment)}</td><td class=word>{row[0].replay}"
            for cell in row:
                ours, printed, deviation = texts(cell)
                mark = " class=failed" if cell.holds is False else ""
                line += f"</td><td{mark}>{ours}</td><td>{printed}</td><td>{deviation}"
            lines.append(f"<tr>{line}</td><td>{_verdict(row)}</td></tr>")
        parts.append(
            f"<h2>{TITLES[table]}, {log}</h2>\n<table>\n" + "\n".join(lines) + "\n</table>"
        )
    lines = ["<tr><th class=word>what</th><th>ours</th><th>published</th><th>where</th></tr>"]
    for found in statements(study):
        ours, published = _ranges(found)
        lines.append(
            f"<tr><td class=word>{found.what}</td><td>{ours}</td><td>{published}</td>"
            f"<td>{found.place}</td></tr>"
        )
    parts.append("<h2>Ranges in the text, KTH</h2>\n<table>\n" + "\n".join(lines) + "\n</table>")
    for file in pictures:
        name = file.partition("_")[0]
        words = (FIGURES[name].__doc__ or name).strip()
        parts.append(
            f'<h3>{html.escape(words)}</h3>\n<img src="{file}" alt="{html.escape(words)}">'
        )
    return _PAGE.format(
        title="Replay with feedback, reproduced",
        source=html.escape(SOURCES["madon2024_table1"].partition(", Table")[0]),
        summary=summary(study),
        rounding=html.escape(ROUNDING[0].upper() + ROUNDING[1:]),
        body="\n".join(parts),
    )


def page_parts(study: Comparison) -> dict[str, str]:
    """Return the generated parts of the page that come from the study itself."""
    readings = [one for one in figure5c_readings(study) if one.log == "KTH"]
    return {"tables": markdown_tables(study), "readings": markdown_readings(readings)}
