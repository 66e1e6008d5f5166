"""Metrics of small runs, computed by hand."""

import json

import numpy as np
import pytest
from hpcrowd import JobTable, State, summarize
from hpcrowd.analysis.metrics import (
    PER_USER,
    additional_lateness,
    bounded_slowdown,
    relative_lateness,
    slowdown,
)
from hpcrowd.metrics import METRICS, lateness, per_user

#: user, processors, recorded submission, submission, start, end, state; see the comments.
STORY = (
    (1, 2, 0, 0, 0, 100, State.COMPLETED),
    (1, 4, 40, 50, 100, 104, State.COMPLETED),  # waits 50 s, 10 s late
    (2, 9, 80, 60, -1, -1, State.REJECTED),  # 20 s early
    (2, 1, 90, 110, 120, 120, State.KILLED),  # no length, waits 10 s, 20 s late
    (3, 1, 200, -1, -1, -1, State.UNFINISHED),  # never submitted
)

#: Metrics of machines of nodes, of descriptions of power and of holds, which the story has not.
NOT_THERE = (
    *("eligible_wait_mean_s", "gpu_utilization", "memory_utilization", "runs_preempted"),
    *("preempted_processor_h", "energy_kwh", "energy_wasted_kwh", "energy_idle_kwh"),
    *("power_peak_kw", "carbon_kg", "energy_cost"),
)


def table(*rows):
    """Jobs of these rows."""
    names = ("user", "processors", "recorded_submit", "submit", "start", "end", "state")
    jobs = JobTable(len(rows))
    for row, values in enumerate(rows):
        for name, value in zip(names, values, strict=True):
            getattr(jobs, name)[row] = value
    return jobs


def test_every_metric_of_a_story():
    """Each metric of a story with waits, a rejection and lateness is what a person computes."""
    found = summarize(table(*STORY), processors=4, dropped=6)
    people = found.pop("per_user")
    expected = {
        "jobs_in": 5,
        "jobs_completed": 2,
        "jobs_killed": 1,
        "jobs_rejected": 1,
        **dict.fromkeys(("jobs_cancelled", "jobs_renounced", "jobs_failed"), 0),
        "jobs_unfinished": 1,
        "jobs_dropped": 6,
        "makespan_s": 120,
        "wait_mean_s": (0 + 50 + 10) / 3,
        "wait_max_s": 50,
        "response_mean_s": (100 + 54 + 10) / 3,
        "slowdown_mean": (1 + 54 / 4 + 10) / 3,
        "bounded_slowdown_mean": (1 + 54 / 10 + 10 / 10) / 3,
        "utilization": (2 * 100 + 4 * 4 + 0) / (4 * 120),
        **dict.fromkeys(NOT_THERE),
        "throughput_jobs_per_day": 3 * 86_400 / 120,
        "lateness_mean_s": (0 + 10 - 20 + 20) / 4,
        "relative_lateness": 1 + 2.5 / 90,
        "additional_lateness_s": 2 * 2.5 / 3,
    }
    assert pytest.approx(expected) == found
    assert [metric.name for metric in METRICS] == list(found)
    assert list(PER_USER) == list(people)
    rows = [(user, 1, 0, 0, wait, wait + 1, 1) for user, wait in enumerate(range(0, 110, 10))]
    found = summarize(table(*rows), processors=11)["per_user"]
    assert {"p10": 10.0, "p50": 50.0, "p90": 90.0} == found["wait_mean_s"]


@pytest.mark.parametrize(
    ("rows", "zero", "none", "late"),
    [
        ((), "jobs_in", "wait_mean_s makespan_s utilization", (None,) * 3),
        (((1, 9, 10, 30, -1, -1, State.REJECTED), (1, 9, 50, 60, -1, -1, State.REJECTED)),
         "jobs_completed", "wait_mean_s makespan_s utilization", (15, 1 + 15 / 40, 30)),
        (((1, 1, 5, 5, 5, 5, 1),), "makespan_s wait_mean_s wait_max_s",
         "utilization throughput_jobs_per_day", (0, None, None)),
        (((1, 1, -1, 5, 5, 9, 1),), "wait_mean_s", "lateness_mean_s", (None,) * 3),
    ],
    ids=["nothing", "all rejected", "of no length", "without a record"],
)  # fmt: skip
def test_runs_of_hardly_anything(rows, zero, none, late):
    """What is 0 and what has no value, fit for JSON; lateness, relative and additional."""
    jobs = table(*rows)
    found = summarize(jobs, processors=4)
    assert {0} == {found[name] for name in zero.split()}
    assert {None} == {found[name] for name in none.split()}
    names = ("lateness_mean_s", "relative_lateness", "additional_lateness_s")
    assert late == tuple(found[name] for name in names)
    assert (late[0] is None) == (lateness(jobs) is None)
    json.dumps(found, allow_nan=False)


def test_metrics_of_each_user():
    """Users are measured one by one; who has no span or a single job has no relative lateness."""
    found = {
        name: dict(zip(users.tolist(), values.tolist(), strict=True))
        for name, (users, values) in per_user(table(*STORY)).items()
    }
    assert {
        "wait_mean_s": {1: 25, 2: 10},
        "wait_max_s": {1: 50, 2: 10},
        "response_mean_s": {1: 77, 2: 10},
        "slowdown_mean": {1: (1 + 13.5) / 2, 2: 10},
        "bounded_slowdown_mean": {1: (1 + 5.4) / 2, 2: 1},
        "lateness_mean_s": {1: 5, 2: 0},
        "relative_lateness": {1: 1 + 5 / 40, 2: 1},
        "additional_lateness_s": {1: 10, 2: 0},
    } == found
    other = per_user(table((1, 1, 5, 9, 9, 10, 1), *[(2, 1, 7, 9, 9, 10, 1)] * 2))
    assert [1, 2] == other["lateness_mean_s"][0].tolist()
    assert [] == other["relative_lateness"][0].tolist()
    assert ([2], [4.0]) == tuple(one.tolist() for one in other["additional_lateness_s"])


def test_bounds_of_slowdowns():
    """Slowdown counts run times from 1 s, bounded slowdown from 10 s and never below 1."""
    response, run = np.array([0, 5, 5, 100]), np.array([0, 0, 5, 20])
    assert [0.0, 5.0, 1.0, 5.0] == slowdown(response, run).tolist()
    assert [1.0, 1.0, 1.0, 5.0] == bounded_slowdown(response, run).tolist()


@pytest.mark.parametrize(
    ("days", "additional"),
    [(43.54, 264.24), (-4.47, -27.12), (26.31, 159.64), (-13.31, -80.79), (14.91, 90.48)],
)
def test_formulas_tie_the_published_columns_together(days, additional):
    """Mean and additional lateness of Madon et al. 2024, Table 2, Eq. 5 and 6 belong together."""
    late = np.full(28_475, days * 86_400)
    rounding = 0.005 * 86_400 * 2 / 28_474 + 0.005  # of both printed columns
    assert pytest.approx(additional, abs=rounding) == additional_lateness(late)
    drift = days * np.arange(101)
    assert pytest.approx(days) == additional_lateness(drift)
    assert pytest.approx(1 + 50 * days / 1000) == relative_lateness(drift, 10 * np.arange(101))
