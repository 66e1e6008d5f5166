"""Which type of a description of power each node of a machine is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.machine.hostlists import expand

if TYPE_CHECKING:
    from hpcrowd.environment.machine.model import Machine
    from hpcrowd.environment.power.description import NodePower, Power


def types_of(power: Power, machine: Machine) -> dict[str, NodePower]:
    """Return the type of each node by its name; its processors are the cores of the node.

    Raises
    ------
    QuantityError
        If a node has no type or two, other processors than its type, or is not of the machine.
    """
    named, other = _named(power)
    found: dict[str, NodePower] = {}
    for name, kind in machine.names():
        cores, one = machine.nodes[kind].cores, named.pop(name, other)
        if one is None:
            raise QuantityError(
                f"power: node {name} has no type; add a type without nodes, which all others are"
            )
        if one.processors not in (1, cores):
            raise QuantityError(
                f"power of {one.name}: processors {one.processors}: node {name} has {cores} "
                "cores; leave processors out"
            )
        found[name] = replace(one, processors=cores)
    if named:
        name, one = next(iter(named.items()))
        raise QuantityError(f"power of {one.name}: node {name!r}: not a node of the machine")
    return found


def _named(power: Power) -> tuple[dict[str, NodePower], NodePower | None]:
    """Return the types of nodes that are named, and that of all others."""
    named: dict[str, NodePower] = {}
    other: NodePower | None = None
    for one in power.nodes:
        if not one.nodes and other is not None:
            raise QuantityError(
                f'power of {one.name}: says no nodes, like {other.name}; write nodes = "n[1-4]"'
            )
        if not one.nodes:
            other = one
            continue
        for name in expand(one.nodes):
            if name in named:
                raise QuantityError(
                    f"power of {one.name}: node {name} is also of {named[name].name}; give it once"
                )
            named[name] = one
    return named, other
