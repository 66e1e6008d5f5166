"""What a cluster shows and refuses, and jobs that their users take back."""

import copy

import numpy as np
import pytest
from hpcrowd import (
    Cluster,
    ClusterSpec,
    JobTable,
    Scheduler,
    SessionDefinition,
    Simulation,
    State,
    Work,
    add_users,
)
from hpcrowd.analysis.metrics import summarize
from hpcrowd.environment.errors import FixedError
from hpcrowd.environment.grid.broker import broker_of
from hpcrowd.environment.stops import Stop
from hpcrowd.errors import QuantityError, SchedulerError, SimulationError
from hpcrowd.grids import Grid
from hpcrowd.platform import NodesDown
from hpcrowd.policies import EASY, WaitingJob
from hpcrowd.reactions import RecentWaits

from tests.environment.schedulers.pool_cases import begun, ran
from tests.support.simulations import both, simulation_of


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


@both
def test_submission_in_the_past_is_an_error(make_jobs, plain):
    """Nobody can submit before now; the message names both times."""
    jobs = make_jobs((0, 10, 1), (0, 10, 1))
    model = Simulation(jobs, 2, plain=plain)
    model.cluster.submit(0, 40)
    model.run(until=45)
    with pytest.raises(SimulationError, match=r"44 s: in the past, it is already 45 s"):
        model.cluster.submit(1, 44)


@pytest.mark.parametrize(
    "choice", [("processors", 0), ("scheduler", "soonest"), ("overrun", "maybe")]
)
def test_cluster_that_cannot_be(make_jobs, choice):
    """A cluster of no processors, or under an unknown policy, is reported with the value."""
    with pytest.raises(QuantityError, match=f"{choice[0]} {choice[1]!r}"):
        simulation_of(make_jobs((0, 1, 1)), **({"processors": 1} | dict([choice])))


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


def start(jobs, **options):
    """A machine of four processors, to which each job is submitted as a unit of its own."""
    model, owner = simulation_of(jobs, 4, **options), Owner()
    for row, at in enumerate(jobs.recorded_submit.tolist()):
        model.submit(owner, np.array([row]), at)
    return model, owner


QUEUE = [(0, 100, 3), (10, 50, 4), (20, 30, 2), (60, 10, 1)]

#: Policy, jobs, rows that are taken back at 40 s, starts, ends, and who hears of what when.
STORIES = {
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
@pytest.mark.parametrize("name", STORIES)
def test_jobs_are_taken_back(make_jobs, name, plain):
    """What they held is free within the second, in which their users hear of them."""
    scheduler, rows, taken, starts, ends, heard = STORIES[name]
    jobs = make_jobs(*rows)
    jobs.recorded_start[1] = 100
    model, owner = start(jobs, scheduler=scheduler, plain=plain)
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
    model, _ = start(jobs)
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
    model, _ = start(jobs, plain=plain)
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


def test_forks_take_back_their_own(make_jobs):
    """What is taken back in a copy of a run stays in the original."""
    jobs = make_jobs((0, 100, 4), (10, 50, 4), (20, 50, 4))
    model, _ = start(jobs)
    model.run(until=40)
    other = copy.deepcopy(model)
    other.cancel([1])
    other.run()
    model.run()
    assert [0, 100, 150] == jobs.start.tolist()
    assert [0, -1, 100] == other.jobs.start.tolist()
