"""What people who know Mesa expect: steps, batches, own agents, removal, clear errors."""

import mesa
import numpy as np
import pytest
from hpcrowd import JobTable, Simulation, State, Work, add_users
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import FixedError
from hpcrowd.scenarios.kinds.replay import ReplayConfig

from tests.support.populations import small_log


@pytest.fixture
def model(make_jobs):
    """A simulation of one job of three hours and a bit."""
    found = Simulation(make_jobs((100, 3 * HOUR, 1)), 1)
    found.cluster.submit([0], 100)
    return found


def test_seed_of_none_draws_one(make_jobs):
    """Without a seed, runs differ, and each says how to repeat it."""
    seeds = {Simulation(make_jobs((0, 1, 1)), 1, seed=None).streams.seed for _ in range(3)}
    assert 3 == len(seeds)
    assert all(0 <= seed < 2**32 for seed in seeds)


class Watcher(mesa.Agent):
    """Notes when it is called."""

    def __init__(self, model):
        super().__init__(model)
        self.seen: list[int] = []

    def step(self):
        """Note the second."""
        self.seen.append(self.model.time)


@pytest.mark.parametrize("stepwise", [False, True])
def test_own_agents_step_each_hour(model, stepwise):
    """The ``step`` of an agent is called at the end of each hour, however the model runs."""
    watcher = Watcher(model)
    while stepwise and model.running:
        model.step()
    if not stepwise:
        model.run(until=2 * HOUR + 1)
        assert (3, True) == (model.steps, model.running)
    model.run()
    assert [HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR] == watcher.seen
    assert (4, False) == (model.steps, model.running)


class Small(Simulation):
    """A model for ``batch_run``."""

    def __init__(self, processors=1, rng=None, **_):
        jobs = JobTable()
        jobs.append(4, processors=1, recorded_submit=0, run_time=HOUR, requested_time=HOUR)
        super().__init__(jobs, processors, seed=rng)
        self.cluster.submit(np.arange(4), 0)
        self.datacollector = mesa.DataCollector(
            model_reporters={"waiting": lambda model: len(model.cluster.waiting)}
        )

    def step(self):
        """Run an hour and collect."""
        super().step()
        self.datacollector.collect(self)


def test_batch_run():
    """Mesa runs simulations in a batch, until they end, with the data that they collect."""
    rows = mesa.batch_run(Small, {"processors": [1, 2]}, rng=[1, 2], display_progress=False,
                          data_collection_period=1)  # fmt: skip
    found = {size: [row["waiting"] for row in rows if row["processors"] == size] for size in (1, 2)}
    assert [3, 2, 1, 0] == found[1][:4]
    assert [2, 0] == found[2][:2]
    assert {1, 2} == {row["rng"] for row in rows}


@pytest.mark.parametrize(
    ("name", "value", "way"),
    [
        ("processors", 200, r"Platform\(\[Resize"),
        ("scheduler", "fcfs", r"Platform\(\[SwitchPolicy"),
        ("speed", 2.0, r"Platform\(\[SpeedChange"),
        ("name", "moon", "another one"),
    ],
)
def test_what_does_not_change_by_assignment(model, name, value, way):
    """Assigning to what a cluster is made with is an error that says how it is changed."""
    before = getattr(model.cluster, name)
    with pytest.raises(FixedError, match=rf"{name} = .* of <Cluster home.*{way}"):
        setattr(model.cluster, name, value)
    assert before == getattr(model.cluster, name)


@pytest.mark.parametrize("users", ["think-time", "fluid", "rigid", "adjusted"])
@pytest.mark.parametrize("until", [0, 20_000])
def test_removed_users_submit_nothing(make_jobs, users, until):
    """What a removed user was still to submit is renounced; others go on."""
    rows = [(hour * HOUR, 600, 1, 600, 1 + hour % 3) for hour in range(24)]
    jobs = make_jobs(*rows)
    model = Simulation(jobs, 2)
    everyone = add_users(model, Work.of(jobs), users)
    if until:
        model.run(until=until)
    everyone[1].remove()
    model.run()
    mine = jobs.user == everyone[1].number
    early = jobs.recorded_submit <= until if until else np.zeros(len(jobs), bool)
    assert np.all(jobs.state[mine & early] == State.COMPLETED)
    assert np.all(jobs.state[mine & ~early] == State.RENOUNCED)
    assert np.all(jobs.submit[mine & ~early] == -1)
    assert np.all(jobs.state[~mine] == State.COMPLETED)
    assert everyone[1] not in model.agents


@pytest.mark.parametrize("users", ["generative", "shmueli-feitelson"])
def test_removed_users_generate_nothing(make_trace, users):
    """Users who make up their work stop too, and so do those of a model of the paper."""
    staged = ReplayConfig(users=users).stage(small_log(make_trace))
    model = staged.model
    model.run(until=20 * DAY)
    gone, *others = sorted(staged.users, key=lambda user: -user.submitted)
    gone.remove()
    model.run()
    jobs = model.jobs
    assert 0 < jobs.submit[jobs.user == gone.number].max() <= 20 * DAY
    assert jobs.submit[jobs.user == others[0].number].max() > 20 * DAY
