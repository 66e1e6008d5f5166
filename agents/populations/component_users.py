"""Users who repeat the work of a recorded user, moved by whole weeks.

Day of the week and local time stay. A long-term user wraps around: after the last unit of work it
begins again with the first, later by the number of weeks in the log. A temporary user leaves when
its work is done.

=================== ============================================================================
:class:`AsRecorded` submits at the recorded times, moved by weeks, whatever the cluster does
:class:`ClosedLoop` submits when what a unit waits for has finished and its think time has passed
=================== ============================================================================

With waits as recorded, both submit the same work at the same time, except for the hour by which
clocks change within a pause.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast, override

import numpy as np

from hpcrowd.agents.behaviours.decisions import Why
from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.agents.populations.components import Pool
from hpcrowd.agents.populations.openness import Happening, Visits
from hpcrowd.agents.work.units import MOVED, REPEATED, Units
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import SimulationError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.registry import Seam
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    import networkx as nx

    from hpcrowd.agents.behaviours.profiles import Profiles


@dataclass(frozen=True)
class Member:
    """One user of a resampled population.

    Attributes
    ----------
    number
        Number of the user.
    component
        Index of its component in the pool.
    shift
        Weeks by which it is moved at first.
    later
        Further shift, s, which changes day and hour; for comparisons.
    """

    number: int
    component: int
    shift: int
    later: int = 0


class RepeatingUser(GeneratedUser):
    """A user who submits recorded units again.

    Parameters
    ----------
    model, number, behaviour, group, horizon
        See :class:`~hpcrowd.agents.generative.generated.GeneratedUser`.
    record
        The units of all users of the record.
    whose
        The number, in the record, of the user whose units it repeats.

    Attributes
    ----------
    units
        Units of the present round.
    left
        Number of unfinished ones.
    missing, earliest
        For each unit that waits: the number of units it still waits for, and its earliest time.
    """

    unasked = Why.RECORDED

    def __init__(
        self,
        model: Simulation,
        number: int,
        behaviour: Behaviour[GeneratedUser],
        record: Units,
        whose: int,
        *,
        group: int,
        horizon: int = FOREVER,
    ) -> None:
        super().__init__(model, number, behaviour, group=group, horizon=horizon)
        self.record, self.whose = record, whose
        self.units: list[int] = []
        self.left = 0
        self.missing: dict[int, int] = {}
        self.earliest: dict[int, int] = {}
        self._of: dict[int, int] = {}

    def nominal(self, unit: int) -> int:
        """Return when a unit would come in the present round with waits as recorded, s."""
        raise NotImplementedError(f"{type(self).__name__} must define nominal()")

    def take_up(self, units: list[int]) -> None:
        """Begin a round of units."""
        self.units, self.left = units, len(units)
        self.missing.clear()
        self.earliest.clear()

    def send(self, unit: int, after: int | None = None, paced: int = 0) -> None:
        """Submit a unit now, with jobs spaced as recorded; none from the horizon on.

        Parameters
        ----------
        unit
            Its number in the record.
        after
            The engine's number of the unit that released it.
        paced
            s; how much longer its pause was at the pace of the user's week.
        """
        record, table, now = self.record, self.model.jobs, self.model.time
        place, end = record.edges[unit : unit + 2]
        source, count, first = record.repeated[place:end], end - place, len(table)
        began = int(source[0, -MOVED])
        at: int | Int64s = now
        if count > 1:
            past = source[:, -MOVED] - began
            if now + past[-1] >= self.horizon:
                count = int(past.searchsorted(self.horizon - now))
                source, past = source[:count], past[:count]
            at = now + past
        mine = table.append(count, user=self.number, group=self.group)
        table.matrix[REPEATED, first : first + count] = source.T
        if table.requests is not None and (asked := record.jobs.requests) is not None:
            table.requests.repeat(first, asked.take(record.rows[place : place + count]))
        moved = self.nominal(unit) - began
        table.matrix[REPEATED.stop - MOVED : REPEATED.stop, first : first + count] += moved
        if self.log is not None:
            self.paced = paced
        self._of[self.hand_in(mine, at, after)] = unit

    def over(self, number: int) -> int:
        """Return the finished unit with this number in the engine, and count it."""
        self.left -= 1
        return self._of.pop(number)


class ComponentUser(RepeatingUser):
    """A user who repeats the work of a component of a pool.

    Parameters
    ----------
    model, behaviour, horizon
        See :class:`~hpcrowd.agents.generative.generated.GeneratedUser`.
    member
        Its entry in the population.
    pool
        The pool with its component.
    visits
        The record of its arrivals and departures.

    Attributes
    ----------
    shift
        Weeks by which the present round is moved. Units of the first round that would come before
        second 0 are left out.
    """

    def __init__(
        self,
        model: Simulation,
        behaviour: Behaviour[GeneratedUser],
        member: Member,
        pool: Pool,
        *,
        visits: Visits | None = None,
        horizon: int = FOREVER,
    ) -> None:
        self.component = pool.components[member.component]
        super().__init__(
            model, member.number, behaviour, pool.units, self.component.user,
            group=self.component.group, horizon=horizon,
        )  # fmt: skip
        self.member = member
        self.pool = pool
        self.visits = visits or Visits()
        self.shift = member.shift
        self.take_up([unit for unit in self.component.units if self.nominal(unit) >= 0])

    @override
    def nominal(self, unit: int) -> int:
        return self.pool.second(unit, self.shift, self.member.later)

    def turn(self, after: int) -> None:
        """Begin a new round of all units, the first one to come later than second ``after``.

        Long-term users begin again later by the number of weeks in the log, or a multiple of it.
        """
        step = self.pool.weeks if self.component.long_term else 1
        self.shift += step
        self.units = list(self.component.units)
        while not self.component.long_term and self.nominal(self.units[0]) <= after:
            self.shift += step
        self.take_up(self.units)

    @property
    @override
    def graph(self) -> nx.DiGraph[int]:
        """What its units wait for, as recorded; it cannot be changed.

        Nodes are units of the pool with ``start`` (s after the Monday, 00:00, before the first
        submission of the log, local time) and ``jobs`` (how many); edges carry ``think_time`` (s).
        """
        if self._graph is not None:
            return self._graph
        import networkx as nx

        units = self.pool.units
        graph: nx.DiGraph[int] = nx.DiGraph(user=self.number)
        for unit in self.component.units:
            count = int(units.first[unit + 1] - units.first[unit])
            graph.add_node(unit, start=int(self.pool.walls[unit]), jobs=count)
        for unit in self.component.units:
            for after, think in units.successors[unit]:
                graph.add_edge(unit, after, think_time=think)
        self._graph = nx.freeze(graph)
        return self._graph


class AsRecorded(Behaviour[GeneratedUser]):
    """Submit at the recorded times, moved by whole weeks, whatever the cluster does."""

    @override
    def begin(self, user: GeneratedUser) -> None:
        self._round(cast(ComponentUser, user))

    def _round(self, user: ComponentUser) -> None:
        """Set an alarm for each unit of a round, and one for the next round."""
        for unit in user.units:
            user.call_at(user.nominal(unit), RepeatingUser.send, unit)
        if user.component.long_term:
            # A round begins before its first unit is due, at the latest with the last of this one.
            last = max((user.nominal(unit) for unit in user.units), default=0)
            user.call_at(last, self._next)

    def _next(self, user: ComponentUser) -> None:
        user.turn(user.model.time)
        self._round(user)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Note that a temporary user is done; long-term ones never are."""
        user = cast(ComponentUser, user)
        user.over(unit)
        if not user.component.long_term and not user.left:
            user.done = True
            user.visits.note(now, user.number, Happening.DONE)


