"""Results of machines of nodes: rejected and preempted jobs, GPUs and memory in use, partitions."""

import numpy as np
import pytest
from hpcrowd.analysis.accounts.nodes import results_of
from hpcrowd.analysis.comparison.numbers import compare
from hpcrowd.analysis.comparison.sweeps import row_of
from hpcrowd.analysis.parts import RunParts
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.analysis.run import Run, headline
from hpcrowd.environment.machine.model import (
    Machine,
    NodeType,
    Partition,
    Preempt,
    SchedulingSettings,
)

from tests.environment.machine.machine_cases import AT_ONCE, Nobody, table
from tests.support.simulations import simulation_of

SITE = Machine(
    nodes=(
        NodeType(name="g1", cores=4, memory=1000, gpus={"a": 4}),
        NodeType(name="n1", cores=4, memory=1000),
    ),
    partitions=(
        Partition(name="work", nodes=("n1", "g1"), default=True, max_time=1000),
        Partition(name="urgent", nodes=("n1",), priority_tier=2),
        Partition(name="spare", nodes=("g1",)),
    ),
    scheduling=SchedulingSettings(
        **AT_ONCE, preempt_type="partition", preempt_mode=Preempt.REQUEUE
    ),
)


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
    metrics = preempted.metrics
    assert (1, 160 / 3600) == (metrics["runs_preempted"], metrics["preempted_processor_h"])
    home = preempted.parts["nodes"].account["home"]
    assert (1, 160) == (home["runs_requeued"], home["preempted_processor_s"])
    assert [("preempted", 1)] == [(one.cause, one.row) for one in preempted.attempts]
    partitions = home["partitions"]
    assert [1, 0, 0] == [one["runs_preempted"] for one in partitions.values()]


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
    makespan = preempted.metrics["makespan_s"]
    assert 2 * 200 / (4 * makespan) == pytest.approx(preempted.metrics["gpu_utilization"])
    assert 500 * 200 / (2000 * makespan) == pytest.approx(preempted.metrics["memory_utilization"])
    waits = (preempted.jobs.start - preempted.jobs.submit)[:2]
    work, urgent, spare = preempted.parts["nodes"].account["home"]["partitions"].values()
    names = ("jobs", "wait_mean_s", "wait_median_s", "wait_max_s", "utilization", "gpu_utilization")
    numbers = [[one[name] for name in names] for one in (work, urgent, spare)]
    expected = [2, waits.mean(), np.median(waits), waits.max(), 4 * 300 / (8 * makespan)]
    assert expected == pytest.approx(numbers[0][:5])
    assert [1, 0, 0, 0, 60 / makespan] == pytest.approx(numbers[1][:5])
    assert None is numbers[1][5]
    assert [0, None, None, None, 0.0, 0.0] == numbers[2]
    nodes = (NodeType(name="n1", cores=4), NodeType(name="g1", cores=4))
    unlimited = SITE.model_copy(update={"nodes": nodes})
    other = story({"cores": 1, "memory_per_node": 10}, site=unlimited).metrics
    assert (None, None) == (other["gpu_utilization"], other["memory_utilization"])


def test_a_job_that_never_starts_counts_where_it_asked():
    """A job of a partition that is down waits until the end of the run, and is counted there."""
    down = SITE.partitions[2].model_copy(update={"up": False})
    site = SITE.model_copy(update={"partitions": (*SITE.partitions[:2], down)})
    run = story({"cores": 1}, {"cores": 1, "partitions": "spare,work"}, site=site)
    assert [2, 0, 0] == [
        one["jobs"] for one in run.parts["nodes"].account["home"]["partitions"].values()
    ]
    run = story({"cores": 1}, {"cores": 1, "partitions": "spare"}, site=site)
    found = run.parts["nodes"].account["home"]["partitions"]["spare"]
    assert (0, 1) == (found["jobs"], found["jobs_waiting"])


def test_runs_are_compared_by_partition(preempted):
    """A comparison has the mean wait of each partition in both runs."""
    calm = story({"cores": 4, "partitions": "work"}, label="calm")
    found = compare([preempted, calm])
    waits = {
        name: [None if one is None else one.mean for one in both]
        for name, both in found.partition_waits.items()
    }
    work = preempted.parts["nodes"].account["home"]["partitions"]["work"]["wait_mean_s"]
    assert {"work": [work, 0.0], "urgent": [0.0, None], "spare": [None, None]} == waits
    assert work == found.to_json()["groups"][0]["partition_waits_s"]["work"]["mean"]
