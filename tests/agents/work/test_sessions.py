"""Sessions, batches and their graph: stories, published counts, literal references; chains."""

import hpcrowd as hc
import networkx as nx
import numpy as np
import pytest
from hpcrowd import JobTable, SessionDefinition, Simulation, Work, add_users, replay
from hpcrowd.errors import QuantityError, TraceError
from hpcrowd.graphs import Chains, longest_paths
from hypothesis import example, given, settings
from hypothesis import strategies as st


def test_users_do_not_share_sessions(make_jobs):
    """Sessions are numbered user by user, jobs of a user go by submission; strangers are named."""
    jobs = make_jobs(*((t, 50, 1, 50, user) for t, user in ((0, 9), (1, -1), (2, 9), (3, 4))))
    sessions = hc.find_sessions(jobs)
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
     ("arrival:job", ("arrival", None, None)), ("max:90s", ("max", 90, None)),
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
    jobs = hc.jobs_from_trace(kth, runnable=False).jobs
    found = hc.find_sessions(jobs, SessionDefinition.parse(definition))
    assert (sessions, batches) == (len(found), found.batches)


jobs_of_users = st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(1, 3))
seconds, maybe = st.integers(0, 6), st.none() | st.integers(0, 12)


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
            new_session = not before or definition.threshold is None
            if not new_session:
                since = {"arrival": arrs[-1], "last": known[-1], "max": max(known)}
                new_session = arr - since[definition.kind] > definition.threshold
            sessions += new_session
            if definition.kind == "arrival":
                held = [e for e, o in zip(ends, before, strict=True) if session[o] == sessions]
            else:
                held = ends[-1:] if definition.kind == "last" else ends
            batches += new_session or arr >= max(held)
            session[row], batch[row] = sessions, batches
    return session, batch


@given(
    spans=st.lists(jobs_of_users, min_size=1, max_size=25),
    definition=st.builds(SessionDefinition, st.sampled_from(["last", "max"]), seconds, maybe)
    | st.builds(SessionDefinition, st.just("arrival"), st.none() | seconds),
)
def test_fast_way_equals_the_definitions(make_jobs, spans, definition):
    """Sessions and batches are those of a literal reading of the definitions, job for job."""
    jobs = make_jobs(*((submit, run, 1, run, user) for submit, run, user in spans))
    found = hc.find_sessions(jobs, definition)
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
few_jobs = st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(1, 3))


@given(st.lists(few_jobs, min_size=1, max_size=25))
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
    graphs = [hc.user_graph(jobs, sessions, found, user) for user in sessions.users.tolist()]
    assert list(range(len(jobs))) == [node for graph in graphs for node in graph]
    assert {(*edge, pause) for edge, pause in zip(edges, found.think.tolist(), strict=True)} == {
        edge for graph in graphs for edge in graph.edges(data="think_time")
    }


def test_graph_of_a_user_knows_jobs_and_batches(make_jobs):
    """Nodes carry start, end, jobs and batches of a session; edges carry the think time."""
    spans = (0, 100, 7), (0, 5, 8), (50, 10, 7), (300, 1, 7), (9000, 60, 7)
    jobs = make_jobs(*((submit, run, 1, run, user) for submit, run, user in spans))
    work = Work.of(jobs)
    graph = hc.user_graph(jobs, work.sessions, work.dependencies, 7)
    assert {
        0: {"start": 0, "end": 301, "jobs": [0, 2, 3], "batches": [[0, 2], [3]]},
        1: {"start": 9000, "end": 9060, "jobs": [4], "batches": [[4]]},
    } == dict(graph.nodes(data=True))
    assert [(0, 1, {"think_time": 8699})] == list(graph.edges(data=True))
    assert 7 == graph.graph["user"]


#: Three sessions like those of Figure 4 of Zakay and Feitelson 2015, and a fourth: (submission,
#: run time, processors). Batches f1 f2 f3, s1 s2, t1 t2, u1; s2 still runs when t begins.
FIGURE_4 = [
    (submit, 20_000 if submit == 6000 else 100, 1)
    for submit in (0, 200, 400, 5000, 6000, 10_000, 10_200, 40_000)
]
F1, F2, F3, S1, S2, T1, T2, U1 = range(8)


