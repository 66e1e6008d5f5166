"""The scripts on an outage, a carbon window and fair policies: small stories, what they print."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import Recipe
from hpcrowd.analysis import Run
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.jobs import JobTable, State
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.traces.formats.swf import parse_swf, read_swf
from hpcrowd.environment.traces.trace import Trace, take_jobs
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.whatif import carbon_window, outage_week, policy_fairness, shorter_jobs
from hpcrowd.scenarios.whatif.scripts import ScriptTable

from tests.scenarios.sweeps.sweep_cases import write_busy

SCRIPTS = ("outage_week", "carbon_window", "policy_fairness", "shorter_jobs")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a busy log of 35 days."""
    return write_busy(tmp_path_factory.mktemp("scripts"), jobs=3000)


@pytest.fixture(scope="module")
def busy(log: Path) -> Trace:
    """Return the busy log."""
    return read_swf(log)


def module(name: str) -> ModuleType:
    """Return a script."""
    return importlib.import_module(f"hpcrowd.scenarios.whatif.{name}")


def finished(*jobs: tuple[int, int, int, int]) -> JobTable:
    """Return jobs that ran: submission, start, end, processors."""
    table = JobTable(len(jobs))
    for row, (submit, start, end, processors) in enumerate(jobs):
        table.submit[row], table.start[row], table.end[row] = submit, start, end
        table.processors[row] = processors
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
    queues = {users: int(outage_week.row(users, "", by_name["outage"], (begin, end))[5])
              for users, by_name in found.items()}  # fmt: skip
    assert queues["think-time"] < queues["rigid"]


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
    work = {
        int(user): int((run.jobs.processors * run.jobs.run_time)[run.jobs.user == user].sum())
        for user in np.unique(run.jobs.user)
    }
    ordered = [work[user] for users in groups.values() for user in users.tolist()]
    assert sorted(ordered) == ordered
    lines = policy_fairness.rows("rigid", {"easy": run, "again": run})
    assert 2 * 4 == len(lines)
    assert [("", "")] * 4 == [line[5:7] for line in lines[:4]]
    assert [("0", "0")] * 4 == [line[5:7] for line in lines[4:]]


def test_tasks_under_a_shorter_limit(busy: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at the limit, no long task is done; cut into pieces, all of them are."""
    monkeypatch.setattr(shorter_jobs, "LIMIT", HOUR // 2)
    busy = take_jobs(busy, np.arange(500))
    whole, *others = (
        replayed(busy, answer) for answer in ("no limit", "killed", "preferred", "at-once")
    )
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


def replayed(trace: Trace, answer: str) -> Run:
    """Return a run of rigid users with an answer to a shorter limit."""
    recipe = Recipe("recorded", reactions=shorter_jobs.reactions_of(answer))
    return replay(trace, users=recipe, requested="at-least:1x", overrun="kill")


def test_index_of_fairness() -> None:
    """All alike is 1; one of four users at full speed and three at a standstill is about 1/4."""
    assert 1.0 == pytest.approx(policy_fairness.fairness(np.array([3.0, 3.0, 3.0])))
    assert 0.25 == pytest.approx(policy_fairness.fairness(np.array([1, 1e9, 1e9, 1e9])))
    assert np.isnan(policy_fairness.fairness(np.zeros(0)))


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_prints_its_table(
    name: str, log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a trace, a script prints its table with every heading and returns 0."""
    monkeypatch.setattr(outage_week, "WEEK", 1)
    monkeypatch.setattr(shorter_jobs, "ANSWERS", ("no limit", "preferred"))
    script = module(name)
    assert 0 == script.main([str(log)])
    captured = capsys.readouterr()
    assert "" == captured.err
    assert "busy.swf" in captured.out
    words = [word for head in script.HEAD for word in head.split()]
    assert [] == [word for word in words if word not in captured.out]


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--help"]])
def test_script_says_how_to_call_it(
    name: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without exactly one trace, a script says how to call it in one line and returns 2."""
    assert 2 == module(name).main(arguments)
    assert f"usage: python -m hpcrowd.scenarios.whatif.{name} TRACE" in capsys.readouterr().err


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_tells_a_bad_trace(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace that is missing is reported in one line, exit code 2."""
    assert 2 == module(name).main(["missing.swf"])
    error = capsys.readouterr().err
    assert error.startswith(f"{name}: missing.swf")
    assert 1 == error.count("\n")


def test_short_trace_is_reported(capsys: Any, tmp_path: Path) -> None:
    """A log that ends before the outage is reported with what to change."""
    path = tmp_path / "short.swf"
    path.write_text("; MaxProcs: 4\n1 0 0 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert 2 == outage_week.main([str(path)])
    assert "short.swf: ends before the end of week 16, see WEEK" in capsys.readouterr().err
    assert 1 == len(parse_swf(path.read_text()))


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_is_an_example(name: str) -> None:
    """A script opens with a title, what it covers, its story and its call; it is short."""
    document = module(name).__doc__ or ""
    for words in ("Covers: ", "Story: ", f"python -m hpcrowd.scenarios.whatif.{name} TRACE"):
        assert words in document
    assert len(Path(module(name).__file__ or "").read_text().splitlines()) < 200


def test_table_keeps_words_left_and_numbers_right(capsys: pytest.CaptureFixture[str]) -> None:
    """Words stand to the left, numbers to the right; brackets are printed as they are."""
    ScriptTable("[red] title", ("who", "n"), [("ann", "7"), ("b", "1,000")], words=1).show()
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert "[red] title" in lines[0]
    assert " ann       7" in lines
    assert " b     1,000" in lines
