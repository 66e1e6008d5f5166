"""Totals of machines of nodes: rejected and preempted jobs, GPUs and memory in use, partitions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.analysis.numbers import share_text, time_text
from hpcrowd.analysis.parts import RunPart, Shown
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.jobs import JobTable, State
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster
    from hpcrowd.environment.machine.layout import Layout
    from hpcrowd.environment.simulation import Simulation


#: Keys of ``summary.json`` for each cluster that is a machine of nodes, and their meaning.
ACCOUNTS = {
    "nodes": "nodes of the machine",
    "cores": "cores of all nodes",
    "gpus": "GPUs of all nodes",
    "memory_mb": "memory of all nodes; null if a node's is not described",
    "gpu_s": "GPU-seconds that jobs held, also while they were suspended, without preempted runs",
    "memory_mb_s": "memory that jobs held times seconds, without preempted runs",
    "rejected": "jobs that can never run, by Slurm's word for the reason",
    "runs_preempted": "runs of jobs stopped to make room for others",
    "runs_requeued": "of these, put back into the queue; the other jobs failed",
    "runs_suspended": "times that running jobs were suspended to make room; they went on later",
    "preempted_processor_s": "processor-seconds used by the preempted runs",
    "partitions": "for each partition the keys below",
}

#: Keys of each partition, and their meaning. A job counts where it ran last; one that never ran,
#: where it asked to run first. Times are means, null if no job of the partition ran.
PARTITION_ACCOUNTS = {
    "nodes": "nodes of the partition; others may share them",
    "cores": "cores of these nodes",
    "gpus": "GPUs of these nodes",
    "jobs": "jobs that ran to their end",
    "jobs_rejected": "jobs that can never run",
    "jobs_waiting": "jobs still in the queue when the run ended",
    "runs_preempted": "runs of its jobs that were preempted",
    "wait_mean_s": "mean time from submission to start",
    "wait_median_s": "median time from submission to start",
    "wait_max_s": "longest wait",
    "utilization": "share of the processor-seconds of its nodes that its jobs held, from the first "
    "submission to the last end of the run",
    "gpu_utilization": "the same of GPU-seconds; null without GPUs",
}

#: Columns of printed tables of partitions.
PARTITION_COLUMNS = ("nodes", "jobs", "mean wait", "median", "longest", "in use",
                     "GPUs in use", "rejected", "preempted")  # fmt: skip


#: The meaning of each column of ``rejections.parquet``.
REJECTION_MEANING = {
    "row": "row of the job in the table of jobs",
    "number": "job number, as in jobs.parquet",
    "reason": "why it can never run, in Slurm's words",
}


class Nodes(RunPart):
    """Totals of clusters that are machines of nodes, by name: :data:`ACCOUNTS`."""

    name, key, title = "nodes", "machines", "Partitions"

    @override
    def lines(self, configuration: Mapping[str, Any]) -> list[str]:
        lines = []
        for account in self.account.values():
            if rejected := account["rejected"]:
                reasons = ", ".join(f"{count:,} {reason}" for reason, count in rejected.items())
                lines.append(f"{plural(sum(rejected.values()), 'job')} rejected: {reasons}")
            if count := account["runs_preempted"]:
                lost = account["preempted_processor_s"] / HOUR
                lines.append(
                    f"{plural(count, 'run')} preempted ({account['runs_requeued']:,} requeued), "
                    f"{lost:,.1f} processor-hours lost"
                )
        return lines

    @override
    def shown(self) -> list[Shown]:
        rows = partition_rows(self.account)
        return [Shown(("partition", *PARTITION_COLUMNS), rows)] if self.account else []

    @override
    def metrics(self, jobs: JobTable, found: Mapping[str, Any]) -> dict[str, Any]:
        clusters, makespan = self.account.values(), found["makespan_s"]
        if not clusters:
            return {}

        def share(held: str, there: str) -> float | None:
            sizes = [one[there] for one in clusters]
            if not makespan or None in sizes or not sum(sizes):
                return None
            return float(sum(one[held] for one in clusters) / (sum(sizes) * makespan))

        lost = sum(one["preempted_processor_s"] for one in clusters)
        return {
            "gpu_utilization": share("gpu_s", "gpus"),
            "memory_utilization": share("memory_mb_s", "memory_mb"),
            "runs_preempted": sum(one["runs_preempted"] for one in clusters),
            "preempted_processor_h": lost / HOUR,
        }

    @override
    def numbers(self) -> dict[str, Mapping[str, Any]]:
        machines = {f"machine.{name}": one for name, one in self.account.items()}
        return machines | {
            f"partition.{name}": partition
            for one in self.account.values()
            for name, partition in one["partitions"].items()
        }

    @override
    def check(self) -> None:
        self.lines({})
        self.shown()
        self.metrics(JobTable(), {"makespan_s": 1})


class Rejections(RunPart):
    """Why jobs can never run on machines of nodes; ``rows`` has Slurm's words by row."""

    name, file, meaning = "rejections", "rejections", REJECTION_MEANING

    @override
    def job_columns(self) -> dict[str, Any]:
        return {"rejected_for": self.rows} if self.rows else {}

    @override
    def rejected_for(self) -> str:
        return next((why for why, _ in Counter(self.rows.values()).most_common(1)), "")

    @override
    def columns(self, jobs: JobTable) -> dict[str, Any]:
        rows = np.array(list(self.rows), np.int64)
        reasons = list(self.rows.values())
        return {"row": rows, "number": jobs.number[rows], "reason": reasons} if reasons else {}

    @override
    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> dict[int, str]:
        both = zip(columns["row"], columns["reason"], strict=True)
        return {int(row): str(reason) for row, reason in both}


