"""Minh 2012, chapter 6, is run again: a small plan, stored runs, ending and going on, options."""

import re
from dataclasses import replace
from math import log

import numpy as np
import pytest
from hpcrowd.analysis.paired import Estimate
from hpcrowd.environment.errors import HpcrowdError, ModelFileError, QuantityError, TraceError
from hpcrowd.environment.grid.das3 import DAS3, das3_clusters
from hpcrowd.environment.grid.policies import GRID
from hpcrowd.environment.jobs import State
from hpcrowd.environment.streams import Streams
from hpcrowd.features import Workload
from hpcrowd.scenarios.studies.minh2012 import arrivals as declared
from hpcrowd.scenarios.studies.minh2012 import arrivals_measures as measures
from hpcrowd.scenarios.studies.minh2012.arrivals import reproduce_minh2012_arrivals
from hpcrowd.scenarios.studies.minh2012.arrivals_figures import FIGURES
from hpcrowd.scenarios.studies.minh2012.arrivals_measures import PATTERNS, Plan, stored_arrivals
from hpcrowd.scenarios.studies.refresh import stored_study
from hpcrowd.scenarios.unfinished import ENDING, Interrupted, Unfinished

from tests.scenarios.studies.study_cases import ARRIVALS_TASKS, SMALL_ARRIVALS

NAME = "minh2012-arrivals"

#: How near a stored figure is to the computed one.
NEAR = 10.0 ** (1 - declared.Minh2012Arrivals.stored_digits)


@pytest.fixture(scope="module")
def study():
    """Return the stored study."""
    return stored_study(NAME)


def test_everything_is_run(small):
    """Every policy, load, pattern, replication; a task alone gives the same; bars are means."""
    assert (3, 2, 3, 3) == small.cluster.slowdown.shape
    assert (len(measures.MEASURES), 2, 3, 3, 2) == small.grid.slowdown.shape
    assert min(small.cluster.slowdown.min(), small.grid.slowdown.min()) >= 1
    work = measures.Work(SMALL_ARRIVALS, stored_arrivals())
    again = np.array(work(measures.Task("grid", 1, 1)))
    assert (small.grid.slowdown[:, 1, :, :, 1] == again).all()
    again = np.array(work(measures.Task("cluster", 2, 1)))
    assert (small.cluster.slowdown[:, :, 2, 1] == again).all()
    other = measures.Work(replace(SMALL_ARRIVALS, seed=1), stored_arrivals())(
        measures.Task("cluster", 1, 0)
    )
    assert (small.cluster.slowdown[:, :, 1, 0] != np.array(other)).any()
    figure = FIGURES[-1](small)
    bars = [bar for container in figure.axes[1].containers for bar in container]
    assert 2 * 3 * 3 == len(bars)
    means = small.grid.slowdown[measures.MEASURES.index("grid")].mean(axis=-1)
    tops = sorted(bar.get_y() + bar.get_height() for bar in bars)
    assert np.allclose(np.sort(means.ravel()), tops)


def test_stored_study_has_its_full_size(study):
    """As many workloads and jobs as in the thesis."""
    plan = Plan()
    assert plan.settings() == study.settings
    assert (plan.loads, plan.grid_loads) == (study.cluster.loads, study.grid.loads)
    assert dict(stored_arrivals().log) == study.log


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "replication"), [("N", 3), ("LB", 7)])
def test_stored_runs_come_out_again(study, pattern, replication):
    """A workload run again under every policy at a load, and on the grid, gives what is stored."""
    work = measures.Work(replace(Plan(), loads=(0.7,)), stored_arrivals())
    number = [*PATTERNS].index(pattern)
    found = np.array(work(measures.Task("cluster", number, replication)))
    kept = study.cluster.slowdown[:, study.cluster.loads.index(0.7), number, replication]
    assert np.allclose(kept, found[:, 0], rtol=NEAR)
    found = np.array(
        measures.Work(Plan(), stored_arrivals())(measures.Task("grid", 0, replication))
    )
    assert np.allclose(study.grid.slowdown[:, 0, :, :, replication], found, rtol=NEAR)


def test_interrupted_run_says_what_it_kept(tmp_path):
    """Ctrl-C leaves the tasks that are done next to the folder, and shows how to continue."""

    def stop(label, done, total):
        if done == 2:
            raise KeyboardInterrupt

    out = tmp_path / "study"
    told = f"interrupted: 2 of {ARRIVALS_TASKS} tasks are done and kept; the same command does"
    with pytest.raises(Interrupted, match=told):
        reproduce_minh2012_arrivals(plan=SMALL_ARRIVALS, workers=1, out=out, progress=stop)
    assert 2 + 1 == len([*(tmp_path / f"study{ENDING}").glob("*-*.json")])  # and the plan


