"""Changes of a cluster during a run, as a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast, override

from hpcrowd.environment.engine.passes.base import compiled_pass, runs_compiled
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.parts.part import ClusterPart
from hpcrowd.environment.platform.changes import Change, Maintenance, SwitchPolicy
from hpcrowd.environment.platform.timeline import Timeline
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.schedulers.names import scheduler_for

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster
    from hpcrowd.environment.schedulers.base import Scheduler


class Platform(ClusterPart):
    """Changes a cluster during the run.

    Parameters
    ----------
    changes
        What changes, see :mod:`hpcrowd.environment.platform.changes`.
    resubmit_after
        Delay, s, after which a user submits a job again that a change stopped, if the change is set
        to ``resubmit``; None for that of the simulation.
    cluster
        The name of the cluster; None for the first one.

    Raises
    ------
    QuantityError
        If the delay is negative.
    """

    def __init__(
        self,
        changes: Sequence[Change],
        resubmit_after: int | None = None,
        cluster: str | None = None,
    ) -> None:
        super().__init__(cluster)
        if resubmit_after is not None and resubmit_after < 0:
            raise QuantityError(f"resubmit_after {resubmit_after} s: must be 0 or more")
        self.changes, self.resubmit_after = changes, resubmit_after

    @override
    def needs_plain(self, cluster: Cluster, policy: Scheduler | None) -> bool:
        """Return whether the compiled engine cannot run all policies through the changes.

        Raises
        ------
        QuantityError
            When the schedule is the recorded one, or the cluster is a machine of nodes.
        """
        if not self.changes or not self.acts_on(cluster):
            return False
        if policy is None:
            raise QuantityError(
                "platform changes: the recorded schedule has no processors to change; choose a "
                "scheduler"
            )
        if policy.nodes:
            raise QuantityError(
                f"{plural(len(self.changes), 'platform change')}: of a pool of equal processors, "
                "not of a machine of nodes; give the machine reservations with maintenance = true"
            )
        policies = [policy]
        for change in self.changes:
            if isinstance(change, SwitchPolicy):
                made = scheduler_for(change.scheduler, cluster.jobs.names)
                if made is not None and made.nodes:
                    raise QuantityError(
                        f"switch to scheduler {made.name}: it runs a machine of nodes from the "
                        "beginning; give it as the scheduler"
                    )
                policies += [] if made is None else [made.at_first(cluster)]
        drains = any(isinstance(change, Maintenance) for change in self.changes)
        return not all(_compiles(one, drains) for one in policies)

    @override
    def equip(self, cluster: Cluster) -> None:
        """Plan the changes.

        Raises
        ------
        QuantityError
            If they are not possible.
        """
        if self.resubmit_after is not None:
            cluster.model.resubmit_after = self.resubmit_after
        if self.changes and self.acts_on(cluster):
            timeline_of(cluster).add(self.changes)


def _compiles(policy: Scheduler, drains: bool) -> bool:
    """Return whether the compiled engine runs a policy, through maintenance if that is to come."""
    if not runs_compiled(policy):
        return False
    found = compiled_pass(policy) if drains else None
    return found is None or found.drains


def timeline_of(cluster: Cluster) -> Timeline:
    """Return what changes on a cluster in the course of the run: nothing so far if it is new."""
    engine, model = cluster.engine, cluster.model
    if engine.timeline is None:
        engine.timeline = Timeline(engine, model.streams, model.on_lost)
        engine.timeline.clock = model.clock
    return cast(Timeline, engine.timeline)
