"""Which files of a folder of results hpcrowd wrote: a list with checksums in ``provenance.json``.

::

    "written": {
      "by": {"command": "replay", "scheduler": "easy", "sha256 of a.swf": "5f2c..."},
      "files": {"jobs.parquet": "03ab...", "A/waits.png": "91d0..."},
      "sum": "77e1..."
    }

``by`` is what was asked for, null for a Python script; ``sum`` is the checksum of the rest of
``provenance.json``. Whatever is not listed, or has changed since, belongs to the reader.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, NamedTuple

#: The file of a folder of results that says what it is.
PROVENANCE = "provenance.json"

#: The key of the list in it.
WRITTEN = "written"

#: Bytes of the largest ``provenance.json`` that is read for its list.
LARGEST = 64 * 2**20

#: A value of ``by`` that equals no other: what came through a pipe.
UNKNOWN = "unknown"


class Written(NamedTuple):
    """What hpcrowd wrote into a folder."""

    by: dict[str, str] | None  #: what was asked for, by name
    files: dict[str, str]  #: SHA-256 by path in the folder


class Parts(NamedTuple):
    """The contents of a folder, as paths in it with ``/``."""

    ours: list[str]  #: files that hpcrowd wrote, and that are as it wrote them
    others: list[str]  #: everything else; a folder without a file of hpcrowd is one of them


def checksum_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a regular file."""
    with Path(path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def checksum_of_values(values: Any) -> str:
    """Return the SHA-256 of plain data, whatever the order of keys."""
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def add_list(folder: Path, by: Mapping[str, str] | None) -> None:
    """Add the list of all files of a folder to its ``provenance.json``, made if it has none."""
    path = folder / PROVENANCE
    content: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    names = sorted(one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file())
    content[WRITTEN] = {
        "by": None if by is None else dict(by),
        "files": {name: checksum_of(folder / name) for name in names if name != PROVENANCE},
    }
    content[WRITTEN]["sum"] = checksum_of_values(content)
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def read_list(folder: Path) -> Written | None:
    """Return what hpcrowd wrote into a folder, None if that is not known or was changed."""
    path = folder / PROVENANCE
    with suppress(OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
            return None
        content = json.loads(path.read_text("utf-8"))
        found = content[WRITTEN]
        if found.pop("sum") == checksum_of_values(content):
            return Written(found["by"], dict(found["files"]))
    return None


def parts_of(folder: Path) -> Parts:
    """Return which files of a folder hpcrowd wrote, and what else there is. Links are the reader's.

    Raises
    ------
    OSError
        When it cannot be read.
    """
    written = read_list(folder)
    if written is None:
        return Parts([], sorted(one.name for one in folder.iterdir()))
    folders = {str(up) for name in written.files for up in Path(name).parents}
    ours: list[str] = []
    others: list[str] = []

    def walk(place: str) -> None:
        with os.scandir(folder / place) as entries:
            found = sorted(entries, key=lambda one: one.name)
        for one in found:
            name = f"{place}{one.name}"
            if one.is_dir(follow_symlinks=False) and name in folders:
                walk(f"{name}/")
            elif name == PROVENANCE or _as_written(one, written.files.get(name)):
                ours.append(name)
            else:
                others.append(name)

    walk("")
    return Parts(ours, others)


def _as_written(entry: os.DirEntry[str], checksum: str | None) -> bool:
    regular = checksum is not None and entry.is_file(follow_symlinks=False)
    return regular and checksum_of(entry.path) == checksum


def settle(old: Path, new: Path) -> None:
    """Remove what hpcrowd wrote in a folder that was moved away, and move the rest to another one.

    It can be interrupted at any moment and done again. What has no place there stays in ``old``.

    Parameters
    ----------
    old
        The folder that was moved away.
    new
        The one that took its place.
    """
    with suppress(OSError):
        written = read_list(old)
        ours, others = parts_of(old)
        for name in others:
            if not os.path.lexists(new / name):
                with suppress(OSError):
                    (new / name).parent.mkdir(parents=True, exist_ok=True)
                    (old / name).rename(new / name)
        last = old / PROVENANCE  # while it is there, it says what is ours
        for name in ours:
            if old / name != last:
                (old / name).unlink()
        inside = {up for name in (written.files if written else ()) for up in Path(name).parents}
        for folder in sorted(inside - {Path()}, key=lambda one: -len(one.parts)):
            with suppress(OSError):
                (old / folder).rmdir()
        if written and [last] == list(old.iterdir()):
            last.unlink()
        old.rmdir()
