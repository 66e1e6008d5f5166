"""Madon et al. 2024 is reproduced: bounds on KTH, the page, small logs, and what-ifs around it."""

from dataclasses import replace

import pytest
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.jobs import State
from hpcrowd.environment.schedulers.base import Look, RunningJob, WaitingJob
from hpcrowd.environment.traces.formats.swf import parse_swf
from hpcrowd.scenarios.studies.madon2024 import measures
from hpcrowd.scenarios.studies.madon2024.study import (
    JOBS,
    Madon2024,
    reproduce_madon2024,
    simulate,
    texts,
)
from hpcrowd.scenarios.studies.render import refresh_page

from tests.scenarios.studies.study_cases import KTH_FILE, shown


@pytest.fixture(scope="module")
def study(traces):
    """Return the study on the real traces."""
    if not list(traces.glob(f"{KTH_FILE}*")):
        pytest.skip(f"no {KTH_FILE}[.gz] in {traces}; set HPCROWD_TRACES to a folder that has it")
    return reproduce_madon2024(traces)


@pytest.mark.slow
@pytest.mark.traces
def test_the_study_on_kth(study, page):
    """Every bound holds, and the page has each figure."""
    bounded = [one for one in study.cells if one.log == "KTH" and one.holds is not None]
    assert (90, []) == (len(bounded), [cell for cell in bounded if not cell.holds])
    assert page == refresh_page(page, Madon2024({"KTH": study.logs["KTH"]}).page_parts())


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("kind", measures.CHANGES)
def test_page_shows_the_measured_spread(kind, kth, page):
    """The spread in the documentation is what the changes of the log give."""
    part = page.partition(f"<!-- generated: spread of {kind} -->")[2].partition("<!-- end")[0]
    changed = [measures.CHANGES[kind](kth, seed) for seed in range(measures.SEEDS)]
    for experiment in ("easy", "infra/2"):
        row = measures.spread_row(changed, experiment, "a60")
        assert f"| {' | '.join(row)} |" in part.splitlines()


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("number", range(len(measures.VARIANTS) - 1))
def test_page_shows_other_readings(number, kth, page):
    """How many bounds other readings keep is as the documentation says."""
    row = measures.variant_row(kth, measures.VARIANTS[number])
    assert f"| {' | '.join(row)} |" in page.splitlines()


def test_two_logs_stand_side_by_side(ran_of):
    """SDSC has as many cells as KTH, but no bounds; every figure is in the data and on the page."""
    kth = ran_of("madon2024").study.logs["KTH"]
    study = Madon2024({"KTH": kth, "SDSC": replace(kth, log="SDSC")})
    assert {None} == {cell.holds for cell in study.cells if cell.log == "SDSC"}
    assert (28_475, 67_667) == (JOBS["KTH"], JOBS["SDSC"])
    data = study.to_json()
    lengths = [len(data[name]) for name in ("required", "cells", "runs", "ranges")]
    assert [90, 2 * 111, 36, 6] == lengths
    assert [4, 6, 8] == [window["months"] for window in data["runs"][0]["windows"]]
    assert {"KTH", "SDSC"} == {reading["log"] for reading in data["figure5c_readings"]}
    lines = [line for line in study.page_parts()["tables"].splitlines() if line.startswith("|")]
    assert 2 * (19 + 12 + 6) + 6 + 7 * 2 == len(lines)
    assert "of 90 bounds hold; 222 figures compared" in shown(study)


def test_seconds_are_added_to_jobs_that_ran(make_trace):
    """Run times grow by 0 or 1 s; jobs without a run time stay as they are."""
    trace = make_trace(*({"submit": 0, "run": run} for run in (5, 0, -1)))
    seen = {tuple(measures.add_seconds(trace, seed)["run"].tolist()) for seed in range(30)}
    assert {(5, 0, -1), (6, 0, -1)} == seen


def test_other_rules():
    """The usual user thinks after the last to end; EASY may not use spare processors."""
    trace = parse_swf(
        "; MaxProcs: 2\n"
        "1 0 0 10 1 -1 -1 1 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"
        "2 5 0 85 1 -1 -1 1 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"
        "3 100 0 10 1 -1 -1 1 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    )
    fast = {"speed": "85x", "requested": "given"}
    usual = simulate(trace, "easy", "a0", **fast)
    other = simulate(trace, "easy", "a0", **fast, users=measures.LastPredecessor)
    assert [0, 5, 90] == usual.jobs.submit.tolist()
    assert [0, 5, 16] == other.jobs.submit.tolist()
    queue = [WaitingJob(1, 6, 50, 0), WaitingJob(2, 1, 500, 1), WaitingJob(3, 2, 100, 2)]
    look = Look(0, queue, [RunningJob(0, 5, 100)], 3, 8)
    started = measures.ShadowOnly().select(look)
    assert [3] == [job.row for job in started]


def make_cell(ours, printed, unit="days"):
    """Return a cell with its deviations."""
    published = float(printed)
    deviation = None if ours is None else ours - published
    relative = deviation / abs(published) if deviation is not None and published else None
    return measures.Cell(
        "table1", "KTH", "easy", "a0", "makespan", unit, ours, published, printed, deviation,
        relative, None, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (make_cell(361.358, "366.67"), ("361.36", "366.67", "-1.4 %")),
        (make_cell(0.0699, "0.07"), ("0.07", "0.07", "+0.000")),
        (make_cell(0.0026, "0.00"), ("0.00", "0.00", "+0.003")),
        (make_cell(-3.651, "-3.36"), ("-3.65", "-3.36", "-8.7 %")),
        (make_cell(1.0984, "1.10", ""), ("1.10", "1.10", "-0.002")),
        (make_cell(-0.2, "-5", "s"), ("0", "-5", "+5")),
        (make_cell(None, "1.34"), ("-", "1.34", "-")),
    ],
)
def test_cells_as_shown(cell, shown):
    """Ours has the digits of the published figure; small and unitless ones deviate absolutely."""
    assert shown == texts(cell)


def test_rounding_counts_for_us(make_jobs):
    """Half a unit of the last digit, no further; windows, as in Fig. 9, from day 14 on."""

    def holds(wait):
        jobs = make_jobs((0, 10, 1), (DAY, 10, 1))
        jobs.submit[:], jobs.start[:] = jobs.recorded_submit, jobs.recorded_submit + wait
        jobs.end[:], jobs.state[:] = jobs.start + 10, State.COMPLETED
        run = Run(jobs, 1, "made", {})
        runs = {(name, replay): run for name in measures.EXPERIMENTS for replay in measures.REPLAYS}
        cells = measures.LogRuns("KTH", runs).cells()
        key = ("perf*2", "rigid", "mean wait")
        return next(c for c in cells if (c.experiment, c.replay, c.quantity) == key).holds

    assert (False, True, True, False) == tuple(holds(wait) for wait in (431, 433, 1295, 1297))
    jobs = make_jobs((0, 20 * DAY, 1), (60 * DAY, 12 * DAY, 2), (130 * DAY, 10 * DAY, 3))
    jobs.submit[:], jobs.start[:] = jobs.recorded_submit, jobs.recorded_submit
    jobs.end[:], jobs.state[:] = jobs.recorded_end, State.COMPLETED
    window = measures.window_of(Run(jobs, 4, "made", {}), 4)
    assert 2 / 120 == window.throughput_jobs_per_day
    assert pytest.approx((6 * 1 + 12 * 2 + 4 * 3) / (120 * 4)) == window.utilization
