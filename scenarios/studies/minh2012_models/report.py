"""Minh 2012, chapters 4 and 5: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.models.judgement import Spread
from hpcrowd.analysis.pictures.plots import write_figures_of
from hpcrowd.scenarios.studies.minh2012_features.measures import published_jobs
from hpcrowd.scenarios.studies.minh2012_models.arrivals import ArrivalRuns
from hpcrowd.scenarios.studies.minh2012_models.figures import FIGURES
from hpcrowd.scenarios.studies.minh2012_models.jobs import DISTANCES, TITLES, JobRuns
from hpcrowd.scenarios.studies.minh2012_models.scheduling import LOADS, Schedule
from hpcrowd.scenarios.studies.minh2012_models.statements import RULES
from hpcrowd.scenarios.studies.minh2012_models.study import Comparison, TraceModels
from hpcrowd.scenarios.studies.minh2012_models.tables import (
    Texts,
    arrival_table,
    choice_table,
    distance_table,
    job_table,
    schedule_table,
    summary,
    way_table,
)
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


#: Headings of what is required, and of the rows of the table of all figures.
REQUIRED = ("trace", "what", "ours", "required", "reached")
LONG = ("trace", "part", "model", "setting", "figure", "number", "value")

#: The tables of published figures.
PUBLISHED = ("minh2012_arrivals", "minh2012_comprehensive")

#: Figures of arrivals that are written.
ARRIVAL_FIGURES = ("cv", "zeros", "empty", "hurst", "hurst_sd", "ks")

#: Titles of the tables, and how many of their columns are words.
TITLED = {
    "arrivals": ("Tables 4.1 to 4.3: arrivals", 5),
    "choice": ("Which model `auto` takes", 1),
    "jobs": ("Tables 5.1 and 5.2: entropy and correlation", 3),
    "distances": ("The comprehensive model and the traces", 2),
    "schedule": ("Fig. 5.3: slowdown against load", 2),
    "ways": ("Points of the trace in the band", 2),
}


def tables(study: Comparison) -> dict[str, Texts]:
    """Return the tables of :data:`TITLED` by name."""
    return {
        "arrivals": arrival_table(study),
        "choice": choice_table(study),
        "jobs": job_table(study),
        "distances": distance_table(study),
        "schedule": schedule_table(study),
        "ways": way_table(study),
    }


def page_parts(study: Comparison) -> dict[str, str]:
    """Return the generated parts of the page."""
    parts = {name: markdown_table(*table, TITLED[name][1]) for name, table in tables(study).items()}
    return {
        "summary": "\n".join(f"- {line}." for line in summary(study)),
        "required": markdown_table(REQUIRED, required_rows(study.requirements), 4),
        **parts,
        "claims": markdown_table(*claim_table(study.claims, RULES, study.traces), 2),
    }


def _plain_spread(spread: Spread | None) -> dict[str, Any] | None:
    return None if spread is None else vars(spread)


def _plain_arrivals(runs: ArrivalRuns) -> dict[str, Any]:
    return {
        "chosen": runs.choice,
        "not_fitted": dict(runs.reasons),
        "trace": {name: getattr(runs.trace, name) for name in ARRIVAL_FIGURES if name != "ks"},
        "models": {
            model: {name: _plain_spread(runs.spread(model, name)) for name in ARRIVAL_FIGURES}
            for model in runs.models
        },
    }


def _plain_jobs(runs: JobRuns) -> dict[str, Any]:
    return {
        "arrivals": runs.arrivals,
        "trace": dict(runs.trace.figures),
        "generated": {name: _plain_spread(runs.spread(name)) for name in TITLES},
        "ks": {name: _plain_spread(runs.ks(name)) for name in DISTANCES},
        "uniform_entropy": list(runs.uniform),
    }


def _plain_schedule(schedule: Schedule) -> list[dict[str, Any]]:
    found = []
    for policy, load, row, column in schedule.points():
        numbers = {
            "trace": schedule.trace.slowdown,
            "least": schedule.least,
            "mean": schedule.mean,
            "most": schedule.most,
        }
        known = {name: float(values[row, column]) for name, values in numbers.items()}
        found.append(
            {
                "policy": policy,
                "load": load,
                "processors": int(schedule.trace.processors[column]),
                "jobs_left_out_share": float(schedule.trace.left_out[column]),
                **{name: number if number == number else None for name, number in known.items()},
                "inside": bool(schedule.inside[row, column])
                if schedule.known[row, column]
                else None,
            }
        )
    return found


def _plain_trace(one: TraceModels) -> dict[str, Any]:
    return {
        **one.facts,
        "jobs": len(one.workload),
        "jobs_published": published_jobs(one.trace),
        "figures_required": one.is_required,
        "jobs_left_out": dict(one.workload.left_out),
        "notes": {way: list(notes) for way, notes in one.notes.items()},
    }


def _long(one: TraceModels) -> Iterator[Sequence[Any]]:
    """Yield every figure of a trace as a row of :data:`LONG`; without a number it is recorded."""
    for scale, runs in one.arrivals.items():
        for name in ARRIVAL_FIGURES:
            setting = f"T = {scale:g} s"
            if name != "ks":
                yield one.trace, "arrivals", "", setting, name, None, getattr(runs.trace, name)
            for model, found in runs.models.items():
                for number, arrivals in enumerate(found):
                    value = getattr(arrivals, name)
                    yield one.trace, "arrivals", model, setting, name, number, value
    for way, jobs in one.jobs.items():
        for name, value in jobs.trace.figures.items():
            yield one.trace, "jobs", "", way, name, None, value
        for number, made in enumerate(jobs.model):
            for name, value in made.figures.items():
                yield one.trace, "jobs", "comprehensive", way, name, number, value
            for name, value in made.distances.items():
                yield one.trace, "jobs", "comprehensive", way, f"{name}_ks", number, value
    for way, schedule in one.schedules.items():
        for policy, load, row, column in schedule.points():
            setting = f"{way}, load {load:g}"
            for model, points in (
                ("", [schedule.trace]),
                ("comprehensive", schedule.workloads),
            ):
                for number, point in enumerate(points):
                    value = float(point.slowdown[row, column])
                    known = value if value == value else None
                    place = number if model else None
                    yield one.trace, "slowdown", model, setting, policy, place, known


class Reproduction(Comparison, StudyReport):
    """The whole study: data, tables, and a folder with both and the pictures."""

    name = "minh2012-models"
    about = (
        "Minh 2012, chapters 4 and 5: models of arrivals and jobs, against traces and schedulers."
    )

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        return {
            "study": self.name,
            "sources": {name: SOURCES[name] for name in PUBLISHED},
            "seeds": self.seeds,
            "loads": list(LOADS),
            "traces": {name: _plain_trace(one) for name, one in self.traces.items()},
            "absent": self.absent,
            "arrivals": {
                name: {f"{scale:g}": _plain_arrivals(runs) for scale, runs in one.arrivals.items()}
                for name, one in self.traces.items()
            },
            "jobs": {
                name: {way: _plain_jobs(runs) for way, runs in one.jobs.items()}
                for name, one in self.traces.items()
            },
            "slowdown": {
                name: {way: _plain_schedule(found) for way, found in one.schedules.items()}
                for name, one in self.traces.items()
            },
            "required": as_data(self.requirements, "trace"),
            "claims": as_data(self.claims, "trace"),
            "reached": self.reached,
        }

    def show(self, console: Console) -> None:
        """Print the tables on a ``rich`` console."""
        for name, (heading, rows) in tables(self).items():
            title, left = TITLED[name]
            plain = [[cell.replace("`", "") for cell in row] for row in rows]
            words = [cell.replace("`", "") for cell in heading]
            console.print(
                console_table(title.replace("`", ""), words, plain, left, once=True, wrap=True)
            )
        console.print(
            console_table("Statements of the text", *claim_grid(self.claims, RULES, self.traces), 1)
        )
        for line in summary(self):
            console.print(line, highlight=False)

    def rows(self) -> Rows:
        """Return every figure of every generated workload."""
        return LONG, [row for one in self.traces.values() for row in _long(one)]

    def origin(self) -> dict[str, Any]:
        """Return the traces and the seeds."""
        return {
            "traces": {name: _plain_trace(one) for name, one in self.traces.items()},
            "settings": {"seeds": self.seeds, "loads": list(LOADS)},
        }

    def write_pictures(self, place: Path) -> list[str]:
        """Write the pictures into a folder and return the names of the files."""
        return write_figures_of(FIGURES, self, place)

    def page(self, pictures: Sequence[str]) -> str:
        """Return a page in HTML with the tables and the pictures beside it."""
        source = SOURCES[PUBLISHED[0]].partition(", Tables")[0]
        return html_page(
            "Models of arrivals and jobs, reproduced",
            [f"{source}, chapters 4 and 5", *summary(self)],
            [
                *(
                    html_section(TITLED[name][0].replace("`", ""), *table, TITLED[name][1])
                    for name, table in tables(self).items()
                ),
                html_section(
                    "Statements of the text", *claim_table(self.claims, RULES, self.traces), 2
                ),
                html_section("Required", REQUIRED, required_rows(self.requirements), 4),
            ],
            [(file, FIGURES[file.removesuffix(".png")]) for file in pictures],
        )
