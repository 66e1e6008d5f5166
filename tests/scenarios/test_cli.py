"""The command line: what is printed where, exit codes, one-line errors."""

import io
import json
import re
import signal

import pytest
from hpcrowd import ReplayConfig, read_results, read_swf, replay
from hpcrowd.analysis.metrics import METRICS, PER_USER
from hpcrowd.environment.simulation import Simulation
from hpcrowd.scenarios.terminal import simulation_progress

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
def trace(tmp_path):
    """A tiny trace on disk."""
    path = tmp_path / "tiny.swf"
    path.write_text(TRACE)
    return path


def test_json_is_one_object_with_every_metric(call, trace):
    """--json prints all metrics, per-user ones and configuration, the same at every run."""
    command = ("replay", trace, "--json", "--processors", "8")
    code, out, err = call(*command)
    wire = json.loads(out)
    assert (0, "") == (code, err)
    assert [metric.name for metric in METRICS] == list(wire)[: len(METRICS)]
    assert set(PER_USER) == set(wire["per_user"])
    assert {"p10", "p50", "p90"} == set(wire["per_user"]["wait_mean_s"])
    assert {"no processors": 1} == wire["dropped"]
    assert 6 == wire["jobs_in"] == wire["jobs_completed"] + wire["jobs_rejected"]
    assert 1 == wire["jobs_rejected"] == wire["jobs_dropped"]
    assert "wall_s" not in wire
    assert (code, out, err) == call(*command)


def test_summary_names_metrics_and_drops(call, trace):
    """The readable summary shows what was dropped and assumed, and names the metrics."""
    code, out, _ = call("replay", trace)
    assert 0 == code
    words = ("1 job dropped: no processors", "makespan  ", "mean wait  ", "utilization")
    assert [] == [word for word in words if word not in out]
    assert "Monday 00:00" not in out
    trace.write_text("\n".join(line for line in TRACE.splitlines() if "Time" not in line) + "\n")
    assert "Monday 00:00" in call("replay", trace)[1]


@pytest.mark.parametrize(
    ("size", "more", "words"),
    [
        ("MaxProcs: 8", ("--processors", "0.1x"), "the smallest asks for 2 processors of 1; check"),
        ("MaxProcs: 1 (of 8)", (), "all 4 jobs rejected: the smallest asks for 2 processors of 1"),
        ("MaxProcs: 1 x 8", (), "line 5, MaxProcs: '1 x 8' is not a whole number such as 1024"),
        ("MaxProcs: 1,024", (), "4 jobs on 1,024 processors"),
    ],
)
def test_a_machine_on_which_nothing_fits_is_explained(call, trace, size, more, words):
    """When every job is rejected a line says why, also in results; a size is read whole or not."""
    lines = [
        line.replace("MaxProcs: 8", size) for line in TRACE.splitlines() if line[:1] not in "46"
    ]
    trace.write_text("\n".join(lines) + "\n")
    out = trace.parent / "run"
    assert words in call("replay", trace, *more, "--users", "rigid", "--out", out)[1]
    summary = json.loads((out / "summary.json").read_text())
    assert 1 == summary["jobs_dropped"]  # job 7; a line of the header is no job
    remarks = summary.get("remarks", [])
    assert ("all 4 jobs rejected" in words or bool(more)) == bool(remarks)
    assert remarks == [*read_results(out).remarks]


def test_statistics_say_what_was_repaired(call, trace):
    """Measures of a log whose submissions are Unix times say so."""
    text = TRACE.replace("978307200", "1641031200").replace("  0  0 100", "  1641031200  0 100")
    lines = [line for line in text.splitlines() if line[:1] in ";1"]
    trace.write_text("\n".join(lines) + "\n")
    note = "1 job repaired: submit is a Unix time: counted from the first one"
    assert note in call("stats", trace)[1]


def test_results_are_complete_and_can_be_replaced(call, trace, tmp_path):
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
    assert {"run", trace.name} == {path.name for path in tmp_path.iterdir()}


def test_sessions(call, trace, tmp_path):
    """Sessions, batches and dependencies of the trace; one user's graph as text and picture."""
    code, out, _ = call("sessions", trace, "--json")
    stats = json.loads(out)
    found = tuple(stats[k] for k in ("jobs", "users", "sessions", "batches", "dependencies"))
    assert (0, (7, 3, 6, 7, 3)) == (code, found)
    assert (3, 1) == (stats["longest_path_sessions"]["max"], stats["arity"]["max"])
    code, out, _ = call("sessions", trace, "--user", "1", "--dot", "-", "--png", tmp_path / "1.png")
    assert (0, 1) == (code, out.count("->"))
    assert out.startswith('digraph "user 1"')
    assert b"\x89PNG" == (tmp_path / "1.png").read_bytes()[:4]


def test_an_interrupt_is_one_line(call, trace, monkeypatch):
    """Ctrl-C ends a run with exit code 130, and nothing is written."""
    monkeypatch.setattr(Simulation, "run", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    assert (130, "hpcrowd: interrupted; nothing was written\n") == call("replay", trace)[::2]


class Terminal(io.StringIO):
    """Somewhere to print that calls itself a terminal."""

    def isatty(self):
        """Say yes."""
        return True


@pytest.mark.parametrize(
    ("stream", "long", "shown"), [(Terminal, 0.0, True), (Terminal, 1e9, False),
                                  (io.StringIO, 0.0, True), (io.StringIO, 1e9, False)],
)  # fmt: skip
def test_long_runs_show_progress(monkeypatch, trace, stream, long, shown):
    """A long run shows a bar on a terminal, else lines with an estimate; a short one nothing."""
    monkeypatch.setattr("sys.stderr", error := stream())
    monkeypatch.setattr("hpcrowd.scenarios.terminal.LONG", long)
    monkeypatch.setattr("hpcrowd.scenarios.terminal.QUIET", long)
    monkeypatch.setattr("hpcrowd.environment.simulation.SLICE", 1)
    with simulation_progress(6) as progress:
        replay(read_swf(trace), users="rigid", progress=progress)
    assert shown == ("simulating" in error.getvalue())
    if shown and stream is io.StringIO:
        lines = error.getvalue().splitlines()
        assert 1 == len(lines)  # the next one is due in a minute
        assert re.fullmatch(r"simulating: \d+ % after 0 s(, about 0 s left)?", lines[0])
