"""Every command that takes a trace takes ``archive:NAME``, and a trace in any format."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from hpcrowd.environment import read_swf, read_trace, write_trace
from hpcrowd.environment.traces.archive import logs as archive
from hpcrowd.environment.traces.formats.registry import parse_format
from hpcrowd.scenarios.cli import app

from tests.support.archive import Server, packed, write_table

Call = Callable[..., tuple[int, str, str]]

#: The log of the made-up archive, by the beginning of its name.
LOG = "archive:TOY-B"

#: Commands that take one, with what else they need; each ends well.
COMMANDS = {
    "replay": ("replay", LOG),
    "sessions": ("sessions", LOG),
    "compare": ("compare", LOG, LOG),
    "stats": ("stats", LOG, "--which", "all"),
    "report": ("report", LOG, "-o", "report.html"),
    "gantt": ("gantt", LOG, "-o", "gantt.png"),
    "convert": ("convert", LOG, "log.csv"),
    "window": ("window", LOG, "--only-users", "1", "-o", "w.swf"),
    "clean": ("clean", LOG),
    "predict": ("predict", LOG, "--model", "last-two"),
    "resample": ("resample", LOG),
    "run replay": ("run", "replay.toml"),
    "run resample": ("run", "resample.toml"),
    "run grid": ("run", "run-grid.toml"),
    "grid": ("grid", "grid.toml"),
}

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
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a made-up archive whose logs are in the cache, and no network."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("HPCROWD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HPCROWD_TRACES", raising=False)
    with monkeypatch.context() as patch:
        table = tmp_path / "archive.csv"
        write_table(table, "http://127.0.0.1:9")
        patch.setattr(archive, "TABLE", table)
        (tmp_path / "cache" / "TOY-B-1999-1.swf.gz").write_bytes(packed("TOY-B-1999-1"))
        for kind in ("replay", "resample"):
            text = f'[scenario]\nkind = "{kind}"\ntrace = "{LOG}"\n'
            Path(f"{kind}.toml").write_text(text)
        Path("run-grid.toml").write_text(
            '[scenario]\nkind = "grid"\n'
            f'[scenario.clusters.north]\nprocessors = 4\ntrace = "{LOG}"\n'
        )
        Path("grid.toml").write_text(f'[clusters.north]\nprocessors = 4\ntrace = "{LOG}"\n')
        yield tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_command_takes_a_log_of_the_archive(here: Path, call: Call, name: str) -> None:
    """The command reads the log and ends well."""
    code, _, err = call(*COMMANDS[name])
    assert 0 == code, err


@pytest.mark.parametrize("name", REFUSED)
def test_command_reads_the_log_before_it_refuses(here: Path, call: Call, name: str) -> None:
    """The output is about the jobs in the log, or another file: not about its name."""
    arguments, reason = REFUSED[name]
    code, _, err = call(*arguments)
    if code:
        assert 2 == code
        assert re.search(reason, err)
        assert "archive:" not in err
        assert "No such file" not in err or "m.json" in err


def test_all_commands_with_traces_are_tested() -> None:
    """No command whose argument is a trace or a run is left out."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found = {
        name
        for name, command in commands.items()
        for parameter in command.params
        if parameter.param_type_name == "argument"
        and re.search(r"TRACE|^IN$", parameter.metavar or "")
    }
    assert found <= {*COMMANDS, *REFUSED, *ELSEWHERE}
    assert len(found) > 10


def test_python_takes_a_log_of_the_archive(here: Path) -> None:
    """read_trace takes the name, too; the trace says which file it is from."""
    trace = read_trace(LOG)
    assert 30 == len(trace)
    assert trace.source.endswith("cache/TOY-B-1999-1.swf.gz")


def test_page_takes_a_log_of_the_archive(here: Path) -> None:
    """What hpcrowd inspect is asked for may be a log; so may a run that was recorded."""
    from hpcrowd.analysis import read_run
    from hpcrowd.scenarios.inspector.subjects.subject import subject_of

    assert "TOY-B-1999-1.swf.gz" == subject_of(Path(LOG)).name
    assert 30 == len(read_run(LOG).jobs)


def test_unknown_log_is_one_line(here: Path, call: Call) -> None:
    """A name that is unknown is reported with how to see those there are."""
    code, _, err = call("replay", "archive:NOBODY-1999")
    assert (2, 1) == (code, len(err.splitlines()))
    assert "hpcrowd fetch --list" in err
    Path("replay.toml").write_text('[scenario]\nkind = "replay"\ntrace = "archive:NOBODY"\n')
    code, _, err = call("run", "replay.toml")
    assert (2, 1) == (code, len(err.splitlines()))
    assert "hpcrowd fetch --list" in err


def test_log_that_cannot_be_had_is_one_line(here: Path, call: Call) -> None:
    """Without a network it is said what to do."""
    code, _, err = call("replay", "archive:TOY-A")
    assert (2, 1) == (code, len(err.splitlines()))
    assert "put it into" in err


def test_scenario_keeps_the_name_of_a_log(here: Path, call: Call) -> None:
    """What --show prints means the same on another machine."""
    code, out, _ = call("run", "replay.toml", "--show")
    assert 0 == code
    assert f'trace = "{LOG}"' in out


def test_log_is_fetched_when_it_is_named(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that is not there yet is fetched by the command that needs it, once."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HPCROWD_ARCHIVE", server.base)
    try:
        for _ in range(2):
            assert 0 == call("sessions", "archive:toy-a-1999-1.swf.gz")[0]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert [("/l_toy_a/TOY-A-1999-1.swf.gz", None)] == server.asked


@pytest.mark.parametrize("name", ["parquet", "csv"])
def test_commands_take_other_formats(here: Path, call: Call, name: str) -> None:
    """A command reads other formats as they are, without converting first."""
    path = here / f"log.{name}"
    write_trace(read_swf(here / "cache" / "TOY-B-1999-1.swf.gz"), path, parse_format(name))
    code, out, err = call("sessions", path)
    assert (0, "") == (code, err)
    assert "log." in out
