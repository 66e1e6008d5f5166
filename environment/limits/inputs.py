"""Files and pipes to read: bounded, and never waited for in silence.

Devices and terminals are refused, as ``/dev/zero`` has no end. A pipe is read like a file, once.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import IO

from hpcrowd.environment.limits.numbers import GB, SHARE, SMALL, free_memory

#: Bytes that are read at a time.
PIECE = 2**20

#: Bytes of a file of settings or of a model; the largest in use take a few megabytes.
LARGEST_SETTINGS = 64 * 2**20

#: Bytes of memory that a table of jobs needs for each byte of a trace, at least.
BYTES_PER_BYTE = 2

#: s after which a line says that a pipe is waited for, and after which one without a writer is
#: given up.
PATIENCE_SHOWN, PATIENCE = 2.0, 10.0


class Unreadable(OSError):
    """Something cannot be read as a file; ``strerror`` is the reason and the cure."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EINVAL, reason)


@contextmanager
def opened(path: str | os.PathLike[str], most: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file or a pipe to read its bytes; ``most`` of a pipe, else what fits into the memory.

    What comes through a pipe is kept, so that it can be read again by the same name. Raises OSError
    when it cannot be read: :class:`Unreadable` when it is a folder, a device, a terminal, or a pipe
    that nothing is written to.
    """
    if "\0" in str(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    found = Path(path).stat()
    if stat.S_ISFIFO(found.st_mode):
        yield BytesIO(_piped(os.fspath(path), found.st_dev, found.st_ino, most))
        return
    check_readable(found.st_mode)
    with Path(path).open("rb") as file:
        yield file


@lru_cache(maxsize=4)
def _piped(path: str, _device: int, _inode: int, most: int | None) -> bytes:
    """Return what comes through a pipe."""
    # Without O_NONBLOCK, opening waits until another process opens it to write.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb", buffering=0) as pipe:
        _wait(handle, path)
        os.set_blocking(handle, True)
        return read_all(pipe, most)


def read_all(file: IO[bytes], most: int | None = None) -> bytes:
    """Return what is left in a file that is open to read bytes.

    Raises Unreadable when it has more than ``most``, by default what fits into the memory.
    """
    pieces, size, fits = [], 0, room()
    while piece := file.read(PIECE):
        size += len(piece)
        if most is not None and size > most:
            raise Unreadable(f"has more than {most / 2**20:,.0f} MB, the limit for such a file")
        fits(size)
        pieces.append(piece)
    return b"".join(pieces)


def check_readable(mode: int) -> None:
    """Check that something with this mode (``st_mode``) is a file or a pipe.

    Raises Unreadable when it is neither.
    """
    if stat.S_ISDIR(mode):
        raise Unreadable("is a folder, not a file")
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise Unreadable("is a device or terminal, not a file; give a file or a pipe")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise Unreadable("is a socket, not a file; give a file or a pipe")


def is_input(path: str | os.PathLike[str]) -> bool:
    """Return whether something is there that is not a folder; no name is too long to ask."""
    try:
        return not stat.S_ISDIR(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False


def read_bytes(path: str | os.PathLike[str], most: int = LARGEST_SETTINGS) -> bytes:
    """Return the content of a small file, or what comes through a pipe.

    Raises OSError when it cannot be read, or has more than ``most`` bytes.
    """
    with opened(path, most) as file:
        return read_all(file, most)


def read_text(path: str | os.PathLike[str], most: int = LARGEST_SETTINGS) -> str:
    """Return the text of a small file in UTF-8; see :func:`read_bytes`.

    Raises OSError when it cannot be read, and UnicodeDecodeError when it is not UTF-8.
    """
    return read_bytes(path, most).decode("utf-8").replace("\r\n", "\n")


def room() -> Callable[[int], None]:
    """Return a function that checks the bytes of a trace read so far against the free memory.

    A packed file can be a thousand times as large unpacked. The function raises
    :class:`Unreadable`.
    """
    free = free_memory()
    most = None if free is None else max(SMALL, int(SHARE * free / BYTES_PER_BYTE))

    def check(size: int) -> None:
        if most is not None and size > most:
            raise Unreadable(
                f"has more than {most / GB:,.1f} GB unpacked, more than fits into the free memory; "
                "split it"
            )

    return check


def _wait(handle: int, name: str) -> None:
    """Wait until something can be read from a pipe or its writer has gone; say so if it lasts.

    Raises Unreadable when no process has opened it to write for :data:`PATIENCE` seconds.
    """
    began, said = time.monotonic(), False
    ready = select.poll()
    ready.register(handle, select.POLLIN)
    while not ready.poll(100):
        waited = time.monotonic() - began
        if waited > PATIENCE:
            raise Unreadable(f"is a pipe, and nothing was written to it for {PATIENCE:.0f} s")
        if waited > PATIENCE_SHOWN and not said:
            print(f"hpcrowd: waiting for data from {name} ...", file=sys.stderr, flush=True)
            said = True
