"""Clusters, alone or in a grid, that may change, with nothing taken from the product.

It follows ``docs/background/time.md`` and the guides to grids and to platform changes. Jobs come at
given seconds, or from users who submit a unit when their last one is over.
"""

from fractions import Fraction
from math import floor
from typing import NamedTuple, Protocol

NEVER = 2**62
RESUBMIT = 7

UP, OPEN, SIZE, ANNOUNCE, DOWN, CLOSE = range(6)
STRONGER = ("requeue", "resubmit", "fail")

#: Row, place and second of each job of a unit.
Placed = list[tuple[int, int, int]]


class Job(NamedTuple):
    """A job; ``parts`` are the processors of its components, one for a job of one cluster."""

    at: int
    run: int
    request: int
    parts: tuple[int, ...]
    to: int  #: a cluster, or the number of clusters for the grid; -1 if a user submits it
    renounced: bool = False


class Change(NamedTuple):
    """A change at a second: a kind above, processors, the fate of jobs, and its end."""

    at: int
    kind: int
    processors: int = 0
    fate: str = "requeue"
    until: int | None = None


class User(Protocol):
    """Somebody who submits unit after unit."""

    number: int

    def next(self, now: int, waited: bool) -> tuple[int | None, Placed] | None:
        """Return the next unit, and the second of an alarm at which it is submitted."""


class Node:
    """A cluster."""

    def __init__(
        self, size: int, policy: str, changes: list[Change] | None = None, speed: float = 1.0
    ) -> None:
        self.size, self.up, self.down, self.policy = size, size, 0, policy
        self.speed = Fraction(speed)
        self.closed = False
        self.windows: list[tuple[int, int]] = []
        self.queue: list[int] = []
        self.runs: dict[int, int] = {}  # row and end
        self.steps = list(changes or [])


