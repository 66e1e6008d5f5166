"""What forecasts say: bounds of starts, fans, paired effects, pictures and pages."""

import json
import math
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hpcrowd.analysis.forecast import report
from hpcrowd.analysis.forecast.answers import Submissions, answers_of, reasons_now
from hpcrowd.analysis.forecast.bounds import Waits, days_between
from hpcrowd.analysis.forecast.effects import eaten_up, effects_of
from hpcrowd.analysis.forecast.futures import Asked, Future, Outset
from hpcrowd.analysis.pictures import fan
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.schedulers.past import Placed
from hpcrowd.environment.state.state import ClusterState

from tests.support.reports import Page

#: 2024-01-09, a Tuesday, 10:00 UTC is second 0.
CLOCK = Clock(1_704_794_400, known=True)

NOW = 10 * DAY
HORIZON = 12 * HOUR

#: A name that does harm where it is not escaped: in HTML, in a formula, on a terminal.
HOSTILE = "<script>alert('$x_{$')</script>\x1b[31m"


def made_state(waiting=((4, HOUR), (2, HOUR), (1, HOUR))):
    """Return a machine of 4 processors: job 301 holds them all; processors and requests wait."""
    rng, over, jobs = np.random.default_rng(0), 300, JobTable()
    submit = np.sort(rng.integers(0, NOW - 3 * HOUR, over))
    run = rng.integers(60, 2 * HOUR, over)
    times = {"recorded_start": submit + 60, "recorded_end": submit + 60 + run}
    made = {"user": rng.integers(0, 3, over), "processors": rng.integers(1, 4, over)}
    asked = {"requested_time": 2 * HOUR}
    jobs.append(over, run_time=run, recorded_submit=submit, **made, **times, **asked)
    began = NOW - HOUR
    jobs.append(1, user=0, processors=4, recorded_submit=began, recorded_start=began, **asked)
    for size, requested in waiting:
        jobs.append(1, user=1, processors=size, requested_time=requested, recorded_submit=NOW - 60)
    jobs.group[:], jobs.queue[:], jobs.executable[:] = 0, 0, 0
    jobs.names = {"user": {0: "ada", 1: HOSTILE, 2: "eve"}}
    return ClusterState(jobs, NOW, CLOCK, 4, source=f"made {HOSTILE}", notes=(HOSTILE,))


#: One job waits, and no job does.
ONE, NONE = (Outset(made_state(some), HORIZON, users="none") for some in (((4, HOUR),), ()))


