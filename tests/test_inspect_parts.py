"""What is behind the page, without a browser: settings, links, courses, sittings, files."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis.results import write_results
from hpcrowd.analysis.views import Moment, load_picture
from hpcrowd.environment import read_swf, write_swf
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios import replay
from hpcrowd.scenarios.inspector.course import LiveCourse, PlayedBack, Sitting
from hpcrowd.scenarios.inspector.settings import controls_of, settings_of
from hpcrowd.scenarios.inspector.sharing import (
    RUNS,
    SPANS,
    TABS,
    View,
    figure_svg,
    file_for_browser,
    frame_csv,
    parse_view,
    view_query,
)
from hpcrowd.scenarios.inspector.subject import ResultsSubject, ScenarioSubject, subject_of
from hypothesis import given
from hypothesis import strategies as st
from population_cases import small_log

Make = Callable[..., Trace]


@pytest.fixture
def log(tmp_path: Path, make_trace: Make) -> Path:
    """Return a log of twelve users over eight weeks."""
    path = tmp_path / "log.swf"
    write_swf(small_log(make_trace), path)
    return path


@pytest.fixture
def subject(log: Path) -> ScenarioSubject:
    """Return its replay."""
    found = subject_of(log)
    assert isinstance(found, ScenarioSubject)
    return found


NAMES = st.sampled_from(["users", "scheduler", "processors", "speed", "seed"])
VIEWS = st.builds(
    View,
    st.sampled_from(TABS),
    st.none() | st.integers(0, 10**6),
    st.integers(0, 10**12),
    st.sampled_from(SPANS),
    st.booleans(),
    st.dictionaries(
        st.sampled_from(RUNS), st.dictionaries(NAMES, st.text(max_size=20), min_size=1)
    ),
)


@given(VIEWS)
def test_a_link_restores_the_view(view: View) -> None:
    """Whatever a view holds comes back from its query, but for settings that are empty."""
    settings = {
        run: {name: text for name, text in found.items() if text}
        for run, found in view.settings.items()
    }
    expected = {run: found for run, found in settings.items() if found}
    again = parse_view(view_query(view))
    assert (view.tab, view.user, view.at, view.span, view.two) == (
        again.tab, again.user, again.at, again.span, again.two,
    )  # fmt: skip
    assert expected == again.settings


@given(st.text(max_size=60))
def test_any_query_is_a_view_or_one_line(query: str) -> None:
    """What comes from outside is read, or refused in one line."""
    told = ""
    try:
        view = parse_view(query)
    except QuantityError as error:
        told = str(error)
    else:
        assert view == parse_view(view_query(view))
    assert "\n" not in told


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "tab=secrets",
            "tab 'secrets': not known; did you mean users? choose cluster, users, user",
        ),
        ("user=-1", "user '-1': must be a whole number"),
        ("at=1e9", "at '1e9': must be a whole number"),
        ("at=9999999999999", "must be a whole number"),
        ("span=3", "span 3: choose 1, 7, 28, 0 days"),
        ("c.processors=2x", "'c.processors': not known"),
        ("path=/etc/passwd", "'path': not known"),
        ("tab=" + "x" * 3000, "link of 3004 characters: at most 2000"),
    ],
)
def test_links_that_make_no_sense(query: str, told: str) -> None:
    """What is wrong is reported with its value and the rule."""
    with pytest.raises(QuantityError, match=re.escape(told)) as caught:
        parse_view(query)
    assert "\n" not in str(caught.value)


def test_settings_that_are_offered(subject: ScenarioSubject) -> None:
    """What is changed becomes a setting of the scenario; what stays does not."""
    names = [control.name for control in subject.controls]
    assert ["users", "scheduler", "processors", "speed", "seed"] == names
    given = {
        "users": "fluid",
        "scheduler": "easy",
        "processors": "2x",
        "speed": "0.5x",
        "seed": "7",
    }
    expected = {"users": "fluid", "processors": "2x", "speed": "0.5x", "seed": 7}
    assert expected == settings_of(subject.controls, given)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trace", "/etc/passwd"),
        ("users", "mixed.toml"),
        ("scheduler", "multi-queue:file=/etc/passwd"),
        ("scheduler", "easy:order=submit"),
        ("processors", "two"),
        ("processors", "../../x"),
        ("processors", "-1"),
        ("speed", ""),
        ("seed", "1.5"),
        ("seed", "99999999999"),
        ("seed", "²"),
    ],
)
def test_settings_that_are_not_offered(subject: ScenarioSubject, name: str, text: str) -> None:
    """No file, nothing that is not on the list, no number that is none; one line says so."""
    with pytest.raises(QuantityError, match=name) as caught:
        settings_of(subject.controls, {name: text})
    assert "\n" not in str(caught.value)


def test_controls_by_kind() -> None:
    """Each kind of scenario offers the settings that it has."""
    kinds = {
        "replay": {"kind": "replay", "users": "rigid", "scheduler": "fcfs", "seed": 3},
        "resample": {
            "kind": "resample",
            "population": "1x",
            "users": "rigid",
            "satisfaction": "none",
        },
        "grid": {"kind": "grid", "users": "think-time", "broker": "first-fit"},
        "mixed": {"kind": "replay", "users": {"population": []}, "scheduler": "easy"},
    }
    found = {
        kind: {one.name: (one.label, one.value) for one in controls_of(values)}
        for kind, values in kinds.items()
    }
    assert {
        "users": ("Users", "rigid"),
        "scheduler": ("Scheduler", "fcfs"),
        "seed": ("Seed", "3"),
    } == found["replay"]
    assert ("How many users", "1x") == found["resample"]["population"]
    assert ("Users", "rigid") == found["resample"]["users"]
    assert ("Broker", "first-fit") == found["grid"]["broker"]
    assert ["scheduler"] == list(found["mixed"])


def test_a_course_comes_to_what_the_run_comes_to(subject: ScenarioSubject, log: Path) -> None:
    """Moved on day by day, looked at in between, the jobs end as in a run without anybody."""
    course = subject.begin({})
    assert isinstance(course, LiveCourse)
    while not course.over:
        course.advance(course.now + DAY)
        course.moment()
    whole = replay(read_swf(log))
    np.testing.assert_array_equal(whole.jobs.matrix, course.model.jobs.matrix)
    assert course.moment() is course.moment()


def test_each_page_has_a_model_of_its_own(subject: ScenarioSubject) -> None:
    """Moving one course on leaves another where it is, and its jobs as they were."""
    one, two = subject.begin({}), subject.begin({})
    one.advance(10 * DAY)
    assert (10 * DAY, 0) == (one.now, two.now)
    assert 0 == np.count_nonzero(two.moment().submitted)
    assert one.moment().jobs is not two.moment().jobs


@pytest.mark.parametrize("user", [1, 7])
def test_stepping_to_the_events_of_a_user(subject: ScenarioSubject, user: int) -> None:
    """Steps stop at every submission, start and end of the user's jobs, and at nothing else."""
    course = subject.begin({})
    stops = []
    while course.advance_to_event(user):
        stops.append(course.now)
    assert isinstance(course, LiveCourse)
    jobs = course.model.jobs
    mine = jobs.user == user
    times = np.concatenate([jobs.submit[mine], jobs.start[mine], jobs.end[mine]])
    happened = np.unique(times)
    # An end is seen when its second begins, a submission or start when it has ended.
    seen = {int(second) for second in happened} | {int(second) + 1 for second in happened}
    assert set(stops) <= seen
    for second in happened.tolist():
        assert {second, second + 1} & set(stops), second
    assert not course.advance_to_event(user)


