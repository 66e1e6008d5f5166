"""Minh 2012, chapter 7, is run again: on small logs, as stored, and what its options are."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd import features
from hpcrowd.analysis.features.locality import run_lengths
from hpcrowd.analysis.models.jobs.locality import Locality
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.streams import Streams
from hpcrowd.scenarios.studies.minh2012 import correlation_measures as measures
from hpcrowd.scenarios.studies.minh2012.correlation import (
    CATEGORIZED,
    LOAD_RULES,
    Minh2012Correlation,
    signs_of,
)
from hpcrowd.scenarios.studies.minh2012.correlation_measures import DEGREES, modelled, slowdown
from hpcrowd.scenarios.studies.published import published_rows
from hpcrowd.scenarios.studies.refresh import stored_study

from tests.scenarios.studies.study_cases import SMALL_CORRELATION, job
from tests.support.behaviours import refused

NAME = Minh2012Correlation.name

#: How near a stored figure is to the computed one.
NEAR = 10.0 ** (1 - Minh2012Correlation.stored_digits)


def test_everything_is_run(small):
    """Every policy, load, degree and replication has a slowdown; correlations are as asked."""
    runs = small.correlation
    assert (len(SMALL_CORRELATION.policies), 1, 3, 2) == runs.slowdown.shape
    assert runs.slowdown.min() >= 1
    assert [None, -0.2, 0.0, 0.4] == [case.degree for case in small.locality]
    assert [40, 8, 8, 8] == [case.machine for case in small.locality]
    for case in small.locality:
        assert (2, 2, 2, 2) == case.slowdown.shape
        assert case.slowdown.min() >= 1
    assert ["HPC2N", "DAS2-fs1"] == list(small.weeks)
    low, middle, high = small.correlation.correlation
    assert low.max() < -0.95
    assert high.min() > 0.95
    assert abs(middle).max() < 5 / np.sqrt(150)
    for case in small.locality[1:]:
        assert pytest.approx(case.degree, abs=5 / np.sqrt(150)) == case.correlation.mean()


def test_only_completed_jobs_count(make_trace):
    """Jobs of other status than 1 are left out; those that stay are in order of submission."""
    rows = ((30, 5, 1, 1), (10, 6, 2, 1), (20, 7, 3, 0))
    jobs = [job(at, run, width, 1, status=status) for at, run, width, status in rows]
    found = measures.completed_jobs(make_trace(*jobs))
    assert [0, 20] == (found.submit - found.submit[0]).tolist()
    assert ([6, 5], [2, 1]) == (found.run_time.tolist(), found.processors.tolist())
    with pytest.raises(TraceError, match="no job has status 1, completed; take another trace"):
        measures.completed_jobs(make_trace(jobs[2]))


@pytest.fixture(scope="module")
def study():
    """Return the stored study."""
    return stored_study(NAME)


@pytest.fixture(scope="module")
def work(study, read_trace):
    """Return what runs some of its tasks again: one load each."""
    trace = read_trace("HPC2N-2002-2.2-cln")
    plan = replace(measures.Plan(), seed=study.seed, loads=(0.9,), locality_loads=(0.8,))
    model = Locality.fit(features.Workload.from_trace(trace))
    return measures.Work(
        plan, {measures.HPC: model}, {measures.HPC: trace.processors}, measures.CASES[:1]
    )


def test_stored_study_has_its_full_size(study):
    """As many workloads and jobs as in the thesis, all policies; eleven degrees as in Table 7.1."""
    plan = measures.Plan()
    assert (plan.replications, plan.jobs) == (study.replications, study.jobs)
    runs = study.correlation
    assert (plan.policies, plan.degrees, plan.loads) == (runs.policies, runs.degrees, runs.loads)
    assert [(case.log, case.degree) for case in plan.cases] == [
        (runs.log, runs.degree) for runs in study.locality
    ]
    assert [*DEGREES] == [float(row["degree"]) for row in published_rows("minh2012_table7_1")]


@pytest.mark.slow
@pytest.mark.traces
def test_stored_runs_come_out_again(study, work):
    """Workloads run again under every policy, and with and without locality, are as stored."""
    runs = study.correlation
    for degree, replication in ((0, 3), (8, 11)):
        correlation, found = work(measures.Task("correlation", degree, replication))
        assert pytest.approx(runs.correlation[degree, replication], rel=NEAR) == correlation
        kept = runs.slowdown[:, runs.loads.index(0.9), degree, replication]
        assert np.allclose(kept, found[:, 0], rtol=NEAR)
    correlation, found = work(measures.Task("locality", 0, 7))
    case = study.locality[0]
    assert pytest.approx(case.correlation[7], rel=NEAR) == correlation
    assert np.allclose(case.slowdown[:, :, case.loads.index(0.8), 7], found[:, :, 0], rtol=NEAR)


@pytest.mark.slow
@pytest.mark.traces
def test_weeks_come_out_again(study, kth):
    """The weeks of KTH are those that are stored."""
    signs = signs_of(features.Workload.from_trace(kth))
    assert np.allclose(study.weeks["KTH"].correlation, signs.correlation, rtol=NEAR, equal_nan=True)
    assert study.weeks["KTH"].right == signs.right


@pytest.mark.parametrize(("fcfs", "expected"), [(9.0, True), (1.5, False), (4.0, None)])
def test_degrading_more_than_both(fcfs, expected):
    """FIFO has to rise more than Aggressive and than Categorized; less than one refutes it."""
    rises = {"fcfs": fcfs, "easy": 2.0, CATEGORIZED: 4.0}
    slowdown = np.array([[[[1.0] * 4] * 2 + [[rise] * 4]] for rise in rises.values()])
    runs = measures.CorrelationRuns((-1.0, 0.0, 1.0), (0.8,), (*rises,), np.zeros((3, 4)), slowdown)
    (rule,) = (one for one in LOAD_RULES if one.name == "fragmentation: fcfs")
    assert expected is rule.check(runs, 0.8)[2]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: measures.Plan(replications=1), "replications 1: at least 2"),
        (lambda: measures.Plan(jobs=99), "jobs 99: at least 100"),
        (lambda: measures.Plan(loads=(0.7, 0.0)), "load 0.0: must be positive, for example 0.8"),
        (lambda: measures.Plan(loads=(0.7, 0.7)), "loads (0.7, 0.7): give at least one, each once"),
        (lambda: measures.Plan(loads=()), "loads (): give at least one, each once"),
        (lambda: every_second((50, 8)).jobs(0.0, 10), "load 0.0: must be positive, for example"),
        (lambda: every_second((50, 8)).jobs(float("inf"), 10), "load inf: must be positive"),
        (lambda: every_second((50, 8)).jobs(0.5, 7), "machine 7: a job needs 8 processors"),
    ],
)
def test_what_cannot_be_run_is_refused(make, words):
    """Plans, loads that are no positive numbers, and jobs that do not fit, before anything runs."""
    refused(make, words, QuantityError)


@pytest.fixture(scope="module")
def model():
    """Return the model of runs of five short and three long jobs, on 1, 2 and 8 processors."""
    long = np.arange(160) % 8 > 4
    processors = np.where(long, 8, 1 + np.arange(160) % 2)
    return Locality.fit(features.Workload.of(np.arange(160), np.where(long, 5000, 100), processors))


def every_second(*jobs):
    """Return jobs of (run time, processors) with equal gaps."""
    run_time, processors = np.array(jobs).T
    return measures.Workload(run_time, processors, np.ones(len(jobs)))


def test_load_decides_the_rate():
    """Arrival rate x E[work] / machine is the load (5.2.5); slowdown is a ratio of means."""
    workload = every_second((100, 2), (300, 2), (50, 8))
    assert pytest.approx(400 / (0.5 * 10)) == workload.mean_gap(0.5, 10)
    jobs = workload.jobs(0.5, 10)
    assert [80, 160, 240] == jobs.recorded_submit.tolist()
    assert [100, 300, 50] == jobs.requested_time.tolist()
    jobs = JobTable()
    jobs.append(2, submit=[0, 10], run_time=[10, 15], start=[0, 35], end=[10, 50])
    assert 2 == slowdown(jobs)


def test_workloads_of_the_model(model):
    """Work over capacity is the load, within five standard errors; nobody waits alone."""
    workload = modelled(model, 20_000, 16, Streams(0))
    jobs = workload.jobs(0.8, 16)
    offered = (jobs.run_time * jobs.processors).sum() / (16 * jobs.recorded_submit[-1])
    assert pytest.approx(0.8, rel=5 / np.sqrt(20_000)) == offered
    workload = modelled(model, 200, 16, Streams(1))
    assert 1 == measures.slowdown_of(workload, 0.0001, 16, "fcfs")
    assert 10 < measures.slowdown_of(workload, 100.0, 16, "fcfs")


def test_what_is_shuffled(model):
    """Run times alone, pairs with their arrivals, or processors to a degree; the rest stays."""
    workload = modelled(model, 400, 16, Streams(3))
    other = workload.with_run_times_shuffled(np.random.default_rng(0))
    assert sorted(workload.run_time) == sorted(other.run_time)
    assert workload.processors.tolist() == other.processors.tolist()
    assert len(run_lengths(other.run_time)) > 1.5 * len(run_lengths(workload.run_time))
    assert 4 == len({*zip(other.run_time >= 5000, other.processors == 8, strict=True)})
    workload = modelled(model, 40, 16, Streams(4))
    shuffled = workload.shuffled(np.random.default_rng(5))

    def pairs(one):
        return [*zip(one.run_time.tolist(), one.processors.tolist(), strict=True)]

    assert sorted(pairs(workload)) == sorted(pairs(shuffled))
    assert pairs(workload) != pairs(shuffled)
    at, same = (one.jobs(0.9, 8).recorded_submit.tolist() for one in (workload, shuffled))
    assert at == same
    workload = modelled(model, 40, 16, Streams(6))
    other = measures.with_degree(workload, -1, np.random.default_rng(7))
    assert workload.run_time.tolist() == other.run_time.tolist()
    assert workload.gaps.tolist() == other.gaps.tolist()
    longest, shortest = np.argmax(other.run_time), np.argmin(other.run_time)
    assert (1, 8) == (other.processors[longest], other.processors[shortest])
