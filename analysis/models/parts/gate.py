"""The gate of a machine: which requests it accepts, and how to cut those that it does not.

The rules are those of the machine's own admission,
:mod:`hpcrowd.environment.schedulers.slurm.admission`, so that what passes here is not rejected in a
run of the same machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from hpcrowd.analysis.models.parts.requests import Asked, Room, scaled
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.machine.layout import Layout, bits
from hpcrowd.environment.machine.model import Machine, Partition
from hpcrowd.environment.requests import Ask, Requests
from hpcrowd.environment.schedulers.slurm.admission import Admission
from hpcrowd.environment.schedulers.slurm.limits import LimitKeeper
from hpcrowd.environment.schedulers.slurm.shares import Shares

#: What a job of one core gives up, one after the other, until it is accepted.
GIVEN_UP = (Ask.MEMORY_PER_CORE, Ask.MEMORY_PER_NODE, Ask.GPUS, Ask.GPUS_PER_NODE)

#: Most changes to one request until it is accepted.
MOST_CHANGES = 100


@dataclass
class _Manager:
    """A machine on which nothing runs."""

    layout: Layout
    shares: Shares
    limits: LimitKeeper


class Gate:
    """The gate of a machine."""

    def __init__(self, machine: Machine) -> None:
        self.layout = Layout(machine)
        self._machine = machine
        self._manager = _Manager(self.layout, Shares(machine), LimitKeeper(self.layout))
        # One job, which is changed and asked about again: what fits is remembered.
        self._job, self._asked = JobTable(1), Requests(1)
        self._job.user[:], self._job.requests = 1, self._asked
        self._admission = self.admission(self._job)
        self._with_gpus, self._room = cache(self._nodes_with_gpus), cache(self._room_of)

    def adapted(self, asked: Asked) -> Asked:
        """Return a request without partitions, QOS, features and GPUs that the machine lacks.

        A job whose partitions are not there goes to the default one.
        """
        values, layout = dict(asked.values), self.layout
        names = [
            name
            for name in asked.partitions.split(",")
            if name in layout.partitions and layout.nodes_of(name)
        ]
        values[Ask.PARTITIONS] = ",".join(names) or layout.default_partition.name
        if values.get(Ask.QOS) not in {one.name for one in self._machine.qos}:
            values.pop(Ask.QOS, None)
        nodes = layout.nodes_of(values[Ask.PARTITIONS].split(",")[0])
        if not nodes & layout.having(values.get(Ask.FEATURES, "")):
            values.pop(Ask.FEATURES, None)
        if not nodes & self._with_gpus(values.get(Ask.GPU_TYPE, "")):
            values.pop(Ask.GPU_TYPE, None)
        if not nodes & self._with_gpus(""):
            for ask in (Ask.GPUS, Ask.GPUS_PER_NODE, Ask.GPUS_PER_TASK):
                values.pop(ask, None)
        return Asked(values)

    def _nodes_with_gpus(self, kind: str) -> int:
        """Return the set of nodes with GPUs of a type; of any if it is empty."""
        place, found = self.layout.gpu_kind(kind), 0
        if place < -1:
            return 0
        for node, counts in enumerate(self.layout.gpus):
            if (sum(counts) if place < 0 else counts[place]) > 0:
                found |= 1 << node
        return found

    def room(self, asked: Asked) -> Room:
        """Return the room for jobs with such a request in its first partition."""
        return self._room(
            asked.partitions.split(",")[0],
            asked.values.get(Ask.FEATURES, ""),
            asked.values.get(Ask.GPU_TYPE, "") if asked.gpus(1) else None,
        )

    def _room_of(self, name: str, features: str, kind: str | None) -> Room:
        """Return the room of a partition for features and a type of GPU; None for no GPU."""
        layout = self.layout
        partition = layout.partitions[name]
        where = layout.nodes_of(name) & layout.having(features)
        if kind is not None:
            where = (where & self._with_gpus(kind)) or where
        nodes = list(bits(where))
        most = min(len(nodes), partition.max_nodes or len(nodes))
        cores = [min(layout.cores[node], partition.max_cores_per_node or layout.cores[node])
                 for node in nodes]  # fmt: skip
        memory = max(layout.memory[node] for node in nodes)
        place = layout.gpu_kind(kind or "")
        gpus = [layout.gpus[node] for node in nodes]
        return Room(
            cores=sum(sorted(cores, reverse=True)[:most]),
            nodes=most,
            node_cores=max(cores),
            node_gpus=max(sum(one) if place < 0 else one[place] for one in gpus),
            node_memory=0 if memory >= Layout.UNLIMITED else memory,
            longest_s=float("inf") if partition.max_time is None else float(partition.max_time),
        )

    def passing(
        self, asked: Asked, before: int, cores: int, room: Room, limit: float
    ) -> tuple[dict[Ask, Any], int] | None:
        """Return what the machine accepts of a request, and the cores; None if it is nothing.

        A request that is not accepted loses its QOS or account if that is the reason; else the job
        gets half of the cores, and a job of one core gives up memory and GPUs. The arguments are as
        for :func:`~hpcrowd.analysis.models.parts.requests.scaled`; ``limit`` is the requested time,
        s.
        """
        given_up: set[Ask] = set()
        changes: dict[Ask, Any] = {}
        for _ in range(MOST_CHANGES):
            what = scaled(asked, before, cores, room) | changes
            for ask in given_up:
                what.pop(ask, None)
            reason = self.refusal(what, cores, limit)
            if not reason:
                return what, cores
            if reason.startswith(("InvalidQOS", "QOSNotAllowed", "AccountNotAllowed")):
                ask = Ask.ACCOUNT if reason.startswith("Account") else Ask.QOS
                allowed = self._allowed(what, ask)
                if ask in changes or not allowed:
                    return None
                changes[ask] = allowed
            elif cores > 1:
                cores = -(-cores // 2)
            elif left := [ask for ask in GIVEN_UP if ask in what]:
                given_up.add(left[0])
            else:
                return None
        return None

    def _allowed(self, what: dict[Ask, Any], ask: Ask) -> str:
        """Return a QOS or account that the partition of a job admits; empty for none."""
        partition: Partition = self.layout.partitions[what[Ask.PARTITIONS].split(",")[0]]
        if ask is Ask.ACCOUNT:
            known = [one.account for one in self._machine.accounts if not one.user]
            allowed, denied = partition.allow_accounts, partition.deny_accounts
        else:
            known = [one.name for one in self._machine.qos]
            allowed, denied = partition.allow_qos, partition.deny_qos
        return next((name for name in allowed or known if name not in denied), "")

    def refusal(self, what: dict[Ask, Any], cores: int, limit: float) -> str:
        """Return why the machine rejects a job, in Slurm's words; empty if it does not.

        ``what`` is what it asks for, ``limit`` its requested time, s.
        """
        jobs, requests = self._job, self._asked
        jobs.processors[0], jobs.requested_time[0] = cores, int(limit)
        requests.matrix[:] = UNKNOWN
        for ask, value in what.items():
            requests.set(0, ask, value)
        return self._admission.refusal_of(self._admission.peek(0, 0))

    def admission(self, jobs: JobTable) -> Admission:
        """Return the admission of jobs to the machine while nothing runs on it."""
        return Admission(self._manager, jobs)