def test_kept_results_are_taken(tmp_path):
    """A task that is kept is not done again; what is written removes it; other plans refuse it."""
    work, out = measures.Work(SMALL_ARRIVALS, stored_arrivals()), tmp_path / "out"
    kept = Unfinished.beside(out, declared.whole_plan(work))
    sizes = {"cluster": (3, 2), "grid": (len(measures.MEASURES), 3, 3)}
    for task in work.tasks():
        kept.keep(task.name, np.full(sizes[task.experiment], 7.0).tolist())
    study = reproduce_minh2012_arrivals(plan=SMALL_ARRIVALS, workers=1, out=out)
    assert {7.0} == {*study.grid.slowdown.ravel(), *study.cluster.slowdown.ravel()}
    with pytest.raises(HpcrowdError, match="results of another plan or version; remove it"):
        reproduce_minh2012_arrivals(plan=replace(SMALL_ARRIVALS, seed=9), workers=1, out=out)
    study.write(out)
    assert ["out"] == [path.name for path in tmp_path.iterdir()]


def test_command_line_makes_the_plan(monkeypatch, call):
    """Options reach the study."""
    told: list[object] = []

    def run(work, *_, **__):
        told.append(work.plan)
        raise QuantityError("that is enough")

    monkeypatch.setattr("hpcrowd.scenarios.studies.minh2012.arrivals.run_tasks", run)
    words = ["--quick", "--seed", "4", "--local-load", "0.3", "--json"]
    assert 2 == call("reproduce", NAME, *words)[0]
    assert [Plan(quick=True, seed=4, local_load=0.3)] == told


def test_quick_form_has_fewer_workloads_of_as_many_jobs():
    """An explicit option goes before what the quick form has."""
    full, quick = Plan(), Plan(quick=True)
    assert measures.QUICK == {name: getattr(quick, name) for name in measures.QUICK}
    assert full.jobs == quick.jobs
    assert quick.grid_replications < full.grid_replications
    assert 3 == Plan(quick=True, cluster_replications=3).cluster_replications


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cluster_replications": 1}, "cluster_replications 1: at least 2"),
        ({"jobs": 999}, "jobs 999: at least 1000"),
        ({"loads": (0.7, 0.0)}, "load 0.0: must be positive, for example 0.8"),
        ({"grid_loads": (0.7, 0.7)}, "loads (0.7, 0.7): give at least one, each once"),
        ({"local_load": 1.0}, "local_load 1.0: between 0 and 1, the rest is for the grid"),
        ({"local_widest": 0.0}, "local_widest 0.0: a share of the cluster, to 1"),
        ({"widest": 65}, "widest 65: must be from 1 to 64"),
        ({"grid_widest": 65}, "grid_widest 65: must be from 1 to 64"),
    ],
)
def test_wrong_plans_are_refused(changes, words):
    """A plan that cannot be run is reported before anything is drawn."""
    with pytest.raises(QuantityError, match=re.escape(words)):
        Plan(**changes)


#: A plan that takes a moment.
BRIEF = Plan(jobs=2_000)


def test_patterns_share_everything_but_arrivals():
    """Uniform run times and sizes, the same load; Poisson gaps have a CV of 1, others more."""
    workload = measures.drawn(stored_arrivals().models, 5_000, 64, Streams(1), longest_s=100)
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
    again = measures.drawn(stored_arrivals().models, 5_000, 64, Streams(1), longest_s=100)
    assert (workload.run_time == again.run_time).all()
    cvs = {}
    for pattern in PATTERNS:
        gaps = [
            np.diff(
                measures.drawn(stored_arrivals().models, 20_000, 4, Streams(seed)).arrivals[pattern]
            )
            for seed in range(4)
        ]
        cvs[pattern] = float(np.mean([one.std() / one.mean() for one in gaps]))
    assert pytest.approx(1.0, abs=0.05) == cvs["N"]
    assert cvs["L"] > 1.3
    assert cvs["LB"] > 1.5 * cvs["L"]


def test_loads_on_the_grid_are_what_they_are_called():
    """Offered work is the load at home and on the rest; the background is always the same."""
    workloads = measures.grid_workloads(BRIEF, stored_arrivals(), 0)
    run = measures.GridRun(BRIEF, workloads, 0.4, "LB", "L")
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
    other = measures.GridRun(BRIEF, workloads, 0.8, "N", "L")
    for name in clusters:
        both = [one.model.jobs.recorded_submit[one.rows[name]] for one in (run, other)]
        assert (both[0] == both[1]).all()


