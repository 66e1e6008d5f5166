"""Behaviours composed of parts: when x think time x activity window x reactions.

=============== ============================= ====================================================
part            question                      classes
=============== ============================= ====================================================
when            what may I submit next?       :mod:`hpcrowd.agents.behaviours.when`
think           how long do I think first?    :mod:`hpcrowd.agents.behaviours.think`
window          am I at work then?            :mod:`hpcrowd.agents.behaviours.activity`
reactions       do I do something else?       :mod:`hpcrowd.agents.behaviours.reactions`
patience        how long may my jobs wait?    :mod:`hpcrowd.agents.behaviours.patience`
=============== ============================= ====================================================

Named combinations, one for each published model, are in :mod:`hpcrowd.agents.presets`.

Two behaviours are classes here, to use or to subclass. :class:`Rigid` keeps the
recorded submissions. :class:`ThinkTime` keeps the think times instead (Madon et al. 2024,
section 4): users wait for what they waited for, and submit earlier or later as the cluster is
faster or slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, override

from hpcrowd.agents.behaviours.parts import Reaction
from hpcrowd.agents.behaviours.think import RecordedPauses, Think
from hpcrowd.agents.behaviours.user import Behaviour, ReplayUser
from hpcrowd.agents.behaviours.when import Reason, Release, SessionGraph, When
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.registry import check_objects, imported

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.activity import Activity
    from hpcrowd.agents.behaviours.hooks import Noting
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.environment.jobs import Int64s


class Composed(Behaviour[ReplayUser]):
    """A behaviour composed of parts. One object serves all users that share it.

    A unit that is released at second r with a pause of p s arrives at r + p, or when the user's
    window next opens. In a behaviour with ``waits=True`` a user who is *absent* at r does not think
    but submits on coming back (Zakay and Feitelson 2015, section VII); otherwise an absent user
    thinks too, and only the submission must wait. Neither applies to a unit that comes at its
    recorded second (the first work of a user).

    Parameters
    ----------
    when
        Decides which unit comes next, and when it is released.
    think
        The pause before it; the recorded one unless given.
    window
        Decides when the user is at work; None for always.
    reactions
        What the user does instead of submitting as usual, in order; each sees the outcome of those
        before it.
    waits
        Whether an absent user does not think until back.
    patience
        How long jobs may wait before they leave the queue, a ``Patience``; None for ever.
    """

    def __init__(
        self,
        when: When,
        think: Think | None = None,
        window: Activity | None = None,
        reactions: Sequence[Reaction] = (),
        *,
        waits: bool = False,
        patience: Any = None,
    ) -> None:
        check_objects("when", [when], When)
        self.think = think or RecordedPauses()
        check_objects("think", [self.think], Think)
        if window is not None:
            from hpcrowd.agents.behaviours.activity import Activity

            check_objects("window", [window], Activity)
        check_objects("reactions", reactions, Reaction)
        self.when = when
        self.window = window
        # Those that may look again first: others would change the jobs at every look.
        self.reactions = tuple(sorted(reactions, key=lambda reaction: not reaction.looks))
        # Most behaviours have neither, and do not import what asks reactions.
        self._reacting: Any = None
        if self.reactions:
            self._reacting = imported("hpcrowd.agents.behaviours.reactions:Reacting")(self)
        self._leaving = None if patience is None else patience.leaving()
        self.waits = waits
        self.units = when.units
        self.reacts = when.reacts or any(reaction.listens for reaction in self.reactions)
        self._span = memoryview(when.units.last - when.units.start)
        self._remembers = self.think.remembers
        self._plain = type(self.think) is RecordedPauses and window is None
        # Most behaviours do not need these, and they cost a third of a reaction.
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
        """Log decisions from now on, see :mod:`hpcrowd.agents.behaviours.hooks`."""
        # Hooked where arrivals pass anyway: without a log nothing is checked.
        self.noting, self._arrival, self._direct = noting, noting.arrival, False

    @override
    def begin(self, user: ReplayUser) -> None:
        """Prepare the parts for the user, and submit the first units."""
        self.prepare(user)
        for release in self.when.begin(user):
            self._go_on(user, release)

    def prepare(self, user: ReplayUser) -> None:
        """Prepare the parts for the user."""
        self.think.begin(user)
        if self.window is not None:
            self.window.begin(user)
        for reaction in self.reactions:
            reaction.begin(user)
        if self._leaving is not None:
            user.leaving = self._leaving
            self._leaving.begin(user)

    @override
    def finished(self, user: ReplayUser, unit: int, now: int) -> None:
        """Submit the units that the end of a unit releases."""
        for reaction in self._listening:
            reaction.heard(user, unit, now)
        graph = user.changed_graph
        if graph is not None:
            for release in graph.finished(unit, now):
                self.release(user, release)
            return
        for release in self.when.finished(user, unit, now):
            self._go_on(user, release)

    @property
    @override
    def by_graph(self) -> bool:  # type: ignore[override]
        alone = not any(reaction.submits for reaction in self.reactions)
        return self.reacts and self.when.by_graph and alone

    @override
    def edges(self, user: ReplayUser) -> Iterable[tuple[int, int, dict[str, int]]]:
        return self.when.edges(user)

    @override
    def over_at(self, user: ReplayUser, unit: int) -> int:
        over = getattr(self.when, "over", None)
        return super().over_at(user, unit) if over is None else over[unit]

    @override
    def release(self, user: ReplayUser, release: Release, earliest: int = 0) -> None:
        graph, found = user.changed_graph, [release]
        assert graph is not None
        while found:
            now = found.pop(0)
            unit = now.unit
            if self.noting is None:
                at = self.not_before(user, now, self.arrival(user, now), earliest)
            else:
                at = self.noting.arrival(user, now, earliest)
            if self._reacting is not None:
                self._reacting.plan(user, now, at)
            else:
                user.submit(unit, at)
                rows = user.jobs_of(unit)
                recorded = user.model.jobs.recorded_submit[rows]
                self.submitted(user, now, rows, at, at + int(recorded[-1] - recorded[0]))
                found += graph.sent(unit, at)

    @override
    def lost(self, user: ReplayUser, rows: Int64s, now: int) -> None:
        """Submit stopped jobs again when the user is next at work."""
        user.model.resubmit(rows, self.at_work(user, now, user.model.resubmit_after))

    @override
    def at_work(self, user: ReplayUser, now: int, pause: int) -> int:
        at = now + pause
        if self.window is None:
            return at
        release = Release(UNKNOWN, now, Reason.ENDED, pause, UNKNOWN)
        return self.window.next_open(user, at, release)

    def arrival(self, user: ReplayUser, release: Release) -> int:
        """Return the second at which a released unit arrives."""
        if self._plain or release.reason == Reason.START:
            return release.at + release.pause
        window = self.window
        if window is not None and self.waits and not window.is_open(user, release.at):
            return window.next_open(user, release.at, release)
        pause, stays = self.think.pause(user, release)
        at = release.at + pause
        return at if stays or window is None else window.next_open(user, at, release)

    def not_before(self, user: ReplayUser, release: Release, at: int, earliest: int) -> int:
        """Return ``at``; if that is before ``earliest``, when the user is at work from then on."""
        if at >= earliest:
            return at
        if self.window is None or release.reason == Reason.START:
            return earliest
        late = Release(UNKNOWN, earliest, Reason.ENDED, 0, UNKNOWN)
        return self.window.next_open(user, earliest, late)

    def _go_on(self, user: ReplayUser, release: Release | None) -> None:
        """Submit a unit, and those that follow from its submission alone."""
        while release is not None:
            unit = release.unit
            at = release.at + release.pause if self._direct else self._arrival(user, release)
            if self._reacting is not None:
                self._reacting.plan(user, release, at)
                return
            user.submit(unit, at)
            if self._remembers:
                self.think.submitted(user, release, at, at + self._span[unit])
            if self._leaving is not None:
                self._leaving.submitted(user, user.jobs_of(unit))
            if not self._follows:
                return
            release = self.when.sent(user, unit, at + self._span[unit])

    def submitted(
        self, user: ReplayUser, release: Release, rows: Int64s, first: int, last: int
    ) -> None:
        """Let parts take notice that a unit was submitted, its jobs from ``first`` to ``last``."""
        if self._remembers:
            self.think.submitted(user, release, first, last)
        if self._leaving is not None:
            self._leaving.submitted(user, rows)

    def go_on_after(self, user: ReplayUser, unit: int, first: int, last: int) -> None:
        """Submit the units that the submission of a unit releases."""
        if user.changed_graph is None:
            self._go_on(user, self.when.sent(user, unit, last))
            return
        for release in user.changed_graph.sent(unit, first):
            self.release(user, release)


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
    """Start a session its think time after the sessions it depends on have finished.

    Sessions without dependencies start at their recorded second. A session with several
    predecessors starts when the think time after each of them has passed. Within a session jobs are
    spaced as recorded (Madon et al. 2024, section 4.2).

    Parameters
    ----------
    work
        The sessions and their dependencies.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(SessionGraph(work))
