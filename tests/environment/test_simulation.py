"""Who submits and starts when; what a cluster shows and refuses; jobs that are taken back."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hpcrowd import (
    Behaviour,
    Cluster,
    ClusterSpec,
    JobTable,
    Scheduler,
    SessionDefinition,
    Simulation,
    State,
    User,
    Work,
    add_users,
)
from hpcrowd.analysis.metrics import summarize
from hpcrowd.behaviours import ThinkTime
from hpcrowd.environment.errors import FixedError
from hpcrowd.environment.grid.broker import broker_of
from hpcrowd.environment.stops import Stop
from hpcrowd.errors import SchedulerError, SimulationError
from hpcrowd.grids import Grid
from hpcrowd.platform import NodesDown
from hpcrowd.policies import EASY, FCFS, WaitingJob
from hpcrowd.reactions import RecentWaits

from tests.environment.schedulers.pool_cases import begun, ran
from tests.support.simulations import both, simulation_of

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


STORIES = {
    "a rejected job is over when it is submitted: the next work follows from then": Story(
        4, [(0, 1000, 9), (1007, 10, 1), (1017, 10, 9), (1027, 10, 1)],
        {"submit": [0, 7, 17, 17], "start": [-1, 7, -1, 17]}),
    # Thinks for 60 s.
    "the session after a renounced one thinks from the second of that": Story(
        2, [(5, 100, 2), (165, 10, 1)],
        {"submit": [-1, 65], "start": [-1, 65], "end": [-1, 75],
         "state": [State.RENOUNCED, State.COMPLETED]}, renounced=[0]),
    "a session goes on without its renounced job": Story(
        4, [(0, 10, 1), (0, 30, 4), (20, 5, 1), (90, 10, 1)],
        {"submit": [0, -1, 20, 85], "end": [10, -1, 25, 95]}, SessionDefinition("arrival", 60),
        [1]),
}  # fmt: skip


@both
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("name", STORIES)
def test_stories(make_jobs, name, policy, plain):
    """Users go on when what they wait for is over."""
    story = STORIES[name]
    jobs = make_jobs(*story.jobs)
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


class Repeats(Behaviour[User]):
    """Submits a job through an event at its second, and more in the second in which one is over."""

    def __init__(self, at, *, run, more):
        self.at, self.run, self.more = at, run, more
        self.heard: list[tuple[int, int]] = []

    def begin(self, user):
        """Set the alarm."""
        user.model.call_at(self.at, self.submit, user)

    def submit(self, user):
        """Submit a job now."""
        jobs = user.model.jobs
        rows = jobs.append(1, processors=1, run_time=self.run, requested_time=self.run, user=5)
        user.model.submit(user, rows, user.model.time)

    def finished(self, user, unit, now):
        """Note it, and go on."""
        self.heard.append((unit, now))
        self.more -= 1
        if self.more >= 0:
            self.submit(user)


@both
def test_user_of_ones_own(plain):
    """A user may add jobs to the table while time runs, submit them, and hear of their end."""
    model = Simulation(JobTable(), 2, "easy", plain=plain)
    behaviour = Repeats(70, run=30, more=1)
    user = User(model, 5, behaviour)
    behaviour.begin(user)
    model.run()
    assert ([(0, 100), (1, 130)], [70, 100]) == (behaviour.heard, model.jobs.start.tolist())
    assert 2 == user.finished
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


# ---- clusters ----------------------------------------------------------------------------------


def choosing(name, chosen):
    """Return a scheduler that names what a function chooses."""
    kind = type(name, (Scheduler,), {"name": name, "select": lambda self, look: chosen(look)})
    return kind()


@pytest.mark.parametrize(
    ("scheduler", "text"),
    [
        (choosing("greedy", lambda look: look.waiting), "needs 2 processors, 1 are free"),
        (choosing("inventor", lambda look: [WaitingJob(77, 1, 1, 0)]), "row 77"),
    ],
)
def test_scheduler_that_asks_for_the_impossible(make_jobs, scheduler, text):
    """A scheduler that starts what does not fit or does not wait is named with the job."""
    with pytest.raises(SchedulerError, match=f"{scheduler.name}: .*{text}"):
        ran(make_jobs((3, 10, 2), (3, 10, 2)), 3, scheduler)


def test_scheduler_that_loses_jobs(make_jobs):
    """A scheduler that leaves a job waiting for ever is named, with the first such job."""

    def not_the_first(self, look):
        return EASY.select(self, look._replace(waiting=look.waiting[1:]))

    forgetful = type("Forgetful", (EASY,), {"name": "forgetful", "select": not_the_first})
    jobs = make_jobs((3, 10, 2), (3, 10, 2), (3, 10, 2))
    with pytest.raises(SchedulerError, match=r"^forgetful: 1 job left waiting at 23 s.* row 0 "):
        ran(jobs, 3, forgetful())


def test_halted_run_has_lost_nothing(make_jobs):
    """Who still waits when a run is halted is not lost, nor who is too large for what is left."""
    halted = begun(make_jobs((0, 10, 2), (0, 10, 2)), 3, "easy").run(until=5)
    assert 1 == len(halted.cluster.waiting)
    jobs = make_jobs((0, 10, 1), (2, 10, 3))
    ran(jobs, 3, "easy", platform=[NodesDown(1, None, 1, "requeue")])
    assert -1 == jobs.start[1]


def test_cluster_shows_its_state(make_jobs):
    """A halted simulation shows what runs, what waits and what is free."""
    jobs = make_jobs((0, 100, 3), (10, 50, 4), (20, 999, 1))
    model = begun(jobs, 4, "easy").run(until=30)
    cluster = model.cluster
    assert (1, [0], [1, 2]) == (cluster.free, cluster.running.tolist(), cluster.waiting.tolist())
    assert "4 processors under easy" in repr(cluster)
    assert [cluster] == list(model.agents_by_type[Cluster])


@both
def test_run_to_a_second_stops_between_completions_and_arrivals(make_jobs, plain):
    """Running to a second lets end what ends then; what arrives then comes with the next run."""
    jobs = make_jobs((0, 50, 1), (50, 10, 1), (60, 10, 1))
    model = begun(jobs, 1, "fcfs", plain=plain).run(until=50)
    assert (50, [50, -1, -1]) == (model.time, jobs.end.tolist())
    assert [State.COMPLETED, State.UNFINISHED, State.UNFINISHED] == jobs.state.tolist()
    assert 1 == model.cluster.free
    model.run(until=55)
    model.run(until=20)  # time never goes back
    assert (55, [0, 50, -1]) == (model.time, jobs.start.tolist())
    model.run()
    assert (70, [0, 50, 60]) == (model.time, jobs.start.tolist())


@both
def test_submission_into_a_second_that_was_scheduled(make_jobs, plain):
    """A job that comes after the pass of its second gets its place by number, and a new pass."""
    jobs = make_jobs((0, 5, 1), (0, 100, 3), (0, 10, 4))
    engine = Simulation(jobs, 4, "easy", plain=plain).cluster.engine
    engine.submit([1, 2], 0)
    assert Stop.PAUSE == engine.advance(events=2)
    assert ([1], [2]) == (engine.running.tolist(), engine.waiting.tolist())
    engine.submit(0, 0)
    assert Stop.DONE == engine.advance()
    assert [0, 0, 100] == jobs.start.tolist()


@pytest.mark.parametrize(
    ("rows", "text"), [([], "unit without jobs"), ([1], "the table has 1 jobs")]
)
def test_unit_without_jobs_is_refused(make_jobs, rows, text):
    """A unit of no jobs would never be over, and rows that are not in the table are no jobs."""
    units = Simulation(make_jobs((0, 10, 1)), 1).units
    with pytest.raises(SimulationError, match=text):
        units.add(np.array(rows, np.int64))
    assert 0 == len(units)


@both
def test_earlier_run_leaves_no_mark(make_jobs, plain):
    """A table that was simulated before gives the same schedule again; its old units are gone."""
    jobs = make_jobs((0, 10, 1), (1, 10, 1))
    jobs.unit[:] = 10**9
    jobs.state[:] = State.KILLED
    ran(jobs, 1, "easy", plain=plain)
    assert [0, 10] == jobs.start.tolist()
    assert 2 == jobs.count(State.COMPLETED)


UNFINISHED, CANCELLED, RENOUNCED = State.UNFINISHED, State.CANCELLED, State.RENOUNCED


class Owner:
    """Notes which units are over, and when."""

    def __init__(self):
        self.heard: list[tuple[int, int]] = []

    def on_finished(self, unit, now):
        """Note it."""
        self.heard.append((unit, now))


def submitted(jobs, **options):
    """A machine of four processors, to which each job is submitted as a unit of its own."""
    model, owner = simulation_of(jobs, 4, **options), Owner()
    for row, at in enumerate(jobs.recorded_submit.tolist()):
        model.submit(owner, np.array([row]), at)
    return model, owner


QUEUE = [(0, 100, 3), (10, 50, 4), (20, 30, 2), (60, 10, 1)]

#: Policy, jobs, rows that are taken back at 40 s, starts, ends, and who hears of what when.
TAKEN = {
    "the next in the queue starts at once": (
        "fcfs", QUEUE, [1], [0, -1, 100, 100], [100, 40, 130, 110],
        [(1, 40), (0, 100), (3, 110), (2, 130)]),
    "what runs stops": (
        "easy", [(0, 100, 4), (10, 50, 4)], [0], [0, 40], [40, 90], [(0, 40), (1, 90)]),
    "the run ends without what was to come": (
        "easy", [(0, 100, 4), (1000, 50, 4)], [1], [0, -1], [100, -1], [(1, 40), (0, 100)]),
    "recorded": (
        "recorded", [(0, 100, 4), (0, 50, 4)], [0, 1], [0, -1], [40, 40], [(0, 40), (1, 40)]),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", TAKEN)
def test_jobs_are_taken_back(make_jobs, name, plain):
    """What they held is free within the second, in which their users hear of them."""
    scheduler, rows, taken, starts, ends, heard = TAKEN[name]
    jobs = make_jobs(*rows)
    jobs.recorded_start[1] = 100
    model, owner = submitted(jobs, scheduler=scheduler, plain=plain)
    model.run(until=40)
    expected = [RENOUNCED if submit > 40 else CANCELLED for submit in jobs.submit[taken]]
    model.cancel(taken)
    model.run()
    assert (starts, ends) == (jobs.start.tolist(), jobs.end.tolist())
    assert (expected, heard) == (jobs.state[taken].tolist(), owner.heard)
    assert (4, max(ends)) == (model.cluster.free, model.time)


def test_cancelled_jobs_are_summarized(make_jobs):
    """They are counted, and the time in which they ran is use of the machine."""
    jobs = make_jobs((0, 100, 4), (10, 50, 4))
    model, _ = submitted(jobs)
    model.call_at(40, model.cancel, [0])
    model.run()
    found = summarize(jobs, 4)
    assert 1 == found["jobs_cancelled"]
    # Of the job that ended, the makespan goes from 10 to 90 s; the other ran in 30 s of it.
    assert 4 * (30 + 50) / (4 * 80) == found["utilization"]


def test_what_cannot_be_taken_back(make_jobs):
    """Jobs that are over, were never submitted, or are elsewhere: one line that says so."""
    jobs = make_jobs((0, 10, 1), (0, 100, 1), (0, 10, 1))
    model = simulation_of(jobs, 4, others={"b": ClusterSpec(4)})
    model.submit(Owner(), np.array([0, 1]), 0)
    model.run(until=50)
    with pytest.raises(SimulationError, match=r"cancel job 1 \(row 0\): it is completed"):
        model.cancel([0, 1])
    with pytest.raises(SimulationError, match=r"cancel job 3 \(row 2\): never submitted"):
        model.cancel([2])
    with pytest.raises(SimulationError, match=r"cancel job 2 \(row 1\): not at b; Simulation"):
        model.clusters["b"].cancel([1])
    with pytest.raises(SimulationError, match="rows 7 to 7: the table has 3 jobs"):
        model.cluster.cancel([7])
    assert UNFINISHED == jobs.state[1]


@both
def test_states_of_jobs_in_the_cluster_are_not_written(make_jobs, plain):
    """Writing them would change nothing; the message names the call that does."""
    jobs = make_jobs((0, 100, 4), (10, 50, 4), (90, 1, 1))
    model, _ = submitted(jobs, plain=plain)
    model.run(until=40)
    rule = "state of job {} .row {}.: it waits or runs, .* cluster.cancel"
    with pytest.raises(FixedError, match=rule.format(2, 1)):
        jobs.state[1] = CANCELLED
    with pytest.raises(FixedError, match=rule.format(1, 0)):
        jobs.state[:] = CANCELLED
    with pytest.raises(FixedError, match=rule.format(1, 0)):
        jobs.state[jobs.submit < 20] = CANCELLED
    jobs.state[2] = RENOUNCED  # still to come
    model.run()
    assert [State.COMPLETED, State.COMPLETED, RENOUNCED] == jobs.state.tolist()


def test_patience_counts_only_jobs_that_started(make_jobs):
    """A job that was taken back while it waited has no wait until its start."""
    jobs = make_jobs((0, 100, 4), (0, 100, 4))
    model = Simulation(jobs, 4)
    (user,) = add_users(model, Work.of(jobs, SessionDefinition("arrival", None)))
    patience = RecentWaits(wait=0, last=1)
    patience.begin(user)
    model.run(until=40)
    model.cancel([1])
    patience.heard(user, 1, 40)
    assert not patience._jobs[user.number]


@both
def test_components_are_taken_back_together(plain):
    """Taking one back takes all of them back, on every cluster, whether they wait or run."""
    jobs = JobTable()
    jobs.append(5, user=1, processors=4, run_time=100, requested_time=100)
    grid = Grid("first-fit", coallocation=True)
    model = simulation_of(jobs, 4, others={"b": ClusterSpec(4)}, grid=grid, plain=plain)
    owner = Owner()
    broker = broker_of(model)
    assert broker is not None
    for rows in (np.array([0, 1]), np.array([2, 3])):
        model.add_unit(owner, rows)
        broker.submit_together(rows, 0)
    model.submit(owner, np.array([4]), 0, "grid")
    model.call_at(20, model.cancel, [3])
    model.call_at(30, model.cancel, [0])
    model.run()
    assert [0, 0, -1, -1, 30] == jobs.start.tolist()
    assert [30, 30, 20, 20, 130] == jobs.end.tolist()
    assert [(1, 20), (0, 30), (2, 130)] == owner.heard
