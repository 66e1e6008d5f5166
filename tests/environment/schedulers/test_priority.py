"""Priorities: a formula over the queue, compiled or not, with each kind of backfilling."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import JobTable, Simulation, jobs_from_trace, reasons_of
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, SchedulerError
from hpcrowd.environment.platform.changes import Maintenance, Resize
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.environment.schedulers.priority import (
    ARRAYS,
    F1,
    F2,
    F3,
    F4,
    WFP3,
    Multifactor,
    Priority,
    Queue,
    Unicef,
    compared,
)
from hpcrowd.environment.traces.trace import Trace

MakeJobs = Callable[..., JobTable]

SHIPPED = (WFP3, Unicef, F1, F2, F3, F4, Multifactor)
BACKFILLS = ("queue", "none", "sjbf", "conservative")


class Weighed(Priority):
    """An own formula with an option, which uses the usage of users."""

    def __init__(self, weight: float = 2.0, backfill: str = "queue") -> None:
        self.weight, self.backfill = weight, backfill

    def score(self, jobs: Queue) -> Any:
        """Weigh the wait against size and usage."""
        ratio = jobs.waited / jobs.requested
        return self.weight * ratio + jobs.processors - jobs.usage / 1000.0


class InNumpy(Weighed):
    """The same, which numba cannot compile."""

    def score(self, jobs: Queue) -> Any:
        """Do it in Python."""
        terms = {"ratio": jobs.waited / jobs.requested, "usage": -jobs.usage / 1000.0}
        return self.weight * terms.pop("ratio") + jobs.processors + sum(terms.values())


def run(jobs: JobTable, processors: int, scheduler: Any, **options: Any) -> Simulation:
    """Submit all jobs as recorded."""
    model = Simulation(jobs, processors, scheduler, **options)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    model.run()
    return model


def queue_of(**given: Any) -> Queue:
    """A queue in which what is not given is 1."""
    count = len(next(iter(given.values())))
    arrays = [np.array(given.get(name, [1.0] * count), float) for name in ARRAYS]
    return Queue._make((*arrays, 1000, 64, 10))


def test_formulas() -> None:
    """Scores of the shipped formulas, computed by hand."""
    jobs = queue_of(
        processors=[3, 15], requested=[100, 10_000], waited=[50, 10_000], submit=[10, 100]
    )
    assert [0.375, 15.0] == WFP3().scores(jobs).tolist()
    assert [0.25, 0.25] == Unicef().scores(jobs).tolist()
    assert pytest.approx([-(2 * 3 + 870), -(4 * 15 + 1740)]) == F1().scores(jobs)
    assert pytest.approx([-(10 * 3 + 25_600), -(100 * 15 + 51_200)]) == F2().scores(jobs)
    assert pytest.approx([-(300 + 6.86e6), -(150_000 + 2 * 6.86e6)]) == F3().scores(jobs)
    assert pytest.approx([-(100 * 3**0.5 + 5.3e5), -(1e4 * 15**0.5 + 1.06e6)]) == F4().scores(jobs)
    used = queue_of(usage=[0, 200], waited=[302_400, 10**7], processors=[16, 64])
    weights = Multifactor(age=2, size=4, fair_share=8)
    assert pytest.approx([1 + 1 + 8, 2 + 4 + 2]) == weights.scores(used)


def test_scores_are_compared_to_twelve_digits() -> None:
    """What differs only by rounding is a tie; what differs more is not; no score is infinite."""
    values = np.array([1 / 3, np.nextafter(1 / 3, 1), 1 / 3 + 1e-11, 0.0, -5.0, np.inf, 1e-300])
    found = compared(values)
    assert found[0] == found[1] < found[2]
    assert np.allclose(found[2:5], values[2:5], rtol=1e-12)
    assert found[5] == pytest.approx(1e300)


def test_the_highest_score_is_first(make_jobs: MakeJobs) -> None:
    """The head blocks, later jobs overtake it if they do not delay it."""
    jobs = make_jobs((0, 100, 3), (10, 50, 2), (20, 50, 4), (30, 20, 1, 20), (40, 90, 1, 90, 2))
    run(jobs, 4, WFP3())
    assert [0, 100, 150, 30, 50] == jobs.start.tolist() or jobs.start[3] == 30
    assert jobs.start[2] != jobs.start[1]


def random_run(seed: int, scheduler: Priority, plain: bool) -> list[list[int]]:
    """Random jobs, some with maintenance and fewer processors, some with predictions."""
    draw = np.random.default_rng(seed)
    count, size = int(draw.integers(5, 80)), int(draw.integers(1, 9))
    lasts = draw.integers(0, 200, count)
    jobs = JobTable()
    jobs.append(
        count,
        user=draw.integers(0, 4, count),
        processors=draw.integers(1, size + 2, count),
        run_time=lasts,
        requested_time=(lasts * draw.uniform(0.3, 3, count)).astype(int),
        recorded_submit=np.sort(draw.integers(0, 800, count)),
    )
    options: dict[str, Any] = {"overrun": ("keep", "kill")[seed % 2]}
    if seed % 3 == 0:
        changes = [Maintenance(200, 300, announced=150, jobs="run"), Resize(500, max(1, size - 1))]
        options["platform"] = changes
    elif seed % 3 == 1:
        options["estimates"] = "last-two"
    run(jobs, size, scheduler, plain=plain, **options)
    return jobs.matrix.tolist()


@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("kind", [*SHIPPED, Weighed, InNumpy])
def test_compiled_numpy_and_plain_agree(kind: type[Any], backfill: str) -> None:
    """The same schedule, however the formula is computed."""
    for seed in range(8):
        made = [random_run(seed, kind(backfill=backfill), plain) for plain in (False, True)]
        assert made[0] == made[1], seed


@pytest.mark.slow
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("kind", [WFP3, F1, Multifactor, Weighed, InNumpy])
def test_compiled_numpy_and_plain_agree_often(kind: type[Any], backfill: str) -> None:
    """The same in many more cases."""
    for seed in range(100, 300):
        made = [random_run(seed, kind(backfill=backfill), plain) for plain in (False, True)]
        assert made[0] == made[1], seed


@pytest.mark.parametrize("backfill", BACKFILLS)
def test_on_kth(kth: Trace, backfill: str) -> None:
    """Ten thousand real jobs; a formula in numpy gives the same schedule."""
    found = []
    for kind in (Weighed, InNumpy):
        jobs = jobs_from_trace(kth).jobs.take(np.arange(10_000))
        run(jobs, 100, kind(backfill=backfill))
        found.append(jobs.start.tolist())
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHIPPED)
def test_plain_on_kth(kth: Trace, kind: type[Priority]) -> None:
    """The compiled form equals the readable one on the whole log."""
    found = []
    for plain in (False, True):
        jobs = jobs_from_trace(kth).jobs
        run(jobs, 100, kind(), plain=plain)
        found.append(jobs.start.tolist())
    assert found[0] == found[1]


@pytest.mark.slow
def test_plain_on_hpc2n(read_trace: Callable[[str], Trace]) -> None:
    """WFP3 on 200,000 jobs: compiled, by numpy and plain."""
    trace = read_trace("HPC2N-2002-2.2-cln")
    found = []
    for options in ({}, {"plain": True}):
        jobs = jobs_from_trace(trace).jobs
        run(jobs, trace.processors, "wfp3", **options)
        found.append(jobs.start.tolist())
    assert found[0] == found[1]


class Short(Weighed):
    """Too few scores."""

    def score(self, jobs: Queue) -> Any:
        """Leave one out."""
        return jobs.waited[1:]


class NoNumber(Weighed):
    """A score that is not a number."""

    def score(self, jobs: Queue) -> Any:
        """Take a logarithm of what is below 0."""
        return np.log(jobs.waited - 1e9)


class Fails(Weighed):
    """A formula that raises an exception."""

    def score(self, jobs: Queue) -> Any:
        """Use what is not there."""
        return jobs.width  # type: ignore[attr-defined]


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Short, r"Short: score.. returned an array of shape \(1,\) at 10 s for 2 jobs"),
        (NoNumber, "NoNumber: score.. at 10 s is not a number for some job"),
        (Fails, "Fails: score.. at 10 s: AttributeError: .*width"),
    ],
)
def test_wrong_formulas(make_jobs: MakeJobs, kind: type[Any], message: str, plain: bool) -> None:
    """The scheduler, the second, and what is wrong, in one line."""
    jobs = make_jobs((0, 10, 4), (5, 10, 4), (6, 10, 4))
    with pytest.raises(SchedulerError, match=message):
        run(jobs, 4, kind(), plain=plain)


def test_options_by_text() -> None:
    """They are options like those of other policies."""
    assert "wfp3:backfill=conservative" == str(parse_scheduler("wfp3:backfill=conservative"))
    assert "multifactor:age=5.0" == str(parse_scheduler("multifactor:age=5"))
    with pytest.raises(QuantityError, match="age -1: must be 0 or more"):
        parse_scheduler("multifactor:age=-1")
    with pytest.raises(QuantityError, match="backfill 'some': not known"):
        run(JobTable(), 4, WFP3(backfill="some"))


@pytest.mark.parametrize("backfill", ["queue", "conservative"])
def test_why_jobs_wait(make_jobs: MakeJobs, backfill: str) -> None:
    """The head, or the plan; in the order of the scores."""
    jobs = make_jobs((0, 100, 3), (10, 50, 2), (20, 500, 4))
    model = Simulation(jobs, 4, f"wfp3:backfill={backfill}")
    model.cluster.submit([0, 1, 2], jobs.recorded_submit)
    model.run(until=60)
    words = [reason.words(Clock()) for reason in reasons_of(model.cluster)]
    assert len(words) == 2
    expected = {"queue": "first by wfp3: requests 2", "conservative": "planned for"}[backfill]
    assert expected in words[0]


@pytest.mark.parametrize("backfill", ["queue", "conservative"])
@pytest.mark.parametrize("kind", [Weighed, InNumpy])
def test_forks(kth: Trace, kind: type[Any], backfill: str) -> None:
    """A run can be copied in the middle, and goes on as the original does."""
    jobs = jobs_from_trace(kth).jobs.take(np.arange(2000))
    model = Simulation(jobs, 100, kind(backfill=backfill))
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    model.run(until=int(jobs.recorded_submit[1000]))
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    model.run()
    for other in others:
        other.run()
        assert np.array_equal(jobs.start, other.jobs.start)
