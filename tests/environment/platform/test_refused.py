"""Changes of the platform that cannot be are reported in one line, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
from hpcrowd.environment import (
    EASY,
    Failures,
    Look,
    Maintenance,
    NodesDown,
    QuantityError,
    Resize,
    Scheduler,
    SchedulerError,
    Simulation,
    SimulationError,
    SpeedChange,
    SwitchPolicy,
)

from tests.environment.schedulers.pool_cases import MakeJobs, both, ran

WRONG: list[tuple[list[Any], str]] = [
    (
        [NodesDown(-1)],
        "NodesDown with at -1: must be whole seconds from 0 to 9,007,199,254,740,992"),
    ([NodesDown(1.5)], "NodesDown with at 1.5: must be whole seconds"),  # type: ignore[arg-type]
    ([NodesDown(10, 10)], "NodesDown from 10 to 10 s: must end after it begins"),
    ([NodesDown(0, 9, 0)], "NodesDown with processors 0: must be from 1 to"),
    ([NodesDown(0, 9, 1, "gone")], "NodesDown with jobs 'gone': not known"),  # type: ignore[arg-type]
    (
        [NodesDown(0, 9, 3), NodesDown(8, None, 2)],
        "nodes down at 8 s: 5 processors would be down, the cluster has 4"),
    ([NodesDown(0, None, 3), Resize(5, 2)], "nodes down at 5 s: 3 processors would be down"),
    ([Resize(5, 2), Resize(5, 3)], "resize at 5 s: two in the same second"),
    ([Resize(5, 0)], "Resize with processors 0: must be from 1 to"),
    ([SpeedChange(5, 2), SpeedChange(5, 3)], "speed change at 5 s: two"),
    ([SpeedChange(5, 0)], "speed change by 0: must be from 1e-06 to"),
    ([SpeedChange(5, float("nan"))], "speed change by nan"),
    ([SwitchPolicy(5, "easy"), SwitchPolicy(5, "fcfs")], "switch at 5 s: two"),
    ([SwitchPolicy(5, "nosuch")], "scheduler 'nosuch': not known"),
    ([SwitchPolicy(5, "recorded")], "to 'recorded': not a scheduler to switch to"),
    ([Maintenance(5, 5)], "Maintenance from 5 to 5 s: must end after it begins"),
    (
        [Maintenance(5, 20), Maintenance(19, 30)],
        "maintenance from 19 s: overlaps the one from 5 to 20 s; merge them"),
    ([Failures(0, 5)], "Failures with mean 0: must be from 1 to"),
    ([Failures(5, 5, "normal")], "Failures with distribution 'normal': not known"),
    ([Failures(5, 5, processors=9)], "Failures of nodes with 9 processors: the cluster has 4"),
    ([Failures(5, 5, start=9, until=9)], "Failures from 9 to 9 s: must end"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "text"), WRONG)
def test_contradictions(make_jobs: MakeJobs, changes: list[Any], text: str) -> None:
    """What is wrong is named with its value and the rule."""
    with pytest.raises(QuantityError) as caught:
        Simulation(make_jobs((0, 1, 1)), 4, platform=changes)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_recorded_schedule_is_refused(make_jobs: MakeJobs) -> None:
    """The recorded schedule has no processors that could go down."""
    with pytest.raises(QuantityError, match="recorded schedule has no processors"):
        Simulation(make_jobs((0, 1, 1)), 4, "recorded", platform=[NodesDown(1)])


def test_users_need_time_to_notice(make_jobs: MakeJobs) -> None:
    """Nobody submits again before the job was stopped."""
    with pytest.raises(QuantityError, match="resubmit_after -1 s"):
        Simulation(make_jobs((0, 1, 1)), 4, resubmit_after=-1)


def fitting(self: Any, look: Look) -> Any:
    """Start whatever fits."""
    return [job for job in look.waiting if job.processors <= look.free][:1]


def test_scheduler_that_breaks_its_word(make_jobs: MakeJobs) -> None:
    """A scheduler that starts a job into a window though it says it would not is stopped."""
    careless = type("Careless", (EASY,), {"name": "careless", "select": fitting})
    with pytest.raises(SchedulerError, match="into the maintenance at 50 s"):
        ran(make_jobs((0, 100, 1)), 4, careless(), platform=[Maintenance(50, 60)])


def test_scheduler_of_ones_own_is_kept_from_it(make_jobs: MakeJobs) -> None:
    """One that does not know of windows is not shown jobs that would run into them."""
    unaware = type("Unaware", (Scheduler,), {"name": "unaware", "select": fitting})
    jobs = make_jobs((0, 100, 1), (0, 50, 1))
    ran(jobs, 4, unaware(), platform=[Maintenance(50, 60)])
    assert [60, 0] == jobs.start.tolist()


def test_job_that_can_never_end(make_jobs: MakeJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures that leave a job no time to run are an error, not a run without end."""
    monkeypatch.setattr("hpcrowd.environment.platform.timeline.LARGEST_RESTARTS", 20)
    with pytest.raises(SimulationError, match="job 1 was stopped 20 times"):
        ran(make_jobs((0, 1000, 1)), 1, "easy", platform=[Failures(5, 1)])


@both
def test_failures_do_not_keep_a_run_alive(make_jobs: MakeJobs, plain: bool) -> None:
    """Where a job waits for ever, random failures do not continue for ever."""
    jobs = make_jobs((0, 10, 1), (20, 10, 4))
    ran(jobs, 4, "easy", platform=[NodesDown(15, None, 1), Failures(50, 10)], plain=plain)
    assert -1 == jobs.start[1]
