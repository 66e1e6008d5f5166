"""Features of users: number, inequality, sessions, batches, think and response times.

Sessions and batches are those of Zakay and Feitelson (:mod:`hpcrowd.agents.work.sessions`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.work.sessions import SessionDefinition, Sessions, find_sessions
from hpcrowd.analysis.curves import activity_lengths
from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.feature import Group, Kinds
from hpcrowd.analysis.features.workload import Floats, Workload, once, whole
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.jobs import Int64s, JobTable

#: A user with fewer jobs counts as rare (Song et al. 2005, Table II).
RARE_JOBS = 100

#: Largest share of jobs without a wait for which batches are still measured, without these jobs.
MOST_UNKNOWN = 0.01

#: Share of the users that counts as busy.
BUSY_PART = 0.1


@dataclass(frozen=True)
class Batches:
    """Batches of all users, by user and submission."""

    #: S; first submission and latest end, shape (batches,).
    start: Int64s
    end: Int64s

    #: Session and number of jobs of each batch.
    session: Int64s
    size: Int64s

    @property
    def response(self) -> Int64s:
        """Time from first submission to latest end, s."""
        return self.end - self.start

    @property
    def followed(self) -> Int64s:
        """Indices of the batches that are followed by another one in the same session."""
        return np.flatnonzero(self.session[1:] == self.session[:-1])

    @property
    def think(self) -> Int64s:
        """Time from the end of each of :attr:`followed` to the submission of the next batch, s."""
        before = self.followed
        return self.start[before + 1] - self.end[before]


GROUP = Group("users", "Users")

_SESSIONS = "Zakay and Feitelson 2015, section IV"

#: Statistics of quantities of users and sessions.
_KINDS: Kinds = {"mean": np.mean, "median": np.median}


@once
def sessions_of(workload: Workload) -> Sessions:
    """Return the sessions of jobs with a known user."""
    return _cut(workload, np.flatnonzero(_known(workload)))[1]


@once
def batches_of(workload: Workload) -> Batches:
    """Return the batches of jobs with known user and wait.

    Raises
    ------
    UnavailableError
        When the share of unknown waits is above :data:`MOST_UNKNOWN`.
    """
    of_users = _known(workload)
    rows = np.flatnonzero(of_users & (workload.wait >= 0))
    if not len(rows):
        raise UnavailableError("no waits recorded")
    unknown = np.count_nonzero(of_users) - len(rows)
    if unknown > MOST_UNKNOWN * np.count_nonzero(of_users):
        raise UnavailableError(f"{unknown:,} jobs without a recorded wait")
    jobs, found = _cut(workload, rows)
    first = found.batch_first[:-1]
    return Batches(
        start=jobs.recorded_submit[found.rows][first],
        end=np.maximum.reduceat(jobs.recorded_end[found.rows], first),
        session=jobs.session[found.rows][first],
        size=np.diff(found.batch_first),
    )


def _known(workload: Workload) -> NDArray[np.bool_]:
    """Return which jobs have a known user; at least one has."""
    known: NDArray[np.bool_] = workload.user >= 0
    if not known.any():
        raise UnavailableError("no users recorded")
    return known


def _cut(workload: Workload, rows: Int64s) -> tuple[JobTable, Sessions]:
    """Return a table of some jobs, with their sessions and batches; unknown waits count as 0."""
    jobs = JobTable(len(rows))
    jobs.user[:] = workload.user[rows]
    jobs.recorded_submit[:] = whole(workload.submit[rows] - workload.submit.min())
    start = jobs.recorded_submit + np.maximum(whole(workload.wait[rows]), 0)
    jobs.recorded_start[:] = start
    jobs.recorded_end[:] = start + whole(workload.run_time[rows])
    gap = int(whole(workload.settings.session_gap_s))
    return jobs, find_sessions(jobs, SessionDefinition("arrival", gap))


@GROUP.feature("users", "Song et al. 2005, Table I")
def users(workload: Workload) -> int:
    """Number of users who submitted a job."""
    return len(jobs_per_user(workload))


@GROUP.statistics("jobs of a user", "Song et al. 2005, section III", _KINDS)
def jobs_per_user(workload: Workload) -> Int64s:
    """Jobs of each known user.

    In falling order.
    """
    counts = np.unique(workload.user[_known(workload)], return_counts=True)[1]
    return np.sort(counts)[::-1]


@GROUP.feature("jobs of the busiest user", "Song et al. 2005, section III")
def jobs_per_user_max(workload: Workload) -> int:
    """The most jobs of one user."""
    return int(jobs_per_user(workload)[0])


@GROUP.feature("share of jobs of the busiest tenth", "our own")
def busy_users_share(workload: Workload) -> float:
    """Share of the busiest tenth of users in all jobs.

    The tenth is at least one user.
    """
    jobs = jobs_per_user(workload)
    return float(jobs[: max(1, round(BUSY_PART * len(jobs)))].sum() / jobs.sum())


@GROUP.feature("share of users below 100 jobs", "Song et al. 2005, Table II")
def rare_users_share(workload: Workload) -> float:
    """Share of users with fewer than 100 jobs."""
    return float(np.mean(jobs_per_user(workload) < RARE_JOBS))


@GROUP.statistics("activity of a user", "Zakay and Feitelson 2015, section VII", _KINDS, "s")
def activity_length(workload: Workload) -> Floats:
    """Time from a user's first to last submission."""
    known = _known(workload)
    submit = whole(workload.submit - workload.submit.min())
    return activity_lengths(workload.user[known], submit[known]).astype(np.float64)


