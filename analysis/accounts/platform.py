"""Totals of the machines of a run: changes of the platform, clusters and broker of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.curves import processor_seconds
from hpcrowd.analysis.metrics import bounded_slowdown, taken_back
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.engine.attempts import RECORDED, Attempt
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, State
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.traces.trace import Trace


#: Keys of ``summary.json`` for each cluster that changed, and their meaning.
ACCOUNTS = {
    "node_failures": "random failures that took processors down",
    "down_processor_s": "processor-seconds that were down, by the size at that time",
    "maintenance_s": "time in maintenance",
    "runs_stopped": "runs of jobs stopped before their end",
    "runs_requeued": "of these, put back into the queue by the scheduler",
    "runs_resubmitted": "of these, submitted again by their users",
    "runs_failed": "of these, failed for good",
    "lost_processor_s": "processor-seconds used by the stopped runs",
    "sizes": "changes of size: s since the origin, processors before and after",
    "speeds": "changes of speed: s since the origin, factor",
    "schedulers": "switches of scheduler: s since the origin, new scheduler",
    "policy_switches": "number of policy switches",
    "policies_s": "time that each policy was in charge, s",
}

#: Most sizes, speeds or schedulers that a printed line lists one by one.
MOST_TURNS = 3


def accounts_of(model: Simulation) -> dict[str, dict[str, Any]]:
    """Return the totals of each cluster that changed, by name."""
    return {
        name: timeline.account(model.time)
        for name, cluster in model.clusters.items()
        if (timeline := cluster.engine.timeline) is not None
    }


def jobs_of(model: Simulation) -> JobTable:
    """Return the jobs of a run; under a power cap that slows them, a copy with both run times.

    In the simulation ``run_time`` is how long a job takes at the clocks of the machine. The copy
    has the time that it needs at full clock there, and the other one in ``slowed_run_time``.
    """
    work, timeline = model.cluster.engine.work, model.cluster.engine.timeline
    if work is None or timeline is None or not timeline.slows:
        return model.jobs
    jobs = model.jobs.copy()
    jobs.slowed_run_time = np.where(jobs.start == UNKNOWN, UNKNOWN, jobs.run_time)
    submitted = np.flatnonzero(work[: len(jobs)] != UNKNOWN)
    jobs.run_time[submitted] = work[submitted]
    return jobs


def sizes_of(accounts: Mapping[str, Mapping[str, Any]]) -> list[tuple[int, int, int]]:
    """Return (s, processors before, processors after) for each change of a cluster's size."""
    return [
        (at, before, after)
        for account in accounts.values()
        for at, before, after in account.get("sizes", ())
    ]


def attempts_of(model: Simulation) -> list[Attempt]:
    """Return the stopped runs of all clusters, by time, then by job."""
    found = [one for cluster in model.clusters.values() for one in cluster.attempts]
    return sorted(found, key=lambda one: (one.end, one.row, one.start))


def recorded_attempts(trace: Trace, jobs: JobTable, source_row: Int64s) -> list[Attempt]:
    """Return the earlier runs of jobs that begin and end as recorded.

    Parameters
    ----------
    trace
        The log.
    jobs
        Its jobs.
    source_row
        Row of each job in the log, -1 for none, shape (jobs,).
    """
    from hpcrowd.environment.traces.runs import of_jobs

    found = []
    for row, runs in of_jobs(trace, source_row).items():
        number, submit = int(jobs.number[row]), int(jobs.recorded_submit[row])
        since = 0
        for run in runs:
            times = (submit + since, submit + run.start, submit + run.end)
            found.append(Attempt(row, number, 0, *times, run.processors, RECORDED, "requeue"))
            since = run.again
    return found


