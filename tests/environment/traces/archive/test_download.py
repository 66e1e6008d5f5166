"""Every way that fetching a log can go: broken off, resumed, damaged, refused, at the same time."""

from __future__ import annotations

import gzip
import hashlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hpcrowd.environment import fetch

from tests.support.archive import (
    LOGS,
    SIZE,
    TARGET,
    A,
    Server,
    archive,
    get,
    names,
    packed,
    refusal,
    write_table,
)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serve a made-up archive, whose table takes the place of the real one."""
    with archive(tmp_path, monkeypatch) as server:
        yield server


@pytest.fixture
def cache(server: Server, tmp_path: Path) -> Path:
    """Return the cache folder, which is there."""
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def test_rest_only_is_asked_for(server: Server, cache: Path) -> None:
    """With 1,000 bytes there, the request is for those from the 1,000th on."""
    (cache / f"{A}.swf.gz.part").write_bytes(packed(A)[:1000])
    assert packed(A) == get().read_bytes()
    assert [(TARGET, "bytes=1000-")] == server.asked
    assert [f"{A}.swf.gz"] == names(cache)


def test_server_without_parts_starts_again(server: Server, cache: Path) -> None:
    """Where all is sent though a part was asked for, what was there does not stand before it."""
    server.ranges = False
    (cache / f"{A}.swf.gz.part").write_bytes(packed(A)[:1000])
    assert packed(A) == get().read_bytes()
    assert [(TARGET, "bytes=1000-")] == server.asked


def test_other_part_than_asked_for_starts_again(server: Server, cache: Path) -> None:
    """A server that sends from another byte on is asked for everything."""
    server.shift = 10
    (cache / f"{A}.swf.gz.part").write_bytes(packed(A)[:1000])
    assert packed(A) == get().read_bytes()
    assert [(TARGET, "bytes=1000-"), (TARGET, None)] == server.asked


def test_whole_part_needs_no_server(server: Server, cache: Path) -> None:
    """A download that was ended before its file was named is finished without a request."""
    (cache / f"{A}.swf.gz.part").write_bytes(packed(A))
    assert packed(A) == get().read_bytes()
    assert [] == server.asked


def test_part_that_is_too_long_starts_again(server: Server, cache: Path) -> None:
    """A refusal of the part (416) leads to a request for everything."""
    (cache / f"{A}.swf.gz.part").write_bytes(packed(A) + b"more")
    assert packed(A) == get().read_bytes()
    assert [(TARGET, f"bytes={SIZE + 4}-"), (TARGET, None)] == server.asked


def test_part_of_full_length_but_wrong(server: Server, cache: Path) -> None:
    """A part of full length with another content is reported and thrown away; then it works."""
    (cache / f"{A}.swf.gz.part").write_bytes(b"x" * SIZE)
    assert "SHA-256" in refusal(get)
    assert [] == names(cache)
    assert packed(A) == get().read_bytes()


def test_truncated_answer_is_gone_on_with(server: Server, cache: Path) -> None:
    """Two answers that end early cost two more requests, each for the rest."""
    server.cut = [1000, 500]
    assert packed(A) == get(retries=2).read_bytes()
    assert [None, "bytes=1000-", "bytes=1500-"] == [wanted for _, wanted in server.asked]


def test_truncated_answer_is_kept(server: Server, cache: Path) -> None:
    """Where attempts run out, the error says what is kept and how to continue, and it is true."""
    server.cut = [1000, 500]
    told = refusal(partial(get, retries=1))
    part = cache / f"{A}.swf.gz.part"
    assert (
        f"{server.base}{TARGET}: the connection ended after 1,500 of {SIZE:,} bytes (2 attempts); "
        f"1,500 bytes are kept in {part}; run the same command to resume" == told
    )
    assert packed(A)[:1500] == part.read_bytes()
    assert packed(A) == get().read_bytes()


def test_stalled_server_is_left(server: Server, cache: Path) -> None:
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


def test_corrupted_answer_is_thrown_away(server: Server, cache: Path) -> None:
    """Another content than expected is reported with both sums; nothing of it stays."""
    other = LOGS[A][1].replace(b"1 0 0 ", b"1 1 0 ", 1)
    server.files[TARGET] = gzip.compress(other)
    expected, found = (hashlib.sha256(text).hexdigest() for text in (LOGS[A][1], other))
    told = refusal(get)
    assert f"the download is not {A}: SHA-256 of the content {found}, expected {expected}" in told
    assert [] == names(cache)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (packed(A)[:-100], "a gzip file that is cut short"),
        (packed(A)[:2000] + b"\0" * 50 + packed(A)[2050:], "a damaged gzip file"),
        (gzip.compress(LOGS[A][1] + b"more"), "more than"),
        (b"<!DOCTYPE html><title>Log in</title>", "a web page, not a log"),
        (b"; Version: 2.2\n", "SHA-256"),
        (b"", "SHA-256"),
    ],
)
def test_what_is_not_such_a_log_is_reported(
    server: Server, cache: Path, content: bytes, words: str
) -> None:
    """A gzip file that is damaged or too long, a web page, another text and nothing are refused."""
    server.files[TARGET] = content
    assert words in refusal(get)
    assert [] == names(cache)


def test_endless_answer_is_ended(server: Server, cache: Path) -> None:
    """More than the log has unpacked is not taken."""
    server.files[TARGET] = b"\x1f\x8b" + b"x" * len(LOGS[A][1])
    assert "the server sent more than" in refusal(get)
    assert [] == names(cache)


def test_log_packed_again_is_right(server: Server, cache: Path) -> None:
    """Packed otherwise it is the same log; the sum of what is in it decides."""
    server.files[TARGET] = gzip.compress(LOGS[A][1], compresslevel=1)
    path = get()
    assert packed(A) != path.read_bytes()
    assert path == get()
    assert 1 == len(server.asked)


def test_log_that_comes_unpacked_is_named_so(server: Server, cache: Path) -> None:
    """A server that unpacks what it sends is understood; the file is named for what it is."""
    server.files[TARGET] = LOGS[A][1]
    assert cache / f"{A}.swf" == get() == get()
    assert 1 == len(server.asked)


def test_missing_file_shows_what_to_do(server: Server, cache: Path) -> None:
    """Not found (404) is reported once, with the address and where to put the file by hand."""
    del server.files[TARGET]
    assert (
        f"{server.base}{TARGET}: not found (404); it may have moved; get {A}.swf.gz elsewhere and "
        f"put it into {cache}, or set HPCROWD_ARCHIVE to the address of a mirror"
        == refusal(partial(get, retries=2))
    )
    assert 1 == len(server.asked)
    assert [] == names(cache)


def test_refusals_that_may_pass_are_tried_again(server: Server, cache: Path) -> None:
    """A busy server (503) is asked again, but not for ever; a forbidden file (403) is not."""
    server.statuses = [503, 503]
    assert packed(A) == get(retries=2).read_bytes()
    assert 3 == len(server.asked)
    server.statuses = [503] * 9
    assert "(503 Service Unavailable) (3 attempts)" in refusal(partial(get, "TOY-B", retries=2))
    assert 6 == len(server.asked)
    server.statuses = [403]
    assert "refused (403 Forbidden)" in refusal(partial(get, "TOY-B", retries=2))
    assert 7 == len(server.asked)


def test_refused_connection_shows_what_to_do(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no server listens, one line reports it and where to put the file by hand."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HPCROWD_ARCHIVE", f"http://127.0.0.1:{free.getsockname()[1]}/pwa/")
        told = refusal(get)
    assert f"/pwa{TARGET}: the connection was refused; get {A}.swf.gz elsewhere and put" in told
    assert str(cache) in told


@pytest.mark.parametrize("address", ["file:///pwa", "ftp://127.0.0.1/pwa", "pwa"])
def test_only_http_is_spoken(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Other addresses are refused before anything is opened."""
    monkeypatch.setenv("HPCROWD_ARCHIVE", address)
    assert "not an http:// or https:// address" in refusal(get)


