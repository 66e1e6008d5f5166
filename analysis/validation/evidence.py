"""Tests of a model on the second part of a trace: forecasts, and a simulation of the part.

A forecast is about a single submission, made at the moment when the work is released. Everything
before that moment is as recorded. The model draws many times when the user will submit next, and
the draws are scored against the recorded second, see
:func:`hpcrowd.analysis.validation.scores.crps`. There are two questions:

================ ================================================================================
``next_batch``   All that a batch waits for has finished, and the previous batch has been submitted.
                 When does it come? Models that decide about whole sessions do not answer this.
``next_session`` The user has been silent for an hour, which ends a session. When does the user come
                 back? Only draws that agree with that silence count; a model without such draws
                 is taken to answer "at once".
================ ================================================================================

Both use only what is known at that moment: not whether the session continues, nor how long the
pause is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.heldout import recorded_releases
from hpcrowd.agents.behaviours.when import BatchOrder, Reason, SessionGraph
from hpcrowd.agents.generative.shmueli import SiteModel
from hpcrowd.agents.populations.population import add_users
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.sessions import ARRIVAL_THRESHOLD
from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.validation.parts import Parts, UserModel
from hpcrowd.analysis.validation.scores import crps, decades, distances, histogram, times_histogram
from hpcrowd.environment.clock import HOUR, WEEK
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.base import Scheduler


#: Distributions of the second part that are compared, with the distance that ranks models.
MEASURES = {
    "think_time": "ks",
    "session_length": "ks",
    "inter_arrival": "ks",
    "weekly_profile": "tv",
}

#: Histograms by user, for each measure.
Observed = dict[str, Floats]


def simulate_second(
    parts: Parts,
    model: UserModel,
    scheduler: str | Scheduler = "recorded",
    processors: int | None = None,
    seed: int = 0,
    *,
    drawn: bool = True,
) -> JobTable:
    """Return the jobs of the second part as a model simulates it.

    Users who generate their work begin on an empty machine, each at its first recorded submission
    of the second part. Generated jobs have no recorded waits: if these are asked for, EASY is used
    instead.

    Parameters
    ----------
    parts, model
        The trace and the model.
    scheduler
        The scheduler.
    processors
        Size of the machine; None for that of the largest job, which is also used with recorded
        waits.
    seed
        Seed of everything random.
    drawn
        Whether pauses are drawn, see :meth:`~hpcrowd.analysis.validation.parts.Parts.users`.
    """
    jobs = parts.work.jobs.copy()
    largest = max(int(jobs.processors.max()), 1)
    if isinstance(model.behaviour, SiteModel):
        behaviour = model.behaviour(parts.second, parts.first)
        made = JobTable()
        policy = "easy" if scheduler == "recorded" else scheduler
        simulation = Simulation(made, processors or largest, policy, clock=parts.clock, seed=seed)
        for place in range(len(parts.second.sessions.users)):
            user = behaviour.join(simulation, place)
            user.behaviour.begin(user)
        simulation.run()
        return made
    jobs.erase_outcome()
    size = largest if scheduler == "recorded" or processors is None else processors
    simulation = Simulation(jobs, size, scheduler, clock=parts.clock, seed=seed)
    add_users(simulation, parts.work, parts.users(model, drawn=drawn))
    simulation.run()
    return jobs.take(parts.second_jobs)


def as_recorded(jobs: JobTable) -> JobTable:
    """Return the jobs with their recorded submissions and ends as simulated ones."""
    again = jobs.copy()
    again.submit[:], again.end[:] = jobs.recorded_submit, jobs.recorded_end
    return again


def observe(parts: Parts, run: JobTable) -> Observed:
    """Return the distributions of simulated jobs as histograms by user.

    Sessions are found again in the simulated times. Think times are those between sessions, from
    the end of what a session waited for. A session lasts from its first to its last submission.
    Inter-arrival times are between the jobs of all users; each counts for the user of the later
    job. Jobs never submitted, or submitted after the end of the record, do not count; a job that
    never ended counts as ended at its submission.

    Parameters
    ----------
    parts
        The trace.
    run
        The jobs, with their simulated times.
    """
    users = len(parts.work.sessions.users)
    jobs = run.take(np.flatnonzero(_within(parts, run)))
    if not len(jobs):
        nothing = np.zeros(0, np.int64)
        empty = {name: times_histogram(nothing, nothing, users) for name in MEASURES}
        return empty | {"weekly_profile": np.zeros((users, WEEK // HOUR))}
    jobs.user[:] = np.searchsorted(parts.work.sessions.users, jobs.user)
    jobs.recorded_submit[:] = jobs.recorded_start[:] = jobs.submit
    jobs.recorded_end[:] = np.maximum(jobs.end, jobs.submit)
    work = Work.of(jobs)
    sessions, place = work.by_session, work.sessions.users
    thinks = sessions.think_time != UNKNOWN
    order = np.lexsort((np.arange(len(jobs)), jobs.submit))
    hours = parts.clock.second_of_week(jobs.submit) // HOUR
    return {
        "think_time": times_histogram(
            sessions.think_time[thinks], place[sessions.user[thinks]], users
        ),
        "session_length": times_histogram(
            sessions.last - sessions.start, place[sessions.user], users
        ),
        "inter_arrival": times_histogram(np.diff(jobs.submit[order]), jobs.user[order[1:]], users),
        "weekly_profile": histogram(hours.astype(float), jobs.user, users, WEEK // HOUR),
    }


def volume(parts: Parts, run: JobTable) -> float:
    """Return the number of jobs submitted until the end of the record, per recorded job."""
    return float(np.count_nonzero(_within(parts, run)) / len(parts.second_jobs))


def recorded_distances(
    parts: Parts, record: Observed, weights: Floats
) -> dict[str, dict[str, dict[str, Floats]]]:
    """Return distances within the record, by name, measure and statistic.

    ``first part``: between the first and the second part; ``halves``: between the two halves of the
    second part, by submissions.

    Parameters
    ----------
    parts
        The trace.
    record
        The distributions of the recorded second part.
    weights
        Of :func:`~hpcrowd.analysis.validation.scores.resample`.
    """
    second = as_recorded(parts.second.jobs)
    early = second.submit < np.median(second.submit)
    first = observe(parts, as_recorded(parts.first.jobs))
    pairs = {
        "first part": (first, record),
        "halves": (
            observe(parts, second.take(np.flatnonzero(early))),
            observe(parts, second.take(np.flatnonzero(~early))),
        ),
    }
    return {
        name: {measure: distances(a[measure], b[measure], weights) for measure in MEASURES}
        for name, (a, b) in pairs.items()
    }


def _within(parts: Parts, run: JobTable) -> NDArray[np.bool_]:
    within: NDArray[np.bool_] = (run.submit != UNKNOWN) & (run.submit <= parts.end)
    return within


#: Draws of each forecast.
DRAWS = 20

#: Most tries to find draws that agree with what is known.
TRIES = 200

#: Most forecasts of each kind per user, chosen at random: the mean over users counts, and more of
#: them hardly make it more precise.
PER_USER = 30


@dataclass(frozen=True)
class Questions:
    """Moments at which models make a forecast.

    Attributes
    ----------
    unit
        The next batch or session, shape (questions,).
    user
        Index of its user.
    at
        s; the moment from which the pause counts: all it waits for has finished, and the previous
        batch has been submitted.
    bound
        s; it is known not to come before.
    came
        s; when it came.
    asked_of
        Number of possible questions for each user, shape (users,).
    """

    unit: Int64s
    user: Int64s
    at: Int64s
    bound: Int64s
    came: Int64s
    asked_of: Int64s

    def __len__(self) -> int:
        return len(self.unit)


def questions(parts: Parts, seed: int = 0, per_user: int = PER_USER) -> dict[str, Questions]:
    """Return the questions by kind; they are the same for all models.

    Parameters
    ----------
    parts
        The trace.
    seed
        Seed for the choice if there are too many.
    per_user
        Most questions of each kind per user.
    """
    batches, sessions = parts.work.by_batch, parts.work.by_session
    releases = recorded_releases(BatchOrder(parts.work))
    second = ~parts.known[batches.session] & (releases.reason != Reason.START)
    begins = second & (batches.continues == 0)
    begins &= sessions.awaited[batches.session] != UNKNOWN
    users = len(parts.work.sessions.users)
    found = {}
    for kind, which in (("next_batch", second), ("next_session", begins)):
        rows = np.flatnonzero(which)
        asked_of = np.bincount(batches.user[rows], minlength=users)
        rows = _choose(rows, batches.user[rows], per_user, Streams(seed).generator("ask", kind))
        at, unit = releases.at[rows], rows
        bound = np.maximum(at, parts.since)
        if kind == "next_session":
            unit = batches.session[rows]
            # The previous batch is the same user's, since something released this one.
            bound = np.maximum(bound, batches.last[rows - 1] + ARRIVAL_THRESHOLD + 1)
        found[kind] = Questions(unit, batches.user[rows], at, bound, batches.start[rows], asked_of)
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

    Parameters
    ----------
    parts
        The trace.
    model
        The model.
    seed
        Of everything random.
    hindsight
        See :meth:`~hpcrowd.analysis.validation.parts.Parts.users`.
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

    def scores(self, kind: str, asked: Questions, draws: int = DRAWS) -> dict[str, Floats] | None:
        """Return the score of each forecast in decades; None if the model does not answer.

        ``crps`` is the score of the distribution, ``error`` the absolute error of its median.

        Parameters
        ----------
        kind
            ``next_batch`` or ``next_session``.
        asked
            The questions.
        draws
            Draws for each question.
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
            tries = (behaviour.arrival(user, release) for _ in range(TRIES))
            found = list(islice((at for at in tries if at >= bound), draws)) or [bound]
            answers[row, : len(found)] = found
        pause = np.maximum(answers - asked.at[:, None], 0)
        said, came = decades(pause), decades(asked.came - asked.at)
        return {"crps": crps(said, came), "error": np.abs(np.nanmedian(said, axis=1) - came)}
