"""Accounts of a population: who came and went, what was done per week, how near it is to a log."""

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock, JobTable, State
from hpcrowd.analysis.accounts.population import ACCOUNTS, account_lines, week_edges
from hpcrowd.environment.clock import HOUR, WEEK
from hpcrowd.errors import QuantityError
from hpcrowd.populations import Happening, Visits, population_accounts

from tests.support.populations import record


def ran(*jobs):
    """Return jobs of (submission, wait, run time) on two processors that ran to their end."""
    table = record([(1, submit, run, 2, wait) for submit, wait, run in jobs])
    table.submit[:], table.start[:] = table.recorded_submit, table.recorded_start
    table.end[:] = table.recorded_end
    table.state[:] = State.COMPLETED
    return table


def accounts(jobs, visits=None, **more):
    """Return the accounts of four weeks on ten processors, the first week left out."""
    choices = {"weeks": 4, "warmup": 1, "processors": 10, **more}
    return population_accounts(jobs, visits or Visits(), Clock(), **choices)


def test_throughput_counts_ends_and_hours_in_use_per_week():
    """A job over the end of a week counts by its hours, and ends in the next; weeks are local."""
    jobs = ran((0, 0, HOUR), (2 * WEEK - HOUR, 0, 2 * HOUR), (3 * WEEK, 0, 3 * HOUR))
    found = accounts(jobs, speed=2)
    assert (3 / 4, 2 / 3) == (found["jobs_per_week_mean"], found["throughput_jobs_per_week"])
    assert pytest.approx((2 + 2 + 6) / 3) == found["throughput_node_h_per_week"]
    assert pytest.approx(2 * (2 + 2 + 6) / 3) == found["work_recorded_node_h_per_week"]
    assert pytest.approx((2 + 2 + 6) / (3 * 10 * 168)) == found["utilization_weeks"]
    assert [] == found["notes"]
    assert list(ACCOUNTS) == list(found)
    zone = ZoneInfo("Europe/Stockholm")
    clock = Clock(int(datetime(1997, 3, 17, tzinfo=zone).timestamp()), zone, known=True)
    assert [WEEK, WEEK - HOUR, WEEK] == np.diff(week_edges(clock, 3)).tolist()


def test_visits_are_counted():
    """Who came, who left and why, and who is there at the end."""
    visits = Visits()
    # User 4 is done by a job that it had left behind.
    for user, what in (
        (1, "there"), (2, "there"), (3, "arrived"), (1, "went away"), (1, "came back"), (2, "done"),
        (3, "gave up"), (4, "arrived"), (4, "went away"), (4, "done"),
    ):  # fmt: skip
        visits.note(len(visits.notes), user, Happening(what))
    found = accounts(ran((3 * WEEK, 0, 60)), visits)
    names = ("there", "arrived", "done", "gave_up", "went_away", "came_back", "went_on")
    assert [2, 2, 2, 1, 2, 1, 0] == [found[f"users_{name}"] for name in names]
    assert 1 == found["users_remaining"]
    text = "\n".join(account_lines(found))
    assert "2 at the beginning, 2 arrived, 2 left when done, 1 left unsatisfied for good" in text
    assert [] == account_lines({})


def test_an_empty_machine_is_told():
    """Who left it so, when, and what helps."""
    visits = Visits()
    visits.note(WEEK, 1, Happening.GAVE_UP)
    jobs = ran((0, 0, 60), (10, 0, 60))
    (note,) = accounts(jobs, visits, expected=2)["notes"]
    assert "0.0 jobs per week in the last 1 week, 2.0 expected with recorded waits" in note
    assert "1 user gave up and 0 went away, the last in week 2; a better machine" in note
    (note,) = accounts(jobs, expected=2)["notes"]
    assert note.endswith("few users are left; give more users or fewer weeks")
    assert [] == accounts(ran((0, 0, 60), (4 * WEEK - 60, 0, 60)), visits, expected=2)["notes"]
    with pytest.raises(QuantityError, match="no jobs submitted in 4 weeks"):
        accounts(JobTable())
    with pytest.raises(QuantityError, match="warm-up of 4 weeks: none of 4 weeks is left"):
        accounts(jobs, warmup=4)
