"""``hpcrowd convert``: from what people have into what their tools read."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hpcrowd.environment import read_swf, read_trace
from hpcrowd.environment.traces.formats.registry import FORMATS
from hpcrowd.environment.traces.trace import FIELDS

Call = Callable[..., tuple[int, str, str]]

SWF = """; Version: 2.2
; MaxProcs: 8
; UnixStartTime: 1704697200
; TimeZoneString: Europe/Stockholm
1 0 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1 -1 -1
2 10 -1 -1 2 -1 -1 2 60 -1 5 9 3 -1 -1 -1 -1 -1
"""

TABLE = """who,begin,cores,hours
alice,2024-01-08 08:00:00,4,0.5
bob,2024-01-08 08:10:00,2,1
alice,2024-01-08 09:00:00,1,0.25
"""

MAPPING = """
zone = "Europe/Stockholm"
[columns]
user = "who"
submit = { column = "begin", time = "%Y-%m-%d %H:%M:%S" }
allocated_processors = "cores"
run = { column = "hours", unit = "h" }
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a trace, and a table with its mapping."""
    monkeypatch.chdir(tmp_path)
    Path("log.swf").write_text(SWF)
    Path("mine.csv").write_text(TABLE)
    Path("mine.toml").write_text(MAPPING)
    return tmp_path


def test_from_one_format_to_another_and_back(here: Path, call: Call) -> None:
    """A trace goes to Parquet and back to the same bytes, and it is said that nothing is lost."""
    code, out, err = call("convert", "log.swf", "log.parquet")
    assert (0, "") == (code, err)
    assert "log.swf (swf): 2 jobs\nlog.parquet (parquet): nothing is lost\n" == out
    assert 0 == call("convert", "log.parquet", "again.swf")[0]
    assert SWF == Path("again.swf").read_text()


def test_what_is_lost_is_reported(here: Path, call: Call) -> None:
    """CSV has no place for the header: its lines are counted, and so they are with --json."""
    code, out, _ = call("convert", "log.swf", "log.csv")
    assert 0 == code
    assert "(csv): written\n  lost: 4 lines of the header: CSV cannot hold it\n" in out
    wire = json.loads(call("convert", "log.swf", "log.csv", "--force", "--json")[1])
    assert [{"field": "header", "reason": "CSV cannot hold it", "count": 4}] == wire["lost"]
    assert ("swf", "csv", 2) == (wire["from"], wire["to"], wire["jobs"])


def test_strict_refuses_what_is_lost(here: Path, call: Call) -> None:
    """With --strict nothing is written where something would be lost."""
    code, out, err = call("convert", "log.swf", "log.csv", "--strict")
    assert (2, "") == (code, out)
    assert "csv cannot hold 4 lines of the header" in err
    assert "leave out --strict" in err
    assert not Path("log.csv").exists()
    assert 0 == call("convert", "log.swf", "log.parquet", "--strict")[0]


def test_a_table_of_ones_own(here: Path, call: Call) -> None:
    """A mapping gives columns and units; names are kept next to the trace."""
    code, out, _ = call("convert", "mine.csv", "mine.swf.gz", "--map", "mine.toml")
    assert 0 == code
    assert "mine.csv (table): 3 jobs" in out
    assert "mine.names.csv: names of 2 users" in out
    trace = read_swf("mine.swf.gz")
    assert [0, 600, 3600] == trace["submit"].tolist()
    assert [1800, 3600, 900] == trace["run"].tolist()
    assert [1, 2, 1] == trace["user"].tolist()
    assert 1704697200 == trace.header.integer("UnixStartTime")
    assert "Europe/Stockholm" == trace.header.get("TimeZoneString")
    assert "field,number,name\nuser,1,alice\nuser,2,bob\n" == Path("mine.names.csv").read_text()


def test_names_come_back_from_a_format_that_has_them(here: Path, call: Call) -> None:
    """Parquet holds names, so no file is written next to it, and a table gets them back."""
    call("convert", "mine.csv", "mine.parquet", "--map", "mine.toml")
    assert not Path("mine.names.csv").exists()
    code, _, _ = call(
        "convert", "mine.parquet", "back.csv", "--output-format", "table", "--map", "mine.toml"
    )
    assert 0 == code
    assert Path("back.csv").read_text() == TABLE


def test_anonymised_names(here: Path, call: Call) -> None:
    """The same salt gives the same pseudonyms, another one others; names are nowhere."""
    found = []
    for name, salt in (("a", "pepper"), ("b", "pepper"), ("c", "other")):
        code = call("convert", "mine.csv", f"{name}.swf", "--map", "mine.toml", "--salt", salt)[0]
        assert 0 == code
        found.append(Path(f"{name}.names.csv").read_text())
    assert found[0] == found[1] != found[2]
    assert all("alice" not in text and 3 == len(text.splitlines()) for text in found)
    users = read_swf("a.swf")["user"].tolist()
    assert users[0] == users[2] != users[1]


def test_anonymised_without_a_salt_is_another_time_another(here: Path, call: Call) -> None:
    """Without a salt one is drawn and forgotten; numbers go by pseudonyms, too."""
    texts = set()
    for name in ("a", "b"):
        assert 0 == call("convert", "mine.csv", f"{name}.swf", "--map", "mine.toml",
                         "--anonymise")[0]  # fmt: skip
        texts.add(Path(f"{name}.names.csv").read_text())
    assert 2 == len(texts)


def test_processors_of_the_machine(here: Path, call: Call) -> None:
    """--processors is in the header, in place of what was there."""
    call("convert", "log.swf", "larger.swf", "--processors", "64")
    assert SWF.replace("MaxProcs: 8", "MaxProcs: 64") == Path("larger.swf").read_text()
    call("convert", "mine.csv", "mine.swf", "--map", "mine.toml", "--processors", "64")
    assert 64 == read_swf("mine.swf").processors


def test_size_that_nobody_tells_is_what_was_in_use(here: Path, call: Call) -> None:
    """Without --processors a table's machine has what was in use at once; a note says so."""
    call("convert", "mine.csv", "mine.swf", "--map", "mine.toml")
    trace = read_swf("mine.swf")
    assert 6 == trace.processors
    assert any("the most processors in use" in value for key, value in trace.header.entries())


