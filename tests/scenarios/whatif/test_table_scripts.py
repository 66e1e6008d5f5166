"""The scripts on an outage, a carbon window, fair policies and shorter jobs: small stories."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.agents import Recipe
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.jobs import JobTable, State
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.traces.formats.swf import read_swf
from hpcrowd.environment.traces.trace import Trace, take_jobs
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.whatif import carbon_window, outage_week, policy_fairness, shorter_jobs

from tests.scenarios.sweeps.sweep_cases import write_busy


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return a busy log of 35 days."""
    return read_swf(write_busy(tmp_path_factory.mktemp("scripts"), jobs=3000))


def finished(*jobs: tuple[int, int, int, int]) -> JobTable:
    """Return jobs that ran: submission, start, end, processors."""
    table = JobTable(len(jobs))
    table.submit[:], table.start[:], table.end[:], table.processors[:] = np.array(jobs).T
    table.state[:] = State.COMPLETED
    return table


@pytest.mark.parametrize("zone", [Clock(), Clock(1704870000)])
def test_outage_is_a_week_from_a_monday_morning(zone: Clock) -> None:
    """The outage begins on a Monday at 8:00 local time, and has ended seven days later."""
    begin, end = outage_week.outage_of(zone)
    assert (0, 8) == (zone.local(begin).weekday(), zone.local(begin).hour)
    assert 7 * DAY == end - begin


def test_nothing_ends_in_the_outage(busy: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the week no job starts or ends; work is lost; rigid users submit what they had to."""
    monkeypatch.setattr(outage_week, "WEEK", 2)
    monkeypatch.setattr(outage_week, "USERS", ("rigid", "think-time"))
    begin, end = outage_week.outage_of(Clock.of(busy.header))
    found = outage_week.runs(busy, (begin, end))
    for users, by_name in found.items():
        jobs = by_name["outage"].jobs
        assert not ((jobs.start >= begin) & (jobs.start < end)).any()
        assert not ((jobs.end > begin) & (jobs.end < end)).any()
        assert 0 < by_name["outage"].platform["home"]["lost_processor_s"]
        lines = [outage_week.row(users, name, run, (begin, end)) for name, run in by_name.items()]
        assert ("0", "0") == (lines[0][7], lines[1][3])
        assert (lines[0][2] == lines[1][2]) == (users == "rigid")
    rigid, thinking = (
        int(outage_week.row(users, "", found[users]["outage"], (begin, end))[5])
        for users in ("rigid", "think-time")
    )
    assert thinking < rigid


def test_queue_changes_where_jobs_come_and_start() -> None:
    """A job that starts at once is never in the queue; the others are until they start."""
    times, level = outage_week.queue(finished((0, 0, 9, 1), (2, 5, 9, 1), (3, 5, 9, 1)))
    assert [(0, 0), (2, 1), (3, 2), (5, 0)] == list(zip(times, level, strict=True))


def test_carbon_is_that_of_the_hours_in_which_jobs_run(make_trace: Callable[..., Trace]) -> None:
    """Two processors for half an hour at 100 and one hour at 400 g/kWh, 10 W each."""
    signal = Signal(np.array([0, HOUR, 2 * HOUR]), np.array([100.0, 400.0, 7.0]))
    job = {"submit": HOUR // 2, "run": 3 * HOUR // 2, "requested_processors": 2, "user": 1}
    trace = make_trace({**job, "wait": 0, "status": 1}, header="; MaxProcs: 4\n")
    run = carbon_window.runs(trace, signal)["rigid"][0.0]
    grams, each = carbon_window.carbon(run)
    assert 2 * 10 / 1000 * (0.5 * 100 + 1 * 400) == pytest.approx(grams)
    assert grams / 3 == pytest.approx(each)


def test_signal_follows_the_local_day(busy: Trace) -> None:
    """The value at an hour of the day is that of the list, whenever and wherever the log begins."""
    clock = Clock(1704870000 + 1800)
    signal = carbon_window.signal_of(busy, clock)
    for second in (0, 5 * HOUR, 9 * DAY + 123):
        place = int(np.searchsorted(signal.times, second, side="right")) - 1
        assert carbon_window.INTENSITY[clock.local(second).hour] == signal.values[place]


def test_who_takes_part_submits_in_the_window(busy: Trace) -> None:
    """When all users take part no job is submitted while carbon is high, and carbon is saved."""
    table = carbon_window.table(busy)
    assert len(carbon_window.USERS) * len(carbon_window.SHARES) == len(table.rows)
    for first, _, last in (table.rows[:3], table.rows[3:]):
        assert ("0.0", "0", "100.0") == (first[4], first[5], last[6])
        assert float(last[4]) > 0
        assert float(last[2]) < float(first[2])


def test_users_are_grouped_by_work_and_paired_with_themselves(busy: Trace) -> None:
    """Groups have as many users each, rising in work; under the old policy nobody is changed."""
    run = replay(busy, users="rigid")
    groups = policy_fairness.groups_of(run)
    assert [2, 2, 2] == [len(users) for users in groups.values()]
    work = np.bincount(run.jobs.user, run.jobs.processors * run.jobs.run_time)
    assert (np.diff(work[np.concatenate(list(groups.values()))]) >= 0).all()
    lines = policy_fairness.rows("rigid", {"easy": run, "again": run})
    assert 2 * 4 == len(lines)
    assert [("", "")] * 4 == [line[5:7] for line in lines[:4]]
    assert [("0", "0")] * 4 == [line[5:7] for line in lines[4:]]


def test_tasks_under_a_shorter_limit(busy: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at the limit, no long task is done; cut into pieces, all of them are."""
    monkeypatch.setattr(shorter_jobs, "LIMIT", HOUR // 2)
    busy = take_jobs(busy, np.arange(500))
    whole, *others = (
        replay(busy, users=Recipe("recorded", reactions=shorter_jobs.reactions_of(answer)),
               requested="at-least:1x", overrun="kill")
        for answer in ("no limit", "killed", "preferred", "at-once")
    )  # fmt: skip
    lines = [shorter_jobs.row("rigid", "", run, whole) for run in (whole, *others)]
    assert ["100", "0", "100", "100"] == [line[8] for line in lines]
    assert ["0.0", "0.0", "0.0"] == [line[3] for line in (lines[0], *lines[2:])]
    assert float(lines[1][3]) > 0
    submit, end, work = shorter_jobs.tasks_of(others[1])
    assert len(whole.jobs) == len(submit) < len(others[1].jobs)
    long = whole.jobs.run_time > shorter_jobs.LIMIT
    assert (work >= whole.jobs.processors * whole.jobs.run_time).all()
    assert ((end - submit)[long] > shorter_jobs.LIMIT).all()
    assert others[1].jobs.run_time.max() <= shorter_jobs.LIMIT


def test_index_of_fairness() -> None:
    """All alike is 1; one of four users at full speed and three at a standstill is about 1/4."""
    assert 1.0 == pytest.approx(policy_fairness.fairness(np.array([3.0, 3.0, 3.0])))
    assert 0.25 == pytest.approx(policy_fairness.fairness(np.array([1, 1e9, 1e9, 1e9])))
    assert np.isnan(policy_fairness.fairness(np.zeros(0)))
