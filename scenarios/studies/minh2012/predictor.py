"""Minh 2012, chapter 8: the study, its output, and how it is run.

Fitness (Eq. 8.9) is negative. "At least 0.97 of the fitness of the published parameters" is read as
a cost: the published parameters' fitness over ours is at least 0.97, so that ours is farther from 0
by 3 % at most.

Each trace is predicted with the published parameters of Table 8.3 and with the other models.
Training takes minutes for each trace, and is done on request. Otherwise parameters of an earlier
training are used, in the folder ``trained`` as ``hpcrowd predict --train --out`` wrote them; their
figures are computed again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, legend_above, new_figure, panels, tidy
from hpcrowd.analysis.prediction import (
    BUDGET_S,
    SEEDS,
    Accuracy,
    PastJobs,
    Trained,
    accuracy,
    evaluate,
    past_jobs,
    train,
)
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import parse_duration
from hpcrowd.environment.schedulers.predictors.history import HistoryParameters, HistoryPredictor
from hpcrowd.environment.schedulers.predictors.models import FILES, parse_predictor, predictor_from
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.options import TRACES, Option
from hpcrowd.scenarios.studies.published import Printed, published_rows
from hpcrowd.scenarios.studies.render import Picture, Table, Version, pictures_of
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs
from hpcrowd.scenarios.studies.study import PublishedStudy, Requirement
from hpcrowd.scenarios.terminal import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Accepted deviations of underestimated shares and weighted errors (chosen by us, beforehand):
#: points of the share, and a part of the error.
SHARE_WITHIN, WAE_WITHIN = 0.02, 0.08

#: Smallest accepted ratio of the published parameters' training fitness to that of our own.
FITNESS_RATIO = 0.97


@dataclass(frozen=True)
class Cut:
    """The part of a log that is a trace of the thesis."""

    log: str  #: Name of the log.
    years: tuple[int, int] | None  #: Calendar years, first and last; None for all.
    training: int  #: Number of jobs that train.


#: The traces of the thesis (section 8.2). It says "the first part" trains; with these
#: numbers of jobs the rest has the mean run times of Table 8.7.
CUTS = {
    "SDSC02": Cut("BLUE", (2002, 2002), 30_000),
    "SDSC04": Cut("SDSC-DS", None, 30_000),
    "HPC2N04": Cut("HPC2N", (2004, 2004), 30_000),
    "HPC2N05": Cut("HPC2N", (2005, 2006), 26_300),
}

#: The traces of the tables.
TABLED = tuple(row["trace"] for row in published_rows("minh2012_tables8"))

#: Columns of Tables 8.4 to 8.6 and our models for them; Li's parameters are not published.
PREDICTORS = {"tsafrir": "last-two", "li": None, "minh": "history"}

#: Measures of the tables: column, name, unit, and decimals shown.
MEASURES = (
    ("underestimated", "underestimated", "%", 1),
    ("mae_min", "MAE", "min", 1),
    ("wae_min", "WAE", "min", 0),
)

#: Models that the page compares: label, and text of the predictor, into which the name of the trace
#: is put.
MODELS = {
    "last-two": "last-two",
    "history": "history:{trace}",
    "history by completion": "history:{trace},history=completion",
    "history by category": "history:{trace},history=category",
    "nearest": "nearest",
}

#: Other readings, by name: text of the predictor and jobs that train (None: as
#: chosen; 0.5: half of them).
READINGS: dict[str, tuple[str, float | None]] = {
    "as chosen": ("history:{trace}", None),
    "half of the jobs train": ("history:{trace}", 0.5),
    "30,000 jobs train": ("history:{trace}", 30_000),
    "bounds of the jobs seen so far": ("history:{trace},bounds=seen", None),
}


@dataclass
class OwnTraining:
    """Parameters that we trained, and their accuracy."""

    parameters: HistoryParameters  #: The parameters.
    origin: str  #: Their origin, in words.
    #: Their figures on the training part alone, and on the test part.
    training: Accuracy
    test: Accuracy
    #: Seeds, evaluations and seconds of the search.
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class TraceOutcomes:
    """The accuracy of the models on one trace."""

    written: ClassVar = {
        "trace": "facts", "jobs": "jobs", "training_jobs": "training",
        "mean_run_min": "mean_run_min", "requested_time": "requested", "models": "test",
        "readings": "readings", "published_parameters_in_training": "published_training",
        "own_training": "own", "fitness": "fitness", "fitness_ratio": "fitness_ratio",
    }  # fmt: skip

    trace: str  #: A name of :data:`CUTS`.
    #: Number of jobs, and how many of them train.
    jobs: int
    training: int
    mean_run_min: float  #: Mean run time of the test part, min.
    requested: Accuracy  #: Figures of the requested time on the test part.
    test: dict[str, Accuracy]  #: Figures on the test part by :data:`MODELS`.
    published_training: Accuracy  #: Figures of the published parameters on the training part alone.
    own: OwnTraining | None  #: Our own training; None if none is stored and none was asked for.
    readings: dict[str, Accuracy]  #: Figures by :data:`READINGS`.
    run_s: Any = None  #: Run times of all jobs, s, for pictures.
    facts: dict[str, Any] = field(default_factory=dict)  #: Description of the trace.

    @property
    def fitness(self) -> dict[str, float]:
        """The fitness of everything that was measured, by name."""
        own = (
            {} if self.own is None else {"own": self.own.test, "own in training": self.own.training}
        )
        found = {
            **self.test, **self.readings, **own, "requested time": self.requested,
            "published parameters in training": self.published_training,
        }  # fmt: skip
        return {name: one.fitness for name, one in found.items()}

    @property
    def fitness_ratio(self) -> float | None:
        """Training fitness of the published parameters over ours; above 1 ours is better."""
        if self.own is None:
            return None
        return self.published_training.fitness / self.own.training.fitness

    @property
    def requirements(self) -> Iterator[Requirement]:
        """The required figures."""
        row, ours = published_row(self.trace), self.test["history"]
        share = Printed(row["underestimated_minh"]).value / 100
        yield Requirement(
            self.trace,
            "underestimated, published parameters",
            f"{ours.underestimated_share:.1%}".replace("%", " %"),
            f"{100 * share:.0f} ± {100 * SHARE_WITHIN:.0f} %",
            abs(ours.underestimated_share - share) <= SHARE_WITHIN,
        )
        error = Printed(row["wae_min_minh"]).value
        yield Requirement(
            self.trace,
            "WAE, published parameters",
            f"{ours.wae_min:,.0f} min",
            f"{error:,.0f} min ± {100 * WAE_WITHIN:.0f} %",
            abs(ours.wae_min - error) <= WAE_WITHIN * error,
        )
        if self.own is None or self.fitness_ratio is None:
            return
        yield Requirement(
            self.trace,
            "training fitness, own training",
            f"{self.own.training.fitness:.4f}, ratio {self.fitness_ratio:.3f}",
            f"ratio to {self.published_training.fitness:.4f} at least {FITNESS_RATIO}",
            self.fitness_ratio >= FITNESS_RATIO,
        )


@dataclass(frozen=True)
class Cell:
    """A figure of Tables 8.4 to 8.6 with ours."""

    #: Its place, by name of a column.
    trace: str
    measure: str
    predictor: str
    ours: float | None  #: Our figure in the unit of the table; None if it cannot be computed.
    published: Printed  #: As printed.


def published_row(trace: str) -> dict[str, str]:
    """Return the figures of a trace as printed."""
    return next(row for row in published_rows("minh2012_tables8") if row["trace"] == trace)


def figure_of(accuracy: Accuracy, measure: str) -> float:
    """Return a measure in the unit of its table."""
    if measure == "underestimated":
        return 100 * accuracy.underestimated_share
    return accuracy.mae_min if measure == "mae_min" else accuracy.wae_min


def cells_of(outcomes: TraceOutcomes) -> Iterator[Cell]:
    """Yield the figures of a trace, table by table."""
    row = published_row(outcomes.trace)
    for measure, *_ in MEASURES:
        for predictor, model in PREDICTORS.items():
            ours = None if model is None else figure_of(outcomes.test[model], measure)
            printed = Printed(row[f"{measure}_{predictor}"])
            yield Cell(outcomes.trace, measure, predictor, ours, printed)


# ---- pictures --------------------------------------------------------------------------------

#: Names of the columns of the tables.
NAMES = {"tsafrir": "Tsafrir's, last-two", "li": "Li's", "minh": "the thesis', history"}

#: Colours of the columns, and of the kinds of history.
COLUMN_COLOURS = {"tsafrir": "orange", "li": "grey", "minh": "blue"}
KINDS = {
    "history": ("by submission", "blue", "o"),
    "history by completion": ("by completion", "vermilion", "s"),
    "history by category": ("by category", "green", "D"),
}

#: Colours of the traces.
TRACE_COLOURS = ("blue", "vermilion", "green", "purple")

#: Heights of a trace and of everything else in pictures with a line for each trace, inches.
LINE, REST = 0.62, 1.75


def _panels(traces: Sequence[TraceOutcomes], title: str, below: str) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each measure and a line for each trace."""
    height = LINE * len(traces) + REST
    figure = new_figure(9.0, height, title, below)
    room = {"left": 0.085, "right": 0.98, "wspace": 0.12}
    axes = panels(figure, 1, len(MEASURES), **room, bottom=0.55 / height, top=1 - 1.12 / height)
    for place, (panel, (_, name, unit, _)) in enumerate(zip(axes, MEASURES, strict=True)):
        tidy(panel, {"underestimated": "underestimated jobs"}.get(name, name))
        panel.set_xlabel(unit, fontsize=8.5)
        panel.set_ylim(len(traces) - 0.5, -0.5)
        labels = [one.trace for one in traces] if place == 0 else []
        panel.set_yticks(range(len(traces)) if place == 0 else [], labels)
    return figure, axes