def test_a_finished_run_is_played_back(tmp_path: Path, log: Path) -> None:
    """At each moment the folder of a run shows what the simulation showed."""
    live = subject_of(log).begin({})
    assert isinstance(live, LiveCourse)
    run = live.staged.run()
    write_results(run, tmp_path / "run", plots=False)
    subject = subject_of(tmp_path / "run")
    assert isinstance(subject, ResultsSubject)
    assert () == subject.controls
    back, again = subject.begin({}), subject_of(log).begin({})
    assert isinstance(back, PlayedBack)
    for _ in range(20):
        for course in (back, again):
            course.advance(course.now + 2 * DAY + HOUR)
        one, two = back.moment(), again.moment()
        assert one.now == two.now
        for name in ("submitted", "started", "ended", "waiting", "running"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name), name)
    while back.advance_to_event(1):
        pass
    back.advance(10**9)
    assert (True, True) == (back.over, bool(back.moment().ended.all()))
    assert back.now <= int(run.jobs.end.max()) + 1


def test_reasons_live_and_played_back(tmp_path: Path, make_trace: Make) -> None:
    """The first in the queue and one that does not fit, told alike in both."""
    trace = make_trace(
        {"submit": 0, "run": 600, "requested_processors": 4, "requested_time": 600, "user": 1},
        {"submit": 10, "run": 60, "requested_processors": 4, "requested_time": 60, "user": 2},
        {"submit": 20, "run": 60, "requested_processors": 2, "requested_time": 60, "user": 3},
        header="; MaxProcs: 4",
    )
    write_swf(trace, tmp_path / "three.swf")
    live = subject_of(tmp_path / "three.swf").begin({})
    live.advance(30)
    told = live.reasons([1, 2])
    assert "first in the queue: requests 4 processors, none is free" in told[1]
    assert "requests 2 processors, none is free" in told[2]
    assert isinstance(live, LiveCourse)
    write_results(live.staged.run(), tmp_path / "run", plots=False)
    back = subject_of(tmp_path / "run").begin({})
    back.advance(30)
    assert told == back.reasons([1, 2])


