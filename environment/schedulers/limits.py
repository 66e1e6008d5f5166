"""Limits on what runs at once, by user, by queue, and by user within a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from environment.errors import QuantityError
from environment.quantities import plural
from environment.schedulers.base import RunningJob, WaitingJob


@dataclass(frozen=True)
class Limit:
    """How much may run at once on one account; None is without a limit.

    Attributes
    ----------
    jobs, processors
        Of the running jobs, at least 1.

    Raises
    ------
    QuantityError
        When a limit is below 1.
    """

    jobs: int | None = None
    processors: int | None = None

    def __post_init__(self) -> None:
        for what in ("jobs", "processors"):
            value = getattr(self, what)
            if value is not None and value < 1:
                raise QuantityError(f"a limit of {value} {what}: must be at least 1, or left out")

    def __bool__(self) -> bool:
        return self.jobs is not None or self.processors is not None


#: Accounts with their limits that one job counts for.
Charges = tuple[tuple[Hashable, Limit], ...]


class Held:
    """What runs on each account.

    Parameters
    ----------
    charges
        What a job of a user and queue counts for.
    running
        The running jobs.
    """

    def __init__(
        self, charges: Callable[[int, int], Charges], running: Iterable[RunningJob]
    ) -> None:
        self._charges = charges
        self._jobs: Counter[Hashable] = Counter()
        self._processors: Counter[Hashable] = Counter()
        for job in running:
            self.add(job)

    def allows(self, job: WaitingJob) -> bool:
        """Return whether none of its accounts would be over a limit with this job.

        A job that alone holds more processors than its limit runs while nothing else does there.
        """
        return self.limit_of(job) is None

    def limit_of(self, job: WaitingJob) -> str | None:
        """Return in words which limit keeps a job from running, None where none does."""
        for account, limit in self._charges(job.user, job.queue):
            jobs, held = self._jobs[account], self._processors[account]
            if limit.jobs is not None and jobs >= limit.jobs:
                return f"{_name(account)} is at its limit of {plural(limit.jobs, 'job')} at once"
            if limit.processors is not None and jobs and held + job.processors > limit.processors:
                return (
                    f"asks {plural(job.processors, 'processor')}, {_name(account)} holds {held:,} "
                    f"and may hold {limit.processors:,}"
                )
        return None

    def add(self, job: WaitingJob | RunningJob, count: int = 1) -> None:
        """Count a job as running, or with -1 as not running any more."""
        for account, _ in self._charges(job.user, job.queue):
            self._jobs[account] += count
            self._processors[account] += count * job.processors


def _name(account: Hashable) -> str:
    """Return an account in words: ``user 3 in queue 2``; those of one's own as they are."""
    if not isinstance(account, tuple) or len(account) % 2:
        return str(account)
    return " in ".join(f"{account[i]} {account[i + 1]}" for i in range(0, len(account), 2))
