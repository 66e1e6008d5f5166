"""Which jobs of a trace, a run or arrays are measured, and what is said of the others."""

import numpy as np
import pytest
from hpcrowd.analysis.features.workload import once
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.environment.errors import QuantityError, TraceError, UnavailableError
from hpcrowd.features import FEATURES, Settings, Workload, measure
from hpcrowd.scenarios.kinds.replay import replay

JOB = {"submit": 0, "run": 10, "allocated_processors": 4, "status": 1}


def test_jobs_that_did_not_complete_are_left_out_and_counted(make_trace):
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
    reasons = {"no submit time": 1, "no run time": 1, "no processors": 1}
    assert {"not completed (status other than 1)": 2, **reasons} == dict(found.left_out)
    assert 4 == len(Workload.from_trace(trace, "all"))
    found = Workload.from_trace(make_trace(JOB | {"status": -1}, header="; MaxProcs: 4"))
    assert 1 == len(found)
    assert ("no job has status 1: jobs of any status are measured",) == found.notes
    trace = make_trace(JOB, JOB | {"run": -1, "status": 1})
    trace.columns["submit"][:] = -1
    with pytest.raises(TraceError, match=r"no job to measure \(2 no submit time\); .*--jobs all"):
        Workload.from_trace(trace)


def test_jobs_are_in_order_with_the_processors_that_are_known(make_trace):
    """Ties go by job number; requested and allocated processors replace each other."""
    found = Workload.from_trace(
        make_trace(
            JOB | {"number": 3, "submit": 5, "allocated_processors": -1, "requested_processors": 2},
            JOB | {"number": 1, "submit": 5},
            JOB | {"number": 2, "submit": 0, "requested_processors": 8},
        )
    )
    assert [0, 5, 5] == found.submit.tolist()
    assert [8, 4, 2] == found.processors.tolist()
    assert [4, 4, 2] == found.allocated.tolist()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"run_time": [1, 2]}, "run_time: .* for 3 jobs"),
        ({"run_time": -1}, "run_time: a value is negative"),
        ({"processors": 0}, "processors: a job has none"),
        ({"wait": np.nan}, "wait: a value is not finite"),
    ],
)
def test_arrays_that_make_no_workload(columns, message):
    """Each mistake is reported with the column; a scale of 0 measures nothing."""
    with pytest.raises(QuantityError, match=message):
        Workload.of([0, 1, 2], **{"run_time": 1} | columns)
    with pytest.raises(QuantityError, match="bag_gap_s 0: must be positive"):
        Settings(bag_gap_s=0)


def test_a_simulated_run_is_measured_like_a_trace(make_trace, tmp_path):
    """Waits and submissions are the simulated ones, also after the run was written and read."""
    job = JOB | {"run": 100, "requested_time": 100}
    rows = [job | {"submit": 10 * n, "user": 1 + n % 3} for n in range(30)]
    run = replay(make_trace(*rows, header="; MaxProcs: 8"), users="rigid")
    workload = Workload.from_run(run)
    assert (30, 8) == (len(workload), workload.machine)
    assert (run.jobs.start - run.jobs.submit).sum() == workload.wait.sum()
    found = measure(workload, FEATURES.values())
    assert run.metrics["wait_mean_s"] == pytest.approx(found.number("wait_mean_s"))
    write_results(run, tmp_path / "run")
    again = Workload.from_run(read_results(tmp_path / "run"))
    assert workload.wait.tolist() == again.wait.tolist()


def test_what_was_found_is_kept_and_reasons_too():
    """A search runs once, also when it ends with a reason; a missing number raises its reason."""
    workload, calls = Workload.of([0, 5], 1), []

    @once
    def find(_, what):
        calls.append(what)
        if what == 0:
            raise UnavailableError("because")
        return what + len(calls)

    for _ in range(2):
        with pytest.raises(UnavailableError, match="because"):
            find(workload, 0)
    assert [0] == calls
    assert [7, 7] == [find(workload, 5), find(workload, 5)]
    found = measure(workload, FEATURES.values())
    assert 5 == found.number("span_s")
    with pytest.raises(UnavailableError, match="no waits recorded"):
        found.number("wait_mean_s")
    with pytest.raises(QuantityError, match="feature 'nonsense'"):
        found.number("nonsense")
