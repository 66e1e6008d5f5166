"""Changes of users' graphs in the middle of a run: exact stories, the same in both engines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.agents import (
    ActivityWindow,
    Composed,
    DecisionLog,
    ReplayUser,
    SameWindow,
    SessionDefinition,
    SessionGraph,
    Work,
    add_users,
)
from hpcrowd.agents.behaviours.decisions import What
from hpcrowd.environment import JobTable, Simulation
from hpcrowd.environment.errors import QuantityError, SimulationError
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.kinds.replay import ReplayConfig

MakeJobs = Callable[..., JobTable]
SESSIONS = SessionDefinition("arrival", 60)
HOUR = 3600

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


@pytest.fixture
def jobs(make_jobs: MakeJobs) -> JobTable:
    """Three sessions, each after the one before: 0 to 100, 300 to 400, 700 to 800 s."""
    return make_jobs((0, 100, 1), (300, 100, 1), (700, 100, 1))


def paused(jobs: JobTable, plain: bool, until: int) -> tuple[Simulation, ReplayUser]:
    """A run with one user, paused."""
    model = Simulation(jobs, 100, plain=plain)
    user = add_users(model, Work.of(jobs, SESSIONS))[0]
    return model.run(until=until), user


@both
@pytest.mark.parametrize(
    ("moment", "think", "expected"),
    [
        (50, 20, 120),  # before the end of the session before
        (100, 20, 120),  # in the second of its end
        (110, 20, 120),  # after it
        (110, 10, 110),  # now
        (150, 20, 150),  # that has passed
        (299, 900, 1000),  # put off in the last second
        (300, 900, 1000),  # the arrivals of this second have not happened
    ],
)
def test_a_think_time_is_changed(
    jobs: JobTable, plain: bool, moment: int, think: int, expected: int
) -> None:
    """The session comes at the end of the one before and the new think time, or now."""
    model, user = paused(jobs, plain, moment)
    user.graph.edges[0, 1]["think_time"] = think
    model.run()
    assert [0, expected, expected + 100 + 300] == jobs.submit.tolist()


@both
@pytest.mark.parametrize(("moment", "expected"), [(50, 300), (350, 700), (390, 700)])
def test_an_edge_is_removed(jobs: JobTable, plain: bool, moment: int, expected: int) -> None:
    """Who waits for nothing comes at the recorded second."""
    jobs.run_time[:2] = 1000
    model, user = paused(jobs, plain, moment)
    user.graph.remove_edge(0, 1)
    model.run()
    assert max(300, moment) == jobs.submit[1]
    assert max(300, moment) + 1000 + 300 == jobs.submit[2]


@both
def test_the_last_edge_but_one_is_removed(jobs: JobTable, plain: bool) -> None:
    """A session that still waits for a session that is over comes its think time after that."""
    jobs.run_time[1] = 5000
    model, user = paused(jobs, plain, 150)
    user.graph.add_edge(0, 2, think_time=1000)
    model.run(until=500)
    user.graph.remove_edge(1, 2)
    model.run()
    assert [0, 300, 1100] == jobs.submit.tolist()


@both
def test_an_added_edge_delays(jobs: JobTable, plain: bool) -> None:
    """The session waits for both, and comes when the later think time has passed."""
    model, user = paused(jobs, plain, 450)
    user.graph.add_edge(0, 2, think_time=2000)
    model.run()
    assert [0, 300, 2100] == jobs.submit.tolist()


@both
def test_late_sessions_come_in_working_hours(make_jobs: MakeJobs, plain: bool) -> None:
    """What should have come already comes when the user is next at work."""
    jobs = make_jobs((8 * HOUR, 100, 1), (33 * HOUR, 100, 1))
    window = SameWindow(ActivityWindow(8 * HOUR, 18 * HOUR))
    model = Simulation(jobs, 100, plain=plain)
    work = Work.of(jobs, SESSIONS)
    user = add_users(model, work, lambda work: Composed(SessionGraph(work), window=window))[0]
    model.run(until=20 * HOUR)
    user.graph.edges[0, 1]["think_time"] = HOUR
    model.run()
    assert [8 * HOUR, 32 * HOUR] == jobs.submit.tolist()


def test_what_cannot_be_changed_any_more(jobs: JobTable) -> None:
    """Cycles, unknown sessions and sessions that were submitted are refused in one line."""
    model, user = paused(jobs, False, 250)
    graph = user.graph
    with pytest.raises(QuantityError, match="edge 2 -> 1: closes the cycle 2 -> 1 -> 2"):
        graph.add_edge(2, 1)
    model.run(until=350)
    with pytest.raises(QuantityError, match="edge 2 -> 2: closes the cycle 2 -> 2"):
        graph.add_edge(2, 2)
    with pytest.raises(QuantityError, match="edge 0 -> 7: user 1 has no unit 7"):
        graph.add_edge(0, 7)
    words = "unit 1 of user 1: submitted at 300 s, and it is 350 s; only what is still to come"
    for change in (
        lambda: graph.add_edge(0, 1, think_time=5),
        lambda: graph.remove_edge(0, 1),
        lambda: graph.edges[0, 1].update(think_time=7),
    ):
        with pytest.raises(SimulationError, match=words):
            change()
    assert user.changed_graph is None
    assert not user.edited


def test_planned_submissions_are_noted_once(jobs: JobTable) -> None:
    """A submission that was planned and moved is in the log as it happened."""
    log = DecisionLog()
    model = Simulation(jobs, 100)
    user = add_users(model, Work.of(jobs, SESSIONS), log=log)[0]
    model.run(until=150)
    user.graph.edges[0, 1]["think_time"] = 20
    model.run()
    noted = log.columns()
    assert [0, 150, 550] == noted["time"][noted["what"] == What.SUBMITTED].tolist()


def test_the_same_think_times_change_nothing_on_kth(kth: Trace) -> None:
    """Set in the middle of a real log, for all that is still to come of 50 users."""
    untouched, touched = ReplayConfig().stage(kth), ReplayConfig().stage(kth)
    touched.model.run(until=int(kth["submit"].max()) // 2)
    for user in touched.users[:50]:
        for _, after, times in list(user.graph.edges(data=True)):
            if user.graph.nodes[after]["state"] in ("waits", "free"):
                times["think_time"] += 1
                times["think_time"] -= 1
    untouched.model.run()
    touched.model.run()
    assert sum(user.edited for user in touched.users) > 10
    assert np.array_equal(untouched.model.jobs.matrix, touched.model.jobs.matrix)
