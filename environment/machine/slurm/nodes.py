"""Nodes of Slurm's files: their cores, memory, GPUs and features; sets of nodes.

CPUs are what Slurm counts: hardware threads if a node has CPUs=64 CoresPerSocket=32
ThreadsPerCore=2. Cores and memory that are kept for the system are taken off. Nodes are in the
order of Slurm's own table, by name and number, in which it also looks for free ones.

Source: slurm.conf(5), NODE CONFIGURATION; gres.conf(5); sort in read_config.c of slurmctld 22.05.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from hpcrowd.environment.errors import MachineError
from hpcrowd.environment.machine.hostlists import collapse, expand, natural
from hpcrowd.environment.machine.model import NodeType
from hpcrowd.environment.machine.slurm.records import (
    Kind,
    Record,
    Value,
    by_name,
    hosts,
    make,
    megabytes,
    number,
    of_words,
    tres,
    whole,
    words,
)

#: The generic resource that is modelled.
GPU = "gpu"

#: Keys of nodes that have nothing to do with scheduling.
HARMLESS = of_words("""
    activefeatures alloc_cpus allocmem alloctres arch avewatts boards bcastaddr boottime
    capwatts cfgtres comment cpualloc cpuload currentwatts extra extsensorsjoules extsensorstemp
    extsensorswatts freemem gresdrain gresused instanceid instancetype lastbusytime mcs_label
    nextstate nodeaddr nodehostname os owner partitions port reason resumeaftertime resv
    reservation slurmdstarttime slurmdversion socketsperboard temporarydisk tmpdisk version
    cpubind topology cpuspeclist certificate
""")

#: States in which a node is used; others are named.
USED = of_words("""
    idle unknown cloud allocated alloc mixed mix completing comp planned plnd reserved resv
    maint
