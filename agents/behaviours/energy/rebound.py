"""Rebound: work that users saved comes back later, as new jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.behaviours.decisions import What, Why
from hpcrowd.agents.behaviours.parts import Note
from hpcrowd.agents.behaviours.reactions import Draws
from hpcrowd.agents.behaviours.tasks.new_jobs import NewJobs
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.requests import resize

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
