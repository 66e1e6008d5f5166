"""Logs of the Parallel Workloads Archive by name, fetched once and kept in a folder.

``archive.csv`` has a row for each log with a known checksum. A file is accepted as the log if its
checksum matches, wherever it comes from. Because a log may be compressed again without a change to
its content, the checksum of the unpacked content decides; if the packed file has the known checksum
too, it need not be unpacked.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import shutil
import sys
import zlib
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.errors import ArchiveError
from hpcrowd.environment.output.whole import whole_file

if TYPE_CHECKING:
    from hpcrowd.environment.traces.formats.registry import Progress


#: The known logs.
TABLE = Path(__file__).with_name("archive.csv")

#: Endings of log files, the usual one first.
SUFFIXES = (".swf.gz", ".swf")

#: Beginning of all addresses, before the folder of a log.
BEFORE_FOLDER = "/l_"

#: Environment variables: folder for fetched logs; address of a mirror; folder with existing logs.
CACHE, MIRROR, TRACES = "HPCROWD_CACHE", "HPCROWD_ARCHIVE", "HPCROWD_TRACES"

#: Bytes read at a time.
CHUNK = 1 << 20

#: First bytes of a gzip file.
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class ArchiveLog:
    """A log of the archive.

    Attributes
    ----------
    name
        Name of its file, without ``.swf.gz``.
    machine
        Description of the machine.
    jobs
        Number of jobs.
    processors
        Processors of the machine.
    bytes, bytes_unpacked
        Size of the file, gzipped and unpacked.
    sha256, sha256_unpacked
        Checksums of both; that of the unpacked content decides.
    url
        Its address in the archive.
    """

    name: str
    machine: str
    jobs: int
    processors: int
    bytes: int
    bytes_unpacked: int
    sha256: str
    sha256_unpacked: str
    url: str

    @property
    def file(self) -> str:
        """Name of its file."""
        return self.name + SUFFIXES[0]

    @property
    def address(self) -> str:
        """Address to download from: ``url``, or the same on the mirror ``HPCROWD_ARCHIVE``."""
        mirror = os.environ.get(MIRROR)
        if not mirror:
            return self.url
        return mirror.rstrip("/") + BEFORE_FOLDER + self.url.split(BEFORE_FOLDER, 1)[1]


def archive_logs() -> tuple[ArchiveLog, ...]:
    """Return the known logs, by name."""
    return _logs(TABLE)


@lru_cache
def _logs(table: Path) -> tuple[ArchiveLog, ...]:
    with table.open(newline="", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        row |= {name: int(row[name]) for name in ("jobs", "processors", "bytes", "bytes_unpacked")}
    return tuple(ArchiveLog(**row) for row in rows)


def find_log(name: str) -> ArchiveLog:
    """Return the log with this name, or the only one whose name begins with it, ignoring case.

    Such as ``KTH-SP2-1996-2.1-cln``, the same with ``.swf.gz``, or ``KTH``. Raises ArchiveError if
    there is none, or several.
    """
    asked = name.strip().casefold()
    for suffix in SUFFIXES:
        asked = asked.removesuffix(suffix)
    logs = {log.name.casefold(): log for log in archive_logs()}
    found = [log for key, log in logs.items() if asked and key.startswith(asked)]
    if asked in logs:
        return logs[asked]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(log.name for log in found)
        raise ArchiveError(f"log {name!r}: could be {names}; give more of the name")
    begins = {key[: len(asked)] for key in logs}
    near = get_close_matches(asked, begins, 3) if asked else []
    names = ", ".join(log.name for key, log in logs.items() if key.startswith(tuple(near)))
    like = f"similar: {names}; " if near else ""
    raise ArchiveError(f"log {name!r}: not known; {like}`hpcrowd fetch --list` shows all")


def cache_folder() -> Path:
    """Return the folder for fetched logs.

    That is ``HPCROWD_CACHE``, else ``hpcrowd/traces`` in the user's cache folder
    (``XDG_CACHE_HOME``, ``~/.cache``).
    """
    own = os.environ.get(CACHE)
    if own:
        return Path(own).expanduser()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # a relative one is to be ignored (XDG Base Directory, 0.8)
        base = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return base / "hpcrowd" / "traces"


def flaw(path: Path, log: ArchiveLog) -> str:
    """Return in words what is wrong with a file that should hold ``log``; empty if nothing is.

    A file with the unpacked log is right, too, whatever its name. Raises OSError if it cannot be
    read.
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        begin = file.read(512)
    if found in (log.sha256, log.sha256_unpacked):
        return ""
    if not begin.startswith(GZIP):
        if begin.lstrip()[:5].lower() in (b"<!doc", b"<html"):
            return "a web page, not a log"
        return f"SHA-256 {found}, expected {log.sha256_unpacked}"
    try:
        found = _sum_unpacked(path, log.bytes_unpacked)
    except EOFError:
        return f"a gzip file that is cut short: SHA-256 {found}, expected {log.sha256}"
    except (gzip.BadGzipFile, zlib.error):
        return f"a damaged gzip file: SHA-256 {found}, expected {log.sha256}"
    if not found:
        return f"more than {log.bytes_unpacked:,} bytes when unpacked"
    if found != log.sha256_unpacked:
        return f"SHA-256 of the content {found}, expected {log.sha256_unpacked}"
    return ""


