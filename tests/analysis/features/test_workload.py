"""Which jobs of a trace, a run or arrays are measured, and what is said of the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.analysis.features import FEATURES, Settings, Workload, measure
from hpcrowd.analysis.features.workload import once
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.environment.errors import QuantityError, TraceError, UnavailableError
from hpcrowd.environment.traces.trace import Trace

MakeTrace = Callable[..., Trace]

JOB = {"submit": 0, "run": 10, "allocated_processors": 4, "status": 1}


def test_jobs_that_did_not_complete_are_left_out_and_counted(make_trace: MakeTrace) -> None:
    """Status 1 and a run time of 0 s count; others, and what cannot be measured, do not."""
    trace = make_trace(
        JOB,
        JOB | {"run": 0},
        JOB | {"status": 0},
        JOB | {"status": 5},
        JOB | {"submit": -1},
        JOB | {"run": -1},
        JOB | {"allocated_processors": 0},
    )
    found = Workload.from_trace(trace)
    assert 2 == len(found)
    assert {
        "not completed (status other than 1)": 2,
        "no submit time": 1,
        "no run time": 1,
        "no processors": 1,
    } == dict(found.left_out)
    assert 4 == len(Workload.from_trace(trace, "all"))


def test_a_trace_without_status_is_measured_whole_and_says_so(make_trace: MakeTrace) -> None:
    """Where no job has status 1, the status says nothing."""
    found = Workload.from_trace(make_trace(JOB | {"status": -1}, header="; MaxProcs: 4"))
    assert 1 == len(found)
    assert ("no job has status 1: jobs of any status are measured",) == found.notes


def test_requested_and_allocated_processors_stand_in_for_each_other(make_trace: MakeTrace) -> None:
    """Processors are the requested ones; each is taken for the other where that is missing."""
    found = Workload.from_trace(
        make_trace(
            JOB | {"requested_processors": 8},
            JOB,
            JOB | {"allocated_processors": -1, "requested_processors": 2},
        )
    )
    assert [8, 4, 2] == found.processors.tolist()
    assert [4, 4, 2] == found.allocated.tolist()


def test_nothing_to_measure_is_an_error(make_trace: MakeTrace) -> None:
    """It names the trace, what was left out, and the cure."""
    trace = make_trace(JOB, JOB | {"run": -1, "status": 1})
    trace.columns["submit"][:] = -1
    with pytest.raises(TraceError, match=r"no job to measure \(2 no submit time\); .*--jobs all"):
        Workload.from_trace(trace)


def test_ties_go_by_job_number(make_trace: MakeTrace) -> None:
    """Lines in any order give the same workload."""
    jobs = [JOB | {"number": n, "submit": s, "run": n} for n, s in ((3, 5), (1, 5), (2, 0))]
    assert [2, 1, 3] == Workload.from_trace(make_trace(*jobs)).run_time.tolist()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"run_time": [1, 2]}, "run_time: .* for 3 jobs"),
        ({"run_time": -1}, "run_time: a value is negative"),
        ({"processors": 0}, "processors: a job has none"),
        ({"wait": np.nan}, "wait: a value is not finite"),
    ],
)
def test_arrays_that_make_no_workload(columns: dict[str, object], message: str) -> None:
    """Each mistake is reported with the column."""
    with pytest.raises(QuantityError, match=message):
        Workload.of([0, 1, 2], **{"run_time": 1} | columns)  # type: ignore[arg-type]


def test_settings_are_positive() -> None:
    """A scale of 0 measures nothing."""
    with pytest.raises(QuantityError, match="bag_gap_s 0: must be positive"):
        Settings(bag_gap_s=0)


def test_a_simulated_run_is_measured_like_a_trace(make_trace: MakeTrace, tmp_path: object) -> None:
    """Waits and submissions are the simulated ones, also after the run was written and read."""
    from hpcrowd.scenarios.kinds.replay import replay

    trace = make_trace(
        *(
            JOB | {"submit": 10 * n, "run": 100, "user": 1 + n % 3, "requested_time": 100}
            for n in range(30)
        ),
        header="; MaxProcs: 8",
    )
    run = replay(trace, users="rigid")
    workload = Workload.from_run(run)
    assert 30 == len(workload)
    assert 8 == workload.machine
    assert (run.jobs.start - run.jobs.submit).sum() == workload.wait.sum()
    found = measure(workload, FEATURES.values())
    assert run.metrics["wait_mean_s"] == pytest.approx(found.number("wait_mean_s"))
    folder = tmp_path / "run"  # type: ignore[operator]
    write_results(run, folder)
    again = Workload.from_run(read_results(folder))
    assert workload.wait.tolist() == again.wait.tolist()


def test_a_number_that_is_not_there_says_why() -> None:
    """Asking for it raises the reason; an unknown name is a mistake."""
    found = measure(Workload.of([0, 5], 1), FEATURES.values())
    with pytest.raises(UnavailableError, match="no waits recorded"):
        found.number("wait_mean_s")
    with pytest.raises(QuantityError, match="feature 'nonsense'"):
        found.number("nonsense")
    assert 5 == found.number("span_s")
    assert "Features of workload" in repr(found)


def test_what_was_found_is_kept_and_reasons_too() -> None:
    """A search runs once, also when it ends with a reason."""
    workload, calls = Workload.of([0], 1), []

    @once
    def find(_: Workload, what: int) -> int:
        calls.append(what)
        if what == 0:
            raise UnavailableError("because")
        return what + len(calls)

    for _ in range(2):
        with pytest.raises(UnavailableError, match="because"):
            find(workload, 0)
    assert [0] == calls
    assert [7, 7] == [find(workload, 5), find(workload, 5)]
