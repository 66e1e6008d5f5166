"""A scheduler hands queue and running jobs over to another, in the middle of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import Work, add_users
from hpcrowd.environment import (
    EASY,
    FCFS,
    JobTable,
    Predictor,
    QuantityError,
    Scheduler,
    Simulation,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.environment.engine.test_properties import OUTCOME, Rows, make, workloads

MakeJobs = Callable[..., JobTable]

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


def run_switching(
    jobs: JobTable,
    processors: int,
    first: str,
    switches: list[tuple[int, Scheduler]],
    **options: Any,
) -> JobTable:
    """Run with all jobs submitted as recorded; switch schedulers at these seconds."""
    model = Simulation(jobs, processors, first, **options)
    add_users(model, Work.of(jobs), "rigid")
    for at, scheduler in switches:
        model.call_at(at, model.cluster.engine.switch, scheduler)
    model.run()
    return jobs


@both
def test_new_policy_decides_at_once(make_jobs: MakeJobs, plain: bool) -> None:
    """From FCFS to EASY the small job overtakes in that second, though nothing ends or arrives."""
    jobs = make_jobs((0, 100, 3), (1, 50, 4), (2, 40, 1))
    run_switching(jobs, 4, "fcfs", [(30, EASY())], plain=plain)
    assert [0, 100, 30] == jobs.start.tolist()


@both
def test_running_jobs_go_on(make_jobs: MakeJobs, plain: bool) -> None:
    """From EASY to FCFS no job overtakes any more, and what runs is left alone."""
    jobs = make_jobs((0, 100, 2), (1, 50, 4), (2, 40, 1), (3, 40, 1), (60, 30, 1))
    run_switching(jobs, 4, "easy", [(20, FCFS())], plain=plain)
    assert [0, 100, 2, 3, 150] == jobs.start.tolist()
    assert [100, 150, 42, 43, 180] == jobs.end.tolist()


@both
def test_reservation_counts_who_ran_before(make_jobs: MakeJobs, plain: bool) -> None:
    """The new policy knows when jobs that it did not start are expected back."""
    jobs = make_jobs((0, 100, 3), (1, 50, 4), (40, 61, 1), (41, 59, 1))
    run_switching(jobs, 4, "fcfs", [(30, EASY())], plain=plain)
    assert [0, 100, 150, 41] == jobs.start.tolist()


@given(
    workloads,
    st.integers(3, 8),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from([FCFS, EASY])), max_size=5),
    st.sampled_from(["requested", "exact", "0.5x"]),
)
def test_compiled_equals_plain(
    rows: Rows, processors: int, switches: list[tuple[int, type[Scheduler]]], estimates: str
) -> None:
    """Both engines give the same schedule, whenever policies change."""
    seen = []
    for plain in (False, True):
        jobs = run_switching(
            make(rows),
            processors,
            "easy",
            [(at, policy()) for at, policy in switches],
            plain=plain,
            estimates=estimates,
        )
        seen.append({column: getattr(jobs, column).tolist() for column in OUTCOME})
    assert seen[0] == seen[1]


@given(workloads, st.integers(3, 8), st.lists(st.integers(0, 60), max_size=5), st.booleans())
def test_switching_to_the_same_changes_nothing(
    rows: Rows, processors: int, times: list[int], plain: bool
) -> None:
    """EASY taking over from EASY gives the schedule of EASY alone, when estimates hold."""
    rows = [(*row[:5], row[3] + row[5], row[6]) for row in rows]
    alone = run_switching(make(rows), processors, "easy", [], plain=plain)
    switches: list[tuple[int, Scheduler]] = [(at, EASY()) for at in times]
    switched = run_switching(make(rows), processors, "easy", switches, plain=plain)
    assert alone.start.tolist() == switched.start.tolist()


class Counting(Predictor):
    """Predicts 10 s, and counts how often it hears of each job."""

    name = "counting"

    def begin(self, jobs: JobTable) -> None:
        """Forget."""
        self.arrivals = np.zeros(len(jobs), int)
        self.ends = np.zeros(len(jobs), int)

    def arrived(self, rows: Any, now: int) -> None:
        """Count."""
        self.arrivals[rows] += 1

    def ended(self, rows: Any, now: int) -> None:
        """Count."""
        self.ends[rows] += 1

    def predict(self, rows: Any, now: int) -> Any:
        """Predict 10 s."""
        return np.full(len(rows), 10)


@given(workloads, st.lists(st.integers(0, 60), max_size=5))
def test_predictor_hears_everything_once(rows: Rows, times: list[int]) -> None:
    """Whoever schedules, the predictor hears of each arrival and each end once."""
    rows = [(*row[:5], row[3] + row[5], row[6]) for row in rows]
    predictor = Counting()
    switches: list[tuple[int, Scheduler]] = [(at, FCFS()) for at in times]
    jobs = make(rows)
    run_switching(jobs, 7, "easy", switches, estimates=predictor, plain=True)
    assert [1] * len(rows) == predictor.arrivals.tolist()
    assert predictor.ends.max() <= 1


def test_what_cannot_be_switched(make_jobs: MakeJobs) -> None:
    """The recorded schedule, and a scheduler of one's own in a compiled engine, are refused."""
    model = Simulation(make_jobs((0, 1, 1)), 1, "recorded")
    with pytest.raises(QuantityError, match="recorded schedule"):
        model.cluster.engine.switch(EASY())
    model = Simulation(make_jobs((0, 1, 1)), 1, "recorded", plain=True)
    with pytest.raises(QuantityError, match="recorded schedule"):
        model.cluster.engine.switch(EASY())
    model = Simulation(make_jobs((0, 1, 1)), 1, "easy")
    with pytest.raises(QuantityError, match="not compiled"):
        model.cluster.engine.switch(Scheduler())
