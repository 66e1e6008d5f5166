"""Zakay and Feitelson 2015: Table I with ours beside it, and the figures that we require."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from analysis.published import Printed, published_rows
from analysis.study import Requirement, Study
from analysis.zakay2015_measures import Outcome

#: The rows of Table I, and our name of each user model (section VII).
MODELS = {
    "conventional": "rigid",
    "adjusted": "adjusted",
    "distribution": "distribution",
    "fluid": "fluid",
}

#: The columns of Table I by our names of the logs, in the order in which we show them.
COLUMNS = {
    "KTH": "KTH",
    "HPC2N": "HPC2N",
    "LANL-CM5": "CM5",
    "SDSC-DS": "SDSC-DS",
    "CEA": "CEA",
    "SDSC-SP2": "SDSC-SP2",
    "BLUE": "BLUE",
    "Intrepid": "Intrepid",
}

#: Simulations with FIFO beside those of Table I, for Figure 10 (section VIII).
FIFO_MODELS = ("conventional", "fluid")

#: Every simulation: user model and scheduler.
SIMULATIONS = (
    *((model, "easy") for model in MODELS),
    *((model, "fcfs") for model in FIFO_MODELS),
)

#: The log that has to reach the ratio of fluid to adjusted, and how far it may be off: our own
#: acceptance, set beforehand.
REQUIRED_LOG, REQUIRED_WITHIN = "KTH", 0.05


@dataclass
class LogOutcomes:
    """The simulations of one log.

    Attributes
    ----------
    log
        A name of :data:`COLUMNS`.
    recorded
        The log itself.
    outcomes
        By :data:`SIMULATIONS`, one for each seed.
    moved
        Jobs of ``adjusted`` that were not submitted at their recorded second although each waited
        as long as recorded (section VII: none).
    user_jobs
        Jobs of each user, by user number, shape (users,).
    facts
        Which trace it is, and what was dropped or repaired.
    settings
        What all simulations of the log have in common.
    """

    log: str
    recorded: Outcome
    outcomes: dict[tuple[str, str], list[Outcome]]
    moved: int
    user_jobs: np.ndarray
    facts: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def seeds(self) -> int:
        """How many seeds were run."""
        return len(self.of("conventional"))

    def of(self, model: str, scheduler: str = "easy") -> list[Outcome]:
        """Return the outcomes of a simulation, one for each seed."""
        return self.outcomes[model, scheduler]

    def mean(
        self, measure: Callable[[Outcome], float], model: str, scheduler: str = "easy"
    ) -> float:
        """Return the mean over seeds of a measure of a simulation."""
        return float(np.mean([measure(outcome) for outcome in self.of(model, scheduler)]))

    def waits(self, model: str) -> np.ndarray:
        """Return the mean wait under EASY of each seed, s, shape (seeds,); 0 where nothing ran."""
        return np.array([outcome.wait_mean_s or 0.0 for outcome in self.of(model)])

    def ratio(self, model: str, to: str) -> Spread:
        """Return the mean wait of a model over that of another: of the means, and seed by seed."""
        own, other = self.waits(model), self.waits(to)
        if not other.all():
            return Spread(None, None, None)
        each = own / other
        return Spread(float(own.mean() / other.mean()), float(each.min()), float(each.max()))


@dataclass(frozen=True)
class Spread:
    """A figure over seeds: its mean, its least and its largest value; None where there is none."""

    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Cell:
    """A figure of Table I with ours.

    Attributes
    ----------
    log, model
        What it is.
    ours
        Mean wait over seeds, s.
    published
        As printed, s.
    to_conventional, to_adjusted
        Our ratio to the mean wait of these models.
    published_to_conventional, published_to_adjusted
        The same of the printed figures.
    """

    log: str
    model: str
    ours: Spread
    published: int
    to_conventional: Spread
    to_adjusted: Spread
    published_to_conventional: float
    published_to_adjusted: float


def published_waits(log: str) -> dict[str, int]:
    """Return the column of Table I of a log: mean wait by user model, s."""
    return {
        row["user_model"]: int(Printed(row[COLUMNS[log]]).value)
        for row in published_rows("zakay2015_table1")
    }


@dataclass
class Comparison(Study[Requirement]):
    """Our simulations beside the published figures.

    Attributes
    ----------
    logs
        The simulations by log.
    """

    logs: dict[str, LogOutcomes]

    @property
    def absent(self) -> list[str]:
        """Logs of Table I that were not there."""
        return [log for log in COLUMNS if log not in self.logs]

    @cached_property
    def cells(self) -> list[Cell]:
        """Every figure of Table I of the logs that were there."""
        return [cell for log in self.logs.values() for cell in cells_of(log)]

    @cached_property
    def requirements(self) -> list[Requirement]:
        """What has to be reached."""
        return [one for log in self.logs.values() for one in requirements_of(log)]


def cells_of(log: LogOutcomes) -> Iterator[Cell]:
    """Yield the figures of a log, model by model."""
    published = published_waits(log.log)
    for model in MODELS:
        waits = log.waits(model)
        yield Cell(
            log=log.log,
            model=model,
            ours=Spread(float(waits.mean()), float(waits.min()), float(waits.max())),
            published=published[model],
            to_conventional=log.ratio(model, "conventional"),
            to_adjusted=log.ratio(model, "adjusted"),
            published_to_conventional=published[model] / published["conventional"],
            published_to_adjusted=published[model] / published["adjusted"],
        )


def requirements_of(log: LogOutcomes) -> Iterator[Requirement]:
    """Yield what a log has to reach."""
    yield Requirement(
        log.log,
        "adjusted users under the recorded schedule submit at the recorded seconds",
        f"{log.moved:,} jobs moved",
        "none",
        log.moved == 0,
    )
    if log.log != REQUIRED_LOG:
        return
    published = published_waits(log.log)
    target = published["fluid"] / published["adjusted"]
    found = log.ratio("fluid", "adjusted").mean
    yield Requirement(
        log.log,
        "mean wait, fluid / adjusted",
        "-" if found is None else f"{found:.2f}",
        f"{target:.2f} ± {REQUIRED_WITHIN}",
        found is not None and abs(found - target) <= REQUIRED_WITHIN,
    )
    waits = [float(log.waits(model).mean()) for model in ("fluid", "adjusted", "conventional")]
    yield Requirement(
        log.log,
        "mean wait, fluid < adjusted < conventional",
        " < ".join(f"{wait:,.0f}" for wait in waits)
        if waits == sorted(waits)
        else ", ".join(f"{wait:,.0f}" for wait in waits),
        "in this order",
        waits[0] < waits[1] < waits[2],
    )
