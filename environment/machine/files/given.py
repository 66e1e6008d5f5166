"""A machine as settings and options give it: paths, and changes of single values.

::

    site.toml
    /etc/slurm/slurm.conf,qos.txt,assoc.txt
    dumps/
    site.toml:priority.weight-fair-share=6000,qos.normal.limits.max-jobs=10

Behind the colon, values are named by the keys of the TOML file; of a list such as ``partitions``
or ``qos`` the name of the entry comes next.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hpcrowd.environment.errors import MachineError, first_mistake, not_one_of
from hpcrowd.environment.machine.files.reading import read_machine
from hpcrowd.environment.machine.model import Machine

#: Changes behind a path.
_CHANGES = re.compile(r"(?P<paths>.+?):(?P<changes>[A-Za-z][\w.\-]*=.*)", re.DOTALL)

#: A change; a value in brackets or quotes may have commas.
_CHANGE = re.compile(r"""([A-Za-z][^=,]*)=("[^"]*"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|[^,]*)(?:,|$)""")

#: How entries of lists are named.
NAMES = {"nodes": "name", "partitions": "name", "qos": "name", "reservations": "name",
         "accounts": "account"}  # fmt: skip


def machine_given(text: str, folder: Path = Path()) -> Machine:
    """Return the machine of a text such as ``site.toml:scheduling.bf-interval=60``.

    Parameters
    ----------
    text
        Paths, separated by commas, and changes.
    folder
        The folder that paths are relative to.

    Raises
    ------
    MachineError
        If a file cannot be read or is wrong, or a change names nothing or is wrong.
    """
    paths, changes = split_given(text, folder)
    machine = read_machine(paths)
    return with_changes(machine, changes) if changes else machine


def split_given(text: str, folder: Path = Path()) -> tuple[list[Path], dict[str, str]]:
    """Return the paths in a text, and the changes by key."""
    if (folder / text).exists():
        return [folder / text], {}
    found = _CHANGES.fullmatch(text)
    names = text if found is None else found["paths"]
    changes = {} if found is None else dict(_CHANGE.findall(found["changes"]))
    paths = [names] if (folder / names).exists() else names.split(",")
    return [folder / path.strip() for path in paths], changes


def located_text(text: str, folder: Path) -> str:
    """Return the text of a machine with absolute paths."""
    paths, changes = split_given(text, folder)
    told = ",".join(str(path.absolute()) for path in paths)
    return told + (
        ":" + ",".join(f"{key}={value}" for key, value in changes.items()) if changes else ""
    )


def with_changes(machine: Machine, changes: Mapping[str, Any]) -> Machine:
    """Return a machine with other values.

    Parameters
    ----------
    machine
        The machine; it is not changed.
    changes
        Values, or their TOML texts, by key such as ``priority.weight-fair-share`` or
        ``partitions.gpu.max-time``.

    Raises
    ------
    MachineError
        If a key names nothing, or the value is wrong.
    """
    values = machine.model_dump()
    for key, value in changes.items():
        _set(values, key, _value(value))
    try:
        return Machine.model_validate(values)
    except ValidationError as error:
        raise MachineError(f"machine {', '.join(changes)}: {first_mistake(error)}") from None


def _value(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):  # not TOML, or more of it than Python reads
        return value


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    """Set the value that a key names."""
    place: Any = values
    parts = key.strip().split(".")
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        if isinstance(place, list | tuple):
            by = NAMES[parts[depth - 1]]
            known = [one[by] for one in place]
            if part not in known or last:
                raise MachineError(f"machine {key}: {part!r}: {not_one_of(part, known)}")
            place = place[known.index(part)]
            continue
        name = part.replace("-", "_")
        if name not in place:
            # Tables of resources, such as max_tres_per_user, take new keys.
            if last and all(isinstance(one, int | float) for one in place.values()):
                place[part] = value
                return
            raise MachineError(f"machine {key}: {part!r}: {not_one_of(name, list(place))}")
        if last:
            place[name] = value
            return
        if not isinstance(place[name], dict | list | tuple):
            raise MachineError(f"machine {key}: {name!r} has no parts; leave out the rest")
        if isinstance(place[name], tuple):
            place[name] = list(place[name])
        place = place[name]
