"""Tiny stories of clusters that change while jobs run: who starts and ends when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hpcrowd.agents import SessionDefinition, Work, add_users
from hpcrowd.environment import (
    ClusterSpec,
    JobTable,
    Maintenance,
    NodesDown,
    Resize,
    Simulation,
    SpeedChange,
    State,
    SwitchPolicy,
)

MakeJobs = Callable[..., JobTable]

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
policies = pytest.mark.parametrize("scheduler", ["fcfs", "easy"])

#: A week: windows are announced long before.
ALWAYS = 604800


def simulate(
    jobs: JobTable, processors: int, platform: list[Any], scheduler: str = "easy", **options: Any
) -> Simulation:
    """Run with all jobs submitted as recorded."""
    model = Simulation(jobs, processors, scheduler, platform=platform, **options)
    add_users(model, Work.of(jobs), "rigid")
    model.run()
    return model


@both
@policies
def test_failure_of_free_processors_stops_nobody(
    make_jobs: MakeJobs, scheduler: str, plain: bool
) -> None:
    """While half of the machine is down a job that needs all of it waits; repair starts it."""
    jobs = make_jobs((10, 50, 4), (0, 5, 1))
    model = simulate(jobs, 4, [NodesDown(7, 200, 2)], scheduler, plain=plain)
    assert [200, 0] == jobs.start.tolist()
    assert [250, 5] == jobs.end.tolist()
    assert [] == model.cluster.attempts
    assert 2 * 193 == model.cluster.account(model.time)["down_processor_s"]


@both
def test_jobs_overtake_whoever_waits_for_a_repair(make_jobs: MakeJobs, plain: bool) -> None:
    """The head has no shadow time while processors are down: whatever fits runs, however long."""
    jobs = make_jobs((0, 10, 4), (20, 50, 4), (21, 999, 2), (22, 10, 1))
    simulate(jobs, 4, [NodesDown(15, 100, 2)], plain=plain)
    assert [0, 1020, 21, 100] == jobs.start.tolist()


@both
@policies
def test_requeue(make_jobs: MakeJobs, scheduler: str, plain: bool) -> None:
    """A job whose processors fail goes back to its place in the queue and runs all over again."""
    jobs = make_jobs((0, 100, 4), (10, 50, 4))
    model = simulate(jobs, 4, [NodesDown(60, 70, 1)], scheduler, plain=plain)
    assert [0, 10] == jobs.submit.tolist()
    assert [70, 170] == jobs.start.tolist()
    assert [170, 220] == jobs.end.tolist()
    (attempt,) = model.cluster.attempts
    assert (0, 0, 0, 60, "down", "requeue") == (
        attempt.row,
        attempt.submit,
        attempt.start,
        attempt.end,
        attempt.cause,
        attempt.fate,
    )
    account = model.cluster.account(model.time)
    assert (1, 1, 0, 240) == tuple(
        account[name]
        for name in (
            "runs_stopped",
            "runs_requeued",
            "runs_resubmitted",
            "lost_processor_s",
        )
    )


@both
@policies
def test_resubmit(make_jobs: MakeJobs, scheduler: str, plain: bool) -> None:
    """A job that its user submits again stands behind what was submitted before that."""
    jobs = make_jobs((0, 100, 4), (10, 50, 4))
    down = NodesDown(60, 70, 1, jobs="resubmit")
    simulate(jobs, 4, [down], scheduler, plain=plain, resubmit_after=30)
    assert [90, 10] == jobs.submit.tolist()
    assert [120, 70] == jobs.start.tolist()
    assert [State.COMPLETED] * 2 == jobs.state.tolist()


@both
def test_users_wait_for_what_they_submit_again(make_jobs: MakeJobs, plain: bool) -> None:
    """The next session follows the end of the job that was submitted again, not its first run."""
    jobs = make_jobs((0, 100, 4), (150, 10, 1))
    down = NodesDown(60, 70, 4, jobs="resubmit")
    model = Simulation(jobs, 4, plain=plain, platform=[down], resubmit_after=30)
    add_users(model, Work.of(jobs, SessionDefinition("arrival", None)))
    model.run()
    assert [90, 240] == jobs.submit.tolist()
    assert [190, 250] == jobs.end.tolist()


@both
def test_failed_for_good(make_jobs: MakeJobs, plain: bool) -> None:
    """A job that fails for good ends for its user in that second; the user continues from then."""
    jobs = make_jobs((0, 100, 4), (150, 10, 1))
    down = NodesDown(60, 70, 4, jobs="fail")
    model = Simulation(jobs, 4, plain=plain, platform=[down])
    add_users(model, Work.of(jobs, SessionDefinition("arrival", None)))
    model.run()
    assert [State.FAILED, State.COMPLETED] == jobs.state.tolist()
    assert [0, 110] == jobs.submit.tolist()
    assert [60, 120] == jobs.end.tolist()


@both
@policies
def test_down_for_good_leaves_jobs_unfinished(
    make_jobs: MakeJobs, scheduler: str, plain: bool
) -> None:
    """A job that needs what never comes back waits for ever, and the run ends all the same."""
    jobs = make_jobs((0, 10, 4), (20, 10, 4))
    simulate(jobs, 4, [NodesDown(15, None, 1)], scheduler, plain=plain)
    assert [State.COMPLETED, State.UNFINISHED] == jobs.state.tolist()


@both
def test_drain_fcfs(make_jobs: MakeJobs, plain: bool) -> None:
    """Nobody starts who is believed to run into the window; under FCFS the head blocks."""
    jobs = make_jobs((0, 50, 2, 100), (10, 50, 2, 91), (20, 50, 2, 60))
    simulate(jobs, 4, [Maintenance(100, 200)], "fcfs", plain=plain)
    assert [0, 200, 200] == jobs.start.tolist()


@both
def test_drain_easy(make_jobs: MakeJobs, plain: bool) -> None:
    """Under EASY others overtake the head that has to wait, if they end before the window."""
    jobs = make_jobs((0, 50, 2, 100), (10, 50, 2, 91), (20, 50, 1, 80), (21, 50, 1, 80))
    simulate(jobs, 4, [Maintenance(100, 200)], plain=plain)
    assert [0, 200, 20, 200] == jobs.start.tolist()


@both
def test_head_that_could_start_but_not_end_before_the_window(
    make_jobs: MakeJobs, plain: bool
) -> None:
    """A head whose shadow time leaves too little is reserved for after the window; others run."""
    jobs = make_jobs((0, 50, 3), (5, 60, 4), (6, 80, 1))
    simulate(jobs, 4, [Maintenance(100, 200)], plain=plain)
    assert [0, 200, 6] == jobs.start.tolist()


@both
@policies
def test_nothing_starts_before_the_announcement_or_within(
    make_jobs: MakeJobs, scheduler: str, plain: bool
) -> None:
    """Before the announcement jobs start as ever; the window requeues those that still run."""
    jobs = make_jobs((0, 300, 2), (50, 10, 1, 100), (120, 10, 1))
    model = simulate(jobs, 4, [Maintenance(100, 200, announced=60)], scheduler, plain=plain)
    assert [200, 200, 200] == jobs.start.tolist()
    assert ["maintenance"] == [attempt.cause for attempt in model.cluster.attempts]
    assert 100 == model.cluster.account(model.time)["maintenance_s"]


@both
@policies
def test_jobs_may_run_on_through_maintenance(
    make_jobs: MakeJobs, scheduler: str, plain: bool
) -> None:
    """With ``run`` the window only keeps others from starting."""
    jobs = make_jobs((0, 150, 2, 90), (120, 10, 1))
    simulate(jobs, 4, [Maintenance(100, 200, jobs="run")], scheduler, plain=plain)
    assert [150, 210] == jobs.end.tolist()


@both
@policies
def test_shrinking(make_jobs: MakeJobs, scheduler: str, plain: bool) -> None:
    """Running jobs continue; waiting and later ones that are too large are rejected at once."""
    jobs = make_jobs((0, 100, 4), (10, 10, 3), (20, 10, 2), (40, 10, 3))
    model = simulate(jobs, 4, [Resize(30, 2)], scheduler, plain=plain)
    assert [0, -1, 100, -1] == jobs.start.tolist()
    states = [State.COMPLETED, State.REJECTED, State.COMPLETED, State.REJECTED]
    assert states == jobs.state.tolist()
    assert 2 == model.cluster.free


@both
@policies
def test_growing(make_jobs: MakeJobs, scheduler: str, plain: bool) -> None:
    """More processors start jobs at once; jobs that were too large before are taken."""
    jobs = make_jobs((0, 100, 2), (10, 10, 2), (20, 10, 3), (40, 10, 3))
    simulate(jobs, 2, [Resize(30, 4)], scheduler, plain=plain)
    assert [0, 30, -1, 100] == jobs.start.tolist()


@both
@policies
def test_idle_cluster_changes_meanwhile(make_jobs: MakeJobs, scheduler: str, plain: bool) -> None:
    """What is submitted after a pause is judged against the size that the machine has by then."""
    jobs = make_jobs((0, 10, 2), (5000, 10, 3))
    model = Simulation(
        jobs, 2, scheduler, plain=plain, platform=[Resize(1000, 4), NodesDown(2000, 6000, 2)]
    )
    model.cluster.submit(0, 0)
    model.call_at(5000, model.cluster.submit, 1, 5000)
    model.run()
    assert [0, 6000] == jobs.start.tolist()


@both
@policies
def test_change_in_the_second_of_an_arrival_comes_after_it(
    make_jobs: MakeJobs, scheduler: str, plain: bool
) -> None:
    """A job is judged against the size before a change of the same second, and scheduled after."""
    jobs = make_jobs((100, 10, 3), (100, 10, 2))
    simulate(jobs, 2, [Resize(100, 4)], scheduler, plain=plain)
    assert [-1, 100] == jobs.start.tolist()


@both
@policies
def test_slower_nodes(make_jobs: MakeJobs, scheduler: str, plain: bool) -> None:
    """What is left of a running job, and jobs to come, take twice as long on half the speed."""
    jobs = make_jobs((0, 100, 2), (10, 51, 2), (300, 7, 2))
    simulate(jobs, 2, [SpeedChange(40, 0.5), SpeedChange(250, 4)], scheduler, plain=plain)
    # 40 s, then 60 s of work on half speed; 51 s of work: 90 s on half, 6 s of it on double speed.
    assert [0, 160, 300] == jobs.start.tolist()
    assert [160, 253, 304] == jobs.end.tolist()


@both
def test_slower_nodes_and_kill(make_jobs: MakeJobs, plain: bool) -> None:
    """Requested times stay: on slow nodes a job is killed at its request that would have ended."""
    jobs = make_jobs((0, 100, 2, 120), (130, 100, 2, 120))
    simulate(jobs, 2, [SpeedChange(50, 0.5)], plain=plain, overrun="kill")
    assert [120, 250] == jobs.end.tolist()
    assert [State.KILLED, State.KILLED] == jobs.state.tolist()


@both
def test_exact_estimates_follow_the_speed(make_jobs: MakeJobs, plain: bool) -> None:
    """EASY knows when jobs end on the slower nodes, if estimates are exact."""
    jobs = make_jobs((0, 100, 3), (10, 50, 4), (60, 60, 1), (61, 21, 1))
    simulate(jobs, 4, [SpeedChange(50, 0.5)], plain=plain, estimates="exact")
    # The head's shadow time is 150; 42 s of the last one fit before, 120 s do not.
    assert [0, 150, 250, 61] == jobs.start.tolist()


@both
def test_requeued_jobs_restart_at_the_present_speed(make_jobs: MakeJobs, plain: bool) -> None:
    """A job that is stopped has all its work before it again."""
    jobs = make_jobs((0, 100, 2))
    simulate(jobs, 2, [SpeedChange(50, 2), NodesDown(60, 70, 1)], plain=plain)
    assert ([70], [120]) == (jobs.start.tolist(), jobs.end.tolist())


@both
def test_switch_of_policy(make_jobs: MakeJobs, plain: bool) -> None:
    """From a date on another scheduler decides."""
    jobs = make_jobs((0, 100, 3), (1, 50, 4), (2, 40, 1))
    simulate(jobs, 4, [SwitchPolicy(30, "easy")], "fcfs", plain=plain)
    assert [0, 100, 30] == jobs.start.tolist()


@both
def test_one_of_several_clusters_changes(make_jobs: MakeJobs, plain: bool) -> None:
    """The other cluster is left alone; a job is submitted again where it ran."""
    jobs = make_jobs((0, 100, 2), (0, 100, 2))
    north = ClusterSpec(2, platform=[NodesDown(50, 60, 2, jobs="resubmit")])
    model = Simulation(jobs, 2, plain=plain, others={"north": north}, resubmit_after=30)
    model.cluster.submit(0, 0)
    model.clusters["north"].submit(1, 0)
    model.run()
    assert [0, 80] == jobs.start.tolist()
    assert [0, 1] == jobs.cluster.tolist()
