"""The archive: names, folders, files that count as a log, and its table."""

from __future__ import annotations

import gzip
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hpcrowd.environment import (
    ArchiveError,
    Trace,
    TraceError,
    archive_logs,
    cache_folder,
    fetch,
    read_swf,
)
from hpcrowd.environment import trace_path as resolve_path
from hpcrowd.environment.traces.archive.logs import find_log

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


def test_fetched_log_is_the_one_served(server: Server, tmp_path: Path) -> None:
    """A log lands in the cache byte for byte, reads, and is not asked for a second time."""
    progress: list[tuple[str, int, int]] = []
    path = fetch(A, progress=lambda *step: progress.append(step))
    assert tmp_path / "cache" / f"{A}.swf.gz" == path
    assert packed(A) == path.read_bytes()
    assert 2000 == len(read_swf(path))
    assert [(A, 0, SIZE), (A, SIZE, SIZE)] == [progress[0], progress[-1]]
    assert path == fetch(A)
    assert [(TARGET, None)] == server.asked
    assert [path.name] == names(path.parent)


def test_fetch_into_a_folder(server: Server, tmp_path: Path) -> None:
    """A folder may be named, and is made; the cache stays as it is."""
    path = fetch("toy-b", folder=tmp_path / "a" / "b")
    assert tmp_path / "a" / "b" / "TOY-B-1999-1.swf.gz" == path
    assert not cache_folder().exists()


def test_damaged_file_is_reported_and_repaired(server: Server, cache: Path) -> None:
    """A damaged file in the cache is not used; the error says how to repair it, and that works."""
    path = get()
    path.write_bytes(packed(A)[:-10])
    told = refusal(lambda: resolve_path(f"archive:{A}"))
    assert f"{path}: damaged or another file: a gzip file that is cut short" in told
    assert f"`hpcrowd fetch {A}`" in told
    assert packed(A) == get().read_bytes()
    assert path == resolve_path(f"archive:{A}")


@pytest.mark.parametrize("unpacked", [False, True])
def test_file_put_by_hand_counts(server: Server, cache: Path, unpacked: bool) -> None:
    """A log that was placed in the cache is used, gzipped or not, without a request."""
    path = cache / (f"{A}.swf" if unpacked else f"{A}.swf.gz")
    path.write_bytes(LOGS[A][1] if unpacked else packed(A))
    assert path == get() == resolve_path("archive:toy-a")
    assert [] == server.asked


def test_folder_of_traces_comes_first(
    server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HPCROWD_TRACES comes before the cache; a damaged file there is reported, not used."""
    cached, mine = get(), tmp_path / "mine" / f"{A}.swf.gz"
    mine.parent.mkdir()
    monkeypatch.setenv("HPCROWD_TRACES", str(mine.parent))
    assert cached == resolve_path(f"archive:{A}")
    mine.write_bytes(packed(A))
    assert mine == resolve_path(f"archive:{A}.swf.gz")
    mine.write_bytes(b"another")
    assert refusal(lambda: resolve_path(f"archive:{A}")).endswith("; move it away")


def test_paths_are_left_alone(server: Server) -> None:
    """What does not begin with ``archive:`` is the path it is; the rest is fetched if need be."""
    assert Path("a/log.swf") == resolve_path("a/log.swf") == resolve_path(Path("a/log.swf"))
    assert packed(A) == resolve_path(Path("archive:TOY-A")).read_bytes()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("TOY-A-1999-1", A),
        ("toy-a-1999-1.SWF.gz", A),
        ("TOY-A-1999-1.swf", A),
        (" Toy-A ", A),
        ("toy", "could be TOY-A-1999-1, TOY-B-1999-1; give more of the name"),
        ("T0Y-A-1999", "not known; similar: TOY-A-1999-1"),
        ("../TOY-A", "not known; similar: TOY-A-1999-1"),
        ("x", "not known; `hpcrowd fetch --list` shows all"),
        ("", "not known; `hpcrowd fetch --list` shows all"),
    ],
)
def test_names(server: Server, name: str, expected: str) -> None:
    """Names are found by their beginning, upper or lower case; others get suggestions."""
    if expected == A:
        assert A == find_log(name).name
    else:
        assert f"log {name!r}: {expected}" in refusal(lambda: find_log(name))


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_error_is_an_error_of_traces() -> None:
    """Who catches errors of traces, or ValueError, catches those of the archive."""
    assert issubclass(ArchiveError, TraceError)
    assert issubclass(ArchiveError, ValueError)


def test_table_is_complete() -> None:
    """Every row of the real table has a plausible address, sums and sizes; names are unique."""
    logs = archive_logs()
    assert 10 == len(logs) == len({log.name.casefold() for log in logs})
    for log in logs:
        assert log.url.startswith("https://www.cs.huji.ac.il/labs/parallel/workload/l_")
        assert log.url.endswith(f"/{log.file}")
        assert {64} == {len(log.sha256), len(log.sha256_unpacked)}
        assert 0 < log.bytes < log.bytes_unpacked


@pytest.mark.traces
def test_table_is_that_of_the_files(traces: Path) -> None:
    """Every log in the folder of real traces has a row, and every row says what its file says."""
    found = {path.name.removesuffix(".swf.gz") for path in traces.glob("*.swf.gz")}
    logs = {log.name: log for log in archive_logs()}
    assert set() == found - set(logs)
    for name in sorted(found):
        content = (traces / f"{name}.swf.gz").read_bytes()
        text, log = gzip.decompress(content), logs[name]
        assert (len(content), hashlib.sha256(content).hexdigest()) == (log.bytes, log.sha256)
        assert len(text) == log.bytes_unpacked
        assert hashlib.sha256(text).hexdigest() == log.sha256_unpacked


@pytest.mark.slow
@pytest.mark.traces
def test_counts_of_the_table(read_trace: Callable[[str], Trace]) -> None:
    """Jobs and processors of each row are those that reading its file finds."""
    for log in archive_logs():
        trace = read_trace(log.name)
        assert (len(trace), trace.processors) == (log.jobs, log.processors)
