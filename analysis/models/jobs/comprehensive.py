"""The comprehensive model of Minh 2012, chapter 5: bags of similar jobs, run times, processors.

:func:`bag_places` places bags in the arrivals, :class:`BagSizes` has the bag sizes of a trace,
:class:`Comprehensive` is the model.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self, get_args, override

import numpy as np
from pydantic import Field, model_validator

from hpcrowd.analysis.features.bags import bags, begins_bag
from hpcrowd.analysis.features.locality import zipf_exponent
from hpcrowd.analysis.features.workload import Settings, Workload
from hpcrowd.analysis.models.jobs.locality import JobClasses
from hpcrowd.analysis.models.jobs.placing import WaitingBags, place_bags
from hpcrowd.analysis.models.parts.base import Drawn, Floats, JobModel, Numbers
from hpcrowd.analysis.models.parts.users import UserShares, draw_from
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.limits.numbers import check_memory
from hpcrowd.environment.streams import Streams


def bag_places(
    arrivals: Floats,
    sizes: Int64s,
    gap: float,
    random: np.random.Generator,
    *,
    leave: float = 0.0,
    wait: bool = False,
) -> Int64s:
    """Return the number of the bag of each job, from 0 on, shape (jobs,).

    Parameters
    ----------
    arrivals
        s, rising, shape (jobs,).
    sizes
        Size of the bag drawn if one begins at this job, shape (jobs,).
    gap
        s; Delta, the longest time between two jobs of a bag.
    random
        The stream to draw from.
    leave
        Probability that a job does not continue the bag of the previous job although that has jobs
        to come. Such a job, or one after the end of a bag, continues another open bag, chosen at
        random; if there is none, a new bag begins.
    wait
        Whether bags wait until enough jobs arrive in time: a new bag is then the largest drawn so
        far that fits, or a single job if none does. Otherwise the drawn bag begins at once, and
        ends when a job comes too late (Algorithm 1).
    """
    size = len(arrivals)
    places = np.empty(size, np.int64)
    chances = random.random((2, size)) if leave > 0 else np.zeros((2, size))
    largest = int(sizes.max(initial=1)) if wait else 0
    check_memory(f"a bag of {largest:,} jobs", 16 * largest, "fit the model again")
    place_bags(
        places, np.array(arrivals, np.float64), np.array(sizes, np.int64), gap, leave,
        chances[0], chances[1], _room(arrivals, gap) if wait else np.zeros(0, np.int64),
        WaitingBags(largest),
    )  # fmt: skip
    return places


def _room(arrivals: Floats, gap: float) -> Int64s:
    """Return the number of jobs, from each on, without a break longer than the gap."""
    ends = np.append(np.flatnonzero(np.diff(arrivals) > gap), len(arrivals) - 1)
    place = np.arange(len(arrivals))
    return ends[np.searchsorted(ends, place)] - place + 1


#: Range of exponents of the sizes of real bags: from nearly all the largest to nearly all 2.
EXPONENTS = (-1e6, 60.0)

#: Distributions of bag sizes.
Sizes = Literal["zipf", "heavy"]


class BagSizes(Numbers):
    """The bag sizes of a workload; single jobs are bags of one."""

    zipf: float | None = Field(
        None, gt=1, description="exponent of the Zipf distribution of all sizes; null if all are 1"
    )
    single: float = Field(1.0, ge=0, le=1, description="share of the bags that are single jobs")
    exponent: float = Field(
        0.0, description="exponent of the other sizes, 2 to the largest, which gives their mean"
    )
    largest: int = Field(1, ge=1, description="jobs of the largest bag")
    single_of_class: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        min_length=1, description="a_k, share of single jobs in each class of run times"
    )

    @model_validator(mode="after")
    def _has_bags(self) -> Self:
        if (self.zipf is None) != (self.largest == 1):
            raise ValueError(f"zipf {self.zipf}: does not go with a largest bag of {self.largest}")
        if self.single < 1 and self.largest == 1:
            raise ValueError(f"single {self.single}: must be 1 without larger bags")
        return self

    @classmethod
    def fit(cls, size: Int64s, size_of_job: Int64s, labels: Int64s) -> Self:
        """Return the bag sizes of a workload.

        ``size`` has the jobs of each bag, ``size_of_job`` those of the bag of each job, and
        ``labels`` the class of each job, from 0 on; every class has jobs.
        """
        shares = np.bincount(labels, size_of_job == 1) / np.bincount(labels)
        single_of_class, largest = tuple(shares.tolist()), int(size.max())
        if largest == 1:
            return cls(single_of_class=single_of_class)
        real = size[size > 1]
        return cls(
            zipf=zipf_exponent(size, "bag sizes").exponent,
            single=1 - len(real) / len(size),
            exponent=_exponent(float(real.mean()), largest),
            largest=largest,
            single_of_class=single_of_class,
        )

    @cached_property
    def shares(self) -> Floats:
        """Share of each size from 1 to the largest, for ``heavy`` bag sizes.

        Single jobs have their own share; sizes from 2 to the largest follow a truncated Zipf
        distribution whose exponent gives their mean. Our own, beyond the thesis.
        """
        if self.largest == 1:
            return np.ones(1)
        return np.append(self.single, (1 - self.single) * _shares(self.exponent, self.largest))

    def draw(self, count: int, kind: Sizes, random: np.random.Generator) -> Int64s:
        """Return the sizes of ``count`` bags, each at most ``count`` jobs."""
        if self.zipf is None:
            return np.ones(count, np.int64)
        if kind == "zipf":
            return np.minimum(random.zipf(self.zipf, count), count).astype(np.int64)
        return draw_from(self.shares, count, random) + 1

    def classes(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the shares of classes of single jobs and of jobs of bags (section 5.1.2).

        If one kind has no jobs, it gets the shares of the other.
        """
        single = np.asarray(self.single_of_class) * weights
        bags = weights - single
        whole = single.sum(), bags.sum()
        if min(whole) <= 0:
            return weights / weights.sum(), weights / weights.sum()
        return single / whole[0], bags / whole[1]


