"""Statistics that a simulation and a log are compared by in a calibration.

All are of what is submitted in the calibrated days; what happens after their end is not known, on
either side. Sessions and batches are found in the times of the run, or in those of the log. A job
that has not ended counts as ending with the last day. Differences are taken on the scale that
:attr:`Statistic.scale` names: ``decades`` are log10(1 + t / 1 min) of times, ``log`` is
log10(1 + n) of counts, and ``plain`` is the number itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.think import LONGEST_BREAK
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.curves import Floats, decades
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, State


@dataclass(frozen=True)
class Statistic:
    """A number of a run and of a log."""

    #: Its name, and what it is.
    name: str
    meaning: str
    unit: str = ""  #: ``s`` for a time, ``1/day`` for a rate; empty for a count or a share.
    #: The scale on which it is compared: ``decades``, ``log`` or ``plain``.
    scale: Literal["decades", "log", "plain"] = "plain"


def _times(name: str, meaning: str, *shares: int) -> list[Statistic]:
    """Return percentiles of times."""
    words = {50: "median"}
    return [
        Statistic(
            f"{name}_p{share}_s",
            f"{meaning}, {words.get(share, f'{share}th percentile')}",
            "s",
            "decades",
        )
        for share in shares
    ]


#: Parts of the day, by the hour of local time at which each begins.
PARTS = {"night": 0, "morning": 6, "afternoon": 12, "evening": 18}

#: The statistics, in order.
STATISTICS = (
    Statistic("jobs", "jobs submitted", "", "log"),
    Statistic("users", "users who submitted", "", "log"),
    Statistic("sessions", "sessions", "", "log"),
    Statistic("work_h_per_day", "processor-hours submitted per day", "1/day", "log"),
    *_times("session", "length of a session", 50, 90),
    *_times("think", "pause after a result, if shorter than 8 h", 25, 50, 75),
    *_times("think_quick", "the same, after a response below the median of the log", 50),
    *_times("think_slow", "the same, after a response of at least that", 50),
    Statistic("breaks", "share of pauses after a result that last 8 h or longer"),
    *_times("inter_arrival", "time between two jobs", 50, 90),
    *(
        Statistic(part, f"share of sessions that begin from {hour} to {hour + 6} h")
        for part, hour in PARTS.items()
    ),
    Statistic("weekend", "share of sessions that begin on Saturday or Sunday"),
    *_times("wait", "wait", 50, 90),
    Statistic("wait_mean_s", "mean wait", "s", "decades"),
    Statistic("left", "share of jobs that left the queue"),
)

#: Names of the statistics, in order.
NAMES = tuple(one.name for one in STATISTICS)


def chosen(words: Sequence[str]) -> tuple[str, ...]:
    """Return the names of statistics by their names or beginnings, such as ``think``; in order.

    A QuantityError is raised when there is none of that name.
    """
    for word in words:
        if not any(name.startswith(word) for name in NAMES) or not word:
            raise QuantityError(f"compare {word!r}: {not_one_of(word, NAMES)}")
    return tuple(name for name in NAMES if not words or name.startswith(tuple(words)))


@dataclass(frozen=True)
class Measure:
    """Measures runs of some days of a log."""

    clock: Clock  #: Local time.
    until: int  #: End of the days, s since the origin.
    days: float  #: Length of the days.
    quick: float  #: Responses below this are quick, s; the median of the log.

    @classmethod
    def of_log(cls, record: JobTable, clock: Clock, until: int, days: float) -> Measure:
        """Return the measure for a log, whose median response is the limit of quick ones."""
        units = _seen(record.as_recorded(), until)[0].by_batch
        found = units.response[units.awaited[units.think_time != UNKNOWN]]
        return cls(clock, until, days, float(np.median(found)) if len(found) else 0.0)

    def of_record(self, jobs: JobTable) -> Floats:
        """Return the statistics of the log, shape (statistics,)."""
        return self(jobs.as_recorded(), self.clock, self.until)

    def __call__(self, jobs: JobTable, clock: Clock, until: int) -> Floats:
        """Return the statistics of a run, shape (statistics,), up to the second ``until`` in it."""
        if not (jobs.submit[jobs.submit != UNKNOWN] <= until).any():
            return np.array([self.days * DAY if one.unit == "s" else 0.0 for one in STATISTICS])
        work, waits = _seen(jobs, until)
        seen, units, sessions = work.jobs, work.by_batch, work.by_session
        count = len(seen)
        thinks = units.think_time != UNKNOWN
        pauses = units.think_time[thinks]
        short = pauses < LONGEST_BREAK
        quick = units.response[units.awaited[thinks]] < self.quick
        second = clock.second_of_week(sessions.start)
        hour, day = second % DAY // HOUR, second // DAY
        begins = [((hour >= at) & (hour < at + 6)).mean() for at in PARTS.values()]
        area = float(seen.processors @ seen.run_time.astype(np.float64))
        never = self.days * DAY  # nobody came back in these days
        order = np.sort(seen.submit)
        return np.array(
            [
                count,
                len(sessions.users),
                len(sessions),
                area / HOUR / self.days,
                *_quantiles(sessions.last - sessions.start, (0.5, 0.9), 0.0),
                *_quantiles(pauses[short], (0.25, 0.5, 0.75), never),
                *_quantiles(pauses[short & quick], (0.5,), never),
                *_quantiles(pauses[short & ~quick], (0.5,), never),
                float((~short).mean()) if len(short) else 0.0,
                *_quantiles(order[1:] - order[:-1], (0.5, 0.9), never),
                *begins,
                float((day >= 5).mean()),
                *_quantiles(waits, (0.5, 0.9), 0.0),
                float(waits.mean()),
                float((seen.state == State.CANCELLED).mean()),
            ]
        )


def on_scales(values: Floats) -> Floats:
    """Return statistics, in the last dimension, on the scales on which they are compared."""
    found = np.array(values, np.float64)
    for place, one in enumerate(STATISTICS):
        if one.scale == "decades":
            found[..., place] = decades(found[..., place])
        elif one.scale == "log":
            found[..., place] = np.log10(1 + found[..., place])
    return found


def _seen(jobs: JobTable, until: int) -> tuple[Work, Int64s]:
    """Return what is seen of a run by the end of the days, and the waits so far.

    The work has the simulated times as recorded ones.
    """
    rows = np.flatnonzero((jobs.submit != UNKNOWN) & (jobs.submit <= until))
    seen = jobs.take(rows)
    ended = (seen.end != UNKNOWN) & (seen.end <= until)
    end = np.where(ended, seen.end, until)
    never: NDArray[np.bool_] = (seen.start == UNKNOWN) | (seen.start > until)
    waits = np.where(never, end, seen.start) - seen.submit
    seen.recorded_submit[:] = seen.submit
    seen.recorded_start[:] = np.where(never, end, seen.start)
    seen.recorded_end[:] = end
    return Work.of(seen), np.maximum(waits, 0)


def _quantiles(values: Int64s, shares: tuple[float, ...], without: float) -> Floats:
    """Return quantiles of times; ``without`` for each if there are none."""
    if not len(values):
        return np.full(len(shares), without)
    return np.quantile(values, shares)
