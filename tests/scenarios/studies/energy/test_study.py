"""The energy study: its setting, its measures, what its tables and sentences say."""

from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.environment.clock import HOUR, WEEK, Clock
from hpcrowd.scenarios.studies.energy import run

from tests.support.populations import small_log

#: From 27 March 2024, 23:00, on: clocks go forward on the 31st.
STOCKHOLM = Clock(1_711_576_800, ZoneInfo("Europe/Stockholm"), known=True)


def measured(kwh, work, wait=1.0):
    """One run with 100 g and 0.2 EUR for each kWh."""
    return run.Measured(kwh, 0.1 * kwh, 0.1 * kwh, 0.2 * kwh, 5.0, wait, 2.0, work, 0.0, 0.0)


def made(**runs):
    """Return two populations, the second of twice the size; kWh and work of each measure."""
    both = {
        name.replace("_", " "): [measured(kwh, work), measured(2 * kwh, 2 * work)]
        for name, (kwh, work) in runs.items()
    }
    facts = {"processors": 4, "seeds": 2, "weeks": 3}
    usual = {run.USUAL: [measured(100, 10), measured(200, 20)]}
    return run.Savings("made", usual | both, {}, facts)


def test_savings_are_computed_population_by_population():
    """The same share has no width; less energy by less work is said, and is no saving."""
    found = made(off=(80, 10), less=(80, 8))
    saved = found.saved("off", "kwh")
    assert (pytest.approx(20), pytest.approx(0, abs=1e-9)) == (saved.mean, saved.half_width)
    assert 20 == pytest.approx(found.saved("off", "kwh_per_work").mean)
    assert 0 == pytest.approx(found.saved("less", "kwh_per_work").mean, abs=1e-9)
    assert 20 == pytest.approx(found.saved("less", "work_h").mean)
    lines = run.summary_lines([made(off=(80, 10), less=(80, 8), more=(95, 7))])
    assert "**Saves much energy for the same work**: off (20.0 to 20.0 %" in lines[0]
    assert "less (" in lines[1]
    assert "more (" in lines[2]
    assert "20 to 20 % less work in the same time" in lines[1]


def test_signals_follow_the_local_day():
    """Intensity by hour and wind by day; calls on one day a week; the cap is low by day."""
    signal = run.carbon_signal(STOCKHOLM, 3 * WEEK)
    edges = signal.seconds(STOCKHOLM)
    hours = np.array([STOCKHOLM.local(int(second)).hour for second in edges[:-1]])
    wind = signal.values / np.array(run.INTENSITY)[hours]
    assert len(np.unique(wind.round(9))) <= 3 * 7 + 3
    assert edges[-1] >= 3 * WEEK
    calls = run.calls_of(STOCKHOLM, WEEK, 4 * WEEK)
    assert 3 == len(calls)
    for begin, end in calls:
        local = STOCKHOLM.local(begin)
        assert (run.CALL_DAY, run.CALL_HOURS[0]) == (local.weekday(), local.hour)
        assert (run.CALL_HOURS[1] - run.CALL_HOURS[0]) * HOUR == end - begin
        assert WEEK <= begin < 4 * WEEK
    signal = run.carbon_signal(STOCKHOLM, WEEK)
    cap = run.day_cap(STOCKHOLM, signal, 1.0, 2.0)
    for second, watts in zip(cap.seconds(STOCKHOLM)[:-1], cap.values, strict=True):
        hour = STOCKHOLM.local(int(second)).hour
        by_day = run.NIGHT_ENDS // HOUR <= hour < run.NIGHT_BEGINS // HOUR
        assert (1.0 if by_day else 2.0) == watts


def test_a_small_log_goes_through_every_measure(make_trace, page):
    """The same population; rows and columns agree; a picture; the page has a row for each."""
    found = run.run_energy("KTH", small_log(make_trace), seeds=2, weeks=4)
    assert {run.USUAL, *run.ANSWERS} == set(found.calls)
    assert all(2 == len(runs) for runs in (*found.runs.values(), *found.calls.values()))
    rows = run.saving_rows(found)
    assert len(found.runs) - 1 == len(rows)
    assert found.runs["idle nodes off"][0].kwh < found.runs[run.USUAL][0].kwh
    for table in run.tables([found]):
        assert {len(table.heading)} == {len(row) for row in table.rows}
    assert run.summary_lines([found])
    assert run.draw_savings([found]).axes
    for name in ("idle nodes off", "jobs wait for clean energy", "fair budgets of 90 %"):
        assert f"| {name}" in page
