"""Minh 2012, chapters 4 and 5: the study, its output, and how it is run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from hpcrowd.environment.errors import QuantityError, UnavailableError
from hpcrowd.scenarios.studies.minh2012.features_measures import STUDIED as READABLE
from hpcrowd.scenarios.studies.minh2012.features_measures import (
    UNREADABLE,
    nothing_required,
    published_jobs,
)
from hpcrowd.scenarios.studies.minh2012.models_experiments import (
    MOST,
    PLANNED,
    REQUIRED_WAY,
    RULES,
    SCHEDULED,
    TABLED,
    Task,
    TraceModels,
    Work,
    outcome_of,
    published,
    tasks_of,
)
from hpcrowd.scenarios.studies.minh2012.models_figures import FIGURES
from hpcrowd.scenarios.studies.minh2012.models_measures import (
    CHOSEN,
    DISTANCES,
    LOADS,
    POLICIES,
    REQUIRED_LOADS,
    TIME_SCALES_S,
    TITLES,
    ArrivalRuns,
    Arrivals,
    or_none,
    slowdown_text,
)
from hpcrowd.scenarios.studies.options import PROCESSES, TRACES, Option
from hpcrowd.scenarios.studies.render import Picture, Rows, Table, pictures_of
from hpcrowd.scenarios.studies.running import logs_of, nearest_versions, run_tasks
from hpcrowd.scenarios.studies.study import PublishedStudy
from hpcrowd.scenarios.terminal import Progress

# ---- rows of the tables, ours and published, as texts ----------------------------------------

#: A table: headings and rows.
Texts = tuple[list[str], list[list[str]]]

#: Stands for values that are not known or not required.
NONE = "-"

#: Titles of the series of chapter 4.
SERIES = {
    "data": "trace",
    "plain": "plain (MWM)",
    "modified": "modified",
    "written": "modified, runs by number",
    CHOSEN: "chosen by `auto`",
}


class Part(NamedTuple):
    """A part of the tables of chapter 4."""

    table: str  #: which tables print it
    figure: str  #: name of a figure of :class:`scenarios.studies.minh2012.models_measures.Arrivals`
    title: str
    series: tuple[str, ...]
    decimals: int
    scale: float  #: of ours, to the unit of the table


#: The parts of the tables of chapter 4.
PARTS = (
    Part("4.1", "zeros", "zeros of the rates (%)", ("data", "plain", "modified"), 1, 100),
    Part(
        "4.2", "hurst", "Hurst parameter", ("data", "plain", "modified", "written", CHOSEN), 2, 1
    ),
    Part(
        "4.1, 4.3", "cv", "CV of times between jobs",
        ("data", "plain", "modified", "written", CHOSEN), 2, 1,
    ),
)  # fmt: skip


def arrival_table(study: Minh2012Models) -> Texts:
    """Return Tables 4.1 to 4.3: the published lines, then ours."""
    heading = ["table", "figure", "trace", "from", "of"]
    return [*heading, *(f"T = {scale} s" for scale in TIME_SCALES_S)], list(_arrival_rows(study))


def _arrival_rows(study: Minh2012Models) -> Iterator[list[str]]:
    for part in PARTS:
        for trace in TABLED:
            one = study.traces.get(trace)
            for series in part.series:
                first = [part.table, part.title, trace]
                if printed := _printed(part, trace, series):
                    yield [*first, "paper", SERIES[series], *printed]
                if one is not None:
                    cells = [_ours(one.arrivals[t], part, series) for t in TIME_SCALES_S]
                    yield [*first, "ours", SERIES[series], *cells]


def _printed(part: Part, trace: str, series: str) -> list[str]:
    """Return the published figures at each time scale; empty for none."""
    for table in reversed(part.table.split(", ")):
        found = [one.text for one in published(table, part.figure, trace, series)]
        if not found:
            continue
        sds = [one.text for one in published(table, f"{part.figure}_sd", trace, series)]
        return [f"{a} ± {b}" for a, b in zip(found, sds, strict=True)] if sds else found
    return []


def _ours(runs: ArrivalRuns, part: Part, series: str) -> str:
    try:
        text = f"{part.scale * _number(runs, series, part.figure):.{part.decimals}f}"
        if part.figure == "hurst":
            text += f" ± {_number(runs, series, 'hurst_sd'):.2f}"
    except UnavailableError:
        return NONE
    return text


def _number(runs: ArrivalRuns, series: str, figure: str) -> float:
    return runs.of_trace(figure) if series == "data" else runs.mean(series, figure)


def choice_table(study: Minh2012Models) -> Texts:
    """Return the model that ``auto`` chooses at each time scale."""
    heading = ["trace", *(f"T = {scale} s" for scale in TIME_SCALES_S)]
    return heading, [
        [name, *(SERIES.get(one.arrivals[t].choice, one.arrivals[t].choice) for t in TIME_SCALES_S)]
        for name, one in study.traces.items()
    ]


def job_rows(study: Minh2012Models) -> list[list[str]]:
    """Return Tables 5.1 and 5.2, each of our figures with the published one."""
    rows = []
    for table, figure in (("5.1", "entropy"), ("5.2", "spearman")):
        for trace in TABLED:
            printed = [
                next((one.text for one in published(table, figure, trace, series)), NONE)
                for series in ("data", "model", "uniform")
            ]
            one = study.traces.get(trace)
            if one is None and set(printed) == {NONE}:
                continue
            ours = [NONE] * 3 if one is None else _of_jobs(one, figure)
            pairs = [text for pair in zip(ours, printed, strict=True) for text in pair]
            rows.append([table, TITLES[figure], trace, *pairs])
    return rows


def _of_jobs(one: TraceModels, figure: str) -> list[str]:
    runs = one.jobs[REQUIRED_WAY]
    sign = "+" if figure == "spearman" else ""
    uniform = f"{sum(runs.uniform) / len(runs.uniform):.3f}" if runs.uniform else NONE
    return [
        or_none(lambda: f"{runs.of_trace(figure):{sign}.3f}") or NONE,
        or_none(lambda: f"{runs.mean(figure):{sign}.3f}") or NONE,
        uniform if figure == "entropy" else NONE,
    ]


def distance_table(study: Minh2012Models) -> Texts:
    """Return distances and figures of the comprehensive model, a column for each way."""
    ways = [way for way in PLANNED if any(way in one.jobs for one in study.traces.values())]
    heading = [
        "what",
        "trace",
        "data",
        *(PLANNED[way].words for way in ways),
        "required of the first",
    ]
    rows = []
    for name, title in {**DISTANCES, **TITLES}.items():
        digits = 0 if name in ("bag_largest", "run_time_mean") else 1 if name == "bag_mean" else 3
        for trace, one in study.traces.items():
            data, required = NONE, NONE
            if name not in DISTANCES:
                of_trace = one.jobs[REQUIRED_WAY].of_trace
                data = or_none(lambda: f"{of_trace(name):,.{digits}f}") or NONE  # noqa: B023
            if name in MOST and one.is_required:
                required = f"{'at most' if name in DISTANCES else 'within'} {MOST[name]}"
            cells = [
                or_none(lambda: f"{one.jobs[way].mean(name):,.{digits}f}") or NONE  # noqa: B023
                for way in ways
            ]
            what = f"KS distance, {title}" if name in DISTANCES else title
            rows.append([what, trace, data, *cells, required])
    return heading, rows


def schedule_rows(study: Minh2012Models) -> list[list[str]]:
    """Return Fig. 5.3 in numbers: slowdown of the trace and of the generated workloads."""
    rows = []
    for name, one in study.traces.items():
        schedule = one.schedules[REQUIRED_WAY]
        for policy, load, row, column in schedule.points():
            numbers = (
                schedule.trace.slowdown[row, column], schedule.least[row, column],
                schedule.mean[row, column], schedule.most[row, column],
            )  # fmt: skip
            inside = "yes" if schedule.inside[row, column] else "no"
            known = bool(schedule.known[row, column])
            rows.append(
                [
                    name,
                    POLICIES[policy],
                    f"{load:g}",
                    f"{schedule.trace.processors[column]:,}" if known else NONE,
                    f"{100 * schedule.trace.left_out[column]:.2f} %" if known else NONE,
                    *(slowdown_text(number) if known else NONE for number in numbers),
                    inside if known else NONE,
                ]
            )
    return rows


def way_table(study: Minh2012Models) -> Texts:
    """Return the number of points of the trace in the band, by way."""
    few, many = (
        f"loads {REQUIRED_LOADS[0]:g} to {REQUIRED_LOADS[-1]:g}",
        f"{LOADS[0]:g} to {LOADS[-1]:g}",
    )
    rows = []
    for name, one in study.traces.items():
        for way, schedule in one.schedules.items():
            counts = (schedule.count_inside(loads) for loads in (REQUIRED_LOADS, LOADS))
            rows.append(
                [name, PLANNED[way].words, *(f"{found} of {points}" for found, points in counts)]
            )
    return ["trace", "way", few, many], rows


# ---- the study -------------------------------------------------------------------------------

#: The traces of chapters 4 and 5 by their abbreviations. NorduGrid is in another format, and NIKHEF
#: is not public: files of these names are used if a user has converted them.
STUDIED = {
    **{name: READABLE[name] for name in ("HPC", "LLN", "LAN", "FS2", "FS3")},
    **logs_of("minh2012-models"),
}

#: Seeds of every model.
SEEDS = 10


@dataclass
class Minh2012Models(PublishedStudy):
    """The models next to the traces, and to the published figures."""

    rules = RULES
    listed = TABLED
    unreadable = UNREADABLE
    written = ("seeds", "loads", "policies", "traces")
    loads, policies = LOADS, tuple(POLICIES)

    traces: dict[str, TraceModels]  #: The results by abbreviation of the trace.
    seeds: int  #: Number of workloads drawn from every model.

    def tables(self) -> Sequence[Table]:
        """Return the published tables with ours."""
        return self.tables_of(
            {
                "arrivals": arrival_table(self),
                "choice": choice_table(self),
                "jobs": job_rows(self),
                "distances": distance_table(self),
                "schedule": schedule_rows(self),
                "ways": way_table(self),
            }
        )

    def summary(self) -> list[str]:
        """Return what was reached and what holds."""
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
        return [*lines, self.checked, *nothing_required(self.traces)]

    def pictures(self) -> Sequence[Picture]:
        """Return Figures 4.5, 4.6 and 5.1 to 5.3."""
        return pictures_of(FIGURES, self)

    def rows(self) -> Rows:
        """Return every figure of every generated workload."""
        return self.row_heading, [row for one in self.traces.values() for row in _long(one)]

    def origin(self) -> dict[str, Any]:
        """Return the traces and the seeds."""
        return {**super().origin(), "settings": {"seeds": self.seeds, "loads": list(LOADS)}}


def _long(one: TraceModels) -> Iterator[Sequence[Any]]:
    """Yield every figure of a trace; without a number it is recorded."""
    for scale, runs in one.arrivals.items():
        for name in Arrivals.written:
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
            for model, points in (("", [schedule.trace]), ("comprehensive", schedule.workloads)):
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
