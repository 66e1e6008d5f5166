"""All runs of a page with several seeds: means with intervals, and those of the difference."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.inspector.processes.runs import RunError, Runs, SharedRun, Spec

#: Confidence level of the intervals.
CONFIDENCE = 0.95

#: Seed of a run that has none of its own.
FIRST_SEED = 0


class Repetition:
    """Runs with other seeds, in the background.

    Parameters
    ----------
    runs
        All runs of the server.
    specs
        What the page shows.
    count
        How many seeds: that of the run itself and those after it.
    push
        Sends what is known to the browser.
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
            await _end_of(run)
            values = json.loads(run.timeline)["numbers"]["values"]
            return {one["key"]: one["value"] for one in values if one["value"] is not None}
        finally:
            self._runs.leave(run)


async def _end_of(run: SharedRun) -> None:
    """Wait until a run has come to its end."""
    ended = asyncio.Event()
    run.changed.add(ended.set)
    try:
        while not run.done:
            if run.error:
                raise RunError(run.error)
            ended.clear()
            await ended.wait()
    finally:
        run.changed.discard(ended.set)


def intervals(found: Sequence[Sequence[dict[str, float]]]) -> dict[str, Any]:
    """Return means and half-widths of their 95 % intervals (Student's t).

    Parameters
    ----------
    found
        For each run, the numbers with each seed.

    Returns
    -------
    dict
        ``runs``, a list of ``{key: {mean, half, n}}``, and ``difference``, the same of the second
        run minus the first, paired by seed; None with one run.
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
