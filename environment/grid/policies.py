"""Grids: how a broker chooses which of its jobs goes to which cluster.

If several clusters make up a grid, users submit to a cluster of their choice or to the grid. A
broker keeps the grid's jobs in its own queue and sends them on, one after the other; on the cluster
they join the local queue, behind the jobs of local users. This module has the policies that can be
chosen by name; subclass :class:`GridPolicy` for your own.

================== =============================================================================
name               which job goes where
================== =============================================================================
first-fit          the first job for which a cluster has enough free processors, to the first such
                   cluster (Minh 2012, section 6.3; the thesis does not say which of several)
worst-fit          the same job, to the cluster with the most free processors (KOALA's default,
                   unconfirmed)
least-loaded       each job at once, to the cluster that is large enough and has the smallest share
                   of processors in use or requested
fastest-completion each job at once, to the cluster where it ends first according to the estimates,
                   with the queue served in order
================== =============================================================================

Free processors are those not in use after the local pass, minus those requested by jobs of the grid
that already wait in the local queue: otherwise a whole queue would be sent on to fill one gap.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, override

import numpy as np

from hpcrowd.environment.errors import check_choice
from hpcrowd.environment.jobs import State
from hpcrowd.environment.quantities import time_at_speed
from hpcrowd.environment.schedulers.estimates import Estimates
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.engine.base import Engine
    from hpcrowd.environment.jobs import JobTable


#: The name that users submit to for the grid.
GRID = "grid"


class GridJob(NamedTuple):
    """A job that the broker holds."""

    row: int  #: row in the table of jobs; of the first component where there are several
    processors: int  #: of all components together
    submit: int  #: s since the origin
    requested_time: int  #: s on the first cluster's nodes, as requested by the user
    run_time: int  #: s on the first cluster's nodes; used only by exact estimates
    user: int
    components: tuple[int, ...]  #: processors of each component; they start together
    rows: tuple[int, ...]  #: of the components


class Site:
    """A cluster, as its broker sees it.

    Parameters
    ----------
    name
        Its name for users.
    engine
        The engine that runs it.
    """

    def __init__(self, name: str, engine: Engine) -> None:
        self.name = name
        self.engine = engine
        self.pending: list[int] = []
        self._sent: set[int] = set()

    def __repr__(self) -> str:
        return f"<Site {self.name}: {self.free} of {self.processors} processors free>"

    @property
    def processors(self) -> int:
        """Its size."""
        return self.engine.processors

    @property
    def free(self) -> int:
        """Free processors, minus those requested by jobs of the grid that wait there.

        None during maintenance.
        """
        if self.engine.closed:
            return 0
        if not self.pending:
            return self.engine.free
        return self.engine.free - int(self.engine.jobs.processors[self.pending].sum())

    @property
    def load(self) -> Fraction:
        """Processors in use and requested, divided by its size."""
        engine = self.engine
        asked = int(engine.jobs.processors[engine.waiting].sum())
        return Fraction(engine.up - engine.free + asked, engine.processors)

    @property
    def in_service(self) -> bool:
        """Whether it is neither closed for maintenance nor down as a whole."""
        return not self.engine.closed and self.engine.up > 0

    def send(self, row: int) -> None:
        """Put a job of the grid into the queue."""
        self.engine.deliver(row)
        self.pending.append(row)
        if self.engine.timeline is not None:
            self._sent.add(row)

    def look(self) -> None:
        """Update which jobs of the grid wait.

        A change of the platform may have stopped one, which waits again, or rejected one.
        """
        if self.engine.timeline is not None:
            waiting = self.engine.waiting.tolist() if self._sent else ()
            self.pending = [row for row in waiting if row in self._sent]
            return
        start, state = self.engine.jobs.start, self.engine.jobs.state
        self.pending = [
            row for row in self.pending if start[row] < 0 and state[row] == State.UNFINISHED
        ]

    def completion(self, job: GridJob, now: int) -> int:
        """Return when a job would end here according to the scheduler's estimates.

        The queue is assumed to be served in order, without backfilling, and jobs that outran their
        estimates to end now. FOREVER if the job cannot start because processors are down.
        """
        engine, jobs = self.engine, self.engine.jobs
        running, waiting = engine.running, engine.waiting
        until = np.maximum(jobs.start[running] + jobs.estimate[running], now)
        ends = list(zip(until.tolist(), jobs.processors[running].tolist(), strict=True))
        heapq.heapify(ends)
        queue = zip(jobs.processors[waiting].tolist(), jobs.estimate[waiting].tolist(), strict=True)
        free, time = engine.free, now
        for need, length in (*queue, (job.processors, self.believed(job))):
            while free < need:
                if not ends:
                    return FOREVER
                end, back = heapq.heappop(ends)
                time, free = max(time, end), free + back
            free -= need
            heapq.heappush(ends, (time + length, need))
        return time + self.believed(job)

    def believed(self, job: GridJob) -> int:
        """Return the run time that the scheduler here would expect, s; predictors are not used."""
        engine = self.engine
        times = time_at_speed(np.array([job.requested_time, job.run_time]), engine.speed)
        requested, run = int(times[0]), int(times[1])
        if not isinstance(engine.estimates, Estimates):
            return requested
        return engine.estimates.of(requested, min(run, requested) if engine.kill else run)


class GridPolicy(ABC):
    """Decides which job of the grid goes to which cluster next. Subclass it."""

    #: Its name in options and summaries.
    name = "own"

    #: Whether it is also called before the local passes, so that a job joins a local queue, and
    #: takes part in its pass, in the second of its submission.
    at_once = False

    @abstractmethod
    def select(
        self, now: int, waiting: Sequence[GridJob], sites: Sequence[Site]
    ) -> tuple[GridJob, Sequence[Site]] | None:
        """Name a job and the site of each of its components; None if all must wait.

        Called at every instant with an event, after the local passes, and again after each job that
        it names and the pass of that job's cluster. See also :attr:`at_once`.

        Parameters
        ----------
        now
            The present second.
        waiting
            The jobs that the broker holds, by submission and number; at least one. Jobs that were
            too large for all clusters when they were submitted have been rejected; a cluster may
            have become smaller since.
        sites
            The clusters, in their order.
        """

    def __str__(self) -> str:
        return self.name


def parts_of(processors: int, most: int) -> list[int]:
    """Return the sizes of the fewest components of at most ``most`` processors, widest first.

    They are as equal as possible, as Bucur and Epema split jobs for DAS (unconfirmed); Minh 2012
    names KOALA, which starts such components together, but gives no sizes.
    """
    count = -(-processors // most)
    size, wider = divmod(processors, count)
    return [size + 1] * wider + [size] * (count - wider)


def fits(components: Sequence[int], sizes: Sequence[int]) -> bool:
    """Return whether empty clusters of these sizes can hold each component on a different one."""
    if len(components) > len(sizes):
        return False
    pairs = zip(sorted(components, reverse=True), sorted(sizes, reverse=True), strict=False)
    return all(part <= size for part, size in pairs)


def rooms_of(sites: Sequence[Site]) -> list[tuple[int, Site]]:
    """Return the sites with their free processors, most first."""
    return sorted(((site.free, site) for site in sites), key=lambda room: -room[0])


def spread(job: GridJob, rooms: Sequence[tuple[int, Site]], now: int) -> list[Site] | None:
    """Return a different site for each component of a job, None if they do not all fit now.

    The largest component goes to the site with the most free processors, and so on, which finds a
    placement whenever there is one. A site is left out if a component is expected to run into
    its maintenance. For ``rooms`` see :func:`rooms_of`.
    """
    rooms = [(free, site) for free, site in rooms if not site.engine.closed]
    while (found := _spread(job.components, rooms)) is not None:
        requested = np.array([job.requested_time])
        length = max(int(time_at_speed(requested, site.engine.speed)[0]) for site in found)
        late = [site for site in found if now + length > site.engine.closes]
        if not late:
            return found
        rooms = [(free, site) for free, site in rooms if site not in late]
    return None


def _spread(components: Sequence[int], rooms: Sequence[tuple[int, Site]]) -> list[Site] | None:
    if len(components) > len(rooms):
        return None
    order = sorted(range(len(components)), key=lambda place: -components[place])
    found: dict[int, Site] = {}
    for place, (free, site) in zip(order, rooms, strict=False):
        if components[place] > free:
            return None
        found[place] = site
    return [found[place] for place in range(len(components))]


class FirstFit(GridPolicy):
    """The first job that fits, to the first cluster with room (Minh 2012, section 6.3)."""

    name = "first-fit"

    @override
    def select(
        self, now: int, waiting: Sequence[GridJob], sites: Sequence[Site]
    ) -> tuple[GridJob, Sequence[Site]] | None:
        rooms = rooms_of(sites)
        most = rooms[0][0]
        for job in waiting:
            if len(job.components) > 1:
                found = spread(job, rooms, now)
                if found is not None:
                    return job, found
            elif job.processors <= most:
                return job, [self.choose([site for site in sites if site.free >= job.processors])]
        return None

    def choose(self, able: Sequence[Site]) -> Site:
        """Return the site for a job, among those with room."""
        return able[0]


class WorstFit(FirstFit):
    """The first job that fits, to the cluster with the most free processors."""

    name = "worst-fit"

    @override
    def choose(self, able: Sequence[Site]) -> Site:
        return max(able, key=lambda site: site.free)


class AtOnce(GridPolicy):
    """Each job goes to a cluster when it is submitted; subclass it and write :meth:`cost`.

    It waits only while each cluster that is large enough is closed for maintenance or down as a
    whole. Jobs with several components wait until all can start.
    """

    at_once = True

    @abstractmethod
    def cost(self, job: GridJob, site: Site, now: int) -> Fraction | int:
        """Return the cost of a site, which is minimised."""

    @override
    def select(
        self, now: int, waiting: Sequence[GridJob], sites: Sequence[Site]
    ) -> tuple[GridJob, Sequence[Site]] | None:
        rooms: list[tuple[int, Site]] = []
        for job in waiting:
            if len(job.components) > 1:
                rooms = rooms or rooms_of(sites)
                found = spread(job, rooms, now)
                if found is not None:
                    return job, found
                continue
            need = job.processors
            able = [site for site in sites if site.processors >= need and site.in_service]
            if able:
                return job, [min(able, key=lambda site: self.cost(job, site, now))]
        return None


class LeastLoaded(AtOnce):
    """Each job at once, to the cluster with the smallest load that is large enough."""

    name = "least-loaded"

    @override
    def cost(self, job: GridJob, site: Site, now: int) -> Fraction | int:
        return site.load


class FastestCompletion(AtOnce):
    """Each job at once, to the cluster where it ends first by the estimates."""

    name = "fastest-completion"

    @override
    def cost(self, job: GridJob, site: Site, now: int) -> Fraction | int:
        return site.completion(job, now)


#: Policies by name.
GRID_POLICIES: dict[str, type[GridPolicy]] = {
    policy.name: policy for policy in (FirstFit, WorstFit, LeastLoaded, FastestCompletion)
}


def parse_grid_policy(policy: str | GridPolicy) -> GridPolicy:
    """Return the policy with this name; a policy object is returned as it is."""
    if isinstance(policy, GridPolicy):
        return policy
    check_choice("broker", policy, GRID_POLICIES)
    return GRID_POLICIES[policy]()


def grid_job(jobs: JobTable, rows: Sequence[int]) -> GridJob:
    """Return a job as its broker sees it, whose components are ``rows``."""
    first = rows[0]
    components = tuple(int(jobs.processors[row]) for row in rows)
    return GridJob(
        first,
        sum(components),
        int(jobs.submit[first]),
        int(jobs.requested_time[first]),
        int(jobs.run_time[list(rows)].max()),
        int(jobs.user[first]),
        components,
        tuple(rows),
    )
