"""The simulated second part of a trace, and what of it is compared with the record.

Two simulations are made from each origin. With waits *as recorded*, all differences are due to the
users. Under a *scheduler*, jobs of all users meet in a queue; the record is then what the same
scheduler makes of the recorded submissions.

================== =========== =====================================================================
measure            of          what is compared
================== =========== =====================================================================
think_time         users       pauses between sessions, from the end of what a session waited for
session_length     users       from the first to the last submission of a session
inter_arrival      users       times between the jobs of all users
weekly_profile     users       jobs submitted in the hours of the week
load_by_hour       users       processor-seconds submitted in the hours of the day
jobs, sessions     users       how many there are, in the whole part
waits              users       waits under the scheduler
queue              weeks       jobs that wait, hour by hour, under the scheduler
dependence         weeks       correlation of the queue and the submissions in the hours after it
================== =========== =====================================================================

What belongs to users is kept user by user, the rest week by week, so that intervals can be found by
drawing users, or weeks, again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.generative.shmueli import SiteModel
from hpcrowd.agents.populations.population import add_users
from hpcrowd.agents.presets import PRESETS
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.curves import Floats, present_at
from hpcrowd.analysis.validation.models import Parts, UserModel
from hpcrowd.analysis.validation.scores import distances, histogram, times_histogram
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.simulation import Simulation

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.base import Scheduler

#: Measures of the simulated part, with the statistic that ranks models.
MEASURES = {
    "think_time": "ks",
    "session_length": "ks",
    "inter_arrival": "ks",
    "weekly_profile": "tv",
    "load_by_hour": "tv",
    "jobs": "ratio",
    "sessions": "ratio",
    "waits": "ks",
    "queue": "ks",
    "dependence": "correlation",
}

#: Measures that need a scheduler.
QUEUED = ("waits", "queue", "dependence")

#: Measures that belong to weeks, not to users.
BY_WEEK = ("queue", "dependence")

#: Measures that count something.
COUNTED = ("jobs", "sessions")

#: What was observed, by measure: a row for each user or week.
Observed = dict[str, Floats]

#: Hours between a queue and the submissions that it is correlated with.
LAGS = (0, 1, 2, 3, 4, 6, 8, 12, 24)

#: Doublings of a queue in one bin of its distribution, and the number of bins.
QUEUE_BIN, QUEUE_BINS = 0.25, 80

#: Days that a simulation goes on after the second part, so that what was submitted in it may end.
AFTERWARDS = 7


def simulate_second(
    parts: Parts,
    model: UserModel | None,
    scheduler: str | Scheduler = "recorded",
    processors: int | None = None,
    seed: int = 0,
    *,
    drawn: bool = True,
) -> JobTable:
    """Return the jobs of a run in which a model decides in the second part.

    Users who generate their work begin on an empty machine, each at its first recorded submission
    of the second part; so only their own jobs are returned. Generated jobs have no recorded waits:
    if these are asked for, EASY is used instead.

    Without a model, everything is submitted at its recorded second. The machine is that of the
    largest job unless its processors are given, and always with recorded waits. Whether pauses are
    drawn: see :meth:`~hpcrowd.analysis.validation.models.Parts.users`.
    """
    jobs = parts.work.jobs.copy()
    largest = max(int(jobs.processors.max()), 1)
    until = parts.until + AFTERWARDS * DAY
    if model is not None and isinstance(model.behaviour, SiteModel):
        behaviour = model.behaviour(parts.second, parts.first)
        made = JobTable()
        policy = "easy" if scheduler == "recorded" else scheduler
        simulation = Simulation(made, processors or largest, policy, clock=parts.clock, seed=seed)
        for place in range(len(parts.second.sessions.users)):
            user = behaviour.join(simulation, place)
            user.behaviour.begin(user)
        simulation.run(until)
        return made
    jobs.erase_outcome()
    size = largest if scheduler == "recorded" or processors is None else processors
    simulation = Simulation(jobs, size, scheduler, clock=parts.clock, seed=seed)
    users = PRESETS["rigid"] if model is None else parts.users(model, drawn=drawn)
    add_users(simulation, parts.work, users)
    simulation.run(until)
    return jobs


def observe(parts: Parts, run: JobTable, rows: Int64s | None = None) -> Observed:
    """Return what belongs to users in the second part of a run with recorded waits.

    Sessions are found again in the simulated times. A job that never ended counts as ended at its
    submission. Inter-arrival times count for the user of the later job. The jobs that count are
    those of :func:`submitted_in_second` unless rows are given.
    """
    users = len(parts.work.sessions.users)
    jobs = run.take(submitted_in_second(parts, run) if rows is None else rows)
    if not len(jobs):
        nothing = np.zeros(0, np.int64)
        empty = times_histogram(nothing, nothing, users)
        found = dict.fromkeys(("think_time", "session_length", "inter_arrival"), empty)
        return found | {
            "weekly_profile": np.zeros((users, WEEK // HOUR)),
            "load_by_hour": np.zeros((users, DAY // HOUR)),
            **dict.fromkeys(("jobs", "sessions"), np.zeros((users, 1))),
        }
    jobs.user[:] = np.searchsorted(parts.work.sessions.users, jobs.user)
    jobs.recorded_submit[:] = jobs.recorded_start[:] = jobs.submit
    jobs.recorded_end[:] = np.maximum(jobs.end, jobs.submit)
    work = Work.of(jobs)
    sessions, place = work.by_session, work.sessions.users
    thinks = sessions.think_time != UNKNOWN
    order = np.lexsort((np.arange(len(jobs)), jobs.submit))
    hours = parts.clock.second_of_week(jobs.submit) // HOUR
    by_hour = np.zeros((users, DAY // HOUR))
    np.add.at(by_hour, (jobs.user, hours % 24), jobs.processors * jobs.run_time.astype(float))
    return {
        "think_time": times_histogram(
            sessions.think_time[thinks], place[sessions.user[thinks]], users
        ),
        "session_length": times_histogram(
            sessions.last - sessions.start, place[sessions.user], users
        ),
        "inter_arrival": times_histogram(np.diff(jobs.submit[order]), jobs.user[order[1:]], users),
        "weekly_profile": histogram(hours.astype(float), jobs.user, users, WEEK // HOUR),
        "load_by_hour": by_hour,
        "jobs": np.bincount(jobs.user, minlength=users).astype(float)[:, None],
        "sessions": np.bincount(place[sessions.user], minlength=users).astype(float)[:, None],
    }


def observe_queue(parts: Parts, run: JobTable) -> Observed:
    """Return what a scheduler made of the second part: waits, the queue, and what follows it.

    ``dependence`` has for each week and each of :data:`LAGS` the sums 1, x, y, x^2, y^2 and xy of
    two series of hours, shape (weeks, lags * 6): x is log2(1 + jobs that wait), y the square root
    of the number of submissions that many hours later, both less their mean at that hour of the
    day. Submissions of one user within an hour count once, so that bags of jobs count little.
    """
    users = len(parts.work.sessions.users)
    sent = run.take(submitted_in_second(parts, run))
    place = np.searchsorted(parts.work.sessions.users, sent.user)
    end = parts.until + AFTERWARDS * DAY
    waited = np.where(sent.start == UNKNOWN, end, sent.start) - sent.submit
    hours = np.arange(parts.since, parts.until, HOUR)
    there = run.submit != UNKNOWN
    start = np.where(run.start == UNKNOWN, np.maximum(run.end, end), run.start)
    queue = present_at(run.submit[there], start[there], hours)
    week = (hours - parts.since) // WEEK
    weeks = int(week[-1]) + 1
    in_hour = np.unique(((sent.submit - parts.since) // HOUR) * users + place) // users
    submissions = np.bincount(in_hour, minlength=len(hours))[: len(hours)]
    x, y = _unseasoned(np.log2(1 + queue)), _unseasoned(np.sqrt(submissions))
    sums = np.zeros((weeks, len(LAGS), 6))
    for k, lag in enumerate(LAGS):
        last = max(len(x) - lag, 0)
        a, b, w = x[:last], y[lag:], week[:last]
        for j, value in enumerate((np.ones(len(a)), a, b, a * a, b * b, a * b)):
            sums[:, k, j] = np.bincount(w, value, minlength=weeks)
    bins = np.log2(1 + queue) / QUEUE_BIN
    return {
        "waits": times_histogram(waited, place, users),
        "queue": histogram(bins, week, weeks, QUEUE_BINS),
        "dependence": sums.reshape(weeks, -1),
    }


def days_before(parts: Parts) -> Observed:
    """Return what belongs to users in the record just before the origin, in as many days."""
    record = parts.work.jobs.as_recorded()
    begin = parts.since - (parts.until - parts.since)
    rows = np.flatnonzero((record.submit >= begin) & (record.submit < parts.since))
    return observe(parts, record, rows)


def joined(found: Sequence[Observed]) -> Observed:
    """Return what was observed from several origins as one.

    Distributions of users are added, numbers of jobs and sessions stand side by side, a column for
    each origin, and weeks below each other.
    """
    together: Observed = {}
    for measure in found[0]:
        arrays = [each[measure] for each in found]
        if measure in BY_WEEK:
            together[measure] = np.concatenate(arrays)
        elif measure in COUNTED:
            together[measure] = np.concatenate(arrays, axis=1)
        else:
            together[measure] = np.sum(arrays, axis=0)
    return together


def added(found: Sequence[Observed]) -> Observed:
    """Return the sum of what was observed in several simulations from one origin."""
    return {measure: np.sum([each[measure] for each in found], axis=0) for measure in found[0]}


def compared(measure: str, record: Floats, model: Floats, weights: Floats) -> dict[str, Floats]:
    """Return the statistics of a measure for each row of weights, of users or weeks; shape (rows,).

    What was observed of record and model is divided by the number of simulations; weights are those
    of :func:`~hpcrowd.analysis.validation.scores.resample`. The statistics are those of
    :func:`~hpcrowd.analysis.validation.scores.distances`; or ``ratio``, the mean over the origins
    of the absolute difference of natural logarithms; or ``correlation``, the mean over the lags of
    the absolute difference.
    """
    if measure in COUNTED:
        # Half a job more on both sides, so that none at all is a finite error.
        logs = np.log((weights @ model + 0.5) / (weights @ record + 0.5))
        return {"ratio": np.abs(logs).mean(axis=1)}
    if measure == "dependence":
        gap = correlations(weights @ model) - correlations(weights @ record)
        return {"correlation": np.abs(gap).mean(axis=1)}
    found = distances(record, model, weights)
    # Who does nothing is as far away as possible.
    nothing = ((weights @ record).sum(axis=1) > 0) & ((weights @ model).sum(axis=1) == 0)
    for name in set(found) & {"ks", "tv"}:
        found[name] = np.where(nothing, 1.0, found[name])
    return found


def submitted_in_second(parts: Parts, run: JobTable) -> Int64s:
    """Return the rows of the jobs that a model submitted in the second part."""
    within: NDArray[np.bool_] = (run.submit >= parts.since) & (run.submit <= parts.until)
    if len(run) == len(parts.work.jobs) and (run.session != UNKNOWN).all():
        within &= ~parts.known[run.session]
    return np.flatnonzero(within)


def correlations(sums: Floats) -> Floats:
    """Return the correlation at each lag, shape (rows, lags), 0 where a series does not vary.

    The sums are as in :func:`observe_queue`, shape (rows, lags * 6).
    """
    n, x, y, xx, yy, xy = np.moveaxis(sums.reshape(len(sums), -1, 6), 2, 0)
    n = np.maximum(n, 1)
    across = xy / n - x / n * y / n
    spread = np.sqrt(np.maximum(xx / n - (x / n) ** 2, 0) * np.maximum(yy / n - (y / n) ** 2, 0))
    return np.divide(across, spread, where=spread > 1e-12, out=np.zeros(across.shape))


def _unseasoned(series: Floats) -> Floats:
    """Return an hourly series less its mean at that hour of the day."""
    hour = np.arange(len(series)) % 24
    means = np.bincount(hour, series, minlength=24) / np.maximum(np.bincount(hour, minlength=24), 1)
    return series - means[hour]
