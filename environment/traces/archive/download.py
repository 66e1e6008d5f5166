"""Download a file over HTTP into a ``.part`` file that a later download can resume.

If a download is interrupted, the ``.part`` file stays, and the next one requests only the rest
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

#: Bytes read at a time.
CHUNK = 1 << 16

#: Status codes after which the same request may succeed a little later.
PASSING = (408, 425, 429, 500, 502, 503, 504)

#: Seconds between checks of a file that another process downloads.
LOOK_S = 0.1


class _Failure(Exception):
    """Why a request failed, in words, and whether a retry may help."""

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
    """Append the missing part of the file at ``url`` to ``file``, which is open for appending.

    Raises ArchiveError if the download is incomplete; the message says what happened and how to
    continue.

    Parameters
    ----------
    url
        Address, http or https.
    file
        Holds the beginning, or nothing; received bytes stay in it, whatever happens.
    most
        Largest possible size of the file, bytes.
    cure
        Advice for the message if nothing could be downloaded.
    timeout_s, retries, pause_s
        How long to wait, and how often to retry, see ``archive.logs.fetch``.
    progress
        Called with the bytes so far, and the bytes in all if known.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise ArchiveError(f"{url}: not an http:// or https:// address; {cure}")
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
            kept = f"{have:,} bytes are kept in {file.name}; run the same command to resume"
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
    """Request the missing part once, and append it."""
    have = file.seek(0, os.SEEK_END)
    request = urllib.request.Request(url, headers={"User-Agent": "hpcrowd"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with _opener().open(request, timeout=timeout_s) as response:
            if response.status != 206:
                have = file.truncate(0)  # the server ignores Range and sends the whole file
            part = response.headers.get("Content-Range", "")
            if response.status != 206 or part.startswith(f"bytes {have}-"):
                _copy(response, file, have, most, progress)
                return
        if not have:
            raise _Failure("the server sent another part of the file than requested")
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416 or not have:
            if error.code in (404, 410):
                raise _Failure(f"not found ({error.code}); it may have moved") from None
            what = f"refused ({error.code} {error.reason})"
            raise _Failure(what, error.code in PASSING) from None
        # Nothing follows: the file is complete, or what is there is not its beginning.
        if error.headers.get("Content-Range") == f"bytes */{have}":
            return
    except urllib.error.URLError as error:
        raise _failed(error.reason, timeout_s) from None
    except (OSError, http.client.HTTPException) as error:
        raise _failed(error, timeout_s) from None
    file.truncate(0)
    _append(url, file, most, timeout_s, progress)  # from the start, without Range


def _copy(
    response: http.client.HTTPResponse,
    file: BinaryIO,
    have: int,
    most: int,
    progress: Callable[[int, int | None], Any],
) -> None:
    """Append the body of a response."""
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
            raise _Failure(f"the server sent more than {most:,} bytes, which is not this log")
    if total is not None and have < total:
        raise _Failure(f"the connection ended after {have:,} of {total:,} bytes", passing=True)


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for http and https that does not redirect to other schemes."""
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
        return _Failure(f"no data for {timeout_s:g} s")
    if isinstance(reason, socket.gaierror):
        return _Failure("host not found (is the network up?)")
    if isinstance(reason, ConnectionRefusedError):
        return _Failure("the connection was refused")
    words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    broken = isinstance(reason, ConnectionError | http.client.HTTPException)
    return _Failure(f"the connection failed ({words})", passing=broken)


@contextmanager
def claimed(part: Path) -> Iterator[BinaryIO]:
    """Open a ``.part`` file for appending; wait while another process holds it.

    If it is empty afterwards, it is removed. Raises OSError if it cannot be opened.
    """
    while True:
        with part.open("ab") as file:
            _lock(file)
            if not _is_still(file, part):
                continue  # the other process has finished it, or given up
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
    """Wait until no other process holds the file; closing the file or exiting releases it."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - not on this system; the checksum finds damage
        return
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(LOOK_S)
        except OSError:
            return  # a file system without locks
