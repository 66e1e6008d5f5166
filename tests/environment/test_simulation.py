"""Who submits and starts when: sessions, renounced jobs, and the order within a second."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hpcrowd import Behaviour, JobTable, SessionDefinition, Simulation, State, User, Work, add_users
from hpcrowd.behaviours import ThinkTime
from hpcrowd.errors import SimulationError
from hpcrowd.policies import FCFS
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.schedulers.pool_cases import ran
from tests.support.simulations import both

EVERY_JOB = SessionDefinition("arrival", None)


@dataclass
class Story:
    """Jobs of (submission, run time, processors, request, user) of users who think."""

    processors: int
    jobs: list[tuple[int, ...]]
    #: Columns as they are afterwards.
    found: dict[str, list[int]]
    definition: SessionDefinition = EVERY_JOB
    #: Rows that users renounce.
    renounced: list[int] = field(default_factory=list)
    #: Columns that are set before.
    given: dict[str, list[int]] = field(default_factory=dict)
    policies: tuple[str, ...] = ("fcfs", "easy")


STORIES = {
    "a rejected job is over when it is submitted: the next work follows from then": Story(
        4, [(0, 1000, 9), (1007, 10, 1), (1017, 10, 9), (1027, 10, 1)],
        {"submit": [0, 7, 17, 17], "start": [-1, 7, -1, 17]}),
    "what follows a rejection stands before later numbers of its second": Story(
        4, [(5, 0, 9, 0, 1), (5, 10, 4, 10, 1), (5, 10, 4, 10, 2)], {"start": [-1, 5, 15]}),
    # Job 2 follows job 1 at once; job 3 of another user arrives in the same second.
    "who reacts at once is in the queue before the pass, by number": Story(
        2, [(0, 100, 2, 100, 1), (100, 50, 2, 50, 1), (100, 50, 2, 50, 2)],
        {"start": [0, 100, 150]}),
    # Thinks for 60 s.
    "the session after a renounced one thinks from the second of that": Story(
        2, [(5, 100, 2), (165, 10, 1)],
        {"submit": [-1, 65], "start": [-1, 65], "end": [-1, 75],
         "state": [State.RENOUNCED, State.COMPLETED]}, renounced=[0]),
    "a session goes on without its renounced job": Story(
        4, [(0, 10, 1), (0, 30, 4), (20, 5, 1), (90, 10, 1)],
        {"submit": [0, -1, 20, 85], "end": [10, -1, 25, 95]}, SessionDefinition("arrival", 60),
        [1]),
    "who renounces a job that is too large has not submitted it": Story(
        4, [(0, 10, 9), (1, 10, 9)],
        {"state": [State.RENOUNCED, State.REJECTED], "submit": [-1, 0]}, renounced=[0],
        given={"user": [1, 2], "recorded_submit": [0, 0]}, policies=("fcfs", "easy", "recorded")),
}  # fmt: skip


@both
@pytest.mark.parametrize(
    ("name", "policy"), [(name, one) for name in STORIES for one in STORIES[name].policies]
)
def test_stories(make_jobs, name, policy, plain):
    """Users go on when what they wait for is over."""
    story = STORIES[name]
    jobs = make_jobs(*story.jobs)
    for column, values in story.given.items():
        getattr(jobs, column)[:] = values
    model = Simulation(jobs, story.processors, policy, plain=plain)
    users = add_users(model, Work.of(jobs, story.definition))
    jobs.state[story.renounced] = State.RENOUNCED
    model.run()
    assert story.found == {column: getattr(jobs, column).tolist() for column in story.found}
    assert all(user.submitted == user.finished > 0 for user in users)


class Diary(ThinkTime):
    """Think-time users who write down when they hear something."""

    def __init__(self, work, log):
        super().__init__(work)
        self.log = log

    def finished(self, user, session, now):
        """Write it down, then react."""
        self.log.append((now, f"session {session} over"))
        super().finished(user, session, now)


class LoggedFCFS(FCFS):
    """FCFS that writes down what it sees."""

    def __init__(self, log):
        self.log = log

    def select(self, look):
        """Write down queue and running jobs, by row, and free processors."""
        rows = [job.row for job in look.waiting], [job.row for job in look.running]
        self.log.append((look.now, "pass", *rows, look.free))
        return super().select(look)


def test_order_within_an_instant(make_jobs):
    """Completion, reaction, event, arrivals (with what reactions and events submit), one pass."""
    log: list[Any] = []
    jobs = make_jobs(
        (0, 100, 2, 100, 1),  # ends at 100
        (100, 50, 1, 50, 1),  # follows at once
        (100, 50, 1, 50, 2),  # another user's, in the same second
        (100, 50, 1, 50, 3),  # submitted by the event
    )
    model = Simulation(jobs, 2, LoggedFCFS(log))
    add_users(model, Work.of(jobs, EVERY_JOB), lambda work: Diary(work, log))

    def event(name):
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
@settings(max_examples=20)
@given(order=st.permutations(range(12)))
def test_users_hear_by_job_number(make_jobs, order, plain):
    """Of jobs that end in one second, whoever started first, users hear by job number."""
    log: list[Any] = []
    jobs = make_jobs(*((start, 100 - start, 1, 100, 20 - row) for row, start in enumerate(order)))
    model = Simulation(jobs, 12, "easy", plain=plain)
    add_users(model, Work.of(jobs, EVERY_JOB), lambda work: Diary(work, log))
    model.run()
    assert [(100, f"session {jobs.session[row]} over") for row in range(12)] == log


@both
def test_event_submits_into_its_own_second(make_jobs, plain):
    """What an event submits for its own second arrives before that second's pass."""
    jobs = make_jobs((100, 50, 2), (100, 50, 2))
    model = Simulation(jobs, 2, "fcfs", plain=plain)
    model.cluster.submit(1, 100)
    model.call_at(100, model.cluster.submit, 0, 100)
    model.run()
    assert [100, 150] == jobs.start.tolist()


