"""Members of a semi-open population with generated work: pools of groups, and site users.

They come and go like the users of a pool (:mod:`semi_open`), but do other work while they are
there.

================== =========================================================================
:class:`GroupWork` batches drawn from those of its group (MUGM and other workload models)
:class:`SiteWork`  the session-continuation model of Shmueli and Feitelson
================== =========================================================================

A temporary user of a group leaves after as many batches as the user that it is modelled on; one of
a site after the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast, override

from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.agents.generative.pool_users import BatchPool, DrawFromPool, PoolMember
from hpcrowd.agents.generative.shmueli import ShmueliFeitelson, SiteModel, SiteUser
from hpcrowd.agents.populations.component_users import ComponentUser, Member
from hpcrowd.agents.populations.components import Pool
from hpcrowd.agents.populations.openness import Happening, Visits
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.simulation import Simulation

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.parts import Reaction
    from hpcrowd.agents.behaviours.user import ReplayUser


class Living:
    """The activity of the members of a population while they are there; subclass it.

    Parameters
    ----------
    pool
        The pool from which members are drawn.

    Attributes
    ----------
    behaviour
        Their behaviour; another behaviour may wrap it.
    visits
        The record of arrivals and departures.
    reactions
        What members do instead of submitting a unit as usual, in order.
    """

    behaviour: Behaviour[GeneratedUser]
    reactions: tuple[Reaction, ...] = ()

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.visits = Visits()

    def join(
        self,
        model: Simulation,
        member: Member,
        behaviour: Behaviour[GeneratedUser],
        horizon: int,
    ) -> GeneratedUser:
        """Put a member into a model, note its presence or arrival, and start its behaviour."""
        component = self.pool.components[member.component]
        times = _times(self.pool, member)
        user = self.make_user(model, member, times, horizon)
        user.behaviour = behaviour
        if component.long_term or len(times) < len(component.units):
            self.visits.note(0, user.number, Happening.THERE)
        elif times[0] < user.horizon:
            model.call_at(times[0], self.visits.note, times[0], user.number, Happening.ARRIVED)
        user.reactions = self.reactions
        for reaction in self.reactions:
            reaction.begin(cast("ReplayUser", user))
        behaviour.begin(user)
        return user

    def make_user(
        self, model: Simulation, member: Member, times: list[int], horizon: int
    ) -> GeneratedUser:
        """Return a member as a user, before it begins.

        Parameters
        ----------
        model, member, horizon
            The model, the member, and the second from which it submits nothing more.
        times
            Times of the units of its component, s; without those before 0.
        """
        raise NotImplementedError(f"{type(self).__name__} must define make_user()")


class ComponentWork(Living):
    """Members repeat the work of their component.

    Parameters
    ----------
    pool
        The pool.
    behaviour
        :class:`~hpcrowd.agents.populations.component_users.AsRecorded` or
        :class:`~hpcrowd.agents.populations.component_users.ClosedLoop`.
    """

    def __init__(self, pool: Pool, behaviour: Behaviour[GeneratedUser]) -> None:
        super().__init__(pool)
        self.behaviour = behaviour

    @override
    def make_user(
        self, model: Simulation, member: Member, times: list[int], horizon: int
    ) -> ComponentUser:
        return ComponentUser(
            model, self.behaviour, member, self.pool, visits=self.visits, horizon=horizon
        )


class GroupWork(Living, DrawFromPool):
    """Members draw batches from those of their group, wait for them and pause.

    Parameters
    ----------
    pool
        The pool of members, from a workload that the model made.
    members
        The users of the same workload, by number.
    batches
        The batches to draw from, by group.

    Raises
    ------
    QuantityError
        If a user of the pool is not among the members, or its group has no batches.
    """

    def __init__(
        self, pool: Pool, members: Sequence[PoolMember], batches: Mapping[int, BatchPool]
    ) -> None:
        Living.__init__(self, pool)
        DrawFromPool.__init__(self, (), batches)
        self.behaviour = self
        self._models = {member.number: member for member in members}
        self._least: dict[int, int] = {}
        for component in pool.components:
            if component.user not in self._models:
                raise QuantityError(f"user {component.user}: in the pool, but not a member")
            group = self._models[component.user].group
            if group not in batches:
                raise QuantityError(f"user {component.user}: no batches of its group {group}")

    @override
    def make_user(
        self, model: Simulation, member: Member, times: list[int], horizon: int
    ) -> GeneratedUser:
        component, number = self.pool.components[member.component], member.number
        one = self._models[component.user]
        self._least[number] = 0 if component.long_term else len(times)
        self.members[number] = replace(one, number=number, wakes=times[0])
        return GeneratedUser(model, number, self, group=one.group, horizon=horizon)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Pause and continue, or leave when all is done."""
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


class SiteWork(Living):
    """Members continue sessions, take breaks and sleep, see :mod:`generative.shmueli`.

    Parameters
    ----------
    pool
        The pool of members; they draw from its record.
    model
        Parameters of the model.
    """

    def __init__(self, pool: Pool, model: SiteModel | None = None) -> None:
        super().__init__(pool)
        self.behaviour: ShmueliFeitelson = ShmueliFeitelson(pool.work, None, model)
        self._place = {user: place for place, user in enumerate(pool.work.sessions.users.tolist())}

    @override
    def make_user(
        self, model: Simulation, member: Member, times: list[int], horizon: int
    ) -> SiteUser:
        component = self.pool.components[member.component]
        until = horizon if component.long_term else min(horizon, times[-1] + 1)
        user = self.behaviour.join(
            model, self._place[component.user], number=member.number, wakes=times[0], until=until
        )
        if until < horizon:
            model.call_at(until, self._go, user)
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
