"""``hpcrowd convert``: from what people have into what their tools read."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from hpcrowd import read_swf
from hpcrowd.environment.traces.formats.registry import FORMATS, READY

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
def here(tmp_path, monkeypatch):
    """Work in a folder with a trace, and a table with its mapping."""
    monkeypatch.chdir(tmp_path)
    Path("log.swf").write_text(SWF)
    Path("mine.csv").write_text(TABLE)
    Path("mine.toml").write_text(MAPPING)
    return tmp_path


def test_what_is_lost_is_reported(here, call):
    """CSV, packed or not, has no place for the header: its lines are counted; strict refuses."""
    code, out, err = call("convert", "log.swf", "log.csv", "--strict")
    assert (2, "") == (code, out)
    assert "csv cannot hold 4 lines of the header" in err
    assert "leave out --strict" in err
    assert not Path("log.csv").exists()
    code, out, _ = call("convert", "log.swf", "log.csv")
    assert 0 == code
    assert "(csv): written\n  lost: 4 lines of the header: CSV cannot hold it\n" in out
    wire = json.loads(call("convert", "log.swf", "log.csv.gz", "--json")[1])
    assert Path("log.csv").read_bytes() == gzip.decompress(Path("log.csv.gz").read_bytes())
    assert [{"field": "header", "reason": "CSV cannot hold it", "count": 4}] == wire["lost"]
    assert ("swf", "csv", 2) == (wire["from"], wire["to"], wire["jobs"])


def test_a_table_of_ones_own(here, call):
    """A mapping gives columns and units; names are next to the trace, or in it and come back."""
    code, out, _ = call("convert", "mine.csv", "mine.swf.gz", "--map", "mine.toml")
    assert (0, True) == (code, "mine.names.csv: names of 2 users" in out)
    call("convert", "mine.csv", "mine.parquet", "--map", "mine.toml")
    mapped = ("--output-format", "table", "--map", "mine.toml")
    assert 0 == call("convert", "mine.parquet", "back.csv", *mapped)[0]
    assert Path("back.csv").read_text() == TABLE


def test_formats_and_maps_are_listed(call):
    """`--list` shows every format, and every map that comes with hpcrowd."""
    code, out, _ = call("convert", "--list")
    told = json.loads(call("convert", "--list", "--json")[1])
    assert (0, set(FORMATS), set(READY)) == (code, set(told), set(told["table"]["maps"]))
    lines = [line.split() for line in out.splitlines() if line]
    assert {*FORMATS, *READY} <= {words[0] for words in lines}
    assert all(title in out for title in told["table"]["maps"].values())


def test_processors_of_the_machine(here, call):
    """--processors is in the header; without, a table's machine has what was in use at once."""
    call("convert", "log.swf", "larger.swf", "--processors", "64")
    assert SWF.replace("MaxProcs: 8", "MaxProcs: 64") == Path("larger.swf").read_text()
    call("convert", "mine.csv", "mine.swf", "--map", "mine.toml", "--processors", "64")
    assert 64 == read_swf("mine.swf").processors
    call("convert", "mine.csv", "used.swf", "--map", "mine.toml")
    assert 6 == read_swf("used.swf").processors


def process(*words, given=b""):
    """Run ``hpcrowd convert`` as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "hpcrowd", "convert", *words], input=given, capture_output=True,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_through_pipes(here):
    """- reads standard input and writes standard output; messages name it on standard error."""
    code, out, err = process("-", "-", "--output-format", "csv", given=gzip.compress(SWF.encode()))
    assert (0, 3) == (code, len(out.splitlines()))
    assert out.startswith("number,submit,wait,")
    assert "standard output (csv): written" in err
    code, _, err = process("-", "out.csv", "--input-format", "swf", given=b"no job\n")
    assert 2 == code
    assert err.startswith("hpcrowd: -, line 1, field number: 'no': not a number")
    words = ("mine.csv", "-", "--output-format", "swf", "--map", "mine.toml", "--strict")
    code, out, err = process(*words)  # beside it no file of names is possible
    assert (2, "") == (code, out)
    assert "user" in err


def test_a_salt_in_the_environment_asks_for_nothing(here, call, monkeypatch):
    """Whoever keeps the salt in a variable converts with names as before; --anonymise uses it."""
    monkeypatch.setenv("HPCROWD_SALT", "pepper")
    call("convert", "mine.csv", "a.csv", "--map", "mine.toml")
    assert "alice" in Path("a.csv").read_text()
    call("convert", "mine.csv", "b.csv", "--map", "mine.toml", "--anonymise")
    call("convert", "mine.csv", "c.csv", "--map", "mine.toml", "--salt", "pepper")
    assert "alice" not in Path("b.csv").read_text() == Path("c.csv").read_text()
    monkeypatch.delenv("HPCROWD_SALT")  # without one they are others each time
    call("convert", "mine.csv", "d.csv", "--map", "mine.toml", "--anonymise")
    assert Path("b.csv").read_text() != Path("d.csv").read_text()


def test_other_tables_of_names_are_left(here, call):
    """A file where names would stand is left, and so is OUT; an earlier table is replaced."""
    Path("mine.names.csv").write_text("name,phone\nalice,1\n")
    code, _, err = call("convert", "mine.csv", "mine.swf", "--map", "mine.toml")
    assert (2, 1) == (code, len(err.splitlines()))
    assert "mine.names.csv: exists and is not a table of names" in err
    assert not Path("mine.swf").exists()
    Path("mine.names.csv").write_text("field,number,name\nuser,1,carol\n")
    assert 0 == call("convert", "mine.csv", "mine.swf", "--map", "mine.toml")[0]
    assert "alice" in Path("mine.names.csv").read_text()


def test_named_pipes(here):
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


def test_text_of_ones_own_is_left_out_of_what_is_given_away(here, call):
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


def test_other_commands_read_pipes(here, call):
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
