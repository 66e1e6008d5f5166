"""Tiny stories of clusters and users: who starts when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hpcrowd.agents import SessionDefinition, Work, add_users
from hpcrowd.environment import JobTable, Simulation, State

MakeJobs = Callable[..., JobTable]
EVERY_JOB = SessionDefinition("arrival", None)

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


def starts(jobs: JobTable, processors: int, scheduler: str, plain: bool, **options: Any) -> list:
    """When each job starts if all are submitted as recorded."""
    model = Simulation(jobs, processors, scheduler, plain=plain, **options)
    add_users(model, Work.of(jobs), "rigid")
    model.run()
    return jobs.start.tolist()


@both
def test_fcfs_nobody_overtakes(make_jobs: MakeJobs, plain: bool) -> None:
    """A small job that would fit waits behind a large one that does not."""
    jobs = make_jobs((0, 100, 3), (10, 50, 4), (20, 5, 1), (30, 5, 1))
    assert [0, 100, 150, 150] == starts(jobs, 4, "fcfs", plain)


@both
def test_easy_backfills_what_ends_in_time(make_jobs: MakeJobs, plain: bool) -> None:
    """A job overtakes when it is expected to be over at the shadow time, to the very second."""
    jobs = make_jobs((0, 100, 3), (10, 50, 4), (20, 81, 1), (20, 80, 1))
    assert [0, 100, 150, 20] == starts(jobs, 4, "easy", plain)


@both
def test_easy_backfills_into_spare_processors(make_jobs: MakeJobs, plain: bool) -> None:
    """A long job overtakes on processors that the head of the queue leaves spare, each once."""
    jobs = make_jobs((0, 100, 3), (10, 50, 4), (20, 999, 1), (20, 999, 1))
    assert [0, 100, 20, 150] == starts(jobs, 5, "easy", plain)


@both
def test_easy_does_not_delay_the_head(make_jobs: MakeJobs, plain: bool) -> None:
    """A long job that would take what the head of the queue needs does not overtake."""
    jobs = make_jobs((0, 100, 3), (10, 50, 4), (20, 999, 1))
    assert [0, 100, 150] == starts(jobs, 4, "easy", plain)


@both
def test_easy_may_delay_who_is_second(make_jobs: MakeJobs, plain: bool) -> None:
    """Only the head of the queue holds a reservation: a backfilled job delays the one behind."""
    waiting = (0, 100, 2), (1, 100, 3), (2, 100, 4)
    assert [0, 100, 200] == starts(make_jobs(*waiting), 4, "easy", plain)
    assert [0, 100, 253, 3] == starts(make_jobs(*waiting, (3, 250, 1)), 4, "easy", plain)


@both
def test_early_end_moves_the_reservation_forward(make_jobs: MakeJobs, plain: bool) -> None:
    """A job that ends before its request lets the head start at once."""
    jobs = make_jobs((0, 10, 4, 500), (1, 10, 4), (2, 10, 1))
    assert [0, 10, 20] == starts(jobs, 4, "easy", plain)


@both
def test_job_that_outruns_its_request_is_expected_back_now(
    make_jobs: MakeJobs, plain: bool
) -> None:
    """While a job outruns its request, only what needs no time or spare processors overtakes."""
    jobs = make_jobs((0, 100, 3, 30), (10, 10, 4), (50, 1, 1), (60, 0, 1), (70, 10, 1, 0))
    # Job 5 runs longer than the 0 s it asked for; it holds one processor from 70 to 80.
    assert [0, 100, 110, 60, 70] == starts(jobs, 4, "easy", plain)


@both
def test_spare_processors_serve_while_a_request_is_outrun(make_jobs: MakeJobs, plain: bool) -> None:
    """Processors that the head leaves spare go to others also while its shadow time is now."""
    jobs = make_jobs((0, 100, 3, 30), (10, 10, 4), (50, 999, 1), (51, 999, 1))
    assert [0, 100, 50, 110] == starts(jobs, 5, "easy", plain)


@both
@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def test_kill_ends_a_job_at_its_request(make_jobs: MakeJobs, scheduler: str, plain: bool) -> None:
    """With ``kill`` a job is stopped at its requested time; one that needs just that completes."""
    jobs = make_jobs((0, 100, 4, 30), (0, 50, 4, 50), (0, 50, 4, 0), (0, 9, 4, 60))
    assert [0, 30, 80, 80] == starts(jobs, 4, scheduler, plain, overrun="kill")
    assert [30, 80, 80, 89] == jobs.end.tolist()
    expected = [State.KILLED, State.COMPLETED, State.KILLED, State.COMPLETED]
    assert expected == jobs.state.tolist()


@both
def test_recorded_repeats_recorded_waits(make_jobs: MakeJobs, plain: bool) -> None:
    """``recorded`` starts each job its recorded wait after submission, capacity ignored."""
    jobs = make_jobs((0, 100, 4), (10, 100, 4), (20, 5, 4))
    jobs.recorded_start[1:] += 300, 0
    jobs.recorded_end[1:] += 300, 0
    assert [0, 310, 20] == starts(jobs, 4, "recorded", plain)
    assert [100, 410, 25] == jobs.end.tolist()


@both
@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def test_ties_go_by_job_number(make_jobs: MakeJobs, scheduler: str, plain: bool) -> None:
    """Jobs of one second queue by number, whoever submits them and in whatever order."""
    jobs = make_jobs((5, 10, 2, 10, 3), (5, 10, 2, 10, 2), (5, 10, 2, 10, 1), (5, 10, 2, 10, 2))
    assert [5, 15, 25, 35] == starts(jobs, 2, scheduler, plain)


@both
def test_ties_go_by_job_number_among_submissions_one_by_one(
    make_jobs: MakeJobs, plain: bool
) -> None:
    """Jobs of one second queue by number also if the later number was submitted first."""
    jobs = make_jobs((0, 10, 2), (0, 10, 2), (0, 10, 2))
    model = Simulation(jobs, 2, "fcfs", plain=plain)
    for row in (2, 0, 1):
        model.cluster.submit(row, 5)
    model.run()
    assert [5, 15, 25] == jobs.start.tolist()


@both
def test_jobs_larger_than_the_machine_are_rejected(make_jobs: MakeJobs, plain: bool) -> None:
    """A job larger than the machine is rejected, keeps its submission, and blocks nobody."""
    jobs = make_jobs((0, 10, 5), (0, 10, 4))
    assert [-1, 0] == starts(jobs, 4, "fcfs", plain)
    assert [0, 0] == jobs.submit.tolist()
    assert [-1, 10] == jobs.end.tolist()
    assert [State.REJECTED, State.COMPLETED] == jobs.state.tolist()


@both
def test_rejection_releases_later_work_in_its_second(make_jobs: MakeJobs, plain: bool) -> None:
    """A rejected job is over for its user when it is submitted: the next work follows from then."""
    jobs = make_jobs((0, 1000, 9), (1007, 10, 1), (1017, 10, 9), (1027, 10, 1))
    model = Simulation(jobs, 4, "easy", plain=plain)
    add_users(model, Work.of(jobs, EVERY_JOB))
    model.run()
    assert [0, 7, 17, 17] == jobs.submit.tolist()
    assert [-1, 7, -1, 17] == jobs.start.tolist()


@both
@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def test_work_released_by_a_rejection_queues_by_number(
    make_jobs: MakeJobs, scheduler: str, plain: bool
) -> None:
    """What follows a rejection within its second stands before later numbers already arrived."""
    jobs = make_jobs((5, 0, 9, 0, 1), (5, 10, 4, 10, 1), (5, 10, 4, 10, 2))
    model = Simulation(jobs, 4, scheduler, plain=plain)
    add_users(model, Work.of(jobs, EVERY_JOB))
    model.run()
    assert [-1, 5, 15] == jobs.start.tolist()


@both
@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def test_think_time_of_none_arrives_before_the_pass(
    make_jobs: MakeJobs, scheduler: str, plain: bool
) -> None:
    """Who reacts at once is in the queue before the scheduler looks, ahead by job number."""
    # Job 2 follows job 1 at once; job 3 of another user arrives in the same second.
    jobs = make_jobs((0, 100, 2, 100, 1), (100, 50, 2, 50, 1), (100, 50, 2, 50, 2))
    model = Simulation(jobs, 2, scheduler, plain=plain)
    add_users(model, Work.of(jobs, EVERY_JOB))
    model.run()
    assert [0, 100, 150] == jobs.start.tolist()


@both
def test_chain_of_jobs_without_length(make_jobs: MakeJobs, plain: bool) -> None:
    """Jobs without run time and think time follow each other within one second."""
    jobs = make_jobs((7, 0, 2), (7, 0, 2), (7, 0, 2), (7, 5, 2))
    model = Simulation(jobs, 2, "fcfs", plain=plain)
    users = add_users(model, Work.of(jobs, EVERY_JOB))
    model.run()
    assert [7, 7, 7, 7] == jobs.start.tolist()
    assert [7, 7, 7, 12] == jobs.end.tolist()
    assert (4, 4) == (users[0].submitted, users[0].finished)


@both
def test_session_keeps_its_gaps(make_jobs: MakeJobs, plain: bool) -> None:
    """A session starts its think time after its predecessor; inside, jobs are as far apart."""
    jobs = make_jobs((0, 100, 2), (5000, 10, 1), (5030, 10, 1), (9000, 10, 1))
    jobs.run_time[0] = 150  # slower than recorded
    model = Simulation(jobs, 2, "easy", plain=plain)
    add_users(model, Work.of(jobs, SessionDefinition("arrival", 60)))
    model.run()
    assert [0, 5050, 5080, 9050] == jobs.submit.tolist()


@both
def test_session_waits_for_the_last_of_several(make_jobs: MakeJobs, plain: bool) -> None:
    """With two predecessors the later of end plus think time counts, not the later end."""
    jobs = make_jobs((0, 10, 1), (1, 99, 1), (200, 10, 1))
    jobs.run_time[:] = 60, 20, 10  # ready at 60 + 190 and at 21 + 100
    model = Simulation(jobs, 2, "easy", plain=plain)
    add_users(model, Work.of(jobs, EVERY_JOB))
    model.run()
    assert [0, 1, 250] == jobs.submit.tolist()