def tables(traces: Sequence[TraceOutcomes]) -> Figure:
    """Tables 8.4 to 8.6: published figures as rings, ours as dots."""
    figure, axes = _panels(
        traces, "Tables 8.4 to 8.6: predictors, published and ours",
        "rings: published; dots: ours, with the published parameters. Li's cannot be run",
    )  # fmt: skip
    for panel, (measure, *_) in zip(axes, MEASURES, strict=True):
        for line, one in enumerate(traces):
            for cell in cells_of(one):
                if cell.measure != measure:
                    continue
                colour = COLOURS[COLUMN_COLOURS[cell.predictor]]
                at = line + 0.24 * (list(NAMES).index(cell.predictor) - 1)
                label = NAMES[cell.predictor] if line == 0 else None
                ring: dict[str, Any] = {"facecolors": "none", "edgecolors": colour}
                panel.scatter(cell.published.value, at, s=70, linewidths=1.6, label=label, **ring)
                if cell.ours is not None:
                    panel.scatter(cell.ours, at, s=16, color=colour)
        panel.set_xlim(0, 1.03 * panel.get_xlim()[1])
    legend_above(figure, axes[0], 0.58)
    return figure


def histories(traces: Sequence[TraceOutcomes]) -> Figure:
    """The three kinds of history on the same test part, relative to the one by submission."""
    figure, axes = _panels(
        traces, "Which jobs are the last N?",
        "history-based predictor with the published parameters, on the test part; by submission: 1",
    )  # fmt: skip
    for panel, (measure, *_) in zip(axes, MEASURES, strict=True):
        panel.set_xlabel("relative to by submission", fontsize=8.5)
        panel.axvline(1.0, color=COLOURS["grey"], linewidth=1.2, zorder=1)
        for line, one in enumerate(traces):
            base = figure_of(one.test["history"], measure)
            for place, (model, (name, colour, marker)) in enumerate(KINDS.items()):
                value = figure_of(one.test[model], measure) / base if base else 1.0
                panel.scatter(
                    value, line + 0.24 * (place - 1), s=34, color=COLOURS[colour], marker=marker,
                    label=name if line == 0 else None, zorder=2,
                )  # fmt: skip
        low, high = panel.get_xlim()
        panel.set_xlim(min(low, 0.72), max(high, 1.13))
    legend_above(figure, axes[0], 0.58)
    return figure


