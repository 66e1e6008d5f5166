"""The page holds for every kind of run; what its tab "Forecast" says of a run from a second."""

import json

import numpy as np
import pytest
from hpcrowd import write_swf
from hpcrowd.analysis.results import write_results
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.inspector.panels.exchange import Asked, to_json
from hpcrowd.scenarios.inspector.panels.forecast import (
    forecast,
    forecast_panel,
    outset_of,
    users_of,
    why_not,
)
from hpcrowd.scenarios.inspector.subjects.course import PlayedBack, apply_changes
from hpcrowd.scenarios.inspector.subjects.subject import subject_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenarios.inspector.subjects.kind_cases import KINDS, LOG, Watch, live, unpacked, walk
from tests.support.page import BUSY


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        *((name, (9 * DAY, 4 * WEEK)) for name in ("think-time-windows", "recorded")),
        *(
            pytest.param(name, (HOUR, 6 * HOUR, DAY, DAY + 7, WEEK), marks=pytest.mark.slow)
            for name in KINDS
        ),
    ],
)
def test_every_kind(own_log, name, steps):
    """Simulated and played back, all views agree; looked at, the run comes out as undisturbed."""
    path = own_log.with_name("what.toml")
    path.write_text("[scenario]\n" + KINDS[name])
    whole = live(path).staged.run()
    numbers = np.unique(whole.jobs.user)
    users = numbers[[0, len(numbers) // 2, -1]].tolist()
    course = live(path)
    for user in users:  # in between, a few steps to their events
        course.advance_to_event(user)
    walk(course, steps, users)
    run = course.staged.result()
    np.testing.assert_array_equal(whole.jobs.matrix, run.jobs.matrix)
    write_results(run, own_log.with_name("run"), plots=False)
    back = subject_of(own_log.with_name("run")).begin({})
    assert isinstance(back, PlayedBack)
    back.advance_to_event(users[0])
    walk(back, steps, users)


#: Kinds of runs that have no forecast, and the words that say why.
NONE = {
    "recorded": "The schedule is the recorded one",
    **dict.fromkeys(
        ("mixed", "grid-held", "grid-at-once", "grid-components"), "The run has 2 clusters"
    ),
}

#: What users of kinds do in futures, where it is not the default.
USERS = {"rigid": "rigid", "platform-fail": "rigid", "resample-rigid": "rigid"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("rigid", "recorded") else pytest.mark.slow)
        for name in KINDS
    ],
)
def test_every_kind_has_a_forecast_or_says_why_not(own_log, name):
    """Simulated and played back; before anything has happened, there is none."""
    path = own_log.with_name("what.toml")
    path.write_text("[scenario]\n" + KINDS[name])
    course, view = live(path), Asked.of({}, 0)
    if not course.moment().submitted.any():
        assert forecast_panel(course, view)["why"]
    course.advance(course.now + 30 * DAY)
    if name in NONE:
        assert why_not(course).startswith(NONE[name])
        with pytest.raises(QuantityError, match=NONE[name]):
            outset_of(course, DAY)
    elif not why_not(course):  # else everything is down
        assert USERS.get(name, "think-time") == forecast_panel(course, view)["users"]
        assert DAY == seconds_of(course)
    write_results(course.staged.run(), own_log.with_name("run"), plots=False)
    back = subject_of(own_log.with_name("run")).begin({})
    back.advance(30 * DAY)
    why = why_not(back)
    assert bool(why) or DAY == seconds_of(back)
    assert bool(why) == (name in NONE or name.startswith("platform")), why


SOME_JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "submit": st.integers(0, 3 * DAY),
            "run": st.sampled_from([0, 1, 60, 5 * HOUR]),
            "requested_processors": st.sampled_from([1, 3, 8, 9]),
            "requested_time": st.sampled_from([-1, 60, HOUR, 6 * HOUR]),
            "user": st.sampled_from([-1, 1, 2]),
            "status": st.sampled_from([-1, 0, 1, 5]),
        }
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    SOME_JOBS,
    st.sampled_from(["rigid", "think-time", "adjusted", "think-time-windows"]),
    st.sampled_from(["easy", "fcfs", "conservative", "sjf"]),
    st.lists(st.integers(1, DAY), min_size=1, max_size=5),
)
def test_small_traces(tmp_path_factory, make_trace, jobs, users, scheduler, steps):
    """Of any small trace: one job, without a start in time, with users that have no number."""
    folder = tmp_path_factory.mktemp("small")
    jobs.sort(key=lambda job: job["submit"])
    write_swf(make_trace(*jobs, header="; MaxProcs: 8"), folder / "log.swf")
    path = folder / "what.toml"
    path.write_text(f'[scenario]\n{LOG}users = "{users}"\nscheduler = "{scheduler}"\n')
    whole = live(path).staged.run()
    numbers = np.unique(whole.jobs.user).tolist()
    course = live(path)
    watch = Watch(course)
    for step in steps:
        course.advance(course.now + step)
        watch.look(numbers)
        course.advance_to_event(numbers[step % len(numbers)])
        watch.look(numbers)
    course.advance(10**9)
    assert course.over
    watch.look(numbers)
    np.testing.assert_array_equal(whole.jobs.matrix, course.staged.result().jobs.matrix)