def test_redirection_to_something_else_is_not_followed(server: Server, cache: Path) -> None:
    """A server cannot lead away from http."""
    server.statuses = [302]
    assert "unknown url type: ftp" in refusal(get)


def test_mirror_is_asked_instead(
    server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HPCROWD_ARCHIVE takes the place of everything before the folder of a log."""
    write_table(tmp_path / "elsewhere.csv", "https://archive.invalid/labs/workload")
    monkeypatch.setattr("hpcrowd.environment.traces.archive.logs.TABLE", tmp_path / "elsewhere.csv")
    monkeypatch.setenv("HPCROWD_ARCHIVE", server.base)
    assert packed(A) == get().read_bytes()
    assert [(TARGET, None)] == server.asked


def test_two_fetches_at_once(server: Server, cache: Path) -> None:
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


def test_interrupted_fetch_continues(server: Server, cache: Path) -> None:
    """Ctrl-C leaves what has come, and the next fetch asks for the rest."""

    def interrupt(name: str, have: int, total: int) -> None:
        if have:
            raise KeyboardInterrupt

    server.cut = [700]
    with pytest.raises(KeyboardInterrupt):
        fetch(A, progress=interrupt)
    assert packed(A)[:700] == (cache / f"{A}.swf.gz.part").read_bytes()
    assert packed(A) == get().read_bytes()
    assert "bytes=700-" == server.asked[1][1]


def test_killed_fetch_continues(server: Server, cache: Path) -> None:
    """A process that is killed leaves no lock behind, and a part that is gone on with."""
    server.stall = True
    code = (
        "import sys, hpcrowd.environment.traces.archive.logs as a; from pathlib import Path\n"
        "a.TABLE = Path(sys.argv[1]); a.fetch(sys.argv[2])"
    )
    table = cache.parent / "table.csv"
    part = cache / f"{A}.swf.gz.part"
    with subprocess.Popen([sys.executable, "-c", code, table, A], cwd=table.parents[0]) as process:
        until = time.monotonic() + 30
        while not (part.exists() and part.stat().st_size) and time.monotonic() < until:
            time.sleep(0.02)
        process.kill()
    assert SIZE // 2 == part.stat().st_size
    server.stall = False
    assert packed(A) == get().read_bytes()


def test_folder_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    """A file in the way of the folder is reported with the options that name another."""
    (tmp_path / "file").write_text("")
    told = refusal(lambda: fetch(A, folder=tmp_path / "file"))
    assert told.endswith("choose another folder with --folder or HPCROWD_CACHE")
