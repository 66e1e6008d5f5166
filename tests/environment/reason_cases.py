"""A story of jobs that wait, and the reasons that are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import Clock, Scheduler, Simulation, reasons_of
from hpcrowd.environment.clock import HOUR

from tests.support.policies import make

H = HOUR

#: Eight processors. Job 1 runs on six from Monday 00:00 to 04:00. Job 2 needs four of them; job 3
#: is long, job 4 short, job 5 too wide to start now, job 6 short and of the user of job 1.
#: (submission, run time, processors, requested time, user, group, queue)
STORY = [
    (0, 4 * H, 6, 4 * H, 1, 1, 1),
    (60, 2 * H, 4, 2 * H, 2, 1, 1),
    (120, 5 * H, 2, 5 * H, 3, 1, 2),
    (180, 3 * H, 1, 3 * H, 3, 1, 2),
    (240, 1 * H, 5, 1 * H, 4, 1, 2),
    (300, 1 * H, 3, 1 * H, 1, 1, 3),
]

#: Job 1 holds the whole machine until 04:00; the others differ in length and width.
FULL = [
    (0, 4 * H, 8, 4 * H, 1, 1, 1),
    (60, 2 * H, 4, 2 * H, 2, 1, 1),
    (120, 5 * H, 2, 5 * H, 3, 1, 2),
    (180, 1 * H, 5, 1 * H, 4, 1, 2),
]

engines = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


def words(found: Iterable[Any]) -> dict[int, str]:
    """Reasons in words, by job number, in their order."""
    return {one.row + 1: one.words(Clock()) for one in found}


def told(
    policy: str | Scheduler,
    plain: bool = False,
    *,
    rows: list[tuple[int, ...]] = STORY,
    until: int = H,
    processors: int = 8,
    **more: Any,
) -> dict[int, str]:
    """The reasons given at 01:00, or at another second."""
    jobs = make(rows)
    model = Simulation(jobs, processors, policy, plain=plain, **more)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    return words(reasons_of(model.run(until=until).cluster))
