"""Energy on the page of hpcrowd inspect: numbers so far and the power over time."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hpcrowd.analysis.energy.account import Blocks, EnergyAccount, Rates
from hpcrowd.analysis.results import write_results
from hpcrowd.environment import write_swf
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.signals.steps import Steps
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.inspector.panels.about import about
from hpcrowd.scenarios.inspector.panels.registry import panels_json
from hpcrowd.scenarios.inspector.panels.saving import saved_panel
from hpcrowd.scenarios.inspector.panels.timeline import timeline
from hpcrowd.scenarios.inspector.service.seeds import intervals
from hpcrowd.scenarios.inspector.subjects.course import Course, LiveCourse
from hpcrowd.scenarios.inspector.subjects.subject import ResultsSubject, subject_of

from tests.support.page import BUSY, NOT_EMPTY, Reader, find_browser, started_page
from tests.support.populations import small_log

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Make = Callable[..., Trace]

#: Prices change at night, and carbon intensity twice a day.
POWER = """
pue = 1.25
[[nodes]]
name = "thin"
idle = "60 W"
processor = "40 W"
[carbon]
file = "carbon.csv"
repeat = "year"
[tariff]
price = 0.3
peak_price = 5
periods = [{price = 0.1, opens = "22h", closes = "6h"}]
"""

#: Numbers that a description of power adds.
KEYS = ["energy_kwh", "carbon_kg", "energy_cost", "power_now_kw"]


@pytest.fixture
def log(tmp_path: Path, make_trace: Make) -> Path:
    """Return a log of twelve users over eight weeks, next to a description of power."""
    path = tmp_path / "log.swf"
    write_swf(small_log(make_trace), path)
    half_days = np.datetime64("2023-01-01T00") + 12 * np.arange(731)
    rows = [f"{str(at)[:13]}:00Z,{100 + 200 * (n % 2)}" for n, at in enumerate(half_days)]
    (tmp_path / "carbon.csv").write_text("\n".join(["time,g_per_kwh", *rows, ""]))
    (tmp_path / "power.toml").write_text(POWER)
    return path


def begun(log: Path, **more: Any) -> LiveCourse:
    """Return the replay of a log with the description of power, at its beginning."""
    course = subject_of(log, {"power": "power.toml", **more}).begin({})
    assert isinstance(course, LiveCourse)
    return course


def shown(course: Course, panel: str, **asked: Any) -> Any:
    """Return a panel as the page gets it, with short arrays as lists."""
    return json.loads(panels_json(course, {"panels": [panel], **asked}))[panel]


def energy_of(values: list[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the numbers of energy by key."""
    return {one["key"]: one for one in values if one["key"] in KEYS}


def test_totals_of_a_story() -> None:
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
def test_numbers_so_far_are_those_of_the_finished_run(log: Path, scheduler: str) -> None:
    """At any second, energy so far is the integral of the power of the finished run until then."""
    course = begun(log, scheduler=scheduler)
    seen = []
    for second in (3 * DAY + 7, 9 * DAY, 30 * DAY + HOUR):
        course.advance(second)
        seen.append((course.now, energy_of(shown(course, "numbers")["values"])))
    course.advance(10**9)
    whole = energy_of(timeline(course, whole=True)["numbers"]["values"])
    run = course.staged.result()
    account = run.energy_account
    assert account is not None
    for second, found in seen:
        assert KEYS == list(found)
        joules = float(account.curve.integral(account.begin, second))
        assert joules / 3.6e6 == pytest.approx(found["energy_kwh"]["value"], rel=1e-9)
        assert account.curve.at(second - 1) / 1000 == pytest.approx(found["power_now_kw"]["value"])
    names = {"energy_kwh": "energy_kwh", "carbon_kg": "carbon_kg", "energy_cost": "cost"}
    for key, name in names.items():
        assert run.energy[name] == pytest.approx(whole[key]["value"], rel=1e-9)
        assert "lower" == whole[key]["better"]


def test_power_has_the_bins_of_the_load(log: Path) -> None:
    """The chart is averaged over the same bins; together they hold the energy of their time."""
    course = begun(log)
    assert {"edges": [], "power": [], "now": None, "signals": []} == shown(course, "power")
    course.advance(3 * DAY)
    asked = {"from": 2 * DAY, "to": 2 * DAY + 12 * HOUR}
    found, load = shown(course, "power", **asked), shown(course, "load", **asked)
    assert load["edges"] == found["edges"]
    account = course.energy_account()
    assert account is course.energy_account()
    from_page = unpacked(found["power"]) @ np.diff(unpacked(found["edges"]))
    assert account is not None
    joules = account.curve.integral(asked["from"], asked["to"])
    assert float(joules) / 1000 == pytest.approx(float(from_page), rel=1e-3)
    assert ["carbon_g_per_kwh", "price_per_kwh"] == [one["name"] for one in found["signals"]]
    assert {0.1, 0.3} == set(unpacked(found["signals"][1]["values"]))


def unpacked(values: Any) -> np.ndarray:
    """Return an array as the page unpacks it."""
    if isinstance(values, list):
        return np.array(values)
    ((kind, text),) = values.items()
    return np.frombuffer(base64.b64decode(text), {"i32": "<i4", "f64": "<f8"}[kind])


