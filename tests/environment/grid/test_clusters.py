"""Several clusters in lock-step, on random work of users who go from cluster to cluster.

Engines are compared with :func:`reference`, another simulation of the same rules: one heap, the
phases of an instant spelled out, FCFS. Users (:class:`Wanderer`) spread the jobs of a unit over
clusters and move on when they had to wait; some submit by an alarm clock; think times may be zero,
jobs renounced, without run time, killed, or larger than the cluster they go to.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

import numpy as np
import pytest
from hpcrowd.environment import FCFS, ClusterSpec, JobTable, Simulation, State
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.grid.grid_cases import Place, places

OUTCOME = ("submit", "start", "end", "cluster", "state")


class Job(NamedTuple):
    """A job of a unit."""

    run: int
    slack: int  # requested beyond the run time, s
    processors: int
    after: int  # s after the unit's first second
    shift: int  # clusters further than the unit's
    renounced: bool


class Step(NamedTuple):
    """A unit: submitted ``think`` seconds after the last one had ended, maybe by an alarm clock."""

    think: int
    alarm: bool
    jobs: list[Job]


Users = list[list[Step]]
Placed = list[tuple[int, int, int]]  # row, cluster and second of each job of a unit

some_jobs = st.builds(
    Job,
    run=st.sampled_from([0, 0, 1, 2, 5]),
    slack=st.integers(-2, 4),
    processors=st.integers(1, 5),
    after=st.sampled_from([0, 0, 1, 3]),
    shift=st.integers(0, 2),
    renounced=st.sampled_from([False, False, False, True]),
)
some_steps = st.builds(
    Step, st.sampled_from([0, 0, 1, 3]), st.booleans(), st.lists(some_jobs, min_size=1, max_size=3)
)
crowds = st.lists(st.lists(some_steps, min_size=1, max_size=5), min_size=1, max_size=5)
overruns = st.sampled_from(["keep", "kill"])
rooms = st.sampled_from([1, 2, 5, 1024])


class Wanderer:
    """A user who submits unit after unit, and goes to the next cluster when it had to wait."""

    def __init__(self, number: int, units: list[tuple[Step, list[int]]], clusters: int) -> None:
        self.number = number
        self.units = units
        self.clusters = clusters
        self.cluster = number % clusters
        self.done = 0

    def next(self, now: int, waited: bool) -> tuple[Step, Placed] | None:
        """Return the next unit and where and when its jobs go; None when all is done."""
        if self.done == len(self.units):
            return None
        step, rows = self.units[self.done]
        self.done += 1
        self.cluster = (self.cluster + waited) % self.clusters
        return step, [
            (row, (self.cluster + job.shift) % self.clusters, now + step.think + job.after)
            for row, job in zip(rows, step.jobs, strict=True)
        ]


class Settler(Wanderer):
    """A user who never leaves a cluster."""

    def next(self, now: int, waited: bool) -> tuple[Step, Placed] | None:
        """Return the next unit, all of it for the same cluster."""
        unit = super().next(now, False)
        return unit and (unit[0], [(row, self.cluster, at) for row, _, at in unit[1]])


def cast(users: Users, clusters: int, kind: type[Wanderer]) -> tuple[JobTable, list[Wanderer]]:
    """The users and their jobs, numbered by round: everybody's first unit comes first."""
    jobs = JobTable()
    rows: dict[tuple[int, int], list[int]] = {}
    for turn in range(max(len(steps) for steps in users)):
        for user, steps in enumerate(users):
            for job in steps[turn].jobs if turn < len(steps) else ():
                request = max(job.run + job.slack, 0)
                row = jobs.append(
                    1, run_time=job.run, requested_time=request, processors=job.processors
                )
                jobs.state[row] = State.RENOUNCED if job.renounced else State.UNFINISHED
                rows.setdefault((user, turn), []).append(int(row[0]))
    return jobs, [
        kind(user, [(step, rows[user, turn]) for turn, step in enumerate(steps)], clusters)
        for user, steps in enumerate(users)
    ]


