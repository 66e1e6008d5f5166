"""What ``scontrol show`` prints of nodes, partitions and reservations with --json; also ``sinfo``.

And ``sacctmgr show`` of associations and QOS, and the settings of ``scontrol show config``.

::

    {"nodes": [{"name": "n1", "cpus": 8, "real_memory": 32000, "features": ["milan"], ...}]}
    {"partitions": [{"name": "p", "nodes": {"configured": "n[1-4]"}, ...}]}       23.02 and later
    {"partitions": [{"name": "p", "nodes": "n[1-4]", "priority_tier": 1, ...}]}   22.05
    {"reservations": [{"name": "r", "node_list": "n1", "flags": ["MAINT"], ...}]}
    {"associations": [{"account": "physics", "user": "ada", "shares_raw": 1, "parent_account": "",
                       "max": {"jobs": {"active": 4, "per": {"wall_clock": 60}}, ...}, ...}]}
    {"qos": [{"name": "high", "priority": {"set": true, "infinite": false, "number": 100},
              "limits": {"max": {"tres": {"per": {"user": [
                  {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 4}]}}}}, ...}]}

    {"config": {"ClusterName": "hal", "priority_weight_age": 1000, ...}}
    {"config": [{"name": "ClusterName", "value": "hal"}, ...]}

Numbers are objects, ``{"set": true, "infinite": false, "number": 60}``, or plain ones; times are
minutes, memory is MB. Up to 24.05 partitions lack what hpcrowd needs, such as which is the default,
and whether they are up: text has it.

No manual page that we have says how settings look as objects (scontrol of 22.05 has none): names
are taken as in the text, in any case and with underscores, as pairs or as names and values; plain
numbers of the times of priorities are seconds, as slurmctld keeps them.

Source: the parsers v0.0.38 to v0.0.42 of Slurm, and what ``sinfo --json`` of 22.05 prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpcrowd.environment.errors import MachineError
from hpcrowd.environment.files import json_of
from hpcrowd.environment.machine.slurm.records import Kind, Record, Source, Value
from hpcrowd.environment.machine.slurm.settings import HARMLESS

#: Paths of values by key.
Paths = dict[str, tuple[str, ...]]

#: Keys of sacctmgr, and the paths of their values; the first that exists counts.
ASSOCIATION: Paths = {
    "Account": ("account",), "User": ("user",), "Partition": ("partition",),
    "Cluster": ("cluster",), "ParentName": ("parent_account",), "Fairshare": ("shares_raw",),
    "QOS": ("qos",), "DefaultQOS": ("default/qos",), "GrpJobs": ("max/jobs/per/count",),
    "GrpSubmitJobs": ("max/jobs/per/submitted",), "MaxJobs": ("max/jobs/active",),
    "MaxSubmitJobs": ("max/jobs/total",), "MaxWall": ("max/jobs/per/wall_clock",),
    "GrpTRES": ("max/tres/total",), "GrpTRESMins": ("max/tres/group/minutes",),
    "GrpTRESRunMins": ("max/tres/group/active",), "MaxTRES": ("max/tres/per/job",),
    "MaxTRESPerNode": ("max/tres/per/node",), "MaxTRESMinsPerJob": ("max/tres/minutes/per/job",),
    "GrpWall": ("max/per/account/wall_clock",), "Priority": ("priority",),
}  # fmt: skip

QOS: Paths = {
    "Name": ("name",), "Priority": ("priority",), "UsageFactor": ("usage_factor",),
    "Flags": ("flags",), "Preempt": ("preempt/list",), "PreemptMode": ("preempt/mode",),
    "PreemptExemptTime": ("preempt/exempt_time",), "GraceTime": ("limits/grace_time",),
    "GrpJobs": ("limits/max/active_jobs/count",), "GrpSubmitJobs": ("limits/max/jobs/count",),
    "GrpTRES": ("limits/max/tres/total",), "GrpTRESMins": ("limits/max/tres/minutes/total",),
    "GrpTRESRunMins": ("limits/max/tres/minutes/per/qos",),
    "GrpWall": ("limits/max/wall_clock/per/qos",),
    "MaxJobsPerUser": ("limits/max/jobs/active_jobs/per/user",),
    "MaxJobsPerAccount": ("limits/max/jobs/active_jobs/per/account",),
    "MaxSubmitPerUser": ("limits/max/jobs/per/user",),
    "MaxSubmitPerAccount": ("limits/max/jobs/per/account",),
    "MaxTRES": ("limits/max/tres/per/job",), "MaxTRESPerNode": ("limits/max/tres/per/node",),
    "MaxTRESPerUser": ("limits/max/tres/per/user",),
    "MaxTRESPerAccount": ("limits/max/tres/per/account",),
    "MaxTRESMinsPerJob": ("limits/max/tres/minutes/per/job",),
    "MaxWall": ("limits/max/wall_clock/per/job",), "MinTRES": ("limits/min/tres/per/job",),
}  # fmt: skip

#: Flags of QOS in objects, and as sacctmgr writes them.
FLAGS = {
    "DENY_LIMIT": "DenyOnLimit",
    "OVERRIDE_PARTITION_QOS": "OverPartQOS",
    "NO_RESERVE": "NoReserve",
    "NO_DECAY": "NoDecay",
}

#: Flags that say nothing about a QOS.
NO_FLAGS = frozenset(("NOT_SET", "ADD", "REMOVE"))

#: Raw shares that stand for those of the account above (SLURMDB_FS_USE_PARENT).
OF_PARENT = "2147483647"

#: Keys of slurm.conf, and the paths of their values; the first that exists counts.
NODE: Paths = {
    "NodeName": ("name",), "CPUTot": ("cpus",), "CPUEfctv": ("effective_cpus",),
    "Boards": ("boards",), "Sockets": ("sockets",), "CoresPerSocket": ("cores",),
    "ThreadsPerCore": ("threads",), "RealMemory": ("real_memory",),
    "MemSpecLimit": ("specialized_memory",), "CoreSpecCount": ("specialized_cores",),
    "AvailableFeatures": ("features",), "Gres": ("gres",), "Weight": ("weight",),
    "State": ("state",), "CPUAlloc": ("alloc_cpus",),
}  # fmt: skip

PARTITION: Paths = {
    "PartitionName": ("name",), "Nodes": ("nodes/configured", "nodes"),
    "AllowAccounts": ("accounts/allowed", "allowed_accounts"),
    "DenyAccounts": ("accounts/deny", "denied_accounts"),
    "AllowGroups": ("groups/allowed", "allowed_groups"),
    "AllowQos": ("qos/allowed", "allowed_qos"), "DenyQos": ("qos/deny", "denied_qos"),
    "QoS": ("qos/assigned", "qos"), "AllocNodes": ("nodes/allowed_allocation",),
    "TRESBillingWeights": ("tres/billing_weights", "billing_weights"),
    "DefaultTime": ("defaults/time", "default_time_limit"),
    "MaxTime": ("maximums/time", "max_time_limit"), "GraceTime": ("grace_time",
                                                                  "preemption_grace_time"),
    "MaxCPUsPerNode": ("maximums/cpus_per_node", "maximum_cpus_per_node"),
    "MaxCPUsPerSocket": ("maximums/cpus_per_socket",),
    "MaxNodes": ("maximums/nodes", "maximum_nodes_per_job"),
    "MinNodes": ("minimums/nodes", "min nodes per job", "min_nodes_per_job"),
    "PriorityJobFactor": ("priority/job_factor", "priority_job_factor"),
    "PriorityTier": ("priority/tier", "priority_tier"), "JobDefaults": ("defaults/job",),
    "State": ("partition/state", "state"), "Flags": ("flags",),
    "PreemptMode": ("preemption_mode",), "Alternate": ("alternate", "alternative"),
}  # fmt: skip

RESERVATION: Paths = {
    "ReservationName": ("name",), "Nodes": ("node_list",), "StartTime": ("start_time",),
    "EndTime": ("end_time",), "Users": ("users",), "Accounts": ("accounts",),
    "PartitionName": ("partition",), "Flags": ("flags",), "Features": ("features",),
    "Licenses": ("licenses",), "Groups": ("groups",),
}  # fmt: skip

#: Lists of objects: kind and keys.
LISTS: dict[str, tuple[Kind, Paths]] = {
    "nodes": (Kind.NODES, NODE),
    "partitions": (Kind.PARTITION, PARTITION),
    "reservations": (Kind.RESERVATION, RESERVATION),
    "associations": (Kind.ASSOCIATION, ASSOCIATION),
    "qos": (Kind.QOS, QOS),
}

#: What settings are called in objects, and the words for name and value.
CONFIG = ("config", "configuration", "slurm_conf")
PAIR = (("name", "key", "parameter"), ("value",))

#: Settings that slurmctld keeps in seconds.
TIMES = {"prioritymaxage", "prioritydecayhalflife", "prioritycalcperiod", "preemptexempttime"}

#: Memory of partitions, MB: for each node or, with this bit, for each CPU.
MEMORY = {
    "Def": ("defaults/memory_per_cpu", "default_memory_per_cpu"),
    "Max": ("maximums/memory_per_cpu", "maximum_memory_per_node"),
}
PER_CPU = 2**63

#: Numbers that stand for none and for no limit, of 16, 32 and 64 bits.
NO_NUMBER = frozenset(number for bits in (16, 32, 64) for number in (2**bits - 2, 2**bits - 1))

_NAME = re.compile(r'\s*"name"\s*:\s*"([^"]*)"')


def records_of(text: str, source: str) -> Iterator[Record]:
    """Yield the records of a text from a file."""
    try:
        found = json_of(text)
    except ValueError as error:
        raise MachineError(f"{source}: not JSON: {error}") from None
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := _NAME.match(line):
            lines.setdefault(match[1], number)
    for name, (kind, keys) in LISTS.items():
        listed = found.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise MachineError(f"{source}: {name}: not a list of objects")
        for one in listed:
            where = f"{source}:{lines.get(str(one.get('name')), 1)}"
            values = [
                Value(key, shown, where)
                for key, paths in keys.items()
                if (shown := _shown(kind, key, _at(one, paths)))
            ]
            more = _partition(one, where) if kind is Kind.PARTITION else []
            more += _cores(one, where) if kind is Kind.RESERVATION else []
            yield Record(kind, where, [*_without_flags(kind, values), *more], Source.SHOWN)
    for name in (one for one in CONFIG if one in found):
        values = [
            Value(key, shown, source)
            for key, shown in _settings(found[name], f"{source}: {name}")
            if shown
        ]
        yield Record(Kind.SETTING, source, values, Source.SHOWN)


def _settings(found: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield keys and values as slurm.conf has them."""
    if isinstance(found, Mapping):
        pairs = list(found.items())
    elif isinstance(found, list) and all(isinstance(one, Mapping) for one in found):
        pairs = [(_at(one, PAIR[0]), _at(one, PAIR[1])) for one in found]
    else:
        raise MachineError(f"{where}: neither an object nor a list of objects")
    for key, value in pairs:
        name = str(key or "")
        # Names in capitals, such as SLURM_VERSION, have their underscores in the text, too.
        name = name if name.lower() in HARMLESS else name.replace("_", "")
        text = _text(value)
        if name.lower() in TIMES and text.isdecimal():
            days, rest = divmod(int(text), 86_400)
            text = f"{days}-0:0:{rest}"
        yield name, text


