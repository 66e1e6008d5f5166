"""Users who cut a task into jobs: tiny stories, what always holds, and where it cannot be done."""

from functools import partial
from typing import Any

import hpcrowd as hc
import numpy as np
import pytest
from hpcrowd import SessionDefinition, Simulation, State
from hpcrowd.agents.behaviours.when import BatchOrder, Recorded, SessionGraph
from hpcrowd.analysis.accounts.reactions import account, notes_of
from hpcrowd.behaviours import ActivityWindow, DecisionLog, Decisions, Patience, SameWindow
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.holds.held import hold
from hpcrowd.environment.holds.rules import Condition, Parent, Rules
from hpcrowd.environment.jobs import UNKNOWN, Column
from hpcrowd.environment.platform.changes import Maintenance
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.power.windows import StartWindow
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.traces.formats.swf import parse_swf
from hpcrowd.reactions import Always, Cut, Degrade, Delay, During, Renounce, Switch, reaction_from
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.behaviours.test_on_nodes import model_of, two
from tests.support.behaviours import join, react
from tests.support.simulations import both

HOW = ("preferred", "adaptive", "at-once")

run = partial(react, when=SessionGraph)


def pieces(cut, jobs, row=0):
    """Return start, end and processors of each piece of a job."""
    rows = cut.tasks[row].pieces
    columns = jobs.start, jobs.end, jobs.processors
    return list(zip(*(column[rows].tolist() for column in columns), strict=True))


# ---- stories ----------------------------------------------------------------------------------

WIDE = ((0, 100, 6, 100, 2), (1, 50, 8, 50, 3), (10, 100, 4, 100))


STORIES: dict[str, tuple[Any, dict[str, Any], dict[int, list[tuple[int, int, int]]]]] = {
    # With 2 s for each piece and 3 s between them: 8 + 8 + 8 + 1 s of work.
    "overhead": ([(0, 25, 3, 25)], {"limit": 10, "overhead": 2, "pause": 3},
                 {0: [(0, 10, 3), (13, 23, 3), (26, 36, 3), (39, 42, 3)]}),
    # Two jobs in the system at once, whole ones too: the third comes when one ends.
    "most": ([(0, 25, 1, 25), (0, 5, 1, 5), (0, 30, 1, 30, 2)],
             {"how": "at-once", "limit": 10, "most": 2},
             {0: [(0, 10, 1), (0, 10, 1), (10, 15, 1)], 1: [(10, 15, 1)],
              2: [(0, 10, 1), (0, 10, 1), (10, 20, 1)]}),  # of another user
    "all at once": ([(0, 30, 1, 30)], {"how": "at-once", "limit": 10, "most": 3},
                    {0: [(0, 10, 1), (0, 10, 1), (0, 10, 1)]}),
    # The same work on fewer processors for longer: 150 = 80 + 70, rounded up to 72.
    "narrow": ([(0, 25, 6, 50)], {"processors": 4, "time": 20, "limit": 30},
               {0: [(0, 20, 4), (20, 38, 4)]}),
    # In an empty machine twice the processors for half the time.
    "adaptive": ([(0, 40, 4, 40)], {"how": "adaptive"}, {0: [(0, 20, 8)]}),
    # Half of the processors do a part before a wide job starts at 100: 400 = 2 x 50 + 2 x 25 + 250;
    # then four do the rest soonest, behind the wide job.
    "gap": (WIDE, {"how": "adaptive", "processors": 4},
            {2: [(10, 60, 2), (60, 85, 2), (150, 213, 4)]}),
    # Side by side; who waits for the task goes on after the last to end, whichever piece that is.
    "last to end": ([(0, 25, 3), (30, 15, 1, 15)], {"how": "at-once", "limit": 10},
                    {0: [(0, 10, 3), (5, 15, 3), (0, 5, 3)], 1: [(20, 30, 1), (20, 25, 1)]}),
    # A piece that ends in the evening is followed by the next one in the morning.
    "at work": ([(9 * HOUR, 20 * HOUR, 1, 20 * HOUR)], {"limit": 10 * HOUR},
                {0: [(9 * HOUR, 19 * HOUR, 1), (32 * HOUR, 42 * HOUR, 1)]}),
    # The batch ends at 42 as before, and its jobs are as far apart.
    "batch": ([(0, 25, 1, 25), (12, 30, 1, 30), (60, 20, 1, 20)], {"limit": 10},
              {0: [(0, 10, 1), (10, 20, 1), (20, 25, 1)],
               1: [(12, 22, 1), (22, 32, 1), (32, 42, 1)], 2: [(60, 70, 1), (70, 80, 1)]}),
    # A piece that a change of the platform stops is submitted again, and the task goes on.
    "stopped": ([(0, 25, 3, 25)], {"limit": 10}, {0: [(0, 10, 3), (42, 52, 3), (52, 57, 3)]}),
}  # fmt: skip

