"""What generated jobs ask of a machine of nodes: drawn with size and run time, scaled, accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.generation import Generated, generate, population
from hpcrowd.analysis.models.model import WorkloadModel, fit, read_model, write_model
from hpcrowd.analysis.models.parts.gate import Gate
from hpcrowd.analysis.models.parts.requests import MachineRequests, steps_of
from hpcrowd.analysis.models.parts.scaling import Asked, Room, scaled
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import ModelFileError
from hpcrowd.environment.jobs import UNKNOWN, JobTable, State
from hpcrowd.environment.machine.files.toml_text import write_machine
from hpcrowd.environment.machine.model import Account, Machine, NodeType, Partition, Qos
from hpcrowd.environment.machine.requests import WORDS, Ask, Requests
from hpcrowd.environment.traces.formats.registry import read_trace, write_trace
from hpcrowd.environment.traces.requests import requests_of
from hpcrowd.scenarios.kinds.populate import populate
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.whatif.machine import made_up

Call = Callable[..., tuple[int, str, str]]

GB = 1024

#: Models with a fit, and what they need besides.
MODELS = {"locality": "numpy", "mugm": "kmedoids", "feitelson97": "numpy", "lublin": "scipy"}


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of three weeks of the made-up site, without waits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made_up, "DAYS", 21)
        jobs = made_up.made_up_jobs()
    path = tmp_path_factory.mktemp("site") / "jobs.txt"
    path.write_text(made_up.accounting(jobs, np.array([job.submit for job in jobs])))
    return path


@pytest.fixture(scope="module")
def workload(log_file: Path) -> Workload:
    """Return the workload of the log."""
    return Workload.from_trace(read_trace(log_file))


@pytest.fixture(scope="module")
def models(workload: Workload) -> Callable[[str], WorkloadModel]:
    """Return a function that fits a model to the log, once."""
    known: dict[str, WorkloadModel] = {}

    def model(name: str) -> WorkloadModel:
        pytest.importorskip(MODELS[name])
        if name not in known:
            known[name] = fit(name, workload, arrivals="poisson")
        return known[name]

    return model


def gpus_of(requests: Requests) -> np.ndarray[Any, Any]:
    """Return the GPUs of each job, however it asks for them; 0 for none."""
    nodes = np.maximum(requests[Ask.NODES], 1)
    return np.maximum.reduce(
        [requests[Ask.GPUS], requests[Ask.GPUS_PER_NODE] * nodes, np.zeros(len(nodes), np.int64)]
    )


def classes(size: Any, run_time: Any) -> np.ndarray[Any, Any]:
    """Return the class of each job: four of size, two of run time."""
    return 2 * np.searchsorted([4, 8, 16], size, side="right") + (np.asarray(run_time) > 2 * HOUR)


def refusals(made: Generated, machine: Machine) -> list[str]:
    """Return why a machine would reject the jobs of a workload, without empty reasons."""
    jobs = JobTable(len(made))
    jobs.user[:], jobs.processors[:] = made.drawn.user, made.drawn.processors
    jobs.requested_time[:] = made.drawn.requested_time
    jobs.requests = made.requests
    admission = Gate(machine).admission(jobs)
    return [reason for row in range(len(jobs)) if (reason := admission.refusal(row))]


# ---- the joint distribution -------------------------------------------------------------------


def test_size_run_time_and_requests_stay_together(
    workload: Workload, models: Callable[[str], WorkloadModel]
) -> None:
    """By class of size and run time: shares of GPUs and partitions, and quantiles of memory."""
    recorded = workload.requests()
    made = generate(models("locality"), jobs=6000, seed=4)
    assert recorded is not None
    assert made.requests is not None
    then = classes(workload.processors, workload.run_time)
    now = classes(made.drawn.processors, made.drawn.run_time)
    for one in range(8):
        before, after = then == one, now == one
        assert before.sum() > 20
        assert after.sum() > 50
        for name in ("normal", "long", "gpu", "scavenger"):
            shares = [
                np.mean(np.array(asked.texts(Ask.PARTITIONS))[which] == name)
                for asked, which in ((recorded, before), (made.requests, after))
            ]
            assert abs(shares[0] - shares[1]) < 0.12, (one, name)
        gpu = [(gpus_of(recorded)[before] > 0).mean(), (gpus_of(made.requests)[after] > 0).mean()]
        assert abs(gpu[0] - gpu[1]) < 0.12, one
        memory = recorded[Ask.MEMORY_PER_CORE][before], made.requests[Ask.MEMORY_PER_CORE][after]
        assert abs(memory[0].mean() - memory[1].mean()) < 0.12 * memory[0].mean(), one
        assert set(memory[1].tolist()) <= set(memory[0].tolist()) | {2 * GB, 3 * GB, 6 * GB}


def test_independent_requests_would_not_pass(
    workload: Workload, models: Callable[[str], WorkloadModel]
) -> None:
    """In the log GPUs go with 4 to 15 processors; shuffled requests would have lost that."""
    made = generate(models("locality"), jobs=4000, seed=4)
    assert made.requests is not None
    gpus, size = gpus_of(made.requests) > 0, made.drawn.processors
    middle = (size >= 4) & (size < 16)
    assert gpus[middle].mean() > 0.2
    assert gpus[~middle].mean() < 0.03
    shuffled = np.random.default_rng(0).permutation(gpus)
    assert shuffled[~middle].mean() > 0.05


def test_kinds_of_jobs_draw_from_their_own_kind(models: Callable[[str], WorkloadModel]) -> None:
    """Of two kinds with equal sizes and run times one has GPUs, and so have its generated jobs."""
    size = 4000
    random = np.random.default_rng(1)
    kinds = np.repeat([1, 2], size // 2)
    donors = tuple((int(kind == 2), int(kind), 4, 20, 100) for kind in (1, 2))
    model = MachineRequests(
        profiles=((("partitions", "cpu"),), (("gpus", 1), ("partitions", "gpu"))),
        donors=donors,
        rooms=tuple(
            {"partitions": name, "cores": 4, "nodes": 1, "node_cores": 4, "node_gpus": gpus}
            for name, gpus in (("cpu", 0), ("gpu", 1))
        ),
    )
    drawn = generate(models("feitelson97"), jobs=size, seed=1).drawn.first(size)
    drawn.processors[:], drawn.run_time[:] = 4, 1024.0
    _, requests, _ = model.draw(drawn, random, kinds)
    assert {"cpu"} == set(requests.texts(Ask.PARTITIONS)[: size // 2])
    assert {"gpu"} == set(requests.texts(Ask.PARTITIONS)[size // 2 :])
    _, mixed, _ = model.draw(drawn, random)
    assert 0.4 < np.mean(gpus_of(mixed) > 0) < 0.6


def test_mugm_keeps_the_requests_of_its_groups(models: Callable[[str], WorkloadModel]) -> None:
    """The groups that hold learners ask for most of the GPUs."""
    made = generate(models("mugm"), jobs=4000, seed=2)
    assert made.requests is not None
    model = models("mugm").machine_requests
    assert model is not None
    assert len({kind for _, kind, *_ in model.donors}) > 1
    share = [np.mean(gpus_of(made.requests)[made.drawn.group == group] > 0)
             for group in np.unique(made.drawn.group).tolist()]  # fmt: skip
    assert max(share) > 3 * min(share)


def test_jobs_of_a_bag_and_repetitions_ask_for_the_same(
    models: Callable[[str], WorkloadModel],
) -> None:
    """Equal jobs of a bag have equal requests, and so have repetitions of a job."""
    made = generate(models("feitelson97"), jobs=3000, seed=1)
    assert made.requests is not None
    drawn, partitions = made.drawn, np.array(made.requests.texts(Ask.PARTITIONS))
    repeated = np.flatnonzero(drawn.follows >= 0)
    before = drawn.follows[repeated]
    like = steps_of(drawn.run_time[repeated]) == steps_of(drawn.run_time[before])
    assert like.sum() > 100
    assert (partitions[repeated] == partitions[before])[like].all()


# ---- scaling ----------------------------------------------------------------------------------

ROOM = Room(cores=192, nodes=6, node_cores=32, node_gpus=4, node_memory=128 * GB)


@pytest.mark.parametrize(
    ("asked", "before", "cores", "expected"),
    [
        # The same size: the same request.
        ({"nodes": 2, "gpus": 2, "memory_per_core": 100}, 8, 8,
         {"nodes": 2, "gpus": 2, "memory_per_core": 100}),
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
        ({"nodes": 1, "memory_per_core": 8 * GB}, 8, 32,
         {"nodes": 2, "memory_per_core": 8 * GB}),
        ({"nodes": 1, "memory_per_node": 16 * GB}, 8, 16, {"nodes": 1, "memory_per_node": 32 * GB}),
        ({"memory_per_node": 0, "nodes": 1}, 8, 16, {"memory_per_node": 0, "nodes": 1}),
        # Tasks as wide as the size divides by.
        ({"tasks": 4, "cores_per_task": 4}, 16, 8, {"tasks": 2, "cores_per_task": 4}),
        ({"tasks": 4, "cores_per_task": 4}, 16, 6, {"tasks": 2, "cores_per_task": 3}),
        ({"nodes": 2, "tasks": 8, "tasks_per_node": 4}, 8, 16,
         {"nodes": 4, "tasks": 16, "tasks_per_node": 4}),
        ({"features": "milan", "exclusive": 1, "qos": "high"}, 1, 5,
         {"features": "milan", "exclusive": 1, "qos": "high"}),
    ],
)  # fmt: skip
def test_requests_are_scaled_to_the_size(
    asked: dict[str, Any], before: int, cores: int, expected: dict[str, Any]
) -> None:
    """Memory and GPUs per core are kept, and what nodes have is not exceeded."""
    found = scaled(Asked.of(asked), before, cores, ROOM)
    assert expected == {ask.name.lower(): value for ask, value in found.items()}


def test_scaled_requests_fit_the_nodes() -> None:
    """Whatever the donor and the size: no more GPUs, memory or nodes than the partition has."""
    random = np.random.default_rng(3)
    for _ in range(2000):
        before, cores = random.integers(1, 192, 2, endpoint=True).tolist()
        asked = Asked.of(
            {
                "nodes": int(random.integers(1, min(before, 6), endpoint=True)),
                "gpus": int(random.integers(1, 24, endpoint=True)),
                "memory_per_core": int(random.integers(1, 64 * GB)),
            }
        )
        found = scaled(asked, before, cores, ROOM)
        nodes = found[Ask.NODES]
        assert 1 <= nodes <= min(ROOM.nodes, cores)
        assert 1 <= found[Ask.GPUS] <= nodes * ROOM.node_gpus
        assert found[Ask.MEMORY_PER_CORE] <= asked.memory_per_core(before)
        assert found[Ask.MEMORY_PER_CORE] * -(-cores // nodes) <= ROOM.node_memory


# ---- machines ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_generated_jobs_are_accepted(
    models: Callable[[str], WorkloadModel], name: str, log_file: Path
) -> None:
    """No job is rejected by the machine, and no time limit is longer than the partition's."""
    machine = made_up.made_up_machine()
    made = generate(models(name), jobs=2000, seed=3, machine=machine)
    assert [] == refusals(made, machine)
    longest = {one.name: one.max_time for one in machine.partitions}
    assert made.requests is not None
    for limit, run_time, partition in zip(
        made.drawn.requested_time.tolist(),
        made.drawn.run_time.tolist(),
        made.requests.texts(Ask.PARTITIONS),
        strict=True,
    ):
        assert limit <= longest[partition]
        assert run_time <= longest[partition]