def batches(jobs, definition="arrival:60m"):
    """The batches of these jobs."""
    return Work.of(jobs, SessionDefinition.parse(definition)).by_batch


def edges(units):
    """Who waits for whom: (predecessor, successor)."""
    found = units.dependencies
    return set(zip(found.predecessor.tolist(), found.successor.tolist(), strict=True))


def test_figure_4(make_jobs):
    """The first batch of a session waits for the last one of each that had ended, others inside."""
    units = batches(make_jobs(*FIGURE_4))
    inside = {(F1, F2), (F2, F3), (S1, S2), (T1, T2)}
    assert inside | {(F3, S1), (F3, T1), (S2, U1), (T2, U1)} == edges(units)
    assert [0, 0, 0, 1, 1, 2, 2, 3] == units.session.tolist()
    assert [0, 1, 1, 0, 1, 0, 1, 0] == units.continues.tolist()
    assert [-1, 100, 100, 4500, 900, 9500, 100, 14_000] == units.think_time.tolist()
    assert [-1, 200, 200, 4600, 1000, 4000, 200, 29_800] == units.inter_arrival.tolist()
    assert [-1, F1, F2, F3, S1, F3, T1, S2] == units.awaited.tolist()
    found = units.dependencies
    assert units.think_time[found.successor].tolist() == found.think.tolist()


def test_batches_of_several_jobs(make_jobs):
    """A batch lasts to its last end; its response is that of the job that ended last."""
    units = batches(make_jobs((0, 100, 1), (10, 20, 1), (50, 50, 1), (500, 5, 1)))
    assert [0, 3, 4] == units.first.tolist()
    times = units.start, units.last, units.end
    assert [[0, 500], [50, 500], [100, 505]] == [column.tolist() for column in times]
    assert [50, 5] == units.response.tolist()
    assert [-1, 450] == units.inter_arrival.tolist()
    assert [-1, 400] == units.think_time.tolist()


@given(
    rows=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(1, 2)), min_size=1),
    definition=st.sampled_from(
        ["arrival:5s", "arrival:job", "last:5s", "max:5s", "last:2s+cut:3s", "max:0s+cut:3s"]
    ),
)
def test_dependencies_are_definition_12(make_jobs, rows, definition):
    """With all that follows from them, the edges are those of Definition 12, no more or less."""
    jobs = make_jobs(*((submit, run, 1, run, user) for submit, run, user in sorted(rows)))
    units = batches(jobs, definition)
    found = np.zeros((len(units), len(units)), bool)
    for before, after in edges(units):
        found[before, after] = True
    expected = definition_12(units, overlap=definition.startswith("last"))
    assert np.array_equal(closure(expected), closure(found))
    for unit, before in enumerate(found.T):
        think = units.start[unit] - units.end[before].max() if before.any() else -1
        assert think == units.think_time[unit] >= -1
    assert np.all(units.inter_arrival[units.continues == 1] >= 0)


def definition_12(units, overlap):
    """Who depends on whom by Definition 12, pair by pair; [predecessor, successor]."""
    start, end, session = units.start.tolist(), units.end.tolist(), units.session.tolist()
    depends = np.zeros((len(units), len(units)), bool)
    for i in range(len(units)):
        for j in range(i):
            if units.user[i] != units.user[j]:
                continue
            if session[i] == session[j]:
                depends[j, i] = end[j] <= start[i] if overlap else j == i - 1
            elif session[i - 1] != session[i] and (overlap or session[j + 1] != session[j]):
                members = [b for b in range(len(units)) if session[b] == session[j]]
                depends[j, i] = max(end[b] for b in members) <= start[i]
    return depends


def closure(edges):
    """The relation with all that follows from it."""
    reach = edges.copy()
    for middle in range(len(reach)):
        reach |= np.outer(reach[:, middle], reach[middle])
    return reach


PRECEDING = SessionDefinition("preceding", None)


def run(jobs, follows, processors, *, plain=False):
    """Run jobs that follow each other at once, under EASY; return a copy after the run."""
    jobs = jobs.copy()
    work = Work.of(jobs, PRECEDING, Chains.at_once(follows))
    model = Simulation(jobs, processors, "easy", plain=plain)
    add_users(model, work, "think-time")
    model.run()
    return jobs


