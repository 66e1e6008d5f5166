"""Users who look before they submit, and who leave the queue when they have waited for long."""

import copy
import pickle
from functools import partial
from typing import Any, override

import numpy as np
import pytest
from hpcrowd import ClusterSpec, Recipe, Simulation, State, Work, add_users, jobs_from_trace, replay
from hpcrowd.agents.behaviours.parts import Reaction
from hpcrowd.analysis.accounts.reactions import account, notes_of
from hpcrowd.behaviours import DecisionLog, Decisions, Patience, SessionGraph
from hpcrowd.environment.errors import HpcrowdError, QuantityError, SimulationError
from hpcrowd.environment.grid.policies import GRID
from hpcrowd.environment.stops import FOREVER
from hpcrowd.grids import Grid
from hpcrowd.reactions import Delay, During, ExpectedWait, LookAgain, QueueLonger, Renounce
from hpcrowd.scenarios.kinds.population_files import PopulationConfig

from tests.support.behaviours import react
from tests.support.patience import even_patience
from tests.support.populations import small_log
from tests.support.simulations import both, simulation_of


def run(jobs, *reactions, patience=None, **options):
    """Run the jobs on four processors; every job is a session."""
    how = {"when": SessionGraph, "processors": 4, "scheduler": "fcfs", **options}
    return react(jobs, *reactions, parts={"patience": patience}, **how)


@both
@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "conservative", "fair-share"])
def test_public_state(make_jobs, plain, scheduler):
    """The queue, what is free, and when a job would start behind all that wait."""
    jobs = make_jobs((0, 90, 3, 100), (10, 50, 4, 50, 2), (20, 30, 2, 40, 3))
    model = Simulation(jobs, 4, scheduler, plain=plain)
    model.cluster.submit([0, 1, 2], jobs.recorded_submit)
    model.run(until=30)
    state = model.cluster.look()
    assert (30, 4, 1, 2, 6) == state[:5]
    # Running until 100, then the wide job until 150; the third one from 150 to 190.
    assert (30, 30, 150) == tuple(state.expected_start(*job) for job in ((1, 70), (1, 10), (2, 60)))
    assert (190, FOREVER) == (state.expected_start(3, 1), state.expected_start(5, 1))


def test_recorded_schedules_are_not_planned(make_jobs):
    """Under them nobody knows when a job would start."""
    with pytest.raises(QuantityError, match="expected start: under the recorded schedule"):
        run(make_jobs((0, 10, 1)), Renounce(ExpectedWait(0)), scheduler="recorded")


def test_state_of_a_grid(make_jobs):
    """All queues together; a job starts where it can first."""
    jobs = make_jobs((0, 100, 4), (0, 60, 2), (0, 10, 4))
    others = {"b": ClusterSpec(2)}
    model = simulation_of(jobs, 4, others=others, grid=Grid("least-loaded"))
    broker = model.place(GRID)
    broker.submit([0, 1, 2], 0)
    model.run(until=5)
    state = broker.look()
    assert (6, 0, 1, 4) == state[1:5]
    assert (60, 110, FOREVER) == tuple(state.expected_start(n, 50) for n in (2, 4, 5))


#: Three jobs that take the machine one after the other, and one that comes at 10.
CROWD = (*((0, 100, 4, 100, user) for user in (1, 2, 3)), (10, 10, 4, 10, 4))
QUEUED = partial(LookAgain, QueueLonger(1), every=40)


@both
@pytest.mark.parametrize(
    ("reactions", "expected", "looks"),
    [
        (lambda: [QUEUED()], [0, 0, 0, 130], 3),  # at 130 s one job waits
        (lambda: [QUEUED(most=2)], [0, 0, 0, 90], 2),
        # What a user does in the end is done once, however often it looked.
        (lambda: [Delay(During([(0, 1000)]), by=7), QUEUED()], [7, 7, 7, 137], 3),
    ],
)
def test_users_look_again(make_jobs, plain, reactions, expected, looks):
    """While more than one job waits a user comes back every 40 s, and submits anyway at last."""
    jobs, log, made = make_jobs(*CROWD), DecisionLog(), reactions()
    users = run(jobs, *made, plain=plain, log=log)
    assert expected == jobs.submit.tolist()
    assert 4 * (len(made) - 1) == sum(len(user.notes) for user in users)
    words = [one.words() for one in Decisions.of(log, 4)]
    told = "session 3 is looked at again after 40 s, reaction look-again queue"
    assert ([told] * looks, looks) == (words[:looks], words.count(told))


