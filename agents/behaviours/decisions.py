"""The decision log: what users did, when and why, a row for each decision.

======================= ============================================================================
what                    meaning of the row
======================= ============================================================================
submitted               a unit of work was submitted; exactly one row for each unit, except those
                        that were renounced as a whole
waits                   the submission is put off by ``seconds``, beyond the think time
delayed, degraded, ...  a reaction changed a job of the unit, see :mod:`reactions`
there, arrived, ...     the user came or left, see :mod:`hpcrowd.agents.populations.openness`
left queue              a job that had waited for too long left its queue; it comes again
                        ``seconds`` later, -1 never
lost                    a running job of the unit was stopped; it comes again ``seconds`` later
======================= ============================================================================

A submission is the sum of its parts: a unit that was released by the completion of another at
second r is submitted at r + ``seconds`` + the ``seconds`` of its rows *waits*; a job delayed by a
reaction comes later by that delay. For a unit that follows the submission of another, r is that
submission; a unit that waits for nothing has no sum.

The log is off unless one is given, and is kept in columns. Its size is bounded: decisions beyond
``limit`` are only counted, so that the log is complete from the beginning up to its end.
:attr:`Decision.words` describes a row in words.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.quantities import format_duration

if TYPE_CHECKING:
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.agents.work.units import Units


#: Default limit of rows in a log: 55 bytes each, 110 MB.
LIMIT = 2_000_000


class What(IntEnum):
    """What a user did, or what happened to a planned submission."""

    SUBMITTED = 0
    WAITS = 1
    DELAYED = 2
    DEGRADED = 3
    RECONFIGURED = 4
    RENOUNCED = 5
    SWITCHED = 6
    CHANGED = 7  #: what the job asks for, or by your own reaction
    LOST = 8
    THERE = 9
    ARRIVED = 10
    DONE = 11
    GAVE_UP = 12
    WENT_AWAY = 13
    CAME_BACK = 14
    WENT_ON = 15
    LEFT_QUEUE = 16
    CUT = 17  #: a piece of a task was submitted
    RETURNED = 18  #: work that a reaction had saved was submitted as a new job


class Why(IntEnum):
    """The reason of a decision."""

    RECORDED = 0  #: it comes at its recorded second
    FIRST = 1  #: the user is there for the first time
    ENDED = 2  #: a unit it waited for has finished; a think time follows
    BREAK = 3  #: the same, but the user takes a break instead of thinking
    FOLLOWS = 4  #: the unit before was submitted; an inter-arrival time follows
    WINDOW = 5  #: the user is not at work; its window opens later
    PACE = 6  #: pauses pass at the pace of the user's week
    AWAY = 7  #: the user is away for some weeks
    REACTION = 8  #: a reaction
    MOOD = 9  #: the user is discontent, or content
    OWN = 10  #: your own behaviour, which gives no reason
    STOPPED = 11  #: the platform stopped a job
    NONE = 12  #: no special reason
    HOUR = 13  #: it comes at its own hour every day
    WAITED = 14  #: a job has waited for longer than the user's patience


class Kind(IntEnum):
    """What the number of a unit counts, as in the columns of the table of jobs."""

    SESSION = 0
    BATCH = 1


def kind_of(units: Units | None, work: Work) -> Kind:
    """Return the kind of units of recorded work; None means sessions."""
    # Not taken from the work itself, which would compute the dependencies of sessions.
    by_session = units is None or units is vars(work).get("by_session")
    return Kind.SESSION if by_session else Kind.BATCH


def _words(kind: type[IntEnum]) -> str:
    """Return the words of a column for people."""
    return ", ".join(one.name.lower().replace("_", " ") for one in kind)


#: Type of each column, and the meaning and unit of it in ``decisions.parquet``.
COLUMNS = {
    "time": ("q", "s since the origin; of a submission when its first job comes, of other rows "
             "when it was decided"),
    "user": ("q", "number of the user"),
    "what": ("b", _words(What)),
    "why": ("b", _words(Why)),
    "kind": ("b", "what units of work are: session or batch, as in jobs.parquet"),
    "unit": ("q", "number of the unit of work, -1 none"),
    "cause": ("q", "number of the unit that was waited for or followed, of reactions and stopped "
              "jobs that of the job, -1 none"),
    "seconds": ("q", "s; of a submission the think time, break or inter-arrival time, of a wait or "
                "a delay by how much it puts off, of a stopped job how much later it is submitted "
                "again, -1 unknown"),
    "name": ("i", "name of the reaction, and of the cluster or partition that it chose, else "
             "empty"),
    "mood": ("d", "doublings; how bad things were for the user, 0 where users do not mind"),
}  # fmt: skip

#: The meaning of each column, as documented.
MEANING = {name: meaning for name, (_, meaning) in COLUMNS.items()}

#: Columns that hold words, with their numbers.
WORDS: dict[str, type[IntEnum]] = {"what": What, "why": Why, "kind": Kind}


class DecisionLog:
    """What users decided, in columns.

    Parameters
    ----------
    limit
        Largest number of rows; later decisions are only counted.

    Attributes
    ----------
    dropped
        Number of decisions not kept.
    names
        Names of reactions; the column ``name`` holds their indices.

    Raises
    ------
    QuantityError
        If the limit is below 1.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        if limit < 1:
            raise QuantityError(f"limit {limit}: the log of decisions needs at least 1 row")
        self.limit = limit
        self.dropped = 0
        self.names = [""]
        self._places = {"": 0}
        self._columns: list[array[Any]] = [array(code) for code, _ in COLUMNS.values()]
        self._add = [column.append for column in self._columns]

    def __len__(self) -> int:
        return len(self._columns[0])

    def __repr__(self) -> str:
        return f"<DecisionLog: {len(self):,} rows, {self.dropped:,} dropped>"

    def note(
        self,
        time: int,
        user: int,
        what: int,
        why: int,
        kind: int = Kind.BATCH,
        unit: int = UNKNOWN,
        cause: int = UNKNOWN,
        seconds: int = UNKNOWN,
        name: str = "",
        mood: float = 0.0,
    ) -> None:
        """Keep a decision, or count it if the log is full."""
        if len(self._columns[0]) >= self.limit:
            self.dropped += 1
            return
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = len(self.names)
            self.names.append(name)
        values = (time, user, what, why, kind, unit, cause, seconds, place, mood)
        for add, value in zip(self._add, values, strict=True):
            add(value)

    def forget(self, user: int, kind: Kind, units: Collection[int], since: int) -> None:
        """Leave out what a user planned from second ``since`` on for units that it takes back."""
        time, who, what, of, unit = (
            np.array(self._columns[place], np.int64)
            for place in map(list(COLUMNS).index, ("time", "user", "what", "kind", "unit"))
        )
        gone = (who == user) & (time >= since) & (of == kind) & np.isin(unit, list(units))
        gone &= (what == What.SUBMITTED) | (what == What.WAITS)
        if gone.any():
            for column in self._columns:
                left = np.array(column, column.typecode)[~gone]
                column[:] = array(column.typecode, left.tobytes())

    def columns(self, user: int | None = None) -> dict[str, np.ndarray]:
        """Return the log as arrays by name, ordered by time; words as their numbers.

        Rows of one second are in the order in which they were noted.

        Parameters
        ----------
        user
            Number of the user whose decisions are returned; None for those of all.
        """
        columns = dict(zip(COLUMNS, self._columns, strict=True))
        if user is None:
            found = {name: np.array(column, column.typecode) for name, column in columns.items()}
        else:
            # Views are released at once: a column with an open view cannot grow.
            rows = np.flatnonzero(np.asarray(columns["user"]) == user)
            found = {name: np.asarray(column)[rows] for name, column in columns.items()}
        order = np.argsort(found["time"], kind="stable")
        return {name: values[order] for name, values in found.items()}


