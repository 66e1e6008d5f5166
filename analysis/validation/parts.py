"""The two parts of a trace, and models that have seen only the first.

The second part begins when the given share of all jobs has been submitted. A session belongs to
the part in which it begins, so none is cut. All users replay the *whole* trace: up to the split as
recorded, so that the second part finds the cluster and its users as they were. From the split on a
model decides, with windows, coefficients and pauses from the first part alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.heldout import (
    PAUSE_PRIOR,
    HeldOut,
    OpenOrder,
    PausePool,
    SimilarPauses,
    recorded_releases,
)
from hpcrowd.agents.behaviours.profiles import ActiveTime
from hpcrowd.agents.behaviours.user import Behaviour, ReplayUser
from hpcrowd.agents.behaviours.when import BatchOrder
from hpcrowd.agents.generative.shmueli import SiteModel
from hpcrowd.agents.populations.mixture import Mixture, Part
from hpcrowd.agents.presets import PRESETS, Recipe
from hpcrowd.agents.work.recorded import Work
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, TraceError, not_one_of
from hpcrowd.environment.jobs import Int64s, JobTable

#: Models that others should beat: pauses of all users, whoever submits; and those of all users
#: after similar responses.
POOLED, SIMILAR = "pooled", "similar"

#: Both.
BASELINES = (POOLED, SIMILAR)

#: Makes a behaviour of a population from the recorded work.
Maker = Callable[[Work], Behaviour[ReplayUser]]


@dataclass(frozen=True)
class UserModel:
    """A user model under test.

    Attributes
    ----------
    name
        For tables.
    behaviour
        A recipe, a mixture of recipes or names of presets, or users who make up their work.
    prior
        Pauses that all users weigh, see :class:`~hpcrowd.agents.behaviours.heldout.PausePool`.
    similar
        Draw pauses after similar responses, see :class:`~agents.behaviours.heldout.SimilarPauses`.
    """

    name: str
    behaviour: Recipe | Mixture | SiteModel
    prior: float = PAUSE_PRIOR
    similar: bool = False

    @classmethod
    def of(cls, name: str) -> UserModel:
        """Return the model with the name of a preset, or one of :data:`BASELINES`.

        Raises
        ------
        QuantityError
            When there is none.
        """
        if name in BASELINES:
            return cls(name, PRESETS["adjusted"], float("inf"), name == SIMILAR)
        recipe = PRESETS.get(name)
        if recipe is None:
            raise QuantityError(f"users {name!r}: {not_one_of(name, PRESETS)}")
        return cls(name, recipe)

    @property
    def generates(self) -> bool:
        """Whether its users make up their work: then there is no submission to forecast."""
        return isinstance(self.behaviour, SiteModel)

    @property
    def recipes(self) -> list[Recipe]:
        """The recipes it is made of; none for users who make up their work."""
        if isinstance(self.behaviour, SiteModel):
            return []
        if isinstance(self.behaviour, Recipe):
            return [_recipe(self.behaviour)]
        return [_recipe(part.behaviour) for part in self.behaviour.parts]

    @property
    def inside_recorded(self) -> bool:
        """Whether some users submit whole sessions, the inside of which is as recorded."""
        return any(recipe.when == "sessions" for recipe in self.recipes)

    @property
    def circular(self) -> bool:
        """Whether it looks at recorded pauses or seconds where they are not held out."""
        return any(
            recipe.when == "recorded"
            or not recipe.think_part.draws
            or recipe.window_part is ActiveTime
            for recipe in self.recipes
        )


@dataclass(frozen=True)
class Parts:
    """A trace in two parts.

    Attributes
    ----------
    work
        All of it.
    first
        The work of the first part.
    since
        s; when the second part begins.
    known
        Which sessions belong to the first part, shape (sessions,).
    clock
        Local time.
    """

    work: Work
    first: Work
    since: int
    known: NDArray[np.bool_]
    clock: Clock

    @classmethod
    def of(cls, jobs: JobTable, clock: Clock, share: float = 0.5) -> Parts:
        """Split a trace.

        Parameters
        ----------
        jobs
            Its jobs.
        clock
            Local time.
        share
            Share of the submissions before the split, between 0 and 1.

        Raises
        ------
        QuantityError
            When the share is none.
        TraceError
            When a part has no session, or nobody is in both.
        """
        if not 0 < share < 1:
            raise QuantityError(
                f"split {share:g}: share of the submissions in the first part, between 0 and 1"
            )
        work = Work.of(jobs)
        sessions = work.sessions
        submit = np.sort(jobs.recorded_submit)
        since = int(submit[min(math.ceil(share * len(submit)), len(submit) - 1)])
        known = sessions.start < since
        for which, name, cure in ((known, "first", "larger"), (~known, "second", "smaller")):
            if not which.any():
                raise TraceError(
                    f"--split {share:g}: no session begins in the {name} part, of "
                    f"{len(sessions):,} in all; choose a {cure} share or a longer trace"
                )
        of_first = np.repeat(known, np.diff(sessions.session_first))
        table = jobs.take(np.sort(sessions.rows[of_first]))
        return cls(work, Work.of(table), since, known, clock)

    @cached_property
    def second(self) -> Work:
        """The work of the second part."""
        return Work.of(self.work.jobs.take(self.second_jobs))

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Which users (by place) submitted in the first part."""
        return np.isin(self.work.sessions.users, self.first.sessions.users)

    @cached_property
    def tested(self) -> NDArray[np.bool_]:
        """Which users (by place) begin a session in the second part."""
        sessions = self.work.sessions
        found = np.zeros(len(sessions.users), bool)
        found[sessions.user_of_session[~self.known]] = True
        return found

    @cached_property
    def place(self) -> Int64s:
        """Place of each job's user, shape (jobs,)."""
        return np.searchsorted(self.work.sessions.users, self.work.jobs.user)

    @cached_property
    def second_jobs(self) -> Int64s:
        """Rows of the jobs whose sessions begin in the second part."""
        return np.flatnonzero(~self.known[self.work.jobs.session])

    @property
    def end(self) -> int:
        """The last recorded submission, s: there the record ends."""
        return int(self.work.jobs.recorded_submit.max())

    def users(
        self, model: UserModel, *, drawn: bool = True, hindsight: bool = False
    ) -> Maker | Mixture:
        """Return what makes the users of a model that has seen only the first part.

        Parameters
        ----------
        model
            The model.
        drawn
            Draw pauses from the first part; False keeps the recorded ones of the second.
        hindsight
            Draw pauses from the second part, to see how far that would get.

        Raises
        ------
        QuantityError
            When it cannot be fitted to the first part.
        """
        if not isinstance(model.behaviour, Mixture):
            return self._maker(model, model.recipes[0], drawn, hindsight)
        return Mixture(
            [
                Part(
                    self._maker(model, recipe, drawn, hindsight),
                    part.share,
                    part.groups,
                    part.users,
                )
                for part, recipe in zip(model.behaviour.parts, model.recipes, strict=True)
            ]
        )

    def _maker(self, model: UserModel, recipe: Recipe, drawn: bool, hindsight: bool) -> Maker:
        def make(work: Work) -> Behaviour[ReplayUser]:
            try:
                behaviour = recipe(work, self.first)
            except QuantityError as error:
                raise QuantityError(
                    f"{model.name}, fitted to the first part: {error}; or leave it out of --users"
                ) from None
            if not isinstance(behaviour, Composed) or recipe.when == "recorded":
                # Recorded seconds, which the first part does not tell.
                behaviour = Composed(OpenOrder(work) if drawn else BatchOrder(work))
            known = self.known[behaviour.when.units.session]
            pool: PausePool | None = None
            if drawn:
                releases = recorded_releases(behaviour.when)
                source = ~known if hindsight else known
                units = behaviour.when.units
                if model.similar:
                    pool = SimilarPauses(releases, units.user, source, units.response)
                else:
                    pool = PausePool(releases, units.user, source, model.prior)
            return HeldOut(behaviour, known, self.since, pool)

        return make


def check_waits(wait: Int64s, source: str) -> None:
    """Make sure that a trace knows when jobs ended.

    Raises
    ------
    TraceError
        When no job has a wait time.
    """
    if not (np.asarray(wait) >= 0).any():
        raise TraceError(
            f"{source}: no job has a wait time, so when jobs ended and how long users thought is "
            "not known, and the scheduler cannot be as recorded; take a trace with waits"
        )


def _recipe(behaviour: object) -> Recipe:
    found: object = PRESETS.get(behaviour) if isinstance(behaviour, str) else behaviour
    if not isinstance(found, Recipe):
        raise QuantityError(
            f"users {behaviour!r}: cannot be validated; give presets or recipes of parts"
        )
    if found.reactions:
        raise QuantityError(
            f"reactions {type(found.reactions[0]).__name__}: what they do to jobs is not in the "
            "record, so it cannot be validated; leave them out"
        )
    return found