def test_through_pipes(here: Path) -> None:
    """- reads standard input and writes standard output; messages go to standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "hpcrowd", "convert", "-", "-", "--output-format", "csv"],
        input=gzip.compress(SWF.encode()), capture_output=True, check=False,
    )  # fmt: skip
    assert 0 == done.returncode
    assert b"number,submit,wait," in done.stdout[:20]
    assert 3 == len(done.stdout.splitlines())
    assert b"standard output (csv): written" in done.stderr


def test_a_folder_of_results_is_its_trace(here: Path, call: Call) -> None:
    """A run is converted as what was simulated; so is its table of jobs."""
    assert 0 == call("replay", "log.swf", "--out", "run")[0]
    assert 0 == call("convert", "run", "run.csv")[0]
    assert 0 == call("convert", "run/jobs.parquet", "jobs.csv")[0]
    one, other = read_trace("run.csv"), read_trace("jobs.csv")
    for field in ("number", "submit", "wait", "run", "allocated_processors", "user", "status"):
        assert one[field].tolist() == other[field].tolist(), field
    code, _, err = call("convert", here, "x.csv")
    assert 2 == code
    assert "no trace.swf.gz in it" in err


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((), ("needs IN and OUT", "--list")),
        (("log.swf", "log.xyz"), ("log.xyz", "--output-format", "parquet")),
        (("log.swf", "log.csv", "--output-format", "excel"), ("'excel'", "not known", "swf")),
        (("none.swf", "log.csv"), ("none.swf", "No such file")),
        (("mine.csv", "new.swf"), ("no columns submit and run", "--map")),
        (("mine.csv", "new.swf", "--map", "none.toml"), ("none.toml", "cannot be read")),
        (("log.swf", "a.txt", "--output-format", "table"), ("table", "--map")),
        (("log.swf", "none/a.csv"), ("none", "no folder")),
        (("log.swf", "a.csv", "--zone", "Mars/Olympus"), ("Mars/Olympus", "not known")),
        (("log.swf", "-", "--output-format", "csv", "--json"), ("--json", "name a file")),
    ],
)
def test_mistakes_give_one_line(
    here: Path, call: Call, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    """What is wrong with a request is one line, exit code 2, and nothing is written."""
    before = sorted(here.iterdir())
    code, out, err = call("convert", *arguments)
    assert (2, "", 1) == (code, out, len(err.splitlines()))
    for part in parts:
        assert part in err
    assert before == sorted(here.iterdir())


def test_list_of_formats(call: Call) -> None:
    """--list shows every format; with --json by name."""
    _, out, _ = call("convert", "--list")
    for name, one in FORMATS.items():
        assert name in out
        assert one.title in out
    assert list(FORMATS) == list(json.loads(call("convert", "--list", "--json")[1]))


@pytest.mark.traces
@pytest.mark.parametrize("name", ["parquet", "csv"])
def test_real_trace_through_the_command(
    traces: Path, tmp_path: Path, call: Call, name: str
) -> None:
    """KTH goes out and comes back with every field of every job."""
    path = traces / "KTH-SP2-1996-2.1-cln.swf.gz"
    assert 0 == call("convert", path, tmp_path / f"kth.{name}")[0]
    assert 0 == call("convert", tmp_path / f"kth.{name}", tmp_path / "kth.swf")[0]
    one, other = read_swf(path), read_swf(tmp_path / "kth.swf")
    assert all(np.array_equal(one[field], other[field]) for field in FIELDS)
    assert (one.header.lines == other.header.lines) == (name == "parquet")


def test_gzip_by_name(here: Path, call: Call) -> None:
    """A name that ends in .gz is packed, in every format."""
    call("convert", "log.swf", "log.csv.gz")
    text = gzip.decompress(Path("log.csv.gz").read_bytes()).decode()
    assert text.startswith("number,submit")
    assert 3 == len(io.StringIO(text).readlines())


def test_a_salt_in_the_environment_asks_for_nothing(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever keeps the salt in a variable converts with names as before; --anonymise uses it."""
    monkeypatch.setenv("HPCROWD_SALT", "pepper")
    call("convert", "mine.csv", "a.csv", "--map", "mine.toml")
    assert "alice" in Path("a.csv").read_text()
    call("convert", "mine.csv", "b.csv", "--map", "mine.toml", "--anonymise")
    call("convert", "mine.csv", "c.csv", "--map", "mine.toml", "--salt", "pepper")
    assert "alice" not in Path("b.csv").read_text() == Path("c.csv").read_text()


