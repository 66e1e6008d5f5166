"""Users who look before they submit, and who leave the queue when they have waited for long."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, override

import numpy as np
import pytest
from hpcrowd.agents import (
    Composed,
    DecisionLog,
    Decisions,
    Delay,
    During,
    ExpectedWait,
    Intention,
    LookAgain,
    Patience,
    QueueLonger,
    Reaction,
    Recipe,
    Renounce,
    ReplayUser,
    SessionDefinition,
    SessionGraph,
    Work,
    add_users,
)
from hpcrowd.analysis.accounts.reactions import account, notes_of
from hpcrowd.environment import (
    ClusterSpec,
    GridSpec,
    JobTable,
    Simulation,
    State,
    jobs_from_trace,
)
from hpcrowd.environment.errors import QuantityError, SimulationError
from hpcrowd.environment.stops import FOREVER
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios import replay
from hpcrowd.scenarios.kinds.population_files import PopulationConfig

from tests.support.populations import small_log

MakeJobs = Callable[..., JobTable]

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


def run(
    jobs: JobTable,
    *reactions: Reaction,
    patience: Patience | None = None,
    log: DecisionLog | None = None,
    **options: Any,
) -> tuple[Simulation, list[ReplayUser]]:
    """Run the jobs on four processors; every job is a session."""
    model = Simulation(jobs, 4, **{"scheduler": "fcfs", **options})
    work = Work.of(jobs, SessionDefinition("arrival", None))
    maker = lambda work: Composed(SessionGraph(work), reactions=reactions, patience=patience)  # noqa: E731
    users = add_users(model, work, maker, log=log)
    model.run()
    return model, users


# ---- what can be seen -------------------------------------------------------------------------


@both
@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "conservative", "fair-share"])
def test_public_state(make_jobs: MakeJobs, plain: bool, scheduler: str) -> None:
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


def test_expected_start_of_a_conservative_plan(kth: Trace) -> None:
    """On KTH a conservative scheduler starts jobs when users saw that it would, or earlier."""
    jobs = jobs_from_trace(kth).jobs.take(np.arange(3000))
    model = Simulation(jobs, 100, "conservative")
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    told = 0
    for row in range(500, 3000, 7):
        at = int(jobs.recorded_submit[row])
        if (jobs.recorded_submit == at).sum() > 1:
            continue
        model.run(until=at)
        if len(model.cluster.engine.unseen):
            continue  # what ended in this second has not been used yet
        asked = int(jobs.processors[row]), int(jobs.requested_time[row])
        expected = model.cluster.look().expected_start(*asked)
        model.run(until=at + 1)
        promised = int(jobs.promised[row]) if jobs.promised[row] >= 0 else int(jobs.start[row])
        told += promised <= expected
    assert told > 300


def test_recorded_schedules_are_not_planned(make_jobs: MakeJobs) -> None:
    """Under them nobody knows when a job would start."""
    with pytest.raises(QuantityError, match="expected start: under the recorded schedule"):
        run(make_jobs((0, 10, 1)), Renounce(ExpectedWait(0)), scheduler="recorded")


def test_state_of_a_grid(make_jobs: MakeJobs) -> None:
    """All queues together; a job starts where it can first."""
    jobs = make_jobs((0, 100, 4), (0, 60, 2), (0, 10, 4))
    others = {"b": ClusterSpec(2)}
    model = Simulation(jobs, 4, others=others, grid=GridSpec("least-loaded"))
    assert model.broker is not None
    model.broker.submit([0, 1, 2], 0)
    model.run(until=5)
    state = model.broker.look()
    assert (6, 0, 1, 4) == state[1:5]
    assert (60, 110, FOREVER) == tuple(state.expected_start(n, 50) for n in (2, 4, 5))


# ---- looking before submitting ----------------------------------------------------------------


@both
def test_users_look_again_until_the_queue_is_short(make_jobs: MakeJobs, plain: bool) -> None:
    """With more than one job waiting, a user comes back every 40 s."""
    first = [(0, 100, 4, 100, user) for user in (1, 2, 3)]
    jobs = make_jobs(*first, (10, 10, 4, 10, 4))
    log = DecisionLog()
    run(jobs, LookAgain(QueueLonger(1), every=40), plain=plain, log=log)
    assert [0, 0, 0, 130] == jobs.submit.tolist()  # at 130 s one job waits
    words = [one.words() for one in Decisions.of(log, 4)]
    assert ["session 3 is looked at again after 40 s, reaction look-again queue"] * 3 == words[:3]
    assert 4 == len(words)


@both
def test_users_submit_anyway_at_last(make_jobs: MakeJobs, plain: bool) -> None:
    """After the given number of looks."""
    first = [(0, 100, 4, 100, user) for user in (1, 2, 3)]
    jobs = make_jobs(*first, (10, 10, 4, 10, 4))
    run(jobs, LookAgain(QueueLonger(1), every=40, most=2), plain=plain)
    assert 90 == jobs.submit[3]


@both
def test_jobs_that_would_wait_are_renounced(make_jobs: MakeJobs, plain: bool) -> None:
    """Each by its own expected wait; what fits at once is submitted."""
    jobs = make_jobs((0, 100, 3), (10, 50, 4, 50, 2), (20, 50, 1, 50, 3))
    run(jobs, Renounce(ExpectedWait(60)), plain=plain, scheduler="easy")
    assert [State.COMPLETED, State.RENOUNCED, State.COMPLETED] == jobs.state.tolist()


@both
def test_looks_come_before_changes(make_jobs: MakeJobs, plain: bool) -> None:
    """What a user does in the end is done once, however often it looked."""
    first = [(0, 100, 4, 100, user) for user in (1, 2, 3)]
    jobs = make_jobs(*first, (10, 10, 4, 10, 4))
    delay = Delay(During([(0, 1000)]), by=7)
    looks = LookAgain(QueueLonger(1), every=40)
    _, users = run(jobs, delay, looks, plain=plain)
    assert [7, 7, 7, 137] == jobs.submit.tolist()
    assert 4 == sum(len(user.notes) for user in users)


class OwnLook(Reaction):
    """Submits at the expected start of its job, and renounces what it would not live to see."""

    looks = True

    @override
    def react(self, user: ReplayUser, intention: Intention) -> None:
        """Look, and decide."""
        jobs, row = user.model.jobs, intention.rows[0]
        state = user.site.look()
        start = state.expected_start(int(jobs.processors[row]), int(jobs.requested_time[row]))
        if start > 200:
            intention.renounce(0, "too late")
        elif start > state.now:
            intention.look_again(start)


@both
def test_own_looks(make_jobs: MakeJobs, plain: bool) -> None:
    """A reaction sees the state, and names the second at which it looks again."""
    jobs = make_jobs((0, 100, 4), (10, 120, 4, 120, 2), (20, 10, 4, 10, 3))
    run(jobs, OwnLook(), plain=plain)
    assert [0, 100, 100] == jobs.submit.tolist() or [0, 100, -1] == jobs.submit.tolist()
    assert 0 == (jobs.start - jobs.submit)[:2].max()


class Hasty(Reaction):
    """Looks again at once, which never ends."""

    @override
    def react(self, user: ReplayUser, intention: Intention) -> None:
        """Look again now."""
        intention.look_again(user.model.time)


def test_looking_again_now_is_an_error(make_jobs: MakeJobs) -> None:
    """It would be asked for ever."""
    with pytest.raises(SimulationError, match="look again at 0 s: it is 0 s; name a later second"):
        run(make_jobs((0, 10, 1)), Hasty())


# ---- patience ---------------------------------------------------------------------------------


@both
def test_jobs_leave_the_queue_for_good(make_jobs: MakeJobs, plain: bool) -> None:
    """A job is over for its user then, who goes on after the think time."""
    jobs = make_jobs((0, 100, 4, 100, 2), (10, 50, 4), (160, 10, 1))
    log = DecisionLog()
    _, users = run(jobs, patience=Patience(30), plain=plain, log=log)
    assert [0, -1, 140] == jobs.start.tolist()  # leaves at 40 s, thinks for 100 s
    assert (State.CANCELLED, 40) == (jobs.state[1], jobs.end[1])
    assert all(user.submitted == user.finished for user in users)
    assert "session 0: job 2 leaves the queue for good" in [
        one.words() for one in Decisions.of(log, 1)
    ]
    found = account(jobs, notes_of(users))
    assert (1, 30, 200) == tuple(
        found[name] for name in ("jobs_left_queue", "waited_in_vain_s", "work_lost_processor_s")
    )
    assert found["work_recorded_processor_s"] == 400 + 200 + 10


@both
def test_jobs_come_back_later(make_jobs: MakeJobs, plain: bool) -> None:
    """As often as is said, then they stay."""
    jobs = make_jobs((0, 1000, 4, 1000, 2), (10, 50, 4))
    patience = Patience(100, then="later", after=200, most=2)
    _, users = run(jobs, patience=patience, plain=plain)
    assert (610, 1000) == (jobs.submit[1], jobs.start[1])
    notes = users[0].notes
    assert [(110, 100, 300), (410, 100, 300)] == [(n.decided, n.waited, n.delay) for n in notes]
    assert State.COMPLETED == jobs.state[1]


@both
def test_jobs_come_back_smaller(make_jobs: MakeJobs, plain: bool) -> None:
    """With half the processors and twice the time, until one is left."""
    jobs = make_jobs((0, 1000, 3, 1000, 2), (10, 50, 4, 60))
    _, users = run(jobs, patience=Patience(100, then="smaller", most=9), plain=plain)
    assert (1, 210, 210, 410) == (
        jobs.processors[1], jobs.submit[1], jobs.start[1], jobs.end[1]
    )  # fmt: skip
    assert 240 == jobs.requested_time[1]
    assert 0 == account(jobs, notes_of(users))["work_lost_processor_s"]


@both
def test_patience_in_proportion(make_jobs: MakeJobs, plain: bool) -> None:
    """A job of a minute waits for three minutes, one of an hour for three hours."""
    jobs = make_jobs((0, 2000, 4, 2000, 3), (0, 50, 4, 60), (0, 900, 4, 900, 2))
    run(jobs, patience=Patience(times=3), plain=plain)
    assert [State.COMPLETED, State.CANCELLED, State.COMPLETED] == jobs.state.tolist()
    assert 180 == jobs.end[1]


def test_drawn_patience_is_each_user_own(make_jobs: MakeJobs) -> None:
    """Exponential, from a stream of the user's own: one more user changes nobody's draws."""

    def ends(users: int) -> list[int]:
        many = [(0, 100_000, 4, 100_000, 9), *((1, 5, 4, 5, user) for user in range(1, users))]
        jobs = make_jobs(*many)
        run(jobs, patience=Patience(mean=1000))
        return (jobs.end - jobs.submit)[1:].tolist()

    assert ends(5) == ends(6)[:4]
    assert 700 < np.mean(ends(300)) < 1300


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "patience: give one of wait, mean and times, not none"),
        ({"wait": 5, "times": 2}, "patience: give one of wait, mean and times, not wait and times"),
        ({"wait": 0}, "patience wait 0: must be more than 0"),
        ({"wait": 5, "then": "soon"}, "patience then 'soon'"),
        ({"wait": 5, "factor": 1.0}, "patience factor 1: between 0 and 1"),
    ],
)
def test_wrong_patience(settings: dict[str, Any], message: str) -> None:
    """Each mistake is one line."""
    with pytest.raises(QuantityError, match=message):
        Patience(**settings)


def test_removed_users_have_no_patience(make_jobs: MakeJobs) -> None:
    """What they left in the queue stays there."""
    jobs = make_jobs((0, 100, 4, 100, 2), (10, 50, 4))
    model = Simulation(jobs, 4)
    users = add_users(model, Work.of(jobs), Recipe(patience=Patience(30)))
    model.run(until=20)
    users[0].remove()
    model.run()
    assert State.COMPLETED == jobs.state[1]


@pytest.mark.parametrize("then", ["never", "later", "smaller"])
@pytest.mark.parametrize("behaviour", ["rigid", "think-time", "adjusted"])
def test_patience_in_files(make_trace: Callable[..., Trace], then: str, behaviour: str) -> None:
    """A table of an entry; all jobs are accounted for, compiled and plain alike."""
    entry = {"behaviour": behaviour, "patience": {"wait": "1h", "then": then}}
    looks = {"do": "look-again", "when": "queue", "longer_than": 3, "every": "20m", "most": 5}
    entry |= {"reactions": [looks]} if behaviour == "adjusted" else {}
    population = PopulationConfig.configure(users=[entry])
    found = replay(small_log(make_trace), users=population, processors="4")
    assert found.metrics["jobs_unfinished"] == 0
    assert (found.metrics["jobs_cancelled"] > 10) == (then == "never")
    assert found.accounts["jobs_left_queue"] > 10


@pytest.mark.parametrize("then", ["never", "later", "smaller"])
@pytest.mark.parametrize("scheduler", ["easy", "conservative", "fair-share"])
def test_engines_agree(make_trace: Callable[..., Trace], scheduler: str, then: str) -> None:
    """Users who look and users who leave see the same in both engines."""
    found = []
    for plain in (False, True):
        jobs = jobs_from_trace(small_log(make_trace)).jobs
        model = Simulation(jobs, 5, scheduler, plain=plain, seed=3)
        looks = LookAgain(ExpectedWait(7200), every=1000, most=3)
        patience = Patience(mean=5000, then=then)
        add_users(model, Work.of(jobs), Recipe(reactions=(looks,), patience=patience))
        model.run()
        found.append(jobs.matrix.tolist())
    assert found[0] == found[1]


def test_forks_keep_alarms_and_draws(make_trace: Callable[..., Trace]) -> None:
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
        assert np.array_equal(jobs.matrix, other.jobs.matrix)
