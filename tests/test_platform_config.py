"""Changes of the platform from a file, and what a run says of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from environment import (
    Clock,
    Failures,
    Maintenance,
    NodesDown,
    QuantityError,
    Resize,
    SpeedChange,
    SwitchPolicy,
    Trace,
    write_swf,
)
from environment.attempts import MEANING
from scenarios import replay
from scenarios.cli import app
from scenarios.config import configure
from scenarios.platform_config import PlatformConfig, read_platform

MakeTrace = Callable[..., Trace]

#: Every kind of change, dates and durations.
FILE = """
resubmit_after = "15m"
[[changes]]
do = "down"
at = "1h"
until = 2024-01-08T10:00:00
processors = 2
jobs = "resubmit"
[[changes]]
do = "fail"
mean = "8h"
repair_mean = 600
distribution = "weibull"
shape = 0.7
start = "1d"
until = "2d"
[[changes]]
do = "maintain"
start = "2024-01-09 08:00"
end = "2024-01-09 09:00"
announced = "2h"
jobs = "run"
[[changes]]
do = "resize"
at = 100
processors = 8
[[changes]]
do = "speed"
at = "1d 1h"
factor = 2
[[changes]]
do = "switch"
at = "2d"
scheduler = "fcfs"
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that writes a file and returns its path."""

    def writer(text: str) -> str:
        path = tmp_path / "outage.toml"
        path.write_text(text)
        return str(path)

    return writer


def job(submit: int, run: int, processors: int) -> dict[str, float]:
    """A job of user 1."""
    return {
        "submit": submit,
        "wait": 0,
        "run": run,
        "requested_processors": processors,
        "requested_time": run,
        "user": 1,
        "status": 1,
    }


def test_every_kind(write: Callable[[str], str]) -> None:
    """Seconds, durations and local dates become seconds of the run."""
    config = read_platform(write(FILE))
    monday = Clock(unix_start=1704697200, known=True)  # 2024-01-08 07:00 UTC
    assert "outage" == config.name
    assert 900 == config.resubmit_after
    assert [
        NodesDown(3600, 3 * 3600, 2, "resubmit"),
        Failures(28800, 600, "weibull", 0.7, start=86400, until=172800),
        Maintenance(25 * 3600, 26 * 3600, 7200, "run"),
        Resize(100, 8),
        SpeedChange(90000, 2),
        SwitchPolicy(172800, "fcfs"),
    ] == config.of(monday)
    assert [] == config.of(monday, "north")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "changes: missing"),
        ("changes = [", "not TOML"),
        ("[[changes]]\nat = 3", "changes[0]"),
        ('[[changes]]\ndo = "explode"', "explode"),
        ('[[changes]]\ndo = "resize"\nat = 3', "processors: missing"),
        ('[[changes]]\ndo = "resize"\nat = 3\nprocessors = 0', "greater than or equal to 1"),
        ('[[changes]]\ndo = "resize"\nat = "soon"\nprocessors = 3', "moment 'soon'"),
        ('[[changes]]\ndo = "resize"\nat = 3\nsize = 3\nprocessors = 3', "no such setting"),
        ('resubmit_after = "never"\n[[changes]]\ndo = "down"\nat = 1', "duration 'never'"),
    ],
)
def test_mistakes(write: Callable[[str], str], text: str, words: str) -> None:
    """A mistake is told in one line with the file, the place, the value and the rule."""
    path = write(text)
    with pytest.raises(QuantityError) as caught:
        configure(platform=path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(path)
    assert "\n" not in str(caught.value)


def test_missing_file() -> None:
    """A file that is not there is named."""
    with pytest.raises(QuantityError, match=r"nowhere.toml: cannot be read"):
        configure(platform="nowhere.toml")


def test_unknown_cluster(make_trace: MakeTrace, write: Callable[[str], str]) -> None:
    """A change of a cluster that is not there is refused before the run."""
    path = write('[[changes]]\ndo = "down"\nat = 1\ncluster = "north"')
    with pytest.raises(QuantityError, match=r"changes\[0\]: cluster 'north': no such cluster"):
        replay(make_trace(job(0, 10, 1)), platform=path)


def test_date_needs_an_origin(make_trace: MakeTrace, write: Callable[[str], str]) -> None:
    """Dates mean nothing where the trace does not say when it began."""
    path = write('[[changes]]\ndo = "down"\nat = "2024-01-08 10:00"')
    with pytest.raises(QuantityError, match="does not say when it began"):
        replay(make_trace(job(0, 10, 1)), platform=path)


def test_without_changes_nothing_is_said(make_trace: MakeTrace) -> None:
    """A run on a platform that stays says nothing of changes."""
    run = replay(make_trace(job(0, 10, 1)))
    assert "platform" not in run.summary()
    assert run.configuration["platform"] is None


def test_command(make_trace: MakeTrace, tmp_path: Path, write: Callable[[str], str]) -> None:
    """The command tells what happened, and its folder holds the runs that were stopped."""
    trace = tmp_path / "small.swf"
    write_swf(make_trace(job(0, 100, 4), job(10, 50, 4)), trace)
    path = write('[[changes]]\ndo = "down"\nat = 60\nuntil = 70\nprocessors = 4\njobs = "fail"')
    out = tmp_path / "out"
    command = ["replay", str(trace), "--users", "rigid", "--nodes", "4", "--platform", path]
    result = CliRunner().invoke(app, [*command, "--out", str(out), "--json"])
    assert 0 == result.exit_code, result.output
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    assert {
        "node_failures": 0,
        "down_processor_s": 40,
        "maintenance_s": 0,
        "runs_stopped": 1,
        "runs_requeued": 0,
        "runs_resubmitted": 0,
        "runs_failed": 1,
        "lost_processor_s": 240,
    } == summary["platform"]["home"]
    assert (1, 1, 2) == tuple(summary[f"jobs_{what}"] for what in ("failed", "completed", "in"))
    attempts = pd.read_parquet(out / "attempts.parquet")
    assert list(MEANING) == list(attempts.columns)
    assert [(0, 1, 0, 60, "down", "fail")] == list(
        attempts[["row", "number", "start", "end", "cause", "fate"]].itertuples(
            index=False, name=None
        )
    )
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    provenance = json.loads((out / "provenance.json").read_text())
    assert {"outage.toml": digest} == provenance["configuration"]["files_sha256"]
    again = PlatformConfig(**provenance["configuration"]["platform"])
    assert again.of(Clock()) == read_platform(path).of(Clock())
    shown = CliRunner().invoke(app, command)
    assert "1 run stopped (1 failed)" in shown.output


def test_wrong_file_is_told_by_the_command(tmp_path: Path) -> None:
    """The command ends with 2 and one line."""
    result = CliRunner().invoke(app, ["replay", "no.swf", "--platform", "nowhere.toml"])
    assert result.exit_code != 0
    assert "nowhere.toml" in result.output + str(result.exception)
