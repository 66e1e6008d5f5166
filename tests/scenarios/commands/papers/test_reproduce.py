"""The command that reproduces a published study."""

import pytest
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.scenarios.cli import app
from typer.testing import CliRunner

from tests.scenarios.studies.study_cases import KTH_FILE, log_of_one_job


@pytest.mark.parametrize("study", ["madon2024", "zakay2015"])
def test_exit_code_says_what_was_not_reached(study, make_trace, tmp_path):
    """A log that is not the published one does not reach the published figures: exit code 1."""
    write_swf(log_of_one_job(make_trace), tmp_path / KTH_FILE)
    done = CliRunner().invoke(app, ["reproduce", study, "--traces", str(tmp_path)])
    assert 1 == done.exit_code
    assert "KTH" in done.output
    assert "not reached: " in done.output
    assert "[red]" not in done.output
    assert "[bold]" not in done.output
