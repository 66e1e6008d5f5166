"""The engine: jobs per second for users who do not react and for users who do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hpcrowd import Column, JobTable, Simulation, Work, add_users
from hpcrowd.environment.engine.base import Engine
from hpcrowd.environment.engine.compiled import CompiledEngine
from hpcrowd.environment.engine.plain import PlainEngine
from hpcrowd.environment.holds.held import hold
from hpcrowd.environment.holds.rules import Condition, Parent, Rules
from hpcrowd.policies import EASY

KTH = "KTH-SP2-1996-2.1-cln"

#: Copies of KTH-SP2 that make a million jobs.
COPIES = 36

#: Medians of this session by name, s per job, for ratios.
_COST: dict[str, float] = {}


def repeated(jobs: JobTable, copies: int) -> JobTable:
    """Return ``copies`` of the jobs one after another, two days between."""
    many = JobTable()
    many.matrix = np.tile(jobs.matrix, (1, copies))
    many._size = copies * len(jobs)
    shift = np.repeat(np.arange(copies) * (int(jobs.recorded_end.max()) + 172_800), len(jobs))
    for column in (Column.RECORDED_SUBMIT, Column.RECORDED_START, Column.RECORDED_END):
        many.matrix[column] += shift
    many.number[:] = np.arange(1, len(many) + 1)
    return many


def measure(benchmark: Any, jobs: JobTable, how: str, rounds: int) -> float:
    """Return the median seconds per job of a run; reading and cutting into sessions excluded."""

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        table = jobs.copy()
        if how in ("bare", "plain"):
            engine: Engine
            if how == "bare":
                engine = CompiledEngine(table, 100, "easy")
            else:
                engine = PlainEngine(table, 100, EASY())
            engine.submit(np.arange(len(table)), table.recorded_submit)
            return (engine.advance,), {}
        work = Work.of(table)
        assert len(work.dependencies)
        model = Simulation(table, 100)

        def run() -> None:
            users = "rigid" if how == "rigid" else "think-time"
            add_users(model, work, users)
            model.run()

        return (run,), {}

    benchmark.pedantic(lambda run: run(), setup=setup, rounds=rounds, warmup_rounds=1)
    return float(benchmark.stats.stats.median) / len(jobs)


@pytest.mark.parametrize("how", ["bare", "rigid", "called", "plain"])
def bench_kth(benchmark: Any, load: Any, figure: Callable[..., None], how: str) -> None:
    """KTH-SP2 under EASY."""
    cost = _COST[how] = measure(benchmark, load(KTH)[1], how, 3 if how == "plain" else 15)
    target = {"rigid": ">= 2000000", "called": ">= 600000"}.get(how, "")
    figure(f"KTH, EASY, {how}", 1 / cost, "jobs/s", target)
    if "bare" in _COST:
        figure(f"KTH, EASY, {how} / bare", cost / _COST["bare"], "times the time", "")


@pytest.mark.parametrize("how", ["bare", "rigid", "called"])
def bench_million(benchmark: Any, load: Any, figure: Callable[..., None], how: str) -> None:
    """One million jobs: cost of a job against KTH-SP2."""
    cost = measure(benchmark, repeated(load(KTH)[1], COPIES), how, 5)
    figure(f"one million jobs, {how}", 1 / cost, "jobs/s", "")
    if how in _COST:
        name = f"one million jobs, {how} / KTH, {how}"
        figure(name, cost / _COST[how], "times a job", "<= 1.10")


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def bench_held(benchmark: Any, load: Any, figure: Callable[..., None], share: float) -> None:
    """KTH-SP2 with jobs that depend on the one of their user before."""
    jobs = load(KTH)[1]
    draws = np.random.default_rng(1).random(len(jobs))
    before: dict[int, int] = {}
    parents = {}
    for row, user in enumerate(jobs.user.tolist()):
        if user in before and draws[row] < share:
            parents[row] = (Parent(before[user], Condition.ANY),)
        before[user] = row
    nothing = np.zeros(len(jobs), np.int64)
    work = Work.of(jobs)

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        model = Simulation(jobs.copy(), 100)
        hold(model, Rules(nothing, nothing > 0, parents))

        def run() -> None:
            add_users(model, work, "rigid")
            model.run()

        return (run,), {}

    benchmark.pedantic(lambda run: run(), setup=setup, rounds=5, warmup_rounds=1)
    cost = float(benchmark.stats.stats.median) / len(jobs)
    what = f"KTH, EASY, rigid, {len(parents):,} jobs that depend on others"
    figure(what, cost * 1e6, "us a job", "<= 50")
    if "rigid" in _COST:
        target = "<= 1.10" if not parents else ""
        figure(f"{what} / none", cost / _COST["rigid"], "times the time", target)


@pytest.mark.parametrize(
    "name", ["HPC2N-2002-2.2-cln", "LANL-CM5-1994-4.1-cln", "CEA-Curie-2011-2.1-cln"]
)
def bench_large(benchmark: Any, load: Any, figure: Callable[..., None], name: str) -> None:
    """Large logs under EASY, rigid: engine time."""
    trace, jobs = load(name)

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        table = jobs.copy()
        engine = CompiledEngine(table, trace.processors, "easy")
        engine.submit(np.arange(len(table)), table.recorded_submit)
        return (engine,), {}

    benchmark.pedantic(lambda engine: engine.advance(), setup=setup, rounds=5, warmup_rounds=1)
    figure(f"{name}, rigid, EASY", float(benchmark.stats.stats.median), "s", "<= 2")
