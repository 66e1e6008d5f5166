"""Results of runs under a power cap that slows jobs: the time they need, and the one they took."""

import numpy as np
import pytest
from hpcrowd import Simulation, State, Work, add_users
from hpcrowd.analysis import tables
from hpcrowd.analysis.accounts.platform import jobs_of
from hpcrowd.environment.power.caps import PowerCap, SpeedLaw
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.state.begin import begin_from
from hpcrowd.platform import NodesDown, SpeedChange

from tests.environment.power.power_cases import made
from tests.support.simulations import simulation_of

#: The second job runs at half the clock only, the third at full clock, the last never.
ROWS = [(0, 100, 3), (60, 20, 1), (60, 80, 1), (400, 10, 9)]

HALF = SpeedLaw(1, exponent=1, levels=(1, 0.5))

#: Four idle processors draw 8 W, four busy ones 48 W, at half the clock 28 W.
CAP = PowerCap(Signal(np.array([0, 50, 100]), np.array([48.0, 28.0, 48.0])), law=HALF)


def simulated(cap=CAP, rows=ROWS, **options):
    """A simulation of users who wait for nothing."""
    jobs = made(rows)
    power = PowerInUse(Power((NodePower("node", 2, 10),), cap=cap))
    model = simulation_of(jobs, 4, parts=[power], **options)
    add_users(model, Work.of(jobs), "rigid")
    return model


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_both_run_times(plain):
    """The need is the one of the trace, and start and the slowed time give the end."""
    model = simulated(plain=plain)
    model.run()
    jobs = jobs_of(model)
    assert [100, 20, 80, 10] == jobs.run_time.tolist()
    assert [0, 60, 100, -1] == jobs.start.tolist()
    assert [125, 40, 80, -1] == jobs.slowed_run_time.tolist()
    assert np.array_equal(jobs.end[:3], (jobs.start + jobs.slowed_run_time)[:3])


def test_the_simulation_goes_on():
    """Results in the middle of a run leave it as it is."""
    model, whole = simulated(), simulated()
    model.run(until=80)
    seen = jobs_of(model)
    assert [100, 20, 80, 10] == seen.run_time.tolist()
    assert [150, 40, -1, -1] == seen.slowed_run_time.tolist()
    model.run()
    whole.run()
    assert np.array_equal(whole.jobs.matrix, model.jobs.matrix)


def test_stopped_killed_and_running_jobs():
    """A job that starts again has the time of its last run, a killed one what it was to take."""
    model = simulated(rows=[(0, 90, 4)], platform=[NodesDown(60, 70, 4)])
    model.run()
    assert [90] == jobs_of(model).run_time.tolist()
    assert [105] == jobs_of(model).slowed_run_time.tolist()
    model = simulated(rows=[(0, 90, 4, 95)], overrun="kill")
    model.run()
    jobs = jobs_of(model)
    assert (State.KILLED, 90, 130, 95) == (
        jobs.state[0], jobs.run_time[0], jobs.slowed_run_time[0], jobs.end[0],
    )  # fmt: skip
    # A run that begins with running jobs knows how long these need.
    jobs = made([(0, 100, 4), (5, 10, 4)])
    jobs.recorded_start[:] = 0, -1
    power = Power((NodePower("node", 2, 10),), cap=PowerCap(28, HALF))
    model = Simulation(jobs, 4, parts=[PowerInUse(power)])
    begin_from(model, 10, np.array([0]), np.array([1]))
    model.run()
    assert [100, 10] == jobs_of(model).run_time.tolist()
    assert [190, 20] == jobs_of(model).slowed_run_time.tolist()


@pytest.mark.parametrize("cap", [None, PowerCap(28), PowerCap(48)])
def test_other_runs_have_one_run_time(cap):
    """Without a cap that slows jobs the table is that of the simulation."""
    model = simulated(cap, platform=[SpeedChange(50, 0.5)])
    model.run()
    assert jobs_of(model) is model.jobs
    assert model.jobs.slowed_run_time is None
    assert "slowed_run_time" not in model.jobs.to_frame()


def test_the_file_has_both(tmp_path):
    """The column is written, read, copied and cut like the others."""
    model = simulated()
    model.run()
    jobs = jobs_of(model)
    tables.write_jobs(jobs, tmp_path / "jobs.parquet")
    read = tables.read_jobs(tmp_path / "jobs.parquet")
    assert jobs.slowed_run_time.tolist() == read.slowed_run_time.tolist()
    assert jobs.to_frame().drop(columns="state").equals(read.to_frame().drop(columns="state"))
    rows = np.array([2, 0])
    assert jobs.slowed_run_time[rows].tolist() == jobs.take(rows).slowed_run_time.tolist()
    assert jobs.slowed_run_time.tolist() == jobs.copy().slowed_run_time.tolist()
    tables.write_jobs(model.jobs, tmp_path / "jobs.parquet")
    assert tables.read_jobs(tmp_path / "jobs.parquet").slowed_run_time is None
