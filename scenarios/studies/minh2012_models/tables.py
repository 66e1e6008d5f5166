"""Minh 2012, chapters 4 and 5: rows of the tables, ours and published, as texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from hpcrowd.environment.errors import UnavailableError
from hpcrowd.scenarios.studies.minh2012_models.arrivals import (
    CHOSEN,
    TIME_SCALES_S,
    ArrivalRuns,
    or_none,
)
from hpcrowd.scenarios.studies.minh2012_models.experiments import PLANNED
from hpcrowd.scenarios.studies.minh2012_models.jobs import DISTANCES, TITLES
from hpcrowd.scenarios.studies.minh2012_models.measures import (
    MOST,
    REQUIRED_WAY,
    TABLED,
    TraceModels,
    published,
)
from hpcrowd.scenarios.studies.minh2012_models.scheduling import (
    LOADS,
    POLICIES,
    REQUIRED_LOADS,
    slowdown_text,
)

if TYPE_CHECKING:
    from hpcrowd.scenarios.studies.minh2012_models.study import Minh2012Models


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
    figure: str  #: name of a figure of :class:`scenarios.studies.minh2012_models.arrivals.Arrivals`
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


def job_table(study: Minh2012Models) -> Texts:
    """Return Tables 5.1 and 5.2, each of our figures with the published one."""
    heading = ["table", "figure", "trace", "data", "paper", "model", "paper", "uniform", "paper"]
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
    return heading, rows


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


def schedule_table(study: Minh2012Models) -> Texts:
    """Return Fig. 5.3 in numbers: slowdown of the trace and of the generated workloads."""
    heading = [
        "trace", "policy", "load", "processors", "jobs left out", "slowdown", "least", "mean",
        "most", "in the band",
    ]  # fmt: skip
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
    return heading, rows


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
