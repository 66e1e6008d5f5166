"""People with office hours: they submit in their window, and put off the rest to the next one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import override

from agents.decisions import Why
from agents.generated import GeneratedUser, LogNormal, round_request
from agents.user import Behaviour
from agents.windows import ActivityWindow
from environment.clock import HOUR
from environment.jobs import Int64s

MINUTE = 60  #: s


@dataclass(frozen=True)
class Office:
    """When a person works and how carefully it asks for time.

    Attributes
    ----------
    window
        Working days, 8 to 18 h local time; chosen for the demo (Zakay and Feitelson 2015, section
        VII-B, have 7:30 to 17:30).
    shift
        s; each user's window is moved by a uniform draw from minus to plus this: one hour (Zakay
        and Feitelson 2015, section VII-B).
    settle
        s from the opening of the window to the first submission of a day; chosen for the demo.
    factor
        Requested time over run time, uniform between the two before it is rounded up to a round
        time; chosen for the demo.
    """

    window: ActivityWindow = field(default=ActivityWindow())
    shift: int = HOUR
    settle: LogNormal = field(default=LogNormal(30 * MINUTE, 0.8, MINUTE, 3 * HOUR))
    factor: tuple[float, float] = (1.1, 4.0)


class OfficeWorker(Behaviour[GeneratedUser]):
    """A person who submits only in its hours; subclasses say what, and how long it thinks.

    Parameters
    ----------
    office
        Its hours and its care.
    """

    def __init__(self, office: Office) -> None:
        self.office = office
        self.window = office.window

    @override
    def begin(self, user: GeneratedUser) -> None:
        """Draw the personal window and come to work on the first day."""
        shift = self.office.shift
        self.window = self.office.window.shifted(int(user.stream.integers(-shift, shift + 1)))
        user.unasked = Why.FIRST
        self.come_back(user, 0, None)

    @override
    def lost(self, user: GeneratedUser, rows: Int64s, now: int) -> None:
        """Submit stopped jobs again in the next of the user's hours."""
        at = self.window.next_open(user.model.clock, now + user.model.resubmit_after)
        user.model.resubmit(rows, at)

    def work(self, user: GeneratedUser, after: int | None) -> None:
        """Submit something now; ``after`` is the unit that made the user do it, if any."""
        raise NotImplementedError(f"{type(self).__name__} has to define work()")

    def come_back(self, user: GeneratedUser, at: int, after: int | None) -> None:
        """Work at ``at`` if that is in the user's hours, else soon after they next begin."""
        opening = self.window.next_open(user.model.clock, at)
        if opening > at:
            opening += self.office.settle.draw(user.stream)
            # A very short window may close before the user has settled.
            opening = self.window.next_open(user.model.clock, opening)
        user.put_off = opening - at
        user.call_at(opening, self.work, after)

    def request(self, user: GeneratedUser, run_time: int) -> int:
        """Return the time that the user asks for when it expects ``run_time``, s."""
        return round_request(run_time, user.stream.uniform(*self.office.factor))
