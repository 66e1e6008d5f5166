"""Earlier runs of jobs that were run again: as texts, in statistics, records and replays."""

import numpy as np
import pytest
from hpcrowd import read_recorded, read_trace, write_trace
from hpcrowd.analysis.features.arrivals import offered_load
from hpcrowd.analysis.features.sizes import wait
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.traces.runs import COLUMN, EarlierRun, earlier_runs, in_order, text_of
from hpcrowd.environment.traces.trace import take_jobs
from hpcrowd.scenarios.kinds.replay import replay
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sacct import UTC, read, text

#: A job of two processors with runs of 100, 200 and 300 s after waits of 10, 20 and 30 s, and one
#: that comes an hour later.
CHAIN = [
    {"JobID": "7", "AllocCPUS": "2", "ReqCPUS": "2", "State": state, "ElapsedRaw": str(run)}
    | {
        name: f"2024-01-31T12:{at // 60:02}:{at % 60:02}"
        for name, at in (("Submit", since), ("Start", start), ("End", start + run))
    }
    for state, since, start, run in (
        ("NODE_FAIL", 0, 10, 100),
        ("REQUEUED", 110, 130, 200),
        ("COMPLETED", 330, 360, 300),
    )
]
OTHER = {"JobID": "8"} | {
    name: f"2024-01-31T13:{minute}:00"
    for name, minute in (("Submit", "00"), ("Start", "05"), ("End", "15"))
}

RUNS = (EarlierRun(10, 110, 110, 2, "NODE_FAIL"), EarlierRun(130, 330, 330, 2, "REQUEUED"))


def test_all_runs_count(tmp_path):
    """In the record, its size, its waits and its load; in each file that can hold them."""
    path = tmp_path / "jobs.txt"
    path.write_bytes(text(*CHAIN, OTHER))
    run = read_recorded(path, UTC)
    assert [2, 2, 2, 1] == run.runs.processors[np.argsort(run.runs.start)].tolist()
    assert [10, 20, 30, 300] == (run.runs.start - run.runs.submit)[[2, 3, 0, 1]].tolist()
    trace = read_trace(path, options=UTC)
    assert {0: RUNS} == earlier_runs(trace)
    measured = Workload.from_trace(trace)
    assert [10, 20, 30, 300] == sorted(wait(measured).tolist())
    assert pytest.approx((2 * 600 + 600) / (2 * 3600)) == offered_load(measured)
    assert {0: RUNS} == earlier_runs(take_jobs(trace, np.array([0])))
    for name in ("jobs.csv", "jobs.parquet", "jobs.sacct"):
        write_trace(trace, tmp_path / name)
        assert {0: RUNS} == earlier_runs(read_trace(tmp_path / name, options=UTC)), name


@pytest.mark.parametrize("speed", [1, 2])
def test_a_replay_has_all_runs(speed):
    """With their lengths; the recorded schedule has them where they were."""
    trace = read(*CHAIN, OTHER)
    run = replay(trace, scheduler="fcfs", users="rigid", speed=speed)
    assert [100 // speed, 200 // speed] == [one.end - one.start for one in run.attempts]
    assert {"recorded"} == {one.cause for one in run.attempts}
    assert 300 // speed == run.jobs.lasted[0]
    assert 600 // speed + 2 == run.jobs.end[0]
    recorded = replay(trace, scheduler="recorded", users="rigid")
    found = [(one.submit, one.start, one.end) for one in recorded.attempts]
    assert [(0, 10, 110), (110, 130, 330)] == found
    assert recorded.jobs.recorded_start.tolist() == recorded.jobs.start.tolist() == [360, 3900]


moments = st.integers(0, 10**9)


@given(st.lists(st.builds(EarlierRun, moments, moments, moments, st.integers(0, 9),
                          st.sampled_from(("", "REQUEUED"))), min_size=1), moments)  # fmt: skip
def test_texts_are_read_back(runs, submit):
    """Runs are put in order first."""
    found = in_order(runs, submit)
    trace = read({})
    trace.extra[COLUMN] = np.array([text_of(found)], np.object_)
    assert {0: found} == earlier_runs(trace)


@pytest.mark.parametrize(
    "given",
    ["x", "1:2:3:4", "5:2:9:1:A", "1:5:4:1:A", "1:2:9:1:A 3:4:9:1:A", "1:2:3:1:A  4:5:6:1:A"],
)
def test_other_texts_are_refused(given):
    """The line names job, value and rule."""
    trace = read({})
    trace.extra[COLUMN] = np.array([given], np.object_)
    with pytest.raises(TraceError, match=f"jobs.txt: job 1: runs '{given[:3]}.*must be START:END"):
        replay(trace)
