"""Renounced jobs: never submitted, never run, and over for their user at the second they would be.

A user renounces a job by setting its state before it arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import (
    Behaviour,
    ReplayUser,
    SessionDefinition,
    ThinkTime,
    User,
    Work,
    add_users,
)
from hpcrowd.environment import JobTable, Simulation, State
from hypothesis import given
from hypothesis import strategies as st

MakeJobs = Callable[..., JobTable]
EVERY_JOB = SessionDefinition("arrival", None)

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


def outcome(jobs: JobTable) -> list[list[int]]:
    """The outcome of every job."""
    return [column.tolist() for column in (jobs.submit, jobs.start, jobs.end, jobs.state)]


@both
def test_renounced_session_releases_the_next(make_jobs: MakeJobs, plain: bool) -> None:
    """The next session starts its think time after the second of the renounced submission."""
    jobs = make_jobs((5, 100, 2), (165, 10, 1))  # thinks for 60 s
    model = Simulation(jobs, 2, plain=plain)
    add_users(model, Work.of(jobs, EVERY_JOB))
    jobs.state[0] = State.RENOUNCED
    model.run()
    assert [[-1, 65], [-1, 65], [-1, 75], [State.RENOUNCED, State.COMPLETED]] == outcome(jobs)


@both
def test_session_with_one_renounced_job(make_jobs: MakeJobs, plain: bool) -> None:
    """The other jobs of the session run as if it were not there; the last of all ends it."""
    jobs = make_jobs((0, 10, 1), (0, 30, 4), (20, 5, 1), (90, 10, 1))  # thinks for 60 s
    model = Simulation(jobs, 4, plain=plain)
    add_users(model, Work.of(jobs, SessionDefinition("arrival", 60)))
    jobs.state[1] = State.RENOUNCED
    model.run()
    assert [0, -1, 20, 85] == jobs.submit.tolist()
    assert [10, -1, 25, 95] == jobs.end.tolist()


@both
@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "recorded"])
def test_renounced_counts_before_rejected(make_jobs: MakeJobs, scheduler: str, plain: bool) -> None:
    """A renounced job that is larger than the machine is not rejected: nobody submitted it."""
    jobs = make_jobs((0, 10, 9), (1, 10, 9))
    model = Simulation(jobs, 4, scheduler, plain=plain)
    add_users(model, Work.of(jobs), "rigid")
    jobs.state[0] = State.RENOUNCED
    model.run()
    assert [State.RENOUNCED, State.REJECTED] == jobs.state.tolist()
    assert [-1, 1] == jobs.submit.tolist()


class Declines(ThinkTime):
    """Renounces every second session on submitting it, and notes what it hears."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self.heard: list[tuple[int, int]] = []

    def finished(self, user: ReplayUser, session: int, now: int) -> None:
        """Note it, renounce the next session, continue."""
        self.heard.append((session, now))
        if session % 2 == 0 and session + 1 in user.sessions:
            user.model.jobs.state[user.work.sessions.jobs_of(session + 1)] = State.RENOUNCED
        super().finished(user, session, now)


@both
def test_user_hears_of_what_was_renounced(make_jobs: MakeJobs, plain: bool) -> None:
    """The end of a renounced session is notified like any other, at the second it would arrive."""
    jobs = make_jobs((0, 10, 1), (15, 10, 1), (30, 10, 1), (45, 10, 1))  # thinks for 5 s
    model = Simulation(jobs, 1, plain=plain)
    behaviours: list[Declines] = []

    def make(work: Work) -> Behaviour[ReplayUser]:
        behaviours.append(Declines(work))
        return behaviours[0]

    users = add_users(model, Work.of(jobs, EVERY_JOB), make)
    model.run()
    assert [(0, 10), (1, 15), (2, 30), (3, 35)] == behaviours[0].heard
    assert [0, -1, 20, -1] == jobs.submit.tolist()
    assert (4, 4) == (users[0].submitted, users[0].finished)


class Once(Behaviour[User]):
    """Submits one renounced job for each of the given seconds, each the moment the last is over."""

    def __init__(self, *seconds: int) -> None:
        self.seconds = list(seconds)
        self.heard: list[int] = []

    def begin(self, user: User) -> None:
        """Submit the next."""
        rows = user.model.jobs.append(1, processors=1, run_time=9, requested_time=9)
        user.model.jobs.state[rows] = State.RENOUNCED
        user.model.submit(user, rows, self.seconds.pop(0))

    def finished(self, user: User, unit: int, now: int) -> None:
        """Note the second, continue."""
        self.heard.append(now)
        if self.seconds:
            self.begin(user)


@both
def test_renounced_work_takes_no_time(plain: bool) -> None:
    """Renounced work may follow renounced work within one second."""
    model = Simulation(JobTable(), 1, plain=plain)
    behaviour = Once(7, 7, 7, 12)
    behaviour.begin(User(model, 1, behaviour))
    model.run()
    assert [7, 7, 7, 12] == behaviour.heard
    assert 12 == model.time
    assert [-1] * 4 == model.jobs.submit.tolist()


@both
def test_never_submitted_stays_as_it_was_said(make_jobs: MakeJobs, plain: bool) -> None:
    """Work that is renounced and not submitted at all keeps its state too."""
    jobs = make_jobs((0, 10, 1), (5, 10, 1))
    model = Simulation(jobs, 1, plain=plain)
    model.cluster.submit(0, 0)
    jobs.state[1] = State.RENOUNCED
    model.run()
    assert [[0, -1], [0, -1], [10, -1], [State.COMPLETED, State.RENOUNCED]] == outcome(jobs)


jobs_of_a_run = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(0, 10),
        st.integers(1, 6),
        st.integers(0, 12),
        st.integers(1, 3),
        st.booleans(),
    ),
    min_size=1,
    max_size=30,
)


@given(
    jobs_of_a_run,
    st.sampled_from(["fcfs", "easy", "recorded"]),
    st.sampled_from([EVERY_JOB, SessionDefinition("arrival", 2)]),
)
def test_engines_agree_on_random_work(
    make_jobs: MakeJobs, rows: list[Any], scheduler: str, definition: SessionDefinition
) -> None:
    """With any jobs renounced, compiled and plain engines give the same; the rest runs."""
    renounced = np.array([row[-1] for row in rows])
    seen = []
    for plain in (True, False):
        jobs = make_jobs(*(row[:-1] for row in rows))
        model = Simulation(jobs, 4, scheduler, plain=plain)
        add_users(model, Work.of(jobs, definition))
        jobs.state[renounced] = State.RENOUNCED
        model.run()
        seen.append(outcome(jobs))
    assert seen[0] == seen[1]
    expected = np.select(
        [renounced, jobs.processors > 4], [State.RENOUNCED, State.REJECTED], State.COMPLETED
    )
    assert expected.tolist() == jobs.state.tolist()
    assert np.all((jobs.submit == -1) == renounced)
