"""Three clusters with their own users, or one grid.

Covers: several clusters; a broker and its policies; users who submit to their own cluster or to the
grid; rigid users compared with users who keep their think times.

Story: the users of one log are drawn at random into three institutes, which have a third of its
machine each. Should a broker send jobs to whichever institute has free processors? The table
compares separate institutes with the grid under each policy, and with one large cluster, which no
grid can beat. Jobs wider than a cluster are left out everywhere.

Run: ``python -m hpcrowd.scenarios.whatif.grid_or_isolated TRACE``
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.populations.population import add_users
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.metrics import bounded_slowdown
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.cluster import ClusterSpec
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.grid.broker import Grid
from hpcrowd.environment.grid.policies import GRID, GRID_POLICIES
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.scenarios.whatif.scripts import ScriptTable, script

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import JobTable
    from hpcrowd.environment.traces.trace import Trace


CLUSTERS = 3  # each with an equal part of the processors
USERS = ("rigid", "think-time")  # by the names of `hpcrowd behaviours`
SCHEDULER = "easy"  # of every cluster
SEED = 0  # of the random draw of an institute for each user

APART, TOGETHER = "apart", "one cluster"

HEAD = (
    f"{CLUSTERS} clusters",
    "mean wait\n(h)",
    "of the worst\ninstitute (h)",
    "mean bounded\nslowdown",
    "in use\n(%)",
    "jobs ended\nper day",
)


@dataclass(frozen=True)
class Arrangement:
    """The results of one way to run the clusters, with one kind of users."""

    wait_h: float  #: mean wait, h
    worst_wait_h: float  #: that of the institute whose users wait longest, h
    bounded_slowdown: float  #: mean
    utilization: float  #: share of processor-seconds in use
    jobs_per_day: float  #: throughput


def compare(trace: Trace) -> tuple[dict[str, dict[str, Arrangement]], int]:
    """Return the results, by users and arrangement, and the number of jobs left out.

    Raises
    ------
    TraceError
        When there are fewer processors than clusters.
    """
    size = trace.processors // CLUSTERS
    if size < 1:
        raise TraceError(
            f"{trace.source}: {trace.processors} processors; {CLUSTERS} clusters need one each"
        )
    every = jobs_from_trace(trace).jobs
    narrow = every.take(np.flatnonzero(every.processors <= size))
    names = [APART, *GRID_POLICIES, TOGETHER]
    found = {users: {name: run(narrow.copy(), trace, size, users, name) for name in names}
             for users in USERS}  # fmt: skip
    return found, len(every) - len(narrow)


def run(jobs: JobTable, trace: Trace, size: int, users: str, name: str) -> Arrangement:
    """Run the jobs on clusters of a size, or on one as large as all of them."""
    clusters = 1 if name == TOGETHER else CLUSTERS
    each = ClusterSpec(size * CLUSTERS // clusters, SCHEDULER)
    model = Simulation(
        jobs,
        {f"institute {k + 1}": each for k in range(clusters)},
        clock=Clock.of(trace.header),
        parts=[Grid(name)] if name in GRID_POLICIES else [],
    )
    work = Work.of(jobs)
    members = work.sessions.users
    streams = Streams(SEED)
    homes = [int(streams.generator("home", user).integers(CLUSTERS)) for user in members.tolist()]
    places = list(model.clusters)
    sites = [GRID if name in GRID_POLICIES else places[home % clusters] for home in homes]
    add_users(model, work, users, sites=sites)
    model.run()
    return measure(jobs, np.array(homes)[np.searchsorted(members, jobs.user)], size * CLUSTERS)


def measure(jobs: JobTable, institute: np.ndarray, processors: int) -> Arrangement:
    """Return what the table shows; ``institute`` is that of each job's user."""
    ran = jobs.over
    wait = (jobs.start - jobs.submit)[ran]
    response, length = (jobs.end - jobs.submit)[ran], (jobs.end - jobs.start)[ran]
    span = int(jobs.end[ran].max() - jobs.submit[ran].min())
    of_institutes = [wait[institute[ran] == k] for k in range(CLUSTERS)]
    return Arrangement(
        wait_h=float(wait.mean() / HOUR),
        worst_wait_h=max(float(one.mean() / HOUR) for one in of_institutes if len(one)),
        bounded_slowdown=float(bounded_slowdown(response, length).mean()),
        utilization=float(jobs.processors[ran] @ length / (span * processors)),
        jobs_per_day=len(wait) * DAY / span,
    )


def tables(trace: Trace) -> list[ScriptTable]:
    """Compare on a trace; return a table for each kind of users."""
    found, left_out = compare(trace)
    note = f"{left_out:,} jobs are wider than a cluster and left out" if left_out else ""
    return [
        ScriptTable(
            f"{users} users",
            HEAD,
            [
                (
                    name if name in (APART, TOGETHER) else f"grid, {name}",
                    f"{one.wait_h:.2f}",
                    f"{one.worst_wait_h:.2f}",
                    f"{one.bounded_slowdown:.1f}",
                    f"{100 * one.utilization:.1f}",
                    f"{one.jobs_per_day:.1f}",
                )
                for name, one in arrangements.items()
            ],
            words=1,
            note=note if users == USERS[-1] else "",
        )
        for users, arrangements in found.items()
    ]


#: Prints the arrangements of the clusters side by side; returns the exit code.
main = script("grid_or_isolated", tables)

if __name__ == "__main__":
    sys.exit(main())
