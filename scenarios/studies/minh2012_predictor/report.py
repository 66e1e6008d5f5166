"""Minh 2012, chapter 8: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.prediction.scores import Accuracy
from hpcrowd.scenarios.studies.minh2012_predictor.figures import FIGURES, write_figures
from hpcrowd.scenarios.studies.minh2012_predictor.study import (
    MEASURES,
    MODELS,
    PREDICTORS,
    READINGS,
    Cell,
    Comparison,
    TraceOutcomes,
    figure_of,
    published_row,
)
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
from hpcrowd.scenarios.studies.study import as_data

if TYPE_CHECKING:
    from rich.console import Console


#: Headings of Tables 8.4 to 8.6 with ours beside them.
TABLES = (
    "trace", "figure", "Tsafrir's, ours", "published", "Li's, ours", "published",
    "the thesis', ours", "published",
)  # fmt: skip

#: The same for a terminal.
SHOWN = ("trace", "figure", "Tsafrir", "paper", "Li", "paper", "Minh", "paper")

#: What follows the name of a model or a reading.
FIGURE_HEADINGS = ("underestimated", "MAE (min)", "WAE (min)")

MODEL_TABLE = ("trace", "model", *FIGURE_HEADINGS)
READING_TABLE = ("trace", "reading", *FIGURE_HEADINGS)
REQUIRED = ("trace", "what", "ours", "required", "reached")
TRAINING = (
    "trace", "parameters", "template", "pivot (s)", "N1", "K1", "alpha1", "beta1", "N2", "K2",
    "alpha2", "beta2", "training fitness", *FIGURE_HEADINGS,
)  # fmt: skip


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
    from hpcrowd.environment.schedulers.predictors.history import HistoryParameters

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
    lines = [
        f"{study.score} required figures reached",
        "Li's column cannot be run: its parameters are not published",
    ]
    origins = {one.own.origin.split(",")[0] for one in study.traces.values()}
    lines.append(f"Own parameters: {', '.join(sorted(origins))}; figures computed in this run")
    if study.absent:
        lines.append(f"Traces of the tables that are not there: {', '.join(study.absent)}")
    return lines


def page_parts(study: Comparison) -> dict[str, str]:
    """Return the generated parts of the page."""
    return {
        "required": markdown_table(REQUIRED, required_rows(study.requirements), 5),
        "tables": markdown_table(TABLES, table_rows(study), 2),
        "models": markdown_table(MODEL_TABLE, model_rows(study), 2),
        "training": markdown_table(TRAINING, training_rows(study), 3),
        "readings": markdown_table(READING_TABLE, reading_rows(study), 2),
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


def _plain_cell(cell: Cell) -> dict[str, Any]:
    return {
        "trace": cell.trace,
        "measure": cell.measure,
        "predictor": cell.predictor,
        "ours": cell.ours,
        "published": cell.published.value,
    }


def _plain(accuracy: Accuracy) -> dict[str, Any]:
    return {**asdict(accuracy), "fitness": accuracy.fitness}


class Reproduction(Comparison, StudyReport):
    """The whole study: data, tables, and a folder with both and the pictures."""

    name = "minh2012-predictor"
    about = (
        "Minh 2012, chapter 8: predictors of run times, Tables 8.4 to 8.6, on SDSC-DS and HPC2N."
    )

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        return {
            "study": self.name,
            "sources": {"minh2012_tables8": SOURCES["minh2012_tables8"]},
            "traces": {name: _plain_trace(one) for name, one in self.traces.items()},
            "absent": self.absent,
            "tables": list(map(_plain_cell, self.cells)),
            "required": as_data(self.requirements, "trace"),
            "reached": self.reached,
        }

    def show(self, console: Console) -> None:
        """Print the tables on a ``rich`` console."""
        for title, heading, rows, left in (
            ("Tables 8.4 to 8.6: ours and published", SHOWN, table_rows(self), 2),
            ("All models on the test part", MODEL_TABLE, model_rows(self), 2),
            ("Required", REQUIRED, required_rows(self.requirements), 5),
        ):
            console.print(console_table(title, heading, rows, left, once=True))
        for line in summary(self):
            console.print(line, highlight=False)

    def rows(self) -> Rows:
        """Return every figure of the tables with ours."""
        cells = list(map(_plain_cell, self.cells))
        return list(cells[0]), [list(cell.values()) for cell in cells]

    def origin(self) -> dict[str, Any]:
        """Return the traces."""
        return {"traces": {name: one.facts for name, one in self.traces.items()}}

    def write_pictures(self, place: Path) -> list[str]:
        """Write the pictures into a folder and return the names of the files."""
        return write_figures(list(self.traces.values()), place)

    def page(self, pictures: Sequence[str]) -> str:
        """Return a page in HTML with the tables and the pictures beside it."""
        source = SOURCES["minh2012_tables8"].partition(", Tables")[0]
        return html_page(
            "A history-based predictor of run times, reproduced",
            [f"{source}, chapter 8", *summary(self)],
            [
                html_section("Tables 8.4 to 8.6", TABLES, table_rows(self), 2),
                html_section("Required", REQUIRED, required_rows(self.requirements), 5),
                html_section("All models on the test part", MODEL_TABLE, model_rows(self), 2),
                html_section("Parameters", TRAINING, training_rows(self), 3),
                html_section("Other readings", READING_TABLE, reading_rows(self), 2),
            ],
            [(file, FIGURES[file.removesuffix(".png")]) for file in pictures],
        )
