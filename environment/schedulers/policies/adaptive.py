"""The adaptive scheduler: the state of the system picks the policy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, override

from hpcrowd.environment.errors import QuantityError, SchedulerError
from hpcrowd.environment.jobs import Names
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
