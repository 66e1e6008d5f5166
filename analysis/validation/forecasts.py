"""Forecasts of single submissions, made when work is released.

Everything before that moment is as recorded. The model draws many times when the user will submit
next, and the draws are scored against the recorded second. There are three questions:

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

from dataclasses import dataclass
from itertools import islice

import numpy as np

from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.user import ReplayUser
from hpcrowd.agents.behaviours.when import BatchOrder, Reason, Release, SessionGraph
from hpcrowd.agents.learned.heldout import outlasting, recorded_releases
from hpcrowd.agents.populations.population import add_users
from hpcrowd.agents.work.sessions import ARRIVAL_THRESHOLD
from hpcrowd.analysis.curves import Floats, decades
from hpcrowd.analysis.validation.models import UserModel
from hpcrowd.analysis.validation.parts import Parts
from hpcrowd.analysis.validation.scores import crps
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams

#: Most tries to find draws that agree with what is known.
TRIES = 200


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
    sent
        s; the last submission before it.
    asked_of
        Number of possible questions for each user, shape (users,).
    """

    unit: Int64s
    user: Int64s
    at: Int64s
    bound: Int64s
    came: Int64s
    sent: Int64s
    asked_of: Int64s

    def __len__(self) -> int:
        return len(self.unit)


def questions(parts: Parts, seed: int, per_user: int) -> dict[str, Questions]:
    """Return the questions by kind; they are the same for all models.

    They are asked in the second part, whenever the answer comes.

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

    def scores(self, kind: str, asked: Questions, draws: int) -> dict[str, Floats] | None:
        """Return the score of each forecast; None if the model does not answer.

        ``crps`` is the score of the distribution and ``error`` the absolute error of its median,
        in decades. ``brier`` is the squared error of the probability that the user stays in the
        session, without the part that is due to the number of draws.

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
