"""The setting of what a cluster draws, which gives accounts of energy, carbon and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, override

from pydantic import Field, PlainSerializer

from hpcrowd.scenarios.kinds.base import Beginning, Scenario, read_by

if TYPE_CHECKING:
    from hpcrowd.analysis.parts import RunPart
    from hpcrowd.environment.jobs import JobTable
    from hpcrowd.environment.parts.part import Part
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.scenarios.kinds.power_files import PowerConfig as PowerChoice


# Its model is imported where one is given.
if not TYPE_CHECKING:
    PowerChoice = Annotated[
        Any, PlainSerializer(lambda given: given and given.plain(), when_used="json")
    ]


class PowerSettings(Scenario):
    """The power of the cluster of a run."""

    AFTER: ClassVar[Mapping[str, str]] = {"power": "processors"}

    power: PowerChoice | None = Field(
        None,
        description="TOML file of what the machine draws, with prices, carbon and policies that "
        "save power: gives accounts of energy, carbon and cost; none unless given",
    )

    _readable_power = read_by("power", "hpcrowd.scenarios.kinds.power_files:PowerConfig")

    @override
    def parts(self, begins: Beginning) -> list[Part]:
        found = super().parts(begins)
        if self.power is not None:
            from hpcrowd.environment.power.in_use import PowerInUse

            measured = None
            if begins.trace is not None and begins.rows is not None:
                measured = self.power.measured(begins.trace, begins.rows)
            found.append(PowerInUse(self.power.made(begins.trace), measured))
        return found

    @override
    def results(self, model: Simulation, begins: Beginning) -> list[RunPart]:
        found = super().results(model, begins)
        if self.power is not None:
            from hpcrowd.analysis.energy.part import Energy
            from hpcrowd.analysis.energy.record import account_of

            if (over_time := account_of(model)) is not None:
                found.append(Energy(over_time=over_time))
        return found

    @override
    def outcome(self, model: Simulation) -> JobTable:
        if self.power is None:
            return super().outcome(model)
        from hpcrowd.analysis.accounts.platform import jobs_of

        return jobs_of(model)


#: The settings by kind of run.
SETTINGS = dict.fromkeys(("replay", "resample", "populate"), PowerSettings)
