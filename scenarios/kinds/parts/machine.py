"""The setting of a machine of nodes, which takes the place of equal processors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, override

from pydantic import Field, PlainSerializer, ValidationInfo, field_validator

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.schedulers.names import controls
from hpcrowd.scenarios.kinds.base import Beginning, Scenario
from hpcrowd.scenarios.kinds.trace_settings import TraceScenario

if TYPE_CHECKING:
    from hpcrowd.analysis.parts import RunPart
    from hpcrowd.environment.jobs import Int64s, JobTable
    from hpcrowd.environment.machine.model import Machine
    from hpcrowd.environment.parts.part import Part
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.traces.trace import Trace


def _values(given: Any) -> Any:
    if given is None or isinstance(given, str):
        return given
    return given.model_dump(mode="json", exclude_defaults=True)


#: A machine of nodes by its files, with changes; or a machine. Its model is imported where one is.
if TYPE_CHECKING:
    MachineChoice = str | Machine
else:
    MachineChoice = Annotated[Any, PlainSerializer(_values, when_used="json")]


class MachineSettings(Scenario):
    """The machine of nodes of a run."""

    AFTER: ClassVar[Mapping[str, str]] = {"machine": "processors"}

    machine: MachineChoice | None = Field(
        None,
        description="nodes, partitions and rules of the machine, as for the scheduler slurm: "
        "FILE.toml, slurm.conf or a folder of Slurm's files, see `hpcrowd machine`; with changes "
        "as FILE:priority.weight-age=0; equal processors unless given",
    )

    @field_validator("machine")
    @classmethod
    def _readable_machine(cls, machine: Any, info: ValidationInfo) -> Any:
        """Read the machine, so that mistakes are found before anything runs."""
        if isinstance(machine, str):
            site_of(machine, info.data["folder"])
        elif machine is not None:
            from hpcrowd.environment.machine.model import Machine

            if not isinstance(machine, Machine):
                raise QuantityError(
                    f"machine: {type(machine).__name__}; give the path of its files, or a Machine"
                )
        return machine

    def site(self) -> Machine | None:
        """Return the machine of nodes; None for equal processors."""
        return site_of(self.machine, self.folder)

    def cores(self, site: Machine) -> int:
        """Return the cores of a machine; processors cannot be given as well."""
        processors = getattr(self, "processors", None)
        if processors != type(self).model_fields["processors"].default:
            raise QuantityError(
                f"processors {processors}: the machine has {site.cores:,} cores; give one of the "
                "two"
            )
        return site.cores

    @override
    def files(self) -> dict[str, Path]:
        return super().files() | files_of(self.machine, self.folder)

    @override
    def completed(self) -> dict[str, Any]:
        found = super().completed()
        if isinstance(self.machine, str):
            from hpcrowd.environment.machine.files.reading import located_text

            found["machine"] = located_text(self.machine, self.folder)
        return found

    @override
    def identity(self) -> dict[str, Any]:
        found = super().identity()
        if (site := self.site()) is not None:
            found["machine"] = site.model_dump_json(exclude_defaults=True)
        return found

    @override
    def objects(self) -> dict[str, Any]:
        return super().objects() | {"machine": _values(self.machine)}

    @override
    def parts(self, begins: Beginning) -> list[Part]:
        found = super().parts(begins)
        if (site := self.site()) is not None:
            from hpcrowd.environment.schedulers.on_nodes.in_use import MachineInUse

            if controls(next(iter(begins.clusters.values())).scheduler):
                from hpcrowd.environment.schedulers.slurm.timers import drawn_timers

                site = drawn_timers(site, self.seed).on(site)
            found.append(MachineInUse(site))
        return found

    @override
    def results(self, model: Simulation, begins: Beginning) -> list[RunPart]:
        found = super().results(model, begins)
        if self.machine is not None:
            from hpcrowd.analysis.accounts.nodes import results_of
            from hpcrowd.analysis.accounts.not_simulated import not_simulated

            found += results_of(model)
            if (one := not_simulated(model, begins.trace, begins.rows)) is not None:
                found.append(one)
        return found


class MachineOfTrace(MachineSettings, TraceScenario):
    """The machine of nodes of a run that begins with a trace."""

    @override
    def size(self, trace: Trace) -> int:
        site = self.site()
        return super().size(trace) if site is None else self.cores(site)

    @override
    def size_note(self, trace: Trace) -> str:
        return "" if self.machine is not None else super().size_note(trace)

    @override
    def read(self, trace: str | os.PathLike[str] | None = None) -> Trace:
        check_nameless(self.anonymise, self.machine)
        return super().read(trace)

    @override
    def ask(self, jobs: JobTable, trace: Trace, rows: Int64s) -> None:
        if (site := self.site()) is None:
            return
        from hpcrowd.environment.requests import Ask
        from hpcrowd.environment.traces.requests import outrun_limits, requests_of

        if jobs.requests is None:
            jobs.requests = requests_of(trace, rows)
        if jobs.requests is not None and not site.qos:
            jobs.requests[Ask.QOS][:] = UNKNOWN  # a slurm.conf alone does not say which there are
        if self.overruns(trace) == "kill":
            outrun_limits(jobs, trace, rows, site.scheduling.time_limit_period)

    @override
    def overruns(self, trace: Trace) -> str:
        if self.overrun == "given" and self.machine is not None and controls(self.scheduler):
            return "kill"
        return super().overruns(trace)


#: The settings by kind of run.
SETTINGS = {"replay": MachineOfTrace, "resample": MachineOfTrace, "populate": MachineSettings}


def site_of(machine: MachineChoice | None, folder: Path) -> Machine | None:
    """Return the machine that a setting names; None for equal processors."""
    if machine is None or not isinstance(machine, str):
        return machine
    from hpcrowd.environment.machine.files.reading import machine_given

    return machine_given(machine, folder)


def files_of(machine: MachineChoice | None, folder: Path) -> dict[str, Path]:
    """Return the files of a machine, by names for messages; not those in folders."""
    if not isinstance(machine, str):
        return {}
    from hpcrowd.environment.machine.files.reading import split_given

    paths, _ = split_given(machine, folder)
    names = ["machine", *(f"machine {place}" for place in range(2, len(paths) + 1))]
    return {name: path for name, path in zip(names, paths, strict=True) if path.is_file()}


def check_nameless(anonymise: bool | None, machine: object) -> None:
    """Check that names are not needed where they are replaced.

    A machine of nodes knows users, accounts and what jobs ask for by name.
    """
    if anonymise and machine:
        raise QuantityError(
            "anonymise: a machine knows users and accounts by name; leave it out, or "
            "publish the log with `hpcrowd convert --anonymise`"
        )
