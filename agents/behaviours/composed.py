"""Behaviours put together from parts: when x think time x activity window x reactions.

=============== ============================= ====================================================
part            question                      classes
=============== ============================= ====================================================
when            what may I submit next?       :mod:`hpcrowd.agents.behaviours.when`
think           how long do I think first?    :mod:`hpcrowd.agents.behaviours.think`
window          am I at work then?            :mod:`hpcrowd.agents.behaviours.activity`
reactions       do I do something else?       :mod:`hpcrowd.agents.behaviours.reactions`
=============== ============================= ====================================================

Named combinations, one for each published model, stand in :mod:`hpcrowd.agents.presets`.

Two behaviours are classes here, ready to be used or to be subclassed. :class:`Rigid` keeps the
recorded submissions. :class:`ThinkTime` keeps the think times instead (Madon et al. 2024,
section 4): users wait for what they waited for, and submit earlier or later as the cluster is
faster or slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, override

from hpcrowd.agents.behaviours.think import RecordedPauses
from hpcrowd.agents.behaviours.user import Behaviour, ReplayUser
from hpcrowd.agents.behaviours.when import Reason, Release, SessionGraph, When
from hpcrowd.environment.jobs import UNKNOWN

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.activity import Activity
    from hpcrowd.agents.behaviours.hooks import Noting
    from hpcrowd.agents.behaviours.reactions import Reaction
    from hpcrowd.agents.behaviours.think import Think
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.environment.jobs import Int64s


class Composed(Behaviour[ReplayUser]):
    """A behaviour made of parts. One object serves all users that share it.

    A unit that is released at second r with a pause of p s arrives at r + p, or when the user's
    window next opens. A user who is *absent* at r, in a behaviour with ``waits=True``, does not
    think at all and submits as soon as it is back (Zakay and Feitelson 2015, section VII); without
    it thinks wherever it is, and only the submission has to wait. What comes at its recorded second
    (the first work of a user) asks for neither.

    Parameters
    ----------
    when
        Which unit comes next, and when it is released.
    think
        The pause before it; the recorded one unless given.
    window
        When the user is at work; None for always.
    reactions
        What the user does instead, in their order; each sees what those before have left.
    waits
        Whether an absent user puts off its thinking too.
    """

    def __init__(
        self,
        when: When,
        think: Think | None = None,
        window: Activity | None = None,
        reactions: Sequence[Reaction] = (),
        *,
        waits: bool = False,
    ) -> None:
        self.when = when
        self.think = think or RecordedPauses()
        self.window = window
        self.reactions = tuple(reactions)
        self.waits = waits
        self.units = when.units
        self.reacts = when.reacts or any(reaction.listens for reaction in self.reactions)
        self._span = memoryview(when.units.last - when.units.start)
        self._plain = type(self.think) is RecordedPauses and window is None
        # What most behaviours do without, and what costs a third of a reaction.
        self._listening = tuple(reaction for reaction in self.reactions if reaction.listens)
        self._direct = self._plain and type(self).arrival is Composed.arrival
        self._follows = type(when).sent is not When.sent
        self._arrival = self.arrival
        self.noting: Noting | None = None

    def __repr__(self) -> str:
        parts = [self.when, self.think, self.window, *self.reactions]
        names = [type(part).__name__ for part in parts if part is not None]
        return f"<{type(self).__name__} {' x '.join(names)}>"

    def note_in(self, noting: Noting) -> None:
        """Let what is decided from now on be noted, see :mod:`hpcrowd.agents.behaviours.hooks`."""
        # Arrivals are asked for where they pass anyway: without a log nothing is checked.
        self.noting, self._arrival, self._direct = noting, noting.arrival, False

    @override
    def begin(self, user: ReplayUser) -> None:
        """Let the parts get to know the user, and submit what comes first."""
        self.think.begin(user)
        if self.window is not None:
            self.window.begin(user)
        for reaction in self.reactions:
            reaction.begin(user)
        for release in self.when.begin(user):
            self._go_on(user, release)

    @override
    def finished(self, user: ReplayUser, unit: int, now: int) -> None:
        """Submit what the end of a unit releases."""
        for reaction in self._listening:
            reaction.heard(user, unit, now)
        for release in self.when.finished(user, unit, now):
            self._go_on(user, release)

    @override
    def lost(self, user: ReplayUser, rows: Int64s, now: int) -> None:
        """Submit stopped jobs again when the user is next at work."""
        pause = user.model.resubmit_after
        at = now + pause
        if self.window is not None:
            release = Release(UNKNOWN, now, Reason.ENDED, pause, UNKNOWN)
            at = self.window.next_open(user, at, release)
        user.model.resubmit(rows, at)

    def arrival(self, user: ReplayUser, release: Release) -> int:
        """Return the second at which a released unit is to arrive."""
        if self._plain or release.reason == Reason.START:
            return release.at + release.pause
        window = self.window
        if window is not None and self.waits and not window.is_open(user, release.at):
            return window.next_open(user, release.at, release)
        pause, stays = self.think.pause(user, release)
        at = release.at + pause
        return at if stays or window is None else window.next_open(user, at, release)

    def _go_on(self, user: ReplayUser, release: Release | None) -> None:
        """Submit a unit, and those that need nothing but its submission."""
        while release is not None:
            unit = release.unit
            at = release.at + release.pause if self._direct else self._arrival(user, release)
            if self.reactions:
                # Whether to react is decided when the moment has come.
                user.model.call_at(at, self._decide, user, unit)
                return
            user.submit(unit, at)
            if not self._follows:
                return
            release = self.when.sent(user, unit, at + self._span[unit])

    def _decide(self, user: ReplayUser, unit: int) -> None:
        """Ask the reactions what becomes of a unit that is due now."""
        from hpcrowd.agents.behaviours.reactions import Intention

        intention = Intention(user, unit)
        before = len(user.notes)
        for reaction in self.reactions:
            reaction.react(user, intention)
        last = intention.submit()
        if self.noting is not None:
            self.noting.decided(user, intention, user.notes[before:])
        self._go_on(user, self.when.sent(user, unit, last))


class Rigid(Behaviour[ReplayUser]):
    """Submit every job at its recorded second (Madon et al. 2024, Definition 8)."""

    reacts = False

    def begin(self, user: ReplayUser) -> None:
        """Submit everything."""
        sessions = user.work.sessions
        first, last = user.sessions.start, user.sessions.stop
        rows = sessions.rows[sessions.session_first[first] : sessions.session_first[last]]
        user.submitted = len(user.sessions)
        user.site.submit(rows, user.model.jobs.recorded_submit[rows])


class ThinkTime(Composed):
    """Start a session its think time after the sessions it depends on are over.

    Sessions that depend on none start at their recorded second. A session with several
    predecessors starts when the think time after each of them has passed. Inside a session jobs
    are as far apart as recorded (Madon et al. 2024, section 4.2).

    Parameters
    ----------
    work
        The sessions and their dependencies.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(SessionGraph(work))
