"""What generated jobs ask of a machine of nodes: drawn with size and run time, scaled, accepted."""

import json
from functools import cache

import numpy as np
import pytest
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.generation import generate, population
from hpcrowd.analysis.models.model import fit, read_model, write_model
from hpcrowd.analysis.models.parts.gate import Gate
from hpcrowd.analysis.models.parts.requests import Asked, MachineRequests, Room, scaled, steps_of
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import ModelFileError
from hpcrowd.environment.jobs import JobTable, State
from hpcrowd.environment.machine.files.toml_text import write_machine
from hpcrowd.environment.machine.model import Account, Machine, NodeType, Partition, Qos
from hpcrowd.environment.requests import WORDS, Ask
from hpcrowd.environment.traces.formats.registry import read_trace, write_trace
from hpcrowd.environment.traces.requests import requests_of
from hpcrowd.scenarios.kinds.populations.populate import populate
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.whatif.machine import made_up

from tests.analysis.features.feature_cases import poisson_workload

GB = 1024


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    """Return the path of three weeks of the made-up site, without waits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made_up, "DAYS", 21)
        jobs = made_up.made_up_jobs()
    path = tmp_path_factory.mktemp("site") / "jobs.txt"
    path.write_text(made_up.accounting(jobs, np.array([job.submit for job in jobs])))
    return path


@pytest.fixture(scope="module")
def workload(log_file):
    """Return the workload of the log."""
    return Workload.from_trace(read_trace(log_file))


@pytest.fixture(scope="module")
def models(workload):
    """Return a function that fits a model to the log, once."""
    return cache(lambda name: fit(name, workload, arrivals="poisson"))


def gpus_of(requests):
    """Return the GPUs of each job, however it asks for them; 0 for none."""
    by_node = requests[Ask.GPUS_PER_NODE] * np.maximum(requests[Ask.NODES], 1)
    return np.maximum(np.maximum(requests[Ask.GPUS], by_node), 0)


def refusals(made, machine):
    """Return why a machine would reject the jobs of a workload, without empty reasons."""
    jobs = JobTable(len(made))
    jobs.user[:], jobs.processors[:] = made.drawn.user, made.drawn.processors
    jobs.requested_time[:] = made.drawn.requested_time
    jobs.requests = made.requests
    admission = Gate(machine).admission(jobs)
    return [reason for row in range(len(jobs)) if (reason := admission.refusal(row))]


def test_size_run_time_and_requests_stay_together(workload, models):
    """By class of size and run time: shares of GPUs and partitions, and memory, as in the log."""
    recorded = workload.requests()
    made = generate(models("locality"), jobs=6000, seed=4)
    then, now = (  # Four classes of size, two of run time.
        2 * np.searchsorted([4, 8, 16], jobs.processors, side="right") + (jobs.run_time > 2 * HOUR)
        for jobs in (workload, made.drawn)
    )
    for one in range(8):
        sides = (recorded, then == one), (made.requests, now == one)
        assert sides[0][1].sum() > 20
        assert sides[1][1].sum() > 50
        partitions = [np.array(asked.texts(Ask.PARTITIONS))[which] for asked, which in sides]
        shares = [
            [np.mean(each == name) for name in ("normal", "long", "gpu", "scavenger")]
            + [(gpus_of(asked)[which] > 0).mean()]
            for each, (asked, which) in zip(partitions, sides, strict=True)
        ]
        assert shares[0] == pytest.approx(shares[1], abs=0.12), one
        memory = [asked[Ask.MEMORY_PER_CORE][which] for asked, which in sides]
        assert memory[0].mean() == pytest.approx(memory[1].mean(), rel=0.12), one
        assert set(memory[1].tolist()) <= set(memory[0].tolist()) | {2 * GB, 3 * GB, 6 * GB}
    assert gpus_of(made.requests).max() <= gpus_of(recorded).max()


def test_kinds_of_jobs_draw_from_their_own_kind(models):
    """One of two kinds of equal jobs, and the groups of MUGM with learners, have the GPUs."""
    size = 4000
    random = np.random.default_rng(1)
    kinds = np.repeat([1, 2], size // 2)
    room = {"cores": 4, "nodes": 1, "node_cores": 4}
    model = MachineRequests(
        profiles=((("partitions", "cpu"),), (("gpus", 1), ("partitions", "gpu"))),
        donors=((0, 1, 4, 20, 100), (1, 2, 4, 20, 100)),
        rooms=({"partitions": "cpu", **room}, {"partitions": "gpu", **room, "node_gpus": 1}),
    )
    drawn = generate(models("feitelson97"), jobs=size, seed=1).drawn.first(size)
    drawn.processors[:], drawn.run_time[:] = 4, 1024.0
    _, requests, _ = model.draw(drawn, random, kinds)
    assert {"cpu"} == set(requests.texts(Ask.PARTITIONS)[: size // 2])
    assert {"gpu"} == set(requests.texts(Ask.PARTITIONS)[size // 2 :])
    _, mixed, _ = model.draw(drawn, random)
    assert 0.4 < np.mean(gpus_of(mixed) > 0) < 0.6
    made = generate(models("mugm"), jobs=4000, seed=2)
    gpus, groups = gpus_of(made.requests) > 0, made.drawn.group
    share = [gpus[groups == group].mean() for group in np.unique(groups)]
    assert max(share) > 3 * min(share)


def test_jobs_of_a_bag_and_repetitions_ask_for_the_same(models):
    """Equal jobs of a bag have equal requests, and so have repetitions of a job."""
    made = generate(models("feitelson97"), jobs=3000, seed=1)
    partitions, steps = np.array(made.requests.texts(Ask.PARTITIONS)), steps_of(made.drawn.run_time)
    repeated = np.flatnonzero(made.drawn.follows >= 0)
    before = made.drawn.follows[repeated]
    like = steps[repeated] == steps[before]
    assert like.sum() > 100
    assert (partitions[repeated] == partitions[before])[like].all()


ROOM = Room(cores=192, nodes=6, node_cores=32, node_gpus=4, node_memory=128 * GB)


@pytest.mark.parametrize(("asked", "before", "cores", "expected"), [
    # The same size: the same request.
    ({"nodes": 2, "gpus": 2, "memory_per_core": 100}, 8, 8,
     {"nodes": 2, "gpus": 2, "memory_per_core": 100}),
    ({}, 4, 8, {}),
    # Packed stays packed, and spread keeps its cores per node.
    ({"nodes": 1}, 32, 96, {"nodes": 3}),
    ({"nodes": 4}, 8, 12, {"nodes": 6}),
    ({"nodes": 4}, 8, 3, {"nodes": 2}),
    # GPUs per core, whole, on as many nodes as have them.
    ({"nodes": 1, "gpus": 1}, 4, 8, {"nodes": 1, "gpus": 2}),
    ({"nodes": 1, "gpus": 1}, 4, 1, {"nodes": 1, "gpus": 1}),
    ({"nodes": 1, "gpus": 4}, 8, 16, {"nodes": 2, "gpus": 8}),
    ({"nodes": 1, "gpus_per_node": 4}, 8, 16, {"nodes": 2, "gpus_per_node": 4}),
    ({"nodes": 1, "gpus": 4}, 1, 32, {"nodes": 6, "gpus": 24}),
    # Memory per core, on more nodes if one has too little.
    ({"nodes": 1, "memory_per_core": 8 * GB}, 8, 32, {"nodes": 2, "memory_per_core": 8 * GB}),
    ({"nodes": 1, "memory_per_node": 16 * GB}, 8, 16, {"nodes": 1, "memory_per_node": 32 * GB}),
    ({"nodes": 1, "memory_per_core": 64 * GB}, 8, 192, {"nodes": 6, "memory_per_core": 4 * GB}),
    ({"memory_per_node": 0, "nodes": 1}, 8, 16, {"memory_per_node": 0, "nodes": 1}),
    # Tasks as wide as the size divides by.
    ({"tasks": 4, "cores_per_task": 4}, 16, 8, {"tasks": 2, "cores_per_task": 4}),
    ({"tasks": 4, "cores_per_task": 4}, 16, 6, {"tasks": 2, "cores_per_task": 3}),
    ({"nodes": 2, "tasks": 8, "tasks_per_node": 4}, 8, 16,
     {"nodes": 4, "tasks": 16, "tasks_per_node": 4}),
    ({"features": "milan", "exclusive": 1, "qos": "high"}, 1, 5,
     {"features": "milan", "exclusive": 1, "qos": "high"}),
])  # fmt: skip
def test_requests_are_scaled_to_the_size(asked, before, cores, expected):
    """Memory and GPUs per core are kept, and what nodes have is not exceeded."""
    found = scaled(Asked.of(asked), before, cores, ROOM)
    assert expected == {ask.name.lower(): value for ask, value in found.items()}


@pytest.mark.parametrize("name", ["locality", "mugm", "feitelson97", "lublin"])
def test_generated_jobs_are_accepted(models, name):
    """No job is rejected by the machine, and no time limit is longer than the partition's."""
    machine = made_up.made_up_machine()
    made = generate(models(name), jobs=2000, seed=3, machine=machine)
    assert [] == refusals(made, machine)
    longest = {one.name: one.max_time for one in machine.partitions}
    most = np.array([longest[partition] for partition in made.requests.texts(Ask.PARTITIONS)])
    assert (made.drawn.requested_time <= most).all()
    assert (made.drawn.run_time <= most).all()


