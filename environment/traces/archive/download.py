"""Download a file over HTTP into a ``.part`` file that a later download goes on with.

What has come stays in the ``.part`` file when the rest does not: then only the rest is asked for
(a ``Range`` request, RFC 9110, section 14). Only one process at a time writes to it.
"""

from __future__ import annotations

import http.client
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from hpcrowd.environment.errors import ArchiveError
from hpcrowd.environment.quantities import plural

#: Bytes taken at once.
CHUNK = 1 << 16

#: Answers after which the same request may be granted a little later.
PASSING = (408, 425, 429, 500, 502, 503, 504)

#: Seconds between two looks at a file that another process downloads.
LOOK_S = 0.1

#: Called with a label, the bytes there are, and the bytes there will be.
Progress = Callable[[str, int, int], Any]


class _Failure(Exception):
    """Why a request came to nothing, in words, and whether it may go better a little later."""

    def __init__(self, what: str, passing: bool = False) -> None:
        self.what, self.passing = what, passing
        super().__init__(what)


def download(
    url: str,
    file: BinaryIO,
    *,
    most: int,
    cure: str,
    timeout_s: float,
    retries: int,
    pause_s: float,
    progress: Callable[[int, int | None], Any],
) -> None:
    """Append what is missing of a file at ``url`` to ``file``, which is open for appending.

    Parameters
    ----------
    url
        Address, http or https.
    file
        Holds the beginning, or nothing; what came is in it afterwards, whatever happens.
    most
        Bytes that the file has at most.
    cure
        What a user may do when nothing at all can be had.
    timeout_s, retries, pause_s
        How long to wait, and how often to go on, see ``archive.logs.fetch``.
    progress
        Called with the bytes there are, and the bytes there will be if that is known.

    Raises
    ------
    ArchiveError
        When not all of it came; in one line what happened, and how to go on.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise ArchiveError(f"{url}: only http:// and https:// are fetched from; {cure}")
    for attempt in range(retries + 1):
        try:
            _append(url, file, most, timeout_s, progress)
            return
        except _Failure as failure:
            have = file.seek(0, os.SEEK_END)
            if failure.passing and attempt < retries:
                time.sleep(pause_s * 2**attempt)
                continue
            tried = f" ({plural(attempt + 1, 'attempt')})" if attempt else ""
            kept = f"{have:,} bytes are kept in {file.name}, the same command goes on from there"
            raise ArchiveError(
                f"{url}: {failure.what}{tried}; {kept if have else cure}"
            ) from failure


def _append(
    url: str,
    file: BinaryIO,
    most: int,
    timeout_s: float,
    progress: Callable[[int, int | None], Any],
) -> None:
    """Ask once for what is missing, and append it."""
    have = file.seek(0, os.SEEK_END)
    request = urllib.request.Request(url, headers={"User-Agent": "hpcrowd"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with _opener().open(request, timeout=timeout_s) as response:
            if response.status != 206:
                have = file.truncate(0)  # the server sends no parts, but all of it
            part = response.headers.get("Content-Range", "")
            if response.status != 206 or part.startswith(f"bytes {have}-"):
                _copy(response, file, have, most, progress)
                return
        if not have:
            raise _Failure("answers with a part of the file that nobody asked for")
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416 or not have:
            if error.code in (404, 410):
                raise _Failure(f"not found ({error.code}); it may have moved") from None
            what = f"refused ({error.code} {error.reason})"
            raise _Failure(what, error.code in PASSING) from None
        # Nothing follows what is there: either that is all, or it is no beginning of the file.
        if error.headers.get("Content-Range") == f"bytes */{have}":
            return
    except urllib.error.URLError as error:
        raise _failed(error.reason, timeout_s) from None
    except (OSError, http.client.HTTPException) as error:
        raise _failed(error, timeout_s) from None
    file.truncate(0)
    _append(url, file, most, timeout_s, progress)  # anew, which asks for no part


def _copy(
    response: http.client.HTTPResponse,
    file: BinaryIO,
    have: int,
    most: int,
    progress: Callable[[int, int | None], Any],
) -> None:
    """Append what an answer holds."""
    length = response.headers.get("Content-Length", "")
    total = have + int(length) if length.isdecimal() else None
    progress(have, total)
    while total is None or have < total:
        chunk = response.read1(CHUNK)
        if not chunk:
            break
        try:
            file.write(chunk)
            file.flush()
        except OSError as error:
            what = error.strerror or error
            raise ArchiveError(f"{file.name}: cannot be written: {what}") from error
        have += len(chunk)
        progress(have, total)
        if have > most:
            file.truncate(0)
            raise _Failure(f"sends more than {most:,} bytes, which is not this log")
    if total is not None and have < total:
        raise _Failure(f"the connection ended after {have:,} of {total:,} bytes", passing=True)


def _opener() -> urllib.request.OpenerDirector:
    """Return what opens http and https, and follows to nothing else."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def _failed(reason: Any, timeout_s: float) -> _Failure:
    if isinstance(reason, TimeoutError):
        return _Failure(f"no byte came for {timeout_s:g} s")
    if isinstance(reason, socket.gaierror):
        return _Failure("its host is not found (is there a network?)")
    if isinstance(reason, ConnectionRefusedError):
        return _Failure("the connection was refused")
    words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    broken = isinstance(reason, ConnectionError | http.client.HTTPException)
    return _Failure(f"the connection failed ({words})", passing=broken)


@contextmanager
def claimed(part: Path) -> Iterator[BinaryIO]:
    """Give a ``.part`` file, open for appending; wait as long as another process has it.

    An empty one is removed afterwards.

    Raises
    ------
    OSError
        When it cannot be opened.
    """
    while True:
        with part.open("ab") as file:
            _lock(file)
            if not _is_still(file, part):
                continue  # whoever had it has finished it, or given it up
            try:
                yield file
            finally:
                if _is_still(file, part) and not part.stat().st_size:
                    part.unlink()
            return


def _is_still(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _lock(file: BinaryIO) -> None:
    """Wait until no other process holds the file; it ends with the file, or the process."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - not on this system; the checksum finds what is spoilt
        return
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(LOOK_S)
        except OSError:
            return  # a file system without locks
