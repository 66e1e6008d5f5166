"""Minh 2012, chapter 6: workloads with their arrivals, and the grid that runs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.environment.errors import ModelFileError, QuantityError, TraceError
from hpcrowd.environment.grid.das3 import DAS3, das3_clusters
from hpcrowd.environment.grid.policies import GRID
from hpcrowd.environment.jobs import State
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.minh2012_arrivals.experiments import GridRun, Plan, grid_workloads
from hpcrowd.scenarios.studies.minh2012_arrivals.measures import MEASURES
from hpcrowd.scenarios.studies.minh2012_arrivals.workloads import (
    LOG,
    PATTERNS,
    Arrivals,
    arrivals_of,
    drawn,
    fit_arrivals,
    stored_arrivals,
)

#: A plan that takes a moment.
SMALL = Plan(jobs=2_000)


# ---- workloads -------------------------------------------------------------------------------


def test_patterns_share_everything_but_arrivals() -> None:
    """Run times and sizes are uniform over their ranges; all patterns last equally long."""
    workload = drawn(stored_arrivals().models, 5_000, 64, Streams(1), longest_s=100)
    for values, most in ((workload.run_time, 100), (workload.processors, 64)):
        assert (1, most) == (values.min(), values.max())
        error = (most - 1) / np.sqrt(12 * 5_000)
        assert abs(values.mean() - (most + 1) / 2) < 4 * error
    assert [*PATTERNS] == [*workload.arrivals]
    gap = workload.mean_gap(0.8, 64)
    for pattern in PATTERNS:
        submits = workload.submits(pattern, gap)
        assert (np.diff(submits) >= 0).all()
        assert round(5_000 * gap) == submits[-1]
    work = (workload.run_time * workload.processors).sum()
    assert pytest.approx(0.8, rel=1e-3) == work / (64 * submits[-1])
    again = drawn(stored_arrivals().models, 5_000, 64, Streams(1), longest_s=100)
    assert (workload.run_time == again.run_time).all()


def test_patterns_are_what_they_are_called() -> None:
    """Poisson gaps have a CV of 1; the wavelet models are burstier, with pauses most of all."""
    cvs = {}
    for pattern in PATTERNS:
        gaps = [
            np.diff(drawn(stored_arrivals().models, 20_000, 4, Streams(seed)).arrivals[pattern])
            for seed in range(4)
        ]
        cvs[pattern] = float(np.mean([one.std() / one.mean() for one in gaps]))
    assert pytest.approx(1.0, abs=0.05) == cvs["N"]
    assert cvs["L"] > 1.3
    assert cvs["LB"] > 1.5 * cvs["L"]


def test_loads_on_the_grid_are_what_they_are_called() -> None:
    """Offered work over processors is the local load everywhere, and the grid load of the rest."""
    workloads = grid_workloads(SMALL, stored_arrivals(), 0)
    run = GridRun(SMALL, workloads, 0.4, "LB", "L")
    jobs, clusters = run.model.jobs, das3_clusters()
    for name, one in clusters.items():
        rows = run.rows[name]
        # Run times in the table are of the cluster's nodes once a job is submitted to it.
        work = float((jobs.run_time[rows] * jobs.processors[rows]).sum())
        offered = work / (one.processors * float(jobs.recorded_submit[rows[-1]]))
        assert pytest.approx(0.5, rel=2e-3) == offered
        assert jobs.processors[rows].max() <= one.processors // 4
    rows = run.rows[GRID]
    free = 0.5 * sum(row.processors for row in DAS3)
    work = float((jobs.run_time[rows] * jobs.processors[rows]).sum())
    assert pytest.approx(0.4, rel=1e-3) == work / (free * float(jobs.recorded_submit[rows[-1]]))
    assert jobs.processors[rows].max() <= 64


def test_grid_jobs_run_everywhere_and_local_jobs_at_home() -> None:
    """Every job completes; local jobs on their own cluster, the grid's on any."""
    run = GridRun(SMALL, grid_workloads(SMALL, stored_arrivals(), 1), 0.8, "N", "LB")
    run.model.run()
    jobs = run.model.jobs
    assert len(jobs) == jobs.count(State.COMPLETED) == 6 * SMALL.jobs
    for number, name in enumerate(das3_clusters()):
        assert (jobs.cluster[run.rows[name]] == number).all()
    assert {0, 1, 2, 3, 4} == set(jobs.cluster[run.rows[GRID]].tolist())
    found = dict(zip(MEASURES, run.slowdowns(), strict=True))
    rows = run.rows[GRID]
    waits = (jobs.start - jobs.submit)[rows].mean()
    assert pytest.approx(1 + waits / jobs.run_time[rows].mean()) == found["grid all"]
    rows = run.rows["LU"][jobs.submit[run.rows["LU"]] <= run.together]
    assert 0 < len(rows) < SMALL.jobs
    waits = (jobs.start - jobs.submit)[rows].mean()
    assert pytest.approx(1 + waits / jobs.run_time[rows].mean()) == found["LU"]


