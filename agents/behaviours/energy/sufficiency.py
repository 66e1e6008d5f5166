"""Responses by which users need less: degrade, reconfigure, renounce (energy sufficiency).

Less of the machine at a time, or less work; see :mod:`hpcrowd.agents.behaviours.reactions`. Some of
the work that is lost may come back later, see :mod:`hpcrowd.agents.behaviours.energy.rebound`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, override

from hpcrowd.agents.behaviours.decisions import What
from hpcrowd.agents.behaviours.energy.rebound import Rebound
from hpcrowd.agents.behaviours.parts import setting
from hpcrowd.agents.behaviours.reactions import FACTOR, Response
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import round_half_up

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.reactions import Intention
    from hpcrowd.agents.behaviours.user import ReplayUser


@dataclass(eq=False, kw_only=True)
class Losing(Response):
    """A response by which work is lost, some of which may come back later (rebound).

    What a job lost comes back as a new job of the user: the processors that the job has less, for
    its run time. Nobody waits for it, and no reaction concerns it. It is submitted when the user is
    next at work.

    Parameters
    ----------
    trigger, share, probability, fatigue, recovery, name
        See :class:`~hpcrowd.agents.behaviours.reactions.Response`.
    rebound
        Probability that what a job lost comes back, drawn for each job.
    rebound_after
        s from the planned submission of the job until it does.

    Raises
    ------
    QuantityError
        If a number is out of range; before the run, if work is to come back under the recorded
        schedule.
    """

    rebound: float = setting(
        0.0, "probability that what a job lost comes back as a new job (unconfirmed)",
        least=0, most=1,
    )  # fmt: skip
    rebound_after: int = setting(
        7 * DAY, "time until it comes back (our choice; unconfirmed)", "s", above=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.rebound <= 1:
            raise QuantityError(f"rebound {self.rebound:g}: must be between 0 and 1")
        if self.rebound_after <= 0:
            raise QuantityError(f"rebound_after {self.rebound_after} s: must be more than 0")
        self._rebound: Rebound | None = None
        if self.rebound:
            self._rebound = Rebound(self.name, self.rebound, self.rebound_after)

    @override
    def begin(self, user: ReplayUser) -> None:
        super().begin(user)
        if self._rebound is not None:
            self._rebound.begin(user)

    def lose(self, intention: Intention, place: int, processors: int) -> None:
        """Let the work of some processors of a job come back, if it does; before they are lost."""
        if self._rebound is not None:
            self._rebound.expect(intention, place, processors)


@dataclass(eq=False, kw_only=True)
class Shrink(Response):
    """Request fewer processors; subclass it and define :meth:`times`.

    A job of p processors gets max(1, round(factor * p)); if that is p, it stays as it is.

    Parameters
    ----------
    trigger, share, probability, fatigue, recovery, name
        See :class:`~hpcrowd.agents.behaviours.reactions.Response`.
    factor
        Share of the processors that is left; by default half of them.
    """

    factor: float = setting(
        FACTOR, "share of the processors that is left (unconfirmed)", above=0, below=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.factor < 1:
            raise QuantityError(
                f"{self.response} factor {self.factor:g}: between 0 and 1, such as 0.5"
            )

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        jobs, row = user.model.jobs, intention.rows[place]
        before = int(jobs.processors[row])
        after = max(1, round_half_up(self.factor * before))
        if after < before:
            run, requested = self.times(
                int(jobs.run_time[row]), int(jobs.requested_time[row]), before, after
            )
            self.lose(intention, place, before - after)
            intention.resize(place, after, run, requested, self.name, self.response)

    def lose(self, intention: Intention, place: int, processors: int) -> None:
        """Take notice of processors that a job is about to lose."""

    def times(self, run: int, requested: int, before: int, after: int) -> tuple[int, int]:
        """Return run time and requested time, s, of a job with fewer processors."""
        raise NotImplementedError(f"{type(self).__name__} must define times()")


@dataclass(eq=False, kw_only=True)
class Degrade(Losing, Shrink):
    """Request fewer processors for the same time: less work.

    A job of p processors gets max(1, round(factor * p)); if that is p, it stays as it is.

    Parameters
    ----------
    trigger, share, probability, fatigue, recovery, name, factor
        See :class:`Shrink`.
    rebound, rebound_after
        See :class:`Losing`.
    """

    response = "degrade"
    logged = What.DEGRADED

    @override
    def times(self, run: int, requested: int, before: int, after: int) -> tuple[int, int]:
        return run, requested


@dataclass(eq=False, kw_only=True)
class Reconfigure(Shrink):
    """Request fewer processors for a longer time: the same work.

    A job of p processors and run time r gets p' = max(1, round(factor * p)) processors and the run
    time p * r / (p' * efficiency); its requested time likewise. A job that would not get fewer
    processors stays as it is.

    Parameters
    ----------
    trigger, share, probability, fatigue, recovery, name, factor
        See :class:`Shrink`.
    efficiency
        Work per second of one of the fewer processors, relative to one of the original ones. Below
        1 the job needs more work than before, above 1 less. 1 is unconfirmed (Madon et al. 2022).
    """

    response = "reconfigure"
    logged = What.RECONFIGURED

    efficiency: float = setting(
        1.0, "work of a second on one of the fewer processors (unconfirmed)", above=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.efficiency < float("inf"):
            raise QuantityError(f"efficiency {self.efficiency:g}: must be positive, such as 0.9")

    @override
    def times(self, run: int, requested: int, before: int, after: int) -> tuple[int, int]:
        fewer = after * self.efficiency
        return round_half_up(before * run / fewer), round_half_up(before * requested / fewer)


@dataclass(eq=False, kw_only=True)
class Renounce(Losing):
    """Do not run it. It is recorded; for its user it is finished when it would be submitted.

    Parameters
    ----------
    trigger, share, probability, fatigue, recovery, name, rebound, rebound_after
        See :class:`Losing`.
    """

    response = "renounce"
    logged = What.RENOUNCED

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        self.lose(intention, place, int(user.model.jobs.processors[intention.rows[place]]))
        intention.renounce(place, self.name)
