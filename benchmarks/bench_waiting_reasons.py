"""Why jobs wait: milliseconds to tell it of a queue, live and played back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bench_engine import KTH

from hpcrowd import Clock, JobTable, Simulation
from hpcrowd.environment.clock import HOUR
from hpcrowd.policies import reasons_at, reasons_of

pytestmark = pytest.mark.benchmark(timer=time.process_time)

POLICIES = ["fcfs", "easy", "conservative", "selective", "creasy", "fair-share"]

#: Rows that a page shows.
SHOWN = 200


def _measure(
    benchmark: Any, figure: Callable[..., None], name: str, model: Simulation, target: str
) -> None:
    def tell() -> list[str]:
        return [one.words(Clock()) for one in reasons_of(model.cluster, limit=SHOWN)]

    assert benchmark.pedantic(tell, rounds=5, warmup_rounds=1)
    waiting, cost = len(model.cluster.waiting), benchmark.stats.stats.median * 1000
    figure(f"{name}, {waiting:,} wait, why {SHOWN} of them do", cost, "ms", target)


def _run(jobs: JobTable, processors: int, policy: str, until: int | None = None) -> Simulation:
    model = Simulation(jobs, processors, policy)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    return model.run(until=until)


def _longest_queue(jobs: JobTable) -> int:
    """The hour at which the most jobs wait."""
    came = jobs.start >= 0
    hours = np.arange(0, int(jobs.start.max()), HOUR)
    submits, starts = np.sort(jobs.enqueued[came]), np.sort(jobs.start[came])
    waiting = np.searchsorted(submits, hours, "right") - np.searchsorted(starts, hours, "right")
    return int(hours[np.argmax(waiting)])


@pytest.mark.parametrize("policy", POLICIES)
def bench_long_queue(benchmark: Any, figure: Callable[..., None], policy: str) -> None:
    """Thousands of jobs wait for 3,000 processors."""
    random, count = np.random.default_rng(1), 7000
    jobs = JobTable()
    wide = random.random(count) < 0.01
    length = random.integers(600, 86_400, count)
    jobs.append(
        count,
        recorded_submit=np.sort(random.integers(0, HOUR, count)),
        run_time=length,
        requested_time=length,
        processors=np.where(wide, 2900, random.integers(1, 4, count)),
        user=random.integers(1, 300, count),
    )
    model = Simulation(jobs, 3000, policy)
    model.cluster.submit(np.arange(count), jobs.recorded_submit)
    model.run(until=5000)
    _measure(benchmark, figure, policy, model, "<= 100")


@pytest.mark.parametrize("policy", POLICIES)
def bench_kth(benchmark: Any, load: Any, figure: Callable[..., None], policy: str) -> None:
    """The longest queue of KTH-SP2, in its fullest week."""
    trace, jobs = load(KTH)
    jobs = _run(jobs.copy(), trace.processors, policy).jobs
    model = _run(jobs.copy(), trace.processors, policy, _longest_queue(jobs))
    _measure(benchmark, figure, f"KTH, {policy}", model, "<= 100")
    began = time.process_time()
    reasons_at(jobs, model.time, policy, trace.processors, limit=SHOWN)
    figure(f"KTH, {policy}, played back", (time.process_time() - began) * 1000, "ms", "<= 100")