def test_settings_count_when_a_run_restarts(subject: ScenarioSubject) -> None:
    """Two runs continue together; one is restarted on a larger machine, the other stays."""
    sitting = Sitting([subject, subject])
    sitting.begin()
    sitting.advance(3 * DAY)
    assert [3 * DAY] * 2 == [course.now for course in sitting.courses]
    sitting.reset(1, {"processors": "2x"})
    first, second = sitting.courses
    assert (8, 16) == (first.moment().processors, second.moment().processors)
    assert (3 * DAY, 0) == (first.now, second.now)
    sitting.advance(4 * DAY)
    assert [4 * DAY] * 2 == [course.now for course in sitting.courses]


def test_a_run_that_cannot_begin_says_why(subject: ScenarioSubject) -> None:
    """The error appears at its seat in one line; the other run continues."""
    sitting = Sitting([subject, subject])
    sitting.begin([{}, {"processors": "0"}])
    assert "" == sitting.seats[0].error
    assert "0" in sitting.seats[1].error
    assert "\n" not in sitting.seats[1].error
    sitting.advance(DAY)
    assert DAY == sitting.now


def test_a_page_that_is_gone_stops(subject: ScenarioSubject) -> None:
    """Closed in the middle of a long way, a sitting goes no further and lets go of its runs."""
    sitting = Sitting([subject])
    sitting.begin()
    course = sitting.courses[0]
    sitting.advance(50 * DAY, lambda: sitting.close() if course.now >= 5 * DAY else None)
    assert 5 * DAY == course.now
    assert [] == sitting.courses


def test_halting_a_long_way(subject: ScenarioSubject) -> None:
    """Pause stops between two pieces, and it can continue from there."""
    sitting = Sitting([subject])
    sitting.begin()
    course = sitting.courses[0]
    sitting.advance(50 * DAY, lambda: sitting.halt() if course.now >= 5 * DAY else None)
    assert 5 * DAY == course.now
    sitting.advance(7 * DAY)
    assert 7 * DAY == course.now


def test_a_scenario_file_is_read_again(tmp_path: Path, log: Path) -> None:
    """A user who edits the file and starts again sees the new settings, and its mistakes."""
    path = tmp_path / "what.toml"
    path.write_text('[scenario]\nkind = "replay"\ntrace = "log.swf"\nprocessors = "2x"\n')
    subject = subject_of(path)
    assert 16 == subject.begin({}).moment().processors
    path.write_text('[scenario]\nkind = "replay"\ntrace = "log.swf"\nprocessors = "4x"\n')
    assert 32 == subject.begin({}).moment().processors
    path.write_text('[scenario]\nkind = "replay"\ntrace = "log.swf"\nprocessors = "many"\n')
    with pytest.raises(HpcrowdError, match=r"what\.toml, line 4.*many"):
        subject.begin({})


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("nothing.swf", None, "no such file; give a trace, a scenario in a TOML file, or a folder"),
        ("bad.toml", '[scenario]\nkind = "replay"\n', "bad.toml"),
        ("empty", "folder", "empty"),
    ],
)
def test_what_cannot_be_inspected(
    tmp_path: Path, name: str, content: str | None, told: str
) -> None:
    """One line names it."""
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_text(content)
    with pytest.raises(HpcrowdError) as caught:
        subject_of(path)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_for_the_browser(subject: ScenarioSubject) -> None:
    """Names are safe, contents come whole, SVG is the same twice, CSV has a line for each row."""
    course = subject.begin({})
    course.advance(5 * DAY)
    moment: Moment = course.moment()
    one, two = (figure_svg(load_picture(moment)) for _ in range(2))
    assert one == two
    assert b"<svg" in one
    found = file_for_browser("../load a", "svg", one, 3)
    assert ("load-a.svg", "image/svg+xml", 3) == (found["name"], found["mime"], found["serial"])
    assert one == base64.b64decode(found["data"])
    from hpcrowd.analysis.views import users_table

    lines = frame_csv(users_table(moment)).decode().splitlines()
    assert 1 + 12 == len(lines)
    assert lines[0].startswith("user,state,jobs_done")
