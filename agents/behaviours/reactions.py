"""Reactions beyond the submission time: the fourth part of a composed behaviour.

See :mod:`composed`. When a unit of work is due, each reaction sees what its user is about to
submit, an :class:`Intention`, and may change it. What it changed is noted with the user, as a
:class:`Note`. Ready-made reactions stand in :mod:`hpcrowd.agents.behaviours.responses`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpcrowd.environment.jobs import State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.environment.jobs import Int64s


class Note(NamedTuple):
    """What one reaction did to one job. Work is processors times run time."""

    row: int  #: of the job in the table
    reaction: str  #: name of the reaction
    response: str  #: what kind it is: delay, degrade, reconfigure, renounce, switch
    decided: int  #: s; when the unit of work was due
    processors: int  #: before
    run_time: int  #: s; before
    processors_after: int  #: 0 if the job was renounced
    run_time_after: int  #: s; 0 if the job was renounced
    delay: int = 0  #: s; how much later the job is submitted
    cluster: str = ""  #: the cluster it went to instead, empty if it stayed


class Intention:
    """A unit that its user is about to submit.

    Parameters
    ----------
    user
        The user.
    unit
        The unit, due now.

    Attributes
    ----------
    rows
        Its jobs, rows in the table, by submission.
    at
        s; when each is to be submitted, shape (jobs,), now or later.
    cluster
        The name of the cluster that each is to be submitted to, shape (jobs,); None for the first
        one for all.
    """

    def __init__(self, user: ReplayUser, unit: int) -> None:
        self.user = user
        self.unit = unit
        self.rows = user.jobs_of(unit)
        recorded = user.model.jobs.recorded_submit[self.rows]
        self.at: Int64s = recorded - recorded[0] + user.model.time
        self.cluster: list[str] | None = None
        self._switched: dict[int, str] = {}

    @property
    def stands(self) -> NDArray[np.bool_]:
        """Which jobs have not been renounced, shape (jobs,)."""
        stands: NDArray[np.bool_] = self.user.model.jobs.state[self.rows] != State.RENOUNCED
        return stands

    def delay(self, place: int, at: int, reaction: str) -> None:
        """Submit a job of the unit later, at second ``at``, and note it."""
        later = at - int(self.at[place])
        if later > 0:
            self.at[place] = at
            self._note(place, reaction, "delay", delay=later)

    def resize(
        self,
        place: int,
        processors: int,
        run_time: int,
        requested_time: int,
        reaction: str,
        response: str,
    ) -> None:
        """Give a job of the unit other processors and times, and note it."""
        jobs, row = self.user.model.jobs, self.rows[place]
        before = int(jobs.processors[row]), int(jobs.run_time[row])
        jobs.processors[row] = processors
        jobs.run_time[row] = run_time
        jobs.requested_time[row] = requested_time
        self._note(place, reaction, response, before=before)

    def renounce(self, place: int, reaction: str) -> None:
        """Do not run a job of the unit, and note it; it is over when it would have arrived."""
        jobs, row = self.user.model.jobs, self.rows[place]
        before = int(jobs.processors[row]), int(jobs.run_time[row])
        jobs.state[row] = State.RENOUNCED
        if place in self._switched:
            self.switch(place, self.user.site.name, reaction)  # it goes nowhere
        self._note(place, reaction, "renounce", before=before, after=(0, 0))

    def switch(self, place: int, cluster: str, reaction: str) -> None:
        """Submit a job of the unit to another cluster; noted when it is submitted.

        Of several that switch a job the last one counts.
        """
        home = self.user.site.name
        if self.cluster is None:
            self.cluster = [home] * len(self.rows)
        self.cluster[place] = cluster
        self._switched.pop(place, None)
        if cluster != home:
            self._switched[place] = reaction

    def submit(self) -> int:
        """Submit the jobs as they are now, and return the last submission, s."""
        user, at = self.user, self.at
        if self.cluster is None and self._is_as_due():
            user.submit(self.unit, user.model.time)  # the shortest way
            return int(at[-1])
        user.submitted += 1
        if self.cluster is None:
            user.site.submit(self.rows, at)
        else:
            self._submit_apart(self.cluster)
        return int(at.max())

    def _is_as_due(self) -> bool:
        """Return whether the first job comes now and the others as far apart as recorded."""
        now, rows = self.user.model.time, self.rows
        if len(rows) == 1:
            return int(self.at[0]) == now
        recorded = self.user.model.jobs.recorded_submit[rows]
        return bool((self.at == recorded - recorded[0] + now).all())

    def _submit_apart(self, clusters: list[str]) -> None:
        """Submit each job to its own cluster; note what its speed makes of the run time."""
        model = self.user.model
        run_time = model.jobs.run_time[self.rows]
        for name in dict.fromkeys(clusters):
            which = np.array([cluster == name for cluster in clusters])
            model.site(name).submit(self.rows[which], self.at[which])
        for place, reaction in self._switched.items():
            before = int(model.jobs.processors[self.rows[place]]), int(run_time[place])
            self._note(place, reaction, "switch", before=before, cluster=clusters[place])

    def _note(
        self,
        place: int,
        reaction: str,
        response: str,
        *,
        before: tuple[int, int] | None = None,
        after: tuple[int, int] | None = None,
        delay: int = 0,
        cluster: str = "",
    ) -> None:
        jobs, row = self.user.model.jobs, int(self.rows[place])
        after = after or (int(jobs.processors[row]), int(jobs.run_time[row]))
        now = self.user.model.time
        self.user.notes.append(
            Note(row, reaction, response, now, *(before or after), *after, delay, cluster)
        )


class Reaction:
    """Changes what a user is about to submit. Shared by all users of a behaviour; subclass it."""

    #: Whether :meth:`heard` wants to be called.
    listens = False

    def begin(self, user: ReplayUser) -> None:
        """Get to know a user, before time begins to run."""

    def heard(self, user: ReplayUser, unit: int, now: int) -> None:
        """Take notice of the end of a unit."""

    def react(self, user: ReplayUser, intention: Intention) -> None:
        """Change the intention, or leave it."""
        raise NotImplementedError(f"{type(self).__name__} has to define react()")
