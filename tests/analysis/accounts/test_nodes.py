"""Results of machines of nodes, and of runs under a power cap that slows jobs."""

import numpy as np
import pytest
from hpcrowd import Simulation, State, Work, add_users
from hpcrowd.analysis import results
from hpcrowd.analysis.accounts.nodes import results_of
from hpcrowd.analysis.accounts.platform import jobs_of
from hpcrowd.analysis.comparison.numbers import compare
from hpcrowd.analysis.comparison.sweeps import row_of
from hpcrowd.analysis.parts import RunParts
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.analysis.run import Run, headline
from hpcrowd.environment.machine import model as machine
from hpcrowd.environment.power.caps import PowerCap, SpeedLaw
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.state.state import begin_from
from hpcrowd.platform import NodesDown, SpeedChange

from tests.environment.machine.machine_cases import AT_ONCE, Nobody, table
from tests.environment.power.power_cases import made
from tests.support.simulations import simulation_of

GPUS = machine.NodeType(name="g1", cores=4, memory=1000, gpus={"a": 4})
PLAIN = machine.NodeType(name="n1", cores=4, memory=1000)
PARTITIONS = (
    machine.Partition(name="work", nodes=("n1", "g1"), default=True, max_time=1000),
    machine.Partition(name="urgent", nodes=("n1",), priority_tier=2),
    machine.Partition(name="spare", nodes=("g1",)),
)
REQUEUE = {"preempt_type": "partition", "preempt_mode": machine.Preempt.REQUEUE}
SETTINGS = machine.SchedulingSettings(**AT_ONCE, **REQUEUE)
SITE = machine.Machine(nodes=(GPUS, PLAIN), partitions=PARTITIONS, scheduling=SETTINGS)


def story(*jobs, site=SITE, label="story", scheduler="slurm"):
    """Run jobs on a machine, and return the run."""
    made, at = table(*jobs)
    model = simulation_of(made, site.cores, scheduler, machine=site)
    model.submit(Nobody(), np.arange(len(jobs)), at)
    model.run()
    how = {"attempts": model.attempts, "parts": RunParts(*results_of(model))}
    return Run(made, site.cores, label, {"kind": "replay", "label": label}, **how)


@pytest.fixture(scope="module")
def preempted():
    """Return a run in which an urgent job preempts one on n1 after 40 s, which runs again."""
    return story(
        {"cores": 4, "gpus": 2, "memory_per_node": 500, "run": 200, "partitions": "work"},
        {"cores": 4, "run": 100, "partitions": "work"},
        {"cores": 4, "run": 60, "at": 40, "partitions": "urgent"},
        {"cores": 1, "limit": 2000, "partitions": "work"},
        {"cores": 1, "gpus": 9, "partitions": "work"},
        {"cores": 1, "limit": 3000, "partitions": "work"},
    )


def test_preempted_runs_and_their_work_are_counted(preempted):
    """Four cores for 40 s are lost, once; the job runs again after the urgent one."""
    metrics, home = preempted.metrics, preempted.parts["nodes"].account["home"]
    assert (1, 160 / 3600) == (metrics["runs_preempted"], metrics["preempted_processor_h"])
    assert (1, 160) == (home["runs_requeued"], home["preempted_processor_s"])
    assert [("preempted", 1)] == [(one.cause, one.row) for one in preempted.attempts]
    assert [1, 0, 0] == [one["runs_preempted"] for one in home["partitions"].values()]


@pytest.mark.parametrize("scheduler", ["easy", "conservative", "fcfs"])
def test_policies_of_pools_count_what_nodes_hold(scheduler):
    """EASY and others on nodes have the same totals, without preemption."""
    run = story(
        {"cores": 4, "gpus": 2, "memory_per_node": 500, "run": 200, "partitions": "spare"},
        {"cores": 2, "run": 100, "partitions": "urgent"},
        {"cores": 1, "gpus": 9},
        scheduler=scheduler,
    )
    partitions = run.parts["nodes"].account["home"]["partitions"]
    assert [0, 1, 1] == [one["jobs"] for one in partitions.values()]
    assert (2 * 200 / (4 * 200), 0.5 * 0.5) == pytest.approx(
        (run.metrics["gpu_utilization"], run.metrics["memory_utilization"])
    )
    assert 2 * 100 / (4 * 200) == pytest.approx(partitions["urgent"]["utilization"])
    assert {2: "BadConstraints"} == run.parts["rejections"].rows
    assert 0 == run.metrics["runs_preempted"]


def test_rejected_jobs_are_counted_by_reason(preempted, tmp_path):
    """Each job that can never run keeps its reason, in totals, frames, words and folders."""
    reasons = {3: "PartitionTimeLimit", 4: "BadConstraints", 5: "PartitionTimeLimit"}
    assert reasons == preempted.parts["rejections"].rows
    home = preempted.parts["nodes"].account["home"]
    assert {"BadConstraints": 1, "PartitionTimeLimit": 2} == home["rejected"]
    assert 3 == preempted.metrics["jobs_rejected"] == home["partitions"]["work"]["jobs_rejected"]
    frame = preempted.to_frame()
    assert "BadConstraints" == frame["rejected_for"][4]
    lines = headline(preempted)
    assert "  3 jobs rejected: 1 BadConstraints, 2 PartitionTimeLimit" in lines
    assert "  1 run preempted (1 requeued), 0.0 processor-hours lost" in lines
    row = row_of(preempted)
    assert (2, 400) == (row["partition.work.jobs"], row["machine.home.gpu_s"])
    write_results(preempted, tmp_path / "run", plots=False)
    again = read_results(tmp_path / "run")
    assert preempted.metrics == again.metrics
    assert preempted.parts["nodes"].account == again.parts["nodes"].account
    assert preempted.parts["rejections"].rows == again.parts["rejections"].rows
    assert list(preempted.attempts) == list(again.attempts)