def test_background_is_the_same_whatever_the_grid_does() -> None:
    """Local jobs have the same submissions at every load and pattern of the grid."""
    workloads = grid_workloads(SMALL, stored_arrivals(), 0)
    first, second = (
        GridRun(SMALL, workloads, load, own, "L") for load, own in ((0.4, "N"), (0.8, "LB"))
    )
    for name in das3_clusters():
        rows = first.rows[name]
        both = [run.model.jobs.recorded_submit[rows] for run in (first, second)]
        assert (both[0] == both[1]).all()


def test_too_short_workloads_are_reported() -> None:
    """A workload that begins after another has ended has nothing to measure."""
    run = GridRun(SMALL, grid_workloads(SMALL, stored_arrivals(), 0), 0.4, "N", "N")
    run.model.run()
    run.together = -1
    with pytest.raises(QuantityError, match=r"jobs 2,000: no job of some workload .* take more"):
        run.slowdowns()


# ---- arrivals and their log ------------------------------------------------------------------


def test_arrivals_are_stored(tmp_path: Path) -> None:
    """Without traces the stored ones are taken; another log needs its trace."""
    assert stored_arrivals() == arrivals_of(None)
    with pytest.raises(QuantityError, match="log HPC2N: only the arrivals of Thunder are stored"):
        arrivals_of(None, "HPC2N")
    with pytest.raises(QuantityError, match="log 'Mira': not known; choose HPC2N, "):
        arrivals_of(None, "Mira")
    with pytest.raises(TraceError, match=r"LLNL-Thunder.*not found; fetch it from"):
        arrivals_of(tmp_path)


def test_damaged_arrivals_are_reported() -> None:
    """What is missing or cannot be is named."""
    data = stored_arrivals().to_json()
    with pytest.raises(ModelFileError, match="mine: damaged, 'LB'; fit them again"):
        Arrivals.from_json({**data, "models": {k: data["models"][k] for k in "NL"}}, "mine")
    data["models"]["L"]["sd"] = -1.0
    with pytest.raises(ModelFileError, match="mine: damaged, 1 validation error"):
        Arrivals.from_json(data, "mine")


@pytest.mark.traces
def test_stored_arrivals_are_those_of_thunder(read_trace: Callable[[str], Trace]) -> None:
    """The log fitted again gives what is stored."""
    trace = read_trace("LLNL-Thunder-2007-1.1-cln")
    stored = stored_arrivals()
    assert trace.sha256 == stored.log["sha256"]
    fitted = fit_arrivals(Workload.from_trace(trace).submit, stored.log)
    assert LOG == stored.log["name"]
    for pattern in PATTERNS:
        both = (one.models[pattern].model_dump() for one in (stored, fitted))
        first, second = ({**one, "notes": ()} for one in both)
        assert first.keys() == second.keys()
        for name, value in first.items():
            if isinstance(value, str):
                assert value == second[name]
            else:
                assert np.allclose(value, second[name], rtol=1e-9)
