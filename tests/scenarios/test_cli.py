"""The command line: what is printed where, exit codes, one-line errors."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hpcrowd.analysis.metrics import METRICS, PER_USER
from hpcrowd.environment import read_swf
from hpcrowd.scenarios import replay
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.scenarios.terminal import simulation_progress

from tests.support.places import ROOT

#: Three users; job 4 waits for job 1, job 5 is larger than the machine, job 7 has no processors.
TRACE = """\
; Version: 2.2
; Computer: tiny
; UnixStartTime: 978307200
; TimeZoneString: Europe/Stockholm
; MaxProcs: 8
1    0  0 100 4 -1 -1 4  200 -1 1 1 1 1 1 1 -1 -1
2   10 90  50 8 -1 -1 8  100 -1 1 2 1 1 1 1 -1 -1
3   20  0  60 2 -1 -1 2   50 -1 1 3 1 1 1 1 -1 -1
4 4000  0  10 1 -1 -1 1   20 -1 1 1 1 1 1 1 -1 -1
5 4100  0  10 9 -1 -1 9   20 -1 1 2 1 1 1 1 -1 -1
6 9000  0  10 1 -1 -1 1   20 -1 1 2 1 1 1 1 -1 -1
7 9100  0  10 0 -1 -1 0   20 -1 1 2 1 1 1 1 -1 -1
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A tiny trace on disk."""
    path = tmp_path / "tiny.swf"
    path.write_text(TRACE)
    return path


def test_json_is_one_object_with_every_metric(call: Any, trace: Path) -> None:
    """--json prints one object on standard output: all metrics, per-user ones, configuration."""
    code, out, err = call("replay", trace, "--json", "--processors", "8")
    wire = json.loads(out)
    assert (0, 0) == (code, len([line for line in err.splitlines() if "Compiling" not in line]))
    assert [metric.name for metric in METRICS] == list(wire)[: len(METRICS)]
    assert set(PER_USER) == set(wire["per_user"])
    assert {"p10", "p50", "p90"} == set(wire["per_user"]["wait_mean_s"])
    assert {"no processors": 1} == wire["dropped"]
    assert 6 == wire["jobs_in"] == wire["jobs_completed"] + wire["jobs_rejected"]
    assert 1 == wire["jobs_rejected"] == wire["jobs_dropped"]
    assert "wall_s" not in wire


def test_json_is_the_same_at_every_run(call: Any, trace: Path) -> None:
    """The wire metrics hold nothing that changes from run to run."""
    first = call("replay", trace, "--json", "--seed", "3")
    assert first == call("replay", trace, "--json", "--seed", "3")


def test_summary_names_metrics_and_drops(call: Any, trace: Path) -> None:
    """The readable summary shows what was dropped and names the metrics."""
    code, out, _ = call("replay", trace)
    assert 0 == code
    assert "1 job dropped: no processors" in out
    for name in ("makespan_s", "wait_mean_s", "utilization", "lateness_mean_s"):
        assert name in out


def test_unknown_clock_is_said(call: Any, trace: Path) -> None:
    """Without a start time the summary says that the origin counts as a Monday."""
    trace.write_text("\n".join(line for line in TRACE.splitlines() if "Time" not in line) + "\n")
    assert "Monday 00:00" in call("replay", trace)[1]
    trace.write_text(TRACE)
    assert "Monday 00:00" not in call("replay", trace)[1]


def test_results_are_complete_and_can_be_replaced(call: Any, trace: Path, tmp_path: Path) -> None:
    """--out leaves every file of a run, and a second run may replace it."""
    out = tmp_path / "run"
    for _ in range(2):
        code, _, err = call("replay", trace, "--out", out)
        assert (0, True) == (code, str(out) in err)
    names = {path.name for path in out.iterdir()}
    assert {"jobs.parquet", "trace.swf.gz", "summary.json", "provenance.json"} <= names
    assert any(name.endswith(".png") for name in names)
    provenance = json.loads((out / "provenance.json").read_text())
    assert read_swf(trace).sha256 == provenance["trace"]["sha256"]
    assert {"prepare", "simulate"} <= set(provenance["wall_s"])
    assert set(ReplayConfig.settings()) <= set(provenance["configuration"])
    assert [] == [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


def test_results_do_not_replace_other_things(call: Any, trace: Path, tmp_path: Path) -> None:
    """A folder that hpcrowd did not write is left alone."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    code, _, err = call("replay", trace, "--out", tmp_path / "mine")
    assert (2, True) == (code, "choose another --out" in err)
    assert "dear" == (tmp_path / "mine" / "letter.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--users", "nobody"], ["users", "nobody", "think-time"]),
        (["--scheduler", "magic"], ["scheduler", "magic", "easy"]),
        (["--sessions", "arrival"], ["sessions", "arrival:60m"]),
        (["--processors", "0"], ["processors", "at least 1"]),
        (["--processors", "many"], ["processors", "many", "2x"]),
        (["--speed", "2"], ["speed", "2", "0.5x"]),
        (["--speed", "0x"], ["speed", "positive"]),
        (["--requested", "at-least"], ["requested", "at-least:2x"]),
        (["--requested", "tsafrir:30m"], ["requested", "tsafrir:30m", "3600 s"]),
        (["--job-processors", "some"], ["job_processors", "some", "allocated"]),
        (["--overrun", "stop"], ["overrun", "stop", "kill"]),
        (["--seed", "-1"], ["seed", "-1"]),
        (["--strict"], ["dropped", "no processors", "--strict"]),
    ],
)
def test_wrong_choices(call: Any, trace: Path, arguments: list[str], words: list[str]) -> None:
    """A wrong choice is one line on standard error with value and cure; exit code 2."""
    code, out, err = call("replay", trace, "--json", *arguments)
    assert (2, "") == (code, out)
    assert 1 == len(err.strip().splitlines())
    for word in words:
        assert word in err


