"""Panels of the page as the browser gets them: numbers, stories of jobs, files, time, energy."""

import json

import numpy as np
import pytest
from hpcrowd import parse_swf, views, write_swf
from hpcrowd.analysis.energy.part import over_time_of
from hpcrowd.analysis.results import write_results
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.inspector.panels.exchange import PACKED, to_json
from hpcrowd.scenarios.inspector.panels.jobs import at_submission
from hpcrowd.scenarios.inspector.panels.overview import about, numbers, timeline
from hpcrowd.scenarios.inspector.panels.registry import SAVED, panels_json, saved_panel
from hpcrowd.scenarios.inspector.panels.users import lanes
from hpcrowd.scenarios.inspector.subjects.course import LiveCourse
from hpcrowd.scenarios.inspector.subjects.subject import subject_of
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.views import Moment
from hypothesis import given
from hypothesis import strategies as st

from tests.scenarios.inspector.subjects.kind_cases import live, unpacked


@pytest.fixture
def course(log):
    """The replay of the log of twelve users, at its beginning."""
    return live(log)


def test_files_for_the_browser(course):
    """SVG is the same twice, CSV has a line for each row, what has no picture says so."""
    course.advance(5 * DAY)
    svg = {"panel": "load", "kind": "svg", "from": 0, "to": 5 * DAY}
    one, two = (saved_panel(course, svg) for _ in range(2))
    assert one == two
    assert b"<svg" in one
    lines = saved_panel(course, {"panel": "users", "kind": "csv"}).decode().splitlines()
    assert 1 + 12 == len(lines)
    assert lines[0].startswith("user,state,jobs_done")
    assert len(SAVED) > 5
    for name in SAVED:
        csv = saved_panel(course, {"panel": name, "kind": "csv", "user": 1, "from": 0})
        assert b"," in csv.splitlines()[0], name
    with pytest.raises(QuantityError, match="no picture of it; choose csv"):
        saved_panel(course, {"panel": "jobs", "kind": "png", "user": 1})
    with pytest.raises(QuantityError, match="no user is chosen"):
        saved_panel(course, {"panel": "jobs", "kind": "csv"})


@pytest.mark.parametrize("kind", ["i", "f"])
@given(st.data())
def test_packed_numbers_are_those_given(kind, data):
    """An array comes out of the browser's format as it went in, short or long; NaN is null."""
    numbers = st.integers(-(2**40), 2**40) if kind == "i" else st.floats(width=64)
    values = np.array(data.draw(st.lists(numbers, max_size=3 * PACKED)), f"{kind}8")
    found = json.loads(to_json({"values": values}))["values"]
    if isinstance(found, dict):
        np.testing.assert_array_equal(values, unpacked(found))
    else:
        expected = [None if kind == "f" and not np.isfinite(one) else one for one in values]
        assert expected == found


def asked_by(moment):
    """Return the processors that the waiting jobs ask for."""
    return int(moment.jobs.processors[moment.waiting].sum())


def test_busy_hours(course):
    """At the first busy hour jobs wait and half of the machine is in use; before, they never do."""
    course.advance(10**9)
    found, run = timeline(course, whole=True), course.staged.result()
    for hour in range(0, course.now, HOUR):  # the log begins at a full hour
        moment = Moment.of_run(run, hour)
        if moment.jobs.processors[moment.running].sum() >= 4 and asked_by(moment):
            break
    assert found["busy"] == hour
    assert asked_by(moment) <= asked_by(Moment.of_run(run, found["busiest"]))
    assert sum(one["value"] for one in found["numbers"]["values"] if one["key"] == "jobs_completed")


def test_the_opening_of_a_short_run(tmp_path, make_trace):
    """Where hours are too long, it is when jobs have just come; nothing is shown before it is."""
    log = make_trace(
        {"submit": 0, "run": 600, "requested_processors": 4, "user": 1},
        {"submit": 60, "run": 600, "requested_processors": 1, "user": 2},
        header="; MaxProcs: 4",
    )
    write_swf(log, tmp_path / "short.swf")
    course = live(tmp_path / "short.swf")
    course.advance(300)
    load = json.loads(panels_json(course, {"panels": ["load"], "from": 0, "to": DAY}))["load"]
    assert 300 == load["edges"][-1]
    course.advance(10**9)
    found = timeline(course, whole=True)
    assert (61, 61, 1201) == (found["busy"], found["busiest"], found["last"])


def test_what_jobs_find_when_they_are_submitted(course):
    """Free processors and jobs ahead are those of the moment before the submission."""
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


def test_lanes_hold_one_unit_at_a_time():
    """Units that overlap lie on different lines, the others as low as they can."""
    left, right = np.array([0, 5, 10, 12, 30]), np.array([10, 20, 15, 13, 31])
    assert [0, 1, 0, 2, 0] == lanes(left, right).tolist()


#: Numbers that a description of power adds.
KEYS = ["energy_kwh", "carbon_kg", "energy_cost", "power_now_kw"]


def begun(log, **more):
    """Return the replay of a log with the description of power, at its beginning."""
    course = subject_of(log, {"power": "power.toml", **more}).begin({})
    assert isinstance(course, LiveCourse)
    return course


def shown(course, panel, **asked):
    """Return a panel as the page gets it, with short arrays as lists."""
    return json.loads(panels_json(course, {"panels": [panel], **asked}))[panel]


