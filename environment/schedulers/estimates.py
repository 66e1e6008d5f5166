"""Run times that a scheduler expects: estimates, and their correction for jobs that outrun them.

An estimate is made when a job arrives. It is the requested time, the run time itself, a multiple of
the requested time, or the prediction of a :class:`Predictor` from the jobs that have ended until
then. The kill time of a job is always its requested time.

The simulation calls :meth:`Predictor.ended`, :meth:`Predictor.arrived` and
:meth:`Predictor.predict`, in this order within an instant. An evaluation over a recorded trace
calls the same object through :meth:`Predictor.follow`. A predictor reads the data known when a job
arrives (user, group, executable, queue, processors, requested time and memory), and when it ends:
it ran from ``jobs.start`` until now. It never reads ``run_time`` or ``end``, which a simulation
knows beforehand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np

from hpcrowd.environment.errors import PredictorError, QuantityError, check_choice
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.quantities import parse_factor
from hpcrowd.environment.registry import Registry, imported


@dataclass(frozen=True)
class Estimates:
    """Estimates that need no history.

    Attributes
    ----------
    kind
        ``requested``: the requested time. ``exact``: the actual run time.
        ``factor``: the requested time times :attr:`factor`, rounded half up.
    factor
        A positive number of at most 6 decimals.

    Raises
    ------
    QuantityError
        If the factor is not such a number.
    """

    kind: Literal["requested", "exact", "factor"] = "requested"
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_choice("estimates", self.kind, ("requested", "exact", "factor"))
        if not 0 < self.factor <= 1e6 or self.ratio.denominator > 10**6:
            raise QuantityError(
                f"estimates {self.factor}x: the factor must be positive, at most a million, with "
                "at most 6 decimals; write for example 1.5x"
            )

    @property
    def ratio(self) -> Fraction:
        """The factor, exactly."""
        return Fraction(Decimal(str(self.factor)))

    def of(self, requested: int, run: int) -> int:
        """Return the estimate of a job from its requested time and its run time, all in s."""
        if self.kind == "exact":
            return run
        if self.kind == "requested":
            return requested
        ratio = self.ratio
        return (2 * requested * ratio.numerator + ratio.denominator) // (2 * ratio.denominator)

    def __str__(self) -> str:
        return f"{self.factor:g}x" if self.kind == "factor" else self.kind


#: Events of a job that a predictor is notified of; in this order within an instant.
ENDED, ARRIVED = 0, 1


@dataclass(frozen=True)
class Events:
    """Arrivals and ends in the order of time; at one instant ends come first.

    Attributes
    ----------
    time
        s since the origin, shape (events,).
    row
        The job, shape (events,).
    kind
        :data:`ENDED` or :data:`ARRIVED`, shape (events,).
    """

    time: Int64s
    row: Int64s
    kind: Int64s

    @classmethod
    def of(cls, submit: Int64s, end: Int64s) -> Events:
        """Return the events of jobs from their submissions and ends; ties go by row.

        Parameters
        ----------
        submit, end
            s since the origin, shape (jobs,). A job that ends in the second of its submission
            ends after the arrivals of that second.

        Raises
        ------
        QuantityError
            When a job ends before it was submitted.
        """
        wrong = np.flatnonzero(end < submit)
        if len(wrong):
            job = int(wrong[0])
            raise QuantityError(
                f"job in row {job}: ends at {end[job]} s, before its submission at {submit[job]} s"
            )
        rows = np.arange(len(submit))
        time = np.concatenate((end, submit))
        order = np.concatenate((np.where(end == submit, 2, 0), np.ones(len(rows), np.int64)))
        row = np.concatenate((rows, rows))
        kind = np.repeat(np.array([ENDED, ARRIVED]), len(rows))
        place = np.lexsort((row, order, time))
        return cls(time[place], row[place], kind[place])

    def batches(self) -> list[slice]:
        """Return the runs of events of the same time and kind."""
        change = (np.diff(self.time) != 0) | (np.diff(self.kind) != 0)
        edges = [0, *(np.flatnonzero(change) + 1).tolist(), len(self.time)]
        return [slice(a, b) for a, b in pairwise(edges) if a < b]


class Predictor(ABC):
    """Predicts run times online, from the jobs that have ended.

    For your own predictor, subclass this and define the four methods below.

    Attributes
    ----------
    name
        Its name in tables and messages.
    """

    name: str = "predictor"

    @abstractmethod
    def begin(self, jobs: JobTable) -> None:
        """Take the table of jobs, once and before anything else; forget everything earlier.

        Parameters
        ----------
        jobs
            All jobs. The table may grow later: access columns when they are needed.
        """

    @abstractmethod
    def arrived(self, rows: Int64s, now: int) -> None:
        """Take note of jobs that joined the queue now, by row."""

    @abstractmethod
    def ended(self, rows: Int64s, now: int) -> None:
        """Take note of jobs that ended now, by row; each ran for ``now - jobs.start``."""

    @abstractmethod
    def predict(self, rows: Int64s, now: int) -> Int64s:
        """Return the predicted run times of jobs that have arrived.

        Returns
        -------
        Int64s
            s, at least 1, shape of ``rows``.

        Raises
        ------
        PredictorError
            If :meth:`begin` was not called, or a job has not arrived.
        """

    def check_ready(self) -> None:  # noqa: B027
        """Check that :meth:`begin` may be called.

        Raises
        ------
        PredictorError
            If it must be trained first.
        """

    def follow(self, events: Events) -> Int64s:
        """Process events, after :meth:`begin`, and predict each job at its arrival.

        Returns
        -------
        Int64s
            The predicted run times by row, s; -1 for jobs that did not arrive.
        """
        size = int(events.row.max()) + 1 if len(events.row) else 0
        predicted = np.full(size, UNKNOWN, np.int64)
        for batch in events.batches():
            rows, now = events.row[batch], int(events.time[batch.start])
            if events.kind[batch.start] == ENDED:
                self.ended(rows, now)
            else:
                self.arrived(rows, now)
                predicted[rows] = self.predict(rows, now)
        return predicted

    def __str__(self) -> str:
        """Return its name."""
        return self.name


def not_begun(name: str) -> PredictorError:
    """Return the error for a predictor that is used before :meth:`Predictor.begin`."""
    return PredictorError(f"{name}: used before it has begun; call begin(jobs) first")


#: Predictors by name; a new one is its class and an entry here.
PREDICTORS: Registry[type[Predictor]] = Registry(
    {
        "last-two": "hpcrowd.environment.schedulers.predictors.experience:LastTwo",
        "nearest": "hpcrowd.environment.schedulers.predictors.experience:Nearest",
        "history": "hpcrowd.environment.schedulers.predictors.history:HistoryPredictor",
    }
)

#: What makes a predictor of its text.
OF_TEXT = "hpcrowd.environment.schedulers.predictors.models:parse_predictor"


def parse_estimates(text: str) -> Estimates | Predictor:
    """Parse estimates: ``requested``, ``exact``, ``1.5x``, or a predictor.

    Predictors are written as in :mod:`schedulers.predictors.models`, for example ``last-two``,
    ``nearest:k=3``, ``history:SDSC04``, or the path of a file of a trained model.

    Raises
    ------
    QuantityError
        If the text is not valid.
    PredictorError
        If the predictor must be trained first.
    ModelFileError
        If it names a file that cannot be used.
    """
    if text == "requested":
        return Estimates("requested")
    if text == "exact":
        return Estimates("exact")
    if text.endswith(".json") or text.partition(":")[0] in PREDICTORS:
        predictor: Predictor = imported(OF_TEXT)(text)
        predictor.check_ready()
        return predictor
    if text.strip()[:1] in set("+-0123456789"):
        return Estimates("factor", parse_factor(text, "estimates"))
    raise QuantityError(
        f"estimates {text!r}: not known; choose requested, exact, such as 1.5x, "
        f"{', '.join(PREDICTORS)}, or a file of a trained model (.json)"
    )
