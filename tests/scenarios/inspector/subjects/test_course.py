"""What is shown of a run, without a page: settings, steps, played-back folders, special runs."""

import numpy as np
import pytest
from hpcrowd import write_swf
from hpcrowd.agents.presets import PRESETS
from hpcrowd.analysis.results import write_results
from hpcrowd.analysis.views.users import behaviour_words, mood_words
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.inspector.subjects.course import LiveCourse, PlayedBack
from hpcrowd.scenarios.inspector.subjects.subject import (
    ScenarioSubject,
    controls_of,
    settings_of,
    subject_of,
)
from hpcrowd.views import load_table, queue_table, users_table

from tests.scenarios.inspector.subjects.kind_cases import GRID, LOG, MIXED, RESAMPLED, live


@pytest.fixture
def subject(log):
    """The replay of the log of twelve users."""
    found = subject_of(log)
    assert isinstance(found, ScenarioSubject)
    return found


def opened(log, text):
    """Return the course of a scenario next to a log."""
    path = log.with_name("what.toml")
    path.write_text("[scenario]\n" + text)
    return live(path)


def written(trace, folder):
    """Write a trace as the log of a folder."""
    write_swf(trace, folder / "log.swf")
    return folder / "log.swf"


def played_back(course, folder):
    """Run a course to its end, and return the course of its folder of results."""
    write_results(course.staged.run(), folder / "run", plots=False)
    subject = subject_of(folder / "run")
    assert () == subject.controls
    back = subject.begin({})
    assert isinstance(back, PlayedBack)
    return back


def test_settings_that_are_offered(subject):
    """What is changed becomes a setting of the scenario; what stays does not."""
    given = {"users": "fluid", "scheduler": "easy", "processors": "2x", "speed": "0.5x",
             "seed": "7"}  # fmt: skip
    assert list(given) == [control.name for control in subject.controls]
    expected = {"users": "fluid", "processors": "2x", "speed": "0.5x", "seed": 7}
    assert expected == settings_of(subject.controls, given)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trace", "/etc/passwd"),
        *((setting, "own.py:X") for setting in ("users", "scheduler", "processors", "seed")),
        ("users", "mixed.toml"),
        ("scheduler", "multi-queue:file=/etc/passwd"),
        ("processors", "two"),
        ("processors", "-1"),
        ("seed", "1.5"),
        ("seed", "99999999999"),
        ("seed", "²"),
    ],
)
def test_settings_that_are_not_offered(subject, name, text):
    """No file, nothing that is not on the list, no number that is none; one line says so."""
    with pytest.raises(QuantityError, match=name):
        settings_of(subject.controls, {name: text})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"kind": "replay", "seed": 3}, {("users", "Users", "rigid"), ("seed", "Seed", "3")}),
        ({"kind": "resample", "population": "1x"}, {("population", "How many users", "1x")}),
        ({"kind": "grid", "broker": "first-fit"}, {("broker", "Broker", "first-fit")}),
    ],
)
def test_controls_by_kind(values, expected):
    """Each kind of scenario offers the settings that it has, users only if all are alike."""
    found = controls_of({"users": "rigid", **values})
    assert expected <= {(one.name, one.label, one.value) for one in found}
    mixed = controls_of({"users": {"population": []}, **values})
    assert "users" not in {one.name for one in mixed}


@pytest.mark.parametrize("user", [1, 7])
def test_stepping_to_the_events_of_a_user(subject, user):
    """Steps stop at every submission, start and end of the user's jobs, and at nothing else."""
    course, other = subject.begin({}), subject.begin({})
    stops = []
    while course.advance_to_event(user):
        stops.append(course.now)
    assert isinstance(course, LiveCourse)
    jobs = course.model.jobs
    mine = jobs.user == user
    happened = np.unique(np.concatenate([jobs.submit[mine], jobs.start[mine], jobs.end[mine]]))
    # An end is seen when its second begins, a submission or start when it has ended.
    assert set(stops) <= set(happened.tolist()) | set((happened + 1).tolist())
    assert [] == [at for at in happened.tolist() if not {at, at + 1} & set(stops)]
    assert not course.advance_to_event(user)
    assert (0, 0) == (other.now, np.count_nonzero(other.moment().submitted))
    assert course.moment() is course.moment()


def test_a_log_that_begins_late_opens_when_it_begins(tmp_path, make_trace):
    """The page opens on the day of the first submission, simulated and played back."""
    first = 400 * DAY + 5 * HOUR
    trace = make_trace({"submit": first, "run": 60, "requested_processors": 1, "user": 1})
    course = live(written(trace, tmp_path))
    assert (400 * DAY, False) == (course.now, course.over)
    back = played_back(course, tmp_path)
    assert 400 * DAY == back.now
    back.advance(10**9)
    assert not back.advance_to_event(1)


