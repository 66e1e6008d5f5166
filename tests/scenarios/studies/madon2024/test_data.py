"""What Madon et al. 2024 printed, and the cells that hold ours next to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import JobTable, State
from hpcrowd.scenarios.studies.madon2024.measures import (
    BOUNDS,
    EXPERIMENTS,
    QUANTITIES,
    REPLAYS,
    TITLES,
    Cell,
    LogRuns,
    window_of,
)
from hpcrowd.scenarios.studies.madon2024.study import Madon2024, texts
from hpcrowd.scenarios.studies.published import Printed, published_rows

#: Jobs in the two logs (section 5.1).
JOBS = {"kth": 28_475, "sdsc": 67_667}


# ---- what is published -----------------------------------------------------------------------


def test_published_tables_have_every_row() -> None:
    """Table 1 has the log and 18 simulations, Table 2 those with feedback, Fig. 5c those of a60."""
    rows = {
        name: [(row["experiment"], row["replay"]) for row in published_rows(name)]
        for name in TITLES
    }
    every = [(experiment, replay) for experiment in EXPERIMENTS for replay in REPLAYS]
    assert [("recorded", "recorded"), *every] == rows["madon2024_table1"]
    assert [row for row in every if row[1] != "rigid"] == rows["madon2024_table2"]
    assert {(name, "a60") for name in EXPERIMENTS} == set(rows["madon2024_figure5c"])


@pytest.mark.parametrize("log", ["kth", "sdsc"])
def test_published_lateness_is_consistent(log: str) -> None:
    """Additional lateness is twice the mean over n - 1 (Eq. 6), within what was rounded away."""
    for row in published_rows("madon2024_table2"):
        mean = Printed(row[f"{log}_mean_lateness_days"])
        added = Printed(row[f"{log}_additional_lateness_s"])
        factor = 2 * DAY / (JOBS[log] - 1)
        rounding = added.half_unit + factor * mean.half_unit
        assert mean.value * factor == pytest.approx(added.value, abs=rounding), row


@pytest.mark.parametrize("log", ["kth", "sdsc"])
def test_published_percentiles_ascend(log: str) -> None:
    """The 10th, 50th and 90th percentile of Fig. 5c ascend."""
    for row in published_rows("madon2024_figure5c"):
        values = [float(row[f"{log}_p{p}_s"]) for p in (10, 50, 90)]
        assert sorted(values) == values, row


def test_published_figures_name_their_source() -> None:
    """Every table names paper and place; one that does not exist is reported with those that do."""
    for name, source in Madon2024.published.items():
        assert "doi:10.1016/j.future.2024.01.024" in source
        assert published_rows(name)
    with pytest.raises(QuantityError, match="'madon1999': not known; choose madon2024_figure5c"):
        published_rows("madon1999")


def test_bounds_cover_every_experiment() -> None:
    """There are bounds for the log and each experiment, and only for what is published."""
    assert {"recorded", *EXPERIMENTS} == set(BOUNDS)
    known = {quantity.metric for quantity in QUANTITIES}
    assert all(set(bounds) <= known for bounds in BOUNDS.values())


# ---- cells -----------------------------------------------------------------------------------


def make_cell(ours: float | None, printed: str, unit: str = "days") -> Cell:
    """Return a cell with its deviations."""
    published = float(printed)
    deviation = None if ours is None else ours - published
    relative = deviation / abs(published) if deviation is not None and published else None
    return Cell(
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
def test_cells_as_shown(cell: Cell, shown: tuple[str, str, str]) -> None:
    """Ours has the digits of the published figure; small and unitless ones deviate absolutely."""
    assert shown == texts(cell)


def test_rounding_counts_for_us(make_jobs: Callable[..., JobTable]) -> None:
    """A wait is equal as printed up to half a unit of the last digit, and no further."""

    def holds(wait: int) -> bool | None:
        jobs = make_jobs((0, 10, 1), (DAY, 10, 1))
        jobs.submit[:], jobs.start[:] = jobs.recorded_submit, jobs.recorded_submit + wait
        jobs.end[:], jobs.state[:] = jobs.start + 10, State.COMPLETED
        run = Run(jobs, 1, "made", {})
        runs = {(name, replay): run for name in EXPERIMENTS for replay in REPLAYS}
        cells = LogRuns("KTH", runs).cells()
        key = ("perf*2", "rigid", "mean wait")
        return next(c for c in cells if (c.experiment, c.replay, c.quantity) == key).holds

    assert (False, True, True, False) == tuple(holds(wait) for wait in (431, 433, 1295, 1297))


def test_window_counts_what_lies_in_it(make_jobs: Callable[..., JobTable]) -> None:
    """Throughput and utilization of Fig. 9 cover the window from day 14 to day 134."""
    jobs = make_jobs((0, 20 * DAY, 1), (60 * DAY, 12 * DAY, 2), (130 * DAY, 10 * DAY, 3))
    jobs.submit[:], jobs.start[:] = jobs.recorded_submit, jobs.recorded_submit
    jobs.end[:], jobs.state[:] = jobs.recorded_end, State.COMPLETED
    window = window_of(Run(jobs, 4, "made", {}), 4)
    assert 2 / 120 == window.throughput_jobs_per_day
    assert pytest.approx((6 * 1 + 12 * 2 + 4 * 3) / (120 * 4)) == window.utilization
