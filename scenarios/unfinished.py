"""Results of long work, kept task by task, so that it can be continued when it was interrupted.

A file ``KEY-NAME-SUM.json`` (or with another ending) holds the result of a task. KEY is the
checksum of everything that results depend on, so that those of other work are never mistaken for
these, and SUM that of the file, so that a damaged one is done again. Each file is complete or
absent.

A line of :func:`line_of` in a file that grows has its own checksum.

Those of a study are in a folder next to that of its results, with the same name and
``.unfinished``. They are removed when the results are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.files import json_of
from hpcrowd.environment.output.guard import checksum_of_values
from hpcrowd.environment.output.whole import remove_killed, whole_file
from hpcrowd.scenarios.terminal import say

#: Added to the name of the folder of results.
ENDING = ".unfinished"

#: The name under which a study keeps its description.
PLAN = "plan"

#: Hexadecimal digits of KEY and SUM.
DIGITS = 16

#: The key of the checksum in a line.
CHECK = "check"

#: Names of files.
NAMED = re.compile(rf"(?P<key>[0-9a-f]{{{DIGITS}}})-(?P<name>.+)-(?P<sum>[0-9a-f]{{{DIGITS}}})")


def sum_of(content: bytes) -> str:
    """Return the checksum of a content, for a key or of a file."""
    return sha256(content).hexdigest()[:DIGITS]


def keep_file(folder: Path, key: str, name: str, content: bytes, suffix: str = ".json") -> None:
    """Write a file that :func:`kept_files` finds."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HpcrowdError(f"{folder}: cannot be written: {error.strerror or error}") from error
    with whole_file(folder / f"{key}-{name}-{sum_of(content)}{suffix}") as temporary:
        temporary.write_bytes(content)


def kept_files(folder: Path, key: str, suffix: str = ".json") -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of kept files; a damaged one is removed, and a line says so."""
    for path, name in _kept(folder, key, suffix):
        try:
            content = path.read_bytes()
        except OSError as error:
            say(f"{path}: cannot be read ({error.strerror or error}); it is done again")
            continue
        if path.stem.endswith(f"-{sum_of(content)}"):
            yield name, content
        else:
            say(f"{path}: damaged; it is done again")
            path.unlink(missing_ok=True)


def line_of(wire: Mapping[str, Any]) -> str:
    """Return a line of JSON with a checksum of its own, for :func:`wire_of`."""
    return json.dumps({**wire, CHECK: _check(wire)}, allow_nan=False) + "\n"


def wire_of(line: str) -> dict[str, Any] | None:
    """Return what a line says, None if it is damaged; earlier versions wrote no checksum."""
    try:
        found = json_of(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.pop(CHECK, _check(found)) != _check(found):
        return None
    return found


def _check(wire: Mapping[str, Any]) -> str:
    about = {name: value for name, value in wire.items() if name != CHECK}
    return checksum_of_values(about)[:DIGITS]


def _kept(folder: Path, key: str = "", suffix: str = ".json") -> Iterator[tuple[Path, str]]:
    """Yield the kept files with a key, or with any, and their names."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        found = NAMED.fullmatch(path.stem) if path.suffix == suffix else None
        if found and found["key"].startswith(key) and path.is_file() and not path.is_symlink():
            yield path, found["name"]


class Interrupted(HpcrowdError):
    """Ctrl-C ended work that can be continued; what was done is kept, and the message says so."""

    exit_code = 130


class Unfinished:
    """The results of a study so far, in a folder that is there or will be.

    ``plan`` is the description of the study, plain data. A study can be continued only with the
    same plan, versions included; results of another study in the folder are an HpcrowdError.
    """

    def __init__(self, folder: Path, plan: dict[str, Any]) -> None:
        self.folder = folder
        text = f"{json.dumps(plan, indent=2, sort_keys=True, allow_nan=False)}\n".encode()
        self.key = sum_of(text)
        there = [path.name for path, _ in _kept(folder)]
        if any(not name.startswith(self.key) for name in there):
            raise HpcrowdError(
                f"{folder}: holds results of another plan or version; remove it, or choose "
                "another --out"
            )
        if folder.exists() and not there and (not folder.is_dir() or any(folder.iterdir())):
            raise HpcrowdError(
                f"{folder}: is not the folder of an unfinished study; choose another --out"
            )
        keep_file(folder, self.key, PLAN, text)

    @classmethod
    def beside(cls, out: Path, plan: dict[str, Any]) -> Unfinished:
        """Return the unfinished results that belong to a folder of results."""
        return cls(_beside(out), plan)

    def results(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the results of the tasks that are done, by name."""
        wanted = set(names)
        found = dict(kept_files(self.folder, self.key))
        return {name: json.loads(one) for name, one in found.items() if name in wanted}

    def keep(self, name: str, result: Any) -> None:
        """Keep the result of a task, plain data; floats are read back exactly."""
        text = json.dumps(result, allow_nan=False) + "\n"
        keep_file(self.folder, self.key, name, text.encode())

    @staticmethod
    def remove_beside(out: Path) -> None:
        """Remove the unfinished results of a folder of results, if any, once that is written."""
        folder = _beside(out)
        for path, _ in list(_kept(folder)):
            path.unlink()
        remove_killed(folder, inside=True)
        with suppress(OSError):  # somebody has put something else there
            folder.rmdir()


def _beside(out: Path) -> Path:
    return out.with_name(out.name + ENDING)
