"""Who comes, stays and leaves after the first days of a forecast: those of a stretch of the record.

In the first days of a forecast each user goes on from a moment of its own record that is like now
(:mod:`.past`). Later, what it did just now says little, and what matters is how many users there
are, who is new, who comes back from a long silence and who has left. If each user went on from
moments of its own for weeks, nobody who is silent would return more often than in its own record,
in which it did not: the number of users, and of jobs, would fall.

So from then on all users together do what they did in one stretch of the record that is as long as
what is left of the forecast. Whoever came for the first time in it comes as somebody new, with the
first weeks of that user's record; who had not come by then, or was silent, is not there. Level,
rhythm, sessions and what users do in common are those of the record; between futures they differ
as stretches do. Recent stretches are likelier than old ones.

Who happens to be there matters as well: on most machines a few users submit most of the jobs. So
for some of the users it is drawn how often somebody like them is there, not at all, once, or more
often: a bootstrap of users, whose numbers are Poisson with a mean that itself is drawn from a gamma
distribution with mean 1, as rates of arrival are not known. Each further one takes its work from
another stretch, and comes in the place of one who is not there, if there is one.

The users of the first days and those of a stretch would mostly be different ones, and more in all
than ever. But most users of a week are there in the next as well. So whoever had been there just
before the stretch, as long as the first days last, is somebody of the first days who otherwise
would fall silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpcrowd.environment.clock import DAY
from hpcrowd.environment.jobs import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from hpcrowd.agents.populations.past import Past
    from hpcrowd.environment.jobs import Int64s


@dataclass(frozen=True)
class Turnover:
    """How stretches of the record are chosen. All numbers are our choice, on the logs of design.

    Attributes
    ----------
    memory, power
        The weight of a stretch that ended ``age`` days ago is (1 + age / memory) ** -power; memory
        in days.
    weekend
        Factor on the weight of stretches that begin on another kind of day, for each of the seven
        days of the week that falls on a weekend in one and not in the other.
    drawn
        Share of the users of whom it is drawn how often somebody like them is there.
    shape
        Shape of the gamma distribution of the mean; the smaller, the more the work of those who
        submit most differs between futures.
    least
        Fewest stretches, one for each day, that a record must have.
    """

    memory: float = 7.0
    power: float = 1.0
    weekend: float = 0.4
    drawn: float = 0.5
    shape: float = 0.5
    least: int = 14


class Later(NamedTuple):
    """With whose record a user goes on after the first days, and from which moment."""

    place: int  #: Index among the users of the past; -1 for nobody, who submits nothing.
    moment: int  #: s; the second of the record that is ``begin``.
    begin: int  #: s.


class Stretches:
    """The stretches of a record that may come again.

    Parameters
    ----------
    past
        The record.
    begin, until
        The seconds that a stretch is for, s.
    turnover
        How stretches are chosen.
    """

    def __init__(
        self, past: Past, begin: int, until: int, turnover: Turnover | None = None
    ) -> None:
        self.past, self.begin, self.span = past, begin, until - begin
        self.turnover = rules = turnover or Turnover()
        ahead, span = -(-(begin - past.now) // DAY), -(-self.span // DAY)
        age = np.arange(max((past.now - past.begin) // DAY - span + 1, 0))
        self._wall, self._back = past.clock.wall(begin), age + span + ahead
        week = np.arange(7)
        here = (self._wall // DAY + week) % 7 >= 5
        there = ((self._wall // DAY - self._back)[:, None] + week) % 7 >= 5
        weight = (1 + age / rules.memory) ** -rules.power
        weight *= rules.weekend ** (there != here).sum(axis=1)
        self._sums: NDArray[np.float64] = np.cumsum(weight)

    def __len__(self) -> int:
        return len(self._back)

    @property
    def enough(self) -> bool:
        """Whether the record is long enough."""
        return self.span > 0 and len(self) >= self.turnover.least

    def draw(
        self, stream: np.random.Generator, before: AbstractSet[int] = frozenset()
    ) -> tuple[dict[int, Later], list[Later]]:
        """Draw who is there: what known users do, by place, and what new ones do.

        Parameters
        ----------
        stream
            For all that is drawn.
        before
            Places of the users who submit in the first days.
        """
        rules, users = self.turnover, len(self.past.users)
        first = self.past.starts[self.past.units.user_first[:-1]]
        drawn = stream.random((2, users)) < rules.drawn  # of known users, and of new ones like them
        mean = stream.gamma(rules.shape, 1 / rules.shape, (2, users))
        times = np.where(drawn, stream.poisson(mean), 1)
        known: dict[int, Later] = {}
        others: list[Later] = []
        absent: list[int] = []
        for copy in range(int(times.max(initial=0))):
            moment = self._moment(stream)
            for place in self._active(moment).tolist():
                new = int(first[place] > moment)
                itself = -1 if new else place  # -1 for somebody new
                if times[new, place] <= copy:
                    if not copy:
                        absent.append(itself)
                    continue
                if copy:
                    itself = absent.pop() if absent else -1
                if itself < 0:
                    others.append(Later(place, moment, self.begin))
                else:
                    known[itself] = Later(place, moment, self.begin)
            if not copy:
                stream.shuffle(absent)
        self._continue(known, before, stream)
        return known, others

    def _continue(
        self, known: dict[int, Later], before: AbstractSet[int], stream: np.random.Generator
    ) -> None:
        """Give the work of who was there before the stretch to users of the first days."""
        silent = [place for place in before if place not in known]
        stay = [
            place
            for place, later in known.items()
            if place not in before
            and self._submits(later.place, later.moment - (self.begin - self.past.now))
        ]
        stream.shuffle(silent)
        stream.shuffle(stay)
        for place, other in zip(silent, stay, strict=False):
            known[place] = known.pop(other)

    def submit_before(self, whose: Int64s, when: Int64s) -> set[int]:
        """Return the places of users who submit in the first days.

        Parameters
        ----------
        whose, when
            With whose record each begins and from which second, as from
            :meth:`~hpcrowd.agents.populations.past.Past.first_moments`.
        """
        begins = enumerate(zip(whose.tolist(), when.tolist(), strict=True))
        return {
            place
            for place, (record, moment) in begins
            if record != UNKNOWN and self._submits(record, moment)
        }

    def _submits(self, place: int, moment: int) -> bool:
        """Return whether a user submits in a time as long as the first days, from a moment on."""
        a, b = self.past.by_user[place : place + 2]
        span = self.begin - self.past.now
        first, last = self.past.starts[a:b].searchsorted((moment, moment + span), side="right")
        return bool(first < last)

    def _moment(self, stream: np.random.Generator) -> int:
        """Draw the beginning of a stretch, s."""
        which = int(self._sums.searchsorted(stream.random() * self._sums[-1]))
        back = int(self._back[min(which, len(self) - 1)])
        return self.past.clock.second_at(self._wall - back * DAY)

    def _active(self, moment: int) -> Int64s:
        """Return the places of the users who submit in the stretch from a moment on."""
        starts = self.past.starts
        there = (starts > moment) & (starts <= moment + self.span)
        return np.unique(self.past.units.user[there])

    def nobody(self) -> Later:
        """Return what somebody does who is not there."""
        return Later(UNKNOWN, self.begin, self.begin)
