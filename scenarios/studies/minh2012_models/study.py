"""Minh 2012, chapters 4 and 5: the study, its output, and how it is run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from hpcrowd.analysis.models.judgement import Spread
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.studies.minh2012_features.measures import (
    STUDIED as READABLE,
)
from hpcrowd.scenarios.studies.minh2012_features.measures import (
    absence_lines,
    published_jobs,
    reasons_of,
)
from hpcrowd.scenarios.studies.minh2012_models.arrivals import ArrivalRuns
from hpcrowd.scenarios.studies.minh2012_models.experiments import (
    PLANNED,
    Task,
    Work,
    outcome_of,
    tasks_of,
)
from hpcrowd.scenarios.studies.minh2012_models.figures import FIGURES
from hpcrowd.scenarios.studies.minh2012_models.jobs import DISTANCES, TITLES, JobRuns
from hpcrowd.scenarios.studies.minh2012_models.measures import (
    REQUIRED_WAY,
    SCHEDULED,
    TABLED,
    TraceModels,
)
from hpcrowd.scenarios.studies.minh2012_models.scheduling import LOADS, REQUIRED_LOADS, Schedule
from hpcrowd.scenarios.studies.minh2012_models.statements import RULES
from hpcrowd.scenarios.studies.minh2012_models.tables import (
    arrival_table,
    choice_table,
    distance_table,
    job_table,
    schedule_table,
    way_table,
)
from hpcrowd.scenarios.studies.options import PROCESSES, TRACES, Option
from hpcrowd.scenarios.studies.published import MINH
from hpcrowd.scenarios.studies.render import (
    Picture,
    Rows,
    Table,
    pictures_of,
    required_table,
    statement_tables,
)
from hpcrowd.scenarios.studies.running import (
    ARCHIVE,
    Log,
    nearest_versions,
    run_tasks,
)
from hpcrowd.scenarios.studies.study import REQUIRED_FIRST, PublishedStudy
from hpcrowd.scenarios.studies.versions import Version
from hpcrowd.scenarios.terminal import Progress

#: The traces of chapters 4 and 5 by their abbreviations. NorduGrid is in another format, and NIKHEF
#: is not public: files of these names are used if a user has converted them.
STUDIED = {
    **{name: READABLE[name] for name in ("HPC", "LLN", "LAN", "FS2", "FS3")},
    "NOR": Log("NorduGrid*.swf", f"{ARCHIVE}/"),
    "NIK": Log("NIKHEF*.swf", f"{ARCHIVE}/"),
}

#: Seeds of every model.
SEEDS = 10

#: Headings of the rows of the table of all figures.
LONG = ("trace", "part", "model", "setting", "figure", "number", "value")

#: Figures of arrivals that are written.
ARRIVAL_FIGURES = ("cv", "zeros", "empty", "hurst", "hurst_sd", "ks")

#: The tables by the names of their parts of the page: titles, columns of words, and rows.
TABLES = {
    "arrivals": ("Tables 4.1 to 4.3: arrivals", 5, arrival_table),
    "choice": ("Which model `auto` takes", 1, choice_table),
    "jobs": ("Tables 5.1 and 5.2: entropy and correlation", 3, job_table),
    "distances": ("The comprehensive model and the traces", 2, distance_table),
    "schedule": ("Fig. 5.3: slowdown against load", 2, schedule_table),
    "ways": ("Points of the trace in the band", 2, way_table),
}


@dataclass
class Minh2012Models(PublishedStudy):
    """The models next to the traces, and to the published figures.

    Attributes
    ----------
    traces
        The results by abbreviation of the trace.
    seeds
        Number of workloads drawn from every model.
    """

    counted_in = "Table 3.1"
    name = "minh2012-models"
    about = (
        "Minh 2012, chapters 4 and 5: models of arrivals and jobs, against traces and schedulers."
    )
    title = "Models of arrivals and jobs, reproduced"
    source = f"{MINH}, chapters 4 and 5"
    published: ClassVar = {
        "minh2012_arrivals": f"{MINH}, Tables 4.1 to 4.3: coefficients of variation, empty "
        "intervals (%) and Hurst parameters of traces and models at four time scales (s)",
        "minh2012_comprehensive": f"{MINH}, Tables 5.1 and 5.2: normalized entropy and Spearman's "
        "correlation of traces and models",
    }
    setting = "trace"
    rules = RULES
    listed = TABLED
    verdict_names = REQUIRED_FIRST
    statements_listed = False

    traces: dict[str, TraceModels]
    seeds: int

    def tables(self) -> Sequence[Table]:
        """Return the published tables with ours, the statements, and the requirements."""
        return (
            *(
                Table(title, *rows(self), left, part, once=True, wrap=True)
                for part, (title, left, rows) in TABLES.items()
            ),
            *statement_tables(self.claims, self.traces),
            required_table(self.requirements, "trace", part="required", left=4, terminal=False),
        )  # fmt: skip

    def summary(self) -> list[str]:
        """Return what was reached, what holds, and which traces were missing."""
        lines = [f"{self.score} required figures reached, means of {self.seeds} seeds"]
        lines += [
            f"Not reached: {one.setting}, {one.what}: {one.ours}, required {one.required}"
            for one in self.failures
        ]
        if SCHEDULED in self.traces:
            schedule = self.traces[SCHEDULED].schedules[REQUIRED_WAY]
            (found, points), (inside, every) = map(schedule.count_inside, (REQUIRED_LOADS, LOADS))
            lines.append(
                f"{SCHEDULED}: {found} of {points} points lie in the band at loads "
                f"{REQUIRED_LOADS[0]:g} to {REQUIRED_LOADS[-1]:g}, {inside} of {every} at all loads"
            )
        lines += [self.checked, *absence_lines("Not available", self.absent)]
        for name, one in self.traces.items():
            if not one.is_that_of_the_thesis:
                lines.append(f"{name}: another version of the log, so nothing is required of it")
            if others := one.facts.get("other_versions"):
                lines.append(f"{name}: {one.facts['source']} is used, not {', '.join(others)}")
        return lines

    def versions(self) -> Sequence[Version]:
        """Return the completed jobs of each trace."""
        return [
            Version(name, len(one.workload), published_jobs(name))
            for name, one in self.traces.items()
        ]

    def pictures(self) -> Sequence[Picture]:
        """Return Figures 4.5, 4.6 and 5.1 to 5.3."""
        return pictures_of(FIGURES, self)

    def data(self) -> dict[str, Any]:
        """Return every figure of traces and models, by trace."""
        return {
            "seeds": self.seeds,
            "loads": list(LOADS),
            "traces": {name: one.plain() for name, one in self.traces.items()},
            "absent": reasons_of(self.absent),
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
        }

    def rows(self) -> Rows:
        """Return every figure of every generated workload."""
        return LONG, [row for one in self.traces.values() for row in _long(one)]

    def origin(self) -> dict[str, Any]:
        """Return the traces and the seeds."""
        return {
            "traces": {name: one.plain() for name, one in self.traces.items()},
            "settings": {"seeds": self.seeds, "loads": list(LOADS)},
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
        "ks": {name: _plain_spread(runs.spread(name)) for name in DISTANCES},
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


def reproduce_minh2012_models(
    traces: Annotated[str | os.PathLike[str], TRACES],
    progress: Progress | None = None,
    *,
    seeds: Annotated[int, Option("Workloads generated from each model.", least=2)] = SEEDS,
    workers: int = PROCESSES,
) -> Minh2012Models:
    """Run the experiments of chapters 4 and 5 on the available traces.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    progress
        Called before each step.
    seeds
        Number of workloads drawn from every model.
    workers
        Number of processes that share the work; the results do not depend on it.

    Raises
    ------
    TraceError
        When there is no trace at all, or one that cannot be read or has no job.
    QuantityError
        When there are less than two seeds, or less than one process.
    """
    if seeds < 2:
        raise QuantityError(f"seeds {seeds}: at least 2, for a spread")
    if workers < 1:
        raise QuantityError(f"workers {workers}: at least 1")
    workloads, facts = {}, {}
    for name, workload, file in nearest_versions(traces, STUDIED, published_jobs, progress):
        workloads[name], facts[name] = workload, file
    ways = {
        (name, way): plan
        for name in workloads
        for way, plan in PLANNED.items()
        if plan.jobs or name == SCHEDULED
    }
    drawn = range(seeds)
    fits = [Task("fit", *place, 0) for place in ways]
    work = Work(workloads, {}, drawn)
    models = {
        (task.trace, task.way): model
        for task, model in run_tasks(work, fits, workers, progress, label_of)
    }
    work = Work(workloads, models, drawn)
    results = dict(run_tasks(work, tasks_of(ways, seeds), workers, progress, label_of))
    return Minh2012Models(
        traces={
            name: outcome_of(name, workload, facts[name], models, results)
            for name, workload in workloads.items()
        },
        seeds=seeds,
    )


def label_of(task: Task) -> str:
    """Return the progress label of a finished task."""
    return f"{task.trace}: {task.kind} {task.way}"
