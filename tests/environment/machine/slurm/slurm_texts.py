"""Texts of Slurm's files about a machine, read from a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hpcrowd.environment.errors import MachineError
from hpcrowd.environment.machine.files.reading import read_machine
from hpcrowd.environment.machine.model import Machine

Reads = Callable[..., Machine]

NODES = "SelectType=select/cons_tres\nNodeName=n[1-3] CPUs=4 RealMemory=1000\n"
CONF = NODES + "PartitionName=p Nodes=ALL\n"


def reader(folder: Path) -> Reads:
    """Return a function that reads texts, by the names of their files; _ in a name is a dot."""

    def read(slurm: str = "", **files: str) -> Machine:
        names = {"slurm.conf": slurm} if slurm else {}
        names |= {name.replace("_", "."): text for name, text in files.items()}
        for name, text in names.items():
            (folder / name).write_text(text)
        return read_machine(folder)

    return read


def wrong(read: Reads, *texts: str, **files: str) -> str:
    """Return the message for wrong texts, without the folder."""
    with pytest.raises(MachineError) as caught:
        read(*texts, **files)
    place, _, rest = str(caught.value).partition(": ")
    return f"{place.rpartition('/')[2]}: {rest}"


def number(value: int | None, *, plain: bool = False) -> Any:
    """Return a number as Slurm 22.05 writes it, or later versions; None for no limit."""
    if plain:
        return 2**32 - 1 if value is None else value
    return {"set": value is not None, "infinite": value is None, "number": value or 0}


def check(part: Any, **expected: Any) -> None:
    """Check some values of a part of a machine."""
    assert expected == {name: getattr(part, name) for name in expected}
