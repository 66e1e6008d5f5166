"""The page holds for every kind of run: whatever is looked at agrees, and looking changes nothing.

What is checked at each moment is in :mod:`kind_cases`.
"""

import numpy as np
import pytest
from hpcrowd import write_swf
from hpcrowd.analysis.results import write_results
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.inspector.panels.asked import Asked
from hpcrowd.scenarios.inspector.panels.forecast import forecast_panel
from hpcrowd.scenarios.inspector.subjects.course import PlayedBack
from hpcrowd.scenarios.inspector.subjects.outset import outset_of, why_not
from hpcrowd.scenarios.inspector.subjects.subject import subject_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenarios.inspector.subjects.kind_cases import KINDS, LOG, Watch, live, walk
from tests.scenarios.inspector.subjects.test_forecast import seconds_of


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
    walk(course, steps, users, drawn=(1, -1))
    run = course.staged.result()
    np.testing.assert_array_equal(whole.jobs.matrix, run.jobs.matrix)
    write_results(run, own_log.with_name("run"), plots=False)
    back = subject_of(own_log.with_name("run")).begin({})
    assert isinstance(back, PlayedBack)
    back.advance_to_event(users[0])
    walk(back, steps, users, drawn=(0,))


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
    """Of any small trace, also of one job, without a start in time, with users that have no number.

    Jobs that are too large, that need no time, that asked for none, and several at one second.
    """
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
