"""One possible future of a cluster: run times drawn, users who go on, the scheduler as it is.

Everything that all futures of a state have in common is computed once, in :class:`Outset`; a
future then takes tens of milliseconds. Future number 7 of a seed is always the same, whatever other
futures are made, and where; under a change of the machine its users and run times draw the same
numbers, so that two futures of the same number are a pair.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import Floats, present_at
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable
from hpcrowd.environment.jobs import State as Outcome
from hpcrowd.environment.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hpcrowd.agents.behaviours.user import Behaviour
    from hpcrowd.agents.generative.generated import GeneratedUser
    from hpcrowd.agents.learned.model import LearnedModel
    from hpcrowd.agents.populations.past import Likeness, Past
    from hpcrowd.agents.populations.turnover import Later, Stretches, Turnover
    from hpcrowd.environment.holds.rules import Parent
    from hpcrowd.environment.parts.part import Part
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.state.fitted import Delays
    from hpcrowd.environment.state.state import ClusterState

#: What users do in futures.
USERS = ("think-time", "think-time-windows", "learned", "rigid", "none")

#: Time between two values of the series of a future, s.
STEP = HOUR

#: Longest horizons with shorter steps, and these, s (our choice: one to two hundred steps).
FINER = ((2 * HOUR, 60), (12 * HOUR, 300), (2 * DAY, 900))

#: Time between two looks whether all jobs of the state have started, s (our choice).
LOOK_EVERY = 2 * HOUR

#: How much of the past schedulers and predictors remember, s: eight half-lives of Slurm's default
#: of a week (slurm.conf(5), PriorityDecayHalfLife).
REMEMBERED = 8 * WEEK

#: Columns of a job of the state that futures begin with.
KEPT = (
    Column.NUMBER, Column.USER, Column.GROUP, Column.EXECUTABLE, Column.QUEUE, Column.PROCESSORS,
    Column.REQUESTED_TIME, Column.REQUESTED_MEMORY, Column.RECORDED_SUBMIT, Column.RECORDED_START,
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A job that one would submit now."""

    #: Processors, and requested time, s.
    processors: int
    requested: int
    #: Numbers in the state, which set what its run time is like and where it is put; -1 unknown.
    user: int = UNKNOWN
    queue: int = UNKNOWN
    count: int = 1  #: How many such jobs.


@dataclass
class Future:
    """What happened in one future."""

    number: int  #: Its number.
    #: First start, and end, of the jobs that run or wait, in the order of :attr:`Outset.rows`, then
    #: of those that one would submit; s since the origin, -1 if not within the horizon.
    start: Int64s
    end: Int64s
    #: Mean of the busy processors in each step, and jobs and processors in the queue at its end,
    #: shape (steps,).
    busy: Floats
    queued: Int64s
    asked: Int64s
    #: Of the jobs that users submitted, s, and their processors; a wait is -1 if the job did not
    #: start within the horizon.
    submit: Int64s
    wait: Int64s
    processors: Int64s


