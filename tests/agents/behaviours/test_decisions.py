"""The log of decisions: tiny stories with the exact rows, behaviour by behaviour."""

from typing import Any

import pytest
from hpcrowd import Behaviour, ClusterSpec, ReplayUser, Work, add_users
from hpcrowd.agents.behaviours.decisions import DecisionLog, Decisions, Kind, What, Why
from hpcrowd.behaviours import (
    ActivityWindow,
    BatchOrder,
    Composed,
    LinearThink,
    SameWindow,
    SessionGraph,
)
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.platform import NodesDown
from hpcrowd.reactions import Delay, During, Renounce, Switch

from tests.support.behaviours import EVERY_JOB
from tests.support.simulations import simulation_of

NONE = -1
SUBMITTED, WAITS = What.SUBMITTED, What.WAITS
RECORDED, ENDED, OWN = Why.RECORDED, Why.ENDED, Why.OWN

#: The user thinks for 10 s after the first job.
TWO = ((0, 60, 1), (70, 10, 2))


class AtOnce(Behaviour[ReplayUser]):
    """Submits everything at 5 s, and does not say why."""

    def begin(self, user):
        """Submit everything."""
        for unit in user.units:
            user.submit(unit, 5)


class Later(Composed):
    """Comes 7 s later than its parts say."""

    def arrival(self, user, release):
        """Return the second."""
        return super().arrival(user, release) + 7


class Again(Composed):
    """Submits its second session by itself, at 20 s, and leaves the others to its parts."""

    def begin(self, user):
        """Begin as ever, and submit one more."""
        super().begin(user)
        user.submit(1, 20)


class First(SessionGraph):
    """Leaves the second session alone."""

    def finished(self, user, unit, now):
        """Release nothing."""
        return ()


def with_parts(when=BatchOrder, *parts, **more):
    """Return a maker of a behaviour of these parts."""
    return lambda work: Composed(when(work), *parts, **more)


OPENING = (0, SUBMITTED, RECORDED, 0, NONE, 0)
SOON = During([(50, 100)])
HOURS = SameWindow(ActivityWindow())  # 8:00 to 18:00 on weekdays

