"""The dependency graph of sessions: which session waits for which, with think times.

Session s' *depends on* s when all jobs of s had ended before the first job of s' was submitted
(Madon et al. 2024, Definition 5); the time between is its think time (Definition 6). As intervals
from first submission to last end, the sessions of a user form an interval order, and an edge is
redundant when a third session lies between its two ends. :func:`find_dependencies` leaves those
out: the session between ends later, so that it and not the earlier one is what the user waited for
last. On HPC2N with one job a session 9.7 million edges remain of many more.

The direct ones among all predecessors P(j) of a session j are those that end at or after the latest
start in P(j). In the order of ends they stand side by side, so they are found by bisection.

Dependencies of single jobs are known for :class:`Chains`: fields 17 and 18 of the Standard Workload
Format give the preceding job and the think time since its end, and models such as that of Feitelson
1996 generate series of repetitions. There every job is a separate session.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.work.sessions import Sessions
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.quantities import plural, round_half_up
from hpcrowd.environment.traces.trace import Conversions, Trace

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Dependencies:
    """Edges from sessions to the sessions that wait for them, by predecessor.

    Attributes
    ----------
    first
        Shape (sessions + 1,): the edges of session s are ``first[s]`` to ``first[s + 1]``.
    successor, think
        Shape (edges,): the session that waits, and its think time, s.
    count
        Predecessors of each session, shape (sessions,).
    """

    first: Int64s
    successor: Int64s
    think: Int64s
    count: Int64s

    def __len__(self) -> int:
        return len(self.successor)

    @property
    def predecessor(self) -> Int64s:
        """The session that each edge leaves, shape (edges,)."""
        return np.repeat(np.arange(len(self.count)), np.diff(self.first))


def find_dependencies(sessions: Sessions, *, in_order: bool = False) -> Dependencies:
    """Return the dependencies of all users' sessions without redundant edges.

    Sessions of no length at one instant depend on each other in their order.

    Parameters
    ----------
    sessions
        The sessions.
    in_order
        Sessions depend only on those before them in their order. It makes a difference where one
        of no length begins in the same second as a longer one before it.
    """
    count = len(sessions)
    number = np.arange(count)
    user = sessions.user_of_session
    # One rank for starts and ends together, by user and time. At one instant sessions end first,
    # then come those of no length in their order, then sessions start (in order: as numbered).
    short = sessions.start == sessions.end
    begins = number if in_order else np.where(short, number, count)
    tie = np.concatenate([begins, np.where(short, number, -1)])
    keys = (tie, np.concatenate([sessions.start, sessions.end]), np.tile(user, 2))
    order = np.lexsort(keys)
    changes = np.zeros(2 * count, bool)
    for key in keys:
        changes[1:] |= key[order][1:] != key[order][:-1]
    rank = np.empty(2 * count, np.int64)
    rank[order] = np.cumsum(changes)
    start, end = rank[:count], rank[count:]

    by_end = np.argsort(end, kind="stable")
    ends = end[by_end]
    before = np.searchsorted(ends, start, side="left")  # all that ended before each start
    has_any = before > sessions.user_first[user]
    latest_start = np.maximum.accumulate(start[by_end])[np.maximum(before - 1, 0)]
    first_direct = np.searchsorted(ends, latest_start, side="left")
    predecessors = np.where(has_any, before - first_direct, 0)

    successor = np.repeat(number, predecessors)
    offset = np.arange(len(successor)) - np.repeat(
        np.cumsum(predecessors) - predecessors, predecessors
    )
    predecessor = by_end[np.repeat(first_direct, predecessors) + offset]
    by_predecessor = np.argsort(predecessor, kind="stable")
    predecessor, successor = predecessor[by_predecessor], successor[by_predecessor]
    return Dependencies(
        first=np.searchsorted(predecessor, np.arange(count + 1)),
        successor=successor,
        think=sessions.start[successor] - sessions.end[predecessor],
        count=predecessors,
    )


def longest_paths(sessions: Sessions) -> Int64s:
    """Return the sessions on the longest path of each user's graph, shape (users,).

    In an interval order that is the largest set of sessions that do not overlap, which is found by
    always taking the one that ends first.
    """
    longest = np.zeros(len(sessions.users), np.int64)
    order = np.lexsort((sessions.start, sessions.end))
    user = sessions.user_of_session
    free = [-1] * len(sessions.users)
    for session in order:
        who = user[session]
        if sessions.start[session] >= free[who]:
            longest[who] += 1
            free[who] = sessions.end[session]
    return longest


def user_graph(
    jobs: JobTable, sessions: Sessions, dependencies: Dependencies, user: int
) -> nx.DiGraph[int]:
    """Return the graph of one user's sessions.

    Nodes are session numbers with ``start`` and ``end`` (s, recorded), ``jobs`` (rows) and
    ``batches`` (lists of rows); edges carry ``think_time`` (s).

    Raises
    ------
    QuantityError
        If the trace has no such user.
    """
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph(user=user, name=jobs.who(user))
    for session in sessions.of_user(user):
        rows = sessions.jobs_of(session)
        cuts = np.flatnonzero(np.diff(jobs.batch[rows])) + 1
        graph.add_node(
            session,
            start=int(sessions.start[session]),
            end=int(sessions.end[session]),
            jobs=rows.tolist(),
            batches=[piece.tolist() for piece in np.split(rows, cuts)],
        )
    for session in sessions.of_user(user):
        for edge in range(dependencies.first[session], dependencies.first[session + 1]):
            graph.add_edge(
                session,
                int(dependencies.successor[edge]),
                think_time=int(dependencies.think[edge]),
            )
    return graph


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
