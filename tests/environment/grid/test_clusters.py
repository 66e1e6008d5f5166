"""Tiny stories of several clusters: who hears, arrives and starts when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import Work, add_users
from hpcrowd.environment import (
    ClusterSpec,
    JobTable,
    QuantityError,
    Simulation,
    SimulationError,
)
from hpcrowd.environment.quantities import time_at_speed

MakeJobs = Callable[..., JobTable]

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


class Script:
    """Submits what the script says when a unit has ended: row, cluster, delay; notes the ends."""

    def __init__(self, model: Simulation, *steps: list[tuple[int, str, int]]) -> None:
        self.model = model
        self.steps = list(steps)
        self.heard: list[int] = []

    def go_on(self, now: int) -> None:
        """Submit the next jobs as one unit."""
        if self.steps:
            step = self.steps.pop(0)
            self.model.add_unit(self, np.array([row for row, _, _ in step]))
            for row, cluster, delay in step:
                self.model.clusters[cluster].submit(row, now + delay)

    def on_finished(self, unit: int, now: int) -> None:
        """Note it, continue."""
        self.heard.append(now)
        self.go_on(now)


@both
def test_recorded_unit_runs_on_another_cluster(make_jobs: MakeJobs, plain: bool) -> None:
    """A unit with recorded gaps may go to any cluster; its gaps stay, its run times scale."""
    jobs = make_jobs((10, 100, 1), (14, 50, 1))
    model = Simulation(jobs, 4, plain=plain, others={"slow": ClusterSpec(4, speed=0.5)})
    user = Script(model)
    model.own_units(np.array([0, 2]), np.array([0, 1]), [user])
    model.clusters["slow"].submit_unit(0, 30)
    model.run()
    assert [30, 34] == jobs.submit.tolist()
    assert [230, 134] == jobs.end.tolist()
    assert ([230], [1, 1]) == (user.heard, jobs.cluster.tolist())


def test_time_at_speed() -> None:
    """Times are rounded half up, last 1 s at least, and stay when they are 0 or unknown."""
    times = np.array([-1, 0, 1, 5, 7])
    assert [-1, 0, 1, 3, 4] == time_at_speed(times, 2.0).tolist()
    assert [-1, 0, 1, 1, 1] == time_at_speed(times, 100.0).tolist()
    assert [-1, 0, 2, 10, 14] == time_at_speed(times, 0.5).tolist()


@both
def test_run_to_a_second_halts_all_clusters(make_jobs: MakeJobs, plain: bool) -> None:
    """All clusters stop after what ends in that second, and start what waits when it continues."""
    jobs = make_jobs((0, 50, 1), (0, 50, 1), (1, 9, 1), (1, 9, 1))
    model = Simulation(jobs, 1, plain=plain, others={"other": ClusterSpec(1)})
    model.cluster.submit([0, 2], [0, 1])
    model.clusters["other"].submit([1, 3], [0, 1])
    model.run(until=50)
    assert [0, 0, -1, -1] == jobs.start.tolist()
    assert [(1, 50)] * 2 == [(each.free, each.engine.now) for each in model.clusters.values()]
    model.run()
    assert [0, 0, 50, 50] == jobs.start.tolist()


@both
def test_submission_elsewhere_in_the_past_is_an_error(make_jobs: MakeJobs, plain: bool) -> None:
    """A cluster on which nothing happens keeps time with the others."""
    jobs = make_jobs((0, 10, 1), (0, 10, 1))
    model = Simulation(jobs, 1, plain=plain, others={"idle": ClusterSpec(1)})

    def late() -> None:
        model.clusters["idle"].submit(1, 9)

    model.cluster.submit(0, 0)
    user = Script(model)
    user.on_finished = lambda unit, now: late()  # type: ignore[method-assign]
    model.add_unit(user, np.array([0]))
    with pytest.raises(SimulationError, match=r"9 s: in the past, it is already 10 s"):
        model.run()


@pytest.mark.parametrize(
    ("name", "spec", "text"),
    [
        ("home", (4,), "cluster 'home': name of the first"),
        ("other", (0,), "processors 0"),
        ("other", (4, "soonest"), "scheduler 'soonest'"),
        ("other", (4, "easy", 0.0), "speed 0.0"),
        ("other", (4, "easy", float("nan")), "speed nan"),
    ],
)
def test_clusters_that_cannot_be(make_jobs: MakeJobs, name: str, spec: Any, text: str) -> None:
    """A cluster that cannot be, or is not there, is reported with the value, in one line."""
    with pytest.raises(QuantityError, match=text):
        Simulation(make_jobs((0, 1, 1)), 1, others={name: ClusterSpec(*spec)})
    model = Simulation(make_jobs((0, 1, 1)), 1, others={"other": ClusterSpec(4)})
    with pytest.raises(QuantityError, match="cluster 'moon': not known; choose home, other"):
        model.submit(Script(model), np.array([0]), 0, cluster="moon")


def test_units_next_to_replayed_users(make_jobs: MakeJobs) -> None:
    """Next to the users of a trace, others hear of their own units."""
    jobs = make_jobs((0, 10, 1), (5000, 10, 1))
    model = Simulation(jobs, 4)
    add_users(model, Work.of(jobs))
    user = Script(model, [(2, "home", 3)])
    jobs.append(1, processors=1, run_time=5, requested_time=5)
    user.go_on(0)
    model.run()
    assert [8] == user.heard
    assert [0, 5000, 3] == jobs.submit.tolist()
