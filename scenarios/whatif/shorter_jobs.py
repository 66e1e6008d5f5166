"""A shorter maximum run time.

Covers: tasks that their users cut into jobs, as they prefer, adaptively, or all at once; compared
with users who ask for no more than the limit and are killed there.

Story: long jobs block the machine, so the operator lets no job run for longer than a few hours. In
a forecast in which jobs are killed at the limit, much work is gone and the machine is half empty.
Users who have work to do cut it into pieces instead: one after the other, with what a checkpoint
costs; in sizes that fit what is free now; or side by side, if pieces do not need each other. Short
jobs wait less. Whether long tasks are done sooner or later depends on how they are cut.

Run: ``python -m hpcrowd.scenarios.whatif.shorter_jobs TRACE``
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.agents.behaviours.parts import Reaction
from hpcrowd.agents.behaviours.reactions import Intention
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.scenarios.whatif.scripts import ScriptTable, runs_of, script

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.traces.trace import Trace


LIMIT = 4 * HOUR  # s; longest run time of a job after the change
OVERHEAD = 300  # s that each piece of a task runs longer, for a checkpoint (own choice)
MOST = 8  # jobs of a user in the system at once, where users cut all at once (own choice)
USERS = {"rigid": "recorded", "adjusted": "batches"}  # which work comes next, by kind of users
ANSWERS = ("no limit", "no limit, adaptive", "killed", "preferred", "adaptive", "at-once")
SCHEDULER = "easy"
REQUESTED = "at-least:1x"  # so that only the limit kills jobs
SEED = 0

#: What the table shows: work lost, processors in use, mean wait of all jobs, mean response of short
#: and of long tasks that were done, long tasks that were done, length of the run.
HEAD = (
    "users",
    "answer",
    "jobs",
    "lost\n(%)",
    "in use\n(%)",
    "wait\n(h)",
    "short\n(h)",
    "long\n(h)",
    "long\ndone (%)",
    "makespan\n(days)",
)


class KilledAtLimit(Reaction):
    """Ask for no more than the limit, and be killed there."""

    @override
    def react(self, user: ReplayUser, intention: Intention) -> None:
        jobs = user.model.jobs
        for place, row in enumerate(intention.rows.tolist()):
            run, asked = int(jobs.run_time[row]), int(jobs.requested_time[row])
            if asked > LIMIT:
                change = "requested_time", str(asked), str(LIMIT)
                intention.ask(place, {}, change, "killed", "less-time", (run, LIMIT))


def reactions_of(answer: str) -> tuple[Reaction, ...]:
    """Return what users do about the limit."""
    from hpcrowd.agents.behaviours.cut import Cut
    from hpcrowd.agents.behaviours.triggers import Always

    match answer:
        case "no limit":
            return ()
        case "no limit, adaptive":
            return (Cut(Always(), how="adaptive"),)
        case "killed":
            return (KilledAtLimit(),)
        case "preferred" | "adaptive":
            return (Cut(Always(), how=answer, limit=LIMIT, overhead=OVERHEAD),)
    return (Cut(Always(), how="at-once", limit=LIMIT, overhead=OVERHEAD, most=MOST),)


def runs(trace: Trace) -> dict[str, dict[str, Run]]:
    """Return the runs by users and answer; ``no limit`` comes first."""
    variants = {answer: {"reactions": reactions_of(answer)} for answer in ANSWERS}
    common = {"scheduler": SCHEDULER, "requested": REQUESTED, "overrun": "kill", "seed": SEED}
    return runs_of(trace, USERS, variants, **common)


def tasks_of(run: Run) -> tuple[Int64s, Int64s, Int64s]:
    """Return submission and end of each recorded job with all its pieces, s, and its work done.

    -1 where there is none. The work is in processor-seconds, with that of overheads.
    """
    jobs = run.jobs
    owner = np.arange(len(jobs))
    row_of = {number: row for row, number in enumerate(jobs.number.tolist())}
    for note in run.parts["reactions"].rows:
        if note.request == "task":
            owner[note.row] = row_of[int(note.request_after)]
    recorded = ~run.reading.made_up(len(jobs))
    submit, end = np.full(len(jobs), np.iinfo(np.int64).max), np.full(len(jobs), UNKNOWN)
    work = np.zeros(len(jobs), np.int64)
    ran = jobs.over
    np.minimum.at(submit, owner[ran], jobs.submit[ran])
    np.maximum.at(end, owner[ran], jobs.end[ran])
    np.add.at(work, owner[ran], (jobs.processors * jobs.lasted)[ran])
    submit[end == UNKNOWN] = UNKNOWN
    return submit[recorded], end[recorded], work[recorded]


def row(users: str, answer: str, run: Run, before: Run) -> tuple[str, ...]:
    """Return a line; long tasks are those that run for longer than the limit if there is none."""
    submit, end, work = tasks_of(run)
    needed = before.jobs.processors * before.jobs.run_time
    long, ran = before.jobs.run_time > LIMIT, end != UNKNOWN
    done, response = ran & (work >= needed), end - submit
    lost = np.maximum(needed - work, 0).sum() / max(needed.sum(), 1)

    def mean(which: NDArray[np.bool_]) -> str:
        return f"{response[which].mean() / HOUR:.1f}" if which.any() else "-"

    return (
        users,
        answer,
        f"{len(run.jobs):,}",
        f"{100 * lost:.1f}",
        f"{100 * run.metrics['utilization']:.1f}",
        f"{run.metrics['wait_mean_s'] / HOUR:.2f}",
        mean(done & ~long),
        mean(done & long),
        f"{100 * done[long].mean():.0f}" if long.any() else "-",
        f"{run.metrics['makespan_s'] / DAY:.1f}",
    )


def table(trace: Trace) -> ScriptTable:
    """Replay a trace with each answer to the limit."""
    rows = [
        row(users, answer, run, by_answer[ANSWERS[0]])
        for users, by_answer in runs(trace).items()
        for answer, run in by_answer.items()
    ]
    title = f"No job longer than {LIMIT // HOUR} h: {Path(trace.source).name}"
    return ScriptTable(title, HEAD, rows)


#: Prints what a shorter maximum run time changes; returns the exit code.
main = script("shorter_jobs", lambda trace: [table(trace)])

if __name__ == "__main__":
    sys.exit(main())
