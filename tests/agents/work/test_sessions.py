"""Sessions, batches and their graph: stories, published counts, literal references."""

import networkx as nx
import numpy as np
import pytest
from hpcrowd import JobTable, SessionDefinition, Work, find_sessions, jobs_from_trace, user_graph
from hpcrowd.errors import QuantityError
from hpcrowd.graphs import longest_paths
from hypothesis import example, given
from hypothesis import strategies as st


def test_users_do_not_share_sessions(make_jobs):
    """Sessions are numbered user by user, jobs of a user go by submission; strangers are named."""
    jobs = make_jobs(*((t, 50, 1, 50, user) for t, user in ((0, 9), (1, -1), (2, 9), (3, 4))))
    sessions = find_sessions(jobs)
    assert [-1, 4, 9] == sessions.users.tolist()
    assert [2, 0, 2, 1] == jobs.session.tolist() == jobs.batch.tolist()
    assert (range(2, 3), [0, 2]) == (sessions.of_user(9), sessions.jobs_of(2).tolist())
    for user in (-2, 5, 10):
        with pytest.raises(QuantityError, match=f"user {user}: .* -1 to 9"):
            sessions.of_user(user)
    with pytest.raises(QuantityError, match="jobs: none in the table"):
        Work.of(JobTable())


@pytest.mark.parametrize(
    ("text", "parts"),
    [("arrival:60m", ("arrival", 3600, None)), ("arrival:0", ("arrival", 0, None)),
     ("arrival:job", ("arrival", None, None)), ("max:90", ("max", 90, None)),
     ("last:20m+cut:1h", ("last", 1200, 3600)), ("max:0s+cut:1d", ("max", 0, 86400))],
)  # fmt: skip
def test_definition_is_read_and_written(text, parts):
    """A definition is read from its short form, and its own text means the same."""
    definition = SessionDefinition.parse(text)
    assert parts == (definition.kind, definition.threshold, definition.cut)
    assert definition == SessionDefinition.parse(str(definition))


@pytest.mark.parametrize(
    "text",
    ["arrival:", "first:20m", "last:job", "arrival:60m+cut:1h", "last:20m+", "last:20m+cut:job",
     "last:20m+1h", "last:-20m"],
)  # fmt: skip
def test_definition_that_does_not_exist(text):
    """What is not a definition is reported in one line."""
    with pytest.raises(QuantityError):
        SessionDefinition.parse(text)


@pytest.mark.traces
@pytest.mark.parametrize(
    ("definition", "sessions", "batches"),
    [("arrival:60m", 10_292, 16_482), ("last:20m", 8_271, 14_831), ("max:20m", 7_340, 12_896)],
)
def test_counts_on_kth(kth, definition, sessions, batches):
    """The log of KTH has the sessions and batches that others found (Zakay and Feitelson 2012)."""
    jobs = jobs_from_trace(kth, runnable=False).jobs
    found = find_sessions(jobs, SessionDefinition.parse(definition))
    assert (sessions, batches) == (len(found), found.batches)


def reference(jobs, definition):
    """Sessions and batches straight from the definitions, one job after the other."""
    session, batch = [-1] * len(jobs), [-1] * len(jobs)
    sessions = batches = -1
    for user in sorted(set(jobs.user.tolist())):
        mine = [row for row in range(len(jobs)) if jobs.user[row] == user]
        mine.sort(key=lambda row: (jobs.recorded_submit[row], row))
        for i, row in enumerate(mine):
            arr, before = int(jobs.recorded_submit[row]), mine[:i]
            ends = [int(jobs.recorded_end[other]) for other in before]
            arrs = [int(jobs.recorded_submit[other]) for other in before]
            known = ends
            if definition.cut is not None:
                known = [min(e, a + definition.cut) for e, a in zip(ends, arrs, strict=True)]
            if not before or definition.threshold is None:
                new_session = True
            elif definition.kind == "arrival":
                new_session = arr - arrs[-1] > definition.threshold
            elif definition.kind == "last":
                new_session = arr - known[-1] > definition.threshold
            else:
                new_session = arr - max(known) > definition.threshold
            sessions += new_session
            if definition.kind == "arrival":
                held = [e for e, o in zip(ends, before, strict=True) if session[o] == sessions]
            else:
                held = ends[-1:] if definition.kind == "last" else ends
            batches += new_session or arr >= max(held)
            session[row], batch[row] = sessions, batches
    return session, batch


@given(
    spans=st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(1, 3)),
        min_size=1,
        max_size=25,
    ),
    definition=st.builds(
        SessionDefinition,
        st.sampled_from(["last", "max"]),
        st.integers(0, 6),
        st.none() | st.integers(0, 12),
    )
    | st.builds(SessionDefinition, st.just("arrival"), st.none() | st.integers(0, 6)),
)
def test_fast_way_equals_the_definitions(make_jobs, spans, definition):
    """Sessions and batches are those of a literal reading of the definitions, job for job."""
    jobs = make_jobs(*((submit, run, 1, run, user) for submit, run, user in spans))
    found = find_sessions(jobs, definition)
    assert reference(jobs, definition) == (jobs.session.tolist(), jobs.batch.tolist())
    assert list(range(len(jobs))) == sorted(found.rows.tolist())
    for session in range(len(found)):
        rows = found.jobs_of(session)
        assert np.flatnonzero(jobs.session == session).tolist() == sorted(rows.tolist())
        assert jobs.recorded_submit[rows].min() == found.start[session]
        assert jobs.recorded_end[rows].max() == found.end[session]
    pieces = np.split(found.rows, found.batch_first[1:-1])
    assert [set(np.flatnonzero(jobs.batch == b)) for b in range(found.batches)] == [
        set(piece) for piece in pieces
    ]


EVERY_JOB = SessionDefinition("arrival", None)


def all_dependencies(sessions):
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
def test_dependencies_are_the_transitive_reduction(make_jobs, spans):
    """The edges are those of depends-on that no path of other edges implies, with think times."""
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


def test_graph_of_a_user_knows_jobs_and_batches(make_jobs):
    """Nodes carry start, end, jobs and batches of a session; edges carry the think time."""
    spans = (0, 100, 7), (0, 5, 8), (50, 10, 7), (300, 1, 7), (9000, 60, 7)
    jobs = make_jobs(*((submit, run, 1, run, user) for submit, run, user in spans))
    work = Work.of(jobs)
    graph = user_graph(jobs, work.sessions, work.dependencies, 7)
    assert {
        0: {"start": 0, "end": 301, "jobs": [0, 2, 3], "batches": [[0, 2], [3]]},
        1: {"start": 9000, "end": 9060, "jobs": [4], "batches": [[4]]},
    } == dict(graph.nodes(data=True))
    assert [(0, 1, {"think_time": 8699})] == list(graph.edges(data=True))
    assert 7 == graph.graph["user"]
