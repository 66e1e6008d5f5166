"""Random grids for tests: users who go from place to place, and one heap that says what happens."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

import numpy as np
import pytest
from hpcrowd.environment import ClusterSpec, GridSpec, JobTable, Simulation, State
from hypothesis import strategies as st

OUTCOME = ("submit", "enqueued", "start", "end", "cluster", "state")


class Job(NamedTuple):
    """A job of a unit."""

    run: int
    slack: int  # requested beyond the run time, s
    processors: int
    after: int  # s after the unit's first second
    to: int  # clusters further than the user's; the place after the last is the grid
    renounced: bool


class Step(NamedTuple):
    """A unit, submitted ``think`` seconds after the last one had ended."""

    think: int
    jobs: list[Job]


class Place(NamedTuple):
    """A cluster of a grid."""

    processors: int
    scheduler: str
    speed: float


Users = list[list[Step]]
Outcome = dict[str, list[int]]

some_jobs = st.builds(
    Job,
    run=st.sampled_from([0, 1, 2, 5, 9]),
    slack=st.integers(-2, 4),
    processors=st.integers(1, 5),
    after=st.sampled_from([0, 0, 1, 3]),
    to=st.integers(0, 3),
    renounced=st.sampled_from([False, False, False, False, True]),
)
some_steps = st.builds(
    Step, st.sampled_from([0, 0, 1, 3]), st.lists(some_jobs, min_size=1, max_size=4)
)
crowds = st.lists(st.lists(some_steps, min_size=1, max_size=5), min_size=1, max_size=6)


def places(*schedulers: str) -> st.SearchStrategy[list[Place]]:
    """One to three clusters; the nodes of the first have the speed that jobs are made for."""
    policy, speed = st.sampled_from(schedulers), st.sampled_from([0.5, 1.0, 1.5, 2.0])
    home = st.builds(Place, st.integers(2, 5), policy, st.just(1.0))
    others = st.lists(st.builds(Place, st.integers(1, 5), policy, speed), max_size=2)
    return st.builds(lambda first, more: [first, *more], home, others)


def table(users: Users) -> tuple[JobTable, list[list[list[int]]]]:
    """The jobs, numbered by round, and which rows are whose: user, unit, job."""
    jobs = JobTable()
    rows: list[list[list[int]]] = [[] for _ in users]
    for turn in range(max(len(steps) for steps in users)):
        for user, steps in enumerate(users):
            if turn == len(rows[user]) and turn < len(steps):
                rows[user].append([])
                for job in steps[turn].jobs:
                    request = max(job.run + job.slack, 0)
                    row = jobs.append(
                        1, run_time=job.run, requested_time=request, processors=job.processors
                    )
                    jobs.state[row] = State.RENOUNCED if job.renounced else State.UNFINISHED
                    rows[user][turn].append(int(row[0]))
    return jobs, rows


class Player:
    """A user who goes through its units; what it submits moves on by one place a unit."""

    def __init__(
        self,
        model: Simulation,
        number: int,
        steps: list[Step],
        rows: list[list[int]],
        log: list[tuple[int, int]],
    ) -> None:
        self.model, self.number, self.steps, self.rows, self.log = model, number, steps, rows, log
        self.done = 0

    def go_on(self, now: int) -> None:
        """Submit the next unit."""
        if self.done == len(self.steps):
            return
        places = [*self.model.clusters, "grid"]
        step, rows = self.steps[self.done], self.rows[self.done]
        self.model.add_unit(self, np.array(rows))
        for row, job in zip(rows, step.jobs, strict=True):
            place = places[(self.number + self.done + job.to) % len(places)]
            self.model.site(place).submit(row, now + step.think + job.after)
        self.done += 1

    def on_finished(self, unit: int, now: int) -> None:
        """Note it, continue."""
        self.log.append((now, self.number))
        self.go_on(now)


def play(
    users: Users,
    places: list[Place],
    policy: Any = "first-fit",
    overrun: Any = "keep",
    *,
    plain: bool = False,
    estimates: str = "requested",
    stops: tuple[int, ...] = (),
    room: int = 1024,
) -> tuple[Outcome, list[tuple[int, int]]]:
    """What happens to every job, and which user heard of an end when."""
    with pytest.MonkeyPatch.context() as patch:
        jobs, rows = table(users)
        renounced = jobs.state.copy()
        patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
        patch.setattr("hpcrowd.environment.grid.compiled.FIRST_ROOM", room)
        patch.setattr("hpcrowd.environment.grid.compiled.FIRST_OVER", room)
        home, *more = places
        others = {
            f"other {number}": ClusterSpec(*place, estimates) for number, place in enumerate(more)
        }
        model = Simulation(
            jobs,
            home.processors,
            home.scheduler,
            overrun=overrun,
            plain=plain,
            estimates=estimates,
            others=others,
            grid=GridSpec(policy),
        )
        jobs.state[:] = renounced
        log: list[tuple[int, int]] = []
        for number, steps in enumerate(users):
            Player(model, number, steps, rows[number], log).go_on(0)
        for stop in stops:
            model.run(until=stop)
        model.run()
        return {name: getattr(jobs, name).tolist() for name in OUTCOME}, log


ENDS, ARRIVALS = range(2)

AT_ONCE = ("least-loaded", "fastest-completion")


def reference(
    users: Users, places: list[Place], policy: str, overrun: str
) -> tuple[Outcome, list[tuple[int, int]]]:
    """The same by one heap of (second, phase, row), under FCFS everywhere."""
    jobs, rows = table(users)
    need, state = jobs.processors.tolist(), jobs.state.tolist()
    submit, enqueued, start, end, cluster = ([-1] * len(jobs) for _ in range(5))
    grid = len(places)
    free = [place.processors for place in places]
    queues: list[list[int]] = [[] for _ in places]
    held: list[int] = []
    unit_of: dict[int, list[int]] = {}  # user and jobs left
    target: dict[int, int] = {}
    done = [0] * len(users)
    heap: list[tuple[int, int, int]] = []
    log: list[tuple[int, int]] = []

    def take(now: int, phase: int) -> Iterator[int]:
        while heap and heap[0][:2] == (now, phase):
            yield heapq.heappop(heap)[2]

    def go_on(user: int, now: int) -> None:
        if done[user] < len(users[user]):
            step, mine = users[user][done[user]], rows[user][done[user]]
            unit = [user, len(mine)]
            for row, job in zip(mine, step.jobs, strict=True):
                target[row] = (user + done[user] + job.to) % (grid + 1)
                unit_of[row] = unit
                heapq.heappush(heap, (now + step.think + job.after, ARRIVALS, row))
            done[user] += 1

    def times(row: int, place: int) -> tuple[int, int]:
        speed = Fraction(places[place].speed)
        both = int(jobs.run_time[row]), int(jobs.requested_time[row])
        run, request = (max(floor(t / speed + Fraction(1, 2)), 1) if t else 0 for t in both)
        return run, request

    def serve(now: int, place: int) -> None:
        queue = queues[place]
        queue.sort(key=lambda row: (enqueued[row], row))
        while queue and need[queue[0]] <= free[place]:
            row = queue.pop(0)
            free[place] -= need[row]
            run, request = times(row, place)
            state[row] = State.COMPLETED
            if overrun == "kill" and run > request:
                run, state[row] = request, State.KILLED
            start[row], end[row] = now, now + run
            heapq.heappush(heap, (end[row], ENDS, row))

    def join(row: int, place: int, now: int) -> None:
        enqueued[row], cluster[row] = now, place
        queues[place].append(row)

    def completion(row: int, place: int, now: int) -> float:
        """Step through the seconds at which something is believed to end."""
        runs = [
            (max(now, start[other] + times(other, place)[1]), need[other])
            for other in range(len(jobs))
            if cluster[other] == place and start[other] >= 0 and heap_has(other)
        ]
        time, room = now, free[place]
        queue = sorted(queues[place], key=lambda other: (enqueued[other], other))
        for other in [*queue, row]:
            while room < need[other]:
                time = max(time, min(runs)[0])
                first = min(runs)
                runs.remove(first)
                room += first[1]
            room -= need[other]
            runs.append((time + times(other, place)[1], need[other]))
        return time + times(row, place)[1]

    def heap_has(row: int) -> bool:
        return any(phase == ENDS and row == other for _, phase, other in heap)

    def send_on(now: int) -> int | None:
        pending = [sum(need[row] for row in queue if target[row] == grid) for queue in queues]
        room = [have - asked for have, asked in zip(free, pending, strict=True)]
        for row in sorted(held, key=lambda row: (submit[row], row)):
            if policy in ("first-fit", "worst-fit"):
                able = [place for place in range(grid) if room[place] >= need[row]]
                if not able:
                    continue
                chosen = able[0] if policy == "first-fit" else max(able, key=lambda p: room[p])
            else:
                able = [p for p in range(grid) if places[p].processors >= need[row]]
                used = [
                    Fraction(
                        places[p].processors - free[p] + sum(need[r] for r in queues[p]),
                        places[p].processors,
                    )
                    for p in range(grid)
                ]
                cost = {
                    "least-loaded": lambda p, used=used: used[p],
                    "fastest-completion": lambda p, row=row: completion(row, p, now),
                }[policy]
                chosen = min(able, key=cost)
            held.remove(row)
            join(row, chosen, now)
            return chosen
        return None

    for user in range(len(users)):
        go_on(user, 0)
    while heap:
        now = heap[0][0]
        active, over = set(), []
        for row in take(now, ENDS):
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
                log.append((now, user))
                go_on(user, now)
            arrived = list(take(now, ARRIVALS))
            if not arrived:
                break
            over = []
            for row in arrived:
                place = target[row]
                if place < grid:
                    active.add(place)
                if state[row] == State.RENOUNCED:
                    over.append(row)
                    continue
                submit[row], cluster[row] = now, place
                sizes = (
                    [p.processors for p in places] if place == grid else [places[place].processors]
                )
                if need[row] > max(sizes):
                    state[row] = State.REJECTED
                    over.append(row)
                elif place == grid:
                    held.append(row)
                else:
                    join(row, place, now)
        while policy in AT_ONCE and (chosen := send_on(now)) is not None:
            active.add(chosen)
        for place in sorted(active):
            serve(now, place)
        while (chosen := send_on(now)) is not None:
            serve(now, chosen)
    found = (submit, enqueued, start, end, cluster, state)
    return dict(zip(OUTCOME, found, strict=True)), log
