"""Log of decisions: what it adds to a job, and the memory of a row.

Runs with and without a log take turns, so that the ratio holds while others are at work on the
machine. What a job costs without a log is measured by ``bench_behaviours.py``; that it is what it
was before there was a log, was measured against that version, see the README.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest
from bench_behaviours import REACTIONS
from bench_engine import KTH

from hpcrowd import Clock, Recipe, Simulation, Streams, Work
from hpcrowd.agents.behaviours.decisions import COLUMNS
from hpcrowd.behaviours import DecisionLog
from hpcrowd.populations import Casting
from hpcrowd.reactions import reaction_from

pytestmark = pytest.mark.benchmark(timer=time.process_time)

#: Pairs of runs; the median of their ratios counts.
PAIRS = 11


def reacting(work: Work) -> Any:
    """Users who wait, delay, renounce and reconfigure."""
    return Recipe("batches", reactions=tuple(map(reaction_from, REACTIONS)))(work)


@pytest.mark.parametrize("users", ["think-time", "adjusted", "fluid", "reactions", "generative"])
def bench_log(benchmark: Any, load: Any, figure: Callable[..., None], users: str) -> None:
    """KTH-SP2 under EASY: time with a log over that without, and the difference a job."""
    trace, jobs = load(KTH)
    chosen: Any = reacting if users == "reactions" else users
    pairs: list[tuple[float, float]] = []

    def seconds(log: DecisionLog | None) -> float:
        """Processor seconds a job; sessions and batches are found before."""
        work = Work.of(jobs.copy())
        assert len(work.by_batch) >= len(work.by_session)
        began = time.process_time()
        casting = Casting.of(work, chosen, Streams(0))
        model = Simulation(casting.jobs, trace.processors, clock=Clock.of(trace.header))
        casting.join(model, log=log)
        model.run()
        return (time.process_time() - began) / len(casting.jobs)

    def pair() -> None:
        pairs.append((seconds(None), seconds(DecisionLog())))

    benchmark.pedantic(pair, rounds=3 if users == "generative" else PAIRS, warmup_rounds=1)
    ratio = median(logged / silent for silent, logged in pairs)
    more = median(logged - silent for silent, logged in pairs)
    figure(f"KTH, EASY, {users}, with a log of decisions / without", ratio, "times", "<= 1.60")
    figure(f"KTH, EASY, {users}, log of decisions", more * 1e6, "us a job", "<= 10")


def bench_row(benchmark: Any, figure: Callable[..., None]) -> None:
    """Microseconds to keep a row, and its bytes."""
    count = 100_000

    def fill() -> DecisionLog:
        log = DecisionLog()
        for second in range(count):
            log.note(second, 17, 0, 2, 1, 31, 29, 720)
        return log

    log = benchmark(fill)
    assert count == len(log)
    size = sum(column.itemsize for column in log.columns().values())
    assert len(COLUMNS) == len(log.columns())
    figure("log of decisions, a row", float(benchmark.stats.stats.median) / count * 1e6, "us")
    figure("log of decisions, a row", size, "bytes", "<= 64")
