"""Files that are there only when they are whole, and those of trained and fitted models.

Such a model is JSON that says what it is and of which version.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import HpcrowdError, ModelFileError

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


@dataclass(frozen=True)
class ModelFormat:
    """A kind of model files.

    Attributes
    ----------
    name
        What the key ``format`` says.
    version
        The version that is written; it counts up when an older program could no longer read it.
    what
        What such a file holds, for people: ``a workload model``.
    made_by
        What makes one: ``hpcrowd fit``.
    again
        What to do when one is damaged: ``fit the model again``.
    """

    name: str
    version: int
    what: str
    made_by: str
    again: str

    def write(self, content: dict[str, Any], path: str | os.PathLike[str]) -> None:
        """Write a file, which is whole or absent; format and version are added.

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
        """Return what a file holds, checked as far as its version.

        Raises
        ------
        ModelFileError
            When the file is missing, damaged, or of a newer version.
        """
        name = os.fspath(path)
        try:
            wire = json.loads(Path(path).read_text("utf-8"))
        except OSError as error:
            raise ModelFileError(f"{name}: cannot be read: {error.strerror or error}") from None
        except ValueError:
            raise ModelFileError(f"{name}: damaged, not JSON; {self.again}") from None
        if not isinstance(wire, dict) or wire.get("format") != self.name:
            raise ModelFileError(f"{name}: not {self.what}; {self.made_by} makes one")
        version = wire.get("version")
        if not isinstance(version, int) or isinstance(version, bool) or version > self.version:
            raise ModelFileError(
                f"{name}: version {version!r}, this hpcrowd reads up to {self.version}; "
                "use a newer hpcrowd"
            )
        return wire
