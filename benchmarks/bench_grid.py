"""Five clusters under a broker with 378,000 jobs, as Minh 2012 has them; many runs on two cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from hpcrowd.scenarios.engines import each_in_processes
from hpcrowd.scenarios.studies.minh2012.arrivals_measures import (
    GridRun,
    Plan,
    Task,
    Work,
    grid_workloads,
    run_grid,
    stored_arrivals,
)

#: Grid load of the runs, and patterns of the grid's and of local jobs: long queues everywhere.
LOAD, OWN, BACKGROUND = 0.8, "LB", "LB"

#: Runs that are shared among processes.
RUNS = 25

#: Seconds, and processor seconds, by what was done and with how many processes.
_TOOK: dict[tuple[str, int], Spent] = {}

#: Tasks a second, likewise.
_RATE: dict[tuple[str, int], float] = {}


class Spent(NamedTuple):
    """The measured cost of a step."""

    wall: float  #: s
    processor: float  #: s; of this process and of those it waited for


def one_run(replication: int) -> list[float]:
    """Draw six workloads, run them, and return the slowdowns."""
    plan = Plan()
    workloads = grid_workloads(plan, stored_arrivals(), replication)
    return run_grid(plan, workloads, LOAD, OWN, BACKGROUND)


def nine_runs(replication: int) -> list[Any]:
    """Return what a task of the study gives: all combinations of patterns at a load."""
    return Work(Plan(), stored_arrivals())(Task("grid", 3, replication))


def spent(do: Callable[[], Any]) -> Spent:
    """Return what it takes to do something."""
    before, began = os.times(), time.perf_counter()
    do()
    ended, after = time.perf_counter(), os.times()
    return Spent(ended - began, sum(after[:4]) - sum(before[:4]))


def bench_one_run(figure: Callable[..., None]) -> None:
    """Five clusters and a grid workload, 63,000 jobs each, from nothing to slowdowns."""
    plan = Plan()
    one_run(0)  # loads all modules
    whole = sorted(spent(lambda r=r: one_run(r)) for r in range(1, 6))[2]
    run = GridRun(plan, grid_workloads(plan, stored_arrivals(), 0), LOAD, OWN, BACKGROUND)
    alone = spent(run.model.run)
    figure("DAS-3, 378,000 jobs, drawn, run and measured", whole.wall, "s", "<= 60")
    figure("DAS-3, 378,000 jobs, run alone", alone.wall, "s", "<= 60")


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("work", [one_run, nine_runs])
def bench_processes(
    figure: Callable[..., None], work: Callable[[int], Any], processes: int
) -> None:
    """Many runs with one process and with two, with and without starting the processes."""
    when: list[float] = []
    name = f"DAS-3, {RUNS} tasks of {work.__name__.replace('_', ' ')}"

    def do() -> None:
        for _ in each_in_processes(work, range(RUNS), processes):
            when.append(time.perf_counter())

    took = _TOOK[name, processes] = spent(do)
    assert len(when) == RUNS
    # Tasks a second once every process has done its first one, which loads all modules.
    rate = _RATE[name, processes] = (RUNS - processes) / (when[-1] - when[processes - 1])
    figure(f"{name}, {processes} processes", took.wall, "s", "")
    if processes > 1:
        alone = _TOOK[name, 1]
        figure(f"{name}, 1 process / {processes}", alone.wall / took.wall, "times", ">= 1.8")
        figure(f"{name}, once started", rate / _RATE[name, 1], "times", ">= 1.8")
        # The speed of two otherwise idle cores.
        fair = processes * alone.processor / took.processor
        figure(f"{name}, by processor time", fair, "times", ">= 1.8")
