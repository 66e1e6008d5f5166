"""What jobs of a site's records ask of a machine of nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.requests import requests_of
from hpcrowd.scenarios.kinds.replay import replay

HEAD = (
    "JobID|User|Account|Partition|QOS|Submit|Start|End|State|ReqCPUS|ReqTRES|AllocCPUS|AllocTRES|"
    "NNodes|Timelimit|Constraints"
)
DAY = "2026-01-05T"
ROWS = (
    f"1|ada|lab|gpu|high|{DAY}08:00:00|{DAY}08:00:00|{DAY}09:00:00|COMPLETED|4|"
    "cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=8G,node=1|4|cpu=4,mem=8G,node=1|1|02:00:00|",
    f"2|bob|lab|normal|normal|{DAY}08:10:00|{DAY}08:10:00|{DAY}09:00:00|COMPLETED|8|"
    "cpu=8,mem=4000M,node=2|8|cpu=8,mem=4000M,node=2|2|02:00:00|milan",
    f"3_1|bob|lab|normal|normal|{DAY}08:20:00|{DAY}08:20:00|{DAY}08:30:00|COMPLETED|1|"
    "cpu=1,node=1|1|cpu=1,node=1|1|00:30:00|",
)

SITE = """\
[[nodes]]
name = "n[1-2]"
cores = 8
memory = "16GB"
features = ["milan"]

[[nodes]]
name = "g1"
cores = 8
memory = "16GB"
gpus = {a100 = 2}

[[partitions]]
name = "normal"
nodes = ["n[1-2]"]

[[partitions]]
name = "gpu"
nodes = ["g1"]

[[qos]]
name = "normal"

[[qos]]
name = "high"
"""


def records(tmp_path: Path) -> Path:
    """Write the accounting of three jobs."""
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join((HEAD, *ROWS)) + "\n")
    return path


def test_records_say_what_jobs_ask_for(tmp_path: Path) -> None:
    """GPUs, nodes, memory per core, partition, QOS, account, constraints and arrays."""
    trace = read_trace(records(tmp_path))
    found = requests_of(trace, np.arange(3))
    assert found is not None
    assert [2, UNKNOWN, UNKNOWN] == found[Ask.GPUS_PER_NODE].tolist()
    assert "a100" == found.word(Ask.GPU_TYPE, 0)
    assert [1, 2, 1] == found[Ask.NODES].tolist()
    assert [2048, 500, UNKNOWN] == found[Ask.MEMORY_PER_CORE].tolist()
    assert ["gpu", "normal", "normal"] == found.texts(Ask.PARTITIONS)
    assert ["high", "normal", "normal"] == found.texts(Ask.QOS)
    assert ["lab"] * 3 == found.texts(Ask.ACCOUNT)
    assert ["", "milan", ""] == found.texts(Ask.FEATURES)
    assert [UNKNOWN, UNKNOWN, 1] == found[Ask.TASK].tolist()


def test_a_log_without_such_columns_asks_for_nothing(tmp_path: Path) -> None:
    """The Standard Workload Format knows processors only."""
    path = tmp_path / "log.swf"
    path.write_text("1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert requests_of(read_trace(path), np.arange(1)) is None


def test_a_replay_places_jobs_as_they_asked(tmp_path: Path) -> None:
    """The GPU job is in its partition; with one GPU too few it is rejected with Slurm's reason."""
    log, site = records(tmp_path), tmp_path / "site.toml"
    site.write_text(SITE)
    run = replay(log, machine=str(site), scheduler="slurm", users="rigid")
    assert 3 == run.metrics["jobs_completed"]
    few = replay(log, machine=f"{site}:nodes.g1.gpus.a100=1", scheduler="slurm", users="rigid")
    assert 2 == few.metrics["jobs_completed"]
