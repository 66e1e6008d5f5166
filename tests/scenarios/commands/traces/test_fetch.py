"""The command ``hpcrowd fetch``: the list, what it shows about a log, JSON, errors of one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.archive import SIZE, TARGET, A, Server, archive, packed

Call = Callable[..., tuple[int, str, str]]

B = "TOY-B-1999-1"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serve a made-up archive, in whose folder we are."""
    monkeypatch.chdir(tmp_path)
    with archive(tmp_path, monkeypatch) as server:
        monkeypatch.setenv("HPCROWD_CACHE", "cache")
        yield server


@pytest.fixture
def call(call: Call) -> Call:
    """Call ``hpcrowd fetch``."""
    return partial(call, "fetch")


def test_what_is_reported_of_a_log(call: Call, server: Server) -> None:
    """The file, its size in jobs, what its header says of its people, and what the archive asks."""
    code, out, err = call(A)
    assert (0, "") == (code, err)
    assert out == (
        f"cache/{A}.swf.gz: fetched and checked\n"
        "  2,000 jobs, 4 processors\n"
        "  Computer: Toy\n"
        "  Installation: Toy Centre\n"
        "  Acknowledge: Ada Example\n"
        "  Copyright: may be copied\n"
        "             if this line is kept\n"
        "  Information: http://toy.example/\n"
        "\n"
        "The Parallel Workloads Archive asks to be acknowledged in publications, together with the "
        "people who\n"
        "provided the log.\n"
    )
    assert f"cache/{A}.swf.gz: already here\n" in call("toy-a")[1]
    assert 1 == len(server.asked)


@pytest.mark.parametrize("arguments", [[], ["--list"]])
def test_list(call: Call, server: Server, arguments: list[str]) -> None:
    """Without a name, the logs are listed, each with whether it is here, and nothing is fetched."""
    Path("cache").mkdir()
    Path(f"cache/{A}.swf.gz").write_bytes(packed(A))
    Path(f"cache/{B}.swf.gz.part").write_bytes(b"x")
    code, out, _ = call(*arguments)
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
    (log,) = json.loads(call("toy-a", "--list", "--json")[1])["logs"]
    assert (A, "damaged") == (log["name"], log["state"])


def test_json_of_the_list(call: Call, server: Server) -> None:
    """The list has every column of the table, the address that counts, and the folder."""
    code, out, err = call("--list", "--json", "--folder", "there")
    told = json.loads(out)
    assert (0, "", "there") == (code, err, told["folder"])
    assert [A, B] == [log["name"] for log in told["logs"]]
    first = told["logs"][0]
    assert (2000, 4, SIZE, "no") == tuple(
        first[key] for key in ("jobs", "processors", "bytes", "state")
    )
    assert f"{server.base}{TARGET}" == first["url"] == first["address"]


def test_json_of_fetched_logs(call: Call, server: Server) -> None:
    """Each log comes once, with its path, whether it was fetched now, and its header."""
    call("toy-a")
    code, out, err = call("toy-a", "TOY-B", A, "--json")
    told = json.loads(out)
    assert (0, "") == (code, err)
    assert [(A, False), (B, True)] == [(log["name"], log["fetched"]) for log in told["logs"]]
    assert [f"cache/{A}.swf.gz", f"cache/{B}.swf.gz"] == [log["path"] for log in told["logs"]]
    assert ["may be copied\nif this line is kept"] == told["logs"][0]["header"]["Copyright"]
    assert "acknowledged" in told["request"]


def test_folder(call: Call, server: Server, tmp_path: Path) -> None:
    """A folder that is named holds the log afterwards; the cache is not made."""
    assert 0 == call("toy-b", "--folder", "mine")[0]
    assert packed(B) == Path(f"mine/{B}.swf.gz").read_bytes()
    assert not Path("cache").exists()


def test_damaged_log_is_replaced_and_told(call: Call, server: Server) -> None:
    """A damaged file is replaced, which is said."""
    Path("cache").mkdir()
    Path(f"cache/{B}.swf.gz").write_bytes(b"x")
    code, _, err = call("toy-b")
    assert (0, f"The file of {B} was damaged and has been replaced.\n") == (code, err)
    assert packed(B) == Path(f"cache/{B}.swf.gz").read_bytes()


def test_other_files_with_the_name_of_a_log_stay(call: Call, server: Server) -> None:
    """In a folder that is named, a file that is not the log is left alone, and nothing is asked."""
    path = Path(f"mine/{B}.swf.gz")
    path.parent.mkdir()
    path.write_bytes(b"my own version")
    code, _, err = call("toy-b", "--folder", "mine")
    assert (2, 1, []) == (code, err.count("\n"), server.asked)
    assert "move it away" in err
    assert b"my own version" == path.read_bytes()


def test_links_stay_links(call: Call, server: Server) -> None:
    """A link in the cache that leads nowhere yet is filled, not replaced."""
    Path("cache").mkdir()
    Path("disk").mkdir()
    link, file = Path(f"cache/{B}.swf.gz"), Path("disk/log").absolute()
    link.symlink_to(file)
    assert 0 == call("toy-b")[0]
    assert (True, packed(B)) == (link.is_symlink(), file.read_bytes())


def test_all_names_are_checked_first(call: Call, server: Server) -> None:
    """A name that is not known ends the command before anything is fetched."""
    code, out, err = call("toy-a", "T0Y-B-1999")
    assert (2, "") == (code, out)
    assert "hpcrowd: log 'T0Y-B-1999': not known; similar: " in err
    assert [] == server.asked


@pytest.mark.parametrize("timeout", ["0s", "soon"])
def test_timeouts_that_cannot_be(call: Call, server: Server, timeout: str) -> None:
    """A timeout is a duration of at least a second."""
    code, _, err = call("toy-a", "--timeout", timeout)
    assert (2, 1) == (code, err.count("\n"))


def test_missing_log(call: Call, server: Server) -> None:
    """A log that the server does not have is an error of one line, with the exit code 2."""
    del server.files[TARGET]
    code, out, err = call("toy-a")
    assert (2, "", 1) == (code, out, err.count("\n"))
    assert f"hpcrowd: {server.base}{TARGET}: not found (404); it may have moved; get" in err


def test_interrupt(call: Call, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with 130 and says that the same command continues."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hpcrowd.environment.traces.archive.download.download", interrupted)
    code, _, err = call("toy-a")
    assert 130 == code
    assert (
        f"hpcrowd: interrupted: the received part of {A} is kept; the same command resumes the "
        "download\n" == err
    )