def _shares(exponent: float, largest: int) -> Floats:
    """Return the shares of sizes from 2 to the largest."""
    check_memory(f"a bag of {largest:,} jobs", 32 * largest, "fit the model again")
    logs = -exponent * np.log(np.arange(2, largest + 1))
    shares = np.exp(logs - logs.max())
    found: Floats = shares / shares.sum()
    return found


def _exponent(mean: float, largest: int) -> float:
    """Return the exponent that gives sizes from 2 to the largest their mean."""
    from scipy.optimize import brentq

    sizes = np.arange(2, largest + 1)
    flattest, steepest = EXPONENTS

    def above(exponent: float) -> float:
        return float(_shares(exponent, largest) @ sizes) - mean

    if above(flattest) <= 0:
        return flattest
    if above(steepest) >= 0:
        return steepest
    return float(brentq(above, flattest, steepest))


class Comprehensive(JobModel):
    """Bags of jobs with the same run time and number of processors, both drawn from classes.

    As in Algorithm 1, a bag ends when it has its drawn size, or when the next job comes too late,
    so bag sizes also depend on the arrivals. Additions to the thesis:

    - ``bag_sizes="heavy"``: sizes have the mean and the maximum of the trace, and a bag waits until
      enough jobs arrive in time; its class of run times depends on whether it has become a single
      job, not on the size drawn;
    - ``interleave``: several bags may be open at once;
    - users, and executables, one per class of run times.
    """

    name: ClassVar[str] = "comprehensive"
    title: ClassVar[str] = "bags of similar jobs, with their correlation and spatial burstiness"
    source: ClassVar[str] = "Minh 2012, chapter 5"

    classes: JobClasses = Field(description="classes of run times, with their processors")
    bags: BagSizes = Field(description="bags of successive jobs in the whole workload")
    gap_s: float = Field(
        Settings.bag_gap_s, ge=0, description="s; Delta, longest time between jobs of a bag"
    )
    users: UserShares = Field(description="who submits bags")
    bag_sizes: Sizes = Field(
        "zipf", description="zipf: as in the thesis; heavy: mean and largest bag of the trace"
    )
    interleave: bool = Field(False, description="whether several bags may be open at once")
    bags_of_users: BagSizes = Field(
        description="bags of successive jobs of the same user, for interleave"
    )
    leave: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of the jobs of such bags whose next job is not the next of the workload",
    )

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        for name in ("bags", "bags_of_users"):
            found = len(getattr(self, name).single_of_class)
            if found != len(self.classes):
                raise ValueError(f"{name}: {found} shares for {len(self.classes)} classes")
        return self

    @classmethod
    @override
    def fit(
        cls, workload: Workload, *, bag_sizes: Sizes = "zipf", interleave: bool = False
    ) -> Self:
        """Return the model of a workload.

        Parameters
        ----------
        workload
            Workload to fit to; its settings have the scales.
        bag_sizes, interleave
            As the fields.

        Raises
        ------
        ModelFitError
            When there are no jobs, or the mixture of run times cannot be fitted.
        QuantityError
            When an option is not valid.
        """
        if bag_sizes not in get_args(Sizes):
            raise QuantityError(f"bag_sizes {bag_sizes!r}: choose {' or '.join(get_args(Sizes))}")
        if not isinstance(interleave, bool):
            raise QuantityError(f"interleave {interleave!r}: must be yes or no")
        classes, labels = JobClasses.fit(workload, cls.name)
        found = bags(workload)
        size, size_of_job, leave = user_bags(workload)
        notes = [f"{len(classes)} classes of run times"]
        if not found.real.any():
            notes.append("no bag of two jobs or more: all jobs are single")
        elif found.real.all():
            notes.append("no single job: single jobs get the run times of jobs in bags")
        return cls(
            classes=classes,
            bags=BagSizes.fit(found.size, np.repeat(found.size, found.size), labels),
            gap_s=workload.settings.bag_gap_s,
            users=UserShares.fit(workload),
            bags_of_users=BagSizes.fit(size, size_of_job, labels),
            leave=leave,
            bag_sizes=bag_sizes,
            interleave=interleave,
            notes=tuple(notes),
        )

    @override
    def jobs(self, arrivals: Floats, machine: int, streams: Streams) -> Drawn:
        kind = self.bags_of_users if self.interleave else self.bags
        size = kind.draw(len(arrivals), self.bag_sizes, streams.generator("bag sizes"))
        bag = bag_places(
            arrivals,
            size,
            self.gap_s,
            streams.generator("bag places"),
            leave=self.leave if self.interleave else 0.0,
            wait=self.bag_sizes == "heavy",
        )
        # A bag uses the draws of the job where it begins, so that small shifts of arrivals, as for
        # a target load, change few of them.
        first = np.flatnonzero(np.diff(np.maximum.accumulate(bag), prepend=-1))
        single = size == 1
        if self.bag_sizes == "heavy":
            single[first] = np.bincount(bag) == 1
        # The class of run time of each bag: RandomlyGenerate, step 1.
        random, shares = streams.generator("classes"), np.asarray(self.classes.weights)
        label = np.where(
            single, *(draw_from(share, len(single), random) for share in kind.classes(shares))
        )
        run_time = self.classes.draw_run_times(label, streams.generator("run times"))
        processors = self.classes.draw_processors(label, machine, streams.generator("processors"))
        user, group = self.users.assign(len(first), streams.generator("users"))
        of_job = first[bag]
        return Drawn.of(
            arrivals,
            run_time[of_job],
            processors[of_job],
            user=user[bag],
            group=group[bag],
            executable=label[of_job] + 1,
            bag=bag,
            notes=self.classes.notes_on(machine),
        )


def user_bags(workload: Workload) -> tuple[Int64s, Int64s, float]:
    """Return the bags if only jobs of the same user count as neighbours.

    That is the number of jobs of each bag, shape (bags,), that of the bag of each job, shape
    (jobs,), and the share of jobs, except the last of each bag, whose next job is not the next of
    the workload.
    """
    order = np.argsort(workload.user, kind="stable")
    new = begins_bag(workload, order)
    first = np.flatnonzero(new)
    size = np.diff(first, append=len(order))
    size_of_job = np.empty(len(order), np.int64)
    size_of_job[order] = np.repeat(size, size)
    steps = np.diff(order)[~new[1:]]
    return size, size_of_job, float(np.mean(steps != 1)) if len(steps) else 0.0