def test_files_of_others_are_not_written_over(here: Path, call: Call) -> None:
    """OUT is not IN, by whatever name; a file where names would stand is left, and so is OUT."""
    Path("link.swf").symlink_to("log.swf")
    for name in ("log.swf", "./log.swf", "link.swf"):
        code, _, err = call("convert", "log.swf", name, "--output-format", "csv")
        assert 2 == code
        assert (
            f"hpcrowd: OUT {Path(name)}: is log.swf, which is read; write to another name\n" == err
        )
    assert SWF == Path("log.swf").read_text()
    Path("mine.names.csv").write_text("name,phone\nalice,1\n")
    code, _, err = call("convert", "mine.csv", "mine.swf", "--map", "mine.toml")
    assert (2, 1) == (code, len(err.splitlines()))
    assert "mine.names.csv: exists and is not a table of names" in err
    assert not Path("mine.swf").exists()
    Path("mine.names.csv").write_text("field,number,name\nuser,1,carol\n")
    assert 0 == call("convert", "mine.csv", "mine.swf", "--map", "mine.toml")[0]
    assert "alice" in Path("mine.names.csv").read_text()


def test_links_stay_links(here: Path, call: Call) -> None:
    """A link is followed: what it leads to is written."""
    Path("link.csv").symlink_to("kept.csv")
    assert 0 == call("convert", "log.swf", "link.csv")[0]
    assert (True, 3) == (
        Path("link.csv").is_symlink(),
        len(Path("kept.csv").read_text().splitlines()),
    )


