"""Limits on what accounts hold at once, and what their running jobs hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import NO_NAMES, Names, name_of
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.schedulers.base import RunningJob, WaitingJob


@dataclass(frozen=True)
class Limit:
    """The limits of one account on jobs that run at once; None for no limit.

    Attributes
    ----------
    jobs, processors
        Of the running jobs, at least 1.

    Raises
    ------
    QuantityError
        If a limit is below 1.
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
    """The running jobs of each account.

    Parameters
    ----------
    charges
        Returns the accounts of a job, from its user and queue.
    running
        The running jobs.
    names
        Names of users and queues, for reasons.
    """

    def __init__(
        self,
        charges: Callable[[int, int], Charges],
        running: Iterable[RunningJob],
        names: Names = NO_NAMES,
    ) -> None:
        self._charges, self._names = charges, names
        self._jobs: Counter[Hashable] = Counter()
        self._processors: Counter[Hashable] = Counter()
        for job in running:
            self.add(job)

    def limit_of(self, job: WaitingJob) -> str | None:
        """Return in words which limit keeps a job from running, None if there is none.

        A job that alone exceeds a limit on processors runs if no other job of the account does.
        """
        for account, limit in self._charges(job.user, job.queue):
            jobs, held = self._jobs[account], self._processors[account]
            if limit.jobs is not None and jobs >= limit.jobs:
                who = _name(account, self._names)
                return f"{who} is at its limit of {plural(limit.jobs, 'job')} at once"
            if limit.processors is not None and jobs and held + job.processors > limit.processors:
                return (
                    f"requests {plural(job.processors, 'processor')}, "
                    f"{_name(account, self._names)} holds "
                    f"{held:,} and may hold {limit.processors:,}"
                )
        return None

    def add(self, job: WaitingJob | RunningJob, count: int = 1) -> None:
        """Count a job as running, or with -1 as no longer running."""
        for account, _ in self._charges(job.user, job.queue):
            self._jobs[account] += count
            self._processors[account] += count * job.processors


def _name(account: Hashable, names: Names) -> str:
    """Return an account in words: ``user ada in queue 2``; your own accounts as they are."""
    if not isinstance(account, tuple) or len(account) % 2:
        return str(account)
    pairs = zip(account[::2], account[1::2], strict=True)
    return " in ".join(f"{field} {name_of(names, field, number)}" for field, number in pairs)
