"""What forecasts say: bounds of starts, fans, paired effects, pictures and pages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.forecast import report
from hpcrowd.analysis.forecast.answers import Answers, answers_of, reasons_now
from hpcrowd.analysis.forecast.conformal import Recalibration
from hpcrowd.analysis.forecast.effects import Effects, eaten_up, effects_of
from hpcrowd.analysis.forecast.futures import Asked, Future, Outset
from hpcrowd.analysis.forecast.waits import Waits, days_between
from hpcrowd.analysis.pictures import fan
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.state.state import ClusterState
from PIL import Image

from tests.support.reports import Page

#: 2024-01-09, a Tuesday, 10:00 UTC is second 0.
CLOCK = Clock(1_704_794_400, known=True)

NOW = 10 * DAY
HORIZON = 12 * HOUR

#: A name that does harm where it is not escaped: in HTML, in a formula, on a terminal.
HOSTILE = "<script>alert('$x_{$')</script>\x1b[31m"


def made_state(
    waiting: Sequence[tuple[int, int]] = ((4, HOUR), (2, HOUR), (1, HOUR)),
) -> ClusterState:
    """Return a machine of 4 processors: job 301 holds them all, others wait behind it.

    Parameters
    ----------
    waiting
        Processors and requested time of those that wait.
    """
    rng = np.random.default_rng(0)
    jobs = JobTable()
    over = 300
    submit = np.sort(rng.integers(0, NOW - 3 * HOUR, over))
    run = rng.integers(60, 2 * HOUR, over)
    jobs.append(
        over, user=rng.integers(0, 3, over), processors=rng.integers(1, 4, over), run_time=run,
        requested_time=2 * HOUR, recorded_submit=submit, recorded_start=submit + 60,
        recorded_end=submit + 60 + run,
    )  # fmt: skip
    jobs.append(
        1, user=0, processors=4, requested_time=2 * HOUR, recorded_submit=NOW - HOUR,
        recorded_start=NOW - HOUR,
    )  # fmt: skip
    for processors, requested in waiting:
        jobs.append(
            1, user=1, processors=processors, requested_time=requested, recorded_submit=NOW - 60
        )
    jobs.group[:], jobs.queue[:], jobs.executable[:] = 0, 0, 0
    jobs.names = {"user": {0: "ada", 1: HOSTILE, 2: "eve"}}
    return ClusterState(jobs, NOW, CLOCK, 4, source=f"made {HOSTILE}", notes=(HOSTILE,))


def made_future(
    number: int,
    start: Sequence[int],
    end: Sequence[int] | None = None,
    wait: Sequence[int] = (0, 60),
    load: float = 2.0,
) -> Future:
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
def simulated() -> tuple[Outset, list[Future]]:
    """A few real futures, in which one would submit two kinds of jobs."""
    outset = Outset(
        made_state(), HORIZON, users="rigid", asked=(Asked(4, HOUR), Asked(1, 600, count=3))
    )
    return outset, [outset.simulate(number) for number in range(6)]


@pytest.fixture(scope="module")
def changed(simulated: tuple[Outset, list[Future]]) -> Effects:
    """The effect of twice the processors."""
    first, futures = simulated
    second = replace(first, processors=8)
    others = [second.simulate(number) for number in reversed(range(6))]
    return effects_of(first, second, futures, others, f"8 processors {HOSTILE}")


@pytest.fixture(scope="module")
def answers(simulated: tuple[Outset, list[Future]]) -> Answers:
    """What they say."""
    return answers_of(*simulated)


# ---- jobs -------------------------------------------------------------------------------------


def test_bounds_are_quantiles_over_futures() -> None:
    """Of 20 futures the 5 % bound is the first, the median the tenth, the 95 % the nineteenth."""
    outset = Outset(made_state(((4, HOUR),)), HORIZON, users="none")
    futures = [made_future(n, (-HOUR, 100 * (n + 1))) for n in reversed(range(20))]
    (job,) = answers_of(outset, futures, reasons={}).jobs
    assert [100, 500, 1000, 1500, 1900] == (job.start - NOW).tolist()
    assert (1.0, 0.0) == (job.within, job.at_once)


def test_bounds_beyond_the_horizon_are_open() -> None:
    """A bound that is reached only beyond the horizon is infinite, and null in JSON."""
    outset = Outset(made_state(((4, HOUR),)), HORIZON, users="none")
    starts = [0, 30, 60, 61, 400, 500, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]
    futures = [made_future(n, (-HOUR, start)) for n, start in enumerate(starts)]
    found = answers_of(outset, futures, reasons={})
    (job,) = found.jobs
    assert [0, 60, 400, math.inf, math.inf] == (job.start - NOW).tolist()
    assert (0.6, 0.3) == (job.within, job.at_once)
    plain = found.to_dict()["jobs"][0]
    assert [NOW + 400, None, None] == [plain["start_s"][name] for name in ("p50", "p75", "p95")]
    times = plain["start_local_time"]
    assert ("2024-01-19T10:06:40+00:00", None) == (times["p50"], times["p95"])
    frame = found.frames()["jobs"]
    assert NOW + 400 == frame["start_p50_s"][0]
    assert frame["start_p95_s"].isna().all()
    (row,) = report.job_rows(found)
    assert ["Fri 10:06", "Fri 10:01 to later", "now to later"] == row[3:6]


@pytest.mark.parametrize(
    ("last", "ended", "expected"), [(200, 500, 900), (UNKNOWN, UNKNOWN - NOW, math.inf)]
)
def test_several_asked_jobs_have_the_first_start_and_the_last_end(
    last: int, ended: int, expected: float
) -> None:
    """Three jobs at once are one answer; if one does not end, the end is open."""
    outset = Outset(made_state(()), HORIZON, users="none", asked=(Asked(1, 600, count=3),))
    futures = [made_future(n, (-HOUR, 300, 100, last), (50, 400, 900, ended)) for n in range(2)]
    (job,) = answers_of(outset, futures, reasons={}).jobs
    assert job.end is not None
    assert (100, expected) == (job.start[2] - NOW, job.end[2] - NOW)
    assert "3 x 1 processor for 10.0 min" == job.name


class Doubled:
    """A recalibration that doubles waits."""

    def adjusted(self, raw: Any) -> Any:
        """Return bounds."""
        return 2 * raw


def test_recalibrated_bounds_are_kept_next_to_raw_ones() -> None:
    """Bounds of remaining waits are corrected; those pushed beyond the horizon become open."""
    outset = Outset(made_state(((4, HOUR),)), HORIZON, users="none")
    futures = [made_future(n, (-HOUR, 3000 * (n + 1))) for n in range(10)]
    found = answers_of(outset, futures, reasons={}, recalibration=Doubled())
    (job,) = found.jobs
    raw = [3000, 9000, 15_000, 24_000, 30_000]
    assert raw == (job.raw_start - NOW).tolist()
    assert [6000, 18_000, 30_000, math.inf, math.inf] == (job.start - NOW).tolist()
    assert found.recalibrated
    same = answers_of(outset, futures, reasons={}, recalibration=Recalibration()).jobs[0]
    assert raw == (same.start - NOW).tolist()


def test_reasons_come_from_the_scheduler(simulated: tuple[Outset, list[Future]]) -> None:
    """The first in the queue has a reservation; held jobs have the words of their manager."""
    outset, _ = simulated
    found = reasons_now(outset)
    assert found[1].startswith("first in the queue: requests 4 processors, none is free")
    assert set(range(1, 8)) == set(found)
    state = made_state()
    row = int(state.waiting[1])
    held = replace(state, held={row: "JobHeldUser"})
    said = answers_of(replace(outset, state=held), simulated[1])
    assert ["", "held: JobHeldUser", ""] == [
        job.reason if job.held else "" for job in said.jobs if job.number is not None
    ]


def test_jobs_that_start_at_once_need_no_reason() -> None:
    """On an idle machine a small job starts in the first pass."""
    state = made_state(())
    state.jobs.recorded_end[300] = NOW
    outset = Outset(state, HORIZON, users="none", asked=(Asked(2, HOUR),))
    (job,) = answers_of(outset, [outset.simulate(0)]).jobs
    assert (1.0, "", [NOW] * 5) == (job.at_once, job.reason, job.start.tolist())


WRONG: dict[str, Callable[[Outset, list[Future]], Any]] = {
    "no future: nothing to say": lambda outset, _: answers_of(outset, []),
    "future 0: has 8 jobs and 144 steps, its state 4": (
        lambda outset, futures: answers_of(replace(outset, asked=()), futures)
    ),
    "future 5 is in one only; simulate the same numbers": (
        lambda outset, futures: effects_of(outset, outset, futures, futures[:5])
    ),
    "a number is there twice": (
        lambda outset, futures: effects_of(outset, outset, futures[:2], [*futures[:2], futures[0]])
    ),
    "horizon 43200 without and 46800 with the change": (
        lambda outset, futures: effects_of(
            outset, replace(outset, horizon=13 * HOUR), futures, futures
        )
    ),
    "simulate the same numbers of both": (
        lambda outset, futures: eaten_up(
            effects_of(outset, outset, futures, futures),
            effects_of(outset, outset, futures[:3], futures[:3]),
        )
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_futures_that_do_not_fit(simulated: tuple[Outset, list[Future]], words: str) -> None:
    """No future, one with other jobs, and pairs that are none, are an error that says so."""
    with pytest.raises(QuantityError, match=words):
        WRONG[words](*simulated)


# ---- fans and waits ---------------------------------------------------------------------------


def test_fans_are_bounds_by_step_and_go_on_from_the_record() -> None:
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
    assert len(load.before) == len(found.edges_before) - 1 == 24 * 12
    assert NOW == found.edges_before[-1] == found.edges[0]


def test_waits_count_up_to_the_horizon() -> None:
    """A job that still waits counts up to the horizon in a mean, and without end in a median."""
    until = NOW + 2 * HOUR
    one = made_future(0, (0,), wait=(100, UNKNOWN))
    two = made_future(1, (0,), wait=(50,))
    found = Waits.of([one, two], until, np.array([NOW, NOW + HOUR, until]))
    assert ("1", "2 to 4", "all") == found.classes
    assert [[2, 1], [1, 1]] == [found.jobs[:, -1, -1].tolist(), found.started[:, -1, -1].tolist()]
    assert [(100 + HOUR) / 2, 50] == found.mean[:, -1, -1].tolist()
    assert [100, 50] == found.mean[:, 0, 0].tolist()
    assert [HOUR, math.inf] == [found.mean[0, 1, 1], found.median[0, 1, 1]]
    assert 100 == found.median[0, -1, -1]
    assert np.isnan(found.mean[1, 1, 1])
    assert np.isnan(found.mean[0, 0, 1])


def test_days_are_local() -> None:
    """Days begin at local midnights; the first and the last are parts."""
    edges = days_between(CLOCK, NOW, NOW + 2 * DAY)
    assert [NOW, NOW + 14 * HOUR, NOW + 38 * HOUR, NOW + 2 * DAY] == edges.tolist()


def test_futures_that_stop_early_have_no_fans() -> None:
    """If futures stop when all jobs have started, there are starts, and nothing else."""
    outset = Outset(made_state(), HORIZON, users="none", jobs_only=True)
    found = answers_of(outset, [outset.simulate(number) for number in range(3)])
    assert {} == dict(found.fans)
    assert found.waits is None
    assert all(job.end is None and job.within == 1 for job in found.jobs)
    assert "<h2>Load" not in report.page(found, pngs={})
    assert 3 == len(fan.fans(found).axes)
    json.dumps(found.to_dict(), allow_nan=False)


# ---- effects ----------------------------------------------------------------------------------


def test_a_change_without_effect_changes_nothing(simulated: tuple[Outset, list[Future]]) -> None:
    """The same numbers of a machine that stays as it is differ by exactly 0, in any order."""
    outset, futures = simulated
    again = replace(outset, processors=4)
    found = effects_of(outset, again, futures, [again.simulate(n) for n in (3, 1, 5, 0, 2, 4)])
    assert list(range(6)) == found.pairs.tolist()
    assert len(found.totals) > 8
    assert 5 == len(found.jobs)
    for one in (*found.totals, *found.jobs):
        assert {0.0} == set(one.differences.tolist()), one.measure
        assert (0.0, 0.0, 0.0) == (one.mean.mean, one.mean.low, one.error)
    assert not any(values.any() for values in found.fans.values())
    assert eaten_up(found, found).share is None
    assert len(figure_png(fan.effects(found))) > 1000


def test_more_processors_shorten_waits(changed: Effects) -> None:
    """Twice the processors: shorter waits, a smaller load, and the jobs that wait start earlier."""
    for measure in ("mean_wait_now_s", "load"):
        assert changed[measure].mean.mean < 0
    assert ("job 302", True) == (changed.jobs[0].of, bool((changed.jobs[0].differences <= 0).all()))


def test_effects_are_differences_of_pairs() -> None:
    """Differences are those of the same number, cut at the horizon, with standard errors."""
    outset = Outset(made_state(((4, HOUR),)), HORIZON, users="none")
    first = [made_future(n, (-HOUR, at)) for n, at in enumerate((600, 700, UNKNOWN, UNKNOWN))]
    second = [made_future(n, (-HOUR, at)) for n, at in enumerate((500, 900, 1200, UNKNOWN))]
    (start,) = effects_of(outset, outset, first, second[::-1]).jobs
    expected = [-100, 200, 1200 - HORIZON, 0]
    assert expected == start.differences.tolist()
    assert 0.5 == start.beyond
    assert np.std(expected, ddof=1) / 2 == pytest.approx(start.error)
    assert np.mean(expected) == pytest.approx(start.mean.mean)


def test_ways_to_submit_are_compared_by_place() -> None:
    """One job as two smaller ones: the asked jobs of both are a pair, with both names."""
    state = made_state(())
    one, two = (
        Outset(state, HORIZON, users="none", asked=(asked,))
        for asked in (Asked(4, HOUR), Asked(2, HOUR, count=2))
    )
    first = [made_future(n, (-HOUR, 600)) for n in range(3)]
    second = [made_future(n, (-HOUR, 500, 800)) for n in range(3)]
    (start,) = effects_of(one, two, first, second).jobs
    assert "4 processors for 60.0 min, then 2 x 2 processors for 60.0 min" == start.of
    assert [-100] * 3 == start.differences.tolist()


def with_waits(waits: Sequence[int]) -> list[Future]:
    """Return futures with these waits of the only job that is submitted."""
    return [made_future(n, (-HOUR,), wait=(wait,)) for n, wait in enumerate(waits)]


def test_reaction_eats_up_a_share_of_the_effect() -> None:
    """If waits become 1000 s shorter for rigid users and 400 s for others, 60 % is eaten up."""
    outset = Outset(made_state(()), HORIZON, users="none")
    rng = np.random.default_rng(1)
    base, noise = rng.integers(2000, 9000, 40), rng.integers(-100, 101, 40)
    rigid = effects_of(outset, outset, with_waits(base), with_waits(base - 1000 + noise))
    soft = effects_of(outset, outset, with_waits(base + 50), with_waits(base - 350 + noise))
    found = eaten_up(rigid, soft)
    assert 0.6 == pytest.approx(found.share.mean, abs=0.03)
    assert 0.55 < found.share.low < 0.6 < found.share.high < 0.65
    exact = effects_of(outset, outset, with_waits(base), with_waits(base - 500))
    half = eaten_up(effects_of(outset, outset, with_waits(base), with_waits(base - 1000)), exact)
    assert (0.5, 0.5, 0.5) == (half.share.mean, half.share.low, half.share.high)


# ---- pictures and files -----------------------------------------------------------------------


def test_pictures_show_something(answers: Answers, changed: Effects) -> None:
    """Fans, starts and effects are drawn at their size, not blank, with hostile names as text."""
    for figure in (fan.fans(answers), fan.starts(answers), fan.effects(changed)):
        image = np.asarray(Image.open(BytesIO(figure_png(figure))).convert("L"), float)
        assert 1200 == image.shape[1]
        assert image.std() > 10
    labels = [text.get_text() for text in fan.starts(answers).axes[0].get_yticklabels()]
    assert "submit now: 4 processors for 60.0 min" == labels[0]
    assert r"302, <script>alert…: 4 for 60.0 min" == labels[2]
    many = replace(answers, jobs=answers.jobs * 20)
    assert 40 == len(fan.starts(many).axes[0].get_yticklabels())


def test_a_folder_has_all_of_it(answers: Answers, changed: Effects, tmp_path: Path) -> None:
    """Data, tables, pictures and a page that loads nothing, and runs nothing that a name holds."""
    folder = tmp_path / "forecast"
    eaten = eaten_up(changed, changed, "load")
    report.write(
        answers, folder, effects=[changed], eaten=eaten, configuration={"kind": "forecast"},
        again=[f"hpcrowd forecast {HOSTILE}"],
    )  # fmt: skip
    names = {path.name for path in folder.iterdir()}
    assert {
        "forecast.json", "jobs.csv", "fans.csv", "waits.csv", "effects.csv", "fans.png",
        "starts.png", "effects.png", "report.html", "provenance.json",
    } == names  # fmt: skip
    found = json.loads((folder / "forecast.json").read_text())
    keys = {key.partition(".")[0] for key in found["meaning"]}
    assert keys <= set(found)
    assert {"now_s", "jobs", "fans", "waits", "effects", "eaten_up"} <= set(found)
    assert 144 == len(found["fans"]["load"]["p50"]) == len(found["fans"]["begin_s"])
    text = (folder / "report.html").read_text()
    page = Page(text)
    assert [] == page.all("script")
    assert HOSTILE.split("\x1b")[0] in page.text
    assert "\x1b" not in page.text.replace(f"hpcrowd forecast {HOSTILE}", "")
    assert 3 == len(page.all("img"))
    targets = [link["href"].removeprefix("#") for link in page.all("a")]
    assert targets == [section["id"] for section in page.all("section")]
    assert (
        "forecast" == json.loads((folder / "provenance.json").read_text())["configuration"]["kind"]
    )


def test_a_folder_is_whole_or_absent(
    answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If writing fails on the way, nothing is left."""
    monkeypatch.setattr(report, "pictures", lambda *_: {})
    monkeypatch.setattr(report, "versions", lambda: {"python": object()})
    with pytest.raises(TypeError):
        report.write(answers, tmp_path / "forecast")
    assert [] == list(tmp_path.iterdir())


def test_a_clock_without_a_start_has_no_dates(simulated: tuple[Outset, list[Future]]) -> None:
    """Without a start of the record there are seconds, and no local times."""
    outset, futures = simulated
    state = replace(outset.state, clock=Clock())
    found = answers_of(replace(outset, state=state), futures, reasons={})
    plain = found.to_dict()
    assert plain["now_local_time"] is None
    assert {None} == set(plain["fans"]["begin_local_time"])
    assert {None} == set(plain["jobs"][0]["start_local_time"].values())
    assert "min since the origin" == fan.starts(found).axes[0].get_xlabel()
