"""Behaviours: cost of a job under each preset, and how it grows with the number of jobs.

Times are those of the processor: ratios hold while others are at work on the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from bench_engine import KTH, repeated

from hpcrowd import Clock, JobTable, Recipe, Simulation, Streams, Trace, Work, add_users
from hpcrowd.behaviours import PRESETS, Patience
from hpcrowd.environment.clock import HOUR
from hpcrowd.populations import Casting
from hpcrowd.reactions import reaction_from

pytestmark = pytest.mark.benchmark(timer=time.process_time)

RECIPES = [name for name, preset in PRESETS.items() if isinstance(preset, Recipe)]

#: Presets whose users make up their work.
MADE_UP = [name for name in PRESETS if name not in RECIPES]

#: Three reactions at once: to the hour, to the user's waits and to a part of the day.
REACTIONS = (
    {"do": "delay", "when": "during", "hours": {"opens": "16h", "closes": "20h"}, "share": 0.5},
    {"do": "renounce", "when": "recent-waits", "wait": "1d", "last": 5, "memory": "7d"},
    {"do": "reconfigure", "when": "during", "hours": {"opens": "10h", "closes": "12h"}},
)

#: Behaviours whose cost is followed over more and more jobs.
GROWING = ("adjusted", "fluid", "think-time-windows")

#: Medians of this session, s per job, by behaviour and copies of KTH-SP2.
_COST: dict[tuple[str, int], float] = {}


def measure(
    benchmark: Any, trace: Trace, jobs: JobTable, users: Any, rounds: int, cut: bool = False
) -> float:
    """Return the median seconds of a run under EASY; sessions are found before unless ``cut``.

    Fitting and drawing are part of it. Clock changes are looked up again in each round.
    """
    clock = Clock.of(trace.header)

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        table = jobs.copy()
        work = Work.of(table)
        if not cut:
            assert len(work.by_batch) >= len(work.by_session)

        def run() -> None:
            model = Simulation(table, trace.processors, clock=clock)
            add_users(model, Work.of(table) if cut else work, users)
            model.run()

        return (run,), {}

    benchmark.pedantic(lambda run: run(), setup=setup, rounds=rounds, warmup_rounds=1)
    return float(benchmark.stats.stats.median)


@pytest.mark.parametrize("users", RECIPES)
def bench_presets(benchmark: Any, load: Any, figure: Callable[..., None], users: str) -> None:
    """KTH-SP2 under EASY: microseconds a job."""
    trace, jobs = load(KTH)
    cost = _COST[users, 1] = measure(benchmark, trace, jobs, users, 7) / len(jobs)
    limit = "<= 25" if users == "learned" else "<= 50"
    figure(f"KTH, EASY, {users}", cost * 1e6, "us a job", limit)


@pytest.mark.parametrize("count", [1, 3])
def bench_reactions(benchmark: Any, load: Any, figure: Callable[..., None], count: int) -> None:
    """KTH-SP2 under EASY, adjusted users with reactions: microseconds a job."""
    trace, jobs = load(KTH)

    def users(work: Work) -> Any:
        return Recipe("batches", reactions=tuple(map(reaction_from, REACTIONS[:count])))(work)

    cost = measure(benchmark, trace, jobs, users, 5) / len(jobs)
    figure(f"KTH, EASY, adjusted, reactions: {count}", cost * 1e6, "us a job", "<= 50")


@pytest.mark.parametrize(
    "looks",
    [
        {"do": "look-again", "when": "queue", "longer_than": 20, "every": "10m", "most": 20},
        {"do": "renounce", "when": "expected-wait", "above": "1d"},
    ],
    ids=["queue", "expected-wait"],
)
def bench_looks(
    benchmark: Any, load: Any, figure: Callable[..., None], looks: dict[str, Any]
) -> None:
    """KTH-SP2 under EASY, every user looks before each session: microseconds a job."""
    trace, jobs = load(KTH)
    users = Recipe(reactions=(reaction_from(looks),))
    cost = measure(benchmark, trace, jobs, users, 5) / len(jobs)
    figure(f"KTH, EASY, look at {looks['when']}", cost * 1e6, "us a job", "<= 25")


@pytest.mark.parametrize("then", ["never", "later"])
def bench_patience(benchmark: Any, load: Any, figure: Callable[..., None], then: str) -> None:
    """KTH-SP2 under EASY, jobs leave the queue after six hours: microseconds a job."""
    trace, jobs = load(KTH)
    users = Recipe(patience=Patience(6 * HOUR, then=then))  # type: ignore[arg-type]
    cost = measure(benchmark, trace, jobs, users, 3) / len(jobs)
    figure(f"KTH, EASY, patience, {then}", cost * 1e6, "us a job", "<= 50")


@pytest.mark.parametrize("users", MADE_UP)
def bench_made_up(benchmark: Any, load: Any, figure: Callable[..., None], users: str) -> None:
    """Users of KTH-SP2 who generate their work, under EASY: microseconds per job."""
    trace, jobs = load(KTH)
    made = []

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        work = Work.of(jobs.copy())

        def run() -> None:
            casting = Casting.of(work, users, Streams(0))
            model = Simulation(casting.jobs, trace.processors, clock=Clock.of(trace.header))
            casting.join(model)
            model.run()
            made.append(len(casting.jobs))

        return (run,), {}

    benchmark.pedantic(lambda run: run(), setup=setup, rounds=3, warmup_rounds=1)
    cost = float(benchmark.stats.stats.median) / made[-1]
    figure(f"KTH, EASY, {users}", cost * 1e6, "us a job", "<= 50")


@pytest.mark.parametrize("users", ["adjusted", "fluid"])
def bench_hpc2n(benchmark: Any, load: Any, figure: Callable[..., None], users: str) -> None:
    """HPC2N (202,871 jobs) under EASY, all that comes after reading."""
    trace, jobs = load("HPC2N-2002-2.2-cln")
    seconds = measure(benchmark, trace, jobs, users, 3, cut=True)
    figure(f"HPC2N, EASY, {users}, after reading", seconds, "s", "<= 10")


@pytest.mark.parametrize("copies", [3, 10])
@pytest.mark.parametrize("users", GROWING)
def bench_growth(
    benchmark: Any, load: Any, figure: Callable[..., None], users: str, copies: int
) -> None:
    """KTH-SP2 several times over: cost of a job against that of a single one."""
    trace, jobs = load(KTH)
    many = repeated(jobs, copies)
    cost = _COST[users, copies] = measure(benchmark, trace, many, users, 5) / len(many)
    if (users, 1) in _COST:
        name = f"KTH {copies} times, {users} / KTH, {users}"
        figure(name, cost / _COST[users, 1], "times a job", "<= 1.30")
