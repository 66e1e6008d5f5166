"""The archive: names, folders, its table, every way that fetching can go, and who takes names."""

import gzip
import hashlib
import re
import socket
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import typer
from hpcrowd import fetch, read_run, read_swf, read_trace
from hpcrowd.environment.traces.archive.logs import find_log
from hpcrowd.scenarios.cli import app
from hpcrowd.scenarios.inspector.subjects.subject import subject_of
from hpcrowd.traces import archive_logs, cache_folder
from hpcrowd.traces import trace_path as resolve_path

from tests.support import archive
from tests.support.archive import LOGS, SIZE, TARGET, A, get, names, packed, refusal, write_table


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve a made-up archive, whose table takes the place of the real one."""
    with archive.archive(tmp_path, monkeypatch) as server:
        yield server


@pytest.fixture
def cache(server, tmp_path):
    """Return the cache folder, which is there."""
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def test_fetched_log_is_the_one_served(server, tmp_path):
    """A log lands in the cache, or a folder, and is not asked for again; paths are left alone."""
    progress: list[tuple[str, int, int]] = []
    path = fetch(A, progress=lambda *step: progress.append(step))
    assert tmp_path / "cache" / f"{A}.swf.gz" == path
    assert packed(A) == path.read_bytes()
    assert 2000 == len(read_swf(path))
    assert [(A, 0, SIZE), (A, SIZE, SIZE)] == [progress[0], progress[-1]]
    assert path == fetch(A)
    assert [(TARGET, None)] == server.asked
    assert [path.name] == names(path.parent)
    other = tmp_path / "a" / "b"
    assert other / "TOY-B-1999-1.swf.gz" == fetch("toy-b", folder=other)
    assert Path("a/log.swf") == resolve_path("a/log.swf") == resolve_path(Path("a/log.swf"))
    assert path == resolve_path(Path("archive:TOY-A"))
    (tmp_path / "file").write_text("")  # a file is in the way of the folder
    told = refusal(lambda: fetch(A, folder=tmp_path / "file"))
    assert told.endswith("choose another folder with --folder or HPCROWD_CACHE")


def test_damaged_file_is_reported_and_repaired(server, cache):
    """A damaged file in the cache is not used; the error says how to repair it, and that works."""
    path = get()
    path.write_bytes(packed(A)[:-10])
    told = refusal(lambda: resolve_path(f"archive:{A}"))
    assert f"{path}: damaged or another file: a gzip file that is cut short" in told
    assert f"`hpcrowd fetch {A}`" in told
    assert packed(A) == get().read_bytes()
    assert path == resolve_path(f"archive:{A}")


def test_folder_of_traces_comes_first(server, cache, tmp_path, monkeypatch):
    """HPCROWD_TRACES comes before the cache; a damaged file there is reported, not used."""
    cached, mine = get(), tmp_path / "mine" / f"{A}.swf.gz"
    mine.parent.mkdir()
    monkeypatch.setenv("HPCROWD_TRACES", str(mine.parent))
    assert cached == resolve_path(f"archive:{A}")
    mine.write_bytes(packed(A))
    assert mine == resolve_path(f"archive:{A}.swf.gz")
    mine.write_bytes(b"another")
    assert refusal(lambda: resolve_path(f"archive:{A}")).endswith("; move it away")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("toy-a-1999-1.SWF.gz", A), ("TOY-A-1999-1.swf", A), (" Toy-A ", A),
        ("toy", "could be TOY-A-1999-1, TOY-B-1999-1; give more of the name"),
        ("T0Y-A-1999", "not known; similar: TOY-A-1999-1"),
        ("../TOY-A", "not known; similar: TOY-A-1999-1"),
        ("", "not known; `hpcrowd fetch --list` shows all"),
    ],
)  # fmt: skip
def test_names(server, name, expected):
    """Names are found by their beginning, upper or lower case; others get suggestions."""
    if expected == A:
        assert A == find_log(name).name
    else:
        assert f"log {name!r}: {expected}" in refusal(lambda: find_log(name))


def test_cache_folder(monkeypatch):
    """HPCROWD_CACHE names it, else it is among the user's caches; a relative base is ignored."""
    monkeypatch.setenv("HPCROWD_CACHE", "~/logs")
    monkeypatch.setenv("HOME", "/nobody")
    assert Path("/nobody/logs") == cache_folder()
    monkeypatch.delenv("HPCROWD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert Path("/caches/hpcrowd/traces") == cache_folder()
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    monkeypatch.setattr(sys, "platform", "linux")
    assert Path("/nobody/.cache/hpcrowd/traces") == cache_folder()


@pytest.mark.traces
def test_table_is_that_of_the_files(traces):
    """Every row is complete, and every log in the folder of real traces is what its row says."""
    logs = archive_logs()
    assert 10 == len(logs) == len({log.name.casefold() for log in logs})
    assert {path.name for path in traces.glob("*.swf.gz")} <= {log.file for log in logs}
    for log in logs:
        assert log.url.startswith("https://www.cs.huji.ac.il/labs/parallel/workload/l_")
        assert log.url.endswith(f"/{log.file}")
        if (traces / log.file).exists():
            content = (traces / log.file).read_bytes()
            text = gzip.decompress(content)
            assert (len(content), hashlib.sha256(content).hexdigest()) == (log.bytes, log.sha256)
            assert len(text) == log.bytes_unpacked
            assert hashlib.sha256(text).hexdigest() == log.sha256_unpacked


WHOLE = packed(A)


@pytest.mark.parametrize(
    ("part", "ranges", "shift", "asked"),
    [
        (WHOLE[:1000], True, 0, ["bytes=1000-"]), (WHOLE[:1000], False, 0, ["bytes=1000-"]),
        (WHOLE[:1000], True, 10, ["bytes=1000-", None]), (WHOLE, True, 0, []),
        (WHOLE + b"more", True, 0, [f"bytes={SIZE + 4}-", None]),
    ],
    ids=["rest", "all is sent", "another part is sent", "nothing is missing", "too long"],
)  # fmt: skip
def test_part_that_is_there(server, cache, part, ranges, shift, asked):
    """Only what is missing is asked for; where an answer does not fit to a part, everything is."""
    server.ranges, server.shift = ranges, shift
    (cache / f"{A}.swf.gz.part").write_bytes(part)
    assert WHOLE == get().read_bytes()
    assert [(TARGET, wanted) for wanted in asked] == server.asked
    assert [f"{A}.swf.gz"] == names(cache)


def test_truncated_answer_is_kept(server, cache):
    """Each answer that ends early costs a request for the rest; in the end it says what is kept."""
    server.cut = [1000, 500]
    told = refusal(partial(get, retries=1))
    part = cache / f"{A}.swf.gz.part"
    assert (
        f"{server.base}{TARGET}: the connection ended after 1,500 of {SIZE:,} bytes (2 attempts); "
        f"1,500 bytes are kept in {part}; run the same command to resume" == told
    )
    assert packed(A)[:1500] == part.read_bytes()
    assert packed(A) == get().read_bytes()
    assert [None, "bytes=1000-", "bytes=1500-"] == [wanted for _, wanted in server.asked]


def test_stalled_server_is_left(server, cache):
    """A server that stops half-way is left after the time given, and what came is kept."""
    server.stall = True
    began = time.monotonic()
    told = refusal(partial(get, timeout_s=0.2, retries=5))
    assert 0.2 <= time.monotonic() - began < 5
    assert "no data for 0.2 s; " in told
    assert 1 == len(server.asked)
    server.stall = False
    assert packed(A) == get().read_bytes()
    assert f"bytes={SIZE // 2}-" == server.asked[1][1]


OTHER = LOGS[A][1].replace(b"1 0 0 ", b"1 1 0 ", 1)
SUMS = [hashlib.sha256(text).hexdigest() for text in (OTHER, LOGS[A][1])]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (packed(A)[:-100], "a gzip file that is cut short"),
        (packed(A)[:2000] + b"\0" * 50 + packed(A)[2050:], "a damaged gzip file"),
        (gzip.compress(LOGS[A][1] + b"more"), "more than"),
        (b"<!DOCTYPE html><title>Log in</title>", "a web page, not a log"),
        (gzip.compress(OTHER), f"is not {A}: SHA-256 of the content {SUMS[0]}, expected {SUMS[1]}"),
        (b"\x1f\x8b" + b"x" * len(LOGS[A][1]), "the server sent more than"),
        (None, "SHA-256"),  # a part of full length, but with another content
    ],
)
def test_what_is_not_such_a_log_is_reported(server, cache, content, words):
    """What is damaged, too long, a web page, another text or nothing is refused and thrown away."""
    if content is None:
        (cache / f"{A}.swf.gz.part").write_bytes(b"x" * SIZE)
    else:
        server.files[TARGET] = content
    assert words in refusal(get)
    assert [] == names(cache)
    server.files[TARGET] = packed(A)
    assert packed(A) == get().read_bytes()


