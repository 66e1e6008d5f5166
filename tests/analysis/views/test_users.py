"""Views of one user: its graph, its week, its pauses, its decisions, and what comes next."""

import numpy as np
import pytest
from hpcrowd import Recipe, Simulation, Streams, Work, views
from hpcrowd.behaviours import ActivityWindow, DecisionLog
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.errors import QuantityError
from hpcrowd.populations import Casting

from tests.analysis.views.view_cases import paused

#: One processor; sessions 0 to 4 of user 1 and 5 of user 2: 2 waits for 0 and 1, 3 and 4 for 2.
STORY = (
    (0, 4000, 1, 4000, 1), (3700, 5000, 1, 5000, 1), (9000, 1000, 1, 1000, 1),
    (20000, 9000, 1, 9000, 1), (25000, 500, 1, 500, 1), (100, 50, 1, 60, 2),
)  # fmt: skip


@pytest.fixture(scope="module")
def story(make_jobs):
    """The jobs of :data:`STORY`."""
    return make_jobs(*STORY)


@pytest.fixture(scope="module")
def fortnight(make_jobs):
    """Three jobs on each of 14 days, by one user."""
    return make_jobs(*((DAY * (n // 3) + HOUR * (10 + n % 3), 600, 1) for n in range(42)))


@pytest.mark.parametrize(("until", "expected"), [
    (1, "running free waits waits waits"),
    (3701, "running queued waits waits waits"),
    (9050, "finished finished free waits waits"),
    (40000, "finished finished finished finished finished"),
])  # fmt: skip
def test_states(make_jobs, until, expected):
    """Each session goes from waiting to free, in the queue, running and finished."""
    rows = list(STORY)
    rows[2] = (9050, 1000, 1, 1000, 1)
    frame = views.graph_table(paused(make_jobs(*rows), 1, until=until), 1)
    assert expected.split() == frame.state.tolist()


def test_waits_for_whom(story):
    """A session names what it waits for, and who waits for it; what is free says when it comes."""
    moment = paused(story, 1, until=3701)
    frame = views.graph_table(moment, 1).set_index("unit")
    assert "0, 1" == frame.waits_for[2] or "0" == frame.waits_for[2]
    assert ["2", "3, 4", "2"] == [frame.awaiting[0], frame.awaiting[2], frame.waits_for[3]]
    graph = views.graph_network(moment, 1)
    assert ("running", None) == (graph.nodes[0]["state"], graph.nodes[2]["due_s"])
    assert {(2, 3), (2, 4)} <= set(graph.edges)
    week = views.week_table(moment, 1)
    assert (2, [1, 1]) == (week.simulated.sum(), week.simulated[:2].tolist())
    assert week.open.isna().all()
    frame = views.graph_table(paused(story, 1, until=1), 1).set_index("unit")
    assert 3700 == frame.due_s[1]
    assert frame.due_s.drop(index=1).isna().all()
    with pytest.raises(QuantityError, match="user 7: not in this run"):
        views.graph_table(moment, 7)


def test_rigid_users_wait_for_nobody(story):
    """Sessions of a rigid user are free, and come at their recorded second."""
    frame = views.graph_table(paused(story, 1, "rigid", until=1), 1)
    assert ["running", "free", "free", "free", "free"] == frame.state.tolist()
    assert [3700, 9000, 20000, 25000] == frame.due_s.dropna().tolist()
    assert (frame.waits_for == "").all()
    frame = views.pauses_table(paused(story, 1, until=60000), 1)
    assert (frame.pause_s == frame.recorded_pause_s).all()
    by_unit = frame.set_index("unit")
    assert (1000, 10000) == (by_unit.recorded_response_s[3], by_unit.pause_s[3])


def test_window_of_many_sessions(make_jobs):
    """Of 5,000 sessions some 60 around now are shown, and it is said which."""
    jobs = make_jobs(*((2 * HOUR * n, 100, 1) for n in range(5000)))
    moment = paused(jobs, 1, until=2 * HOUR * 2333 + 1)
    frame, graph = views.graph_table(moment, 1), views.graph_network(moment, 1)
    last = views.graph_table(paused(jobs, 1, until=None), 1)
    assert (2310, 2369) == (frame.place.iloc[0], frame.place.iloc[-1])
    assert (4941, 5000) == (last.place.iloc[0], last.place.iloc[-1])
    assert "running" == frame.set_index("place").state[2334]
    assert ("sessions 2,310 to 2,369 of 5,000", 60) == (graph.graph["units"], len(graph))
    assert 5000 == len(views.graph_table(moment, 1, None))


def test_week_shows_windows(story):
    """A window of the behaviour is shown as the open part of each hour, also with a log."""
    window = ActivityWindow(9 * HOUR, 17 * HOUR + HOUR // 2)
    for log in None, DecisionLog():
        moment = paused(story, 1, Recipe(window=window), until=1, log=log)
        frame = views.week_table(moment, 1)
        assert 5 * 8.5 == frame.open.sum()
        assert 0.5 == frame.open[17]
        assert 1.0 == frame.open[4 * 24 + 9]
    weights = views.hours_of(paused(story, 1, "think-time-windows", until=1).users[1]).weights
    assert weights is not None
    assert pytest.approx(168) == weights.sum()


def test_decisions_are_those_before_now(story):
    """The log is shown newest first, and nothing of it that lies after now."""
    moment = paused(story, 1, until=30000, log=DecisionLog())
    frame = views.decisions_table(moment, 1)
    assert (np.diff(frame.time_s) <= 0).all()
    assert (frame.time_s < 30000).all()
    assert "session 0 submitted at its recorded time" == frame.decision.iloc[-1]
    assert "week 1 Mon 00:00:00" == frame.local_time.iloc[-1]
    assert frame.head(2).equals(views.decisions_table(moment, 1, 2))
    assert views.decisions_table(paused(story, 1, until=1), 1).empty


def test_next_event_and_gantt_table(story):
    """The next event is the end of a running job or a foreseen submission, whichever is first."""
    for until, user, expected in ((1, 1, 3701), (3701, 1, 4000), (3701, 2, None)):
        assert expected == views.next_event_of(paused(story, 1, until=until), user)
    # A running job has no end yet, only the one that is expected.
    frame = views.gantt_table(paused(story, 1, until=4100)).set_index("job")
    assert [1, 6, 2] == frame.index.tolist()
    assert (4000, True) == (frame.end_s[1], frame.end_s.isna()[2])
    assert 4050 + 5000 == frame.expected_end_s[2]
    assert [2] == views.gantt_table(paused(story, 1, until=4100), back=40).job.tolist()


def test_made_up_units(fortnight):
    """Users who make up their work have a graph of what they have submitted, each after one."""
    casting = Casting.of(Work.of(fortnight.copy()), "shmueli-feitelson", Streams(0))
    model = Simulation(casting.jobs, 1)
    replaying, generated = casting.join(model)
    model.run(until=8 * DAY)
    moment = views.Moment.of_model(model)
    frame, shown = views.graph_table(moment, 1), views.users_table(moment)
    assert len(frame) > 3
    assert frame.submitted_s.notna().all()
    assert len(frame) - 1 == views.graph_network(moment, 1, None).number_of_edges()
    assert len(views.pauses_table(moment, 1)) == len(frame) - 1
    assert set(shown.user) == {user.number for user in (*replaying, *generated)}
    assert shown.set_index("user").state[1] in ("away", "thinking", "running")