#: What a user did when it came or left.
VISITS = {
    What.THERE: "is there when the run begins",
    What.ARRIVED: "arrives",
    What.DONE: "leaves: its work is done",
    What.GAVE_UP: "gives up and leaves for good",
    What.WENT_AWAY: "goes away for some weeks, discontent",
    What.CAME_BACK: "comes back",
    What.WENT_ON: "is content and begins its work again",
}


#: Why a unit was submitted.
SUBMITTED_WHY = {
    Why.ENDED: ", released by completion of {cause}, think time {pause}",
    Why.BREAK: ", released by completion of {cause}, after a break of {pause}",
    Why.FOLLOWS: ", released by submission of {cause}, {pause} after it",
    Why.RECORDED: " at its recorded time",
    Why.FIRST: ", the first of the user",
    Why.HOUR: " at its hour of the day",
}


class Decision(NamedTuple):
    """A row of the log; see :data:`hpcrowd.agents.behaviours.decisions.MEANING`."""

    time: int
    user: int
    what: What
    why: Why
    kind: Kind
    unit: int
    cause: int
    seconds: int
    name: str
    mood: float

    def words(self) -> str:
        """Return what was decided and why, without the time."""
        text = self._words()
        return f"{text} (mood {self.mood:+.2f} doublings)" if self.mood else text

    def _words(self) -> str:
        if self.what in VISITS:
            return VISITS[self.what]
        unit = f"{self.kind.name.lower()} {self.unit}"
        if self.what == What.SUBMITTED:
            return f"{unit} submitted{self._reason()}"
        if self.what == What.WAITS:
            return f"{unit} {self._wait()}"
        if self.what == What.LOST:
            later = "later" if self.seconds < 0 else f"after {format_duration(self.seconds)}"
            return f"{unit}: job {self.cause} was stopped, the user submits it again {later}"
        if self.what == What.LEFT_QUEUE:
            again = {UNKNOWN: "for good", 0: "to come again with fewer processors"}
            if self.name:
                again[0] = f"to come again in partition {self.name}"
            later = f"to come again after {format_duration(self.seconds)}"
            return f"{unit}: job {self.cause} leaves the queue {again.get(self.seconds, later)}"
        by = f" by {format_duration(self.seconds)}" if self.what == What.DELAYED else ""
        return f"{unit}: job {self.cause} {self.what.name.lower()}{by}, reaction {self.name}"

    def _reason(self) -> str:
        cause = f"{self.kind.name.lower()} {self.cause}"
        pause = "unknown" if self.seconds == UNKNOWN else format_duration(self.seconds)
        form = SUBMITTED_WHY.get(self.why, ", for a reason of the behaviour")
        return form.format(cause=cause, pause=pause)

    def _wait(self) -> str:
        lasts = format_duration(abs(self.seconds))
        match self.why:
            case Why.WINDOW:
                return f"waits {lasts}, until the user is at work"
            case Why.PACE:
                more = "longer" if self.seconds > 0 else "less"
                return f"is thought about {lasts} {more}, at the pace of the user's week"
            case Why.AWAY:
                return f"waits {lasts}, since the user is away"
            case Why.REACTION:
                return f"is looked at again after {lasts}, reaction {self.name}"
        return f"is put off by {self.seconds} s, for a reason of the behaviour"


