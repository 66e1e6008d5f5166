"""The processes of the page: the keeper, which forks one for each run, and what those do.

The keeper holds what was read from files. It has one thread and nothing of the web, so that its
forks are small and safe. Each of them holds one run: it advances, forks, and answers what the page
asks. Scouts, checkpoints and workers differ only in what they are asked; see the package.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import HpcrowdError, UnavailableError
from hpcrowd.scenarios.inspector.panels.exchange import to_json
from hpcrowd.scenarios.inspector.panels.forecast import forecast
from hpcrowd.scenarios.inspector.panels.overview import about, timeline
from hpcrowd.scenarios.inspector.panels.registry import PANELS, panels_json, saved_panel
from hpcrowd.scenarios.inspector.processes.wire import Message, Wire
from hpcrowd.scenarios.inspector.subjects.course import Course, apply_changes

if TYPE_CHECKING:
    from hpcrowd.scenarios.inspector.subjects.course import Course
    from hpcrowd.scenarios.inspector.subjects.subject import Subject


#: Real time between two signs of progress, s.
SIGN = 0.2

#: By how much forecasts come after what a reader waits for, in steps of ``nice``.
LESS_URGENT = 10

#: Real time that a piece of a long run takes, about, s; in between it can be stopped.
PIECE = 0.05

#: Time of the processor between the first checkpoints of a run, s; it doubles after every few of
#: them, since a fork takes as long as simulating some of that. On a busy machine there are no more.
SPACING = 0.1

#: Checkpoints after which the time between them doubles.
CHECKPOINTS = 8


class Pieces:
    """Lengths of the pieces of a long run: as long as takes :data:`PIECE` to simulate."""

    def __init__(self) -> None:
        self.length = DAY  #: simulated time of the next piece, s
        self.spent = 0.0  #: time of the processor for all pieces so far, s

    def took(self, seconds: float, worked: float) -> None:
        """Note how long the last piece took: real time, and time of the processor, s."""
        self.spent += worked
        if seconds < PIECE / 2:
            self.length *= 2
        elif seconds > 2 * PIECE:
            self.length = max(self.length // 2, HOUR)


class Worker:
    """A process with a run; ``run`` is its number, for what the process says of itself."""

    def __init__(self, wire: Wire, course: Course, run: int) -> None:
        self.wire = wire
        self.course = course
        self.run = run
        self._pieces = Pieces()

    def serve(self) -> None:
        """Answer requests until the server closes the connection."""
        while (message := self.wire.receive()) is not None:
            try:
                self._answer(message)
            except HpcrowdError as error:
                self._reply(message, {"error": str(error)})
            except OSError:
                return  # the server has gone
            except Exception as error:  # noqa: BLE001 - of users' code, too; the page says it
                traceback.print_exc(file=sys.stderr)
                words = f"{type(error).__name__}: {error}"
                self._reply(message, {"error": f"internal error, please report it: {words}"})

    def _answer(self, message: Message) -> None:
        asked = message.header
        what = asked["do"]
        if what == "advance":
            halted = self._advance(int(asked["until"]))
            self._reply(message, {**self._where(), "halted": halted})
        elif what == "event":
            found = self.course.advance_to_event(int(asked["user"]))
            self._reply(message, {**self._where(), "found": found})
        elif what == "look":
            self._reply(message, self._where(), panels_json(self.course, asked))
        elif what == "save":
            self._reply(message, {}, saved_panel(self.course, asked))
        elif what == "forecast":
            self._forecast(message)
        elif what == "change":
            apply_changes(self.course, asked["edits"])
            self.run = int(asked["run"])  # from here on it is another
            self._reply(message, self._where())
        elif what == "fork":
            if not self._fork({"ticket": asked["ticket"]}):
                self._reply(message, {})
        elif what == "follow":
            self._follow(bool(asked["checkpoints"]))
        # A halt that comes when nothing is left to halt needs no answer.

    def _forecast(self, message: Message) -> None:
        """Simulate futures from here, with news on the way; the server closes what it stops."""
        os.nice(LESS_URGENT)
        signed = time.perf_counter()
        for found in forecast(self.course, message.header):
            if isinstance(found, dict):
                if found["futures"] == message.header["futures"]:
                    self._reply(message, {}, to_json(found))
                else:
                    self.wire.send({"push": "found"}, to_json(found))
            elif self.wire.pending():
                return
            elif time.perf_counter() - signed > SIGN:
                signed = time.perf_counter()
                self.wire.send({"push": "progress", "done": found})

    def _reply(self, message: Message, header: dict[str, Any], body: bytes = b"") -> None:
        self.wire.send({**header, "re": message.header.get("id")}, body)

    def _where(self) -> dict[str, Any]:
        return {"now": self.course.now, "over": self.course.over}

    def _advance(self, until: int) -> bool:
        """Advance to a second; return whether the server stopped it before."""
        signed = time.perf_counter()
        for now in self._piecewise(until):
            if self.wire.pending():
                # Only a halt comes while a request is open; at the end of the connection, too.
                self.wire.receive()
                return True
            if time.perf_counter() - signed > SIGN:
                signed = time.perf_counter()
                self.wire.send({"push": "progress", "now": now, "until": until})
        return False

    def _piecewise(self, until: int | None) -> Iterator[int]:
        """Advance piece by piece; yield the second after each. Without ``until``, to the end."""
        course = self.course
        while not course.over and (until is None or course.now < until):
            began, worked = time.perf_counter(), time.process_time()
            piece = course.now + self._pieces.length
            course.advance(piece if until is None else min(piece, until))
            self._pieces.took(time.perf_counter() - began, time.process_time() - worked)
            yield course.now

    def _fork(self, hello: dict[str, Any]) -> bool:
        """Fork; return whether this is the new process, which is connected by then."""
        gc.freeze()  # what is collected would be copied
        child = os.fork() == 0
        if child:
            self.wire = self.wire.again({**hello, "run": self.run, **self._where()})
        return child

    def _follow(self, checkpoints: bool) -> None:
        """Run to the end, with news on the way; forks wait at checkpoints."""
        made, spacing, due = 0, SPACING, SPACING
        sent = time.perf_counter()

        def send_timeline(final: bool) -> None:
            header = {"push": "timeline", "done": final, **self._where()}
            self.wire.send(header, to_json(timeline(self.course, whole=final)))

        if checkpoints:
            if self._fork({"checkpoint": True, "first": True}):
                return
            send_timeline(False)
        for _ in self._piecewise(None):
            if self.wire.pending():
                return  # the server has no use for it any more
            if checkpoints and self._pieces.spent > due and not self.course.over:
                made, due = made + 1, self._pieces.spent + spacing
                if made % CHECKPOINTS == 0:
                    spacing *= 2
                if self._fork({"checkpoint": True}):
                    return
            if checkpoints and time.perf_counter() - sent > SIGN:
                send_timeline(False)
                sent = time.perf_counter()
        send_timeline(True)


def started(wire: Wire, begin: Callable[[], Course], run: int) -> None:
    """Begin a run, say how it went, and serve it until the server closes the connection."""
    try:
        course = begin()
        description = to_json(about(course))
    except HpcrowdError as error:
        failed = str(error)
    except Exception as error:  # noqa: BLE001 - of users' code, too; the page says it
        traceback.print_exc(file=sys.stderr)
        failed = f"{type(error).__name__}: {error}"
    else:
        failed = ""
    with suppress(OSError):  # the server has gone meanwhile
        if failed:
            wire.send({"push": "failed", "error": failed})
        else:
            wire.send({"push": "begun", "now": course.now}, description)
            Worker(wire, course, run).serve()


def start_keeper(
    subjects: Sequence[Subject], path: str, listening: Sequence[socket.socket] = ()
) -> int:
    """Start the keeper; return the number of its process.

    The server listens at ``path`` already; the keeper does not hold its ``listening`` sockets open.
    An UnavailableError says that the system cannot fork processes, as Windows.
    """
    if not hasattr(os, "fork"):
        raise UnavailableError(
            "hpcrowd inspect: the page needs a system that forks processes, such as Linux, macOS, "
            "or Windows with WSL"
        )
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # The other threads are those of linear algebra, which survive a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        code = 0
        # Ctrl-C reaches every process of the terminal; these end when the server closes their
        # connections. Other signals for all of them end these at once, and in silence.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        try:
            for one in listening:
                one.close()
            _keep(subjects, path)
        except BaseException:  # noqa: BLE001 - the process must not go on as another command
            traceback.print_exc()
            code = 1
        finally:
            os._exit(code)
    return process


def _keep(subjects: Sequence[Subject], path: str) -> None:
    # Ended forks need nobody to wait for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    warnings.filterwarnings("ignore", "This process", DeprecationWarning)
    wire = Wire(path, {"keeper": True})
    for subject in subjects:
        with suppress(HpcrowdError):
            _warm_up(subject)
    gc.collect()
    gc.freeze()
    wire.send({"push": "warm"})
    while (message := wire.receive()) is not None:
        asked = message.header
        if os.fork() == 0:
            run = int(asked["run"])
            own = wire.again({"scout": True, "run": run})
            subject = subjects[int(asked["subject"])]
            started(own, partial(subject.begin, asked["settings"]), run)
            return


def _warm_up(subject: Subject) -> None:
    """Simulate a day and look at it, so that modules are there for all forks."""
    course = subject.begin({})
    course.advance(course.now + DAY)
    timeline(course, whole=True)
    users = course.moment().jobs.user
    user = int(users[0]) if len(users) else None
    asked = {"panels": [*PANELS], "from": course.now - DAY, "to": course.now, "user": user}
    panels_json(course, asked)
