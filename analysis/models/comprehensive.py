"""The comprehensive model of Minh 2012, chapter 5: bags of similar jobs, run times, processors."""

from __future__ import annotations

from typing import ClassVar, Self, get_args, override

import numpy as np
from pydantic import Field, model_validator

from analysis.features.bags import SAME, bags
from analysis.features.workload import Settings, Workload
from analysis.models.bag_places import bag_places
from analysis.models.bag_sizes import BagSizes, Bools, Sizes
from analysis.models.classes import JobClasses
from analysis.models.part import Drawn, Floats, JobModel
from analysis.models.shares import draw_from
from analysis.models.users import UserShares
from environment.errors import QuantityError
from environment.jobs import Int64s
from environment.streams import Streams


class Comprehensive(JobModel):
    """Bags whose jobs have one run time and one number of processors, both drawn from classes.

    As in Algorithm 1, a bag ends when it has the size drawn for it, or when the next job comes too
    late, so how large bags become depends on the arrivals too. Beyond the thesis go

    - ``bag_sizes="heavy"``: sizes have the mean and the largest of the trace, and a bag waits until
      as many jobs arrive in time; whether it is a single job decides about its run time then as it
      has become, not as it was drawn;
    - ``interleave``: several bags may be open at once;
    - users, and a class of run times standing for an executable.
    """

    name: ClassVar[str] = "comprehensive"
    title: ClassVar[str] = "bags of similar jobs, with their correlation and spatial burstiness"
    source: ClassVar[str] = "Minh 2012, chapter 5"

    classes: JobClasses = Field(description="classes of run times, and what their jobs need")
    bags: BagSizes = Field(description="bags, runs of neighbours in the whole workload")
    gap_s: float = Field(
        Settings.bag_gap_s, ge=0, description="s; Delta, longest time between jobs of a bag"
    )
    users: UserShares = Field(description="who submits bags")
    bag_sizes: Sizes = Field(
        "zipf", description="zipf: as in the thesis; heavy: mean and largest bag of the trace"
    )
    interleave: bool = Field(False, description="whether several bags may be open at once")
    bags_of_users: BagSizes = Field(
        description="bags where only jobs of the same user count as neighbours, to interleave"
    )
    leave: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of the jobs of such bags whose next one is not the next of the workload",
    )

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        for name in ("bags", "bags_of_users"):
            found = len(getattr(self, name).single_of_class)
            if found != len(self.classes):
                raise ValueError(f"{name}: shares of {found} classes, {len(self.classes)} classes")
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
            What to fit to; its settings have the scales.
        bag_sizes, interleave
            As the fields.

        Raises
        ------
        ModelFitError
            When there are no jobs, or the mixture of run times cannot be fitted.
        QuantityError
            When an option is not one.
        """
        if bag_sizes not in get_args(Sizes):
            raise QuantityError(f"bag_sizes {bag_sizes!r}: choose {' or '.join(get_args(Sizes))}")
        if not isinstance(interleave, bool):
            raise QuantityError(f"interleave {interleave!r}: say yes or no")
        classes, labels = JobClasses.fit(workload, cls.name)
        found = bags(workload)
        size, size_of_job, leave = user_bags(workload)
        notes = [f"{len(classes)} classes of run times"]
        if not found.real.any():
            notes.append("no bag of two jobs or more: all jobs are single")
        elif found.real.all():
            notes.append("no single job: single ones and those of bags have the same run times")
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
        # A bag takes the draws of the place where it begins, so that moving arrivals a little, as a
        # target of load does, changes few of them.
        first = np.flatnonzero(np.diff(np.maximum.accumulate(bag), prepend=-1))
        single = size == 1
        if self.bag_sizes == "heavy":
            single[first] = np.bincount(bag) == 1
        label = self._labels(single, kind, streams)
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

    def _labels(self, single: Bools, kind: BagSizes, streams: Streams) -> Int64s:
        """Return the class of run times of bags (RandomlyGenerate, step 1)."""
        random = streams.generator("classes")
        shares = kind.classes(np.asarray(self.classes.weights))
        return np.where(single, *(draw_from(share, len(single), random) for share in shares))


def user_bags(workload: Workload) -> tuple[Int64s, Int64s, float]:
    """Return the bags that jobs make up when only those of the same user count as neighbours.

    Returns
    -------
    size
        Jobs of each, shape (bags,).
    size_of_job
        Jobs of the bag of each job, shape (jobs,).
    leave
        Share of their jobs, but for last ones, whose next one is not the next of the workload.
    """
    order = np.argsort(workload.user, kind="stable")
    new = np.ones(len(order), bool)
    new[1:] = np.diff(workload.submit[order]) > workload.settings.bag_gap_s
    for name in SAME:
        column = getattr(workload, name)[order]
        new[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(new)
    size = np.diff(first, append=len(order))
    size_of_job = np.empty(len(order), np.int64)
    size_of_job[order] = np.repeat(size, size)
    steps = np.diff(order)[~new[1:]]
    return size, size_of_job, float(np.mean(steps != 1)) if len(steps) else 0.0
