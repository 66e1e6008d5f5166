"""Jobs that users gave up in the queue, run by run: how much work, what is recovered, who stays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis.metrics import format_metric
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.jobs import Int64s, JobTable, State

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run  # circle: for its type only

#: What is counted of a run, and in words.
OF_A_RUN = {
    "jobs_given_up": "jobs given up",
    "given_up_processor_h": "processor-hours given up",
    "users_giving_up": "users who gave up jobs",
}

#: What is counted of a run and the first one: its jobs by their number, and its users.
OF_BOTH = {
    "jobs_recovered": "jobs recovered (given up in A)",
    "recovered_processor_h": "processor-hours recovered",
    "jobs_lost": "jobs lost (completed in A)",
    "users_staying": "users who stay (gave up jobs in A only)",
    "users_leaving": "users who leave (gave up none in A)",
}

#: In words.
WORDS = OF_A_RUN | OF_BOTH


def any_given_up(runs: Iterable[Run]) -> bool:
    """Return whether users gave up jobs in one of these runs."""
    return any(run.jobs.left_queue.any() for run in runs)


def given_up_in(run: Run) -> dict[str, float]:
    """Return the numbers of :data:`OF_A_RUN`.

    Processor-hours are of the run times that jobs have, or of similar jobs where the log has none.
    """
    jobs, left = run.jobs, run.jobs.left_queue
    known = run.parts["given up"].account.get("given_up_processor_h")
    hours = float(jobs.processors[left] @ jobs.run_time[left].astype(np.float64)) / HOUR
    return {
        "jobs_given_up": float(left.sum()),
        "given_up_processor_h": hours if known is None else known,
        "users_giving_up": float(len(np.unique(jobs.user[left]))),
    }


def given_up_in_both(first: Run, other: Run) -> dict[str, float]:
    """Return the numbers of :data:`OF_BOTH` of ``other``, compared with ``first``."""
    one, two = first.jobs, other.jobs
    before, after = np.unique(one.user[one.left_queue]), np.unique(two.user[two.left_queue])
    recovered = two.take(_completed(two, one.number[one.left_queue]))
    return {
        "jobs_recovered": float(len(recovered)),
        "recovered_processor_h": float(recovered.processors @ recovered.lasted / HOUR),
        "jobs_lost": float(len(_completed(one, two.number[two.left_queue]))),
        "users_staying": float(len(np.setdiff1d(before, after))),
        "users_leaving": float(len(np.setdiff1d(after, before))),
    }


def _completed(jobs: JobTable, numbers: Int64s) -> Int64s:
    """Return the rows of the jobs with these numbers that completed."""
    return np.flatnonzero((jobs.state == State.COMPLETED) & np.isin(jobs.number, numbers))


def amount_of(name: str, value: float | None) -> str:
    """Return one of these numbers as text; ``-`` for none."""
    counted = name.startswith(("jobs", "users")) and value is not None
    return f"{value:,.0f}" if counted else format_metric(name, value)