class Player:
    """Lets a wanderer take part in a simulation."""

    def __init__(self, model: Simulation, user: Wanderer, log: list[tuple[int, int]]) -> None:
        self.model, self.user, self.log = model, user, log
        self.last = -1

    def go_on(self, now: int) -> None:
        """Submit the next unit, or set the alarm clock for it."""
        jobs = self.model.jobs
        waited = self.last >= 0 and bool(jobs.start[self.last] > jobs.submit[self.last])
        unit = self.user.next(now, waited)
        if unit is not None and unit[0].alarm:
            self.model.call_at(now + unit[0].think, self.submit, unit[1])
        elif unit is not None:
            self.submit(unit[1])

    def submit(self, placed: Placed) -> None:
        """Submit the jobs."""
        self.last = placed[0][0]
        self.model.add_unit(self, np.array([row for row, _, _ in placed]))
        clusters = list(self.model.clusters.values())
        for row, cluster, at in placed:
            clusters[cluster].submit(row, at)

    def on_finished(self, unit: int, now: int) -> None:
        """Note it, continue."""
        self.log.append((now, self.user.number))
        self.go_on(now)


def play(
    jobs: JobTable,
    users: list[Wanderer],
    clusters: list[Place],
    overrun: Any = "keep",
    *,
    plain: bool = False,
    room: int = 1024,
    stops: tuple[int, ...] = (),
    events: int = 50_000,
) -> tuple[dict[str, list[int]], list[tuple[int, int]]]:
    """What happens to every job, and which user heard of an end when, in a simulation."""
    renounced = jobs.state.copy()

    def policy(place: Place) -> Any:
        return FCFS() if place.scheduler == "own" else place.scheduler

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
        patch.setattr("hpcrowd.environment.simulation.SLICE", events)
        home, *more = clusters
        others = {
            f"other {number}": ClusterSpec(place.processors, policy(place), place.speed)
            for number, place in enumerate(more)
        }
        model = Simulation(
            jobs, home.processors, policy(home), overrun=overrun, plain=plain, others=others
        )
        jobs.state[:] = renounced
        log: list[tuple[int, int]] = []
        for user in users:
            Player(model, user, log).go_on(0)
        for stop in stops:
            model.run(until=stop)
            assert {stop} == {cluster.engine.now for cluster in model.clusters.values()}
        model.run()
    return {name: getattr(jobs, name).tolist() for name in OUTCOME}, log


ENDS, ALARMS, ARRIVALS = range(3)


def reference(
    jobs: JobTable, users: list[Wanderer], clusters: list[Place], overrun: str
) -> tuple[dict[str, list[int]], list[tuple[int, int]]]:
    """The same by one heap of (second, phase, number, what), under FCFS."""
    need, state = jobs.processors.tolist(), jobs.state.tolist()
    submit, start, end, cluster = ([-1] * len(jobs) for _ in range(4))
    free = [place.processors for place in clusters]
    queues: list[list[int]] = [[] for _ in clusters]
    target: dict[int, int] = {}
    unit_of: dict[int, list[Any]] = {}  # user and jobs left
    last: dict[int, int] = {}
    heap: list[tuple[int, int, int, Any]] = []
    log: list[tuple[int, int]] = []

    def take(now: int, phase: int) -> Iterator[tuple[int, Any]]:
        while heap and heap[0][:2] == (now, phase):
            yield heapq.heappop(heap)[2:]

    def submit_all(user: Wanderer, placed: Placed) -> None:
        last[user.number] = placed[0][0]
        unit = [user, len(placed)]
        for row, place, at in placed:
            target[row], unit_of[row] = place, unit
            heapq.heappush(heap, (at, ARRIVALS, row, None))

    def go_on(user: Wanderer, now: int) -> None:
        row = last.get(user.number, 0)
        unit = user.next(now, user.number in last and start[row] > submit[row])
        if unit is not None and unit[0].alarm:
            heapq.heappush(heap, (now + unit[0].think, ALARMS, user.number, (user, unit[1])))
        elif unit is not None:
            submit_all(user, unit[1])

    def lasts(row: int) -> int:
        times = [int(jobs.run_time[row]), int(jobs.requested_time[row])]
        speed = Fraction(clusters[cluster[row]].speed)
        run, request = (max(floor(t / speed + Fraction(1, 2)), 1) if t else 0 for t in times)
        if overrun == "kill" and run > request:
            state[row] = State.KILLED
            return request
        state[row] = State.COMPLETED
        return run

    for user in users:
        go_on(user, 0)
    while heap:
        now = heap[0][0]
        active, over = set(), []
        for row, _ in take(now, ENDS):
            free[cluster[row]] += need[row]
            active.add(cluster[row])
            over.append(row)
        while True:
            heard = []
            for row in over:
                unit_of[row][1] -= 1
                if unit_of[row][1] == 0:
                    heard.append(unit_of[row][0])
            for user in heard:
                log.append((now, user.number))
                go_on(user, now)
            for _, (user, placed) in take(now, ALARMS):
                submit_all(user, placed)
            arrived = [row for row, _ in take(now, ARRIVALS)]
            if not arrived:
                break
            over = []
            for row in arrived:
                place = target[row]
                active.add(place)
                if state[row] == State.RENOUNCED:
                    over.append(row)
                    continue
                submit[row], cluster[row] = now, place
                if need[row] > clusters[place].processors:
                    state[row] = State.REJECTED
                    over.append(row)
                else:
                    queues[place].append(row)
        for place in sorted(active):
            queue = queues[place] = sorted(queues[place], key=lambda row: (submit[row], row))
            while queue and need[queue[0]] <= free[place]:
                row = queue.pop(0)
                free[place] -= need[row]
                start[row], end[row] = now, now + lasts(row)
                heapq.heappush(heap, (end[row], ENDS, row, None))
    return dict(zip(OUTCOME, (submit, start, end, cluster, state), strict=True)), log


