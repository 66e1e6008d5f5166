"""What models foresee: the simulated second part of a trace, and single submissions in it.

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

Single submissions are forecast when work is released. Everything before that moment is as recorded.
The model draws many times when the user will submit next, and the draws are scored against the
recorded second. There are three questions:

================ ================================================================================
``next_batch``   All that a batch waits for has finished, and the previous batch has been submitted.
                 When does it come? Models that decide about whole sessions do not answer this.
``stays``        The same moment: does it come within the session, in an hour?
``next_session`` The user has been silent for an hour, which ends a session. When does the user come
                 back? Only draws that agree with that silence count; a model without such draws
                 knows only that, see :func:`~hpcrowd.agents.learned.heldout.outlasting`.
================ ================================================================================

They use only what is known at that moment: not whether the session continues, nor how long the
pause is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.user import ReplayUser
from hpcrowd.agents.behaviours.when import BatchOrder, Reason, Release, SessionGraph
from hpcrowd.agents.generative.shmueli import SiteModel
from hpcrowd.agents.learned.heldout import outlasting, recorded_releases
from hpcrowd.agents.populations.population import add_users
from hpcrowd.agents.presets import PRESETS
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.sessions import ARRIVAL_THRESHOLD
from hpcrowd.analysis.curves import Floats, decades, present_at
from hpcrowd.analysis.validation.models import Parts, UserModel
from hpcrowd.analysis.validation.scores import crps, distances, histogram, times_histogram
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams

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


# ---- single submissions -------------------------------------------------------------------------

#: Most tries to find draws that agree with what is known.
TRIES = 200


@dataclass(frozen=True)
class Questions:
    """Moments at which models make a forecast of a single submission."""

    unit: Int64s  #: The next batch or session, shape (questions,).
    user: Int64s  #: Index of its user.
    #: s; the moment from which the pause counts: all it waits for has finished, and the previous
    #: batch has been submitted.
    at: Int64s
    bound: Int64s  #: s; it is known not to come before.
    came: Int64s  #: s; when it came.
    sent: Int64s  #: s; the last submission before it.
    asked_of: Int64s  #: Number of possible questions for each user, shape (users,).

    def __len__(self) -> int:
        return len(self.unit)


def questions(parts: Parts, seed: int, per_user: int) -> dict[str, Questions]:
    """Return the questions by kind, at most ``per_user`` of each per user; the same for all models.

    They are asked in the second part, whenever the answer comes; the seed is for the choice if
    there are too many.
    """
    batches, sessions = parts.work.by_batch, parts.work.by_session
    releases = recorded_releases(BatchOrder(parts.work))
    second = ~parts.known[batches.session] & (releases.reason != Reason.START)
    second &= releases.at <= parts.until
    begins = second & (batches.continues == 0)
    begins &= sessions.awaited[batches.session] != UNKNOWN
    users = len(parts.work.sessions.users)
    found = {}
    for kind, which in (("next_batch", second), ("next_session", begins)):
        rows = np.flatnonzero(which)
        asked_of = np.bincount(batches.user[rows], minlength=users)
        rows = _choose(rows, batches.user[rows], per_user, Streams(seed).generator("ask", kind))
        at, unit = releases.at[rows], rows
        # The previous batch is the same user's, since something released this one.
        sent = batches.last[rows - 1]
        bound = np.maximum(at, parts.since)
        if kind == "next_session":
            unit = batches.session[rows]
            bound = np.maximum(bound, sent + ARRIVAL_THRESHOLD + 1)
        found[kind] = Questions(
            unit, batches.user[rows], at, bound, batches.start[rows], sent, asked_of
        )
    return found


def _choose(rows: Int64s, user: Int64s, most: int, generator: np.random.Generator) -> Int64s:
    """Return at most ``most`` rows of each user, chosen at random, in order."""
    order = np.lexsort((generator.random(len(rows)), user))
    _, first = np.unique(user[order], return_index=True)
    counts = np.diff(np.append(first, len(rows)))
    number = np.arange(len(rows)) - np.repeat(first, counts)
    return np.sort(rows[order[number < most]])


class Forecaster:
    """The users of a model, on a cluster where everything went as recorded.

    For ``hindsight`` see :meth:`~hpcrowd.analysis.validation.models.Parts.users`.
    """

    def __init__(
        self, parts: Parts, model: UserModel, seed: int = 0, *, hindsight: bool = False
    ) -> None:
        self.parts = parts
        jobs = parts.work.jobs.copy()
        size = max(int(jobs.processors.max()), 1)
        simulation = Simulation(jobs, size, "recorded", clock=parts.clock, seed=seed)
        self.users = add_users(simulation, parts.work, parts.users(model, hindsight=hindsight))
        # The effect of the first submissions is overwritten: nothing is run.
        jobs.submit[:] = jobs.recorded_submit
        jobs.start[:] = jobs.recorded_start
        jobs.end[:] = jobs.recorded_end
        self._releases = {
            type(behaviour.when): recorded_releases(behaviour.when)
            for behaviour in {id(user.behaviour): user.behaviour for user in self.users}.values()
            if isinstance(behaviour, Composed)
        }

    def scores(self, kind: str, asked: Questions, draws: int) -> dict[str, Floats] | None:
        """Return the score of each forecast by that many draws; None if the model does not answer.

        ``crps`` is the score of the distribution and ``error`` the absolute error of its median, in
        decades. ``brier`` is the squared error of the probability that the user stays in the
        session, without the part that is due to the number of draws. The kind is ``next_batch`` or
        ``next_session``.
        """
        if kind == "next_batch" and SessionGraph in self._releases:
            return None
        answers = np.full((len(asked), draws), np.nan)
        batch = None
        if kind == "next_session":
            batches = self.parts.work.by_batch
            batch = np.searchsorted(batches.session, asked.unit).tolist()
        for row, (unit, place, bound) in enumerate(
            zip(asked.unit.tolist(), asked.user.tolist(), asked.bound.tolist(), strict=True)
        ):
            user = self.users[place]
            behaviour = user.behaviour
            assert isinstance(behaviour, Composed)  # all models are made of parts
            when = behaviour.when
            if batch is not None and not isinstance(when, SessionGraph):
                unit = batch[row]
            release = self._releases[type(when)].of(unit)
            found = self._draws(user, behaviour, release, bound, draws)
            answers[row, : len(found)] = found
        pause = np.maximum(answers - asked.at[:, None], 0)
        said, came = decades(pause), decades(asked.came - asked.at)
        scores = {"crps": crps(said, came), "error": np.abs(np.nanmedian(said, axis=1) - came)}
        if kind == "next_batch":
            limit = asked.sent + ARRIVAL_THRESHOLD
            scores["brier"] = _brier(answers <= limit[:, None], answers, asked.came <= limit)
        return scores

    @staticmethod
    def _draws(
        user: ReplayUser, behaviour: Composed, release: Release, bound: int, draws: int
    ) -> list[int] | Int64s:
        """Return draws of the second at which a unit comes, not before ``bound``."""
        pauses = None
        if release.reason != Reason.START:
            pauses = behaviour.think.foresee(user, release, bound - release.at, draws)
        if pauses is not None:
            return release.at + pauses
        tries = (behaviour.arrival(user, release) for _ in range(TRIES))
        found = list(islice((at for at in tries if at >= bound), draws))
        waited = bound - release.at
        return found or [release.at + outlasting(user, release, waited) for _ in range(draws)]


def _brier(stays: np.ndarray, answers: Floats, stayed: np.ndarray) -> Floats:
    """Return (p - y)^2 of each forecast, with p estimated from draws without bias."""
    count = (~np.isnan(answers)).sum(axis=1)
    share = stays.sum(axis=1) / count
    noise = np.divide(share * (1 - share), count - 1, where=count > 1, out=np.zeros(len(share)))
    found: Floats = (share - stayed) ** 2 - noise
    return found
