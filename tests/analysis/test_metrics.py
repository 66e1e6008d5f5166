"""Metrics of small runs, computed by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hpcrowd.analysis import METRICS, lateness, per_user, summarize
from hpcrowd.analysis.metrics import (
    PER_USER,
    additional_lateness,
    bounded_slowdown,
    relative_lateness,
    slowdown,
)
from hpcrowd.environment import JobTable, State

#: user, processors, recorded submission, submission, start, end, state; see the comments.
STORY = (
    (1, 2, 0, 0, 0, 100, State.COMPLETED),
    (1, 4, 40, 50, 100, 104, State.COMPLETED),  # waits 50 s, 10 s late
    (2, 9, 80, 60, -1, -1, State.REJECTED),  # 20 s early
    (2, 1, 90, 110, 120, 120, State.KILLED),  # no length, waits 10 s, 20 s late
    (3, 1, 200, -1, -1, -1, State.UNFINISHED),  # never submitted
)


def table(rows: tuple[tuple[int, ...], ...]) -> JobTable:
    """Jobs of these rows."""
    names = ("user", "processors", "recorded_submit", "submit", "start", "end", "state")
    jobs = JobTable(len(rows))
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        getattr(jobs, name)[:] = values
    return jobs


def test_every_metric_of_a_story() -> None:
    """Each metric of a story with waits, a rejection and lateness is what a person computes."""
    found = summarize(table(STORY), processors=4, dropped=6)
    per_user = found.pop("per_user")
    expected = {
        "jobs_in": 5,
        "jobs_completed": 2,
        "jobs_killed": 1,
        "jobs_rejected": 1,
        "jobs_cancelled": 0,
        "jobs_renounced": 0,
        "jobs_failed": 0,
        "jobs_unfinished": 1,
        "jobs_dropped": 6,
        "makespan_s": 120,
        "wait_mean_s": (0 + 50 + 10) / 3,
        "wait_max_s": 50,
        "eligible_wait_mean_s": None,
        "response_mean_s": (100 + 54 + 10) / 3,
        "slowdown_mean": (1 + 54 / 4 + 10) / 3,
        "bounded_slowdown_mean": (1 + 54 / 10 + 10 / 10) / 3,
        "utilization": (2 * 100 + 4 * 4 + 0) / (4 * 120),
        **dict.fromkeys(("gpu_utilization", "memory_utilization")),  # of machines of nodes
        **dict.fromkeys(("runs_preempted", "preempted_processor_h")),
        **dict.fromkeys(("energy_kwh", "energy_wasted_kwh", "energy_idle_kwh", "power_peak_kw")),
        **dict.fromkeys(("carbon_kg", "energy_cost")),  # of a description of power
        "throughput_jobs_per_day": 3 * 86_400 / 120,
        "lateness_mean_s": (0 + 10 - 20 + 20) / 4,
        "relative_lateness": 1 + 2.5 / 90,
        "additional_lateness_s": 2 * 2.5 / 3,
    }
    assert pytest.approx(expected) == found
    assert [metric.name for metric in METRICS] == list(found)
    assert list(PER_USER) == list(per_user)


def test_metrics_of_each_user() -> None:
    """Users are measured one by one; rejected jobs count for lateness and for nothing else."""
    found = {
        name: dict(zip(users.tolist(), values.tolist(), strict=True))
        for name, (users, values) in per_user(table(STORY)).items()
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


def test_percentiles_over_users() -> None:
    """A summary has the 10th, 50th and 90th percentile over users."""
    rows = [(user, 1, 0, 0, wait, wait + 1, 1) for user, wait in enumerate(range(0, 110, 10))]
    found = summarize(table(tuple(rows)), processors=11)["per_user"]
    assert {"p10": 10.0, "p50": 50.0, "p90": 90.0} == found["wait_mean_s"]


def test_user_with_one_job_has_no_relative_or_additional_lateness() -> None:
    """Users without a span, or with a single job, are left out where the formula divides by it."""
    rows = (
        (1, 1, 5, 9, 9, 10, 1),
        (2, 1, 7, 9, 9, 10, 1),
        (2, 1, 7, 9, 9, 10, 1),
    )
    found = per_user(table(rows))
    assert [1, 2] == found["lateness_mean_s"][0].tolist()
    assert [] == found["relative_lateness"][0].tolist()
    assert [2] == found["additional_lateness_s"][0].tolist()
    assert [4.0] == found["additional_lateness_s"][1].tolist()


def test_empty_table() -> None:
    """Without jobs every count is 0 and everything else is None, fit for JSON."""
    found = summarize(JobTable(), processors=4)
    people = found.pop("per_user")
    for name, value in found.items():
        assert (0 if name.startswith("jobs_") else None) == value
    assert {name: dict.fromkeys(("p10", "p50", "p90")) for name in PER_USER} == people
    json.dumps(found, allow_nan=False)


def test_rejected_only() -> None:
    """With nothing but rejected jobs there are lateness and counts, and no wait or makespan."""
    rows = (1, 9, 10, 30, -1, -1, State.REJECTED), (1, 9, 50, 60, -1, -1, State.REJECTED)
    found = summarize(table(rows), processors=4)
    assert (2, 0) == (found["jobs_rejected"], found["jobs_completed"])
    assert {None} == {found[name] for name in ("makespan_s", "wait_mean_s", "utilization")}
    assert 15 == found["lateness_mean_s"]
    assert 1 + 15 / 40 == found["relative_lateness"]
    assert 30 == found["additional_lateness_s"]
    json.dumps(found, allow_nan=False)


def test_run_of_no_length() -> None:
    """One job without length has waits but no rate and no utilization."""
    found = summarize(table(((1, 1, 5, 5, 5, 5, 1),)), processors=4)
    assert (0, 0.0, 0) == (found["makespan_s"], found["wait_mean_s"], found["wait_max_s"])
    assert (None, None) == (found["utilization"], found["throughput_jobs_per_day"])
    assert (None, None) == (found["relative_lateness"], found["additional_lateness_s"])
    json.dumps(found, allow_nan=False)


def test_generated_users_have_no_lateness() -> None:
    """Without recorded submissions there is no lateness."""
    jobs = table(((1, 1, -1, 5, 5, 9, 1),))
    assert None is lateness(jobs)
    assert None is summarize(jobs, 4)["lateness_mean_s"]
    assert 0 == len(per_user(jobs)["lateness_mean_s"][1])


def test_bounds_of_slowdowns() -> None:
    """Slowdown counts run times from 1 s, bounded slowdown from 10 s and never below 1."""
    response, run = np.array([0, 5, 5, 100]), np.array([0, 0, 5, 20])
    assert [0.0, 5.0, 1.0, 5.0] == slowdown(response, run).tolist()
    assert [1.0, 1.0, 1.0, 5.0] == bounded_slowdown(response, run).tolist()


def test_lateness_of_a_steady_drift() -> None:
    """Jobs each d later than the one before have an additional lateness of d (Madon, Eq. 5, 6)."""
    drift = 7 * np.arange(101)
    assert pytest.approx(7) == additional_lateness(drift)
    assert pytest.approx(1 + 350 / 1000) == relative_lateness(drift, 10 * np.arange(101))


@pytest.mark.parametrize(
    ("days", "additional"),
    [(43.54, 264.24), (-4.47, -27.12), (26.31, 159.64), (-13.31, -80.79), (14.91, 90.48)],
)
def test_formulas_tie_the_published_columns_together(days: float, additional: float) -> None:
    """Mean and additional lateness of Madon et al. 2024, Table 2 (KTH, a60) belong together."""
    late = np.full(28_475, days * 86_400)
    rounding = 0.005 * 86_400 * 2 / 28_474 + 0.005  # of both printed columns
    assert pytest.approx(additional, abs=rounding) == additional_lateness(late)
