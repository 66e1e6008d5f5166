"""Work for a page in the background: its runs with several seeds, and futures of its runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.inspector.processes.runs import Peer, RunError, Runs, Spec, Tasks
from hpcrowd.scenarios.inspector.processes.wire import Message
from hpcrowd.scenarios.inspector.service.protocol import Forecast

#: Confidence level of the intervals.
CONFIDENCE = 0.95

#: Seed of a run that has none of its own.
FIRST_SEED = 0


class Repetition:
    """Runs with other seeds, in the background: ``count`` seeds of each of ``specs``.

    ``push`` sends what is known to the browser.
    """

    def __init__(
        self,
        runs: Runs,
        specs: Sequence[Spec],
        count: int,
        push: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        self._runs, self._specs, self._count, self._push = runs, specs, count, push
        self._stopped = False

    def stop(self) -> None:
        """Begin no further runs, and push nothing more."""
        self._stopped = True

    async def work(self) -> None:
        """Run one seed after the other and push what is known after each."""
        found: list[list[dict[str, float]]] = [[] for _ in self._specs]
        total = self._count * len(self._specs)
        for seed in range(FIRST_SEED, FIRST_SEED + self._count):
            numbers = await asyncio.gather(
                *(self._numbers(spec, seed) for spec in self._specs), return_exceptions=True
            )
            if self._stopped:
                return
            for error in numbers:
                if isinstance(error, HpcrowdError):
                    await self._push({"push": "seeds", "error": str(error)})
                    return
                if isinstance(error, BaseException):
                    raise error
            for place, one in enumerate(numbers):
                found[place].append(one)  # type: ignore[arg-type]
            done = sum(map(len, found))
            await self._push({"push": "seeds", "done": done, "of": total, **intervals(found)})

    async def _numbers(self, spec: Spec, seed: int) -> dict[str, float]:
        """Return the numbers of the whole run with a seed."""
        settings = {**dict(spec.settings), "seed": str(seed)}
        seeded = replace(spec, settings=tuple(sorted(settings.items())), measured=True)
        run = await self._runs.run_of(seeded)
        try:
            timeline = await run.until(lambda: run.timeline if run.done else None)
            values = json.loads(timeline)["numbers"]["values"]
            return {one["key"]: one["value"] for one in values if one["value"] is not None}
        finally:
            self._runs.leave(run)


def intervals(found: Sequence[Sequence[dict[str, float]]]) -> dict[str, Any]:
    """Return means and half-widths of their 95 % intervals (Student's t).

    ``found`` has, for each run, the numbers with each seed.

    ``runs`` is a list of ``{key: {mean, half, n}}``; ``difference`` is the same of the second run
    minus the first, paired by seed; None with one run.
    """
    runs = [_intervals_of(one) for one in found]
    difference = None
    if len(found) > 1:
        pairs = zip(found[0], found[1], strict=True)
        difference = _intervals_of(
            [{key: two[key] - one[key] for key in one.keys() & two.keys()} for one, two in pairs]
        )
    return {"runs": runs, "difference": difference}


def _intervals_of(found: Sequence[dict[str, float]]) -> dict[str, dict[str, float | None]]:
    from scipy.stats import t

    result: dict[str, dict[str, float | None]] = {}
    for key in sorted({key for one in found for key in one}):
        values = np.array([one[key] for one in found if key in one], float)
        half = None
        if len(values) > 1:
            error = float(values.std(ddof=1)) / len(values) ** 0.5
            half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * error
        result[key] = {"mean": float(values.mean()), "half": half, "n": len(values)}
    return result


class Forecasting:
    """Futures of the runs of a page from second ``at``, with a process of each that is there.

    The processes are used by nobody else; ``send`` sends a text to the browser.
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
        self._news = Tasks()

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
            self._news.begin(self._push(run, progress, message.body))

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
