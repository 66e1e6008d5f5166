"""Users who go on from a second of their record: what they do next is what they did before.

Each goes on from a moment of :mod:`.past` that is like now, and does what it did in the days after
that. At the end of this block it goes on from another moment.

=========================== ====================================================================
:class:`OnAsRecorded`       each unit comes as long after now as it came after the moment
:class:`OnInClosedLoop`     units wait for what they waited for, and pause as recorded; what waited
                            for jobs that were not over at the moment waits for those that are not
                            over now
:class:`OnLearned`          the units in their order, with pauses of a learned model
=========================== ====================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, override

from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.agents.learned.mind import Minds
from hpcrowd.agents.populations.component_users import ClosedLoop, RepeatingUser
from hpcrowd.agents.populations.learned import InOrder
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.jobs import UNKNOWN, Int64s, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from hpcrowd.agents.behaviours.profiles import Profiles
    from hpcrowd.agents.learned.model import LearnedModel
    from hpcrowd.agents.populations.past import Past
    from hpcrowd.agents.populations.turnover import Later
    from hpcrowd.environment.simulation import Simulation

#: Unit number of the jobs of a user that are not over now.
PENDING = -2


class GoingOnUser(RepeatingUser):
    """A user who goes on from moments of a record.

    Parameters
    ----------
    model, behaviour, horizon
        See :class:`~hpcrowd.agents.generative.generated.GeneratedUser`.
    number
        Its number.
    past
        The record.
    place
        Whose record it goes on with, an index among ``past.users``.
    moment
        The second of the record from which it goes on now; None if it is silent for a block.
    pending
        Rows of its jobs that wait or run now.
    later
        With what it goes on after the first block; None for moments of the same record.

    Attributes
    ----------
    moment, since
        The moment that it goes on from, and the second since which it does, s.
    until
        s; up to when, if nothing is left of its units then.
    """

    def __init__(
        self,
        model: Simulation,
        behaviour: Behaviour[GeneratedUser],
        number: int,
        past: Past,
        place: int,
        moment: int | None,
        pending: Int64s,
        *,
        horizon: int,
        later: Later | None = None,
    ) -> None:
        units = past.units
        first = int(units.rows[units.first[units.user_first[place]]])
        group = int(past.work.jobs.group[first])
        super().__init__(
            model, number, behaviour, units, int(past.users[place]), group=group, horizon=horizon
        )
        self.past, self.place, self.pending, self.later = past, place, pending, later
        if moment is None:
            self._go_on_from(past.now)
            self.until = self.since + past.likeness.block * DAY
        else:
            self._go_on_from(moment, past.likeness.block * DAY)

    def _go_on_from(self, moment: int, most: int = 0) -> None:
        """Go on from a moment for as long as the record does, and at most some time, s."""
        past = self.past
        self.moment, self.since = moment, max(self.model.time, past.now)
        clock = past.clock
        self.moved = clock.wall(self.since) - clock.wall(moment)
        length = min(most, past.now - moment)
        self.until = self.since + length
        ahead = {clock.ahead(at) for at in (moment, moment + length, self.since, self.until)}
        self.level = len(ahead) == 1  # clocks change in neither of the two times
        a, b = past.by_user[self.place : self.place + 2]
        starts = past.starts[a:b]
        first = a + int(starts.searchsorted(moment, side="right"))
        last = a + int(starts.searchsorted(moment + length, side="right"))
        self.take_up(list(range(first, last)))

    def expect_next(self, begin: Callable[[GeneratedUser], None]) -> None:
        """Set an alarm for the end of a block in which nothing is done."""
        if not self.units:
            self.call_at(max(self.until, self.model.time + 1), begin)

    def next_after(self, unit: int, now: int) -> int:
        """Return when the user goes on from another moment, once all its units are over, s.

        Parameters
        ----------
        unit
            The one that was over last, now.
        """
        rest = self.moment + self.until - self.since - int(self.past.units.end[unit])
        return max(now + max(rest, 0), self.since + 1)

    @override
    def nominal(self, unit: int) -> int:
        past = self.past
        if self.level:
            return int(past.starts[unit]) + self.since - self.moment
        return max(past.clock.second_at(int(past.walls[unit]) + self.moved), self.since)

    def turn(self, after: int) -> None:
        """Go on from another moment of the record, as from second ``after``."""
        past, later = self.past, self.later
        if later is not None and after >= later.begin:
            self.place = later.place
            if self.place == UNKNOWN:
                self._be_silent(self.horizon)
            else:
                self._go_on_from(later.moment + after - later.begin, self.horizon - after)
            return
        before = int(past.submits[past.jobs_of[self.place + 1] - 1])
        last = next(reversed(self.asked.values()), before)
        found = past.next_moment(self.place, after, max(after - last, 0), self.stream)
        if found is None:
            self._be_silent(self.horizon if later is None else later.begin)
        else:
            block = past.likeness.block * DAY
            self._go_on_from(found, block if later is None else min(block, later.begin - after))

    def _be_silent(self, until: int) -> None:
        """Submit nothing up to a second."""
        self.take_up([])
        self.until = until


class OnAsRecorded(Behaviour[GeneratedUser]):
    """Units come as long after the beginning of a block as they came after the moment."""

    @override
    def begin(self, user: GeneratedUser) -> None:
        user = cast("GoingOnUser", user)
        for unit in user.units:
            user.call_at(user.nominal(unit), RepeatingUser.send, unit)
        user.call_at(user.until, self._next)

    def _next(self, user: GeneratedUser) -> None:
        """Go on from another moment."""
        cast("GoingOnUser", user).turn(user.model.time)
        self.begin(user)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        cast("GoingOnUser", user).over(unit)


class OnInClosedLoop(ClosedLoop):
    """Units wait for the ends of those that they waited for, and pause as recorded.

    Parameters
    ----------
    profiles
        See :class:`~hpcrowd.agents.populations.component_users.ClosedLoop`.
    """

    def __init__(self, profiles: Profiles | None = None) -> None:
        super().__init__(profiles)
        self._held: dict[int, list[int]] = {}  # by user: what waits for jobs that are pending now

    @override
    def begin(self, user: GeneratedUser) -> None:
        user = cast("GoingOnUser", user)
        past = user.past
        units, awaited = past.units, past.units.awaited
        held = []
        for unit in self._free(user):
            before = int(awaited[unit])
            waits = before >= 0 and int(units.end[before]) > user.moment
            if waits and len(user.pending):
                held.append(unit)
            else:
                user.call_at(user.nominal(unit), RepeatingUser.send, unit)
        if held:
            number = user.model.add_unit(user, user.pending)
            user._of[number] = PENDING
            self._held[user.number] = held
        user.expect_next(self._next)

    def _next(self, user: GeneratedUser) -> None:
        """Go on from another moment."""
        user = cast("GoingOnUser", user)
        user.turn(user.model.time)
        for unit in self._free(user):
            user.call_at(user.nominal(unit), RepeatingUser.send, unit)
        user.expect_next(self._next)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        user = cast("GoingOnUser", user)
        if user._of.get(unit) == PENDING:
            del user._of[unit]
            past = user.past
            for held in self._held.pop(user.number):
                think = max(int(past.units.think_time[held]), 0)
                due, paced = self._due(user, held, think, now)
                user.call_at(max(due, now), RepeatingUser.send, held, unit, paced)
            return
        ended = user.over(unit)
        self._release(user, ended, unit, now)
        if not user.left:
            user.call_at(user.next_after(ended, now), self._next)


class OnLearned(InOrder):
    """The units of a block in their order, with pauses of a learned model within sessions.

    A user goes on from another moment at the end of the block, also if jobs of it are not over by
    then: who waited for them to end would submit less than in the record.

    Parameters
    ----------
    past
        The record.
    model
        The model.
    """

    def __init__(self, past: Past, model: LearnedModel) -> None:
        self.minds = Minds(model)
        self._sent, self._next, self._waiting, self._rows = {}, {}, {}, {}
        self._awaits = past.awaited_ends
        self._begins = past.session_begins

    @override
    def begin(self, user: GeneratedUser) -> None:
        user = cast("GoingOnUser", user)
        if not user.units:
            user.expect_next(self._following)
            return
        before = self._awaits[user.units[0]]
        waits = before >= 0 and int(user.past.units.end[before]) > user.moment
        if waits and len(user.pending):
            user._of[user.model.add_unit(user, user.pending)] = PENDING
        else:
            self._round(user, user.nominal(user.units[0]), None)

    def _following(self, user: GeneratedUser) -> None:
        """Go on from another moment."""
        user = cast("GoingOnUser", user)
        user.turn(user.model.time)
        if user.units:
            self._round(user, user.nominal(user.units[0]), None)
        user.expect_next(self._following)

    @override
    def _submit(self, user: GeneratedUser, reason: int, released: int, after: int | None) -> None:
        super()._submit(user, reason, released, after)
        user = cast("GoingOnUser", user)
        if self._next[user.number] == len(user.units):
            user.call_at(max(user.until, user.model.time + 1), self._following)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        user = cast("GoingOnUser", user)
        ended = user._of.pop(unit)
        if ended == PENDING:
            self._sent[user.number] = user.pending
            self._next[user.number] = 0
            self._round(user, self._due(user, user.pending, 1, now), unit)
            return
        rows = self._rows[user.number].get(ended)  # of the last time that the unit was submitted
        if rows is not None and not (user.model.jobs.state[rows] == State.UNFINISHED).any():
            self._release(user, ended, unit, now)
