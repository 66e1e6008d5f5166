"""A grid whose clusters change, simulated on its own, with nothing taken from the product.

It follows ``docs/background/time.md`` and the guides to grids and to platform changes. Jobs take
equally long everywhere, and users submit at given seconds.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

NEVER = 2**62
RESUBMIT = 7

UP, OPEN, SIZE, ANNOUNCE, DOWN, CLOSE = range(6)
STRONGER = ("requeue", "resubmit", "fail")


class Job(NamedTuple):
    """A job; ``parts`` are the processors of its components, one for a job of one cluster."""

    at: int
    run: int
    request: int
    parts: tuple[int, ...]
    to: int  #: a cluster, or the number of clusters for the grid


class Step(NamedTuple):
    """A change at a second: a kind above, processors, the fate of jobs, and its end."""

    at: int
    kind: int
    processors: int = 0
    fate: str = "requeue"
    until: int | None = None


class Node:
    """A cluster."""

    def __init__(self, size: int, policy: str, steps: list[Step]) -> None:
        self.size, self.up, self.down, self.policy = size, size, 0, policy
        self.closed = False
        self.windows: list[tuple[int, int]] = []
        self.queue: list[int] = []
        self.runs: dict[int, int] = {}  # row and end
        self.steps = list(steps)


class Oracle:
    """Runs jobs on clusters; ``draw`` is the place that each strike hits, from 0 to 1."""

    def __init__(self, jobs: list[Job], nodes: list[Node], broker: str, draw: float = 0.0) -> None:
        self.nodes, self.broker, self.draw = nodes, broker, draw
        self.parts = {}
        rows: list[tuple[Job, int, int]] = []
        for job in jobs:
            group = tuple(range(len(rows), len(rows) + len(job.parts)))
            self.parts.update(dict.fromkeys(group, group))
            rows += [(job, need, group[0]) for need in job.parts]
        self.job = [job for job, _, _ in rows]
        self.need = [need for _, need, _ in rows]
        count = len(rows)
        self.submit = [job.at for job, _, _ in rows]
        self.enqueued, self.start, self.end = [-1] * count, [-1] * count, [-1] * count
        self.state = ["UNFINISHED"] * count
        self.place = [job.to for job, _, _ in rows]
        self.arrivals = [
            (job.at, row, job.to) for row, (job, _, first) in enumerate(rows) if row == first
        ]
        self.held: list[int] = []
        self.sent: set[int] = set()
        self.now = 0

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
            touched = [any(end == now for end in node.runs.values()) for node in self.nodes]
            for node in self.nodes:
                for row in [row for row, end in node.runs.items() if end == now]:
                    del node.runs[row]
                    self.state[row] = "COMPLETED"
            while True:
                self.arrive(touched)
                if not self.change(touched):
                    break
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
        times = [at for at, _, _ in self.arrivals]
        times += [end for node in self.nodes for end in node.runs.values()]
        waits = self.held or any(node.queue for node in self.nodes)
        if times or waits:
            times += [step.at for node in self.nodes for step in node.steps]
        return min(times, default=NEVER)

    def arrive(self, touched: list[bool]) -> None:
        """Jobs arrive."""
        due = sorted(one for one in self.arrivals if one[0] == self.now)
        self.arrivals = [one for one in self.arrivals if one[0] != self.now]
        for _, row, place in due:
            group = self.parts[row]
            for one in group:
                self.submit[one] = self.now
                self.place[one] = place
            if place < len(self.nodes):
                touched[place] = True
                node = self.nodes[place]
                if self.need[row] > node.size:
                    self.state[row] = "REJECTED"
                else:
                    self.enqueued[row] = self.now
                    node.queue.append(row)
            elif self.possible(group):
                self.held.append(row)
            else:
                for one in group:
                    self.state[one] = "REJECTED"

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

    def apply(self, node: Node, place: int, step: Step, broken: dict[int, str]) -> None:
        """One change of one cluster."""
        window = (step.at, step.until or 0)
        if step.kind == DOWN:
            struck, hit = self.strike(node, step.processors)
            if struck and step.until is not None:
                node.steps.append(Step(step.until, UP, struck))
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
            node.steps.append(Step(step.until or 0, OPEN, window[0]))
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
        self.start[row], self.end[row] = self.now, self.now + self.job[row].run
        node.runs[row] = self.end[row]

    def serve(self, node: Node) -> None:
        """One pass: FCFS or EASY; no job starts that is expected to run into maintenance."""
        if node.closed:
            return
        closes, opens = node.windows[0] if node.windows else (NEVER, NEVER)
        queue = sorted(node.queue, key=self.rank)

        def late(row: int) -> bool:
            return self.now + self.job[row].request > closes

        while queue and self.need[queue[0]] <= self.free(node) and not late(queue[0]):
            row = queue.pop(0)
            self.launch(node, row)
            node.queue.remove(row)
        if not queue or node.policy == "fcfs":
            return
        head, *rest = queue
        free = self.free(node)
        ends = sorted(
            (max(self.now, self.start[row] + self.job[row].request), self.need[row])
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
        if shadow > closes - self.job[head].request:
            shadow, spare = opens, 0
        for row in rest:
            need = self.need[row]
            if need > self.free(node) or late(row):
                continue
            if self.now + self.job[row].request > shadow:
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
            (max(self.now, self.start[one] + self.job[one].request), self.need[one])
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
            ends.append((time + self.job[one].request, self.need[one]))
        return time + self.job[row].request
