"""A run at a moment: what has happened so far, and what is foreseen.

The same views serve a paused simulation and a finished run that is played back. In both, the table
of jobs holds the future as well: submissions that are due, ends of running jobs, in a finished run
everything. A :class:`Moment` shows what had happened when second ``now`` began:

=========== ====================================================================================
submissions before ``now``
starts      before ``now``
ends        until ``now``, as :meth:`hpcrowd.environment.simulation.Simulation.run` leaves them
=========== ====================================================================================

A run paused at t and the finished run played back to t therefore look the same. Two things are only
known while the simulation exists: the order of the queue if it is not that of submission, and the
internal state of users (their mood, their working hours). If a job was stopped, its row is that of
its last run; :attr:`Moment.by_run` has all of them, which loads and charts show.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.user import ReplayUser, User
from hpcrowd.agents.presets import PRESETS, Recipe
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.sessions import SessionDefinition
from hpcrowd.analysis.accounts.decisions import decisions_of
from hpcrowd.analysis.pictures.platform_marks import asked_outages
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.cluster import HOME
from hpcrowd.environment.engine.attempts import Runs, runs_of
from hpcrowd.environment.grid.policies import GRID
from hpcrowd.environment.jobs import OUTCOME, UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog, Decisions
    from hpcrowd.agents.work.units import Units
    from hpcrowd.analysis.curves import Floats
    from hpcrowd.environment.engine.attempts import Attempt
    from hpcrowd.environment.simulation import Simulation


Bools = NDArray[np.bool_]

#: States of jobs that were submitted but never ran.
NEVER_RAN = (State.REJECTED, State.CANCELLED, State.RENOUNCED)


class Step(NamedTuple):
    """The number of processors from a second on."""

    at: int  #: s since the origin
    size: int  #: processors
    up: int  #: of these, usable ones: neither down nor in maintenance


def clusters_of(run: Run) -> dict[str, int]:
    """Return the initial processors of each cluster of a run, by name, in order."""
    if sites := run.parts["grid"].account:
        return {name: one["processors"] for name, one in sites.items() if name != GRID}
    users = run.configuration.get("users")
    others = users.get("clusters") if isinstance(users, dict) else None
    more = {name: int(one["processors"]) for name, one in (others or {}).items()}
    return {HOME: run.processors - sum(more.values()), **more}


def steps_of_model(model: Simulation) -> list[Step]:
    """Return the steps of a simulation until now, all clusters together."""
    found = []
    for one in model.clusters.values():
        timeline = one.engine.timeline
        history = [(0, one.processors, one.processors)] if timeline is None else timeline.history
        found.append([Step(*step) for step in history])
    return together(found)


def steps_of_run(run: Run) -> list[Step]:
    """Return the steps of a finished run, all clusters together.

    The folder of a run holds the configured outages with a time, but not random failures.
    """
    found = []
    for name, processors in clusters_of(run).items():
        sizes = run.parts["platform"].account.get(name, {}).get("sizes", ())
        outages = [
            (begin, FOREVER if end is None else end, count)
            for where, begin, end, count in asked_outages(run)
            if where == name
        ]
        times = {0, *(at for at, *_ in sizes)}
        times |= {second for begin, end, _ in outages for second in (begin, end)}
        steps = []
        for at in sorted(times):
            size = next((after for when, _, after in reversed(sizes) if when <= at), processors)
            down = [count for begin, end, count in outages if begin <= at < end]
            lost = sum(size if count is None else count for count in down)
            steps.append(Step(at, size, max(0, size - lost)))
        found.append(steps)
    return together(found)


def together(clusters: Iterable[Sequence[Step]]) -> list[Step]:
    """Return the sum over clusters; each has its steps in order, the first at second 0."""
    found = [np.array(steps, np.int64) for steps in clusters]
    times = np.unique(np.concatenate([steps[:, 0] for steps in found]))
    totals = np.zeros((len(times), 2), np.int64)
    for steps in found:
        totals += steps[np.searchsorted(steps[:, 0], times, side="right") - 1, 1:]
    return [
        Step(at, size, up) for at, (size, up) in zip(times.tolist(), totals.tolist(), strict=True)
    ]


def at_second(steps: Sequence[Step], second: int) -> Step:
    """Return the step in force at a second."""
    place = bisect_right(steps, second, key=lambda step: step.at)
    return steps[max(place - 1, 0)]


def averages(steps: Sequence[Step], edges: Int64s) -> tuple[Floats, Floats]:
    """Return processors and usable processors, averaged over bins, each of shape (bins,)."""
    times = np.array([one.at for one in steps])
    found = []
    for values in ([one.size for one in steps], [one.up for one in steps]):
        # The integral up to each edge, from the first step on and backwards before it.
        place = np.maximum(np.searchsorted(times, edges, side="right") - 1, 0)
        level = np.array(values, float)
        area = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
        found.append(np.diff(area[place] + level[place] * (edges - times[place])) / np.diff(edges))
    return found[0], found[1]


@dataclass(frozen=True, eq=False)
class Moment:
    """A run at a moment. It is a view: make a new one when the simulation has advanced.

    Attributes
    ----------
    jobs
        Every job; it may also hold what happens after ``now``.
    now
        s since the origin; events before this second begins have happened.
    clock
        Local time of the cluster.
    processors
        Initial size of the machine, all clusters together.
    label
        A short name for titles.
    work
        The recorded work, if users replay one; else None.
    users
        Agents by number, if there is a simulation.
    decisions
        The log of users' decisions, if there is one.
    waits
        Sessions or batches, with a mask of the units whose users wait for earlier units, shape
        (units,), as in :class:`hpcrowd.analysis.run.Run`.
    after
        If users generate their work: the unit that triggered each unit, shape (units,), -1 for
        none. Else None, and also in a simulation, whose users know it.
    model
        The simulation, if there is one: then every submission after ``now`` in the table is
        foreseen. Otherwise the foreseen ones are derived.
    order
        Rows of the jobs in the queue, in the scheduler's order; None for the order of submission.
    clusters
        Initial processors of the clusters, by name, in the order of their numbers; empty if not
        given.
    steps
        The number of processors, and of usable ones, over time; by default the initial size.
    attempts
        Runs of jobs that the platform stopped.
    """

    jobs: JobTable
    now: int
    clock: Clock
    processors: int
    label: str = ""
    work: Work | None = None
    users: Mapping[int, User] = field(default_factory=dict)
    decisions: DecisionLog | Decisions | None = None
    waits: Sequence[tuple[Units, Bools]] = ()
    after: Int64s | None = None
    model: Simulation | None = None
    order: Int64s | None = None
    clusters: Mapping[str, int] = field(default_factory=dict)
    steps: Sequence[Step] = ()
    attempts: Sequence[Attempt] = ()

    def __post_init__(self) -> None:
        if not self.steps:
            object.__setattr__(self, "steps", [Step(0, self.processors, self.processors)])

    @classmethod
    def of_model(
        cls,
        model: Simulation,
        *,
        label: str = "",
        work: Work | None = None,
        users: Iterable[User] | Mapping[int, User] | None = None,
        decisions: DecisionLog | None = None,
    ) -> Moment:
        """Return the moment of a simulation now, between two calls of its ``run(until=...)``.

        When nothing is left to happen, the moment is the second after the last event.

        Parameters
        ----------
        model
            The simulation.
        label
            A short name for titles.
        work
            The recorded work; by default that of the users.
        users
            Agents, or agents by number; by default all agents of the simulation.
        decisions
            Their log of decisions.
        """
        if users is None:
            users = [agent for agent in model.agents if isinstance(agent, User)]
        if not isinstance(users, Mapping):
            users = {user.number: user for user in users}
        if work is None:
            found = (getattr(user, "work", None) for user in users.values())
            work = next((one for one in found if one is not None), None)
        return cls(
            jobs=model.jobs,
            now=model.time + model.over,
            clock=model.clock,
            processors=sum(cluster.processors for cluster in model.clusters.values()),
            label=label,
            work=work,
            users=users,
            decisions=decisions,
            model=model,
            order=np.concatenate([cluster.waiting for cluster in model.clusters.values()]),
            clusters={name: cluster.processors for name, cluster in model.clusters.items()},
            steps=steps_of_model(model),
            attempts=[one for cluster in model.clusters.values() for one in cluster.attempts],
        )

    @classmethod
    def of_run(cls, run: Run, now: int | None = None) -> Moment:
        """Return a finished run as of second ``now``, by default after its last event."""
        if now is None:
            now = 1 + max(int(column.max(initial=0)) for column in (run.jobs.submit, run.jobs.end))
        return cls(
            jobs=run.jobs,
            now=now,
            clock=run.clock,
            processors=run.processors,
            label=run.label,
            work=run.work,
            decisions=decisions_of(run.parts),
            waits=run.precedence.waits,
            after=run.precedence.after,
            clusters=clusters_of(run),
            steps=steps_of_run(run),
            attempts=run.attempts,
        )

    @cached_property
    def submitted(self) -> Bools:
        """Which jobs were submitted, shape (jobs,)."""
        submit = self.jobs.submit
        found: Bools = (submit != UNKNOWN) & (submit < self.now)
        return found

    @cached_property
    def started(self) -> Bools:
        """Which jobs have started, including finished ones, shape (jobs,)."""
        start = self.jobs.start
        found: Bools = self.submitted & (start != UNKNOWN) & (start < self.now)
        return found

    @cached_property
    def ended(self) -> Bools:
        """Which jobs have started and finished, shape (jobs,)."""
        end = self.jobs.end
        found: Bools = self.started & (end != UNKNOWN) & (end <= self.now)
        return found

    @cached_property
    def running(self) -> Bools:
        """Which jobs are running, shape (jobs,)."""
        return self.started & ~self.ended

    @cached_property
    def ends(self) -> Int64s:
        """The end of each job, s; of one that runs as expected, later than now; shape (jobs,)."""
        jobs = self.jobs
        # The expected end has passed if a job ran longer than its estimate.
        expected = np.maximum(jobs.start + np.maximum(jobs.estimate, 0), self.now + 1)
        return np.where(self.running, expected, jobs.end)

    @cached_property
    def never_ran(self) -> Bools:
        """Which submitted jobs are over and never ran, such as those larger than the machine."""
        over = np.isin(self.jobs.state, NEVER_RAN) & (self.jobs.end <= self.now)
        return self.submitted & ~self.started & over

    @cached_property
    def given_up(self) -> Bools:
        """Which jobs were taken back before they started, shape (jobs,)."""
        return self.never_ran & self.jobs.left_queue

    @cached_property
    def waiting(self) -> Bools:
        """Which jobs are waiting, shape (jobs,)."""
        return self.submitted & ~self.started & ~self.never_ran

    @cached_property
    def held(self) -> Bools:
        """Which waiting jobs are at the broker of a grid, not in a queue, shape (jobs,)."""
        enqueued = self.jobs.enqueued
        found: Bools = self.waiting & ((enqueued == UNKNOWN) | (enqueued >= self.now))
        return found

    @cached_property
    def by_run(self) -> Moment:
        """The moment with a row for each run, each once, see ``engine.attempts.runs_of``.

        The rows of jobs come first, and are the same.
        """
        runs = self.every_run.table
        return self if runs is self.jobs else replace(self, jobs=runs, attempts=())

    @cached_property
    def every_run(self) -> Runs:
        """All runs, each once, and of which job each is."""
        return runs_of(self.jobs, self.attempts)

    @property
    def stopped(self) -> Int64s:
        """Rows of jobs that were submitted and stopped; some will be submitted again."""
        return np.array([one.row for one in self.attempts if one.submit < self.now], np.int64)

    @property
    def size(self) -> int:
        """The number of processors now."""
        return at_second(self.steps, self.now - 1).size

    @property
    def up(self) -> int:
        """The number of processors that are neither down nor in maintenance."""
        return at_second(self.steps, self.now - 1).up

    @cached_property
    def queue(self) -> Int64s:
        """Rows of the waiting jobs, in the order of the queue, shape (waiting,).

        The scheduler's order if known, else by submission to the cluster, then by row.
        """
        rows = np.flatnonzero(self.waiting)
        held = self.held[rows]
        # A job held by a broker has not joined a queue yet.
        keys = [rows, np.where(held, self.jobs.submit[rows], self.jobs.enqueued[rows]), held]
        if self.order is not None:
            place = np.full(len(self.jobs), len(self.order))
            place[self.order] = np.arange(len(self.order))
            keys.append(place[rows])
        ordered: Int64s = rows[np.lexsort(keys)]
        return ordered

    @cached_property
    def foreseen(self) -> Bools:
        """Which jobs will be submitted at a second that is already known, shape (jobs,)."""
        submit = self.jobs.submit
        ahead: Bools = (submit != UNKNOWN) & (submit >= self.now)
        if self.model is not None:
            return ahead
        recorded = 0 if self.work is None else len(self.work.jobs)
        ahead[recorded:] = False  # generated only at their submission
        for units, which in self.waits:
            # A unit is released when all that it depends on has finished.
            waits = which & (units.dependencies.count > 0)
            released = ~waits | self._released(units)
            if self.work is not None and units is self.work.__dict__.get("by_batch"):
                released &= _all_before(released | ~which, units)
            ahead[units.rows] &= np.repeat(released, np.diff(units.first))
        return ahead

    @cached_property
    def alarms(self) -> dict[int, int]:
        """The next alarm (s) of users who are about to submit something, by user number.

        Only in a simulation, and for users who do not submit ahead.
        """
        found: dict[int, int] = {}
        for at, function, arguments in () if self.model is None else self.model.due():
            user = getattr(function, "__self__", None)
            if arguments and isinstance(arguments[0], ReplayUser):
                user = arguments[0]
            if isinstance(user, User):
                found[user.number] = min(at, found.get(user.number, at))
        return found

    def _released(self, units: Units) -> Bools:
        """Return for which units all dependencies have finished, shape (units,)."""
        over = self.units_over(units)
        edges = units.dependencies
        released = np.ones(len(units), bool)
        released[edges.successor[~over[edges.predecessor]]] = False
        return released

    def units_over(self, units: Units) -> Bools:
        """Return which units have finished, that is all their jobs, shape (units,)."""
        over = (self.ended | self.never_ran)[units.rows]
        return np.logical_and.reduceat(over, units.first[:-1]) if len(units) else over

    @property
    def first(self) -> int:
        """The first submission so far, s; ``now`` if there was none."""
        submit = self.jobs.submit
        before = min((one.submit for one in self.attempts), default=self.now)
        return int(np.min(submit, where=self.submitted, initial=min(before, self.now)))

    def since(self, first: int) -> Int64s:
        """Return the rows of submitted jobs that had not finished before second ``first``."""
        jobs = self.jobs
        past = (self.ended & (jobs.end < first)) | (self.never_ran & (jobs.submit < first))
        return np.flatnonzero(self.submitted & ~past)

    def seen(self, rows: Int64s | None = None) -> JobTable:
        """Return a table of jobs in which everything after ``now`` is unknown.

        Parameters
        ----------
        rows
            The jobs, in this order; None for all.
        """
        which = slice(None) if rows is None else rows
        table = self.jobs.copy() if rows is None else self.jobs.take(rows)
        future = ~self.submitted[which]
        for column in OUTCOME:
            table.matrix[column, future] = UNKNOWN
        table.matrix[Column.START, ~self.started[which]] = UNKNOWN
        table.matrix[Column.END, ~(self.ended | self.never_ran)[which]] = UNKNOWN
        table.matrix[Column.STATE, ~(self.ended | self.never_ran)[which]] = State.UNFINISHED
        return table

    def run(self, rows: Int64s | None = None) -> Run:
        """Return :meth:`seen` as a run, for the pictures of runs; ``rows`` as there."""
        return Run(
            jobs=self.seen(rows),
            processors=self.processors,
            label=self.label,
            configuration={},
            clock=self.clock,
        )

    def rows_of(self, user: int) -> Int64s:
        """Return the rows of a user's jobs in the table, including those to come."""
        return np.flatnonzero(self.jobs.user == user)


