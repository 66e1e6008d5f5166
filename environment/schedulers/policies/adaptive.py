"""The adaptive scheduler: the state of the system picks the policy.

A part of the state is whether longer jobs need more processors: Spearman's correlation of the two,
week by week. :class:`WeeklyCorrelation` forecasts it as the mean of the previous two weeks. T. N.
Minh (Workload modeling and performance evaluation in parallel systems, thesis, Leiden 2012, section
7.4) found the sign of this forecast right in about 74 % of the weeks of twelve traces.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, cast, override

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError, SchedulerError
from hpcrowd.environment.jobs import Int64s, Names
from hpcrowd.environment.quantities import parse_duration
from hpcrowd.environment.schedulers.base import Look, Scheduler, WaitingJob

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only


#: Time between checks of the state. The source leaves it open (unconfirmed).
EVERY = "1h"

#: The system is overloaded if waiting jobs request more than this many times the processors that
#: are up. The source names queue and nodes but no measure (unconfirmed).
OVERLOAD = 1.0

# Policies of the states. From the source: a policy without backfilling when overloaded, selective
# with one threshold where the correlation is positive; categorized selective was better where it is
# negative (Figure 7.4). Our choice (unconfirmed): overload takes precedence, and SJF is the policy
# without backfilling, since under FCFS a long queue keeps itself long.
OVERLOAD_POSITIVE = "selective"
OVERLOAD_NEGATIVE = "sjf"
UNDERLOAD_POSITIVE = "selective"
UNDERLOAD_NEGATIVE = "selective-categorized"


@dataclass(eq=False, repr=False, kw_only=True)
class Adaptive(Scheduler):
    """Adaptive scheduling: overload and the expected correlation decide which policy is used.

    The state of the system is checked at intervals. It is *overloaded* if waiting jobs request more
    than ``overload`` times the processors that are up. It is *positive* unless long jobs are
    expected to need fewer processors this week: the expected rank correlation of run time and
    processors is the mean of the previous two weeks, over jobs that have ended, and 0 if there were
    none. If another policy is in use, that of the state takes over queue and running jobs.

    Source: Minh 2012, section 7.4, which sketches the four states and the forecast by two weeks.

    A check costs time in proportion to the queue, and once a week to the jobs of the trace; a
    take-over costs as much as a pass of the new policy, which makes a new plan.

    Parameters
    ----------
    every
        Time between checks, such as ``1h`` or ``30m``.
    overload
        Factor on the processors that are up.
    overload_positive, overload_negative, underload_positive, underload_negative
        The policy of each state, as text. It may have one option, such as
        ``underload-negative=easy:backfill=sjbf``.

    Raises
    ------
    QuantityError
        If one of them is not valid.
    """

    name = "adaptive"

    every: str = EVERY
    overload: float = OVERLOAD
    overload_positive: str = OVERLOAD_POSITIVE
    overload_negative: str = OVERLOAD_NEGATIVE
    underload_positive: str = UNDERLOAD_POSITIVE
    underload_negative: str = UNDERLOAD_NEGATIVE

    def __post_init__(self) -> None:
        self.every_s = parse_duration(self.every)
        if self.every_s < 1:
            raise QuantityError(f"every {self.every!r}: must be at least 1 s")
        if not (math.isfinite(self.overload) and self.overload >= 0):
            raise QuantityError(f"overload {self.overload}: must be 0 or more")
        from hpcrowd.environment.schedulers.names import parse_scheduler

        for policy in self.policies:
            made = parse_scheduler(policy)
            if made is None or made.nodes or isinstance(made, Adaptive):
                raise QuantityError(
                    f"adaptive with {policy!r}: not a policy to switch to; choose another"
                )

    @override
    def know(self, names: Names) -> None:
        from hpcrowd.environment.schedulers.names import scheduler_for

        for policy in self.policies:
            scheduler_for(policy, names)
        super().know(names)

    @override
    def at_first(self, cluster: Cluster) -> Scheduler:
        from hpcrowd.environment.schedulers.names import scheduler_for

        return cast(Scheduler, scheduler_for(self.policies[0], cluster.jobs.names))

    @override
    def take_charge(self, cluster: Cluster) -> None:
        from hpcrowd.environment.platform.part import timeline_of  # circle: it switches policies

        timeline_of(cluster).follow(self)

    @property
    def policies(self) -> tuple[str, ...]:
        """The policy of each state, in text; that of the beginning comes first."""
        return (
            self.underload_positive,
            self.underload_negative,
            self.overload_positive,
            self.overload_negative,
        )

    def policy(self, wanted: int, up: int, correlation: float) -> str:
        """Return the policy to use.

        Parameters
        ----------
        wanted
            Processors that all waiting jobs request together.
        up
            Processors that are up.
        correlation
            The correlation expected for this week; nan if unknown.
        """
        negative = correlation < 0  # false for nan
        if wanted > self.overload * up:
            return self.overload_negative if negative else self.overload_positive
        return self.underload_negative if negative else self.underload_positive

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        """Raise an error: the cluster calls the policy in use instead."""
        raise SchedulerError("adaptive: chooses policies, not jobs; give it to a Simulation")


#: Number of weeks whose mean is the forecast for the next one (Minh 2012, section 7.4).
WEEKS_LOOKED_BACK = 2

#: Value where there is no correlation.
NO_CORRELATION = float("nan")


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Return Spearman's rank correlation of two series, ties included; nan if there is none.

    There is none for fewer than two pairs, or if all values of one series are equal.

    Parameters
    ----------
    first, second
        Shape (n,).
    """
    from scipy.stats import rankdata

    a, b = rankdata(first), rankdata(second)
    a -= a.mean() if len(a) else 0.0
    b -= b.mean() if len(b) else 0.0
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else NO_CORRELATION