@dataclass
class Outset:
    """What all futures of a state have in common."""

    state: ClusterState
    horizon: int  #: How far futures go, s from now.
    scheduler: Any = "easy"
    users: str = "think-time"  #: One of :data:`USERS`.
    processors: int | None = None  #: Size of the machine; what is up in the state unless given.
    #: What happens to jobs that outrun their request: ``keep`` or ``kill``.
    overrun: str = "keep"
    estimates: Any = "requested"
    asked: Sequence[Asked] = ()  #: Jobs that one would submit now.
    #: Changes during the future, with seconds since the origin.
    platform: Sequence[Any] = ()
    machine: Any = None
    #: Of users who go on; of users ``learned`` who comes and leaves after the first days, and the
    #: learned model.
    likeness: Likeness | None = None
    turnover: Turnover | None = None
    model: LearnedModel | None = None
    jobs_only: bool = False  #: Stop when all jobs of the state have started that can.
    #: Of held jobs, by row of the state: the jobs that run or wait, or are in ``awaits``, which
    #: they depend on. They join the queue when these are over as they ask; other held jobs never
    #: do.
    awaits: Mapping[int, tuple[Parent, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.horizon <= 0:
            raise QuantityError(f"horizon {self.horizon} s: must be more than 0")

    @property
    def step(self) -> int:
        """Length of the steps in which load and queue are measured, s."""
        return next((step for most, step in FINER if self.horizon <= most), STEP)

    @cached_property
    def rows(self) -> Int64s:
        """Rows of the state of the jobs that run, then of those that wait."""
        return np.concatenate((self.state.running, self.state.waiting))

    @cached_property
    def run_times(self) -> RunTimes:
        """Run times of the jobs that run or wait, and of those that one would submit."""
        return RunTimes.of(self.with_asked, np.concatenate((self.rows, self.asked_rows)))

    @cached_property
    def with_asked(self) -> ClusterState:
        """The state with the jobs that one would submit, as waiting since now."""
        if not self.asked:
            return self.state
        jobs = self.state.jobs.copy()
        for one in self.asked:
            jobs.append(
                one.count, user=one.user, queue=one.queue, processors=one.processors,
                requested_time=one.requested, recorded_submit=self.state.now,
            )  # fmt: skip
        return replace(self.state, jobs=jobs)

    @property
    def asked_rows(self) -> Int64s:
        """Rows of the jobs that one would submit, in :attr:`with_asked`."""
        count = sum(one.count for one in self.asked)
        return np.arange(len(self.state.jobs), len(self.state.jobs) + count)

    @cached_property
    def past(self) -> Past:
        """The record that users go on with."""
        from hpcrowd.agents.populations.past import Past

        return Past(self.state.jobs, self.state.now, self.state.clock, self.likeness)

    @cached_property
    def _stretches(self) -> Stretches | None:
        """What users do after the first block; None if each goes on by itself."""
        from hpcrowd.agents.populations.turnover import Stretches

        begin = self.state.now + self.past.likeness.block * DAY
        found = Stretches(self.past, begin, self.state.now + self.horizon, self.turnover)
        return found if self.users == "learned" and found.enough else None

    @cached_property
    def _maintenance(self) -> list[Any]:
        """The announced times in which no job may run; a machine of nodes has its own."""
        if self.machine is not None or not self.state.closed:
            return []
        from hpcrowd.environment.platform.changes import Maintenance

        now = self.state.now
        return [
            Maintenance(max(start, now), end, announced=max(start - now, 0), jobs="run")
            for start, end in self.state.closed
            if end > now
        ]

    @cached_property
    def remembered(self) -> Int64s:
        """Rows of the jobs that are over and that the scheduler, or a predictor, remembers."""
        from hpcrowd.environment.schedulers.base import Scheduler
        from hpcrowd.environment.schedulers.estimates import Predictor, parse_estimates
        from hpcrowd.environment.schedulers.names import scheduler_for

        policy, estimates = self.scheduler, self.estimates
        if isinstance(policy, str):
            policy = scheduler_for(policy, self.state.jobs.names)
        if isinstance(estimates, str):
            estimates = parse_estimates(estimates)
        remembers = policy.remembers or policy.nodes or type(policy).go_on is not Scheduler.go_on
        if not remembers and not isinstance(estimates, Predictor):
            return np.zeros(0, np.int64)
        over, jobs = self.state.over, self.state.jobs
        return over[jobs.recorded_end[over] > self.state.now - REMEMBERED]

    @cached_property
    def _begin(self) -> JobTable:
        """The table that each future begins with: rows, asked jobs, what is remembered."""
        whole = self.with_asked.jobs
        rows = np.concatenate((self.rows, self.asked_rows, self.remembered))
        jobs = JobTable(len(rows))
        jobs.names = whole.names
        for column in KEPT:
            jobs.matrix[column] = whole.column(column)[rows]
        past = np.arange(len(rows) - len(self.remembered), len(rows))
        jobs.recorded_end[past] = whole.recorded_end[self.remembered]
        jobs.run_time[past] = jobs.recorded_end[past] - jobs.recorded_start[past]
        if whole.requests is not None:
            jobs.requests = whole.requests.take(rows)
        return jobs

    @cached_property
    def _held(self) -> Int64s:
        """Rows in the table of a future of the jobs that do not start by themselves."""
        return np.flatnonzero(np.isin(self.rows, list(self.state.held)))

    @cached_property
    def _placed(self) -> dict[int, Any]:
        """What is known of jobs on a machine of nodes, by row in the table of a future."""
        placed = self.state.placed
        return {here: placed[row] for here, row in enumerate(self.rows.tolist()) if row in placed}

    @cached_property
    def _pending(self) -> dict[int, Int64s]:
        """The rows of each user's jobs in the table of a future, by number."""
        users = self._begin.user[: len(self.rows)].copy()
        users[self._held] = UNKNOWN - 1  # nobody knows when they end
        return {number: np.flatnonzero(users == number) for number in np.unique(users).tolist()}

    @cached_property
    def _parents(self) -> dict[int, tuple[Parent, ...]]:
        """What held jobs wait for that will join the queue, by row in the table of a future."""
        here = {row: place for place, row in enumerate(self.rows.tolist())}
        return {
            here[row]: tuple(one._replace(row=here[one.row]) for one in parents)
            for row, parents in self.awaits.items()
        }

    def behaviour(self) -> Behaviour[GeneratedUser] | None:
        """Return what users do in one future; None for users who submit nothing."""
        if self.users == "none":
            return None
        from hpcrowd.agents.populations import going_on as G

        past = self.past
        if self.users == "rigid":
            return G.OnAsRecorded()
        if self.users == "think-time":
            return G.OnInClosedLoop()
        if self.users == "think-time-windows":
            return G.OnInClosedLoop(past.profiles)
        if self.users == "learned" and self.model is not None:
            return G.OnLearned(past, self.model)
        raise QuantityError(f"users {self.users!r}: cannot go on from a state; choose {USERS}")

    def simulate(
        self, number: int, seed: int = 0, watch: Callable[[Any], Any] | None = None
    ) -> Future:
        """Return the future of a number and a seed, which is that of all futures.

        ``watch`` is called with the simulation before it runs.
        """
        from hpcrowd.environment.cluster import ClusterSpec
        from hpcrowd.environment.platform.part import Platform
        from hpcrowd.environment.schedulers.on_nodes.in_use import MachineInUse
        from hpcrowd.environment.simulation import Simulation
        from hpcrowd.environment.state.fitted import Fitted
        from hpcrowd.environment.state.state import begin_from

        state, streams = self.state, Streams(seed).within("future", number)
        now, until = state.now, state.now + self.horizon
        jobs = self._begin.copy()
        present = len(self.rows) + len(self.asked_rows)
        running = np.arange(len(state.running))
        waiting = np.setdiff1d(np.arange(len(running), present), self._held)
        over = np.arange(present, len(jobs))
        jobs.run_time[:present] = self.run_times.draw(streams.generator("run times"))
        missing = jobs.requested_time == UNKNOWN
        jobs.requested_time[missing] = jobs.run_time[missing]
        own = int(streams.sequence("simulation").generate_state(1)[0])
        scheduler, delays, late = self._fresh(self.scheduler), None, np.zeros(len(jobs), np.int64)
        if isinstance(scheduler, Fitted):
            scheduler, delays = scheduler.drawn(streams.generator("scheduler"))
            waited = now - jobs.recorded_submit[waiting]
            late[waiting] = delays.of_waiting(jobs.user[waiting], waited)
        cluster = ClusterSpec(
            self.processors or state.processors - state.down,
            scheduler,
            estimates=self._fresh(self.estimates),
        )
        parts: list[Part] = [Platform([*self.platform, *self._maintenance])]
        if self.machine is not None:
            parts.append(MachineInUse(self.machine))
        simulation = Simulation(
            jobs,
            cluster,
            overrun=self.overrun,  # type: ignore[arg-type]
            clock=state.clock,
            seed=own,
            parts=parts,
        )
        at_once = waiting[late[waiting] == 0]
        begin_from(simulation, now, running, at_once, over, placed=self._placed)
        if delays is not None:
            kept = waiting[late[waiting] > 0]
            simulation.cluster.submit(kept, now + late[kept])
        self._hold(simulation, delays)
        self._add_users(simulation, streams, until)
        probe = _Probe(simulation, now, self.horizon, self.step)
        if watch is not None:
            watch(simulation)
        if self.jobs_only:
            coming = np.concatenate((waiting, np.array(sorted(self._parents), np.int64)))
            while simulation.time < until:
                simulation.run(until=min(simulation.time + LOOK_EVERY, until))
                unfinished = jobs.state[coming] == Outcome.UNFINISHED
                if not ((jobs.start[coming] == UNKNOWN) & unfinished).any():
                    break
        else:
            simulation.run(until=until)
        return probe.future(number, present, len(over), until)

    @staticmethod
    def _fresh(given: Any) -> Any:
        """Return a policy for one future; each has its own."""
        return given if isinstance(given, str) else deepcopy(given)

    def _hold(self, simulation: Simulation, delays: Delays | None = None) -> None:
        """Let jobs that wait for others join the queue when these are over, new ones delayed."""
        if not self._parents and delays is None:
            return
        from hpcrowd.environment.holds.held import hold
        from hpcrowd.environment.holds.rules import Rules

        size = len(simulation.jobs)
        rules = Rules(np.zeros(size, np.int64), np.zeros(size, np.bool_), parents=self._parents)
        rules.window = delays
        hold(simulation, rules)
        if self._parents:
            simulation.submit(_Nobody(), np.array(sorted(self._parents)), self.state.now)

    def _add_users(self, simulation: Simulation, streams: Streams, until: int) -> None:
        from hpcrowd.agents.populations.going_on import GoingOnUser

        behaviour = self.behaviour()
        if behaviour is None:
            return
        past, nobody = self.past, np.zeros(0, np.int64)
        # What has not ended in the record will have run as long as it is drawn to here.
        past.set_run_times(self.rows, simulation.jobs.run_time[: len(self.rows)])
        whose, when = past.first_moments(streams.generator("moments"))
        numbers = past.users.tolist()
        stretches = self._stretches
        known: dict[int, Later] = {}
        others: list[Later] = []
        first, nobody_later = until, None
        if stretches is not None:
            before = stretches.submit_before(whose, when)
            known, others = stretches.draw(streams.generator("stretches"), before)
            first, nobody_later = stretches.begin, stretches.nobody()
        members: list[tuple[int, int, int | None, Later | None]] = [
            (
                numbers[place],
                place if whose[place] == UNKNOWN else int(whose[place]),
                None if whose[place] == UNKNOWN else int(when[place]),
                known.get(place, nobody_later),
            )
            for place in range(len(numbers))
            if whose[place] != UNKNOWN or place in known
        ]
        next_number = max(numbers, default=0) + 1
        new = past.new_users(first, streams.generator("new users"))
        for place, moment, later in (
            *((place, moment, nobody_later) for place, moment in new),
            *((later.place, None, later) for later in others),
        ):
            members.append((next_number, place, moment, later))
            next_number += 1
        for number, place, moment, later in members:
            user = GoingOnUser(
                simulation, behaviour, number, past, place, moment,
                self._pending.get(number, nobody), horizon=until, later=later,
            )  # fmt: skip
            behaviour.begin(user)


class _Nobody:
    """The one who submitted jobs that were held; what it does next is known from the past."""

    def on_finished(self, unit: int, now: int) -> None:
        """Do nothing."""


class _Probe:
    """Measures a future after it has run."""

    def __init__(self, simulation: Simulation, now: int, horizon: int, step: int) -> None:
        self.simulation, self.now = simulation, now
        self.edges = now + np.arange(0, horizon + step, step)

    def future(self, number: int, present: int, past: int, until: int) -> Future:
        """Return what happened to the first jobs, and to those behind what is past."""
        jobs = self.simulation.jobs
        until = min(until, max(self.simulation.time, self.now + 1))
        start, end = jobs.start, jobs.end
        begun = (start != UNKNOWN) & (start <= until)
        start = np.where(begun, start, UNKNOWN)
        end = np.where(begun & (end <= until), end, UNKNOWN)
        edges = self.edges
        busy = held_between(
            np.maximum(start[begun], self.now),
            np.where(end[begun] == UNKNOWN, edges[-1], end[begun]),
            jobs.processors[begun],
            edges,
        )
        enqueued = jobs.enqueued
        there = (enqueued != UNKNOWN) & (enqueued <= until)
        leaves = np.where(start[there] == UNKNOWN, np.iinfo(np.int64).max, start[there])
        queued = present_at(enqueued[there], leaves, edges[1:])
        asked = present_at(enqueued[there], leaves, edges[1:], jobs.processors[there])
        start = self._first(start, until)
        new = np.arange(len(jobs)) >= present + past
        sent = new & (jobs.submit != UNKNOWN) & (jobs.submit <= until)
        waited = np.where(start[sent] == UNKNOWN, UNKNOWN, start[sent] - jobs.submit[sent])
        return Future(
            number, start[:present], end[:present], busy, queued, asked,
            jobs.submit[sent].copy(), waited, jobs.processors[sent].copy(),
        )  # fmt: skip

    def _first(self, start: Int64s, until: int) -> Int64s:
        """Return the first starts of jobs; the table has the last ones of those that were stopped.

        Only machines of nodes stop jobs for others, and remember all runs of a job.
        """
        policy: Any = self.simulation.cluster.engine.scheduler
        if not policy.nodes:
            return start
        found = start.copy()
        for run in reversed(policy.ledger):
            if run.start <= until:
                found[run.row] = run.start
        return found


def held_between(start: Int64s, end: Int64s, processors: Int64s, edges: Int64s) -> Floats:
    """Return the mean number of processors that jobs hold between two edges each."""
    used = np.zeros(len(edges))
    order_start, order_end = np.argsort(start), np.argsort(end)
    for order, times, sign in ((order_start, start, 1), (order_end, end, -1)):
        at, width = times[order], processors[order].astype(np.float64)
        place = np.searchsorted(at, edges, side="left")
        sums = np.concatenate(([0.0], np.cumsum(width)))
        moments = np.concatenate(([0.0], np.cumsum(width * at)))
        # The area under a step at t until an edge e is width * (e - t).
        used += sign * (sums[place] * edges - moments[place])
    return np.diff(used) / np.diff(edges)


# ---- run times ----------------------------------------------------------------------------------

#: Weight of one candidate of each kind; the last one is the weight of all jobs of other users.
WEIGHTS = (1.0, 0.5, 0.2, 1.0)

#: Jobs after which the weight of an own job has fallen by the factor e, as users' work changes.
MEMORY = 60.0

#: Latest jobs of a user, and of all users, that are looked at.
OWN, COMMON = 300, 20_000

#: Candidates of other users, at most.
OTHERS = 200

#: Probability that jobs alike (same user, processors and request) get the same place in their
#: distribution, since they are often runs of the same program on like inputs.
ALIKE = 0.5

#: Jobs that have outrun all that is known, and their request, go on for a share of what they have
#: run already, uniformly up to this.
BEYOND = 1.0


@dataclass(frozen=True)
class RunTimes:
    """Distributions of the run times of jobs that run or wait, from what such jobs did before.

    A job is like those that are over in four ways, from the closest on: the same user, processors
    and requested time; the same user and requested time; the same user; the same requested time, of
    any user. All of them are candidates, closer ones with larger weights; where requested times
    differ, the share of the request that was used is taken over. Of a job that has run for some
    time only candidates count that ran longer: the weights then say by themselves how sure its
    user's other jobs make us.

    The weights are our choice, as in :mod:`hpcrowd.environment.schedulers.predictors.history`
    several templates are used at once (Smith, Foster and Taylor, JSSPP 1998); a prediction there is
    a mean, here it is the whole distribution.
    """

    rows: Int64s  #: The jobs, rows in the table of the state.
    #: For each of them possible run times in ascending order, s, and the cumulative weights, up to
    #: 1.
    values: list[Floats]
    weights: list[Floats]
    group: Int64s  #: For each of them a number that jobs alike have in common.

    @classmethod
    def of(cls, state: ClusterState, rows: Int64s) -> RunTimes:
        """Learn from the jobs of a state that are over, for jobs in some rows."""
        jobs, over = state.jobs, state.over
        started = jobs.recorded_start[rows]
        elapsed = np.where(started == UNKNOWN, -1, state.now - started)
        ran = over[jobs.recorded_start[over] != UNKNOWN]
        ran = ran[np.argsort(jobs.recorded_end[ran], kind="stable")][-COMMON:]
        lasted = (jobs.recorded_end[ran] - jobs.recorded_start[ran]).astype(np.float64)
        user, processors = jobs.user[ran], jobs.processors[ran]
        asked = jobs.requested_time[ran]
        keys = np.stack((jobs.user[rows], jobs.requested_time[rows], jobs.processors[rows]))
        unique, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        # By first appearance: more jobs at the end do not change what those before them draw.
        order = np.argsort(first)
        unique, group = unique[:, order], np.argsort(order)[group]
        known = [
            _candidates(one[0], one[1], one[2], user, asked, processors, lasted)
            for one in unique.T.tolist()
        ]
        values, weights = [], []
        for job, which in enumerate(group.tolist()):
            found = _beyond(known[which], int(elapsed[job]), int(unique[1, which]))
            values.append(found[0])
            weights.append(found[1])
        return cls(rows, values, weights, group)

    def draw(self, stream: np.random.Generator) -> Int64s:
        """Return one run time for each job, s, at least 1, shape (jobs,)."""
        count = len(self.rows)
        each, together, which = stream.spawn(3)  # each has a number for every job
        own = each.random(count)
        common = together.random(int(self.group.max(initial=-1)) + 1)
        places = np.where(which.random(count) < ALIKE, common[self.group], own)
        drawn = [
            values[min(int(np.searchsorted(weights, place)), len(values) - 1)]
            for values, weights, place in zip(
                self.values, self.weights, places.tolist(), strict=True
            )
        ]
        return np.maximum(np.floor(np.array(drawn, np.float64) + 0.5).astype(np.int64), 1)


def _candidates(
    who: int, request: int, width: int, user: Int64s, asked: Int64s, processors: Int64s,
    lasted: Floats,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Return the run times of jobs that a job is like, s, and their weights."""
    mine = np.flatnonzero(user == who)[-OWN:]
    alike = asked[mine] == request
    weight = np.where(alike, np.where(processors[mine] == width, *WEIGHTS[:2]), WEIGHTS[2])
    weight *= np.exp(-np.arange(len(mine))[::-1] / MEMORY)
    others = np.flatnonzero(asked == request)[-OTHERS:]
    if not len(others):
        others = np.arange(len(asked))[-OTHERS:]
    rows = np.concatenate((mine, others))
    times = lasted[rows]
    if request > 0:
        other = (asked[rows] > 0) & (asked[rows] != request)
        times = np.where(other, times * request / np.where(other, asked[rows], 1), times)
    common = np.full(len(others), WEIGHTS[3] / max(len(others), 1))
    return times, np.concatenate((weight, common))


def _beyond(known: tuple[Floats, Floats], elapsed: int, request: int) -> tuple[Floats, Floats]:
    """Return the run times that are longer than what a job has run already, with sums of weights.

    If none is, they are spread evenly up to the request, or beyond it.
    """
    times, weights = known
    longer = times >= elapsed + 0.5  # what rounds to no more has passed
    if longer.any():
        times, weights = times[longer], weights[longer]
    else:
        most = request if request > elapsed else elapsed * (1 + BEYOND) + 60
        times = np.linspace(max(elapsed, 0) + 1, most, 20)
        weights = np.ones(len(times))
    order = np.argsort(times, kind="stable")
    sums = np.cumsum(weights[order])
    return times[order], sums / sums[-1]