def test_use_of_the_machine_and_its_partitions(preempted):
    """GPUs, memory and cores are in use for as long as jobs held them, where they ran."""
    makespan, metrics = preempted.metrics["makespan_s"], preempted.metrics
    assert 2 * 200 / (4 * makespan) == pytest.approx(metrics["gpu_utilization"])
    assert 500 * 200 / (2000 * makespan) == pytest.approx(metrics["memory_utilization"])
    waits = (preempted.jobs.start - preempted.jobs.submit)[:2]
    names = ("jobs", "wait_mean_s", "wait_median_s", "wait_max_s", "utilization", "gpu_utilization")
    partitions = preempted.parts["nodes"].account["home"]["partitions"]
    work, urgent, spare = ([one[name] for name in names] for one in partitions.values())
    expected = [2, waits.mean(), np.median(waits), waits.max(), 4 * 300 / (8 * makespan)]
    assert expected == pytest.approx(work[:5])
    assert [1, 0, 0, 0, 60 / makespan] == pytest.approx(urgent[:5])
    assert (None, [0, None, None, None, 0.0, 0.0]) == (urgent[5], spare)
    nodes = (machine.NodeType(name="n1", cores=4), machine.NodeType(name="g1", cores=4))
    unlimited = SITE.model_copy(update={"nodes": nodes})
    other = story({"cores": 1, "memory_per_node": 10}, site=unlimited).metrics
    assert (None, None) == (other["gpu_utilization"], other["memory_utilization"])


def test_a_job_that_never_starts_counts_where_it_asked():
    """A job of a partition that is down waits until the end of the run, and is counted there."""
    down = PARTITIONS[2].model_copy(update={"up": False})
    site = SITE.model_copy(update={"partitions": (*PARTITIONS[:2], down)})
    for asked, jobs, waiting in (("spare,work", [2, 0, 0], 0), ("spare", [1, 0, 0], 1)):
        run = story({"cores": 1}, {"cores": 1, "partitions": asked}, site=site)
        partitions = run.parts["nodes"].account["home"]["partitions"]
        assert jobs == [one["jobs"] for one in partitions.values()]
        assert waiting == partitions["spare"]["jobs_waiting"]


def test_runs_are_compared_by_partition(preempted):
    """A comparison has the mean wait of each partition in both runs."""
    found = compare([preempted, story({"cores": 4, "partitions": "work"}, label="calm")])
    waits = {
        name: [None if one is None else one.mean for one in both]
        for name, both in found.partition_waits.items()
    }
    work = preempted.parts["nodes"].account["home"]["partitions"]["work"]["wait_mean_s"]
    assert {"work": [work, 0.0], "urgent": [0.0, None], "spare": [None, None]} == waits
    assert work == found.to_json()["groups"][0]["partition_waits_s"]["work"]["mean"]


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
    assert np.array_equal(whole.run().jobs.matrix, model.run().jobs.matrix)


def test_stopped_killed_and_running_jobs():
    """A job that starts again has the time of its last run, a killed one what it was to take."""
    jobs = jobs_of(simulated(rows=[(0, 90, 4)], platform=[NodesDown(60, 70, 4)]).run())
    assert ([90], [105]) == (jobs.run_time.tolist(), jobs.slowed_run_time.tolist())
    jobs = jobs_of(simulated(rows=[(0, 90, 4, 95)], overrun="kill").run())
    times = jobs.run_time[0], jobs.slowed_run_time[0], jobs.end[0]
    assert (State.KILLED, (90, 130, 95)) == (jobs.state[0], times)
    # A run that begins with running jobs knows how long these need.
    jobs = made([(0, 100, 4), (5, 10, 4)])
    jobs.recorded_start[:] = 0, -1
    power = Power((NodePower("node", 2, 10),), cap=PowerCap(28, HALF))
    model = Simulation(jobs, 4, parts=[PowerInUse(power)])
    begin_from(model, 10, np.array([0]), np.array([1]))
    jobs = jobs_of(model.run())
    assert ([100, 10], [190, 20]) == (jobs.run_time.tolist(), jobs.slowed_run_time.tolist())


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
    model, file, rows = simulated(), tmp_path / "jobs.parquet", np.array([2, 0])
    jobs = jobs_of(model.run())
    results.write_jobs(jobs, file)
    read, slowed = results.read_jobs(file), jobs.slowed_run_time
    assert slowed.tolist() == read.slowed_run_time.tolist() == jobs.copy().slowed_run_time.tolist()
    assert jobs.to_frame().drop(columns="state").equals(read.to_frame().drop(columns="state"))
    assert slowed[rows].tolist() == jobs.take(rows).slowed_run_time.tolist()
    results.write_jobs(model.jobs, file)
    assert results.read_jobs(file).slowed_run_time is None
