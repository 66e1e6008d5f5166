"""Fair share: users with little recent usage go first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.jobs import Int64s, JobTable, Names
from hpcrowd.environment.quantities import parse_duration
from hpcrowd.environment.schedulers.arithmetic import LN2, half
from hpcrowd.environment.schedulers.base import (
    EndedJob,
    Look,
    RunningJob,
    WaitingJob,
    WaitingReason,
)
from hpcrowd.environment.schedulers.ordered import OrderedScheduler, check_backfill
from hpcrowd.environment.schedulers.policies.multi_queue import (
    by_number,
    numbers_alone,
    parse_values,
)

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.past import Past

#: Half-life of usage: the default of Slurm's PriorityDecayHalfLife (slurm.conf).
HALF_LIFE = "7d"

#: The same, s.
HALF_LIFE_S = 604_800


@dataclass
class Usage:
    """Decayed usage of a user or group in processor-seconds, in closed form between two changes.

    Attributes
    ----------
    used
        Processor-seconds at ``since``, decayed.
    since
        s, the last start or end of one of their jobs.
    held
        Processors that their running jobs have held since then.
    """

    used: float = 0.0
    since: int = 0
    held: int = 0

    def at(self, now: int, half_life: int) -> float:
        """Return the usage at ``now``: old usage decays, held processors add usage that decays too.

        That is u * d + p * (h / ln 2) * (1 - d) with d = 2^(-t / h) after t seconds.
        """
        left = half(float(now - self.since) / float(half_life))
        return self.used * left + float(self.held) * (float(half_life) / LN2) * (1.0 - left)

    def change(self, now: int, half_life: int, processors: int) -> None:
        """Note that jobs of theirs start (``processors`` > 0) or end at ``now``."""
        self.used, self.since = self.at(now, half_life), now
        self.held += processors


class UsageScheduler(OrderedScheduler):
    """A queue whose order depends on what users, or groups, have held so far.

    Attributes
    ----------
    half_life_s
        s; the weight of a processor-second halves in this time.
    by
        ``user`` or ``group``.
    usages
        By user or group.
    """

    half_life_s: int = HALF_LIFE_S
    by: str = "user"
    usages: dict[int, Usage]

    @override
    def begin(self, total: int) -> None:
        super().begin(total)
        self.usages = {}

    def share(self, holder: int) -> float:
        """Return the share of a user or group."""
        return 1.0

    def usage(self, holder: int, now: int) -> float:
        """Return the decayed usage of a user or group, processor-seconds."""
        return self.usages.get(holder, Usage()).at(now, self.half_life_s)

    @override
    def take_over(self, now: int, running: Sequence[RunningJob]) -> None:
        for usage in self.usages.values():
            usage.change(now, self.half_life_s, -usage.held)
        for job in running:
            self._change(job, now, job.processors)

    @override
    def go_on(self, past: Past, running: Sequence[RunningJob], ended: Sequence[EndedJob]) -> None:
        self.usages = {}
        changes: list[tuple[int, RunningJob | EndedJob, int]] = []
        for gone in ended:
            changes.append((gone.start, gone, gone.processors))
            changes.append((gone.end, gone, -gone.processors))
        changes += [(job.start, job, job.processors) for job in running]
        for time, job, processors in sorted(changes, key=lambda one: one[0]):
            self._change(job, time, processors)

    @override
    def ended(self, now: int, jobs: Sequence[EndedJob]) -> None:
        for job in jobs:
            self._change(job, job.end, -job.processors)

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        for job in super().select(look):
            self._change(job, look.now, job.processors)
            yield job

    @override
    def reasons(self, look: Look) -> Iterable[WaitingReason]:
        return super().reasons(look)

    @override
    def recall(
        self, now: int, jobs: JobTable, ended: Int64s, running: Int64s, waiting: Int64s
    ) -> None:
        rows = np.concatenate((ended, running))
        began = now - jobs.start[rows]
        ago = np.concatenate((now - jobs.end[ended], np.zeros(len(running), np.int64)))
        decay = LN2 / self.half_life_s
        used = jobs.processors[rows] * (np.exp(-decay * ago) - np.exp(-decay * began)) / decay
        holders = (jobs.user if self.by == "user" else jobs.group)[rows]
        numbers, which = np.unique(holders, return_inverse=True)
        amounts = np.bincount(which, used, len(numbers))
        runs = np.bincount(which[len(ended) :], jobs.processors[running], len(numbers))
        for number, amount, held in zip(
            numbers.tolist(), amounts.tolist(), runs.tolist(), strict=True
        ):
            self.usages[number] = Usage(amount, now, int(held))

    def _holder(self, job: WaitingJob | RunningJob | EndedJob) -> int:
        return job.user if self.by == "user" else job.group

    def _change(self, job: WaitingJob | RunningJob | EndedJob, now: int, processors: int) -> None:
        usage = self.usages.setdefault(self._holder(job), Usage(since=now))
        usage.change(now, self.half_life_s, processors)


@dataclass(eq=False, repr=False, kw_only=True)
class FairShare(UsageScheduler):
    """Fair share with decay: the queue is ordered by usage over share, the smallest first.

    The usage of a user (or group) is the processor-seconds that their jobs have held so far,
    including running jobs; the weight of a processor-second halves with each half-life. A user with
    more shares may use more for the same place. Jobs of one user are ordered by submission, and so
    are those of users without usage. EASY backfilling, with the first job of that queue as its
    head, is used unless ``backfill`` is ``none``.

    Source: the idea is that of Kay and Lauder 1988; half-life and shares as in common batch systems
    (Slurm's classic fair share). These turn usage over share into a factor between 0 and 1 that is
    combined with age and size; here it alone orders the queue, which is our reading. Jobs of
    unknown users count as those of one user.

    A pass costs time in proportion to the queue plus the users in it, and none for jobs that run:
    usage is kept in closed form and changes only when a job of that user starts or ends.

    Parameters
    ----------
    half_life
        Such as ``7d`` (the default, that of Slurm) or ``12h``; seconds without a unit.
    by
        ``user`` or ``group``.
    shares
        Shares other than 1, such as ``ada:2+17:0.5``: name or number of user or group, colon,
        share.
    backfill
        The order in which later jobs are tried, see :class:`~environment.schedulers.easy.EASY`, or
        ``none``.

    Raises
    ------
    QuantityError
        When an option has a wrong value.
    """

    name = "fair-share"
    compiled = "hpcrowd.environment.engine.passes.ordered:FairSharePass"

    half_life: str = HALF_LIFE
    by: str = "user"
    shares: str = ""
    backfill: str = "queue"

    def __post_init__(self) -> None:
        self.half_life_s = parse_duration(str(self.half_life))
        if self.half_life_s < 1:
            raise QuantityError(f"half-life {self.half_life!r}: must be at least 1 s")
        check_choice("by", self.by, ("user", "group"))
        self._asked = parse_values(self.shares, "shares", positive=True)
        self._shares = numbers_alone(self._asked)
        check_backfill(self.backfill, none=True)
        self.usages: dict[int, Usage] = {}  #: by user or group
        self._levels: dict[int, float] = {}

    @override
    def know(self, names: Names) -> None:
        super().know(names)
        self._shares = by_number(self._asked, names, self.by, "shares")

    @override
    def share(self, holder: int) -> float:
        """Return the share of a user or group."""
        return self._shares.get(holder, 1.0)

    @override
    def key(self, job: WaitingJob, now: int) -> float:
        holder = self._holder(job)
        if holder not in self._levels:
            self._levels[holder] = self.usage(holder, now) / self.share(holder)
        return self._levels[holder]

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        self._levels = {}
        return super().select(look)

    @property
    @override
    def order_words(self) -> str:
        return "by fair share"

    @override
    def reasons(self, look: Look) -> Iterable[WaitingReason]:
        self._levels = {}
        return super().reasons(look)