class Repeats(Behaviour[User]):
    """Submits a job through an event at its second, and more in the second in which one is over."""

    def __init__(self, at, *, run, more, renounced=False):
        self.at, self.run, self.more, self.renounced = at, run, more, renounced
        self.heard: list[tuple[int, int]] = []

    def begin(self, user):
        """Set the alarm."""
        user.model.call_at(self.at, self.submit, user)

    def submit(self, user):
        """Submit a job now."""
        jobs = user.model.jobs
        rows = jobs.append(1, processors=1, run_time=self.run, requested_time=self.run, user=5)
        if self.renounced:
            jobs.state[rows] = State.RENOUNCED
        user.model.submit(user, rows, user.model.time)

    def finished(self, user, unit, now):
        """Note it, and go on."""
        self.heard.append((unit, now))
        self.more -= 1
        if self.more >= 0:
            self.submit(user)


@both
@pytest.mark.parametrize(
    ("how", "heard", "start"),
    [
        ({"run": 30, "more": 1}, [(0, 100), (1, 130)], [70, 100]),
        ({"run": 0, "more": 2}, [(0, 70), (1, 70), (2, 70)], [70, 70, 70]),
        ({"run": 9, "more": 2, "renounced": True}, [(0, 70), (1, 70), (2, 70)], [-1, -1, -1]),
    ],
    ids=["work", "without length", "renounced"],
)
def test_user_of_ones_own(how, heard, start, plain):
    """A user may add jobs to the table while time runs, submit them, and hear of their end."""
    model = Simulation(JobTable(), 2, "easy", plain=plain)
    behaviour = Repeats(70, **how)
    user = User(model, 5, behaviour)
    behaviour.begin(user)
    model.run()
    assert (heard, start) == (behaviour.heard, model.jobs.start.tolist())
    assert len(heard) == user.finished
    assert user in model.agents


def test_endless_reactions_are_an_error(monkeypatch):
    """Users who submit work without length for ever are required to take time, not left to loop."""
    monkeypatch.setattr("hpcrowd.environment.simulation.LARGEST_STANDSTILL", 50)
    model = Simulation(JobTable(), 1)
    behaviour = Repeats(9, run=0, more=10**9)
    behaviour.begin(User(model, 1, behaviour))
    with pytest.raises(SimulationError, match="endless loop at 9 s"):
        model.run()


def test_a_rejected_arrival_triggers_a_pass(make_jobs):
    """A job larger than the machine makes the scheduler look at the queue in its second."""
    log: list[Any] = []
    ran(make_jobs((0, 100, 2), (10, 100, 2), (20, 100, 5)), 2, LoggedFCFS(log))
    assert [0, 10, 20, 100] == [now for now, *_ in log]
