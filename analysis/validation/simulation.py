"""The second part of a trace as a model lives through it, in distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.generative.shmueli import SiteModel
from hpcrowd.agents.populations.population import add_users
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.validation.parts import Parts, UserModel
from hpcrowd.analysis.validation.scores import Floats, distances, histogram, times_histogram
from hpcrowd.environment.clock import HOUR, WEEK
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.simulation import Simulation

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
