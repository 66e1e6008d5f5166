"""Looks at a cluster, once in a while, that decide which policy is to be in charge."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.schedulers.correlation import WeeklyCorrelation
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.engine.base import Engine
    from hpcrowd.environment.schedulers.adaptive import Adaptive
    from hpcrowd.environment.schedulers.base import Scheduler


class Reviews:
    """Which policy is in charge of an engine, for how long, and which is to be.

    Attributes
    ----------
    next_at
        When the system is looked at next, FOREVER where no adaptive scheduler is in charge.
    in_charge
        Seconds for which each policy, in text, was in charge.
    switches
        How often another policy took over.
    """

    def __init__(self, engine: Engine, adaptive: Adaptive | None) -> None:
        self.engine = engine
        self.next_at = FOREVER
        self.in_charge: Counter[str] = Counter()
        self.switches = 0
        self._policy = str(engine.scheduler)
        self._adaptive = adaptive
        self._since = 0
        self._correlation = WeeklyCorrelation()
        self._heard = -1  # jobs that ended by then have been told to it
        if adaptive is not None:
            self.next_at = adaptive.every_s

    def begin(self, adaptive: Adaptive, now: int) -> Scheduler:
        """Put an adaptive scheduler in charge; return the policy that takes over."""
        self._adaptive = adaptive
        self.next_at = now + adaptive.every_s
        return _made(self._choice(now))

    def end(self) -> None:
        """Let no adaptive scheduler be in charge any more."""
        self._adaptive, self.next_at = None, FOREVER

    def look(self, now: int) -> Scheduler | None:
        """Look at the system; return the policy that is to take over, None to go on."""
        if self._adaptive is None:
            return None
        self.next_at = now + self._adaptive.every_s
        choice = self._choice(now)
        return None if choice == self._policy else _made(choice)

    def would_switch(self, now: int) -> bool:
        """Return whether a look now would let another policy take over."""
        return self._adaptive is not None and self._choice(now) != self._policy

    def account(self, now: int) -> None:
        """Count the time until now for the policy that is in charge."""
        self.in_charge[self._policy] += now - self._since
        self._since = now

    def took_over(self, scheduler: Scheduler, now: int) -> None:
        """Note that another policy is in charge from now on."""
        self.account(now)
        self.switches += 1
        self._policy = str(scheduler)

    def _choice(self, now: int) -> str:
        """Return the text of the policy that is to be in charge."""
        assert self._adaptive is not None
        engine = self.engine
        wanted = int(engine.jobs.processors[engine.waiting].sum())
        return self._adaptive.policy(wanted, engine.up, self._expected(now))

    def _expected(self, now: int) -> float:
        """Return the correlation to expect this week; hear what ended once a week."""
        if now // WEEK > self._heard // WEEK:
            jobs = self.engine.jobs
            rows = jobs.ended(self.engine.number)
            rows = rows[jobs.end[rows] > self._heard]
            stayed = jobs.end[rows] - jobs.start[rows]
            self._correlation.ended(jobs.submit[rows], stayed, jobs.processors[rows])
            self._heard = now
        return self._correlation.expected(now)


def _made(policy: str) -> Scheduler:
    made = parse_scheduler(policy)
    assert made is not None
    return made
