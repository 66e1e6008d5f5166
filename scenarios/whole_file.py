"""Files that a command writes: checked before anything is computed, and complete or absent."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.files import whole_file


def check_writable(path: Path, option: str = "--out") -> None:
    """Check that a file can be written, before anything is computed.

    Parameters
    ----------
    path
        The file.
    option
        The option of the command line that names it.

    Raises
    ------
    HpcrowdError
        When it is a folder, or the folder to write it in does not exist.
    """
    if path.is_dir():
        raise HpcrowdError(f"{path}: is a folder; {option} names a file")
    if not path.parent.is_dir():
        raise HpcrowdError(f"{path}: no folder {path.parent} to write it in")


def check_folder(folder: Path, inputs: Iterable[Path], option: str = "--out") -> None:
    """Check that a folder can be written and that no input is in it.

    Parameters
    ----------
    folder
        The folder.
    inputs
        Files that are read, or written by another option.
    option
        The option of the command line that names the folder.

    Raises
    ------
    HpcrowdError
        When it holds something that hpcrowd did not write, or one of the files would be lost.
    """
    from hpcrowd.analysis.results import check_replaceable

    check_replaceable(folder, option)
    for path in inputs:
        if path.resolve().is_relative_to(folder.resolve()):
            raise HpcrowdError(f"{option} {folder}: would replace {path}; choose another folder")


def write_whole(path: Path, text: str) -> None:
    """Write a file that appears only when it is complete.

    Raises
    ------
    HpcrowdError
        When it cannot be written.
    """
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def land_bytes(path: Path, content: bytes) -> None:
    """Write a file that is complete or absent, even if the machine crashes.

    Raises
    ------
    HpcrowdError
        When it cannot be written.
    """
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
