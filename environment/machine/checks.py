"""What a description of a machine must not contradict.

Limits below zero and unknown keys are found by the model itself; here is what needs the whole
description: names that occur twice, and names of what does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from hpcrowd.environment.errors import MachineError, QuantityError, echo, nearest
from hpcrowd.environment.machine.hostlists import expand

if TYPE_CHECKING:
    from hpcrowd.environment.machine.model import Limits, Machine

#: Names of resources, in lower case: slurm.conf(5), AccountingStorageTRES.
TRES = re.compile(r"cpu|mem|node|billing|energy|vmem|pages|(gres|license|bb|fs|ic)/[^,=\s]+")

#: The account at the top, which needs no description.
ROOT = "root"

#: Fields that name others of the description, and what they name, by list of entries.
NAMING = {
    "qos": {"preempts": "QOS"},
    "accounts": {"partition": "partition", "qos": "QOS", "default_qos": "QOS"},
    "partitions": {"qos": "QOS", "allow_qos": "QOS", "deny_qos": "QOS",
                   "allow_accounts": "account", "deny_accounts": "account"},
    "reservations": {"accounts": "account", "partition": "partition"},
}  # fmt: skip

#: Where something is in the description.
Place = tuple[str | int, ...]


def check(machine: Machine) -> None:
    """Check that a description does not contradict itself; name the place of the first mistake."""
    _check_nodes(machine)
    _check_qos(machine)
    _check_accounts(machine)
    _check_partitions(machine)
    _check_reservations(machine)


def _check_nodes(machine: Machine) -> None:
    seen: set[str] = set()
    for place, node in enumerate(machine.nodes):
        where = ("nodes", place, "name")
        names = _expanded(node.name, where)
        if not names:
            raise MachineError("names no node; write for example n[1-4]", where)
        for name in names:
            if name in seen:
                raise MachineError(f"node {name}: described twice; remove one", where)
            seen.add(name)
        for kind, count in node.gpus.items():
            if count < 0:
                raise MachineError(
                    f"{count} GPUs: must be 0 or more", ("nodes", place, "gpus", kind)
                )


def _check_qos(machine: Machine) -> None:
    known = _names(machine)
    _check_once("QOS", "qos", [one.name for one in machine.qos])
    for place, qos in enumerate(machine.qos):
        _check_limits(qos.limits, ("qos", place, "limits"))
        _check_named(qos, known, "qos", place)


def _check_accounts(machine: Machine) -> None:
    known = _names(machine)
    names = {one.account for one in machine.accounts if not one.user} | {ROOT}
    parents = {one.account: one.parent for one in machine.accounts if not one.user}
    _check_once(
        "association",
        "accounts",
        ["/".join(filter(None, (one.account, one.user, one.partition)))
         for one in machine.accounts],
    )  # fmt: skip
    for place, one in enumerate(machine.accounts):
        at = ("accounts", place)
        if one.user:
            _check_known("account", [one.account], names, (*at, "account"))
            if one.parent != one.account:
                raise MachineError(
                    f"user {one.user}: below {one.parent}; a user is below its account, "
                    f"{one.account}",
                    (*at, "parent"),
                )
        elif one.account != ROOT:
            _check_known("account", [one.parent], names, (*at, "parent"))
            _check_no_circle(one.account, parents, (*at, "parent"))
        _check_named(one, known, "accounts", place)
        _check_limits(one.limits, (*at, "limits"))


def _check_no_circle(account: str, parents: dict[str, str], place: Place) -> None:
    passed, above = [account], parents[account]
    while above != ROOT and above in parents:
        passed.append(above)
        if above == account:
            raise MachineError(
                f"accounts in a circle: {' -> '.join(passed)}; one of them must be below root",
                place,
            )
        if len(passed) > len(parents):
            return  # a circle further up, which its own accounts report
        above = parents[above]


def _check_partitions(machine: Machine) -> None:
    known = _names(machine)
    nodes = {name for name, _ in machine.names()}
    _check_once("partition", "partitions", [one.name for one in machine.partitions])
    default = ""
    for place, one in enumerate(machine.partitions):
        at = ("partitions", place)
        _check_hosts(one.nodes, nodes, (*at, "nodes"))
        if one.default and default:
            raise MachineError(
                f"partition {one.name}: a second default, next to {default}; keep one",
                (*at, "default"),
            )
        default = one.name if one.default else default
        if one.max_time is not None and (one.default_time or 0) > one.max_time:
            raise MachineError(
                f"default_time {one.default_time} s: longer than max_time, {one.max_time} s",
                (*at, "default_time"),
            )
        if one.max_nodes and one.min_nodes > one.max_nodes:
            raise MachineError(
                f"min_nodes {one.min_nodes}: more than max_nodes, {one.max_nodes}",
                (*at, "min_nodes"),
            )
        _check_named(one, known, "partitions", place)
        for tres, weight in one.billing_weights.items():
            _check_tres(tres, (*at, "billing_weights", tres))
            if weight < 0:
                raise MachineError(
                    f"{tres} {weight}: must be 0 or more", (*at, "billing_weights", tres)
                )


def _check_reservations(machine: Machine) -> None:
    known = _names(machine)
    nodes = {name for name, _ in machine.names()}
    _check_once("reservation", "reservations", [one.name for one in machine.reservations])
    for place, one in enumerate(machine.reservations):
        _check_hosts(one.nodes, nodes, ("reservations", place, "nodes"))
        _check_named(one, known, "reservations", place)


def _check_hosts(hosts: Iterable[str], nodes: Collection[str], place: Place) -> None:
    for text in hosts:
        if text.upper() == "ALL":
            continue
        for name in _expanded(text, place):
            if name not in nodes:
                raise MachineError(
                    f"node {name}: not a node of the machine; {nearest(name, nodes)}"
                    "describe it or remove it",
                    place,
                )


def _expanded(text: str, place: Place) -> list[str]:
    try:
        return list(expand(text))
    except QuantityError as error:
        raise MachineError(str(error), place) from None


def _names(machine: Machine) -> dict[str, Collection[str]]:
    """Return what may be named; accounts only if the machine describes any."""
    found: dict[str, Collection[str]] = {
        "QOS": [one.name for one in machine.qos],
        "partition": [one.name for one in machine.partitions],
    }
    if machine.accounts:
        found["account"] = {one.account for one in machine.accounts} | {ROOT}
    return found


def _check_named(entry: object, known: dict[str, Collection[str]], entries: str, at: int) -> None:
    """Check what an entry of a list names."""
    for key, what in NAMING[entries].items():
        value = getattr(entry, key)
        if value and what in known:
            names = (value,) if isinstance(value, str) else value
            _check_known(what, names, known[what], (entries, at, key))


def _check_known(what: str, names: Iterable[str], known: Collection[str], place: Place) -> None:
    for name in names:
        if name not in known:
            raise MachineError(
                f"{what} {echo(name)}: not defined; {nearest(name, known)}define it or remove it",
                place,
            )


def _check_once(what: str, key: str, names: list[str]) -> None:
    first: dict[str, int] = {}
    for place, name in enumerate(names):
        if name in first:
            raise MachineError(f"{what} {name}: described twice; remove one", (key, place))
        first[name] = place


def _check_limits(limits: Limits, place: Place) -> None:
    for key, names in _tres_limits(limits):
        for tres, value in names.items():
            _check_tres(tres, (*place, key, tres))
            if value < 0:
                raise MachineError(f"{tres} {value}: must be 0 or more", (*place, key, tres))


def _tres_limits(limits: Limits) -> Iterator[tuple[str, dict[str, int]]]:
    for key in type(limits).model_fields:
        value = getattr(limits, key)
        if isinstance(value, dict):
            yield key, value


def _check_tres(name: str, place: Place) -> None:
    if not TRES.fullmatch(name):
        raise MachineError(
            f"resource {echo(name)}: not known; write cpu, mem, node, gres/gpu or gres/gpu:TYPE",
            place,
        )