def other_machine() -> Machine:
    """Return a machine unlike the made-up one: other partitions, small nodes, rules."""
    return Machine(
        nodes=(
            NodeType(name="a[1-2]", cores=4, memory=8 * GB),
            NodeType(name="b1", cores=8, memory=12 * GB, gpus={"v100": 1}),
        ),
        qos=(Qos(name="standard"),),
        accounts=(Account(account="one"), Account(account="two")),
        partitions=(
            Partition(name="normal", nodes=("a[1-2]",), default=True, max_time=DAY // 4),
            Partition(name="gpu", nodes=("b1",), allow_accounts=("two",), allow_qos=("standard",),
                      max_time=2 * HOUR, max_nodes=1),
        ),
    )  # fmt: skip


def test_another_machine_accepts_jobs_that_are_cut_to_it(
    models: Callable[[str], WorkloadModel],
) -> None:
    """Unknown partitions give way to the default one; sizes, times and memory are cut, and said."""
    machine = other_machine()
    model = models("locality")
    assert refusals(generate(model, jobs=500, seed=3), machine)
    made = generate(model, jobs=500, seed=3, machine=machine)
    assert [] == refusals(made, machine)
    assert made.requests is not None
    assert {"normal", "gpu"} == set(made.requests.texts(Ask.PARTITIONS))
    assert 1 == gpus_of(made.requests).max()
    assert 8 == made.drawn.processors.max()
    notes = "\n".join(made.notes)
    assert "with fewer processors than drawn" in notes
    assert "would run for longer than a partition allows" in notes


def test_partitions_without_nodes_give_way_to_the_default_one() -> None:
    """So do unknown ones; features, QOS and GPUs that are not there are no longer asked for."""
    machine = Machine(
        nodes=(NodeType(name="a1", cores=4),),
        partitions=(Partition(name="empty", nodes=()), Partition(name="all", default=True)),
    )
    gate = Gate(machine)
    asked = {"partitions": "empty,gone", "features": "fast", "qos": "high", "gpus": 1,
             "gpu_type": "a100", "memory_per_core": 10}  # fmt: skip
    found = gate.adapted(Asked.of(asked))
    assert {Ask.PARTITIONS: "all", Ask.MEMORY_PER_CORE: 10} == found.values
    assert Room(cores=4, nodes=1, node_cores=4) == gate.room(found)
    assert gate.refusal(found.values, 5, 60)
    passed = gate.passing(found, 2, 8, gate.room(found), 60)
    assert passed is not None
    assert 4 == passed[1]


def test_without_a_machine_limits_are_those_seen(
    workload: Workload, models: Callable[[str], WorkloadModel]
) -> None:
    """GPUs, nodes and times stay within what the log shows of a partition; sizes are not cut."""
    recorded = workload.requests()
    assert recorded is not None
    free = generate(models("locality"), jobs=2000, seed=3)
    assert free.requests is not None
    assert gpus_of(free.requests).max() <= gpus_of(recorded).max()
    assert not any("fewer processors" in note for note in free.notes)
    assert [] == refusals(free, made_up.made_up_machine())


# ---- files ------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bytes(
    models: Callable[[str], WorkloadModel], tmp_path: Path
) -> None:
    """In the trace with its requests; another seed has others."""
    paths = [tmp_path / f"{place}.parquet" for place in range(3)]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        write_trace(generate(models("locality"), jobs=300, seed=seed).trace(), path)
    first, again, other = (path.read_bytes() for path in paths)
    assert first == again != other


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_generated_traces_keep_the_requests(
    models: Callable[[str], WorkloadModel], tmp_path: Path, ending: str
) -> None:
    """What is read back is what was generated, and a replay runs all jobs on the machine."""
    machine = made_up.made_up_machine()
    made = generate(models("locality"), jobs=400, seed=5, machine=machine)
    path = tmp_path / f"made.{ending}"
    write_trace(made.trace(), path)
    trace = read_trace(path)
    found = requests_of(trace, np.arange(len(trace)))
    assert found is not None
    assert made.requests is not None
    for ask in Ask:
        asked, kept = (
            one.texts(ask) if ask in WORDS else one[ask].tolist() for one in (made.requests, found)
        )
        assert asked == kept, ask
    run = replay(trace, machine=machine, scheduler="slurm", users="rigid")
    assert len(made) == run.jobs.count(State.COMPLETED)


