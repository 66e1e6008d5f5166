"""A machine as TOML: what differs from the defaults, and the way back.

::

    name = "toy"

    [[nodes]]
    name = "n[1-4]"
    cores = 8
    memory = "32GB"
    gpus = {a100 = 4}

    [[partitions]]
    name = "normal"
    max_time = "1d"
    default = true

Keys are the fields of :class:`~hpcrowd.environment.machine.model.Machine`; times, memory and
moments may be texts, as :mod:`hpcrowd.environment.machine.units` lists them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hpcrowd.environment.errors import MachineError, QuantityError, first_mistake
from hpcrowd.environment.files import line_of, read_toml
from hpcrowd.environment.machine.model import Entry, Machine
from hpcrowd.environment.machine.units import PARENT, written
from hpcrowd.environment.output.guard import MACHINE_HEAD
from hpcrowd.environment.output.whole import whole_file


def read_machine_toml(path: Path) -> Machine:
    """Return the machine of a TOML file.

    Raises
    ------
    MachineError
        If it cannot be read, or is wrong; the message names file and line.
    """
    try:
        values, content = read_toml(path, "a machine")
    except QuantityError as error:
        raise MachineError(str(error)) from None
    try:
        return Machine.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        place = first["loc"] + (cause.place if isinstance(cause, MachineError) else ())
        line = line_of(content.decode(), place)
        at = f"{path}:{line}" if line else str(path)
        raise MachineError(f"{at}: {first_mistake(error)}") from None


def machine_toml(machine: Machine) -> str:
    """Return a machine as the text of a TOML file."""
    tables: list[str] = []
    top: list[str] = [MACHINE_HEAD.decode().rstrip()]
    for name, value in fields_of(machine):
        if isinstance(value, Entry):
            tables.append(f"[{name}]\n{_lines(value)}")
        elif isinstance(value, tuple) and value and isinstance(value[0], Entry):
            tables += [f"[[{name}]]\n{_lines(one)}" for one in value]
        elif isinstance(value, tuple):
            inside = "".join(f"    {value_text(one)},\n" for one in value)
            top.append(f"{name} = [\n{inside}]")
        else:
            top.append(f"{name} = {value_text(value)}")
    return "\n\n".join(["\n".join(top), *tables]) + "\n"


def write_machine(machine: Machine, path: str | os.PathLike[str]) -> None:
    """Write a machine as a TOML file, which is complete or absent.

    Raises
    ------
    MachineError
        If it cannot be written.
    """
    with whole_file(path, MachineError) as temporary:
        temporary.write_text(machine_toml(machine), encoding="utf-8")


def fields_of(entry: Entry) -> Iterator[tuple[str, Any]]:
    """Yield the fields that differ from their defaults, as they are written."""
    for name, field in type(entry).model_fields.items():
        value = getattr(entry, name)
        if name == "parent" and getattr(entry, "user", False):
            continue  # always its account
        if field.is_required() or value != _defaults(type(entry))[name]:
            shown = PARENT if name == "shares" and value is None else written(field, value)
            yield name, shown


@cache
def _defaults(kind: type[Entry]) -> dict[str, Any]:
    """Return the defaults of an entry; pydantic copies them at each call."""
    return {
        name: field.get_default(call_default_factory=True)
        for name, field in kind.model_fields.items()
    }


def _lines(entry: Entry) -> str:
    return "\n".join(f"{name} = {value_text(value)}" for name, value in fields_of(entry))


def value_text(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, Entry):
        value = dict(fields_of(value))
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(key)} = {value_text(one)}" for key, one in value.items())
        return f"{{{inside}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, StrEnum):
        value = value.value
    return _quoted(value) if isinstance(value, str) else repr(value)


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("-", "_").isidentifier() else _quoted(key)


def _quoted(text: str) -> str:
    """Return a text in quotes; TOML escapes what JSON does, and the character of deletion."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