@both
def test_jobs_that_would_wait_are_renounced(make_jobs, plain):
    """Each by its own expected wait; what fits at once is submitted."""
    jobs = make_jobs((0, 100, 3), (10, 50, 4, 50, 2), (20, 50, 1, 50, 3))
    run(jobs, Renounce(ExpectedWait(60)), plain=plain, scheduler="easy")
    assert [State.COMPLETED, State.RENOUNCED, State.COMPLETED] == jobs.state.tolist()


class Hasty(Reaction):
    """Looks again at once."""

    @override
    def react(self, user, intention):
        """Look again now."""
        intention.look_again(user.model.time)


def test_looking_again_now_is_an_error(make_jobs):
    """It would be asked for ever."""
    with pytest.raises(SimulationError, match="look again at 0 s: it is 0 s; name a later second"):
        run(make_jobs((0, 10, 1)), Hasty())


BUSY = (0, 1000, 4, 1000, 2)
C, LEFT = State.COMPLETED, State.CANCELLED

#: Jobs, patience; states, starts and ends; row, second, wait and delay of each note, what is lost.
STORIES: dict[str, tuple[Any, Patience, list[State], list[int], list[int], list[Any], int]] = {
    # A job is over for its user when it leaves, at 40 s, who goes on after 100 s.
    "for good": ([(0, 100, 4, 100, 2), (10, 50, 4), (160, 10, 1)], Patience(30), [C, LEFT, C],
                 [0, -1, 140], [100, 40, 150], [(1, 40, 30, 0)], 200),
    # As often as is said, then jobs stay.
    "later": ([BUSY, (10, 50, 4)], Patience(100, then="later", after=200, most=2), [C, C],
              [0, 1000], [1000, 1050], [(1, 110, 100, 300), (1, 410, 100, 300)], 0),
    # With half the processors and twice the time, until one is left.
    "smaller": ([(0, 1000, 3, 1000, 2), (10, 50, 4, 60)], Patience(100, then="smaller", most=9),
                [C, C], [0, 210], [1000, 410], [(1, 110, 100, 100), (1, 210, 100, 100)], 0),
    "no smaller": ([BUSY, (10, 50, 1)], Patience(100, then="smaller"), [C, C],
                   [0, 1000], [1000, 1050], [], 0),
    # A job of a minute waits for three minutes, one of an hour for three hours.
    "proportion": ([(0, 2000, 4, 2000, 3), (0, 50, 4, 60), (0, 900, 4, 900, 2)], Patience(times=3),
                   [C, LEFT, C], [0, -1, 2000], [2000, 180, 2900], [(1, 180, 180, 0)], 200),
}  # fmt: skip


@both
@pytest.mark.parametrize("story", STORIES)
def test_jobs_leave_the_queue(make_jobs, plain, story):
    """When users have waited for long, their jobs leave for good, or come back."""
    rows, patience, states, starts, ends, noted, lost = STORIES[story]
    jobs, log = make_jobs(*rows), DecisionLog()
    recorded = int((jobs.processors * jobs.run_time).sum())
    users = run(jobs, patience=patience, plain=plain, log=log)
    assert (states, starts, ends) == (list(jobs.state), jobs.start.tolist(), jobs.end.tolist())
    assert all(user.submitted == user.finished for user in users)
    notes = [(note.row, note.decided, note.waited, note.delay) for note in notes_of(users)]
    assert noted == notes
    found = account(jobs, notes_of(users))
    names = "work_recorded_processor_s", "work_lost_processor_s", "waited_in_vain_s"
    assert [recorded, lost, sum(waited for _, _, waited, _ in noted)] == [
        found[name] for name in names
    ]
    if story == "smaller":
        assert (1, 240) == (jobs.processors[1], jobs.requested_time[1])
    words = {one.words() for one in Decisions.of(log)}
    assert (story in ("for good", "proportion")) == any("for good" in one for one in words)


