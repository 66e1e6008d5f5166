"""Let a simulation begin from a state instead of from an empty machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable
from hpcrowd.environment.machine.past import Past, Phases, Placed
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from hpcrowd.environment.simulation import Simulation

NO_ROWS: Int64s = np.zeros(0, np.int64)


def begin_from(
    simulation: Simulation,
    now: int,
    running: Int64s,
    waiting: Int64s,
    over: Int64s = NO_ROWS,
    *,
    placed: Mapping[int, Placed] | None = None,
    phases: Phases | None = None,
) -> None:
    """Let a simulation go on from a second at which some jobs run and some wait.

    Its first cluster gets them, before users join and before anything has run. The scheduler then
    knows what it would know if it had run since the first of these jobs, and has a pass at that
    second. What cannot be known from the jobs begins anew: reservations of schedulers with a plan
    (all waiting jobs are planned again, by submission), and on a machine under ``slurm`` the rhythm
    of its passes, unless ``phases`` says it: all of them are due at once.

    Columns of the table that it reads, beside those that a scheduler reads of any job (processors,
    requested time, user, group, queue; ``requests`` on a machine of nodes):

    ==============  ==========================================================================
    of jobs         columns
    ==============  ==========================================================================
    that run        ``recorded_submit``, ``recorded_start``; ``run_time``, how long they run in
                    all. One that should be over by ``now`` ends in the next second.
    that wait       ``recorded_submit``; ``run_time``
    that are over   ``recorded_submit``, ``recorded_start``, ``recorded_end``. Those without a
                    start left the queue, and count as cancelled.
    ==============  ==========================================================================

    It fills the simulated columns of all of them: submission, start, end, estimate, cluster and
    state. Those that are over are ``completed``, or ``killed`` where jobs are and their run time is
    beyond their request. A waiting job that the machine never has room for, or that the site
    refuses, becomes ``rejected``, as on arrival.

    Parameters
    ----------
    simulation
        One that has not begun.
    now
        The second, s since the origin. What happens in that second has happened.
    running, waiting
        Rows. Running jobs that started in the same second are taken to have started in this order.
    over
        Rows of the past that is known. Policies with a memory need it: decayed usage (fair-share,
        multifactor, slurm), mean slowdowns (selective), correlations (adaptive); so do predictors,
        which hear of all arrivals and ends in order. Without it they know only what runs and waits.
    placed
        On a machine of nodes, what is known of jobs beyond the table, by row. Running jobs are
        seated first where their nodes are known, then the others by start, where the rule of
        placement puts them. Holdings of the ledger of one simulation may be passed on to the next,
        which is quicker than names of nodes.
    phases
        Of Slurm's controller, such as ``scheduler.state.phases`` of another run. Passes are at most
        their interval too early without them.

    Raises
    ------
    QuantityError
        If the schedule is the recorded one, a job begins or ends when it cannot, or the running
        jobs need more than the machine has, a partition or node that it has not, or one that is
        too small.
    """
    jobs, engine = simulation.jobs, simulation.cluster.engine
    if engine.scheduler is None:
        raise QuantityError(
            "state under the recorded schedule: nobody knows what comes; choose a scheduler"
        )
    running, waiting, over = (np.asarray(rows, np.int64) for rows in (running, waiting, over))
    _check(jobs, now, running, waiting, over)
    running = running[np.argsort(jobs.recorded_start[running], kind="stable")]
    waiting = waiting[np.lexsort((waiting, jobs.recorded_submit[waiting]))]
    started = jobs.recorded_start[over] != UNKNOWN
    left, over = over[~started], over[started]
    for rows in (running, waiting, over, left):
        for column, recorded in (
            (Column.SUBMIT, Column.RECORDED_SUBMIT),
            (Column.ENQUEUED, Column.RECORDED_SUBMIT),
            (Column.START, Column.RECORDED_START),
            (Column.END, Column.RECORDED_END),
        ):
            jobs.matrix[column, rows] = jobs.matrix[recorded, rows]
    over = over[np.lexsort((over, jobs.end[over]))]
    for cluster in simulation.clusters.values():
        cluster.engine.pass_to(now)
    simulation.time = now
    engine.go_on(Past(now, running, waiting, over, placed or {}, phases), left)


def _check(jobs: JobTable, now: int, running: Int64s, waiting: Int64s, over: Int64s) -> None:
    """Check that the recorded times go with what jobs do now."""
    here = np.concatenate((running, waiting, over))
    if len(here) and not 0 <= here.min() <= here.max() < len(jobs):
        raise QuantityError(
            f"rows {here.min()} to {here.max()} of the state: the table has "
            f"{plural(len(jobs), 'job')}; append jobs before the simulation begins"
        )
    submit, start, end = jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end
    ran = over[start[over] != UNKNOWN]
    for rows, wrong, what in (
        (here, (submit[here] < 0) | (submit[here] > now), "must have been submitted by then"),
        (
            running,
            (start[running] < submit[running]) | (start[running] > now),
            "runs, and must have started after its submission and by then",
        ),
        (
            ran,
            (start[ran] < submit[ran]) | (end[ran] < start[ran]),
            "is over, and must have started after its submission and ended after its start",
        ),
        (over, end[over] > now, "is over, and must have ended by then"),
    ):
        if wrong.any():
            row = int(rows[np.flatnonzero(wrong)[0]])
            raise QuantityError(
                f"job {jobs.number[row]} (row {row}) in the state at {now} s: submitted at "
                f"{submit[row]} s, started at {start[row]} s, ended at {end[row]} s; it {what}"
            )
    if len(np.unique(here)) < len(here):
        row = int(here[np.flatnonzero(np.bincount(here)[here] > 1)[0]])
        raise QuantityError(
            f"job {jobs.number[row]} (row {row}) is twice in the state; a job either runs, waits "
            "or is over"
        )
