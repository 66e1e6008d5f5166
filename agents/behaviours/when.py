"""Release of work: which unit a user may submit next, and what released it.

The first part of a composed behaviour, see :mod:`behaviours.composed`. :class:`SessionGraph` is the
mechanism of Madon et al. 2024, :class:`BatchOrder` that of Zakay and Feitelson 2015, section VI.
:class:`Recorded` waits for nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, NamedTuple, override

import numpy as np

from hpcrowd.agents.behaviours.parts import Parameter, Part
from hpcrowd.agents.work.sessions import ARRIVAL_THRESHOLD
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.registry import Seam

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.agents.work.units import Units


class Reason(IntEnum):
    """What released a unit of work."""

    START = 0  #: nothing: it comes at its recorded second
    ENDED = 1  #: the units it depends on have finished; a think time follows
    FOLLOWS = 2  #: the unit before it has been submitted; an inter-arrival time follows


class Release(NamedTuple):
    """A unit that its user may submit from now on."""

    unit: int
    at: int  #: s; when it was released
    reason: Reason
    pause: int  #: s; recorded think time or inter-arrival time
    awaited: int  #: the unit it waited for last, -1 none


# One release is made for every unit of every user. Making it of a tuple takes half the time that
# ``Release(...)`` takes, and a name of the module is found faster than one of an enumeration.
_made, ENDED, FOLLOWS = tuple.__new__, Reason.ENDED, Reason.FOLLOWS


class When(Part, ABC):
    """Decides which unit comes next. Shared by all users of a behaviour.

    Parameters
    ----------
    work
        The recorded work of all users.

    Attributes
    ----------
    units
        The units that users submit.
    over
        When each unit was over, s, -1 before; kept by parts that wait for units.
    """

    seam = Seam("When", 'when = "{0}" in a file of users, or in Python Composed(when)', 1)

    over: memoryview

    #: False if users need not be notified when work has finished.
    reacts = True

    others: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "--sessions",
            "longest gap between submissions inside a session",
            "s",
            "Zakay and Feitelson 2015, Definition 1",
            ARRIVAL_THRESHOLD,
        ),
    )

    def __init__(self, work: Work, units: Units) -> None:
        self.work = work
        self.units = units

    @property
    def by_graph(self) -> bool:
        """Whether it does what :meth:`edges` says, so that users may change their graphs."""
        return False

    def edges(self, user: ReplayUser) -> Iterable[tuple[int, int, dict[str, int]]]:
        """Yield what a user waits for: unit before, unit after, and ``think_time`` (s) from the end
        of the one to the other, ``inter_arrival`` (s) from its last submission, or both."""
        return ()

    @abstractmethod
    def begin(self, user: ReplayUser) -> Sequence[Release]:
        """Return the units that the user may submit at the beginning."""

    @abstractmethod
    def finished(self, user: ReplayUser, unit: int, now: int) -> Sequence[Release]:
        """Return the units that the user may submit now that a unit has finished."""

    def first(self, user: ReplayUser) -> Sequence[Release]:
        """Return the first unit of a user, at its recorded second."""
        if not user.units:
            return ()
        unit = user.units.start
        return [Release(unit, int(self.units.start[unit]), Reason.START, 0, UNKNOWN)]

    def sent(self, user: ReplayUser, unit: int, last: int) -> Release | None:
        """Return the unit released by the submission of the last job of a unit, at ``last``."""
        return None


class Recorded(When):
    """Sessions come at their recorded seconds, whatever happens."""

    name = "recorded"
    others = ()
    reacts = False
    by_graph = True

    def __init__(self, work: Work) -> None:
        super().__init__(work, work.by_session)

    @override
    def begin(self, user: ReplayUser) -> Sequence[Release]:
        start = self.units.start[user.units.start : user.units.stop].tolist()
        return [
            Release(unit, at, Reason.START, 0, UNKNOWN)
            for unit, at in zip(user.units, start, strict=True)
        ]

    @override
    def finished(self, user: ReplayUser, unit: int, now: int) -> Sequence[Release]:
        return ()


class SessionGraph(When):
    """Sessions wait for the sessions they depend on (Madon et al. 2024, section 4.2).

    Sessions without dependencies come at their recorded second. The pause of a session with several
    predecessors ends when the think time after each of them has passed.
    """

    name = "sessions"

    def __init__(self, work: Work) -> None:
        super().__init__(work, work.by_session)
        dependencies = work.dependencies
        # Views that yield plain integers: several times faster to index than arrays.
        self._first = memoryview(dependencies.first)
        self._successor = memoryview(dependencies.successor)
        self._think = memoryview(dependencies.think)
        self._missing = memoryview(dependencies.count.copy())
        self._earliest = memoryview(np.zeros(len(self.units), np.int64))
        self._free = np.flatnonzero(dependencies.count == 0)
        self.over = memoryview(np.full(len(self.units), UNKNOWN))

    @property
    @override
    def by_graph(self) -> bool:
        return type(self).finished is SessionGraph.finished

    @override
    def edges(self, user: ReplayUser) -> Iterable[tuple[int, int, dict[str, int]]]:
        for unit in user.units:
            for edge in range(self._first[unit], self._first[unit + 1]):
                yield unit, self._successor[edge], {"think_time": self._think[edge]}

    @override
    def begin(self, user: ReplayUser) -> Sequence[Release]:
        first, last = np.searchsorted(self._free, (user.units.start, user.units.stop))
        return [
            Release(unit, int(self.units.start[unit]), Reason.START, 0, UNKNOWN)
            for unit in self._free[first:last].tolist()
        ]

    @override
    def finished(self, user: ReplayUser, unit: int, now: int) -> Sequence[Release]:
        missing, earliest = self._missing, self._earliest
        self.over[unit] = now
        free = []
        for edge in range(self._first[unit], self._first[unit + 1]):
            after = self._successor[edge]
            ready = now + self._think[edge]
            if ready > earliest[after]:
                earliest[after] = ready
            missing[after] -= 1
            if not missing[after]:
                free.append(_made(Release, (after, now, ENDED, earliest[after] - now, unit)))
        return free


class BatchOrder(When):
    """Batches keep their order and wait for what they depend on (Zakay and Feitelson 2015).

    The *next* batch of a user is the one whose predecessor has been submitted (Definition 13). It
    is released when all batches that it depends on have finished and the last job of the batch
    before has been submitted, whichever comes later (Definition 14). After the end of a dependency
    its think time follows, after the submission its inter-arrival time (section VII).

    If both happen in one second, the submission counts, since it comes last in an instant; except
    that a batch that finishes in the second of its own last submission releases by its end.
    """

    name = "batches"

    def __init__(self, work: Work) -> None:
        units = work.by_batch
        super().__init__(work, units)
        dependencies = units.dependencies
        self._first = memoryview(dependencies.first)
        self._successor = memoryview(dependencies.successor)
        self._missing = memoryview(dependencies.count.copy())
        self._awaited = memoryview(np.full(len(units), UNKNOWN))
        self._think = memoryview(units.think_time)
        self._gap = memoryview(units.inter_arrival)
        # By user: the batch that is next, and when the last job before it is submitted.
        self._next = units.user_first[:-1].tolist()
        self._sent = [UNKNOWN] * len(self._next)
        self.over = memoryview(np.full(len(units), UNKNOWN))

    @property
    @override
    def by_graph(self) -> bool:
        kind = type(self)
        return kind.finished is BatchOrder.finished and kind.sent is BatchOrder.sent

    @override
    def edges(self, user: ReplayUser) -> Iterable[tuple[int, int, dict[str, int]]]:
        found: dict[tuple[int, int], dict[str, int]] = {
            (after - 1, after): {"inter_arrival": self._gap[after]} for after in user.units[1:]
        }
        for unit in user.units:
            for edge in range(self._first[unit], self._first[unit + 1]):
                after = self._successor[edge]
                found.setdefault((unit, after), {})["think_time"] = self._think[after]
        for (before, after), times in found.items():
            yield before, after, times

    @override
    def begin(self, user: ReplayUser) -> Sequence[Release]:
        return self.first(user)

    @override
    def finished(self, user: ReplayUser, unit: int, now: int) -> Sequence[Release]:
        missing = self._missing
        self.over[unit] = now
        following = self._next[user.place]
        free: Sequence[Release] = ()
        for edge in range(self._first[unit], self._first[unit + 1]):
            after = self._successor[edge]
            missing[after] -= 1
            self._awaited[after] = unit
            if after == following and not missing[after]:
                sent = self._sent[user.place]
                if now > sent or (now == sent and unit == after - 1):
                    free = (_made(Release, (after, now, ENDED, self._think[after], unit)),)
                else:
                    free = (_made(Release, (after, sent, FOLLOWS, self._gap[after], unit)),)
        return free

    @override
    def sent(self, user: ReplayUser, unit: int, last: int) -> Release | None:
        after = unit + 1
        self._next[user.place] = after
        self._sent[user.place] = last
        if after == user.units.stop or self._missing[after]:
            return None
        return _made(Release, (after, last, FOLLOWS, self._gap[after], self._awaited[after]))
