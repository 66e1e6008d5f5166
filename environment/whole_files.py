"""Files that are there only when they are whole."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hpcrowd.environment.errors import HpcrowdError

#: What names of unfinished files end in.
UNFINISHED = ".tmp"


@contextmanager
def whole_file(
    path: str | os.PathLike[str], error: type[HpcrowdError] = HpcrowdError
) -> Iterator[Path]:
    """Give the path of a temporary file to write and sync; it takes the place of ``path`` then.

    Processes and machines that write the same file at the same time do not disturb each other. What
    is no file on a disk, such as a pipe, is written to; a link stays, and what it leads to is
    written.

    Parameters
    ----------
    path
        The file.
    error
        The kind of error that it is when the file cannot be written.

    Raises
    ------
    HpcrowdError
        When it cannot be written.
    """
    target = temporary = Path(os.path.realpath(path))
    if not is_stream(path):
        who = f"{socket.gethostname()}.{os.getpid()}"
        temporary = target.with_name(f".{target.name}.{who}{UNFINISHED}")
    try:
        yield temporary
        if temporary != target:
            temporary.replace(target)
    except OSError as wrong:
        raise error(f"{path}: cannot be written: {wrong.strerror or wrong}") from wrong
    finally:
        if temporary != target:
            with suppress(OSError):  # it may not even have a name that is short enough
                temporary.unlink()


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is there but no file and no folder: a pipe, a device."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
