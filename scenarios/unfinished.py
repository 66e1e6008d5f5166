"""Results of a long study, kept task by task, so that an interrupted study can be continued.

A folder next to that of the results, with the same name and ``.unfinished``, holds a file for each
task that is done, and ``plan.json``, which describes the study. Each file is complete or absent.
The folder is removed when the results are written.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.files import json_of
from hpcrowd.environment.limits.inputs import read_text
from hpcrowd.scenarios.outputs import write_whole

#: Added to the name of the folder of results.
ENDING = ".unfinished"

#: The file that describes the study.
PLAN = "plan.json"


class Interrupted(HpcrowdError):
    """Ctrl-C ended work that can be continued; what was done is kept, and the message says so."""

    exit_code = 130


class Unfinished:
    """The results so far.

    Parameters
    ----------
    folder
        Where they are, or will be.
    plan
        Description of the study, plain data. A study can be continued only with the same plan,
        versions included.

    Raises
    ------
    HpcrowdError
        When the folder holds results of another study, or cannot be written.
    """

    def __init__(self, folder: Path, plan: dict[str, Any]) -> None:
        self.folder = folder
        told = json.dumps(plan, indent=2, sort_keys=True, allow_nan=False) + "\n"
        path = folder / PLAN
        if folder.exists():
            if not path.is_file():
                if not folder.is_dir() or any(folder.iterdir()):
                    raise HpcrowdError(
                        f"{folder}: is not the folder of an unfinished study; choose another --out"
                    )
            elif path.read_bytes() != told.encode():
                raise HpcrowdError(
                    f"{folder}: holds results of another plan or version; remove it, or choose "
                    "another --out"
                )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HpcrowdError(f"{folder}: cannot be written: {error.strerror or error}") from error
        write_whole(path, told)

    @classmethod
    def beside(cls, out: Path, plan: dict[str, Any]) -> Unfinished:
        """Return the unfinished results that belong to a folder of results."""
        return cls(_beside(out), plan)

    def results(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the results of the tasks that are done, by name.

        Raises
        ------
        HpcrowdError
            When a file is damaged.
        """
        found = {}
        for name in names:
            path = self._path(name)
            if path.exists():
                try:
                    found[name] = json_of(read_text(path))
                except (OSError, ValueError):
                    raise HpcrowdError(f"{path}: damaged, not JSON; remove it") from None
        return found

    def keep(self, name: str, result: Any) -> None:
        """Keep the result of a task, plain data; floats are read back exactly."""
        write_whole(self._path(name), json.dumps(result, allow_nan=False) + "\n")

    @staticmethod
    def remove_beside(out: Path) -> None:
        """Remove the unfinished results of a folder of results, if any, once that is written."""
        if (kept := _beside(out)).exists():
            shutil.rmtree(kept)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def _beside(out: Path) -> Path:
    return out.with_name(out.name + ENDING)
