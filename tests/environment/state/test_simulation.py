"""The state of a simulation that has not come to its end."""

import numpy as np
import pytest
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.holds.held import hold
from hpcrowd.environment.holds.rules import Rules
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.platform.changes import Maintenance, NodesDown, Resize
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.state.state import ClusterState, begin_from
from hpcrowd.scenarios.kinds.files import scenario_of

from tests.environment.machine.machine_cases import random_jobs, random_machine
from tests.support.populations import small_log
from tests.support.simulations import simulation_of

PROCESSORS = 8


def staged(make_trace, tmp_path, **settings):
    """Return a replay of the log of twelve users, ready to begin."""
    from hpcrowd import write_swf

    write_swf(small_log(make_trace), tmp_path / "log.swf")
    scenario = scenario_of({"kind": "replay", "trace": "log.swf", **settings}, tmp_path)
    return scenario.stage(scenario.prepare())


def same(one, other):
    """Check that two states have the same jobs at the same second of the same machine."""
    assert one.jobs.matrix[:, : len(one.jobs)].tolist() == other.jobs.matrix.tolist()
    for name in ("now", "clock", "processors", "down", "closed", "held", "placed"):
        assert getattr(one, name) == getattr(other, name), name


@pytest.mark.parametrize("users", ["rigid", "think-time"])
def test_the_state_now_is_that_of_the_whole_run(make_trace, tmp_path, users):
    """Cut anywhere, it has what the finished run has at that second, and nothing of later."""
    whole = staged(make_trace, tmp_path, users=users)
    whole.model.run()
    model = staged(make_trace, tmp_path, users=users).model
    busy = np.unique(np.concatenate((whole.model.jobs.submit, whole.model.jobs.start)))
    rng = np.random.default_rng(3)
    with pytest.raises(QuantityError, match="no job had been submitted"):
        ClusterState.of_simulation(model)
    seen = {"running": 0, "waiting": 0, "later": 0}
    for now in np.sort(rng.integers(0, 50 * DAY, 40)).tolist():
        if now in busy:  # what comes in this very second has not come yet
            continue
        model.run(until=now)
        found = ClusterState.of_simulation(model)
        same(ClusterState.of(whole.model.jobs, now, model.clock, PROCESSORS, simulated=True), found)
        same(ClusterState.of(model.jobs, now, model.clock, PROCESSORS, simulated=True), found)
        seen["running"] += len(found.running)
        seen["waiting"] += len(found.waiting)
        seen["later"] += int((model.jobs.submit > now).sum())
        assert (found.jobs.run_time[found.running] == UNKNOWN).all()
        assert (found.jobs.start == UNKNOWN).all()
    assert min(seen.values()) > 20, seen


def test_what_changes_of_the_platform_have_done(make_jobs):
    """Size, what is down, and announced maintenance are as they are at that second."""
    jobs = make_jobs((0, 5 * DAY, 1), (HOUR, 5 * DAY, 1))
    changes = [
        NodesDown(2 * HOUR, 3 * HOUR, 4),
        Maintenance(5 * HOUR, 6 * HOUR, HOUR, "run"),
        Resize(8 * HOUR, 6),
    ]
    model = simulation_of(jobs, 10, platform=changes)
    model.cluster.submit(np.arange(2), jobs.recorded_submit)
    found = {}
    for hour in (1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 9):
        model.run(until=round(hour * HOUR))
        state = ClusterState.of_simulation(model)
        found[hour] = state.processors, state.down, state.closed
    window = ((5 * HOUR, 6 * HOUR),)
    expected = {
        1.5: (10, 0, ()), 2.5: (10, 4, ()), 3.5: (10, 0, ()), 4.5: (10, 0, window),
        5.5: (10, 0, window), 6.5: (10, 0, ()), 9: (6, 0, ()),
    }  # fmt: skip
    assert expected == found


def test_jobs_that_are_held_back(make_jobs):
    """A job that waits for its earliest start is held, with the reason; others are not."""
    jobs = make_jobs((0, HOUR, 4), (10, HOUR, 4), (20, HOUR, 4))
    model = Simulation(jobs, 4)
    hold(model, Rules(np.array([0, 5 * HOUR, 0]), np.zeros(3, bool)))
    model.cluster.submit(np.arange(3), jobs.recorded_submit)
    model.run(until=60)
    state = ClusterState.of_simulation(model)
    assert [1, 2] == state.waiting.tolist()
    assert {1: "not eligible yet: earliest start or hold"} == state.held


@pytest.mark.parametrize("policy", ["slurm", "easy"])
def test_nodes_keep_their_jobs(policy):
    """On a machine of nodes each running job has its place, and another run can begin there."""
    rng = np.random.default_rng(0)
    site = random_machine(rng)
    jobs = random_jobs(rng, site)
    model = simulation_of(jobs, site.cores, policy, machine=site)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    model.run(until=20)
    state = ClusterState.of_simulation(model)
    assert len(state.running) > 1
    assert state.running.tolist() == sorted(state.placed)
    assert all(one.holding for one in state.placed.values())
    known = state.jobs.copy()
    known.run_time[:] = jobs.run_time[np.searchsorted(jobs.number, known.number)]
    again = simulation_of(known, site.cores, policy, machine=site)
    begin_from(again, state.now, state.running, state.waiting, placed=state.placed)
    again.run()
    assert (known.start[state.running] == state.jobs.recorded_start[state.running]).all()
