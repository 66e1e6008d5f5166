"""A week without the machine.

Covers: a maintenance that was not announced; jobs that are put back into the queue; the backlog
afterwards, for rigid users and for users who wait for their jobs.

Story: on a Monday morning the cooling fails, and the machine is down for a week. Rigid users keep
submitting into the dead queue as recorded, so that a forecast made with them begins the next week
with a backlog of a whole week. Users who wait for results receive none: they submit the work that
was ready, then wait, and come back when the machine does. How long the queue takes to be empty
again, and how long the jobs of those days wait, differs accordingly.

Run: ``python -m hpcrowd.scenarios.whatif.outage_week TRACE``
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.scenarios.whatif.scripts import ScriptTable, covered, in_week, runs_of, script

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.jobs import JobTable
    from hpcrowd.environment.traces.trace import Trace


WEEK = 16  # of the outage, counted from 0 at the first Monday of the trace
HOUR_OF_DAY = 8  # local time at which it begins
LENGTH = 7 * DAY  # s
JOBS = "requeue"  # fate of running jobs: requeue, resubmit or fail
USERS = ("rigid", "think-time", "fluid")
SCHEDULER = "easy"
SEED = 0

HEAD = (
    "users",
    "week",
    "submitted",
    "ended",
    "mean\nwait (h)",
    "longest\nqueue",
    "empty after\n(days)",
    "lost\n(proc-h)",
)


def outage_of(clock: Clock) -> tuple[int, int]:
    """Return when the outage begins and ends, s of the run."""
    begin = in_week(clock, WEEK, 0, HOUR_OF_DAY * HOUR)
    return begin, begin + LENGTH


def runs(trace: Trace, outage: tuple[int, int]) -> dict[str, dict[str, Run]]:
    """Return the runs by users, ``as usual`` and with the ``outage``."""
    from hpcrowd.scenarios.kinds.platform_files import MaintainConfig, PlatformConfig

    closed = MaintainConfig(do="maintain", start=outage[0], end=outage[1], announced=0, jobs=JOBS)
    platform = PlatformConfig(name="outage", changes=(closed,))
    variants = {"as usual": {}, "outage": {"platform": platform}}
    return runs_of(trace, USERS, variants, scheduler=SCHEDULER, seed=SEED)


def row(users: str, name: str, run: Run, outage: tuple[int, int]) -> tuple[str, ...]:
    """Return a line: the week's jobs, the queue, and the work that the outage destroyed.

    The mean wait is that of jobs submitted in the week; the queue is that from the beginning of
    the week on, and it counts as empty at its first second without a waiting job after the end.
    """
    jobs, (begin, end) = run.jobs, outage
    mine = (jobs.submit >= begin) & (jobs.submit < end)
    ended = jobs.over & (jobs.end >= begin) & (jobs.end < end)
    wait = (jobs.start - jobs.submit)[mine & jobs.over]
    times, level = queue(jobs)
    within = level[(times >= begin) & (times < end)]
    empty = times[(times >= end) & (level == 0)]
    changed = run.parts["platform"].account.values()
    lost = sum(account["lost_processor_s"] for account in changed)
    return (
        users,
        name,
        f"{np.count_nonzero(mine):,}",
        f"{np.count_nonzero(ended):,}",
        f"{wait.mean() / HOUR:.1f}" if len(wait) else "-",
        f"{within.max(initial=0):,}",
        f"{(empty[0] - end) / DAY:.1f}" if len(empty) else "-",
        f"{lost / HOUR:,.0f}",
    )


def queue(jobs: JobTable) -> tuple[np.ndarray, np.ndarray]:
    """Return at which seconds the queue changes, and the jobs that wait from then on."""
    started = jobs.start != UNKNOWN
    times = np.concatenate([jobs.submit[started], jobs.start[started]])
    step = np.concatenate([np.ones(started.sum(), np.int64), -np.ones(started.sum(), np.int64)])
    distinct, place = np.unique(times, return_inverse=True)
    change = np.bincount(place, weights=step, minlength=len(distinct))
    return distinct, np.cumsum(change).astype(np.int64)


def table(trace: Trace) -> ScriptTable:
    """Replay a trace with and without the outage, with all users."""
    clock = Clock.of(trace.header)
    outage = outage_of(clock)
    covered(trace, outage[1], f"the end of week {WEEK}, see WEEK")
    rows = [
        row(users, name, run, outage)
        for users, by_name in runs(trace, outage).items()
        for name, run in by_name.items()
    ]
    begin, end = (f"{clock.local(second):%Y-%m-%d %H:%M}" for second in outage)
    title = f"Outage from {begin} to {end}: {Path(trace.source).name}"
    return ScriptTable(title, HEAD, rows)


#: Prints what an outage of a week does; returns the exit code.
main = script("outage_week", lambda trace: [table(trace)])

if __name__ == "__main__":
    sys.exit(main())