class ClosedLoop(Behaviour[GeneratedUser]):
    """Submit a unit its think time after everything that it waits for has finished.

    Units that wait for nothing in the first round come at their recorded time, moved by whole
    weeks. The first units of a later round wait for the whole round before, with the pause that the
    log leaves between the two when it is wrapped around.

    Parameters
    ----------
    profiles
        Profiles that set the pace of pauses, see :class:`ActiveTime`; None if pauses pass at the
        same pace at all hours.
    """

    seam: ClassVar = Seam("ClosedLoop", "hpcrowd resample LOG --users {0}", 1)

    def __init__(self, profiles: Profiles | None = None) -> None:
        self.profiles = profiles

    def pause(self, user: RepeatingUser, unit: int, recorded: int) -> int:
        """Return how long the user pauses before a unit, s; override it in your own class.

        Parameters
        ----------
        user
            The user; ``user.model.time`` is now, the second at which the last unit that this one
            waits for has ended.
        unit
            Its number in the pool.
        recorded
            The recorded pause, s.
        """
        return user.paused(recorded)

    @override
    def begin(self, user: GeneratedUser) -> None:
        user = cast(ComponentUser, user)
        if not user.units and user.component.long_term:
            user.turn(0)
        for unit in self._free(user):
            user.call_at(user.nominal(unit), RepeatingUser.send, unit)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Release the units that waited for this one, or begin the next round, or leave."""
        user = cast(ComponentUser, user)
        ended = user.over(unit)
        self._release(user, ended, unit, now)
        if user.left:
            return
        if user.component.long_term:
            self._again(user, now, unit)
        elif user.again and user.stream.random() < user.again:
            user.visits.note(now, user.number, Happening.WENT_ON, user.mood)
            user.turn(now)
            self._send_round(user, user.nominal(user.units[0]), unit)
        else:
            user.done = True
            user.visits.note(now, user.number, Happening.DONE)

    def _release(self, user: RepeatingUser, ended: int, unit: int, now: int) -> None:
        """Release the units of the round that waited only for one that is over now.

        Parameters
        ----------
        user, now
            The user, and the second.
        ended, unit
            Its number in the record, and in the engine.
        """
        for after, think in user.record.successors[ended]:
            if after not in user.missing:
                continue  # of another round
            due, paced = self._due(user, after, think, now)
            user.earliest[after] = max(due, user.earliest.get(after, 0))
            user.missing[after] -= 1
            if not user.missing[after]:
                # Where another pause than this one decides, nobody knows it from its pace.
                paced = paced if due == user.earliest[after] else 0
                user.call_at(user.earliest[after], RepeatingUser.send, after, unit, paced)

    def _again(self, user: ComponentUser, now: int, unit: int) -> None:
        """Begin the next round of a long-term user, whose last unit ended now."""
        units, pool = user.component.units, user.pool
        ended = int(pool.units.end[units.start : units.stop].max())
        between = int(pool.units.start[units.start]) + pool.weeks * WEEK - ended
        user.turn(now)
        pause = max(between, 0)
        due, paced = self._due(user, units.start, pause, now)
        self._send_round(user, due, unit, paced)

    def _send_round(self, user: ComponentUser, first: int, unit: int, paced: int = 0) -> None:
        """Submit the units of a round that wait for nothing, the first one at ``first``."""
        nominal = user.nominal(user.units[0])
        for one in self._free(user):
            at = first + user.nominal(one) - nominal
            user.call_at(at, RepeatingUser.send, one, unit, paced)

    def _free(self, user: RepeatingUser) -> list[int]:
        """Count the units that each unit of the round waits for; return those without any."""
        successors, missing = user.record.successors, user.missing
        there = set(user.units)
        for unit in user.units:
            for after, _ in successors[unit]:
                if after in there:
                    missing[after] = missing.get(after, 0) + 1
        return [unit for unit in user.units if unit not in missing]

    def _due(self, user: RepeatingUser, unit: int, pause: int, now: int) -> tuple[int, int]:
        """Return when a unit comes that was released now and has a recorded pause, s.

        And how much of the time until then is due to the pace of the user's week, s; 0 without log.
        """
        paced = self.pause(user, unit, pause)
        if not isinstance(paced, int | np.integer) or paced < 0:
            raise SimulationError(
                f"{type(self).__name__}.pause() returned {paced!r}; must be whole seconds, 0 or "
                "more; round it"
            )
        if self.profiles is None:
            return now + int(paced), 0
        begins = user.nominal(unit) - pause
        due = now + pause
        if begins != now or paced != pause:
            clock, profile = user.model.clock, self.profiles.of(user.whose)
            active = profile.between(clock, begins, begins + pause)
            if paced != pause:
                active = active * paced / pause if pause else paced
            due = profile.after(clock, now, active)
        return due, 0 if user.log is None else due - now - int(paced)
