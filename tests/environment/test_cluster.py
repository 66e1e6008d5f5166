"""What a cluster shows, and what it refuses in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import (
    EASY,
    Cluster,
    Look,
    NodesDown,
    QuantityError,
    Scheduler,
    SchedulerError,
    Simulation,
    SimulationError,
    State,
    WaitingJob,
)
from hpcrowd.environment.stops import Stop

from tests.environment.schedulers.pool_cases import MakeJobs, begun, both, ran


def choosing(name: str, chosen: Callable[[Look], Any]) -> Scheduler:
    """Return a scheduler that names what a function chooses."""
    kind = type(name, (Scheduler,), {"name": name, "select": lambda self, look: chosen(look)})
    made: Scheduler = kind()
    return made


@pytest.mark.parametrize(
    ("scheduler", "text"),
    [
        (choosing("greedy", lambda look: look.waiting), "needs 2 processors, 1 are free"),
        (choosing("inventor", lambda look: [WaitingJob(77, 1, 1, 0)]), "row 77"),
    ],
)
def test_scheduler_that_asks_for_the_impossible(
    make_jobs: MakeJobs, scheduler: Scheduler, text: str
) -> None:
    """A scheduler that starts what does not fit or does not wait is named with the job."""
    with pytest.raises(SchedulerError, match=f"{scheduler.name}: .*{text}"):
        ran(make_jobs((3, 10, 2), (3, 10, 2)), 3, scheduler)


class Forgetful(EASY):
    """Never looks at the first in the queue."""

    name = "forgetful"

    def select(self, look: Look) -> Any:
        """Leave one out."""
        return super().select(look._replace(waiting=look.waiting[1:]))


def test_scheduler_that_loses_jobs(make_jobs: MakeJobs) -> None:
    """A scheduler that leaves a job waiting for ever is named, with the first such job."""
    jobs = make_jobs((3, 10, 2), (3, 10, 2), (3, 10, 2))
    with pytest.raises(SchedulerError, match=r"^forgetful: 1 job left waiting at 23 s.* row 0 "):
        ran(jobs, 3, Forgetful())


def test_halted_run_has_lost_nothing(make_jobs: MakeJobs) -> None:
    """Who still waits when a run is halted is not lost, nor who is too large for what is left."""
    halted = begun(make_jobs((0, 10, 2), (0, 10, 2)), 3, "easy").run(until=5)
    assert 1 == len(halted.cluster.waiting)
    jobs = make_jobs((0, 10, 1), (2, 10, 3))
    ran(jobs, 3, "easy", platform=[NodesDown(1, None, 1, "requeue")])
    assert -1 == jobs.start[1]


@both
def test_submission_in_the_past_is_an_error(make_jobs: MakeJobs, plain: bool) -> None:
    """Nobody can submit before now; the message names both times."""
    jobs = make_jobs((0, 10, 1), (0, 10, 1))
    model = Simulation(jobs, 2, plain=plain)
    model.cluster.submit(0, 40)
    model.run(until=45)
    with pytest.raises(SimulationError, match=r"44 s: in the past, it is already 45 s"):
        model.cluster.submit(1, 44)


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ({"processors": 0}, "processors 0"),
        ({"scheduler": "soonest"}, "scheduler 'soonest'"),
        ({"overrun": "maybe"}, "overrun 'maybe'"),
    ],
)
def test_cluster_that_cannot_be(make_jobs: MakeJobs, choices: Any, text: str) -> None:
    """A cluster of no processors, or under an unknown policy, is reported with the value."""
    with pytest.raises(QuantityError, match=text):
        Simulation(make_jobs((0, 1, 1)), **({"processors": 1} | choices))


def test_cluster_shows_its_state(make_jobs: MakeJobs) -> None:
    """A halted simulation shows what runs, what waits and what is free."""
    jobs = make_jobs((0, 100, 3), (10, 50, 4), (20, 999, 1))
    model = begun(jobs, 4, "easy").run(until=30)
    cluster = model.cluster
    assert (1, [0], [1, 2]) == (cluster.free, cluster.running.tolist(), cluster.waiting.tolist())
    assert "4 processors under easy" in repr(cluster)
    assert [cluster] == list(model.agents_by_type[Cluster])


@both
def test_run_to_a_second_stops_between_completions_and_arrivals(
    make_jobs: MakeJobs, plain: bool
) -> None:
    """Running to a second lets end what ends then; what arrives then comes with the next run."""
    jobs = make_jobs((0, 50, 1), (50, 10, 1), (60, 10, 1))
    model = begun(jobs, 1, "fcfs", plain=plain).run(until=50)
    assert (50, [50, -1, -1]) == (model.time, jobs.end.tolist())
    assert [State.COMPLETED, State.UNFINISHED, State.UNFINISHED] == jobs.state.tolist()
    assert 1 == model.cluster.free
    model.run(until=55)
    model.run(until=20)  # time never goes back
    assert (55, [0, 50, -1]) == (model.time, jobs.start.tolist())
    model.run()
    assert (70, [0, 50, 60]) == (model.time, jobs.start.tolist())


@both
def test_submission_into_a_second_that_was_scheduled(make_jobs: MakeJobs, plain: bool) -> None:
    """A job that comes after the pass of its second gets its place by number, and a new pass."""
    jobs = make_jobs((0, 5, 1), (0, 100, 3), (0, 10, 4))
    engine = Simulation(jobs, 4, "easy", plain=plain).cluster.engine
    engine.submit([1, 2], 0)
    assert Stop.PAUSE == engine.advance(events=2)
    assert ([1], [2]) == (engine.running.tolist(), engine.waiting.tolist())
    engine.submit(0, 0)
    assert Stop.DONE == engine.advance()
    assert [0, 0, 100] == jobs.start.tolist()


@pytest.mark.parametrize(
    ("rows", "text"), [([], "unit without jobs"), ([1], "the table has 1 jobs")]
)
def test_unit_without_jobs_is_refused(make_jobs: MakeJobs, rows: list[int], text: str) -> None:
    """A unit of no jobs would never be over, and rows that are not in the table are no jobs."""
    units = Simulation(make_jobs((0, 10, 1)), 1).units
    with pytest.raises(SimulationError, match=text):
        units.add(np.array(rows, np.int64))
    assert 0 == len(units)


@both
def test_earlier_run_leaves_no_mark(make_jobs: MakeJobs, plain: bool) -> None:
    """A table that was simulated before gives the same schedule again; its old units are gone."""
    jobs = make_jobs((0, 10, 1), (1, 10, 1))
    jobs.unit[:] = 10**9
    jobs.state[:] = State.KILLED
    ran(jobs, 1, "easy", plain=plain)
    assert [0, 10] == jobs.start.tolist()
    assert 2 == jobs.count(State.COMPLETED)