def test_named_pipes(here: Path) -> None:
    """A pipe with a name, as shells make for <(zcat log.swf.gz), is read once; one is written."""
    script = (
        'mkfifo in out; (cat log.swf > in & "$0" -m hpcrowd convert in piped.parquet; wait)'
        '; (cat out > came.swf & "$0" -m hpcrowd convert piped.parquet out --output-format swf'
        "; wait)"
    )
    done = subprocess.run(
        ["bash", "-c", script, sys.executable], cwd=here,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (0, "out (swf): nothing is lost") == (done.returncode, done.stderr.splitlines()[-1])
    assert SWF == Path("came.swf").read_text()
    assert Path("out").is_fifo()


def test_other_commands_read_pipes(here: Path, call: Call) -> None:
    """A pipe is read once and kept, so that commands that look at a trace twice work, too."""
    os.mkfifo("pipe.swf")
    data = Path("log.swf").read_bytes()
    writer = Thread(target=lambda: Path("pipe.swf").write_bytes(data))
    writer.start()
    code, out, err = call("clean", "pipe.swf", "--json")
    writer.join()
    assert (0, "") == (code, err)
    told = call("clean", "log.swf", "--json")[1]
    assert json.loads(told)["jobs"] == json.loads(out)["jobs"]


def test_errors_name_standard_input(here: Path) -> None:
    """Errors of standard input name ``-``, and not of a copy that is gone."""
    done = subprocess.run(
        [sys.executable, "-m", "hpcrowd", "convert", "-", "out.csv", "--input-format", "swf"],
        input="no job\n", cwd=here, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert 2 == done.returncode
    assert done.stderr.startswith("hpcrowd: -, line 1, field number: 'no': not a number")


@pytest.mark.slow
def test_names_are_lost_in_a_pipe(here: Path) -> None:
    """Beside standard output no file of names is possible: a message says it; strict refuses."""
    command = [sys.executable, "-m", "hpcrowd", "convert", "mine.csv", "-",
               "--output-format", "swf", "--map", "mine.toml"]  # fmt: skip
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    assert "  lost: user of 3 jobs: names are kept in a file next to OUT" in done.stderr
    strict = subprocess.run(
        [*command, "--strict"], cwd=here, capture_output=True, text=True, check=False
    )
    assert (2, "") == (strict.returncode, strict.stdout)


def test_text_of_ones_own_is_left_out_of_what_is_given_away(here: Path, call: Call) -> None:
    """What other columns hold is unknown: pseudonyms leave them out, with a note."""
    Path("own.csv").write_text("submit,run,user_name,email,orig_site\n0,1,al,al@x.org,north\n")
    code, out, _ = call("convert", "own.csv", "public.csv", "--anonymise")
    assert 0 == code
    assert "  left out, as they may identify people: 'email'\n" in out
    text = Path("public.csv").read_text()
    assert ("al@x.org" in text, "north" in text) == (False, True)
    wire = json.loads(
        call("convert", "own.csv", "public.csv", "--anonymise", "--force", "--json")[1]
    )
    assert ["email"] == wire["left_out"]


def test_steps_are_shown_on_a_terminal(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Millions of jobs take a minute: a terminal shows which of the two steps it is."""
    steps: list[tuple[str, int, int]] = []
    told = nullcontext(lambda *step: steps.append(step))
    monkeypatch.setattr("hpcrowd.scenarios.commands.traces.convert.progress_bar", lambda: told)
    assert 0 == call("convert", "log.swf", "log.csv")[0]
    assert [("reading log.swf", 0, 2), ("writing log.csv", 1, 2)] == steps
