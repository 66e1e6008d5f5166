"""Energy on the page: numbers so far and the power over time."""

import json

import numpy as np
import pytest
from hpcrowd.analysis.energy.account import Blocks, EnergyAccount, Rates
from hpcrowd.analysis.energy.part import over_time_of
from hpcrowd.analysis.results import write_results
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.signals.steps import Steps
from hpcrowd.scenarios.inspector.panels.about import about
from hpcrowd.scenarios.inspector.panels.registry import panels_json
from hpcrowd.scenarios.inspector.panels.saving import saved_panel
from hpcrowd.scenarios.inspector.panels.timeline import timeline
from hpcrowd.scenarios.inspector.subjects.course import LiveCourse
from hpcrowd.scenarios.inspector.subjects.subject import subject_of

from tests.scenarios.inspector.subjects.kind_cases import live, unpacked

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


def test_totals_of_a_story():
    """Energy, carbon and cost of one job by hand, and the power in the last second."""
    account = EnergyAccount(
        Blocks(*(np.array([value]) for value in (0, 10, 60, 100.0, 50.0, 0))),
        Steps([0, 100], [300.0]),
        Rates(
            Steps([0, 100], [2.0]),
            carbon=Steps([0, 50, 100], [36.0, 72.0]),
            price=Steps([0, 100], [3.6]),
        ),
        jobs=1,
    )
    found = account.so_far()
    joules = 2.0 * (300 * 100 + 50 * 50)
    assert joules / 3.6e6 == pytest.approx(found["energy_kwh"])
    grams = 2.0 * (36 * (300 * 50 + 50 * 40) + 72 * (300 * 50 + 50 * 10)) / 3.6e6
    assert grams / 1000 == pytest.approx(found["carbon_kg"])
    assert joules * 3.6 / 3.6e6 == pytest.approx(found["cost"])
    assert 0.6 == found["power_kw"]


@pytest.mark.parametrize("scheduler", ["easy", "fcfs"])
def test_numbers_so_far_are_those_of_the_finished_run(powered_log, scheduler):
    """At any second, energy so far is the integral of the power of the finished run until then.

    Of a folder of results only the energy of the whole run is known, at its end.
    """
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
    """The chart is averaged over the same bins; together they hold the energy of their time.

    Its table has the signals and what was wasted; the picture is the same twice.
    """
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
    one, two = (saved_panel(course, {"panel": "power", "kind": "svg", **asked}) for _ in range(2))
    assert one == two
    assert b"<svg" in one


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
