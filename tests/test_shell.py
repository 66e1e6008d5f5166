"""Streams, terminals and signals, for every command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hpcrowd.environment.output.whole import whole_file
from hpcrowd.scenarios.cli import CommandFiles
from hpcrowd.scenarios.shell import NARROWEST

Call = Callable[..., tuple[int, str, str]]

COMMANDS = list(CommandFiles())


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell, where H is the program."""
    program = f"{sys.executable} -m hpcrowd"
    return subprocess.run(
        ["bash", "-c", f'set -o pipefail; H() {{ {program} "$@"; }}; {line}'],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | environment,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_streams_that_cannot_be_used(command: str) -> None:
    """Full or closed standard output is one line and exit code 2; the other streams may be gone."""
    full = shell(f"H {command} --help > /dev/full")
    assert (2, 1) == (full.returncode, full.stderr.count("\n"))
    assert "standard output: cannot be written: No space left" in full.stderr
    closed = shell(f"H {command} --help >&-")
    assert (2, 1) == (closed.returncode, closed.stderr.count("\n"))
    assert "standard output: is closed" in closed.stderr
    for what in ("2>&-", "<&-", "2>/dev/full"):
        found = shell(f"H {command} --help {what}")
        assert (0, "", True) == (found.returncode, found.stderr, "--help" in found.stdout)
    short = shell(f"H {command} --help | head -1")
    assert (True, "") == (short.returncode in (0, 141), short.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_terminals_of_any_kind(command: str) -> None:
    """Any width and encoding shows help that can be read."""
    for more in ({"COLUMNS": "0"}, {"COLUMNS": "20"}, {"COLUMNS": "wide"}, {"COLUMNS": "-1"},
                 {"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"},
                 {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):  # fmt: skip
        found = shell(f"H {command} --help", **more)
        assert (0, "", True) == (found.returncode, found.stderr, "--help" in found.stdout), more


@pytest.mark.parametrize("columns", ["0", "1", "20", "x", "", "99999999999999999999"])
def test_tables_can_be_read(call: Call, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    """A terminal that is too narrow, or garbage instead of its width, gives readable tables."""
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = call("policies")
    assert (0, True) == (code, "conservative" in out)
    assert columns == os.environ["COLUMNS"]
    assert max(map(len, out.splitlines())) >= NARROWEST - 2


def test_signals_clean_up(tmp_path: Path) -> None:
    """SIGTERM and SIGHUP leave no temporary file, and give the exit code of the signal."""
    program = (
        "import sys, os, signal, hpcrowd.scenarios.cli as cli\n"
        "from pathlib import Path\n"
        "from hpcrowd.environment.output.whole import whole_file\n"
        "def app(**_):\n"
        "    if sys.argv[2] == 'after':\n"
        "        with whole_file('first') as t: t.write_text('whole')\n"
        "    with whole_file('x') as t:\n"
        "        t.write_text('half')\n"
        "        os.kill(os.getpid(), int(sys.argv[1]))\n"
        "        signal.pause()\n"
        "cli.app = app\n"
        "from hpcrowd.__main__ import main\n"
        "main()\n"
    )
    for number in (1, 2, 15):
        for when, said in (("before", "nothing was written"), ("after", "first")):
            done = subprocess.run(
                [sys.executable, "-c", program, str(number), when],
                cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            assert (128 + number, 1) == (done.returncode, done.stderr.count("\n")), done.stderr
            assert said in done.stderr
            assert (["first"] if when == "after" else []) == [
                path.name for path in tmp_path.iterdir()
            ]
            (tmp_path / "first").unlink(missing_ok=True)


def test_an_interrupted_file_is_not_called_written(tmp_path: Path) -> None:
    """A file that could not take its place is absent, and its temporary file is removed."""

    def write() -> None:
        with whole_file(tmp_path / "x") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert [] == [path.name for path in tmp_path.iterdir()]
