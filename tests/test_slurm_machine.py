"""A machine from Slurm's own files: what they say, and one line for each mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hpcrowd.environment.errors import MachineError
from hpcrowd.environment.machine.files.reading import read_machine
from hpcrowd.environment.machine.model import Account, Machine, NodeType, Preempt

Reads = Callable[..., Machine]


@pytest.fixture
def read(tmp_path: Path) -> Reads:
    """Return a function that reads texts, by the names of their files."""

    def reader(slurm: str = "", **files: str) -> Machine:
        names = {"slurm.conf": slurm} if slurm else {}
        names |= {name.replace("_", "."): text for name, text in files.items()}
        for name, text in names.items():
            (tmp_path / name).write_text(text)
        return read_machine([tmp_path])

    return reader


@pytest.fixture(scope="session")
def referee(root: Path) -> Path:
    """Return the folder of the runs of a real Slurm; skip the test when there is none."""
    folder = root.parent / "shared" / "slurm" / "referee"
    if not folder.is_dir():
        pytest.skip(f"no runs of a real Slurm in {folder}")
    return folder


NODES = "SelectType=select/cons_tres\nNodeName=n[1-3] CPUs=4 RealMemory=1000\n"


@pytest.mark.parametrize("run", ["runA", "runB", "runC", "runD", "runF"])
def test_runs_of_a_real_slurm(referee: Path, run: str) -> None:
    """All that a run's files say of its machine is read, whatever of them is given."""
    whole = read_machine([referee / run])
    alone = read_machine(
        [referee / run / name for name in ("slurm.conf", "gres.conf", "sacctmgr-dump.txt",
                                           "sacctmgr-qos.txt")]
    )  # fmt: skip
    for machine in (whole, alone):
        assert [
            ("b1", 8, 256000, {}, ("milan", "bigmem"), 20),
            ("g[1-2]", 8, 64000, {"toy": 2}, ("milan", "gpu"), 1),
            ("m[1-3]", 8, 32000, {}, ("milan",), 1),
            ("n[1-4]", 8, 32000, {}, ("skylake",), 1),
        ] == [(one.name, one.cores, one.memory, one.gpus, one.features, one.weight)
              for one in machine.nodes]  # fmt: skip
        assert [
            ("normal", 8, 3600, 86400, 2, 50),
            ("debug", 2, 600, 1800, 3, 100),
            ("gpu", 2, 3600, 86400, 2, 50),
            ("long", 3, 14400, 172800, 2, 10),
            ("scavenger", 10, 3600, 86400, 1, 0),
        ] == [(one.name, len(machine.places(one.nodes)), one.default_time, one.max_time,
               one.priority_tier, one.priority_factor) for one in machine.partitions]  # fmt: skip
        assert "normal" == getattr(machine.default_partition(), "name", None)
        assert Preempt.REQUEUE is machine.partitions[-1].preempt_mode
        assert {"normal": 50, "high": 100, "low": 1} == {
            one.name: one.priority for one in machine.qos
        }
        assert {"root": 1, "biology": 20, "chemistry": 30, "physics": 50} == {
            one.account: one.shares for one in machine.accounts if not one.user
        }
        assert Account(account="physics", parent="physics", user="u2", shares=10,
                       qos=("high", "low", "normal"), default_qos="normal"
                       ) in machine.accounts  # fmt: skip
        assert 172_800 == machine.scheduling.bf_window
        assert 14_400 == machine.priority.half_life
        assert 60 == machine.priority.calculation_period
        assert 2000 == machine.scheduling.default_memory_per_core
    assert alone.scheduling == whole.scheduling
    assert alone.priority == whole.priority


def test_first_machine_of_a_real_slurm(slurm_dumps: Path) -> None:
    """The configuration and dumps of eight nodes give one machine; what is missing is named."""
    machine = read_machine([slurm_dumps.parent / "slurm.conf.in", slurm_dumps])
    assert [NodeType(name="n[1-6]", cores=4, memory=16000),
            NodeType(name="n[7-8]", cores=4, memory=16000, gpus={"toy": 2})] == [
        *machine.nodes
    ]  # fmt: skip
    assert ["main", "short", "gpu", "scav"] == [one.name for one in machine.partitions]
    assert 4 == machine.qos[2].limits.max_jobs
    assert any("reservation maint: its nodes" in note for note in machine.not_modelled)


def test_unknown_node_of_a_partition(read: Reads) -> None:
    """The line of the partition is named."""
    with pytest.raises(MachineError, match=r"slurm.conf:3: node n4: not a node"):
        read(NODES + "PartitionName=p Nodes=n[1-9]\n")
