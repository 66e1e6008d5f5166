"""The setting of changes of the clusters during a run, and what came of such changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, override

from pydantic import Field

from hpcrowd.scenarios.kinds.base import Beginning, Scenario, read_by

if TYPE_CHECKING:
    from hpcrowd.analysis.parts import RunPart
    from hpcrowd.environment.parts.part import Part
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.scenarios.kinds.platform_files import PlatformConfig as Platform
else:
    Platform = Any


class PlatformSettings(Scenario):
    """Changes of the clusters during a run."""

    platform: Platform | None = Field(
        None,
        description="TOML file of changes of the clusters during the run, or a table of them; "
        "`cluster` in a change names the cluster",
    )

    _readable_platform = read_by(
        "platform", "hpcrowd.scenarios.kinds.platform_files:PlatformConfig"
    )

    @override
    def parts(self, begins: Beginning) -> list[Part]:
        found = super().parts(begins)
        if self.platform is not None:
            found += self.platform.parts(begins.clusters, begins.clock)
        return found

    @override
    def results(self, model: Simulation, begins: Beginning) -> list[RunPart]:
        found = super().results(model, begins)
        if any(cluster.engine.timeline is not None for cluster in model.clusters.values()):
            from hpcrowd.analysis.accounts.platform import PlatformChanges, accounts_of

            found.append(PlatformChanges(accounts_of(model)))
        return found


class PlatformOfTrace(PlatformSettings):
    """Changes of the only cluster of a run that begins with a trace, and of others."""

    AFTER: ClassVar[Mapping[str, str]] = {"platform": "overrun"}

    platform: Platform | None = Field(
        None, description="TOML file of changes of the machine during the run"
    )


#: The settings by kind of run.
SETTINGS = {"replay": PlatformOfTrace, "grid": PlatformSettings}
