"""The adaptive scheduler: the state of the system picks the policy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import override

from hpcrowd.environment.errors import QuantityError, SchedulerError
from hpcrowd.environment.quantities import parse_duration
from hpcrowd.environment.schedulers.base import Look, Scheduler, WaitingJob

#: How often the state is looked at. The source leaves it open (unconfirmed).
EVERY = "1h"

#: Waiting jobs ask for more than so many times the processors that are up: the system is
#: overloaded. The source names queue and nodes but no measure (unconfirmed).
OVERLOAD = 1.0

# Policies of the states. From the source: a policy without backfilling when overloaded, selective
# with one threshold where the correlation is positive; categorized selective was better where it is
# negative (Figure 7.4). Our choice (unconfirmed): which prevails when overloaded, and SJF as
# the one without backfilling, since under FCFS a long queue keeps itself long.
OVERLOAD_POSITIVE = "selective"
OVERLOAD_NEGATIVE = "sjf"
UNDERLOAD_POSITIVE = "selective"
UNDERLOAD_NEGATIVE = "selective-categorized"


@dataclass(eq=False, repr=False, kw_only=True)
class Adaptive(Scheduler):
    """Adaptive scheduling: overload and the correlation to come decide which policy is in charge.

    Once in a while the system is looked at. It is *overloaded* when waiting jobs ask for more than
    ``overload`` times the processors that are up. It is *positive* unless long jobs are expected to
    need fewer processors this week: the rank correlation of run time and processors expected is the
    mean of those of the two weeks before, of jobs that have ended, and 0 where there were none. The
    policy of that state takes over queue and running jobs, if another is in charge.

    Source: Minh 2012, section 7.4, which sketches the four states and the forecast by two weeks.

    A look costs time in proportion to the queue, once a week to the jobs of the trace; a take-over
    costs as much as a pass of the new policy, which draws its plan anew.

    Parameters
    ----------
    every
        Time from look to look, such as ``1h`` or ``30m``.
    overload
        Factor on the processors that are up.
    overload_positive, overload_negative, underload_positive, underload_negative
        The policy of each state, in text. Options of a policy go in as they are, such as
        ``underload-negative=easy:backfill=sjbf``, one at most.

    Raises
    ------
    QuantityError
        When one of them is not of that kind.
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
            if made is None or isinstance(made, Adaptive):
                raise QuantityError(
                    f"adaptive with {policy!r}: not a policy to switch to; choose another"
                )

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
        """Return the policy that is to be in charge.

        Parameters
        ----------
        wanted
            Processors for which the waiting jobs ask in all.
        up
            Processors that are up.
        correlation
            What is expected of this week; nan where there is no telling.
        """
        negative = correlation < 0  # not true of nan
        if wanted > self.overload * up:
            return self.overload_negative if negative else self.overload_positive
        return self.underload_negative if negative else self.underload_positive

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        """Refuse: the cluster lets the policy that is in charge select."""
        raise SchedulerError("adaptive: it picks policies and no jobs; give it to a Simulation")
