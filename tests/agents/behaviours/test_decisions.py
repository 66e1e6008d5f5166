"""The log of decisions: tiny stories with the exact rows, and what holds of any log."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd import Behaviour, ClusterSpec, JobTable, Simulation, Streams, Work, add_users
from hpcrowd.agents.behaviours.activity import ActivityWindow, SameWindow
from hpcrowd.agents.behaviours.decisions import Decision, DecisionLog, Decisions, Kind, What, Why
from hpcrowd.agents.behaviours.hooks import note_generating
from hpcrowd.agents.generative.archetypes import (
    DEMO_USERS,
    DebuggerHabits,
    NightScriptHabits,
    Stage,
)
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.agents.generative.pool_users import BatchPool, DrawFromPool, PoolMember
from hpcrowd.agents.generative.shmueli import PUBLISHED
from hpcrowd.agents.populations.component_users import AsRecorded, ClosedLoop
from hpcrowd.agents.populations.components import Pool
from hpcrowd.agents.populations.openness import Openness, PoolRules
from hpcrowd.agents.populations.satisfaction import Habit, Requested
from hpcrowd.agents.populations.semi_open import (
    ComponentWork,
    GroupWork,
    Living,
    SiteWork,
    add_members,
    draw_roster,
)
from hpcrowd.agents.presets import PRESETS
from hpcrowd.behaviours import BatchOrder, Composed, ContinuationLaw, LinearThink, SessionGraph
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.platform import NodesDown
from hpcrowd.populations import Consequences, Debugger, NightScript, demo_population
from hpcrowd.reactions import Delay, During, Renounce, Switch
from hpcrowd.scenarios.kinds.populations.resample import resample
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.generative.test_archetypes import PLAIN_OFFICE, fixed
from tests.support.behaviours import EVERY_JOB, SPRING
from tests.support.populations import record, small_log
from tests.support.simulations import simulation_of

NONE = -1
SUBMITTED, WAITS = What.SUBMITTED, What.WAITS
RECORDED, ENDED, OWN = Why.RECORDED, Why.ENDED, Why.OWN

#: The user thinks for 10 s after the first job.
TWO = ((0, 60, 1), (70, 10, 2))


class AtOnce(Behaviour[Any]):
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


# ---- what holds of any log --------------------------------------------------------------------

#: After these a user submits nothing more, and comes and goes no more.
LAST = (What.DONE, What.GAVE_UP)


def ends_of(jobs, *, hears=True):
    """When each unit ended for its user: a job that never ran ended at once."""
    heard = np.where(jobs.end >= 0, jobs.end, jobs.submit)
    over = heard if hears else jobs.submit + jobs.run_time
    ends: dict[int, int] = {}
    for unit, end in zip(jobs.batch.tolist(), over.tolist(), strict=True):
        ends[unit] = max(end, ends.get(unit, 0))
    return ends


def check_sums(jobs, found, *, hears=True):
    """Each unit is submitted once, by its user, at the sum of what the log says of it."""
    ends = ends_of(jobs, hears=hears)
    owner = dict(zip(jobs.batch.tolist(), jobs.user.tolist(), strict=True))
    first: dict[int, int] = {}
    for unit, at in zip(jobs.batch.tolist(), jobs.submit.tolist(), strict=True):
        first[unit] = min(at, first.get(unit, at))
    submitted: dict[int, Decision] = {}
    waits: dict[int, list[Decision]] = defaultdict(list)
    for one in found:
        if one.what == What.SUBMITTED:
            assert one.unit not in submitted
            submitted[one.unit] = one
        elif one.what == What.WAITS:
            waits[one.unit].append(one)
    assert first == {unit: one.time for unit, one in submitted.items()}
    assert set(waits) <= set(submitted)
    for unit, one in submitted.items():
        assert owner[unit] == one.user
        put_off = sum(wait.seconds for wait in waits[unit])
        if one.why in (Why.ENDED, Why.BREAK):
            assert one.user == owner[one.cause]
            assert one.seconds >= 0
            assert one.time == ends[one.cause] + one.seconds + put_off
        else:
            assert (-1, -1) == (one.cause, one.seconds)
        # Each wait begins where what came before it ends.
        at = one.time - put_off
        for wait in sorted(waits[unit], key=lambda wait: wait.why != Why.PACE):
            came = at + min(wait.seconds, 0)  # what shortens a pause is noted when it has
            assert (came, one.user, one.cause) == (wait.time, wait.user, wait.cause)
            at += wait.seconds


def check_gone(found):
    """Nothing is noted of who is gone, and who is away submits nothing."""
    gone: dict[int, Decision] = {}
    away: dict[int, bool] = defaultdict(bool)
    for one in sorted(found, key=lambda one: one.time):
        before = gone.get(one.user)
        assert before is None or one.time == before.time, one
        if one.what in LAST:
            gone[one.user] = one
        elif one.what in (What.WENT_AWAY, What.CAME_BACK):
            away[one.user] = one.what == What.WENT_AWAY
        elif one.what == What.SUBMITTED:
            assert not away[one.user]


def test_satisfaction(make_trace):
    """Who minds has its mood in the log, and away users have waits; the log changes nothing."""
    # On a machine of a third of the speed everybody is discontent.
    choices: dict[str, Any] = {
        "satisfaction": "habit", "speed": "0.3x", "days": 56,
        "consequences": {"leave": 1.0, "tolerance": 0.1, "returns": 1.0, "away": 1.0},
    }  # fmt: skip
    trace = small_log(make_trace)
    run, silent = (resample(trace, log=log, **choices) for log in (DecisionLog(), None))
    decisions = run.parts["decisions"].rows
    told, untold = (one.jobs.matrix[:, : len(one.jobs)].tobytes() for one in (run, silent))
    assert untold == told
    check_sums(run.jobs, decisions)
    check_gone(decisions)
    away = [one for one in decisions if one.what == What.WENT_AWAY]
    assert all(one.mood > 0.1 and one.why == Why.MOOD for one in away)
    assert {Why.AWAY, Why.MOOD} <= {one.why for one in decisions}


#: Tests of 60 s, each an hour after the end of the one before.
STEADY = {"office": PLAIN_OFFICE, "processors": (1,), "run_time": fixed(60), "think": fixed(HOUR)}
STAGES = (Stage(1, 1, fixed(60), 60), Stage(1, 1, fixed(90), 90))
MORNING = [
    (0, What.WAITS, Why.WINDOW, 0, -1, 8 * HOUR),
    (8 * HOUR, SUBMITTED, Why.FIRST, 0, -1, -1),
]
BREAKS = DebuggerHabits(**STEADY, pause=fixed(6 * HOUR), law=ContinuationLaw(0.0))
SECOND, THIRD = 15 * HOUR + 60, 14 * HOUR + 60


ARCHETYPE: list[tuple[Behaviour[GeneratedUser], list[Any]]] = [
    # Who does not continue takes a break, and comes back in its hours.
    (Debugger(BREAKS), [
        *MORNING, (THIRD, SUBMITTED, Why.BREAK, 1, 0, 6 * HOUR),
        (THIRD + 60 + 6 * HOUR, What.WAITS, Why.WINDOW, 2, 1, 12 * HOUR - 120),
        (DAY + 8 * HOUR, SUBMITTED, Why.BREAK, 2, 1, 6 * HOUR)]),
    # A script comes at its hour, and continues as soon as a stage has ended.
    (NightScript(NightScriptHabits(hour=21 * HOUR, shift=0, stages=STAGES)), [
        (21 * HOUR, SUBMITTED, Why.HOUR, 0, -1, -1),
        (21 * HOUR + 60, SUBMITTED, Why.ENDED, 1, 0, 0),
        (DAY + 21 * HOUR, SUBMITTED, Why.HOUR, 2, -1, -1),
        (DAY + 21 * HOUR + 60, SUBMITTED, Why.ENDED, 3, 2, 0)]),
]  # fmt: skip


@pytest.mark.parametrize(("made", "expected"), ARCHETYPE)
def test_archetype(made, expected):
    """Rows of one user on an empty machine: time, what, why, unit, cause, seconds."""
    model, book = Simulation(JobTable(), 128, "fcfs", seed=0), DecisionLog()
    user = GeneratedUser(model, 1, made, horizon=2 * DAY, hears=True)
    made.begin(user)
    note_generating(book, [user])
    model.run()
    found = [(d.time, d.what, d.why, d.unit, d.cause, d.seconds) for d in Decisions.of(book)]
    assert expected == found[: len(expected)]


class Hasty(DrawFromPool):
    """Submits the next batch as soon as one has ended, without an alarm."""

    def finished(self, user, unit, now):
        """Go on at once."""
        if now < 4 * WEEK:
            self.wake(user, unit)


def test_what_made_an_alarm_late_is_forgotten():
    """Only what an alarm submits was late with it: what follows without one is not."""
    model = Simulation(JobTable(), 1)
    pool = BatchPool(*(np.array(values) for values in ([0, 1], [WEEK], [WEEK], [1])))
    hasty = Hasty([PoolMember(1, 1, 5, np.array([10]))], {1: pool})
    user = GeneratedUser(model, 1, hasty, group=1, horizon=5 * WEEK)
    user.absent_until = 10
    book = DecisionLog()
    note_generating(book, [user])
    user.behaviour.begin(user)
    model.run()
    assert [
        (5, What.WAITS, Why.AWAY, WEEK),
        (WEEK + 5, What.SUBMITTED, Why.FIRST, -1),
        (2 * WEEK + 5, What.SUBMITTED, Why.ENDED, 0),
        (3 * WEEK + 5, What.SUBMITTED, Why.ENDED, 0),
    ] == [(d.time, d.what, d.why, d.seconds) for d in Decisions.of(book)]


# ---- any users --------------------------------------------------------------------------------

#: Weeks that populations live.
WEEKS = 4

#: Users who are soon discontent, leave often and come back often.
TOUCHY = Consequences(leave=1.0, tolerance=0.0, returns=0.7, away=1.0, again=1.0)

seconds = st.integers(300, 12 * HOUR)


@st.composite
def weekly_records(draw):
    """Jobs of up to four users over three weeks, most of them by day."""
    few, day, at = st.integers(1, 4), st.integers(0, 20), st.integers(0, DAY - 1)
    job = st.tuples(few, day, at, seconds, few, st.integers(0, 3 * HOUR))
    jobs = draw(st.lists(job, min_size=2, max_size=25))
    # A log of several weeks, whatever else is drawn.
    jobs += [(1, 0, 9 * HOUR, HOUR, 1, 0), (1, 20, 9 * HOUR, HOUR, 1, 0)]
    rows = [(user, day * DAY + at, run, width, wait) for user, day, at, run, width, wait in jobs]
    return record(sorted(rows, key=lambda row: row[1]))


def groups(pool):
    """Members who draw from three batches, whoever they are."""
    users = pool.work.sessions.users.tolist()
    columns = [0, 1, 3], [60, HOUR, 5], [90, HOUR, 9], [1, 4, 2]
    batches = BatchPool(*(np.array(column) for column in columns))
    pauses = np.array([0, HOUR, 2 * DAY])
    return GroupWork(pool, [PoolMember(user, 0, 0, pauses) for user in users], {0: batches})


LIVING: dict[str, Callable[[Pool], Living]] = {
    "rigid": lambda pool: ComponentWork(pool, AsRecorded()),
    "think-time": lambda pool: ComponentWork(pool, ClosedLoop()),
    "think-time-windows": lambda pool: ComponentWork(pool, ClosedLoop(pool.profiles)),
    "groups": groups,
    "shmueli-feitelson": lambda pool: SiteWork(pool, PUBLISHED),
    "generative": lambda pool: SiteWork(pool, PRESETS["generative"]),
}


def lived(jobs, make, *, formula, log, seed):
    """The jobs of a population, what it decided, and its visits."""
    pool = Pool.of(Work.of(jobs.copy()), SPRING, PoolRules(least=1))
    living = make(pool)
    model = Simulation(JobTable(), 4, clock=SPRING, seed=seed)
    living.visits.log = log
    roster = draw_roster(living.pool, WEEKS, Openness(), Streams(seed))
    horizon = SPRING.second_at(SPRING.wall(0) + WEEKS * WEEK)
    how: dict[str, Any] = {"horizon": horizon, "formula": formula, "consequences": TOUCHY}
    users = add_members(model, living, roster, **how)
    if log is not None:
        note_generating(log, users)
    model.run()
    return model.jobs, [] if log is None else list(Decisions.of(log)), living.visits.notes


@pytest.mark.parametrize("doing", LIVING)
@settings(max_examples=12)
@given(jobs=weekly_records(), minds=st.booleans(), seed=st.integers(0, 9))
def test_populations(doing, jobs, minds, seed):
    """Members of populations, content or not; who is gone does nothing, and nothing changes."""
    log = DecisionLog()
    makes_up = doing in ("groups", "shmueli-feitelson", "generative")
    how: dict[str, Any] = {"seed": seed, "formula": None}
    if minds and doing != "rigid":
        how["formula"] = Requested() if makes_up else Habit()
    after, found, visits = lived(jobs, LIVING[doing], log=log, **how)
    silent, _, _ = lived(jobs, LIVING[doing], log=None, **how)
    assert silent.matrix[:, : len(silent)].tobytes() == after.matrix[:, : len(after)].tobytes()
    check_sums(after, found)
    check_gone(found)
    noted = sorted((one.time, one.user, one.what.name) for one in found if one.what >= What.THERE)
    assert noted == sorted((visit.at, visit.user, visit.what.name) for visit in visits)
    reasons = {one.why for one in found}
    assert doing == "think-time-windows" or Why.PACE not in reasons
    assert doing != "rigid" or {Why.RECORDED} == {
        one.why for one in found if one.what == What.SUBMITTED
    }


@pytest.mark.parametrize("hears", [True, False])
@settings(max_examples=12)
@given(counts=st.fixed_dictionaries({name: st.integers(0, 2) for name in DEMO_USERS}),
       seed=st.integers(0, 99), processors=st.sampled_from([32, 128]))  # fmt: skip
def test_archetypes(hears, counts, seed, processors):
    """People with office hours and nightly scripts, whether they hear of their results or not."""
    model = Simulation(JobTable(), processors, clock=SPRING, seed=seed)
    users = demo_population(model, counts, horizon=10 * DAY, hears=hears)
    log = DecisionLog()
    note_generating(log, users)
    model.run()
    found = list(Decisions.of(log))
    check_sums(model.jobs, found, hears=hears)
    assert Why.OWN not in {one.why for one in found}
    wakes = {one.user for one in found if one.why in (Why.FIRST, Why.HOUR)}
    assert {one.user for one in found} == wakes
