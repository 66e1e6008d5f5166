"""The dependency graph of sessions, compared with networkx."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hpcrowd.agents import (
    SessionDefinition,
    Sessions,
    Work,
    find_dependencies,
    find_sessions,
    longest_paths,
    user_graph,
)
from hpcrowd.environment import JobTable, QuantityError, Trace, jobs_from_trace
from hypothesis import given
from hypothesis import strategies as st

MakeJobs = Callable[..., JobTable]

EVERY_JOB = SessionDefinition("arrival", None)

#: (submission, run time, user) of jobs that are sessions of their own, with many ties.
spans = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(1, 3)), min_size=1, max_size=25
)


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


def sessions_of(make_jobs: MakeJobs, spans: list[tuple[int, int, int]]) -> Sessions:
    """Jobs as sessions of their own."""
    return find_sessions(make_jobs(*((s, run, 1, run, u) for s, run, u in spans)), EVERY_JOB)


@given(spans)
def test_dependencies_are_the_transitive_reduction(
    make_jobs: MakeJobs, spans: list[tuple[int, int, int]]
) -> None:
    """The edges are those of depends-on that no path of other edges implies."""
    sessions = sessions_of(make_jobs, spans)
    found = find_dependencies(sessions)
    expected = nx.transitive_reduction(all_dependencies(sessions)).edges
    edges = list(zip(found.predecessor.tolist(), found.successor.tolist(), strict=True))
    assert len(edges) == len(set(edges)) == len(found)
    assert set(expected) == set(edges)


@given(spans)
def test_edges_know_their_think_times(
    make_jobs: MakeJobs, spans: list[tuple[int, int, int]]
) -> None:
    """Think time is from the end of the one to the start of the other, and never negative."""
    sessions = sessions_of(make_jobs, spans)
    found = find_dependencies(sessions)
    expected = sessions.start[found.successor] - sessions.end[found.predecessor]
    assert expected.tolist() == found.think.tolist()
    assert all(found.think >= 0)
    assert np.bincount(found.successor, minlength=len(sessions)).tolist() == found.count.tolist()
    assert (0, len(found)) == (found.first[0], found.first[-1])


@given(spans)
def test_reduced_graph_names_the_same_start(
    make_jobs: MakeJobs, spans: list[tuple[int, int, int]]
) -> None:
    """On the record, end plus think time over any edge is the recorded start of the successor."""
    sessions = sessions_of(make_jobs, spans)
    found = find_dependencies(sessions)
    ready = sessions.end[found.predecessor] + found.think
    assert sessions.start[found.successor].tolist() == ready.tolist()
    last_of_all = {
        b: max(sessions.end[a] for a in before)
        for b, before in all_dependencies(sessions).pred.items()
        if before
    }
    last_of_direct: dict[int, int] = {}
    for a, b in zip(found.predecessor.tolist(), found.successor.tolist(), strict=True):
        last_of_direct[b] = max(last_of_direct.get(b, 0), sessions.end[a])
    assert last_of_all == last_of_direct


@given(spans)
def test_longest_paths(make_jobs: MakeJobs, spans: list[tuple[int, int, int]]) -> None:
    """The longest path of each user, in sessions, is that of the full graph."""
    sessions = sessions_of(make_jobs, spans)
    full = all_dependencies(sessions)
    expected = [
        1 + nx.dag_longest_path_length(full.subgraph(sessions.of_user(user)))
        for user in sessions.users
    ]
    assert expected == longest_paths(sessions).tolist()


def test_small_graph(make_jobs: MakeJobs) -> None:
    """Two sessions side by side, one after both: the later waits for each with its think time."""
    jobs = make_jobs((0, 100, 1), (50, 100, 1), (200, 10, 1), (220, 10, 1))
    sessions = find_sessions(jobs, EVERY_JOB)
    found = find_dependencies(sessions)
    edges = zip(found.predecessor.tolist(), found.successor.tolist(), found.think, strict=True)
    assert [(0, 2, 100), (1, 2, 50), (2, 3, 10)] == list(edges)
    assert [0, 0, 2, 1] == found.count.tolist()
    assert [3] == longest_paths(sessions).tolist()


def test_session_of_no_length_comes_before_one_that_starts_with_it(make_jobs: MakeJobs) -> None:
    """A session that has ended when another starts comes before it, whatever their numbers."""
    for spans in ([(5, 0, 1), (5, 9, 1)], [(5, 9, 1), (5, 0, 1)]):
        jobs = make_jobs(*spans)
        found = find_dependencies(find_sessions(jobs, EVERY_JOB))
        rows = zip(found.predecessor.tolist(), found.successor.tolist(), strict=True)
        assert [(0, 9)] == [(jobs.run_time[a], jobs.run_time[b]) for a, b in rows]


def test_users_do_not_depend_on_each_other(make_jobs: MakeJobs) -> None:
    """Sessions of different users are never joined."""
    jobs = make_jobs(*((10 * i, 1, 1, 1, user) for i, user in enumerate([1, 2, 1, 2])))
    found = find_dependencies(find_sessions(jobs, EVERY_JOB))
    assert [(0, 1), (2, 3)] == list(
        zip(found.predecessor.tolist(), found.successor.tolist(), strict=True)
    )


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


@given(spans)
def test_graphs_of_users_hold_every_edge(
    make_jobs: MakeJobs, spans: list[tuple[int, int, int]]
) -> None:
    """The graphs of all users together have all sessions and all dependencies."""
    jobs = make_jobs(*((s, run, 1, run, u) for s, run, u in spans))
    work = Work.of(jobs, EVERY_JOB)
    found = work.dependencies
    graphs = [user_graph(jobs, work.sessions, found, user) for user in work.sessions.users.tolist()]
    assert list(range(len(jobs))) == [node for graph in graphs for node in graph]
    edges = zip(
        found.predecessor.tolist(), found.successor.tolist(), found.think.tolist(), strict=True
    )
    assert set(edges) == {edge for graph in graphs for edge in graph.edges(data="think_time")}


@pytest.mark.traces
@pytest.mark.parametrize("definition", ["arrival:60m", "arrival:job", "max:20m"])
def test_graphs_on_kth(kth: Trace, definition: str) -> None:
    """On a real log no edge is redundant, none is missing, and longest paths are right."""
    jobs = jobs_from_trace(kth).jobs
    work = Work.of(jobs, SessionDefinition.parse(definition))
    sessions, found = work.sessions, work.dependencies
    longest = longest_paths(sessions)
    sizes = np.diff(sessions.user_first)
    for place in np.flatnonzero(sizes <= 150):
        graph = user_graph(jobs, sessions, found, int(sessions.users[place]))
        first = sessions.user_first[place]
        start = sessions.start[first : first + sizes[place]]
        end = sessions.end[first : first + sizes[place]]
        before = np.argwhere(end[:, None] <= start[None, :])
        full = nx.DiGraph((first + before).tolist())
        full.add_nodes_from(graph)
        assert set(nx.transitive_reduction(full).edges) == set(graph.edges)
        assert 1 + nx.dag_longest_path_length(graph) == longest[place]
