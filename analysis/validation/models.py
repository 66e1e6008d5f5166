"""Models of users that are compared, fitted to the first of two parts of a trace.

The second part begins at the *origin*, when the given share of all jobs has been submitted, and
lasts some days, or to the end of the trace. A session belongs to the part in which it begins, so
none is cut. All users replay the *whole* trace: as recorded up to the origin, so that the cluster
and its users begin the second part as they were. From then on a model decides, with windows,
coefficients and pauses from the first part alone. Work that was recorded after the second part is
still there for users who get on faster than recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.profiles import ActiveTime
from hpcrowd.agents.behaviours.user import Behaviour, ReplayUser
from hpcrowd.agents.behaviours.when import BatchOrder
from hpcrowd.agents.generative.shmueli import SiteModel
from hpcrowd.agents.learned.heldout import (
    PAUSE_PRIOR,
    HeldOut,
    OpenOrder,
    PausePool,
    SimilarPauses,
    recorded_releases,
)
from hpcrowd.agents.learned.model import LearnedModel
from hpcrowd.agents.learned.think import Learned, LearnedPauses
from hpcrowd.agents.populations.population import Mixture
from hpcrowd.agents.presets import PRESETS, Preset, Recipe
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.models.learned import fit_learned
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.errors import QuantityError, TraceError, not_one_of
from hpcrowd.environment.jobs import Int64s, JobTable

if TYPE_CHECKING:
    from hpcrowd.analysis.models.learned import Settings

#: Baselines that models should beat: pauses pooled over all users, and pooled pauses after similar
#: response times.
POOLED, SIMILAR = "pooled", "similar"

#: Both baselines.
BASELINES = (POOLED, SIMILAR)

#: The learned model, fitted to what came before the origin; and fitted to other logs.
LEARNED, ELSEWHERE = "learned", "learned elsewhere"


@dataclass(frozen=True)
class UserModel:
    """A user model under test.

    Attributes
    ----------
    name
        Name in tables.
    behaviour
        A recipe, a mixture of recipes or preset names, or users who generate their work.
    prior
        Pauses of all users as a prior, see
        :class:`~hpcrowd.agents.learned.heldout.PausePool`.
    similar
        Draw pauses after similar responses, see :class:`~agents.learned.heldout.SimilarPauses`.
    elsewhere
        A learned model that was fitted to other logs, instead of one fitted before the origin.
    fit
        Settings of the fit of a learned model; the defaults unless given.
    """

    name: str
    behaviour: Preset | Mixture
    prior: float = PAUSE_PRIOR
    similar: bool = False
    elsewhere: LearnedModel | None = None
    fit: Settings | None = None

    @classmethod
    def of(cls, name: str) -> UserModel:
        """Return the model of a preset name, or one of :data:`BASELINES`.

        Raises
        ------
        QuantityError
            When there is no such name.
        """
        if name in BASELINES:
            return cls(name, PRESETS["adjusted"], float("inf"), name == SIMILAR)
        recipe = PRESETS.get(name)
        if recipe is None:
            raise QuantityError(f"users {name!r}: {not_one_of(name, PRESETS)}")
        return cls(name, recipe)

    @property
    def generates(self) -> bool:
        """Whether its users generate their work: then there is no submission to forecast."""
        return isinstance(self.behaviour, SiteModel)

    @property
    def recipes(self) -> list[Recipe]:
        """The recipes it is made of; empty for users who generate their work."""
        if self.generates:
            return []
        if isinstance(self.behaviour, Mixture):
            return [_recipe(part.behaviour) for part in self.behaviour.parts]
        return [_recipe(self.behaviour)]

    @property
    def inside_recorded(self) -> bool:
        """Whether some users submit whole sessions, whose inside is as recorded."""
        return any(recipe.when == "sessions" for recipe in self.recipes)

    @property
    def circular(self) -> bool:
        """Whether it uses recorded pauses or times of the part that it is tested on."""
        return any(
            recipe.when == "recorded"
            or not recipe.think_part.draws
            or recipe.window_part is ActiveTime
            for recipe in self.recipes
        )


def _recipe(behaviour: object) -> Recipe:
    found: object = PRESETS.get(behaviour) if isinstance(behaviour, str) else behaviour
    if not isinstance(found, Recipe):
        raise QuantityError(
            f"users {behaviour!r}: cannot be validated; give presets or recipes of parts"
        )
    if found.reactions:
        raise QuantityError(
            f"reactions {type(found.reactions[0]).__name__}: their effect on jobs is not in the "
            "record, so it cannot be validated; leave them out"
        )
    return found


#: Makes the behaviour of a population from the recorded work.
Maker = Callable[[Work], Behaviour[ReplayUser]]


@dataclass(frozen=True)
class Parts:
    """A trace in two parts."""

    work: Work  #: The whole trace.
    first: Work  #: Work of the first part.
    since: int  #: s; the origin, when the second part begins.
    until: int  #: s; when it ends.
    known: NDArray[np.bool_]  #: Mask of the sessions of the first part, shape (sessions,).
    clock: Clock  #: Local time.

    @classmethod
    def of(
        cls,
        jobs: JobTable,
        clock: Clock,
        share: float = 0.5,
        days: int | None = None,
        at: int | None = None,
    ) -> Parts:
        """Split a trace at a share of its submissions, or at a second of its own, the origin.

        The second part has some days, or all that are left. A QuantityError is raised when the
        share is not between 0 and 1, a TraceError when a part has no session, or no user is in
        both.
        """
        if not 0 < share < 1:
            raise QuantityError(
                f"origin {share:g}: must be a share of the submissions, between 0 and 1"
            )
        work = Work.of(jobs)
        sessions = work.sessions
        submit = np.sort(jobs.recorded_submit)
        since, origin = at, f"origin {at} s"
        if since is None:
            since = int(submit[min(math.ceil(share * len(submit)), len(submit) - 1)])
            origin = f"origin {share:g}"
        until = int(submit[-1]) if days is None else min(since + days * DAY, int(submit[-1]))
        known = sessions.start < since
        for which, name, cure in ((known, "first", "larger"), (~known, "second", "smaller")):
            if not which.any():
                raise TraceError(
                    f"{origin}: no session begins in the {name} part, of {len(sessions):,} in all; "
                    f"choose a {cure} one or a longer trace"
                )
        of_first = np.repeat(known, np.diff(sessions.session_first))
        table = jobs.take(np.sort(sessions.rows[of_first]))
        return cls(work, Work.of(table), since, until, known, clock)

    @cached_property
    def second(self) -> Work:
        """The work of the second part."""
        return Work.of(self.work.jobs.take(self.second_jobs))

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Which users (by index) submitted in the first part."""
        return np.isin(self.work.sessions.users, self.first.sessions.users)

    @cached_property
    def tested(self) -> NDArray[np.bool_]:
        """Which users (by index) begin a session in the second part."""
        sessions = self.work.sessions
        found = np.zeros(len(sessions.users), bool)
        begun = ~self.known & (sessions.start <= self.until)
        found[sessions.user_of_session[begun]] = True
        return found

    @cached_property
    def place(self) -> Int64s:
        """Index of each job's user, shape (jobs,)."""
        return np.searchsorted(self.work.sessions.users, self.work.jobs.user)

    @cached_property
    def second_jobs(self) -> Int64s:
        """Rows of the jobs whose sessions begin in the second part."""
        return np.flatnonzero(~self.known[self.work.jobs.session])

    def users(
        self, model: UserModel, *, drawn: bool = True, hindsight: bool = False
    ) -> Maker | Mixture:
        """Return the maker of a model's users, fitted to the first part only.

        Pauses are drawn from the first part; or kept as recorded in the second, unless ``drawn``;
        or drawn from the second, in ``hindsight``, to see the best that is possible. A
        QuantityError is raised when the model cannot be fitted to the first part.
        """
        if not isinstance(model.behaviour, Mixture):
            return self._maker(model, model.recipes[0], drawn, hindsight)
        return Mixture(
            [
                replace(part, behaviour=self._maker(model, recipe, drawn, hindsight))
                for part, recipe in zip(model.behaviour.parts, model.recipes, strict=True)
            ]
        )

    @cached_property
    def _learned(self) -> dict[str, LearnedModel]:
        return {}

    def learned(self, model: UserModel) -> LearnedModel:
        """Return the learned model of a model: its own, or one fitted to the first part."""
        if model.elsewhere is not None:
            return model.elsewhere
        key = repr(model.fit)
        if key not in self._learned:
            self._learned[key] = fit_learned([(self.first, self.clock)], model.fit)
        return self._learned[key]

    def _maker(self, model: UserModel, recipe: Recipe, drawn: bool, hindsight: bool) -> Maker:
        learned = recipe.think_part is LearnedPauses
        if getattr(recipe.think, "sessions", "drawn") == "recorded":
            raise QuantityError(
                f"{model.name}: sessions recorded: would know the answer; choose drawn, or leave "
                "it out of --users"
            )
        if learned:
            recipe = replace(recipe, think=Learned(model=self.learned(model)))

        def make(work: Work) -> Behaviour[ReplayUser]:
            try:
                behaviour = recipe(work, self.first)
            except QuantityError as error:
                raise QuantityError(
                    f"{model.name}, fitted to the first part: {error}; or leave it out of --users"
                ) from None
            if not isinstance(behaviour, Composed) or recipe.when == "recorded":
                # Recorded times, which cannot be fitted to the first part.
                behaviour = Composed(OpenOrder(work) if drawn else BatchOrder(work))
            known = self.known[behaviour.when.units.session]
            pool: PausePool | None = None
            if drawn and not learned:
                releases = recorded_releases(behaviour.when)
                source = ~known if hindsight else known
                units = behaviour.when.units
                if model.similar:
                    pool = SimilarPauses(releases, units.user, source, units.response)
                else:
                    pool = PausePool(releases, units.user, source, model.prior)
            return HeldOut(behaviour, known, self.since, pool)

        return make