def weekly_correlations(
    submit: Int64s, run_time: Int64s, processors: Int64s, origin: int | None = None
) -> NDArray[np.float64]:
    """Return the correlation of run time and processors in each week; nan where there is none.

    Parameters
    ----------
    submit
        Submissions, s, shape (jobs,).
    run_time, processors
        Of the same jobs.
    origin
        Second at which the first week begins; the first submission unless given. Jobs before it
        are left out.

    Returns
    -------
    ndarray
        Shape (weeks,), up to the week of the last submission.
    """
    if not len(submit):
        return np.zeros(0)
    begin = int(submit.min()) if origin is None else origin
    week = (submit - begin) // WEEK
    order = np.argsort(week, kind="stable")
    weeks = int(week.max()) + 1
    edges = np.searchsorted(week[order], np.arange(max(weeks, 0) + 1))
    return np.array(
        [
            rank_correlation(run_time[order[low:high]], processors[order[low:high]])
            for low, high in pairwise(edges)
        ]
    )


def expected_correlation(before: Sequence[float] | NDArray[np.float64]) -> float:
    """Return the forecast for the week after those given: the mean of the last two of them.

    If one of the two has no correlation, the forecast is the other one; nan if neither has one.

    Parameters
    ----------
    before
        Correlations of the weeks so far, in order.
    """
    last = np.asarray(before, np.float64)[-WEEKS_LOOKED_BACK:]
    known = last[~np.isnan(last)]
    return float(known.mean()) if len(known) else NO_CORRELATION


class WeeklyCorrelation:
    """Forecast of this week's correlation from jobs that have ended.

    Jobs belong to the week in which they were submitted. Only jobs passed to :meth:`ended` are
    known, so that nothing is used before it could be observed. The forecast is computed once a
    week, at the first call in it; jobs of an earlier week that end later count from the next week
    on.

    Parameters
    ----------
    origin
        Second at which the first week begins.
    """

    def __init__(self, origin: int = 0) -> None:
        self.origin = origin
        self._jobs: dict[int, list[tuple[Int64s, Int64s]]] = {}
        self._asked = -1
        self._answer = NO_CORRELATION

    def ended(self, submit: Int64s, run_time: Int64s, processors: Int64s) -> None:
        """Take note of jobs that have ended, one value a job."""
        weeks = (submit - self.origin) // WEEK
        for week in np.unique(weeks):
            which = weeks == week
            jobs = self._jobs.setdefault(int(week), [])
            jobs.append((run_time[which], processors[which]))

    def expected(self, now: int) -> float:
        """Return the forecast for the week of ``now``; nan while nothing is known."""
        week = (now - self.origin) // WEEK
        if week != self._asked:
            self._asked = week
            first = week - WEEKS_LOOKED_BACK
            self._jobs = {one: jobs for one, jobs in self._jobs.items() if one >= first}
            self._answer = expected_correlation(
                [self._correlation(one) for one in range(first, week)]
            )
        return self._answer

    def _correlation(self, week: int) -> float:
        jobs = self._jobs.get(week)
        if not jobs:
            return NO_CORRELATION
        run_time, processors = (np.concatenate(part) for part in zip(*jobs, strict=True))
        return rank_correlation(run_time, processors)
