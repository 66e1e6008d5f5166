"""Orders of the queue by a named key, and orders in which jobs are tried for backfilling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from environment.errors import QuantityError
from environment.schedulers.base import WaitingJob


def slowdown(job: WaitingJob, now: int) -> float:
    """Return the expansion factor of a job if it started now: (wait + estimate) / estimate.

    An estimate below 1 s counts as 1 s in the denominator.
    """
    return (now - job.submit + job.estimate) / max(job.estimate, 1)


#: The keys by name. Ties go by submission, then by job number.
KEYS: dict[str, Callable[[WaitingJob, int], float]] = {
    "submit": lambda job, now: float(job.submit),
    "estimate": lambda job, now: float(job.estimate),
    "requested": lambda job, now: float(job.requested_time),
    "processors": lambda job, now: float(job.processors),
    "area": lambda job, now: float(job.processors * job.estimate),
    "slowdown": slowdown,
    "user": lambda job, now: float(job.user),
    "group": lambda job, now: float(job.group),
    "queue": lambda job, now: float(job.queue),
}

#: What each key is.
KEY_MEANING = {
    "submit": "when it was submitted, s",
    "estimate": "run time that the scheduler believes, s",
    "requested": "run time that the user asked for, s",
    "processors": "processors",
    "area": "processors x estimate",
    "slowdown": "expansion factor so far, (wait + estimate) / estimate; changes as time goes on",
    "user": "number of the user",
    "group": "number of the group",
    "queue": "number of the queue",
}


@dataclass(frozen=True)
class QueueOrder:
    """An order of the queue by one key.

    Attributes
    ----------
    name
        One of :data:`KEYS`.
    descending
        Whether large ones come first; ties go by submission, then job number, all the same.
    """

    name: str
    descending: bool = False

    def key(self, job: WaitingJob, now: int) -> float:
        """Return the place of a job: the smallest is first."""
        key = KEYS[self.name](job, now)
        return -key if self.descending else key

    @property
    def words(self) -> str:
        """Return the order in words, ``by area``; empty for by submission."""
        large = ", large ones first" if self.descending else ""
        return "" if self.name == "submit" and not large else f"by {self.name}{large}"


def parse_order(text: str, what: str = "order") -> QueueOrder:
    """Return the order that ``text`` means: a key, small ones first, or -key, large ones first.

    Raises
    ------
    QuantityError
        When there is no such key.
    """
    order = QueueOrder(text.removeprefix("-"), text.startswith("-"))
    if order.name not in KEYS:
        raise QuantityError(
            f"{what} {text!r}: not known; choose {', '.join(KEYS)}, or one of them after a minus "
            "for large ones first"
        )
    return order


#: Nobody overtakes.
NO_BACKFILL = "none"

#: In which order jobs are tried for backfilling.
BACKFILL_MEANING = {
    "queue": "in the order of the queue",
    "fcfs": "by submission",
    "sjbf": "the shortest estimate first",
    "largest": "the most processors first",
    "best-fit": "what fills most of the time to the reservation first",
}


def check_backfill(text: str, *, none: bool = False) -> str:
    """Return the name of an order of backfilling, if it is one.

    Raises
    ------
    QuantityError
        When it is not.
    """
    known = [*BACKFILL_MEANING, *([NO_BACKFILL] if none else [])]
    if text not in known:
        raise QuantityError(f"backfill {text!r}: not known; choose {', '.join(known)}")
    return text
