"""The machines of real Slurms: all that their files say is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hpcrowd.environment.machine.files.reading import read_machine
from hpcrowd.environment.machine.model import Account, NodeType, Preempt

from tests.environment.machine.slurm.slurm_texts import check

FILES = ("slurm.conf", "gres.conf", "sacctmgr-dump.txt", "sacctmgr-qos.txt")


@pytest.mark.parametrize("run", ["runA", "runB", "runC", "runD", "runF"])
def test_runs_of_a_real_slurm(referee_runs: Path, run: str) -> None:
    """All that a run's files say of its machine is read, whatever of them is given."""
    machines = [read_machine([referee_runs / run])]
    machines.append(read_machine([referee_runs / run / name for name in FILES]))
    for machine in machines:
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
        assert [("high", 100), ("low", 1), ("normal", 50)] == sorted(
            (one.name, one.priority) for one in machine.qos
        )
        assert {"root": 1, "biology": 20, "chemistry": 30, "physics": 50} == {
            one.account: one.shares for one in machine.accounts if not one.user
        }
        some = Account(account="physics", parent="physics", user="u2", shares=10,
                       qos=("high", "low", "normal"), default_qos="normal")  # fmt: skip
        assert some in machine.accounts
        check(machine.scheduling, bf_window=172_800, default_memory_per_core=2000)
        check(machine.priority, half_life=14_400, calculation_period=60)
    for name in ("scheduling", "priority"):
        assert getattr(machines[0], name) == getattr(machines[1], name)


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
