"""What generative users draw from: distributions that are taken from a record."""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.agents import Attendance, Empirical, Habits, SessionDefinition, Work
from hpcrowd.agents.generative.empirical import draw, runs_of_same_jobs
from hpcrowd.environment import Clock, JobTable, QuantityError
from hpcrowd.environment.clock import DAY, HOUR

MakeJobs = Callable[..., JobTable]
LAST = SessionDefinition("last", 1200)


def fit(jobs: JobTable, definition: SessionDefinition = LAST, **choices: int | None) -> Habits:
    """The habits in a table of jobs."""
    return Habits.fit(Work.of(jobs, definition), **choices)  # type: ignore[arg-type]


def test_pauses_are_parted_by_the_threshold(make_jobs: MakeJobs) -> None:
    """Up to 20 min after the end is a think time, more and less than 8 h a break, 8 h neither."""
    ends, submits = 0, [0]
    for pause in (0, 1200, 1201, 8 * HOUR - 1, 8 * HOUR):
        ends = submits[-1] + 100
        submits.append(ends + pause)
    habits = fit(make_jobs(*((at, 100, 1) for at in submits)))
    assert [0, 1200] == habits.think.values.tolist()
    assert [1201, 8 * HOUR - 1] == habits.pauses.values.tolist()
    assert [1] * 6 == habits.widths.values.tolist()
    assert 0 == len(habits.gaps)


def test_jobs_before_the_end_of_the_one_before_are_a_batch(make_jobs: MakeJobs) -> None:
    """Last: a batch continues while each job comes before the end of the one before it."""
    habits = fit(make_jobs((0, 100, 1), (30, 100, 1), (120, 5, 1), (125, 5, 1)))
    assert [3, 1] == habits.widths.values.tolist()
    assert [30, 90] == habits.gaps.values.tolist()
    assert [0] == habits.think.values.tolist()


def test_pauses_count_from_the_job_before_under_last(make_jobs: MakeJobs) -> None:
    """A long job that still runs does not matter under Last, and makes one batch under Max."""
    jobs = make_jobs((0, 10_000, 1), (10, 90, 1), (400, 10, 1))
    assert [300] == fit(jobs).think.values.tolist()
    assert [3] == fit(jobs, SessionDefinition("max", 1200)).widths.values.tolist()


def test_pauses_count_from_the_latest_end_under_arrival(make_jobs: MakeJobs) -> None:
    """Sessions that overlap leave no pause between them; batches of one session do."""
    arrival = SessionDefinition("arrival", 3600)
    overlapping = make_jobs((0, 20_000, 1), (5000, 10, 1), (5100, 10, 1))
    habits = fit(overlapping, arrival)
    assert [] == habits.pauses.values.tolist()
    assert [] == habits.think.values.tolist()
    apart = fit(make_jobs((0, 100, 1), (400, 10, 1), (5410, 10, 1)), arrival)
    assert ([300], [5000]) == (apart.think.values.tolist(), apart.pauses.values.tolist())


def test_long_gaps_do_not_count(make_jobs: MakeJobs) -> None:
    """Jobs of a batch more than an hour apart count for its width, not for its gaps."""
    jobs = make_jobs((0, DAY, 1), (HOUR, DAY, 1), (2 * HOUR + 1, DAY, 1))
    habits = fit(jobs)
    assert ([3], [HOUR]) == (habits.widths.values.tolist(), habits.gaps.values.tolist())
    assert [HOUR, HOUR + 1] == fit(jobs, longest_gap=None).gaps.values.tolist()


def test_users_are_distinguished(make_jobs: MakeJobs) -> None:
    """Nothing lasts from one user's job to another's."""
    jobs = make_jobs((0, 10, 1, 10, 1), (40, 10, 1, 10, 2), (100, 10, 1, 10, 1))
    habits = fit(jobs)
    assert [90] == habits.think.values.tolist()
    assert [1, 1, 1] == habits.widths.values.tolist()
    assert [2, 1] == habits.repeats.values.tolist()


