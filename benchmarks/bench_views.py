"""Views of a run in its middle: tables and pictures, of a paused simulation.

Ratios hold while others are at work on the machine: a table is measured against the simulation of a
day of the same run, a picture against an empty one of the same size, as PNG.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import pytest
from bench_engine import KTH

from hpcrowd import Clock, Simulation, Streams, Work, views
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.behaviours import DecisionLog
from hpcrowd.environment.clock import DAY
from hpcrowd.populations import Casting

pytestmark = pytest.mark.benchmark(timer=time.process_time)

CURIE = "CEA-Curie-2011-2.1-cln"

#: Days whose simulation is timed; the median counts.
DAYS = 9

#: Views of the whole run, and of the user with the most jobs of those who are there.
WHOLE = ("load", "submissions", "queue", "gantt", "users")
OWN = ("graph", "week", "pauses", "decisions")


class Paused:
    """A replay with think times, paused when half of the jobs were submitted on record."""

    def __init__(self, load: Any, name: str) -> None:
        trace, jobs = load(name)
        self.log = DecisionLog()
        self.work = Work.of(jobs.copy())
        casting = Casting.of(self.work, "think-time", Streams(0))
        self.model = Simulation(casting.jobs, trace.processors, clock=Clock.of(trace.header))
        self.users, _ = casting.join(self.model, log=self.log)
        self.model.run(until=int(np.median(jobs.recorded_submit)))
        self.day = median(self._seconds_of_day() for _ in range(DAYS))
        frame = views.users_table(self.moment())
        self.user = int(frame[frame.jobs_running > 0].sort_values("jobs_done").user.iloc[-1])

    def _seconds_of_day(self) -> float:
        began = time.process_time()
        self.model.run(until=self.model.time + DAY)
        return time.process_time() - began

    def moment(self) -> views.Moment:
        """The moment, made anew, so that nothing is worked out already."""
        return views.Moment.of_model(
            self.model, label="run", work=self.work, users=self.users, decisions=self.log
        )


@pytest.fixture(scope="module")
def paused(load: Any) -> Callable[[str], Paused]:
    """Return a paused run of a trace, made once."""
    known: dict[str, Paused] = {}

    def get(name: str) -> Paused:
        if name not in known:
            known[name] = Paused(load, name)
        return known[name]

    return get


@pytest.mark.parametrize("view", [*WHOLE, *OWN])
@pytest.mark.parametrize("trace", [KTH, CURIE])
def bench_table(
    benchmark: Any, paused: Any, figure: Callable[..., None], trace: str, view: str
) -> None:
    """Milliseconds of a table, and how many days are simulated in that time."""
    run = paused(trace)
    table, who = getattr(views, f"{view}_table"), [run.user] if view in OWN else []
    benchmark.pedantic(lambda: table(run.moment(), *who), rounds=15, warmup_rounds=1)
    seconds = float(benchmark.stats.stats.median)
    target = "<= 50" if trace == CURIE else "<= 20"
    figure(f"{trace.split('-2')[0]}, {view}, table", seconds * 1000, "ms", target)
    figure(f"{trace.split('-2')[0]}, {view}, table / a day simulated", seconds / run.day, "times")


@pytest.mark.parametrize("view", [*WHOLE, *OWN])
@pytest.mark.parametrize("trace", [KTH, CURIE])
def bench_picture(
    benchmark: Any, paused: Any, figure: Callable[..., None], trace: str, view: str
) -> None:
    """Milliseconds of a picture with its table, and how many empty pictures are drawn meanwhile."""
    from matplotlib.figure import Figure

    run = paused(trace)
    draw, who = getattr(views, f"{view}_picture"), [run.user] if view in OWN else []
    pairs: list[tuple[float, float]] = []

    def empty(size: Any) -> float:
        began = time.process_time()
        made = Figure(figsize=size, dpi=100)
        made.add_subplot()
        figure_png(made)
        return time.process_time() - began

    def pair() -> None:
        began = time.process_time()
        made = draw(run.moment(), *who)
        figure_png(made)
        pairs.append((time.process_time() - began, empty(made.get_size_inches())))

    benchmark.pedantic(pair, rounds=9, warmup_rounds=2)
    name = f"{trace.split('-2')[0]}, {view}, picture"
    target = "<= 120" if trace == KTH else ""
    figure(name, 1000 * median(drawn for drawn, _ in pairs), "ms", target)
    figure(f"{name} / an empty one", median(drawn / bare for drawn, bare in pairs), "times", "<= 6")