class Oracle:
    """Runs jobs on clusters; ``draw`` is the place that each strike hits, from 0 to 1."""

    def __init__(
        self, jobs: list[Job], nodes: list[Node], broker: str, draw: float = 0.0, *,
        kill: bool = False, users: list[User] | None = None,
    ) -> None:  # fmt: skip
        self.nodes, self.broker, self.draw, self.kill = nodes, broker, draw, kill
        self.parts = {}
        rows: list[tuple[Job, int, int]] = []
        for job in jobs:
            group = tuple(range(len(rows), len(rows) + len(job.parts)))
            self.parts.update(dict.fromkeys(group, group))
            rows += [(job, need, group[0]) for need in job.parts]
        self.job = [job for job, _, _ in rows]
        self.need = [need for _, need, _ in rows]
        self.submit, self.enqueued, self.start, self.end, self.place = (
            [-1] * len(rows) for _ in range(5)
        )
        self.state = ["RENOUNCED" if job.renounced else "UNFINISHED" for job in self.job]
        self.arrivals = [
            (job.at, row, job.to)
            for row, (job, _, first) in enumerate(rows)
            if row == first and job.to >= 0
        ]
        self.held: list[int] = []
        self.sent: set[int] = set()
        self.now = 0
        self.users = users or []
        self.units: dict[int, list[int]] = {}  # of each row: number of its user, jobs left
        self.last: dict[int, int] = {}  # the first job of each user's last unit
        self.alarms: list[tuple[int, int, Placed]] = []
        self.log: list[tuple[int, int]] = []  # who heard of an end when
        for user in self.users:
            self.go_on(user)

    # Users.

    def go_on(self, user: User) -> None:
        """A user submits the next unit, or sets an alarm for it."""
        first = self.last.get(user.number)
        unit = user.next(self.now, first is not None and self.start[first] > self.submit[first])
        if unit is not None and unit[0] is not None:
            self.alarms.append((unit[0], user.number, unit[1]))
        elif unit is not None:
            self.hand_in(user.number, unit[1])

    def hand_in(self, number: int, placed: Placed) -> None:
        """A unit is on its way."""
        self.last[number] = placed[0][0]
        unit = [number, len(placed)]
        for row, place, at in placed:
            self.units[row] = unit
            self.arrivals.append((at, row, place))

    def hear(self, over: list[int]) -> None:
        """Users whose units are over go on, in the order of the last jobs of these."""
        heard = []
        for row in over:
            if row in self.units:
                self.units[row][1] -= 1
                if self.units[row][1] == 0:
                    heard.append(self.units[row][0])
        for number in heard:
            self.log.append((self.now, number))
            self.go_on(self.users[number])
        due = sorted(one for one in self.alarms if one[0] == self.now)
        self.alarms = [one for one in self.alarms if one[0] != self.now]
        for _, number, placed in due:
            self.hand_in(number, placed)

    # Jobs and clusters.

    def times(self, row: int, place: int) -> tuple[int, int]:
        """Run time and requested time on a cluster."""
        both = self.job[row].run, self.job[row].request
        speed = self.nodes[place].speed
        run, request = (max(floor(t / speed + Fraction(1, 2)), 1) if t else 0 for t in both)
        return run, request

    def request(self, row: int) -> int:
        """The time for which a job asks where it is."""
        return self.times(row, self.place[row])[1]

    def many(self, row: int) -> bool:
        """Whether a row is one of several components."""
        return len(self.parts[row]) > 1

    def free(self, node: Node) -> int:
        """Processors without a job, which may be less than none."""
        return node.up - sum(self.need[row] for row in node.runs)

    def rank(self, row: int) -> tuple[int, int]:
        """The place in a local queue."""
        return self.enqueued[row], row

    def wanted(self, node: Node) -> int:
        """Processors asked for by jobs of the grid that wait here."""
        return sum(self.need[row] for row in node.queue if row in self.sent)

    def room(self, node: Node) -> int:
        """What the broker counts as free."""
        return 0 if node.closed else self.free(node) - self.wanted(node)

    # The course of time.

    def run(self) -> None:
        """Go on until nothing is left to happen."""
        while (now := self.next()) < NEVER:
            self.now = now
            touched, over = [False] * len(self.nodes), []
            for place, node in enumerate(self.nodes):
                for row in [row for row, end in node.runs.items() if end == now]:
                    del node.runs[row]
                    touched[place] = True
                    over.append(row)
                    run, request = self.times(row, place)
                    self.state[row] = "KILLED" if self.kill and run > request else "COMPLETED"
            over.sort()
            while True:
                self.hear(over)
                found = self.arrive(touched)
                if found is None and not self.change(touched):
                    break
                over = found or []
            while self.broker in ("least-loaded", "fastest-completion"):
                sent = self.send()
                if not sent:
                    break
                for place in sent:
                    touched[place] = True
            for place, node in enumerate(self.nodes):
                if touched[place]:
                    self.serve(node)
            while sent := self.send():
                for place in sent:
                    self.serve(self.nodes[place])

    def next(self) -> int:
        """The next second at which something happens."""
        times = [at for at, _, _ in [*self.arrivals, *self.alarms]]
        times += [end for node in self.nodes for end in node.runs.values()]
        waits = self.held or any(node.queue for node in self.nodes)
        if times or waits:
            times += [step.at for node in self.nodes for step in node.steps]
        return min(times, default=NEVER)

    def arrive(self, touched: list[bool]) -> list[int] | None:
        """Jobs arrive; return those that are over at once, None if none arrived."""
        due = sorted(one for one in self.arrivals if one[0] == self.now)
        self.arrivals = [one for one in self.arrivals if one[0] != self.now]
        over: list[int] = []
        for _, row, place in due:
            group = self.parts[row]
            if place < len(self.nodes):
                touched[place] = True
            if self.state[row] == "RENOUNCED":
                over.append(row)
                continue
            for one in group:
                self.submit[one], self.place[one] = self.now, place
            if place < len(self.nodes) and self.need[row] <= self.nodes[place].size:
                self.enqueued[row] = self.now
                self.nodes[place].queue.append(row)
            elif place == len(self.nodes) and self.possible(group):
                self.held.append(row)
            else:
                over.append(row)
                for one in group:
                    self.state[one] = "REJECTED"
        return over if due else None

    def possible(self, group: tuple[int, ...]) -> bool:
        """Whether empty clusters of the present sizes hold the components."""
        sizes = sorted((node.size for node in self.nodes), reverse=True)
        needs = sorted((self.need[row] for row in group), reverse=True)
        return len(needs) <= len(sizes) and all(
            need <= size for need, size in zip(needs, sizes, strict=False)
        )

    def change(self, touched: list[bool]) -> bool:
        """Platforms change."""
        broken: dict[int, str] = {}
        changed = False
        for place, node in enumerate(self.nodes):
            while due := [step for step in node.steps if step.at == self.now]:
                changed = touched[place] = True
                step = min(due, key=lambda one: one.kind)
                node.steps.remove(step)
                self.apply(node, place, step, broken)
                node.up = max(0, node.size - node.down)
        for first, fate in sorted(broken.items()):
            for row in self.parts[first]:
                node = self.nodes[self.place[row]]
                node.runs.pop(row, None)
                touched[self.place[row]] = True
                if fate == "fail":
                    self.state[row], self.end[row] = "FAILED", self.now
                else:
                    self.start[row] = self.end[row] = self.enqueued[row] = -1
                    self.place[row] = len(self.nodes)
            if fate == "requeue":
                self.held.append(first)
            elif fate == "resubmit":
                self.arrivals.append((self.now + RESUBMIT, first, len(self.nodes)))
        return changed

    def apply(self, node: Node, place: int, step: Change, broken: dict[int, str]) -> None:
        """One change of one cluster."""
        window = (step.at, step.until or 0)
        if step.kind == DOWN:
            struck, hit = self.strike(node, step.processors)
            if struck and step.until is not None:
                node.steps.append(Change(step.until, UP, struck))
            self.stop(node, place, hit, step.fate, broken)
        elif step.kind == UP:
            node.down -= step.processors
        elif step.kind == SIZE:
            node.size = step.processors
            for row in [row for row in node.queue if self.need[row] > node.size]:
                node.queue.remove(row)
                self.state[row] = "REJECTED"
        elif step.kind == ANNOUNCE:
            node.windows = sorted([*node.windows, (step.processors, step.until or 0)])
        elif step.kind == CLOSE:
            node.closed = True
            node.steps.append(Change(step.until or 0, OPEN, window[0]))
            if step.fate != "run":
                self.stop(node, place, list(node.runs), step.fate, broken)
        elif step.kind == OPEN:
            node.closed = False
            node.windows = [one for one in node.windows if one != (step.processors, self.now)]

    def strike(self, node: Node, processors: int) -> tuple[int, list[int]]:
        """Processors go down at the place drawn: first free ones, then those of jobs by number."""
        up = max(0, node.size - node.down)
        struck = min(processors, up)
        if not struck:
            return 0, []
        node.down += struck
        rows = sorted(node.runs)
        held = sum(self.need[row] for row in rows)
        owners = [-1] * max(0, up - held) + [row for row in rows for _ in range(self.need[row])]
        first = min(int(self.draw * len(owners)), len(owners) - 1)
        return struck, sorted({owners[(first + k) % len(owners)] for k in range(struck)} - {-1})

    def stop(
        self, node: Node, place: int, rows: list[int], fate: str, broken: dict[int, str]
    ) -> None:
        """Stop running jobs of a cluster."""
        for row in rows:
            del node.runs[row]
            first = self.parts[row][0]
            if self.many(row):
                broken[first] = max(broken.get(first, "requeue"), fate, key=STRONGER.index)
            elif fate == "fail":
                self.state[row], self.end[row] = "FAILED", self.now
            else:
                self.start[row] = self.end[row] = -1
                if fate == "resubmit":
                    self.arrivals.append((self.now + RESUBMIT, row, place))
                elif self.need[row] > node.size:
                    self.state[row] = "REJECTED"
                else:
                    node.queue.append(row)

    # Local schedulers.

    def launch(self, node: Node, row: int) -> None:
        """A job starts."""
        run, request = self.times(row, self.place[row])
        run = min(run, request) if self.kill else run
        self.start[row], self.end[row] = self.now, self.now + run
        node.runs[row] = self.end[row]

    def serve(self, node: Node) -> None:
        """One pass: FCFS or EASY; no job starts that is expected to run into maintenance."""
        if node.closed:
            return
        if node.policy == "recorded":  # nobody had waited
            for row in sorted(node.queue, key=self.rank):
                self.launch(node, row)
            node.queue.clear()
        closes, opens = node.windows[0] if node.windows else (NEVER, NEVER)
        queue = sorted(node.queue, key=self.rank)

        def late(row: int) -> bool:
            return self.now + self.request(row) > closes

        while queue and self.need[queue[0]] <= self.free(node) and not late(queue[0]):
            row = queue.pop(0)
            self.launch(node, row)
            node.queue.remove(row)
        if not queue or node.policy == "fcfs":
            return
        head, *rest = queue
        free = self.free(node)
        ends = sorted(
            (max(self.now, self.start[row] + self.request(row)), self.need[row])
            for row in node.runs
        )
        shadow, have = self.now, free
        for end, need in ends:
            if have >= self.need[head] and end > shadow:
                break
            shadow, have = max(shadow, end), have + need
        spare = have - self.need[head]
        if have < self.need[head]:
            shadow, spare = NEVER, 0
        if shadow > closes - self.request(head):
            shadow, spare = opens, 0
        for row in rest:
            need = self.need[row]
            if need > self.free(node) or late(row):
                continue
            if self.now + self.request(row) > shadow:
                if need > spare:
                    continue
                spare -= need
            self.launch(node, row)
            node.queue.remove(row)

    # The broker.

    def send(self) -> list[int]:
        """Send one job on; return its clusters, none if all must wait."""
        for row in sorted(self.held, key=lambda one: (self.submit[one], one)):
            places = self.together(row) if self.many(row) else self.choose(row)
            if places:
                self.held.remove(row)
                for part, place in zip(self.parts[row], places, strict=True):
                    node = self.nodes[place]
                    self.place[part], self.enqueued[part] = place, self.now
                    if self.many(row):
                        self.launch(node, part)
                    else:
                        self.sent.add(part)
                        node.queue.append(part)
                return places
        return []

    def together(self, row: int) -> list[int]:
        """A cluster for each component, the widest where most is free."""
        group = self.parts[row]
        able = [
            place for place, node in enumerate(self.nodes)
            if not node.closed
            and not (node.windows and self.now + self.job[row].request > node.windows[0][0])
        ]  # fmt: skip
        able.sort(key=lambda place: -self.room(self.nodes[place]))
        wide = sorted(group, key=lambda one: -self.need[one])
        if len(able) < len(group):
            return []
        found = dict(zip(wide, able, strict=False))
        if any(self.need[one] > self.room(self.nodes[place]) for one, place in found.items()):
            return []
        return [found[one] for one in group]

    def choose(self, row: int) -> list[int]:
        """The cluster for a job."""
        need = self.need[row]
        nodes = list(enumerate(self.nodes))
        if self.broker in ("first-fit", "worst-fit"):
            able = [place for place, node in nodes if self.room(node) >= need]
            if self.broker == "worst-fit":
                able.sort(key=lambda place: -self.room(self.nodes[place]))
            return able[:1]
        able = [p for p, node in nodes if node.size >= need and not node.closed and node.up > 0]
        cost = self.load if self.broker == "least-loaded" else self.completion
        return [min(able, key=lambda place: cost(place, row))] if able else []

    def load(self, place: int, row: int) -> Fraction:
        """Share of processors used and asked for."""
        node = self.nodes[place]
        used = sum(self.need[one] for one in [*node.runs, *node.queue])
        return Fraction(used, node.size)

    def completion(self, place: int, row: int) -> int:
        """When the job is believed to end, in the order of the queue."""
        node = self.nodes[place]
        free, time = self.free(node), self.now
        ends = [
            (max(self.now, self.start[one] + self.request(one)), self.need[one])
            for one in node.runs
        ]
        for one in [*sorted(node.queue, key=self.rank), row]:
            while free < self.need[one]:
                if not ends:
                    return NEVER
                first = min(ends)
                ends.remove(first)
                time, free = max(time, first[0]), free + first[1]
            free -= self.need[one]
            ends.append((time + self.times(one, place)[1], self.need[one]))
        return time + self.times(row, place)[1]
