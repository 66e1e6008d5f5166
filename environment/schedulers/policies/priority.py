"""Priorities: your own order of the queue, as one formula over all that waits.

Subclass :class:`Priority` and write :meth:`Priority.score`. The policies here are examples of a few
lines each, with the sources of their formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, NamedTuple, override

import numpy as np

from hpcrowd.environment.errors import HpcrowdError, QuantityError, SchedulerError, check_choice
from hpcrowd.environment.jobs import Float64s
from hpcrowd.environment.registry import said
from hpcrowd.environment.schedulers.base import Look, WaitingJob, options_of
from hpcrowd.environment.schedulers.ordered import (
    BACKFILL_MEANING,
    CONSERVATIVE,
    NO_BACKFILL,
    OrderedScheduler,
    check_backfill,
)
from hpcrowd.environment.schedulers.policies.fair_share import HALF_LIFE_S, UsageScheduler

#: Compiled form of the policies of this module, and of others like them.
PRIORITY_PASS = "hpcrowd.environment.engine.passes.priority:PriorityPass"

#: Binary digits of a score that count. Compiled code and numpy may differ in the last of 53.
DIGITS = 40

#: A score counts as this at most, in either direction.
LARGEST_SCORE = 1e300


class Queue(NamedTuple):
    """The waiting jobs as arrays of float64, shape (jobs,), in the order of submission."""

    processors: Float64s
    requested: Float64s  #: s; requested time, at least 1
    estimate: Float64s  #: s; run time that the scheduler expects, at least 1
    waited: Float64s  #: s since the submission
    submit: Float64s  #: s since the origin
    user: Float64s  #: number
    group: Float64s  #: number
    queue: Float64s  #: number
    usage: Float64s  #: processor-seconds that the user has held so far, decayed
    now: int  #: s since the origin
    total: int  #: processors that are up
    free: int  #: processors without a job


#: The arrays of a :class:`Queue`, in order.
ARRAYS = Queue._fields[:9]


class Priority(UsageScheduler):
    """The job with the highest score first; subclass it and write :meth:`score`.

    The first job that does not fit is the head and blocks, and later ones may overtake it by EASY
    backfilling; or each job gets a reservation in that order, and any may start that delays none
    before it. Ties go by submission, then by job number. Scores are compared to twelve digits.

    The formula is called once with symbols, and what it does with them is what compiled code
    computes at each pass: operations and functions of numpy on fields of the queue, and on options
    that are numbers. One that needs values on the way is called with numpy arrays at each pass,
    which takes longer. The schedule is the same.

    A subclass with options sets them in its constructor, each as an attribute with its name.

    Attributes
    ----------
    backfill
        The order in which the jobs behind the head are tried, one of
        ``schedulers.ordered.BACKFILL_MEANING``, or ``none``; ``conservative`` for a plan of all
        waiting jobs, which is made anew at each pass.
    half_life_s
        s; half-life of a user's usage; see :class:`FairShare`.
    """

    backfill: str = "queue"
    half_life_s: int = HALF_LIFE_S

    #: Whether the formula may be traced; set it to False to compare.
    traced: ClassVar[bool] = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Let a subclass run in the compiled engine if all that it changes is the formula."""
        super().__init_subclass__(**keywords)
        kept = (
            "select",
            "_walk",
            "_plan",
            "_in_order",
            "_candidates",
            "charges",
            "reserve",
            "ended",
        )
        if "compiled" not in vars(cls) and all(
            getattr(cls, name) is getattr(Priority, name) for name in kept
        ):
            cls.compiled = PRIORITY_PASS

    def score(self, jobs: Queue) -> Any:
        """Return the scores of the waiting jobs, shape (jobs,); the highest is first."""
        raise NotImplementedError(f"{type(self).__name__} must define score()")

    @override
    def begin(self, total: int) -> None:
        super().begin(total)
        self.check()

    def check(self) -> None:
        """Check the name of the backfilling.

        Raises
        ------
        QuantityError
            If it is not known.
        """
        check_choice("backfill", self.backfill, [*BACKFILL_MEANING, NO_BACKFILL, CONSERVATIVE])

    @property
    def options(self) -> dict[str, Any]:
        """The options that the formula may use, by name."""
        return {name: getattr(self, name) for name in options_of(type(self))}

    def scores(self, jobs: Queue) -> Float64s:
        """Return the scores as they are compared.

        Raises
        ------
        SchedulerError
            If the formula raises an exception, or returns something else than a number for each
            job.
        """
        count = len(jobs.processors)
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.score(jobs), np.float64)
        except HpcrowdError:
            raise
        except Exception as error:
            raise SchedulerError(f"{self.name}: score() at {jobs.now} s: {said(error)}") from error
        if found.shape != (count,):
            raise SchedulerError(
                f"{self.name}: score() returned an array of shape {found.shape} at {jobs.now} s "
                f"for {count} jobs; it must return one number for each"
            )
        if np.isnan(found).any():
            raise SchedulerError(no_number(self.name, jobs.now))
        return compared(found)

    @override
    def _in_order(self, look: Look) -> list[WaitingJob]:
        jobs = look.waiting
        if len(jobs) < 2:
            return list(jobs)
        columns = np.array(
            [
                (job.processors, max(job.requested_time, 1), max(job.estimate, 1),
                 look.now - job.submit, job.submit, job.user, job.group, job.queue)
                for job in jobs
            ],
            np.float64,
        ).T  # fmt: skip
        levels = {user: self.usage(user, look.now) for user in {job.user for job in jobs}}
        usage = np.array([levels[job.user] for job in jobs])
        scores = self.scores(Queue._make((*columns, usage, look.now, look.total, look.free)))
        return [jobs[place] for place in np.argsort(-scores, kind="stable").tolist()]

    @override
    def _walk(self, look: Look, note: Callable[..., None] | None = None) -> Iterator[WaitingJob]:
        if note is None and all(job.processors > look.free for job in look.waiting):
            return  # nothing can start, whatever the scores are
        yield from super()._walk(look, note)

    @property
    @override
    def order_words(self) -> str:
        return f"by {self.name}"


