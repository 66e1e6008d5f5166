"""Natural experiments in logs, and what models foresee after them."""

import csv
import io
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.analysis.validation import foresight
from hpcrowd.analysis.validation.events import Event, find_events, header_notes
from hpcrowd.analysis.validation.foresight import COLUMNS, NO_CHANGE, choose_events, verdicts
from hpcrowd.analysis.validation.models import Parts, UserModel
from hpcrowd.analysis.validation.scores import Estimate
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import JobTable
from hpcrowd.scenarios.studies.events import Found, gains_table, parts_of

from tests.scenarios.forecasts.forecast_cases import swf_of

#: Days of the made-up log, users in it, and the local clock: the log begins on a Monday.
DAYS, USERS = 84, 12
CLOCK = Clock(unix_start=954115200, known=True)  # 2000-03-27, a Monday, UTC

#: The outage: from the hour of a day on, for a day.
BROKEN, LASTS = 40 * DAY + 9 * HOUR, 24 * HOUR


def log(*, days=DAYS, outage=True, seed=1):
    """A log of users who submit a job every two hours or so, each day from 8 to 20 o'clock.

    A job takes an hour and starts at once; in the outage it waits until that is over.
    """
    draw = np.random.default_rng(seed)
    day, user, slot = (each.ravel() for each in np.mgrid[:days, :USERS, :6])
    at = day * DAY + 8 * HOUR + slot * 2 * HOUR + draw.integers(0, HOUR, len(day))
    order = np.argsort(at, kind="stable")
    jobs = JobTable(len(at))
    jobs.number[:] = np.arange(1, len(at) + 1)
    jobs.user[:] = user[order] + 1
    jobs.queue[:] = 1
    jobs.processors[:], jobs.run_time[:] = 1, HOUR
    jobs.requested_time[:] = HOUR
    jobs.recorded_submit[:] = jobs.recorded_start[:] = at[order]
    if outage:
        late = (at[order] > BROKEN - HOUR) & (at[order] < BROKEN + LASTS)
        jobs.recorded_start[late] = BROKEN + LASTS
    jobs.recorded_end[:] = jobs.recorded_start + HOUR
    return jobs


