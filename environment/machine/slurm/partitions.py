"""Partitions and reservations of Slurm's files.

Source: slurm.conf(5), PARTITION CONFIGURATION; scontrol(1), SPECIFICATIONS FOR RESERVATION.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from typing import Any

from hpcrowd.environment.errors import MachineError
from hpcrowd.environment.machine.hostlists import collapse, expand, natural
from hpcrowd.environment.machine.model import Partition, Reservation
from hpcrowd.environment.machine.slurm.records import (
    Kind,
    Record,
    Source,
    Value,
    by_name,
    count,
    hosts,
    limit,
    make,
    megabytes,
    number,
    preemption,
    weights,
    words,
    yes,
)

#: Keys of partitions that have nothing to do with scheduling, or follow from others.
HARMLESS = frozenset(
    ["cpubind", "disablerootjobs", "hidden", "totalcpus", "totalnodes", "tres", "nodesets"]
)

#: Values that change nothing, by key.
NEUTRAL = {"oversubscribe": {"no"}, "shared": {"no"}}

#: Jobs that may share a core where OverSubscribe gives no number (slurm.conf(5)).
MOST_ON_A_CORE = 4

#: Flags of reservations that are modelled, or that change nothing for one reservation.
FLAGS = {"MAINT", "IGNORE_JOBS", "FLEX", "SPEC_NODES", "OVERLAP", "ALL_NODES"}

_CORES = re.compile(r"\[?([\d,-]+)\]?")


def partitions_of(
    records: Iterable[Record],
    sets: dict[str, list[str]],
    defaults: dict[str, int | None],
    notes: list[str],
) -> tuple[list[Partition], list[str]]:
    """Return the partitions that records describe, and their places.

    Node sets have the names of their nodes; ``defaults`` are fields for partitions that do not have
    them, such as ``max_memory_per_node``. What is not modelled is noted.
    """
    found = by_name(records, Kind.PARTITION, "PartitionName", lambda one: one.text.split(","))
    made = [_partition(name, record, sets, notes) for name, record in found.items()]
    chosen = [each for each in made if each.default]
    notes += [
        f"{found[other.name].where}: partition {other.name}: Default=YES; the last one with it "
        f"counts, {chosen[-1].name}"
        for other in chosen[:-1]
    ]
    return [
        each.model_copy(
            update={"default": each in chosen[-1:]}
            | {key: value for key, value in defaults.items() if getattr(each, key) is None}
        )
        for each in made
    ], [record.where for record in found.values()]


def _partition(
    name: str, record: Record, sets: dict[str, list[str]], notes: list[str]
) -> Partition:
    take = record.take
    mode, other = preemption(take("PreemptMode"))
    notes += [f"{record.where}: partition {name}: PreemptMode={word}" for word in other]
    longest, usual = limit(take("MaxTime")), limit(take("DefaultTime"))
    sharing = take("OverSubscribe", "Shared")
    fields: dict[str, Any] = {
        "name": name,
        "nodes": _nodes(take("Nodes"), sets),
        "default": yes(take("Default")),
        "default_time": usual,
        "max_time": longest,
        "min_nodes": number(take("MinNodes")),
        "max_nodes": count(take("MaxNodes")),
        "max_cores_per_node": count(take("MaxCPUsPerNode")) or None,
        "default_memory_per_core": megabytes(take("DefMemPerCPU")),
        "default_memory_per_node": megabytes(take("DefMemPerNode")),
        "max_memory_per_core": megabytes(take("MaxMemPerCPU")),
        "max_memory_per_node": megabytes(take("MaxMemPerNode")),
        "priority_tier": number(take("PriorityTier", "Priority"), 1),
        "priority_factor": number(take("PriorityJobFactor", "Priority"), 1),
        "exclusive": _exclusive(sharing, notes),
        "jobs_per_core": _jobs_per_core(sharing),
        "preempt_mode": mode,
        "grace_time": number(take("GraceTime")),
        "qos": record.text("QoS"),
        "allow_accounts": words(take("AllowAccounts")),
        "deny_accounts": words(take("DenyAccounts")),
        "allow_qos": words(take("AllowQos")),
        "deny_qos": words(take("DenyQos")),
        "allow_groups": words(take("AllowGroups")),
        "least_loaded": yes(take("LLN")),
        "up": _up(take("State"), notes),
        "billing_weights": weights(take("TRESBillingWeights")),
    }
    if usual and longest and usual > longest:
        raise MachineError(
            f"{record.where}: partition {name}: DefaultTime longer than MaxTime; shorten it"
        )
    notes += record.unused(f"partition {name}", HARMLESS, NEUTRAL)
    return make(Partition, record.where, **fields)


def _nodes(value: Value | None, sets: dict[str, list[str]]) -> tuple[str, ...]:
    if value is None:
        return ()
    if value.text.upper() == "ALL":
        return ("ALL",)
    names = [
        name
        for one in hosts(value)
        for name in (sets.get(one, [one]))
    ]  # fmt: skip
    return (collapse(sorted(dict.fromkeys(names), key=natural)),) if names else ()


def _exclusive(value: Value | None, notes: list[str]) -> bool:
    word = value.text.upper() if value else "NO"
    if value and word not in ("NO", "EXCLUSIVE", "FORCE:1", "YES:1"):
        notes.append(value.note)
    return word == "EXCLUSIVE"


def _jobs_per_core(value: Value | None) -> int:
    """Return how many jobs may share a core: four where no number is given, as in Slurm."""
    word, _, jobs = (value.text.upper() if value else "NO").partition(":")
    if word not in ("FORCE", "YES"):
        return 1
    return max(int(jobs), 1) if jobs.isdecimal() else MOST_ON_A_CORE


def _up(value: Value | None, notes: list[str]) -> bool:
    word = value.text.upper() if value else "UP"
    if value and word == "DRAIN":
        notes.append(f"{value.note}: new jobs are accepted")
    elif value and word not in ("UP", "DOWN", "INACTIVE"):
        raise value.wrong("not known; choose UP, DOWN, DRAIN, INACTIVE")
    return word in ("UP", "DRAIN")


def reservations_of(
    records: Iterable[Record], zone: tzinfo | None, notes: list[str]
) -> tuple[list[Reservation], list[str]]:
    """Return the reservations that records describe, and their places.

    Local times are those of the zone, UTC unless given. What is not modelled is noted, such as
    reservations without nodes.
    """
    found, where = {}, {}
    for record in records:
        if record.kind is Kind.RESERVATION:
            made = _reservation(record, zone, notes)
            if made and (made.name not in found or record.source is Source.SHOWN):
                found[made.name], where[made.name] = made, record.where
    return list(found.values()), list(where.values())


def _reservation(record: Record, zone: tzinfo | None, notes: list[str]) -> Reservation | None:
    take = record.take
    name, nodes = take("ReservationName", "Name"), take("Nodes", "NodeNames")
    start, end = take("StartTime", "TimeStart"), take("EndTime", "TimeEnd")
    if name is None or start is None or end is None:
        raise MachineError(f"{record.where}: a reservation without name, start or end")
    if nodes is None:
        notes.append(
            f"{record.where}: reservation {name.text}: its nodes are not listed; give what "
            "scontrol show res shows"
        )
        return None
    begin, over = _moment(start, zone), _moment(end, zone)
    if over <= begin:
        raise end.wrong(f"reservation {name.text}: not later than its start")
    flags = set(words(take("Flags")))
    notes += [
        f"{record.where}: reservation {name.text}: Flags={flag}" for flag in sorted(flags - FLAGS)
    ]
    users, partition = words(take("Users")), record.text("PartitionName", "Partition")
    denied = [one for one in users if one.startswith("-")]
    accounts = words(take("Accounts"))
    denied += [one for one in accounts if one.startswith("-")]
    notes += [f"{record.where}: reservation {name.text}: {one} may not use it" for one in denied]
    cores = _cores_per_node(record, name.text, notes)
    for key in ("NodeCnt", "CoreCnt", "TRES", "State", "Duration", "UnusedWall", "Cluster",
                "MaxStartDelay", "Comment", "NodeCount", "CoreIDs", "Watts"):  # fmt: skip
        take(key)
    notes += record.unused(f"reservation {name.text}")
    return make(
        Reservation,
        record.where,
        name=name.text,
        start=begin,
        end=over,
        nodes=("ALL",) if nodes.text.upper() == "ALL" else (nodes.text,),
        cores_per_node=cores,
        users=tuple(one for one in users if one not in denied),
        accounts=tuple(one for one in accounts if one not in denied),
        partition=partition,
        maintenance="MAINT" in flags,
        ignore_running="IGNORE_JOBS" in flags,
        flexible="FLEX" in flags,
    )


def _cores_per_node(record: Record, name: str, notes: list[str]) -> int | None:
    """Return the reserved cores of a node, of lists such as ``0-1;0-3``; None for whole nodes."""
    value = record.take("CoreIDs")
    if value is None:
        return None
    sizes = []
    for listed in value.text.split(";"):
        if not _CORES.fullmatch(listed):
            raise value.wrong("not a list of cores such as 0-3")
        sizes.append(sum(1 for _ in expand(f"[{listed.strip('[]')}]")))
    if len(set(sizes)) > 1:
        notes.append(f"{record.where}: reservation {name}: {max(sizes)} cores of each node taken")
    return max(sizes)


def _moment(value: Value, zone: tzinfo | None) -> int:
    """Return a time as seconds since 1970."""
    if value.text.isdecimal():
        return int(value.text)
    try:
        moment = datetime.fromisoformat(value.text)
    except ValueError:
        raise value.wrong("not a time such as 2024-01-31T12:00:00") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=zone or UTC)).timestamp())
