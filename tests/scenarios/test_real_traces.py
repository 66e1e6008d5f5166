"""Real logs: known figures, and runs whose trace is written."""

from heapq import heappop, heappush

import numpy as np
import pytest
from hpcrowd import State, read_swf, replay, write_results

pytestmark = pytest.mark.traces


def test_known_waits_on_kth(kth):
    """FCFS starts jobs when a literal queue does; waits are those that others computed."""
    run = replay(kth, scheduler="fcfs", users="rigid", job_processors="allocated")
    assert first_come_first_served(run.jobs, 100) == run.jobs.start.tolist()
    assert pytest.approx(390_083, abs=2) == run.metrics["wait_mean_s"]
    assert pytest.approx(1_018_343, abs=2) == run.metrics["wait_max_s"]
    choices = {"users": "rigid", "job_processors": "allocated"}
    found = replay(kth, scheduler="easy", requested="at-least:1x", **choices).metrics
    assert pytest.approx(6_858, abs=1) == found["wait_mean_s"]
    assert 262_194 == found["wait_max_s"]
    assert 262_194 == replay(kth, scheduler="easy", **choices).metrics["wait_max_s"]


def first_come_first_served(jobs, processors):
    """Starts under FCFS, one job after the other."""
    starts, now, free = [0] * len(jobs), 0, processors
    ends: list[tuple[int, int]] = []
    for row in np.lexsort((jobs.number, jobs.recorded_submit)).tolist():
        now, need = max(now, int(jobs.recorded_submit[row])), int(jobs.processors[row])
        while free < need or (ends and ends[0][0] <= now):
            end, freed = heappop(ends)
            now, free = max(now, end), free + freed
        heappush(ends, (now + int(jobs.run_time[row]), need))
        starts[row], free = now, free - need
    return starts


@pytest.mark.parametrize(
    "choices",
    [
        {"users": "rigid", "scheduler": "fcfs"},
        {"users": "think-time", "scheduler": "easy"},
        {"users": "think-time", "scheduler": "easy", "sessions": "arrival:job", "speed": "0.5x"},
        {"users": "think-time", "processors": "0.5x", "overrun": "kill"},
    ],
    ids=["rigid", "think-time", "every job, slower", "rejected and killed"],
)
def test_written_trace_is_the_run(kth, tmp_path, choices):
    """The trace of a run has every job, by submission, with status, and its own header."""
    run = replay(kth, **choices)
    write_results(run, tmp_path / "out", plots=False)
    trace = read_swf(tmp_path / "out" / "trace.swf.gz")
    again = replay(trace, users="rigid", scheduler="recorded").jobs
    ran = run.jobs.over
    assert run.jobs.number[ran].tolist() == again.number.tolist()
    for name in ("submit", "start", "end", "processors", "requested_time", "user", "group"):
        assert getattr(run.jobs, name)[ran].tolist() == getattr(again, name).tolist(), name
    assert len(run.jobs) - len(again) == run.jobs.count(State.REJECTED)

    assert len(run.jobs) == len(trace) == trace.header.integer("MaxJobs")
    assert run.processors == trace.processors
    assert np.all(np.diff(trace["submit"]) >= 0)
    by_number = np.argsort(trace["number"])
    assert run.jobs.submit.tolist() == trace["submit"][by_number].tolist()
    status = trace["status"][by_number]
    for state, value in ((State.REJECTED, 5), (State.KILLED, 0)):
        which = run.jobs.state == state
        assert [value] * run.jobs.count(state) == status[which].tolist()
        assert which.any() == ("overrun" in choices)  # only that scenario has such jobs
    completed = run.jobs.state == State.COMPLETED
    recorded = kth["status"][run.reading.rows]
    assert recorded[completed].tolist() == status[completed].tolist()
    for name in ("Computer", "UnixStartTime"):
        assert kth.header.get(name) == trace.header.get(name)
    for name in ("memory", "average_cpu", "partition"):
        assert kth[name][run.reading.rows].tolist() == trace[name][by_number].tolist(), name

    has = np.flatnonzero(trace["preceding"] != -1)
    assert (choices["users"] == "rigid") == (len(has) == 0) == (run.metrics["lateness_mean_s"] == 0)
    place = by_number[np.searchsorted(trace["number"][by_number], trace["preceding"][has])]
    assert np.array_equal(trace["number"][place], trace["preceding"][has])
    lasted = np.maximum(trace["wait"][place], 0) + np.maximum(trace["run"][place], 0)
    over = trace["submit"][place].astype(np.int64) + lasted
    assert np.array_equal(over + trace["think_time"][has], trace["submit"][has])
    assert np.array_equal(trace["user"][place], trace["user"][has])
    assert np.all(trace["think_time"][has] >= 0)
    if len(has):
        assert run.work is not None
        assert np.count_nonzero(run.work.dependencies.count) == len(has)
