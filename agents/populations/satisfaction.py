"""The satisfaction of users and its consequences.

After each unit of work a formula rates the service, in *doublings*: 0 is as usual, 1 twice as bad,
-1 twice as good. The user's mood is a moving average of these ratings.

========= ============================================================================ ==========
formula   doublings; sums over the jobs of the unit, R response, W wait, Q requested    needs
========= ============================================================================ ==========
habit     log2((R + g) / (R' + g)), R' as recorded, g a grace                           a record
requested log2((1 + W / (a Q)) / (1 + W' / (a Q))), a a share, W' as recorded or 0
alea      log2((1 + W / A) / (1 + W' / A)), A the acceptable waits of Alea
========= ============================================================================ ==========

Your own formula can be any function of the table of jobs and the rows of a unit. What was asked of
users counts too, beside the formula: see ``asked`` of
:class:`~hpcrowd.agents.populations.openness.Consequences`.

Sources: the behaviour of users depends on the response time (Shmueli and Feitelson, MASCOTS 2007);
acceptable waits by processors and requested time are those of the simulator Alea (Toth and
Klusacek, ``AgentDynamicWithSatisfactionModel``), where only longer waits cause complaints. That
users come and go depending on their satisfaction is from Zakay and Feitelson (SYSTOR 2016), whose
rule was not found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, override

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.agents.populations.openness import FORMULA_NAMES, Consequences, Happening, Visits
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.stops import FOREVER

MINUTE = 60  #: s

#: Acceptable waits of Alea by requested time: up to (s) the part of it, but at least (s).
ALEA_CLASSES = (
    (3 * HOUR, 1, 0),
    (7 * HOUR, 2, 3 * HOUR),
    (DAY, 3, 3 * HOUR + HOUR // 2),
    (7 * DAY, 4, 8 * HOUR),
    (FOREVER, 5, 42 * HOUR),
)


class Formula(Protocol):
    """Rates the service of a unit of work."""

    def __call__(self, jobs: JobTable, rows: Int64s) -> float:
        """Return by how many doublings a unit of work was worse than its user is used to.

        Parameters
        ----------
        jobs
            The table.
        rows
            The jobs of the unit, all finished. A job that never ran (rejected, cancelled) has a
            response time of 0.
        """


@dataclass(frozen=True)
class Habit:
    """Response times compared with the recorded ones of the same jobs.

    Attributes
    ----------
    grace
        s; added to both, so that differences of seconds do not count as multiples; our choice.
    """

    grace: int = 10 * MINUTE

    def __call__(self, jobs: JobTable, rows: Int64s) -> float:
        """Return the doublings of the summed response times; see :class:`Formula`."""
        ran = rows[jobs.start[rows] != UNKNOWN]
        used = (jobs.recorded_end[ran] - jobs.recorded_submit[ran]).astype(float)
        if (jobs.recorded_submit[ran] == UNKNOWN).any():
            raise QuantityError(
                f"satisfaction habit: user {int(jobs.user[ran[0]])} generates its work and has no "
                "recorded response times; choose requested or alea"
            )
        found = float((jobs.end[ran] - jobs.submit[ran]).sum())
        grace = self.grace * max(len(ran), 1)
        return math.log2((found + grace) / (float(used.sum()) + grace))


@dataclass(frozen=True)
class Requested:
    """Waits compared with the requested times.

    Attributes
    ----------
    share
        A wait of this share of the requested time is twice as bad as none; our choice.
    """

    share: float = 1.0

    def __call__(self, jobs: JobTable, rows: Int64s) -> float:
        """Return the doublings; see :class:`Formula`."""
        return _against(jobs, rows, self.share * jobs.requested_time[rows].astype(np.float64))


@dataclass(frozen=True)
class Alea:
    """Waits compared with acceptable waits in Alea, which sums over all jobs in progress.

    Attributes
    ----------
    scale
        Factor on acceptable waits; 1 as in Alea.
    """

    scale: float = 1.0

    def __call__(self, jobs: JobTable, rows: Int64s) -> float:
        """Return the doublings; see :class:`Formula`."""
        return _against(
            jobs, rows, self.scale * acceptable(jobs.requested_time[rows], jobs.processors[rows])
        )


def acceptable(requested: Int64s, processors: Int64s) -> NDArray[np.float64]:
    """Return the acceptable waits of Alea, s: (ln(processors) + 1) g(requested time).

    g is the requested time below 3 h; half of it and at least 3 h below 7 h; a third and at least
    3.5 h below a day; a quarter and at least 8 h below 7 days; else a fifth and at least 42 h.
    """
    bounds = [bound for bound, _, _ in ALEA_CLASSES]
    which = np.minimum(np.searchsorted(bounds, requested, side="right"), len(bounds) - 1)
    part = np.array([part for _, part, _ in ALEA_CLASSES])[which]
    least = np.array([least for _, _, least in ALEA_CLASSES])[which]
    waits: NDArray[np.float64] = np.maximum(requested / part, least)
    waits *= np.log(np.maximum(processors, 1)) + 1
    return waits


def _against(jobs: JobTable, rows: Int64s, limits: NDArray[np.float64]) -> float:
    """Return the doublings of 1 + waits / limits, relative to recorded waits if there are any."""
    started = jobs.start[rows] != UNKNOWN
    limit = max(float(limits.sum()), 1.0)
    wait = float((jobs.start[rows] - jobs.submit[rows])[started].sum())
    recorded = jobs.recorded_submit[rows] != UNKNOWN
    used = float((jobs.recorded_start[rows] - jobs.recorded_submit[rows])[started & recorded].sum())
    return math.log2((1 + wait / limit) / (1 + used / limit))


#: Formulas by name.
FORMULAS: dict[str, Callable[[], Formula]] = dict(
    zip(FORMULA_NAMES, (Habit, Requested, Alea), strict=True)
)


def formula_of(name: str) -> Formula:
    """Return the formula with this name.

    Raises
    ------
    QuantityError
        If there is none.
    """
    check_choice("satisfaction", name, FORMULAS)
    return FORMULAS[name]()


class Minding(Behaviour[GeneratedUser]):
    """Wraps a behaviour and makes it depend on the satisfaction of users.

    The mood affects pauses from the next unit on. Jobs already submitted still run after their user
    leaves. A user who comes back continues with the next unit, with a mood of 0.

    Parameters
    ----------
    inner
        The wrapped behaviour.
    formula
        Rates the service of a unit.
    consequences
        The effects of the mood.
    visits
        The record of users who leave and come back.
    """

    def __init__(
        self,
        inner: Behaviour[GeneratedUser],
        formula: Formula,
        consequences: Consequences | None = None,
        visits: Visits | None = None,
    ) -> None:
        self.inner = inner
        self.formula = formula
        self.consequences = consequences or Consequences()
        self.visits = visits or Visits()
        # By user: rows of jobs that reactions changed and whose unit is not over, and notes read.
        self._changed: dict[int, set[int]] = {}
        self._read: dict[int, int] = {}

    @override
    def begin(self, user: GeneratedUser) -> None:
        user.absence = self.consequences.absence
        self._changed[user.number], self._read[user.number] = set(), 0
        self.inner.begin(user)

    @override
    def lost(self, user: GeneratedUser, rows: Int64s, now: int) -> None:
        self.inner.lost(user, rows, now)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Update the mood, run the wrapped behaviour, and then leave or stay."""
        away = now < user.absent_until
        if away and user.absent_until >= FOREVER:
            return
        if not away:
            rows = user.jobs_of(unit)
            doublings = self.formula(user.model.jobs, rows)
            if self.consequences.asked:
                doublings += self.consequences.asked * self._changed_share(user, rows)
            self._feel(user, doublings)
        self.inner.finished(user, unit, now)
        if not away and not user.done:
            self._leave_or_stay(user, now)

    def _changed_share(self, user: GeneratedUser, rows: Int64s) -> float:
        """Return the share of jobs that reactions changed, in a unit that is over."""
        changed, read = self._changed[user.number], self._read[user.number]
        changed.update(note.row for note in user.notes[read:] if note.processors)  # no new job
        self._read[user.number] = len(user.notes)
        mine = changed.intersection(rows.tolist())
        changed -= mine
        return len(mine) / len(rows)

    def _feel(self, user: GeneratedUser, doublings: float) -> None:
        """Change the mood, and the pace with it."""
        of = self.consequences
        doublings = max(-of.most, min(of.most, doublings))
        user.mood += (doublings - user.mood) / of.memory
        user.pace = 2 ** (of.elasticity * user.mood)
        user.again = min(1.0, of.again * max(0.0, -user.mood))

    def _leave_or_stay(self, user: GeneratedUser, now: int) -> None:
        """Leave with a probability that grows with the mood, for good or for some weeks."""
        of, stream = self.consequences, user.stream
        chance = of.leave * (user.mood - of.tolerance)
        if chance <= 0 or stream.random() >= chance:
            return
        if stream.random() >= of.returns:
            user.absent_until = FOREVER
            self.visits.note(now, user.number, Happening.GAVE_UP, user.mood)
            return
        weeks = int(stream.geometric(1 / of.away))
        clock = user.model.clock
        user.absent_until = clock.second_at(clock.wall(now) + weeks * WEEK)
        self.visits.note(now, user.number, Happening.WENT_AWAY, user.mood)
        if user.absent_until < user.horizon:
            user.model.call_at(user.absent_until, self._come_back, user)

    def _come_back(self, user: GeneratedUser) -> None:
        if user.done:  # it finished with the work submitted before it left
            return
        user.mood, user.pace, user.again = 0.0, 1.0, 0.0
        self.visits.note(user.model.time, user.number, Happening.CAME_BACK)
