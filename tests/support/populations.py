"""Small records, pools and runs of populations that come and go."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hpcrowd import Clock, JobTable, Simulation, Work
from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.populations.component_users import ClosedLoop
from hpcrowd.agents.populations.components import Pool
from hpcrowd.agents.populations.openness import PoolRules
from hpcrowd.agents.populations.semi_open import ComponentWork, Roster, add_members
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.traces.trace import Trace

from tests.support.simulations import recorded

ONE = PoolRules(least=1)

#: A long-term user (1), who comes on two Mondays, and a temporary one (2), who comes on a Tuesday:
#: user, submission, run time, processors, wait.
TWO_USERS = (
    (1, 10 * HOUR, HOUR, 1, 0),
    (2, WEEK + DAY + 9 * HOUR, HOUR, 2, 600),
    (2, WEEK + DAY + 14 * HOUR, HOUR, 2, 0),
    (1, 2 * WEEK + 11 * HOUR, HOUR, 1, 0),
)


def record(jobs: Any, *, speed: float = 1) -> JobTable:
    """Return a record of (user, submit, run time, processors, wait)."""
    user, submit, run, processors, wait = np.array(jobs, np.int64).T
    now = {"run_time": np.rint(run / speed), "requested_time": 2 * run, "processors": processors}
    return recorded(submit, run, wait, **now, user=user, group=user)


def pool_of(
    jobs: Any = TWO_USERS, clock: Clock | None = None, speed: float = 1, **more: Any
) -> Pool:
    """Return the pool of a record; one user is enough."""
    return Pool.of(
        Work.of(record(jobs, speed=speed)), clock or Clock(), more.pop("rules", ONE), **more
    )


def simulated(
    pool: Pool,
    roster: Roster,
    *,
    weeks: int = 6,
    behaviour: Behaviour[Any] | None = None,
    scheduler: str = "recorded",
    processors: int = 100,
    seed: int = 0,
    **more: Any,
) -> tuple[JobTable, ComponentWork, list[Any]]:
    """Return the jobs of a run, with what its users lived on, and the users."""
    living = ComponentWork(pool, behaviour or ClosedLoop())
    model = Simulation(JobTable(), processors, scheduler, clock=pool.clock, seed=seed)
    horizon = pool.clock.second_at(pool.clock.wall(0) + weeks * WEEK)
    users = add_members(model, living, roster, horizon=horizon, **more)
    model.run()
    return model.jobs, living, users


def submissions(jobs: JobTable, user: int) -> list[int]:
    """Return when the jobs of a user were submitted, in their order."""
    return sorted(jobs.submit[jobs.user == user].tolist())


def outcome(jobs: JobTable) -> list[tuple[int, ...]]:
    """Return who submitted what and when, whatever the order of rows."""
    columns = (jobs.user, jobs.submit, jobs.processors, jobs.run_time, jobs.recorded_submit)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def small_log(make_trace: Callable[..., Trace]) -> Trace:
    """Return a log of 12 users on 8 processors over eight weeks; half of them are long-term."""
    random = np.random.default_rng(11)
    jobs = []
    for user in range(1, 13):
        first, length = (0, 56) if user <= 6 else (int(random.integers(7, 30)), 14)
        for day in range(first, first + length):
            if day % 7 < 5 and random.random() < 0.6:
                for _ in range(int(random.integers(1, 4))):
                    run = int(random.integers(300, 8 * HOUR))
                    at = day * DAY + 8 * HOUR + int(random.integers(0, 9 * HOUR))
                    processors = int(random.integers(1, 6))
                    jobs.append(
                        {"submit": at, "wait": int(random.integers(0, HOUR)), "run": run,
                         "allocated_processors": processors, "requested_processors": processors,
                         "requested_time": 2 * run, "status": 1, "user": user, "group": user % 3}
                    )  # fmt: skip
    jobs.sort(key=lambda job: job["submit"])
    header = "; UnixStartTime: 852073200\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 8"
    return make_trace(*jobs, header=header)