def test_grid_jobs_run_everywhere_and_local_jobs_at_home():
    """Every job completes; what begins after another has ended has nothing to measure."""
    run = measures.GridRun(
        BRIEF, measures.grid_workloads(BRIEF, stored_arrivals(), 1), 0.8, "N", "LB"
    )
    run.model.run()
    jobs = run.model.jobs
    assert len(jobs) == jobs.count(State.COMPLETED) == 6 * BRIEF.jobs
    for number, name in enumerate(das3_clusters()):
        assert (jobs.cluster[run.rows[name]] == number).all()
    assert {0, 1, 2, 3, 4} == set(jobs.cluster[run.rows[GRID]].tolist())
    found = dict(zip(measures.MEASURES, run.slowdowns(), strict=True))
    rows = run.rows[GRID]
    waits = (jobs.start - jobs.submit)[rows].mean()
    assert pytest.approx(1 + waits / jobs.run_time[rows].mean()) == found["grid all"]
    rows = run.rows["LU"][jobs.submit[run.rows["LU"]] <= run.together]
    assert 0 < len(rows) < BRIEF.jobs
    waits = (jobs.start - jobs.submit)[rows].mean()
    assert pytest.approx(1 + waits / jobs.run_time[rows].mean()) == found["LU"]
    run = measures.GridRun(
        BRIEF, measures.grid_workloads(BRIEF, stored_arrivals(), 0), 0.4, "N", "N"
    )
    run.model.run()
    run.together = -1
    with pytest.raises(QuantityError, match=r"jobs 2,000: no job of some workload .* take more"):
        run.slowdowns()


def test_arrivals_are_stored(tmp_path):
    """Another log needs its trace; what is damaged is named."""
    assert stored_arrivals() == measures.arrivals_of(None)
    with pytest.raises(QuantityError, match="log HPC2N: only the arrivals of Thunder are stored"):
        measures.arrivals_of(None, "HPC2N")
    with pytest.raises(QuantityError, match="log 'Mira': not known; choose HPC2N, "):
        measures.arrivals_of(None, "Mira")
    with pytest.raises(TraceError, match=r"LLNL-Thunder.*not found; fetch it from"):
        measures.arrivals_of(tmp_path)
    data = stored_arrivals().to_json()
    with pytest.raises(ModelFileError, match="mine: damaged, 'LB'; fit them again"):
        measures.Arrivals.from_json(
            {**data, "models": {k: data["models"][k] for k in "NL"}}, "mine"
        )
    data["models"]["L"]["sd"] = -1.0
    with pytest.raises(ModelFileError, match="mine: damaged, 1 validation error"):
        measures.Arrivals.from_json(data, "mine")


@pytest.mark.slow
@pytest.mark.traces
def test_stored_arrivals_are_those_of_thunder(read_trace):
    """The log fitted again gives what is stored."""
    trace = read_trace("LLNL-Thunder-2007-1.1-cln")
    stored = stored_arrivals()
    assert trace.sha256 == stored.log["sha256"]
    fitted = measures.fit_arrivals(Workload.from_trace(trace).submit, stored.log)
    assert measures.LOG == stored.log["name"]
    for pattern in PATTERNS:
        both = (one.models[pattern].model_dump() for one in (stored, fitted))
        first, second = ({**one, "notes": ()} for one in both)
        assert first.keys() == second.keys()
        for name, value in first.items():
            if isinstance(value, str):
                assert value == second[name]
            else:
                assert np.allclose(value, second[name], rtol=1e-9)


#: Replications of made-up results.
COUNT = 8

LOADS, GRID_LOADS = (0.5, 0.7, 0.8, 0.9), (0.2, 0.4, 0.6, 0.8, 1.0)


@pytest.mark.parametrize(
    ("low", "high", "one_is_larger", "about_one"),
    [(1.2, 1.3, True, False), (1.01, 1.05, True, True), (0.95, 1.05, None, True),
     (0.9, 1.3, None, None), (0.6, 0.7, False, False)],
)  # fmt: skip
def test_intervals_decide(low, high, one_is_larger, about_one):
    """A ratio is larger than 1, about 1, neither, or nobody knows, by its whole interval."""
    ratio = Estimate((log(low) + log(high)) / 2, log(low), log(high), COUNT)
    assert one_is_larger is declared.larger(ratio)[2]
    assert about_one is declared.alike(ratio)[2]


def test_one_ratio_that_contradicts_decides():
    """Of several ratios one that is surely otherwise refutes, whatever the others are."""
    up, down, one = (
        Estimate(log(mean), log(mean - 0.01), log(mean + 0.01), COUNT) for mean in (2.0, 0.5, 1.0)
    )
    assert [True, False] == [declared.in_order(up, other)[2] for other in (up, down)]
    assert [True, False] == [declared.alike(one, other)[2] for other in (one, up)]


def test_ratios_are_geometric_and_paired():
    """Halves and doubles cancel, common factors do not widen; each rule has loads to apply to."""
    halved, doubled = np.array([2.0, 8.0]), np.array([4.0, 4.0])
    assert pytest.approx(0.0, abs=1e-12) == measures.log_ratio(halved, doubled).mean
    wide = np.array([1.0, 10.0, 1000.0])
    estimate = measures.log_ratio(3 * wide, wide)
    assert pytest.approx([log(3.0)] * 2) == [estimate.low, estimate.high]
    for tried, loads in ((declared.CLUSTER_RULES, LOADS), (declared.GRID_RULES, GRID_LOADS)):
        applies = [rule.applies for rule in tried if rule.applies is not None]
        assert all(any(each(None, load) for load in loads) for each in applies)
