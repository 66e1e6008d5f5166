"""Streams, terminals and signals, for every command."""

import os
import shlex
import subprocess
import sys

import pytest
from hpcrowd.scenarios.cli import CommandFiles
from hpcrowd.scenarios.shell import NARROWEST

from tests.support.writing import FILES

COMMANDS = list(CommandFiles())

#: Work that prints tables, JSON or a trace.
WORKING = {
    "replay": "replay c.swf",
    "json": "replay c.swf --json",
    "stats": "stats c.swf",
    "clean": "clean c.swf --larger",
    "convert": "convert c.swf - --output-format swf",
    "sessions": "sessions c.swf --user 1",
    "dot": "sessions c.swf --user 1 --dot -",
    "sweep": "sweep study.toml --show",
    "compare": "compare c.swf c.swf",
}


def shell(line, **environment):
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


#: Streams that are closed or full, and kinds of terminals, with what the environment says of them.
#: All commands print help by the same means, so each tries every third.
ODD: list[tuple[str, dict[str, str]]] = [
    ("2>&-", {}), ("<&-", {}), ("2>/dev/full", {}),
    ("", {"COLUMNS": "0"}), ("", {"COLUMNS": "20"}), ("", {"COLUMNS": "wide"}),
    ("", {"COLUMNS": "-1"}), ("", {"TERM": "dumb"}), ("", {"PYTHONIOENCODING": "ascii"}),
    ("", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
]  # fmt: skip


@pytest.mark.endurance
@pytest.mark.parametrize("command", COMMANDS)
def test_help_on_streams_and_terminals_of_any_kind(command):
    """Full or closed standard output is one line and exit code 2; the other streams may be gone."""
    line = f"H {command} --help"
    for what, said in ((">/dev/full", "cannot be written: No space left"), (">&-", "is closed")):
        found = shell(f"{line} {what}")
        assert (2, 1) == (found.returncode, found.stderr.count("\n"))
        assert f"standard output: {said}" in found.stderr
    short = shell(f"{line} | head -1")
    assert (True, "") == (short.returncode in (0, 141), short.stderr)
    for what, more in ODD[COMMANDS.index(command) % 3 :: 3]:
        found = shell(f"{line} {what}", **more)
        assert (0, "", True) == (found.returncode, found.stderr, "--help" in found.stdout)


@pytest.mark.endurance
@pytest.mark.parametrize("command", WORKING)
def test_streams_while_it_works(tmp_path, command):
    """Real work prints the same with other streams closed or full, and ends in one line without."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    line = f"cd {shlex.quote(str(tmp_path))}; H {WORKING[command]}"
    usual = shell(line)
    assert (0, True) == (usual.returncode, bool(usual.stdout)), usual.stderr
    full = shell(f"{line} > /dev/full")
    assert (2, 1) == (full.returncode, full.stderr.count("hpcrowd: ")), full.stderr
    assert "standard output: cannot be written: No space left" in full.stderr
    closed = shell(f"{line} >&-")
    assert (2, "hpcrowd: standard output: is closed") == (closed.returncode, closed.stderr[:35])
    for what in ("2>&-", "<&-", "2>/dev/full", "2>&- <&-"):
        found = shell(f"{line} {what}")
        assert (0, usual.stdout) == (found.returncode, found.stdout), what
    for what in ("head -c 1", "true"):
        short = shell(f"{line} | {what}")
        assert (True, 0) == (short.returncode in (0, 141), short.stderr.count("rror")), short.stderr
    alone = shell(f"{line} >&- 2>&- <&-")
    assert (2, "", "") == (alone.returncode, alone.stdout, alone.stderr)
    words = {word for word in usual.stdout.split() if word.isalnum()}
    for columns in ("0", "20", "x"):
        found = shell(line, COLUMNS=columns, TERM="dumb")
        assert 0 == found.returncode
        assert columns == "20" or usual.stdout == found.stdout, columns
        kept = {word for word in words if word in "".join(found.stdout.split())}
        assert len(kept) > 0.8 * len(words), (columns, words - kept)


@pytest.mark.parametrize("columns", ["0", "1", "20", "x", "", "99999999999999999999"])
def test_tables_can_be_read(call, monkeypatch, columns):
    """A terminal that is too narrow, or garbage instead of its width, gives readable tables."""
    with monkeypatch.context() as patched:  # the runner of tests asks how wide it is, too
        patched.setenv("COLUMNS", columns)
        code, out, _ = call("policies")
        assert columns == os.environ["COLUMNS"]
    assert (0, True) == (code, "conservative" in out)
    assert max(map(len, out.splitlines())) >= NARROWEST - 2


#: A program that writes a file, and is ended by a signal while it writes another.
PROGRAM = """
import sys, os, signal, hpcrowd.scenarios.cli as cli
from hpcrowd.environment.output.whole import whole_file
def app(**_):
    for name in sys.argv[2:]:
        with whole_file(name) as t: t.write_text('whole')
    with whole_file('x') as t:
        t.write_text('half')
        os.kill(os.getpid(), int(sys.argv[1]))
        signal.pause()
cli._program = lambda: app
from hpcrowd.__main__ import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("written", [[], ["first"]], ids=["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 15])
def test_signals_clean_up(tmp_path, number, written):
    """SIGTERM and SIGHUP leave no temporary file, and give the exit code of the signal."""
    line = [sys.executable, "-c", PROGRAM, str(number), *written]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (128 + number, 1) == (done.returncode, done.stderr.count("\n")), done.stderr
    assert ("first" if written else "nothing was written") in done.stderr
    assert written == [path.name for path in tmp_path.iterdir()]
