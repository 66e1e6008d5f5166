"""Waits in futures, by the day of submission and the size of jobs.

Of jobs that wait beyond the horizon only that is known. A median takes them as infinite. A mean
counts them up to the horizon, so it is too small by an unknown amount; how many they are is given
with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.pictures.waits import ALL, STEP
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from hpcrowd.analysis.forecast.futures import Future


@dataclass(frozen=True)
class Waits:
    """Waits of the jobs that users submit, in each future, by class of size and by day.

    All arrays have the shape (futures, classes, days). The last class and the last day hold all.

    Attributes
    ----------
    classes
        Names of the classes of processors, rising, then ``all``.
    days
        First second of each day, and the end of the last, s since the origin.
    jobs
        Number of jobs that were submitted.
    started
        How many of them started within the horizon.
    mean
        Mean wait, s, with waits cut off at the horizon; NaN without jobs.
    median
        The shortest wait that at least half of the jobs do not exceed, s; infinite if it is beyond
        the horizon, NaN without jobs.
    """

    classes: tuple[str, ...]
    days: Int64s
    jobs: Int64s
    started: Int64s
    mean: Floats
    median: Floats

    @classmethod
    def of(
        cls, futures: Sequence[Future], until: int, days: Int64s, largest: int | None = None
    ) -> Waits:
        """Measure the waits in futures.

        Parameters
        ----------
        futures
            The futures.
        until
            The horizon, s since the origin.
        days
            Edges of the days, s since the origin.
        largest
            Processors of the largest job that has a class; by default of those in the futures.
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
