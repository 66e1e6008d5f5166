"""Random crowds on clusters, with or without a broker, as the product and an oracle see them.

Users spread the jobs of a unit over clusters and the grid, and move on, further when they had to
wait; some submit by an alarm clock; think times may be zero, jobs renounced, without run time,
killed, or larger than the cluster they go to.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hpcrowd import ClusterSpec, JobTable, Simulation, State
from hpcrowd.grids import Grid
from hpcrowd.policies import FCFS
from hypothesis import strategies as st

from tests.environment.grid import grid_oracle as oracle
from tests.environment.grid.grid_oracle import Node, Oracle, Placed

OUTCOME = ("submit", "enqueued", "start", "end", "cluster", "state")

BROKERS = ("first-fit", "worst-fit", "least-loaded", "fastest-completion")


class Job(NamedTuple):
    """A job of a unit."""

    run: int
    slack: int  # requested beyond the run time, s
    processors: int
    after: int  # s after the unit's first second
    shift: int  # places further than the unit's
    renounced: bool


class Step(NamedTuple):
    """A unit: submitted ``think`` seconds after the last one had ended, maybe by an alarm clock."""

    think: int
    alarm: bool
    jobs: list[Job]


Users = list[list[Step]]
Found = tuple[dict[str, list[int]], list[tuple[int, int]]]

some_jobs = st.builds(
    Job,
    run=st.sampled_from([0, 0, 1, 2, 5, 9]),
    slack=st.integers(-2, 4),
    processors=st.integers(1, 5),
    after=st.sampled_from([0, 0, 1, 3]),
    shift=st.integers(0, 3),
    renounced=st.sampled_from([False, False, False, False, True]),
)
some_steps = st.builds(
    Step, st.sampled_from([0, 0, 1, 3]), st.booleans(), st.lists(some_jobs, min_size=1, max_size=4)
)
crowds = st.lists(st.lists(some_steps, min_size=1, max_size=5), min_size=1, max_size=6)
#: None is no broker at all.
brokers = st.sampled_from([None, *BROKERS])
overruns = st.sampled_from(["keep", "kill"])
rooms = st.sampled_from([1, 2, 5, 1024])


def places(*schedulers: str) -> st.SearchStrategy[list[ClusterSpec]]:
    """One to three clusters; the nodes of the first have the speed that jobs are made for."""
    policy, speed = st.sampled_from(schedulers), st.sampled_from([0.5, 1.0, 1.5, 2.0])
    home = st.builds(ClusterSpec, st.integers(2, 5), policy)
    others = st.lists(st.builds(ClusterSpec, st.integers(1, 5), policy, speed), max_size=2)
    return st.builds(lambda first, more: [first, *more], home, others)


class User:
    """Goes on by a place with each unit, by two when it had to wait."""

    def __init__(self, number: int, steps: list[Step], rows: list[list[int]], count: int) -> None:
        self.number, self.count = number, count
        self.units = list(zip(steps, rows, strict=True))
        self.place, self.done = number, 0

    def next(self, now: int, waited: bool) -> tuple[int | None, Placed] | None:
        """Return the next unit, and the second of an alarm at which it is submitted."""
        if self.done == len(self.units):
            return None
        self.place += waited + (self.done > 0)
        step, rows = self.units[self.done]
        self.done += 1
        alarm = now + step.think if step.alarm else None
        return alarm, [
            (row, (self.place + job.shift) % self.count, now + step.think + job.after)
            for row, job in zip(rows, step.jobs, strict=True)
        ]


class Crowd:
    """Users with their jobs, numbered by round; they wander over the places."""

    def __init__(self, users: Users, count: int) -> None:
        jobs: list[Job] = []
        rows: list[list[list[int]]] = [[] for _ in users]
        for turn in range(max(len(steps) for steps in users)):
            for user, steps in enumerate(users):
                for job in steps[turn].jobs if turn < len(steps) else ():
                    if turn == len(rows[user]):
                        rows[user].append([])
                    rows[user][turn].append(len(jobs))
                    jobs.append(job)
        self.jobs = jobs
        self.users = [User(user, steps, rows[user], count) for user, steps in enumerate(users)]

    def table(self) -> JobTable:
        """Return the jobs."""
        made = JobTable()
        run, slack, processors, _, _, renounced = zip(*self.jobs, strict=True)
        request = np.maximum(np.add(run, slack), 0)
        made.append(len(run), run_time=run, requested_time=request, processors=processors)
        made.state[np.array(renounced)] = State.RENOUNCED
        return made


class Player:
    """Lets a user take part in a simulation."""

    def __init__(self, model: Simulation, user: User, log: list[tuple[int, int]]) -> None:
        self.model, self.user, self.log, self.last = model, user, log, -1
        self.go_on(0)

    def go_on(self, now: int) -> None:
        """Submit the next unit, or set the alarm clock for it."""
        jobs, last = self.model.jobs, self.last
        unit = self.user.next(now, last >= 0 and bool(jobs.start[last] > jobs.submit[last]))
        if unit is not None and unit[0] is not None:
            self.model.call_at(unit[0], self.submit, unit[1])
        elif unit is not None:
            self.submit(unit[1])

    def submit(self, placed: Placed) -> None:
        """Submit the jobs."""
        self.last = placed[0][0]
        self.model.add_unit(self, np.array([row for row, _, _ in placed]))
        sites = [*self.model.clusters, "grid"]
        for row, place, at in placed:
            self.model.place(sites[place]).submit(row, at)

    def on_finished(self, unit: int, now: int) -> None:
        """Note it, continue."""
        self.log.append((now, self.user.number))
        self.go_on(now)


def play(
    crowd: Crowd,
    places: list[ClusterSpec],
    broker: str | None = None,
    overrun: Any = "keep",
    *,
    plain: bool = False,
    estimates: str = "requested",
    stops: Sequence[int] = (),
    room: int = 1024,
    events: int = 50_000,
) -> Found:
    """What happens to every job, and which user heard of an end when, in a simulation.

    Policies that a broker cannot ask, own ones and the recorded schedule, are FCFS in a grid.
    """
    jobs = crowd.table()
    renounced = jobs.state.copy()
    own: dict[str, Any] = {"own": FCFS()} if broker is None else {"own": "fcfs", "recorded": "fcfs"}
    clusters = {
        name: replace(one, scheduler=own.get(one.scheduler, one.scheduler), estimates=estimates)
        for name, one in zip(("home", "other 0", "other 1"), places, strict=False)
    }
    parts = [] if broker is None else [Grid(broker)]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("engine.compiled.FIRST_ROOM", "grid.compiled.FIRST_ROOM",
                     "grid.compiled.FIRST_OVER"):  # fmt: skip
            patch.setattr(f"hpcrowd.environment.{name}", room)
        patch.setattr("hpcrowd.environment.simulation.SLICE", events)
        model = Simulation(jobs, clusters, overrun=overrun, plain=plain, parts=parts)
        jobs.state[:] = renounced
        log: list[tuple[int, int]] = []
        for user in crowd.users:
            Player(model, user, log)
        for stop in stops:
            model.run(until=int(stop))
            assert {stop} == {cluster.engine.now for cluster in model.clusters.values()}
        model.run()
    return {name: getattr(jobs, name).tolist() for name in OUTCOME}, log


def foretold(crowd: Crowd, places: list[ClusterSpec], broker: str | None, overrun: str) -> Found:
    """The same of the oracle."""
    own = {"own": "fcfs"} | ({} if broker is None else {"recorded": "fcfs"})
    jobs = [
        oracle.Job(0, job.run, max(job.run + job.slack, 0), (job.processors,), -1, job.renounced)
        for job in crowd.jobs
    ]
    nodes = [
        Node(one.processors, own.get(one.scheduler, one.scheduler), speed=one.speed)
        for one in places
    ]
    told = Oracle(jobs, nodes, broker or "first-fit", kill=overrun == "kill", users=crowd.users)
    told.run()
    found = told.submit, told.enqueued, told.start, told.end, told.place
    state = [int(State[name]) for name in told.state]
    return dict(zip(OUTCOME, (*found, state), strict=True)), told.log
