"""What is behind the page, without a browser: settings, messages, courses, panels, files."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis.results import write_results
from hpcrowd.analysis.views import Moment
from hpcrowd.environment import read_swf, write_swf
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios import replay
from hpcrowd.scenarios.inspector.panels.job_stories import at_submission
from hpcrowd.scenarios.inspector.panels.packing import PACKED, to_json
from hpcrowd.scenarios.inspector.panels.registry import panels_json
from hpcrowd.scenarios.inspector.panels.saving import SAVED, saved_panel
from hpcrowd.scenarios.inspector.panels.timeline import timeline
from hpcrowd.scenarios.inspector.panels.user import lanes
from hpcrowd.scenarios.inspector.service.protocol import parse_request
from hpcrowd.scenarios.inspector.service.seeds import intervals
from hpcrowd.scenarios.inspector.subjects.course import LiveCourse, PlayedBack
from hpcrowd.scenarios.inspector.subjects.settings import controls_of, settings_of
from hpcrowd.scenarios.inspector.subjects.subject import ResultsSubject, ScenarioSubject, subject_of
from hypothesis import given
from hypothesis import strategies as st

from tests.support.populations import small_log

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


ASKED = st.fixed_dictionaries(
    {
        "id": st.integers(0, 9) | st.text(max_size=3),
        "do": st.sampled_from(["open", "show", "halt", "seeds", "forecast", "save", "run"]),
    },
    optional={
        "at": st.none() | st.integers(-5, 10**13) | st.floats(),
        "runs": st.lists(
            st.fixed_dictionaries({"settings": st.dictionaries(st.text(), st.text())})
        ),
        "panels": st.lists(st.sampled_from(["load", "secrets"])),
        "count": st.integers(-1, 200),
        "futures": st.sampled_from([0, 20, 30]),
        "path": st.just("/etc/passwd"),
    },
)


@given(ASKED.map(json.dumps) | st.text(max_size=60))
def test_any_message_is_a_request_or_one_line(text: str) -> None:
    """What comes from a browser is read, or refused in one line."""
    told = ""
    try:
        request = parse_request(text)
    except QuantityError as error:
        told = str(error)
    else:
        assert request.do in ("open", "show", "halt", "seeds", "forecast", "save")
    assert "\n" not in told


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"id": 1, "do": "read", "path": "/etc/passwd"}, "input tag 'read'"),
        ({"id": 1, "do": "show", "path": "/etc/passwd"}, "show.path: extra inputs"),
        ({"id": 1, "do": "show", "at": 1.5}, "show.at: input should be a valid integer"),
        ({"id": 1, "do": "show", "at": -1}, "show.at: input should be greater than"),
        ({"id": 1, "do": "show", "at": 10**13}, "show.at: input should be less than"),
        ({"id": 1, "do": "open", "runs": [{}, {}, {}]}, "open.runs: list should have at most 2"),
        ({"id": 1, "do": "open", "runs": [{"settings": {"seed": 3}}]}, "valid string, not 3"),
        (
            {"id": 1, "do": "open", "runs": [{"edits": [{"user": 1, "kind": "code"}]}]},
            "edits.0: input tag 'code'",
        ),
        ({"id": 1, "do": "save", "run": 0, "panel": "load", "kind": "py"}, "save.kind"),
        ({"id": 1, "do": "show", "panels": ["x" * 100_000]}, "at most 100,000"),
    ],
)
def test_messages_that_make_no_sense(message: dict[str, object], told: str) -> None:
    """What is wrong is reported with its place and the rule."""
    with pytest.raises(QuantityError, match=re.escape(told)) as caught:
        parse_request(json.dumps(message))
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
    """SVG is the same twice, CSV has a line for each row, what has no picture says so."""
    course = subject.begin({})
    course.advance(5 * DAY)
    svg = {"panel": "load", "kind": "svg", "from": 0, "to": 5 * DAY}
    one, two = (saved_panel(course, svg) for _ in range(2))
    assert one == two
    assert b"<svg" in one
    lines = saved_panel(course, {"panel": "users", "kind": "csv"}).decode().splitlines()
    assert 1 + 12 == len(lines)
    assert lines[0].startswith("user,state,jobs_done")
    for name in SAVED:
        csv = saved_panel(course, {"panel": name, "kind": "csv", "user": 1, "from": 0})
        assert b"," in csv.splitlines()[0], name
    with pytest.raises(QuantityError, match="no picture of it; choose csv"):
        saved_panel(course, {"panel": "jobs", "kind": "png", "user": 1})
    with pytest.raises(QuantityError, match="no user is chosen"):
        saved_panel(course, {"panel": "jobs", "kind": "csv"})


@pytest.mark.parametrize("kind", ["i", "f"])
@given(st.data())
def test_packed_numbers_are_those_given(kind: str, data: st.DataObject) -> None:
    """An array comes out of the browser's format as it went in, short or long; NaN is null."""
    numbers = st.integers(-(2**40), 2**40) if kind == "i" else st.floats(width=64)
    values = np.array(data.draw(st.lists(numbers, max_size=3 * PACKED)), f"{kind}8")
    found = json.loads(to_json({"values": values}))["values"]
    if isinstance(found, dict):
        ((name, text),) = found.items()
        found = np.frombuffer(base64.b64decode(text), {"i32": "<i4", "f64": "<f8"}[name])
        np.testing.assert_array_equal(values, found)
    else:
        expected = [None if kind == "f" and not np.isfinite(one) else one for one in values]
        assert expected == found