def _at(one: Mapping[str, Any], paths: tuple[str, ...]) -> Any:
    for path in paths:
        found: Any = one
        for part in path.split("/"):
            found = found.get(part) if isinstance(found, dict) else None
        if found is not None and not (isinstance(found, dict) and "set" not in found):
            return found
    return None


def _shown(kind: Kind, key: str, value: Any) -> str:
    """Return a value as Slurm's other files have it; empty for none."""
    number = _text(value)
    if kind not in (Kind.ASSOCIATION, Kind.QOS):
        return number
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        pairs = [_tres(one) for one in value if isinstance(one, Mapping) and "type" in one]
        return ",".join(pairs) or ",".join(
            str(one.get("name", "")) for one in value if isinstance(one, Mapping)
        )
    if key == "Flags":
        words = [word for word in number.split(",") if word not in NO_FLAGS]
        return ",".join(FLAGS.get(word, word) for word in words)
    if key == "PreemptMode":
        return "cluster" if number.upper() in ("DISABLED", "OFF", "") else number
    if key == "Fairshare" and number == OF_PARENT:
        return "parent"
    if key == "GraceTime" and number not in ("", "0"):
        return f"{number} sec"
    return number


def _tres(one: Mapping[str, Any]) -> str:
    """Return a resource with its number, such as ``gres/gpu:a100=4`` or ``mem=64M``."""
    kind, name, count = str(one["type"]), str(one.get("name") or ""), one.get("count", 0)
    unit = "M" if kind == "mem" else ""
    return f"{kind}/{name}={count}" if name else f"{kind}={count}{unit}"


