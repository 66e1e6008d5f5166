"""Is a file the log that its name says? Its checksum decides.

A log may be packed anew without a change to what it says, so the sum that decides is the one of the
unpacked content; where the packed file has the known sum, too, nothing needs to be unpacked.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from environment.archive import ArchiveLog

#: Bytes taken at once.
CHUNK = 1 << 20

#: What a gzip file begins with.
GZIP = b"\x1f\x8b"


def flaw(path: Path, log: ArchiveLog) -> str:
    """Return in words what is wrong with a file that should hold ``log``; empty when nothing is.

    A file that holds the log unpacked is right, too, whatever its name.

    Raises
    ------
    OSError
        When it cannot be read.
    """
    found = _sum(path)
    if found in (log.sha256, log.sha256_unpacked):
        return ""
    with path.open("rb") as file:
        begin = file.read(512)
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
        return f"SHA-256 of what is in it {found}, expected {log.sha256_unpacked}"
    return ""


def is_packed(path: Path) -> bool:
    """Return whether a file is gzipped, whatever its name."""
    with path.open("rb") as file:
        return file.read(len(GZIP)) == GZIP


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sum_unpacked(path: Path, most: int) -> str:
    """Return the sum of the content; empty when it is longer than ``most`` bytes."""
    digest, length = hashlib.sha256(), 0
    with gzip.open(path) as file:
        while chunk := file.read(CHUNK):
            length += len(chunk)
            if length > most:
                return ""
            digest.update(chunk)
    return digest.hexdigest()