def test_models_keep_requests_in_their_files(
    models: Callable[[str], WorkloadModel], tmp_path: Path
) -> None:
    """A model that was read generates the same; a damaged one is one line."""
    path = tmp_path / "model.json"
    write_model(models("locality"), path)
    first, again = (
        generate(model, jobs=200, seed=1) for model in (models("locality"), read_model(path))
    )
    assert first.requests is not None
    assert again.requests is not None
    assert first.requests.matrix.tobytes() == again.requests.matrix.tobytes()
    assert first.requests.words == again.requests.words
    wire = json.loads(path.read_text())
    wire["machine_requests"]["profiles"][0][0] = ["begin", 3]
    path.write_text(json.dumps(wire))
    with pytest.raises(ModelFileError, match="request begin 3: not known"):
        read_model(path)


def test_a_large_trace_keeps_few_donors(workload: Workload) -> None:
    """Of more jobs than wanted evenly spaced ones are kept, so that files stay small."""
    few = MachineRequests.fit(workload, most_donors=50)
    assert few is not None
    assert 50 == sum(count for *_, count in few.donors)
    partitions = {dict(few.profiles[place])["partitions"] for place, *_ in few.donors}
    assert {"normal", "long", "gpu", "scavenger"} == partitions


def test_a_log_without_requests_leaves_models_as_they_were() -> None:
    """No requests, no key in the file, no column in the trace."""
    random = np.random.default_rng(0)
    plain = Workload.of(
        np.cumsum(random.integers(1, 900, 300)), random.integers(1, 9000, 300),
        2 ** random.integers(0, 5, 300), user=random.integers(1, 9, 300), machine=32,
    )  # fmt: skip
    model = fit("feitelson97", plain)
    assert model.machine_requests is None
    assert "machine_requests" not in model.to_json()
    made = generate(model, jobs=50, machine=made_up.made_up_machine())
    assert made.requests is None
    assert {} == made.trace().extra


