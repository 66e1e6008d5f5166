"""Streams, terminals and signals, for every command."""

import os
import shlex
import subprocess
import sys

import pytest
from hpcrowd.scenarios.terminal import NARROWEST

from tests.support.writing import FILES

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
    "help": "replay --help",
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
    for more in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}):
        assert 0 == shell(line, PYTHONCOERCECLOCALE="0", **more).returncode


@pytest.mark.parametrize("columns", ["0", "1", "20", "x", "", "99999999999999999999"])
def test_tables_can_be_read(call, monkeypatch, columns):
    """A terminal that is too narrow, or garbage instead of its width, gives readable tables."""
    with monkeypatch.context() as patched:  # the runner of tests asks how wide it is, too
        patched.setenv("COLUMNS", columns)
        code, out, _ = call("policies")
        assert columns == os.environ["COLUMNS"]
    assert (0, True) == (code, "conservative" in out)
    assert max(map(len, out.splitlines())) >= NARROWEST - 2