def test_events_are_found():
    """Jobs wait, nothing starts, and in the end nothing runs; the hours are right."""
    (event,) = (one for one in find_events(log(), CLOCK) if one.kind == "outage")
    assert abs(event.begin - BROKEN) <= HOUR
    assert abs(event.end - BROKEN - LASTS) <= HOUR
    assert not event.lasting
    assert 0 == event.after < event.before
    assert event.chance < 1e-6
    # Days in a row on which few users come; a quiet day alone is none, nor is an even log.
    jobs = log(outage=False)
    assert [] == kinds(jobs)
    day = jobs.recorded_submit // DAY
    quiet = jobs.take(np.flatnonzero((day < 30) | (day >= 33) | (jobs.user == 1)))
    (event,) = find_events(quiet, CLOCK)
    assert ("holiday", 30 * DAY, 33 * DAY) == (event.kind, event.begin, event.end)
    assert (USERS, 1) == (event.before, event.after)
    assert [] == kinds(jobs.take(np.flatnonzero(day != 30)))
    # From a day on there is twice the work, and another queue; a rare one does not count.
    jobs = log(outage=False)
    later = jobs.recorded_submit >= 42 * DAY
    # Without any difference between days nothing says what is beyond chance.
    jobs.run_time[:] = HOUR * np.random.default_rng(2).lognormal(0, 0.5, len(jobs))
    jobs.run_time[later] *= 2
    jobs.queue[:] = np.where(later, 3, 2)
    jobs.queue[10 * len(jobs) // 20] = 7
    events = find_events(jobs, CLOCK)
    (load,) = [one for one in events if one.kind == "load"]
    assert (42 * DAY, True) == (load.begin, load.lasting)
    assert 2 == pytest.approx(load.after / load.before, rel=0.1)
    queues = [one for one in events if one.kind == "queue"]
    assert ["queue 2", "queue 3"] == sorted(one.what for one in queues)
    assert {"queue 2", "queue 3"} == {str(one.plain()["what"]) for one in queues}


def test_what_is_refused(monkeypatch):
    """Logs of less than eight weeks, users who generate work, and a missing library."""
    with pytest.raises(QuantityError, match=r"the log lasts 49 days; 56 are needed"):
        find_events(log(days=50), CLOCK)
    with pytest.raises(QuantityError, match=r"users generative: .* leave them out"):
        foresight.foresee_events(log(), [UserModel.of("generative")], CLOCK, [outage(40, 5)])
    with pytest.raises(ValueError, match="origin 5 s: no session begins in the first part"):
        Parts.of(log(), CLOCK, at=5)
    monkeypatch.setitem(sys.modules, "ruptures", None)
    missing = r'ruptures is not installed; pip install "hpcrowd\[fit'
    with pytest.raises(QuantityError, match=missing):
        find_events(log(), CLOCK)


def test_what_a_header_says(make_trace):
    """Begin, end and notes are listed; filters get the dates of the jobs that they removed."""
    removed = "user=2 and (job>=2 and job<=9) (8 jobs removed)"
    header = (
        "; UnixStartTime: 954115200\n; StartTime: Mon Mar 27 2000\n; Information: http://there/\n"
        f"; Queue: 1 all\n; Note: THIS IS A CLEANED VERSION OF THE LOG!\n;       {removed}"
    )
    rows = [{"number": number, "submit": day * DAY} for number, day in ((1, 0), (10, 3), (11, 4))]
    assert [
        "StartTime: Mon Mar 27 2000",
        "Note: THIS IS A CLEANED VERSION OF THE LOG!",
        f"Note: {removed}: 2000-03-30 to 2000-03-30",
    ] == header_notes(make_trace(*rows, header=header), CLOCK)


def outage(day, hours):
    """An outage that begins on a day."""
    return Event("outage", day * DAY, day * DAY + hours * HOUR, 5.0, 0.0, 1e-9)


def test_the_largest_events_are_chosen():
    """They are a week apart, with room before and after; ordinary days are far from all."""
    events, jobs = [outage(*one) for one in ((10, 90), (35, 5), (37, 9), (50, 7), (80, 90))], log()
    assert [events[2], events[3]] == choose_events(events, jobs)
    assert [events[2]] == choose_events(events, jobs, 1)
    (found,) = choose_events([outage(30, 9)], jobs, 0, ordinary=1)
    assert foresight.ORDINARY == found.kind
    assert found.begin >= 60 * DAY
    assert [] == choose_events([outage(day, 9) for day in range(0, DAYS, 6)], jobs, 0, ordinary=3)


@pytest.fixture(scope="module")
def asked():
    """What two models foresaw after the outage, in which users with nothing back were silent."""
    jobs = log()
    at = jobs.recorded_submit
    heard = jobs.take(np.flatnonzero((at <= BROKEN + HOUR) | (at >= BROKEN + LASTS)))
    events = [Event("outage", BROKEN, BROKEN + LASTS, 6.0, 0.0, 1e-9)]
    models = [UserModel.of(name) for name in ("think-time", "adjusted")]
    return foresight.foresee_events(heard, models, CLOCK, events, seeds=1)


def kinds(jobs):
    """What happened in a log."""
    return [event.kind for event in find_events(jobs, CLOCK)]


def test_verdicts_and_tables_of_the_page(asked):
    """There is a verdict for each model, measure and days, and a table in each part of the page."""
    found = verdicts({"a": asked, "b": asked})
    assert 3 * len(foresight.MEASURES) * len(foresight.HORIZONS) == len(found)
    first = next(one for one in found if (one.model, one.days) == ("adjusted", 1))
    assert abs(asked[0].error(1, "jobs", "adjusted")) == pytest.approx(first.error.value)
    assert first.error.low == pytest.approx(first.error.high)
    assert 0 == next(one for one in found if one.model == NO_CHANGE).gain.value
    assert np.isnan(verdicts({"a": asked})[0].error.low)
    events = find_events(log(), CLOCK)
    notes = ["StartTime: Mon Mar 27 2000", "Note: user=2 (8 jobs removed)"]
    ordinary = [replace(one, event=replace(one.event, kind=foresight.ORDINARY)) for one in asked]
    page = Found(events, notes, "", CLOCK, DAYS, [*asked, *ordinary])
    parts = parts_of({"KTH": page, "NASA": replace(page, asked=[])})
    for name, words in {
        "kinds": "| KTH | 84 | 1 |", "events": "| NASA | outage | 2000-05-06 08:",
        "headers": "| KTH | user=2 (8 jobs removed) |", "design": "\n| adjusted |",
        "by_kind": "| ordinary days, 14 d | 1 |", "asked": "| KTH | outage, 2000-05-06 |",
        "gains": "| check logs | 0 | 0 | 0 |",
    }.items():  # fmt: skip
        assert words in parts[name]


def test_gains_are_counted():
    """Only intervals on one side of 0 count; "no change" is not compared with itself."""
    none = Estimate(0.0, 0.0, 0.0)
    found = [
        foresight.Verdict(model, "think_time", days, 3, none, none, Estimate(0, *gain), none)
        for model, days, *gain in (
            ("adjusted", 1, 0.1, 0.3), ("fluid", 1, 0.2, 0.4), ("fluid", 14, -0.3, -0.1),
            ("linear", 1, -0.1, 0.2), ("linear", 14, np.nan, np.nan), (NO_CHANGE, 1, 0.0, 0.0),
        )
    ]  # fmt: skip
    assert "| all | 5 | 2 | 1 | think time, 1 d: 2 |" in gains_table({"all": found})


def test_the_command_lists_events(call, tmp_path):
    """The header and a table; the same as JSON and as comma-separated values."""
    file = swf_of(log(), tmp_path / "log.swf")
    lines = [one for one in file.read_text().splitlines() if "UnixStartTime" not in one]
    file.write_text("\n".join(["; UnixStartTime: 954115200\n; Note: made up", *lines, ""]))
    code, out, err = call("events", file)
    assert (0, "") == (code, err)
    assert "Note: made up" in out
    assert "2000-05-06 08:" in out
    found = json.loads(call("events", file, "--json")[1])
    assert (["Note: made up"], False) == (found["header"], "asked" in found)
    assert "outage" in {one["kind"] for one in found["events"]}
    rows = list(csv.reader(io.StringIO(call("events", file, "--csv")[1])))
    assert (list(COLUMNS), 2 * len(found["events"])) == (rows[0], len(rows) - 1)
    for words, told in ((("--csv", "--json"), "both given"), (("--users", "no"), "users 'no'")):
        code, _, err = call("events", file, *words)
        assert 2 == code
        assert told in err


def test_what_is_recorded(asked):
    """The few jobs of the day of the outage, errors against no change, and directions."""
    (one,) = asked
    # Of six sessions a day those at 8 have begun, and those of the next day at 8 count.
    assert one.usual[1]["users"] == USERS
    assert one.recorded[1]["jobs"] < one.usual[1]["jobs"] / 2
    change, said = one.change(1, "jobs"), one.change(1, "jobs", "adjusted")
    assert change < -0.5
    assert abs(one.change(14, "jobs")) < 0.2
    assert one.daily["recorded"][0] < one.daily["recorded"][5]
    assert -change == pytest.approx(one.error(1, "jobs", NO_CHANGE))
    assert said - change == pytest.approx(one.error(1, "jobs", "adjusted"))
    assert float(said < 0) == one.right(1, "jobs", "adjusted")
    assert np.isnan([one.right(14, "jobs", "adjusted"), one.right(1, "jobs", NO_CHANGE)]).all()
    parts = Parts.of(log(), CLOCK, days=7, at=BROKEN)
    assert (BROKEN, BROKEN + 7 * DAY) == (parts.since, parts.until)
