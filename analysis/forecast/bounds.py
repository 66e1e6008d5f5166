"""Bounds over futures, of load and queue over time and of waits: computed, named and written.

A bound is a quantile over futures: the smallest value with at least that share of the futures at or
below it. A bound beyond the horizon is infinite, ``None`` in JSON and empty in tables: all that is
known is that it is later.

Of jobs that wait beyond the horizon only that is known. A median takes them as infinite. A mean
counts them up to the horizon, so it is too small by an unknown amount; how many they are is given
with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.forecast.conformal import LEVELS
from hpcrowd.analysis.forecast.scores import quantiles
from hpcrowd.analysis.pictures.waits import ALL, STEP
from hpcrowd.environment.clock import DAY, WEEK, Clock
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    import pandas as pd

    from hpcrowd.analysis.forecast.futures import Future, Outset

#: Names of the bounds in files, by :data:`~hpcrowd.analysis.forecast.conformal.LEVELS`.
BOUNDS = tuple(f"p{round(100 * level)}" for level in LEVELS)


def over_futures(values: Floats) -> Floats:
    """Return the bounds over futures, shape (levels, ...), of values, shape (futures, ...).

    A NaN is a future without a value, which is left out; bounds are NaN where none has one.
    """
    flat = values.reshape(len(values), -1).T
    there = ~np.isnan(flat)
    found = np.full((len(flat), len(LEVELS)), np.nan)
    some = there.any(axis=1)
    if some.any():
        filled = np.where(there, flat, 0)[some]
        found[some] = quantiles(filled, LEVELS, there[some].astype(np.float64))
    return found.T.reshape(len(LEVELS), *values.shape[1:])


def known(number: int) -> int | None:
    """Return a number; None for unknown."""
    return None if number == UNKNOWN else number


def bounds(values: Floats, *, whole: bool = False) -> dict[str, Any]:
    """Return bounds by name, None where they are not finite."""
    found = [float(one) if math.isfinite(one) else None for one in values]
    if whole:
        found = [None if one is None else round(one) for one in found]
    return dict(zip(BOUNDS, found, strict=True))


def local_time(clock: Clock, second: float) -> str | None:
    """Return a second as local time in ISO 8601; None if it is infinite or the start unknown."""
    if clock.nominal or not math.isfinite(second):
        return None
    return clock.local(round(second)).isoformat()


def local_bounds(clock: Clock, values: Floats) -> dict[str, str | None]:
    """Return bounds as local times by name."""
    return {name: local_time(clock, one) for name, one in zip(BOUNDS, values, strict=True)}


def by_step(clock: Clock, edges: Int64s, fans: Mapping[str, Floats]) -> dict[str, Any]:
    """Return bounds in steps by name as plain data, with the first second of each step."""
    begins = edges[:-1].tolist()
    return {
        "begin_s": begins,
        "begin_local_time": [local_time(clock, at) for at in begins],
        **{
            name: {key: row.tolist() for key, row in zip(BOUNDS, fan, strict=True)}
            for name, fan in fans.items()
        },
    }


def flat_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows of plain data as a table, bounds as one column each: ``start_p50_s``."""
    import pandas as pd

    flat = []
    for row in rows:
        cells: dict[str, Any] = {}
        for key, value in row.items():
            stem, _, unit = key.removesuffix("_local_time").rpartition("_")
            if key.endswith("_local_time"):
                stem, unit = key.removesuffix("_local_time"), "local_time"
            if isinstance(value, Mapping):
                cells |= {f"{stem}_{name}_{unit}": one for name, one in value.items()}
            elif value is None and key in ("end_s", "end_local_time"):
                cells |= {f"{stem}_{name}_{unit}": None for name in BOUNDS}
            else:
                cells[key] = value
        flat.append(cells)
    frame = pd.DataFrame(flat)
    for name in map(str, frame.columns):
        # Seconds stay whole numbers where some are missing.
        if {type(one[name]) for one in flat} == {int, type(None)}:
            frame[name] = frame[name].astype("Int64")
    return frame


# ---- load and queue over time --------------------------------------------------------------------

#: How far the record before now is kept for pictures: at most, s, and in horizons.
BEFORE, HORIZONS = WEEK, 2

#: Of which there is a fan: what it is, in words.
FANS = {
    "load": "mean share of the processors that are busy in the step",
    "queue": "jobs in the queue at the end of the step",
    "queued_processors": "processors that these jobs request",
}


@dataclass(frozen=True)
class Fan:
    """A quantity over time."""

    name: str  #: One of :data:`FANS`.
    #: Bounds, shape (levels, steps), and mean over futures, shape (steps,).
    bounds: Floats
    mean: Floats
    before: Floats  #: What the record had in the steps before now, shape (steps before,).


def series_of(outset: Outset, futures: Sequence[Future], steps: int) -> dict[str, Floats]:
    """Return the values of :data:`FANS` in whole steps, each of shape (futures, steps)."""
    size = outset.processors or outset.state.processors
    return {
        "load": np.array([one.busy[:steps] for one in futures]) / size,
        "queue": np.array([one.queued[:steps] for one in futures], np.float64),
        "queued_processors": np.array([one.asked[:steps] for one in futures], np.float64),
    }


