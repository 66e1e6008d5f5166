"""The predictors in plain Python: rules to read, which the compiled ones are tested against.

At every prediction each examines every job it knows, and gives the same whole seconds as the
compiled one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, floor, inf, sqrt
from typing import Any

import numpy as np
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.schedulers.estimates import Predictor, not_begun
from hpcrowd.environment.schedulers.predictors.experience import ATTRIBUTES, LastTwo, Nearest
from hpcrowd.environment.schedulers.predictors.history import HistoryPredictor

#: Similarities and distances are compared in whole multiples of one part in so many.
RESOLUTION = 1e9


@dataclass
class Known:
    """What is known of a job: its attributes from its arrival on, the rest from its end on."""

    nominal: dict[str, int]  #: by letter: ``u`` user, ``g`` group, ``q`` queue, ``j`` executable
    numeric: tuple[int, int, int]  #: processors, requested time (s), memory (kB per processor)
    submitted: int  #: its number in the order of submissions
    completed: int | None = None  #: its number in the order of ends
    ran: int | None = None  #: run time, s


class PlainPredictor(Predictor):
    """Keeps what is known of each job in a list; with the settings of a compiled predictor."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.name = f"plain {settings.name}"
        self._jobs: JobTable | None = None

    def begin(self, jobs: JobTable) -> None:
        """Take the table of jobs; forget everything earlier."""
        self._jobs = jobs
        self.known: dict[int, Known] = {}
        self.ends = 0
        self.bounds = [(inf, -inf)] * 3
        if self.settings.bounds == "table":
            for row in range(len(jobs)):
                self._widen(self._numeric(jobs, row))

    def arrived(self, rows: Int64s, now: int) -> None:
        """Take note of jobs that joined the queue."""
        jobs = self._table()
        for row in map(int, rows):
            columns = (jobs.user, jobs.group, jobs.queue, jobs.executable)
            nominal = {
                letter: int(column[row]) for letter, column in zip(ATTRIBUTES, columns, strict=True)
            }
            numeric = self._numeric(jobs, row)
            self._widen(numeric)
            self.known[row] = Known(nominal, numeric, len(self.known))

    def ended(self, rows: Int64s, now: int) -> None:
        """Take note of jobs that ended."""
        jobs = self._table()
        for row in map(int, rows):
            job = self.known[row]
            job.ran = now - int(jobs.start[row])
            job.completed = self.ends
            self.ends += 1

    def predict(self, rows: Int64s, now: int) -> Int64s:
        """Return the predicted run times of jobs that have arrived, s."""
        self._table()
        estimates = [self.estimate(self.known[int(row)]) for row in rows]
        return np.array([max(floor(value + 0.5), 1) for value in estimates], np.int64)

    def estimate(self, job: Known) -> float:
        """Return the prediction for a job, s, not rounded."""
        raise NotImplementedError

    def last(self, job: Known, n: int, template: str) -> list[Known]:
        """Return those of the last ``n`` jobs that have ended, the latest first."""
        jobs = list(self.known.values())
        if self.settings.history == "submission":
            before = [other for other in jobs if other.submitted < job.submitted]
            return [other for other in before[::-1][:n] if other.ran is not None]
        ended = [other for other in jobs if other.completed is not None]
        ended.sort(key=lambda other: -(other.completed or 0))
        if self.settings.history == "category":
            ended = [other for other in ended if alike(job, other, template)]
        return ended[:n]

    def normalized(self, job: Known) -> list[float]:
        """Return the numeric attributes between 0 and 1 (Eq. 8.4)."""
        return [
            (value - low) / (high - low) if high > low else 0.0
            for value, (low, high) in zip(job.numeric, self.bounds, strict=True)
        ]

    def _widen(self, numeric: tuple[int, int, int]) -> None:
        self.bounds = [
            (min(low, value), max(high, value))
            for value, (low, high) in zip(numeric, self.bounds, strict=True)
        ]

    def _numeric(self, jobs: JobTable, row: int) -> tuple[int, int, int]:
        columns = (jobs.processors, jobs.requested_time, jobs.requested_memory)
        processors, requested, memory = (int(column[row]) for column in columns)
        return processors, requested, memory

    def _table(self) -> JobTable:
        if self._jobs is None:
            raise not_begun(self.name)
        return self._jobs


