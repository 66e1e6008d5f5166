"""A validation on the terminal, in Markdown, as plain data, and as a folder."""

from __future__ import annotations

import csv
import html
import os
from typing import TYPE_CHECKING, Any

from analysis.pages import markdown_table
from analysis.results import versions, whole_folder, write_json
from analysis.validation import FORECASTS, RANKED, Score, Validation, fitted_lines
from analysis.validation_parts import POOLED, SIMILAR
from analysis.validation_simulation import MEASURES

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

#: Headings of the measures.
TITLES = {
    "next_batch": "next batch",
    "next_session": "next session",
    "think_time": "think time",
    "session_length": "session length",
    "inter_arrival": "inter-arrival",
    "weekly_profile": "weekly profile",
}

#: What the scores and distances are, with their units.
UNITS = {
    "crps": "CRPS, decades",
    "ks": "Kolmogorov-Smirnov distance",
    "tv": "total variation distance",
}

#: Names of what scores are held against, see :attr:`analysis.validation.Validation.floors`.
FLOORS = {
    "hindsight": "(hindsight)",
    "first part": "(first part)",
    "halves": "(halves)",
}

#: What stands behind a score that the best may have only by chance.
TIED = "="


def text(score: Score | None, measure: str, digits: int = 3) -> str:
    """Return a score with its interval as printed, and :data:`TIED`; empty for none."""
    if score is None:
        return ""
    found = score.statistics[RANKED[measure]]
    mark = TIED if score.rank is not None and score.tied else ""
    numbers = [f"{number:.{digits}f}" for number in (found.value, found.low, found.high)]
    return f"{numbers[0]}{mark} ({numbers[1]}-{numbers[2]})"


def markdown_rows(found: Validation, names: list[str] | None = None) -> list[list[str]]:
    """Return the rows of the table, of the models named and of the floors."""
    rows = []
    for name in found.order if names is None else names:
        row = [name, *(text(found.scores[name].get(m), m, 2) for m in RANKED)]
        rows.append([*row, f"{found.volume[name]:.0%}", f"{found.mean_rank(name):.1f}"])
    if names is None:
        for name, scores in found.floors.items():
            row = [FLOORS[name], *(text(scores.get(m), m, 2) for m in RANKED)]
            rows.append([*row, "", ""])
    return rows


def markdown_scores(found: Validation) -> str:
    """Return all scores as a table in Markdown, the best mean rank first."""
    return markdown_table(["model", *TITLES.values(), "jobs", "mean rank"], markdown_rows(found), 1)


