"""Workloads of Minh 2012, chapter 7: load, locality and slowdown as the thesis defines them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hpcrowd.analysis import features
from hpcrowd.analysis.features.locality import run_lengths
from hpcrowd.analysis.models.jobs.locality import Locality
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.streams import Streams
from hpcrowd.scenarios.studies.minh2012_correlation.experiments import slowdown_of, with_degree
from hpcrowd.scenarios.studies.minh2012_correlation.measures import slowdown
from hpcrowd.scenarios.studies.minh2012_correlation.workloads import Workload, modelled


@pytest.fixture(scope="module")
def model() -> Locality:
    """Return the model of runs of five short and three long jobs, on 1, 2 and 8 processors."""
    long = np.arange(160) % 8 > 4
    processors = np.where(long, 8, 1 + np.arange(160) % 2)
    return Locality.fit(features.Workload.of(np.arange(160), np.where(long, 5000, 100), processors))


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


def test_long_workload_has_its_load(model: Locality) -> None:
    """Work over capacity until the last arrival is the load, within five standard errors."""
    workload = modelled(model, 20_000, 16, Streams(0))
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


def test_alone_on_a_large_machine_nobody_waits(model: Locality) -> None:
    """With next to no load slowdown is 1; all at once on a machine for one it is more."""
    workload = modelled(model, 200, 16, Streams(1))
    assert 1 == slowdown_of(workload, 0.0001, 16, "fcfs")
    assert 10 < slowdown_of(workload, 100.0, 16, "fcfs")


def test_workloads_have_the_runs_of_the_model(model: Locality) -> None:
    """Five short jobs and three long ones follow each other; long ones have 8 processors."""
    workload = modelled(model, 80, 16, Streams(3))
    assert {100, 5000} == {*workload.run_time.tolist()}
    assert ((workload.run_time == 5000) == (workload.processors == 8)).all()
    assert {3, 5} == {*run_lengths(workload.run_time)[1:-1].tolist()}
    again, other = (modelled(model, 80, 16, Streams(seed)) for seed in (3, 4))
    assert workload.gaps.tolist() == again.gaps.tolist()
    assert workload.gaps.tolist() != other.gaps.tolist()


def test_shuffled_run_times_have_neither_locality_nor_partners(model: Locality) -> None:
    """The same run times come in another order, whoever their processors are."""
    workload = modelled(model, 400, 16, Streams(3))
    other = workload.with_run_times_shuffled(np.random.default_rng(0))
    assert sorted(workload.run_time) == sorted(other.run_time)
    assert workload.processors.tolist() == other.processors.tolist()
    assert len(run_lengths(other.run_time)) > 1.5 * len(run_lengths(workload.run_time))
    assert 4 == len({*zip(other.run_time >= 5000, other.processors == 8, strict=True)})


def test_shuffling_keeps_partners_and_arrivals(model: Locality) -> None:
    """Without locality the same pairs come in another order, at the same times."""
    workload = modelled(model, 40, 16, Streams(4))
    shuffled = workload.shuffled(np.random.default_rng(5))

    def pairs(one: Workload) -> list[tuple[int, int]]:
        return [*zip(one.run_time.tolist(), one.processors.tolist(), strict=True)]

    assert sorted(pairs(workload)) == sorted(pairs(shuffled))
    assert pairs(workload) != pairs(shuffled)
    at, same = (one.jobs(0.9, 8).recorded_submit.tolist() for one in (workload, shuffled))
    assert at == same


def test_degree_changes_processors_only(model: Locality) -> None:
    """Control_Correlation leaves run times, their order and the arrivals as they are."""
    workload = modelled(model, 40, 16, Streams(6))
    other = with_degree(workload, -1, np.random.default_rng(7))
    assert workload.run_time.tolist() == other.run_time.tolist()
    assert workload.gaps.tolist() == other.gaps.tolist()
    longest, shortest = np.argmax(other.run_time), np.argmin(other.run_time)
    assert (1, 8) == (other.processors[longest], other.processors[shortest])
