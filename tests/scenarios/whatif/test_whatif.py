"""The what-if scripts: one change, before and after, for both kinds of users."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.whatif.scripts import SHOWN, USERS, what_if

SCRIPTS = ("double_nodes", "halve_speed", "fcfs_instead_of_easy")


@pytest.fixture(scope="module")
def busy(make_trace: Callable[..., Trace]) -> Trace:
    """Return a log of 200 jobs by 5 users on 8 processors that are nearly always in use."""
    random = np.random.default_rng(3)
    jobs = []
    for submit in np.sort(random.integers(0, 200_000, 200)):
        run, processors = int(random.integers(60, 3_600)), int(random.integers(1, 8))
        jobs.append(
            {
                "submit": int(submit),
                "wait": int(random.integers(0, 600)),
                "run": run,
                "allocated_processors": processors,
                "requested_processors": processors,
                "requested_time": 3 * run,
                "status": 1,
                "user": int(random.integers(1, 6)),
            }
        )
    return make_trace(*jobs, header="; MaxProcs: 8")


@pytest.fixture(scope="module")
def busy_file(busy: Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the busy log."""
    path = tmp_path_factory.mktemp("whatif") / "busy.swf"
    write_swf(busy, path)
    return path


def test_comparison_runs_both_users_before_and_after(busy: Trace) -> None:
    """Doubling the nodes shortens the waits of both kinds of users; rigid ones are never late."""
    found = what_if(busy, {"processors": "2x"}, scheduler="easy")
    assert USERS == tuple(found.before) == tuple(found.after)
    assert (8, 16) == (found.before["rigid"].processors, found.after["rigid"].processors)
    rows = dict(found.rows())
    assert [line.title for line in SHOWN] == list(rows)
    rigid_before, rigid_after, before, after = rows["mean wait (h)"]
    assert rigid_after < rigid_before
    assert after < before
    assert [0, 0] == rows["mean lateness (days)"][:2]


def test_feedback_keeps_the_queue_bearable(busy: Trace) -> None:
    """On nodes of half the speed, users who wait for their jobs wait less than rigid ones."""
    halve_speed = importlib.import_module("hpcrowd.scenarios.whatif.halve_speed")
    rows = dict(what_if(busy, halve_speed.CHANGE).rows())
    _, rigid, _, thinking = rows["mean wait (h)"]
    assert thinking < rigid
    assert 0 < rows["mean lateness (days)"][3]


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_prints_a_table(
    name: str, busy_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a trace, a script prints one line per metric and returns 0."""
    script = importlib.import_module(f"hpcrowd.scenarios.whatif.{name}")
    assert 0 == script.main([str(busy_file)])
    captured = capsys.readouterr()
    assert "busy.swf" in captured.out
    assert all(line.title in captured.out for line in SHOWN)
    assert "" == captured.err


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("arguments", [[], ["a.swf", "b.swf"], ["--help"]])
def test_script_says_how_to_call_it(
    name: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without exactly one trace, a script says how to call it in one line and returns 2."""
    script = importlib.import_module(f"hpcrowd.scenarios.whatif.{name}")
    assert 2 == script.main(arguments)
    captured = capsys.readouterr()
    assert (
        f"usage: python -m hpcrowd.scenarios.whatif.{name} TRACE (in SWF, plain or gzipped)\n"
        == captured.err
    )
    assert "" == captured.out


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_tells_a_bad_trace(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace that is missing or no trace is reported in one line, exit code 2."""
    script = importlib.import_module(f"hpcrowd.scenarios.whatif.{name}")
    wrong = tmp_path / "wrong.swf"
    wrong.write_text("no jobs here\n")
    for path in (wrong, tmp_path / "missing.swf"):
        assert 2 == script.main([str(path)])
        error = capsys.readouterr().err
        assert error.startswith(f"{name}: {path}")
        assert 1 == error.count("\n")


@pytest.mark.slow
def test_script_runs_as_a_module(busy_file: Path, root: Path) -> None:
    """``python -m`` of a script works, and its exit code is the script's."""
    command = [sys.executable, "-W", "error", "-m", "hpcrowd.scenarios.whatif.double_nodes"]
    done = subprocess.run([*command, str(busy_file)], cwd=root, capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert 2 == done.returncode


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_is_an_example(name: str, root: Path) -> None:
    """A script is short and opens with a title, what it covers and its story."""
    text = (root / "scenarios" / "whatif" / f"{name}.py").read_text()
    assert len(text.splitlines()) < 60
    document = importlib.import_module(f"hpcrowd.scenarios.whatif.{name}").__doc__ or ""
    assert "Covers: " in document
    assert "Story: " in document
    assert f"python -m hpcrowd.scenarios.whatif.{name} TRACE" in document