def _all_before(good: Bools, units: Units) -> Bools:
    """Return which units are good, as are all earlier units of the same user, shape (units,)."""
    bad = np.cumsum(~good)
    before = np.concatenate([[0], bad])[units.user_first[:-1]]
    good_so_far: Bools = bad == np.repeat(before, np.diff(units.user_first))
    return good_so_far


def activity_count(moment: Moment, user: int) -> int:
    """Return the number of submissions, starts and ends of a user's jobs so far.

    It changes exactly when one of these events happens.
    """
    rows = moment.rows_of(user)
    parts = moment.submitted, moment.started, moment.ended | moment.never_ran
    return sum(int(np.count_nonzero(part[rows])) for part in parts)


def next_event_of(moment: Moment, user: int) -> int | None:
    """Return the moment after the next known event of a user.

    That is the end of a running job, or one second after a foreseen submission or an alarm of the
    user, since events of a second show when the next one begins; s since the origin, later than
    now. Other events may come earlier: compare :func:`activity_count`. At an alarm the user may do
    nothing. None if no event is known.
    """
    jobs, rows = moment.jobs, moment.rows_of(user)
    ends = jobs.end[rows][moment.running[rows]]
    arrivals = jobs.submit[rows][moment.foreseen[rows]] + 1
    alarm = [moment.alarms[user] + 1] if user in moment.alarms else []
    known = np.concatenate([ends, arrivals, np.array(alarm, np.int64)])
    return int(known.min()) if len(known) else None


