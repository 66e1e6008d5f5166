"""Settings of open populations: users of the pool, their number, how they come and go.

Nothing here needs a simulation, so that a configuration can be read quickly.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

from hpcrowd.agents.behaviours.decisions import What, Why
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError, check_choice

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog

#: Copies of a long-term user that there may be; numbers of temporary users begin after them.
MOST_COPIES = 1000


@dataclass(frozen=True)
class PoolRules:
    """Which users a pool includes, and as what.

    Attributes
    ----------
    edge
        Share of the log at each of its ends; users active only there are dropped. 0.05
        (unconfirmed: after a secondary source on Zakay and Feitelson 2016).
    long_term
        Users active for more than this share of the log are long-term users: 0.5 (unconfirmed, as
        before).
    least
        Least number of users in a pool; our choice. With fewer, the same few would recur.

    Raises
    ------
    QuantityError
        When a number makes no sense.
    """

    edge: float = 0.05
    long_term: float = 0.5
    least: int = 5

    def __post_init__(self) -> None:
        if not 0 <= self.edge < 0.5:
            raise QuantityError(f"edge {self.edge:g}: must be a share from 0 to below 0.5")
        if not 0 < self.long_term < 1:
            raise QuantityError(f"long_term {self.long_term:g}: share of the log, between 0 and 1")
        if self.least < 1:
            raise QuantityError(f"least {self.least}: users that a pool needs, at least 1")


@dataclass(frozen=True)
class Openness:
    """The number of users and how they arrive.

    Attributes
    ----------
    factor
        Users, as a multiple of those of the log: of long-term users, and of arrivals per week.
    arrivals
        ``poisson``: the number of temporary users that arrive in a week is drawn, with a constant
        mean; ``even``: the same number each week, as far as whole numbers allow (both unconfirmed:
        the papers' abstracts give no details).
    full
        Whether temporary users who came earlier and have not finished are there at the beginning;
        our choice, so that the first weeks are like the others.
    shuffled
        Also move each user by a random part of a week, so that day and hour are lost; for
        comparison.

    Raises
    ------
    QuantityError
        When a choice is not known or a number makes no sense.
    """

    factor: float = 1.0
    arrivals: Literal["poisson", "even"] = "poisson"
    full: bool = True
    shuffled: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.factor < MOST_COPIES:
            raise QuantityError(
                f"users {self.factor:g}x: more than 0 and less than {MOST_COPIES} times those of "
                "the log"
            )
        check_choice("arrivals", self.arrivals, ("poisson", "even"))


#: Names of the formulas of :mod:`hpcrowd.agents.populations.satisfaction`, in its order.
FORMULA_NAMES = ("habit", "requested", "alea")


@dataclass(frozen=True)
class Consequences:
    """How the mood of users affects them. All numbers are our choice: no measurement was found.

    Attributes
    ----------
    memory
        Units of work over which the mood is averaged.
    most
        Limit, in doublings, of the effect of one unit.
    elasticity
        Pauses are multiplied by 2 to the power of this times the mood: at 0.5 a user for whom
        all takes twice as long pauses 1.4 times as long, and submits less. In four logs pauses
        follow responses with a slope of -0.1 to 0.1 between sessions and 0.6 between batches
        (:func:`hpcrowd.scenarios.studies.rebound.run.pause_slope`).
    absence
        s; longer pauses are absences and do not depend on the mood.
    tolerance
        Doublings up to which no user leaves.
    leave
        Probability to leave after a unit, per doubling beyond the tolerance.
    returns
        Probability that a user who leaves comes back.
    away
        Mean number of weeks until then; whole weeks, at least one, geometrically distributed.
    again
        Probability that a temporary user whose work is done begins it again, per doubling by which
        service was better than usual.
    asked
        Doublings by which a unit is worse if reactions changed all of its jobs (delayed, degraded,
        reconfigured, renounced), since that was asked of the user; in proportion if they changed
        some. 0 for users who do not mind (our choice; unconfirmed).

    Raises
    ------
    QuantityError
        When a number makes no sense.
    """

    memory: float = 5.0
    most: float = 3.0
    elasticity: float = 0.5
    absence: int = WEEK
    tolerance: float = 1.0
    leave: float = 0.05
    returns: float = 0.5
    away: float = 4.0
    again: float = 0.2
    asked: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (
            ("memory", 1), ("most", 0), ("elasticity", 0), ("absence", 0), ("tolerance", 0),
            ("leave", 0), ("returns", 0), ("away", 1), ("again", 0), ("asked", 0),
        ):  # fmt: skip
            value = getattr(self, name)
            if not least <= value < math.inf:
                raise QuantityError(f"{name} {value:g}: at least {least}, and finite")
        if self.returns > 1:
            raise QuantityError(f"returns {self.returns:g}: a probability, at most 1")


class Happening(StrEnum):
    """What happened to a user."""

    THERE = "there"  #: it was there when the run began
    ARRIVED = "arrived"
    DONE = "done"  #: it left, because its work was done
    GAVE_UP = "gave up"  #: it left unsatisfied, for good
    WENT_AWAY = "went away"  #: it left unsatisfied, to come back
    CAME_BACK = "came back"
    WENT_ON = "went on"  #: its work was done, it was content and began it again


#: After these a user is not there.
LEAVING = (Happening.DONE, Happening.GAVE_UP, Happening.WENT_AWAY)


#: What users do because of how they are served.
MOODY = (Happening.GAVE_UP, Happening.WENT_AWAY, Happening.WENT_ON)


class Visit(NamedTuple):
    """Something that happened to a user."""

    at: int  #: s
    user: int  #: number
    what: Happening


#: The meaning and unit of each column of ``visits.parquet``.
VISIT_MEANING = {
    "at": "s since the origin; when it happened",
    "user": "number of the user",
    "what": "there (at the beginning), arrived, done, gave up, went away, came back, went on",
}


class Visits:
    """The record of users who come and go in a population.

    Attributes
    ----------
    notes
        The events, in order.
    log
        The log of decisions that also gets them; None for none.
    """

    def __init__(self) -> None:
        self.notes: list[Visit] = []
        self.log: DecisionLog | None = None

    def __repr__(self) -> str:
        return f"<Visits: {len(self.notes):,} notes>"

    def note(self, at: int, user: int, what: Happening, mood: float = 0.0) -> None:
        """Note an event of a user with its mood, see :mod:`agents.populations.satisfaction`."""
        self.notes.append(Visit(at, user, what))
        if self.log is not None:
            why = Why.MOOD if what in MOODY else Why.NONE
            self.log.note(at, user, What[what.name], why, mood=mood)

    def counts(self) -> dict[str, int]:
        """Return how often each happened, by the words of :class:`Happening`."""
        found = Counter(visit.what for visit in self.notes)
        return {what.value: found[what] for what in Happening}

    @property
    def remaining(self) -> int:
        """Users who came and neither finished, gave up nor are away."""
        last = {visit.user: visit.what for visit in self.notes}
        return sum(what not in LEAVING for what in last.values())
