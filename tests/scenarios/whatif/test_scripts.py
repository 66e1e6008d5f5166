"""What-if scripts: what all have in common, and small stories of those that print a table."""

import importlib

import numpy as np
import pytest
from hpcrowd import JobTable, Recipe, State, read_swf, replay
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.traces.trace import take_jobs
from hpcrowd.power import Signal
from hpcrowd.scenarios.whatif import (
    carbon_window,
    outage_week,
    policy_fairness,
    shorter_jobs,
)
from hpcrowd.scenarios.whatif.change import groups_of
from hpcrowd.scenarios.whatif.scripts import script as whatif_script

from tests.scenarios.sweeps.sweep_cases import write_busy

ON_TRACES = ("outage_week", "carbon_window", "policy_fairness", "shorter_jobs")
MACHINES = (
    "gpu_partition", "node_sharing", "fair_share_weight", "debug_partition", "drain_rack",
    "jobs_per_user", "scavenger",
)  # fmt: skip
SCRIPTS = [*ON_TRACES, *(f"machine.{name}" for name in MACHINES)]


def script(name):
    """Return a script."""
    return importlib.import_module(f"hpcrowd.scenarios.whatif.{name}")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Return the path of a busy log of 35 days."""
    return write_busy(tmp_path_factory.mktemp("scripts"), jobs=3000)


@pytest.fixture(scope="module")
def busy(log):
    """Return that log."""
    return read_swf(log)


@pytest.mark.parametrize("name", ON_TRACES)
def test_script_prints_its_table(name, log, capsys, monkeypatch):
    """With a trace, a script prints its table with every heading or metric and returns 0."""
    monkeypatch.setattr(outage_week, "WEEK", 0)
    monkeypatch.setattr(shorter_jobs, "ANSWERS", ("no limit", "preferred"))
    assert 0 == script(name).main([str(log)])
    captured = capsys.readouterr()
    assert "" == captured.err
    words = ["busy.swf", *(word for head in script(name).HEAD for word in head.split())]
    assert [] == [word for word in words if word not in captured.out]


@pytest.mark.parametrize("name", SCRIPTS)
def test_mistakes_are_one_line(name, tmp_path, capsys):
    """How to call a script, and which trace is missing, none, or too short; exit code 2."""
    on_traces = name in ON_TRACES
    takes = "TRACE (in SWF" if on_traces else "[LOG MACHINE]"
    for arguments in ([] if on_traces else ["a"], ["a", "b", "c"], ["--help"]):
        assert 2 == script(name).main(arguments)
        out, error = capsys.readouterr()
        assert error.startswith(f"usage: python -m hpcrowd.scenarios.whatif.{name} {takes}")
        assert ("", 1) == (out, error.count("\n"))
    (tmp_path / "wrong.swf").write_text("no jobs here\n")
    (tmp_path / "short.swf").write_text(f"; MaxProcs: 4\n{'1 0 0 60 1' + ' -1' * 13}\n")
    rule = "short.swf: ends before the end of week 16, see WEEK" if name == "outage_week" else ""
    for path in ("wrong.swf", "missing.swf", *(["short.swf"] if rule else [])):
        arguments = [str(tmp_path / path), *([] if on_traces else ["m.toml"])]
        assert 2 == script(name).main(arguments)
        error = capsys.readouterr().err
        assert error.startswith(f"{name.removeprefix('machine.')}: ")
        assert path in error
        assert 1 == error.count("\n")
    assert rule in error


def test_your_own_script_says_how_it_is_run(capsys, monkeypatch):
    """Its own file, not a module that does not exist."""
    monkeypatch.setattr("sys.argv", ["scripts/more_nodes.py"])
    assert 2 == whatif_script("more_nodes", lambda trace: [])([])
    assert "usage: python more_nodes.py TRACE (" in capsys.readouterr().err


@pytest.mark.parametrize("zone", [Clock(), Clock(1704870000)])
def test_outage_is_a_week_from_a_monday_morning(zone):
    """The outage begins on a Monday at 8:00 local time, and has ended seven days later."""
    begin, end = outage_week.outage_of(zone)
    assert (0, 8) == (zone.local(begin).weekday(), zone.local(begin).hour)
    assert 7 * DAY == end - begin


def test_nothing_ends_in_the_outage(busy, monkeypatch):
    """In the week no job starts or ends; work is lost; rigid users submit what they had to."""
    monkeypatch.setattr(outage_week, "WEEK", 2)
    monkeypatch.setattr(outage_week, "USERS", ("rigid", "think-time"))
    begin, end = outage_week.outage_of(Clock.of(busy.header))
    found = outage_week.runs(busy, (begin, end))
    for users, by_name in found.items():
        jobs = by_name["outage"].jobs
        assert not ((jobs.start >= begin) & (jobs.start < end)).any()
        assert not ((jobs.end > begin) & (jobs.end < end)).any()
        assert 0 < by_name["outage"].parts["platform"].account["home"]["lost_processor_s"]
        lines = [outage_week.row(users, name, run, (begin, end)) for name, run in by_name.items()]
        assert ("0", "0") == (lines[0][7], lines[1][3])
        assert (lines[0][2] == lines[1][2]) == (users == "rigid")
    rigid, thinking = (
        int(outage_week.row(users, "", found[users]["outage"], (begin, end))[5])
        for users in ("rigid", "think-time")
    )
    assert thinking < rigid


def test_queue_and_fairness():
    """A job that starts at once is never in the queue; fairness is 1 if all are alike."""
    jobs = JobTable()
    jobs.append(3, submit=[0, 2, 3], start=[0, 5, 5], end=9, processors=1, state=State.COMPLETED)
    times, level = outage_week.queue(jobs)
    assert [(0, 0), (2, 1), (3, 2), (5, 0)] == list(zip(times, level, strict=True))
    assert 1.0 == pytest.approx(policy_fairness.fairness(np.array([3.0, 3.0, 3.0])))
    assert 0.25 == pytest.approx(policy_fairness.fairness(np.array([1, 1e9, 1e9, 1e9])))
    assert np.isnan(policy_fairness.fairness(np.zeros(0)))


def test_carbon_is_that_of_the_hours_in_which_jobs_run(make_trace, busy):
    """Carbon is that of the hours in which processors are used; the signal is of the local day."""
    signal = Signal(np.array([0, HOUR, 2 * HOUR]), np.array([100.0, 400.0, 7.0]))
    job = {"submit": HOUR // 2, "run": 3 * HOUR // 2, "requested_processors": 2, "user": 1}
    trace = make_trace({**job, "wait": 0, "status": 1}, header="; MaxProcs: 4\n")
    run = carbon_window.runs(trace, signal)["rigid"][0.0]
    grams, each = carbon_window.carbon(run)
    assert 2 * 10 / 1000 * (0.5 * 100 + 1 * 400) == pytest.approx(grams)
    assert grams / 3 == pytest.approx(each)
    clock = Clock(1704870000 + 1800)
    signal = carbon_window.signal_of(busy, clock)
    for second in (0, 5 * HOUR, 9 * DAY + 123):
        place = int(np.searchsorted(signal.times, second, side="right")) - 1
        assert carbon_window.INTENSITY[clock.local(second).hour] == signal.values[place]


def test_who_takes_part_submits_in_the_window(busy):
    """When all users take part no job is submitted while carbon is high, and carbon is saved."""
    table = carbon_window.table(busy)
    assert len(carbon_window.USERS) * len(carbon_window.SHARES) == len(table.rows)
    for first, _, last in (table.rows[:3], table.rows[3:]):
        assert ("0.0", "0", "100.0") == (first[4], first[5], last[6])
        assert float(last[4]) > 0
        assert float(last[2]) < float(first[2])


def test_users_are_grouped_by_work_and_paired_with_themselves(busy):
    """Groups have as many users each, rising in work; under the old policy nobody is changed."""
    run = replay(busy, users="rigid")
    groups = groups_of(run.jobs)
    assert [2, 2, 2] == [len(users) for users in groups.values()]
    work = np.bincount(run.jobs.user, run.jobs.processors * run.jobs.run_time)
    assert (np.diff(work[np.concatenate(list(groups.values()))]) >= 0).all()
    lines = policy_fairness.rows("rigid", {"easy": run, "again": run})
    assert 2 * 4 == len(lines)
    assert [("", "")] * 4 == [line[5:7] for line in lines[:4]]
    assert [("0", "0")] * 4 == [line[5:7] for line in lines[4:]]


def test_tasks_under_a_shorter_limit(busy, monkeypatch):
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
