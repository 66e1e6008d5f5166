"""What all scripts have in common: what they print, how they are called, how they are explained."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hpcrowd.environment.traces.formats.swf import read_swf
from hpcrowd.scenarios.whatif import halve_speed, outage_week, shorter_jobs
from hpcrowd.scenarios.whatif.machine import made_up
from hpcrowd.scenarios.whatif.scripts import SHOWN, USERS, ScriptTable, what_if

from tests.scenarios.sweeps.sweep_cases import write_busy

#: Scripts with the most lines that they may have.
CHANGES = dict.fromkeys(("double_nodes", "halve_speed", "fcfs_instead_of_easy"), 60)
TABLES = dict.fromkeys(("outage_week", "carbon_window", "policy_fairness", "shorter_jobs"), 200)
MACHINES = dict.fromkeys(
    ("gpu_partition", "node_sharing", "fair_share_weight", "debug_partition", "drain_rack",
     "jobs_per_user", "scavenger"), 80,
)  # fmt: skip
SCRIPTS = CHANGES | TABLES | {f"machine.{name}": most for name, most in MACHINES.items()}
ON_TRACES = [*CHANGES, *TABLES]


def script(name: str) -> ModuleType:
    """Return a script."""
    return importlib.import_module(f"hpcrowd.scenarios.whatif.{name}")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a busy log of 14 days."""
    return write_busy(tmp_path_factory.mktemp("scripts"), jobs=1200)


def test_comparison_runs_both_users_before_and_after(log: Path) -> None:
    """Doubling the nodes shortens the waits of both kinds of users; rigid ones are never late."""
    found = what_if(read_swf(log), {"processors": "2x"}, scheduler="easy")
    assert USERS == tuple(found.before) == tuple(found.after)
    assert (8, 16) == (found.before["rigid"].processors, found.after["rigid"].processors)
    rows = dict(found.rows())
    assert [line.title for line in SHOWN] == list(rows)
    rigid_before, rigid_after, before, after = rows["mean wait (h)"]
    assert rigid_after < rigid_before
    assert after < before
    assert [0, 0] == rows["mean lateness (days)"][:2]


def test_feedback_keeps_the_queue_bearable(log: Path) -> None:
    """On nodes of half the speed, users who wait for their jobs wait less than rigid ones."""
    rows = dict(what_if(read_swf(log), halve_speed.CHANGE).rows())
    _, rigid, _, thinking = rows["mean wait (h)"]
    assert thinking < rigid
    assert 0 < rows["mean lateness (days)"][3]


@pytest.mark.parametrize("name", ON_TRACES)
def test_script_prints_its_table(
    name: str, log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a trace, a script prints its table with every heading or metric and returns 0."""
    monkeypatch.setattr(outage_week, "WEEK", 0)
    monkeypatch.setattr(shorter_jobs, "ANSWERS", ("no limit", "preferred"))
    assert 0 == script(name).main([str(log)])
    captured = capsys.readouterr()
    assert "" == captured.err
    heads = [line.title for line in SHOWN] if name in CHANGES else script(name).HEAD
    words = ["busy.swf", *(word for head in heads for word in head.split())]
    assert [] == [word for word in words if word not in captured.out]


@pytest.mark.parametrize("arguments", [["a"], ["a", "b", "c"], ["--help"]])
@pytest.mark.parametrize("name", SCRIPTS)
def test_script_says_how_to_call_it(
    name: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """With other arguments than it takes, a script says how to call it in one line; code 2."""
    if name in ON_TRACES and arguments == ["a"]:
        arguments = []
    assert 2 == script(name).main(arguments)
    out, error = capsys.readouterr()
    takes = "TRACE (in SWF" if name in ON_TRACES else "[LOG MACHINE]"
    assert error.startswith(f"usage: python -m hpcrowd.scenarios.whatif.{name} {takes}")
    assert ("", 1) == (out, error.count("\n"))


@pytest.mark.parametrize("name", [*ON_TRACES, "machine.scavenger"])
def test_script_tells_a_bad_trace(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace that is missing or no trace is reported in one line, exit code 2."""
    wrong = tmp_path / "wrong.swf"
    wrong.write_text("no jobs here\n")
    for path in (wrong, tmp_path / "missing.swf"):
        assert 2 == script(name).main([str(path), *(["m.toml"] if name not in ON_TRACES else [])])
        error = capsys.readouterr().err
        assert error.startswith(f"{name.removeprefix('machine.')}: {path}")
        assert 1 == error.count("\n")


def test_short_trace_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A log that ends before the outage is reported with what to change."""
    path = tmp_path / "short.swf"
    path.write_text("; MaxProcs: 4\n1 0 0 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert 2 == outage_week.main([str(path)])
    assert "short.swf: ends before the end of week 16, see WEEK" in capsys.readouterr().err


@pytest.mark.slow
def test_scripts_run_as_programs(log: Path, root: Path, tmp_path: Path) -> None:
    """``python -m`` of a script works, by its path too, and its exit code is the script's."""

    def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-W", "error", *map(str, command)]
        return subprocess.run(line, cwd=root, capture_output=True, text=True, check=False)

    whatif = "hpcrowd.scenarios.whatif.double_nodes"
    done = run("-m", whatif, log)
    assert (0, "", 2) == (done.returncode, done.stderr, run("-m", whatif).returncode)
    made_up.main([str(tmp_path / "site")])
    path = root / "scenarios" / "whatif" / "machine" / "jobs_per_user.py"
    machine = f"{tmp_path / 'site' / 'machine.toml'}:scheduling.bf-interval=1200"
    done = run(path, tmp_path / "site" / "jobs.txt", machine)
    assert (0, "") == (done.returncode, done.stderr)
    assert "At most 4 running jobs of a user: jobs.txt" in done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_is_an_example(name: str) -> None:
    """A script opens with a title, what it covers, its story and its call; it is short."""
    document = script(name).__doc__ or ""
    for words in ("Covers: ", "Story: ", f"python -m hpcrowd.scenarios.whatif.{name} "):
        assert words in document
    assert len(Path(script(name).__file__ or "").read_text().splitlines()) < SCRIPTS[name]


def test_table_keeps_words_left_and_numbers_right(capsys: pytest.CaptureFixture[str]) -> None:
    """Words stand to the left, numbers to the right; brackets are printed as they are."""
    ScriptTable("[red] title", ("who", "n"), [("ann", "7"), ("b", "1,000")], words=1).show()
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert "[red] title" in lines[0]
    assert " ann       7" in lines
    assert " b     1,000" in lines
