"""Clusters, alone and in grids: who goes where, hears, arrives and starts when; co-allocation."""

import numpy as np
import pytest
from hpcrowd import ClusterSpec, JobTable, Simulation, State, Work, add_users
from hpcrowd.environment.errors import QuantityError, SchedulerError, SimulationError
from hpcrowd.environment.grid.broker import broker_of
from hpcrowd.environment.grid.das3 import das3_clusters
from hpcrowd.environment.quantities import time_at_speed
from hpcrowd.grids import Grid, GridPolicy

from tests.support.simulations import both, simulation_of


class Script:
    """Submits what the script says when a unit has ended: row, cluster, delay; notes the ends."""

    def __init__(self, model, *steps):
        self.model = model
        self.steps = list(steps)
        self.heard: list[int] = []

    def go_on(self, now):
        """Submit the next jobs as one unit."""
        if self.steps:
            step = self.steps.pop(0)
            self.model.add_unit(self, np.array([row for row, _, _ in step]))
            for row, cluster, delay in step:
                self.model.clusters[cluster].submit(row, now + delay)

    def on_finished(self, unit, now):
        """Note it, continue."""
        self.heard.append(now)
        self.go_on(now)


@both
def test_recorded_unit_runs_on_another_cluster(make_jobs, plain):
    """A unit with recorded gaps may go to any cluster; its gaps stay, its run times scale."""
    jobs = make_jobs((10, 100, 1), (14, 50, 1))
    model = simulation_of(jobs, 4, plain=plain, others={"slow": ClusterSpec(4, speed=0.5)})
    user = Script(model)
    model.own_units(np.array([0, 2]), np.array([0, 1]), [user])
    model.clusters["slow"].submit_unit(0, 30)
    model.run()
    assert [30, 34] == jobs.submit.tolist()
    assert [230, 134] == jobs.end.tolist()
    assert ([230], [1, 1]) == (user.heard, jobs.cluster.tolist())


def test_time_at_speed():
    """Times are rounded half up, last 1 s at least, and stay when they are 0 or unknown."""
    times = np.array([-1, 0, 1, 5, 7])
    assert [-1, 0, 1, 3, 4] == time_at_speed(times, 2.0).tolist()
    assert [-1, 0, 1, 1, 1] == time_at_speed(times, 100.0).tolist()
    assert [-1, 0, 2, 10, 14] == time_at_speed(times, 0.5).tolist()


@both
def test_submission_elsewhere_in_the_past_is_an_error(make_jobs, plain):
    """A cluster on which nothing happens keeps time with the others."""
    jobs = make_jobs((0, 10, 1), (0, 10, 1))
    model = simulation_of(jobs, 1, plain=plain, others={"idle": ClusterSpec(1)})

    def late():
        model.clusters["idle"].submit(1, 9)

    model.cluster.submit(0, 0)
    user = Script(model)
    user.on_finished = lambda unit, now: late()
    model.add_unit(user, np.array([0]))
    with pytest.raises(SimulationError, match=r"9 s: in the past, it is already 10 s"):
        model.run()


@pytest.mark.parametrize(
    ("name", "spec", "text"),
    [
        ("other", (0,), "processors 0"),
        ("other", (4, "soonest"), "scheduler 'soonest'"),
        ("other", (4, "easy", 0.0), "speed 0.0"),
        ("other", (4, "easy", float("nan")), "speed nan"),
    ],
)
def test_clusters_that_cannot_be(make_jobs, name, spec, text):
    """A cluster that cannot be, or is not there, is reported with the value, in one line."""
    with pytest.raises(QuantityError, match=text):
        simulation_of(make_jobs((0, 1, 1)), 1, others={name: ClusterSpec(*spec)})
    model = simulation_of(make_jobs((0, 1, 1)), 1, others={"other": ClusterSpec(4)})
    with pytest.raises(QuantityError, match="cluster 'moon': not known; choose home, other"):
        model.submit(Script(model), np.array([0]), 0, cluster="moon")


def test_units_next_to_replayed_users(make_jobs):
    """Next to the users of a trace, others hear of their own units."""
    jobs = make_jobs((0, 10, 1), (5000, 10, 1))
    model = Simulation(jobs, 4)
    add_users(model, Work.of(jobs))
    user = Script(model, [(2, "home", 3)])
    jobs.append(1, processors=1, run_time=5, requested_time=5)
    user.go_on(0)
    model.run()
    assert [8] == user.heard
    assert [0, 5000, 3] == jobs.submit.tolist()


# ---- brokers -----------------------------------------------------------------------------------


def grid_of(jobs, policy="first-fit", *, plain=False, coallocation=False):
    """A grid of a cluster of 4 processors, and one of 2 with nodes twice as fast."""
    others = {"fast": ClusterSpec(2, "easy", 2.0)}
    spec = Grid(policy, coallocation)
    return simulation_of(jobs, 4, "easy", others=others, grid=spec, plain=plain)


