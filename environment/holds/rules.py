"""What holds jobs back after their submission, before they count as waiting in the queue.

A job is *eligible* when it could start if there were room: all jobs that it depends on are over as
it asked, its earliest start has come, and its array has fewer tasks in the queue and on the machine
than its throttle allows. A policy that waits for clean or cheap energy then chooses when it joins
the queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.traces.runs import Runs


class Condition(StrEnum):
    """How a job must be over for one that depends on it (man page of ``sbatch``, --dependency)."""

    ANY = "afterany"  #: in any way
    OK = "afterok"  #: with success
    NOT_OK = "afternotok"  #: without


class Parent(NamedTuple):
    """A job that another one depends on."""

    row: int
    condition: Condition


def account_of(
    held: Int64s,
    causes: Mapping[str, int] | None = None,
    *,
    never: int = 0,
    notes: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return how many jobs were held, for how long, and why, fit for JSON.

    Parameters
    ----------
    held
        How long each job was held, s.
    causes
        Jobs by the cause that held them last.
    never
        Jobs that were taken back because they could never be eligible.
    notes
        Rules that could not be taken as they are, by reason.
    """
    return {
        "jobs_held": len(held) + never,
        "held_mean_s": float(held.mean()) if len(held) else None,
        "causes": dict(causes or {}),
        "jobs_never_eligible": never,
        "notes": dict(sorted((notes or {}).items())),
    }


class Cause(StrEnum):
    """Why a job was held."""

    DEPENDENCY = "dependency"
    SINGLETON = "singleton"
    THROTTLE = "throttle"
    BEGIN = "earliest start or hold"
    AGAIN = "run that ended, until it is run again"
    CLEAN = "window of clean energy"
    CHEAP = "window of cheap energy"


class Window(Protocol):
    """Chooses when jobs join the queue that nothing else holds.

    Attributes
    ----------
    cause
        Why they are held until then.
    """

    cause: Cause

    def starts(
        self, users: Sequence[int], requested: Sequence[int], at: Sequence[int]
    ) -> list[int]:
        """Return the second for each job, ``at`` or later.

        Parameters
        ----------
        users, requested, at
            For each job its user, its requested time, s, and since when nothing else holds it.
        """


@dataclass
class Rules:
    """What holds the jobs of a table; by row.

    Attributes
    ----------
    delay
        Earliest start, s after the submission; 0 for none, shape (jobs,).
    failed
        Whether jobs fail in the record, and so again if they run to their end, shape (jobs,).
    parents
        The jobs that a job depends on.
    either
        Jobs for which one of their parents is enough.
    array
        The array of each task of an array with a throttle.
    throttle
        Most tasks of each array that are eligible at a time.
    name_of
        Jobs of a user with one name, of which some are singletons: the number of these two.
    singletons
        Jobs that wait for all earlier ones of their user with their name.
    window
        Chooses when jobs join the queue that nothing else holds, also those that are added to the
        table later; None for at once.
    runs
        The earlier runs of jobs that were run again in the record, and are so again; their lengths
        are those at the speed of the nodes.
    notes
        Numbers of jobs whose rules could not be taken as they are, by reason.
    """

    delay: Int64s
    failed: NDArray[np.bool_]
    parents: Mapping[int, tuple[Parent, ...]] = field(default_factory=dict)
    either: frozenset[int] = frozenset()
    array: Mapping[int, int] = field(default_factory=dict)
    throttle: Mapping[int, int] = field(default_factory=dict)
    name_of: Mapping[int, int] = field(default_factory=dict)
    singletons: frozenset[int] = frozenset()
    window: Window | None = None
    runs: Mapping[int, Runs] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)

    @classmethod
    def none(cls, jobs: int) -> Self:
        """Return rules that hold none of the jobs of a table."""
        return cls(np.zeros(jobs, np.int64), np.zeros(jobs, np.bool_))

    def __bool__(self) -> bool:
        return self.holding or bool(self.runs)

    @property
    def holding(self) -> bool:
        """Whether jobs may be held before their first run."""
        return self.window is not None or bool(self.concerned.any())

    @property
    def concerned(self) -> NDArray[np.bool_]:
        """The jobs whose submission matters but for the window, shape (jobs,)."""
        found: NDArray[np.bool_] = self.delay > 0
        for rows in (self.parents, self.array, self.name_of):
            found[list(rows)] = True
        return found

    @property
    def awaited(self) -> list[int]:
        """The jobs whose end matters to others, in order."""
        found = {parent.row for parents in self.parents.values() for parent in parents}
        return sorted(found | set(self.array) | set(self.name_of) | set(self.runs))
