"""What one page holds: one or two courses that are moved on together.

A page is used by one person, but through several threads: the one that plays, and those that bring
what is clicked. All that moves a course goes through the lock of the sitting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.inspector.course import Course
from hpcrowd.scenarios.inspector.subject import Subject

#: A long way is gone in pieces of so much simulated time, s, so that one can stop in between.
PIECE = 24 * HOUR


@dataclass
class Seat:
    """One of the runs of a page.

    Attributes
    ----------
    subject
        What is run.
    given
        What the reader has set, by name.
    course
        The run; None where it could not begin.
    error
        Why not, in one line.
    """

    subject: Subject
    given: dict[str, str] = field(default_factory=dict)
    course: Course | None = None
    error: str = ""

    def reset(self, given: Mapping[str, str] | None = None) -> None:
        """Begin anew, with other settings if they are given."""
        if given is not None:
            self.given = dict(given)
        self.course, self.error = None, ""
        try:
            self.course = self.subject.begin(self.given)
        except HpcrowdError as error:
            self.error = str(error)


class Sitting:
    """The runs of a page.

    Parameters
    ----------
    subjects
        What is run, one or two.

    Attributes
    ----------
    seats
        The runs.
    closed
        Whether the page is gone; nothing moves any more then.
    held
        Who holds this lock keeps the runs where they are.
    """

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.seats = [Seat(subject) for subject in subjects]
        self.closed = threading.Event()
        self.held = threading.RLock()
        self._halt = threading.Event()

    def begin(self, settings: Sequence[Mapping[str, str]] = ()) -> None:
        """Begin all runs, with settings for each where there are any."""
        with self.held:
            for place, seat in enumerate(self.seats):
                seat.reset(settings[place] if place < len(settings) else None)

    def reset(self, place: int, given: Mapping[str, str]) -> None:
        """Begin a run anew with other settings; the others stay where they are."""
        with self.held:
            self.seats[place].reset(given)

    def add(self, subject: Subject, given: Mapping[str, str]) -> None:
        """Set a run beside the others."""
        with self.held:
            self.seats.append(Seat(subject, dict(given)))
            self.seats[-1].reset()

    def remove(self, place: int) -> None:
        """Let go of a run."""
        with self.held:
            del self.seats[place]

    @property
    def courses(self) -> list[Course]:
        """The runs that could begin."""
        return [seat.course for seat in self.seats if seat.course is not None]

    @property
    def now(self) -> int:
        """How far the furthest run is, s since the origin."""
        return max((course.now for course in self.courses), default=0)

    @property
    def over(self) -> bool:
        """Whether nothing is left to happen in any of them."""
        return all(course.over for course in self.courses)

    def halt(self) -> None:
        """Ask whoever moves the runs on to stop at the next opportunity."""
        self._halt.set()

    def advance(self, until: int, tell: Callable[[], object] | None = None) -> None:
        """Move all runs on to a second, in pieces; stop in between when asked to.

        Parameters
        ----------
        until
            s since the origin.
        tell
            Called after each piece.
        """
        self._halt.clear()
        while not self._stopped:
            with self.held:
                behind = [one for one in self.courses if one.now < until and not one.over]
                if not behind:
                    return
                target = min(until, min(course.now for course in behind) + PIECE)
                for course in behind:
                    course.advance(target)
            if tell is not None:
                tell()

    def advance_to_event(self, place: int, user: int) -> bool:
        """Move on until something happens to a user of a run; return whether it did.

        The other runs follow to the same second.
        """
        with self.held:
            course = self.seats[place].course
            if course is None:
                return False
            found = course.advance_to_event(user)
        self.advance(course.now)
        return found

    def close(self) -> None:
        """Stop for good and let go of everything."""
        self.closed.set()
        with self.held:
            self.seats.clear()

    @property
    def _stopped(self) -> bool:
        return self._halt.is_set() or self.closed.is_set()
