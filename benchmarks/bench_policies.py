"""Policies with long queues, on a large machine, and with many jobs that only run: engine time.

Times are those of the processor, the best of a few runs, after a short run that loads all
modules. Jobs are submitted as recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import pytest

import hpcrowd as hc
from hpcrowd import JobTable, Scheduler, Simulation, Trace, jobs_from_trace
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.schedulers.names import SCHEDULERS
from hpcrowd.environment.traces.trace import Conversion
from hpcrowd.policies import WFP3, parse_scheduler

KTH = "KTH-SP2-1996-2.1-cln"
CURIE = "CEA-Curie-2011-2.1-cln"

Figure = Callable[[str, float, str, str], None]


class InNumpy(WFP3):
    """WFP3 whose formula is called with numpy arrays."""

    name = "wfp3 in numpy"
    traced = False


#: WFP3 traced and in numpy: s for HPC2N.
PRIORITIES: dict[str, tuple[Callable[[], Scheduler], float]] = {
    "traced": (WFP3, 2), "numpy": (InNumpy, 10),
}  # fmt: skip

#: Policies that run compiled.
COMPILED = [name for name, kind in SCHEDULERS.items() if kind.compiled]

#: s of KTH at half speed.
HALF_SPEED = {"easy": 0.3, "selective": 3, "selective-categorized": 3, "conservative": 5}

#: us a pass with the fewest running jobs, by policy.
_FEWEST: dict[str, float] = {}

#: Jobs that run all the time, and passes that are timed.
RUNNING = (100, 5_000, 50_000)
PASSES_TIMED = 20_000

#: Jobs that wait at first, and s for the most; of EASY, which is fast, there are more.
WAITING = (250, 1_000, 4_000, 12_500)
MOST_WAITING = {"conservative": 10}
MOST_AT_RANDOM = "<= 15"
EASY_WAITING, EASY_TIME = 100_000, 3


def ready(jobs: JobTable, processors: int, name: str) -> Simulation:
    """A simulation to which all jobs are submitted as recorded."""
    model = Simulation(jobs.copy(), processors, parse_scheduler(name))
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    return model


def best(jobs: JobTable, processors: int, name: str, rounds: int) -> tuple[float, JobTable]:
    """The shortest time of a whole run, s, and its jobs."""
    ready(jobs.take(np.arange(min(300, len(jobs)))), processors, name).run()
    times = []
    for _ in range(rounds):
        model = ready(jobs, processors, name)
        start = process_time()
        model.run()
        times.append(process_time() - start)
    return min(times), model.jobs


def longest_queue(jobs: JobTable) -> int:
    """How many jobs waited at most at one time."""
    times = np.concatenate([jobs.start, jobs.submit])
    change = np.repeat([-1, 1], len(jobs))
    return int(np.cumsum(change[np.lexsort((change, times))]).max())


@pytest.mark.parametrize("name", HALF_SPEED)
@pytest.mark.parametrize("requests", [1, 2])
def bench_long_queues(load: Any, figure: Figure, requests: int, name: str) -> None:
    """KTH on nodes of half the speed.

    With requests as they are nearly half of the jobs outrun theirs; whoever knows the nodes asks
    for twice as much.
    """
    trace: Trace = load(KTH)[0]
    jobs = jobs_from_trace(trace, Conversion(speed=0.5)).jobs
    jobs.requested_time[:] *= requests
    time, done = best(jobs, trace.processors, name, 3)
    what = "KTH, half speed" + (", requests doubled" if requests == 2 else "")
    figure(f"{what}, {name}", time, "s", f"<= {HALF_SPEED[name]}")
    figure(f"{what}, {name}, longest queue", longest_queue(done), "jobs", "")


@pytest.mark.parametrize("name", SCHEDULERS)
def bench_curie(load: Any, figure: Figure, name: str) -> None:
    """CEA-Curie, 93,312 processors."""
    trace, jobs = load(CURIE)
    figure(f"CEA-Curie, {name}", best(jobs, trace.processors, name, 2)[0], "s", "<= 60")


def with_running(count: int) -> JobTable:
    """Jobs that run all the time, one processor each; then some that share eight, a few waiting.

    Those end after half of what they ask for, so plans change at every end.
    """
    random = np.random.default_rng(1)
    lasting = random.integers(10**7, 2 * 10**7, count)
    short = random.integers(20, 60, PASSES_TIMED)
    needs = random.integers(1, 9, PASSES_TIMED)
    jobs = JobTable()
    columns = {"run_time": lasting, "requested_time": lasting}
    jobs.append(count, processors=1, recorded_submit=0, **columns)
    submit = 1000 + np.cumsum(short * needs // 6)
    columns = {"run_time": short, "requested_time": 2 * short, "recorded_submit": submit}
    jobs.append(PASSES_TIMED, processors=needs, **columns)
    jobs.user[:] = np.arange(len(jobs)) % 50
    jobs.queue[:] = jobs.group[:] = 1
    return jobs


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("count", RUNNING)
def bench_running(figure: Figure, count: int, name: str) -> None:
    """The cost of a pass against the number of jobs that only run.

    The ends of all running jobs are in a heap, whose depth is 2.4 times that of the smallest.
    """
    jobs = with_running(count)
    times = []
    for _ in range(4):
        model = ready(jobs, count + 8, name)
        model.run(until=999)
        start = process_time()
        model.run(until=10**7 - 1)
        times.append(process_time() - start)
    cost = min(times) / PASSES_TIMED * 1e6
    figure(f"{count:,} running, {name}", cost, "us a job", "")
    if count == RUNNING[0]:
        _FEWEST[name] = cost
    elif name in _FEWEST:
        target = "<= 2.5" if count == RUNNING[-1] else ""
        figure(f"{count:,} running / {RUNNING[0]}, {name}", cost / _FEWEST[name], "times", target)


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("count", WAITING)
def bench_waiting(load: Any, figure: Figure, count: int, name: str) -> None:
    """The cost of a job against the length of the queue: all were submitted in the first second."""
    rows: Int64s = np.arange(10_000, 10_000 + count)
    jobs: JobTable = load(KTH)[1].take(rows)
    jobs.recorded_submit[:] = 0
    time, _ = best(jobs, 100, name, 1 if count == WAITING[-1] else 3)
    figure(f"{count:,} waiting, {name}", time / count * 1e6, "us a job", "")
    if count == WAITING[-1]:
        target = f"<= {MOST_WAITING[name]}" if name in MOST_WAITING else ""
        figure(f"{count:,} waiting, {name}, in all", time, "s", target)


@pytest.mark.parametrize("count", WAITING[-2:])
def bench_random_waiting(figure: Figure, count: int) -> None:
    """Conservative backfilling of random jobs that are all there in the first second.

    Nearly each of them moves at nearly each end, so moves grow with the square of their number.
    """
    random = np.random.default_rng(1)
    run = np.maximum(random.lognormal(6, 1, count), 1).astype(np.int64)
    jobs = JobTable()
    asked = run * random.integers(1, 9, count)
    sizes = random.integers(1, 65, count)
    jobs.append(count, run_time=run, requested_time=asked, processors=sizes, recorded_submit=0)
    time, _ = best(jobs, 100, "conservative", 1)
    most = MOST_AT_RANDOM if count == WAITING[-1] else ""
    figure(f"{count:,} random jobs waiting, conservative, in all", time, "s", most)


def bench_easy_waiting(load: Any, figure: Figure) -> None:
    """The trace over and over, all at once."""
    jobs: JobTable = load(KTH)[1]
    jobs = jobs.take(np.arange(10_000, 10_000 + EASY_WAITING) % len(jobs))
    jobs.recorded_submit[:] = 0
    time, _ = best(jobs, 100, "easy", 1)
    figure(f"{EASY_WAITING:,} waiting, easy, in all", time, "s", f"<= {EASY_TIME}")


@pytest.mark.parametrize("how", PRIORITIES)
def bench_priority(load: Any, figure: Figure, how: str) -> None:
    """HPC2N under WFP3: s."""
    trace, jobs = load("HPC2N-2002-2.2-cln")
    make, most = PRIORITIES[how]
    times = []
    for _ in range(3):
        model = Simulation(jobs.copy(), trace.processors, make())
        model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
        start = process_time()
        model.run()
        times.append(process_time() - start)
    figure(f"HPC2N, wfp3, {how}", min(times), "s", f"<= {most}")


def bench_learner(load: Any, figure: Figure) -> None:
    """100,000 decisions of an agent that always takes the oldest job, on replays of KTH."""
    trace: Trace = load(KTH)[0]
    env = hc.gym.SchedulingEnv(trace, users="think-time")
    left, start = 100_000, process_time()
    while left:
        env.reset(seed=left)
        over = False
        while left and not over:
            over = env.step(0)[2]
            left -= 1
    figure("KTH, 100,000 decisions of an agent", process_time() - start, "s", "<= 60")