def _text(value: Any) -> str:
    """Return a value as slurm.conf has it; empty for none."""
    if isinstance(value, dict):
        if value.get("infinite"):
            return "UNLIMITED"
        return str(value.get("number")) if value.get("set") else ""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, int) and not isinstance(value, bool) and value in NO_NUMBER:
        return "UNLIMITED" if value + 1 & value == 0 else ""
    return "" if value is None else str(value)


def _without_flags(kind: Kind, values: list[Value]) -> list[Value]:
    """Return values without flags of partitions, of which only DEFAULT counts."""
    if kind is Kind.NODES:
        return [
            value._replace(text=value.text.replace(",", "+")) if value.key == "State" else value
            for value in values
        ]
    if kind is not Kind.PARTITION:
        return values
    kept = []
    for value in values:
        flags = value.text.lower().split(",")
        if value.key == "Flags":
            kept += [Value("Default", "YES", value.where)] if "default" in flags else []
            kept += [Value("LLN", "YES", value.where)] if "lln" in flags else []
        elif value.key == "PreemptMode":
            kept += [value] if flags != ["disabled"] else [value._replace(text="OFF")]
        else:
            kept.append(value)
    return kept


def _partition(one: Mapping[str, Any], where: str) -> list[Value]:
    """Return the memory of a partition, and how its nodes are shared."""
    values = []
    for which, paths in MEMORY.items():
        newer = "defaults" if which == "Def" else "maximums"
        split = {
            unit: _text(_at(one, (f"{newer}/partition_memory_per_{unit.lower()}",)))
            for unit in ("CPU", "Node")
        }
        number = _at(one, paths)
        if not any(split.values()) and isinstance(number, int) and number not in NO_NUMBER:
            per_cpu = bool(number & PER_CPU)
            split["CPU" if per_cpu else "Node"] = str(number & ~PER_CPU)
        values += [Value(f"{which}MemPer{unit}", text, where) for unit, text in split.items()]
    shares = _at(one, ("maximums/oversubscribe/jobs", "maximums/shares"))
    flags = _text(_at(one, ("maximums/oversubscribe/flags",)))
    if isinstance(shares, int):
        forced = shares & 2**15 or "force" in flags
        jobs = shares & ~(2**15)
        word = "EXCLUSIVE" if jobs == 0 else "NO" if jobs == 1 and not forced else ""
        word = word or f"{'FORCE' if forced else 'YES'}:{jobs}"
        values.append(Value("OverSubscribe", word, where))
    return values


def _cores(one: Mapping[str, Any], where: str) -> list[Value]:
    """Return the cores of the nodes of a reservation, if it has not all of them."""
    listed = one.get("core_specializations")
    parts = listed if isinstance(listed, list) else []
    ids = [str(each.get("core", "")) for each in parts if isinstance(each, dict)]
    return [Value("CoreIDs", ";".join(ids), where)] if any(ids) else []
