"""Made-up users who follow a learned model: they decide whether to wait, and how long to pause.

================== ===============================================================================
class              the work of its users
================== ===============================================================================
:class:`InOrder`   the batches of a recorded user in their order, each released as recorded: by the
                   end of another, or by the submission before it
:class:`FromPool`  batches drawn from a pool, such as one that a workload model makes, as many as
                   there; users decide whether they wait for the results, and whether they submit
                   the same again
================== ===============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast, override

import numpy as np

from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.behaviours.when import BatchOrder, Reason
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.agents.generative.pool_users import BatchPool, DrawFromPool, PoolMember
from hpcrowd.agents.learned.features import ENDED, FOLLOWS, NOTHING
from hpcrowd.agents.learned.heldout import recorded_releases
from hpcrowd.agents.learned.mind import Minds
from hpcrowd.agents.populations.openness import Happening
from hpcrowd.agents.work.sessions import ARRIVAL_THRESHOLD
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.jobs import UNKNOWN, State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.learned.model import LearnedModel
    from hpcrowd.agents.populations.component_users import ComponentUser, RepeatingUser
    from hpcrowd.agents.populations.components import Pool
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.agents.work.units import Units
    from hpcrowd.environment.jobs import Int64s


class _Learned:
    """What both kinds of users do."""

    minds: Minds
    _sent: dict[int, Int64s]

    def _notice(self, user: GeneratedUser, rows: Int64s, ended: int, at: int) -> int:
        """Look around when a unit has ended, or else was submitted; return the local time."""
        wall = user.model.clock.wall(at)
        self.minds.notice(
            user.number, user.model.jobs, rows, len(self._sent[user.number]), ended, at, wall,
            user.submitted - user.finished,
        )  # fmt: skip
        return wall

    def _pause(self, user: GeneratedUser, rows: Int64s, ended: int, at: int) -> int:
        """Return the second at which a user submits again."""
        wall = self._notice(user, rows, ended, at)
        return at + user.paused(self.minds.pause(user.number, wall, user.stream))

    def _short(self, user: GeneratedUser, rows: Int64s, ended: int, at: int, most: int) -> int:
        """Return the second at which a user submits again, given that it pauses no longer, s."""
        wall = self._notice(user, rows, ended, at)
        return at + user.paused(self.minds.pause_within(user.number, wall, user.stream, most))

    def _after(
        self, user: GeneratedUser, rows: Int64s, ended: int, at: int, begins: int | None
    ) -> int:
        """Return the second of the next unit, released at a second.

        It ``begins`` a session, which came at that second without feedback; None within one.
        """
        if begins is None:
            return self._short(user, rows, ended, at, ARRIVAL_THRESHOLD)
        return begins if begins > at else self._short(user, rows, ended, at, DAY)

    def _note(self, user: GeneratedUser, rows: Int64s, reason: int, released: int) -> int:
        """Remember a submission; return the second of its last job."""
        submit = user.model.jobs.submit[rows]
        first, last = int(submit[0]), int(submit.max())
        self.minds.note(user.number, reason, released, first, last, user.model.clock.wall(first))
        self._sent[user.number] = rows
        return last


class FromPool(_Learned, DrawFromPool):
    """Submit a batch from a pool, decide whether to wait for it, pause, repeat.

    Each member submits as many batches as in the workload that it is made from, and then leaves. A
    session begins when it begins there, or later if the batch that the user waits for is not over
    by then; only pauses within sessions are those of the model. Nobody waits for a batch that runs
    for longer than the next one is away in the workload. Users who wait for any, or pause between
    sessions as people in logs do and never leave, submit less, or more, than the workload has.

    Parameters
    ----------
    members, pools
        See :class:`~hpcrowd.agents.generative.pool_users.DrawFromPool`, all with ``submits``; their
        pauses are not used.
    model
        The model.
    """

    def __init__(
        self,
        members: Sequence[PoolMember],
        pools: Mapping[int, BatchPool],
        model: LearnedModel,
    ) -> None:
        super().__init__(members, pools)
        self.minds = Minds(model)
        self._sent = {}
        # By user: the unit that it waits for; the batch submitted last, and the chance of it again.
        self._awaited: dict[int, int] = {}
        self._last: dict[int, tuple[int, float]] = {}

    @override
    def wake(self, user: GeneratedUser, after: int | None = None) -> None:
        self._go_on(user, NOTHING if after is None else ENDED, user.model.time, after)

    def _go_on(self, user: GeneratedUser, reason: int, released: int, after: int | None) -> None:
        """Submit a batch, and decide what comes next."""
        number, jobs = user.number, user.model.jobs
        pool = self.pools[self.members[number].group]
        place, again = self._last.get(number, (0, 0.0))
        if not user.stream.random() < again:
            place = int(user.stream.integers(len(pool)))
        first = len(jobs)
        unit = self.submit_batch(user, pool, place, after)
        rows = np.arange(first, len(jobs))
        last = self._note(user, rows, reason, released)
        self._notice(user, rows, 0, last)
        waits, again = self.minds.chances()
        self._last[number] = place, again
        self._awaited[number] = UNKNOWN
        gap = self._next(user)[1]
        over = gap is not None and jobs.run_time[rows].max() <= gap
        if user.stream.random() < waits and over:
            self._awaited[number] = unit
        else:
            self._plan(user, rows, FOLLOWS, last, None)

    def _next(self, user: GeneratedUser) -> tuple[int, int | None]:
        """Return when the next batch comes in the workload, and how long after the one before, s.

        None after the last one.
        """
        submits = self.members[user.number].submits
        assert submits is not None  # as the class says
        if user.submitted == len(submits):
            return 0, None
        before, at = submits[user.submitted - 1 : user.submitted + 1].tolist()
        return at, at - before

    def _plan(
        self, user: GeneratedUser, rows: Int64s, reason: int, at: int, after: int | None
    ) -> None:
        """Plan the next batch, released at a second; none after the last one."""
        due, gap = self._next(user)
        if gap is not None:
            begins = due if gap > ARRIVAL_THRESHOLD else None
            due = self._after(user, rows, int(reason == ENDED), at, begins)
            user.call_at(due, self._go_on, reason, at, after)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Plan what comes after the unit that the user waits for."""
        if self._awaited.get(user.number) == unit:
            self._plan(user, self._sent[user.number], ENDED, now, unit)


