"""For every feature: a number or a reason, whatever the order, the origin or the unit."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hpcrowd.analysis.features.bags import PARAMETERS
from hpcrowd.environment.clock import DAY, WEEK
from hpcrowd.features import FEATURES, Workload, measure
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


def test_numbers_of_jobs_of_one_second_matter_only_where_it_is_said():
    """Shuffling job numbers within a second moves only the features that say so."""
    workload = bursty()
    drawn = np.random.default_rng(2).random(len(workload))
    number = np.empty(len(workload), np.int64)
    number[np.lexsort((drawn, workload.submit))] = np.arange(len(workload))
    before, after = all_of(workload), all_of(rebuilt(workload, number=number))
    assert_same(before, after, but={name for name, one in FEATURES.items() if one.by_order})
    assert before["jobs_in_bags_share"].number != after["jobs_in_bags_share"].number


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shift", "but"),
    [(7 * WEEK, frozenset()), (5 * 3600 + 1234, frozenset({"daily_peak", "weekend_share"}))],
)
def test_the_origin_does_not_matter(shift, but):
    """A shift by whole weeks changes nothing; by hours only what is bound to the local clock."""
    moved = rebuilt(bursty(), submit=bursty().submit + shift)
    assert_same(all_of(bursty()), all_of(moved), but)


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
    assert (1, 1, 0) == tuple(
        found[name].number for name in ("jobs", "users", "normalized_entropy")
    )
    assert "fewer than 2 jobs" == found["span_s"].reason
    found = all_of(Workload.of(np.arange(90_000) * 9, 5, 2))
    assert 0 == found["interarrival_cv"].number
    assert "the series does not vary" == found["hurst_mean"].reason
    cv = FEATURES["interarrival_cv"].measure
    assert cv(poisson_workload(20_000, 300, 6)) == pytest.approx(1, abs=4 / np.sqrt(20_000))
    assert cv(bursty()) > 2


jobs = st.lists(
    st.tuples(
        st.integers(0, 3 * DAY),  # submit
        st.integers(0, 5000),  # run time
        st.integers(1, 8),  # processors
        st.sampled_from([-1, 0, 60, 3600]),  # requested time
        st.sampled_from([-1, 0, 7, 10_000]),  # wait
        st.sampled_from([-1, 1, 2]),  # user
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=150)
@given(rows=jobs)
def test_tiny_workloads_have_a_number_or_a_reason(rows):
    """Whatever is in a tiny workload: finite numbers, or a reason; no warning, no traceback."""
    submit, run, processors, requested, wait, user = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    found = all_of(
        Workload.of(submit, run, processors, requested_time=requested, wait=wait, user=user)
    )
    for name, value in found.items():
        assert (value.number is None) == bool(value.reason), name
        assert value.number is None or math.isfinite(value.number), name


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        ({"wait": -1}, {"wait_mean_s": "no waits recorded", "batches": "no waits recorded"}),
        ({"requested_time": -1}, {"requested_time_cv": "no requested times recorded"}),
        ({"user": -1}, {"users": "no users recorded", "sessions": "no users recorded"}),
        ({"run_time": 0}, {"normalized_entropy": "all run times are 0"}),
        ({"run_time": 5}, {"run_time_processors_spearman": "one of the two does not vary"}),
        ({"processors": 1}, {"power_of_two_share": "all jobs have one processor"}),
        ({"machine": None}, {"offered_load": "processors of the machine not known"}),
    ],
)
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
