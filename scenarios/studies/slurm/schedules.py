"""A schedule of a plan, simulated or recorded, with what it said while it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.scenarios.studies.slurm.records import Record
from hpcrowd.scenarios.studies.slurm.samples import (
    read_log,
    read_priorities,
    read_queue,
    read_shares,
)
from hpcrowd.scenarios.studies.slurm.tries import Key, Try, by_job

#: s by which samples of two runs may be apart and still be of the same moment.
APART = 60

#: Name of the priority itself among its parts.
TOTAL = "PRIORITY"

type At[Value] = Mapping[int, Mapping[Key, Value]]


@dataclass(frozen=True)
class Schedule:
    """The outcome of a plan; times are s since its start.

    Attributes
    ----------
    name
        What tables call it.
    tries
        Every try of every job, by job, then by try.
    reasons
        By moment: the reason, as one word, of each job that waited then.
    priorities
        By moment: the parts of each waiting job's priority in points, named as in ``sprio``, and
        :data:`TOTAL`. Tasks of an array that wait together may have the task -1.
    shares
        By moment: the fair-share factor of each user, by account and user.
    preempted_for
        For whom a job was preempted, by job and number of the try.
    """

    name: str
    tries: tuple[Try, ...]
    reasons: At[str] = field(default_factory=dict)
    priorities: At[Mapping[str, float]] = field(default_factory=dict)
    shares: Mapping[int, Mapping[tuple[str, str], float]] = field(default_factory=dict)
    preempted_for: Mapping[tuple[Key, int], Key] = field(default_factory=dict)

    @cached_property
    def jobs(self) -> dict[Key, tuple[Try, ...]]:
        """The tries of each job."""
        return by_job(self.tries)

    @cached_property
    def first(self) -> dict[Key, Try]:
        """The first try of each job that started."""
        return {key: ones[0] for key, ones in self.jobs.items() if ones[0].started}


def schedule_of(record: Record) -> Schedule:
    """Return a recorded run as a schedule."""
    reasons: dict[int, dict[Key, str]] = {}
    for queued in read_queue(record):
        if queued.state == "PENDING":
            reasons.setdefault(queued.moment, {})[queued.key] = queued.reason
    priorities: dict[int, dict[Key, Mapping[str, float]]] = {}
    for one in read_priorities(record):
        parts = {TOTAL: one.total, **one.parts}
        priorities.setdefault(one.moment, {})[one.key] = parts
    shares: dict[int, dict[tuple[str, str], float]] = {}
    for share in read_shares(record):
        if share.user:
            shares.setdefault(share.moment, {})[share.account, share.user] = share.factor
    return Schedule(record.name, record.tries, reasons, priorities, shares, _preempted(record))


def _preempted(record: Record) -> dict[tuple[Key, int], Key]:
    """Return for whom tries were preempted: the last try that had started by then."""
    found = {}
    for event in read_log(record):
        if event.what == "preempted" and event.by is not None:
            begun = [
                one.trial
                for one in record.jobs.get(event.key, ())
                if one.started and one.start <= event.time
            ]
            if begun:
                found[event.key, begun[-1]] = event.by
    return found


def nearest(moments: Mapping[int, object], moment: int) -> int:
    """Return the moment of a sample that is nearest; -1 if none is near enough."""
    found = min(moments, key=lambda one: abs(one - moment), default=UNKNOWN)
    return found if abs(found - moment) <= APART else UNKNOWN