def figure8_2(traces: Sequence[TraceOutcomes]) -> Figure:
    """Run times of the traces (Fig. 8.2)."""
    figure = new_figure(
        6.4, 3.6, "Fig. 8.2: run times of the traces", "share of jobs that run at most so long"
    )
    panel = figure.add_axes((0.08, 0.15, 0.89, 0.66))
    tidy(panel)
    for colour, one in zip(TRACE_COLOURS, traces, strict=False):
        run = np.sort(np.maximum(one.run_s, 1))
        share = np.arange(1, len(run) + 1) / len(run)
        panel.step(run, share, where="post", color=COLOURS[colour], linewidth=1.5, label=one.trace)
    panel.set_xscale("log")
    panel.set_xticks(
        [1, 10, 100, 1000, 10_000, 100_000], ["1", "10", "100", "1,000", "10,000", "100,000"]
    )
    panel.minorticks_off()
    panel.set_ylim(0, 1.02)
    panel.set_xlabel("run time (s); shorter ones count as 1 s", fontsize=8.5)
    panel.legend(**LEGEND, loc="upper left")
    return figure


# ---- the study -------------------------------------------------------------------------------

#: The logs that the traces of the thesis are cut from.
STUDIED = {name: LOGS[name] for name in dict.fromkeys(cut.log for cut in CUTS.values())}

