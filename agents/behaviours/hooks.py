"""Hooks that write to the log of decisions, set only if there is a log.

=================================== ================================================================
users                               place
=================================== ================================================================
with a composed behaviour           where it asks its parts for the arrival of a released unit, and
                                    where it has asked the reactions: :class:`Noting`
rigid                               all at once: :func:`note_replaying`
with another behaviour of a replay  where the user submits
with generated work                 where they submit: :meth:`GeneratedUser.note_submitted`
=================================== ================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, override

from hpcrowd.agents.behaviours.activity import Activity
from hpcrowd.agents.behaviours.composed import Composed, Rigid
from hpcrowd.agents.behaviours.decisions import DecisionLog, Kind, What, Why, kind_of
from hpcrowd.agents.behaviours.think import Pause, Think
from hpcrowd.agents.behaviours.when import Reason
from hpcrowd.environment.jobs import UNKNOWN, State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hpcrowd.agents.behaviours.parts import Note, Reaction
    from hpcrowd.agents.behaviours.user import ReplayUser, User
    from hpcrowd.agents.behaviours.when import Release
    from hpcrowd.environment.jobs import Int64s


#: Reasons of submissions by what released the unit.
REASONS = {
    Reason.START: Why.RECORDED,
    Reason.ENDED: Why.ENDED,
    Reason.FOLLOWS: Why.FOLLOWS,
}


class NotedThink(Think):
    """Wraps a think part and remembers the last pause."""

    def __init__(self, inner: Think) -> None:
        self.inner = inner
        self.last: Pause | None = None

    @override
    def begin(self, user: ReplayUser) -> None:
        self.inner.begin(user)

    @override
    def submitted(self, user: ReplayUser, release: Release, first: int, last: int) -> None:
        self.inner.submitted(user, release, first, last)

    @override
    def pause(self, user: ReplayUser, release: Release) -> Pause:
        self.last = Pause(*self.inner.pause(user, release))
        return self.last


class NotedWindow(Activity):
    """Wraps an activity part and remembers the last wait."""

    def __init__(self, inner: Activity) -> None:
        self.inner = inner
        self.last: tuple[int, int] | None = None

    @override
    def begin(self, user: User) -> None:
        self.inner.begin(user)

    @override
    def is_open(self, user: User, at: int) -> bool:
        return self.inner.is_open(user, at)

    @override
    def next_open(self, user: User, at: int, release: Release) -> int:
        opens = self.inner.next_open(user, at, release)
        self.last = at, opens - at
        return opens


class Noting:
    """Notes what a composed behaviour decides. One for each behaviour, shared by its users.

    Parameters
    ----------
    log
        The log.
    behaviour
        The behaviour, whose parts are wrapped to remember their answers.
    """

    def __init__(self, log: DecisionLog, behaviour: Composed) -> None:
        self.log = log
        self.behaviour = behaviour
        self.kind = kind_of(behaviour.units, behaviour.when.work)
        self.breaks = behaviour.think.breaks
        self.think = NotedThink(behaviour.think)
        self.window = None if behaviour.window is None else NotedWindow(behaviour.window)
        behaviour.think, behaviour.window = self.think, self.window
        self._due: dict[int, tuple[Why, int, int]] = {}
        self._last = UNKNOWN  # the last unit whose arrival was computed

    def arrival(self, user: ReplayUser, release: Release, earliest: int = 0) -> int:
        """Return the arrival given by the behaviour, not before ``earliest``, and note why."""
        self.think.last = None
        if self.window is not None:
            self.window.last = None
        at = self.behaviour.arrival(user, release)
        at = self.behaviour.not_before(user, release, at, earliest)
        why, unit = REASONS[release.reason], release.unit
        self._last = unit
        cause = unit - 1 if why == Why.FOLLOWS else release.awaited
        pause = release.pause
        if self.think.last is not None:
            pause = self.think.last.seconds
            if self.breaks and why == Why.ENDED and not self.think.last.stays:
                why = Why.BREAK
        elif self.window is not None and self.window.last is not None:
            pause = 0  # an absent user does not think
        left = at - release.at - pause
        if self.window is not None and self.window.last is not None:
            since, waited = self.window.last
            self._wait(user, since, self.window.inner.why, unit, cause, waited)
            left -= waited
        self._wait(user, at - left, Why.OWN, unit, cause, left)
        if self.behaviour.reactions:
            self._due[unit] = why, cause, pause
        else:
            self._submitted(user, at, unit, why, cause, pause)
        return at

    def looks_again(self, user: ReplayUser, unit: int, at: int, reaction: Reaction) -> None:
        """Note that nothing was submitted, and when the user looks again, s."""
        now, cause = user.model.time, self._due.get(unit, (Why.OWN, UNKNOWN, 0))[1]
        name = getattr(reaction, "name", type(reaction).__name__)
        self.log.note(
            now, user.number, What.WAITS, Why.REACTION, self.kind, unit, cause, at - now, name
        )

    def notes(self, unit: int) -> bool:
        """Return whether a unit that is being submitted is noted here."""
        return unit == self._last or unit in self._due

    def decided(
        self, user: ReplayUser, unit: int, rows: Int64s, at: Int64s, notes: list[Note]
    ) -> None:
        """Note what reactions did to a unit, and its submission unless all of it was renounced."""
        for note in notes:
            what, seconds = note.logged
            where = note.cluster or (note.request_after if note.request == "partition" else "")
            self.log.note(
                note.decided,
                user.number,
                what,
                Why.REACTION,
                self.kind,
                unit,
                int(user.model.jobs.number[note.row]),
                seconds,
                f"{note.reaction} to {where}" if where else note.reaction,
            )
        why, cause, pause = self._due.pop(unit, (Why.OWN, UNKNOWN, UNKNOWN))
        stands = user.model.jobs.state[rows] != State.RENOUNCED
        if stands.any():
            self._submitted(user, int(at[stands].min()), unit, why, cause, pause)

    def _wait(
        self, user: ReplayUser, since: int, why: Why, unit: int, cause: int, seconds: int
    ) -> None:
        if seconds:
            # A shorter pause is noted with the pause itself, not as a wait.
            since += min(seconds, 0)
            self.log.note(since, user.number, What.WAITS, why, self.kind, unit, cause, seconds)

    def _submitted(
        self, user: ReplayUser, at: int, unit: int, why: Why, cause: int, pause: int
    ) -> None:
        self.log.note(at, user.number, What.SUBMITTED, why, self.kind, unit, cause, pause)


def note_replaying(log: DecisionLog, users: Iterable[ReplayUser]) -> None:
    """Make users of a recorded trace note their decisions; call it before any of them begins."""
    noted: set[int] = set()
    for user in users:
        user.log = log
        behaviour = user.behaviour
        if isinstance(behaviour, Composed):
            if id(behaviour) not in noted:
                noted.add(id(behaviour))
                behaviour.note_in(Noting(log, behaviour))
            kind = type(behaviour)
            if kind.begin is not Composed.begin or kind.finished is not Composed.finished:
                # Such a subclass may submit units that no part has released.
                user.note_submissions(log, behaviour.noting)
        elif type(behaviour) is Rigid:
            start = user.work.sessions.start[user.sessions.start : user.sessions.stop]
            for session, at in zip(user.sessions, start.tolist(), strict=True):
                log.note(at, user.number, What.SUBMITTED, Why.RECORDED, Kind.SESSION, session)
        else:
            user.note_submissions(log)


def note_generating(log: DecisionLog, users: Iterable[User]) -> None:
    """Make users with generated work note their decisions; call it before the run begins."""
    for user in users:
        user.log = log
