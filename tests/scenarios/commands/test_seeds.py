"""``hpcrowd replay --seeds``: ranges of figures over seeds; and jobs that had not ended."""

import json

import pytest
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.commands.seeds import ranges_of
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.sacct import text

CONF = "NodeName=n1 CPUs=1 RealMemory=64000\nPartitionName=long Nodes=n1\n"


@pytest.fixture
def log(tmp_path):
    """Two jobs for one core: the first one was stopped at its limit; a third still runs."""
    (tmp_path / "slurm.conf").write_text(CONF)
    file = tmp_path / "jobs.txt"
    day = "2024-01-31T12"
    file.write_bytes(
        text(
            {"JobID": "1", "Submit": f"{day}:00:00", "Start": f"{day}:00:00", "State": "TIMEOUT",
             "End": f"{day}:01:05", "ElapsedRaw": "65", "TimelimitRaw": "1"},
            {"JobID": "2", "Submit": f"{day}:00:10", "Start": f"{day}:01:10",
             "End": f"{day}:02:10", "ElapsedRaw": "60"},
            {"JobID": "3", "Submit": f"{day}:00:20", "Start": f"{day}:02:15", "State": "RUNNING",
             "End": "Unknown", "ElapsedRaw": "100", "TimelimitRaw": "5"},
        )
    )  # fmt: skip
    return file


def test_ranges(call, log):
    """Figures have the median and the range over the seeds; other words are those of the first."""
    machine = ["--machine", log.parent / "slurm.conf", "--scheduler", "slurm", "--users", "rigid"]
    _, printed, _ = call("replay", log, *machine, "--seeds", 5, "--json")
    found = json.loads(printed)
    alone = [replay(log, scheduler="slurm", users="rigid", seed=seed,
                    machine=str(log.parent / "slurm.conf")).metrics["wait_mean_s"]
             for seed in range(5)]  # fmt: skip
    low, middle, high = sorted(alone)[0], sorted(alone)[2], sorted(alone)[-1]
    assert low < high
    assert {"median": middle, "lowest": low, "highest": high} == found["wait_mean_s"]
    assert (5, 0) == (found["seeds"], found["configuration"]["seed"])
    waits = found["machines"]["home"]["partitions"]["long"]["wait_mean_s"]
    assert (low, high) == (waits["lowest"], waits["highest"])
    _, shown, _ = call("replay", log, *machine, "--seeds", 5)
    assert "ranges over 5 seeds, from there on:" in shown
    assert "mean wait in partition" in shown
    code, _, error = call("replay", log, "--seeds", 2, "--out", log.parent / "out")
    assert (2, 1) == (code, error.count("\n"))
    assert "seeds 2: --out" in error
    assert {"a": None, "b": "x"} == ranges_of([{"a": None, "b": "x"}, {"b": "y"}])


@pytest.mark.parametrize(("unfinished", "runs"), [
    ("limit", [65, 60, 300]), ("typical", [65, 60, 300]), ("2m", [65, 60, 120]),
    ("1m", [65, 60, 100]), ("drop", [65, 60]),
])  # fmt: skip
def test_jobs_that_had_not_ended(log, unfinished, runs):
    """They run until their limit or for a time, but as long as they had run so far."""
    run = replay(log, users="rigid", unfinished=unfinished)
    assert runs == run.jobs.run_time.tolist()
    assert (len(runs) == 3) == any("had not ended: an end assumed" in one for one in run.notes)
    with pytest.raises(QuantityError, match="unfinished: duration 'x': not a number with a unit"):
        replay(log, unfinished="x")
