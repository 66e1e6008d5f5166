"""One open page: its runs, brought to the second that it shows."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.inspector.panels.exchange import SAVED_TYPES
from hpcrowd.scenarios.inspector.processes.runs import Peer, RunError, Runs, SharedRun, Spec, Tasks
from hpcrowd.scenarios.inspector.processes.wire import Message
from hpcrowd.scenarios.inspector.service.background import Forecasting, Repetition
from hpcrowd.scenarios.inspector.service.protocol import (
    Forecast,
    Halt,
    Open,
    Request,
    RunAsked,
    Save,
    Seeds,
    Show,
    parse_request,
)

#: Time that is saved by going on from a checkpoint instead of from where a run is, simulated s:
#: a fork takes as long as about a week of simulation.
WORTH_A_FORK = 7 * DAY

#: How far before the time shown a process waits for further steps back, simulated s.
BEHIND = 7 * DAY

#: Sends a text to the browser.
Send = Callable[[str], Awaitable[Any]]


@dataclass(eq=False)
class Seat:
    """One of the runs of a page."""

    run: SharedRun  #: the run
    #: The process of this page that is at the second shown; None before the first.
    peer: Peer | None = None
    #: A process of the same run a little before that, for steps back; None before the first.
    behind: Peer | None = None
    #: The run of both: before the second at which users are changed, that before it.
    at_work: SharedRun | None = None
    notify: Callable[[], object] | None = None  #: called when the timeline of the run has grown

    def close(self) -> None:
        """End its processes."""
        for peer in (self.peer, self.behind):
            if peer is not None:
                peer.close()
        self.peer = self.behind = None


class Session:
    """One open page; ``subjects`` are their names, ``send`` sends a text to the browser."""

    def __init__(self, runs: Runs, subjects: Sequence[str], send: Send) -> None:
        self.seats: list[Seat] = []
        self._runs, self._subjects, self._send = runs, subjects, send
        self._sending = asyncio.Lock()
        self._queue: asyncio.Queue[Request] = asyncio.Queue()
        self._halted = self._progress = False
        self._serial = 0
        self._busy: set[Peer] = set()
        self._repetition: Repetition | None = None
        self._forecasting: Forecasting | None = None
        self._tasks = Tasks()

    async def hello(self, version: str) -> None:
        """Greet the browser."""
        await self._push({"push": "hello", "subjects": list(self._subjects), "version": version})

    async def work(self) -> None:
        """Answer requests one after the other, for as long as the page is open."""
        while True:
            request = await self._queue.get()
            try:
                await self._answer(request)
            except HpcrowdError as error:
                await self._push({"id": request.id, "error": str(error)})
            except Exception as error:  # noqa: BLE001 - the page must not wait for ever
                traceback.print_exc(file=sys.stderr)
                words = f"internal error, please report it: {type(error).__name__}: {error}"
                await self._push({"id": request.id, "error": words})

    async def receive(self, text: str) -> None:
        """Take a message from the browser."""
        try:
            request = parse_request(text)
        except QuantityError as error:
            await self._push({"id": _id_of(text), "error": str(error)})
            return
        if isinstance(request, Halt):
            self._halted = True
            for peer in self._busy:
                peer.send({"do": "halt"})
            await self._push({"id": request.id, "ok": True})
        else:
            self._queue.put_nowait(request)

    def close(self) -> None:
        """End the processes of the page."""
        self._stop_seeds()
        self._stop_forecast()
        for seat in self.seats:
            self._leave(seat)
        self.seats = []
        for task in self._tasks:
            task.cancel()

    async def _answer(self, request: Request) -> None:
        self._halted = False
        answers: dict[type, Callable[[Any], Awaitable[None]]] = {
            Open: self._open, Show: self._show, Save: self._save, Seeds: self._seeds,
            Forecast: self._forecast,
        }  # fmt: skip
        await answers[type(request)](request)

    # Which runs are shown.

    async def _open(self, request: Open) -> None:
        asked = request.runs or [RunAsked() for _ in self._subjects]
        if len(self._subjects) > len(asked):
            raise QuantityError(f"{len(asked)} runs: the command shows {len(self._subjects)}")
        if request.again:
            self._serial = self._runs.new_serial()
        self._stop_seeds()
        self._stop_forecast()
        specs = [self._spec(place, one) for place, one in enumerate(asked)]
        former = self.seats
        found: list[Seat | None] = []
        for place, spec in enumerate(specs):
            old = former[place] if place < len(former) else None
            if old is not None and old.run.spec == spec:
                found.append(old)
                continue
            try:
                found.append(Seat(await self._runs.run_of(spec)))
            except RunError as error:
                await self._push({"push": "failed", "run": place, "error": str(error)})
                found.append(old)  # a typo keeps the run
            except asyncio.CancelledError:  # the page was closed meanwhile
                for seat in found:
                    if seat is not None and seat not in former:
                        self._leave(seat)
                raise
        self.seats = [seat for seat in found if seat is not None]
        for seat in former:
            if seat not in self.seats:
                self._leave(seat)
        if not self.seats:
            raise QuantityError("no run could begin; see the messages above")
        for place, seat in enumerate(self.seats):
            await self._introduce(place, seat)
        at = request.at
        if at is None:
            at = await self._first_busy(self.seats[0])
        await self._push({"id": request.id, "ok": True, "at": at, "runs": len(self.seats)})

    def _spec(self, place: int, asked: RunAsked) -> Spec:
        subject = min(place, len(self._subjects) - 1)
        settings = tuple(sorted(asked.settings.items()))
        edits = json.dumps([one.model_dump() for one in asked.edits]) if asked.edits else ""
        since = asked.since if edits else None
        version = self._runs.version(subject)
        return Spec(subject, settings, since, edits, version, self._serial)

    async def _introduce(self, place: int, seat: Seat) -> None:
        """Tell the browser of a run, and of its timeline whenever that grows."""
        run = seat.run
        settings = dict(run.spec.settings)
        shown = {
            "push": "run",
            "run": place,
            "title": self._subjects[run.spec.subject],
            "settings": settings,
            "since": run.spec.since,
            "edits": json.loads(run.spec.edits or "[]"),
        }
        about = json.loads(run.begun.result())
        if run.spec.since is not None:
            about["label"] += f", {plural(len(json.loads(run.spec.edits)), 'change')} by hand"
        await self._push({**shown, **about})
        if seat.notify is not None:
            run.changed.discard(seat.notify)

        def notify() -> None:
            self._tasks.begin(self._timeline(place, seat))

        seat.notify = notify
        run.changed.add(notify)
        if run.timeline:
            await self._timeline(place, seat)

    async def _timeline(self, place: int, seat: Seat) -> None:
        if seat in self.seats and seat.run.error:
            await self._push({"push": "failed", "run": place, "error": seat.run.error})
        elif seat in self.seats:
            head = f'{{"push":"timeline","run":{self.seats.index(seat)},'
            await self._text(head + seat.run.timeline.decode()[1:])

    async def _first_busy(self, seat: Seat) -> int:
        """Return the first busy hour of a run, which may have to be simulated until then."""
        run = seat.run

        def busy() -> int | None:
            if not run.timeline:
                return None
            known = json.loads(run.timeline)
            found: int | None = known["busy"]
            if found is None and run.done:
                found = known["until"] if known["busiest"] is None else known["busiest"]
            return found

        return await run.until(busy)

    def _leave(self, seat: Seat) -> None:
        if seat.notify is not None:
            seat.run.changed.discard(seat.notify)
        seat.close()
        self._runs.leave(seat.run)

    # What is seen of them.

    async def _show(self, request: Show) -> None:
        if not self.seats:
            raise QuantityError("no run is open")
        message, halted = "", False
        at = request.at
        if self._forecasting is not None and (
            request.event is not None or at not in (None, self._forecasting.at)
        ):
            self._stop_forecast()  # it is of another second
        if request.event is not None:
            at, message = await self._event(request.event)
        if at is not None:
            stops = await asyncio.gather(*(self._bring(seat, at) for seat in self.seats))
            halted = any(stops)
        view = request.view()
        peers = [await self._peer(seat, at or 0) for seat in self.seats]
        seen = await asyncio.gather(*(peer.ask("look", **view) for peer in peers))
        now = max(peer.now for peer in peers)
        head = {
            "id": request.id,
            "at": now,
            "over": all(one.header["over"] for one in seen),
            "halted": halted or self._halted,
            "message": message,
        }
        runs = b",".join(one.body for one in seen).decode()
        if self._progress:
            self._progress = False
            await self._push({"push": "progress", "text": ""})
        await self._text(json.dumps(head)[:-1] + f',"runs":[{runs}]}}')

    async def _event(self, user: int) -> tuple[int, str]:
        """Advance the first run until something happens to a user; return when, and a message."""
        seat = self.seats[0]
        peer = await self._peer(seat, 0)
        found = await peer.ask("event", user=user)
        if found.header["found"]:
            return peer.now, ""
        soon = "." if found.header["over"] else " soon; press again to look further."
        names = json.loads(seat.run.begun.result())["names"]
        return peer.now, f"Nothing more happens to user {names.get(str(user), user)}{soon}"

    async def _peer(self, seat: Seat, at: int) -> Peer:
        """Return the process of a run of this page; if there is none yet, one at a second."""
        if seat.peer is None or seat.peer.closed:
            seat.at_work = _at_work(seat.run, at)
            seat.peer = await self._runs.worker(seat.at_work, at)
        return seat.peer

    async def _bring(self, seat: Seat, at: int) -> bool:
        """Bring a run to a second, earlier or later; return whether it was stopped before."""
        run = _at_work(seat.run, at)
        peer = seat.peer
        if peer is None or peer.closed or seat.at_work is not run:
            seat.close()
            seat.at_work = run
            peer = seat.peer = await self._runs.worker(run, at)
        elif at < peer.now:
            if await self._back(seat, run, at):
                return True
            peer = seat.peer
            assert peer is not None
        elif self._runs.closest(run, at) > peer.now + WORTH_A_FORK:
            peer.close()
            peer = seat.peer = await self._runs.worker(run, at)
        return await self._advance(peer, at)

    async def _back(self, seat: Seat, run: SharedRun, at: int) -> bool:
        """Replace the process of a run by one before ``at``; return whether it was stopped.

        Few steps back are alone: another process waits where the next ones will begin.
        """
        last, behind, known = seat.peer, seat.behind, self._runs.closest(run, at)
        if last is not None:
            last.close()
        if behind is None or behind.closed or not known <= behind.now <= at:
            if behind is not None:
                behind.close()
            peer = seat.peer = await self._runs.worker(run, at)
            seat.behind = None
            if last is None or last.now - at > BEHIND or at - peer.now < 2 * BEHIND:
                return False
            if await self._advance(peer, at - BEHIND):
                return True
            behind = seat.behind = peer
        seat.peer = await self._runs.fork_of(behind)
        return False

    async def _advance(self, peer: Peer, at: int) -> bool:
        """Advance a process to a second; return whether it was stopped before."""
        if at <= peer.now:
            return False
        peer.on_push = self._progressed
        self._busy.add(peer)
        try:
            found = await peer.ask("advance", until=at)
        finally:
            self._busy.discard(peer)
        return bool(found.header["halted"])

    def _progressed(self, message: Message) -> None:
        day, last = message.header["now"] // DAY, message.header["until"] // DAY
        self._progress = True
        text = f"Simulating, day {day:,} of {last:,}"
        self._tasks.begin(self._push({"push": "progress", "text": text}))

    async def _save(self, request: Save) -> None:
        if request.run >= len(self.seats):
            raise QuantityError(f"run {request.run}: the page shows {len(self.seats)}")
        seat = self.seats[request.run]
        peer = await self._peer(seat, 0)
        asked = request.model_dump(by_alias=True, exclude={"id", "do", "run"})
        found = await peer.ask("save", **asked)
        trace = Path(self._subjects[seat.run.spec.subject]).name.split(".")[0]
        name = re.sub(r"[^A-Za-z0-9]+", "-", f"{trace} {request.panel} {'ab'[request.run]}")
        await self._push(
            {
                "id": request.id,
                "name": f"{name.strip('-')}.{request.kind}",
                "mime": SAVED_TYPES[request.kind],
                "data": base64.b64encode(found.body).decode("ascii"),
            }
        )

    async def _seeds(self, request: Seeds) -> None:
        self._stop_seeds()
        if request.count:
            specs = [seat.run.spec for seat in self.seats]
            self._repetition = Repetition(self._runs, specs, request.count, self._push)
            self._tasks.begin(self._repetition.work())
        await self._push({"id": request.id, "ok": True})

    async def _forecast(self, request: Forecast) -> None:
        self._stop_forecast()
        if request.futures:
            if not self.seats:
                raise QuantityError("no run is open")
            here = [await self._peer(seat, 0) for seat in self.seats]
            peers: list[Peer] = []
            try:
                for peer in here:
                    peers.append(await self._runs.fork_of(peer))
            except BaseException:
                for peer in peers:
                    peer.close()
                raise
            at = max(peer.now for peer in here)
            self._forecasting = Forecasting(peers, at, request, self._text)
            self._tasks.begin(self._forecasting.work())
        await self._push({"id": request.id, "ok": True})

    def _stop_seeds(self) -> None:
        if self._repetition is not None:
            self._repetition.stop()
            self._repetition = None

    def _stop_forecast(self) -> None:
        if self._forecasting is not None:
            self._forecasting.stop()
            self._forecasting = None

    async def _push(self, content: dict[str, Any]) -> None:
        await self._text(json.dumps(content))

    async def _text(self, text: str) -> None:
        async with self._sending:
            await self._send(text)


def _at_work(run: SharedRun, at: int) -> SharedRun:
    """Return the run whose processes know a second: before users are changed, that before it."""
    if run.parent is not None and run.spec.since is not None and at < run.spec.since:
        return run.parent
    return run


def _id_of(text: str) -> int | None:
    """Return the number of a message that could not be read; None if it has none."""
    found = re.search(r'"id"\s*:\s*(\d{1,9})', text[:1000])
    return int(found[1]) if found else None
