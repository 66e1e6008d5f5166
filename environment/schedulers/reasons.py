"""Why a job waits, by what its scheduler decides: a code, numbers, and one line of words."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from environment.clock import moment
from environment.jobs import UNKNOWN
from environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from environment.clock import Clock


class ReasonCode(IntEnum):
    """Why a job waits."""

    HEAD = 0  #: the first that does not fit: what it asks for is kept for it
    NO_ROOM = 1  #: asks for more processors than are free
    WOULD_DELAY = 2  #: fits, and would delay a job that has a reservation
    BEHIND = 3  #: nobody overtakes the head
    PLANNED = 4  #: has a place in the plan
    PROMISED = 5  #: a start was promised to it; what is planned now is not known
    LIMIT = 6  #: user or queue is at a limit
    TOO_LARGE = 7  #: asks for more processors than are up
    MAINTENANCE = 8  #: fits, and would run into announced maintenance
    CLOSED = 9  #: there is maintenance
    CAN_START = 10  #: fits: something has changed since the scheduler looked
    ARRIVED = 11  #: the scheduler has not looked since it arrived
    NOT_CHOSEN = 12  #: fits, and the scheduler does not say why it has not chosen it
    RECORDED = 13  #: starts when the trace says
    GRID = 14  #: no cluster of the grid has room
    BROKER = 15  #: is with the broker of the grid


class WaitingReason(NamedTuple):
    """Why one job waits; :data:`UNKNOWN` where a number has no meaning or is not known.

    Numbers of processors are those that the scheduler comes to when it reaches the job: what starts
    before it at the same look is not free any more.
    """

    row: int  #: row in the table of jobs
    code: ReasonCode
    now: int  #: s since the origin, when this holds
    asks: int  #: processors
    free: int  #: processors; negative while more are held than are up
    place: int = UNKNOWN  #: in the queue, in the order of the scheduler, from 1
    order: str = ""  #: that order in words, such as ``by fair share``; empty for by submission
    lasts: int = UNKNOWN  #: s, run time that the scheduler believes
    blocker: int = UNKNOWN  #: row of the job that it waits behind, or would delay
    number: int = UNKNOWN  #: job number of that job
    reserved: int = UNKNOWN  #: s since the origin, start of that job, or of maintenance
    start: int = UNKNOWN  #: s since the origin, the earliest start by what the scheduler believes
    up: int = UNKNOWN  #: processors that are up
    note: str = ""  #: what else there is to say

    def words(self, clock: Clock) -> str:
        """Return the reason in one line, times as local times."""
        text = self._words(clock)
        told = self.order and self.code in TOLD_BY_PLACE
        return f"place {self.place:,} {self.order}: {text}" if told else text

    def _words(self, clock: Clock) -> str:
        match self.code:
            case ReasonCode.HEAD:
                lead = "first" if self.place == 1 else "next"
                return f"{lead} {self.order or 'in the queue'}: {self._room}{self._expected(clock)}"
            case ReasonCode.NO_ROOM:
                return self._room + self._more
            case ReasonCode.WOULD_DELAY:
                return (
                    f"fits, but would delay {self._blocker} (reserved "
                    f"{self._at(clock, self.reserved)}): {self._believed}{self._more}"
                )
            case ReasonCode.BEHIND:
                return f"waits behind {self._blocker}: {self.note} lets nobody overtake"
            case ReasonCode.PLANNED:
                return f"planned for {self._at(clock, self.start)}"
            case ReasonCode.PROMISED:
                past = ", which is past" if self.start < self.now else ""
                return f"promised to start by {self._at(clock, self.start)}{past}"
            case ReasonCode.LIMIT:
                kept = f", with {self._blocker}, which goes first" if self.blocker >= 0 else ""
                return f"{self.note}{kept}"
            case ReasonCode.TOO_LARGE:
                return f"larger than what is up: asks {self.asks:,}, {max(self.up, 0):,} up"
            case ReasonCode.MAINTENANCE:
                when = self._at(clock, self.reserved)
                return f"would run into the maintenance announced for {when}: {self._believed}"
            case ReasonCode.CLOSED:
                if self.start == self.now:
                    return "cluster is closed and opens now"
                return f"cluster is closed until {self._at(clock, self.start)}"
            case ReasonCode.CAN_START:
                return "fits: may start when the scheduler looks next"
            case ReasonCode.ARRIVED:
                return "arrived at this second, not looked at yet"
            case ReasonCode.NOT_CHOSEN:
                return f"{self.note} has not chosen it: {self._room}"
            case ReasonCode.RECORDED:
                return f"recorded to start {self._at(clock, self.start)}"
            case ReasonCode.GRID:
                return f"no cluster of the grid has {self.asks:,} free{self._more}"
        return f"held by the broker of the grid: asks {plural(self.asks, 'processor')}"

    @property
    def _room(self) -> str:
        free = "none is" if self.free <= 0 else "1 is" if self.free == 1 else f"{self.free:,} are"
        return f"asks {plural(self.asks, 'processor')}, {free} free"

    @property
    def _more(self) -> str:
        return f"; {self.note}" if self.note else ""

    @property
    def _believed(self) -> str:
        return f"believed to run {format_duration(self.lasts)}"

    @property
    def _blocker(self) -> str:
        known = self.number != UNKNOWN
        return f"job {self.number}" if known else f"the job in row {self.blocker}"

    def _at(self, clock: Clock, second: int) -> str:
        return "now" if second == self.now else moment(clock, second, near=self.now)

    def _expected(self, clock: Clock) -> str:
        if self.start == UNKNOWN:
            return ""
        if self.start <= self.now:
            return "; start expected any moment, jobs run longer than believed"
        return f"; start expected {self._at(clock, self.start)}"


#: Reasons that are told with the place in the queue, where that is not by submission.
TOLD_BY_PLACE = frozenset(
    {ReasonCode.NO_ROOM, ReasonCode.WOULD_DELAY, ReasonCode.BEHIND, ReasonCode.LIMIT}
)
