"""Responses by which users need less: degrade, reconfigure, renounce (energy sufficiency).

Less of the machine at a time, or less work; see :mod:`hpcrowd.agents.behaviours.reactions`. Some of
the work that is lost may come back later, as new jobs: the rebound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.agents.behaviours.decisions import What, Why
from hpcrowd.agents.behaviours.parts import Note, setting
from hpcrowd.agents.behaviours.reactions import FACTOR, Draws, NewJobs, Response
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.requests import resize

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.reactions import Intention
    from hpcrowd.agents.behaviours.user import ReplayUser


@dataclass(frozen=True)
class Saved:
    """What a job lost, as it was when its user decided.

    Attributes
    ----------
    row
        Of the job.
    processors, run_time, requested_time
        Of the job that comes back; s.
    """

    row: int
    processors: int
    run_time: int
    requested_time: int


class Rebound:
    """The work that comes back after one reaction.

    Parameters
    ----------
    name
        Of the reaction.
    share
        Probability that what a job lost comes back.
    after
        s until it does.
    """

    def __init__(self, name: str, share: float, after: int) -> None:
        self.name, self.share, self.after = name, share, after
        self._draws = Draws()
        self._new: NewJobs | None = None

    def begin(self, user: ReplayUser) -> None:
        """Prepare for a user, before the run begins.

        Raises
        ------
        QuantityError
            Under the recorded schedule.
        """
        if any(engine.scheduler is None for engine in user.site.look().engines):
            raise QuantityError(
                f"reaction {self.name}: rebound {self.share:g}: under the recorded schedule jobs "
                "start as recorded, and what comes back has no record; choose a scheduler"
            )
        if self._new is None or self._new.jobs is not user.model.jobs:
            self._new = NewJobs(user.model.jobs)
        stream = user.model.streams.generator("rebound", self.name, user.number)
        self._draws.begin(user, stream)

    def expect(self, intention: Intention, place: int, processors: int) -> None:
        """Let the work of some processors of a job come back, with the probability that it does."""
        user, row = intention.user, int(intention.rows[place])
        if self._draws.of(user, intention.rows[place : place + 1])[0] >= self.share:
            return
        jobs = user.model.jobs
        saved = Saved(row, processors, int(jobs.run_time[row]), int(jobs.requested_time[row]))
        self._call_at(int(intention.at[place]) + self.after, user, saved)

    def _call_at(self, at: int, user: ReplayUser, saved: Saved) -> None:
        if hasattr(user, "call_at"):  # of a population: it may be away, or have left
            user.call_at(at, self._come_back, saved)
        else:
            user.model.call_at(at, self._come_back, user, saved)

    def on_finished(self, unit: int, now: int) -> None:
        """Do nothing: nobody waits for what comes back."""

    def _come_back(self, user: ReplayUser, saved: Saved) -> None:
        """Submit the work as a new job, when the user is at work."""
        from hpcrowd.agents.behaviours.user import Gone  # a simulation, which files do not need

        model, now = user.model, user.model.time
        if isinstance(user.behaviour, Gone):
            return
        at = user.behaviour.at_work(user, now, 0)
        if at > now:
            self._call_at(at, user, saved)
            return
        row = self._add(saved)
        rows = np.array([row])
        if hasattr(user, "call_at"):  # the jobs of its units are found by their numbers
            model.add_unit(self, rows)
        user.site.submit(rows, now)
        if user.leaving is not None:
            user.leaving.submitted(user, rows)
        jobs = model.jobs
        after, number = (saved.processors, int(jobs.run_time[row])), str(jobs.number[saved.row])
        user.notes.append(
            Note(row, self.name, "rebound", now, 0, 0, *after, 0, "", 0, "rebound", "", number)
        )
        user.note_jobs(What.RETURNED, Why.REACTION, rows, [UNKNOWN], self.name)

    def _add(self, saved: Saved) -> int:
        """Add a job to the table, and return its row."""
        assert self._new is not None
        jobs, row = self._new.jobs, self._new.add(saved.row)
        before = int(jobs.processors[row])
        jobs.processors[row] = saved.processors
        jobs.run_time[row] = saved.run_time
        jobs.requested_time[row] = saved.requested_time
        resize(jobs, row, before)
        return row


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
