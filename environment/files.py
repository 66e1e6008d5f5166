"""Files of settings, in TOML, and of trained and fitted models.

A model file is JSON with its format and version. Of a value in TOML :func:`line_of` finds the line,
for messages.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import ModelFileError, QuantityError
from hpcrowd.environment.limits.inputs import read_bytes, read_text
from hpcrowd.environment.output.whole import whole_file


def json_of(text: str, *, finite: bool = False) -> Any:
    """Return the values in JSON text.

    ``finite`` refuses infinite numbers and NaN, which Python reads although JSON has none. Raises
    ValueError when the text is not JSON, or nested too deeply.
    """
    try:
        limit = _finite if finite else None
        found = json.loads(text, parse_float=limit, parse_constant=limit)
        check_characters(text, found)
        return found
    except RecursionError:
        raise ValueError("nested too deeply") from None


def check_characters(text: str, found: Any) -> None:
    """Check that no text in JSON has half a character, such as ``\\ud800``, which no file can hold.

    Bytes that are not UTF-8, as Python keeps them in texts, are no such halves. Raises ValueError
    if one does.
    """
    if "\\ud" in text.lower():
        try:
            json.dumps(found, ensure_ascii=False).encode(errors="surrogateescape")
        except UnicodeEncodeError as error:
            half = error.object[error.start].encode("ascii", "backslashreplace").decode()
            raise ValueError(f"{half} is half a character") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


@dataclass(frozen=True)
class ModelFormat:
    """A kind of model file."""

    name: str  #: value of the key ``format``
    #: The version that is written; it increases when older programs cannot read the file any more.
    version: int
    what: str  #: the content in words: ``a workload model``
    made_by: str  #: the command that makes such a file: ``hpcrowd fit``
    again: str  #: what to do if a file is damaged: ``fit the model again``

    def write(self, content: dict[str, Any], path: str | os.PathLike[str]) -> None:
        """Write a file, which is complete or absent; format and version are added.

        Raises ModelFileError when it cannot be written.
        """
        wire = {"format": self.name, "version": self.version, **content}
        text = json.dumps(wire, indent=2, allow_nan=False)
        with whole_file(path, ModelFileError) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")

    def read(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return the content of a file; format and version are checked.

        Raises ModelFileError when the file is missing, damaged, or of a newer version.
        """
        name = os.fspath(path)
        try:
            wire = json_of(read_text(path), finite=True)
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


#: The keys and list indices that lead to a value.
Place = Sequence[str | int]

#: What a file in TOML describes, by a place that only such files have, and how it is used; the
#: first one counts.
FILE_KINDS: dict[Place, tuple[str, str]] = {
    ("axes",): ("a sweep", "hpcrowd sweep {0}"),
    ("scenario",): ("a scenario", "hpcrowd run {0}"),
    ("changes",): ("changes of the platform", "hpcrowd replay LOG --platform {0}"),
    ("reactions",): ("reactions", "hpcrowd resample LOG --reactions {0}"),
    ("partitions",): ("a machine", "hpcrowd replay LOG --machine {0}"),
    ("nodes", 0, "cores"): ("a machine", "hpcrowd replay LOG --machine {0}"),
    ("nodes", 0, "idle"): ("a description of power", "hpcrowd replay LOG --power {0}"),
    ("users",): ("a population", "hpcrowd replay LOG --users {0}"),
    ("clusters",): ("a grid", "hpcrowd grid {0}"),
}

_UNQUOTED = re.compile(r"([\w.\-]+) *= *[A-Za-z~/.][^\"'#\[\]{}]*(#.*)?", re.ASCII)
_LINE = re.compile(r"at line (\d+)")


def read_toml(path: Path, *kinds: str) -> tuple[dict[str, Any], bytes]:
    """Return the values in a TOML file, and its bytes.

    Parameters
    ----------
    path
        The file.
    *kinds
        What it may describe, of :data:`FILE_KINDS`; anything unless given.

    Raises
    ------
    QuantityError
        If it cannot be read, is not TOML, or describes something else.
    """
    content = b""
    try:
        content = read_bytes(path)
        values = tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise QuantityError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # also of an integer with thousands of digits
        raise QuantityError(f"{path}: not TOML: {error}{_unquoted(content, error)}") from error
    except RecursionError:
        raise QuantityError(f"{path}: nested too deeply to be read") from None
    if kinds and "kind" in values:
        raise QuantityError(f"{path}: kind: put it, and what follows, under [scenario]")
    kind, use = next((FILE_KINDS[one] for one in FILE_KINDS if _has(values, one)), ("", ""))
    if kinds and kind and kind not in kinds:
        raise QuantityError(f"{path}: describes {kind}, not {kinds[0]}; use {use.format(path)}")
    return values, content


def _unquoted(content: bytes, error: ValueError) -> str:
    """Return the cure for text without quotes in the line of a mistake; empty if that is not it."""
    found = _LINE.search(str(error))
    lines = content.decode("utf-8", "replace").splitlines()
    if found is None or int(found[1]) > len(lines):
        return ""
    match = _UNQUOTED.fullmatch(lines[int(found[1]) - 1].strip())
    if match is None:
        return ""
    return f'; text needs quotes: {match[1]} = "..."'  # the value may be a secret


#: Lines x characters of a file in which the line of a mistake is looked for, half a second.
MOST_SEARCHED = 5_000_000


def line_of(text: str, place: Place) -> int | None:
    """Return the line, from 1, in which a value of valid TOML begins.

    None if no part of its path exists. If the value does not exist, the last existing part of the
    path counts, such as the table in which a key is missing.
    """
    for length in range(len(place), 0, -1):
        found = _first_line(text, place[:length])
        if found is not None:
            return found
    return None


def _first_line(text: str, place: Place) -> int | None:
    """Return the line in which a value begins.

    Neither ``tomllib`` nor ``tomlkit`` gives positions. So ever longer beginnings of the file are
    parsed, line by line: a value is at the end of the first one that contains it.
    """
    lines = text.splitlines(keepends=True)
    if len(lines) * len(text) > MOST_SEARCHED:
        return None
    whole = 0  # lines of the longest valid beginning so far
    for count in range(1, len(lines) + 1):
        try:
            values = tomllib.loads("".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            continue  # a value continues on the next line
        if _has(values, place):
            return whole + 1
        whole = count
    return None


def _has(values: Any, place: Place) -> bool:
    for part in place:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True
