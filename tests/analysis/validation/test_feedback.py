"""Whether feedback helps after events: made-up logs, and worlds in which the answer is known."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.analysis.forecast.futures import Outset
from hpcrowd.analysis.validation import feedback as F
from hpcrowd.analysis.validation.events import Event, find_events
from hpcrowd.analysis.validation.recorded_waits import AsWaited, Waits
from hpcrowd.analysis.validation.scores import Estimate
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.scenarios.studies.events import Found, feedback_table

from tests.analysis.validation.test_events import CLOCK, LASTS, log
from tests.scenarios.forecasts.forecast_cases import swf_of

#: Futures of each kind of users in tests, and users.
FUTURES, USERS = 4, 4


def few(**how):
    """The made-up log with fewer users."""
    jobs = log(**how)
    return jobs.take(np.flatnonzero(jobs.user <= USERS))


@pytest.fixture(scope="module")
def question():
    """A log with an outage of a day."""
    jobs = few()
    return F.Question(jobs, CLOCK, 2 * USERS, find_events(jobs, CLOCK), FUTURES)


@pytest.fixture(scope="module")
def seen(question):
    """What is foreseen after the outage, and at the ordinary moment."""
    return [F.see(question, moment) for moment in F.moments_of(question, 3)]


def test_moments_come_in_pairs(question):
    """An ordinary moment has the weekday, hour and length of its event, and nothing happens."""
    event, ordinary = (one.event for one in F.moments_of(question, 3))
    assert "outage" == event.kind
    assert F.ORDINARY == ordinary.kind
    assert 0 == (ordinary.begin - event.begin) % WEEK
    assert event.end - event.begin == ordinary.end - ordinary.begin
    assert abs(ordinary.begin - event.begin) >= F.NEAREST * WEEK
    assert 0 == F._disturbance(question.events, ordinary)
    assert LASTS / 2 < F._disturbance(question.events, event)
    with pytest.raises(QuantityError, match=r"no event with 28 days before it.* longer log"):
        F.moments_of(replace(question, jobs=few(days=60)), 3)


def test_users_differ_only_by_what_the_machine_does(seen):
    """Without an event they are the same; in an outage those who are aware wait for its end."""
    event, ordinary = seen
    for machine in F.MACHINES:
        assert (FUTURES, len(F.NUMBERS), len(F.SPANS)) == event.foreseen[machine, "aware"].shape
        gap = [
            np.abs(one.foreseen[machine, "aware"] - one.foreseen[machine, "unaware"]).max()
            for one in seen
        ]
        assert gap[0] > 0
    easy = (ordinary.foreseen["easy", users] for users in ("aware", "unaware"))
    assert np.array_equal(*easy)


def test_what_came_is_what_was_recorded(question, seen):
    """As multiples of the usual, from the end of the outage on."""
    jobs, event = question.jobs, seen[0].moment.event
    at = jobs.recorded_submit
    inside = (at >= event.end) & (at < event.end + DAY)
    usual = ((at >= event.begin - 28 * DAY) & (at < event.begin)).sum() / 28
    assert np.log(inside.sum() / usual + F.FLOOR) == pytest.approx(seen[0].came[0, 0])
    users = len(np.unique(jobs.user[inside]))
    assert np.log(users / USERS + F.FLOOR) == pytest.approx(seen[0].came[2, 0])
    names = np.unique(jobs.user[at < event.begin])
    assert np.array_equal(np.isin(names, jobs.user[inside]), seen[0].who_came[:, 0])
    # A job takes an hour on one processor.
    assert seen[0].came[1, 0] == pytest.approx(seen[0].came[0, 0])


def test_waits_are_those_of_jobs_like_it():
    """The nearest in time, as wide and as long; before the moment, in whole weeks if repeated."""
    jobs = log(outage=False)
    jobs.processors[::2] = 4
    jobs.recorded_start[::2] += 600  # wide jobs wait ten minutes
    late = jobs.recorded_submit >= 50 * DAY
    jobs.recorded_start[late] += HOUR
    wide, narrow = (4, HOUR), (1, HOUR)
    aware = Waits(jobs, 50 * DAY, repeats=False, outages=[(60 * DAY, 61 * DAY)])
    unaware = Waits(jobs, 50 * DAY, repeats=True)
    at = 52 * DAY + 12 * HOUR
    assert at + 600 + HOUR == aware.start(at, *wide)
    assert at + HOUR == aware.start(at, *narrow)
    assert at + 600 == unaware.start(at, *wide)
    assert at == unaware.start(at, *narrow)
    assert 61 * DAY == aware.start(60 * DAY + HOUR, *narrow)


def test_jobs_run_as_long_as_they_wait_and_run():
    """Users hear of the end of a job when it would have ended; what it used is what it ran."""
    jobs = log(outage=False)
    jobs.recorded_start += 1800
    jobs.recorded_end += 1800
    now = int(jobs.recorded_submit[3000]) + 60
    state = ClusterState.of(jobs, now, CLOCK, 1000)
    waiting = state.jobs.recorded_submit[state.waiting]
    assert len(waiting) > 0
    held = []

    def watch(simulation):
        held.extend((simulation, AsWaited(simulation, Waits(jobs, now, repeats=False))))

    future = Outset(state, DAY).simulate(0, watch=watch)
    simulation, as_waited = held
    new = np.arange(len(state.running) + len(state.waiting), len(simulation.jobs))
    sent = simulation.jobs.take(new)
    over = sent.end >= 0
    assert over.any()
    assert np.array_equal(sent.end[over] - sent.submit[over], np.full(over.sum(), 1800 + HOUR))
    assert {1800} == {as_waited.waited[row] for row in new.tolist()}
    # What waits already goes on waiting for the rest of its time.
    ended = future.end[len(state.running) :]
    assert np.array_equal(ended - waiting, 1800 + simulation.jobs.run_time[: len(future.end)][
        len(state.running) :] - (waiting + 1800 - now))  # fmt: skip


def pairs(truth, *, shift=1.5, logs=3, each=8):
    """What is foreseen and came in logs of events after which aware users do more."""
    draw = np.random.default_rng(5)
    found = {}
    for name in range(logs):
        found[str(name)] = []
        for pair in range(each):
            for kind, more in (("outage", shift), (F.ORDINARY, 0.0)):
                at = (20 + 5 * pair) * WEEK
                event = Event(kind, at, at + DAY, 1.0, 0.0, 0.0)
                usual, aware = (
                    draw.normal(level, 0.5, (12, len(F.NUMBERS), len(F.SPANS)))
                    for level in (0.0, more)
                )
                foreseen = {("", "rigid"): usual, ("easy", "unaware"): usual + 0.1,
                            ("easy", "aware"): aware}  # fmt: skip
                came = draw.normal(more * truth, 0.5, usual.shape[1:])
                # Aware users of one half come after events, and those of the other do not.
                chance = np.repeat((0.5 + more / 4, 0.5 - more / 4), 20)[:, None]
                who = {
                    key: draw.random((12, 40, len(F.SPANS))) < (chance if "aware" in key else 0.5)
                    for key in foreseen
                }
                who_came = draw.random((40, len(F.SPANS))) < 0.5 + (chance - 0.5) * truth
                seen = F.Seen(F.Moment(event, pair), came, foreseen, who_came, who)
                found[str(name)].append(seen)
    return found


@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_the_truth_is_found(truth):
    """Feedback helps where users react, and not where they do not; the power says so before."""
    found = F.verdicts(pairs(truth))
    assert len(F.MEASURES) * (len(F.SPANS) + 1) == len(found)
    for one in found:
        assert (24, "outage", "easy") == (one.events, one.kind, one.machine)
        assert (one.gain.low > 0) if truth else (one.gain.high < 0)
        assert abs(one.strength.value - truth) < 0.35
        assert one.gain.value == pytest.approx(one.at_events.value - one.at_ordinary.value)
        assert min(*one.power_gain, *one.power_strength, *one.power_here) > 0.8
        assert max(one.needed) < one.events
        assert np.isnan(one.strength_ordinary.value) or one.measure == F.WHO
    assert ("helps" if truth else "makes it worse") in F.conclusion(found[0])
    json.dumps([one.plain() for one in found])


def test_the_table_of_the_page():
    """Jobs by days, all else over all days; logs without futures have no row."""
    design = {name: Found([], [], "", CLOCK, 0.0, [], seen) for name, seen in
              zip(("KTH", "HPC2N", "SDSC-DS"), pairs(1.0).values(), strict=True)}  # fmt: skip
    found = feedback_table(design | {"NASA": Found([], [], "", CLOCK, 0.0, [])}, list(design))
    rows = found.splitlines()[2:]
    assert len(F.MEASURES) == len(rows)
    assert rows[0].startswith("| easy | outage | 24 | jobs | all | ")
    assert 2 == len(feedback_table(design, ["NASA"]).splitlines())


def test_a_small_answer_cannot_be_found():
    """Then intervals include 0, and the power is small."""
    found = F.verdicts(pairs(1.0, shift=0.02, each=3))
    assert np.mean([one.gain.low > 0 for one in found]) < 0.3
    assert np.mean([one.power_gain[0] for one in found]) < 0.4
    assert np.mean([one.power_here[0] for one in found]) < 0.4
    assert np.nanmedian([one.needed[1] for one in found]) > 9
    unsure = next(one for one in found if one.gain.low < 0 < one.gain.high)
    assert "does not show" in F.conclusion(unsure)


def test_an_answer_at_ordinary_moments_is_seen():
    """Who waits longer comes less often there, too."""
    logs = pairs(1.0)
    for each in logs.values():
        for event, ordinary in zip(each[::2], each[1::2], strict=True):
            ordinary.who.update(event.who)
            ordinary.who_came[:] = event.who_came
    found = [one for one in F.verdicts(logs) if one.measure == F.WHO]
    for one in found:
        assert one.strength_ordinary.value == pytest.approx(one.strength.value)
        assert 0 < one.strength_ordinary.low < 1 < one.strength_ordinary.high


def test_one_pair_has_no_interval():
    """Neither have figures of worlds, and JSON has nulls."""
    (first, *_) = F.verdicts(pairs(1.0, logs=1, each=1))
    assert np.isnan(first.gain.low)
    plain = first.plain()
    assert [None, None] == plain["power_gain"]
    assert Estimate(first.gain.value, np.nan, np.nan).plain() == plain["gain"]


def test_the_command_says_whether_feedback_helps(call, tmp_path):
    """Tables and a sentence for each machine; the same as JSON; no comma-separated values."""
    file = swf_of(few(), tmp_path / "log.swf")
    words = ("events", file, "--feedback", "--futures", 4)
    code, out, err = call(*words, "--json")
    assert 0 == code
    found = json.loads(out)["feedback"]
    assert set(F.MACHINES) == {one["machine"] for one in found}
    assert {1} == {one["events"] for one in found}
    code, out, err = call(*words)
    assert (0, "") == (code, err)
    assert "1 event, machine: recorded waits" in out
    assert "jobs, days all, 1 event, easy: the log does not show; at least 5 events" in out
    code, _, err = call(*words, "--csv")
    assert 2 == code
    assert "--csv, --feedback: both given" in err
