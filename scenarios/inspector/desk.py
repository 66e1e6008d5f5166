"""The state of a page and its actions; each page has its own desk.

Buttons call the methods of the desk. Long actions run in a thread, one at a time; the page shows
each step. Solara redraws what depends on a reactive value when that is set.

The server runs one program for all pages, which finds here the arguments of the command. They
cannot be changed from a browser.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import solara

from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.inspector.course import Sitting
from hpcrowd.scenarios.inspector.sharing import (
    RUNS,
    TYPES,
    View,
    exported,
    file_for_browser,
    parse_view,
    view_query,
)
from hpcrowd.scenarios.inspector.subject import Subject

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


#: What is inspected, one or two subjects: the arguments of the command.
SUBJECTS: list[Subject] = []

#: Simulated time between two pictures while it plays, s, by its name on the page.
PACES = {"1 hour": HOUR, "6 hours": 6 * HOUR, "1 day": DAY, "1 week": WEEK}

#: Time after which a long run shows its progress, s.
TOLD = 0.5

#: Shortest time between two pictures, s, so that a browser keeps up.
FRAME = 0.3


class Desk:
    """The state of one page.

    Parameters
    ----------
    subjects
        What is inspected.
    query
        The view to restore, from the address of the page.

    Attributes
    ----------
    sitting
        The runs.
    tick
        Counts changes of the runs.
    tab, user, span
        What is shown, see :class:`hpcrowd.scenarios.inspector.sharing.View`.
    pace
        A key of :data:`PACES`.
    playing, busy
        Whether it plays; the action in progress, else empty.
    done
        Counts finished actions; to wait for an action, wait for the next number.
    drawn
        The tick that the page shows.
    file
        The file saved last, for the browser.
    message
        The last error, in one line.
    """

    def __init__(self, subjects: Sequence[Subject], query: str | None) -> None:
        self.sitting = Sitting(subjects)
        self.tick = solara.reactive(0)
        self.playing = solara.reactive(False)
        self.busy = solara.reactive("Opening")
        self.done = solara.reactive(0)
        self.drawn = 0
        self.file: solara.Reactive[dict[str, Any]] = solara.reactive({})
        self.message = solara.reactive("")
        self.pace = solara.reactive("6 hours")
        view = View()
        try:
            view = parse_view(query)
        except HpcrowdError as error:
            self.message.set(str(error))
        self.tab = solara.reactive(view.tab)
        self._asked = view.user if isinstance(view.user, str) else None
        self.user = solara.reactive(view.user if isinstance(view.user, int) else None)
        self.span = solara.reactive(view.span)
        self._lock = threading.Lock()
        if view.two and len(subjects) == 1:
            self.sitting = Sitting([subjects[0], subjects[0]])
        self._settings = [view.settings.get(run, {}) for run in RUNS]
        self._at = view.at

    def open(self) -> None:
        """Begin the runs, and advance to the time of the view."""

        def work() -> None:
            self.sitting.begin(self._settings)
            self._show()
            if self._asked is not None:
                self.user.set(self.sitting.number_of(self._asked))
            if self._at:
                self._go(self._at)

        self._start(lambda: self._finish(work))

    def close(self) -> None:
        """Stop and remove the runs, when the page has been closed."""
        self.sitting.close()

    def hold(self) -> AbstractContextManager[object]:
        """Return a context in which the runs do not advance, to look at them."""
        return self.sitting.held

    def save(
        self,
        name: str,
        kind: str,
        draw: Callable[[], Figure],
        table: Callable[[], pd.DataFrame],
    ) -> None:
        """Hand a view to the browser as a file, see :func:`scenarios.inspector.sharing.exported`.

        Parameters
        ----------
        name
            Name of the file, without its ending.
        kind, draw, table
            Its ending and content; unknown kinds are ignored.
        """
        if kind in TYPES:
            content = held(self, lambda: exported(kind, draw, table))
            serial = self.file.value.get("serial", 0) + 1
            self.file.set(file_for_browser(name, kind, content, serial))

    def play(self) -> None:
        """Play until it is paused, or the runs have finished."""
        if self.playing.value or self.busy.value:
            return
        self.playing.set(True)
        self._start(self._play)

    def pause(self) -> None:
        """Stop playing, or a long run in progress."""
        self.sitting.halt()
        self.playing.set(False)

    def advance(self, seconds: int) -> None:
        """Advance by some simulated time, s."""
        until = self.sitting.now + seconds
        self._do("Simulating", lambda: self._go(until))

    def advance_to_event(self) -> None:
        """Advance until something happens to the chosen user."""
        user = self.user.value
        if user is None:
            self.message.set("No user is chosen: pick one in the table of users.")
            return

        def work() -> None:
            if not self.sitting.advance_to_event(0, user):
                self.message.set(
                    f"Nothing more happens to user {self.sitting.who(user)}"
                    + ("." if self.sitting.over else " soon; press again to look further.")
                )

        self._do(f"Looking for the next event of user {self.sitting.who(user)}", work)

    def reset(self, place: int, given: dict[str, str]) -> None:
        """Begin a run again with these settings; with one run, also the time begins again."""

        def work() -> None:
            at = self.sitting.now if len(self.sitting.seats) > 1 else 0
            self.sitting.reset(place, given)
            if at:
                self._go(at)

        self._do("Starting", work)

    def begin_anew(self) -> None:
        """Begin all runs again with their settings."""
        self._do("Starting", lambda: self.sitting.begin())

    def add_second(self) -> None:
        """Add a second run with the settings of the first, at the same second."""

        def work() -> None:
            first, at = self.sitting.seats[0], self.sitting.now
            self.sitting.add(first.subject, first.given)
            self._go(at)

        self._do("Starting", work)

    def remove_second(self) -> None:
        """Remove the second run."""
        self._do("Closing", lambda: self.sitting.remove(1))

    def choose(self, user: int | None) -> None:
        """Choose a user and show it."""
        self.user.set(user)
        if user is not None:
            self.tab.set("user")

    def query(self) -> str:
        """Return the query of a link to what is shown."""
        seats = self.sitting.seats
        settings = {run: seat.given for run, seat in zip(RUNS, seats, strict=False)}
        tab, user, span = self.tab.value, self.user.value, self.span.value
        return view_query(View(tab, user, self.sitting.now, span, len(seats) > 1, settings))

    def _play(self) -> None:
        sitting = self.sitting
        while self.playing.value and not sitting.closed.is_set():
            began = time.perf_counter()
            self._guarded(lambda: sitting.advance(sitting.now + PACES[self.pace.value]))
            if sitting.closed.is_set():
                return
            self._show()
            if sitting.over or self.message.value:
                self.playing.set(False)
            self._wait_until_drawn()
            time.sleep(max(FRAME - (time.perf_counter() - began), 0.02))
        if not sitting.closed.is_set():
            self.done.set(self.done.value + 1)

    def _wait_until_drawn(self) -> None:
        """Wait until the page has drawn what is new.

        Solara draws in the thread that changed something first, and begins again when something
        else changes meanwhile: without this wait, drawing would never end on a slow machine.
        """
        while self.drawn < self.tick.value and self.playing.value:
            if self.sitting.closed.is_set():
                return
            time.sleep(0.01)

    def _go(self, until: int) -> None:
        """Advance the runs, with progress now and then; pictures are drawn at the end."""
        told, what = time.perf_counter(), self.busy.value

        def tell() -> None:
            nonlocal told
            if time.perf_counter() - told > TOLD and not self.sitting.closed.is_set():
                told = time.perf_counter()
                self.busy.set(f"{what}, day {self.sitting.now // DAY:,} of {until // DAY:,}")

        self.sitting.advance(until, tell)

    def _do(self, what: str, work: Callable[[], object]) -> None:
        """Do an action in a thread, unless another is in progress."""
        if self.busy.value or self.playing.value:
            return
        self.message.set("")
        self.busy.set(what)
        self._start(lambda: self._finish(work))

    def _finish(self, work: Callable[[], object]) -> None:
        """Do an action, and mark it as finished."""
        self._guarded(work)
        if not self.sitting.closed.is_set():
            self._show()
            self.busy.set("")
            self.done.set(self.done.value + 1)

    def _start(self, work: Callable[[], object]) -> None:
        def alone() -> None:
            with self._lock:
                work()

        threading.Thread(target=alone, daemon=True).start()

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except HpcrowdError as error:
            self.message.set(str(error))

    def _show(self) -> None:
        if not self.sitting.closed.is_set():
            self.tick.set(self.tick.value + 1)


def held[Seen](desk: Desk, look: Callable[[], Seen]) -> Seen:
    """Return the result of ``look``, called while the runs do not advance."""
    with desk.hold():
        return look()


#: The desks of the pages that are open, or were recently.
OPEN: WeakSet[Desk] = WeakSet()