def fans_of(
    outset: Outset, futures: Sequence[Future], steps: int, edges_before: Int64s
) -> dict[str, Fan]:
    """Return the fans of all quantities, in whole steps."""
    before = _before(outset, edges_before)
    return {
        name: Fan(name, quantiles(values.T, LEVELS).T, values.mean(axis=0), before[name])
        for name, values in series_of(outset, futures, steps).items()
    }


def edges_before_now(outset: Outset) -> Int64s:
    """Return the edges of the steps before now, as far as the record goes."""
    state = outset.state
    first = int(state.jobs.recorded_submit.min(initial=state.now))
    steps = min(BEFORE, HORIZONS * outset.horizon, state.now - first) // outset.step
    return state.now - outset.step * np.arange(steps, -1, -1)


def _before(outset: Outset, edges: Int64s) -> dict[str, Floats]:
    """Return the values of :data:`FANS` in steps of the record."""
    state, jobs = outset.state, outset.state.jobs
    submit, start, end = jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end
    # Of jobs that left the queue without a start, that is their end.
    left = np.where(start == UNKNOWN, end, start)
    left = np.where(left == UNKNOWN, state.now + 1, left)
    ran = start != UNKNOWN
    busy = curves.mean_level(
        start[ran], np.where(end == UNKNOWN, state.now, end)[ran], jobs.processors[ran], edges
    )
    ends = edges[1:]
    return {
        "load": busy / state.processors,
        "queue": curves.present_at(submit, left, ends).astype(np.float64),
        "queued_processors": curves.present_at(submit, left, ends, jobs.processors).astype(
            np.float64
        ),
    }


# ---- waits, by the day of submission and the size of jobs ----------------------------------------


@dataclass(frozen=True)
class Waits:
    """Waits of the jobs that users submit, in each future, by class of size and by day.

    All arrays have the shape (futures, classes, days). The last class and the last day hold all.
    """

    classes: tuple[str, ...]  #: Names of the classes of processors, rising, then ``all``.
    days: Int64s  #: First second of each day, and the end of the last, s since the origin.
    jobs: Int64s  #: Number of jobs that were submitted.
    started: Int64s  #: How many of them started within the horizon.
    mean: Floats  #: Mean wait, s, with waits cut off at the horizon; NaN without jobs.
    #: The shortest wait that at least half of the jobs do not exceed, s; infinite if it is beyond
    #: the horizon, NaN without jobs.
    median: Floats

    @classmethod
    def of(
        cls, futures: Sequence[Future], until: int, days: Int64s, largest: int | None = None
    ) -> Waits:
        """Measure the waits in futures up to the horizon, by days with edges in s since the origin.

        The largest job that has a class is that of the futures, or has ``largest`` processors.
        """
        submit = np.concatenate([one.submit for one in futures])
        wait = np.concatenate([one.wait for one in futures])
        processors = np.concatenate([one.processors for one in futures])
        which = np.repeat(np.arange(len(futures)), [len(one.submit) for one in futures])
        names = size_classes(max(int(processors.max(initial=1)), largest or 1))
        sizes = np.searchsorted(STEP ** np.arange(len(names)), processors)
        day = np.clip(np.searchsorted(days, submit, side="right") - 1, 0, len(days) - 2)
        censored = wait == UNKNOWN
        upto = np.where(censored, np.maximum(until - submit, 0), wait).astype(np.float64)
        full = np.where(censored, np.inf, wait)
        shape = (len(futures), len(names) + 1, len(days))
        # Each job counts four times: in its cell, and in those of all classes, all days, and both.
        cells = np.concatenate(
            [
                (which * shape[1] + one) * shape[2] + other
                for one in (sizes, np.full(len(sizes), len(names)))
                for other in (day, np.full(len(day), len(days) - 1))
            ]
        )
        count = shape[0] * shape[1] * shape[2]
        jobs = np.bincount(cells, minlength=count)
        started = np.bincount(cells, np.tile(~censored, 4), count).astype(np.int64)
        total = np.bincount(cells, np.tile(upto, 4), count)
        mean = np.divide(total, jobs, out=np.full(count, np.nan), where=jobs > 0)
        values = np.tile(full, 4)
        values = values[np.lexsort((values, cells))]
        middle = np.cumsum(jobs) - jobs + (jobs - 1) // 2
        median = np.full(count, np.nan)
        median[jobs > 0] = values[middle[jobs > 0]]
        return cls(
            (*names, ALL), days, jobs.reshape(shape), started.reshape(shape), mean.reshape(shape),
            median.reshape(shape),
        )  # fmt: skip


def size_classes(largest: int) -> tuple[str, ...]:
    """Return the names of the classes of processors up to the largest job, as in other pictures."""
    count = next(n for n in range(64) if STEP**n >= largest) + 1
    powers = [STEP**place for place in range(count)]
    return ("1", *(f"{low + 1:,} to {high:,}" for low, high in pairwise(powers)))


def days_between(clock: Clock, now: int, until: int) -> Int64s:
    """Return the edges of the local days between two seconds; the first and the last are parts."""
    first = clock.wall(now) // DAY
    last = -(-clock.wall(until) // DAY)
    midnights = [clock.second_at(day * DAY) for day in range(first + 1, last)]
    inside = [second for second in midnights if now < second < until]
    return np.array([now, *inside, until], np.int64)
