"""What the jobs of generated and resampled users ask of a machine of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.environment.jobs import UNKNOWN, JobTable, State
from hpcrowd.environment.machine.requests import Ask, Requests
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.kinds.resample import resample
from hpcrowd.scenarios.whatif.machine import made_up


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return three weeks of a third of the made-up site's users, without waits."""
    kinds = tuple(kind._replace(users=-(-kind.users // 3)) for kind in made_up.KINDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made_up, "KINDS", kinds)
        patch.setattr(made_up, "DAYS", 21)
        jobs = made_up.made_up_jobs()
    path = tmp_path_factory.mktemp("site") / "jobs.txt"
    path.write_text(made_up.accounting(jobs, np.array([job.submit for job in jobs])))
    return read_trace(path)


@pytest.fixture(scope="module")
def recorded(log: Trace) -> set[tuple[int | str, ...]]:
    """Return what the jobs of the log ask for."""
    machine = made_up.made_up_machine()
    return kinds_of(replay(log, users="rigid", machine=machine, scheduler="fcfs").jobs)


def kinds_of(jobs: JobTable) -> set[tuple[int | str, ...]]:
    """Return the combinations of what jobs ask for: processors, partition, account and so on."""
    asked = jobs.requests
    assert asked is not None
    gpus = np.maximum(asked[Ask.GPUS], asked[Ask.GPUS_PER_NODE])
    columns = (
        jobs.processors, asked.texts(Ask.PARTITIONS), asked.texts(Ask.ACCOUNT), asked[Ask.NODES],
        np.maximum(gpus, 0), asked[Ask.MEMORY_PER_CORE],
    )  # fmt: skip
    return set(zip(*(np.array(column).tolist() for column in columns), strict=True))


def test_repeated_jobs_ask_for_the_same_in_their_own_words() -> None:
    """Words keep their texts, arrays get a number of their own, and dates are left out."""
    record, mine = Requests(4), Requests(6)
    record.set_texts(Ask.PARTITIONS, ["b", "a", "", "b"])
    record[Ask.ARRAY][:] = [7, UNKNOWN, 8, 7]
    record[Ask.TASK][:] = [1, UNKNOWN, 5, 2]
    record[Ask.BEGIN][0] = 100
    record.set(0, Ask.RESERVATION, "monday")
    mine.set(0, Ask.PARTITIONS, "a")
    mine.repeat(2, record)
    assert ["a", "", "b", "a", "", "b"] == mine.texts(Ask.PARTITIONS)
    assert [UNKNOWN, UNKNOWN, 2, UNKNOWN, 4, 2] == mine[Ask.ARRAY].tolist()
    assert [1, UNKNOWN, 5, 2] == mine[Ask.TASK][2:].tolist()
    assert UNKNOWN == mine[Ask.BEGIN].max() == mine[Ask.RESERVATION].max()
    assert 100 == record[Ask.BEGIN][0]


@pytest.mark.parametrize("users", ["rigid", "think-time", "generative"])
def test_a_resampled_population_asks_for_what_was_recorded(
    log: Trace, recorded: set[Any], users: str
) -> None:
    """Every combination of size, partition, GPUs and memory is one of the log; all jobs run."""
    machine = made_up.made_up_machine()
    run = resample(log, users=users, machine=machine, scheduler="slurm", days=14, warm_up="7d")
    assert {"normal", "long", "gpu"} <= {one[1] for one in kinds_of(run.jobs)}
    assert kinds_of(run.jobs) <= recorded
    assert len(run.jobs) == run.jobs.count(State.COMPLETED) > 100
