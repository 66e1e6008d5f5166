"""Why jobs wait in the fullest week of KTH-SP2: live and played back."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.environment import JobTable, ReasonCode, Simulation, Trace, jobs_from_trace
from hpcrowd.environment.clock import HOUR, WEEK
from hpcrowd.environment.schedulers.conservative import PlanningScheduler
from hpcrowd.environment.waiting_reasons import reasons_at, reasons_of

from tests.environment.test_waiting_reasons_properties import check_true

pytestmark = pytest.mark.slow

#: Looks in the week, evenly spread.
LOOKS = 12

POLICIES = [
    "fcfs",
    "easy",
    "easy:backfill=best-fit",
    "sjf",
    "conservative",
    "selective",
    "selective-categorized",
    "creasy",
    "multi-queue:user-jobs=4",
    "fair-share",
    "adaptive",
]


def begun(trace: Trace, policy: str) -> Simulation:
    """A simulation of users who submit as recorded."""
    jobs = jobs_from_trace(trace).jobs
    model = Simulation(jobs, 100, policy)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    return model


def fullest_week(jobs: JobTable) -> int:
    """When the week begins in which the most jobs wait, on the mean of its hours."""
    came = jobs.start >= 0
    hours = np.arange(0, int(jobs.start.max()), HOUR)
    submits, starts = np.sort(jobs.enqueued[came]), np.sort(jobs.start[came])
    waiting = np.searchsorted(submits, hours, "right") - np.searchsorted(starts, hours, "right")
    return int(hours[np.argmax(np.convolve(waiting, np.ones(WEEK // HOUR), "valid"))])


@pytest.mark.parametrize("policy", POLICIES)
def test_fullest_week(kth: Trace, policy: str) -> None:
    """Each job in the queue has a true reason, the same when played back, and nothing changes."""
    whole = begun(kth, policy).run().jobs
    model, first = begun(kth, policy), fullest_week(whole)
    events = np.concatenate((whole.submit, whole.start, whole.end))
    longest = 0
    for at in np.linspace(first, first + WEEK, LOOKS, dtype=int).tolist():
        while at in events:
            at += 1  # at a second at which nothing happens, before and after are the same
        found = reasons_of(model.run(until=at).cluster)
        longest = max(longest, len(found))
        assert sorted(one.row for one in found) == sorted(model.cluster.waiting.tolist())
        check_true(model.cluster, found)
        again = reasons_at(whole, at, policy, 100)
        assert {one.row for one in found} == {one.row for one in again}
        if policy == "conservative":
            assert {ReasonCode.PROMISED} == {one.code for one in again}
        elif policy != "adaptive" and not isinstance(
            model.cluster.engine.scheduler, PlanningScheduler
        ):
            assert found == again
    assert longest > 30
    assert np.array_equal(whole.matrix, model.run().jobs.matrix)
