"""The command ``hpcrowd fetch``: the list, what it shows about a log, JSON, errors of one line."""

import json
from pathlib import Path

import pytest

from tests.support.archive import SIZE, TARGET, A, archive, packed

B = "TOY-B-1999-1"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve a made-up archive, in whose folder we are."""
    monkeypatch.chdir(tmp_path)
    with archive(tmp_path, monkeypatch) as server:
        monkeypatch.setenv("HPCROWD_CACHE", "cache")
        yield server


def test_what_is_reported_of_a_log(call, server):
    """The file, its size in jobs, what its header says of its people, and what the archive asks."""
    code, out, err = call("fetch", A)
    assert (0, "") == (code, err)
    assert out.startswith(
        f"cache/{A}.swf.gz: fetched and checked\n  2,000 jobs, 4 processors\n  Computer: Toy\n"
    )
    assert "  Copyright: may be copied\n             if this line is kept\n" in out
    assert "asks to be acknowledged in publications" in out
    assert f"cache/{A}.swf.gz: already here\n" in call("fetch", "toy-a")[1]
    assert 1 == len(server.asked)


@pytest.mark.parametrize("arguments", [[], ["--list"]])
def test_list(call, server, arguments):
    """Without a name, the logs are listed, each with whether it is here, and nothing is fetched."""
    Path("cache").mkdir()
    Path(f"cache/{A}.swf.gz").write_bytes(packed(A))
    Path(f"cache/{B}.swf.gz.part").write_bytes(b"x")
    code, out, _ = call("fetch", *arguments)
    assert 0 == code
    rows = [" ".join(line.split()) for line in out.splitlines()]
    size = f"{SIZE / 1e6:.1f} MB"
    assert [
        "name machine jobs processors size here",
        f"{A} Toy 2,000 4 {size} yes",
        f"{B} Toy 30 4 0.0 MB part",
        "",
        "The folder is cache; `hpcrowd fetch NAME` fetches NAME.",
    ] == rows
    Path(f"cache/{A}.swf.gz").write_bytes(b"x")
    assert [] == server.asked
    (log,) = json.loads(call("fetch", "toy-a", "--list", "--json")[1])["logs"]
    assert (A, "damaged") == (log["name"], log["state"])


def test_json(call, server):
    """The list has every column, address and folder; a fetched log its path, state and header."""
    told = json.loads(call("fetch", "--list", "--json", "--folder", "there")[1])
    first, second = told["logs"]
    keys = ("name", "jobs", "processors", "bytes", "state")
    assert [A, 2000, 4, SIZE, "no"] == [first[key] for key in keys]
    assert ("there", B) == (told["folder"], second["name"])
    assert f"{server.base}{TARGET}" == first["url"] == first["address"]
    call("fetch", "toy-a")
    code, out, err = call("fetch", "toy-a", "TOY-B", A, "--json")
    told = json.loads(out)
    assert (0, "") == (code, err)
    assert [(A, False), (B, True)] == [(log["name"], log["fetched"]) for log in told["logs"]]
    assert [f"cache/{A}.swf.gz", f"cache/{B}.swf.gz"] == [log["path"] for log in told["logs"]]
    assert ["may be copied\nif this line is kept"] == told["logs"][0]["header"]["Copyright"]
    assert "acknowledged" in told["request"]


def test_damaged_log_is_replaced_and_told(call, server):
    """In the cache; in a folder that is named, a file that is not the log is left alone."""
    for folder in ("cache", "mine"):
        Path(folder).mkdir()
        Path(f"{folder}/{B}.swf.gz").write_bytes(b"my own version")
    code, _, err = call("fetch", "toy-b")
    assert (0, f"The file of {B} was damaged and has been replaced.\n") == (code, err)
    assert packed(B) == Path(f"cache/{B}.swf.gz").read_bytes()
    server.asked.clear()
    code, _, err = call("fetch", "toy-b", "--folder", "mine")
    assert (2, 1, []) == (code, err.count("\n"), server.asked)
    assert "move it away" in err
    assert b"my own version" == Path(f"mine/{B}.swf.gz").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["toy-a", "T0Y-B-1999"], "hpcrowd: log 'T0Y-B-1999': not known; similar: "),
        (["toy-a", "--timeout", "0s"], "timeout"),
        (["toy-a", "--timeout", "soon"], "'soon'"),
        (["toy-a"], "not found (404); it may have moved; get"),
    ],
)
def test_mistakes_are_one_line(call, server, arguments, words):
    """Names and numbers are checked before anything is fetched; a log may be missing there."""
    server.files.clear()
    code, out, err = call("fetch", *arguments)
    assert (2, "", 1) == (code, out, err.count("\n"))
    assert words in err
    assert (len(arguments) > 1) == (server.asked == [])


def test_interrupt(call, server, monkeypatch):
    """Ctrl-C ends with 130 and says that the same command continues."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("hpcrowd.environment.traces.archive.download.download", interrupted)
    code, _, err = call("fetch", "toy-a")
    assert 130 == code
    assert (
        f"hpcrowd: interrupted: the received part of {A} is kept; the same command resumes the "
        "download\n" == err
    )