def test_drawn_patience_is_each_user_own(make_jobs):
    """Exponential, from a stream of the user's own: one more user changes nobody's draws."""

    def ends(users):
        many = [(0, 100_000, 4, 100_000, 9), *((1, 5, 4, 5, user) for user in range(1, users))]
        jobs = make_jobs(*many)
        run(jobs, patience=Patience(mean=1000))
        return (jobs.end - jobs.submit)[1:].tolist()

    assert ends(5) == ends(6)[:4]
    assert 700 < np.mean(ends(300)) < 1300


def test_removed_users_have_no_patience(make_jobs):
    """What they left in the queue stays there."""
    jobs = make_jobs((0, 100, 4, 100, 2), (10, 50, 4))
    model = Simulation(jobs, 4)
    users = add_users(model, Work.of(jobs), Recipe(patience=Patience(30)))
    model.run(until=20)
    users[0].remove()
    model.run()
    assert State.COMPLETED == jobs.state[1]


def test_patience_in_files(make_trace):
    """A table of an entry; all jobs are accounted for."""
    looks = {"do": "look-again", "when": "queue", "longer_than": 3, "every": "20m", "most": 5}
    entry = {"behaviour": "adjusted", "patience": {"wait": "1h"}, "reactions": [looks]}
    population = PopulationConfig.configure(users=[entry])
    found = replay(small_log(make_trace), users=population, processors="4")
    assert 0 == found.metrics["jobs_unfinished"]
    assert (
        found.metrics["jobs_cancelled"] == found.parts["reactions"].account["jobs_left_queue"] > 10
    )


@pytest.fixture
def fitted(tmp_path):
    """The file of a patience of an hour or so, whoever waits."""
    return even_patience(tmp_path, -1.0)


def test_fitted_patience(make_jobs, fitted):
    """It is longer than the recorded wait of a job, and each user's own."""

    def ends(users, waits):
        many = [(0, 10**7, 4, 10**7, 9), *((1, 5, 4, 5, user) for user in range(1, users))]
        jobs = make_jobs(*many)
        jobs.recorded_start[1:] += waits
        run(jobs, patience=Patience(fitted=fitted))
        left = jobs.state == State.CANCELLED
        assert left.mean() > 0.7  # the others have all the patience in the world
        return (jobs.end - jobs.submit)[left]

    few = ends(5, 0)
    assert 1 < len(set(few.tolist()))
    assert few.tolist() == ends(6, 0)[:4].tolist()
    assert (ends(100, 0) < 5000).any()
    assert (ends(100, 5000) > 5000).all()


def test_fitted_patience_in_files(make_trace, fitted):
    """A text names its file, as a table does; the file counts for the identity of the users."""
    found = []
    for patience in (f"fitted:{fitted.name}", {"fitted": fitted.name}):
        entry = {"behaviour": "adjusted", "patience": patience}
        population = PopulationConfig.configure(users=[entry], folder=fitted.parent)
        assert [fitted.name] == list(population.sums())
        found.append(replay(small_log(make_trace), users=population, processors="4"))
    assert np.array_equal(found[0].jobs.matrix, found[1].jobs.matrix)
    assert 0 == found[0].metrics["jobs_unfinished"]
    assert found[0].metrics["jobs_cancelled"] > 10
    for wrong, rule in (("fitted", "fitted:FILE"), ("fitted:none.json", "none.json")):
        entry = {"behaviour": "adjusted", "patience": wrong}
        with pytest.raises(HpcrowdError, match=rule):
            PopulationConfig.configure(users=[entry], folder=fitted.parent)


def test_forks_keep_alarms_and_draws(make_trace):
    """Users who look and leave do the same in a copy of the run."""
    jobs = jobs_from_trace(small_log(make_trace)).jobs
    model = Simulation(jobs, 5, seed=3)
    looks = LookAgain(ExpectedWait(7200), every=1000, most=3)
    patience = Patience(mean=5000, then="later")
    add_users(model, Work.of(jobs), Recipe(reactions=(looks,), patience=patience))
    model.run(until=25 * 86_400)
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    model.run()
    for other in others:
        other.run()
        assert np.array_equal(model.jobs.matrix, other.jobs.matrix)
