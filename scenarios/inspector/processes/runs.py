"""The side of the server: runs, their checkpoints, and the way to any second of them."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.inspector.processes.wire import LENGTHS, Message, packed_message

#: Most checkpoints of a run; more are thinned out.
MOST_CHECKPOINTS = 16

#: How long a run that no page shows is kept, s: a page that is loaded anew finds it.
KEPT = 5.0

#: Error of a run whose processes have ended, for example for want of memory.
GONE = "the process of this run has ended: press Reset"

#: Called with what a process says without being asked.
Push = Callable[[Message], object]


class Tasks(set[asyncio.Task[Any]]):
    """Work under way, kept until it is done."""

    def begin(self, work: Any) -> None:
        """Begin with some."""
        task = asyncio.ensure_future(work)
        self.add(task)
        task.add_done_callback(self.discard)


class RunError(HpcrowdError):
    """What was asked of a run failed; the message is for the reader of the page."""


class Peer:
    """A process with a run, at the other end of a connection; it is at second ``now``."""

    def __init__(
        self, hello: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.hello = hello
        self.now = int(hello.get("now", 0))
        self.on_push: Push = lambda message: None
        self.closed = False
        self._reader, self._writer = reader, writer
        self._open: dict[int, asyncio.Future[Message]] = {}
        self._serial = 0

    async def listen(self) -> None:
        """Read what the process says until it ends."""
        while (message := await read_message(self._reader)) is not None:
            future = self._open.pop(message.header.get("re", 0), None)
            if future is None:
                self.on_push(message)
            elif not future.done():
                future.set_result(message)
        self.close()

    async def ask(self, do: str, **asked: Any) -> Message:
        """Ask the process for something and return its answer; a RunError says why it could not."""
        if self.closed:
            raise RunError(GONE)
        self._serial += 1
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._open[self._serial] = future
        self.send({"do": do, "id": self._serial, **asked})
        found = await future
        if "error" in found.header:
            raise RunError(found.header["error"])
        self.now = int(found.header.get("now", self.now))
        return found

    def send(self, header: dict[str, Any]) -> None:
        """Send a message to which no answer is needed."""
        if not self.closed:
            self._writer.write(packed_message(header))

    def close(self) -> None:
        """Close the connection, which ends the process."""
        self.closed = True
        self._writer.close()
        for future in self._open.values():
            if not future.done():
                future.set_exception(RunError(GONE))
        self._open.clear()


async def read_message(reader: asyncio.StreamReader) -> Message | None:
    """Return the next message of a connection; None when it has been closed."""
    try:
        head, body = LENGTHS.unpack(await reader.readexactly(LENGTHS.size))
        return Message(json.loads(await reader.readexactly(head)), await reader.readexactly(body))
    except (asyncio.IncompleteReadError, OSError):
        return None


@dataclass(frozen=True)
class Spec:
    """What a run is."""

    subject: int  #: its place on the command line
    settings: tuple[tuple[str, str], ...] = ()  #: settings from the reader: pairs of name and value
    since: int | None = None  #: when users are changed, s, and how, as JSON; None if none are
    edits: str = ""
    #: Of the file of a scenario, which may be edited while pages are open: :meth:`Runs.version`.
    version: int = 0
    serial: int = 0  #: differs for runs that are begun anew from their files
    measured: bool = False  #: whether only the numbers at its end are wanted

    @property
    def before(self) -> Spec:
        """The run before users were changed."""
        return replace(self, since=None, edits="")


@dataclass(eq=False)
class SharedRun:
    """A run, shared by all pages that show it."""

    number: int
    spec: Spec
    #: Resolved with what there is to know of it, as JSON, when it has begun.
    begun: asyncio.Future[bytes]
    #: Processes that wait at a second, by rising second.
    checkpoints: list[Peer] = field(default_factory=list)
    timeline: bytes = b""  #: the whole run so far, as JSON
    done: bool = False  #: whether it has come to its end
    error: str = ""  #: why it could not be simulated to its end; else empty
    changed: set[Callable[[], object]] = field(default_factory=set)  #: called when the timeline has
    pages: int = 0  #: number of pages that show it
    #: The run that it is until users are changed; None for all others.
    parent: SharedRun | None = None
    scout: Peer | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    def notify(self) -> None:
        """Call all that wait for changes of the timeline."""
        for call in tuple(self.changed):
            call()

    async def until[T](self, known: Callable[[], T | None]) -> T:
        """Return what is known of it once it is; a RunError says why it never will be."""
        grown = asyncio.Event()
        self.changed.add(grown.set)
        try:
            while True:
                grown.clear()
                if self.error:
                    raise RunError(self.error)
                if (found := known()) is not None:
                    return found
                await grown.wait()
        finally:
            self.changed.discard(grown.set)

    def close(self) -> None:
        """End its processes."""
        for peer in (*self.checkpoints, *([self.scout] if self.scout is not None else [])):
            peer.close()
        if not self.begun.done():
            self.begun.set_exception(RunError("the run was closed"))
            self.begun.exception()


class Runs:
    """All runs of the server, of the subjects at ``paths`` on the command line.

    Make it before the keeper is started, and run :meth:`listen` in the event loop.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self.folder = Path(tempfile.mkdtemp(prefix="hpcrowd-"))  # that only this user can enter
        self.path = str(self.folder / "runs")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(128)
        self.warm = asyncio.Event()
        self._keeper: Peer | None = None
        self._server: asyncio.Server | None = None
        self._runs: dict[Spec, SharedRun] = {}
        self._numbers: dict[int, SharedRun] = {}
        self._serial = itertools.count(1)
        self._tickets: dict[str, asyncio.Future[Peer]] = {}
        self._tasks = Tasks()

    async def listen(self) -> None:
        """Accept the connections of processes."""
        self._server = await asyncio.start_unix_server(self._connected, sock=self.socket)

    async def begin(self) -> None:
        """Begin the runs of the command with their own settings, before a page is there.

        An error is left for the page to show.
        """
        for subject in range(len(self._paths)):
            with suppress(RunError):
                await self.run_of(Spec(subject, version=self.version(subject)))

    def close(self) -> None:
        """End all processes."""
        if self._server is not None:
            self._server.close()
        for run in self._runs.values():
            run.close()
        if self._keeper is not None:
            self._keeper.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def version(self, subject: int) -> int:
        """Return a number that changes when the scenario file of a subject does; 0 for others."""
        path = self._paths[subject]
        try:
            return path.stat().st_mtime_ns if path.suffix == ".toml" else 0
        except OSError:
            return 0  # it has gone; beginning anew reports that

    def new_serial(self) -> int:
        """Return a number for runs that are begun anew."""
        return next(self._serial)

    async def run_of(self, spec: Spec) -> SharedRun:
        """Return a run, which is started unless it is there, and count the page that shows it.

        A RunError says that it cannot begin with these settings.
        """
        run = self._runs.get(spec)
        if run is None:
            run = await self._start(spec)
        run.pages += 1
        try:
            await asyncio.shield(run.begun)
        except BaseException:
            self.leave(run)
            raise
        return run

    def leave(self, run: SharedRun) -> None:
        """Say that a page shows a run no longer."""
        run.pages -= 1
        subject = run.spec.subject
        if run.pages == 0 and run.spec != Spec(subject, version=self.version(subject)):
            failed = run.begun.done() and run.begun.exception() is not None
            self._later(0.0 if failed or run.spec.measured else KEPT, lambda: self._drop(run))

    async def worker(self, run: SharedRun, at: int) -> Peer:
        """Return a new process of a run, at second ``at`` or at the last checkpoint before it."""
        await asyncio.shield(run.begun)
        await run.ready.wait()
        if not run.checkpoints:
            raise RunError(GONE)
        before = [one for one in run.checkpoints if one.now <= at]
        return await self.fork_of(before[-1] if before else run.checkpoints[0])

    @staticmethod
    def closest(run: SharedRun, at: int) -> int:
        """Return the second of the last checkpoint before ``at``; -1 if there is none."""
        return max((one.now for one in run.checkpoints if one.now <= at), default=-1)

    async def fork_of(self, source: Peer) -> Peer:
        """Return a new process that is where another one is."""
        ticket = secrets.token_hex(8)
        self._tickets[ticket] = asyncio.get_running_loop().create_future()
        try:
            await source.ask("fork", ticket=ticket)
            return await asyncio.wait_for(self._tickets[ticket], 30)
        finally:
            self._tickets.pop(ticket, None)

    async def _start(self, spec: Spec) -> SharedRun:
        loop = asyncio.get_running_loop()
        run = SharedRun(next(self._serial), spec, loop.create_future())
        run.begun.add_done_callback(lambda future: future.exception())
        self._runs[spec] = self._numbers[run.number] = run
        if spec.since is None:
            await self.warm.wait()
            assert self._keeper is not None
            self._keeper.send(
                {"run": run.number, "subject": spec.subject, "settings": dict(spec.settings)}
            )
        else:
            self._tasks.begin(self._branch(run))
        return run

    async def _branch(self, run: SharedRun) -> None:
        """Begin a run at the second where users of another are changed."""
        spec = run.spec
        assert spec.since is not None
        try:
            parent = run.parent = await self.run_of(spec.before)
            # From now on it ends with the run, also if the changes are not possible.
            scout = run.scout = await self.worker(parent, spec.since)
            if self._numbers.get(run.number) is not run:
                scout.close()  # the page was closed meanwhile
                return
            await scout.ask("advance", until=spec.since)
            await scout.ask("change", edits=json.loads(spec.edits), run=run.number)
            self._follow(run, scout, parent.begun.result())
        except HpcrowdError as error:
            self._failed(run, str(error))

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.begin(self._greeted(reader, writer))

    async def _greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await read_message(reader)
        if first is None:
            return
        peer, hello = Peer(first.header, reader, writer), first.header
        run = self._numbers.get(hello.get("run", 0))
        if "keeper" in hello:
            self._keeper = peer
            peer.on_push = lambda message: self.warm.set()
        elif "ticket" in hello:
            future = self._tickets.get(hello["ticket"])
            if future is None or future.done():
                peer.close()
                return
            future.set_result(peer)
        elif run is None:
            peer.close()  # it was dropped meanwhile
            return
        elif "checkpoint" in hello:
            self._add(run, peer)
        else:
            run.scout = peer
            peer.on_push = lambda message: self._scouted(run, peer, message)
        await peer.listen()
        if run is None:
            return
        if peer in run.checkpoints:
            run.checkpoints.remove(peer)
        if peer is run.scout and not run.begun.done():
            self._failed(run, "the process of this run ended before it could begin")

    def _scouted(self, run: SharedRun, peer: Peer, message: Message) -> None:
        """Take note of what a scout says."""
        kind = message.header.get("push")
        if kind is None:  # the answer to "follow", which comes only with an error
            run.error = message.header["error"]
            run.notify()
        elif kind == "failed":
            self._failed(run, message.header["error"])
        elif kind == "begun":
            self._follow(run, peer, message.body)
        elif kind == "timeline":
            peer.now = int(message.header["now"])
            run.timeline, run.done = message.body, bool(message.header["done"])
            if run.done:
                self._add(run, peer)
            run.notify()

    def _follow(self, run: SharedRun, scout: Peer, about: bytes) -> None:
        """Let a scout run to the end."""
        run.scout = scout
        scout.on_push = lambda message: self._scouted(run, scout, message)
        if not run.begun.done():
            run.begun.set_result(about)
        scout.send({"do": "follow", "checkpoints": not run.spec.measured})

    def _failed(self, run: SharedRun, error: str) -> None:
        self._runs.pop(run.spec, None)
        if not run.begun.done():
            run.begun.set_exception(RunError(error))

    def _add(self, run: SharedRun, peer: Peer) -> None:
        """Add a checkpoint; of too many, the one that is closest to another goes."""
        points = run.checkpoints
        points.append(peer)
        points.sort(key=lambda one: one.now)
        if len(points) > MOST_CHECKPOINTS:
            gaps = [points[k + 1].now - points[k - 1].now for k in range(1, len(points) - 1)]
            points.pop(1 + gaps.index(min(gaps))).close()
        if "first" in peer.hello:  # a quick scout may come to the end before that is connected
            run.ready.set()

    def _drop(self, run: SharedRun) -> None:
        """Remove a run that no page shows."""
        if run.pages == 0 and self._numbers.get(run.number) is run:
            if self._runs.get(run.spec) is run:
                del self._runs[run.spec]
            del self._numbers[run.number]
            run.close()
            if run.parent is not None:
                self.leave(run.parent)

    def _later(self, seconds: float, do: Callable[[], object]) -> None:
        async def work() -> None:
            await asyncio.sleep(seconds)
            do()

        self._tasks.begin(work())
