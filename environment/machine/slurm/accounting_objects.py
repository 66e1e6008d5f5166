"""What ``sacctmgr show assoc --json`` and ``sacctmgr show qos --json`` print.

::

    {"associations": [{"account": "physics", "user": "ada", "shares_raw": 1, "parent_account": "",
                       "max": {"jobs": {"active": 4, "per": {"wall_clock": 60}}, ...}, ...}]}
    {"qos": [{"name": "high", "priority": {"set": true, "infinite": false, "number": 100},
              "limits": {"max": {"tres": {"per": {"user": [
                  {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 4}]}}}}, ...}]}

Numbers are objects or plain ones; times are minutes, memory is MB.

Source: the parsers v0.0.38 to v0.0.42 of Slurm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Keys of sacctmgr, and the paths of their values; the first that exists counts.
ASSOCIATION: dict[str, tuple[str, ...]] = {
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

QOS: dict[str, tuple[str, ...]] = {
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
}

#: Flags that say nothing about a QOS.
NO_FLAGS = frozenset(("NOT_SET", "ADD", "REMOVE"))

#: Raw shares that stand for those of the account above (SLURMDB_FS_USE_PARENT).
OF_PARENT = "2147483647"


def text_of(key: str, value: Any, number: str) -> str:
    """Return a value as sacctmgr writes it; empty for none.

    Parameters
    ----------
    key
        Of :data:`ASSOCIATION` or :data:`QOS`.
    value
        The value of the object.
    number
        The same, if it is a number or a list of words.
    """
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