def made_future(number, start, end=None, wait=(0, 60), load=2.0):
    """Return a future: starts of the jobs that run, wait and are asked for, s from now."""
    at = np.array(start)
    begin = np.where(at == UNKNOWN, UNKNOWN, NOW + at)
    steps = HORIZON // 300
    return Future(
        number, begin, begin if end is None else NOW + np.array(end),
        np.full(steps, load), np.full(steps, number), np.full(steps, 2 * number),
        NOW + np.arange(len(wait)) * HOUR, np.array(wait), np.arange(len(wait)) + 1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def simulated():
    """A few real futures, in which one would submit two kinds of jobs."""
    outset = Outset(
        made_state(), HORIZON, users="rigid", asked=(Asked(4, HOUR), Asked(1, 600, count=3))
    )
    return outset, [outset.simulate(number) for number in range(6)]


@pytest.fixture(scope="module")
def changed(simulated):
    """The effect of twice the processors."""
    first, futures = simulated
    second = replace(first, processors=8)
    others = [second.simulate(number) for number in reversed(range(6))]
    return effects_of(first, second, futures, others, f"8 processors {HOSTILE}")


def test_bounds_are_quantiles_over_futures():
    """Of 20 futures the 5 % bound is the first, the median the tenth, the 95 % the nineteenth."""
    futures = [made_future(n, (-HOUR, 1500 * (n + 1))) for n in reversed(range(20))]
    doubled = SimpleNamespace(adjusted=lambda raw: 2 * raw)
    found = answers_of(ONE, futures, reasons={}, recalibration=doubled)
    (job,) = found.jobs
    assert [1500, 7500, 15_000, 22_500, 28_500] == (job.raw_start - NOW).tolist()
    assert [3000, 15_000, 30_000, math.inf, math.inf] == (job.start - NOW).tolist()
    assert found.recalibrated


def test_bounds_beyond_the_horizon_are_open():
    """A bound that is reached only beyond the horizon is infinite, and null in JSON."""
    starts = [0, 30, 60, 61, 400, 500, *[UNKNOWN] * 4]
    futures = [made_future(n, (-HOUR, start)) for n, start in enumerate(starts)]
    found = answers_of(ONE, futures, reasons={})
    (job,) = found.jobs
    same = SimpleNamespace(adjusted=lambda raw: raw)
    (again,) = answers_of(ONE, futures, reasons={}, recalibration=same).jobs
    assert job.end.tolist() == again.end.tolist()
    assert [0, 60, 400, math.inf, math.inf] == (job.start - NOW).tolist()
    assert (0.6, 0.3) == (job.within, job.at_once)
    plain = found.to_dict()["jobs"][0]
    assert [NOW + 400, None, None] == [plain["start_s"][name] for name in ("p50", "p75", "p95")]
    times = plain["start_local_time"]
    assert ("2024-01-19T10:06:40+00:00", None) == (times["p50"], times["p95"])
    frame = found.frames()["jobs"]
    assert (NOW + 400, True) == (frame["start_p50_s"][0], frame["start_p95_s"].isna().all())
    undated = replace(ONE, state=replace(ONE.state, clock=Clock()))
    plain = answers_of(undated, futures, reasons={}).to_dict()
    assert {None} == {plain["now_local_time"], *plain["jobs"][0]["start_local_time"].values()}
    (row,) = report.job_rows(found)
    assert ["Fri 10:06", "Fri 10:01 to later", "now to later"] == row[3:6]


@pytest.mark.parametrize(
    ("last", "ended", "expected"), [(200, 500, 900), (UNKNOWN, UNKNOWN - NOW, math.inf)]
)
def test_several_asked_jobs_have_the_first_start_and_the_last_end(last, ended, expected):
    """Three jobs at once are one answer; if one does not end, the end is open."""
    outset = replace(NONE, asked=(Asked(1, 600, count=3),))
    futures = [made_future(n, (-HOUR, 300, 100, last), (50, 400, 900, ended)) for n in range(2)]
    (job,) = answers_of(outset, futures, reasons={}).jobs
    assert (100, expected) == (job.start[2] - NOW, job.end[2] - NOW)
    assert "3 x 1 processor for 10.0 min" == job.name


def test_reasons_come_from_the_scheduler(simulated):
    """The first in the queue has a reservation; held jobs have the words of their manager."""
    outset, futures = simulated
    found = reasons_now(outset)
    assert found[1].startswith("first in the queue: requests 4 processors, none is free")
    assert set(range(1, 8)) == set(found)
    state = made_state()
    held = replace(outset, state=replace(state, held={int(state.waiting[1]): "JobHeldUser"}))
    jobs = [job for job in answers_of(held, futures).jobs if job.number is not None]
    assert ["", "held: JobHeldUser", ""] == [job.reason if job.held else "" for job in jobs]


def test_the_words_of_the_resource_manager_come_first():
    """Also of a job that starts at once in the futures, where nothing holds it."""
    (row,) = ONE.state.waiting.tolist()
    given = replace(ONE.state, placed={row: Placed(reason="QOSGrpCpuLimit")})
    one, other = (
        reasons_now(Outset(given, HORIZON, users="none", processors=size))[1] for size in (4, 8)
    )
    assert one.startswith("QOSGrpCpuLimit; in the futures: first in the")
    assert "QOSGrpCpuLimit" == other


@pytest.mark.parametrize(("users", "count", "days", "wrong"), [
    ("think-time", 0, 1, True),
    ("rigid", 0, 7, True),
    ("think-time", 1, 7, False),
    ("none", 0, 7, False),
    ("think-time", 0, 0.5, False),  # perhaps it is night
])  # fmt: skip
def test_users_who_submit_nothing(users, count, days, wrong):
    """What users submit is counted beside what they submitted; nothing at all is an error."""
    outset = Outset(made_state(((4, HOUR),)), round(days * DAY), users=users)
    futures = [made_future(n, (-HOUR, 60), wait=(0,) * count) for n in range(20)]
    found = Submissions.of(outset, futures)
    assert (count / days, 302) == (found.per_day, found.recorded)
    assert 302 * DAY / found.record == pytest.approx(found.recorded_per_day)
    assert f"Users submit {count / days:.1f} jobs per day in the futures; the" in found.words
    assert "has 302 jobs, 30." in found.words
    with pytest.raises(QuantityError, match="no job in 20 fut") if wrong else nullcontext():
        found.check(outset, len(futures))


def test_futures_that_do_not_fit(simulated):
    """No future, one with other jobs, and pairs that are none, are an error that says so."""
    outset, futures = simulated
    longer = replace(outset, horizon=HORIZON + HOUR)
    other = [longer.simulate(0)]
    for words, call, *given in (
        ("no future: nothing to say", answers_of, outset, []),
        ("has 8 jobs and 144 steps, its state 4", answers_of, replace(outset, asked=()), futures),
        ("future 5 is in one only", effects_of, outset, outset, futures, futures[:5]),
        ("a number is there twice", effects_of, outset, outset, futures[:1], 2 * futures[:1]),
        ("horizon 43200 without and 46800 with", effects_of, outset, longer, futures[:1], other),
    ):
        with pytest.raises(QuantityError, match=words):
            call(*given)


def test_fans_are_bounds_by_step_and_go_on_from_the_record():
    """Load is a share of the machine; before now it has what the record had."""
    outset = Outset(made_state(), HORIZON, users="none")
    futures = [made_future(n, (-HOUR, 60, 60, 60), load=n % 5) for n in range(20)]
    found = answers_of(outset, futures, reasons={})
    load, queue = found.fans["load"], found.fans["queue"]
    assert (5, 144) == load.bounds.shape
    assert [0, 0.25, 0.5, 0.75, 1] == load.bounds[:, 3].tolist()
    assert [0, 4, 9, 14, 18] == queue.bounds[:, 0].tolist()
    assert [0.5, 9.5] == [load.mean[0], queue.mean[0]]
    assert 1.0 == load.before[-1]
    assert [0, 3] == queue.before[-2:].tolist()
    assert 7 == found.fans["queued_processors"].before[-1]
    assert NOW == found.edges_before[-1] == found.edges[0]


def test_waits_count_up_to_the_horizon():
    """A job that still waits counts up to the horizon in a mean, and without end in a median."""
    until = NOW + 2 * HOUR
    one, two = made_future(0, (0,), wait=(100, UNKNOWN)), made_future(1, (0,), wait=(50,))
    found = Waits.of([one, two], until, np.array([NOW, NOW + HOUR, until]))
    assert ("1", "2 to 4", "all") == found.classes
    assert [[2, 1], [1, 1]] == [found.jobs[:, -1, -1].tolist(), found.started[:, -1, -1].tolist()]
    assert [(100 + HOUR) / 2, 50] == found.mean[:, -1, -1].tolist()
    assert [100, 50] == found.mean[:, 0, 0].tolist()
    assert [HOUR, math.inf] == [found.mean[0, 1, 1], found.median[0, 1, 1]]
    assert 100 == found.median[0, -1, -1]
    assert np.isnan([found.mean[1, 1, 1], found.mean[0, 0, 1]]).all()
    edges = days_between(CLOCK, NOW, NOW + 2 * DAY)
    assert [NOW, NOW + 14 * HOUR, NOW + 38 * HOUR, NOW + 2 * DAY] == edges.tolist()


def test_futures_that_stop_early_have_no_fans():
    """If futures stop when all jobs have started, there are starts, and nothing else."""
    outset = Outset(made_state(), HORIZON, users="none", jobs_only=True)
    found = answers_of(outset, [outset.simulate(number) for number in range(3)])
    assert {} == dict(found.fans)
    assert found.waits is None
    assert all(job.end is None and job.within == 1 for job in found.jobs)
    assert "<h2>Load" not in report.page(found, pngs={})
    assert 3 == len(fan.fans(found).axes)


def test_a_change_without_effect_changes_nothing(simulated):
    """The same numbers of a machine that stays as it is differ by exactly 0, in any order."""
    outset, futures = simulated
    again = replace(outset, processors=4)
    found = effects_of(outset, again, futures, [again.simulate(n) for n in (3, 1, 5, 0, 2, 4)])
    assert (list(range(6)), 5) == (found.pairs.tolist(), len(found.jobs))
    for one in (*found.totals, *found.jobs):
        assert {0.0} == set(one.differences.tolist()), one.measure
        assert (0.0, 0.0, 0.0) == (one.mean.mean, one.mean.low, one.error)
    assert not any(values.any() for values in found.fans.values())
    assert eaten_up(found, found).share is None


def test_effects_are_differences_of_pairs():
    """Differences are those of the same number, cut at the horizon, with standard errors."""
    first = [made_future(n, (-HOUR, at)) for n, at in enumerate((600, 700, UNKNOWN, UNKNOWN))]
    second = [made_future(n, (-HOUR, at)) for n, at in enumerate((500, 900, 1200, UNKNOWN))]
    (start,) = effects_of(ONE, ONE, first, second[::-1]).jobs
    expected = [-100, 200, 1200 - HORIZON, 0]
    assert expected == start.differences.tolist()
    assert 0.5 == start.beyond
    assert np.std(expected, ddof=1) / 2 == pytest.approx(start.error)
    assert np.mean(expected) == pytest.approx(start.mean.mean)


def test_ways_to_submit_are_compared_by_place():
    """One job as two smaller ones: the asked jobs of both are a pair, with both names."""
    asked = Asked(4, HOUR), Asked(2, HOUR, count=2)
    one, two = (replace(NONE, asked=(each,)) for each in asked)
    first = [made_future(n, (-HOUR, 600)) for n in range(3)]
    second = [made_future(n, (-HOUR, 500, 800)) for n in range(3)]
    (start,) = effects_of(one, two, first, second).jobs
    assert "4 processors for 60.0 min, then 2 x 2 processors for 60.0 min" == start.of
    assert [-100] * 3 == start.differences.tolist()


def effect(*waits):
    """Return the effect on the waits of the only job that is submitted, from before to after."""
    futures = [[made_future(n, (-HOUR,), wait=(one,)) for n, one in enumerate(w)] for w in waits]
    return effects_of(NONE, NONE, *futures)


def test_reaction_eats_up_a_share_of_the_effect():
    """If waits become 1000 s shorter for rigid users and 400 s for others, 60 % is eaten up."""
    rng = np.random.default_rng(1)
    base, noise = rng.integers(2000, 9000, 40), rng.integers(-100, 101, 40)
    rigid, soft = effect(base, base - 1000 + noise), effect(base + 50, base - 350 + noise)
    share = eaten_up(rigid, soft).share
    assert 0.6 == pytest.approx(share.mean, abs=0.03)
    assert 0.55 < share.low < 0.6 < share.high < 0.65
    half = eaten_up(effect(base, base - 1000), effect(base, base - 500)).share
    assert (0.5, 0.5, 0.5) == (half.mean, half.low, half.high)


def test_pictures_show_something(simulated, changed):
    """Fans, starts and effects are drawn at their size, with hostile names as text."""
    answers = answers_of(*simulated)
    for figure in (fan.fans(answers), fan.starts(answers), fan.effects(changed)):
        assert 1200 == int.from_bytes(figure_png(figure)[16:20])
    labels = [text.get_text() for text in fan.starts(answers).axes[0].get_yticklabels()]
    assert "submit now: 4 processors for 60.0 min" == labels[0]
    assert r"302, <script>alert…: 4 for 60.0 min" == labels[2]
    many = replace(answers, jobs=answers.jobs * 20)
    assert 40 == len(fan.starts(many).axes[0].get_yticklabels())


def test_a_folder_has_all_of_it(simulated, changed, tmp_path):
    """Data, tables, pictures and a page that loads nothing, and runs nothing that a name holds."""
    folder, again = tmp_path / "forecast", f"hpcrowd forecast {HOSTILE}"
    report.write(
        answers_of(*simulated), folder, effects=[changed], eaten=eaten_up(changed, changed, "load"),
        configuration={"kind": "forecast"}, again=[again],
    )  # fmt: skip
    names = "forecast.json jobs.csv fans.csv waits.csv effects.csv fans.png starts.png effects.png"
    names = {*names.split(), "report.html", "provenance.json"}
    assert names == {path.name for path in folder.iterdir()}
    found = json.loads((folder / "forecast.json").read_text())
    assert {key.partition(".")[0] for key in found["meaning"]} <= set(found)
    assert {"now_s", "jobs", "fans", "waits", "effects", "eaten_up"} <= set(found)
    assert 144 == len(found["fans"]["load"]["p50"]) == len(found["fans"]["begin_s"])
    page = Page((folder / "report.html").read_text())
    assert ([], 3) == (page.all("script"), len(page.all("img")))
    assert HOSTILE.split("\x1b")[0] in page.text
    assert "\x1b" not in page.text.replace(again, "")
    targets = [link["href"].removeprefix("#") for link in page.all("a")]
    assert targets == [section["id"] for section in page.all("section")]
    stored = json.loads((folder / "provenance.json").read_text())
    assert "forecast" == stored["configuration"]["kind"]