#: Origin of parameters that were trained in this run.
TRAINED_HERE = "trained in this run"

#: Folder of the parameters of earlier trainings.
TRAINED = Path(__file__).parent / "trained"

#: Steps of a trace: cutting, models, readings and training.
STEPS = 2


@dataclass
class Minh2012Predictor(PublishedStudy):
    """Predictors on the traces of Tables 8.4 to 8.6."""

    listed = TABLED
    written: ClassVar = {"traces": "traces", "tables": "cells"}

    traces: dict[str, TraceOutcomes]  #: The results by trace.

    @cached_property
    def cells(self) -> list[Cell]:
        """Every figure of the tables of the available traces."""
        return [cell for one in self.traces.values() for cell in cells_of(one)]

    def tables(self) -> Sequence[Table]:
        """Return Tables 8.4 to 8.6 with ours, all models, the parameters, and the readings."""
        return self.tables_of(
            {
                "tables": table_rows(self),
                "models": model_rows(self),
                "training": training_rows(self),
                "readings": reading_rows(self),
            }
        )

    def summary(self) -> list[str]:
        """Return what was reached and what cannot be, a line each."""
        lines = [
            f"{self.score} required figures reached",
            "Li's column cannot be run: its parameters are not published",
        ]
        trained = [one.own.origin.split(",")[0] for one in self.traces.values() if one.own]
        if trained:
            origins = ", ".join(sorted(set(trained)))
            lines.append(f"Own parameters: {origins}; figures computed in this run")
        lines += [
            f"{name}: no parameters of an earlier training; --train finds some"
            for name, one in self.traces.items()
            if one.own is None
        ]
        return lines

    def versions(self) -> Sequence[Version]:
        """Return the jobs of each trace."""
        return [
            Version(name, one.jobs, int(published_row(name)["jobs"]))
            for name, one in self.traces.items()
        ]

    def pictures(self) -> Sequence[Picture]:
        """Return Tables 8.4 to 8.6, the kinds of history, and Figure 8.2."""
        traces = list(self.traces.values())
        last = Picture.of("figure8-2", figure8_2, traces)
        return [*pictures_of((tables, histories), traces), last]


def table_rows(study: Minh2012Predictor) -> list[list[str]]:
    """Return Tables 8.4 to 8.6."""
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
    """Return the figures of a model."""
    texts = [f"{figure_of(accuracy, name):,.{digits}f}" for name, _, _, digits in MEASURES]
    return [f"{texts[0]} %", *texts[1:]]


def model_rows(study: Minh2012Predictor) -> list[list[str]]:
    """Return all models on each trace, and the users' requests."""
    rows = []
    for one in study.traces.values():
        rows += [[one.trace, model, *figures(one.test[model])] for model in MODELS]
        if one.own is not None:
            rows.append([one.trace, "history, own training", *figures(one.own.test)])
        rows.append([one.trace, "requested time", *figures(one.requested)])
    return rows


def reading_rows(study: Minh2012Predictor) -> list[list[str]]:
    """Return the readings of each trace, and the published figures."""
    rows = []
    for one in study.traces.values():
        rows += [[one.trace, reading, *figures(one.readings[reading])] for reading in READINGS]
        row = published_row(one.trace)
        printed = [row[f"{measure}_minh"] for measure, *_ in MEASURES]
        rows.append([one.trace, "published", f"{printed[0]} %", *printed[1:]])
    return rows


def training_rows(study: Minh2012Predictor) -> list[list[str]]:
    """Return the published parameters and our own."""
    rows = []
    for one in study.traces.values():
        published = HistoryParameters.published(one.trace)
        both = [("published", published, one.published_training, one.test["history"])]
        if one.own is not None:
            both.append(("own", one.own.parameters, one.own.training, one.own.test))
        for name, parameters, training, test in both:
            groups = (
                text
                for g in (parameters.small, parameters.big)
                for text in (f"{g.n:,}", f"{g.k}", f"{g.alpha:g}", f"{g.beta:g}")
            )
            first = [one.trace, name, f"`{parameters.template}`", f"{parameters.pivot_s:,.0f}"]
            rows.append([*first, *groups, f"{training.fitness:.4f}", *figures(test)])
    return rows


