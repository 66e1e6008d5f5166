"""Members of a semi-open population who make up their work: pools of groups, and site users.

They come and go like the users of a pool (:mod:`semi_open`), and do something else while
they are there.

================== =========================================================================
:class:`GroupWork` batches drawn from those of its group (MUGM and other workload models)
:class:`SiteWork`  the session-continuation model of Shmueli and Feitelson
================== =========================================================================

A temporary user of a group leaves when it has submitted as many batches as its model; one of a site
when it has been there for as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, override

from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.agents.generative.pool_users import BatchPool, DrawFromPool, PoolMember, PoolUser
from hpcrowd.agents.generative.shmueli import ShmueliFeitelson, SiteModel
from hpcrowd.agents.generative.site_users import SiteUser
from hpcrowd.agents.populations.component_users import Member, add_component_user, note_arrival
from hpcrowd.agents.populations.components import Pool
from hpcrowd.agents.populations.openness import Happening, Visits
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.simulation import Simulation


class Living(Protocol):
    """What the members of a population do while they are there."""

    #: Who comes and goes is drawn from it.
    pool: Pool

    #: Where it is noted who comes and goes.
    visits: Visits

    @property
    def behaviour(self) -> Behaviour[GeneratedUser]:
        """What they do; another behaviour may be put around it."""

    def join(
        self,
        model: Simulation,
        member: Member,
        behaviour: Behaviour[GeneratedUser],
        horizon: int,
    ) -> GeneratedUser:
        """Put a member into a model, let it begin, and return it."""


class ComponentWork:
    """Members do again what their component holds.

    Parameters
    ----------
    pool
        The pool.
    behaviour
        :class:`~hpcrowd.agents.populations.component_users.AsRecorded` or
        :class:`~hpcrowd.agents.populations.component_users.ClosedLoop`.
    """

    def __init__(self, pool: Pool, behaviour: Behaviour[GeneratedUser]) -> None:
        self.pool = pool
        self.behaviour = behaviour
        self.visits = Visits()

    def join(
        self,
        model: Simulation,
        member: Member,
        behaviour: Behaviour[GeneratedUser],
        horizon: int,
    ) -> GeneratedUser:
        """Put a member into a model, let it begin, and return it."""
        return add_component_user(
            model, behaviour, member, self.pool, visits=self.visits, horizon=horizon
        )


class GroupWork(DrawFromPool):
    """Members draw batches from those of their group, wait for them and pause.

    Parameters
    ----------
    pool
        Who comes and goes: the pool of a workload that the model made.
    members
        The users of the same workload, by number.
    batches
        What they draw from, by group.

    Raises
    ------
    QuantityError
        When a user of the pool is not among the members, or its group has no batches.
    """

    def __init__(
        self, pool: Pool, members: Sequence[PoolMember], batches: Mapping[int, BatchPool]
    ) -> None:
        self.pool = pool
        self.visits = Visits()
        self.batches = batches
        self._members = {member.number: member for member in members}
        self._least: dict[int, int] = {}
        for component in pool.components:
            if component.user not in self._members:
                raise QuantityError(f"user {component.user}: in the pool, not among the members")
            group = self._members[component.user].group
            if group not in batches:
                raise QuantityError(f"user {component.user}: no batches of its group {group}")

    @property
    def behaviour(self) -> Behaviour[GeneratedUser]:
        """What they do."""
        return self

    def join(
        self,
        model: Simulation,
        member: Member,
        behaviour: Behaviour[GeneratedUser],
        horizon: int,
    ) -> GeneratedUser:
        """Put a member into a model, let it begin, and return it."""
        component = self.pool.components[member.component]
        one = self._members[component.user]
        times = _times(self.pool, member)
        self._least[member.number] = 0 if component.long_term else len(times)
        known = replace(one, number=member.number, wakes=times[0])
        user = PoolUser(model, behaviour, known, self.batches[one.group], horizon=horizon)
        note_arrival(user, self.visits, component, times)
        behaviour.begin(user)
        return user

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Pause and go on, or leave when all is done."""
        least = self._least[user.number]
        if not least or user.submitted < least:
            super().finished(user, unit, now)
        elif user.again and user.stream.random() < user.again:
            self._least[user.number] += least
            self.visits.note(now, user.number, Happening.WENT_ON, user.mood)
            super().finished(user, unit, now)
        else:
            user.done = True
            self.visits.note(now, user.number, Happening.DONE)


class SiteWork(ShmueliFeitelson):
    """Members go on with their sessions, take breaks and sleep, see :mod:`generative.shmueli`.

    Parameters
    ----------
    pool
        Who comes and goes; its record is what they draw from.
    model
        Parameters of the model.
    """

    def __init__(self, pool: Pool, model: SiteModel | None = None) -> None:
        super().__init__(pool.work, None, model)
        self.pool = pool
        self.visits = Visits()
        self._place = {user: place for place, user in enumerate(pool.work.sessions.users.tolist())}

    @property
    def behaviour(self) -> Behaviour[GeneratedUser]:
        """What they do."""
        return self

    def join(  # type: ignore[override]
        self,
        model: Simulation,
        member: Member,
        behaviour: Behaviour[GeneratedUser],
        horizon: int,
    ) -> GeneratedUser:
        """Put a member into a model, let it begin, and return it."""
        component = self.pool.components[member.component]
        times = _times(self.pool, member)
        until = horizon if component.long_term else min(horizon, times[-1] + 1)
        user: SiteUser = super().join(
            model, self._place[component.user], number=member.number, wakes=times[0], until=until
        )
        user.behaviour = behaviour
        note_arrival(user, self.visits, component, times)
        if until < horizon:
            model.call_at(until, self._go, user)
        behaviour.begin(user)
        return user

    def _go(self, user: SiteUser) -> None:
        if not user.absent_until > user.model.time:
            user.done = True
            self.visits.note(user.model.time, user.number, Happening.DONE)


def _times(pool: Pool, member: Member) -> list[int]:
    """Return when the units of a member's component would come in a run, s; none before 0."""
    component = pool.components[member.component]
    times = [pool.second(unit, member.shift, member.later) for unit in component.units]
    while True:
        found = [at for at in times if at >= 0]
        if found or not component.long_term:
            return found
        times = [at + pool.weeks * WEEK for at in times]
