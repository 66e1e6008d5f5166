"""Changes of the platform from a TOML file::

    resubmit_after = "10m"

    [[changes]]
    do = "fail"
    mean = "8h"
    repair_mean = "2h"
    jobs = "resubmit"

    [[changes]]
    do = "maintain"
    start = "1996-11-04 08:00"
    end = "1996-11-04 16:00"

``do`` says what happens; each kind has its own settings, :data:`CHANGES`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field

from hpcrowd.environment.clock import parse_moment
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.kinds.fields import (
    Duration,
    FileConfig,
    SchedulerChoice,
    Strict,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.cluster import ClusterSpec
    from hpcrowd.environment.platform.changes import Change
    from hpcrowd.environment.platform.part import Platform


#: A second of the run, or a local date and time of the trace.
Moment = Annotated[int | datetime, BeforeValidator(parse_moment)]

Fate = Literal["requeue", "resubmit", "fail"]
Family = Literal["exponential", "weibull"]

FATE = "fate of running jobs that are stopped: requeue, resubmit or fail"


class ChangeConfig(Strict):
    """One change of a cluster."""

    cluster: str = Field("home", description="name of the cluster")

    def of(self, clock: Clock) -> Change:
        """Return the change; dates are local times of the clock."""
        from hpcrowd.environment.clock import second_of
        from hpcrowd.environment.platform import changes as platform

        values = dict(self)
        kind = KINDS[values.pop("do")]
        del values["cluster"]
        for name, value in values.items():
            if isinstance(value, datetime):
                values[name] = second_of(value, clock)
                if values[name] < 0:
                    first = f"{clock.local(0):%Y-%m-%d %H:%M}"
                    raise QuantityError(
                        f"{name} {value}: before the run begins, {first}; take a later date"
                    )
        made: Change = getattr(platform, kind)(**values)
        return made


class DownConfig(ChangeConfig):
    """Processors go down, and come up again."""

    do: Literal["down"]
    at: Moment = Field(description="when")
    until: Moment | None = Field(None, description="when they come up; never unless given")
    processors: int = Field(1, ge=1, description="how many")
    jobs: Fate = Field("requeue", description=FATE)


class FailConfig(ChangeConfig):
    """Nodes fail at random and are repaired."""

    do: Literal["fail"]
    mean: Duration = Field(
        gt=0, description="mean time from one failure of the cluster to the next"
    )
    repair_mean: Duration = Field(gt=0, description="mean time to repair")
    distribution: Family = Field(
        "exponential", description="of times between failures: exponential or weibull"
    )
    shape: float = Field(1.0, gt=0, description="of the Weibull; below 1 failures come in bursts")
    repair: Family = Field("exponential", description="of times to repair")
    repair_shape: float = Field(1.0, gt=0, description="of the Weibull")
    processors: int = Field(1, ge=1, description="processors of a node")
    start: Moment = Field(0, description="failures happen from here on")
    until: Moment | None = Field(None, description="and before this; to the end unless given")
    jobs: Fate = Field("requeue", description=FATE)


class MaintainConfig(ChangeConfig):
    """The whole cluster is drained and closed."""

    do: Literal["maintain"]
    start: Moment = Field(description="beginning")
    end: Moment = Field(description="end")
    announced: Duration = Field(
        604800,
        ge=0,
        description="time before the start; from then on no job starts that is expected to overlap "
        "the maintenance (unconfirmed)",
    )
    jobs: Literal[Fate, "run"] = Field(
        "requeue", description=f"{FATE}; or run: they continue through the maintenance"
    )


class ResizeConfig(ChangeConfig):
    """The size of the cluster changes."""

    do: Literal["resize"]
    at: Moment = Field(description="when")
    processors: int = Field(ge=1, description="the new size")


class SpeedConfig(ChangeConfig):
    """The speed of the nodes changes."""

    do: Literal["speed"]
    at: Moment = Field(description="when")
    factor: float = Field(gt=0, description="new speed divided by the speed before")


class SwitchConfig(ChangeConfig):
    """Another scheduler takes over."""

    do: Literal["switch"]
    at: Moment = Field(description="when")
    scheduler: SchedulerChoice = Field(description="as for --scheduler, but not recorded")


#: The class of ``hpcrowd.environment.platform.changes`` by what to do.
KINDS = {
    "down": "NodesDown",
    "fail": "Failures",
    "maintain": "Maintenance",
    "resize": "Resize",
    "speed": "SpeedChange",
    "switch": "SwitchPolicy",
}

AnyChange = DownConfig | FailConfig | MaintainConfig | ResizeConfig | SpeedConfig | SwitchConfig

#: Settings by what to do.
CHANGES: dict[str, type[ChangeConfig]] = dict(zip(KINDS, get_args(AnyChange), strict=True))


class PlatformConfig(FileConfig):
    """Changes of the clusters during a run."""

    DESCRIBES: ClassVar[str] = "changes of the platform"

    name: str = Field("platform", description="for tables and pictures")
    resubmit_after: Duration = Field(
        600,
        ge=0,
        description="after which users submit stopped jobs again, where that is the fate of these "
        "(unconfirmed)",
    )
    changes: tuple[Annotated[AnyChange, Field(discriminator="do")], ...] = Field(
        min_length=1, description="one entry per change"
    )

    def of(self, clock: Clock, cluster: str = "home") -> list[Change]:
        """Return the changes of one cluster; dates are local times of the clock, and in the run."""
        made = []
        for place, change in enumerate(self.changes):
            if change.cluster == cluster:
                try:
                    made.append(change.of(clock))
                except QuantityError as error:
                    raise self._mistake(f"changes[{place}]: {error}") from None
        return made

    def parts(self, clusters: Mapping[str, ClusterSpec], clock: Clock) -> list[Platform]:
        """Return the changes of each cluster of a run, if they are possible.

        The message has the file, the first impossible change, and the rule.
        """
        from hpcrowd.environment.platform.changes import check_changes
        from hpcrowd.environment.platform.part import Platform

        for place, change in enumerate(self.changes):
            if change.cluster not in clusters:
                raise self._mistake(
                    f"changes[{place}]: cluster {change.cluster!r}: no such cluster; choose "
                    f"{', '.join(clusters)}"
                )
        found = []
        for name, cluster in clusters.items():
            changes = self.of(clock, name)
            try:
                check_changes(changes, cluster.processors)
            except QuantityError as error:
                raise self._mistake(f"cluster {name}: {error}") from None
            found.append(Platform(changes, self.resubmit_after, name))
        return found

    def _mistake(self, what: str) -> QuantityError:
        return QuantityError(f"{self.file.name if self.file else self.name}: {what}")
