"""What a sweep says: trimmed metrics by hand, means, intervals, differences paired by seed."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hpcrowd.analysis.comparison import sweeps
from hpcrowd.analysis.comparison.sweeps import Reporting, SweepResult
from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import State
from scipy import stats

#: Waits by scheduler and speed, one for each seed.
WAITS = {
    ("easy", "1x"): [10.0, 20.0, 60.0], ("easy", "2x"): [1.0, 2.0, 6.0],
    ("fcfs", "1x"): [11.0, 22.0, 66.0], ("fcfs", "2x"): [2.0, 3.0, 7.0],
}  # fmt: skip


def made(confidence=0.95, lost=(), **how):
    """Return the result of a sweep with these waits; ``lost`` is the point of a failed run."""
    axes = {"scheduler": ["easy", "fcfs"], "speed": ["1x", "2x"], "seed": [0, 1, 2]}
    rows = []
    for setting in product(*axes.values()):
        row = {"wait_mean_s": WAITS[setting[:2]][setting[2]], "jobs_in": 7, "home.x": 1.5}
        told = ("failed", {}, "why") if setting == lost else ("done", row, "")
        rows.append((dict(zip(axes, setting, strict=True)), "k", *told))
    return SweepResult.of("made", axes, rows, Reporting(("wait_mean_s",), confidence, **how))


def along(axis, waits, **how):
    """Return the result of a sweep over one axis, by value the waits of each seed."""
    rows = [
        ({axis: value, "seed": seed}, "k", "done", {"wait_mean_s": wait}, "")
        for value, each in waits.items()
        for seed, wait in enumerate(each)
    ]
    axes = {axis: list(waits), "seed": list(range(len(next(iter(waits.values())))))}
    return SweepResult.of("x", axes, rows, Reporting(("wait_mean_s",), **how))


def test_trimmed_metrics_by_hand(make_jobs):
    """Of a warm-up of 50 s and a cool-down of 100 s only the second and the third job are left."""
    # Four jobs on 4 processors that wait 0, 10, 20 and 30 s.
    jobs = make_jobs((0, 150, 4), (100, 90, 2), (200, 200, 1), (300, 50, 2))
    jobs.submit[:], jobs.state[:] = jobs.recorded_submit, State.COMPLETED
    jobs.start[:], jobs.end[:] = [0, 110, 220, 330], [150, 200, 420, 380]
    run = Run(jobs, 4, "made", {"seed": 0})
    row = sweeps.row_of(run)
    assert run.metrics == sweeps.trimmed_metrics(run)
    assert run.metrics["per_user"]["wait_mean_s"]["p50"] == row["wait_mean_s_users_p50"]
    assert (50, 200) == sweeps.window_of(jobs, 50, 100)
    found = sweeps.trimmed_metrics(run, 50, 100)
    expected = {
        "jobs_in": 2, "jobs_completed": 2, "wait_mean_s": 15, "wait_max_s": 20,
        "response_mean_s": (100 + 220) / 2, "makespan_s": 420 - 100,
        # In the 150 s from 50 to 200: job 1 on 4 for 100 s, job 2 on 2 for 90 s, job 3 not yet.
        "utilization": (4 * 100 + 2 * 90) / (4 * 150),
        "throughput_jobs_per_day": 2 * 86400 / 150,  # jobs 1 and 2 ended in it
    }  # fmt: skip
    assert expected == {name: found[name] for name in expected}
    with pytest.raises(QuantityError, match=r"leave nothing of the 5\.0 min of submissions"):
        sweeps.window_of(jobs, 200, 101)
    jobs.submit[:] = -1
    with pytest.raises(QuantityError, match="nothing was submitted"):
        sweeps.window_of(jobs, 1, 0)


@pytest.mark.parametrize("interval", ["student", "bootstrap"])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_are_those_of_scipy(confidence, interval):
    """Mean and interval over the seeds; ends of a bootstrap differ only by other draws."""
    result = made(confidence, interval=interval)
    for line in result.lines[:2]:
        waits = WAITS[line.point["scheduler"], line.point["speed"]]
        expected = stats.t.interval(confidence, 2, np.mean(waits), stats.sem(waits))
        if interval == "bootstrap":
            expected = stats.bootstrap(
                (waits,), np.mean, confidence_level=confidence, method="percentile"
            ).confidence_interval
        found = line.estimate
        assert (np.mean(waits), 3, None) == (found.mean, found.count, line.against)
        assert tuple(expected) == pytest.approx((found.low, found.high), rel=0.05)
        assert (interval == "student") == line.symmetric
    assert (interval == "bootstrap") == ("too narrow" in " ".join(result.notes))


def test_differences_are_paired_by_seed():
    """The effect of an axis is the mean of the differences of the seeds that both have."""
    lines = {(line.against, *line.point.values()): line.estimate for line in made().lines}
    assert 4 + 2 + 2 == len(lines)
    found = lines[("scheduler", "easy"), "fcfs", "1x"]
    paired = stats.t.interval(0.95, 2, 3.0, stats.sem([1, 2, 6]))
    assert (3.0, 3) == (found.mean, found.count)
    assert paired == pytest.approx((found.low, found.high))
    same = lines[("scheduler", "easy"), "fcfs", "2x"]
    assert (1.0, 1.0, 1.0) == (same.mean, same.low, same.high)  # always one more: no luck in it
    assert -27.0 == lines[("speed", "1x"), "easy", "2x"].mean
    result = made(lost=("easy", "1x", 2))
    lines = {(line.against, *line.point.values()): line.estimate for line in result.lines}
    assert (15.0, 2) == (lines[None, "easy", "1x"].mean, lines[None, "easy", "1x"].count)
    assert (12, 1) == (result.to_json()["runs"], result.to_json()["failed"])
    # The frame has a row for each run, the summary one for each mean, with documented columns.
    assert (12, "Int64") == (len(result.frame), str(result.frame["jobs_in"].dtype))
    assert ["scheduler", "speed", *sweeps.MEANING] == list(result.summary.columns)
    assert {"value", "minus scheduler = easy", "minus speed = 1x"} == set(result.summary["of"])


@pytest.mark.parametrize("interval", ["student", "bootstrap"])
def test_ratios_are_paired_by_seed(interval):
    """The geometric mean of the ratios of each seed; pairs with a 0 have none."""
    result = made(effects="ratio", interval=interval)
    lines = {(line.of, *line.point.values()): line for line in result.lines}
    same = lines["over scheduler = easy", "fcfs", "1x"]
    found, other = same.estimate, lines["over scheduler = easy", "fcfs", "2x"].estimate
    assert [1.1] * 3 == pytest.approx([found.low, found.mean, found.high])
    assert "1.10 [1.10, 1.10]" == same.text(60.0)
    assert pytest.approx((2 * 1.5 * 7 / 6) ** (1 / 3)) == other.mean
    assert other.low < other.mean < other.high
    waits = {"x": [0.0, 4.0], "y": [3.0, 8.0], "z": [0.0, 0.0]}
    (found,) = [line for line in along("a", waits, effects="ratio").lines if line.ratio]
    assert ("y", 2.0, 1) == (found.point["a"], found.estimate.mean, found.estimate.count)


@pytest.mark.parametrize(("values", "expected"), [
    ([1, 0.5], [1, 0.5]),
    (["none", 0.5], ["none", "0.5"]),
    ([True, False], [True, False]),
    ([{"name": "big", "a": [1]}, {"a": 2}, [1, 2]], ["big", '{"a": 2}', "[1, 2]"]),
])  # fmt: skip
def test_cells_of_an_axis_are_of_one_kind(values, expected, tmp_path):
    """Numbers stay numbers, what is mixed becomes text, tables are shown by name; files hold it."""
    rows = [({"x": value}, "k", "done", {"wait_mean_s": 1.0}, "") for value in values]
    result = SweepResult.of("x", {"x": values}, rows, Reporting(("wait_mean_s",)))
    assert expected == result.frame["x"].tolist() == result.axes["x"]
    result.write(tmp_path)
    assert expected == pd.read_parquet(tmp_path / "frame.parquet")["x"].tolist()
    assert len(values) == len({line.point["x"] for line in result.lines})


def test_notes_show_what_intervals_cannot():
    """One seed has no interval; seeds that change nothing are reported."""
    assert [] == made().notes
    same = along("x", {1: [0.1, 0.1, 0.1], 2: [5.0, 5.0, 5.0]})
    assert ["the seed has no effect: nothing in these runs is random"] == same.notes
    single = along("x", {1: [5.0]})
    assert "one seed: no intervals" in single.notes[0]
    assert (None, 5.0) == (single.lines[0].estimate.low, single.lines[0].estimate.mean)


def test_picture_shows_every_mean_with_its_interval(tmp_path):
    """A line for each scheduler, a point for each speed, bars as wide as the interval."""
    axes = sweeps.sweep_figure(made(), "wait_mean_s").axes[0]
    assert ["easy", "fcfs"] == [text.get_text() for text in axes.get_xticklabels()]
    assert "95 % interval of the mean over 3 seeds" in axes.get_xlabel()
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert [[30.0, 33.0], [3.0, 4.0]] == [list(line.get_ydata()) for line in points]
    bar = axes.collections[0].get_segments()[0][:, 1]
    half = stats.t.ppf(0.975, 2) * stats.sem([10, 20, 60])
    assert [30 - half, 30 + half] == pytest.approx([bar.min(), bar.max()])
    result = made(across="speed", pictures="pdf", interval="bootstrap")
    result.write(tmp_path)
    assert (tmp_path / "wait_mean_s.pdf").read_bytes().startswith(b"%PDF")
    axes = sweeps.sweep_figure(along("x", {1: [5.0]}), "slowdown_mean").axes[0]
    assert "no run has this metric" in [text.get_text() for text in axes.texts]
