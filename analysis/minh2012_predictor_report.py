"""Minh 2012, chapter 8: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

import csv
import html
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from analysis.minh2012_predictor import (
    MEASURES,
    MODELS,
    PREDICTORS,
    READINGS,
    Comparison,
    TraceOutcomes,
    figure_of,
    published_row,
)
from analysis.minh2012_predictor_figures import FIGURES, write_figures
from analysis.pages import HTML_HEAD, PLAIN_TABLE, markdown_table
from analysis.prediction import Accuracy
from analysis.published import SOURCES
from analysis.results import versions, whole_folder, write_json

if TYPE_CHECKING:
    from rich.console import Console

#: Headings of Tables 8.4 to 8.6 with ours beside them.
TABLES = (
    "trace", "figure", "Tsafrir's, ours", "published", "Li's, ours", "published",
    "the thesis', ours", "published",
)  # fmt: skip

#: What follows the name of a model or a reading.
FIGURE_HEADINGS = ("underestimated", "MAE (min)", "WAE (min)")

REQUIRED = ("trace", "what", "ours", "required", "reached")
TRAINING = (
    "trace", "parameters", "template", "pivot (s)", "N1", "K1", "alpha1", "beta1", "N2", "K2",
    "alpha2", "beta2", "training fitness", *FIGURE_HEADINGS,
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


def table_rows(study: Comparison) -> list[list[str]]:
    """Return Tables 8.4 to 8.6 as the texts of :data:`TABLES`."""
    rows = []
    for trace in study.traces:
        cells = {(c.measure, c.predictor): c for c in study.cells if c.trace == trace}
        for measure, name, unit, digits in MEASURES:
            row = [trace, f"{name} ({unit})"]
            for predictor in PREDICTORS:
                cell = cells[measure, predictor]
                row.append("-" if cell.ours is None else f"{cell.ours:,.{digits}f}")
                value = cell.published
                row.append(f"{value.value:,.{value.decimals}f}")
            rows.append(row)
    return rows


def figures(accuracy: Accuracy) -> list[str]:
    """Return the figures of a model as the texts of :data:`FIGURE_HEADINGS`."""
    texts = [f"{figure_of(accuracy, name):,.{digits}f}" for name, _, _, digits in MEASURES]
    return [f"{texts[0]} %", *texts[1:]]


def required_rows(study: Comparison) -> list[list[str]]:
    """Return what was required as the texts of :data:`REQUIRED`."""
    return [
        [one.trace, one.what, one.ours, one.required, "yes" if one.holds else "no"]
        for one in study.requirements
    ]


def model_rows(study: Comparison) -> list[list[str]]:
    """Return all models on each trace, and what users ask for."""
    rows = []
    for one in study.traces.values():
        rows += [[one.trace, model, *figures(one.test[model])] for model in MODELS]
        rows.append([one.trace, "history, own training", *figures(one.own.test)])
        rows.append([one.trace, "requested time", *figures(one.requested)])
    return rows


def reading_rows(study: Comparison) -> list[list[str]]:
    """Return the readings of each trace, and the published figures."""
    rows = []
    for one in study.traces.values():
        rows += [[one.trace, reading, *figures(one.readings[reading])] for reading in READINGS]
        row = published_row(one.trace)
        printed = [row[f"{measure}_minh"] for measure, *_ in MEASURES]
        rows.append([one.trace, "published", f"{printed[0]} %", *printed[1:]])
    return rows


def training_rows(study: Comparison) -> list[list[str]]:
    """Return the published parameters and our own as the texts of :data:`TRAINING`."""
    from environment.predictors.history import HistoryParameters

    rows = []
    for one in study.traces.values():
        published = HistoryParameters.published(one.trace)
        both = (
            ("published", published, one.published_training, one.test["history"]),
            ("own", one.own.parameters, one.own.training, one.own.test),
        )
        for name, parameters, training, test in both:
            groups = (
                text
                for g in (parameters.small, parameters.big)
                for text in (f"{g.n:,}", f"{g.k}", f"{g.alpha:g}", f"{g.beta:g}")
            )
            first = [one.trace, name, f"`{parameters.template}`", f"{parameters.pivot_s:,.0f}"]
            rows.append([*first, *groups, f"{training.fitness:.4f}", *figures(test)])
    return rows


def summary(study: Comparison) -> list[str]:
    """Return what was reached, what cannot be, and which traces were not there, a line each."""
    required = len(study.requirements)
    lines = [
        f"{required - len(study.failures)} of {required} required figures reached",
        "Li's column cannot be run: its parameters are not published",
    ]
    origins = {one.own.origin.split(",")[0] for one in study.traces.values()}
    lines.append(f"Own parameters: {', '.join(sorted(origins))}; figures computed in this run")
    if study.absent:
        lines.append(f"Traces of the tables that are not there: {', '.join(study.absent)}")
    return lines


def show(study: Comparison, console: Console) -> None:
    """Print the tables on a ``rich`` console."""
    for title, heading, rows, left in (
        ("Tables 8.4 to 8.6: ours and published", SHOWN, table_rows(study), 2),
        ("All models on the test part", ("trace", "model", *FIGURE_HEADINGS), model_rows(study), 2),
        ("Required", REQUIRED, required_rows(study), 5),
    ):
        console.print(_view(title, heading, rows, left))
    for line in summary(study):
        console.print(line, highlight=False)


#: Headings of the tables on a terminal.
SHOWN = ("trace", "figure", "Tsafrir", "paper", "Li", "paper", "Minh", "paper")


def _view(title: str, heading: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    look: dict[str, Any] = {**PLAIN_TABLE, "box": SIMPLE_HEAD}
    view = Table(title=title, **look)
    for place, name in enumerate(heading):
        number: dict[str, Any] = {"justify": "right", "no_wrap": True} if place >= left else {}
        view.add_column(name, style="dim" if name == "paper" else None, **number)
    before = None
    for row in rows:
        marked = "[red]no[/red]" if row[-1] == "no" else row[-1]
        view.add_row("" if row[0] == before else row[0], *row[1:-1], marked)
        before = row[0]
    return view


def page_parts(study: Comparison) -> dict[str, str]:
    """Return the generated parts of the page."""
    return {
        "required": markdown_table(REQUIRED, required_rows(study), 5),
        "tables": markdown_table(TABLES, table_rows(study), 2),
        "models": markdown_table(("trace", "model", *FIGURE_HEADINGS), model_rows(study), 2),
        "training": markdown_table(TRAINING, training_rows(study), 3),
        "readings": markdown_table(("trace", "reading", *FIGURE_HEADINGS), reading_rows(study), 2),
    }


def plain(study: Comparison) -> dict[str, Any]:
    """Return everything as plain data, fit for JSON."""
    return {
        "study": "minh2012-predictor",
        "sources": {"minh2012_tables8": SOURCES["minh2012_tables8"]},
        "traces": {name: _plain_trace(one) for name, one in study.traces.items()},
        "absent": study.absent,
        "tables": [
            {
                "trace": cell.trace,
                "measure": cell.measure,
                "predictor": cell.predictor,
                "ours": cell.ours,
                "published": cell.published.value,
            }
            for cell in study.cells
        ],
        "required": [asdict(one) for one in study.requirements],
        "reached": study.reached,
    }


def _plain_trace(one: TraceOutcomes) -> dict[str, Any]:
    return {
        "trace": one.facts,
        "jobs": one.jobs,
        "training_jobs": one.training,
        "mean_run_min": one.mean_run_min,
        "requested_time": _plain(one.requested),
        "models": {name: _plain(found) for name, found in one.test.items()},
        "readings": {name: _plain(found) for name, found in one.readings.items()},
        "published_parameters_in_training": _plain(one.published_training),
        "own_training": {
            "origin": one.own.origin,
            "parameters": asdict(one.own.parameters),
            "training": _plain(one.own.training),
            "test": _plain(one.own.test),
            "search": one.own.details,
            "fitness_ratio": one.fitness_ratio,
        },
    }


def _plain(accuracy: Accuracy) -> dict[str, Any]:
    return {**asdict(accuracy), "fitness": accuracy.fitness}


def write(study: Comparison, folder: str | os.PathLike[str]) -> None:
    """Write ``minh2012-predictor.json``, ``.csv``, the pictures and ``report.html``."""
    data = plain(study)
    with whole_folder(folder) as place:
        write_json(data, place / "minh2012-predictor.json")
        with (place / "minh2012-predictor.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(data["tables"][0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(data["tables"])
        pictures = write_figures(list(study.traces.values()), place)
        (place / "report.html").write_text(report(study, pictures), encoding="utf-8")
        facts = {name: one.facts for name, one in study.traces.items()}
        origin = {"study": "minh2012-predictor", "traces": facts, "versions": versions()}
        write_json(origin, place / "provenance.json")


def report(study: Comparison, pictures: Sequence[str]) -> str:
    """Return a page with the tables and the pictures beside it."""
    source = SOURCES["minh2012_tables8"].partition(", Tables")[0]
    parts = [
        HTML_HEAD.format(title="A history-based predictor of run times, reproduced"),
        f"<p>{html.escape(source)}, chapter 8.</p>",
        *(f"<p>{html.escape(line)}.</p>" for line in summary(study)),
    ]
    heading = ("trace", "model", *FIGURE_HEADINGS)
    for title, names, rows, left in (
        ("Tables 8.4 to 8.6", TABLES, table_rows(study), 2),
        ("Required", REQUIRED, required_rows(study), 5),
        ("All models on the test part", heading, model_rows(study), 2),
        ("Parameters", TRAINING, training_rows(study), 3),
        ("Other readings", ("trace", "reading", *FIGURE_HEADINGS), reading_rows(study), 2),
    ):
        parts += [f"<h2>{title}</h2>", _html_table(names, rows, left)]
    for file in pictures:
        words = html.escape((FIGURES[file.removesuffix(".png")].__doc__ or file).strip())
        parts.append(f'<h3>{words}</h3>\n<img src="{file}" alt="{words}">')
    return "\n".join([*parts, "</body></html>\n"])


def _html_table(heading: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Return a table; the first ``left`` columns are words, a "no" at the end stands out."""
    kind = [" class=word"] * left + [""] * (len(heading) - left)
    head = "".join(f"<th{k}>{html.escape(t)}</th>" for k, t in zip(kind, heading, strict=True))
    lines = [f"<tr>{head}</tr>"]
    for row in rows:
        marks = [*kind[:-1], " class=failed" if row[-1] == "no" else kind[-1]]
        texts = [text.strip("`") for text in row]
        cells = "".join(f"<td{m}>{html.escape(t)}</td>" for m, t in zip(marks, texts, strict=True))
        lines.append(f"<tr>{cells}</tr>")
    return "<table>\n" + "\n".join(lines) + "\n</table>"