def test_busy_hours(subject: ScenarioSubject) -> None:
    """At the first busy hour jobs wait and half of the machine is in use; before, they never do."""
    course = subject.begin({})
    course.advance(10**9)
    found = timeline(course, whole=True)
    first, busiest = found["busy"], found["busiest"]
    asked = []
    for hour in range(0, course.now, HOUR):  # the log begins at a full hour
        again = Moment.of_run(course.staged.result(), hour)
        jobs = again.jobs
        used = int(jobs.processors[again.running].sum())
        asked.append(int(jobs.processors[again.waiting].sum()))
        if used >= 4 and asked[-1]:
            break
    assert first == hour
    whole = [
        int(moment.jobs.processors[moment.waiting].sum())
        for moment in (Moment.of_run(course.staged.result(), one) for one in (first, busiest))
    ]
    assert whole[0] <= whole[1]
    assert sum(one["value"] for one in found["numbers"]["values"] if one["key"] == "jobs_completed")


def test_the_opening_of_a_short_run(tmp_path: Path, make_trace: Make) -> None:
    """Where hours are too long, it is when jobs have just come; nothing is shown before it is."""
    log = make_trace(
        {"submit": 0, "run": 600, "requested_processors": 4, "user": 1},
        {"submit": 60, "run": 600, "requested_processors": 1, "user": 2},
        header="; MaxProcs: 4",
    )
    write_swf(log, tmp_path / "short.swf")
    course = subject_of(tmp_path / "short.swf").begin({})
    course.advance(10**9)
    found = timeline(course, whole=True)
    assert (61, 61, 1201) == (found["busy"], found["busiest"], found["last"])
    course = subject_of(tmp_path / "short.swf").begin({})
    course.advance(300)
    load = json.loads(panels_json(course, {"panels": ["load"], "from": 0, "to": DAY}))["load"]
    assert 300 == load["edges"][-1]


def test_what_jobs_find_when_they_are_submitted(subject: ScenarioSubject) -> None:
    """Free processors and jobs ahead are those of the moment before the submission."""
    course = subject.begin({})
    course.advance(40 * DAY)
    moment, jobs = course.moment(), course.moment().jobs
    rows = np.flatnonzero(moment.started & (jobs.start > jobs.submit))
    free, ahead = at_submission(moment, rows)
    assert len(rows) > 20
    for place, row in enumerate(rows.tolist()):
        second = int(jobs.submit[row])
        running = moment.started & (jobs.start < second) & ~(moment.ended & (jobs.end <= second))
        waiting = moment.submitted & (jobs.submit < second) & ~moment.never_ran
        waiting &= ~(moment.started & (jobs.start <= second))
        assert 8 - int(jobs.processors[running].sum()) == free[place], row
        assert int(waiting.sum()) == ahead[place], row


def test_lanes_hold_one_unit_at_a_time() -> None:
    """Units that overlap lie on different lines, the others as low as they can."""
    left, right = np.array([0, 5, 10, 12, 30]), np.array([10, 20, 15, 13, 31])
    assert [0, 1, 0, 2, 0] == lanes(left, right).tolist()


def test_intervals_are_paired_by_seed() -> None:
    """Two runs that differ by 2 with every seed differ by 2 exactly, however much seeds do."""
    one = [{"wait": 1.0}, {"wait": 11.0}]
    two = [{"wait": 3.0}, {"wait": 13.0}]
    found = intervals([one, two])
    assert {"mean": 2.0, "half": 0.0, "n": 2} == found["difference"]["wait"]
    assert 6.0 == found["runs"][0]["wait"]["mean"]
    # Student's t with one degree of freedom: 12.706 standard errors of 5.
    assert 63.53 == pytest.approx(found["runs"][0]["wait"]["half"], abs=0.01)
