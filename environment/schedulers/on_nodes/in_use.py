"""Nodes, partitions and rules of a site, as a part of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.parts.part import ClusterPart

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster
    from hpcrowd.environment.machine.model import Machine
    from hpcrowd.environment.schedulers.base import Scheduler


class MachineInUse(ClusterPart):
    """Makes a cluster a machine of nodes instead of equal processors, which are its cores then.

    Parameters
    ----------
    machine
        The nodes, partitions and rules.
    cluster
        The name of the cluster; None for the first one.
    """

    def __init__(self, machine: Machine, cluster: str | None = None) -> None:
        super().__init__(cluster)
        self.machine = self._given = machine

    @override
    def policy(self, cluster: Cluster, policy: Scheduler | None) -> Scheduler | None:
        """Let the scheduler run the machine; one that knows only processors, by a wrapper.

        Raises
        ------
        QuantityError
            If the schedule is the recorded one.
        """
        if not self.acts_on(cluster):
            return policy
        if policy is None:
            raise QuantityError(
                "machine with the recorded schedule: that knows no nodes; choose a scheduler"
            )
        if not policy.nodes:
            from hpcrowd.environment.schedulers.on_nodes.policy import OnNodes

            policy = OnNodes(policy)
        clock = cluster.model.clock
        self.machine = self._given.since(clock.unix_start, clock.zone)
        policy.on_machine(self.machine, cluster.jobs)
        return policy

    @override
    def equip(self, cluster: Cluster) -> None:
        """Let jobs start and be killed as late as the description says."""
        if self.acts_on(cluster):
            engine, scheduling = cluster.engine, self.machine.scheduling
            engine.latency = round(scheduling.start_latency)
            engine.kill_every = scheduling.time_limit_period
            engine.kill_phase = scheduling.limit_check_phase


def machine_of(cluster: Cluster) -> Machine | None:
    """Return the machine of nodes that a cluster is; None for equal processors."""
    parts = [part for part in cluster.model.parts if isinstance(part, MachineInUse)]
    return next((part.machine for part in parts if part.acts_on(cluster)), None)
