"""The setting of changes of the clusters during a run, and what came of such changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, override

from pydantic import Field, ValidationInfo, field_validator

from hpcrowd.scenarios.kinds.base import Scenario

if TYPE_CHECKING:
    from hpcrowd.analysis.parts import RunPart
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.cluster import ClusterSpec
    from hpcrowd.environment.jobs import Int64s, JobTable
    from hpcrowd.environment.parts.part import Part
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.traces.trace import Trace
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

    @field_validator("platform", mode="before")
    @classmethod
    def _readable_platform(cls, platform: Any, info: ValidationInfo) -> Any:
        """Read the file of a platform; a table describes one."""
        if platform is None:
            return None
        from hpcrowd.scenarios.kinds.platform_files import PlatformConfig

        return PlatformConfig.given(platform, info.data["folder"])

    @override
    def parts(
        self,
        clusters: Mapping[str, ClusterSpec],
        clock: Clock,
        trace: Trace | None = None,
        rows: Int64s | None = None,
    ) -> list[Part]:
        found = super().parts(clusters, clock, trace, rows)
        return found if self.platform is None else [*found, *self.platform.parts(clusters, clock)]

    @override
    def results(
        self,
        model: Simulation,
        jobs: JobTable,
        trace: Trace | None = None,
        rows: Int64s | None = None,
    ) -> list[RunPart]:
        found = super().results(model, jobs, trace, rows)
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
