"""The setting ``machine``: a machine of nodes by its files, or as an object."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.errors import QuantityError

if TYPE_CHECKING:
    from hpcrowd.environment.machine.model import Machine
    from hpcrowd.scenarios.kinds.fields import MachineChoice

#: How the setting is described where users are generated; runs of a trace say the same.
DESCRIPTION = (
    "nodes, partitions and rules of the machine, as for the scheduler slurm: FILE.toml, slurm.conf "
    "or a folder of Slurm's files, see `hpcrowd machine`; with changes as "
    "FILE:priority.weight-age=0; equal processors unless given"
)


def checked_machine(machine: Any, folder: Path) -> Any:
    """Return the value of the setting, which is read so that mistakes are found early.

    Raises
    ------
    QuantityError, MachineError
        If it is not a machine, or cannot be read.
    """
    if isinstance(machine, str):
        site_of(machine, folder)
    elif machine is not None:
        from hpcrowd.environment.machine.model import Machine

        if not isinstance(machine, Machine):
            raise QuantityError(
                f"machine: {type(machine).__name__}; give the path of its files, or a Machine"
            )
    return machine


def site_of(machine: MachineChoice | None, folder: Path) -> Machine | None:
    """Return the machine that a setting names; None for equal processors."""
    if machine is None or not isinstance(machine, str):
        return machine
    from hpcrowd.environment.machine.files.given import machine_given

    return machine_given(machine, folder)


def files_of(machine: MachineChoice | None, folder: Path) -> dict[str, Path]:
    """Return the files of a machine, by names for messages; not those in folders."""
    if not isinstance(machine, str):
        return {}
    from hpcrowd.environment.machine.files.given import split_given

    paths, _ = split_given(machine, folder)
    names = ["machine", *(f"machine {place}" for place in range(2, len(paths) + 1))]
    return {name: path for name, path in zip(names, paths, strict=True) if path.is_file()}


def size_of(site: Machine, processors: str, default: str) -> int:
    """Return the cores of a machine.

    Raises
    ------
    QuantityError
        If processors are given as well, other than the default.
    """
    if processors != default:
        raise QuantityError(
            f"processors {processors}: the machine has {site.cores:,} cores; give one of the two"
        )
    return site.cores