def show(found: Validation, console: Console) -> None:
    """Print the tables."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    numbers: dict[str, Any] = {"justify": "right", "no_wrap": True}
    for title, measures in (
        ("Forecasts: CRPS of the pause in decades, mean over users; 0 is perfect", FORECASTS),
        ("Simulated second part: distance from the recorded one, 0 to 1", tuple(MEASURES)),
    ):
        first = measures == FORECASTS
        table = Table(title=title, pad_edge=False, box=SIMPLE_HEAD, title_justify="left")
        table.title_style = "bold"
        table.add_column("model", no_wrap=True)
        for heading in [TITLES[measure] for measure in measures]:
            table.add_column(heading, **numbers)
        if first:
            table.add_column("jobs", **numbers)
            table.add_column("mean rank of all", **numbers)
        rows = [(name, found.scores[name], "") for name in found.order]
        rows += [(FLOORS[name], scores, "dim") for name, scores in found.floors.items()]
        for name, scores, style in rows:
            cells = [text(scores.get(measure), measure, 3 if first else 2) for measure in measures]
            if first and name in found.volume:
                cells += [f"{found.volume[name]:.0%}", f"{found.mean_rank(name):.1f}"]
            if any(cells):
                table.add_row(name, *cells, style=style)
        console.print(table)
    for line in notes(found):
        console.print(line, highlight=False)


def headline(found: Validation) -> list[str]:
    """Return lines that say what was split where."""
    n, local = found.counts(), found.parts.clock.local(found.parts.since)
    lines = [
        f"first part: {n['jobs_first']:,} jobs, {n['sessions_first']:,} sessions, "
        f"{n['users_first']:,} users, until {local:%d %b %Y %H:%M}",
        f"second part: {n['jobs_second']:,} jobs, {n['sessions_second']:,} sessions, "
        f"{n['users_second']:,} users, {n['users_second_not_seen_in_first']:,} of them not in the "
        "first: they get what fits all users",
    ]
    if found.parts.clock.note:
        lines.append(found.parts.clock.note)
    return lines


def notes(found: Validation) -> list[str]:
    """Return what a reader of the tables has to know."""
    asked = ", ".join(f"{found.asked[kind]:,} of the {TITLES[kind]}" for kind in FORECASTS)
    lines = [
        f"In brackets: 95 % interval, users drawn again. {TIED} the best, or not distinguishable "
        f"from it. Forecasts: {asked}.",
        f"{POOLED}: pauses of all users alike; {SIMILAR}: those after similar responses. rigid: "
        "the user's own gaps between submissions, whatever the responses. (hindsight): adjusted, "
        "with pauses of the second part itself. (first part), (halves): the recorded first part, "
        "and the halves of the second, compared. Jobs: submitted until the end of the record, in "
        "percent of the recorded ones.",
    ]
    circular = [name for name, model in found.models.items() if model.circular]
    if found.settings["pauses"] == "recorded" and circular:
        lines.append(
            f"Circular: in the simulated part {', '.join(circular)} take pauses or windows from "
            "the very part they are compared with; leave out --pauses recorded for a fair test."
        )
    return lines


def plain(found: Validation) -> dict[str, Any]:
    """Return everything as plain data, fit for JSON."""

    def measures(scores: dict[str, Score]) -> dict[str, Any]:
        return {
            measure: {
                **{name: each.plain() for name, each in score.statistics.items()},
                **({} if score.rank is None else {"rank": score.rank, "tied": bool(score.tied)}),
                **({} if score.behind is None else {"behind_best": score.behind.plain()}),
            }
            for measure, score in scores.items()
        }

    clock = found.parts.clock
    return {
        "settings": found.settings,
        "split_second_s": found.parts.since,
        "split_local": clock.local(found.parts.since).isoformat(),
        "clock_note": clock.note,
        "parts": found.counts(),
        "forecasts": found.asked,
        "think_time_lines": fitted_lines(found.parts),
        "ranked_by": RANKED,
        "models": [
            {
                "name": name,
                "mean_rank": found.mean_rank(name),
                "jobs_per_recorded_job": found.volume[name],
                "circular": found.settings["pauses"] == "recorded" and found.models[name].circular,
                "measures": measures(found.scores[name]),
            }
            for name in found.order
        ],
        "floors": {name: measures(scores) for name, scores in found.floors.items()},
    }


#: Columns of ``validation.csv``.
COLUMNS = ("model", "measure", "statistic", "value", "low", "high", "rank", "tied")


def csv_rows(found: Validation) -> list[tuple[Any, ...]]:
    """Return one row for each model, measure and statistic, in the order of :data:`COLUMNS`."""
    rows = []
    named = {name: found.scores[name] for name in found.order} | {
        FLOORS[name]: scores for name, scores in found.floors.items()
    }
    for name, scores in named.items():
        for measure, score in scores.items():
            for statistic, each in score.statistics.items():
                numbers = [f"{number:.6g}" for number in (each.value, each.low, each.high)]
                ranked = statistic == RANKED[measure] and score.rank is not None
                tail = (score.rank, int(score.tied)) if ranked else ("", "")
                rows.append((name, measure, statistic, *numbers, *tail))
    return rows


def write(found: Validation, folder: str | os.PathLike[str], title: str, source: Any) -> None:
    """Write data, table, picture and a page into a folder that is whole or absent.

    Parameters
    ----------
    found
        What came out.
    folder
        Where to.
    title
        Name of the trace.
    source
        Where the trace comes from, fit for JSON.
    """
    from analysis.plots import figure_png
    from analysis.validation_figure import draw

    with whole_folder(folder) as place:
        write_json(plain(found), place / "validation.json")
        with (place / "validation.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(csv_rows(found))
        (place / "validation.png").write_bytes(figure_png(draw(found, title)))
        _write_page(found, place / "report.html", title)
        write_json(
            {"configuration": found.settings, "trace": source, "versions": versions()},
            place / "provenance.json",
        )


def _write_page(found: Validation, path: Path, title: str) -> None:
    heading = ["model", *TITLES.values(), "jobs", "mean rank"]
    table = "".join(
        "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>\n"
        for tag, row in [("th", heading), *(("td", row) for row in markdown_rows(found))]
    )
    paragraphs = "".join(
        f"<p>{html.escape(line)}</p>\n" for line in [*headline(found), *notes(found)]
    )
    path.write_text(
        "<!doctype html>\n<html lang=en><meta charset=utf-8>\n"
        f"<title>Validation: {html.escape(title)}</title>\n"
        "<style>body{font:15px sans-serif;max-width:75em;margin:2em auto;padding:0 1em}"
        "td,th{padding:.2em .6em;text-align:right;white-space:nowrap;font-size:13px}"
        "td:first-child,th:first-child{text-align:left}img{max-width:100%}"
        "tr:nth-child(even){background:#f4f4f4}</style>\n"
        f"<h1>Validation: {html.escape(title)}</h1>\n{paragraphs}"
        "<p>Next batch and next session: CRPS in decades. Think time, session length, "
        "inter-arrival: Kolmogorov-Smirnov distance. Weekly profile: total variation distance. "
        "0 is perfect everywhere.</p>\n"
        f'<div style="overflow-x:auto"><table>{table}</table></div>\n'
        '<img src="validation.png" alt="Scores and distances of all models with intervals">\n'
        "</html>\n",
        encoding="utf-8",
    )
