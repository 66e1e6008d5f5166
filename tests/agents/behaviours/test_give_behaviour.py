"""Users who are given another behaviour in the middle of a run."""

from functools import partial
from typing import Any

import hpcrowd as hc
import numpy as np
import pytest
from hpcrowd import Recipe, SessionDefinition, Simulation, Work, add_users, give_behaviour
from hpcrowd.agents.behaviours.composed import Composed, Rigid, ThinkTime
from hpcrowd.agents.behaviours.decisions import DecisionLog, What
from hpcrowd.behaviours import BatchOrder, LinearThink, OpenOrder, Patience, SessionGraph
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.holds.held import hold
from hpcrowd.environment.holds.rules import Condition, Parent, Rules
from hpcrowd.environment.jobs import Column
from hpcrowd.grids import Grid
from hpcrowd.reactions import Delay, During, Switch
from hpcrowd.scenarios.kinds.replay import ReplayConfig

from tests.agents.behaviours.test_user_graph import SESSIONS, start
from tests.support.behaviours import random_jobs, refused
from tests.support.populations import small_log
from tests.support.simulations import both, simulation_of

DELAYED = Recipe(reactions=(Delay(During([(320, 400)]), by=1000),))


@pytest.fixture
def jobs(make_jobs):
    """Sessions at 0, 300 (and 310) and 700 s, whose first job takes 50 s longer than recorded."""
    jobs = make_jobs((0, 100, 1), (300, 100, 1), (310, 10, 1), (700, 100, 1))
    jobs.run_time[0] = 150
    return jobs


@both
@pytest.mark.parametrize(
    ("behaviours", "moment", "expected"),
    [
        # Planned submissions are taken back, and come a think time after what they wait for.
        (("rigid", "think-time"), 50, [0, 350, 360, 750]),
        (("rigid", "think-time"), 200, [0, 350, 360, 750]),  # after the end of the first session
        (("rigid", "think-time"), 305, [0, 300, 310, 700]),  # the second has begun, and goes on
        # What is still to come is submitted at its recorded second, or now.
        (("think-time", "rigid"), 100, [0, 300, 310, 700]),
        (("think-time", "rigid"), 310, [0, 310, 310, 700]),  # 300 s has passed
        (("think-time", "rigid"), 355, [0, 350, 355, 700]),  # the second job was still to come
        (("think-time", "rigid"), 720, [0, 350, 360, 720]),
        # Reactions are given and taken.
        ((DELAYED, "think-time"), 200, [0, 350, 360, 750]),
        (("rigid", DELAYED), 200, [0, 1350, 1360, 1750]),
    ],
)
def test_users_begin_and_stop_to_wait(jobs, plain, behaviours, moment, expected):
    """From the second at which a behaviour is given, its rules decide what is still to come."""
    log = DecisionLog()
    model = Simulation(jobs, 100, plain=plain)
    user = add_users(model, Work.of(jobs, SESSIONS), behaviours[0], log=log)[0]
    model.run(until=moment)
    assert give_behaviour(model, user.number, behaviours[1]) is user.behaviour
    assert isinstance(user.behaviour, Rigid) == (behaviours[1] == "rigid")
    model.run()
    assert expected == jobs.submit.tolist()
    assert 4 == jobs.count(hc.State.COMPLETED)
    if behaviours[1] != "rigid":
        assert (3, 3) == (user.submitted, user.finished)
    # Submissions that were planned and taken back are not in the log.
    noted = log.columns()
    submitted = noted["time"][noted["what"] == What.SUBMITTED]
    assert [expected[0], expected[1], expected[3]] == submitted.tolist()


@both
def test_sessions_become_batches(make_jobs, plain):
    """The batches of a session that has begun wait for each other from now on, and back again."""
    # One session: batches at 0 and 150 s, the second 50 s after the end of the first; another.
    jobs = make_jobs((0, 100, 1), (150, 100, 1), (2000, 100, 1))
    jobs.run_time[0] = 500
    results = []
    for moments in ((), (50,), (50, 520)):
        table = jobs.copy()
        model = Simulation(table, 100, plain=plain)
        work = Work.of(table, SessionDefinition("arrival", 600))
        user = add_users(model, work, "think-time")[0]
        for moment, name in zip(moments, ("adjusted", "think-time"), strict=False):
            model.run(until=moment)
            give_behaviour(model, user, name)
        model.run()
        assert user.submitted == user.finished == len(user.graph)
        results.append(table.submit.tolist())
    # Sessions: 1750 s after the end of the first session. The last one is regrouped at 520 s: the
    # session has begun, and its second job comes as recorded after the first, which is now.
    assert [[0, 150, 2250], [0, 550, 2400], [0, 520, 2370]] == results