def jobs_of(*rows):
    """Jobs of (processors, run time), which ask for what they need."""
    jobs = JobTable()
    processors, run = np.array(rows).T
    jobs.append(len(rows), processors=processors, run_time=run, requested_time=run, user=1)
    return jobs


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "conservative", "sjf", "fair-share"])
def test_components_go_past_local_queues(scheduler):
    """Whatever the policy of the clusters, all processors are accounted for."""
    jobs = jobs_of(*[(2, 7), (4, 9), (1, 30), (1, 30), (2, 5), (4, 5)] * 8)
    model = simulation_of(
        jobs,
        4,
        scheduler,
        others={"more": ClusterSpec(4, scheduler)},
        grid=Grid("worst-fit", coallocation=True),
    )
    rows = np.arange(len(jobs)).reshape(-1, 6)
    for turn, row in enumerate(rows):
        model.clusters["home"].submit(row[[0, 1]], 10 * turn)
        model.clusters["more"].submit(row[4:], 10 * turn)
        broker_of(model).submit_together(row[2:4], 10 * turn + 1)
    model.run()
    assert (jobs.state == State.COMPLETED).all()
    assert (jobs.start[rows[:, 2]] == jobs.start[rows[:, 3]]).all()
    assert (jobs.cluster[rows[:, 2]] != jobs.cluster[rows[:, 3]]).all()
    for cluster in (0, 1):
        mine = jobs.cluster == cluster
        for time in np.unique(jobs.start[mine]):
            runs = mine & (jobs.start <= time) & (jobs.end > time)
            assert jobs.processors[runs].sum() <= 4


def test_bound_jobs_are_submitted_as_any():
    """Also with others, in any order, and as a unit."""
    jobs = jobs_of((3, 10), (2, 10), (4, 10), (4, 10), (2, 10))
    jobs.recorded_submit[:] = [0, 0, 0, 5, 5]
    model = grid_of(jobs, coallocation=True)
    for rows in ([0, 1], [3, 4]):
        broker_of(model).bind(rows)
    one, other = Script(model), Script(model)
    model.own_units(np.array([0, 3, 5]), np.arange(5), [one, other])
    broker_of(model).submit([2, 1, 0], 0)
    broker_of(model).submit_unit(1, 5)
    model.run()
    assert [0, 0, 10, 20, 20] == jobs.start.tolist()
    assert ([20], [30]) == (one.heard, other.heard)


def test_components_come_together_or_not_at_all():
    """Parts alone or at other seconds are reported, and grids without components."""
    jobs = jobs_of(*[(2, 10)] * 4)
    broker = broker_of(grid_of(jobs, coallocation=True))
    broker.bind([0, 1])
    broker.bind([0, 1])
    broker.bind([3])
    for rows, at in (([0], 0), ([1, 2], 0), ([0, 1], [0, 1])):
        with pytest.raises(SimulationError, match=r"rows \[0, 1\], which start together; submit"):
            broker.submit(rows, at)
    assert (jobs.submit == -1).all()
    with pytest.raises(SimulationError, match=r"job in row 1: .* part of only one job"):
        broker.bind([1, 2])
    with pytest.raises(SimulationError, match="the table has 4 jobs"):
        broker.bind([2, 4])

    model = grid_of(jobs_of((1, 1), (1, 1)))
    with pytest.raises(QuantityError, match="not enabled in this grid; use Grid"):
        broker_of(model).submit_together([0, 1], 0)
    model = simulation_of(jobs_of((1, 1)), 4, estimates="last-two", grid=Grid(coallocation=True))
    with pytest.raises(QuantityError, match="its estimates come from a predictor"):
        broker_of(model).submit_together([0], 0)


def test_a_job_with_a_renounced_component_is_renounced():
    """All of it, and its user hears of it at once."""
    jobs = jobs_of(*[(2, 10)] * 2)
    model = grid_of(jobs, coallocation=True)
    broker_of(model).bind([0, 1])
    jobs.state[1] = State.RENOUNCED
    broker_of(model).submit([0, 1], 3)
    model.run()
    assert [State.RENOUNCED] * 2 == jobs.state.tolist()
    assert [-1, -1] == jobs.submit.tolist()


class Patient(GridPolicy):
    """Sends a job on when a minute has passed, to the last cluster."""

    name = "patient"

    def select(self, now, waiting, sites):
        """Name the first job."""
        return (waiting[0], sites[-1:]) if now >= 60 + waiting[0].submit else None


def test_a_policy_of_ones_own():
    """It is asked when something happens; one that forgets a job is reported."""
    jobs = jobs_of((1, 10), (1, 90), (1, 10))
    model = grid_of(jobs, Patient())
    model.clusters["home"].submit([1], 0)
    broker_of(model).submit([0], 0)
    model.clusters["home"].submit([2], 70)
    model.run(until=30)
    assert ([0], 2) == (broker_of(model).waiting.tolist(), jobs.cluster[0])
    model.run()
    assert 70 == jobs.start[0]
    assert "patient" in repr(broker_of(model))
    model = grid_of(jobs_of((1, 10)), Patient())
    broker_of(model).submit([0], 0)
    with pytest.raises(SchedulerError, match="patient: 1 job left waiting at 0 s"):
        model.run()


def test_das3_is_as_in_the_table():
    """796 cores on 272 nodes, and the speeds of the clocks."""
    clusters = das3_clusters()
    assert [340, 64, 164, 136, 92] == [one.processors for one in clusters.values()]
    assert [1, 13 / 12, 11 / 12, 1, 1] == pytest.approx([one.speed for one in clusters.values()])