@dataclass(frozen=True)
class Decisions:
    """The decisions of a run.

    Attributes
    ----------
    columns
        By the names of :data:`MEANING`, each of shape (decisions,), in the order
        of time; words as their numbers.
    names
        Names of the numbers in the column ``name``.
    dropped
        Number of later decisions that were not kept, see :class:`DecisionLog`.
    """

    columns: dict[str, np.ndarray]
    names: tuple[str, ...]
    dropped: int = 0

    @classmethod
    def of(cls, log: DecisionLog, user: int | None = None) -> Decisions:
        """Return the decisions in a log, of one user if one is given."""
        return cls(log.columns(user), tuple(log.names), log.dropped)

    def __len__(self) -> int:
        return len(self.columns["time"])

    def __iter__(self) -> Iterator[Decision]:
        return self.rows(np.arange(len(self)))

    def rows(self, places: np.ndarray) -> Iterator[Decision]:
        """Yield some of the decisions, by their places."""
        found = {name: values[places].tolist() for name, values in self.columns.items()}
        for values in zip(*(found[name] for name in Decision._fields), strict=True):
            row = dict(zip(Decision._fields, values, strict=True))
            row |= {name: words(row[name]) for name, words in WORDS.items()}
            yield Decision(**row | {"name": self.names[row["name"]]})

    def of_user(
        self, user: int, begin: int | None = None, end: int | None = None
    ) -> Iterator[Decision]:
        """Yield the decisions of a user from ``begin`` on and before ``end``, s."""
        which = self.columns["user"] == user
        if begin is not None:
            which &= self.columns["time"] >= begin
        if end is not None:
            which &= self.columns["time"] < end
        return self.rows(np.flatnonzero(which))

    def last_of_user(self, user: int, end: int, most: int | None = None) -> list[Decision]:
        """Return the last ``most`` decisions of a user before ``end``, s, newest first."""
        which = (self.columns["user"] == user) & (self.columns["time"] < end)
        return list(self.rows(np.flatnonzero(which)[::-1][:most]))