@settings(max_examples=300)
@given(crowds, places("fcfs", "own"), overruns, rooms)
def test_engines_equal_the_reference(
    users: Users, clusters: list[Place], overrun: str, room: int
) -> None:
    """Compiled, plain and mixed engines do what one heap does, and users hear in its order."""
    expected = reference(*cast(users, len(clusters), Wanderer), clusters, overrun)
    for plain in (False, True):
        found = cast(users, len(clusters), Wanderer)
        assert expected == play(*found, clusters, overrun, plain=plain, room=room)


@settings(max_examples=200)
@given(
    crowds,
    places("fcfs", "easy", "recorded", "own"),
    overruns,
    rooms,
    st.lists(st.integers(0, 6), max_size=8),
    st.integers(1, 4),
)
def test_compiled_equals_plain_with_stops_on_the_way(
    users: Users,
    clusters: list[Place],
    overrun: str,
    room: int,
    stops: list[int],
    events: int,
) -> None:
    """Under any schedulers, and run in pieces, compiled engines do what plain ones do at once."""
    expected = play(*cast(users, len(clusters), Wanderer), clusters, overrun, plain=True)
    way = tuple(int(second) for second in np.cumsum(stops))
    for plain in (False, True):
        found = cast(users, len(clusters), Wanderer)
        pieces = {"room": room, "stops": way, "events": events}
        assert expected == play(*found, clusters, overrun, plain=plain, **pieces)


@given(crowds, places("fcfs", "easy", "recorded", "own"), overruns, st.booleans())
def test_who_never_leaves_does_not_notice_the_others(
    users: Users, clusters: list[Place], overrun: str, plain: bool
) -> None:
    """Clusters with users of their own do, job for job, what each does in a simulation alone."""
    together, log = play(*cast(users, len(clusters), Settler), clusters, overrun, plain=plain)
    for number, place in enumerate(clusters):
        jobs, crowd = cast(users, 1, Settler)
        for times in (jobs.run_time, jobs.requested_time):
            scaled = [max(floor(time / place.speed + 0.5), 1) if time else 0 for time in times]
            times[:] = scaled
        mine = crowd[number :: len(clusters)]
        alone, heard = play(jobs, mine, [place], overrun, plain=plain)
        rows = [row for user in mine for _, unit in user.units for row in unit]
        for name in ("submit", "start", "end", "state"):
            expected = [alone[name][row] for row in rows]
            assert expected == [together[name][row] for row in rows]
        assert heard == [(now, user) for now, user in log if user % len(clusters) == number]


@given(crowds, places("fcfs", "easy", "own"), overruns, st.booleans())
def test_jobs_in_are_jobs_out_and_fit(
    users: Users, clusters: list[Place], overrun: str, plain: bool
) -> None:
    """Every job ends eventually, every user hears of every unit, no cluster holds too much."""
    jobs, crowd = cast(users, len(clusters), Wanderer)
    renounced = jobs.state == State.RENOUNCED
    found, log = play(jobs, crowd, clusters, overrun, plain=plain)
    assert sum(len(user.units) for user in crowd) == len(log)
    assert State.UNFINISHED not in found["state"]
    assert renounced.tolist() == (jobs.cluster == -1).tolist()
    for number, place in enumerate(clusters):
        mine = jobs.cluster == number
        rejected = mine & (jobs.processors > place.processors)
        assert rejected.tolist() == (mine & (jobs.state == State.REJECTED)).tolist()
        for time in set(jobs.start[mine & ~rejected].tolist()):
            runs = mine & (jobs.start <= time) & (jobs.end > time) & (jobs.start >= 0)
            assert jobs.processors[runs].sum() <= place.processors
