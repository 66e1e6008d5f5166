"""Features of users: how many, how unequal, their sessions, batches, think and response times.

Sessions and batches are those of Zakay and Feitelson (:mod:`hpcrowd.agents.work.sessions`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hpcrowd.agents.work.sessions import SessionDefinition, Sessions, find_sessions
from hpcrowd.analysis.curves import activity_lengths
from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.feature import Feature, Group, statistics_of
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.quantities import round_half_up

#: Jobs below which a user counts as rare (Song et al. 2005, Table II).
RARE_JOBS = 100

#: Part of the jobs that may lack a wait, and are left out then, before nothing is said of batches.
MOST_UNKNOWN = 0.01

#: Which part of the users is the busy one.
BUSY_PART = 0.1


@dataclass(frozen=True)
class Batches:
    """Batches of all users, by user and submission.

    Attributes
    ----------
    start, end
        s; first submission and latest end, shape (batches,).
    session
        Their sessions.
    size
        Their jobs.
    """

    start: Int64s
    end: Int64s
    session: Int64s
    size: Int64s

    @property
    def response(self) -> Int64s:
        """s; from first submission to latest end."""
        return self.end - self.start

    @property
    def followed(self) -> Int64s:
        """Places of the batches that another one of the same session follows."""
        return np.flatnonzero(self.session[1:] == self.session[:-1])

    @property
    def think(self) -> Int64s:
        """s; from the end of each of :attr:`followed` to the next one's submission."""
        before = self.followed
        return self.start[before + 1] - self.end[before]


def jobs_of_users(workload: Workload) -> Int64s:
    """Return how many jobs each user has, most first.

    Raises
    ------
    UnavailableError
        When no user is known.
    """
    known = workload.user[workload.user >= 0]
    if not len(known):
        raise UnavailableError("no users recorded")
    counts = np.unique(known, return_counts=True)[1]
    return np.sort(counts)[::-1]


def busy_share(workload: Workload) -> float:
    """Return the share of jobs of the busiest tenth of users, at least one of them."""
    jobs = jobs_of_users(workload)
    return float(jobs[: max(1, round(BUSY_PART * len(jobs)))].sum() / jobs.sum())


def sessions(workload: Workload) -> Sessions:
    """Return the sessions of the jobs whose user is known."""
    return workload.once("sessions", lambda: _sessions(workload))


def session_sizes(workload: Workload) -> Int64s:
    """Return how many jobs each session has."""
    return np.diff(sessions(workload).session_first)


def batches(workload: Workload) -> Batches:
    """Return the batches of the jobs whose user and wait are known.

    Raises
    ------
    UnavailableError
        When more waits are unknown than :data:`MOST_UNKNOWN`.
    """
    return workload.once("batches", lambda: _batches(workload))


def activity(workload: Workload) -> Floats:
    """Return the time from each user's first submission to the last, s (section VII)."""
    known = workload.user >= 0
    if not known.any():
        raise UnavailableError("no users recorded")
    submit = _seconds(workload.submit - workload.submit.min())
    return activity_lengths(workload.user[known], submit[known]).astype(np.float64)


def think_times(workload: Workload) -> Int64s:
    """Return the think times between batches of a session, s.

    Raises
    ------
    UnavailableError
        When waits are not all known, or no session has two batches.
    """
    found = batches(workload).think
    if not len(found):
        raise UnavailableError("no session with two batches")
    return found


def responses_thought_about(workload: Workload) -> Int64s:
    """Return the response times of the batches that :func:`think_times` follow, s; raises alike."""
    think_times(workload)
    found = batches(workload)
    return found.response[found.followed]


def _seconds(times: Floats) -> Int64s:
    return np.asarray(round_half_up(times))


def _sessions(workload: Workload) -> Sessions:
    rows = np.flatnonzero(workload.user >= 0)
    if not len(rows):
        raise UnavailableError("no users recorded")
    return _cut(workload, rows)[1]


