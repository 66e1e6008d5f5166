"""What the machine of a forecast makes of its state: QOS that it lacks, jobs that never start."""

from __future__ import annotations

from pathlib import Path

import pytest
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.scenarios.forecasts.forecast import Forecast

CONF = """ClusterName=toy
AccountingStorageEnforce=associations,limits,qos
NodeName=n[1-5] CPUs=16 RealMemory=64000
PartitionName=long Nodes=n[1-5] Default=YES MaxTime=240
"""

QUEUE = """JOBID|USER|ACCOUNT|PARTITION|STATE|CPUS|TIME_LIMIT|TIME|START_TIME|SUBMIT_TIME|REASON|QOS
21|ada|physics|long|RUNNING|48|4:00:00|1:30:00|2024-01-31T12:30:00|2024-01-31T12:00:00|None|normal
22|bob|physics|long|PENDING|16|2:00:00|0:00|N/A|2024-01-31T13:45:00|Priority|normal
23|bob|physics|long|PENDING|16|9:00:00|0:00|N/A|2024-01-31T13:50:00|Priority|low
"""


@pytest.fixture
def given(tmp_path: Path) -> Forecast:
    """A forecast from a queue of Slurm, whose files do not describe the QOS."""
    conf, queue = tmp_path / "slurm.conf", tmp_path / "queue.txt"
    conf.write_text(CONF)
    queue.write_text(QUEUE)
    return Forecast(queue, machine=(conf,), users="none", days=1)


def test_notes_on_qos_and_on_jobs_that_never_start(given: Forecast) -> None:
    """Slurm has accepted the jobs, so the lack of a file must not reject all of them.

    A limit beyond that of the partition is not waited for in silence.
    """
    outset = given.outset(given.state())
    (note,) = (one for one in outset.state.notes if one.startswith("QOS"))
    assert note.startswith("QOS low, normal: not described, so without priority and limits;")
    (never,) = (one for one in outset.state.notes if "can never start" in one)
    assert never.endswith("on the machine as it is described: 1 PartitionTimeLimit")
    assert ["never starts: PartitionTimeLimit"] == list(outset.state.held.values())
    start = outset.simulate(0).start
    assert outset.state.now <= start[1] <= outset.state.now + 60  # job 22
    assert start[2] == UNKNOWN


def test_jobs_larger_than_what_is_up_never_start_on_processors(given: Forecast) -> None:
    """Without nodes the number of processors that are up decides."""
    state = given.state()
    state.down = 80 - 48 - 8
    outset = Forecast(state, users="none", days=1).outset(state)
    assert set() == set(outset.state.held)  # 56 are up
    state.jobs.processors[1] = 60
    outset = Forecast(state, users="none", days=1).outset(state)
    assert {1: "never starts: more processors than are up"} == outset.state.held


@pytest.mark.parametrize(("days", "step"), [(1 / 24, 60), (0.5, 300), (2, 900), (7, 3600)])
def test_short_forecasts_have_short_steps(given: Forecast, days: float, step: int) -> None:
    """A forecast of an hour is not one value."""
    state = given.state()
    assert step == Forecast(state, users="none", days=days).outset(state).step