#: How some of them are run.
OPTIONS: dict[str, dict[str, Any]] = {
    "gap": {"when": Recorded},
    "at work": {"parts": {"window": SameWindow(ActivityWindow(8 * HOUR, 18 * HOUR))}},
    "batch": {"when": BatchOrder, "sessions": SessionDefinition("arrival", 30)},
    "stopped": {"platform": [Maintenance(12, 30, announced=0, jobs="resubmit")],
                "resubmit_after": 30},
}  # fmt: skip


@both
@pytest.mark.parametrize("story", STORIES)
def test_pieces(make_jobs, plain, story):
    """Start, end and processors of each piece of a task."""
    rows, settings, expected = STORIES[story]
    jobs = make_jobs(*rows)
    cut = Cut(During([(10, 11)]) if rows is WIDE else Always(), **settings)
    run(jobs, cut, plain=plain, **OPTIONS.get(story, {}))
    assert expected == {row: pieces(cut, jobs, row) for row in expected}
    longest = max(jobs.requested_time[task.pieces].max() for task in cut.tasks.values())
    assert cut.limit is None or longest <= cut.limit


@both
def test_preferred_pieces_follow_each_other(make_jobs, plain):
    """25 s under a limit of 10 s are three jobs; what waits for the task waits for the last."""
    jobs, log = make_jobs((0, 25, 3, 50), (30, 5, 1, 5)), DecisionLog()  # thinks for 5 s
    cut = Cut(Always(), limit=10)
    users = run(jobs, cut, plain=plain, log=log)
    assert [(0, 10, 3), (10, 20, 3), (20, 25, 3)] == pieces(cut, jobs)
    assert [10, 10, 10] == jobs.requested_time[cut.tasks[0].pieces].tolist()  # twice as much, cut
    assert (30, 2, 2) == (jobs.submit[1], users[0].submitted, users[0].finished)
    assert ([State.COMPLETED] * 4, [1, 2, 3, 4]) == (jobs.state.tolist(), jobs.number.tolist())
    assert [0, 0, 0] == jobs.session[cut.tasks[0].pieces].tolist()
    assert {3: 2, 0: 3} == users[0].preceded
    words = [one.words() for one in Decisions.of(log)]
    assert [f"session 0: job {job} cut, reaction cut always" for job in (3, 4, 1)] == words[1:4]


def test_what_keeps_to_the_limits_stays(make_jobs):
    """Without a limit nothing changes; a longer request is cut down to the limit."""
    rows = ((0, 25, 3, 50), (30, 5, 1, 5), (60, 9, 2, 9, 2))
    expected, found = make_jobs(*rows), make_jobs(*rows)
    run(expected)
    cut = Cut(Always())
    users = run(found, cut)
    assert expected.matrix.tolist() == found.matrix.tolist()
    assert ({}, []) == (cut.tasks, users[0].notes)
    users = run(found, Cut(Always(), limit=30))
    assert [30, 5, 9] == found.requested_time.tolist()
    note = users[0].notes[0]
    assert ("cut", "requested_time", "50", "30") == (note.response, *note[11:])


# ---- with other parts -------------------------------------------------------------------------


@both
def test_patience_gives_up_the_rest(make_jobs, plain):
    """If a piece leaves the queue for good, the rest is renounced; one that comes back is not."""
    jobs = make_jobs((0, 25, 8, 25), (30, 5, 1, 5), (5, 40, 8, 40, 2))
    how = {"scheduler": "fcfs", "plain": plain}
    users = run(jobs, Cut(During([(0, 1)]), limit=10), parts={"patience": Patience(20)}, **how)
    assert [State.RENOUNCED, State.COMPLETED] == jobs.state[:2].tolist()
    assert [State.COMPLETED, State.CANCELLED] == jobs.state[3:].tolist()
    assert (35, 2) == (jobs.submit[1], users[0].finished)  # it left at 30, a think time of 5 s
    accounts = account(jobs, notes_of(users))
    work = [accounts[f"work_{one}_processor_s"] for one in ("recorded", "lost", "done")]
    assert [525, 120, 405] == work
    jobs = make_jobs((0, 25, 8, 25), (5, 100, 8, 100, 2))
    cut = Cut(During([(0, 1)]), limit=20)
    run(jobs, cut, parts={"patience": Patience(20, then="later", after=100)}, **how)
    assert [(0, 20, 8), (140, 145, 8)] == pieces(cut, jobs)


