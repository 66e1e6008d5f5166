"""Changes of a cluster during a run: failures, maintenance, new sizes, speeds and policies.

Each change is plain data with the second at which it happens. It also sets what happens to running
jobs that it stops, their *fate*:

``requeue``
    The scheduler puts the job back into the queue at once; it keeps its submission time, and so its
    place.
``resubmit``
    Its user notices after a while and submits it again.
``fail``
    It ends for good, and its user continues.

The engine does not place jobs on nodes. Processors that fail are a contiguous stretch at a random
place in a list of those that are up: first the free ones, then those of running jobs by job number,
then around to the first again. Every job that the stretch touches is stopped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.limits.numbers import (
    LATEST_MOMENT,
    LEAST_SPEED,
    LONGEST_DURATION,
    MOST_PROCESSORS,
    MOST_SPEED,
    check_within,
)
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.schedulers.names import parse_scheduler

if TYPE_CHECKING:
    import numpy as np


#: Fates of running jobs that a change stops.
Fate = Literal["requeue", "resubmit", "fail"]

FATES = ("requeue", "resubmit", "fail")

#: Families of distributions of times between failures and of repairs.
DISTRIBUTIONS = ("exponential", "weibull")


@dataclass(frozen=True)
class NodesDown:
    """Processors go down, and come up again.

    Attributes
    ----------
    at, until
        s since the origin; None for good.
    processors
        Number of processors.
    jobs
        Fate of the jobs that run there.
    """

    at: int
    until: int | None = None
    processors: int = 1
    jobs: Fate = "requeue"


@dataclass(frozen=True)
class Failures:
    """Nodes of a cluster fail at random, one at a time, and are repaired.

    Attributes
    ----------
    mean, repair_mean
        s; mean time from one failure in the cluster to the next, and mean time to repair.
    distribution, shape
        Of the times between failures: ``exponential``, or ``weibull`` with this shape. A shape
        below 1 makes failures come in bursts: Schroeder and Gibson (2006) fit 0.7 to 0.8
        (unconfirmed).
    repair, repair_shape
        The same for the times to repair.
    processors
        Processors of a node.
    start, until
        s since the origin; failures happen between them, the first one a full time between failures
        after the start.
    jobs
        Fate of the jobs that run on a node that fails.
    """

    mean: float
    repair_mean: float
    distribution: str = "exponential"
    shape: float = 1.0
    repair: str = "exponential"
    repair_shape: float = 1.0
    processors: int = 1
    start: int = 0
    until: int | None = None
    jobs: Fate = "requeue"


@dataclass(frozen=True)
class Maintenance:
    """The whole cluster is drained, and then closed for a while.

    From the announcement on, no job starts that is expected to run into the window.

    Attributes
    ----------
    start, end
        s since the origin.
    announced
        s before the start; 0 for a window without announcement. A week unless given (unconfirmed).
    jobs
        Fate of jobs that still run at the start; with ``run`` they continue.
    """

    start: int
    end: int
    announced: int = WEEK
    jobs: Fate | Literal["run"] = "requeue"


@dataclass(frozen=True)
class Resize:
    """The cluster has another number of processors from now on.

    When it shrinks, running jobs continue, and waiting jobs larger than it are rejected.

    Attributes
    ----------
    at
        s since the origin.
    processors
        The new size.
    """

    at: int
    processors: int


@dataclass(frozen=True)
class SpeedChange:
    """The nodes have another speed from now on.

    The remaining run times of running jobs, and the run times of all later jobs, are divided by the
    factor, rounded half up, at least 1 s. Requested times stay as they are.

    Attributes
    ----------
    at
        s since the origin.
    factor
        New speed divided by the speed before.
    """

    at: int
    factor: float


@dataclass(frozen=True)
class SwitchPolicy:
    """Another scheduler takes over queue and running jobs.

    Attributes
    ----------
    at
        s since the origin.
    scheduler
        Text of ``schedulers.names.parse_scheduler``, or a scheduler, which serves this
        cluster only.
    """

    at: int
    scheduler: str | Scheduler


#: Any of them.
Change = NodesDown | Failures | Maintenance | Resize | SpeedChange | SwitchPolicy


def changes_until(now: int, changes: Sequence[Change], processors: int) -> dict[str, list[Any]]:
    """Return the changes of one cluster's size, speed and scheduler until ``now``, ready for JSON.

    Lists by time: ``sizes`` of [s, processors before, processors after], from the initial
    ``processors`` on, ``speeds`` of [s, factor] and ``schedulers`` of [s, text].
    """
    done = sorted(
        (one for one in changes if isinstance(one, Resize | SpeedChange | SwitchPolicy)),
        key=lambda one: one.at,
    )
    found: dict[str, list[Any]] = {"sizes": [], "speeds": [], "schedulers": []}
    for one in done:
        if one.at > now:
            break
        match one:
            case Resize():
                found["sizes"].append([one.at, processors, one.processors])
                processors = one.processors
            case SpeedChange():
                found["speeds"].append([one.at, one.factor])
            case SwitchPolicy():
                found["schedulers"].append([one.at, str(one.scheduler)])
    return found


def check_changes(changes: Sequence[Change], processors: int) -> None:
    """Check that changes of a cluster with that many processors are possible, and go together.

    Raises QuantityError with the first wrong change, and the rule.
    """
    for change in changes:
        _check_one(change)
    for kind, what in ((Resize, "resize"), (SpeedChange, "speed change"), (SwitchPolicy, "switch")):
        times = sorted(change.at for change in changes if isinstance(change, kind))
        for one, other in pairwise(times):
            if one == other:
                raise QuantityError(f"{what} at {one} s: two in the same second; keep one")
    windows = sorted(
        (change.start, change.end) for change in changes if isinstance(change, Maintenance)
    )
    for (start, end), (again, _) in pairwise(windows):
        if again < end:
            raise QuantityError(
                f"maintenance from {again} s: overlaps the one from {start} to {end} s; merge them"
            )
    _check_processors(changes, processors)


def _check_one(change: Change) -> None:
    """Check that a change is valid."""
    name = type(change).__name__
    for field in ("at", "start", "end", "until", "announced"):
        value = getattr(change, field, None)
        if value is not None and not (isinstance(value, int) and 0 <= value <= LATEST_MOMENT):
            raise QuantityError(
                f"{name} with {field} {value!r}: must be whole seconds from 0 to {LATEST_MOMENT:,}"
            )
    begin = getattr(change, "at", getattr(change, "start", 0))
    end = getattr(change, "until", getattr(change, "end", None))
    if end is not None and end <= begin:
        raise QuantityError(f"{name} from {begin} to {end} s: must end after it begins")
    check_within(f"{name} with processors", getattr(change, "processors", 1), 1, MOST_PROCESSORS)
    fates = (*FATES, "run") if isinstance(change, Maintenance) else FATES
    if (fate := getattr(change, "jobs", "requeue")) not in fates:
        raise QuantityError(f"{name} with jobs {fate!r}: {not_one_of(fate, fates)}")
    if isinstance(change, Failures):
        _check_failures(change)
    if isinstance(change, SpeedChange):
        check_within("speed change by", change.factor, LEAST_SPEED, MOST_SPEED)
    if (
        isinstance(change, SwitchPolicy)
        and isinstance(change.scheduler, str)
        and parse_scheduler(change.scheduler) is None
    ):
        raise QuantityError(
            f"switch at {change.at} s to {change.scheduler!r}: not a scheduler to switch to"
        )


def _check_failures(change: Failures) -> None:
    for field in ("mean", "repair_mean", "shape", "repair_shape"):
        value = getattr(change, field)
        least, most = (0.05, 100) if "shape" in field else (1, LONGEST_DURATION)
        check_within(f"Failures with {field}", value, least, most)
    for field in ("distribution", "repair"):
        if (family := getattr(change, field)) not in DISTRIBUTIONS:
            raise QuantityError(
                f"Failures with {field} {family!r}: {not_one_of(family, DISTRIBUTIONS)}"
            )


def _check_processors(changes: Sequence[Change], processors: int) -> None:
    """Make sure that never more processors are down, by the list, than there are."""
    size, down = processors, 0
    steps: list[tuple[int, int, int, int]] = []  # s; up, resize, down; size or processors
    for change in changes:
        if isinstance(change, NodesDown):
            steps.append((change.at, 2, change.processors, change.processors))
            if change.until is not None:
                steps.append((change.until, 0, -change.processors, -change.processors))
        elif isinstance(change, Resize):
            steps.append((change.at, 1, change.processors, 0))
    for at, kind, value, more in sorted(steps):
        size = value if kind == 1 else size
        down += more
        if down > size:
            raise QuantityError(
                f"nodes down at {at} s: {down:,} processors would be down, the cluster has "
                f"{size:,}; take fewer"
            )
    for change in changes:
        if isinstance(change, Failures) and change.processors > processors:
            raise QuantityError(
                f"Failures of nodes with {change.processors:,} processors: the cluster has "
                f"{processors:,}"
            )


def stream_names(changes: Sequence[Change]) -> list[tuple[str, ...]]:
    """Return the name of the random stream of each change: its kind and all its settings.

    So a change draws the same numbers wherever it is in the list and whatever else is there. The
    fate of jobs is left out, so that fates can be compared on the same failures; equal changes are
    counted.
    """
    before: Counter[tuple[str, ...]] = Counter()
    names = []
    for change in changes:
        settings = (getattr(change, one.name) for one in fields(change) if one.name != "jobs")
        # 3600 and 3600.0 are the same setting.
        numbers = (float(value) if isinstance(value, int) else value for value in settings)
        name = type(change).__name__, *map(str, numbers)
        names.append((*name, str(before[name])))
        before[name] += 1
    return names


class FailureTimes:
    """When each failure happens and when it is repaired, s since the origin, for ever.

    All times are rounded half up, at least 1 s. What happens in the run does not change them.

    Parameters
    ----------
    failures
        The process; from its end on nothing fails.
    stream
        Where the times are drawn from: one between failures, one to repair, in turn.
    """

    def __init__(self, failures: Failures, stream: np.random.Generator) -> None:
        self._failures = failures
        self._stream = stream
        self._at = failures.start

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[int, int]:
        failures, stream = self._failures, self._stream
        self._at += _draw(stream, failures.distribution, failures.mean, failures.shape)
        repair = _draw(stream, failures.repair, failures.repair_mean, failures.repair_shape)
        if failures.until is not None and self._at >= failures.until:
            raise StopIteration
        return self._at, self._at + repair


def _draw(stream: np.random.Generator, family: str, mean: float, shape: float) -> int:
    if family == "exponential":
        drawn = mean * stream.exponential()
    else:
        drawn = mean / math.gamma(1 + 1 / shape) * stream.weibull(shape)
    return max(1, round_half_up(drawn))
