"""What studies share: finding logs, telling progress, and the exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.cli import app
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs
from typer.testing import CliRunner


def test_logs_are_found_by_their_names(tmp_path: Path) -> None:
    """Plain or gzipped, any version that the star stands for, in the order asked for."""
    for name in ("LANL-CM5-1994-4.1-cln.swf.gz", "KTH-SP2-1996-2.1-cln.swf", "other.swf"):
        (tmp_path / name).touch()
    found = find_logs(tmp_path, LOGS)
    assert {
        "KTH": "KTH-SP2-1996-2.1-cln.swf",
        "LANL-CM5": "LANL-CM5-1994-4.1-cln.swf.gz",
    } == {name: path.name for name, path in found.items()}


def test_folder_without_logs_is_told_in_one_line(tmp_path: Path) -> None:
    """The message names what was looked for and where to fetch it."""
    with pytest.raises(TraceError) as caught:
        find_logs(tmp_path, LOGS)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}: no trace of KTH, SDSC-SP2, ")
    assert "fetch one, such as KTH-SP2-1996-2.1-cln.swf.gz from https://" in message
    assert "\n" not in message


def test_steps_are_counted_from_nothing_done() -> None:
    """Each step is told with those done before it; the last call says done."""
    calls: list[tuple[str, int, int]] = []
    steps = Steps(2, lambda *call: calls.append(call))
    for label in ("a", "b"):
        steps.begin(label)
    steps.end()
    assert [("a", 0, 2), ("b", 1, 2), ("done", 2, 2)] == calls


@pytest.mark.parametrize("study", ["madon2024", "zakay2015"])
def test_exit_code_says_what_was_not_reached(
    study: str, make_trace: Callable[..., Trace], tmp_path: Path
) -> None:
    """A log that is not the published one does not reach the published figures: exit code 1."""
    job = {"submit": 0, "run": 5, "allocated_processors": 4, "user": 1, "wait": 0}
    write_swf(make_trace(job, header="; MaxProcs: 4"), tmp_path / "KTH-SP2-1996-2.1-cln.swf")
    done = CliRunner().invoke(app, ["reproduce", study, "--traces", str(tmp_path)])
    assert 1 == done.exit_code
    assert "KTH" in done.output