@pytest.mark.parametrize("served", [True, False])
@pytest.mark.parametrize("unpacked", [False, True])
def test_log_packed_otherwise_is_right(server, cache, unpacked, served):
    """The sum of what is in it decides, also of a file put there by hand, without a request."""
    content = LOGS[A][1] if unpacked else gzip.compress(LOGS[A][1], compresslevel=1)
    place = cache / (f"{A}.swf" if unpacked else f"{A}.swf.gz")
    if served:
        server.files[TARGET] = content
    else:
        place.write_bytes(content)
    assert place == get() == get() == resolve_path("archive:toy-a")
    assert content == place.read_bytes()
    assert int(served) == len(server.asked)


def test_refusals_that_may_pass_are_tried_again(server, cache):
    """A busy server (503) is asked again, but not for ever; a forbidden (403) or no file is not."""
    server.statuses = [503, 503]
    assert packed(A) == get(retries=2).read_bytes()
    assert 3 == len(server.asked)
    server.statuses = [503] * 9
    assert "(503 Service Unavailable) (3 attempts)" in refusal(partial(get, "TOY-B", retries=2))
    assert 6 == len(server.asked)
    server.statuses = [403]
    assert "refused (403 Forbidden)" in refusal(partial(get, "TOY-B", retries=2))
    assert 7 == len(server.asked)
    del server.files[TARGET]
    (cache / f"{A}.swf.gz").unlink()
    assert (
        f"{server.base}{TARGET}: not found (404); it may have moved; get {A}.swf.gz elsewhere and "
        f"put it into {cache}, or set HPCROWD_ARCHIVE to the address of a mirror"
        == refusal(partial(get, retries=2))
    )
    assert 8 == len(server.asked)


