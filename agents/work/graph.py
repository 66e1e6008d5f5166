"""The dependency graph of sessions: which session waits for which, with think times.

Session s' *depends on* s when all jobs of s had ended before the first job of s' was submitted
(Madon et al. 2024, Definition 5); the time between is its think time (Definition 6). As intervals
from first submission to last end, the sessions of a user form an interval order, and an edge is
redundant when a third session lies between its two ends. :func:`find_dependencies` leaves those
out: the session between ends later, so that it and not the earlier one is what the user waited for
last. On HPC2N with one job a session 9.7 million edges remain of many more.

The direct ones among all predecessors P(j) of a session j are those that end at or after the latest
start in P(j). In the order of ends they stand side by side, so they are found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.work.sessions import Sessions
from hpcrowd.environment.jobs import Int64s, JobTable

if TYPE_CHECKING:
    import networkx as nx


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
