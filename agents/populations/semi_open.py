"""Semi-open populations: users arrive week by week, each works in a closed loop, and leaves.

Long-term users of the pool are there from the beginning, each at a random week of its own record.
Temporary users arrive: every week some components are drawn from the pool, with replacement. The
load is set by the number of users, not by scaling times.

Sources: Zakay and Feitelson, ICPE 2013 (whole weeks; a random week for long-term users), SYSTOR
2016 (semi-open: users arrive openly, each is a closed loop). The exact rules were not found; what
we chose is marked.

Each draw has its own random stream: a user does not depend on the number of others, and a larger
population includes all users of a smaller one.

Members may also do other work than that of a record while they are there:

================== =========================================================================
:class:`GroupWork` batches drawn from those of its group (MUGM and other workload models)
:class:`SiteWork`  the session-continuation model of Shmueli and Feitelson
================== =========================================================================

A temporary user of a group leaves after as many batches as the user that it is modelled on; one of
a site after the same time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast, override

import numpy as np

from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.agents.generative.pool_users import BatchPool, DrawFromPool, PoolMember
from hpcrowd.agents.generative.shmueli import ShmueliFeitelson, SiteModel, SiteUser
from hpcrowd.agents.populations.component_users import ComponentUser, Member
from hpcrowd.agents.populations.components import Pool
from hpcrowd.agents.populations.openness import (
    MOST_COPIES,
    Consequences,
    Happening,
    Openness,
    Visits,
)
from hpcrowd.agents.populations.population import TOLERANCE
from hpcrowd.agents.populations.satisfaction import Formula, Minding
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.parts import Reaction
    from hpcrowd.agents.behaviours.user import ReplayUser


#: Least number of users with the same leading digits that the numbering has room for.
LEAST_ROOM = 1000

#: Mean arrivals per week up to which their distribution function is summed term by term; exp(-mean)
#: is a number in double precision up to 745.
SMALL_MEAN = 500


@dataclass(frozen=True)
class Roster:
    """The users of a population.

    Attributes
    ----------
    long_term, temporary
        The users, by number.
    """

    long_term: tuple[Member, ...]
    temporary: tuple[Member, ...]

    def __len__(self) -> int:
        return len(self.long_term) + len(self.temporary)

    def __iter__(self) -> Iterator[Member]:
        yield from self.long_term
        yield from self.temporary

    def split(self, shares: Sequence[float], streams: Streams) -> list[Roster]:
        """Split the users into parts, for populations with several behaviours.

        Parameters
        ----------
        shares
            Probability of each part; they add up to 1. Each user draws its part from its own
            random stream.
        streams
            Of the run.

        Raises
        ------
        QuantityError
            If they do not add up.
        """
        if min(shares, default=0) < 0 or abs(sum(shares) - 1) > TOLERANCE:
            words = " + ".join(f"{share:g}" for share in shares)
            raise QuantityError(f"shares {words}: must be 0 or more, and add up to 1")
        bounds = np.cumsum(shares)

        def part(member: Member) -> int:
            drawn = streams.generator("part", member.number).random() * bounds[-1]
            return int(np.searchsorted(bounds, drawn, side="right"))

        return [
            Roster(
                tuple(member for member in self.long_term if part(member) == place),
                tuple(member for member in self.temporary if part(member) == place),
            )
            for place in range(len(bounds))
        ]


def draw_roster(pool: Pool, weeks: int, openness: Openness, streams: Streams) -> Roster:
    """Draw the users of a population.

    Parameters
    ----------
    pool
        The pool to draw from.
    weeks
        Length of the run.
    openness
        The number of users.
    streams
        Random streams of the run.

    Raises
    ------
    QuantityError
        If there are no weeks, or no users.
    """
    if weeks < 1:
        raise QuantityError(f"weeks {weeks}: the run must last at least 1 week")
    room = _room(pool)
    members = Roster(
        tuple(_long_term(pool, openness, streams, room)),
        tuple(_temporary(pool, weeks, openness, streams, room)),
    )
    if not len(members):
        raise QuantityError(
            f"users {openness.factor:g}x: no users in {weeks} weeks; the log has "
            f"{len(pool.long_term)} long-term users and {pool.arrivals_per_week:.2f} arrivals a "
            "week: give more users or more weeks"
        )
    return members


def arrivals_in(week: int, mean: float, openness: Openness, streams: Streams) -> int:
    """Return the number of users that arrive in a week, ``mean`` on average.

    The same uniform draw is used for all means, so that a larger mean never gives fewer users,
    except for means above :data:`SMALL_MEAN`.
    """
    if openness.arrivals == "even":
        return math.floor((week + 1) * mean) - math.floor(week * mean)
    stream = streams.generator("arrivals", week)
    if mean > SMALL_MEAN:
        return int(stream.poisson(mean))
    drawn = stream.random()
    count, term = 0, math.exp(-mean)
    total = term
    while drawn > total and term > 0:
        count += 1
        term *= mean / count
        total += term
    return count


def _long_term(pool: Pool, openness: Openness, streams: Streams, room: int) -> Iterator[Member]:
    """Yield the long-term users: all of them as often as goes, then some of them once more."""
    copies, rest = divmod(openness.factor, 1)
    ranked = sorted(
        pool.long_term,
        key=lambda place: streams.generator("long-term", pool.components[place].user).random(),
    )
    more = ranked[: math.floor(rest * len(ranked) + 0.5)]
    for copy in range(int(copies) + 1):
        for place in pool.long_term if copy < copies else sorted(more):
            number = copy * room + pool.components[place].user
            begins = int(streams.generator("start week", number).integers(pool.weeks))
            yield Member(number, place, -begins, _later(number, openness, streams))


def _temporary(
    pool: Pool, weeks: int, openness: Openness, streams: Streams, room: int
) -> Iterator[Member]:
    """Yield the temporary users, week by week, from those on who may still be there."""
    if not pool.temporary:
        return
    mean = openness.factor * pool.arrivals_per_week
    before = max(pool.components[place].weeks for place in pool.temporary) - 1
    for week in range(-before if openness.full else 0, weeks):
        count = arrivals_in(week, mean, openness, streams)
        if count >= room:
            raise QuantityError(
                f"users {openness.factor:g}x: {count} arrive in one week, but user numbers have "
                f"room for only {room - 1}; take fewer"
            )
        for place in range(count):
            stream = streams.generator("arrival", week, place)
            drawn = pool.temporary[int(stream.integers(len(pool.temporary)))]
            component = pool.components[drawn]
            if week + component.weeks > 0:
                number = (MOST_COPIES + before + week) * room + place
                shift = week - component.first_week
                yield Member(number, drawn, shift, _later(number, openness, streams))


def _later(number: int, openness: Openness, streams: Streams) -> int:
    if not openness.shuffled:
        return 0
    return int(streams.generator("shuffled", number).integers(WEEK))


def _room(pool: Pool) -> int:
    """Return the power of ten above all numbers of users in the log."""
    largest = max(abs(component.user) for component in pool.components)
    room: int = 10 ** len(str(largest + 1))  # an unknown user is number -1
    return max(LEAST_ROOM, room)


def add_members(
    model: Simulation,
    living: Living,
    roster: Roster,
    *,
    horizon: int,
    formula: Formula | None = None,
    consequences: Consequences | None = None,
    reactions: Sequence[Reaction] = (),
) -> list[GeneratedUser]:
    """Put a population into a model before it runs, and return its users.

    Parameters
    ----------
    model
        The simulation, over an empty table of jobs.
    living
        The activity of users while they are there, with the record of visits.
    roster
        The users.
    horizon
        s; no submissions from then on.
    formula
        Their satisfaction; None for users who do not react to the service.
    consequences
        The effects of satisfaction.
    reactions
        What users do instead of submitting a unit of work as usual, in order.

    Raises
    ------
    QuantityError
        If a reaction is not for users who submit each unit at once, to one cluster.
    """
    for reaction in reactions:
        if reaction.looks or reaction.submits or reaction.elsewhere:
            raise QuantityError(
                f"reaction {getattr(reaction, 'name', type(reaction).__name__)}: not for a "
                "population that comes and goes; choose another than look-again, cut and switch"
            )
    living.reactions = tuple(reactions)
    behaviour = living.behaviour
    if formula is not None:
        behaviour = Minding(behaviour, formula, consequences, living.visits)
    return [living.join(model, member, behaviour, horizon) for member in roster]


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