def reproduce_minh2012_predictor(
    traces: Annotated[str | os.PathLike[str], TRACES],
    progress: Progress | None = None,
    *,
    training: Annotated[
        bool,
        Option("Train again; otherwise parameters of an earlier training are used.", name="train"),
    ] = False,
    budget_s: Annotated[
        float,
        Option(
            "How long to train for each trace.",
            name="budget",
            parse=parse_duration,
            shown=lambda seconds: f"{seconds / 60:g}m",
        ),
    ] = BUDGET_S,
    seeds: Annotated[int, Option("Searches that share it; the best counts.", least=1)] = SEEDS,
    only: Iterable[str] = CUTS,
) -> Minh2012Predictor:
    """Run the study on every available trace.

    Parameters
    ----------
    traces
        Folder with the logs, plain or gzipped.
    progress
        Called before each step.
    training
        Train again, instead of using the parameters of an earlier training.
    budget_s, seeds
        Time to train for each trace, s, and number of searches that share it.
    only
        Names of the traces to look for.

    Raises
    ------
    TraceError
        When there is no log at all, or one that cannot be read.
    QuantityError
        When the budget or the number of seeds is not positive.
    """
    if budget_s <= 0 or seeds < 1:
        raise QuantityError(f"budget {budget_s:g} s, seeds {seeds}: both must be more than 0")
    wanted = [name for name in CUTS if name in set(only)]
    logs = {CUTS[name].log for name in wanted}
    paths = find_logs(traces, {name: log for name, log in STUDIED.items() if name in logs})
    wanted = [name for name in wanted if CUTS[name].log in paths]
    steps = Steps(len(wanted) * (STEPS + training), progress)
    read: dict[str, Trace] = {}
    found = {}
    for name in wanted:
        log = CUTS[name].log
        steps.begin(f"{name}: {paths[log].name}")
        if log not in read:
            read = {log: read_trace(paths[log])}
        own = None
        past = past_jobs(read[log], CUTS[name].years)
        if training:
            steps.begin(f"{name}: training, {budget_s:g} s")
            own = train(past.first(CUTS[name].training), budget_s=budget_s, seeds=seeds)
        steps.begin(f"{name}: models")
        found[name] = study_trace(name, past, own)
    steps.end()
    return Minh2012Predictor(found)


def study_trace(name: str, past: PastJobs, own: Trained | None = None) -> TraceOutcomes:
    """Predict the run times of a trace, one of :data:`CUTS`, with all models and readings.

    ``own`` is the result of training; the parameters of an earlier one unless given.
    """
    training = CUTS[name].training
    if training >= len(past):
        training = len(past) // 2  # for a small log used instead

    def figures(text: str, first: int = training) -> Any:
        return evaluate(past, parse_predictor(text.format(trace=name)), first)

    part = past.first(training)
    return TraceOutcomes(
        trace=name,
        jobs=len(past),
        training=training,
        mean_run_min=float(past.run[training:].mean()) / 60,
        requested=accuracy(past, past.jobs.requested_time, training),
        test={model: figures(text) for model, text in MODELS.items()},
        published_training=evaluate(part, HistoryPredictor(HistoryParameters.published(name))),
        own=own_training(name, past, part, training, own),
        readings={
            reading: figures(text, _first(split, training, len(past)))
            for reading, (text, split) in READINGS.items()
        },
        run_s=past.run,
        facts=past.facts,
    )


def _first(split: float | None, chosen: int, jobs: int) -> int:
    """Return the number of jobs that train in a reading."""
    if split is None:
        return chosen
    return min(int(split * jobs) if split < 1 else int(split), jobs - 1)


def own_training(
    name: str, past: PastJobs, part: PastJobs, training: int, own: Trained | None
) -> OwnTraining | None:
    """Return the figures of parameters that we trained, now or before; None if never."""
    if own is not None:
        parameters, origin = own.parameters, TRAINED_HERE
        details: dict[str, Any] = {
            "seed": own.seed,
            "fitness_by_seed": {str(seed): fitness for seed, fitness in own.each.items()},
            "evaluations": own.evaluations,
            "wall_s": round(own.wall_s, 1),
        }
    elif (TRAINED / f"{name}.json").is_file():
        wire = stored_training(name)
        stored = predictor_from(wire["model"], wire["settings"])
        assert isinstance(stored, HistoryPredictor)
        assert stored.parameters is not None
        parameters, details = stored.parameters, wire["provenance"]["training"]
        origin = f"trained before, by hpcrowd predict --train --split {training}"
    else:
        return None
    predictor = HistoryPredictor(parameters)
    return OwnTraining(
        parameters=parameters,
        origin=origin,
        training=evaluate(part, predictor),
        test=evaluate(past, predictor, training),
        details=details,
    )


def stored_training(name: str) -> dict[str, Any]:
    """Return the model file of an earlier training on a trace."""
    return FILES.read(TRAINED / f"{name}.json")