def broken(kind: str, folder: Path) -> Path:
    """Make a file that is not a trace."""
    path = folder / f"{kind}.swf"
    whole = gzip.compress(TRACE.encode() * 50)
    contents = {
        "empty": b"",
        "prose": b"It was a dark and stormy night.\n",
        "binary": bytes(range(256)),
        "truncated": whole[: len(whole) // 2],
        "header": b"; Version: 2.2\n",
        "short": b"1 2 3\n",
    }
    if kind in contents:
        path.write_bytes(contents[kind])
    elif kind == "folder":
        path.mkdir()
    return path


@pytest.mark.parametrize("command", ["replay", "sessions"])
@pytest.mark.parametrize(
    "kind", ["missing", "empty", "prose", "binary", "truncated", "header", "short", "folder"]
)
def test_no_trace(call: Any, tmp_path: Path, command: str, kind: str) -> None:
    """A file that is not a trace gets one line that names it, and exit code 2."""
    path = broken(kind, tmp_path)
    code, out, err = call(command, path)
    assert (2, "") == (code, out)
    assert 1 == len(err.strip().splitlines())
    assert path.name in err


def test_sessions_counts(call: Any, trace: Path) -> None:
    """Sessions, batches and dependencies of the tiny trace; the job without processors counts."""
    code, out, _ = call("sessions", trace, "--json")
    stats = json.loads(out)
    assert 0 == code
    assert (7, 3, 6, 7) == tuple(stats[k] for k in ("jobs", "users", "sessions", "batches"))
    assert 3 == stats["dependencies"]
    assert 3 == stats["longest_path_sessions"]["max"]
    assert 1 == stats["arity"]["max"]


def test_sessions_of_one_user(call: Any, trace: Path, tmp_path: Path) -> None:
    """One user's graph as text for Graphviz and as a picture."""
    code, out, _ = call("sessions", trace, "--user", "1", "--dot", "-", "--png", tmp_path / "1.png")
    assert 0 == code
    assert out.startswith('digraph "user 1"')
    assert 1 == out.count("->")
    assert b"\x89PNG" == (tmp_path / "1.png").read_bytes()[:4]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--user", "99"],
        ["--dot", "-"],
        ["--user", "1", "--json", "--dot", "-"],
        ["--definition", "x"],
    ],
)
def test_sessions_wrong(call: Any, trace: Path, arguments: list[str]) -> None:
    """Wrong requests about sessions: one line, exit code 2."""
    if arguments[0] == "--definition":
        arguments = ["--sessions", "x"]
    code, out, err = call("sessions", trace, *arguments)
    assert (2, "") == (code, out)
    assert 1 == len(err.strip().splitlines())


