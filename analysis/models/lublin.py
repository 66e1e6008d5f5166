"""The jobs of Lublin and Feitelson 2003: batch and interactive, or of one kind."""

from __future__ import annotations

from typing import ClassVar, Literal, Self, override

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from analysis.features.workload import Workload
from analysis.models.arrivals_lublin import Lublin
from analysis.models.arrivals_types import BATCH, INTERACTIVE, LublinTypes, kinds_of
from analysis.models.chosen import chosen_users
from analysis.models.hyper_gamma import HyperGamma, fit_hyper_gamma
from analysis.models.part import ArrivalModel, Drawn, Floats, JobModel
from analysis.models.two_stage import TwoStage, fit_two_stage
from analysis.models.users import UserShares
from environment.errors import ModelFitError, QuantityError
from environment.jobs import UNKNOWN, Int64s
from environment.streams import Streams


class JobKind(BaseModel):
    """Sizes and run times of one kind of jobs."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    sizes: TwoStage = Field(description="processors")
    run_times: HyperGamma = Field(description="run times by size")


def _kind(
    sizes: tuple[float, float, float, float, float, float], times: tuple[float, ...]
) -> JobKind:
    serial, power, low, med, high, lower = sizes
    a1, b1, a2, b2, pa, pb = times
    return JobKind(
        sizes=TwoStage(
            serial=serial,
            power=power,
            low=low,
            med_below_high=high - med,
            high_below_machine=PROGRAM_MACHINE - high,
            lower_probability=lower,
        ),
        run_times=HyperGamma(a1=a1, b1=b1, a2=a2, b2=b2, pa=pa, pb=pb),
    )


#: log2 of the machine that UMed and UHi of the authors' program stand for.
PROGRAM_MACHINE = 7.0

#: The authors' parameters (m_lublin99.c): serial, pow2, ULow, UMed, UHi, UProb; a1, b1, a2, b2,
#: pa, pb.
PUBLISHED: dict[str, JobKind] = {
    "batch": _kind(
        (0.2927, 0.6686, 1.2, 5, 7, 0.875), (6.57, 0.823, 639.1, 0.0156, -0.003, 0.6986)
    ),
    "interactive": _kind(
        (0.1541, 0.625, 1, 3, 5.5, 0.705), (3.8351, 0.6605, 7.073, 0.6856, -0.0118, 0.9156)
    ),
    "typeless": _kind((0.244, 0.576, 0.8, 4.5, 7, 0.86), (4.2, 0.94, 312, 0.03, -0.0054, 0.78)),
}


class LublinJobs(JobModel):
    """Two kinds of jobs, each with its sizes, run times and arrivals.

    Queues say the kind, as in the authors' program: 0 interactive, 1 batch; with one kind they
    are unknown.
    """

    name: ClassVar[str] = "lublin"
    title: ClassVar[str] = "batch and interactive jobs: two-stage uniform sizes, hyper-gamma times"
    source: ClassVar[str] = "Lublin and Feitelson 2003; their program m_lublin99.c"

    batch: JobKind = Field(description="batch jobs, or all")
    interactive: JobKind | None = Field(None, description="interactive jobs; null for one kind")
    interactive_share: float = Field(
        0.0, ge=0, le=1, description="share of interactive jobs, where arrivals do not tell kinds"
    )
    users: UserShares = Field(description="who submits")

    @classmethod
    @override
    def fit(cls, workload: Workload, *, kinds: Literal["by-queue", "one"] = "by-queue") -> Self:
        """Return the model of a workload.

        Probabilities of serial jobs and powers of two, ULow, UMed and UProb are the likeliest
        within what the authors recommend, UHi is that of the largest job; the gammas and p by
        expectation-maximization; the longest run time is that of the workload.

        Parameters
        ----------
        workload
            What to fit to.
        kinds
            ``by-queue``: jobs of queue 0 are interactive, where there are 100 of each kind; or
            ``one`` for all.
        """
        if not len(workload):
            raise ModelFitError(f"model {cls.name}: 0 jobs", "one or more are needed")
        if kinds not in ("by-queue", "one"):
            raise QuantityError(f"kinds {kinds!r}: not known; choose by-queue or one")
        machine = workload.machine or int(workload.processors.max())
        kind = None if kinds == "one" else kinds_of(workload)
        if kind is None:
            batch, notes = _fit_kind(workload, machine)
            interactive, share = None, 0.0
        else:
            batch, notes = _fit_kind(workload.take(np.flatnonzero(kind == BATCH)), machine)
            quick = workload.take(np.flatnonzero(kind == INTERACTIVE))
            interactive, more = _fit_kind(quick, machine)
            notes = [*(f"batch: {note}" for note in notes), *(f"interactive: {n}" for n in more)]
            share = float(np.mean(kind == INTERACTIVE))
        return cls(
            batch=batch,
            interactive=interactive,
            interactive_share=share,
            users=UserShares.fit(workload),
            notes=tuple(f"{cls.name}: {note}" for note in notes),
        )

    @classmethod
    @override
    def published(cls, machine: int) -> Self:
        return cls(
            batch=PUBLISHED["batch"],
            interactive=PUBLISHED["interactive"],
            interactive_share=LublinTypes.published().interactive_share,
            users=chosen_users(),
        )

    @override
    def published_arrivals(self) -> ArrivalModel:
        return LublinTypes.published() if self.interactive is not None else Lublin.published()

    @override
    def draw(self, count: int, arrivals: ArrivalModel, machine: int, streams: Streams) -> Drawn:
        times, kinds = arrivals.times_and_kinds(count, streams.generator("arrivals"))
        return self._of_kinds(times, kinds, machine, streams)

    @override
    def jobs(self, arrivals: Floats, machine: int, streams: Streams) -> Drawn:
        return self._of_kinds(arrivals, None, machine, streams)

    def _of_kinds(
        self, arrivals: Floats, kinds: Int64s | None, machine: int, streams: Streams
    ) -> Drawn:
        count = len(arrivals)
        random = streams.generator("jobs")
        quick = np.zeros(count, bool)
        if self.interactive is not None:
            drawn = streams.generator("kinds").random(count) < self.interactive_share
            quick = drawn if kinds is None else kinds == INTERACTIVE
        size = np.zeros(count, np.int64)
        run_time = np.zeros(count)
        for kind, which in ((self.batch, ~quick), (self.interactive, quick)):
            if kind is not None:
                size[which] = kind.sizes.draw(int(which.sum()), machine, random)
                run_time[which] = kind.run_times.draw(size[which], random)
        user, group = self.users.assign(count, streams.generator("users"))
        queue = np.where(quick, INTERACTIVE, BATCH)
        if self.interactive is None:
            queue[:] = UNKNOWN
        return Drawn.of(arrivals, run_time, size, user=user, group=group, queue=queue)


class LublinOneKind(LublinJobs):
    """The same with one kind of jobs."""

    name: ClassVar[str] = "lublin-typeless"
    title: ClassVar[str] = "the same for one kind of jobs"

    @classmethod
    @override
    def fit(cls, workload: Workload) -> Self:  # type: ignore[override]
        """Return the model of a workload, as :meth:`LublinJobs.fit` for one kind of jobs."""
        return super().fit(workload, kinds="one")

    @classmethod
    @override
    def published(cls, machine: int) -> Self:
        return cls(batch=PUBLISHED["typeless"], users=chosen_users())


def _fit_kind(workload: Workload, machine: int) -> tuple[JobKind, list[str]]:
    processors = np.minimum(workload.processors, machine)
    sizes, told = fit_two_stage(processors, machine)
    times, more = fit_hyper_gamma(workload.run_time, processors, machine)
    return JobKind(sizes=sizes, run_times=times), [*told, *more]
