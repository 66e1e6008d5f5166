"""Read a machine from files of any kind, or from folders of them, and change single values.

::

    read_machine([Path("machine.toml")])                    one TOML file
    read_machine([Path("/etc/slurm/slurm.conf"), Path("qos.txt"), Path("assoc.txt")])
    read_machine([Path("dumps/")])                          all in a folder that describe it

Of ``sdiag``, only how long its backfill cycles took is used: they come that much less often.

What a file is shows its content; the names ``slurm.conf`` and ``gres.conf`` are known, too.

Settings and options give a machine as paths and changes::

    site.toml
    /etc/slurm/slurm.conf,qos.txt,assoc.txt
    dumps/
    site.toml:priority.weight-fair-share=6000,qos.normal.limits.max-jobs=10

Behind the colon, values are named by the keys of the TOML file; of a list such as ``partitions``
or ``qos`` the name of the entry comes next.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from hpcrowd.environment.errors import MachineError, TraceError, first_mistake, harmless, not_one_of
from hpcrowd.environment.limits.inputs import LARGEST_SETTINGS
from hpcrowd.environment.machine.checks import ROOT
from hpcrowd.environment.machine.files.toml_text import read_machine_toml
from hpcrowd.environment.machine.model import Account, Machine, Partition, Qos, Reservation
from hpcrowd.environment.machine.slurm import objects, texts
from hpcrowd.environment.machine.slurm.accounting import accounts_of, qos_of
from hpcrowd.environment.machine.slurm.nodes import nodes_of
from hpcrowd.environment.machine.slurm.partitions import partitions_of, reservations_of
from hpcrowd.environment.machine.slurm.records import Kind, Record
from hpcrowd.environment.machine.slurm.settings import Settings
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.common.files import read_file, read_head
from hpcrowd.environment.traces.headers import parse_zone


class Form(StrEnum):
    """A kind of file."""

    TOML = "TOML"
    CONF = "slurm.conf"
    GRES = "gres.conf"
    SCONTROL = "scontrol show"
    OBJECTS = "scontrol show --json"
    DUMP = "sacctmgr dump"
    ASSOCIATIONS = "sacctmgr show assoc"
    QOS = "sacctmgr show qos"
    RESERVATIONS = "sacctmgr show reservation"
    DIAGNOSIS = "sdiag"


#: Forms that are tables, by what they are about.
TABLES = {
    Kind.ASSOCIATION: Form.ASSOCIATIONS,
    Kind.QOS: Form.QOS,
    Kind.RESERVATION: Form.RESERVATIONS,
}

#: Keys that only slurm.conf has, at the beginning of a line.
_CONF = re.compile(
    r"^[ \t]*(ClusterName|NodeName|PartitionName|NodeSet|SlurmctldHost|ControlMachine|SelectType|"
    r"SchedulerType|PriorityType|SchedulerParameters|DownNodes)[ \t]*=",
    re.IGNORECASE | re.MULTILINE,
)
_GRES = re.compile(
    r"^[ \t]*(NodeName[ \t]*=[ \t]*\S+[ \t]+)?(AutoDetect[ \t]*=|Name[ \t]*=[ \t]*(\S[^\n]*"
    r"[ \t](File|Count|Type|Flags|Cores)[ \t]*=|(gpu|mps|shard|nic|mic)[ \t]*$))",
    re.IGNORECASE | re.MULTILINE,
)
#: What other files of a cluster have, which may hold secrets: slurmdbd.conf, cgroup.conf,
#: acct_gather.conf, keys and certificates.
_OTHER = re.compile(
    r"^[ \t]*((Dbd|Storage|Purge|Archive|Cgroup|Constrain|EnergyIPMI|Profile(HDF5|Influx))\w*"
    r"[ \t]*=|-----BEGIN )",
    re.IGNORECASE | re.MULTILINE,
)
_TOML = re.compile(r"^[ \t]*(\[\[[ \t]*nodes[ \t]*\]\]|nodes[ \t]*=)", re.MULTILINE)
_SHOWN = re.compile(
    r"^[ \t]*(NodeName=\S+ [^\n]*(\n[^\n]*){0,3}(CPUAlloc|CfgTRES)=|"
    r"PartitionName=\S+\s+AllowGroups=|ReservationName=\S+ StartTime=|Configuration data as of )",
    re.MULTILINE,
)
#: What sdiag prints first, and how long its backfill cycles took, in microseconds.
_DIAGNOSIS = re.compile(r"\s*\*+\s+sdiag output at ")
_CYCLE = re.compile(r"^Backfilling stats\b[^*]*?^\s*Mean cycle:\s*(\d{1,12})\s*$", re.MULTILINE)
_DUMP = re.compile(r"^(Cluster|Parent|Account|User) - ", re.MULTILINE)
_OBJECTS = re.compile(r'"(\w+)"\s*:\s*\[\s*(?:\{|\])')
_SETTINGS = re.compile(rf'"({"|".join(objects.CONFIG)})"\s*:\s*[\[{{]')

#: Lists that come with any objects.
OTHER_LISTS = frozenset(("errors", "warnings", "command"))

#: Names of files whose form is known.
NAMES = {"slurm.conf": Form.CONF, "gres.conf": Form.GRES}

#: Files next to slurm.conf that do not describe a machine, and may hold secrets.
OTHERS = frozenset((
    "slurmdbd.conf", "cgroup.conf", "acct_gather.conf", "slurmrestd.conf", "plugstack.conf",
    "job_container.conf", "burst_buffer.conf", "helpers.conf", "mpi.conf", "oci.conf",
    "topology.conf", "topology.yaml", "resources.yaml", "namespace.yaml", "switch.conf",
))  # fmt: skip

#: Endings of keys and certificates.
SECRET = (".key", ".pem", ".crt", ".pub", ".jwks")


def form_of(path: Path, head: str, *, named: bool = True) -> Form | None:
    """Return what a file is by how it begins, unpacked; None if it does not describe a machine.

    Both its name and what it contains must allow for it: a file next to it may hold secrets.
    ``named`` is whether somebody named it, and not its folder.
    """
    if path.suffix == ".toml":
        return Form.TOML if named or _TOML.search(head) else None
    name = path.name.removesuffix(".gz").removesuffix(".in")
    if name in NAMES:
        return NAMES[name]
    if name in OTHERS or name.endswith(SECRET) or _OTHER.search(head):
        return None
    if head.lstrip().startswith("{"):
        lists = [name for name in _OBJECTS.findall(head) if name not in OTHER_LISTS]
        known = bool(lists) and lists[0] in objects.LISTS
        return Form.OBJECTS if known or _SETTINGS.search(head) else None
    if _DIAGNOSIS.match(head):
        return Form.DIAGNOSIS
    if _SHOWN.search(head):
        return Form.SCONTROL
    kind = texts.kind_of_table(head)
    if kind:
        return TABLES[kind]
    if _DUMP.search(head):
        return Form.DUMP
    text = "\n".join(line for line in head.splitlines() if not line.lstrip().startswith("#"))
    if _GRES.search(text):
        return Form.GRES
    return Form.CONF if _CONF.search(text) else None


# one machine of all files

#: Files that a folder may hold; more is a wrong folder.
MOST_FILES = 1000

#: What can be read, for messages.
READABLE = (
    "a TOML file of hpcrowd, slurm.conf, gres.conf, or the output of scontrol show "
    "node/partition/res/config, sacctmgr dump, sacctmgr show assoc/qos -P, sdiag"
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
    found = _files(paths)
    if not found:
        named = [paths] if isinstance(paths, str | os.PathLike) else paths
        shown = ", ".join(str(path) for path in named) or "no files"
        raise MachineError(f"{shown}: nothing describes a machine; give {READABLE}")
    tomls = [path for path, form in found if form is Form.TOML]
    if tomls and len(found) > 1:
        raise MachineError(f"{tomls[0]}: a TOML file describes the whole machine; give it alone")
    if tomls:
        return read_machine_toml(tomls[0])
    notes: list[str] = []
    records = _records(found, notes)
    machine = machine_of(records, notes, str(found[0].path), parse_zone(zone))
    for path, form in found:
        if form is Form.DIAGNOSIS and (cycle := _CYCLE.search(text_of(path))):
            took = {"cycle_time": int(cycle[1]) / 10**6}
            machine = machine.changed(scheduling=machine.scheduling.model_copy(update=took))
    return machine


def records_in(paths: AnyPath | Sequence[AnyPath]) -> list[Record]:
    """Return the records of Slurm's files about a machine; none of a TOML file.

    Raises :class:`MachineError` if a file cannot be read, or is of another kind.
    """
    return _records([one for one in _files(paths) if one.form is not Form.TOML], [])


def _files(paths: AnyPath | Sequence[AnyPath]) -> list[_Found]:
    """Return the files at paths that describe a machine."""
    named = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [one for path in named for one in _found(Path(path))]


def _records(found: Iterable[_Found], notes: list[str]) -> list[Record]:
    """Return the records of files; one that another includes has been read there."""
    included: set[Path] = set()
    read = [(path, _records_in(path, form, included, notes)) for path, form in found]
    return [one for path, some in read if path.resolve() not in included for one in some]


def _records_in(path: Path, form: Form, included: set[Path], notes: list[str]) -> list[Record]:
    """Return the records of a file."""
    if form is Form.CONF:
        return list(texts.conf_records(path, text_of, included))
    if form is Form.GRES:
        return list(texts.conf_records(path, text_of, included, Kind.GRES))
    if form is Form.DIAGNOSIS:
        return []
    text, source = text_of(path), str(path)
    for kind, table in TABLES.items():
        if form is table:
            return list(texts.table_records(text, source, kind, notes))
    if form is Form.DUMP:
        return list(texts.dump_records(text, source))
    if form is Form.OBJECTS:
        return list(objects.records_of(text, source))
    return list(texts.shown_records(text, source, notes))


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

    Raises :class:`MachineError` if it cannot be read, is not a text, or is too large.
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


def machine_of(
    records: Sequence[Record], notes: Iterable[str], source: str, zone: tzinfo | None = None
) -> Machine:
    """Return the machine that records describe; the source is what messages call the files.

    QOS and accounts that are named and not described have no limits; they are noted.
    """
    found = list(notes)
    settings = Settings(records, found)
    nodes, where_nodes, sets = nodes_of(records, found)
    if not nodes:
        raise MachineError(f"{source}: no nodes; give slurm.conf, or what scontrol show node shows")
    partitions, where_partitions = partitions_of(
        records, sets, settings.partition_defaults(), found
    )
    qos, where_qos = qos_of(records, found)
    accounts, where_accounts = accounts_of(records, found)
    reservations, where_reservations = reservations_of(records, zone, found)
    accounts += _missing_accounts(accounts, partitions, reservations, found)
    qos += _missing_qos(qos, accounts, partitions, found)
    where = {
        "nodes": where_nodes,
        "partitions": where_partitions,
        "qos": where_qos,
        "accounts": where_accounts,
        "reservations": where_reservations,
    }
    name = settings.name()
    try:
        priority, scheduling = settings.priority(), settings.scheduling()
        settings.left()
        parts = {
            "name": name or "cluster",
            "nodes": tuple(nodes),
            "partitions": tuple(partitions),
            "qos": tuple(qos),
            "accounts": tuple(accounts),
            "reservations": tuple(reservations),
            "priority": priority,
            "scheduling": scheduling,
            "not_modelled": _joined(found),
        }
        return Machine.model_validate(parts)
    except ValidationError as error:
        cause = error.errors()[0].get("ctx", {}).get("error")
        place = cause.place if isinstance(cause, MachineError) else ()
        if len(place) > 1 and isinstance(place[1], int) and place[1] < len(where[str(place[0])]):
            source = where[str(place[0])][place[1]]
        raise MachineError(f"{source}: {first_mistake(error)}") from None


def _joined(notes: Iterable[str]) -> tuple[str, ...]:
    """Return notes with the names of files in place of paths; equal ones of a file are one."""
    lines: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        place, _, rest = note.partition(": ")
        file, _, line = place.rpartition("/")[2].partition(":")
        lines.setdefault((file, rest), []).append(line)
    found = []
    for (file, rest), numbers in lines.items():
        once = dict.fromkeys(numbers)
        more = f" (and {plural(len(once) - 1, 'more line')})" if len(once) > 1 else ""
        place = ":".join(filter(None, (file, numbers[0])))
        found.append(harmless(": ".join(filter(None, (place, rest)))) + more)
    return tuple(found)


def _missing_accounts(
    accounts: list[Account],
    partitions: Iterable[Partition],
    reservations: Iterable[Reservation],
    notes: list[str],
) -> list[Account]:
    """Return the accounts that are named and not described; they have no shares."""
    if not accounts:
        return []
    known = {one.account for one in accounts if not one.user} | {ROOT}
    named = [one.account for one in accounts] + [one.parent for one in accounts if not one.user]
    for partition in partitions:
        named += partition.allow_accounts + partition.deny_accounts
    for reservation in reservations:
        named += reservation.accounts
    missing = [name for name in dict.fromkeys(named) if name not in known]
    notes += [f"account {name}: named, not described" for name in missing]
    return [Account(account=name, shares=0) for name in missing]


def _missing_qos(
    qos: list[Qos], accounts: Iterable[Account], partitions: Iterable[Partition], notes: list[str]
) -> list[Qos]:
    """Return the QOS that are named and not described; they have no limits."""
    known = {one.name for one in qos}
    named = [name for one in qos for name in one.preempts]
    for account in accounts:
        named += [*account.qos, account.default_qos]
    for partition in partitions:
        named += [partition.qos, *partition.allow_qos, *partition.deny_qos]
    missing = [name for name in dict.fromkeys(filter(None, named)) if name not in known]
    notes += [f"QOS {name}: named, not described; give sacctmgr show qos -P" for name in missing]
    return [Qos(name=name) for name in missing]


#: Changes behind a path.
_CHANGES = re.compile(r"(?P<paths>.+?):(?P<changes>[A-Za-z][\w.\-]*=.*)", re.DOTALL)

#: A change; a value in brackets or quotes may have commas.
_CHANGE = re.compile(r"""([A-Za-z][^=,]*)=("[^"]*"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|[^,]*)(?:,|$)""")

#: How entries of lists are named.
NAMED_BY = {"nodes": "name", "partitions": "name", "qos": "name", "reservations": "name",
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
            by = NAMED_BY[parts[depth - 1]]
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
