"""Totals of the clusters of a grid, and of the jobs that its broker sent to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, override

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.accounts.platform import sizes_of
from hpcrowd.analysis.curves import processor_seconds
from hpcrowd.analysis.metrics import bounded_slowdown, taken_back
from hpcrowd.analysis.numbers import mean_of, share_text, time_text
from hpcrowd.analysis.parts import RunPart, Shown
from hpcrowd.environment.jobs import Int64s, JobTable, State
from hpcrowd.environment.quantities import plural

#: Columns of printed tables of clusters.
SITE_COLUMNS = ("processors", "in use", "jobs", "by grid", "mean wait", "local", "by grid",
                "at the broker", "bounded slowdown")  # fmt: skip

#: Keys of the times in these tables.
SITE_TIMES = ("wait_s", "wait_local_s", "wait_by_grid_s", "held_s")

#: The meaning of each column of ``components.parquet``.
COMPONENT_MEANING = {
    "number": "job number of the component, as in jobs.parquet",
    "first": "job number of the first component of its job",
    "processors": "processors of all components of the job",
}

Bools = NDArray[np.bool_]


#: Keys of ``summary.json`` for the jobs of a cluster, or of the grid, and their meaning. Times are
#: means, null if there are no jobs. If a job was split, each component counts as a job on its
#: cluster; in the totals of the grid it is one job with the processors of all its components.
ACCOUNTS = {
    "processors": "of the cluster, or of all",
    "jobs": "jobs that ran to their end",
    "jobs_by_grid": "of these, jobs sent by the broker",
    "wait_s": "time from submission to start, all jobs",
    "wait_local_s": "the same, jobs submitted directly to the cluster",
    "wait_by_grid_s": "the same, jobs sent by the broker",
    "held_s": "part of that wait spent at the broker",
    "bounded_slowdown": "bounded slowdown, all jobs",
    "slowdown": "mean response over mean run time (Minh 2012, section 5.2.5)",
    "utilization": "share of processor-seconds in use from the first submission to the last end of "
    "the run",
}


class Sites(RunPart):
    """Totals of the clusters of a grid and of its grid jobs, :func:`grid_accounts`.

    If jobs were split, ``rows`` has the row of the first component of each row's job.
    """

    name, key, file, meaning = "grid", "sites", "components", COMPONENT_MEANING
    title, instead = "Sites of the grid", True

    @override
    def lines(self, configuration: Mapping[str, Any]) -> list[str]:
        most = configuration.get("components")
        if most is None or not self.account:
            return []
        account = self.account["grid"]
        width = plural(most, "processor")
        if not account["jobs_split"]:
            return [f"no job was split: all grid jobs that could run need at most {width}"]
        return [
            f"{plural(account['jobs_split'], 'grid job')} of more than {width} split into "
            f"{plural(account['components'], 'component')}; each counts as a job on its cluster"
        ]

    @override
    def shown(self) -> list[Shown]:
        rows = [
            [
                name,
                f"{one['processors']:,}",
                share_text(one["utilization"]),
                f"{one['jobs']:,}",
                f"{one['jobs_by_grid']:,}",
                *(time_text(one[key]) for key in SITE_TIMES),
                "-" if one["bounded_slowdown"] is None else f"{one['bounded_slowdown']:,.1f}",
            ]
            for name, one in self.account.items()
        ]
        return [Shown(("site", *SITE_COLUMNS), rows)] if rows else []

    @override
    def numbers(self) -> dict[str, Mapping[str, Any]]:
        return {f"site.{name}": one for name, one in self.account.items()}

    @override
    def columns(self, jobs: JobTable) -> dict[str, Any]:
        first = self.rows
        if not len(first):
            return {}
        width = np.zeros(len(jobs), np.int64)
        np.add.at(width, first, jobs.processors)
        rows = np.flatnonzero(np.bincount(first, minlength=len(jobs))[first] > 1)
        first = first[rows]
        return {
            "number": jobs.number[rows],
            "first": jobs.number[first],
            "processors": width[first],
        }

    @override
    @classmethod
    def read_rows(cls, path: Path, jobs: JobTable) -> Any:
        return ()  # the file has only the components, without their rows

    @override
    def check(self) -> None:
        self.shown()
        for one in self.account.values():
            int(one.get("processors", 0))


def grid_accounts(
    jobs: JobTable,
    by_grid: Bools,
    processors: Mapping[str, int],
    first: Int64s | None = None,
    platform: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return :data:`ACCOUNTS` for each cluster, then for ``grid``: all jobs of the grid.

    Parameters
    ----------
    jobs, by_grid
        The jobs after a run, and which of them were submitted to the broker, shape (jobs,).
    processors
        Processors of the clusters by name, in the order of their numbers.
    first
        Row of the first component of each row's job, shape (jobs,); None if no job was split.
    platform
        Totals of the clusters that changed, :func:`hpcrowd.analysis.accounts.platform.accounts_of`.
    """
    ran = jobs.over
    begin = int(jobs.submit[ran].min()) if ran.any() else 0
    end = int(jobs.end[ran].max()) if ran.any() else 0
    there = {
        name: processor_seconds(size, sizes_of({name: (platform or {}).get(name, {})}), begin, end)
        for name, size in processors.items()
    }
    found = {
        name: _account(jobs, jobs.cluster == number, by_grid, size, (begin, end, there[name]))
        for number, (name, size) in enumerate(processors.items())
    }
    total, area = sum(processors.values()), sum(there.values())
    whole = by_grid if first is None else by_grid & (first == np.arange(len(jobs)))
    found["grid"] = {
        **_account(jobs, by_grid, by_grid, total, (begin, end, area), whole),
        "jobs_rejected": int((whole & (jobs.state == State.REJECTED)).sum()),
    }
    return found


def _account(
    jobs: JobTable,
    mine: Bools,
    by_grid: Bools,
    processors: int,
    span: tuple[int, int, int],
    counted: Bools | None = None,
) -> dict[str, Any]:
    """Return the totals of some jobs; all that ran are work, ``counted`` ones that ended jobs.

    ``span`` is from when to when, s, and the processor-seconds that were there.
    """
    begin, end, area = span
    taken = taken_back(jobs.take(np.flatnonzero(mine)), begin, end) if area else 0.0
    mine = mine & jobs.over
    work = float(jobs.processors[mine].astype(np.float64) @ jobs.lasted[mine]) + taken
    mine = mine if counted is None else mine & counted
    wait, response = jobs.start - jobs.submit, (jobs.end - jobs.submit)[mine]
    run = jobs.lasted[mine]
    return {
        "processors": processors,
        "jobs": int(mine.sum()),
        "jobs_by_grid": int((mine & by_grid).sum()),
        "wait_s": mean_of(wait[mine]),
        "wait_local_s": mean_of(wait[mine & ~by_grid]),
        "wait_by_grid_s": mean_of(wait[mine & by_grid]),
        "held_s": mean_of((jobs.enqueued - jobs.submit)[mine & by_grid]),
        "bounded_slowdown": mean_of(bounded_slowdown(response, run)),
        "slowdown": float(response.mean() / run.mean()) if run.any() else None,
        "utilization": work / area if area else None,
    }