""")

_GRES = re.compile(
    r"([a-z_]\w*)(?::([^():=]*[^\d():=][^():=]*))?(?::(?:no_consume:)?(\d+)([KMGT]?))?"
    r"(?::no_consume)?(?:\([^)]*\))?",
    re.IGNORECASE | re.ASCII,
)

#: A comma within parentheses belongs to the sockets of one resource.
_WORD = re.compile(r"(?:[^,(]|\([^)]*\)?)+")


class Nodes(NamedTuple):
    """The nodes of a machine.

    Attributes
    ----------
    types
        Equal nodes that follow each other, in Slurm's order.
    where
        The place of each type.
    sets
        Node sets: the names of their nodes.
    """

    types: list[NodeType]
    where: list[str]
    sets: dict[str, list[str]]


class _Described(NamedTuple):
    """What nodes are, and where it says so."""

    cores: int
    memory: int | None
    gpus: tuple[tuple[str, int], ...]
    features: tuple[str, ...]
    weight: int


def nodes_of(records: Iterable[Record], notes: list[str]) -> Nodes:
    """Return the nodes and node sets that records describe; what is not modelled is noted."""
    records = list(records)
    described = by_name(records, Kind.NODES, "NodeName", hosts)
    gres = _Gres([one for one in records if one.kind is Kind.GRES], notes)
    made: dict[int, _Described | None] = {}
    kinds: dict[str, _Described] = {}
    for name in sorted(described, key=natural):
        record = described[name]
        if id(record) not in made:
            made[id(record)] = _described(record, notes)
        kind = made[id(record)]
        if kind:
            typed = gres.gpus(name, dict(kind.gpus), record.where)
            kinds[name] = kind._replace(gpus=tuple(sorted(typed.items())))
    types, where, group = [], [], []
    names = list(kinds)
    for place, name in enumerate(names):
        group.append(name)
        if place + 1 == len(names) or kinds[names[place + 1]] != kinds[name]:
            kind = kinds[name]
            fields = kind._asdict() | {"gpus": dict(kind.gpus), "name": collapse(group)}
            where.append(described[group[0]].where)
            types.append(make(NodeType, where[-1], **fields))
            group = []
    return Nodes(types, where, _sets(records, kinds, notes))


def _described(record: Record, notes: list[str]) -> _Described | None:
    """Return what a record says of its nodes; None if they are not there yet."""
    state = record.take("State")
    if state and state.text.upper().startswith("FUTURE"):
        notes.append(f"{state.note}: these nodes are left out")
        return None
    if state:
        flags = set(re.split(r"[+*~#!%$@^-]+", state.text.lower())) - {""}
        if not flags <= USED | {"not_responding", "powered_down", "dynamic_norm"}:
            notes.append(f"{state.note}: taken as up")
    shown = _Shown(record)
    memory = megabytes(record.take("RealMemory")) or shown.take("mem", "RealMemory")
    reserved = record.take("MemSpecLimit")
    if memory is not None and memory > 1:
        left = memory - number(reserved)
        if reserved and left < 1:
            raise reserved.wrong(f"not less than RealMemory={memory}")
        memory = left
    else:
        memory = None  # 1 is what Slurm takes where nothing is given
        notes.append(f"{record.where}: RealMemory not given: memory of these nodes is not limited")
    kind = _Described(
        _cores(record, shown, notes),
        memory,
        tuple((_gpus(record.take("Gres"), notes) or shown.gpus()).items()),
        words(record.take("AvailableFeatures", "Features", "Feature")),
        number(record.take("Weight"), 1),
    )
    notes += record.unused(harmless=HARMLESS)
    return kind


class _Shown:
    """What ``CfgTRES`` says of nodes, where the keys about it are missing."""

    def __init__(self, record: Record) -> None:
        self.record, self.value = record, record.take("CfgTRES")

    def take(self, name: str, *keys: str) -> int | None:
        """Return how much there is of a resource, if the record has none of these keys."""
        if self.value is None or any(key.lower() in self.record.values for key in keys):
            return None
        return tres(self.value).get(name)

    def gpus(self) -> dict[str, int]:
        """Return GPUs by type; of those that are only counted in all, the type is not known."""
        if self.value is None or "gres" in self.record.values:
            return {}
        start = f"gres/{GPU}"
        of_type = {name: count for name, count in tres(self.value).items() if count
                   and name.partition(":")[0] == start}  # fmt: skip
        typed = {name.partition(":")[2]: of_type[name] for name in of_type if ":" in name}
        rest = of_type.get(start, 0) - sum(typed.values())
        return typed | ({"": rest} if rest > 0 else {})


def _cores(record: Record, shown: _Shown, notes: list[str]) -> int:
    """Return the CPUs of a node that jobs may use."""
    counts = {}
    for key in ("Boards", "SocketsPerBoard", "Sockets", "CoresPerSocket", "ThreadsPerCore"):
        value = record.take(key)
        counts[key] = whole(value, 1) if value else None
    threads = counts["ThreadsPerCore"] or 1
    sockets = counts["Sockets"] or (counts["Boards"] or 1) * (counts["SocketsPerBoard"] or 1)
    cores = sockets * (counts["CoresPerSocket"] or 1)
    given, left = record.take("CPUTot", "CPUs", "Procs"), record.take("CPUEfctv")
    cpus = whole(given, 1) if given else cores * threads
    if given is None and not any(counts.values()):
        found = shown.take("cpu", "CPUEfctv")
        cpus = found or cpus
        if found is None and left is None:
            notes.append(f"{record.where}: CPUs not given: taken as 1, as in Slurm")
    if threads > 1 and cpus > cores:
        notes.append(
            f"{record.where}: ThreadsPerCore={threads}: jobs may share a core, as CPUs are threads"
        )
    reserved = record.take("CoreSpecCount")
    listed = record.take("CPUSpecList")
    if left:
        return whole(left, 1)
    if reserved:
        cpus -= whole(reserved) * max(1, cpus // max(cores, 1))
    elif listed:
        cpus -= sum(1 for _ in expand(f"[{listed.text}]"))
    if cpus < 1:
        raise MachineError(f"{record.where}: no CPU left for jobs; correct what is reserved")
    return cpus


def _gpus(value: Value | None, notes: list[str]) -> dict[str, int]:
    """Return GPUs by type of ``gpu:a100:4(S:0-1),gpu:2,mps:400``."""
    found: dict[str, int] = defaultdict(int)
    if value is None:
        return found
    for word in _WORD.findall(value.text):
        match = _GRES.fullmatch(word.strip().removeprefix("gres/").removeprefix("gres:"))
        if not match:
            raise value.wrong("not a list of resources such as gpu:a100:4")
        if match[1].lower() != GPU:
            notes.append(f"{value.where}: {value.key}={word}")
            continue
        scale = 1024 ** ("KMGT".index(match[4].upper()) + 1) if match[4] else 1
        found[match[2] or ""] += int(match[3] or 1) * scale
    return found


class _Gres:
    """GPUs of gres.conf: their types, for nodes whose Gres has none."""

    def __init__(self, records: list[Record], notes: list[str]) -> None:
        self.notes = notes
        self.everywhere: dict[str, int] = defaultdict(int)
        self.by_node: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for record in records:
            name, files, size = (record.take(key) for key in ("Name", "File", "Count"))
            nodes = record.take("NodeName")
            detect = record.take("AutoDetect")
            if detect and detect.text.lower() != "off":
                notes.append(f"{detect.note}: GPUs are those of Gres in slurm.conf")
            if name is None:
                continue
            if name.text.lower() != GPU:
                notes.append(name.note)
                continue
            there = whole(size) if size else sum(1 for _ in hosts(files)) if files else 1
            kind = record.text("Type")
            for counts in (
                [self.by_node[one] for one in hosts(nodes)] if nodes else [self.everywhere]
            ):
                counts[kind] += there

    def gpus(self, node: str, found: dict[str, int], where: str) -> dict[str, int]:
        """Return the GPUs of a node, with types from here if there are none yet."""
        here = self.by_node.get(node) or self.everywhere
        if not here or not found:
            return found
        if set(found) == {""} and sum(here.values()) == found[""]:
            return dict(here)
        if sum(here.values()) != sum(found.values()):
            told = f"{where}: Gres of {sum(found.values())} GPUs, gres.conf of {sum(here.values())}"
            if told not in self.notes:
                self.notes.append(told)
        return found


def _sets(
    records: list[Record], kinds: dict[str, _Described], notes: list[str]
) -> dict[str, list[str]]:
    found = {}
    for record in records:
        if record.kind is not Kind.NODE_SET:
            continue
        name, feature = record.take("NodeSet"), record.take("Feature", "Features")
        nodes = record.take("Nodes")
        if name is None:
            continue
        everything = nodes is not None and nodes.text.upper() == "ALL"
        chosen = list(kinds) if everything else hosts(nodes) if nodes else []
        if feature:
            chosen += [one for one, kind in kinds.items() if feature.text in kind.features]
        found[name.text] = list(dict.fromkeys(chosen))
    return found