def energy_of(values):
    """Return the numbers of energy by key."""
    return {one["key"]: one for one in values if one["key"] in KEYS}


@pytest.mark.parametrize("scheduler", ["easy", "fcfs"])
def test_numbers_so_far_are_those_of_the_finished_run(powered_log, scheduler):
    """At any second, energy so far is the integral of the power of the finished run until then."""
    course, seen = begun(powered_log, scheduler=scheduler), []
    for second in (3 * DAY + 7, 9 * DAY, 30 * DAY + HOUR):
        course.advance(second)
        seen.append((course.now, energy_of(shown(course, "numbers")["values"])))
    course.advance(10**9)
    whole = energy_of(timeline(course, whole=True)["numbers"]["values"])
    run = course.staged.result()
    account = over_time_of(run.parts)
    assert account is not None
    for second, found in seen:
        assert KEYS == list(found)
        joules = float(account.curve.integral(account.begin, second))
        assert joules / 3.6e6 == pytest.approx(found["energy_kwh"]["value"], rel=1e-9)
        assert account.curve.at(second - 1) / 1000 == pytest.approx(found["power_now_kw"]["value"])
    names = {"energy_kwh": "energy_kwh", "carbon_kg": "carbon_kg", "energy_cost": "cost"}
    for key, name in names.items():
        assert run.parts["power"].account[name] == pytest.approx(whole[key]["value"], rel=1e-9)
        assert "lower" == whole[key]["better"]
    write_results(run, powered_log.with_name("run"), plots=False)
    again = subject_of(powered_log.with_name("run")).begin({})
    again.advance(3 * DAY)
    assert {} == energy_of(shown(again, "numbers")["values"])
    assert [] == shown(again, "power")["edges"]
    again.advance(10**9)
    found = energy_of(timeline(again, whole=True)["numbers"]["values"])
    assert KEYS[:3] == list(found)
    assert run.parts["power"].account["energy_kwh"] == pytest.approx(found["energy_kwh"]["value"])


def test_power_has_the_bins_of_the_load(powered_log):
    """The chart is averaged over the same bins; together they hold the energy of their time."""
    course = begun(powered_log)
    assert about(course)["power"]
    assert {"edges": [], "power": [], "now": None, "signals": []} == shown(course, "power")
    course.advance(3 * DAY)
    asked = {"from": 2 * DAY, "to": 2 * DAY + 12 * HOUR}
    found, load = shown(course, "power", **asked), shown(course, "load", **asked)
    assert load["edges"] == found["edges"]
    account = course.energy_account()
    assert account is not None
    assert account is course.energy_account()
    from_page = unpacked(found["power"]) @ np.diff(unpacked(found["edges"]))
    joules = account.curve.integral(asked["from"], asked["to"])
    assert float(joules) / 1000 == pytest.approx(float(from_page), rel=1e-3)
    assert ["carbon_g_per_kwh", "price_per_kwh"] == [one["name"] for one in found["signals"]]
    assert {0.1, 0.3} == set(unpacked(found["signals"][1]["values"]))
    csv = saved_panel(course, {"panel": "power", "kind": "csv", **asked}).decode()
    names = "begin_s,end_s,power_kw,wasted_kw,carbon_g_per_kwh,price_per_kwh"
    assert names == csv.splitlines()[0]
    assert b"<svg" in saved_panel(course, {"panel": "power", "kind": "svg", **asked})


def test_without_a_description_nothing_is_added(log):
    """No number, no chart and no word of it; its table is empty, and it has no picture."""
    course = live(log)
    course.advance(3 * DAY)
    assert {} == energy_of(shown(course, "numbers")["values"])
    assert "power" not in about(course)
    assert [] == shown(course, "power")["edges"]
    csv = saved_panel(course, {"panel": "power", "kind": "csv"})
    assert ["begin_s,end_s,power_kw,wasted_kw"] == csv.decode().splitlines()
    with pytest.raises(QuantityError, match="description of power"):
        saved_panel(course, {"panel": "power", "kind": "png"})


@pytest.mark.parametrize("users", ["rigid", "think-time"])
def test_jobs_given_up(users):
    """In the middle of a run: who took how many jobs back that had not started, and how many."""
    log = """; MaxProcs: 8
1 0 0 10000 8 -1 -1 8 10000 -1 1 1 1 -1 1 -1 -1 -1
2 10 300 -1 8 -1 -1 8 100 -1 5 2 1 -1 1 -1 -1 -1
3 20 30000 -1 8 -1 -1 8 100 -1 5 3 1 -1 1 -1 -1 -1
4 40000 0 50 8 -1 -1 8 100 -1 1 3 1 -1 1 -1 -1 -1
"""
    staged = ReplayConfig(users=users, scheduler="fcfs").stage(parse_swf(log))
    for now, left in ((200, None), (400, [0, 1, 0]), (35_000, [0, 1, 1])):
        staged.model.run(until=now)
        moment = Moment.of_model(staged.model, users=staged.users)
        frame = views.users_table(moment)
        found = frame.jobs_given_up
        assert found.isna().all() if left is None else found.tolist() == left
        shown = {one["key"]: one["value"] for one in numbers(moment)["values"]}
        assert shown.get("jobs_given_up") == (None if left is None else sum(left))
    # The turn of job 3 came at 10,000 s, and job 4 as long after that as after its recorded end.
    assert frame.jobs_done.tolist() == [1, 0, users == "think-time"]
