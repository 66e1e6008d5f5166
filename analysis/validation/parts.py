"""The two parts of a trace, and models fitted to the first part only.

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

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.user import Behaviour, ReplayUser
from hpcrowd.agents.behaviours.when import BatchOrder
from hpcrowd.agents.learned.heldout import (
    HeldOut,
    OpenOrder,
    PausePool,
    SimilarPauses,
    recorded_releases,
)
from hpcrowd.agents.learned.model import LearnedModel
from hpcrowd.agents.learned.think import Learned, LearnedPauses
from hpcrowd.agents.populations.population import Mixture, Part
from hpcrowd.agents.presets import Recipe
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.models.users.learned import fit_learned
from hpcrowd.analysis.validation.models import UserModel
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.jobs import Int64s, JobTable

#: Makes the behaviour of a population from the recorded work.
Maker = Callable[[Work], Behaviour[ReplayUser]]


@dataclass(frozen=True)
class Parts:
    """A trace in two parts.

    Attributes
    ----------
    work
        The whole trace.
    first
        Work of the first part.
    since
        s; the origin, when the second part begins.
    until
        s; when it ends.
    known
        Mask of the sessions of the first part, shape (sessions,).
    clock
        Local time.
    """

    work: Work
    first: Work
    since: int
    until: int
    known: NDArray[np.bool_]
    clock: Clock

    @classmethod
    def of(
        cls,
        jobs: JobTable,
        clock: Clock,
        share: float = 0.5,
        days: int | None = None,
        at: int | None = None,
    ) -> Parts:
        """Split a trace.

        Parameters
        ----------
        jobs
            Its jobs.
        clock
            Local time.
        share
            Share of the submissions before the origin, between 0 and 1.
        days
            Days of the second part; None for all that are left.
        at
            s; the origin, instead of a share of the submissions.

        Raises
        ------
        QuantityError
            When the share is not between 0 and 1.
        TraceError
            When a part has no session, or no user is in both.
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

        Parameters
        ----------
        model
            The model.
        drawn
            Draw pauses from the first part; False keeps the recorded ones of the second.
        hindsight
            Draw pauses from the second part, to see the best that is possible.

        Raises
        ------
        QuantityError
            When the model cannot be fitted to the first part.
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