def no_number(name: str, now: int) -> str:
    """Return the message of a formula without a result."""
    return (
        f"{name}: score() at {now} s is not a number for some job; mind divisions by 0 and "
        "logarithms of numbers below 0"
    )


def compared(scores: Float64s) -> Float64s:
    """Return scores with :data:`DIGITS` binary digits."""
    part, power = np.frexp(np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE))
    rounded: Float64s = np.ldexp(np.rint(part * 2.0**DIGITS) / 2.0**DIGITS, power)
    return rounded


@dataclass(eq=False, repr=False, kw_only=True)
class WFP3(Priority):
    """WFP3: the ratio of wait to request to the third power, times processors.

    Favours large and old jobs without letting short ones starve (Tang, Lan, Desai and Buettner
    2009; the formula as in later papers, unconfirmed).

    Parameters
    ----------
    backfill
        The order in which later jobs are tried, see :class:`EASY`, ``none``, or ``conservative``.
    """

    name = "wfp3"

    backfill: str = "queue"

    @override
    def score(self, jobs: Queue) -> Any:
        ratio = jobs.waited / jobs.requested
        return ratio * ratio * ratio * jobs.processors


@dataclass(eq=False, repr=False, kw_only=True)
class Unicef(Priority):
    """UNICEF: the wait over request and logarithm of the processors.

    Favours small jobs (Tang, Lan, Desai and Buettner 2009; the formula as in later papers,
    unconfirmed; here the logarithm is that of processors + 1, since it is 0 for one processor).

    Parameters
    ----------
    backfill
        The order in which later jobs are tried, see :class:`EASY`, ``none``, or ``conservative``.
    """

    name = "unicef"

    backfill: str = "queue"

    @override
    def score(self, jobs: Queue) -> Any:
        return jobs.waited / (np.log2(jobs.processors + 1.0) * jobs.requested)


@dataclass(eq=False, repr=False, kw_only=True)
class F1(Priority):
    """F1: log10(r) n + 870 log10(s), the smallest first; r request, n processors, s submission.

    A formula found by regression over simulations (Carastan-Santos and de Camargo 2017; s counts
    from the origin, here at least 1 s).

    Parameters
    ----------
    backfill
        The order in which later jobs are tried, see :class:`EASY`, ``none``, or ``conservative``.
    """

    name = "f1"

    backfill: str = "queue"

    @override
    def score(self, jobs: Queue) -> Any:
        arrived = np.log10(np.maximum(jobs.submit, 1.0))
        return -(np.log10(jobs.requested) * jobs.processors + 8.7e2 * arrived)


@dataclass(eq=False, repr=False, kw_only=True)
class F2(Priority):
    """F2: sqrt(r) n + 25600 log10(s), the smallest first; see F1.

    Carastan-Santos and de Camargo 2017 (coefficient unconfirmed).

    Parameters
    ----------
    backfill
        The order in which later jobs are tried, see :class:`EASY`, ``none``, or ``conservative``.
    """

    name = "f2"

    backfill: str = "queue"

    @override
    def score(self, jobs: Queue) -> Any:
        arrived = np.log10(np.maximum(jobs.submit, 1.0))
        return -(np.sqrt(jobs.requested) * jobs.processors + 2.56e4 * arrived)


@dataclass(eq=False, repr=False, kw_only=True)
class F3(Priority):
    """F3: r n + 6860000 log10(s), the smallest first; see F1.

    Carastan-Santos and de Camargo 2017 (coefficient unconfirmed).

    Parameters
    ----------
    backfill
        The order in which later jobs are tried, see :class:`EASY`, ``none``, or ``conservative``.
    """

    name = "f3"

    backfill: str = "queue"

    @override
    def score(self, jobs: Queue) -> Any:
        arrived = np.log10(np.maximum(jobs.submit, 1.0))
        return -(jobs.requested * jobs.processors + 6.86e6 * arrived)