@both
def test_changes_of_the_graph_count_on(jobs, plain):
    """The graph is the same object, with the edges of the new behaviour; added units stay."""
    model, user = start(jobs.copy(), plain=plain)
    graph = user.graph
    graph.edges[1, 2]["think_time"] = 20
    model.run(until=50)
    give_behaviour(model, user, lambda work: Composed(SessionGraph(work)))
    graph.edges[0, 1]["think_time"] = 10
    model.run()
    assert [0, 160, 170, 280] == model.jobs.submit.tolist()
    model, user = start(jobs, "rigid", plain=plain)
    graph = user.graph
    model.run(until=50)
    give_behaviour(model, user, "think-time")
    assert [(0, 1), (1, 2)] == list(graph.edges)
    job = {"user": 1, "processors": 1, "run_time": 30, "requested_time": 60}
    units = [graph.add_unit(jobs.append(1, **job), **at) for at in ({}, {"start": 900})]
    graph.add_edge(0, units[0], think_time=50)
    graph.add_edge(units[0], 2, think_time=1000)
    graph.add_edge(1, units[1], think_time=5000)
    model.run(until=500)
    assert graph is user.graph
    give_behaviour(model, user, "rigid")  # added units wait for nothing then
    model.run(until=600)
    give_behaviour(model, user, "adjusted")  # 2 waits for 1 as recorded; added units for nothing
    model.run()
    assert [0, 350, 360, 750, 200, 900] == jobs.submit.tolist()
    assert (6, 5) == (jobs.count(hc.State.COMPLETED), user.submitted)


@both
def test_users_of_other_clusters(make_jobs, plain):
    """A job taken back and submitted again runs as long as if it had been submitted once."""
    jobs = make_jobs((0, 100, 1), (500, 100, 1))
    model = simulation_of(jobs, 10, others={"b": hc.ClusterSpec(10, speed=2.0)}, plain=plain)
    user = add_users(model, Work.of(jobs, SESSIONS), "rigid", sites=["b"])[0]
    model.run(until=100)
    with pytest.raises(QuantityError, match=r"it switches jobs .* already those of b, whose speed"):
        give_behaviour(model, user, Recipe(reactions=(Switch(During([(0, 9)]), to="home"),)))
    give_behaviour(model, user, "think-time")
    model.run()
    assert ([0, 450], [50, 500]) == (jobs.submit.tolist(), jobs.end.tolist())
    # Jobs that the broker of a grid does not have yet are taken back from it.
    how = {"others": {"b": hc.ClusterSpec(10)}, "grid": Grid("worst-fit")}
    model = simulation_of(jobs, 10, plain=plain, **how)
    user = add_users(model, Work.of(jobs, SESSIONS), "rigid", sites=["grid"])[0]
    model.run(until=100)
    give_behaviour(model, user, "think-time")
    model.run()
    assert [0, int(jobs.end[0]) + 400] == jobs.submit.tolist()


@both
def test_patience_counts_from_the_submission(make_jobs, plain):
    """A job that already waits longer than the new patience leaves the queue now."""
    jobs = make_jobs((0, 1000, 100), (10, 100, 100, 100, 2), (30, 100, 100, 100, 3))
    model = Simulation(jobs, 100, plain=plain)
    users = add_users(model, Work.of(jobs, SESSIONS))
    model.run(until=50)
    for user in users[1:]:
        give_behaviour(model, user, Recipe(patience=Patience(wait=30)))
    model.run()
    assert ([50, 60], 2) == (jobs.end[1:].tolist(), jobs.count(hc.State.CANCELLED))


@both
def test_held_jobs_are_held_on(make_jobs, plain):
    """Dependencies between jobs stay, whoever submits them by which rules."""
    jobs = make_jobs((0, 100, 1), (500, 50, 1), (520, 50, 1), (900, 10, 1))
    jobs.run_time[0] = 150
    model = Simulation(jobs, 4, plain=plain)
    parents = {2: (Parent(1, Condition.OK),), 3: (Parent(0, Condition.OK),)}
    hold(model, Rules(np.zeros(4, np.int64), np.zeros(4, bool), parents=parents))
    user = add_users(model, Work.of(jobs, SESSIONS), "rigid")[0]
    for second, name in ((50, "think-time"), (560, "adjusted"), (580, "rigid"), (640, "fluid")):
        model.run(until=second)
        give_behaviour(model, user, name)
    model.run(until=700)
    give_behaviour(model, user, "think-time")
    model.run()
    assert [0, 550, 570] == jobs.submit[:3].tolist()
    assert [0, 550, 600] == jobs.enqueued[:3].tolist()  # after the end of the other one
    assert 650 + 330 == jobs.submit[3]
    assert user.submitted == user.finished == len(user.graph)


class Alarmed(ThinkTime):
    """Looks at its jobs at second 500."""

    def begin(self, user):
        """Set the alarm."""
        super().begin(user)
        user.model.call_at(500, self.look, user)

    def look(self, user):
        """Look."""


