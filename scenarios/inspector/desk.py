"""What the page knows and what can be done on it; each page has a desk of its own.

Buttons call the methods of the desk. What takes a while runs in a thread, one at a time; the page
shows each step of it. Solara shows anew what depends on a reactive value when it is set.

The server runs one program for all pages, which finds here what the command was told. Nothing of it
can be changed from a browser.
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


#: What is inspected, one or two: what the command was given.
SUBJECTS: list[Subject] = []

#: Simulated time that passes between two pictures while it plays, s, by what the page calls it.
PACES = {"1 hour": HOUR, "6 hours": 6 * HOUR, "1 day": DAY, "1 week": WEEK}

#: Time after which a long way tells how far it is, s.
TOLD = 0.5

#: Time between two pictures at least, s, so that a browser keeps up.
FRAME = 0.3


class Desk:
    """What one page knows.

    Parameters
    ----------
    subjects
        What is inspected.
    query
        The view that is to be restored, of the address of the page.

    Attributes
    ----------
    sitting
        The runs.
    tick
        Counts what has changed about the runs.
    tab, user, span
        What is shown, see :class:`hpcrowd.scenarios.inspector.sharing.View`.
    pace
        A key of :data:`PACES`.
    playing, busy
        Whether it plays; what is being done, else empty.
    done
        Counts what has been done; whoever waits for something waits for the next number.
    drawn
        The tick that the page shows.
    file
        What was saved last, for the browser.
    message
        What went wrong, in one line.
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
        self.user = solara.reactive(view.user)
        self.span = solara.reactive(view.span)
        self._lock = threading.Lock()
        if view.two and len(subjects) == 1:
            self.sitting = Sitting([subjects[0], subjects[0]])
        self._settings = [view.settings.get(run, {}) for run in RUNS]
        self._at = view.at

    def open(self) -> None:
        """Begin the runs, and go to where the view is."""

        def work() -> None:
            self.sitting.begin(self._settings)
            self._show()
            if self._at:
                self._go(self._at)

        self._start(lambda: self._finish(work))

    def close(self) -> None:
        """Stop and let go: the page is gone."""
        self.sitting.close()

    def hold(self) -> AbstractContextManager[object]:
        """Keep the runs where they are, for as long as somebody looks at them."""
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
            Of the file, without its ending.
        kind, draw, table
            What it holds; another kind than there are is passed over.
        """
        if kind in TYPES:
            content = held(self, lambda: exported(kind, draw, table))
            serial = self.file.value.get("serial", 0) + 1
            self.file.set(file_for_browser(name, kind, content, serial))

    def play(self) -> None:
        """Go on until somebody stops it, or nothing is left to happen."""
        if self.playing.value or self.busy.value:
            return
        self.playing.set(True)
        self._start(self._play)

    def pause(self) -> None:
        """Stop playing, or a long way that is being gone."""
        self.sitting.halt()
        self.playing.set(False)

    def advance(self, seconds: int) -> None:
        """Go on for some simulated time, s."""
        until = self.sitting.now + seconds
        self._do("Simulating", lambda: self._go(until))

    def advance_to_event(self) -> None:
        """Go on until something happens to the chosen user."""
        user = self.user.value
        if user is None:
            self.message.set("No user is chosen: pick one in the table of users.")
            return

        def work() -> None:
            if not self.sitting.advance_to_event(0, user):
                self.message.set(
                    f"Nothing more happens to user {user}"
                    + ("." if self.sitting.over else " soon; press again to look further.")
                )

        self._do(f"Looking for the next event of user {user}", work)

    def reset(self, place: int, given: dict[str, str]) -> None:
        """Begin a run anew with these settings; with one run the time begins anew, too."""

        def work() -> None:
            at = self.sitting.now if len(self.sitting.seats) > 1 else 0
            self.sitting.reset(place, given)
            if at:
                self._go(at)

        self._do("Starting", work)

    def begin_anew(self) -> None:
        """Begin all runs anew with the settings that they have."""
        self._do("Starting", lambda: self.sitting.begin())

    def add_second(self) -> None:
        """Set a second run beside the first, with the same settings, at the same second."""

        def work() -> None:
            first, at = self.sitting.seats[0], self.sitting.now
            self.sitting.add(first.subject, first.given)
            self._go(at)

        self._do("Starting", work)

    def remove_second(self) -> None:
        """Let go of the second run."""
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

        Solara draws in the thread that changed something first. Whoever changes more meanwhile lets
        it begin again: without this, drawing would never end on a slow machine.
        """
        while self.drawn < self.tick.value and self.playing.value:
            if self.sitting.closed.is_set():
                return
            time.sleep(0.01)

    def _go(self, until: int) -> None:
        """Move the runs on and tell how far they are now and then; pictures wait for the end."""
        told, what = time.perf_counter(), self.busy.value

        def tell() -> None:
            nonlocal told
            if time.perf_counter() - told > TOLD and not self.sitting.closed.is_set():
                told = time.perf_counter()
                self.busy.set(f"{what}, day {self.sitting.now // DAY:,} of {until // DAY:,}")

        self.sitting.advance(until, tell)

    def _do(self, what: str, work: Callable[[], object]) -> None:
        """Do something in a thread, unless something is being done."""
        if self.busy.value or self.playing.value:
            return
        self.message.set("")
        self.busy.set(what)
        self._start(lambda: self._finish(work))

    def _finish(self, work: Callable[[], object]) -> None:
        """Do something, and tell that it is done."""
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
    """Return what somebody sees who looks while the runs stay where they are."""
    with desk.hold():
        return look()


#: The desks of the pages that are open, or were until lately.
OPEN: WeakSet[Desk] = WeakSet()
