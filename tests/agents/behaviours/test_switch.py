"""A scheduler hands queue and running jobs over to another, in the middle of a run."""

from typing import Any

import numpy as np
import pytest
from hpcrowd import Scheduler, Simulation, Work, add_users
from hpcrowd.errors import QuantityError
from hpcrowd.policies import EASY, FCFS
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.engine.test_properties import OUTCOME, make, workloads
from tests.support.policies import LastRun
from tests.support.simulations import both, simulation_of


def run_switching(jobs, processors, first, switches, **options):
    """Run with all jobs submitted as recorded; switch schedulers at these seconds."""
    model = simulation_of(jobs, processors, first, **options)
    add_users(model, Work.of(jobs), "rigid")
    for at, scheduler in switches:
        model.call_at(at, model.cluster.engine.switch, scheduler)
    model.run()
    return jobs


STORIES: dict[str, tuple[Any, str, int, type[Scheduler], list[int]]] = {
    # The small job overtakes in that second, though nothing ends or arrives.
    "to EASY": ([(0, 100, 3), (1, 50, 4), (2, 40, 1)], "fcfs", 30, EASY, [0, 100, 30]),
    # No job overtakes any more, and what runs is left alone.
    "to FCFS": ([(0, 100, 2), (1, 50, 4), (2, 40, 1), (3, 40, 1), (60, 30, 1)], "easy", 20, FCFS,
                [0, 100, 2, 3, 150]),
    # The new policy knows when jobs that it did not start are expected back.
    "reserves": ([(0, 100, 3), (1, 50, 4), (40, 61, 1), (41, 59, 1)], "fcfs", 30, EASY,
                 [0, 100, 150, 41]),
}  # fmt: skip


@both
@pytest.mark.parametrize("story", STORIES)
def test_new_policy_decides_from_then_on(make_jobs, plain, story):
    """Jobs start by the rules of the policy that is in charge, and end when they would."""
    rows, first, at, then, starts = STORIES[story]
    jobs = run_switching(make_jobs(*rows), 4, first, [(at, then())], plain=plain)
    assert starts == jobs.start.tolist()
    assert (jobs.start + jobs.run_time).tolist() == jobs.end.tolist()


class Counting(LastRun):
    """Counts how often it hears of each job."""

    def begin(self, jobs):
        """Forget."""
        super().begin(jobs)
        self.arrivals, self.ends = np.zeros((2, len(jobs)), int)

    def arrived(self, rows, now):
        """Count."""
        self.arrivals[rows] += 1

    def ended(self, rows, now):
        """Count."""
        super().ended(rows, now)
        self.ends[rows] += 1


@settings(max_examples=60)
@given(
    workloads,
    st.integers(3, 8),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from([FCFS, EASY])), max_size=5),
    st.sampled_from(["requested", "exact", "0.5x"]),
)
def test_switches_at_any_second(rows, processors, switches, estimates):
    """Engines agree; EASY after EASY changes nothing; a predictor hears of each job once."""

    def run(rows, policies, **options):
        made = [(at, policy()) for at, policy in policies]
        return run_switching(make(rows), processors, "easy", made, **options)

    both = [run(rows, switches, plain=plain, estimates=estimates) for plain in (False, True)]
    for column in OUTCOME:
        assert getattr(both[0], column).tolist() == getattr(both[1], column).tolist()
    exact = [(*row[:5], row[3] + row[5], row[6]) for row in rows]  # estimates hold
    same = [(at, EASY) for at, _ in switches]
    assert run(exact, []).start.tolist() == run(exact, same).start.tolist()
    predictor = Counting()
    made = [(at, policy()) for at, policy in switches]
    run_switching(make(exact), 8, "easy", made, estimates=predictor, plain=True)  # room for all
    assert [1] * len(rows) == predictor.arrivals.tolist()
    assert predictor.ends.max() <= 1


@both
def test_what_cannot_be_switched(make_jobs, plain):
    """The recorded schedule, and an own scheduler in a compiled engine, are refused."""
    model = Simulation(make_jobs((0, 1, 1)), 1, "recorded", plain=plain)
    with pytest.raises(QuantityError, match="recorded schedule"):
        model.cluster.engine.switch(EASY())
    model = Simulation(make_jobs((0, 1, 1)), 1, "easy")
    with pytest.raises(QuantityError, match="not compiled"):
        model.cluster.engine.switch(Scheduler())
