"""The command ``hpcrowd machine``: show the machine that files describe, and write it as TOML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcrowd.environment.errors import LONGEST_MESSAGE, LONGEST_WORD, harmless, shortened
from hpcrowd.environment.machine.checks import ROOT
from hpcrowd.environment.machine.files.reading import read_machine
from hpcrowd.environment.machine.files.toml_text import fields_of, value_text, write_machine
from hpcrowd.environment.machine.units import memory_text
from hpcrowd.environment.quantities import duration_text, plural
from hpcrowd.scenarios.commands.options import AsJson
from hpcrowd.scenarios.terminal import plain_table, print_json, say, standard_output

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from hpcrowd.environment.machine.model import Entry, Machine, Partition


#: Most rows of a table.
MOST = 100


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="slurm.conf, gres.conf, output of scontrol show and sacctmgr, folders of such "
            "files, or a TOML file.",
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.toml", help="File for the machine as TOML."),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(help="Time zone of local times of reservations; UTC unless given."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the machine that files describe, and what of them is not modelled.

    \b
    hpcrowd machine /etc/slurm/slurm.conf /etc/slurm/gres.conf --out machine.toml
    hpcrowd machine dumps/
    """
    machine = read_machine(paths, zone)
    if out is not None:
        write_machine(machine, out)
    if as_json:
        print_json(machine.model_dump(mode="json"))
    else:
        show(machine, standard_output())
    if out is not None:
        say(f"{out}: {plural(len(list(machine.names())), 'node')}")


def show(machine: Machine, console: Console) -> None:
    """Print the parts of a machine, each as a table."""
    nodes = len(list(machine.names()))
    gpus = sum(machine.nodes[kind].all_gpus for _, kind in machine.names())
    more = f", {plural(gpus, 'GPU')}" if gpus else ""
    console.print(f"{machine.name}: {plural(nodes, 'node')}, {plural(machine.cores, 'core')}{more}")
    tables = [_nodes(machine), _partitions(machine), _qos(machine), _accounts(machine)]
    for table in tables:
        if table is not None and table.row_count:
            console.print()
            console.print(table)
    for title, entry in (("priority", machine.priority), ("scheduling", machine.scheduling)):
        console.print()
        console.print(f"{title}: {_differences(entry) or 'defaults'}")
    if machine.reservations:
        console.print()
        for one in machine.reservations:
            rules = shortened(_differences(one), LONGEST_MESSAGE)
            console.print(f"reservation {one.name}: {rules}")
    if machine.not_modelled:
        console.print()
        console.print(f"not modelled ({len(machine.not_modelled)}):")
        for note in machine.not_modelled[:MOST]:
            console.print(f"  {harmless(note)}")
        if (left := len(machine.not_modelled) - MOST) > 0:
            console.print(f"  {left:,} more, with --json")


def _nodes(machine: Machine) -> Table:
    count = Counter(kind for _, kind in machine.names())
    rows = []
    for place, one in enumerate(machine.nodes):
        gpus = ", ".join(f"{number} {kind}".rstrip() for kind, number in one.gpus.items())
        memory = "any" if one.memory is None else memory_text(one.memory)
        numbers = map(str, (count[place], one.cores, memory, one.weight))
        rows.append((one.name, ",".join(one.features), gpus, *numbers))
    return _table("nodes features GPUs count cores memory weight", rows, 3)


def _partitions(machine: Machine) -> Table:
    rows = [
        (
            one.name,
            _marks(one),
            one.preempt_mode or "",
            str(len(machine.places(one.nodes))),
            _time(one.default_time if one.default_time is not None else one.max_time),
            _time(one.max_time),
            str(one.priority_tier),
            str(one.priority_factor),
        )
        for one in machine.partitions[: MOST + 1]
    ]
    head = "partition _ preempted nodes default_time max_time tier factor"
    return _table(head, rows, 3, len(machine.partitions))


def _marks(one: Partition) -> str:
    """Return what is special about a partition, in words."""
    marks = {
        "default": one.default,
        "whole nodes": one.exclusive,
        "down": not one.up,
        f"QOS {one.qos}": bool(one.qos),
        "not for all": bool(
            one.allow_accounts + one.deny_accounts + one.allow_qos + one.deny_qos
            + one.allow_groups
        ),
    }  # fmt: skip
    return ", ".join(mark for mark, holds in marks.items() if holds)


def _qos(machine: Machine) -> Table:
    rows = [
        (one.name, _differences(one.limits), ",".join(one.preempts), str(one.priority))
        for one in machine.qos
    ]
    return _table("QOS limits preempts priority", rows, 3)


def _accounts(machine: Machine) -> Table:
    """Return the accounts, each below the one above it; users are counted."""
    users = Counter(one.account for one in machine.accounts if one.user)
    below: dict[str, list[int]] = {}
    for place, one in enumerate(machine.accounts):
        if not one.user and not one.partition:
            below.setdefault(one.parent if one.account != ROOT else "", []).append(place)
    rows = []
    # The last one comes next; accounts may be nested deeper than functions.
    coming = [(place, 0) for place in reversed(below.get("", []) + below.get(ROOT, []))]
    while coming:
        place, depth = coming.pop()
        one = machine.accounts[place]
        shares = "parent" if one.shares is None else str(one.shares)
        count = str(users[one.account] or "")
        rows.append((f"{'  ' * depth}{one.account}", _differences(one.limits), shares, count))
        if one.account != ROOT:
            coming += [(each, depth + 1) for each in reversed(below.get(one.account, []))]
    return _table("account limits shares users", rows, 2)


def _table(
    head: str, rows: Sequence[tuple[str, ...]], words: int, size: int | None = None
) -> Table:
    """Return a table of the first rows, and how many more there are.

    The headings have _ in place of blanks, and ``words`` columns from the left hold words; ``size``
    counts all rows, if there are more than given.
    """
    table = plain_table(*(name.replace("_", " ").strip() for name in head.split()), words=words)
    for row in rows[:MOST]:
        table.add_row(*(shortened(cell, LONGEST_WORD) for cell in row))
    more = (size or len(rows)) - MOST
    if more > 0:
        table.caption, table.caption_justify, table.caption_style = (
            f"{more:,} more, with --json",
            "left",
            "none",
        )
    return table


def _differences(entry: Entry) -> str:
    """Return the fields that differ from their defaults."""
    return ", ".join(
        f"{name} {value_text(value)}" for name, value in fields_of(entry) if name != "name"
    )


def _time(seconds: int | None) -> str:
    return "no limit" if seconds is None else duration_text(seconds)
