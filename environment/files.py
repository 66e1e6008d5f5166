"""Files that exist only when they are complete, and files of trained and fitted models.

A model file is JSON with its format and version.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import HpcrowdError, ModelFileError

#: Ending of the names of unfinished files.
UNFINISHED = ".tmp"

#: Files and folders that this process is writing; they are removed if it must end at once.
unfinished: set[Path] = set()


def remove_unfinished() -> None:
    """Remove what is being written, for a process that ends without cleaning up."""
    for path in list(unfinished):
        with suppress(OSError):
            path.unlink()
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def json_of(text: str) -> Any:
    """Return the values in JSON text.

    Raises
    ------
    ValueError
        When it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


@contextmanager
def whole_file(
    path: str | os.PathLike[str], error: type[HpcrowdError] = HpcrowdError
) -> Iterator[Path]:
    """Yield the path of a temporary file to write; it is then synced and replaces ``path``.

    Processes and machines that write the same file at the same time do not disturb each other.
    Pipes and devices are written to directly. A symbolic link stays, and its target is written.

    Parameters
    ----------
    path
        The file.
    error
        The exception to raise if the file cannot be written.

    Raises
    ------
    HpcrowdError
        When it cannot be written.
    """
    target = temporary = Path(os.path.realpath(path))
    if not is_stream(path):
        who = f"{socket.gethostname()}.{os.getpid()}"
        temporary = target.with_name(f".{target.name}.{who}{UNFINISHED}")
        unfinished.add(temporary)
    try:
        yield temporary
        if temporary != target:
            temporary.replace(target)
    except OSError as wrong:
        raise error(f"{path}: cannot be written: {wrong.strerror or wrong}") from wrong
    finally:
        if temporary != target:
            with suppress(OSError):  # its name may even be too long
                temporary.unlink()
            unfinished.discard(temporary)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a path exists but is neither a file nor a folder: a pipe, a device."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@dataclass(frozen=True)
class ModelFormat:
    """A kind of model file.

    Attributes
    ----------
    name
        Value of the key ``format``.
    version
        The version that is written; it increases when older programs cannot read the file any more.
    what
        The content in words: ``a workload model``.
    made_by
        The command that makes such a file: ``hpcrowd fit``.
    again
        What to do if a file is damaged: ``fit the model again``.
    """

    name: str
    version: int
    what: str
    made_by: str
    again: str

    def write(self, content: dict[str, Any], path: str | os.PathLike[str]) -> None:
        """Write a file, which is complete or absent; format and version are added.

        Raises
        ------
        ModelFileError
            When it cannot be written.
        """
        wire = {"format": self.name, "version": self.version, **content}
        text = json.dumps(wire, indent=2, allow_nan=False)
        with whole_file(path, ModelFileError) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")

    def read(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return the content of a file; format and version are checked.

        Raises
        ------
        ModelFileError
            When the file is missing, damaged, or of a newer version.
        """
        name = os.fspath(path)
        try:
            wire = json_of(Path(path).read_text("utf-8"))
        except OSError as error:
            raise ModelFileError(f"{name}: cannot be read: {error.strerror or error}") from None
        except ValueError:
            raise ModelFileError(f"{name}: damaged, not JSON; {self.again}") from None
        if not isinstance(wire, dict) or wire.get("format") != self.name:
            raise ModelFileError(f"{name}: not {self.what}; make one with {self.made_by}")
        version = wire.get("version")
        if not isinstance(version, int) or isinstance(version, bool) or version > self.version:
            raise ModelFileError(
                f"{name}: version {version!r:.60}, but this hpcrowd reads only up to "
                f"{self.version}; use a newer hpcrowd"
            )
        return wire
