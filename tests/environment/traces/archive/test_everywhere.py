"""Every command that takes a trace takes ``archive:NAME``, and a trace in any format."""

import re
from pathlib import Path

import pytest
import typer
from hpcrowd import read_run, read_trace
from hpcrowd.scenarios.cli import app
from hpcrowd.scenarios.inspector.subjects.subject import subject_of

from tests.support.archive import TARGET, packed

#: The log of the made-up archive, by the beginning of its name.
LOG = "archive:TOY-B"

#: Commands that take one, with what else they need; each ends well.
COMMANDS = {
    "replay": ("replay", LOG), "sessions": ("sessions", LOG), "compare": ("compare", LOG, LOG),
    "stats": ("stats", LOG, "--which", "all"), "report": ("report", LOG, "-o", "report.html"),
    "gantt": ("gantt", LOG, "-o", "gantt.png"), "convert": ("convert", LOG, "log.csv"),
    "window": ("window", LOG, "--only-users", "1", "-o", "w.swf"), "clean": ("clean", LOG),
    "predict": ("predict", LOG, "--model", "last-two"), "resample": ("resample", LOG),
    "run replay": ("run", "replay.toml"), "run resample": ("run", "resample.toml"),
    "run grid": ("run", "run-grid.toml"), "grid": ("grid", "grid.toml"),
}  # fmt: skip

#: Commands that take one and refuse the made-up log, by a word of the reason: it is too small.
REFUSED = {
    "validate": (("validate", LOG), "session|user|job"),
    "events": (("events", LOG), "are needed"),
    "fit": (("fit", "lublin", LOG, "-o", "m.json"), "arrivals"),
    "judge": (("judge", "m.json", LOG), "m.json"),
    "calibrate": (("calibrate", "replay.toml", LOG), "nothing is free"),
}

#: Commands that take one and continue for ever, or need a chosen user; tested by themselves.
ELSEWHERE = {"inspect"}


@pytest.fixture
def here(server, cache, tmp_path, monkeypatch):
    """A folder with a made-up archive, of which a log is in the cache, and with scenarios of it."""
    monkeypatch.chdir(tmp_path)
    (cache / "TOY-B-1999-1.swf.gz").write_bytes(packed("TOY-B-1999-1"))
    for kind in ("replay", "resample"):
        Path(f"{kind}.toml").write_text(f'[scenario]\nkind = "{kind}"\ntrace = "{LOG}"\n')
    north = f'clusters.north]\nprocessors = 4\ntrace = "{LOG}"\n'
    Path("run-grid.toml").write_text(f'[scenario]\nkind = "grid"\n[scenario.{north}')
    Path("grid.toml").write_text(f"[{north}")
    return tmp_path


@pytest.mark.parametrize("name", [*COMMANDS, *REFUSED])
def test_command_takes_a_log_of_the_archive(here, call, name):
    """The command reads the log and ends well, or says what its jobs lack: not its name."""
    arguments, reason = (COMMANDS[name], "") if name in COMMANDS else REFUSED[name]
    code, _, err = call(*arguments)
    assert code in (0, 2 if reason else 0), err
    if code:
        assert re.search(reason, err)
        assert "archive:" not in err
        assert "No such file" not in err or "m.json" in err


def test_all_commands_with_traces_are_tested():
    """No command whose argument is a trace or a run is left out."""
    commands = typer.main.get_command(app).commands
    found = {
        name
        for name, command in commands.items()
        for parameter in command.params
        if parameter.param_type_name == "argument"
        and re.search(r"TRACE|^IN$", parameter.metavar or "")
    }
    assert found <= {*COMMANDS, *REFUSED, *ELSEWHERE}
    assert len(found) > 10


def test_scenario_of_an_unknown_log_is_one_line(here, call):
    """It says how to see the names of logs."""
    scenario = Path("replay.toml").read_text()
    Path("nobody.toml").write_text(scenario.replace(LOG, "archive:NOBODY"))
    code, _, err = call("run", "nobody.toml")
    assert (2, 1, True) == (code, len(err.splitlines()), "hpcrowd fetch --list" in err)


def test_log_is_fetched_when_it_is_named(here, server, call):
    """A log that is not there yet is fetched by what needs it, once: commands, functions, pages."""
    for _ in range(2):
        assert 0 == call("sessions", "archive:toy-a-1999-1.swf.gz")[0]
    assert [(TARGET, None)] == server.asked
    trace = read_trace(LOG)
    assert trace.source.endswith("cache/TOY-B-1999-1.swf.gz")
    assert "TOY-B-1999-1.swf.gz" == subject_of(Path(LOG)).name
    assert 30 == len(trace) == len(read_run(LOG).jobs)
