"""What the sessions of a trace are like: how many, how long, who waits for whom."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.agents.work.graph import longest_paths
from hpcrowd.agents.work.recorded import Work
from hpcrowd.environment.jobs import JobTable

#: Percentiles that distributions are told by.
PERCENTILES = (10, 50, 90)


def session_stats(jobs: JobTable, work: Work, user: int | None = None) -> dict[str, Any]:
    """Return counts and distributions of sessions, batches and dependencies.

    Parameters
    ----------
    jobs, work
        The jobs and their sessions.
    user
        Only this user's; None for all users.

    Returns
    -------
    dict
        Names carry units; a distribution holds ``p10``, ``p50``, ``p90`` and ``max``. *Arity* is
        the number of sessions that wait directly for a session.

    Raises
    ------
    QuantityError
        When the trace has no such user.
    """
    sessions, edges = work.sessions, work.dependencies
    which = range(len(sessions)) if user is None else sessions.of_user(user)
    first, last = which.start, which.stop
    jobs_in = np.diff(sessions.session_first)[first:last]
    rows = sessions.rows[sessions.session_first[first] : sessions.session_first[last]]
    batches = jobs.batch[rows]
    batch_sizes = np.unique(batches, return_counts=True)[1]
    first_of_batch = np.diff(batches, prepend=-1) != 0
    batches_in = np.unique(jobs.session[rows][first_of_batch], return_counts=True)[1]
    leaving = slice(edges.first[first], edges.first[last])
    places = np.unique(sessions.user_of_session[first:last])
    return {
        "sessions_definition": str(sessions.definition),
        "jobs": len(rows),
        "users": len(places),
        "sessions": len(which),
        "batches": len(batch_sizes),
        "dependencies": len(edges.successor[leaving]),
        "sessions_without_predecessor": int(np.count_nonzero(edges.count[first:last] == 0)),
        "jobs_per_session": _spread(jobs_in),
        "batches_per_session": _spread(batches_in),
        "jobs_per_batch": _spread(batch_sizes),
        "sessions_per_user": _spread(np.diff(sessions.user_first)[places]),
        "session_length_s": _spread((sessions.end - sessions.start)[first:last]),
        "think_time_s": _spread(edges.think[leaving]),
        "longest_path_sessions": _spread(longest_paths(sessions)[places]),
        "arity": _spread(np.diff(edges.first)[first:last]),
    }


def _spread(values: ArrayLike) -> dict[str, float] | None:
    """Return percentiles and maximum, None when there is nothing."""
    numbers = np.asarray(values, np.float64)
    if not len(numbers):
        return None
    spread = {f"p{p}": float(np.percentile(numbers, p)) for p in PERCENTILES}
    return spread | {"max": float(numbers.max())}
