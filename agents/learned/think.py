"""Pauses drawn from a learned model: a part of behaviours."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.agents.behaviours.parts import PartFile, setting
from hpcrowd.agents.behaviours.think import Pause, Think
from hpcrowd.agents.behaviours.when import Reason
from hpcrowd.agents.learned.features import ENDED, FOLLOWS, NOTHING
from hpcrowd.agents.learned.model import LearnedModel
from hpcrowd.agents.presets import PRESETS, Recipe
from hpcrowd.agents.work.sessions import ARRIVAL_THRESHOLD
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import check_choice
from hpcrowd.environment.jobs import UNKNOWN

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.behaviours.when import Release
    from hpcrowd.agents.learned.mind import Noticed
    from hpcrowd.agents.work.units import Units
    from hpcrowd.environment.jobs import Int64s


#: When sessions begin.
SESSIONS = ("drawn", "recorded")

#: Reasons of releases as minds have them, in the order of :class:`Reason`.
REASONS = (NOTHING, ENDED, FOLLOWS)


@dataclass(frozen=True)
class Learned:
    """The model that pauses are drawn from.

    Attributes
    ----------
    file
        Its file; empty for the one that comes with hpcrowd.
    sessions
        One of :data:`SESSIONS`.
    model
        The model itself, in Python.
    """

    file: PartFile = setting(  # noqa: RUF009
        PartFile(),
        "file of the model",
        "",
        "own: fitted to eight logs",
        shown="the one that comes with hpcrowd",
    )
    sessions: str = setting(
        "drawn",
        "`drawn`: pauses between sessions are drawn, too; `recorded`: sessions begin as recorded, "
        "or later if what they wait for is",
        "",
        "own",
    )
    model: LearnedModel | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_choice("sessions", self.sessions, SESSIONS)

    def check(self) -> None:
        """Read the model, so that mistakes show."""
        self.read()

    def read(self) -> LearnedModel:
        """Return the model."""
        if self.model is not None:
            return self.model
        return LearnedModel.load(Path(self.file)) if self.file else LearnedModel.shipped()


def preset_from(file: str) -> Recipe:
    """Return the preset ``learned`` with the model of a file."""
    preset = PRESETS["learned"]
    assert isinstance(preset, Recipe)
    return replace(preset, think=Learned(PartFile(file)))


class LearnedPauses(Think):
    """A pause drawn from those that people made in such a situation, see the model.

    Parameters
    ----------
    model
        The model.
    on_time
        Whether sessions begin as recorded, or later if what they wait for is.
    """

    name = "learned"
    settings = Learned
    table = "learned"
    draws = True
    remembers = True

    def __init__(self, model: LearnedModel, on_time: bool = False) -> None:
        from hpcrowd.agents.learned.mind import Minds

        self.model, self.on_time = model, on_time
        self.minds = Minds(model)
        self._noticed: Noticed | None = None

    @override
    @classmethod
    def make(cls, fit: Units, settings: Learned | None = None) -> LearnedPauses:
        settings = settings or Learned()
        return cls(settings.read(), settings.sessions == "recorded")

    @override
    def pause(self, user: ReplayUser, release: Release) -> Pause:
        ended = release.reason == Reason.ENDED
        unit = release.awaited if ended and release.awaited != UNKNOWN else release.unit - 1
        minds, number, wall = self.minds, user.number, user.model.clock.wall(release.at)
        if not minds.knows(number):
            self._recall(user, release.unit)
        minds.notice(
            number, user.model.jobs, user.jobs_of(unit), len(user.jobs_of(release.unit - 1)),
            int(ended), release.at, wall, user.submitted - user.finished,
        )  # fmt: skip
        if not self.on_time:
            return Pause(minds.pause(number, wall, user.stream))
        units = user.behaviour.units
        assert units is not None  # it has a record
        first, second = units.session[release.unit - 1 : release.unit + 1]
        if first == second:
            return Pause(minds.pause_within(number, wall, user.stream, ARRIVAL_THRESHOLD))
        ahead = int(units.start[release.unit]) - release.at
        if ahead <= 0:
            ahead = minds.pause_within(number, wall, user.stream, DAY)
        return Pause(ahead)

    def _recall(self, user: ReplayUser, until: int) -> None:
        """Remember what a user did before it was given this behaviour in the middle of a run."""
        units, jobs, wall = user.behaviour.units, user.model.jobs, user.model.clock.wall
        assert units is not None
        last = UNKNOWN
        for unit in range(user.units.start, until):
            rows = user.jobs_of(unit)
            if not len(rows) or (jobs.submit[rows] == UNKNOWN).any():
                continue
            first, awaited = int(jobs.submit[rows].min()), units.awaited[unit]
            over = UNKNOWN
            if awaited != UNKNOWN:
                over = int(jobs.end[user.jobs_of(awaited)].max())
            reason, at = FOLLOWS, last
            if last == UNKNOWN:
                reason, at = NOTHING, first
            elif last <= over <= first:
                reason, at = ENDED, over
            last = int(jobs.submit[rows].max())
            self.minds.note(user.number, reason, at, first, last, wall(first))

    @override
    def submitted(self, user: ReplayUser, release: Release, first: int, last: int) -> None:
        """Remember a submission."""
        reason = REASONS[release.reason]
        self.minds.note(user.number, reason, release.at, first, last, user.model.clock.wall(first))

    @override
    def foresee(self, user: ReplayUser, release: Release, least: int, draws: int) -> Int64s:
        """Return pauses of at least ``least`` s, after what was recorded before the release."""
        from hpcrowd.agents.learned.heldout import outlasting
        from hpcrowd.agents.learned.mind import Noticed

        if self._noticed is None:
            forest = self.model.forest
            self._noticed = Noticed.of(user.work, user.model.clock, forest.common, forest.prior)
        noticed, unit = self._noticed, release.unit
        pauses, weights = self.model.pauses(
            noticed.features[unit], noticed.memory[unit], int(noticed.wall[unit])
        )
        good = pauses >= least
        if not good.any():
            return np.array([outlasting(user, release, least) for _ in range(draws)])
        upto = np.cumsum(weights[good])
        found: Int64s = pauses[good][np.searchsorted(upto, user.stream.random(draws) * upto[-1])]
        return found