def test_other_addresses(server, cache, tmp_path, monkeypatch):
    """HPCROWD_ARCHIVE takes the place of everything before the folder of a log: http only."""
    write_table(tmp_path / "elsewhere.csv", "https://archive.invalid/labs/workload")
    monkeypatch.setattr("hpcrowd.environment.traces.archive.logs.TABLE", tmp_path / "elsewhere.csv")
    for address in ("file:///pwa", "ftp://127.0.0.1/pwa", "pwa"):
        monkeypatch.setenv("HPCROWD_ARCHIVE", address)
        assert "not an http:// or https:// address" in refusal(get)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HPCROWD_ARCHIVE", f"http://127.0.0.1:{free.getsockname()[1]}/pwa/")
        told = refusal(get)
    assert f"/pwa{TARGET}: the connection was refused; get {A}.swf.gz elsewhere and put" in told
    assert str(cache) in told
    monkeypatch.setenv("HPCROWD_ARCHIVE", server.base)
    server.statuses = [302]
    assert "unknown url type: ftp" in refusal(get)  # where the server leads
    assert packed(A) == get().read_bytes()
    assert [(TARGET, None)] * 2 == server.asked


def test_two_fetches_at_once(server, cache):
    """Four fetches at the same time give one whole file with one request."""
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(get())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [cache / f"{A}.swf.gz"] * 4 == found
    assert packed(A) == found[0].read_bytes()
    assert [(TARGET, None)] == server.asked
    assert [f"{A}.swf.gz"] == names(cache)


def test_every_argument_that_is_a_trace_may_be_a_name(server, call, tmp_path, monkeypatch):
    """An unknown log is one line of the commands, which says how to see the names."""
    monkeypatch.chdir(tmp_path)
    found = []
    for name, command in typer.main.get_command(app).commands.items():
        given = [one for one in command.params if one.param_type_name == "argument"]
        traces = [bool(re.search(r"TRACE|^IN$", one.metavar or "")) for one in given]
        if any(traces):
            code, _, err = call(name, *("archive:NOBODY" if one else "x.csv" for one in traces))
            assert (2, 1, True) == (code, err.count("\n"), "hpcrowd fetch --list" in err), name
            found.append(name)
    assert len(found) > 10


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        *(("run", f'[scenario]\nkind = "{kind}"\n') for kind in ("replay", "resample")),
        ("run", '[scenario]\nkind = "grid"\n[scenario.clusters.north]\nprocessors = 4\n'),
        ("grid", "[clusters.north]\nprocessors = 4\n"),
    ],
)
def test_logs_are_named_in_scenarios(server, cache, call, tmp_path, monkeypatch, command, settings):
    """They are fetched, and an unknown one is one line."""
    monkeypatch.chdir(tmp_path)
    for log, expected in (("TOY-B", 0), ("NOBODY", 2)):
        Path("it.toml").write_text(f'{settings}trace = "archive:{log}"\n')
        code, _, err = call(command, "it.toml")
        assert (expected, bool(expected)) == (code, "hpcrowd fetch --list" in err), err
    assert 1 == len(server.asked)


def test_log_is_fetched_when_it_is_named(server, cache, call):
    """A log that is not there yet is fetched by what needs it, once: commands, functions, pages."""
    for _ in range(2):
        assert 0 == call("sessions", "archive:toy-a-1999-1.swf.gz")[0]
    trace = read_trace("archive:toy-a")
    assert trace.source.endswith(f"cache/{A}.swf.gz")
    assert f"{A}.swf.gz" == subject_of(Path("archive:toy-a")).name
    assert 2000 == len(trace) == len(read_run("archive:toy-a").jobs)
    assert [(TARGET, None)] == server.asked