@both
def test_other_reactions(make_jobs, plain):
    """Reactions before it change the task, those after it its first submission and its cluster."""
    jobs = make_jobs((60, 25, 6, 25), (60, 25, 6, 25, 2), (60, 25, 2, 25, 3))
    calm = During([(50, 100)])
    cut = Cut(calm, limit=10)
    run(jobs, Degrade(calm), cut, Delay(calm), when=Recorded, plain=plain)
    assert [(100, 110, 3), (110, 120, 3), (120, 125, 3)] == pieces(cut, jobs)
    jobs, backup = make_jobs((60, 25, 2, 25)), {"backup": hc.ClusterSpec(2, speed=0.5)}
    users = run(jobs, cut, Switch(calm, "backup"), when=Recorded, others=backup, plain=plain)
    assert [(60, 80, 2), (80, 100, 2), (100, 110, 2)] == pieces(cut, jobs)
    assert 50 == account(jobs, notes_of(users))["work_recorded_processor_s"]
    jobs = make_jobs((60, 25, 2, 25), (90, 1, 1, 1))
    run(jobs, cut, Renounce(During([(60, 61)])), plain=plain)
    assert [State.RENOUNCED, State.COMPLETED] == jobs.state.tolist()
    assert (65, {}) == (jobs.submit[1], cut.tasks)


@both
def test_pieces_wait_for_clean_energy(make_jobs, plain):
    """The first waits 30 s for its window, as a whole job would; the others follow at once."""
    jobs, cut = make_jobs((0, 25, 3, 25)), Cut(Always(), limit=10)
    carbon = Signal(np.array([0, 30, 60, 90]), np.array([9.0, 1.0, 1.0, 1.0]))
    start = StartWindow(threshold=5.0, step=1, slack=40)
    power = Power((NodePower("node", 0.0, 1.0),), carbon=carbon, start=start)
    model = Simulation(jobs, 8, parts=[PowerInUse(power)], plain=plain)
    hold(model)
    join(model, cut, when=SessionGraph)
    model.run()
    assert [(30, 40, 3), (40, 50, 3), (50, 55, 3)] == pieces(cut, jobs)


@pytest.mark.parametrize("how", HOW)
def test_users_who_leave(make_jobs, how):
    """A user who is removed submits no further piece; what is left is renounced."""
    jobs = make_jobs((0, 50, 8, 50), (0, 50, 8, 50))
    model = Simulation(jobs, 8)
    (user,) = join(model, Cut(Always(), how=how, limit=10, most=1))
    model.run(until=15)
    user.remove()
    model.run()
    assert [State.RENOUNCED] * 2 == jobs.state[:2].tolist()
    assert [State.COMPLETED] * 2 == jobs.state[2:].tolist()


def test_machine_of_nodes():
    """The limit is MaxTime of the partition; pieces ask for the partition too."""
    debug = {"limit": 3000, "cores": 2, "partitions": "debug"}
    jobs = [{**debug, "run": 2500}, {"run": 2500, "limit": 3000, "cores": 2}, {**debug, "run": 900}]
    model, cut = model_of(two(), *jobs), Cut(Always())
    join(model, cut)
    model.run()
    made = model.jobs
    assert [0] == list(cut.tasks)
    assert [1000, 1000, 500] == made.lasted[cut.tasks[0].pieces].tolist()
    assert [600, 3000, 1000, 1000, 1000] == made.requested_time.tolist()
    assert made.requests is not None
    assert ["debug", "", "debug", "debug", "debug"] == made.requests.texts(Ask.PARTITIONS)
    assert [State.COMPLETED] * 5 == made.state.tolist()


# ---- what always holds ------------------------------------------------------------------------

bounds = (0, 60), (0, 40), (1, 6), (0, 50), (1, 3)
tasks = st.lists(st.tuples(*(st.integers(*each) for each in bounds)), min_size=1, max_size=12)
choices: dict[str, Any] = {
    "how": HOW, "limit": (None, 5, 12), "processors": (None, 2, 3), "time": (None, 7),
    "overhead": (0, 2), "pause": (0, 3), "most": (None, 1, 3),
}  # fmt: skip
settings_of_users = st.fixed_dictionaries({key: st.sampled_from(of) for key, of in choices.items()})


