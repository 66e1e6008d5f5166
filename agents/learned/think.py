"""Pauses drawn from a learned model: a part of behaviours."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.agents.behaviours.parts import setting
from hpcrowd.agents.behaviours.think import Pause, Think
from hpcrowd.agents.behaviours.when import Reason
from hpcrowd.agents.learned.kernel import CHOICES, NOTICED, SLOTS, begin, draw_pause, note, notice
from hpcrowd.agents.learned.model import LearnedModel
from hpcrowd.agents.learned.recorded import ENDED, FOLLOWS, NOTHING, SIMULATED, Noticed
from hpcrowd.environment.jobs import UNKNOWN

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.behaviours.when import Release
    from hpcrowd.agents.learned.model import Floats
    from hpcrowd.agents.work.units import Units
    from hpcrowd.environment.jobs import Int64s

#: Pauses that a user considers before it chooses one.
CANDIDATES = 30


@dataclass(frozen=True)
class Learned:
    """The model that pauses are drawn from.

    Attributes
    ----------
    file
        Its file; empty for the one that comes with hpcrowd.
    model
        The model itself, in Python.
    """

    file: str = setting("", "file of the model; empty for the one that comes with hpcrowd")
    model: LearnedModel | None = field(default=None, compare=False, repr=False)

    def read(self) -> LearnedModel:
        """Return the model."""
        if self.model is not None:
            return self.model
        return LearnedModel.load(Path(self.file))


class LearnedPauses(Think):
    """A pause drawn from those that people made in such a situation, see the model.

    Parameters
    ----------
    model
        The model.
    """

    name = "learned"
    settings = Learned
    table = "learned"
    draws = True
    remembers = True

    def __init__(self, model: LearnedModel) -> None:
        self.model = model
        self._forest = model.forest
        self._memories: dict[int, Floats] = {}
        self._features = np.zeros(NOTICED)
        self._pauses, self._active = np.zeros(CANDIDATES, np.int64), np.zeros(CANDIDATES)
        self._noticed: Noticed | None = None

    @override
    @classmethod
    def make(cls, fit: Units, settings: Learned | None = None) -> LearnedPauses:
        return cls((settings or Learned()).read())

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
        chances = user.stream.random(2 * CANDIDATES + CHOICES)
        return Pause(
            draw_pause(forest, features, memory, wall, chances, self._pauses, self._active)
        )

    @override
    def submitted(self, user: ReplayUser, release: Release, first: int, last: int) -> None:
        """Remember a submission."""
        reason = {Reason.ENDED: ENDED, Reason.FOLLOWS: FOLLOWS}.get(release.reason, NOTHING)
        note(self.memory(user), reason, release.at, first, last, user.model.clock.wall(first))

    @override
    def foresee(self, user: ReplayUser, release: Release, least: int, draws: int) -> Int64s:
        """Return pauses of at least ``least`` s, after what was recorded before the release."""
        if self._noticed is None:
            forest = self._forest
            self._noticed = Noticed.of(user.work, user.model.clock, forest.common, forest.prior)
        noticed, unit = self._noticed, release.unit
        pauses, weights = self.model.pauses(
            noticed.features[unit], noticed.memory[unit], int(noticed.wall[unit])
        )
        good = pauses >= least
        if not good.any():
            return np.array([least])
        upto = np.cumsum(weights[good])
        return pauses[good][np.searchsorted(upto, user.stream.random(draws) * upto[-1])]
