"""A population that is open at both ends: users come by the week, each is a closed loop, and leave.

Long-term users of the pool are there from the beginning, each at a random week of its own record.
Temporary users arrive: every week some components are drawn from the pool, with replacement. The
load is set by the number of users; nobody's time is squeezed.

Sources: Zakay and Feitelson, ICPE 2013 (whole weeks; a random week for long-term users), SYSTOR
2016 (semi-open: users arrive openly, each is a closed loop). The exact rules were not found; what
is chosen here says so.

Everything drawn has a stream of its own: what a user is does not depend on how many others there
are, and with a larger population those of the smaller one are all there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.populations.component_users import Member
from hpcrowd.agents.populations.components import Pool
from hpcrowd.agents.populations.mixture import TOLERANCE
from hpcrowd.agents.populations.openness import MOST_COPIES, Consequences, Openness
from hpcrowd.agents.populations.satisfaction import Formula, Minding
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.streams import Streams

if TYPE_CHECKING:
    from hpcrowd.agents.generative.generated import GeneratedUser
    from hpcrowd.agents.populations.made_up import Living
    from hpcrowd.environment.simulation import Simulation


#: Numbers of users have room for so many others with the same beginning, at least.
LEAST_ROOM = 1000

#: Mean arrivals per week up to which their distribution function is summed term by term; exp(-mean)
#: is a number in double precision up to 745.
SMALL_MEAN = 500


@dataclass(frozen=True)
class Roster:
    """Who is in a population.

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
        """Return the users in parts, for populations in which not all do the same.

        Parameters
        ----------
        shares
            Probability of each part; they add up to 1. Each user draws its part from a stream of
            its own.
        streams
            Of the run.

        Raises
        ------
        QuantityError
            When they do not add up.
        """
        if min(shares, default=0) < 0 or abs(sum(shares) - 1) > TOLERANCE:
            words = " + ".join(f"{share:g}" for share in shares)
            raise QuantityError(f"shares {words}: none below 0, and they must add up to 1")
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
        What they are drawn from.
    weeks
        How long the run is.
    openness
        How many they are.
    streams
        Of the run.

    Raises
    ------
    QuantityError
        When there are no weeks, or nobody would be there.
    """
    if weeks < 1:
        raise QuantityError(f"weeks {weeks}: how long the run is, at least 1")
    room = _room(pool)
    members = Roster(
        tuple(_long_term(pool, openness, streams, room)),
        tuple(_temporary(pool, weeks, openness, streams, room)),
    )
    if not len(members):
        raise QuantityError(
            f"users {openness.factor:g}x: nobody is there in {weeks} weeks; the log has "
            f"{len(pool.long_term)} long-term users and {pool.arrivals_per_week:.2f} arrivals a "
            "week: give more users or more weeks"
        )
    return members


def arrivals_in(week: int, mean: float, openness: Openness, streams: Streams) -> int:
    """Return how many users arrive in a week, ``mean`` on average.

    The same uniform draw decides whatever the mean is, so that a larger one never means fewer; but
    for means above :data:`SMALL_MEAN`.
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
                f"users {openness.factor:g}x: {count} arrive in one week; numbers of users leave "
                f"room for {room - 1}: take fewer"
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
) -> list[GeneratedUser]:
    """Put a population into a model before it runs, and return its users.

    Parameters
    ----------
    model
        The simulation, over an empty table of jobs.
    living
        What the users do while they are there; it holds the book of visits.
    roster
        Who they are.
    horizon
        s; nobody submits from then on.
    formula
        How satisfied they are; None for users who take everything as it comes.
    consequences
        What they make of it.
    """
    behaviour = living.behaviour
    if formula is not None:
        behaviour = Minding(behaviour, formula, consequences, living.visits)
    return [living.join(model, member, behaviour, horizon) for member in roster]
