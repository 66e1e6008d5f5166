"""Repeated jobs: a job that its user submits when another one ends, as given by a trace or model.

Elsewhere dependencies are inferred from recorded times. Here they are known: fields 17 and 18 of
the Standard Workload Format give the preceding job and the think time since its end, and models
such as that of Feitelson 1996 generate series of repetitions. Every job is a separate session.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.work.graph import Dependencies
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.quantities import plural, round_half_up
from hpcrowd.environment.traces.trace import Conversions, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.work.sessions import Sessions


@dataclass(frozen=True)
class Chains:
    """The job that each job follows, and the think time between them.

    Attributes
    ----------
    follows
        Row of the job that must finish first, -1 none, shape (jobs,). It has the same user, and was
        submitted before.
    think
        s; from its end to the submission, at least 0, shape (jobs,).
    repaired
        Number of jobs that do not follow as recorded, by reason.
    """

    follows: Int64s
    think: Int64s
    repaired: Counter[str] = field(default_factory=Counter)

    @classmethod
    def at_once(cls, follows: Int64s) -> Chains:
        """Return jobs that follow in the very second in which the one before ends."""
        return cls(np.asarray(follows, np.int64), np.zeros(len(follows), np.int64))

    @classmethod
    def of(cls, trace: Trace, converted: Conversions, *, strict: bool = False) -> Chains:
        """Return the chains in fields 17 and 18 of a trace, for the jobs to simulate.

        Parameters
        ----------
        trace
            The trace.
        converted
            The jobs made from it.
        strict
            Make the first repair an error.

        Raises
        ------
        TraceError
            If no job names a preceding one, or if ``strict`` and a job had to be repaired.
        """
        jobs = converted.jobs
        number = trace["preceding"][converted.source_row]
        named = number > 0
        if not named.any():
            raise TraceError(
                f"{trace.source}: no job names a preceding one (field 17); separate sessions by "
                "times, for example --sessions arrival:60m"
            )
        repaired: Counter[str] = Counter()

        def repair(reason: str, which: NDArray[np.bool_]) -> None:
            count = int(np.count_nonzero(which))
            if count:
                repaired[reason] = count

        found = np.minimum(np.searchsorted(jobs.number, number), len(jobs) - 1)
        known = jobs.number[found] == number
        repair("preceding job not among the jobs: not waited for", named & ~known)
        mine = jobs.user[found] == jobs.user
        repair("preceding job of another user: not waited for", named & known & ~mine)
        row = np.arange(len(jobs))
        submit = jobs.recorded_submit
        later = (submit[found] > submit) | ((submit[found] == submit) & (found >= row))
        repair("preceding job submitted later: not waited for", named & known & mine & later)
        follows = np.where(named & known & mine & ~later, found, UNKNOWN)
        given = trace["think_time"][converted.source_row]
        think = np.asarray(round_half_up(given.astype(np.float64)))
        recorded = np.maximum(submit - jobs.recorded_end[follows], 0)
        missing = (follows != UNKNOWN) & (think < 0)
        repair("no think time: the recorded time since the preceding job used", missing)
        if strict and repaired:
            reason, count = next(iter(repaired.items()))
            raise TraceError(
                f"{trace.source}: {plural(count, 'job')} repaired: {reason}; leave out --strict to "
                "accept that"
            )
        return cls(follows, np.where(think < 0, recorded, think), repaired)

    def take(self, rows: Int64s) -> Chains:
        """Return the chains of some of the jobs; links to other jobs are removed."""
        place = np.full(len(self.follows) + 1, UNKNOWN)
        place[rows] = np.arange(len(rows))
        return Chains(place[self.follows[rows]], self.think[rows], self.repaired)

    def check(self, jobs: JobTable) -> None:
        """Check that the jobs can follow as given.

        Raises
        ------
        QuantityError
            If there is not one entry per job, or a job follows itself, a later one, or one of
            another user; or a think time is negative.
        """
        if not len(self.follows) == len(self.think) == len(jobs):
            raise QuantityError(
                f"follows: {len(self.follows)} entries and {len(self.think)} think times for "
                f"{len(jobs)} jobs; give one per job"
            )
        after = np.flatnonzero(self.follows != UNKNOWN)
        before = self.follows[after]
        wrong = (before < 0) | (before >= len(jobs))
        before = np.where(wrong, 0, before)
        submit = jobs.recorded_submit
        wrong |= submit[before] > submit[after]
        wrong |= (submit[before] == submit[after]) & (before >= after)
        wrong |= (jobs.user[before] != jobs.user[after]) | (self.think[after] < 0)
        if wrong.any():
            row = int(after[wrong][0])
            raise QuantityError(
                f"job {jobs.number[row]}: follows row {self.follows[row]} with think time "
                f"{self.think[row]} s; it must be an earlier job of the same user, and 0 s or more"
            )


def chain_dependencies(jobs: JobTable, sessions: Sessions, chains: Chains) -> Dependencies:
    """Return the dependencies of sessions of one job each.

    Parameters
    ----------
    jobs
        The table.
    sessions
        Its sessions by ``preceding``.
    chains
        The job that each job follows.
    """
    session = np.empty(len(jobs), np.int64)
    session[sessions.rows] = np.arange(len(jobs))
    after = np.flatnonzero(chains.follows != UNKNOWN)
    predecessor, successor = session[chains.follows[after]], session[after]
    order = np.lexsort((successor, predecessor))
    predecessor, successor = predecessor[order], successor[order]
    return Dependencies(
        first=np.searchsorted(predecessor, np.arange(len(jobs) + 1)),
        successor=successor,
        think=chains.think[after][order],
        count=np.bincount(successor, minlength=len(jobs)),
    )