@given(
    series=st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 5), st.integers(0, 4), st.integers(1, 4)),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=30)
def test_engines_agree(make_jobs, series):
    """Compiled and plain engine give one schedule, also with jobs of no length and jobs that are
    rejected, which end at once."""
    rows, follows = [], []
    for user, (at, repetitions, length, width) in enumerate(series, 1):
        for place in range(repetitions):
            follows.append(len(rows) - 1 if place else -1)
            rows.append((at + place * length, length, width, length, user))
    jobs = make_jobs(*rows)
    plain = run(jobs, follows, 3, plain=True)
    found = run(jobs, follows, 3)
    assert plain.submit.tolist() == found.submit.tolist()
    assert plain.end.tolist() == found.end.tolist()
    over = np.where(plain.end >= 0, plain.end, plain.submit)
    for row, before in enumerate(follows):
        if before >= 0:
            assert over[before] == plain.submit[row]


def job(submit, user=1, run=9, **more):
    """A job of a trace, on one processor."""
    return {"submit": submit, "wait": 0, "run": run, "user": user, "requested_processors": 1} | more


def test_preceding_jobs_of_a_trace(make_trace):
    """A job comes its think time after the one it names, if that can be waited for."""
    trace = make_trace(
        job(0, run=100), job(10, run=50), job(130, preceding=2, think_time=30),
        job(300, preceding=1), header="; MaxProcs: 1",
    )  # fmt: skip
    run = replay(trace, sessions="preceding", scheduler="fcfs")
    assert [0, 10, 180, 300] == run.jobs.submit.tolist()
    assert "no think time: the recorded time since the preceding job used" in run.reading.repaired
    trace = make_trace(
        job(0, preceding=99), job(1, 2, preceding=1), job(2, 2, preceding=4), job(3, 2),
        header="; MaxProcs: 9",
    )  # fmt: skip
    run = replay(trace, sessions="preceding")
    assert [0, 1, 2, 3] == run.jobs.submit.tolist()
    for reason in ("not among the jobs", "of another user", "submitted later"):
        assert 1 == sum(count for name, count in run.reading.repaired.items() if reason in name)
    alone = make_trace(job(0, requested_time=9, preceding=7), header="; MaxProcs: 9")
    with pytest.raises(TraceError, match="1 job repaired: preceding job not among"):
        replay(alone, sessions="preceding", strict=True)
    with pytest.raises(TraceError, match=r"no job names a preceding one \(field 17\); separate"):
        replay(make_trace(job(0), header="; MaxProcs: 9"), sessions="preceding")
    assert SessionDefinition.parse("preceding") == SessionDefinition.parse(str(PRECEDING))


EARLIER = "it must be an earlier job of the same user"
WRONG = ([0, -1, -1], [1, -1, -1], [-1, 7, -1], [-1, -1, 0], [-1, -7, -1])


@pytest.mark.parametrize(
    ("follows", "sessions", "message"),
    [
        (None, PRECEDING, "the preceding jobs are not known here"),
        ([-1, 0, -1], None, "sessions None: chains need the definition preceding"),
        *((wrong, PRECEDING, EARLIER) for wrong in WRONG),
        ([-1, 0], PRECEDING, "2 entries and 2 think times for 3 jobs"),
    ],
)
def test_what_are_no_chains(make_jobs, follows, sessions, message):
    """Jobs follow earlier ones of their user; batches are not known."""
    jobs = make_jobs((0, 5, 1), (5, 5, 1), (7, 5, 1, 5, 2))
    with pytest.raises(QuantityError, match=message):
        Work.of(jobs, sessions, follows and Chains.at_once(np.array(follows)))
    work = Work.of(jobs, PRECEDING, Chains.at_once(np.array([-1, 0, -1])))
    with pytest.raises(QuantityError, match="there are no batches; choose users think-time"):
        add_users(Simulation(jobs, 4), work, "adjusted")


def test_some_of_the_jobs_keep_their_chains():
    """Rows are counted again; who followed a job that is left out follows none."""
    chains = Chains(np.array([-1, 0, 1, 2]), np.array([0, 5, 6, 7]))
    part = chains.take(np.array([0, 2, 3]))
    assert ([-1, -1, 1], [0, 6, 7]) == (part.follows.tolist(), part.think.tolist())
