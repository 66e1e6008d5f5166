"""Why jobs wait on platforms that change, on grids, under your own schedulers; played back."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import (
    EASY,
    FCFS,
    Clock,
    ClusterSpec,
    GridSpec,
    JobTable,
    Look,
    Maintenance,
    NodesDown,
    QuantityError,
    ReasonCode,
    RunningJob,
    Scheduler,
    Simulation,
    WaitingJob,
    reasons_at,
    reasons_of,
)
from hpcrowd.environment.clock import DAY, moment
from hpcrowd.environment.schedulers.ordered import OrderedScheduler

from tests.environment.reason_cases import FULL, STORY, H, engines, told, words
from tests.support.policies import make


@engines
def test_maintenance(plain: bool) -> None:
    """Before, jobs would run into it; then the cluster is closed; then it opens."""
    window = [Maintenance(5 * H, 30 * H)]
    found = told("easy", plain, platform=window)
    expected = "first in the queue: requests 4 processors, 1 is free; start expected Tue 06:00"
    assert expected == found[2]
    assert (
        "would run into the maintenance announced for Mon 05:00: expected to run 5.0 h"
        == (told("easy", plain, platform=window, until=150, rows=STORY[:3])[3])
    )
    assert {"cluster is closed until Tue 06:00"} == set(
        told("easy", plain, platform=window, until=6 * H).values()
    )
    assert {"cluster is closed and opens now"} == set(
        told("easy", plain, platform=window, until=30 * H).values()
    )
    alone = told("fcfs", plain, platform=window, rows=[(60, 6 * H, 2, 6 * H, 1, 1, 1)])
    assert {1: "would run into the maintenance announced for Mon 05:00: expected to run 6.0 h"} == (
        alone
    )


@engines
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "selective", "fair-share"])
def test_larger_than_what_is_up(policy: str, plain: bool) -> None:
    """Two of eight processors are down, so a job of the whole machine cannot start."""
    rows = [(0, 4 * H, 3, 4 * H, 1, 1, 1), (60, H, 8, H, 2, 1, 1), (90, H, 4, H, 3, 1, 1)]
    down = [NodesDown(30, None, 2, "fail")]
    found = told(policy, plain, rows=rows, platform=down, until=120, seed=0)
    expected = "too large for the processors that are up: requests 8, 6 up"
    assert found[2] in (expected, f"place 2 by fair share: {expected}")


@engines
def test_late_jobs(plain: bool) -> None:
    """EASY believes a job that outruns its estimate to end any moment; a plan continues with it."""
    rows = [(0, 4 * H, 8, H, 1, 1, 1), (60, H, 8, H, 2, 1, 1)]
    found = told("easy", plain, rows=rows, until=2 * H)
    expected = "start expected at any moment, as jobs run longer than expected"
    assert {2: f"first in the queue: requests 8 processors, none is free; {expected}"} == found


@engines
def test_the_pass_is_still_to_come(plain: bool) -> None:
    """Job 1 has ended at this second, and the scheduler has its pass only after arrivals."""
    rows = STORY[:2]
    assert {2: "fits: may start at the next scheduling pass"} == told(
        "easy", plain, rows=rows, until=4 * H
    )


class Listener:
    """A user who looks at the queue when a unit of hers has ended."""

    def __init__(self, model: Simulation) -> None:
        self.model = model
        self.found: dict[int, str] = {}

    def on_finished(self, unit: int, now: int) -> None:
        """Look."""
        self.found = words(reasons_of(self.model.cluster))


@engines
@pytest.mark.parametrize("policy", ["easy", "sjf", "conservative"])
def test_arrived_and_not_looked_at(policy: str, plain: bool) -> None:
    """A job that is larger than the machine ends at once, before the pass of its second."""
    jobs = make([*STORY[:2], (H, H, 2, H, 3, 1, 1), (H, H, 99, H, 3, 1, 1)])
    model = Simulation(jobs, 8, policy, plain=plain)
    user = Listener(model)
    model.cluster.submit(np.arange(3), jobs.recorded_submit[:3])
    model.submit(user, np.array([3]), H)
    model.run()
    assert [2, 3] == sorted(user.found)
    assert "arrived in this second, not considered yet" == user.found[3]


@engines
def test_recorded_schedule(plain: bool) -> None:
    """Jobs have their recorded starts, also when played back."""
    jobs = make(STORY[:2])
    jobs.recorded_start[1] = 3 * H
    model = Simulation(jobs, 8, "recorded", plain=plain)
    model.cluster.submit([0, 1], jobs.recorded_submit)
    model.run(until=H)
    assert {2: "recorded to start Mon 03:00"} == words(reasons_of(model.cluster))
    model.run()
    assert {2: "recorded to start Mon 03:00"} == words(reasons_at(jobs, H, "recorded", 8))


class Odd(Scheduler):
    """Starts jobs with an odd number of processors only, and says nothing of why."""

    name = "odd"

    def select(self, look: Look) -> Iterable[WaitingJob]:
        """The first odd one that fits."""
        odd = [job for job in look.waiting if job.processors % 2]
        return [job for job in odd if job.processors <= look.free][:1]


class Narrow(EASY):
    """EASY for narrow jobs only; does not explain that."""

    name = "narrow"

    def select(self, look: Look) -> Iterable[WaitingJob]:
        """As EASY, of the narrow ones."""
        narrow = [job for job in look.waiting if job.processors < 3]
        return super().select(look._replace(waiting=narrow))


class ByUser(OrderedScheduler):
    """Your own order; explains itself."""

    name = "seat"

    def key(self, job: WaitingJob, now: int) -> float:
        """Large numbers first."""
        return -job.user


def test_schedulers_of_ones_own() -> None:
    """Without its own words: processors, and its name; with an order: all that follows."""
    wide = [STORY[0], (60, H, 2, H, 2, 1, 1), STORY[4]]
    assert {
        2: "requests 2 processors, 1 is free",
        3: "requests 5 processors, 1 is free",
    } == told(Odd(), rows=[(0, 4 * H, 7, 4 * H, 1, 1, 1), *wide[1:]])
    found = told(Odd(), rows=[(0, 4 * H, 5, 4 * H, 1, 1, 1), *wide[1:]])
    assert "odd did not choose it: requests 2 processors, 3 are free" == found[2]
    assert (
        "narrow did not choose it: requests 4 processors, 8 are free"
        == (told(Narrow(), rows=[STORY[1]])[1])
    )
    found = told(ByUser(), rows=FULL)
    expected = "first by seat: requests 5 processors, none is free; start expected Mon 04:00"
    assert expected == found[4]
    assert "place 2 by seat: waits behind job 4: seat allows no overtaking" == found[3]


class Told(Odd):
    """Explains itself."""

    def reasons(self, look: Look) -> Iterable[Any]:
        """In its own words."""
        for place, job in enumerate(look.waiting, 1):
            found = self.reason(job, look, place)
            if found.code == ReasonCode.NOT_CHOSEN and job.processors % 2 == 0:
                found = found._replace(note="odd only: it")
            yield found


def test_one_that_explains_itself() -> None:
    """What it says is reported."""
    rows = [(0, 4 * H, 5, 4 * H, 1, 1, 1), (60, H, 2, H, 2, 1, 1)]
    assert {2: "odd only: it did not choose it: requests 2 processors, 3 are free"} == (
        told(Told(), rows=rows)
    )


@engines
@pytest.mark.parametrize("policy", ["first-fit", "least-loaded"])
def test_jobs_with_the_broker_of_a_grid(policy: str, plain: bool) -> None:
    """No cluster has as many free; a job that was sent on waits at its cluster."""
    rows = [(3, H), (4, H), (2, H)]
    jobs = JobTable()
    processors, run = np.array(rows).T
    jobs.append(3, processors=processors, run_time=run, requested_time=run, user=1)
    others = {"fast": ClusterSpec(2, "easy", 2.0)}
    model = Simulation(jobs, 4, "easy", others=others, grid=GridSpec(policy), plain=plain)
    assert model.broker is not None
    model.broker.submit([0, 1, 2], [0, 1, 2])
    model.run(until=30)
    if policy == "first-fit":
        assert {2: "no cluster of the grid has 4 free"} == words(reasons_of(model.broker))
        model.run()
        again = words(reasons_at(jobs, 30, "easy", 4, cluster=0))
        assert {2: "held by the broker of the grid: requests 4 processors"} == again
    else:
        assert {} == words(reasons_of(model.broker))
        expected = "first in the queue: requests 4 processors, 1 is free; start expected Mon 01:00"
        assert {2: expected} == words(reasons_of(model.cluster))


def test_components_that_are_to_start_together() -> None:
    """Each waits for room for all."""
    jobs = JobTable()
    jobs.append(3, processors=[3, 3, 2], run_time=H, requested_time=H, user=1)
    others = {"fast": ClusterSpec(2, "easy")}
    model = Simulation(jobs, 4, "easy", others=others, grid=GridSpec("first-fit", True))
    assert model.broker is not None
    model.broker.submit([0], [0])
    model.broker.submit_together([1, 2], 1)
    model.run(until=30)
    together = "its 2 components are to start together"
    assert {
        2: f"no cluster of the grid has 3 free; {together}",
        3: f"no cluster of the grid has 2 free; {together}",
    } == words(reasons_of(model.broker))
    model.run(until=H)
    expected = "fits: may start at the next scheduling pass"
    assert {2: expected, 3: expected} == words(reasons_of(model.broker))


def test_played_back() -> None:
    """From the table of a run that has ended, also during maintenance; plans as promised."""
    jobs = make(STORY)
    model = Simulation(jobs, 8, "easy")
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    model.run()
    assert told("easy") == words(reasons_at(jobs, H, "easy", 8))
    closed = reasons_at(jobs, H, FCFS(), 8, windows=[(1800, 2 * H)])
    assert {"cluster is closed until Mon 02:00"} == set(words(closed).values())
    with pytest.raises(QuantityError, match="processors -1: must be 0 or more"):
        reasons_at(jobs, H, "easy", -1)
    jobs = make([(0, 2 * H, 8, H, 1, 1, 1), STORY[1]])
    model = Simulation(jobs, 8, "conservative")
    model.cluster.submit([0, 1], jobs.recorded_submit)
    model.run()
    found = words(reasons_at(jobs, 90 * 60, "conservative", 8))
    assert {2: "promised to start by Mon 01:00, which has passed"} == found


def test_moments_near_and_far() -> None:
    """Near by day and time, else with the date, or the week where the trace tells no start."""
    clock = Clock(int(datetime(2024, 1, 8, tzinfo=UTC).timestamp()), known=True)
    assert "Tue 14:02" == moment(clock, DAY + 14 * H + 125, near=0)
    assert "Mon 2024-01-15 00:00" == moment(clock, 7 * DAY, near=0)
    assert "week 2 Mon 00:00" == moment(Clock(), 7 * DAY, near=0)
    assert "Mon 2024-01-15 00:00:00" == moment(clock, 7 * DAY)


def test_without_a_table_rows_are_named() -> None:
    """A scheduler that is asked itself knows no job numbers."""
    waiting = [WaitingJob(7, 4, H, 0), WaitingJob(9, 2, H, 0)]
    running = [RunningJob(3, 6, 2 * H)]
    _, second = FCFS().reasons(Look(0, waiting, running, 2, 8))
    assert "waits behind the job in row 7: fcfs allows no overtaking" == second.words(Clock())