# ---- users and commands -----------------------------------------------------------------------


def test_users_of_a_model_work_on_the_machine(
    models: Callable[[str], WorkloadModel],
) -> None:
    """Batches carry their requests; nothing is rejected, and GPUs and partitions are in use."""
    machine = made_up.made_up_machine()
    model = models("locality")
    made = generate(model, days=5, machine=machine)
    pools = population(made).pools.values()
    assert sum(len(pool.requests or ()) for pool in pools) == len(made)
    run = populate(model, machine=machine, scheduler="slurm", days=5)
    assert len(run.jobs) == run.jobs.count(State.COMPLETED) > 100
    assert run.processors == machine.cores
    assert run.jobs.requests is not None
    assert {"normal", "gpu"} <= set(run.jobs.requests.texts(Ask.PARTITIONS))
    assert set(gpus_of(run.jobs.requests).tolist()) >= {0, 1}
    again = populate(model, machine=machine, scheduler="slurm", days=5)
    assert run.jobs.matrix[:, : len(run.jobs)].tobytes() == (
        again.jobs.matrix[:, : len(again.jobs)].tobytes()
    )


def test_commands_take_a_machine(
    call: Call, log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fit, generate, replay and populate; SWF says what it cannot hold."""
    monkeypatch.chdir(tmp_path)
    write_machine(made_up.made_up_machine(), tmp_path / "site.toml")
    code, out, err = call("fit", "feitelson97", log_file, "-o", "m.json")
    assert 0 == code, err
    assert "requests to a machine of 9 kinds go with size and run time" in " ".join(out.split())
    code, out, err = call(
        "generate", "m.json", "--machine", "site.toml", "--jobs", 200, "-o", "x.parquet"
    )
    assert 0 == code, err
    code, out, err = call(
        "replay", "x.parquet", "--machine", "site.toml", "--scheduler", "slurm", "--json"
    )
    assert 0 == code, err
    assert 200 == json.loads(out)["jobs_completed"]
    code, out, err = call("generate", "m.json", "--jobs", 20, "-o", "x.swf")
    assert 0 == code, err
    assert "SWF cannot hold what the jobs ask of a machine; write .parquet" in err
    code, out, err = call(
        "populate", "m.json", "--machine", "site.toml", "--scheduler", "slurm", "--days", 3,
        "--json", "--out", "run",
    )  # fmt: skip
    assert 0 == code, err
    assert 0 == json.loads(out)["jobs_rejected"]
    code, out, err = call("populate", "m.json", "--machine", "site.toml", "--processors", 64)
    assert 0 != code
    assert "the machine has 224 cores; give one of the two" in err
    code, out, err = call("populate", "m.json", "--machine", "nowhere.toml")
    assert 0 != code
    assert "nowhere.toml" in err


def test_unknown_requests_stay_unknown() -> None:
    """A donor that asks for nothing leaves the job without requests."""
    found = scaled(Asked.of({}), 4, 8, ROOM)
    assert {} == found
    assert UNKNOWN == Requests(1)[Ask.NODES][0]