class PlainLastTwo(PlainPredictor):
    """See :class:`~hpcrowd.environment.schedulers.predictors.experience.LastTwo`."""

    settings: LastTwo

    def estimate(self, job: Known) -> float:
        """Return the mean run time of the user's latest jobs that have ended, s."""
        own = [other for other in self.known.values() if alike(job, other, "u")]
        ended = [other for other in own if other.ran is not None]
        if self.settings.history == "completion":
            ended.sort(key=lambda other: other.completed or 0)
        runs = [other.ran or 0 for other in ended[-self.settings.jobs :]]
        requested = float(job.numeric[1])
        mean = sum(runs) / len(runs) if runs else requested
        return min(mean, requested) if self.settings.cap else mean


class PlainNearest(PlainPredictor):
    """See :class:`~hpcrowd.environment.schedulers.predictors.experience.Nearest`."""

    settings: Nearest

    def estimate(self, job: Known) -> float:
        """Return the weighted average of the nearest jobs (Eq. 8.3), s."""
        near = self.last(job, self.settings.n, "")
        near.sort(key=lambda other: self.distance(job, other))  # stable: the latest first
        near = near[: self.settings.k]
        requested = float(job.numeric[1])
        value = requested
        if near:
            away = [self.distance(job, other) / RESOLUTION for other in near]
            width = self.settings.bandwidth or away[-1]
            # Relative to the nearest job's weight, so that they do not vanish together.
            base = away[0] / width if width else 0.0
            parts = [exp(base * base - (d / width) * (d / width)) if width else 1.0 for d in away]
            total = weight = 0.0
            for part, other in zip(parts, near, strict=True):
                total += part * (other.ran or 0)
                weight += part
            value = total / weight
        return min(value, requested) if self.settings.cap else value

    def distance(self, job: Known, other: Known) -> int:
        """Return Eq. 8.1 in whole multiples of one part in :data:`RESOLUTION`."""
        weights = self.settings.weights.tolist()
        total = 0.0
        for weight, letter in zip(weights, ATTRIBUTES, strict=False):
            total += weight * (job.nominal[letter] != other.nominal[letter])
        pairs = zip(self.normalized(job), self.normalized(other), strict=True)
        for weight, (own, its) in zip(weights[len(ATTRIBUTES) :], pairs, strict=True):
            total += weight * ((own - its) * (own - its))
        return floor(sqrt(total / in_order(weights)) * RESOLUTION + 0.5)


class PlainHistory(PlainPredictor):
    """See :class:`~hpcrowd.environment.schedulers.predictors.history.HistoryPredictor`."""

    settings: HistoryPredictor

    def estimate(self, job: Known) -> float:
        """Return the estimate of Eq. 8.8, s."""
        parameters = self.settings.parameters
        if parameters is None:
            raise QuantityError(f"{self.name}: has no parameters")
        requested = job.numeric[1]
        group = parameters.small if requested < parameters.pivot_s else parameters.big
        template = parameters.template
        similar = self.last(job, group.n, template)
        similar = [other for other in similar if alike(job, other, template)]
        if not similar:  # the empty template
            similar = self.last(job, group.n, "")
        similar.sort(key=lambda other: -self.similarity(job, other))  # stable: the latest first
        runs = [other.ran or 0 for other in similar[: group.k]]
        limit = group.beta * requested
        if not runs:
            return limit
        mean = sum(runs) / len(runs)
        deviation = 0.0
        if len(runs) > 1:
            squares = in_order([(run - mean) * (run - mean) for run in runs])
            deviation = sqrt(squares / (len(runs) - 1))
        return min(mean + group.alpha * deviation, limit)

    def similarity(self, job: Known, other: Known) -> int:
        """Return Eq. 8.5 in whole multiples of one part in :data:`RESOLUTION`."""
        own, its = self.normalized(job), self.normalized(other)
        length = sqrt(in_order([x * x for x in own])) * sqrt(in_order([x * x for x in its]))
        if length == 0.0:
            return 0
        product = in_order([x * y for x, y in zip(own, its, strict=True)])
        return floor(product / length * RESOLUTION + 0.5)


def alike(job: Known, other: Known, template: str) -> bool:
    """Return whether two jobs share the attributes of a template."""
    return all(job.nominal[name] == other.nominal[name] for name in template if name != ".")


def in_order(values: Sequence[float]) -> float:
    """Return the sum of values, added one after the other (``sum`` corrects rounding errors)."""
    total = 0.0
    for value in values:
        total += value
    return total
