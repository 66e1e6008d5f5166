"""Zakay and Feitelson 2015 is reproduced: what is required on KTH, and the study on small logs."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hpcrowd import Clock, parse_swf
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.studies.render import VERDICTS
from hpcrowd.scenarios.studies.study import claims_of
from hpcrowd.scenarios.studies.zakay2015 import measures
from hpcrowd.scenarios.studies.zakay2015.study import RULES, SEEDS, Zakay2015, study_log, table1_row

from tests.scenarios.studies.study_cases import KTH_FILE, log_of_one_job, small_log


@pytest.fixture(scope="module")
def study(kth):
    """Return the study on KTH."""
    return Zakay2015({"KTH": study_log("KTH", kth)})


@pytest.mark.slow
@pytest.mark.traces
def test_what_is_required_of_kth(study):
    """Fluid / adjusted is 0.76 within 0.05; the page has what is stated."""
    required = list(study.traces["KTH"].requirements)
    assert 3 == len(required)
    assert [] == study.failures
    fluid = study.traces["KTH"].ratio("fluid", "adjusted").mean
    assert pytest.approx(0.76, abs=0.05) == fluid


@pytest.mark.slow
@pytest.mark.traces
def test_page_shows_the_computed_figures(study, page):
    """Table I and the statements on KTH are those that the code computes, digit by digit."""
    log = study.traces["KTH"]
    lines = page.splitlines()
    for cell in measures.cells_of(log):
        assert f"| {' | '.join(table1_row(cell))} |" in lines
    heading = next(line for line in lines if line.startswith("| statement"))
    column = [text.strip() for text in heading.split("|")].index("KTH")
    for rule, claim in zip(RULES, claims_of(RULES, {"KTH": log}), strict=True):
        (line,) = (line for line in lines if line.startswith(f"| {rule.what} ({rule.section}) |"))
        assert f"{VERDICTS[claim.holds]}: {claim.text}" == line.split("|")[column].strip()


@pytest.mark.slow
@pytest.mark.traces
def test_page_shows_effects_and_other_readings(kth, page):
    """What makes fluid users of KTH wait longer or shorter, and Table I under other settings."""
    effects = measures.effect_row("KTH", kth)
    for row in (effects, *measures.reading_rows("KTH", kth, measures.READINGS[:2])):
        assert f"| {' | '.join(row)} |" in page.splitlines()


def test_every_simulation_is_run(small):
    """Four user models under EASY, two under FIFO, each with its seeds; a panel for each log."""
    for log in small.traces.values():
        assert {*measures.SIMULATIONS} == set(log.outcomes)
        assert [0, 1] == [one.seed for one in log.of("fluid", "fcfs")]
        assert 0 == log.moved
    assert ["KTH", "CEA"] == list(small.traces)
    assert {"80640", None} == {log.settings.get("processors") for log in small.traces.values()}
    data = small.to_json()
    assert (2 * 4, 2 * len(RULES), 2 + 2) == tuple(
        len(data[name]) for name in ("table1", "statements", "required")
    )
    assert f"{KTH_FILE}.gz" == data["logs"]["KTH"]["trace"]["source"]
    for picture in small.pictures():
        figure = picture.draw()
        titles = [panel.get_title(loc="left") for panel in figure.axes]
        assert ["KTH", "CEA"] == titles
        assert picture.name.removeprefix("figure") in figure.texts[0].get_text()


def test_same_seeds_same_figures(make_trace, small):
    """A study run again gives the same; seeds differ; a log of few lines gets ten."""
    again = study_log("KTH", small_log(make_trace, 1), 2)
    waits = small.traces["KTH"].waits("distribution")
    assert waits.tolist() == again.waits("distribution").tolist()
    assert waits[0] != waits[1]
    assert SEEDS == study_log("KTH", log_of_one_job(make_trace)).seeds


def test_queues_slots_and_distances():
    """Two jobs wait for 2 of 10 s, one for 6; 6:30 to 8:30 is a slot; CDFs are compared."""
    shares = measures.queue_shares(np.array([0, 2, 9]), np.array([4, 8, 9]), 0, 10)
    assert [pytest.approx(share) for share in (0.2, 0.6, 0.2)] == shares.tolist()
    assert [0.0, 1.0] == measures.queue_shares(np.array([0]), np.array([99]), 10, 20).tolist()
    assert [1.0] == measures.queue_shares(np.array([0]), np.array([99]), 10, 10).tolist()
    half = HOUR // 2
    times = np.array([6 * HOUR + half, 18 * HOUR + half - 1, 6 * HOUR + half - 1, 8 * HOUR + half])
    assert 0.5 == measures.slot_share(times + 3 * DAY, Clock())
    assert 0.25 == measures.share_distance(np.array([1.0]), np.array([0.75, 0.0, 0.25]))
    assert [0.5, 0.25, 0.25] == measures.mean_shares(
        [np.array([1.0]), np.array([0, 0.5, 0.5])]
    ).tolist()


def outcome(**changes):
    """Return what a log was like with office hours on Mondays, five users, an empty queue."""
    profile = np.zeros(168)
    profile[8:18] = 0.1
    usual = measures.Outcome(
        seed=0,
        wait_mean_s=100.0,
        lateness_mean_s=0.0,
        profile=profile,
        slot_share=0.1,
        after_last_share=0.0,
        activity_s=np.arange(1, 6) * 10 * DAY,
        queue=np.array([1.0]),
    )
    return replace(usual, **changes)


def check(name, moved=0, **outcomes):
    """Return whether a statement holds on a log; simulations not given are as recorded."""
    of = {
        key: [outcomes.get("_".join(key), outcomes.get(key[0], outcome()))]
        for key in measures.SIMULATIONS
    }
    jobs = np.array([1, 1, 1, 1, 50])
    log = measures.LogOutcomes("KTH", outcome(), of, moved, jobs)
    (rule,) = (rule for rule in RULES if rule.name == name)
    return bool(rule.check(log)[2])


FLAT = np.full(168, 1 / 168)
LONG = np.array([10, 20, 30, 40, 90]) * DAY
LONG_OTHER = np.array([90, 20, 30, 40, 50]) * DAY
LATE = outcome(wait_mean_s=300.0)
BUSY, FULL = np.array([0.5, 0.5]), np.array([0.0] * 9 + [1.0])


@pytest.mark.parametrize(
    ("name", "outcomes", "holds"),
    [
        ("identity", {}, True),
        ("adjusted flattens the week", {"adjusted": outcome(profile=FLAT)}, True),
        ("adjusted flattens the week", {}, False),
        ("adjusted waits less", {"adjusted": outcome(wait_mean_s=99.0)}, True),
        ("adjusted waits less", {}, False),
        ("distribution has peaks", {"distribution": outcome(slot_share=0.2)}, True),
        ("distribution has peaks", {"distribution": outcome(slot_share=0.14)}, False),
        ("distribution waits long", {"distribution": outcome(wait_mean_s=101.0)}, True),
        ("distribution waits long", {}, False),
        ("distribution has high throughput", {"distribution": outcome(activity_s=LONG // 2)}, True),
        ("distribution has high throughput", {}, False),
        ("hyperactive users take long", {"distribution": outcome(activity_s=LONG)}, True),
        ("hyperactive users take long", {"distribution": outcome(activity_s=LONG_OTHER)}, False),
        ("hyperactive users take long", {}, False),
        ("fluid keeps the week", {"adjusted": outcome(profile=FLAT)}, True),
        ("fluid keeps the week", {"fluid": outcome(profile=FLAT)}, False),
        ("fluid keeps the throughput", {}, True),
        ("fluid keeps the throughput", {"fluid": outcome(activity_s=2 * LONG)}, False),
        ("a few fluid users take long", {}, False),
        ("order of waits", {"conventional": LATE}, False),
        ("order of waits", {"fluid": outcome(wait_mean_s=50.0), "conventional": LATE}, True),
        ("FIFO close to EASY with feedback", {}, True),
        ("FIFO close to EASY with feedback", {"fluid_fcfs": outcome(queue=BUSY)}, False),
        ("FIFO far from EASY without", {}, False),
        ("FIFO far from EASY without", {"conventional_fcfs": outcome(queue=FULL)}, True),
        ("feedback narrows the gap", {"conventional_fcfs": outcome(queue=FULL)}, True),
        ("feedback narrows the gap", {}, False),
        ("shorter queues with feedback", {"conventional": outcome(queue=BUSY)}, True),
        ("shorter queues with feedback", {}, False),
    ],
)
def test_statement_follows_from_the_measures(name, outcomes, holds):
    """Each rule holds and fails where its measure says so."""
    assert holds is check(name, **outcomes)


def test_one_job_that_moved_breaks_the_identity():
    """And without waits there are no ratios: nothing is divided by zero, and nothing holds."""
    assert check("identity", moved=1) is False
    nobody = {"conventional": outcome(wait_mean_s=None), "adjusted": outcome(wait_mean_s=None)}
    assert check("adjusted waits less", **nobody) is False


#: A user with sessions at 0 to 60 s and from 50,000 s on; the first one's last job runs for long,
#: so that the second session waits for nothing and is released by the last submission before.
TRACE = parse_swf(
    "; MaxProcs: 9\n"
    "1 0 0 50 1 -1 -1 1 99 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    "2 60 0 90000 1 -1 -1 1 90000 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    "3 50000 0 10 1 -1 -1 1 99 -1 1 1 -1 -1 -1 -1 -1 -1\n"
)


@pytest.mark.parametrize(
    ("users", "third"),
    [
        ("fluid", 120),
        (measures.fluid_with(measures.OverAtLast), 50_000),
        (measures.fluid_with(measures.RecordedSessions, measures.SessionsApart), 50_000),
        (measures.fluid_with(measures.UntilJobsEnd), 120),
    ],
)
def test_when_the_third_job_comes(users, third):
    """Released at 60 within the session, after the user's own pause; or with its own session."""
    assert [0, 60, third] == replay(TRACE, users=users).jobs.submit.tolist()


def test_sessions_that_run_together_are_counted():
    """The second session began within an hour under fluid users, and did not in the record."""
    assert 1.0 == measures.run_together(replay(TRACE, users="fluid"))
    assert 0.0 == measures.run_together(replay(TRACE, users="rigid"))


def test_nights_may_begin_on_their_days():
    """All weekday nights: Monday 3:00 belongs to Sunday's night, Saturday 3:00 to Friday's."""

    pattern = measures.EveningPattern()
    pattern.shifts = replace(pattern.shifts, day_share=0.0, weekday_share=1.0, shift=0)
    model = SimpleNamespace(clock=Clock())
    user: Any = SimpleNamespace(number=1, model=model, stream=np.random.default_rng(0))
    pattern.begin(user)
    monday, saturday = (pattern.is_open(user, day * DAY + 3 * HOUR) for day in (0, 5))
    assert (False, True) == (monday, saturday)