def recover_work(run: Run) -> Run:
    """Return a run with the recorded work of its users, if it is a replay without it.

    A folder of results holds the jobs but not the dependencies. The sessions of a replay are found
    again from the recorded times of its jobs; with them, a run read from a folder can be played
    back like one that has just ended.

    Nothing is added if the folder is not enough for this: users generate their work, several
    behaviours are mixed, or single jobs follow each other (``preceding``).

    Parameters
    ----------
    run
        The run; the sessions and batches found are the same as those in its table.
    """
    told = run.configuration
    users = str(told.get("users"))
    # Only what comes with hpcrowd: the registry itself would load code that the folder names.
    ours = users in tuple(PRESETS) or PRESETS.file_in(users) is not None
    recipe = PRESETS[users] if ours else None
    if run.work is not None or told.get("kind") != "replay" or not isinstance(recipe, Recipe):
        return run
    if told.get("changed_graphs") or told.get("given_behaviours"):
        return run
    definition = SessionDefinition.parse(str(told.get("sessions", SessionDefinition())))
    if definition.kind == "preceding" or (run.jobs.recorded_submit == UNKNOWN).any():
        return run
    work, precedence = Work.of(run.jobs, definition), run.precedence
    if recipe.when != "recorded":
        units = work.by_batch if recipe.when == "batches" else work.by_session
        precedence = replace(precedence, waits=[(units, np.ones(len(units), bool))])
    return replace(run, work=work, precedence=precedence)