STORIES: dict[str, tuple[Any, Any, list[tuple[Any, ...]], str]] = {
    "rigid users submit as recorded": (TWO, "rigid", [
        (0, SUBMITTED, RECORDED, 0, NONE, NONE), (70, SUBMITTED, RECORDED, 1, NONE, NONE)], ""),
    "think time after a completion": (TWO, "think-time", [
        OPENING, (70, SUBMITTED, ENDED, 1, 0, 10)], ""),
    # User 2 holds the machine for 100 s; user 1 submits at 5 and thinks 10 s as recorded.
    "waiting moves the release": (
        ((0, 100, 8, 100, 2), (5, 60, 8, 60, 1), (75, 10, 2, 10, 1)), "think-time", [
        (0, SUBMITTED, RECORDED, 2, NONE, 0), (5, SUBMITTED, RECORDED, 0, NONE, 0),
        (170, SUBMITTED, ENDED, 1, 0, 10)], ""),
    "a batch that follows a submission": (((0, 500, 1), (60, 5, 1)), "adjusted", [
        OPENING, (60, SUBMITTED, Why.FOLLOWS, 1, 0, 60)], ""),
    "who thinks into the night waits for the morning": (
        ((17 * HOUR, HOUR // 2, 1), (18 * HOUR, 10, 1)), with_parts(SessionGraph, window=HOURS), [
        (17 * HOUR, SUBMITTED, RECORDED, 0, NONE, 0),
        (18 * HOUR, WAITS, Why.WINDOW, 1, 0, 14 * HOUR),
        (DAY + 8 * HOUR, SUBMITTED, ENDED, 1, 0, HOUR // 2)],
        "session 1 waits 14.0 h, until the user is at work"),
    "who is absent does not think": (
        ((17 * HOUR, 2 * HOUR, 1), (20 * HOUR, 10, 1)),
        with_parts(SessionGraph, window=HOURS, waits=True), [
        (17 * HOUR, SUBMITTED, RECORDED, 0, NONE, 0),
        (19 * HOUR, WAITS, Why.WINDOW, 1, 0, 13 * HOUR),
        (DAY + 8 * HOUR, SUBMITTED, ENDED, 1, 0, 0)], ""),
    "a think time that is computed": (TWO, with_parts(BatchOrder, LinearThink(0.5, 3)), [
        OPENING, (93, SUBMITTED, ENDED, 1, 0, 33)], ""),
    "a delay when the unit is due": (TWO, with_parts(reactions=[Delay(SOON, name="clean")]), [
        OPENING, (70, What.DELAYED, Why.REACTION, 1, 2, 30), (100, SUBMITTED, ENDED, 1, 0, 10)],
        "batch 1: job 2 delayed by 30 s, reaction clean"),
    "who waited for what is renounced continues at once": (
        (*TWO, (90, 5, 1)), with_parts(reactions=[Renounce(During([(50, 80)]))]), [
        OPENING, (70, What.RENOUNCED, Why.REACTION, 1, 2, NONE),
        (80, SUBMITTED, ENDED, 2, 1, 10)], ""),
    "a switch says where to": (
        TWO[:1], with_parts(reactions=[Switch(During([(0, 9)]), to="other", name="move")]), [
        (0, What.SWITCHED, Why.REACTION, 0, 1, NONE), OPENING],
        "batch 0: job 1 switched, reaction move to other"),
    "a behaviour that knows nothing of the log": (TWO, lambda work: AtOnce(), [
        (5, SUBMITTED, OWN, unit, NONE, NONE) for unit in (0, 1)], ""),
    "submissions besides those of the parts": (TWO, lambda work: Again(First(work)), [
        OPENING, (20, SUBMITTED, OWN, 1, NONE, NONE)], ""),
    "an own arrival": (TWO, lambda work: Later(SessionGraph(work)), [
        (0, WAITS, OWN, 0, NONE, 7), (7, SUBMITTED, RECORDED, 0, NONE, 0),
        (77, WAITS, OWN, 1, 0, 7), (84, SUBMITTED, ENDED, 1, 0, 10)], ""),
    "a running job that was stopped": (((0, 100, 8),), "adjusted", [
        OPENING, (60, What.LOST, Why.STOPPED, 0, 1, 600)],
        "batch 0: job 1 was stopped, the user submits it again after 10.0 min"),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_story(make_jobs, story):
    """Time, what, why, unit, cause and seconds of each row, and what some rows say in words."""
    jobs, users, expected, words = STORIES[story]
    down = [NodesDown(60, 70, 1, jobs="resubmit")] if "stopped" in story else ()
    table, log = make_jobs(*jobs), DecisionLog()
    model = simulation_of(table, 8, others={"other": ClusterSpec(8)}, platform=down)
    add_users(model, Work.of(table, EVERY_JOB), users, log=log)
    model.run()
    found = list(Decisions.of(log))
    assert expected == [(d.time, d.what, d.why, d.unit, d.cause, d.seconds) for d in found]
    assert not words or words in {one.words() for one in found}


def test_log_is_bounded():
    """Beyond the limit decisions are counted, and those before are all there."""
    log = DecisionLog(limit=3)
    for at in range(10):
        log.note(at, 1, SUBMITTED, OWN)
    assert (3, 7) == (len(log), log.dropped)
    assert [0, 1, 2] == Decisions.of(log).columns["time"].tolist()


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (ENDED, "batch 31 submitted, released by completion of batch 29, think time 12.0 min"),
        (Why.BREAK,
         "batch 31 submitted, released by completion of batch 29, after a break of 12.0 min"),
        (Why.FOLLOWS, "batch 31 submitted, released by submission of batch 29, 12.0 min after it"),
        (RECORDED, "batch 31 submitted at its recorded time"),
        (Why.MOOD, "goes away for some weeks, discontent (mood +1.50 doublings)"),
    ],
)  # fmt: skip
def test_decisions_in_words(why, words):
    """A submission names what released it, and the pause; a mood has its sign."""
    what, mood = (What.WENT_AWAY, 1.5) if why == Why.MOOD else (SUBMITTED, 0.0)
    log = DecisionLog()
    log.note(0, 17, what, why, Kind.BATCH, 31, 29, 720, mood=mood)
    assert words == next(iter(Decisions.of(log))).words()
