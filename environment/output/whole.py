"""Files and folders that exist only when they are complete."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.output.guard import (
    add_list,
    check_clashes,
    check_not_input,
    check_replaceable,
    check_replaceable_file,
    current,
    is_stream,
    parts_of,
    settle,
    written,
)

#: Ending of the names of unfinished files and folders.
UNFINISHED = ".tmp"

#: Ending of the name of a folder while another takes its place.
OLD = f".old{UNFINISHED}"

#: Temporary files and folders of this process, each with the one whose place it takes or had.
_temporary: dict[Path, Path] = {}


@contextmanager
def whole_file(
    path: str | os.PathLike[str], error: type[HpcrowdError] = HpcrowdError
) -> Iterator[Path]:
    """Yield the path of a temporary file to write, which then replaces ``path``.

    Processes and machines that write the same file at the same time do not disturb each other.
    Pipes and devices are written to directly. A symbolic link stays, and its target is written.
    Raises ``error`` when it cannot be written, and HpcrowdError when it is read by the command that
    runs.
    """
    check_not_input(Path(path))
    target = Path(os.path.realpath(path))
    try:
        if is_stream(path):
            yield target
            return
        with _replacing(target) as temporary:
            yield temporary
            if target in current().outputs and target.exists():
                check_replaceable_file(target, str(path), temporary)
                if target.stat().st_size:
                    current().replaced.append(f"{path}: replaced the one that was there")
    except OSError as wrong:
        raise error(f"{path}: cannot be written: {wrong.strerror or wrong}") from wrong


@contextmanager
def whole_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder to fill; what hpcrowd wrote in ``folder`` is replaced by it.

    Everything else in the folder stays: see :mod:`hpcrowd.environment.output.guard`. Without the
    option ``--force`` of a command, the folder must be empty or hold results, those of the same
    command and settings. A symbolic link stays. Raises HpcrowdError when there is something else,
    or the folder cannot be written.
    """
    remove_killed(Path(folder))
    check_replaceable(folder)
    target, guard = Path(os.path.realpath(folder)), current()
    try:
        with _replacing(target) as temporary:
            temporary.mkdir(parents=True)
            yield temporary
            add_list(temporary, guard.request())
            check_clashes(target, temporary)
            before = parts_of(target) if target.is_dir() else ([], [])
        if before != ([], []):
            guard.replaced.append(_told(folder, *before))
    except OSError as wrong:
        raise HpcrowdError(f"{folder}: cannot be written: {wrong.strerror or wrong}") from wrong


def _told(folder: str | os.PathLike[str], ours: list[str], others: list[str]) -> str:
    """Return a line about what was in a folder."""
    more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
    done = ["replaced the results that were there"] if ours else []
    done += [f"left {others[0]}{more}, which hpcrowd did not write"] if others else []
    return f"{folder}: {'; '.join(done)}"


@contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """Yield a folder next to ``target`` that is removed in the end, however that comes."""
    place = target.with_name(_names(target)[0])
    _temporary[place] = target
    try:
        place.mkdir()
        yield place
    finally:
        _remove(place)
        _temporary.pop(place, None)


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """Yield a free name next to a file or folder; what is written there then takes its place."""
    temporary, old = (target.with_name(name) for name in _names(target))
    inside = any(parent in _temporary for parent in target.parents)
    done = [] if inside else written()
    _temporary[temporary] = target
    try:
        yield temporary
        done.append(target)  # before it is: an interrupt in between must not deny it
        while True:
            if temporary.is_dir() and target.is_dir():
                _temporary[old] = target
                with suppress(FileNotFoundError):  # another process may be faster
                    target.rename(old)
            try:
                temporary.replace(target)
                break
            except OSError:
                if not (temporary.is_dir() and target.is_dir()):
                    raise
                settle(old, target)  # another process wrote the same folder meanwhile
    finally:
        if _remove(temporary) and target in done:
            done.remove(target)
        _put_back(old, target)
        for one in (temporary, old):
            _temporary.pop(one, None)


def _put_back(old: Path, target: Path) -> None:
    """Undo or finish the replacement of a folder that was moved away."""
    with suppress(OSError):
        if old.exists() and not os.path.lexists(target):
            old.rename(target)
        elif old.exists():
            settle(old, target)


def _names(target: Path) -> tuple[str, str]:
    begin = f".{target.name}.{socket.gethostname()}"
    return f"{begin}.{os.getpid()}{UNFINISHED}", f"{begin}.{os.getpid()}{OLD}"


def _remove(path: Path) -> bool:
    """Remove a file or folder, and return whether it was there."""
    with suppress(OSError):  # its name may even be too long
        there = path.exists()
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        return there
    return False


def remove_temporary() -> None:
    """Remove the temporary files and folders of this process that an interrupt left."""
    for path, target in list(_temporary.items()):
        if path.name.endswith(OLD):
            _put_back(path, target)
        else:
            _remove(path)
        _temporary.pop(path, None)


def remove_killed(path: Path, *, inside: bool = False) -> None:
    """Remove what processes of this machine left next to a target when they were killed.

    ``inside`` a folder, what they left of all the files in it.

    A folder that was moved away and not yet replaced is moved back, and what others had in one
    that was replaced is moved into its successor.
    """
    target = Path(os.path.realpath(path))
    name = ".+" if inside else re.escape(target.name)
    ours = re.compile(rf"\.({name})\.{re.escape(socket.gethostname())}\.(\d+)(\.old)?\.tmp")
    with suppress(OSError):
        for one in (target if inside else target.parent).iterdir():
            found = ours.fullmatch(one.name)
            if found and not _runs(int(found[2])):
                if found[3]:
                    _put_back(one, one.with_name(found[1]))
                else:
                    _remove(one)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
