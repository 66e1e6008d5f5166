"""Who came, who left and why: what happens to a population that is open at both ends."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog


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
    """The book in which a population notes who comes and goes.

    Attributes
    ----------
    notes
        What happened, in its order.
    log
        Where it is noted among the decisions of users; None for nowhere.
    """

    def __init__(self) -> None:
        self.notes: list[Visit] = []
        self.log: DecisionLog | None = None

    def __repr__(self) -> str:
        return f"<Visits: {len(self.notes):,} notes>"

    def note(self, at: int, user: int, what: Happening, mood: float = 0.0) -> None:
        """Note what happens to a user in a mood, see :mod:`agents.populations.satisfaction`."""
        visit = Visit(at, user, what)
        self.notes.append(visit)
        if self.log is not None:
            self.log.note_visit(visit, mood)

    def counts(self) -> dict[str, int]:
        """Return how often each happened, by the words of :class:`Happening`."""
        found = Counter(visit.what for visit in self.notes)
        return {what.value: found[what] for what in Happening}

    @property
    def remaining(self) -> int:
        """Users who came and neither finished, gave up nor are away."""
        last = {visit.user: visit.what for visit in self.notes}
        return sum(what not in LEAVING for what in last.values())
