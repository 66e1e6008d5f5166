"""Results of a long study, task by task, so that one that was ended goes on where it was.

A folder beside that of the results, named like it with ``.unfinished``, holds a file for each
task that is done and ``plan.json``, what is being done. Each file is whole or absent. The folder
goes when the results are written.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.whole_file import write_whole

#: What follows the name of the folder of results.
ENDING = ".unfinished"

#: The file that tells what is being done.
PLAN = "plan.json"


class Interrupted(HpcrowdError):
    """Ctrl-C ended work that goes on later; what was done stays, and the line says so."""

    exit_code = 130


class Unfinished:
    """The results so far.

    Parameters
    ----------
    folder
        Where they are, or will be.
    plan
        What is done, plain data: whoever goes on has to do the same, to the version.

    Raises
    ------
    HpcrowdError
        When the folder has results of something else, or cannot be written.
    """

    def __init__(self, folder: Path, plan: dict[str, Any]) -> None:
        self.folder = folder
        told = json.dumps(plan, indent=2, sort_keys=True, allow_nan=False) + "\n"
        path = folder / PLAN
        if folder.exists():
            if not path.is_file():
                if not folder.is_dir() or any(folder.iterdir()):
                    raise HpcrowdError(
                        f"{folder}: not results of an unfinished study; choose another --out"
                    )
            elif path.read_text(encoding="utf-8") != told:
                raise HpcrowdError(
                    f"{folder}: results of another plan or version; remove it, or choose another "
                    "--out"
                )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HpcrowdError(f"{folder}: cannot be written: {error.strerror or error}") from error
        write_whole(path, told)

    @classmethod
    def beside(cls, out: Path, plan: dict[str, Any]) -> Unfinished:
        """Return those that belong to a folder of results."""
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
                    found[name] = json.loads(path.read_text(encoding="utf-8"))
                except ValueError:
                    raise HpcrowdError(f"{path}: damaged, not JSON; remove it") from None
        return found

    def keep(self, name: str, result: Any) -> None:
        """Keep the result of a task, plain data; floats come back to the bit."""
        write_whole(self._path(name), json.dumps(result, allow_nan=False) + "\n")

    @staticmethod
    def remove_beside(out: Path) -> None:
        """Remove everything that belongs to a folder of results, if any, once they are written."""
        if (kept := _beside(out)).exists():
            shutil.rmtree(kept)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def _beside(out: Path) -> Path:
    return out.with_name(out.name + ENDING)
