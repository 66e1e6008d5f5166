"""Read a machine from files of any kind, or from folders of them.

::

    read_machine([Path("machine.toml")])                    one TOML file
    read_machine([Path("/etc/slurm/slurm.conf"), Path("qos.txt"), Path("assoc.txt")])
    read_machine([Path("dumps/")])                          all in a folder that describe it

What a file is shows its content; the names ``slurm.conf`` and ``gres.conf`` are known, too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hpcrowd.environment.errors import MachineError, TraceError
from hpcrowd.environment.limits.inputs import LARGEST_SETTINGS
from hpcrowd.environment.machine.files.recognition import Form, form_of
from hpcrowd.environment.machine.files.toml_text import read_machine_toml
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.slurm import conf, dump, objects, scontrol, tables
from hpcrowd.environment.machine.slurm.merging import machine_of
from hpcrowd.environment.machine.slurm.records import Kind, Record
from hpcrowd.environment.traces.formats.common.files import read_file, read_head
from hpcrowd.environment.traces.headers import parse_zone

#: Files that a folder may hold; more is a wrong folder.
MOST_FILES = 1000

#: What can be read, for messages.
READABLE = (
    "a TOML file of hpcrowd, slurm.conf, gres.conf, or the output of scontrol show "
    "node/partition/res/config, sacctmgr dump, sacctmgr show assoc/qos -P"
)


#: A path as a text or an object.
AnyPath = str | os.PathLike[str]


class _Found(NamedTuple):
    """A file that describes a machine."""

    path: Path
    form: Form


def read_machine(paths: AnyPath | Sequence[AnyPath], zone: str | None = None) -> Machine:
    """Return the machine that files describe.

    Parameters
    ----------
    paths
        A file or a folder, or several; files may be packed with gzip. Files in a folder that do
        not describe a machine are left out.
    zone
        Time zone of the local times of reservations; UTC unless given.

    Raises
    ------
    MachineError
        If a file cannot be read, is of another kind, or is wrong; the message names file and line.
    """
    named = [paths] if isinstance(paths, str | os.PathLike) else paths
    found = [one for path in named for one in _found(Path(path))]
    if not found:
        shown = ", ".join(str(path) for path in named) or "no files"
        raise MachineError(f"{shown}: nothing describes a machine; give {READABLE}")
    tomls = [path for path, form in found if form is Form.TOML]
    if tomls and len(found) > 1:
        raise MachineError(f"{tomls[0]}: a TOML file describes the whole machine; give it alone")
    if tomls:
        return read_machine_toml(tomls[0])
    notes: list[str] = []
    included: set[Path] = set()
    read = [(path, _records(path, form, included, notes)) for path, form in found]
    # A file of a folder that another one includes has been read there.
    records = [one for path, some in read if path.resolve() not in included for one in some]
    return machine_of(records, notes, str(found[0].path), parse_zone(zone))


def records_in(paths: AnyPath | Sequence[AnyPath]) -> list[Record]:
    """Return the records of Slurm's files about a machine; none of a TOML file.

    Parameters
    ----------
    paths
        As for :func:`read_machine`.

    Raises
    ------
    MachineError
        If a file cannot be read, or is of another kind.
    """
    named = [paths] if isinstance(paths, str | os.PathLike) else paths
    found = [one for path in named for one in _found(Path(path)) if one.form is not Form.TOML]
    included: set[Path] = set()
    read = [(path, _records(path, form, included, [])) for path, form in found]
    return [one for path, some in read if path.resolve() not in included for one in some]


def _records(path: Path, form: Form, included: set[Path], notes: list[str]) -> list[Record]:
    """Return the records of a file."""
    if form is Form.CONF:
        return list(conf.records_of(path, text_of, included))
    if form is Form.GRES:
        return list(conf.records_of(path, text_of, included, Kind.GRES))
    text, source = text_of(path), str(path)
    if form in TABLES:
        return list(tables.records_of(text, source, TABLES[form], notes))
    if form is Form.DUMP:
        return list(dump.records_of(text, source))
    if form is Form.OBJECTS:
        return list(objects.records_of(text, source))
    return list(scontrol.records_of(text, source, notes))


#: Forms that are tables, and what they are about.
TABLES = {
    Form.ASSOCIATIONS: Kind.ASSOCIATION,
    Form.QOS: Kind.QOS,
    Form.RESERVATIONS: Kind.RESERVATION,
}


def _found(path: Path) -> list[_Found]:
    """Return the files of a path that describe a machine."""
    if not path.is_dir():
        form = form_of(path, _head(path))
        if form is None:
            raise MachineError(f"{path}: does not describe a machine; give {READABLE}")
        return [_Found(path, form)]
    try:
        inside = sorted(one for one in path.iterdir() if one.is_file())
    except OSError as error:
        raise MachineError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(inside) > MOST_FILES:
        raise MachineError(f"{path}: {len(inside):,} files; at most {MOST_FILES:,}, name some")
    return [_Found(one, form) for one in inside if (form := form_of(one, _head(one), named=False))]


def _head(path: Path) -> str:
    try:
        return read_head(path).decode("utf-8", "replace")
    except TraceError as error:
        raise MachineError(str(error)) from None


def text_of(path: Path) -> str:
    """Return the text of a file, unpacked.

    Raises
    ------
    MachineError
        If it cannot be read, is not a text, or is too large for a description.
    """
    try:
        data, _ = read_file(path, LARGEST_SETTINGS)
    except TraceError as error:
        raise MachineError(str(error)) from None
    if len(data) > LARGEST_SETTINGS:
        raise MachineError(f"{path}: {len(data) / 2**20:,.0f} MB, too large for a description")
    if (place := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, place) + 1
        raise MachineError(f"{path}:{line}: a character of number 0; write the file as UTF-8")
    return data.decode("utf-8", "replace").removeprefix("\ufeff")
