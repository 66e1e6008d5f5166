"""The dependency graph of sessions, compared with networkx."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hpcrowd.agents import SessionDefinition, Sessions, Work, longest_paths, user_graph
from hpcrowd.environment import JobTable, QuantityError
from hypothesis import example, given
from hypothesis import strategies as st

MakeJobs = Callable[..., JobTable]

EVERY_JOB = SessionDefinition("arrival", None)


def all_dependencies(sessions: Sessions) -> nx.DiGraph:
    """Every pair of sessions of which one depends on the other, straight from the definition.

    Sessions of no length at one instant would depend on each other; they do so in their order.
    """
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(sessions)))
    user, start, end = sessions.user_of_session, sessions.start, sessions.end
    for a in range(len(sessions)):
        for b in range(len(sessions)):
            mutual = end[a] <= start[b] and end[b] <= start[a]
            if a != b and user[a] == user[b] and end[a] <= start[b] and (a < b or not mutual):
                graph.add_edge(a, b)
    return graph


#: (submission, run time, user) of jobs that are sessions of their own, with many ties.
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(1, 3)),
        min_size=1,
        max_size=25,
    )
)
@example([(5, 9, 1), (5, 0, 1)])
@example([(5, 0, 1), (5, 9, 1)])
def test_dependencies_are_the_transitive_reduction(
    make_jobs: MakeJobs, spans: list[tuple[int, int, int]]
) -> None:
    """The edges are those of depends-on that no path of other edges implies, with think times.

    The longest path of each user is that of the full graph; the graphs of the users together have
    all sessions and edges.
    """
    jobs = make_jobs(*((submit, run, 1, run, user) for submit, run, user in spans))
    work = Work.of(jobs, EVERY_JOB)
    sessions, found = work.sessions, work.dependencies
    full = all_dependencies(sessions)
    edges = list(zip(found.predecessor.tolist(), found.successor.tolist(), strict=True))
    assert len(edges) == len(set(edges)) == len(found)
    assert set(nx.transitive_reduction(full).edges) == set(edges)
    think = sessions.start[found.successor] - sessions.end[found.predecessor]
    assert think.tolist() == found.think.tolist()
    assert np.bincount(found.successor, minlength=len(sessions)).tolist() == found.count.tolist()
    assert (0, len(found)) == (found.first[0], found.first[-1])
    assert longest_paths(sessions).tolist() == [
        1 + nx.dag_longest_path_length(full.subgraph(sessions.of_user(user)))
        for user in sessions.users
    ]
    graphs = [user_graph(jobs, sessions, found, user) for user in sessions.users.tolist()]
    assert list(range(len(jobs))) == [node for graph in graphs for node in graph]
    assert {(*edge, pause) for edge, pause in zip(edges, found.think.tolist(), strict=True)} == {
        edge for graph in graphs for edge in graph.edges(data="think_time")
    }


def test_graph_of_a_user_knows_jobs_and_batches(make_jobs: MakeJobs) -> None:
    """Nodes carry start, end, jobs and batches of a session; edges carry the think time."""
    jobs = make_jobs(
        (0, 100, 1, 100, 7),
        (0, 5, 1, 5, 8),
        (50, 10, 1, 10, 7),
        (300, 1, 1, 1, 7),
        (9000, 60, 1, 60, 7),
    )
    work = Work.of(jobs)
    graph = user_graph(jobs, work.sessions, work.dependencies, 7)
    assert {
        0: {"start": 0, "end": 301, "jobs": [0, 2, 3], "batches": [[0, 2], [3]]},
        1: {"start": 9000, "end": 9060, "jobs": [4], "batches": [[4]]},
    } == dict(graph.nodes(data=True))
    assert [(0, 1, {"think_time": 8699})] == list(graph.edges(data=True))
    assert 7 == graph.graph["user"]
    with pytest.raises(QuantityError, match="user 9"):
        user_graph(jobs, work.sessions, work.dependencies, 9)
