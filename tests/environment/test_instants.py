"""What happens in which order within one instant, and your own users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from hpcrowd.environment import FCFS, JobTable, Look, Simulation, SimulationError
from hypothesis import given
from hypothesis import strategies as st

MakeJobs = Callable[..., JobTable]

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


class Diary(ThinkTime):
    """Think-time users who write down when they hear something."""

    def __init__(self, work: Work, log: list[Any]) -> None:
        super().__init__(work)
        self.log = log

    def finished(self, user: ReplayUser, session: int, now: int) -> None:
        """Write it down, then react."""
        self.log.append((now, f"session {session} over"))
        super().finished(user, session, now)


class LoggedFCFS(FCFS):
    """FCFS that writes down what it sees."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def select(self, look: Look) -> Any:
        """Write down queue and running jobs, by row, and free processors."""
        rows = [job.row for job in look.waiting], [job.row for job in look.running]
        self.log.append((look.now, "pass", *rows, look.free))
        return super().select(look)


def test_order_within_an_instant(make_jobs: MakeJobs) -> None:
    """Completion, reaction, event, arrivals (with what reactions and events submit), one pass."""
    log: list[Any] = []
    jobs = make_jobs(
        (0, 100, 2, 100, 1),  # ends at 100
        (100, 50, 1, 50, 1),  # follows at once
        (100, 50, 1, 50, 2),  # another user's, in the same second
        (100, 50, 1, 50, 3),  # submitted by the event
    )
    model = Simulation(jobs, 2, LoggedFCFS(log))
    work = Work.of(jobs, SessionDefinition("arrival", None))
    add_users(model, work, lambda work: Diary(work, log))

    def event(name: str) -> None:
        rows = model.cluster.waiting.tolist(), model.cluster.running.tolist()
        log.append((model.time, name, *rows, model.cluster.free))

    model.call_at(100, event, "event")
    model.run()
    assert [
        (0, "pass", [0], [], 2),
        (100, "session 0 over"),
        (100, "event", [], [], 2),
        (100, "pass", [1, 2, 3], [], 2),
        (150, "session 1 over"),
        (150, "session 2 over"),
        (150, "pass", [3], [], 2),
        (200, "session 3 over"),  # and no pass, since nothing waits
    ] == log


@both
@given(order=st.permutations(range(12)))
def test_users_hear_by_job_number(make_jobs: MakeJobs, order: list[int], plain: bool) -> None:
    """Of jobs that end in one second, whoever started first, users hear by job number."""
    log: list[Any] = []
    jobs = make_jobs(*((start, 100 - start, 1, 100, 20 - row) for row, start in enumerate(order)))
    model = Simulation(jobs, 12, "easy", plain=plain)
    work = Work.of(jobs, SessionDefinition("arrival", None))
    add_users(model, work, lambda work: Diary(work, log))
    model.run()
    expected = [(100, f"session {jobs.session[row]} over") for row in range(12)]
    assert expected == log


@both
def test_event_submits_into_its_own_second(make_jobs: MakeJobs, plain: bool) -> None:
    """What an event submits for its own second arrives before that second's pass."""
    jobs = make_jobs((100, 50, 2), (100, 50, 2))
    model = Simulation(jobs, 2, "fcfs", plain=plain)
    model.cluster.submit(1, 100)
    model.call_at(100, model.cluster.submit, 0, 100)
    model.run()
    assert [100, 150] == jobs.start.tolist()


class Alarm(Behaviour[User]):
    """Submits one job at its second through an event, and notes when it has ended."""

    def __init__(self, row: int, at: int) -> None:
        self.row, self.at = row, at
        self.heard: list[tuple[int, int]] = []

    def begin(self, user: User) -> None:
        """Set the alarm."""
        user.model.call_at(self.at, self.submit, user)

    def submit(self, user: User) -> None:
        """Submit the job now."""
        rows = user.model.jobs.append(1, processors=1, run_time=30, requested_time=30, user=5)
        user.model.submit(user, rows, user.model.time)

    def finished(self, user: User, unit: int, now: int) -> None:
        """Note it."""
        self.heard.append((unit, now))


@both
def test_user_of_ones_own(plain: bool) -> None:
    """A user may add a job to the table while time runs, submit it, and hear of its end."""
    jobs = JobTable()
    model = Simulation(jobs, 2, "easy", plain=plain)
    behaviour = Alarm(0, 70)
    user = User(model, 5, behaviour)
    behaviour.begin(user)
    model.run()
    assert (1, [70], [70], [100]) == (
        len(jobs),
        jobs.submit.tolist(),
        jobs.start.tolist(),
        jobs.end.tolist(),
    )
    assert [(0, 100)] == behaviour.heard
    assert 1 == user.finished
    assert user in model.agents


def test_endless_reactions_are_an_error(monkeypatch: Any) -> None:
    """Users who submit work without length for ever are required to take time, not left to loop."""
    monkeypatch.setattr("hpcrowd.environment.simulation.LARGEST_STANDSTILL", 50)

    class Busy(Alarm):
        """Submits a job without length, again and again."""

        def submit(self, user: User) -> None:
            rows = user.model.jobs.append(1, processors=1, run_time=0, requested_time=0)
            user.model.submit(user, rows, user.model.time)

        def finished(self, user: User, unit: int, now: int) -> None:
            self.submit(user)

    model = Simulation(JobTable(), 1)
    behaviour = Busy(0, 9)
    behaviour.begin(User(model, 1, behaviour))
    with pytest.raises(SimulationError, match="endless loop at 9 s"):
        model.run()


def test_a_rejected_arrival_triggers_a_pass() -> None:
    """A job larger than the machine makes the scheduler look at the queue in its second."""
    seconds = []

    class Watched(FCFS):
        compiled = None

        def select(self, look: Look) -> Any:
            seconds.append(look.now)
            return super().select(look)

    jobs = JobTable()
    jobs.append(3, processors=[2, 2, 5], run_time=100, requested_time=100, user=1)
    model = Simulation(jobs, 2, Watched())
    model.cluster.submit([0, 1, 2], [0, 10, 20])
    model.run()
    assert [0, 10, 20, 100] == seconds