@settings(max_examples=60)
@given(tasks, settings_of_users, st.sampled_from([Recorded, SessionGraph, BatchOrder]))
def test_work_and_limits_are_kept(make_jobs, rows, chosen, when):
    """The pieces do exactly the work of the task, none is too long, never too many at once."""
    jobs = make_jobs(*rows)
    recorded = (jobs.processors * jobs.run_time).tolist()
    cut = Cut(Always(), **chosen)
    run(jobs, cut, when=when)
    assert [State.COMPLETED] * len(jobs) == jobs.state.tolist()
    for row, task in cut.tasks.items():
        mine = np.array(task.pieces)
        assert (task.left, task.running, row) == (0, 0, mine[-1])
        useful = jobs.run_time[mine] - (cut.overhead if len(mine) > 1 else 0)
        # Only the last piece is rounded up to a whole second, if its processors are others.
        over = int((jobs.processors[mine] * useful).sum()) - recorded[row]
        assert 0 <= over < jobs.processors[row]
        if cut.how != "adaptive" and cut.processors is None:
            assert 0 == over
        if cut.limit is not None:
            assert jobs.run_time[mine].max() <= cut.limit
            assert jobs.requested_time[mine].max() <= cut.limit
        if cut.processors is not None:
            assert jobs.processors[mine].max() <= cut.processors
        if cut.how != "at-once":
            assert (jobs.submit[mine[1:]] >= jobs.end[mine[:-1]] + cut.pause).all()
    if cut.most is not None:
        together = [row for task in cut.tasks.values() for row in task.pieces]
        assert most_at_once(jobs, together) <= cut.most


def most_at_once(jobs, rows):
    """Return the most jobs of one user among ``rows`` that were in the system together."""
    found = 0
    for at, user in zip(jobs.submit[rows].tolist(), jobs.user[rows].tolist(), strict=True):
        mine = np.array([row for row in rows if jobs.user[row] == user])
        found = max(found, int(((jobs.submit[mine] <= at) & (jobs.end[mine] > at)).sum()))
    return found


# ---- results, files, mistakes -----------------------------------------------------------------

ONE = """; MaxProcs: 8
4 0 0 60 4 -1 -1 4 90 -1 1 1 1 -1 1 -1 -1 -1
9 70 0 10 3 -1 -1 3 20 -1 1 1 1 -1 1 -1 -1 -1"""


def test_results(tmp_path):
    """Pieces have numbers of their own, say whose pieces they are, and precede each other."""
    settings = {"do": "cut", "when": "always", "limit": "25s"}
    recipe = hc.Recipe("batches", reactions=(reaction_from(settings),))
    found = hc.replay(parse_swf(ONE), users=recipe, sessions="arrival:job")
    written = found.to_trace()
    assert [10, 11, 4, 9] == written["number"].tolist()
    assert [-1, 10, 11, 4] == written["preceding"].tolist()
    assert [-1, 0, 0, 10] == written["think_time"].tolist()
    new = [note for note in found.parts["reactions"].rows if note.request == "task"]
    pieces = [(note.request_after, note.run_time, note.run_time_after) for note in new]
    assert [("4", 0, 25), ("4", 0, 25)] == pieces
    hc.write_results(found, tmp_path / "out", plots=False)
    again = hc.read_results(tmp_path / "out")
    assert found.parts["reactions"].rows == again.parts["reactions"].rows
    assert found.summary() == again.summary()


def test_where_tasks_cannot_be_cut(make_jobs):
    """Pieces have no recorded start, and would not wait for what the recorded job waits for."""
    jobs, cut = make_jobs((0, 25, 3, 25), (0, 5, 1, 5)), Cut(Always(), limit=10)
    with pytest.raises(QuantityError, match="cut always: under the recorded schedule jobs start"):
        run(jobs, cut, scheduler="recorded")
    model = Simulation(jobs, 8)
    parents = {0: (Parent(1, Condition.OK),)}
    hold(model, Rules(np.zeros(2, np.int64), np.zeros(2, bool), parents=parents))
    with pytest.raises(QuantityError, match="jobs of this log are held, such as"):
        join(model, cut)


def test_not_with_changes_by_hand(make_jobs):
    """Graphs of users who cut cannot be changed, nor their behaviour while a task goes on."""
    jobs = make_jobs((0, 25, 3, 25), (30, 5, 1, 5))
    model = Simulation(jobs, 8)
    (user,) = join(model, Cut(Always(), limit=10), when=SessionGraph)
    with pytest.raises(QuantityError, match="does not go by a graph"):
        user.graph.remove_edge(0, 1)
    model.run(until=12)
    with pytest.raises(QuantityError, match="has begun tasks of which pieces are still to come"):
        hc.give_behaviour(model, user, "rigid")
    model.run(until=26)
    hc.give_behaviour(model, user, "rigid")
    model.run()
    assert [State.COMPLETED] * 4 == jobs.state.tolist()
    assert UNKNOWN not in jobs.matrix[Column.UNIT, : len(jobs)].tolist()
