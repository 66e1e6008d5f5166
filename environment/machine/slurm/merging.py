"""One machine of all records that Slurm's files gave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import tzinfo

from pydantic import ValidationError

from hpcrowd.environment.errors import MachineError, first_mistake, harmless
from hpcrowd.environment.machine.checks import ROOT
from hpcrowd.environment.machine.model import Account, Machine, Partition, Qos, Reservation
from hpcrowd.environment.machine.slurm.accounting import accounts_of, qos_of
from hpcrowd.environment.machine.slurm.nodes import nodes_of
from hpcrowd.environment.machine.slurm.partitions import partitions_of, reservations_of
from hpcrowd.environment.machine.slurm.records import Record
from hpcrowd.environment.machine.slurm.settings import Settings
from hpcrowd.environment.quantities import plural


def machine_of(
    records: Sequence[Record], notes: Iterable[str], source: str, zone: tzinfo | None = None
) -> Machine:
    """Return the machine that records describe.

    QOS and accounts that are named and not described have no limits; they are noted.

    Parameters
    ----------
    records
        What the files say.
    notes
        What their readers noted.
    source
        The files, for messages.
    zone
        Of local times; UTC unless given.

    Raises
    ------
    MachineError
        If a value is wrong, or they contradict each other.
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
        return Machine(
            name=name or "cluster",
            nodes=tuple(nodes),
            partitions=tuple(partitions),
            qos=tuple(qos),
            accounts=tuple(accounts),
            reservations=tuple(reservations),
            priority=priority,
            scheduling=scheduling,
            not_modelled=_joined(found),
        )
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
