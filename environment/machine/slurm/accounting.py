"""Accounts, users and QOS of Slurm's accounting.

Source: man page sacctmgr(1), SPECIFICATIONS FOR ACCOUNTS, USERS and QOS.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hpcrowd.environment.errors import MachineError
from hpcrowd.environment.machine.checks import ROOT
from hpcrowd.environment.machine.model import Account, Limits, Qos
from hpcrowd.environment.machine.slurm.records import (
    Kind,
    Record,
    count,
    limit,
    make,
    number,
    of_words,
    preemption,
    real,
    tres,
    words,
)

#: Keys of associations and QOS that have nothing to do with scheduling.
HARMLESS = of_words("""
    cluster description organization desc org id lft rgt adminlevel defaultaccount defaultwckey
    coordinators lineage comment
""")

#: Flags of QOS that are modelled.
FLAGS = {
    "denyonlimit": "deny_on_limit",
    "overpartqos": "part_qos_overrides",
    "noreserve": "no_reserve",
    "nodecay": "no_decay",
}

#: Values that change nothing, by key.
NEUTRAL = {"usagethreshold": {"0.000000"}, "limitfactor": {"0.000000"}, "gracetime": {"00:00:00"}}

#: Limits: field, reader, keys of associations and of QOS.
LIMITS: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("group_jobs", count, ("GrpJobs",)),
    ("group_submit", count, ("GrpSubmitJobs", "GrpSubmit")),
    ("group_tres", tres, ("GrpTRES",)),
    ("group_tres_minutes", tres, ("GrpTRESMins", "GrpTRESMinutes")),
    ("group_tres_run_minutes", tres, ("GrpTRESRunMins", "GrpTRESRunMinutes")),
    ("max_tres", tres, ("MaxTRES", "MaxTRESPerJob")),
    ("max_tres_per_node", tres, ("MaxTRESPerNode",)),
    ("max_wall", limit, ("MaxWall", "MaxWallDurationPerJob", "MaxWallDuration")),
)

#: The same for what is limited by user: associations call it otherwise than QOS.
OF_USER = (
    ("max_jobs", count, ("MaxJobs",)),
    ("max_submit", count, ("MaxSubmitJobs", "MaxSubmit")),
)
OF_QOS = (
    ("max_jobs", count, ("MaxJobsPerUser", "MaxJobsPU", "MaxJobs")),
    ("max_submit", count, ("MaxSubmitPerUser", "MaxSubmitJobsPerUser", "MaxSubmitJobs")),
    ("max_tres_per_user", tres, ("MaxTRESPerUser",)),
    ("max_jobs_per_account", count, ("MaxJobsPerAccount",)),
    ("max_submit_per_account", count, ("MaxSubmitPerAccount", "MaxSubmitJobsPerAccount")),
    ("max_tres_per_account", tres, ("MaxTRESPerAccount",)),
    ("min_tres", tres, ("MinTRES", "MinTRESPerJob")),
)


def qos_of(records: Iterable[Record], notes: list[str]) -> tuple[list[Qos], list[str]]:
    """Return the QOS that records describe, and their places; what is not modelled is noted."""
    found: dict[str, Record] = {}
    for record in records:
        if record.kind is Kind.QOS:
            name = record.take("Name")
            if name is None:
                raise MachineError(f"{record.where}: a QOS without name")
            before = found.get(name.text)
            found[name.text] = record.over(before) if before else record
    made = [_qos(name, record, notes) for name, record in found.items()]
    return made, [record.where for record in found.values()]


def _qos(name: str, record: Record, notes: list[str]) -> Qos:
    take = record.take
    priority, factor = number(take("Priority")), take("UsageFactor")
    mode, other = preemption(take("PreemptMode"))
    fields = _limits(record, LIMITS + OF_QOS)
    preempts = words(take("Preempt"))
    flags = {flag.lower(): flag for flag in words(take("Flags"))}
    unknown = [f"Flags={word}" for flag, word in flags.items() if flag not in FLAGS]
    notes += [
        f"{record.where}: QOS {name}: {text}"
        for text in (*unknown, *(f"PreemptMode={word}" for word in other))
    ]
    notes += record.unused(f"QOS {name}", HARMLESS, NEUTRAL)
    return make(
        Qos,
        record.where,
        name=name,
        priority=priority,
        limits=make(Limits, record.where, **fields),
        preempts=preempts,
        preempt_mode=mode,
        usage_factor=real(factor) if factor else 1.0,
        **{field: flag in flags for flag, field in FLAGS.items()},
    )


def accounts_of(records: Iterable[Record], notes: list[str]) -> tuple[list[Account], list[str]]:
    """Return the accounts and users that records describe, and their places.

    Rows about the same association complete each other. What is not modelled is noted.
    """
    found: dict[tuple[str, str, str], Record] = {}
    clusters: dict[str, str] = {}
    for record in records:
        if record.kind is not Kind.ASSOCIATION:
            continue
        account = record.take("Account")
        cluster = record.take("Cluster")
        if account is None:
            raise MachineError(f"{record.where}: an association without account")
        if cluster:
            clusters.setdefault(cluster.text.lower(), record.where)
        if cluster and len(clusters) > 1:
            raise MachineError(
                f"{record.where}: a second cluster, {cluster.text}, next to "
                f"{next(iter(clusters))}; print one with cluster=NAME"
            )
        key = (account.text, record.text("User"), record.text("Partition"))
        found[key] = record.over(found[key]) if key in found else record
    made = [_account(*key, record, notes) for key, record in found.items()]
    return made, [record.where for record in found.values()]


def _account(account: str, user: str, partition: str, record: Record, notes: list[str]) -> Account:
    take = record.take
    parent = record.text("Parent", "ParentName")
    shares = take("Fairshare", "Share", "Shares")
    fields = _limits(record, LIMITS + OF_USER)
    of_parent = shares is not None and shares.text.lower() == "parent"
    if not user and not parent and account != ROOT and "parent" not in record.values:
        notes.append(f"{record.where}: account {account}: no parent given, taken as below root")
    name = "/".join(filter(None, (account, user, partition)))
    qos, default_qos = words(take("QOS", "QosLevel")), record.text("DefaultQOS", "DefQOS")
    notes += record.unused(f"association {name}", HARMLESS, NEUTRAL)
    return make(
        Account,
        record.where,
        account=account,
        parent=account if user else parent or ROOT,
        user=user,
        partition=partition,
        shares=None if of_parent else number(shares, 1),
        limits=make(Limits, record.where, **fields),
        qos=tuple(one.lstrip("+") for one in qos),
        default_qos=default_qos,
    )


def _limits(record: Record, limits: tuple[tuple[str, Any, tuple[str, ...]], ...]) -> dict[str, Any]:
    return {field: read(record.take(*keys)) for field, read, keys in limits}