@GROUP.feature("sessions", _SESSIONS)
def sessions(workload: Workload) -> int:
    """Periods of a user without a pause of over an hour between submissions."""
    return len(sessions_of(workload))


@GROUP.statistics("jobs of a session", _SESSIONS, _KINDS)
def jobs_per_session(workload: Workload) -> Int64s:
    """Jobs of each session."""
    return np.diff(sessions_of(workload).session_first)


@GROUP.statistics("session", _SESSIONS, _KINDS, "s")
def session_length(workload: Workload) -> Floats:
    """Time from a session's first to its last submission."""
    found = sessions_of(workload)
    last = found.session_first[1:] - 1
    submit = workload.submit[workload.user >= 0][found.rows]
    return submit[last] - submit[found.session_first[:-1]]


@GROUP.feature("batches", _SESSIONS)
def batches(workload: Workload) -> int:
    """Sets of overlapping jobs of a session."""
    return len(batches_of(workload).start)


@GROUP.statistics("jobs of a batch", _SESSIONS, _KINDS)
def jobs_per_batch(workload: Workload) -> Int64s:
    """Jobs of each batch."""
    return batches_of(workload).size


@GROUP.statistics("think time", _SESSIONS, _KINDS, "s")
def think_time(workload: Workload) -> Int64s:
    """Time from the end of a batch to the next submission in the session.

    Raises
    ------
    UnavailableError
        When waits are not all known, or no session has two batches.
    """
    found = batches_of(workload).think
    if not len(found):
        raise UnavailableError("no session with two batches")
    return found


@GROUP.statistics("response time of a batch", _SESSIONS, _KINDS, "s")
def batch_response(workload: Workload) -> Int64s:
    """Time from first submission to latest end, of batches followed by another one.

    These are the batches before each :func:`think_time`; raises as that does.
    """
    think_time(workload)
    found = batches_of(workload)
    return found.response[found.followed]


@GROUP.feature("think and response time (Spearman)", f"{_SESSIONS}; the measure is our own")
def think_response_spearman(workload: Workload) -> float:
    """Rank correlation of a batch's response time and the think time after it."""
    return series.spearman(batch_response(workload), think_time(workload))
