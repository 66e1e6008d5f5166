"""Jobs in Slurm's queue: what the controller knows of each, its priority, and what it held.

The multifactor priority follows slurm.conf(5) and the Multifactor Priority page of Slurm. Each
factor is between 0 and 1; the priority is the sum of weights times factors, less the nice value.
Factors are computed when a job is submitted and then once in a calculation period.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from hpcrowd.environment.engine.kernel.nodes.queue import age_factor
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.demand import Demand
from hpcrowd.environment.machine.layout import Layout, bits
from hpcrowd.environment.machine.selection import Holding
from hpcrowd.environment.schedulers.slurm.billing import billable
from hpcrowd.environment.schedulers.slurm.shares import Association


@dataclass(eq=False)
class QueuedJob:
    """A job that waits or runs.

    Attributes
    ----------
    row
        In the table of jobs.
    limit
        s, its time limit.
    partitions
        Names of those that it may run in, in the order of its request.
    demands
        What it asks, by partition.
    submitted, eligible
        s; ``eligible`` is when it may start and begins to gather age, perhaps still to come.
    array, task, throttle
        The array it is a task of, -1 for none; tasks that may run at once, 0 for all.
    reason
        Why it waits, in Slurm's words.
    factors, priority
        By partition.
    holding, start, partition
        What it holds, since when, and in which partition, while it runs.
    planned
        s; the start that backfilling planned last, -1 for none.
    by
        Who started it last: ``main`` or ``backfill``.
    suspended, paused
        s; since when it is suspended, -1 if it is not, and for how long it was before.
    """

    row: int
    user: str
    association: Association
    qos: str
    limit: int
    partitions: tuple[str, ...]
    demands: dict[str, Demand]
    submitted: int
    eligible: int
    array: int = UNKNOWN
    task: int = UNKNOWN
    throttle: int = 0
    nice: int = 0
    requeue: bool = True
    reservation: str = ""
    reason: str = "None"
    factors: dict[str, Factors] = field(default_factory=dict)
    priority: dict[str, int] = field(default_factory=dict)
    holding: Holding = ()
    start: int = UNKNOWN
    partition: str = ""
    planned: int = UNKNOWN
    by: str = ""
    suspended: int = UNKNOWN
    paused: int = 0
    counted: dict[str, int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """When it ends at the latest while it runs, s."""
        return self.start + self.limit + self.paused

    def counted_cores(self, partition: str, layout: Layout) -> int:
        """Return the cores that priority and limits count: of whole nodes all."""
        if partition not in self.counted:
            demand = self.demands[partition]
            cores = demand.cores
            if demand.whole:
                sizes = sorted(layout.cores[node] for node in bits(demand.nodes))
                cores = max(cores, sum(sizes[: demand.least_nodes]))
            self.counted[partition] = cores
        return self.counted[partition]

    def tres(
        self, partition: str, layout: Layout, holding: Holding | None = None
    ) -> dict[str, int]:
        """Return the resources that it asks, or would hold: cpu, mem (MB), node, gres/gpu.

        Also each type of GPU, and what it is billed, a whole number.
        """
        found = self._tres(partition, layout, holding)
        found["billing"] = int(self.billed(found, partition, layout))
        return found

    def billed(self, tres: dict[str, int], partition: str, layout: Layout) -> float:
        """Return what it is billed for some resources in a partition."""
        weights = layout.partitions[partition].billing_weights
        return billable(tres, weights, largest=layout.machine.priority.max_tres)

    def _tres(self, partition: str, layout: Layout, holding: Holding | None) -> dict[str, int]:
        demand = self.demands[partition]
        if holding:
            found = {
                "cpu": sum(share.cores for share in holding),
                "mem": sum(share.memory for share in holding),
                "node": len(holding),
                "gres/gpu": sum(sum(share.gpus) for share in holding),
            }
            for kind, name in enumerate(layout.gpu_types):
                found[f"gres/gpu:{name}"] = sum(share.gpus[kind] for share in holding)
            return found
        cores = self.counted_cores(partition, layout)
        gpus = max(demand.gpus, demand.gpus_per_node * demand.least_nodes)
        found = {
            "cpu": cores,
            "mem": max(demand.memory_per_node * demand.least_nodes, demand.memory_per_core * cores),
            "node": demand.least_nodes,
            "gres/gpu": gpus,
        }
        if demand.gpu_kind >= 0:
            found[f"gres/gpu:{layout.gpu_types[demand.gpu_kind]}"] = gpus
        return found


@dataclass
class Tenure:
    """What a job held in one of its runs; ``end`` is -1 until it is stopped, then that second.

    ``pauses`` are the times in which it was suspended, from and to, s, the last perhaps without an
    end, -1: it kept memory and GPUs.
    """

    row: int
    submitted: int
    eligible: int
    start: int
    end: int
    holding: Holding
    by: str
    partition: str
    pauses: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, job: QueuedJob, now: int) -> Self:
        """Return the tenure of a job that starts now."""
        return cls(
            row=job.row,
            submitted=job.submitted,
            eligible=job.eligible,
            start=now,
            end=UNKNOWN,
            holding=job.holding,
            by=job.by,
            partition=job.partition,
        )


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
    """Computes factors on a machine."""

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
