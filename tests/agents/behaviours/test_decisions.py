"""The log of decisions: tiny stories with the exact rows, behaviour by behaviour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hpcrowd.agents import (
    ActivityWindow,
    BatchOrder,
    Behaviour,
    Composed,
    Delay,
    During,
    LinearThink,
    Renounce,
    ReplayUser,
    SameWindow,
    SessionDefinition,
    SessionGraph,
    Switch,
    Work,
    add_users,
)
from hpcrowd.agents.behaviours.decisions import DecisionLog, Decisions, Kind, What, Why
from hpcrowd.environment import ClusterSpec, JobTable, NodesDown, QuantityError, Simulation
from hpcrowd.environment.clock import DAY, HOUR

MakeJobs = Callable[..., JobTable]
EVERY_JOB = SessionDefinition("arrival", None)
HOUR_LONG = SessionDefinition("arrival", HOUR)
NONE = -1


def logged(
    jobs: JobTable,
    users: Any,
    sessions: SessionDefinition = EVERY_JOB,
    processors: int = 8,
    **options: Any,
) -> Decisions:
    """Run users over jobs with a log; return what they decided."""
    model = Simulation(jobs, processors, **options)
    log = DecisionLog()
    add_users(model, Work.of(jobs, sessions), users, log=log)
    model.run()
    return Decisions.of(log)


def rows(decisions: Decisions) -> list[tuple[Any, ...]]:
    """Rows without user, kind, name and mood."""
    return [(d.time, d.what, d.why, d.unit, d.cause, d.seconds) for d in decisions]


def test_rigid_users_submit_as_recorded(make_jobs: MakeJobs) -> None:
    """A rigid user has one row for each session, at its recorded second."""
    found = logged(make_jobs((0, 60, 1), (70, 10, 2)), "rigid")
    assert [
        (0, What.SUBMITTED, Why.RECORDED, 0, NONE, NONE),
        (70, What.SUBMITTED, Why.RECORDED, 1, NONE, NONE),
    ] == rows(found)


def test_think_time_after_a_completion(make_jobs: MakeJobs) -> None:
    """A session that waited for another says which, and how long the user thought."""
    jobs = make_jobs((0, 60, 1), (70, 10, 2))
    found = logged(jobs, "think-time")
    assert [
        (0, What.SUBMITTED, Why.RECORDED, 0, NONE, 0),
        (70, What.SUBMITTED, Why.ENDED, 1, 0, 10),
    ] == rows(found)
    assert {Kind.SESSION} == {decision.kind for decision in found}


def test_waiting_moves_the_release(make_jobs: MakeJobs) -> None:
    """When the machine makes the first session late, the second follows its completion."""
    # User 2 holds the machine for 100 s; user 1 submits at 5 and thinks 10 s as recorded.
    jobs = make_jobs((0, 100, 8, 100, 2), (5, 60, 8, 60, 1), (75, 10, 2, 10, 1))
    found = logged(jobs, "think-time")
    last = list(found)[-1]
    assert (170, 1, What.SUBMITTED, Why.ENDED, 10) == (
        last.time, last.user, last.what, last.why, last.seconds,
    )  # fmt: skip


def test_batch_that_follows_a_submission(make_jobs: MakeJobs) -> None:
    """A batch that waits for nothing but the submission before it says so."""
    jobs = make_jobs((40, 500, 1), (60, 5, 1))
    assert [
        (40, What.SUBMITTED, Why.RECORDED, 0, NONE, 0),
        (60, What.SUBMITTED, Why.FOLLOWS, 1, 0, 20),
    ] == rows(logged(jobs, "adjusted"))


def test_window_puts_off(make_jobs: MakeJobs) -> None:
    """Who thinks into the night waits for the morning: a row for the wait, with its length."""
    jobs = make_jobs((17 * HOUR, HOUR // 2, 1), (18 * HOUR, 10, 1))
    found = logged(
        jobs,
        lambda work: Composed(SessionGraph(work), window=SameWindow(ActivityWindow())),
    )
    assert [
        (17 * HOUR, What.SUBMITTED, Why.RECORDED, 0, NONE, 0),
        (18 * HOUR, What.WAITS, Why.WINDOW, 1, 0, 14 * HOUR),
        (DAY + 8 * HOUR, What.SUBMITTED, Why.ENDED, 1, 0, HOUR // 2),
    ] == rows(found)
    assert "session 1 waits 14.0 h, until the user is at work" == list(found)[1].words()


def test_absent_user_does_not_think(make_jobs: MakeJobs) -> None:
    """Who is absent when a unit is released submits when it is back, without thinking."""
    jobs = make_jobs((17 * HOUR, 2 * HOUR, 1), (20 * HOUR, 10, 1))
    found = logged(
        jobs,
        lambda work: Composed(SessionGraph(work), window=SameWindow(ActivityWindow()), waits=True),
    )
    assert [
        (19 * HOUR, What.WAITS, Why.WINDOW, 1, 0, 13 * HOUR),
        (DAY + 8 * HOUR, What.SUBMITTED, Why.ENDED, 1, 0, 0),
    ] == rows(found)[1:]


def test_think_time_that_is_computed(make_jobs: MakeJobs) -> None:
    """The think time is the one that the part gave, not the recorded one."""
    jobs = make_jobs((0, 60, 1), (70, 10, 2))
    found = logged(jobs, lambda work: Composed(BatchOrder(work), LinearThink(0.5, 3)))
    assert (93, What.SUBMITTED, Why.ENDED, 1, 0, 33) == rows(found)[-1]


def test_delayed_by_a_reaction(make_jobs: MakeJobs) -> None:
    """A delay is a row when the unit is due; the submission comes when it was made."""
    jobs = make_jobs((0, 60, 1), (70, 10, 2))
    react = Delay(During([(50, 100)]), name="clean")
    found = logged(jobs, lambda work: Composed(BatchOrder(work), reactions=[react]))
    assert [
        (0, What.SUBMITTED, Why.RECORDED, 0, NONE, 0),
        (70, What.DELAYED, Why.REACTION, 1, 2, 30),
        (100, What.SUBMITTED, Why.ENDED, 1, 0, 10),
    ] == rows(found)
    assert "batch 1: job 2 delayed by 30 s, reaction clean" == list(found)[1].words()


def test_renounced_as_a_whole(make_jobs: MakeJobs) -> None:
    """What is renounced was never submitted; who waited for it continues at once."""
    jobs = make_jobs((0, 60, 1), (70, 10, 2), (90, 5, 1))
    react = Renounce(During([(50, 80)]))
    found = logged(jobs, lambda work: Composed(BatchOrder(work), reactions=[react]))
    assert [What.SUBMITTED, What.RENOUNCED, What.SUBMITTED] == [d.what for d in found]
    assert (80, Why.ENDED, 2, 1, 10) == (lambda d: (d.time, d.why, d.unit, d.cause, d.seconds))(
        list(found)[-1]
    )


def test_switched_by_a_reaction(make_jobs: MakeJobs) -> None:
    """A switch says where to."""
    jobs = make_jobs((0, 60, 1))
    react = Switch(During([(0, 100)]), to="other", name="move")
    found = logged(
        jobs,
        lambda work: Composed(BatchOrder(work), reactions=[react]),
        others={"other": ClusterSpec(8)},
    )
    assert [What.SWITCHED, What.SUBMITTED] == [decision.what for decision in found]
    assert "batch 0: job 1 switched, reaction move to other" == next(iter(found)).words()


class AtOnce(Behaviour[ReplayUser]):
    """Submits everything at 5 s, and does not say why."""

    def begin(self, user: ReplayUser) -> None:
        """Submit everything."""
        for unit in user.units:
            user.submit(unit, 5)


class Later(Composed):
    """Comes 7 s later than its parts say."""

    def arrival(self, user: ReplayUser, release: Any) -> int:
        """Return the second."""
        return super().arrival(user, release) + 7


class Again(Composed):
    """Submits its second session by itself, at 20 s, and leaves the others to its parts."""

    def begin(self, user: ReplayUser) -> None:
        """Begin as ever, and submit one more."""
        super().begin(user)
        user.submit(1, 20)


def test_behaviour_of_ones_own(make_jobs: MakeJobs) -> None:
    """Submissions of a behaviour that knows nothing of the log are noted without a reason."""
    found = logged(make_jobs((0, 60, 1), (70, 10, 2)), lambda work: AtOnce())
    assert [(5, What.SUBMITTED, Why.OWN, unit, NONE, NONE) for unit in (0, 1)] == rows(found)


def test_submissions_besides_those_of_the_parts(make_jobs: MakeJobs) -> None:
    """What a subclass submits by itself is noted once, without a reason, and nothing twice."""
    jobs = make_jobs((0, 60, 1), (70, 10, 2))

    class First(SessionGraph):
        """Leaves the second session alone."""

        def finished(self, user: ReplayUser, unit: int, now: int) -> Any:
            """Release nothing."""
            return ()

    found = logged(jobs, lambda work: Again(First(work)))
    assert [
        (0, What.SUBMITTED, Why.RECORDED, 0, NONE, 0),
        (20, What.SUBMITTED, Why.OWN, 1, NONE, NONE),
    ] == rows(found)


def test_arrival_of_ones_own(make_jobs: MakeJobs) -> None:
    """What a subclass adds to an arrival is its own wait."""
    found = logged(make_jobs((0, 60, 1), (70, 10, 2)), lambda work: Later(SessionGraph(work)))
    assert [
        (0, What.WAITS, Why.OWN, 0, NONE, 7),
        (7, What.SUBMITTED, Why.RECORDED, 0, NONE, 0),
        (77, What.WAITS, Why.OWN, 1, 0, 7),
        (84, What.SUBMITTED, Why.ENDED, 1, 0, 10),
    ] == rows(found)


@pytest.mark.parametrize(
    ("users", "kind"), [("think-time", Kind.SESSION), ("adjusted", Kind.BATCH)]
)
def test_stopped_jobs(make_jobs: MakeJobs, users: str, kind: Kind) -> None:
    """A running job that was stopped is a row, with when it comes again; that itself is none."""
    down = NodesDown(60, 70, 1, jobs="resubmit")
    found = logged(make_jobs((0, 100, 4)), users, processors=4, platform=[down])
    assert [
        (0, What.SUBMITTED, Why.RECORDED, 0, NONE, 0),
        (60, What.LOST, Why.STOPPED, 0, 1, 600),
    ] == rows(found)
    assert "job 1 was stopped, the user submits it again after 10.0 min" in list(found)[1].words()
    assert {kind} == {decision.kind for decision in found}


def test_log_is_bounded() -> None:
    """Beyond the limit decisions are counted, and those before are all there."""
    log = DecisionLog(limit=3)
    for at in range(10):
        log.note(at, 1, What.SUBMITTED, Why.OWN)
    assert (3, 7) == (len(log), log.dropped)
    assert [0, 1, 2] == Decisions.of(log).columns["time"].tolist()
    assert "<DecisionLog: 3 rows, 7 dropped>" == repr(log)


def test_log_of_nothing_is_refused() -> None:
    """A log that may keep nothing is an error."""
    with pytest.raises(QuantityError, match=r"limit 0: .* at least 1"):
        DecisionLog(limit=0)


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (Why.ENDED, "batch 31 submitted, released by completion of batch 29, think time 12.0 min"),
        (
            Why.BREAK,
            "batch 31 submitted, released by completion of batch 29, after a break of 12.0 min",
        ),
        (Why.FOLLOWS, "batch 31 submitted, released by submission of batch 29, 12.0 min after it"),
        (Why.RECORDED, "batch 31 submitted at its recorded time"),
    ],
)
def test_submissions_in_words(why: Why, words: str) -> None:
    """A submission names what released it, and the pause."""
    log = DecisionLog()
    log.note(0, 17, What.SUBMITTED, why, Kind.BATCH, 31, 29, 720)
    assert words == next(iter(Decisions.of(log))).words()


def test_mood_in_words() -> None:
    """A mood is reported with its sign."""
    log = DecisionLog()
    log.note(0, 17, What.WENT_AWAY, Why.MOOD, mood=1.5)
    assert (
        "goes away for some weeks, discontent (mood +1.50 doublings)"
        == next(iter(Decisions.of(log))).words()
    )