def _sum_unpacked(path: Path, most: int) -> str:
    """Return the checksum of the content; empty if it is longer than ``most`` bytes."""
    digest, length = hashlib.sha256(), 0
    with gzip.open(path) as file:
        while chunk := file.read(CHUNK):
            length += len(chunk)
            if length > most:
                return ""
            digest.update(chunk)
    return digest.hexdigest()


def stored(log: ArchiveLog, folder: Path) -> Path | None:
    """Return the file in ``folder`` that holds ``log``, None if there is none.

    Raises ArchiveError if a file with its name holds something else, or cannot be read.
    """
    wrong = ""
    for suffix in SUFFIXES:
        path = folder / (log.name + suffix)
        if not path.is_file():
            continue
        try:
            found = flaw(path, log)
        except OSError as error:
            raise ArchiveError(
                f"{path}: cannot be read: {error.strerror or error}; move it away"
            ) from error
        if not found:
            return path
        wrong = wrong or f"{path}: damaged or another file: {found}"
    if wrong:
        cure = "move it away"
        if folder == cache_folder():
            cure = f"download it again with `hpcrowd fetch {log.name}`"
        raise ArchiveError(f"{wrong}; {cure}")
    return None


def log_file(name: str, progress: Progress | None = None) -> Path:
    """Return the file of a log: from ``HPCROWD_TRACES``, else from the cache, else downloaded.

    As :func:`fetch`, it raises ArchiveError if the log is not known, is damaged, or cannot be
    downloaded.
    """
    log = find_log(name)
    traces = os.environ.get(TRACES)
    for place in (*([Path(traces)] if traces else []), cache_folder()):
        found = stored(log, place)
        if found is not None:
            return found
    return fetch(log.name, progress=progress)


def fetch(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    timeout_s: float = 30.0,
    retries: int = 2,
    pause_s: float = 1.0,
    progress: Progress | None = None,
) -> Path:
    """Return the file of a log, downloaded if necessary.

    A damaged file is replaced in the cache, and left alone in any other folder. An interrupted
    download leaves ``NAME.swf.gz.part`` next to it; the next one requests only the rest.

    Parameters
    ----------
    name
        See :func:`find_log`.
    folder
        Where to keep it; :func:`cache_folder` unless given.
    timeout_s
        Longest time without a byte, s.
    retries
        Number of retries after a temporary failure, such as a broken connection.
    pause_s
        Time before the first retry, s; it doubles each time.
    progress
        Called with name, bytes so far, and bytes in all.

    Raises
    ------
    ArchiveError
        If the log is not known, cannot be downloaded, the downloaded file is not the log, or
        another file has its name in a folder that is not the cache.
    """
    from hpcrowd.environment.traces.archive.download import claimed, download

    log = find_log(name)
    place = cache_folder() if folder is None else Path(folder)
    is_new = not place.exists()
    try:
        place.mkdir(parents=True, exist_ok=True)
        found = _good(log, place)
        if found is not None:
            return found
        with claimed(place / f"{log.file}.part") as file:
            found = _good(log, place)  # another process may have fetched it meanwhile
            if found is not None:
                file.truncate(0)
                return found
            part = Path(file.name)
            if part.stat().st_size < log.bytes or flaw(part, log):
                download(
                    log.address,
                    file,
                    most=log.bytes_unpacked,
                    cure=(
                        f"get {log.file} elsewhere and put it into {place}, or set {MIRROR} to the "
                        "address of a mirror"
                    ),
                    timeout_s=timeout_s,
                    retries=retries,
                    pause_s=pause_s,
                    progress=lambda have, total: (
                        progress(log.name, have, total or log.bytes) if progress else None
                    ),
                )
            wrong = flaw(part, log)
            if wrong:
                file.truncate(0)
                raise ArchiveError(
                    f"{log.address}: the download is not {log.name}: {wrong}; deleted, download it "
                    "again"
                )
            os.fsync(file.fileno())
            with part.open("rb") as begin:
                packed = begin.read(len(GZIP)) == GZIP
            target = place / (log.name + SUFFIXES[0 if packed else 1])
            with whole_file(target, ArchiveError) as temporary:
                shutil.move(part, temporary)
            return target
    except OSError as error:
        raise ArchiveError(
            f"{place}: cannot be written: {error.strerror or error}; choose another folder with "
            f"--folder or {CACHE}"
        ) from error
    finally:
        if is_new:  # nothing was downloaded if it is empty
            with suppress(OSError):
                place.rmdir()


def _good(log: ArchiveLog, folder: Path) -> Path | None:
    """Return the same as :func:`stored`, but None for a damaged file of the cache.

    Elsewhere a file with the name of a log may be somebody's own version of it.
    """
    try:
        return stored(log, folder)
    except ArchiveError:
        if folder != cache_folder():
            raise
        return None
