"""The rules that sites add to a queue with backfilling: partitions, limits, hours.

Logs show them: jobs that would fit into the free processors of the machine wait, since those are in
another partition, since their user is at a limit, or since long jobs may only start at night.
``hpcrowd.environment.state.site_fit`` finds those of a site in its record.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, override

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.environment.clock import HOUR, WEEK, Clock
from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.jobs import NO_NAMES, UNKNOWN, Float64s, Int64s, Names, number_of
from hpcrowd.environment.quantities import parse_duration
from hpcrowd.environment.schedulers.base import Look, RunningJob, Scheduler, WaitingJob
from hpcrowd.environment.schedulers.policies.multi_queue import by_number, parse_values
from hpcrowd.environment.stops import FOREVER

#: Orders of the queue; with a minus the largest, or latest, first.
ORDERS = ("submit", "requested", "processors", "area")

#: Priorities count for more than any of these.
PRIORITY_UNIT = 1e13

#: Most rules of hours, one bit each.
MOST_RULES = 60

#: Days of the week on which rules of hours hold: Monday to Friday.
WORKING_DAYS = 5


class HoursRule(NamedTuple):
    """Jobs that may not start in some hours of working days."""

    longer: int  #: those that request more than this, s; -1 for a rule of a queue
    queue: str  #: those of this queue, by name or number; empty for a rule of requests
    begin: int  #: local hours; from this one on, until the other one, over midnight if it is less
    end: int

    @classmethod
    def parse(cls, text: str) -> HoursRule:
        """Parse ``4h:8-17`` or ``queue 9:7-19``; a QuantityError says what is wrong."""
        what, _, hours = text.strip().rpartition(":")
        begin, _, end = hours.partition("-")
        good = begin.isdecimal() and end.isdecimal() and int(begin) < 24 and int(end) < 24
        if not what or not good or int(begin) == int(end):
            raise QuantityError(
                f"hours {text!r}: write for example 4h:8-17, jobs that request more than 4 h start "
                "at no working day's hour from 8 to 17, or queue 9:7-19"
            )
        if what.startswith("queue "):
            return cls(-1, what.removeprefix("queue ").strip(), int(begin), int(end))
        return cls(parse_duration(what), "", int(begin), int(end))

    def holds_at(self, hour: int) -> bool:
        """Return whether it holds in an hour of the week, Monday at midnight first."""
        day, hour = divmod(hour, 24)
        if self.begin < self.end:
            inside = self.begin <= hour < self.end
        else:
            inside = hour >= self.begin or hour < self.end
        return inside and day < WORKING_DAYS


@dataclass(eq=False, repr=False, kw_only=True)
class Site(Scheduler):
    """An ordered queue with EASY backfilling in each partition, limits of users, and hours.

    A pass goes through the queue in its order. It leaves out jobs that hours keep from starting,
    that are behind as many of the same user as are considered, or whose user is at a limit. The
    others start while they fit into their partition; the first that does not is the head there,
    and gets a reservation as in EASY. Later ones start if they do not delay it.

    Such rules are common; no one source has them all. Our reading: all queues that are not in
    ``partitions`` are one partition; a job larger than its partition, or than a limit on
    processors, runs if nothing else does there, or of its user; what is left out holds nothing.

    A pass costs time in proportion to the queue, and for each head to the running jobs.

    Parameters
    ----------
    order
        ``submit``, ``requested`` (time), ``processors`` or ``area`` (processors x requested time),
        small ones first; with a minus large ones, or the latest, first.
    backfill
        ``queue``: in the order of the queue; or ``none``.
    priorities
        Priorities of queues by name or number, such as ``gpu:10+2:5``, others have 0; large ones
        first, before the order.
    processors
        Those that jobs of queues without a partition use at once; all unless given.
    partitions
        Queues with processors of their own, such as ``4+5:192/gpu:64``; or sizes, for jobs of
        other queues: ``size 256:512`` those of 256 processors or more, up to the next size that is
        given.
    user_jobs, user_processors
        Limits on the running jobs of each user.
    user_queued
        Waiting jobs of each user that a pass considers, the first in the order.
    hours
        Hours of working days, Monday to Friday in local time, at which jobs do not start:
        ``4h:8-17`` those that request more than 4 h, ``queue 9:7-19`` those of a queue; several
        with a plus sign between them.

    Raises
    ------
    QuantityError
        If an option has a wrong value.
    """

    name = "site"
    compiled = "hpcrowd.environment.engine.passes.site:SitePass"

    order: str = "submit"
    backfill: str = "queue"
    priorities: str = ""
    processors: int | None = None
    partitions: str = ""
    user_jobs: int | None = None
    user_processors: int | None = None
    user_queued: int | None = None
    hours: str = ""

    def __post_init__(self) -> None:
        check_choice("order", self.order.removeprefix("-"), ORDERS)
        check_choice("backfill", self.backfill, ("queue", "none"))
        for name in ("processors", "user_jobs", "user_processors", "user_queued"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise QuantityError(f"{name} {value}: must be at least 1")
        self._asked = parse_values(self.priorities, "priorities")
        self.parts = [_partition(one) for one in self.partitions.split("/") if one]
        self.rules = [HoursRule.parse(one) for one in self.hours.split("+") if one]
        if len(self.rules) > MOST_RULES:
            raise QuantityError(f"hours: {len(self.rules)} rules, at most {MOST_RULES}")
        descending = self.order.startswith("-")
        by_submission = self.order.removeprefix("-") == "submit"
        self._down = -1 if descending else 1
        #: 1 for an order by submission, -1 for the latest first, 0 for another.
        self.sign = self._down if by_submission else 0
        self.know(NO_NAMES)

    @override
    def know(self, names: Names) -> None:
        super().know(names)
        asked = [one for members, _ in self.parts for one in members if _size(one) is None]
        asked += [one.queue for one in self.rules if one.queue]
        if not names and not all(one.isdecimal() for one in (*asked, *self._asked)):
            return  # until the names of the trace are known
        self._part = {
            number_of(names, "queue", one): place
            for place, (members, _) in enumerate(self.parts, 1)
            for one in members
            if _size(one) is None
        }
        sizes = [
            (_size(one), place) for place, (some, _) in enumerate(self.parts, 1) for one in some
        ]
        self._by_size = sorted((size, place) for size, place in sizes if size is not None)
        self._priority = by_number(self._asked, names, "queue", "priorities")
        self._rule_queue = [
            number_of(names, "queue", one.queue) if one.queue else UNKNOWN for one in self.rules
        ]

    def part_of(self, queue: int, processors: int) -> int:
        """Return the partition of jobs of a queue and a size, 0 for that of all without one."""
        place = self._part.get(queue)
        if place is None:
            smaller = bisect_right(self._by_size, processors, key=itemgetter(0))
            place = self._by_size[smaller - 1][1] if smaller else 0
        return place

    def parts_of(self, queues: Int64s, processors: Int64s) -> Int64s:
        """Return the partitions of jobs, shape (jobs,)."""
        if len(queues) == 1:  # users submit one by one
            return np.array([self.part_of(int(queues[0]), int(processors[0]))], np.int64)
        step = int(processors.max(initial=0)) + 1
        kinds, whose = np.unique(queues * step + processors, return_inverse=True)
        found = [self.part_of(*divmod(kind, step)) for kind in kinds.tolist()]
        return np.array(found, np.int64)[whose]

    def rules_of(self, requested: Int64s, queues: Int64s) -> Int64s:
        """Return which rules of hours hold for jobs, one bit each, shape (jobs,)."""
        found = np.zeros(len(requested), np.int64)
        for bit, (rule, queue) in enumerate(zip(self.rules, self._rule_queue, strict=True)):
            concerned = queues == queue if rule.queue else requested > rule.longer
            found |= concerned.astype(np.int64) << bit
        return found

    def keys(self, requested: ArrayLike, processors: ArrayLike, queues: ArrayLike) -> Float64s:
        """Return the place of jobs in the order, but for their submission, shape (jobs,)."""
        requested, processors = np.asarray(requested, float), np.asarray(processors, float)
        by: dict[str, Any] = {
            "submit": np.zeros(len(processors)),
            "requested": requested,
            "processors": processors,
            "area": requested * processors,
        }
        found: Float64s = self._down * by[self.order.removeprefix("-")]
        if self._priority:
            own = [self._priority.get(int(one), 0.0) for one in np.asarray(queues)]
            found = found - PRIORITY_UNIT * np.array(own)
        return found

    def hours_at(self, now: int) -> tuple[int, int]:
        """Return which rules of hours hold now, one bit each, and when that may change, s."""
        second = (self.clock or Clock()).wall(now) % WEEK
        shut = 0
        for bit, rule in enumerate(self.rules):
            shut |= int(rule.holds_at(second // HOUR)) << bit
        return shut, now + HOUR - second % HOUR

    @override
    def wake(self, now: int) -> int | None:
        return self.hours_at(now)[1] if self.rules else None

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        """Return the jobs to start now, in order."""
        shut = self.hours_at(look.now)[0] if self.rules else 0
        jobs: Counter[int] = Counter(job.user for job in look.running)
        processors: Counter[int] = Counter()
        running: list[list[RunningJob]] = [[] for _ in range(1 + len(self.parts))]
        sizes = [FOREVER if self.processors is None else self.processors]
        sizes += [size for _, size in self.parts]
        room = list(sizes)
        for job in look.running:
            processors[job.user] += job.processors
            running[self.part_of(job.queue, job.processors)].append(job)
            room[self.part_of(job.queue, job.processors)] -= job.processors
        free, seen = look.free, Counter[int]()
        heads: dict[int, list[int]] = {}  # by partition: shadow time, spare processors
        for one in self._in_order(look.waiting):
            if self._bits(one) & shut or seen[one.user] >= (self.user_queued or FOREVER):
                continue
            seen[one.user] += 1
            if jobs[one.user] >= (self.user_jobs or FOREVER) or (
                jobs[one.user]
                and processors[one.user] + one.processors > (self.user_processors or FOREVER)
            ):
                continue
            part = self.part_of(one.queue, one.processors)
            # An empty partition also runs a job that is larger.
            left = min(room[part], free) if room[part] < sizes[part] else free
            if part not in heads:
                if one.processors > left:
                    heads[part] = _reserve(
                        look.now, one.processors, left, running[part], sizes[part]
                    )
                    continue
            elif self.backfill == "none" or one.processors > left:
                continue
            elif look.now + one.estimate > heads[part][0]:
                if one.processors > heads[part][1]:
                    continue
                heads[part][1] -= one.processors
            seen[one.user] -= 1  # it waits no longer
            free -= one.processors
            room[part] -= one.processors
            jobs[one.user] += 1
            processors[one.user] += one.processors
            running[part].append(
                RunningJob(one.row, one.processors, look.now + one.estimate, look.now)
            )
            yield one

    def _in_order(self, waiting: Iterable[WaitingJob]) -> list[WaitingJob]:
        def key(job: WaitingJob) -> float:
            (found,) = self.keys([job.requested_time], [job.processors], [job.queue])
            return float(found) + self.sign * job.submit

        return sorted(waiting, key=lambda job: (key(job), job.submit, job.row))

    def _bits(self, job: WaitingJob) -> int:
        return int(self.rules_of(np.array([job.requested_time]), np.array([job.queue]))[0])


def _partition(text: str) -> tuple[list[str], int]:
    """Parse ``4+5:192``."""
    queues, _, size = text.rpartition(":")
    if not queues or not size.isdecimal() or int(size) < 1:
        raise QuantityError(f"partitions {text!r}: write queues and processors, such as 4+5:192")
    return [one.strip() for one in queues.split("+")], int(size)


def _size(member: str) -> int | None:
    """Return the least processors of jobs of a partition such as ``size 256``; None for a queue."""
    size = member.removeprefix("size ").strip()
    return int(size) if member.startswith("size ") and size.isdecimal() else None


def _reserve(now: int, need: int, free: int, running: Iterable[RunningJob], size: int) -> list[int]:
    """Return the shadow time and the spare processors of a head."""
    shadow = now
    for end, freed in sorted((max(job.expected_end, now), job.processors) for job in running):
        if free >= need and end > shadow:
            break
        free += freed
        shadow = max(shadow, end)
    if free < need <= size:
        return [FOREVER, 0]
    return [shadow, max(free - need, 0)]