def _cut(workload: Workload, rows: Int64s) -> tuple[JobTable, Sessions]:
    """Return a table of some jobs, cut into sessions and batches; unknown waits count as 0."""
    jobs = JobTable(len(rows))
    jobs.user[:] = workload.user[rows]
    jobs.recorded_submit[:] = _seconds(workload.submit[rows] - workload.submit.min())
    start = jobs.recorded_submit + np.maximum(_seconds(workload.wait[rows]), 0)
    jobs.recorded_start[:] = start
    jobs.recorded_end[:] = start + _seconds(workload.run_time[rows])
    gap = int(_seconds(np.array([workload.settings.session_gap_s]))[0])
    return jobs, find_sessions(jobs, SessionDefinition("arrival", gap))


def _batches(workload: Workload) -> Batches:
    of_users = workload.user >= 0
    rows = np.flatnonzero(of_users & (workload.wait >= 0))
    if not of_users.any():
        raise UnavailableError("no users recorded")
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


def _mean_and_median(
    name: str,
    title: str,
    definition: str,
    values: Callable[[Workload], Int64s | Floats],
    unit: str = "",
    source: str = "Zakay and Feitelson 2015, section IV",
) -> tuple[Feature, ...]:
    measures: dict[str, Callable[[Workload], float]] = {
        "mean": lambda workload: float(np.mean(values(workload))),
        "median": lambda workload: float(np.median(values(workload))),
    }
    return statistics_of(name, title, definition, source, measures, unit)


def _session_lengths(workload: Workload) -> Floats:
    found = sessions(workload)
    last = found.session_first[1:] - 1
    submit = workload.submit[workload.user >= 0][found.rows]
    length: Floats = submit[last] - submit[found.session_first[:-1]]
    return length


GROUP = Group(
    "users",
    "Users",
    (
        Feature(
            "users",
            "users",
            "who submitted a job",
            "Song et al. 2005, Table I",
            lambda w: len(jobs_of_users(w)),
        ),
        *_mean_and_median(
            "jobs_per_user",
            "jobs of a user",
            "jobs of each user whose number is known",
            jobs_of_users,
            source="Song et al. 2005, section III",
        ),
        Feature(
            "jobs_per_user_max",
            "jobs of the busiest user",
            "the most jobs of one user",
            "Song et al. 2005, section III",
            lambda w: int(jobs_of_users(w)[0]),
        ),
        Feature(
            "busy_users_share",
            "share of jobs of the busiest tenth",
            "jobs of the busiest tenth of users, of all jobs",
            "our own",
            busy_share,
        ),
        Feature(
            "rare_users_share",
            "share of users below 100 jobs",
            "users with fewer than 100 jobs",
            "Song et al. 2005, Table II",
            lambda w: float(np.mean(jobs_of_users(w) < RARE_JOBS)),
        ),
        *_mean_and_median(
            "activity_length",
            "activity of a user",
            "from a user's first submission to the last",
            activity,
            "s",
            "Zakay and Feitelson 2015, section VII",
        ),
        Feature(
            "sessions",
            "sessions",
            "periods of work of a user without a pause of over an hour between submissions",
            "Zakay and Feitelson 2015, section IV",
            lambda w: len(sessions(w)),
        ),
        *_mean_and_median(
            "jobs_per_session",
            "jobs of a session",
            "jobs of each session",
            session_sizes,
        ),
        *_mean_and_median(
            "session_length",
            "session",
            "from a session's first submission to its last",
            _session_lengths,
            "s",
        ),
        Feature(
            "batches",
            "batches",
            "sets of jobs of a session that overlap",
            "Zakay and Feitelson 2015, section IV",
            lambda w: len(batches(w).start),
        ),
        *_mean_and_median(
            "jobs_per_batch", "jobs of a batch", "jobs of each batch", lambda w: batches(w).size
        ),
        *_mean_and_median(
            "think_time",
            "think time",
            "from the end of a batch to the next submission in the session",
            think_times,
            "s",
        ),
        *_mean_and_median(
            "batch_response",
            "response time of a batch",
            "from first submission to latest end, of batches that another one follows",
            responses_thought_about,
            "s",
        ),
        Feature(
            "think_response_spearman",
            "think and response time (Spearman)",
            "correlation of ranks of a batch's response time and the think time after it",
            "Zakay and Feitelson 2015, section IV; the measure is our own",
            lambda w: series.spearman(responses_thought_about(w), think_times(w)),
        ),
    ),
)