def platform_lines(accounts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return one printed line for each cluster that changed."""
    lines = []
    for name, account in accounts.items():
        words = []
        if account["node_failures"]:
            words.append(plural(account["node_failures"], "node failure"))
        if account["down_processor_s"]:
            words.append(f"{account['down_processor_s'] / HOUR:,.1f} processor-hours down")
        if account["maintenance_s"]:
            words.append(f"{format_duration(account['maintenance_s'])} of maintenance")
        if account["runs_stopped"]:
            fates = [
                f"{account[f'runs_{fate}']:,} {fate}"
                for fate in ("requeued", "resubmitted", "failed")
                if account[f"runs_{fate}"]
            ]
            words.append(f"{plural(account['runs_stopped'], 'run')} stopped ({', '.join(fates)})")
            words.append(f"{account['lost_processor_s'] / HOUR:,.1f} processor-hours lost")
        words += _turns("resizes", [f"{after:,} processors" for *_, after in account["sizes"]])
        words += _turns("changes of speed", [f"speed {by:g}x" for _, by in account["speeds"]])
        words += _turns("switches", [f"scheduler {one}" for _, one in account["schedulers"]])
        if account["policy_switches"] > len(account["schedulers"]):
            words += _policies(account)
        lines.append(f"cluster {name}: {', '.join(words) or 'nothing changed in the run'}")
    return lines


def _turns(what: str, turns: list[str]) -> list[str]:
    """Return the successive values of a setting, or only their number if there are many."""
    if len(turns) > MOST_TURNS:
        return [f"{len(turns):,} {what}"]
    return turns


def _policies(account: Mapping[str, Any]) -> list[str]:
    """Return how often the policy changed, and for which share of the time each was in charge."""
    total = max(sum(account["policies_s"].values()), 1)
    by_time = sorted(account["policies_s"].items(), key=lambda item: -item[1])
    shares = ", ".join(f"{policy} {seconds / total:.0%}" for policy, seconds in by_time)
    switches = plural(account["policy_switches"], "switch")
    return [f"{switches} of policy ({shares})"]


#: Columns of printed tables of clusters.
SITE_COLUMNS = ("processors", "in use", "jobs", "by grid", "mean wait", "local", "by grid",
                "at the broker", "bounded slowdown")  # fmt: skip

#: Keys of the times in these tables.
SITE_TIMES = ("wait_s", "wait_local_s", "wait_by_grid_s", "held_s")

Bools = NDArray[np.bool_]


#: Keys of ``summary.json`` for the jobs of a cluster, or of the grid, and their meaning. Times are
#: means, null if there are no jobs. If a job was split, each component counts as a job on its
#: cluster; in the totals of the grid it is one job with the processors of all its components.
SITE_ACCOUNTS = {
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


def grid_accounts(
    jobs: JobTable,
    by_grid: Bools,
    processors: Mapping[str, int],
    first: Int64s | None = None,
    platform: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return :data:`SITE_ACCOUNTS` for each cluster, then for ``grid``: all jobs of the grid.

    Parameters
    ----------
    jobs
        The jobs after a run.
    by_grid
        Which jobs were submitted to the broker, shape (jobs,).
    processors
        Processors of the clusters by name, in the order of their numbers.
    first
        Row of the first component of each row's job, shape (jobs,); None if no job was split.
    platform
        Totals of the clusters that changed, :func:`accounts_of`.
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


def site_rows(sites: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Return printed rows of :func:`grid_accounts`: name, then :data:`SITE_COLUMNS`."""
    from hpcrowd.analysis.numbers import share_text, time_text

    return [
        [
            name,
            f"{account['processors']:,}",
            share_text(account["utilization"]),
            f"{account['jobs']:,}",
            f"{account['jobs_by_grid']:,}",
            *(time_text(account[key]) for key in SITE_TIMES),
            "-" if account["bounded_slowdown"] is None else f"{account['bounded_slowdown']:,.1f}",
        ]
        for name, account in sites.items()
    ]


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
    from hpcrowd.analysis.numbers import mean_of

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


def component_lines(sites: Mapping[str, Mapping[str, Any]], most: int | None) -> list[str]:
    """Return a printed line with the number of jobs that were split into components.

    Parameters
    ----------
    sites
        The accounts; the one of the grid has the number.
    most
        Most processors of a component; None if jobs are not split.
    """
    if most is None:
        return []
    account = sites["grid"]
    width = plural(most, "processor")
    if not account["jobs_split"]:
        return [f"no job was split: all grid jobs that could run need at most {width}"]
    return [
        f"{plural(account['jobs_split'], 'grid job')} of more than {width} split into "
        f"{plural(account['components'], 'component')}; each counts as a job on its cluster"
    ]
