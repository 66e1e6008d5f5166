"""Mesa's model with simulated seconds: the only module that uses private parts of Mesa.

Mesa 3.5 has an event list and a clock. This frame switches off the heartbeat that Mesa schedules at
every unit of time, makes ``time`` a plain integer, gives events arguments and a strong reference to
their function, and returns when the next one is due. ``tests/environment/test_frame.py`` fails when
Mesa changes what is used here.
"""

from __future__ import annotations

import copyreg
import inspect
from collections.abc import Callable, Iterator
from heapq import heappop
from math import ceil
from secrets import randbits
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.environment.errors import SimulationError
from hpcrowd.environment.stops import FOREVER
from hpcrowd.environment.streams import Streams


def _callers(frame: FrameType | None, context: int = 1) -> list[Any]:
    """Return what :func:`inspect.getouterframes` does, without lines of sources."""
    found = []
    while frame is not None:
        code = frame.f_code
        found.append((frame, code.co_filename, frame.f_lineno, code.co_name, None, None))
        frame = frame.f_back
    return found


def _imported_mesa() -> Any:
    """Import Mesa, which names its loggers after the callers of its decorators.

    To find their sources, inspect would look at every loaded module again for each caller, a sixth
    of the time until a run begins.
    """
    before, inspect.getouterframes = inspect.getouterframes, _callers
    try:
        import mesa
    finally:
        inspect.getouterframes = before
    return mesa


if TYPE_CHECKING:
    import mesa as mesa
    from mesa.time import Event
else:
    mesa = _imported_mesa()


def _reduced(view: memoryview) -> tuple[type[memoryview], tuple[Any]]:
    """Return how to make a view again: of the copy of its array, or of its part of one."""
    whole = np.asarray(view).nbytes == np.asarray(view.obj).nbytes
    return memoryview, (view.obj if whole else np.array(view),)


# Arrays that are read one number at a time are read through memoryviews, which Python by itself
# neither copies nor pickles.
copyreg.pickle(memoryview, _reduced)


class Frame(mesa.Model):  # type: ignore[misc]
    """A Mesa model that runs on whole seconds and events with arguments.

    Parameters
    ----------
    seed
        Seed of Mesa's own generators, and of everything random here; None draws one, which
        ``streams.seed`` gives.

    Attributes
    ----------
    streams
        Named random streams.
    """

    time = 0  # not Mesa's observable, which sends a signal at every change

    def __init__(self, seed: int | None = 0) -> None:
        if seed is None:
            seed = randbits(32)
        streams = Streams(seed)  # first, since its message for a wrong seed is clear
        super().__init__(rng=seed)
        self.streams = streams
        self.time = 0  # Mesa begins with a float
        self._default_schedule.stop()
        del self.step  # Mesa's instance attribute; the class's own step() counts
        self._event_list.clear()

    def call_at(self, time: int, function: Callable[..., None], *arguments: Any) -> Event:
        """Call ``function`` with ``arguments`` at ``time``; the returned event can be cancelled.

        Raises
        ------
        SimulationError
            If that time is in the past.
        """
        if time < self.time:
            raise SimulationError(f"event at {time} s: in the past, it is already {self.time} s")
        event = mesa.time.Event(time, self._call, function_args=[function, arguments])
        self._event_list.add_event(event)
        return event

    @staticmethod
    def _call(function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        function(*arguments)

    def next_event_time(self) -> int:
        """Return when the next event is due, FOREVER if there is none."""
        events = self._event_list._events  # Mesa's own look ahead goes through all of them
        while events and events[0].CANCELED:
            heappop(events)
        return ceil(events[0].time) if events else FOREVER

    def due(self) -> Iterator[tuple[int, Callable[..., None], tuple[Any, ...]]]:
        """Yield the calls scheduled by :meth:`call_at`: second, function, arguments, unordered."""
        for event in self._event_list._events:
            if not event.CANCELED and event.function_args:
                yield ceil(event.time), *event.function_args

    def run_events(self, now: int) -> None:
        """Run the events that are due at ``now``, including those that they add."""
        while self.next_event_time() <= now:
            self._event_list.pop_event().execute()

    def _advance_time(self, until: float) -> None:
        """Advance the clock; called by Mesa's ``run_for`` and ``run_until``."""
        self.run(until=int(until))

    def run(self, until: int | None = None) -> Any:
        """Run to ``until``, or until nothing is left to happen."""
        raise NotImplementedError