def machines_of(model: Simulation) -> dict[str, dict[str, Any]]:
    """Return :data:`ACCOUNTS` of each cluster that is a machine of nodes, by its name."""
    return {
        name: _account(cluster)
        for name, cluster in model.clusters.items()
        if hasattr(cluster.engine.scheduler, "ledger")
    }


def results_of(model: Simulation) -> list[RunPart]:
    """Return what machines of nodes contribute to a run."""
    refused: dict[int, str] = {}
    for cluster in model.clusters.values():
        refused |= cluster.engine.refused
    found = Nodes.of(machines_of(model)), Rejections.of({}, dict(sorted(refused.items())))
    return [one for one in found if one is not None]


def _account(cluster: Cluster) -> dict[str, Any]:
    scheduler: Any = cluster.engine.scheduler
    from hpcrowd.environment.machine.demand import partitions_asked

    layout: Layout = scheduler.layout
    jobs, refused = cluster.jobs, cluster.engine.refused
    finished = jobs.ran
    held: dict[str, Counter[str]] = defaultdict(Counter)
    place: dict[int, str] = {}
    lasted = jobs.lasted
    for run in scheduler.ledger:
        place[run.row] = run.partition
        if run.end == -1 and finished[run.row]:
            seconds, ran = int(jobs.end[run.row] - run.start), int(lasted[run.row])
            use = held[run.partition]
            for share in run.holding:
                use["core_s"] += share.cores * ran
                use["gpu_s"] += sum(share.gpus) * seconds
                use["memory_mb_s"] += share.memory * seconds
    rows = np.flatnonzero(jobs.cluster == cluster.number)
    groups: dict[str, list[int]] = {name: [] for name in layout.partitions}
    for row in rows.tolist():
        name = place.get(row) or partitions_asked(layout, jobs, row)[0]
        groups.setdefault(name, []).append(row)  # one may ask for a partition that there is not
    preempted = [one for one in cluster.attempts if one.cause == "preempted"]
    stops = Counter(place.get(one.row, "") for one in preempted)
    memory = sum(layout.memory)
    return {
        "nodes": len(layout),
        "cores": layout.all_cores,
        "gpus": sum(map(sum, layout.gpus)),
        "memory_mb": None if memory >= layout.UNLIMITED else memory,
        "gpu_s": sum(use["gpu_s"] for use in held.values()),
        "memory_mb_s": sum(use["memory_mb_s"] for use in held.values()),
        "rejected": dict(sorted(Counter(refused.values()).items())),
        "runs_preempted": len(preempted),
        "runs_suspended": sum(len(run.pauses) for run in scheduler.ledger),
        "runs_requeued": sum(one.fate == "requeue" for one in preempted),
        "preempted_processor_s": sum(one.processor_seconds for one in preempted),
        "partitions": {
            name: {
                **_size(layout, name),
                **_jobs(jobs, np.array(mine, np.int64)),
                "runs_preempted": stops[name],
                **_use(layout, name, held[name], _span(jobs)),
            }
            for name, mine in groups.items()
        },
    }


def _size(layout: Layout, partition: str) -> dict[str, int]:
    there = layout.tres_of(partition) if partition in layout.partitions else {}
    resources = {"nodes": "node", "cores": "cpu", "gpus": "gres/gpu"}
    return {name: there.get(tres, 0) for name, tres in resources.items()}


def _jobs(jobs: JobTable, rows: Any) -> dict[str, Any]:
    state, ran = jobs.state[rows], rows[jobs.over[rows]]
    wait = (jobs.start - jobs.submit)[ran]
    some = bool(len(wait))
    waiting = (state == State.UNFINISHED) & (jobs.enqueued[rows] >= 0) & (jobs.start[rows] < 0)
    return {
        "jobs": len(ran),
        "jobs_rejected": int(np.count_nonzero(state == State.REJECTED)),
        "jobs_waiting": int(np.count_nonzero(waiting)),
        "wait_mean_s": float(wait.mean()) if some else None,
        "wait_median_s": float(np.median(wait)) if some else None,
        "wait_max_s": int(wait.max()) if some else None,
    }


def _use(layout: Layout, partition: str, use: Counter[str], seconds: int) -> dict[str, Any]:
    size = _size(layout, partition)
    cores, gpus = (size[name] * seconds for name in ("cores", "gpus"))
    return {
        "utilization": use["core_s"] / cores if cores else None,
        "gpu_utilization": use["gpu_s"] / gpus if gpus else None,
    }


def _span(jobs: JobTable) -> int:
    """Return the time from the first submission to the last end of jobs that ran, s."""
    ran = jobs.over
    return int(jobs.end[ran].max() - jobs.submit[ran].min()) if ran.any() else 0


def partition_rows(accounts: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Return printed rows: the name of a partition, then :data:`PARTITION_COLUMNS`."""
    return [
        [
            name if len(accounts) == 1 else f"{cluster}/{name}",
            f"{one['nodes']:,}",
            f"{one['jobs']:,}",
            *(time_text(one[key]) for key in ("wait_mean_s", "wait_median_s", "wait_max_s")),
            *(share_text(one[key]) for key in ("utilization", "gpu_utilization")),
            *(f"{one[key]:,}" for key in ("jobs_rejected", "runs_preempted")),
        ]
        for cluster, account in accounts.items()
        for name, one in account["partitions"].items()
    ]


def partitions_in(
    accounts: Iterable[Mapping[str, Mapping[str, Any]]],
) -> list[tuple[str, str]]:
    """Return (cluster, partition) of all partitions in the accounts of several runs, in order."""
    return list(
        dict.fromkeys(
            (cluster, name)
            for one in accounts
            for cluster, account in one.items()
            for name in account["partitions"]
        )
    )
