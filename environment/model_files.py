"""Files of trained and fitted models: JSON that says what it is and of which version."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import ModelFileError
from hpcrowd.environment.whole_files import whole_file


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