def ends_awaited(work: Work) -> list[int]:
    """Return for each batch the one whose end released it, -1 where another reason did."""
    releases = recorded_releases(BatchOrder(work))
    awaited = np.where(releases.reason == Reason.ENDED, releases.awaited, UNKNOWN)
    found: list[int] = awaited.tolist()
    return found


def session_begins(units: Units) -> NDArray[np.bool_]:
    """Return which batches are the first of a session, shape (units,)."""
    found = np.ones(len(units), np.bool_)
    found[1:] = units.session[1:] != units.session[:-1]
    return found


class InOrder(_Learned, Behaviour[GeneratedUser]):
    """Submit the batches of a component in their order, with pauses of the model within sessions.

    A session begins when it began in the record, or later if what it waits for is not over by then:
    pauses between sessions are nights, weekends and absences. If these were drawn as well, each
    that is too long would put off all work that follows, and users would submit too little.

    Parameters
    ----------
    pool
        The pool, whose units are batches.
    model
        The model.
    """

    def __init__(self, pool: Pool, model: LearnedModel) -> None:
        self.minds = Minds(model)
        self._sent = {}
        self._awaits = ends_awaited(pool.work)
        self._begins = session_begins(pool.units)
        # By user: the place of the next unit, what it waits for, and the rows of its units.
        self._next: dict[int, int] = {}
        self._waiting: dict[int, int] = {}
        self._rows: dict[int, dict[int, Int64s]] = {}

    @override
    def begin(self, user: GeneratedUser) -> None:
        user = cast("ComponentUser", user)
        if not user.units and user.component.long_term:
            user.turn(0)
        if user.units:
            self._round(user, user.nominal(user.units[0]), None)

    def _round(self, user: RepeatingUser, at: int, after: int | None) -> None:
        """Begin a round of units, the first one at a second."""
        self._next[user.number] = 0
        self._rows[user.number] = {}
        user.call_at(at, self._submit, NOTHING if after is None else ENDED, user.model.time, after)

    def _submit(self, user: GeneratedUser, reason: int, released: int, after: int | None) -> None:
        """Submit the next unit, and plan the one after it unless it waits for an end."""
        user = cast("RepeatingUser", user)
        number, place, jobs = user.number, self._next[user.number], user.model.jobs
        unit, first = user.units[place], len(jobs)
        user.send(unit, after)
        rows = self._rows[number][unit] = np.arange(first, len(jobs))
        last = self._note(user, rows, reason, released)
        self._next[number] = place = place + 1
        self._waiting[number] = UNKNOWN
        if place == len(user.units):
            return
        awaited = self._awaits[user.units[place]]
        theirs = self._rows[number].get(awaited)
        if theirs is not None and (jobs.state[theirs] == State.UNFINISHED).any():
            self._waiting[number] = awaited
        else:
            user.call_at(self._due(user, rows, 0, last), self._submit, FOLLOWS, last, None)

    def _due(self, user: RepeatingUser, rows: Int64s, ended: int, at: int) -> int:
        """Return the second at which the next unit comes, released at a second."""
        following = user.units[self._next[user.number]]
        begins = user.nominal(following) if self._begins[following] else None
        return self._after(user, rows, ended, at, begins)

    def _release(self, user: RepeatingUser, ended: int, unit: int, now: int) -> None:
        """Release the unit that waited for one that has ended, of a number in the engine."""
        if self._waiting.get(user.number) == ended:
            self._waiting[user.number] = UNKNOWN
            rows = self._rows[user.number][ended]
            user.call_at(self._due(user, rows, 1, now), self._submit, ENDED, now, unit)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Release the unit that waited for this one, or begin the next round, or leave."""
        user = cast("ComponentUser", user)
        ended = user.over(unit)
        self._release(user, ended, unit, now)
        if user.left:
            return
        if user.component.long_term or (user.again and user.stream.random() < user.again):
            if not user.component.long_term:
                user.visits.note(now, user.number, Happening.WENT_ON, user.mood)
            at = self._pause(user, self._rows[user.number][ended], 1, now)
            user.turn(now)
            if user.component.long_term:
                at = max(user.nominal(user.units[0]), now)
            self._round(user, at, unit)
        else:
            user.done = True
            user.visits.note(now, user.number, Happening.DONE)
