"""Forecasts: 200 futures of a week of HPC2N on all cores, and what one future costs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hpcrowd import Clock
from hpcrowd.analysis.forecast.futures import Outset
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.state.files import write_state
from hpcrowd.environment.state.fitted import Fitted
from hpcrowd.environment.state.state import ClusterState

HPC2N = "HPC2N-2002-2.2-cln"

#: Jobs that wait in the state, at least.
WAITING = 200

#: Futures, as in the figure.
FUTURES = 200

#: Days of the log before the state that are known to it.
KNOWN_DAYS = 120

#: The command in a process of its own, and the memory of the largest of its processes, MB.
COMMAND = """
if __name__ == "__main__":  # as workers of the command import nothing before they need it
    import resource, sys, time
    from pathlib import Path
    from hpcrowd.environment.state.files import read_state
    from hpcrowd.scenarios.forecasts.forecast import Forecast
    state = read_state(Path(sys.argv[1]))
    began = time.perf_counter()
    found = Forecast(state, futures=int(sys.argv[2]), hindcasts=0).run()
    took = time.perf_counter() - began
    peaks = [resource.getrusage(who).ru_maxrss for who in
             (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(took, max(peaks) / 1024, sum(peaks) / 1024, len(found.futures))
"""


def busy_state(load: Any) -> ClusterState:
    """Return the first state in the second half of HPC2N in which enough jobs wait."""
    trace, jobs = load(HPC2N)
    submit, start = jobs.recorded_submit, jobs.recorded_start
    for now in np.unique(submit)[len(np.unique(submit)) // 2 :: 50].tolist():
        if ((submit <= now) & (start > now)).sum() >= WAITING:
            rows = np.flatnonzero((submit <= now) & (submit > now - KNOWN_DAYS * 86400))
            return ClusterState.of(jobs.take(rows), now, Clock.of(trace.header), trace.processors)
    raise AssertionError(f"no state with {WAITING} jobs that wait")


def bench_week_of_hpc2n(load: Any, figure: Callable[..., None], tmp_path: Any) -> None:
    """200 futures of a week, from a state with 200 waiting jobs, on all cores."""
    state = busy_state(load)
    path = tmp_path / "state.jsonl.gz"
    write_state(state, path)
    script = tmp_path / "run.py"
    script.write_text(COMMAND)
    seconds, largest, together = [], [], []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, str(script), str(path), str(FUTURES)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        took, most, both, count = map(float, done.stdout.split())
        assert count == FUTURES
        seconds.append(took)
        largest.append(most)
        together.append(both)
    name = f"{FUTURES} futures of a week, {len(state.waiting)} jobs wait"
    figure(name, float(np.median(seconds)), "s", "<= 20")
    figure(f"{name}, largest process", float(np.median(largest)), "MB", "<= 1024")
    figure(f"{name}, parent and largest worker", float(np.median(together)), "MB", "<= 1024")


@pytest.mark.parametrize("users", ["rigid", "think-time", "think-time-windows"])
def bench_one_future(load: Any, figure: Callable[..., None], users: str) -> None:
    """One future of a week of HPC2N: processor time, and per job that users submit."""
    _one_future(Outset(busy_state(load), WEEK, users=users), users, figure)


def bench_one_fitted_future(load: Any, figure: Callable[..., None]) -> None:
    """The same under the scheduler that the record shows, and its fit."""
    state, scheduler = busy_state(load), Fitted()
    began = time.process_time()
    scheduler.fit_to(state.jobs, state.clock, state.processors)
    figure(f"fit to {len(state.jobs):,} jobs", time.process_time() - began, "s", "<= 120")
    _one_future(Outset(state, WEEK, scheduler=scheduler), "fitted scheduler", figure)


def _one_future(outset: Outset, name: str, figure: Callable[..., None]) -> None:
    outset.simulate(0)
    began, jobs = time.process_time(), 0
    for number in range(1, 21):
        jobs += len(outset.simulate(number).submit)
    spent = time.process_time() - began
    figure(f"one future, {name}", spent / 20 * 1e3, "ms", "<= 150")
    figure(f"one future, {name}, a job", spent / jobs * 1e6, "us", "<= 300")
