"""Run times that repeat from job to job, with correlated processors.

Minh 2012, section 7.2.1, takes run times and processors from "Modeling Parallel System Workloads
with Temporal Locality" (its reference 67), which we do not have. According to the thesis, run times
and processors there are random and keep the correlation, locality and distributions of the trace.
This module does that with the methods of sections 3.3.3 and 5.1.

:class:`JobClasses` is a mixture of normal distributions of run times, with the processors of the
jobs of each class (sections 5.1.1, 5.1.3 and Algorithm 2); the comprehensive model has it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Self, override

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from hpcrowd.analysis.features.locality import classes_of_run_times, run_lengths
from hpcrowd.analysis.features.workload import RESOLUTION_S, Workload, whole
from hpcrowd.analysis.models.jobs.placing import Counted, fill_runs
from hpcrowd.analysis.models.parts.base import Drawn, Floats, JobModel, Numbers
from hpcrowd.analysis.models.parts.users import UserShares
from hpcrowd.environment.errors import ModelFitError, QuantityError, UnavailableError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.limits.numbers import check_memory
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.streams import Streams


def pair_counts(first: Int64s, second: Int64s) -> tuple[tuple[int, int, int], ...]:
    """Return the distinct pairs with their counts."""
    pairs, counts = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    return tuple(zip(*pairs.tolist(), counts.tolist(), strict=True))


class JobClasses(Numbers):
    """A mixture of run times, with the processors of the jobs of each class.

    The thesis draws a class of parallelism from Pr(c, l), then one of the jobs with both labels
    (Algorithms 1 and 2). Both steps together draw from the distribution of processors among the
    jobs with the label of the run time, which is done here in one step.
    """

    weights: tuple[PositiveFloat, ...] = Field(
        min_length=1, description="p_k, share of each class; adds up to 1"
    )
    means_s: tuple[NonNegativeFloat, ...] = Field(
        min_length=1, description="s; mean run time of each class, rising"
    )
    sds_s: tuple[PositiveFloat, ...] = Field(
        min_length=1, description="s; standard deviation of each class"
    )
    processors: tuple[tuple[int, int, int], ...] = Field(
        min_length=1,
        description="class, from 0 on; processors; number of jobs of the class that need this many",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        size = len(self.weights)
        if not size == len(self.means_s) == len(self.sds_s):
            raise ValueError(
                f"{size} weights, {len(self.means_s)} means and {len(self.sds_s)} deviations"
            )
        counts = np.asarray(self.processors)
        if set(counts[:, 0].tolist()) != set(range(size)) or counts[:, 1:].min() < 1:
            raise ValueError(f"processors: each of {size} classes must have jobs with processors")
        return self

    @classmethod
    def fit(cls, workload: Workload, model: str) -> tuple[Self, Int64s]:
        """Return the classes of a workload, and the class of each job, shape (jobs,).

        Components of the mixture that are never the most probable have no jobs, so their processors
        are unknown: they are left out.

        Raises
        ------
        ModelFitError
            When there are no jobs, or the mixture cannot be fitted.
        """
        if not len(workload):
            raise ModelFitError(f"model {model}: 0 jobs", "at least one is needed")
        try:
            found = classes_of_run_times(workload)
        except UnavailableError as error:
            raise ModelFitError(f"model {model}: classes of run times", str(error)) from None
        used, labels = np.unique(found.labels, return_inverse=True)
        weights = found.weights[used] / found.weights[used].sum()
        classes = cls(
            weights=tuple(weights.tolist()),
            means_s=tuple(np.maximum(found.means[used], 0).tolist()),
            sds_s=tuple(found.sds[used].tolist()),
            processors=pair_counts(labels, workload.processors),
        )
        return classes, labels.astype(np.int64)

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def _counts(self) -> Int64s:
        """Rows of class, processors and number of jobs, by class, shape (rows, 3)."""
        counts = np.asarray(self.processors, np.int64)
        return counts[np.lexsort((counts[:, 1], counts[:, 0]))]

    def draw_run_times(
        self,
        classes: Int64s,
        random: np.random.Generator,
        *,
        least_s: tuple[float, ...] = (),
        most_s: tuple[float, ...] = (),
    ) -> Floats:
        """Return a run time in whole seconds for each class, from 0 on, shape (jobs,).

        The normal distribution of each class is truncated where values round to less than 0, as if
        these were drawn again. The thesis does not say what it does; chosen here. ``least_s`` and
        ``most_s`` are the shortest and the longest run time of each class; by default 0 and no
        bound.
        """
        from scipy.special import ndtr, ndtri

        means, sds = np.asarray(self.means_s), np.asarray(self.sds_s)
        least = np.asarray(least_s or (0.0,) * len(self))
        most = np.asarray(most_s or (np.inf,) * len(self))
        below = ndtr((least - RESOLUTION_S / 2 - means) / sds)
        above = ndtr((most + RESOLUTION_S / 2 - means) / sds)
        share = below[classes] + (above - below)[classes] * random.random(len(classes))
        # A share that rounds to 1 would give an infinite time.
        times = means[classes] + sds[classes] * ndtri(np.minimum(share, np.nextafter(1, 0)))
        whole: Floats = np.clip(np.floor(times + RESOLUTION_S / 2), least[classes], most[classes])
        return whole

    def draw_processors(self, classes: Int64s, machine: int, random: np.random.Generator) -> Int64s:
        """Return processors for each class, drawn from those of its jobs.

        Numbers above the machine are left out; if all numbers of a class are, it gets the whole
        machine.
        """
        fits = self._counts[self._counts[:, 1] <= machine]
        ends = np.cumsum(fits[:, 2])
        jobs = np.bincount(fits[:, 0], fits[:, 2], len(self)).astype(np.int64)
        before = np.cumsum(jobs) - jobs
        one = before[classes] + (random.random(len(classes)) * jobs[classes]).astype(np.int64)
        place = np.searchsorted(ends, one, side="right")
        padded = np.append(fits[:, 1], machine)
        return np.where(jobs[classes] > 0, padded[np.minimum(place, len(fits))], machine)

    def notes_on(self, machine: int) -> list[str]:
        """Return a note if the machine is smaller than some jobs of the trace."""
        counts = self._counts
        share = float(counts[counts[:, 1] > machine, 2].sum() / counts[:, 2].sum())
        if not share:
            return []
        return [
            f"{100 * share:.2g} % of the jobs of the trace need more than {machine:,} processors; "
            "these numbers of processors are not drawn"
        ]


def counted(counts: ArrayLike) -> Counted:
    """Return values to draw for each class, of rows (class, value, count); each class has one."""
    rows = np.asarray(counts, np.int64)
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    classes = int(rows[:, 0].max(initial=0))
    check_memory(f"class {classes:,}", 16 * classes, "fit the model again")
    of_class = np.bincount(rows[:, 0], rows[:, 2])
    bounds = np.append(0, np.cumsum(of_class)).astype(np.int64)
    return Counted(np.ascontiguousarray(rows[:, 1]), np.cumsum(rows[:, 2]), bounds)


Counts = tuple[tuple[int, int, int], ...]


class Locality(JobModel):
    """Jobs whose run time classes come in runs, with lengths and order as in the trace.

    Unconfirmed, as we do not have the paper: run lengths are those of the trace for each class
    instead of a fitted distribution; the next class depends only on the previous one; processors
    are drawn for each job, given the class. Chosen here: run times stay between the shortest and
    the longest of the class, as otherwise many would fall into another class and cut runs; a run
    has one user, and each class is an executable.
    """

    name: ClassVar[str] = "locality"
    title: ClassVar[str] = "runs of similar run times, with their processors"
    source: ClassVar[str] = "Minh 2012, sections 3.3.3, 5.1 and 7.2.1 (reference 67 unconfirmed)"

    classes: JobClasses = Field(description="classes of run times, with their processors")
    run_lengths: Counts = Field(
        min_length=1, description="class, from 0 on; jobs of a run; number of runs of this length"
    )
    next_classes: Counts = Field(
        min_length=1,
        description="class; class of the next run (after the last: the first); number of pairs",
    )
    least_s: tuple[NonNegativeFloat, ...] = Field(
        description="s; shortest run time of each class, in whole seconds"
    )
    most_s: tuple[NonNegativeFloat, ...] = Field(
        description="s; longest run time of each class, in whole seconds"
    )
    users: UserShares = Field(description="users who submit runs")

    @model_validator(mode="after")
    def _for_each_class(self) -> Self:
        for name in ("run_lengths", "next_classes"):
            rows = np.asarray(getattr(self, name))
            if set(rows[:, 0].tolist()) != set(range(len(self.classes))):
                raise ValueError(f"{name}: each of {len(self.classes)} classes must have a row")
            if rows[:, 2].min() < 1:
                raise ValueError(f"{name}: a count of {rows[:, 2].min()}; must be at least 1")
        if min(length for _, length, _ in self.run_lengths) < 1:
            raise ValueError("run_lengths: a run must have at least 1 job")
        if not len(self.least_s) == len(self.most_s) == len(self.classes):
            raise ValueError(f"least_s, most_s: one of each is needed for {len(self.classes)}")
        if (np.asarray(self.least_s) > np.asarray(self.most_s)).any():
            raise ValueError("least_s: larger than most_s")
        follows = [other for _, other, _ in self.next_classes]
        if min(follows) < 0 or max(follows) >= len(self.classes):
            raise ValueError(f"next_classes: there are {len(self.classes)} classes, from 0 on")
        return self

    @classmethod
    @override
    def fit(cls, workload: Workload) -> Self:
        classes, labels = JobClasses.fit(workload, cls.name)
        lengths = run_lengths(labels)
        of_run = labels[np.cumsum(lengths) - 1]
        whole = np.floor(workload.run_time + RESOLUTION_S / 2)
        least, most = np.full(len(classes), np.inf), np.zeros(len(classes))
        np.minimum.at(least, labels, whole)
        np.maximum.at(most, labels, whole)
        return cls(
            classes=classes,
            run_lengths=pair_counts(of_run, lengths),
            # The last run is followed by the first, so that each class has a next one.
            next_classes=pair_counts(of_run, np.roll(of_run, -1)),
            least_s=tuple(least.tolist()),
            most_s=tuple(most.tolist()),
            users=UserShares.fit(workload),
            notes=(
                f"{len(classes)} classes of run times",
                f"{len(lengths):,} runs of jobs of one class",
            ),
        )

    @cached_property
    def _tables(self) -> tuple[Counted, Counted]:
        return counted(self.run_lengths), counted(self.next_classes)

    @override
    def jobs(self, arrivals: Floats, machine: int, streams: Streams) -> Drawn:
        size = len(arrivals)
        label, run = np.zeros(size, np.int64), np.zeros(size, np.int64)
        if size:
            fill_runs(streams.generator("runs").random((3, size)), *self._tables, label, run)
        run_time = self.classes.draw_run_times(
            label, streams.generator("run times"), least_s=self.least_s, most_s=self.most_s
        )
        processors = self.classes.draw_processors(label, machine, streams.generator("processors"))
        user, group = self.users.assign(int(run.max(initial=-1)) + 1, streams.generator("users"))
        return Drawn.of(
            arrivals,
            run_time,
            processors,
            user=user[run],
            group=group[run],
            executable=label + 1,
            bag=run,
            notes=self.classes.notes_on(machine),
        )


def control_correlation(
    run_time: Int64s, processors: Int64s, degrees: Sequence[float], random: np.random.Generator
) -> list[Int64s]:
    """Reassign processors so that they correlate with run times to each given degree.

    Processors are assigned by the rank of the run time, ascending for degrees of at least 0,
    descending below; then a random share of ``1 - abs(degree)`` of them is permuted. Spearman's
    correlation becomes the largest possible one times the degree (section 7.1). The set of numbers
    of processors stays, and so do the run times and their order.

    Parameters
    ----------
    run_time, processors
        Of the jobs, shape (jobs,).
    degrees
        From -1 to 1.
    random
        The stream that draws which jobs are permuted, and how.

    Returns
    -------
    list of ndarray
        Processors for each degree, shape (jobs,).

    Raises
    ------
    QuantityError
        When a degree is not from -1 to 1, or there are not as many processors as run times.

    Notes
    -----
    Algorithm 3, procedure Control_Correlation. Among equal run times the order is also drawn, once
    for all degrees; the text leaves it open, and otherwise the order of the jobs would decide.
    """
    if len(run_time) != len(processors):
        raise QuantityError(
            f"processors of {len(processors):,} jobs, run times of {len(run_time):,}: give both "
            "for every job"
        )
    for degree in degrees:
        if not -1 <= degree <= 1:
            raise QuantityError(f"degree {degree}: must be from -1 to 1")
    count = len(run_time)
    by_run_time = np.lexsort((random.permutation(count), run_time))
    ascending = np.sort(processors)
    found = []
    for degree in degrees:
        dealt = np.empty_like(processors)
        dealt[by_run_time] = ascending if degree >= 0 else ascending[::-1]
        moved = random.permutation(count)[: round_half_up((1 - abs(degree)) * count)]
        dealt[moved] = dealt[random.permutation(moved)]
        found.append(dealt)
    return found


def with_correlation(drawn: Drawn, degree: float, random: np.random.Generator) -> Drawn:
    """Return the same jobs with processors reassigned by Control_Correlation.

    Spearman's correlation becomes the largest possible one times the degree. Run times and their
    order, arrivals, users and bags stay; jobs of a bag no longer need the same number of
    processors.

    Parameters
    ----------
    drawn
        The jobs.
    degree
        From -1 to 1.
    random
        The stream to draw from.

    Raises
    ------
    QuantityError
        When the degree is not from -1 to 1.
    """
    (dealt,) = control_correlation(whole(drawn.run_time), drawn.processors, [degree], random)
    note = f"processors are reassigned, to {degree:+g} times the largest correlation"
    return replace(drawn, processors=dealt, notes=[*drawn.notes, note])
