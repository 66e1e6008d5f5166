"""Runs in progress, simulated or played back, and changes of users in their middle."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.agents.behaviours.user import ReplayUser, User
from hpcrowd.agents.populations.handover import give_behaviour
from hpcrowd.agents.presets import PRESETS
from hpcrowd.analysis.accounts.decisions import decisions_of
from hpcrowd.analysis.views.moment import Moment, activity_count, next_event_of
from hpcrowd.environment.clock import DAY, WEEK
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.quantities import is_multiple, parse_factor, parse_processors
from hpcrowd.environment.stops import FOREVER
from hpcrowd.environment.waiting_reasons import reasons_at, reasons_of

if TYPE_CHECKING:
    from hpcrowd.analysis.energy.account import EnergyAccount
    from hpcrowd.analysis.run import Run
    from hpcrowd.scenarios.kinds.base import Scenario, Staged


#: Simulated time after which the search for the next event of a user pauses, s.
SEARCHED_AT_ONCE = 8 * WEEK

#: Real time after which it pauses, s.
PATIENCE = 8.0


#: The largest seed that the page takes.
LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Control:
    """A setting of a scenario that the page offers."""

    name: str  #: name of the setting in a scenario file
    label: str  #: its name on the page
    choices: tuple[str, ...] = ()  #: permitted values; empty for a number or a multiple
    value: str = ""  #: its value in the scenario

    def check(self, text: str) -> str:
        """Return a value from a browser if it is permitted; a QuantityError says why it is not."""
        if text == self.value or text in self.choices:
            return text
        if self.choices:
            raise QuantityError(f"{self.name} {text[:40]!r}: not offered; choose one of the list")
        if self.name == "seed":
            if not text.isascii() or not text.isdigit() or int(text[:12]) > LARGEST_SEED:
                raise QuantityError(
                    f"seed {text[:40]!r}: must be a whole number from 0 to {LARGEST_SEED}"
                )
        elif self.name == "processors":
            parse_processors(text[:40], 1_000_000)
        elif is_multiple(text):
            parse_factor(text[:40], self.name)
        return text


class Course(ABC):
    """A run that can be advanced."""

    label: str  #: a short name for titles
    log_full = False  #: whether decisions were lost because the log was full
    played_back = False  #: whether the run is finished and cannot be changed
    controls: tuple[Control, ...] = ()  #: settings that a reader may change, with their values here
    notes: Sequence[str] = ()  #: what reading assumed, repaired or dropped, a line each
    #: The scheduler of a run that is played back, if reasons can be derived from it; else None.
    scheduler_name: str | None = None
    _moment: Moment | None = None
    _account: tuple[Moment, EnergyAccount | None] | None = None

    @property
    @abstractmethod
    def now(self) -> int:
        """The current time of the run, s since the origin."""

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether the run has finished."""

    @abstractmethod
    def advance(self, until: int) -> None:
        """Advance to second ``until``, or to the end if that comes first."""

    @abstractmethod
    def advance_to_event(self, user: int) -> bool:
        """Advance to the next second at which a user submits, or a job of the user starts or ends.

        Returns
        -------
        bool
            False if there was none within :data:`SEARCHED_AT_ONCE` or :data:`PATIENCE`, or at all.
        """

    @abstractmethod
    def look(self) -> Moment:
        """Return the current moment."""

    @abstractmethod
    def reasons(self, rows: Sequence[int]) -> dict[int, str]:
        """Return why jobs wait, in words, by row; rows without a known reason are left out."""

    def skip_to(self, first: int) -> None:
        """Advance to the day of second ``first``, before which nothing happens."""
        if first < FOREVER:
            self.advance(first // DAY * DAY)

    def moment(self) -> Moment:
        """Return the current moment, the same object until the run advances."""
        if self._moment is None:
            self._moment = self.look()
        return self._moment

    @property
    def has_power(self) -> bool:
        """Whether its power over time is known."""
        return False

    @property
    def energy_of_all(self) -> Mapping[str, Any]:
        """The totals of energy of a whole run that has no account; empty before its end."""
        return {}

    def energy_account(self) -> EnergyAccount | None:
        """Return the energy until now, the same object until the run advances; None if unknown."""
        if not self.has_power:
            return None
        moment = self.moment()
        if self._account is None or self._account[0] is not moment:
            self._account = moment, self.account()
        return self._account[1]

    def account(self) -> EnergyAccount | None:
        """Return the energy until now, anew; None before the first submission."""
        return None


class LiveCourse(Course):
    """A simulation that has not begun; ``scenario`` has all its settings, if it comes from one."""

    def __init__(
        self,
        staged: Staged,
        label: str,
        controls: tuple[Control, ...] = (),
        scenario: Scenario | None = None,
    ) -> None:
        self.staged = staged
        self.scenario = scenario
        self.model = staged.model
        self.label = label
        self.controls = controls
        self._users: dict[int, User] = {}
        self._agents = 0
        self.skip_to(self.model.next_time)

    @property
    @override
    def now(self) -> int:
        return self.model.time

    @property
    @override
    def over(self) -> bool:
        return self.model.over

    @override
    def advance(self, until: int) -> None:
        if until > self.now and not self.over:
            self._moment = None
            self.model.run(until=until)
            if self.staged.log is not None:
                self.log_full = self.staged.log.dropped > 0

    def changed(self) -> None:
        """Let changes of users' graphs take effect; to be called after them."""
        self._moment = None
        self.model.run(until=self.now)

    @override
    def advance_to_event(self, user: int) -> bool:
        begin, limit = self.now, time.perf_counter() + PATIENCE
        before = activity_count(self.moment(), user)
        while not self.over and self.now - begin <= SEARCHED_AT_ONCE:
            moment = self.moment()
            known = next_event_of(moment, user)
            rows = moment.rows_of(user)
            until = self.now + WEEK if known is None else min(known, self.now + WEEK)
            if np.any(moment.waiting[rows]):
                self._advance_to_start(rows[moment.waiting[rows]], until, limit)
            else:
                # A user without a job in the queue is only affected by rare events.
                self.advance(min(until, self._rare()))
            if activity_count(self.moment(), user) != before:
                return True
            if time.perf_counter() > limit:
                break
        return False

    def _advance_to_start(self, rows: Int64s, until: int, limit: float) -> None:
        """Advance until one of the waiting jobs starts or leaves the queue, at most to a second."""
        model, jobs = self.model, self.model.jobs
        states = jobs.state[rows].copy()
        while self.now < until and not self.over and time.perf_counter() < limit:
            # If jobs have ended at this second, the scheduler has not run yet.
            looks = bool(np.any(jobs.end == self.now))
            step = self.now if looks else max(self.now, min(model.next_time, until))
            self.advance(min(step + 1, until))
            started = (jobs.start[rows] != UNKNOWN) & (jobs.start[rows] < self.now)
            if started.any() or (jobs.state[rows] != states).any():
                return

    def _rare(self) -> int:
        """Return when a user may next act, or nodes fail, s; plus the second when it is visible."""
        now, times = self.now, [self.model.next_event_time()]
        for cluster in self.model.clusters.values():
            # Past changes are applied when the cluster next has something to do.
            if cluster.engine.change_at >= now:
                times.append(cluster.engine.change_at)
        return max(now, min(times)) + 1

    @override
    def look(self) -> Moment:
        if len(self.model.agents) != self._agents:  # a user came or left
            self._agents = len(self.model.agents)
            found = [agent for agent in self.model.agents if isinstance(agent, User)]
            self._users = {user.number: user for user in found}
        return Moment.of_model(
            self.model,
            label=self.label,
            work=self.staged.work,
            users=self._users,
            decisions=self.staged.log,
        )

    @property
    @override
    def has_power(self) -> bool:
        return self.model.parts.of(PowerInUse) is not None

    @override
    def account(self) -> EnergyAccount | None:
        from hpcrowd.analysis.energy.record import account_of

        # At the end it is the account of the finished run.
        return account_of(self.model, None if self.over else self.now)

    @override
    def reasons(self, rows: Sequence[int]) -> dict[int, str]:
        model, clock = self.model, self.model.clock
        found: dict[int, str] = {}
        for place in model.places.values():
            found |= {one.row: one.words(clock) for one in reasons_of(place, rows=rows)}
        return found


class PlayedBack(Course):
    """A finished run, with its work if that can be recovered; all pages only read it."""

    played_back = True

    def __init__(self, run: Run) -> None:
        self.run = run
        self.label = run.label
        self.notes = run.notes
        scheduler = run.configuration.get("scheduler")
        if isinstance(scheduler, str) and {"platform", "grid"}.isdisjoint(run.parts):
            # Not of several clusters, nor where processors come and go.
            self.scheduler_name = scheduler
        jobs = run.jobs
        times = np.concatenate([jobs.submit, jobs.start, jobs.end])
        self._events = np.unique(times[times != UNKNOWN])
        self._now = 0
        decisions = decisions_of(run.parts)
        self.log_full = decisions is not None and decisions.dropped > 0
        self.skip_to(int(self._events[0]) if len(self._events) else FOREVER)

    @property
    @override
    def now(self) -> int:
        return self._now

    @property
    @override
    def over(self) -> bool:
        return not len(self._events) or self._now > int(self._events[-1])

    @override
    def advance(self, until: int) -> None:
        if until > self._now:
            self._moment = None
            last = int(self._events[-1]) + 1 if len(self._events) else 0
            self._now = max(self._now, min(until, last))

    @override
    def advance_to_event(self, user: int) -> bool:
        jobs = self.run.jobs
        rows = np.flatnonzero(jobs.user == user)
        times = np.concatenate([jobs.submit[rows], jobs.start[rows], jobs.end[rows]])
        # Events of this second are visible one second later.
        times = times[(times != UNKNOWN) & (times >= self._now)]
        if not len(times):
            return False
        self.advance(int(times.min()) + 1)
        return True

    @override
    def look(self) -> Moment:
        return Moment.of_run(self.run, self._now)

    @property
    @override
    def energy_of_all(self) -> Mapping[str, Any]:
        return self.run.parts["power"].account if self.over else {}

    @override
    def reasons(self, rows: Sequence[int]) -> dict[int, str]:
        run, scheduler = self.run, self.scheduler_name
        if scheduler is None:
            return {}
        try:
            reasons = reasons_at(
                run.jobs,
                self._now - 1,
                scheduler,
                run.processors,
                held="holds" in run.parts,
                rows=rows,
            )
        except QuantityError:
            return {}  # a custom scheduler, of which only the name is known
        return {one.row: one.words(run.clock) for one in reasons}


def apply_changes(course: Course, changes: Sequence[dict[str, Any]]) -> None:
    """Change users of a run from now on, one change after the other.

    A change gives a ``user`` another ``behaviour``, the name of a preset; or it sets the
    ``think_time`` (``seconds``) of the edge of its graph from unit ``before`` to ``after``, adds
    the edge, or removes it. An HpcrowdError says in one line which is not possible.
    """
    if not isinstance(course, LiveCourse):
        raise QuantityError("a finished run cannot be changed: open its trace or scenario instead")
    for change in changes:
        user = _user(course, change["user"])
        if change["kind"] == "behaviour":
            name = change["value"]
            known = tuple(PRESETS)  # the registry itself would look for a file of that name
            if name not in known:
                raise QuantityError(f"behaviour {name!r}: {not_one_of(name, known)}")
            give_behaviour(course.model, user, name)
        else:
            _change_edge(user, change)
    course.changed()


def _change_edge(user: ReplayUser, change: dict[str, Any]) -> None:
    """Change an edge of a user's graph."""
    before, after, kind = change["before"], change["after"], change["kind"]
    seconds = change.get("seconds")
    words = f"user {user.number}, edge from {before} to {after}"
    if kind != "remove_edge" and seconds is None:
        raise QuantityError(f"{words}: no think time; give seconds")
    if kind == "add_edge":
        user.graph.add_edge(before, after, think_time=seconds)
        return
    if not user.graph.has_edge(before, after):
        raise QuantityError(f"{words}: there is none; choose one of the graph")
    if kind == "remove_edge":
        user.graph.remove_edge(before, after)
    else:
        user.graph.edges[before, after]["think_time"] = seconds


def _user(course: LiveCourse, number: int) -> ReplayUser:
    user = course.moment().users.get(number)
    if not isinstance(user, ReplayUser):
        raise QuantityError(
            f"user {number}: makes up its work, so there is no graph to change; choose a user who "
            "replays a record"
            if user is not None
            else f"user {number}: not in this run"
        )
    return user
