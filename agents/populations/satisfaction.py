"""How satisfied users are, and what they make of it.

After each unit of work a formula says how bad it was, in *doublings*: 0 as the user is used to, 1
twice as bad, -1 twice as good. The user's mood is a moving average of that.

========= ============================================================================ ==========
formula   doublings; sums over the jobs of the unit, R response, W wait, Q requested    needs
========= ============================================================================ ==========
habit     log2((R + g) / (R' + g)), R' as recorded, g a grace                           a record
requested log2((1 + W / (a Q)) / (1 + W' / (a Q))), a a share, W' as recorded or 0
alea      log2((1 + W / A) / (1 + W' / A)), A the acceptable waits of Alea
========= ============================================================================ ==========

A formula of one's own is any function of the table of jobs and the rows of a unit.

Sources: users' behaviour follows the response time (Shmueli and Feitelson, MASCOTS 2007); waits
that are acceptable by processors and requested time are those of the simulator Alea (Toth and
Klusacek, ``AgentDynamicWithSatisfactionModel``), which only complains about longer ones. That users
come and go by their satisfaction is from Zakay and Feitelson (SYSTOR 2016), whose rule was not
found.
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
    """Says how bad it was."""

    def __call__(self, jobs: JobTable, rows: Int64s) -> float:
        """Return by how many doublings a unit of work was worse than its user is used to.

        Parameters
        ----------
        jobs
            The table.
        rows
            The jobs of the unit, all over. What never ran (rejected, cancelled) was answered at
            once.
        """


@dataclass(frozen=True)
class Habit:
    """Response times against those on record for the same jobs.

    Attributes
    ----------
    grace
        s; added to both, so that seconds more or less do not count as a multiple; chosen here.
    """

    grace: int = 10 * MINUTE

    def __call__(self, jobs: JobTable, rows: Int64s) -> float:
        """Return the doublings of the summed response times; see :class:`Formula`."""
        ran = rows[jobs.end[rows] != UNKNOWN]
        used = (jobs.recorded_end[ran] - jobs.recorded_submit[ran]).astype(float)
        if (jobs.recorded_submit[ran] == UNKNOWN).any():
            raise QuantityError(
                f"satisfaction habit: user {int(jobs.user[ran[0]])} makes up its work, there are "
                "no responses that it is used to; choose requested or alea"
            )
        found = float((jobs.end[ran] - jobs.submit[ran]).sum())
        grace = self.grace * max(len(ran), 1)
        return math.log2((found + grace) / (float(used.sum()) + grace))


@dataclass(frozen=True)
class Requested:
    """Waits against the requested times.

    Attributes
    ----------
    share
        A wait of this share of the requested time is twice as bad as none; chosen here.
    """

    share: float = 1.0

    def __call__(self, jobs: JobTable, rows: Int64s) -> float:
        """Return the doublings; see :class:`Formula`."""
        return _against(jobs, rows, self.share * jobs.requested_time[rows].astype(np.float64))


@dataclass(frozen=True)
class Alea:
    """Waits against those that Alea takes as acceptable; there summed over all jobs under way.

    Attributes
    ----------
    scale
        What acceptable waits are multiplied by; 1 as in Alea.
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
    """Return the doublings of 1 + waits over limits, against those on record where there are."""
    started = jobs.start[rows] != UNKNOWN
    limit = max(float(limits.sum()), 1.0)
    wait = float((jobs.start[rows] - jobs.submit[rows])[started].sum())
    recorded = jobs.recorded_submit[rows] != UNKNOWN
    used = float((jobs.recorded_start[rows] - jobs.recorded_submit[rows])[started & recorded].sum())
    return math.log2((1 + wait / limit) / (1 + used / limit))


#: Formulas by the names that users give.
FORMULAS: dict[str, Callable[[], Formula]] = dict(
    zip(FORMULA_NAMES, (Habit, Requested, Alea), strict=True)
)


def formula_of(name: str) -> Formula:
    """Return the formula of that name.

    Raises
    ------
    QuantityError
        When there is none.
    """
    check_choice("satisfaction", name, FORMULAS)
    return FORMULAS[name]()


class Minding(Behaviour[GeneratedUser]):
    """Another behaviour, of users who mind how they are served.

    The mood decides about pauses from the next unit on. Who leaves finishes what it has submitted.
    Who comes back goes on where it stopped, as if nothing had been: its mood is 0 again.

    Parameters
    ----------
    inner
        What users do.
    formula
        How bad a unit was.
    consequences
        What they make of it.
    visits
        Where it is noted who leaves and comes back.
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

    @override
    def begin(self, user: GeneratedUser) -> None:
        user.absence = self.consequences.absence
        self.inner.begin(user)

    @override
    def lost(self, user: GeneratedUser, rows: Int64s, now: int) -> None:
        self.inner.lost(user, rows, now)

    @override
    def finished(self, user: GeneratedUser, unit: int, now: int) -> None:
        """Let the user feel how it went, do what it does, and then leave or stay."""
        away = now < user.absent_until
        if away and user.absent_until >= FOREVER:
            return
        if not away:
            self._feel(user, self.formula(user.model.jobs, rows_of(user.model.jobs, unit)))
        self.inner.finished(user, unit, now)
        if not away and not user.done:
            self._leave_or_stay(user, now)

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
        if user.done:  # by what it had submitted before it left
            return
        user.mood, user.pace, user.again = 0.0, 1.0, 0.0
        self.visits.note(user.model.time, user.number, Happening.CAME_BACK)


def rows_of(jobs: JobTable, unit: int) -> Int64s:
    """Return the rows of the jobs of a unit that stand together in the table.

    Users who generate add the jobs of a unit at once; units are numbered in that order.
    """
    first, last = np.searchsorted(jobs.unit, (unit, unit + 1))
    return np.arange(first, last)
