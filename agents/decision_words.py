"""Decisions as a table, and each of them in words of people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from agents.decisions import DecisionLog, Kind, What, Why
from environment.jobs import UNKNOWN
from environment.quantities import format_duration

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


class Decision(NamedTuple):
    """A row of the log; see :data:`agents.decisions.MEANING`."""

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
        by = f" by {format_duration(self.seconds)}" if self.what == What.DELAYED else ""
        return f"{unit}: job {self.cause} {self.what.name.lower()}{by}, reaction {self.name}"

    def _reason(self) -> str:
        cause = f"{self.kind.name.lower()} {self.cause}"
        pause = "unknown" if self.seconds == UNKNOWN else format_duration(self.seconds)
        match self.why:
            case Why.ENDED:
                return f", released by completion of {cause}, think time {pause}"
            case Why.BREAK:
                return f", released by completion of {cause}, after a break of {pause}"
            case Why.FOLLOWS:
                return f", released by submission of {cause}, {pause} after it"
            case Why.RECORDED:
                return " at its recorded time"
            case Why.FIRST:
                return ", the first of the user"
            case Why.HOUR:
                return " at its hour of the day"
        return ", the behaviour does not say why"

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
        return f"is put off by {self.seconds} s, the behaviour does not say why"


@dataclass(frozen=True)
class Decisions:
    """The decisions of a run.

    Attributes
    ----------
    columns
        By the names of :data:`agents.decisions.MEANING`, each of shape (decisions,), in the order
        of time; words as their numbers.
    names
        What the numbers in the column ``name`` stand for.
    dropped
        Decisions that were made later and not kept, see :class:`agents.decisions.DecisionLog`.
    """

    columns: dict[str, np.ndarray]
    names: tuple[str, ...]
    dropped: int = 0

    @classmethod
    def of(cls, log: DecisionLog, user: int | None = None) -> Decisions:
        """Return what a log holds, of one user if one is given."""
        return cls(log.columns(user), tuple(log.names), log.dropped)

    def __len__(self) -> int:
        return len(self.columns["time"])

    def __iter__(self) -> Iterator[Decision]:
        return self.rows(np.arange(len(self)))

    def rows(self, places: np.ndarray) -> Iterator[Decision]:
        """Yield some of the decisions, by their places."""
        found = {name: values[places].tolist() for name, values in self.columns.items()}
        for values in zip(*(found[name] for name in Decision._fields), strict=True):
            time, user, what, why, kind, unit, cause, seconds, name, mood = values
            yield Decision(
                time, user, What(what), Why(why), Kind(kind), unit, cause, seconds,
                self.names[name], mood,
            )  # fmt: skip

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
        """Return the last decisions of a user before ``end``, s, newest first, at most so many."""
        which = (self.columns["user"] == user) & (self.columns["time"] < end)
        return list(self.rows(np.flatnonzero(which)[::-1][:most]))
