"""Pauses drawn from a learned model: a part of behaviours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.agents.behaviours.think import Pause, Think
from hpcrowd.agents.behaviours.when import Reason
from hpcrowd.agents.learned.kernel import NOTICED, SLOTS, begin, draw_pause, note, notice
from hpcrowd.agents.learned.recorded import ENDED, FOLLOWS, NOTHING, SIMULATED
from hpcrowd.environment.jobs import UNKNOWN

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.behaviours.when import Release
    from hpcrowd.agents.learned.model import Floats, LearnedModel
    from hpcrowd.agents.work.units import Units

#: Pauses that a user considers before it chooses one.
CANDIDATES = 12


class LearnedPauses(Think):
    """A pause drawn from those that people made in such a situation, see the model.

    Parameters
    ----------
    model
        The model.
    units
        The units of users, for their numbers of jobs.
    """

    name = "learned"
    draws = True
    remembers = True

    def __init__(self, model: LearnedModel) -> None:
        self.model = model
        self._forest = model.forest
        self._memories: dict[int, Floats] = {}
        self._pauses, self._active = np.zeros(CANDIDATES, np.int64), np.zeros(CANDIDATES)
        self._features = np.zeros(NOTICED)

    def memory(self, user: ReplayUser) -> Floats:
        """Return what a user remembers, shape (slots,)."""
        found = self._memories.get(user.number)
        if found is None:
            found = self._memories[user.number] = np.zeros(SLOTS)
            begin(found)
        return found

    @override
    def pause(self, user: ReplayUser, release: Release) -> Pause:
        ended = release.reason == Reason.ENDED
        unit = release.awaited if ended and release.awaited != UNKNOWN else release.unit - 1
        memory, wall = self.memory(user), user.model.clock.wall(release.at)
        forest, features = self._forest, self._features
        before = user.jobs_of(release.unit - 1)
        notice(
            features, memory, forest.common, forest.prior, user.model.jobs.matrix,
            user.jobs_of(unit), SIMULATED, len(before), int(ended), release.at, wall,
            user.submitted - user.finished,
        )  # fmt: skip
        chances = user.stream.random(2 * CANDIDATES + 2)
        if len(self._pauses)<CANDIDATES: self._pauses=np.zeros(CANDIDATES,np.int64); self._active=np.zeros(CANDIDATES)
        return Pause(draw_pause(forest, features, memory, wall, chances, self._pauses, self._active))

    @override
    def submitted(self, user: ReplayUser, release: Release, first: int, last: int) -> None:
        """Remember a submission."""
        reason = {Reason.ENDED: ENDED, Reason.FOLLOWS: FOLLOWS}.get(release.reason, NOTHING)
        note(self.memory(user), reason, release.at, first, last, user.model.clock.wall(first))
