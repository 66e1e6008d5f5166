"""Forecasts of all runs of a page, in the background."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from hpcrowd.scenarios.inspector.processes.runs import Peer, RunError
from hpcrowd.scenarios.inspector.processes.wire import Message
from hpcrowd.scenarios.inspector.service.protocol import Forecast


class Forecasting:
    """Futures of the runs of a page from one second.

    Parameters
    ----------
    peers
        A process of each run at that second, which nobody else uses.
    at
        The second.
    request
        What the page asks for.
    send
        Sends a text to the browser.
    """

    def __init__(
        self,
        peers: Sequence[Peer],
        at: int,
        request: Forecast,
        send: Callable[[str], Awaitable[Any]],
    ) -> None:
        self.at = at
        self._peers, self._request, self._send = peers, request, send
        self._stopped = False
        self._news: set[asyncio.Task[Any]] = set()

    def stop(self) -> None:
        """End the processes, and push nothing more."""
        self._stopped = True
        for peer in self._peers:
            peer.close()

    async def work(self) -> None:
        """Push progress of each run and what its futures say, at the end with ``done`` = ``of``."""
        await asyncio.gather(*(self._of(run) for run in range(len(self._peers))))

    async def _of(self, run: int) -> None:
        peer, request = self._peers[run], self._request
        total = request.futures * max(len(request.jobs), 1)

        def progressed(message: Message) -> None:
            done = message.header.get("done")
            if done == total:
                return  # the answer comes now
            progress = {} if done is None else {"done": done, "of": total}
            news = asyncio.ensure_future(self._push(run, progress, message.body))
            self._news.add(news)
            news.add_done_callback(self._news.discard)

        peer.on_push = progressed
        await self._push(run, {"done": 0, "of": total})
        asked = request.model_dump(include={"futures", "days", "user", "jobs"})
        try:
            found = await peer.ask("forecast", **asked)
            await asyncio.gather(*self._news)  # what was said before comes before
            await self._push(run, {"done": total, "of": total}, found.body)
        except RunError as error:
            await self._push(run, {"error": str(error)})
        finally:
            peer.close()

    async def _push(self, run: int, content: dict[str, Any], body: bytes = b"") -> None:
        """Push news of a run; ``asked`` is the request that they belong to."""
        if self._stopped:
            return
        head = {"push": "forecast", "asked": self._request.id, "run": run, **content}
        text = json.dumps(head)
        if body:
            text = f'{text[:-1]},"found":{body.decode()}}}'
        with suppress(RuntimeError):  # the page was closed meanwhile
            await self._send(text)
