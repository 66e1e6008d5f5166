"""Multifactor priority of a waiting job; slurm.conf(5) and the Multifactor Priority page of Slurm.

Each factor is between 0 and 1; the priority is the sum of weights times factors, less the nice
value. Factors are computed when a job is submitted and then once in a calculation period.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpcrowd.environment.engine.kernel.nodes.queue import age_factor
from hpcrowd.environment.machine.layout import Layout

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.slurm.queue import QueuedJob

#: Slurm's default nice value is this far above the least; priorities never fall below 1.
LEAST_PRIORITY = 1


@dataclass(frozen=True)
class Factors:
    """Weighted factors of a job in a partition, as ``sprio -l`` shows them."""

    age: float = 0.0
    fair_share: float = 0.0
    size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    tres: float = 0.0
    nice: int = 0

    @property
    def total(self) -> int:
        """The priority."""
        found = self.age + self.fair_share + self.size + self.partition + self.qos + self.tres
        return max(int(found - self.nice), LEAST_PRIORITY)


class Priorities:
    """Computes factors on a machine.

    Parameters
    ----------
    layout
        The nodes and partitions.
    """

    def __init__(self, layout: Layout) -> None:
        machine = layout.machine
        self.layout, self.settings = layout, machine.priority
        self._largest_qos = max((one.priority for one in machine.qos), default=0)
        self._qos = {one.name: one.priority for one in machine.qos}
        self._largest_partition = max(
            (one.priority_factor for one in layout.partitions.values()), default=0
        )

    def of(self, job: QueuedJob, partition: str, now: int) -> Factors:
        """Return the factors of a job in one of its partitions at a second."""
        settings = self.settings
        if settings.kind == "basic":
            return Factors()
        age = age_factor(job.eligible, now, settings.max_age)
        qos = self._qos.get(job.qos, 0) / self._largest_qos if self._largest_qos else 0.0
        factor = self.layout.partitions[partition].priority_factor
        of_partition = factor / self._largest_partition if self._largest_partition else 0.0
        return Factors(
            age=age * settings.weight_age,
            fair_share=job.association.factor * settings.weight_fair_share,
            size=self.size(job, partition) * settings.weight_size,
            partition=of_partition * settings.weight_partition,
            qos=qos * settings.weight_qos,
            tres=self._tres(job, partition),
            nice=job.nice,
        )

    def size(self, job: QueuedJob, partition: str) -> float:
        """Return the size factor: the mean of its parts of all nodes and of all cores."""
        layout, settings = self.layout, self.settings
        demand = job.demands[partition]
        nodes, cores = demand.least_nodes, job.counted_cores(partition, layout)
        if settings.small_relative_to_time:
            found = max(nodes * layout.all_cores / len(layout), cores)
            found /= max(job.limit // 60, 1) * layout.all_cores
            found = 1 - found if settings.favor_small else found
        elif settings.favor_small:
            found = (1 - nodes / len(layout) + 1 - cores / layout.all_cores) / 2
        else:
            found = (nodes / len(layout) + cores / layout.all_cores) / 2
        return min(max(found, 0.0), 1.0)

    def _tres(self, job: QueuedJob, partition: str) -> float:
        """Return the sum of weights times the part that it asks of the partition's."""
        weights, found = self.settings.weight_tres, 0.0
        if not weights:
            return found
        asked = job.tres(partition, self.layout)
        for name, weight in weights.items():
            there = self.layout.tres_of(partition).get(name.lower(), 0)
            if there:
                found += weight * min(asked.get(name.lower(), 0) / there, 1.0)
        return found