def test_help_of_every_command(call: Any) -> None:
    """Every command explains itself, without loading the simulation."""
    for command in ([], ["replay"], ["sessions"], ["demo"], ["reproduce", "madon2024"]):
        code, out, _ = call(*command, "--help")
        assert (0, True) == (code, "Usage" in out)


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["--scheduler", "esay"], "easy"),
        (["--users", "think-tme"], "think-time"),
        (["--overrun", "kil"], "kill"),
        (["--scheduler", "ordr:by=submit"], "order"),
    ],
)
def test_a_wrong_value_suggests_the_nearest(
    call: Any, trace: Path, arguments: list[str], near: str
) -> None:
    """And lists all of them."""
    code, _, err = call("replay", trace, *arguments)
    assert 2 == code
    assert f"not known; did you mean {near}? choose " in err


def test_help_documents_every_choice(call: Any) -> None:
    """The help of replay has an option for every field of the configuration."""
    out = call("replay", "--help")[1]
    for name in ReplayConfig.settings():
        assert f"--{name.replace('_', '-')}" in out


def shell(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start the command line as its own process."""
    return subprocess.Popen(
        [sys.executable, "-m", "hpcrowd", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.slow
def test_interruption_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a long run: one line, exit code 130, no folder, whole or half."""
    lines = [
        f"{n} {n} 0 1000000 1 -1 -1 1 1000000 -1 1 {n % 7} 1 1 1 1 -1 -1" for n in range(1, 400_001)
    ]
    path = tmp_path / "long.swf"
    path.write_text("; MaxProcs: 1\n" + "\n".join(lines) + "\n")
    process = shell("replay", path, "--out", tmp_path / "out", "--sessions", "arrival:job")
    libraries = Path(f"/proc/{process.pid}/maps")
    for _ in range(300):  # a busy machine takes long to begin
        if not libraries.exists() or "llvmlite" in libraries.read_text():
            break
        time.sleep(0.1)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert 130 == process.returncode
    assert "interrupted" in err.strip().splitlines()[-1]
    assert ["long.swf"] == [entry.name for entry in tmp_path.iterdir()]


def test_closed_pipe_is_quiet(trace: Path) -> None:
    """A reader that goes away, as in ``| head``, is not an error of ours."""
    process = shell("replay", trace, "--json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)


@pytest.mark.slow
def test_cold_start_says_that_it_compiles(trace: Path, tmp_path: Path) -> None:
    """The first run on a machine shows that it compiles; the second has it in the cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = []
    for _ in range(2):
        _, err = shell("replay", trace, "--json", env=environment).communicate(timeout=120)
        said.append("Compiling" in err)
    assert [True, False] == said


class Terminal(io.StringIO):
    """Somewhere to print that calls itself a terminal."""

    def isatty(self) -> bool:
        """Say yes."""
        return True


def test_long_runs_show_progress(monkeypatch: pytest.MonkeyPatch, trace: Path) -> None:
    """On a terminal a long run shows a bar on standard error; a short one, or a file, nothing."""
    shown = []
    for stream, long in ((Terminal(), 0.0), (Terminal(), 1e9), (io.StringIO(), 0.0)):
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setattr("hpcrowd.scenarios.terminal.LONG", long)
        monkeypatch.setattr("hpcrowd.environment.simulation.SLICE", 1)
        with simulation_progress(6) as progress:
            replay(read_swf(trace), users="rigid", progress=progress)
        shown.append("simulating" in stream.getvalue())
    assert [True, False, False] == shown