def test_without_a_description_nothing_is_added(log: Path) -> None:
    """No number, no chart and no word of it; its table is empty, and it has no picture."""
    course = subject_of(log).begin({})
    course.advance(3 * DAY)
    assert {} == energy_of(shown(course, "numbers")["values"])
    assert "power" not in about(course)
    assert [] == shown(course, "power")["edges"]
    csv = saved_panel(course, {"panel": "power", "kind": "csv"})
    assert ["begin_s,end_s,power_kw,wasted_kw"] == csv.decode().splitlines()
    with pytest.raises(QuantityError, match="description of power"):
        saved_panel(course, {"panel": "power", "kind": "png"})


def test_files_of_the_power(log: Path) -> None:
    """The table has the signals and what was wasted; the picture is the same twice."""
    course = begun(log)
    assert about(course)["power"]
    course.advance(3 * DAY)
    asked = {"panel": "power", "from": DAY, "to": 2 * DAY}
    lines = saved_panel(course, {**asked, "kind": "csv"}).decode().splitlines()
    assert "begin_s,end_s,power_kw,wasted_kw,carbon_g_per_kwh,price_per_kwh" == lines[0]
    one, two = (saved_panel(course, {**asked, "kind": "svg"}) for _ in range(2))
    assert one == two
    assert b"<svg" in one


def test_a_folder_has_the_totals_at_its_end(log: Path, tmp_path: Path) -> None:
    """Of a folder of results the power is not known; its energy is that of the whole run."""
    course = begun(log)
    course.advance(10**9)
    run = course.staged.result()
    write_results(run, tmp_path / "results", plots=False)
    again = ResultsSubject(tmp_path / "results").begin({})
    again.advance(3 * DAY)
    assert {} == energy_of(shown(again, "numbers")["values"])
    assert [] == shown(again, "power")["edges"]
    again.advance(10**9)
    found = energy_of(timeline(again, whole=True)["numbers"]["values"])
    assert KEYS[:3] == list(found)
    assert run.energy["energy_kwh"] == pytest.approx(found["energy_kwh"]["value"])


def test_energy_over_seeds_and_as_a_difference() -> None:
    """Numbers of energy have intervals over seeds as all others do."""
    found = intervals([[{"energy_kwh": 10.0}, {"energy_kwh": 12.0}], [{"energy_kwh": 9.0}] * 2])
    assert 11.0 == found["runs"][0]["energy_kwh"]["mean"]
    assert -2.0 == found["difference"]["energy_kwh"]["mean"]


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="no chromium: apt-get install chromium")
def test_energy_in_a_browser(browser: Browser, log: Path) -> None:
    """Two runs show their energy and its difference; the chart is read aloud, and nothing is wide.

    A page whose runs have no description has neither.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    scenario = log.with_suffix(".toml")
    scenario.write_text(f'[scenario]\nkind = "replay"\ntrace = "{log}"\npower = "power.toml"\n')
    with started_page(scenario) as served:
        query = f"?at={BUSY}&two=1&b.scheduler=fcfs"
        reader = Reader(browser, served.address, query, bypass_csp=True)
        words = reader.page.locator('[data-key="energy_kwh"]').inner_text()
        assert re.search(r"A\s+[\d.]+ kWh.*B\s+[\d.]+ kWh.*kWh (better|worse)", words, re.S), words
        for panel in ("power-a", "power-b"):
            assert "Power, kW, cooling included, now" in reader.words(panel)
            assert reader.spread(panel) > NOT_EMPTY
        found = axe.Axe().run(reader.page).response["violations"]
        assert [] == [one["id"] for one in found if one["impact"] in ("serious", "critical")]
        assert b"carbon_g_per_kwh" in reader.saved("power-a", "CSV").read_bytes()
        reader.close()
        reader = Reader(browser, served.address, query, width=390, height=800)
        assert 390 >= reader.page.evaluate("document.documentElement.scrollWidth")
        reader.close()
    with started_page(log) as served:
        reader = Reader(browser, served.address, f"?at={BUSY}")
        assert 0 == reader.page.locator('#power-a, [data-key="energy_kwh"]').count()
        reader.close()


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="no chromium: apt-get install chromium")
@pytest.mark.parametrize("currency", ["EUR", "SEK"])
def test_costs_in_two_currencies_in_a_browser(browser: Browser, log: Path, currency: str) -> None:
    """Costs in another currency are shown beside each other, but not subtracted."""
    paths = []
    for unit, name in (("EUR", "a"), (currency, "b")):
        text = POWER.replace("price = 0.3", f'price = 0.3\ncurrency = "{unit}"')
        (log.parent / f"power_{name}.toml").write_text(text)
        paths.append(log.parent / f"{name}.toml")
        paths[-1].write_text(
            f'[scenario]\nkind = "replay"\ntrace = "{log}"\npower = "power_{name}.toml"\n'
        )
    with started_page(*paths) as served:
        reader = Reader(browser, served.address, f"?at={BUSY}")
        words = reader.page.locator('[data-key="energy_cost"]').inner_text()
        assert re.search(rf"A\s+[\d.,]+ EUR.*B\s+[\d.,]+ {currency}", words, re.S), words
        assert ("the same" in words) is (currency == "EUR"), words
        assert "the same" in reader.page.locator('[data-key="energy_kwh"]').inner_text()
        reader.close()
