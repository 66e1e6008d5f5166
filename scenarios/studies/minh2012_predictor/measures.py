"""Minh 2012, chapter 8: the traces, models and figures measured, and the requirements.

Fitness (Eq. 8.9) is negative. "At least 0.97 of the fitness of the published parameters" is read as
a cost: the published parameters' fitness over ours is at least 0.97, so that ours is farther from 0
by 3 % at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hpcrowd.analysis.prediction import Accuracy
from hpcrowd.environment.schedulers.predictors.history import HistoryParameters
from hpcrowd.scenarios.studies.published import Printed, published_rows
from hpcrowd.scenarios.studies.study import Requirement

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
