"""Triggers of energy: a signal, such as a price, and a user's budget for each month or week."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Literal, override

import numpy as np

from hpcrowd.agents.behaviours.parts import Trigger, setting
from hpcrowd.agents.behaviours.triggers import Periods
from hpcrowd.environment.clock import CYCLE, DAY, EPOCH, FIRST_MONDAY, WEEK, Clock
from hpcrowd.environment.errors import QuantityError, SignalError, check_choice
from hpcrowd.environment.jobs import UNKNOWN, State
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.reactions import Intention
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.environment.jobs import Int64s, JobTable
    from hpcrowd.environment.simulation import Simulation

#: s of a run for which users look up a signal that repeats, at least: users may fall behind.
SEEN = 2 * 364 * DAY

#: Share of a budget by which sums of energies may exceed it, for their rounding.
ROUNDING = 1e-9

MONTHS = 12  #: of a year


@dataclass(eq=False)
class OnSignal(Periods):
    """Active while a signal is above or below a threshold, such as a price.

    Parameters
    ----------
    signal
        The signal.
    above, below
        Active while the value is larger, or smaller, than this, in the unit of the signal; give one
        of them.
    outside
        If the signal does not cover recorded submissions: an ``error`` before the run, or ``off``,
        not active there. After its end it is not active in either case: users who have fallen
        behind may submit later than recorded.

    Raises
    ------
    QuantityError
        If not exactly one threshold is given.
    """

    when = "signal"

    signal: Signal = setting(..., "CSV file with the columns time and value", name="file")  # noqa: RUF009
    _: KW_ONLY
    above: float | None = setting(None, "the value is larger than this, in its unit")
    below: float | None = setting(None, "instead of above: the value is smaller")
    outside: Literal["error", "off"] = setting(
        "error", "submissions that the signal does not cover: an error, or no reaction"
    )

    def __post_init__(self) -> None:
        if (self.above is None) == (self.below is None):
            raise QuantityError("signal: give a threshold, either above or below")
        check_choice("outside", self.outside, ("error", "off"))

    @override
    def begin(self, user: ReplayUser) -> None:
        if self._clock is not user.model.clock:
            if self.signal.repeat == "no":
                self._check_cover(user)
            self._until = self._last_second(user)
        super().begin(user)

    @override
    def _seconds(self, clock: Clock) -> list[tuple[int, int]]:
        if self.signal.repeat == "no":
            return self.signal.periods(clock, above=self.above, below=self.below)
        steps = self.signal.on(clock, 0, self._until)
        return steps.periods(above=self.above, below=self.below)

    @staticmethod
    def _last_second(user: ReplayUser) -> int:
        """Return until when a signal that repeats is looked up, s."""
        recorded = int(user.model.jobs.recorded_submit.max(initial=0))
        horizon = getattr(user, "horizon", 0)  # of generated users, if it is known
        return max(2 * recorded, SEEN, horizon if horizon < FOREVER else 0)

    def _check_cover(self, user: ReplayUser) -> None:
        recorded = user.model.jobs.recorded_submit
        recorded = recorded[recorded != UNKNOWN]
        edges = self.signal.seconds(user.model.clock)
        if self.outside == "off" or not len(recorded):
            return
        if recorded.min() < edges[0] or recorded.max() >= edges[-1]:
            raise SignalError(
                self.signal.source,
                f"covers {edges[0]} to {edges[-1]} s of the run, recorded submissions go from "
                f"{recorded.min()} to {recorded.max()} s; give a longer signal, or say "
                "outside='off'",
            )


class Calendar:
    """The months or weeks of a run in local time, numbered from the one of second 0.

    A period begins at midnight of its first day, by the clock of the trace; the first time, where
    clocks are put back over midnight.

    Parameters
    ----------
    clock
        Local time of the run.
    per
        ``month`` or ``week``, which begins on Monday.
    """

    def __init__(self, clock: Clock, per: str) -> None:
        self._clock, self._per = clock, per
        self._first = clock.local(0).date()
        self._begins = [self._begin(0), self._begin(1)]

    def place(self, second: int) -> int:
        """Return the number of the period of a second; earlier ones count as the first."""
        begins = self._begins
        while begins[-1] <= second:
            begins.append(self._begin(len(begins)))
        return max(bisect_right(begins, second) - 1, 0)

    def end(self, place: int) -> int:
        """Return the second at which a period ends, and the next one begins."""
        begins = self._begins
        while len(begins) < place + 2:
            begins.append(self._begin(len(begins)))
        return begins[place + 1]

    def _begin(self, place: int) -> int:
        clock, first = self._clock, self._first
        if self._per == "week":
            return clock.second_at((clock.wall(0) // WEEK + place) * WEEK)
        years, month = divmod(first.month - 1 + place, MONTHS)
        # Python has no dates after the year 9999; the calendar repeats.
        cycles, year = divmod(first.year - 1 + years, 400)
        days = date(year + 1, month + 1, 1).toordinal() - EPOCH.toordinal()
        return clock.second_at(days * DAY - FIRST_MONDAY + (cycles + clock.cycles(0)) * CYCLE)


@dataclass
class Account:
    """The energy of one user.

    Attributes
    ----------
    used
        kWh by period, of the jobs submitted in it: by requested time until they are over, and what
        they have used from then on.
    unseen
        Rows of jobs that may have been submitted since the last look, as a set in order.
    open
        Period and kWh of each job that was charged and is not over, by row.
    """

    used: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    unseen: dict[int, None] = field(default_factory=dict)
    open: dict[int, tuple[int, float]] = field(default_factory=dict)


@dataclass(eq=False)
class Budget(Trigger):
    """Active for jobs with which the user's energy of the month would exceed a budget.

    What counts are the user's jobs submitted in the month: with the energy of their requested time
    until they are over, and of their run time from then on; and the job in question with that of
    its requested time. Jobs that were renounced, rejected or taken back before they started use
    none. Each user counts alone. A budget that is exceeded, such as by users who submit anyway, is
    not carried over. Jobs of one unit count one after the other; those for which it is active do
    not count against the next ones.

    Parameters
    ----------
    kwh
        kWh of each user in each period.
    machine_kwh
        Instead: kWh of the whole machine in each period, divided among users.
    fair
        How it is divided: ``equal`` among all users of the run; ``record``, in proportion to their
        recorded work, processors times run time.
    per
        ``month`` of the calendar, or ``week`` from Monday on; in local time of the trace.

    Raises
    ------
    QuantityError
        If not exactly one budget is given, or it is negative; before the run, if nothing describes
        the power of the machine, or if users without a record are to share in proportion to it.
    """

    when = "budget"
    ends = True

    kwh: float | None = setting(None, "energy of each user in a period", "kWh", least=0)
    _: KW_ONLY
    machine_kwh: float | None = setting(
        None, "instead: of all users in a period, divided among them", "kWh", least=0
    )
    fair: Literal["equal", "record"] = setting(
        "equal", "machine_kwh: divided equally, or as the recorded work of users"
    )
    per: Literal["month", "week"] = setting("month", "period: month or week, in local time")

    def __post_init__(self) -> None:
        if (self.kwh is None) == (self.machine_kwh is None):
            raise QuantityError(
                "budget: give either kwh, of each user, or machine_kwh, divided among them"
            )
        for name in ("kwh", "machine_kwh"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise QuantityError(f"budget {name} {value:g}: must be 0 or more, and finite")
        check_choice("budget fair", self.fair, ("equal", "record"))
        check_choice("budget per", self.per, ("month", "week"))
        self._model: Simulation | None = None
        self._accounts: dict[int, Account] = {}
        self._shares: dict[int, float] | None = None
        self._users = 0  # in all
        self._known = 0  # jobs of the table that were looked at

    @override
    def begin(self, user: ReplayUser) -> None:
        model = user.model
        if model.parts.of(PowerInUse) is None:
            raise QuantityError(
                f"trigger {self.when}: needs a description of power; give --power FILE"
            )
        if self._model is not model:
            self._model, self._accounts, self._shares, self._users = model, {}, None, 0
            self._calendar = Calendar(model.clock, self.per)
            self._known = len(model.jobs)
            if self.machine_kwh is not None and self.fair == "record":
                self._shares = _by_record(model.jobs)
        if self._shares is not None and user.number not in self._shares:
            raise QuantityError(
                f"budget fair record: user {user.number} has no recorded work; choose equal"
            )
        # Already submitted are those of a user who is given another behaviour.
        rows: Int64s = getattr(user, "recorded_rows", np.zeros(0, np.int64))
        rows = rows[model.jobs.submit[rows] != UNKNOWN]
        self._accounts[user.number] = Account(unseen=dict.fromkeys(rows.tolist()))

    def of(self, user: ReplayUser) -> float:
        """Return the budget of a user in each period, kWh."""
        if self.kwh is not None:
            return self.kwh
        assert self.machine_kwh is not None
        if self._shares is not None:
            return self.machine_kwh * self._shares[user.number]
        if not self._users:  # all of them are there as soon as the run begins
            from hpcrowd.agents.behaviours.user import User  # a simulation, which files do not need

            self._users = sum(isinstance(one, User) for one in user.model.agents)
        return self.machine_kwh / self._users

    def used(self, user: ReplayUser, second: int) -> float:
        """Return the energy that counts in the period of a second, as known now, kWh."""
        return self._settled(user).used[self._calendar.place(second)]

    @override
    def which(self, user: ReplayUser, intention: Intention) -> NDArray[np.bool_]:
        account = self._settled(user)
        most = self.of(user) * (1 + ROUNDING)
        rows = intention.rows
        account.unseen.update(dict.fromkeys(rows.tolist()))
        energies = _power_of(user.model).requested_energy(rows).tolist()
        stands = intention.stands.tolist()
        found = np.zeros(len(rows), bool)
        used: dict[int, float] = {}
        for one, at in enumerate(intention.at.tolist()):
            if not stands[one]:
                continue
            place = self._calendar.place(at)
            needs = used.get(place, account.used[place]) + energies[one]
            if needs > most:
                found[one] = True
            else:
                used[place] = needs
        return found

    @override
    def until(self, user: ReplayUser, at: int) -> int:
        return self._calendar.end(self._calendar.place(at))

    def _settled(self, user: ReplayUser) -> Account:
        """Return the account of a user with all that is known now."""
        self._notice_new(user.model.jobs)
        account, jobs = self._accounts[user.number], user.model.jobs
        if account.unseen:
            rows = np.fromiter(account.unseen, np.int64)
            self._charge(user, account, rows)
        if account.open:
            rows = np.fromiter(account.open, np.int64)
            self._correct(user, account, rows[jobs.state[rows] != State.UNFINISHED])
        return account

    def _notice_new(self, jobs: JobTable) -> None:
        """Look at jobs that were added, such as pieces of a task and work that comes back."""
        for row in range(self._known, len(jobs)):
            account = self._accounts.get(int(jobs.user[row]))
            if account is not None:
                account.unseen[row] = None
        self._known = len(jobs)

    def _charge(self, user: ReplayUser, account: Account, rows: Int64s) -> None:
        """Charge jobs that were submitted with the energy of their requested time."""
        jobs = user.model.jobs
        gone = jobs.state[rows] == State.RENOUNCED
        came = rows[~gone & (jobs.submit[rows] != UNKNOWN)]
        for row in [*rows[gone].tolist(), *came.tolist()]:
            del account.unseen[row]
        if not len(came):
            return
        energies = _power_of(user.model).requested_energy(came).tolist()
        for row, at, energy in zip(
            came.tolist(), jobs.submit[came].tolist(), energies, strict=True
        ):
            place = self._calendar.place(at)
            account.used[place] += energy
            account.open[row] = place, energy

    def _correct(self, user: ReplayUser, account: Account, over: Int64s) -> None:
        """Charge jobs that are over with the energy that they have used."""
        if not len(over):
            return
        for row, energy in zip(over.tolist(), _energy_used(user.model, over), strict=True):
            place, charged = account.open.pop(row)
            account.used[place] += energy - charged


def _energy_used(model: Simulation, rows: Int64s) -> list[float]:
    """Return the energy of jobs that are over, kWh: none if they never ran."""
    jobs = model.jobs
    start = jobs.start[rows]
    lasted = jobs.end[rows] - start - np.maximum(jobs.paused[rows], 0)
    # Killed jobs ran for less than their run time.
    part = np.where(start == UNKNOWN, 0.0, lasted / np.maximum(jobs.run_time[rows], 1))
    energies: list[float] = (_power_of(model).energy(rows) * part).tolist()
    return energies


def _power_of(model: Simulation) -> PowerInUse:
    """Return what gives the energy of jobs."""
    in_use = model.parts.of(PowerInUse)
    assert in_use is not None  # see begin()
    return in_use


def _by_record(jobs: JobTable) -> dict[int, float]:
    """Return the share of each user in the recorded work."""
    users, where = np.unique(jobs.user, return_inverse=True)
    work = np.bincount(where, (jobs.processors * jobs.run_time).astype(np.float64))
    total = max(float(work.sum()), 1.0)
    return dict(zip(users.tolist(), (work / total).tolist(), strict=True))


#: Each trigger in its forms, for :mod:`hpcrowd.agents.behaviours.parts`.
BUDGET, SIGNAL = (Budget,), (OnSignal,)
