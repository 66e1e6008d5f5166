"""The command that reproduces a published study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.cli import app
from typer.testing import CliRunner


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
    assert "not reached: " in done.output
    assert "[red]" not in done.output
    assert "[bold]" not in done.output
