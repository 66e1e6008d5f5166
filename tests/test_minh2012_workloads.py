"""Workloads of Minh 2012, chapter 7: load, locality and slowdown as the thesis defines them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from analysis.minh2012_correlation import slowdown
from analysis.minh2012_workloads import Sample, Workload, drawn, in_order
from environment.errors import QuantityError
from environment.jobs import JobTable
from scenarios.minh2012_correlation import slowdown_of, with_degree


def sample(count: int = 50) -> Sample:
    """Return jobs of 1, 2, 3 ... times 100 s on 1 to 5 processors."""
    return Sample(100 * np.arange(1, count + 1), 1 + np.arange(count) % 5)


def every_second(*jobs: tuple[int, int]) -> Workload:
    """Return jobs of (run time, processors) with equal gaps."""
    run_time, processors = np.array(jobs).T
    return Workload(run_time, processors, np.ones(len(jobs)))


def test_load_decides_the_rate() -> None:
    """Arrival rate x E[run time x processors] / machine is the load (section 5.2.5)."""
    workload = every_second((100, 2), (300, 2), (50, 8))
    assert pytest.approx(400 / (0.5 * 10)) == workload.mean_gap(0.5, 10)
    jobs = workload.jobs(0.5, 10)
    assert [80, 160, 240] == jobs.recorded_submit.tolist()
    assert [100, 300, 50] == jobs.requested_time.tolist()


def test_long_workload_has_its_load() -> None:
    """Work over capacity until the last arrival is the load, within five standard errors."""
    workload = drawn(sample(), 20_000, np.random.default_rng(0))
    jobs = workload.jobs(0.8, 16)
    offered = (jobs.run_time * jobs.processors).sum() / (16 * jobs.recorded_submit[-1])
    assert pytest.approx(0.8, rel=5 / np.sqrt(20_000)) == offered


@pytest.mark.parametrize(
    ("load", "machine", "words"),
    [
        (0.0, 10, "load 0.0: must be positive, for example 0.8"),
        (float("inf"), 10, "load inf: must be positive"),
        (0.5, 7, "machine 7: a job needs 8 processors"),
    ],
)
def test_impossible_loads_are_refused(load: float, machine: int, words: str) -> None:
    """A load needs to be a positive number, and every job has to fit."""
    with pytest.raises(QuantityError, match=re.escape(words)):
        every_second((100, 2), (50, 8)).jobs(load, machine)


def test_slowdown_is_a_ratio_of_means() -> None:
    """Responses of 10 and 40 s of jobs that run for 10 and 15 s: 2, not the mean of 1 and 2.67."""
    jobs = JobTable()
    jobs.append(2, submit=[0, 10], run_time=[10, 15], start=[0, 35], end=[10, 50])
    assert 2 == slowdown(jobs)


def test_alone_on_a_large_machine_nobody_waits() -> None:
    """With next to no load slowdown is 1; all at once on a machine for one it is more."""
    workload = drawn(sample(), 200, np.random.default_rng(1))
    assert 1 == slowdown_of(workload, 0.0001, 5, "fcfs")
    assert 10 < slowdown_of(workload, 100.0, 5, "fcfs")


def test_drawn_jobs_have_no_partners() -> None:
    """Run times and processors are drawn apart: all combinations come up, from the sample only."""
    workload = drawn(sample(4), 500, np.random.default_rng(2))
    pairs = {*zip(workload.run_time.tolist(), workload.processors.tolist(), strict=True)}
    assert {(run, width) for run in (100, 200, 300, 400) for width in (1, 2, 3, 4)} == pairs
    assert 500 == len(workload)


def test_order_goes_round() -> None:
    """With locality the jobs follow each other as recorded, the first after the last."""
    jobs = sample(7)
    workload = in_order(jobs, 16, np.random.default_rng(3))
    steps = np.diff(workload.run_time) // 100
    assert {1, -6} == {*steps.tolist()}
    assert workload.run_time[:7].tolist() == workload.run_time[7:14].tolist()
    assert (1 + (workload.run_time // 100 - 1) % 5).tolist() == workload.processors.tolist()


def test_shuffling_keeps_partners_and_arrivals() -> None:
    """Without locality the same pairs come in another order, at the same times."""
    workload = in_order(sample(), 40, np.random.default_rng(4))
    shuffled = workload.shuffled(np.random.default_rng(5))

    def pairs(one: Workload) -> list[tuple[int, int]]:
        return [*zip(one.run_time.tolist(), one.processors.tolist(), strict=True)]

    assert sorted(pairs(workload)) == sorted(pairs(shuffled))
    assert pairs(workload) != pairs(shuffled)
    at, same = (one.jobs(0.9, 8).recorded_submit.tolist() for one in (workload, shuffled))
    assert at == same


def test_degree_changes_processors_only() -> None:
    """Control_Correlation leaves run times, their order and the arrivals as they are."""
    workload = in_order(sample(), 40, np.random.default_rng(6))
    other = with_degree(workload, -1, np.random.default_rng(7))
    assert workload.run_time.tolist() == other.run_time.tolist()
    assert workload.gaps.tolist() == other.gaps.tolist()
    longest, shortest = np.argmax(other.run_time), np.argmin(other.run_time)
    assert (1, 5) == (other.processors[longest], other.processors[shortest])
