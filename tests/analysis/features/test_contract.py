"""For every feature: a number or a reason, whatever the order or the unit; what is measured."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hpcrowd.analysis.features.bags import PARAMETERS
from hpcrowd.analysis.features.workload import once
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError, TraceError, UnavailableError
from hpcrowd.features import FEATURES, Settings, Workload, measure
from hpcrowd.scenarios.kinds.replay import replay
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.features.feature_cases import bursty_workload, poisson_workload

#: Features are measured the same but for rounding.
CLOSE = 1e-6


#: Beginnings of the names of features that are measured in whole seconds, or take a time of 1e-7 s
#: for none, and so depend on the unit: sessions and batches, fits to the times between bags.
ROUNDED = (
    *("session", "batch", "jobs_per_session", "jobs_per_batch", "think", "activity"),
    *(f"bag_interarrival_{distribution}" for distribution in PARAMETERS),
)


@cache
def bursty():
    """Return a workload on which every feature is available."""
    return bursty_workload(4000, seed=11)


def all_of(workload):
    """Return all features."""
    return measure(workload, FEATURES.values())


def assert_same(expected, actual, but=frozenset()):
    """Compare the features of two workloads."""
    for name, one in expected.items():
        if name in but:
            continue
        other = actual[name]
        assert one.reason == other.reason, name
        if one.number is not None:
            assert one.number == pytest.approx(other.number, rel=CLOSE, abs=CLOSE), name


def test_the_order_of_the_lines_does_not_matter():
    """Jobs are put in order by submission and number; every feature is available here."""
    found = all_of(bursty())
    missing = {name: one.reason for name, one in found.items() if one.number is None}
    assert {"weekend_share": "the trace does not say when it began"} == missing
    order = np.random.default_rng(1).permutation(len(bursty()))
    assert_same(found, all_of(rebuilt(bursty(), order)))


@pytest.mark.parametrize("factor", [1 / 64, 3.5])
def test_the_unit_of_time_matters_as_told(factor):
    """With all times and settings in another unit, features scale as their ``scaling`` says."""
    workload = bursty()
    scales = workload.settings
    names = ("time_scale_s", "bag_gap_s", "session_gap_s", "resolution_s")
    times = ("submit", "run_time", "requested_time", "wait")
    other = rebuilt(
        workload,
        **{name: getattr(workload, name) * factor for name in times},
        settings=replace(scales, **{name: getattr(scales, name) * factor for name in names}),
    )
    before, after = all_of(workload), all_of(other)
    power = {"time": factor, "rate": 1 / factor, "none": 1}
    for name, feature in FEATURES.items():
        if feature.scaling == "calendar" or name.startswith(ROUNDED):
            continue
        one, two = before[name].number, after[name].number
        assert one is not None, name
        assert two is not None, (name, after[name].reason)
        assert two == pytest.approx(one * power[feature.scaling], rel=CLOSE, abs=CLOSE), name


def test_few_or_constant_jobs_say_what_they_lack():
    """Of no job there is nothing; one has no arrivals; steady ones have no burstiness."""
    found = dict(all_of(Workload.of([], [])))
    assert 0 == found.pop("jobs").number
    assert {"no jobs"} == {value.reason for value in found.values()}
    found = all_of(Workload.of([7], [10], [4], user=1, wait=3))
    names = ("jobs", "users", "normalized_entropy")
    assert [1, 1, 0] == [found[name].number for name in names]
    assert "fewer than 2 jobs" == found["span_s"].reason
    found = all_of(Workload.of(np.arange(90_000) * 9, 5, 2))
    assert 0 == found["interarrival_cv"].number
    assert "the series does not vary" == found["hurst_mean"].reason
    cv = FEATURES["interarrival_cv"].measure
    assert cv(poisson_workload(20_000, 300, 6)) == pytest.approx(1, abs=4 / np.sqrt(20_000))


#: Columns of jobs, and values that they may have.
TINY = st.fixed_dictionaries({
    "submit": st.integers(0, 3 * DAY), "run_time": st.integers(0, 5000),
    "processors": st.integers(1, 8), "requested_time": st.sampled_from([-1, 0, 60, 3600]),
    "wait": st.sampled_from([-1, 0, 7, 10_000]), "user": st.sampled_from([-1, 1, 2]),
})  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(TINY, min_size=1, max_size=12))
def test_tiny_workloads_have_a_number_or_a_reason(rows):
    """Whatever is in a tiny workload: finite numbers, or a reason; no warning, no traceback."""
    found = all_of(Workload.of(**{name: np.array([one[name] for one in rows]) for name in rows[0]}))
    for name, value in found.items():
        assert (value.number is None) == bool(value.reason), name
        assert value.number is None or math.isfinite(value.number), name


@pytest.mark.parametrize(("columns", "missing"), [
    ({"wait": -1}, {"wait_mean_s": "no waits recorded", "batches": "no waits recorded"}),
    ({"requested_time": -1}, {"requested_time_cv": "no requested times recorded"}),
    ({"user": -1}, {"users": "no users recorded", "sessions": "no users recorded"}),
    ({"run_time": 0}, {"normalized_entropy": "all run times are 0"}),
    ({"run_time": 5}, {"run_time_processors_spearman": "one of the two does not vary"}),
    ({"processors": 1}, {"power_of_two_share": "all jobs have one processor"}),
    ({"machine": None}, {"offered_load": "processors of the machine not known"}),
])  # fmt: skip
def test_a_missing_column_is_reported_and_spoils_nothing_else(columns, missing):
    """What depends on it says why; arrivals are measured all the same."""
    found = all_of(poisson_workload(3000, 300, 5, **columns))
    for name, reason in missing.items():
        assert reason == found[name].reason
    assert found["interarrival_cv"].number is not None
    assert found["hurst_mean"].number is not None


#: Columns of a workload that have one value per job.
COLUMNS = ("submit", "run_time", "processors", "allocated", "requested_time", "wait", "user",
           "group", "executable", "queue")  # fmt: skip


def rebuilt(workload, order=None, **changed):
    """Return the workload with its jobs in another order and some columns changed."""
    columns = {name: getattr(workload, name) for name in COLUMNS}
    columns |= {"number": np.arange(len(workload))} | changed
    kept = {name: getattr(workload, name) for name in ("clock", "machine", "settings")}
    kept |= {"settings": columns.pop("settings")} if "settings" in columns else {}
    if order is not None:
        columns = {name: values[order] for name, values in columns.items()}
    return Workload.of(**columns, **kept)


JOB = {"submit": 0, "run": 10, "allocated_processors": 4, "status": 1}


def test_which_jobs_are_measured(make_trace):
    """Status 1 and a run time of 0 s count; others, and what cannot be measured, do not."""
    odd = {"run": 0}, {"status": 0}, {"status": 5}, {"submit": -1}, {"run": -1}
    trace = make_trace(JOB, *(JOB | one for one in (*odd, {"allocated_processors": 0})))
    found = Workload.from_trace(trace)
    reasons = {"no submit time": 1, "no run time": 1, "no processors": 1}
    reasons["not completed (status other than 1)"] = 2
    assert (2, reasons) == (len(found), dict(found.left_out))
    assert 4 == len(Workload.from_trace(trace, "all"))
    found = Workload.from_trace(make_trace(JOB | {"status": -1}, header="; MaxProcs: 4"))
    notes = ("no job has status 1: jobs of any status are measured",)
    assert (1, notes) == (len(found), found.notes)
    with pytest.raises(TraceError, match=r"no job to measure \(2 no submit time\); .*--jobs all"):
        Workload.from_trace(make_trace(JOB | {"submit": -1}, JOB | {"submit": -1, "run": -1}))
    # Ties go by job number; requested and allocated processors replace each other.
    trace = make_trace(
        JOB | {"number": 3, "submit": 5, "allocated_processors": -1, "requested_processors": 2},
        JOB | {"number": 1, "submit": 5},
        JOB | {"number": 2, "submit": 0, "requested_processors": 8},
    )
    found = Workload.from_trace(trace)
    columns = [getattr(found, name).tolist() for name in ("submit", "processors", "allocated")]
    assert [[0, 5, 5], [8, 4, 2], [4, 4, 2]] == columns


@pytest.mark.parametrize(("columns", "message"), [
    ({"run_time": [1, 2]}, "run_time: .* for 3 jobs"),
    ({"run_time": -1}, "run_time: a value is negative"),
    ({"processors": 0}, "processors: a job has none"),
    ({"wait": np.nan}, "wait: a value is not finite"),
])  # fmt: skip
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
    write_results(run, tmp_path / "run")
    for one in (run, read_results(tmp_path / "run")):
        workload = Workload.from_run(one)
        assert (30, 8) == (len(workload), workload.machine)
        assert (run.jobs.start - run.jobs.submit).tolist() == workload.wait.tolist()
    found = measure(workload, FEATURES.values())
    assert run.metrics["wait_mean_s"] == pytest.approx(found.number("wait_mean_s"))


def test_what_was_found_is_kept_and_reasons_too():
    """A search runs once, also when it ends with a reason; a missing number raises its reason."""
    workload, calls = Workload.of([0, 5], 1), []

    @once
    def find(_, what):
        calls.append(what)
        if what == 0:
            raise UnavailableError("because")
        return what

    for _ in range(2):
        assert 5 == find(workload, 5)
        with pytest.raises(UnavailableError, match="because"):
            find(workload, 0)
    assert [5, 0] == calls
    found = measure(workload, FEATURES.values())
    with pytest.raises(UnavailableError, match="no waits recorded"):
        found.number("wait_mean_s")
    with pytest.raises(QuantityError, match="feature 'nonsense'"):
        found.number("nonsense")