def test_what_cannot_be_given(jobs, make_trace):
    """Each refusal is one line with the cure, and changes nothing."""
    model, user = start(jobs)
    model.run(until=50)
    before = user.behaviour
    of_others = ThinkTime(Work.of(jobs.copy(), SESSIONS))
    user.graph.edges[1, 2]["think_time"] = 20
    staged = ReplayConfig(users="generative").stage(small_log(make_trace))
    other = Simulation(jobs.copy(), 5)
    for run, who, behaviour, told in (
        (model, user, "rigit", "users 'rigit': not known; did you mean rigid"),
        (model, user, "generative", "its users make up their work, and this one replays a record"),
        (model, user, Alarmed, "Alarmed begins with the run, as only its own begin"),
        (model, user, lambda work: Composed(OpenOrder(work)), "OpenOrder has no graph to go on by"),
        (model, user, of_others, "made from the work of other jobs"),
        (model, user, "adjusted", "its graph was changed, "),
        (model, 99, "rigid", "user 99: not in this run"),
        (other, user, "rigid", "user 1: of another simulation"),
        (staged.model, staged.users[0], "rigid", "a SiteUser, who makes up the work as it goes"),
    ):
        refused(partial(give_behaviour, run, who, behaviour), told)
    assert ([], before) == (user.given, user.behaviour)
    give_behaviour(model, user, "rigid")  # waits for nothing, whatever its graph was
    user.remove()
    refused(lambda: give_behaviour(model, user, "think-time"), "user 1: the user has left the run")
    # A behaviour with an alarm of its own stays until it has rung.
    model, user = start(jobs.copy(), Alarmed)
    model.run(until=50)
    refused(lambda: give_behaviour(model, user, "rigid"), "Alarmed has set an alarm for 500 s")
    model.run(until=501)
    give_behaviour(model, user, "rigid")


def schedule(model):
    """The columns of a table that say what happened when."""
    columns = [Column.SUBMIT, Column.START, Column.END, Column.STATE, Column.CLUSTER]
    return model.jobs.matrix[columns, : len(model.jobs)].tolist()


EQUAL: dict[str, Any] = {
    "rigid": lambda work: Rigid(),
    "think-time": Recipe("sessions"),
    "think-time-windows": Recipe("sessions", "recorded", "fitted"),
    "adjusted": Recipe("batches"),
    "linear": Recipe("batches", LinearThink(0.5, 300)),
    "linear-windows": Recipe("batches", LinearThink(0.5, 300), "fitted"),
}


NAMES = ("rigid", "think-time-windows", "distribution", "fluid")


@pytest.mark.parametrize("users", [*EQUAL, *(f"the same {name}" for name in NAMES)])
@pytest.mark.parametrize("moment", [0, 40_000, 90_000])
def test_an_equal_behaviour_changes_nothing(make_trace, users, moment):
    """A new object with the same rules takes over where the old one was, and draws as it would."""
    maker = EQUAL.get(users, users.removeprefix("the same "))
    config = ReplayConfig(users=maker)
    untouched, touched = (config.stage(small_log(make_trace)) for _ in range(2))
    touched.model.run(until=moment)
    for user in touched.users:
        give_behaviour(touched.model, user, maker)
    untouched.model.run()
    touched.model.run()
    assert schedule(untouched.model) == schedule(touched.model)
    told = touched.finish().configuration
    given = [str(user.number) for user in touched.users if users in EQUAL]
    assert given == list(told.get("given_behaviours", ()))
    assert "changed_graphs" not in told


MAKERS = [*EQUAL.values(), "distribution", "fluid", "rigid", "think-time"]


def random_run(seed, plain):
    """Users who are given behaviours at random seconds; return the schedule, and check it."""
    draw = np.random.default_rng(seed)
    jobs = random_jobs(draw, 3000, users=3, waits=100)
    model = Simulation(jobs, 4, plain=plain)
    work = Work.of(jobs, SessionDefinition("arrival", 120))
    users = add_users(model, work, MAKERS[draw.integers(len(MAKERS))])
    arrived = np.zeros(len(jobs), bool)
    for second in [0, *np.sort(draw.integers(0, 4000, 6)).tolist()]:
        model.run(until=second)
        assert not (arrived & (jobs.submit >= second)).any()
        arrived = (jobs.submit >= 0) & (jobs.submit < second)
        before = jobs.submit[arrived].copy()
        for user in users:
            if draw.random() < 0.6:
                give_behaviour(model, user, MAKERS[draw.integers(len(MAKERS))])
        assert np.array_equal(before, jobs.submit[arrived])
    model.run()
    assert len(jobs) == jobs.count(hc.State.COMPLETED)
    for user in users:
        if isinstance(user.behaviour, Rigid):
            continue
        assert user.submitted == user.finished == len(user.graph)
        last = user.given[-1][0] if user.given else 0
        ordered = isinstance(getattr(user.behaviour, "when", None), BatchOrder)
        for before, after in user.graph.edges:
            rows = user.graph.rows_of(after)
            if (jobs.submit[rows] > last).all() and not ordered:
                assert jobs.submit[rows[0]] >= jobs.end[user.graph.rows_of(before)].max()
    return schedule(model)


@pytest.mark.parametrize(
    "seeds",
    [range(20), range(20, 40), pytest.param(range(1000, 1150), marks=pytest.mark.slow)],
    ids=str,
)
def test_behaviours_at_random(seeds):
    """Every job comes once, nothing that has come moves, and both engines do the same."""
    for seed in seeds:
        assert random_run(seed, False) == random_run(seed, True), seed