def test_another_machine_accepts_jobs_that_are_cut_to_it(models):
    """Unknown partitions give way to the default one; sizes, times and memory are cut, and said."""
    normal = Partition(name="normal", nodes=("a[1-2]",), default=True, max_time=DAY // 4)
    gpu = Partition(name="gpu", nodes=("b1",), allow_accounts=("two",), allow_qos=("standard",),
                    max_time=2 * HOUR, max_nodes=1)  # fmt: skip
    small = NodeType(name="a[1-2]", cores=4, memory=8 * GB)
    large = NodeType(name="b1", cores=8, memory=12 * GB, gpus={"v100": 1})
    accounts = Account(account="one"), Account(account="two")
    machine = Machine(nodes=(small, large), qos=(Qos(name="standard"),), accounts=accounts,
                      partitions=(normal, gpu))  # fmt: skip
    model = models("locality")
    assert refusals(generate(model, jobs=500, seed=3), machine)
    made = generate(model, jobs=500, seed=3, machine=machine)
    assert [] == refusals(made, machine)
    assert {"normal", "gpu"} == set(made.requests.texts(Ask.PARTITIONS))
    assert (1, 8) == (gpus_of(made.requests).max(), made.drawn.processors.max())
    notes = "\n".join(made.notes)
    assert "with fewer processors than drawn" in notes
    assert "would run for longer than a partition allows" in notes


def test_partitions_without_nodes_give_way_to_the_default_one():
    """So do unknown ones; features, QOS and GPUs that are not there are no longer asked for."""
    parts = Partition(name="empty", nodes=()), Partition(name="all", default=True)
    gate = Gate(Machine(nodes=(NodeType(name="a1", cores=4),), partitions=parts))
    asked = {"partitions": "empty,gone", "features": "fast", "qos": "high", "gpus": 1,
             "gpu_type": "a100", "memory_per_core": 10}  # fmt: skip
    found = gate.adapted(Asked.of(asked))
    assert {Ask.PARTITIONS: "all", Ask.MEMORY_PER_CORE: 10} == found.values
    assert Room(cores=4, nodes=1, node_cores=4) == gate.room(found)
    assert gate.refusal(found.values, 5, 60)
    assert 4 == gate.passing(found, 2, 8, gate.room(found), 60)[1]


def test_logs_of_many_jobs_or_without_requests(workload):
    """Of many jobs evenly spaced ones are kept; without requests no key and column is made."""
    few = MachineRequests.fit(workload, most_donors=50)
    assert 50 == sum(count for *_, count in few.donors)
    partitions = {dict(few.profiles[place])["partitions"] for place, *_ in few.donors}
    assert {"normal", "long", "gpu", "scavenger"} == partitions
    model = fit("feitelson97", poisson_workload(300, 300, 0))
    assert model.machine_requests is None
    assert "machine_requests" not in model.to_json()


def test_users_of_a_model_work_on_the_machine(models):
    """Batches carry their requests; nothing is rejected, and GPUs and partitions are in use."""
    machine, model = made_up.made_up_machine(), models("locality")
    pools = population(generate(model, days=5, machine=machine)).pools.values()
    assert min(len(pool.requests or ()) for pool in pools) > 0
    run = populate(model, machine=machine, scheduler="slurm", days=5)
    assert len(run.jobs) == run.jobs.count(State.COMPLETED) > 100
    assert {"normal", "gpu"} <= set(run.jobs.requests.texts(Ask.PARTITIONS))


def test_commands_take_a_machine(call, log_file, tmp_path):
    """Fit and generate; SWF says what it cannot hold, and populate what it cannot have."""
    site, model = tmp_path / "site.toml", tmp_path / "m.json"
    write_machine(made_up.made_up_machine(), site)
    for words, code, told in (
        (("fit", "feitelson97", log_file, "-o", model), 0,
         "requests to a machine of 9 kinds go with size and run time"),
        (("generate", model, "--machine", site, "--jobs", 20, "-o", tmp_path / "x.parquet"), 0, ""),
        (("generate", model, "--jobs", 20, "-o", tmp_path / "x.swf"), 0,
         "SWF cannot hold what the jobs ask of a machine; write .parquet"),
        (("populate", model, "--machine", site, "--days", 1, "--json"), 0, '"jobs_rejected": 0'),
        (("populate", model, "--machine", site, "--processors", 64), 2,
         "the machine has 224 cores; give one of the two"),
        (("populate", model, "--machine", "nowhere.toml"), 2, "nowhere.toml"),
    ):  # fmt: skip
        found, out, err = call(*words)
        assert code == found, err
        assert told in " ".join(f"{out} {err}".split())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_generated_traces_keep_the_requests(models, tmp_path, ending):
    """What is read back is what was generated, and a replay runs all jobs on the machine."""
    machine = made_up.made_up_machine()
    made = generate(models("locality"), jobs=400, seed=5, machine=machine)
    path = tmp_path / f"made.{ending}"
    write_trace(made.trace(), path)
    trace = read_trace(path)
    found = requests_of(trace, np.arange(len(trace)))
    for ask in Ask:
        asked, kept = (
            one.texts(ask) if ask in WORDS else one[ask].tolist() for one in (made.requests, found)
        )
        assert asked == kept, ask
    run = replay(trace, machine=machine, scheduler="slurm", users="rigid")
    assert len(made) == run.jobs.count(State.COMPLETED)


def test_models_keep_requests_in_their_files(models, tmp_path):
    """A model that was read generates the same; a damaged one is one line."""
    path = tmp_path / "model.json"
    write_model(models("locality"), path)
    both = models("locality"), read_model(path)
    first, again = (generate(model, jobs=200, seed=1).requests for model in both)
    assert (first.matrix.tobytes(), first.words) == (again.matrix.tobytes(), again.words)
    wire = json.loads(path.read_text())
    wire["machine_requests"]["profiles"][0][0] = ["begin", 3]
    path.write_text(json.dumps(wire))
    with pytest.raises(ModelFileError, match="request begin 3: not known"):
        read_model(path)