@dataclass(eq=False, repr=False, kw_only=True)
class F4(Priority):
    """F4: r sqrt(n) + 530000 log10(s), the smallest first; see F1.

    Carastan-Santos and de Camargo 2017 (coefficient unconfirmed).

    Parameters
    ----------
    backfill
        The order in which later jobs are tried, see :class:`EASY`, ``none``, or ``conservative``.
    """

    name = "f4"

    backfill: str = "queue"

    @override
    def score(self, jobs: Queue) -> Any:
        arrived = np.log10(np.maximum(jobs.submit, 1.0))
        return -(jobs.requested * np.sqrt(jobs.processors) + 5.3e5 * arrived)


@dataclass(eq=False, repr=False, kw_only=True)
class Multifactor(Priority):
    """Multifactor priority as in Slurm: weighted age, size and fair share, each from 0 to 1.

    Age is the wait over ``max_age``, at most 1; size the share of the processors that are up; fair
    share 2^(-usage over the mean usage of the users in the queue), Slurm's classic formula with
    equal shares, except that Slurm compares with the usage of all users (our reading).

    Parameters
    ----------
    age, size, fair_share
        Weights, as PriorityWeightAge, PriorityWeightJobSize and PriorityWeightFairshare.
    max_age
        s; the wait at which the age factor is 1 (PriorityMaxAge, 7 days).
    backfill
        The order in which later jobs are tried, see :class:`EASY`, ``none``, or ``conservative``.

    Raises
    ------
    QuantityError
        If a number is out of range.
    """

    name = "multifactor"

    age: float = 1000.0
    size: float = 1000.0
    fair_share: float = 1000.0
    max_age: float = 604800.0
    backfill: str = "queue"

    def __post_init__(self) -> None:
        for name in ("age", "size", "fair_share"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise QuantityError(f"{name} {getattr(self, name):g}: must be 0 or more")
        if not 0 < self.max_age < float("inf"):
            raise QuantityError(f"max-age {self.max_age:g}: must be more than 0 s")

    @override
    def score(self, jobs: Queue) -> Any:
        age = np.minimum(jobs.waited / self.max_age, 1.0)
        share = np.exp2(-jobs.usage / np.maximum(jobs.usage.mean(), 1.0))
        size = jobs.processors / jobs.total
        return self.age * age + self.size * size + self.fair_share * share


#: min^2; with this value a job with an immediate response weighs as much as one that has waited for
#: a day: 0.04 per min x 36,000 min^2 = 1,440 min. Unconfirmed.
ALPHA = 36_000.0

#: Probability to continue after an immediate response (Shmueli and Feitelson 2007, after STARS).
LIMIT = 0.8

#: 1/min, decline of the probability with the response time (the same source).
DECLINE = 0.05


@dataclass(eq=False, repr=False, kw_only=True)
class Creasy(OrderedScheduler):
    """CREASY (Shmueli and Feitelson 2009): seniority against criticality, with EASY backfilling.

    Users whose job has a response time of RT minutes continue their session with the probability
    P = limit / (decline * RT + 1). The *criticality* of a job is how much a further delay lowers
    that probability, |dP/dRT| = limit * decline / (decline * RT + 1)^2 per minute, where RT is the
    response time if the job starts now: its wait plus its estimate. Its *seniority* is its wait in
    minutes. The queue is ordered by seniority + alpha * criticality, the largest first; its head
    holds a reservation as in EASY.

    From the sources that we have: CREASY is EASY with a priority of these two, weighted by alpha,
    and the law of P. Our reading, unconfirmed: the sum, its units, the value of alpha, RT as wait
    plus estimate, and backfilling in the order of priority too. With alpha = 0 it is EASY.

    A pass costs time in proportion to the queue, since all priorities change with time.

    Parameters
    ----------
    alpha
        min^2, weight of the criticality, unconfirmed.
    limit
        The probability to continue after an immediate response.
    decline
        1/min, decline of that probability.
    backfill
        The order in which later jobs are tried, see
        :class:`~hpcrowd.environment.schedulers.easy.EASY`.

    Raises
    ------
    QuantityError
        If a number is negative or not finite, or the limit is not a probability.
    """

    name = "creasy"
    compiled = "hpcrowd.environment.engine.passes.ordered:CreasyPass"

    alpha: float = ALPHA
    limit: float = LIMIT
    decline: float = DECLINE
    backfill: str = "queue"

    def __post_init__(self) -> None:
        for what in ("alpha", "limit", "decline"):
            value = getattr(self, what)
            if not (isfinite(value) and value >= 0):
                raise QuantityError(f"creasy: {what} {value}: must be 0 or more")
        if self.limit > 1:
            raise QuantityError(
                f"creasy: limit {self.limit}: is a probability and must be at most 1"
            )
        check_backfill(self.backfill)

    @override
    def key(self, job: WaitingJob, now: int) -> float:
        wait = now - job.submit
        slope = self.decline * ((wait + job.estimate) / 60) + 1.0
        return -(wait / 60 + self.alpha * (self.limit * self.decline / (slope * slope)))

    @property
    @override
    def order_words(self) -> str:
        return "by seniority and criticality"