def test_same_jobs_ask_for_the_same(make_jobs: MakeJobs) -> None:
    """A run ends where processors, requested time or a known executable change."""
    jobs = make_jobs(*[(10 * place, 5, 1, 60) for place in range(8)])
    jobs.processors[2:] = 2
    jobs.requested_time[4:] = 90
    jobs.executable[:] = [1, 1, 1, 1, 1, -1, 2, 3]
    rows = np.arange(8)
    assert [0, 2, 4, 7, 8] == runs_of_same_jobs(jobs, rows).tolist()
    assert [2, 2, 3, 1] == fit(jobs).repeats.values.tolist()


def test_run_times_do_not_tell_jobs_apart(make_jobs: MakeJobs) -> None:
    """The same job may run longer the next time."""
    assert [2] == fit(make_jobs((0, 5, 1, 60), (10, 50, 1, 60))).repeats.values.tolist()


def test_own_values_from_enough_on() -> None:
    """A user with enough values draws from its own, the others and strangers from everybody's."""
    values = Empirical([1, 2, 3, 4], np.array([0, 0, 0, 1]), least=3)
    assert [1, 2, 3] == list(values.of(0))
    assert [1, 2, 3, 4] == list(values.of(1))
    assert [1, 2, 3, 4] == list(values.of(-1))
    assert [1, 2, 3, 4] == list(Empirical([1, 2, 3, 4], np.array([0, 0, 0, 1])).of(0))


@pytest.mark.parametrize("least", [0, -1])
def test_own_values_need_at_least_one(least: int) -> None:
    """Nobody draws from no values of its own."""
    with pytest.raises(QuantityError, match="must be 1 value or more"):
        Empirical([1], least=least)


def test_draws_are_uniform() -> None:
    """Each value is as likely as any other (within 5 standard errors)."""
    stream = np.random.default_rng(5)
    drawn = np.bincount([draw([0, 1, 2, 3], stream) for _ in range(4000)], minlength=4)
    assert pytest.approx(np.full(4, 1000), abs=5 * np.sqrt(4000 * 0.25 * 0.75)) == drawn


def test_jobs_of_a_stranger_are_its_groups(make_jobs: MakeJobs) -> None:
    """A user draws from its own jobs; without any from its group's, else from everybody's."""
    jobs = make_jobs((0, 1, 1, 1, 1), (10, 1, 1, 1, 2), (20, 1, 1, 1, 3), (30, 1, 1, 1, 1))
    jobs.group[:] = [7, 7, 8, 7]
    habits = fit(jobs)
    assert [0, 3] == list(habits.jobs_of(1, 7))
    assert [0, 1, 3] == list(habits.jobs_of(9, 7))
    assert [2] == list(habits.jobs_of(9, 8))
    for group in (9, -1):
        assert [0, 1, 2, 3] == sorted(habits.jobs_of(9, group))


def test_a_single_job_is_a_record(make_jobs: MakeJobs) -> None:
    """One job gives a width and a repetition, and no pause."""
    habits = fit(make_jobs((5, 10, 1)))
    found = (habits.think, habits.pauses, habits.gaps, habits.widths, habits.repeats)
    assert [0, 0, 0, 1, 1] == [len(values) for values in found]


@pytest.mark.parametrize("choice", [{"longest_break": 0}, {"longest_gap": -1}, {"least": 0}])
def test_impossible_limits_are_refused(make_jobs: MakeJobs, choice: dict[str, int]) -> None:
    """Limits are lengths of time."""
    with pytest.raises(QuantityError, match=r"or more|more than"):
        fit(make_jobs((0, 1, 1)), **choice)


def test_attendance_counts_local_days(make_jobs: MakeJobs) -> None:
    """Days begin at local midnight; who came on two days out of four comes with half."""
    zone = ZoneInfo("Europe/Stockholm")
    clock = Clock(unix_start=1704697200, zone=zone, known=True)  # Mon 8 January 2024, 8:00
    midnight = 16 * HOUR
    jobs = make_jobs(
        (0, 1, 1),
        (midnight - 1, 1, 1),
        (midnight + 2 * DAY, 1, 1),
        (midnight, 1, 1, 1, 2),
        (midnight + 1, 1, 1, 1, 2),
    )
    found = Attendance.fit(Work.of(jobs), clock)
    assert ([2, 1], [4, 1]) == (found.active.tolist(), found.present.tolist())
    assert 0.5 == found.probability(0, 7)
    assert pytest.approx(0.7) == found.probability(0, 5)
    assert 1.0 == found.probability(1, 5)
    assert pytest.approx(3 / 5) == found.probability(-1, 7)
