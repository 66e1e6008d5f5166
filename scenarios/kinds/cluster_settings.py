"""Settings of runs on one cluster, of equal processors or of nodes, with or without power."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, override

from pydantic import Field, ValidationInfo, field_validator

from hpcrowd.scenarios.kinds.base import Scenario
from hpcrowd.scenarios.kinds.fields import (
    MACHINE,
    POWER,
    MachineChoice,
    PowerChoice,
    checked_machine,
    checked_power,
    files_of,
    site_of,
)

if TYPE_CHECKING:
    from hpcrowd.analysis.parts import RunPart
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.machine.model import Machine
    from hpcrowd.environment.parts.part import Part
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.traces.trace import Trace


class ClusterScenario(Scenario):
    """The settings that all runs on one cluster have in common."""

    AFTER: ClassVar[Mapping[str, str]] = {"machine": "processors", "power": "machine"}

    machine: MachineChoice | None = Field(None, description=MACHINE)
    power: PowerChoice | None = Field(None, description=POWER)

    @field_validator("machine")
    @classmethod
    def _readable_machine(cls, machine: Any, info: ValidationInfo) -> Any:
        """Read the machine, so that mistakes are found before anything runs."""
        return checked_machine(machine, info.data["folder"])

    @field_validator("power", mode="before")
    @classmethod
    def _readable_power(cls, power: Any, info: ValidationInfo) -> Any:
        """Read the description, so that mistakes are found before anything runs."""
        return checked_power(power, info.data["folder"])

    @override
    def files(self) -> dict[str, Path]:
        """Return the files of the machine and of its power."""
        found = files_of(self.machine, self.folder)
        if self.power is not None and self.power.file is not None:
            found["power"] = self.power.file
        return found

    @override
    def completed(self) -> dict[str, Any]:
        found = super().completed()
        if isinstance(self.machine, str):
            from hpcrowd.environment.machine.files.given import located_text

            found["machine"] = located_text(self.machine, self.folder)
        return found

    @override
    def identity(self) -> dict[str, Any]:
        found = super().identity()
        if (site := self.site()) is not None:
            found["machine"] = site.model_dump_json(exclude_defaults=True)
        if self.power is not None:
            found["files_of_power"] = self.power.files()
        return found

    def site(self) -> Machine | None:
        """Return the machine of nodes; None for equal processors."""
        return site_of(self.machine, self.folder)

    def parts(self, trace: Trace | None = None, rows: Int64s | None = None) -> list[Part]:
        """Return what else acts in the run: nodes and power of the cluster, if described.

        ``rows`` of the trace are those of the jobs, if their measured power is to count.
        """
        found: list[Part] = []
        if (site := self.site()) is not None:
            from hpcrowd.environment.schedulers.on_nodes.in_use import MachineInUse

            found.append(MachineInUse(site))
        if self.power is not None:
            from hpcrowd.environment.power.in_use import PowerInUse

            measured = None
            if trace is not None and rows is not None:
                measured = self.power.measured(trace, rows)
            found.append(PowerInUse(self.power.made(trace), measured))
        return found

    def results(self, model: Simulation) -> list[RunPart]:
        """Return what the machine of nodes and the power of the cluster contributed to a run."""
        found: list[RunPart] = []
        if self.machine is not None:
            from hpcrowd.analysis.accounts.nodes import results_of

            found += results_of(model)
        if self.power is not None:
            from hpcrowd.analysis.energy.part import Energy
            from hpcrowd.analysis.energy.record import account_of

            if (over_time := account_of(model)) is not None:
                found.append(Energy(over_time=over_time))
        return found
