"""Users made from a workload model: they draw batches of their group and wait for them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hpcrowd import JobTable, Simulation
from hpcrowd.agents.generative.pool_users import BatchPool, PoolMember, add_pool_users
from hpcrowd.analysis.models.generation import Generated, population
from hpcrowd.analysis.models.parts.base import Drawn
from hpcrowd.environment.clock import HOUR
from hpcrowd.errors import QuantityError
from hpcrowd.power import Signal
from hpcrowd.scenarios.kinds.populations.populate import populate


def pool(*sizes, run=100):
    """Return a pool of batches of these sizes; jobs of one processor."""
    first = np.append(0, np.cumsum(sizes)).astype(np.int64)
    ones = np.ones(first[-1], np.int64)
    return BatchPool(first, run * ones, 2 * run * ones, ones)


def member(number=1, group=1, wakes=0, *pauses):
    """Return a member."""
    return PoolMember(number, group, wakes, np.array(pauses or (50,), np.int64))


def simulated(members, pools, **more):
    """Return the jobs of a run on 2 processors."""
    simulation = Simulation(JobTable(), 2, "fcfs", seed=3)
    add_pool_users(simulation, members, pools, **more)
    simulation.run()
    return simulation.jobs


@pytest.mark.parametrize(
    ("batch", "hears", "submits"),
    [(2, True, [0, 150, 300]), (4, True, [0, 250]), (4, False, [0, 150, 300])],
    ids=["after the last has ended and the pause", "later if jobs wait", "unless oblivious"],
)
def test_when_the_next_batch_comes(batch, hears, submits):
    """Jobs of 100 s on two processors, a pause of 50 s, and so on up to the horizon."""
    jobs = simulated([member()], {1: pool(batch)}, horizon=400, hears=hears)
    assert np.repeat(submits, batch).tolist() == jobs.submit.tolist()
    assert {1} == set(jobs.user.tolist()) == set(jobs.group.tolist())


def test_members_and_their_pools():
    """Each draws from its group and its own stream; what makes no population is named."""
    pools = {1: pool(1, 2, 3, run=10), 2: pool(1, run=7)}
    alone = simulated([member()], pools, horizon=2000)
    both = simulated([member(), member(2, 2, 5)], pools, horizon=2000)
    assert alone.run_time.tolist() == both.run_time[both.user == 1].tolist()
    assert {7} == set(both.run_time[both.user == 2].tolist())
    simulation = Simulation(JobTable(), 2)
    with pytest.raises(QuantityError, match="user 1, group 9: no pool for this group, only for 1"):
        add_pool_users(simulation, [member(1, 9)], {1: pool(1)})
    with pytest.raises(QuantityError, match="user 1: needs pauses"):
        add_pool_users(simulation, [PoolMember(1, 1, 0, np.zeros(0, np.int64))], {1: pool(1)})
    with pytest.raises(QuantityError, match="pool: empty"):
        pool()


def test_users_of_a_workload_become_members():
    """Pools by group, first submissions, pauses between own batches; bags stay whole."""
    drawn = Drawn.of(
        np.array([0.0, 10, 20, 30, 500]),
        np.array([100.0, 40, 100, 60, 5]),
        np.array([1, 2, 1, 2, 4]),
        user=np.array([1, 2, 1, 2, 1]),
        group=np.array([1, 2, 1, 2, 1]),
        bag=np.array([0, 1, 0, 1, 2]),
        requested_time=np.array([200.0, -1, 200, -1, 50]),
    )
    model: Any = SimpleNamespace(name="test")
    found = population(Generated(model, drawn, 4, 0, ()))
    assert [(1, 1, 0, [380, 0]), (2, 2, 10, [420])] == [
        (one.number, one.group, one.wakes, one.pauses.tolist()) for one in found.members
    ]
    one, two = found.pools[1], found.pools[2]
    columns = (one.first, one.run_time, one.requested_time, one.processors, two.requested_time)
    assert [[0, 2, 3], [100, 100, 5], [200, 200, 50], [1, 1, 4], [40, 60]] == [
        column.tolist() for column in columns
    ]
    fast = one.at_speed(4)
    assert ([25, 25, 1], [200, 200, 50]) == (fast.run_time.tolist(), fast.requested_time.tolist())
    alone = Drawn.of(np.zeros(1), np.ones(1), np.ones(1, np.int64))
    with pytest.raises(QuantityError, match="model test: its jobs have no users"):
        population(Generated(model, alone, 4, 0, ()))


def test_stopped_runs_are_in_the_results():
    """A power cap stops jobs of generated users; their runs count, as in a replay."""
    hours = np.arange(72)
    watts = np.where((hours % 12 == 11) & (hours < 60), 6_450.0, 60_000.0)
    power = {
        "nodes": [{"name": "thin", "idle": "100 W", "processor": "50 W"}],
        "cap": {"over_time": Signal(hours * HOUR, watts), "stop": "requeue"},
    }
    run = populate("lublin", days=2, model_processors=64, power=power)
    assert len(run.attempts) > 10
    for one in run.attempts:
        assert one.cause == "power"
        assert one.end % (12 * HOUR) == 11 * HOUR
        assert one.end <= run.jobs.start[one.row]
