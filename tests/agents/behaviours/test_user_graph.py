"""The graphs that users hold: what they know, and how changes of them change the run."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hpcrowd import ReplayUser, SessionDefinition, Simulation, State, Work, add_users
from hpcrowd.agents.behaviours.decisions import What
from hpcrowd.analysis.views.moment import Moment
from hpcrowd.analysis.views.units import own_units
from hpcrowd.behaviours import BatchOrder, Composed, DecisionLog, SessionGraph
from hpcrowd.environment.errors import SimulationError
from hpcrowd.reactions import Delay, During
from hpcrowd.scenarios.kinds.replay import ReplayConfig

from tests.support.behaviours import random_jobs, refused, renounced
from tests.support.populations import small_log
from tests.support.simulations import both, simulation_of

SESSIONS = SessionDefinition("arrival", 60)


def start(jobs, behaviour="think-time", **options):
    """A machine of 100 processors and the first user."""
    model = simulation_of(jobs, 100, **options)
    return model, add_users(model, Work.of(jobs, SESSIONS), behaviour)[0]


def states(user):
    """Return the state of each unit in the graph of a user."""
    return [state for _, state in user.graph.nodes(data="state")]


@pytest.fixture
def jobs(make_jobs):
    """Three sessions of one user, each after the one before: 0 to 100, 300 to 400, 700 to 800 s."""
    return make_jobs((0, 100, 1), (300, 100, 1), (310, 10, 1), (700, 100, 1))


def test_what_a_graph_knows(jobs):
    """Recorded times, jobs and edges; states follow the run. It is the same object each time."""
    model, user = start(jobs)
    graph = user.graph
    assert graph is user.graph
    assert {(0, 1): 200, (1, 2): 300} == nx.get_edge_attributes(graph, "think_time")
    assert {(0, 1): "ended", (1, 2): "ended"} == nx.get_edge_attributes(graph, "reason")
    assert [1, 2] == graph.nodes[1]["jobs"]
    assert ["free", "waits", "waits"] == states(user)
    model.run(until=50)
    assert ["running", "waits", "waits"] == states(user)
    model.run(until=200)
    expected = {"start": 0, "jobs": [0], "batches": [[0]], "end": 100, "state": "finished"}
    expected |= {"waits_for": [], "submitted": 0, "over": 100}
    assert expected == dict(graph.nodes[0])
    planned = [graph.nodes[1][key] for key in ("state", "submitted", "waits_for")]
    assert ["free", 300, []] == planned
    assert [1] == graph.nodes[2]["waits_for"]
    model.run(until=300)  # the arrivals of this second have not happened
    assert "free" == graph.nodes[1]["state"]
    assert user.changed_graph is None
    jobs.processors[3] = 100  # a unit that was submitted and has no processors is queued
    other = jobs.append(1, user=2, processors=1, run_time=500, requested_time=500)
    model.cluster.submit(other, 650)
    model.run(until=720)
    assert "queued" == states(user)[2]


def think(before, after, time):
    """Return the change of a think time."""
    return lambda graph: graph.edges[before, after].update(think_time=time)


def do(name, *what, **times):
    """Return the change that a function of the graph makes."""
    return lambda graph: getattr(graph, name)(*what, **times)


LONG = {0: 1000, 1: 1000}

#: Run times of some jobs, what is changed at which seconds, and the submissions of all jobs.
STORIES: dict[str, tuple[dict[int, int], list[tuple[int, Callable[[Any], Any]]], list[int]]] = {
    # A session comes at the end of the one before and the new think time, or now.
    "before the run": ({}, [(0, think(0, 1, 20))], [0, 120, 130, 520]),
    "in the second of the end": ({}, [(100, think(0, 1, 20))], [0, 120, 130, 520]),
    "after the end": ({}, [(110, think(0, 1, 20))], [0, 120, 130, 520]),
    "now": ({}, [(110, think(0, 1, 10))], [0, 110, 120, 510]),
    "that has passed": ({}, [(150, think(0, 1, 20))], [0, 150, 160, 550]),
    "in the last second": ({}, [(299, think(0, 1, 900))], [0, 1000, 1010, 1400]),
    # The arrivals of this second have not happened.
    "in its second": ({}, [(300, think(0, 1, 900))], [0, 1000, 1010, 1400]),
    "twice": ({}, [(0, think(0, 1, 20)), (110, think(0, 1, 5)), (110, think(1, 2, 1))],
              [0, 110, 120, 211]),
    # Who waits for nothing comes at its recorded second, or now.
    "removed early": (LONG, [(50, do("remove_edge", 0, 1))], [0, 300, 310, 1600]),
    "removed late": (LONG, [(390, do("remove_edge", 0, 1))], [0, 390, 400, 1690]),
    "another start": ({}, [(0, do("remove_edge", 0, 1)), (50, do("add_edge", 0, 2, think_time=900)),
                           (50, lambda graph: graph.nodes[1].update(start=150)),
                           (200, do("remove_edge", 1, 2))], [0, 150, 160, 1000]),
    # Of two edges the latest think time decides; one that is left counts from its end.
    "added": ({}, [(450, do("add_edge", 0, 2, think_time=2000))], [0, 300, 310, 2100]),
    "one is left": ({1: 5000}, [(150, do("add_edge", 0, 2, think_time=1000)),
                               (500, do("remove_edge", 1, 2))], [0, 300, 310, 1100]),
    # A new edge to a session that is to come lets it wait again, without a think time.
    "held back": ({}, [(0, do("remove_edge", 1, 2)), (50, do("add_edge", 1, 2))],
                  [0, 300, 310, 400]),
    # Jobs of who is left out are renounced; who waited for it waits for what it waited for.
    "left out": ({}, [(0, do("remove_node", 1))], [0, -1, -1, 700]),
}  # fmt: skip


@both
@pytest.mark.parametrize("story", STORIES)
def test_changes_of_edges(jobs, plain, story):
    """When sessions come whose edges are changed while they wait, or are planned already."""
    runs, changes, expected = STORIES[story]
    for row, run in runs.items():
        jobs.run_time[row] = run
    log = DecisionLog()
    model = Simulation(jobs, 100, plain=plain)
    user = add_users(model, Work.of(jobs, SESSIONS), log=log)[0]
    for second, change in changes:
        model.run(until=second)
        change(user.graph)
    model.run()
    assert expected == jobs.submit.tolist()
    sent = [expected[row] for row in (0, 1, 3) if expected[row] >= 0]
    assert (len(sent), len(sent)) == (user.submitted, user.finished)
    assert [row for row in range(4) if expected[row] < 0] == renounced(jobs)
    # A submission that was planned and moved is in the log as it happened.
    noted = log.columns()
    submitted = noted["time"][noted["what"] == What.SUBMITTED]
    assert sorted(sent) == submitted.tolist()


@both
def test_a_session_of_ones_own(jobs, plain):
    """It takes part like all others."""
    model, user = start(jobs, plain=plain)
    model.run(until=150)
    rows = jobs.append(2, user=1, processors=50, run_time=[30, 60], requested_time=60)
    unit = user.graph.add_unit(rows, note="mine")
    user.graph.add_edge(0, unit, think_time=70)
    user.graph.add_edge(unit, 2, think_time=1000)
    assert "free" == user.graph.nodes[unit]["state"]
    model.run()
    assert [170, 170] == jobs.submit[rows].tolist()
    assert 230 + 1000 == jobs.submit[3]
    assert ("mine", 230) == (user.graph.nodes[unit]["note"], user.graph.nodes[unit]["over"])
    assert (4, 4) == (user.submitted, user.finished)
    shown = own_units(Moment.of_model(model), 1)
    assert [0, 1, 2, unit] == shown.numbers.tolist()
    edges = zip(shown.before.tolist(), shown.after.tolist(), strict=True)
    assert {(0, 1), (1, 2), (0, 3), (3, 2)} == set(edges)


def test_a_session_of_ones_own_reacts_by_chance(jobs):
    """Its jobs get their draws when they come; those of the others stay as they are."""
    late = Delay(During([(0, 10_000)]), by=5, probability=0.5)
    behaviour = lambda work: Composed(SessionGraph(work), reactions=[late])  # noqa: E731
    model, user = start(jobs, behaviour)
    rows = jobs.append(200, user=1, processors=1, run_time=1, requested_time=1)
    for row in rows:
        user.graph.add_edge(2, user.graph.add_unit([row]))
    model.run()
    assert 60 < len({note.row for note in user.notes} & set(rows.tolist())) < 140


def test_what_cannot_be_changed(make_jobs):
    """Each mistake is one line, and changes nothing."""
    other = (0, 10, 1, 9, 7), (500, 10, 1, 9, 7)
    model, user = start(make_jobs((0, 100, 1), (300, 100, 1), (700, 100, 1), *other))
    graph: Any = user.graph
    edge = graph.edges[0, 1]
    for change, told in (
        (lambda: graph.add_edge(2, 1), "edge 2 -> 1: closes the cycle 2 -> 1 -> 2"),
        (lambda: graph.add_edge(1, 1), "edge 1 -> 1: closes the cycle"),
        (lambda: graph.add_edge(3, 2), "edge 3 -> 2: unit 3 is of user 7; users wait for their"),
        (lambda: graph.add_edge(0, 99), "edge 0 -> 99: user 1 has no unit 99"),
        (lambda: edge.update(think_time=-5), "think_time of edge 0 -> 1: -5: must be a whole"),
        (lambda: graph.add_edge(0, 2, think_time=1.5), "edge 0 -> 2: 1.5: must be a whole"),
        (lambda: graph.add_node("mine", jobs=[1]), "unit 'mine' of user 1: there is none; "),
        (lambda: graph.nodes[0].__setitem__("state", "over"), "state of unit 0: what the run"),
        (lambda: edge.__delitem__("think_time"), "think_time of edge 0 -> 1: all that it waits"),
        (lambda: graph.add_unit([1]), "job 2 (row 1): belongs to another unit"),
    ):
        refused(change, told)
    model.run(until=350)
    begun = "unit 1 of user 1: submitted at 300 s, and it is 350 s; only what is still to come"
    for change, told in (
        (lambda: graph.add_edge(0, 1, think_time=5), begun),
        (lambda: graph.remove_edge(0, 1), begun),
        (lambda: edge.update(think_time=7), begun),
        (lambda: graph.remove_node(0), "unit 0 of user 1: submitted at 0 s"),
    ):
        refused(change, told, SimulationError)
    assert (None, False, True) == (user.changed_graph, user.edited, graph.has_edge(0, 1))
    _, rigid = start(make_jobs((0, 100, 1), (300, 100, 1)), "rigid")
    assert (2, 0) == (len(rigid.graph), rigid.graph.number_of_edges())
    refused(lambda: rigid.graph.add_edge(0, 1), "does not go by a graph")


def test_copies_are_ordinary_graphs(jobs):
    """To change them changes nothing; algorithms of networkx work on both."""
    _, user = start(jobs)
    graph = user.graph
    for other in (graph.copy(), nx.DiGraph(graph), graph.reverse(), graph.to_undirected()):
        other.add_edge("a", "b")
        assert 3 == len(graph)
    assert 200 == graph.copy().edges[0, 1]["think_time"]
    assert [0, 1, 2] == list(nx.topological_sort(graph))
    assert 500 == nx.dag_longest_path_length(graph.subgraph([0, 1, 2]), "think_time")
    assert {"nodes", "links"} <= nx.node_link_data(graph, edges="links").keys()
    user.graph.nodes[0]["colour"] = "red"
    graph.edges[0, 1]["think_time"] = 200  # as it is
    assert user.changed_graph is None


@both
def test_batches_keep_their_order(make_jobs, plain):
    """Edges of batches know both times; a batch that no longer waits for an end follows."""
    jobs = make_jobs((0, 100, 1), (70, 100, 1), (400, 100, 1))
    behaviour = lambda work: Composed(BatchOrder(work))  # noqa: E731
    model, user = start(jobs, behaviour, plain=plain)
    graph = user.graph
    found = {(one, two): dict(data) for one, two, data in graph.edges(data=True)}
    assert found == {
        (0, 1): {"inter_arrival": 70, "reason": "follows"},
        (0, 2): {"think_time": 230, "reason": "ended"},
        (1, 2): {"think_time": 230, "inter_arrival": 330, "reason": "ended and follows"},
    }
    model.run(until=20)
    graph.edges[1, 2]["inter_arrival"] = 30
    del graph.edges[1, 2]["think_time"]
    graph.remove_edge(0, 2)
    model.run()
    assert [0, 70, 100] == jobs.submit.tolist()


def test_reactions_see_what_is_released_again(jobs):
    """An alarm of a session that is due at another second is moved."""
    delay = Delay(During([(120, 260)]), by=1000)
    behaviour = lambda work: Composed(SessionGraph(work), reactions=[delay])  # noqa: E731
    model, user = start(jobs, behaviour)
    model.run(until=150)
    user.graph.edges[0, 1]["think_time"] = 100  # due in the period, at 200 s
    model.run(until=180)
    user.graph.edges[0, 1]["think_time"] = 170
    user.graph.edges[1, 2]["think_time"] = 7
    model.run()
    assert [0, 270, 280, 377] == jobs.submit.tolist()
    assert (3, 3) == (user.submitted, user.finished)


@pytest.mark.parametrize("users", ["think-time", "adjusted", "think-time-windows"])
@pytest.mark.parametrize("moment", [0, 40_000])
def test_graphs_in_charge_change_nothing_by_themselves(make_trace, users, moment):
    """A user whose graph was changed and changed back goes on as if nothing had happened."""
    log = small_log(make_trace)
    config = ReplayConfig(users=users)
    untouched, touched = config.stage(log), config.stage(log)
    untouched.model.run()
    touched.model.run(until=moment)
    for user in touched.users:
        for _, after, times in list(user.graph.edges(data=True)):
            for key in ("think_time", "inter_arrival"):
                if key in times and user.graph.nodes[after]["state"] == "waits":
                    times[key] += 1
                    times[key] -= 1
    touched.model.run()
    changed = [user.number for user in touched.users if user.changed_graph is not None]
    assert len(changed) > 1
    assert changed == sorted(touched.finish().configuration["changed_graphs"])
    assert np.array_equal(untouched.model.jobs.matrix, touched.model.jobs.matrix)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_forks_have_graphs_of_their_own(jobs, way):
    """A change in a copy of a run stays there."""
    model, user = start(jobs)
    user.graph.edges[0, 1]["think_time"] = 50
    model.run(until=120)
    other = way(model)
    twin = next(agent for agent in other.agents if isinstance(agent, ReplayUser))
    twin.graph.edges[1, 2]["think_time"] = 1
    for one in (model, other):
        one.run()
    assert [0, 150, 160, 550] == jobs.submit.tolist()
    assert [0, 150, 160, 251] == other.jobs.submit.tolist()


def test_removed_users_go_by_no_graph(jobs):
    """A change that was not yet carried out is none then."""
    model, user = start(jobs)
    model.run(until=50)
    user.graph.edges[0, 1]["think_time"] = 1
    user.remove()
    model.run()
    assert [0, -1, -1, -1] == jobs.submit.tolist()


def test_users_with_made_up_work_show_theirs(make_trace):
    """Their graph grows with the run, and is read only."""
    staged = ReplayConfig(users="shmueli-feitelson").stage(small_log(make_trace))
    staged.model.run()
    user = max(staged.users, key=lambda one: one.submitted)
    assert len(user.graph) == user.submitted > 1
    assert user.graph is user.graph
    assert nx.is_frozen(user.graph)
    assert user.graph.number_of_edges() == len(user.after)


def random_run(seed, plain):
    """Users who change their graphs at random seconds; return the table, and check the rules."""
    draw = np.random.default_rng(seed)
    jobs = random_jobs(draw, 2000, users=2)
    model = Simulation(jobs, 4, plain=plain)
    behaviour = [SessionGraph, BatchOrder][seed % 2]
    users = add_users(model, Work.of(jobs, SESSIONS), lambda work: Composed(behaviour(work)))
    for second in [0, *np.sort(draw.integers(0, 2500, 6)).tolist()]:
        if second < model.time:
            continue
        model.run(until=second)
        for user in users:
            change(user.graph, model, draw)
    model.run()
    for user in users:
        graph = user.graph
        assert user.submitted == user.finished == len(graph)
        for before, after, times in graph.edges(data=True):
            begin, over = graph.nodes[after]["submitted"], graph.nodes[before]["over"]
            if "think_time" in times:  # a batch pauses after what came last, maybe a submission
                assert begin >= over + (times["think_time"] if seed % 2 == 0 else 0)
            if "inter_arrival" in times:
                assert begin >= jobs.submit[graph.rows_of(before)].max()
    assert jobs.count(State.UNFINISHED) == 0
    return jobs.matrix[:, : len(jobs)].tolist()


def change(graph, model, draw):
    """Change something about what is still to come."""
    free = [unit for unit, state in graph.nodes(data="state") if state in ("waits", "free")]
    for _ in range(int(draw.integers(0, 4)) if free else 0):
        unit, other = int(draw.choice(free)), int(draw.choice(list(graph)))
        match int(draw.integers(0, 6)):
            case 0 if unit in graph and unit != other and not nx.has_path(graph, unit, other):
                graph.add_edge(other, unit, think_time=int(draw.integers(0, 300)))
            case 1 if unit in graph:
                graph.remove_edges_from(list(graph.in_edges(unit))[:1])
            case 2 if unit in graph:
                for *_, times in graph.in_edges(unit, data=True):
                    key = "think_time" if "think_time" in times else "inter_arrival"
                    times[key] = int(draw.integers(0, 300))
            case 3 if len(free) > 2 and unit in graph:
                graph.remove_node(unit)
            case 4 if unit in graph:
                graph.nodes[unit]["start"] = int(draw.integers(0, 3000))
            case 5 if unit in graph:
                user = graph.graph["user"]
                rows = model.jobs.append(1, user=user, processors=2, run_time=50, requested_time=60)
                graph.add_edge(graph.add_unit(rows), unit, think_time=10)


@pytest.mark.parametrize(
    "seeds",
    [range(20), range(20, 40), pytest.param(range(1000, 1200), marks=pytest.mark.slow)],
    ids=str,
)
def test_changes_at_random(seeds):
    """Whatever changes when: every session comes once, not before it may, in both engines alike."""
    for seed in seeds:
        assert random_run(seed, False) == random_run(seed, True), seed
