"""What a model says of the second part of a trace: forecasts, and the part as it lives through it.

Forecasts are of single submissions, in the moment in which work is released. Everything before that
moment stays as recorded. The model is asked many times when the user will submit next, and the
draws are scored against the recorded second, see :func:`hpcrowd.analysis.validation.scores.crps`.
Two questions are asked:

================ ================================================================================
``next_batch``   All that a batch waits for is over, and the one before has been submitted. When
                 does it come? Models that decide about whole sessions do not answer this.
``next_session`` The user has let the hour pass that ends a session. When does it come back? Of
                 each model's answers only those count that agree with that; if it has none, it is
                 taken to say "at once".
================ ================================================================================

Both take as given only what is known in that moment: not whether a session goes on, and not how
long the pause is.
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


#: Distributions of the second part that are compared, and the distance by which models are ranked.
MEASURES = {
    "think_time": "ks",
    "session_length": "ks",
    "inter_arrival": "ks",
    "weekly_profile": "tv",
}

#: Histograms by user of each measure.
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
    """Return the jobs of the second part after a model has lived through it.

    Users who make up their work begin on an empty machine, each at its first recorded submission of
    the second part. There are no recorded waits of what they make up: where these should hold, EASY
    decides instead.

    Parameters
    ----------
    parts, model
        The trace and the model.
    scheduler
        Who decides about waits.
    processors
        Size of the machine; None for that of the largest job, which is also taken when recorded
        waits hold.
    seed
        Of everything random.
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
    """Return jobs that were submitted and ended as recorded."""
    again = jobs.copy()
    again.submit[:], again.end[:] = jobs.recorded_submit, jobs.recorded_end
    return again


def observe(parts: Parts, run: JobTable) -> Observed:
    """Return the distributions of simulated jobs, as histograms by user.

    Sessions are found anew in the given times. Think times are those between sessions, from the
    end of what a session waited for. A session lasts from its first to its last submission.
    Inter-arrival times are those of all users' jobs; each counts for the user who ends it. A job
    that was never submitted, or after the end of the record, does not count, and one that never
    ended was over at once.

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
    """Return how many jobs were submitted until the end of the record, for each recorded one."""
    return float(np.count_nonzero(_within(parts, run)) / len(parts.second_jobs))


def recorded_distances(
    parts: Parts, record: Observed, weights: Floats
) -> dict[str, dict[str, dict[str, Floats]]]:
    """Return distances within the record, by their name, measure and statistic.

    ``first part``: from the first part to the second; ``halves``: between the halves of the second,
    by submissions.

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

#: Tries to find draws that agree with what is known.
TRIES = 200

#: Forecasts of each kind that are asked for of a user at most, chosen at random: what matters is
#: the mean over users, which more of them make hardly surer.
PER_USER = 30


@dataclass(frozen=True)
class Questions:
    """Moments at which models are asked.

    Attributes
    ----------
    unit
        The batch, or session, that comes next, shape (questions,).
    user
        Place of its user.
    at
        s; the moment from which the pause is counted: all it waits for is over, and the batch
        before has been submitted.
    bound
        s; it is known to come then or later.
    came
        s; when it came.
    asked_of
        How many there would be of each user if all were asked, shape (users,).
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
    """Return what is asked, by kind; all models are asked the same.

    Parameters
    ----------
    parts
        The trace.
    seed
        Of the choice among too many.
    per_user
        Questions of each kind and user at most.
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
            # Before the batch is another of the same user, since something released it.
            bound = np.maximum(bound, batches.last[rows - 1] + ARRIVAL_THRESHOLD + 1)
        found[kind] = Questions(unit, batches.user[rows], at, bound, batches.start[rows], asked_of)
    return found


def _choose(rows: Int64s, user: Int64s, most: int, generator: np.random.Generator) -> Int64s:
    """Return at most so many rows of each user, at random, in their order."""
    order = np.lexsort((generator.random(len(rows)), user))
    _, first = np.unique(user[order], return_index=True)
    counts = np.diff(np.append(first, len(rows)))
    number = np.arange(len(rows)) - np.repeat(first, counts)
    return np.sort(rows[order[number < most]])


class Forecaster:
    """The users of a model, in a cluster where everything was as recorded.

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
        # What the first submissions left is overwritten: nothing is run.
        jobs.submit[:] = jobs.recorded_submit
        jobs.start[:] = jobs.recorded_start
        jobs.end[:] = jobs.recorded_end
        self._releases = {
            type(behaviour.when): recorded_releases(behaviour.when)
            for behaviour in {id(user.behaviour): user.behaviour for user in self.users}.values()
            if isinstance(behaviour, Composed)
        }

    def scores(self, kind: str, asked: Questions, draws: int = DRAWS) -> dict[str, Floats] | None:
        """Return the scores of each answer in decades, None if the model does not answer.

        ``crps`` is the score of the distribution, ``error`` the absolute error of its median.

        Parameters
        ----------
        kind
            ``next_batch`` or ``next_session``.
        asked
            The questions.
        draws
            Answers to each.
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