@pytest.fixture(scope="module")
def course(log):
    """A replay of it at a busy second."""
    found = live(log)
    found.advance(BUSY)
    return found


def found_of(course, **message):
    """Return what the futures of a run say, as the browser gets it."""
    *steps, last = forecast(course, {"futures": 5, "days": 1, "jobs": [], **message})
    counts = [one for one in steps if isinstance(one, int)]
    assert list(range(1, len(counts) + 1)) == counts
    return json.loads(to_json(last))


def seconds_of(course):
    """Return how many seconds a future of a run knows the load of."""
    outset = outset_of(course, DAY)
    return outset.step * len(outset.simulate(0).busy)


def test_what_futures_say(course):
    """Bounds rise, lie between now and the horizon, and go on from what has happened."""
    jobs = course.moment().jobs.copy()
    found = found_of(course)
    assert (BUSY, BUSY + DAY, 5, 8) == tuple(
        found[key] for key in ("at", "until", "futures", "size")
    )
    waiting = np.flatnonzero(course.moment().waiting)
    assert sorted(jobs.number[waiting].tolist()) == sorted(one["job"] for one in found["jobs"])
    for one in found["jobs"]:
        bounds = [bound for bound in one["start"] if bound is not None]
        assert bounds == sorted(bounds)
        assert all(BUSY <= bound <= BUSY + DAY for bound in bounds)
        assert one["reason"]
    edges = unpacked(found["edges"])
    assert (BUSY, BUSY + DAY) == (edges[0], edges[-1])
    load = np.array([unpacked(bound) for bound in found["fans"]["load"]])
    assert (5, len(edges) - 1) == load.shape
    assert (np.diff(load, axis=0) >= 0).all()
    assert 0 <= load.min() <= load.max() <= 8
    # The last step before now in the record is the last one of the line.
    begin, moment = int(unpacked(found["before"]["edges"])[-2]), course.moment()
    start = np.maximum(jobs.start[moment.started], begin)
    end = np.where(moment.ended, jobs.end, BUSY)[moment.started]
    used = (np.maximum(end - start, 0) * jobs.processors[moment.started]).sum() / (BUSY - begin)
    assert used == pytest.approx(unpacked(found["before"]["load"])[-1])
    np.testing.assert_array_equal(jobs.matrix, course.moment().jobs.matrix)


def test_two_ways_are_compared_future_by_future(course):
    """Of two alternatives, each has its row; the small jobs that fit at once end first."""
    jobs = [
        {"count": 1, "processors": 8, "requested": 8 * HOUR},
        {"count": 8, "processors": 1, "requested": HOUR},
    ]
    found = found_of(course, jobs=jobs, user=3)
    assert [8, 1] == [one["processors"] for one in found["asked"]]
    assert {3} == {one["user"] for one in found["asked"]}
    versus = found["versus"]
    assert 1 == pytest.approx(versus["first"] + versus["second"] + versus["open"])
    assert versus["second"] > versus["first"]
    assert versus["difference"] is None or versus["difference"][2] < 0
    same = found_of(course, jobs=jobs[1:] * 2)
    assert (1.0, [0.0] * 5) == (same["versus"]["open"], same["versus"]["difference"])


def test_played_back_and_simulated_have_the_same_forecast(log, tmp_path):
    """A folder of results knows at a second what the simulation knew."""
    course = live(log)
    course.advance(BUSY)
    one = found_of(course)
    write_results(course.staged.run(), tmp_path / "run", plots=False)
    back = subject_of(tmp_path / "run").begin({})
    back.advance(BUSY)
    assert one == found_of(back)


def test_users_of_the_futures(own_log):
    """Users who follow a learned model do so in futures; changes by hand count."""
    path = own_log.with_name("what.toml")
    path.write_text('[scenario]\nkind = "replay"\ntrace = "log.swf"\nusers = "learned"\n')
    course = live(path)
    course.advance(20 * DAY)
    users, model = users_of(course)
    assert ("learned", True) == (users, model is not None)
    assert DAY == seconds_of(course)
    rigid = [
        {"user": user, "kind": "behaviour", "value": "rigid"} for user in course.moment().users
    ]
    apply_changes(course, rigid)
    assert ("rigid", None) == users_of(course)