def test_outages_in_the_picture_of_load(own_log):
    """The machine is as large, and as much of it up, as it was; simulated and played back."""
    changes = """
users = "think-time"
[scenario.platform]
changes = [
    { do = "down", at = 86400, until = 172800, processors = 6 },
    { do = "maintain", start = 259200, end = 345600 },
    { do = "resize", at = 432000, processors = 5 },
]
"""
    course = opened(own_log, LOG + changes)
    course.advance(4 * WEEK)
    moment = course.moment()
    back = played_back(course, own_log.parent)
    back.advance(4 * WEEK)
    for seen in (moment, back.moment()):
        frame = load_table(seen, None).set_index("end_s")
        days = [int(days * DAY) for days in (0.9, 1.7, 2.7, 3.7, 6)]
        there = [(frame["processors"].asof(day), frame["processors_up"].asof(day)) for day in days]
        assert [(8, 8), (8, 2), (8, 8), (8, 0), (5, 5)] == there
        # Later some run that began when there were more.
        early = frame[frame.index <= 5 * DAY]
        assert (early["processors_in_use"] <= early["processors_up"] + 1e-9).all()
        assert (5, 5) == (seen.size, seen.up)


def test_runs_that_were_stopped_stay_in_the_picture(tmp_path, make_trace):
    """What was in use before an outage is still shown when it has stopped it."""
    job = {"submit": 0, "run": DAY, "requested_processors": 4, "requested_time": DAY, "user": 1}
    course = opened(
        written(make_trace(job, header="; MaxProcs: 4"), tmp_path),
        f"{LOG}[scenario.platform]\n"
        'changes = [{do = "down", at = 7200, until = 10800, processors = 4, jobs = "resubmit"}]\n',
    )
    course.advance(2 * HOUR + 60)
    moment = course.moment()
    assert 0 == moment.submitted.sum(), "to be submitted again"
    assert ["thinking"] == users_table(moment)["state"].tolist()
    assert 7800 == users_table(moment)["next_submission_s"].iloc[0]
    course.advance(3 * HOUR)
    frame = load_table(course.moment(), None)
    assert 8 * HOUR == (frame["processors_in_use"] * (frame["end_s"] - frame["begin_s"])).sum()


def test_several_clusters(own_log):
    """The load of each is shown, each waiting job has its place, each user where it submits to."""
    course = opened(own_log, GRID.format(users="rigid", broker="first-fit", more=""))
    places = set()
    while not course.over:
        course.advance(course.now + 7 * HOUR)
        moment = course.moment()
        frame = load_table(moment, DAY)
        whole = frame["in_use_north"] + frame["in_use_south"]
        np.testing.assert_allclose(whole, frame["processors_in_use"])
        places |= set(queue_table(moment)["cluster"])
    assert {"north", "south", "broker"} == places
    assert {"north": 8, "south": 6} == moment.clusters
    assert {"north", "south", "grid"} == set(users_table(moment)["submits_to"])


def test_mixed_users_are_distinguished(own_log):
    """Each has the name of its behaviour, with its reactions; nothing where all are alike."""
    frame = users_table(opened(own_log, MIXED).moment())
    names = {"fluid", "generative", "think-time; switch, delay, renounce"}
    assert names == set(frame["behaviour"])
    assert users_table(opened(own_log, LOG).moment())["behaviour"].isna().all()


@pytest.mark.parametrize("users", [name for name in PRESETS if not name.startswith("linear")])
def test_behaviours_have_their_names(own_log, users):
    """Whoever behaves as a preset is called by its name, also while decisions are noted."""
    moment = opened(own_log, LOG + f'users = "{users}"\n').moment()
    assert {users} == {behaviour_words(one.behaviour) for one in moment.users.values()}


def test_moods_are_of_those_who_have_met_something(own_log):
    """Who has submitted nothing has no mood yet; what rounds to nothing has no minus."""
    course = opened(own_log, RESAMPLED.format(users="think-time", minds="habit"))
    assert users_table(course.moment())["mood"].isna().all()
    course.advance(course.now + 2 * WEEK)
    frame = users_table(course.moment())
    np.testing.assert_array_equal(frame["mood"].isna(), frame["state"] == "not yet")
    assert frame["mood"].notna().any()
    assert ["+0.00", "-0.01", "+1.50"] == [mood_words(mood) for mood in (-0.001, -0.01, 1.5)]
