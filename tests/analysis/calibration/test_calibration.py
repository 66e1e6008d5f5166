"""Calibrations: priors, posteriors from a table of simulations, their file, and their check."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.analysis.calibration import posterior as coverage
from hpcrowd.analysis.calibration import regression
from hpcrowd.analysis.calibration.posterior import Posterior, predicted, read_posterior
from hpcrowd.analysis.calibration.priors import Prior
from hpcrowd.analysis.calibration.regression import posterior_of
from hpcrowd.analysis.calibration.statistics import NAMES, Measure, on_scales
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import ModelFileError, QuantityError
from hpcrowd.environment.jobs import JobTable, State

from tests.analysis.calibration.calibration_cases import made_table


@pytest.mark.parametrize(("text", "low", "high", "log", "unit", "middle"), [
    ("0..2", 0, 2, False, "", 1), ("-1 .. 0.5", -1, 0.5, False, "", -0.25),
    ("30m..8h", 1800, 28800, False, "s", 15300), ("log:1..100", 1, 100, True, "", 10),
    ("log:1h..4h", HOUR, 4 * HOUR, True, "s", 2 * HOUR),
])  # fmt: skip
def test_a_prior_is_read_from_its_bounds(text, low, high, log, unit, middle):
    """Numbers or durations; half of the prior lies below its middle, on its scale."""
    prior = Prior.parse("x", text)
    assert (low, high, log, unit) == (prior.low, prior.high, prior.log, prior.unit)
    assert middle == pytest.approx(prior.at(0.5))
    shares = np.array([0.1, 0.5, 0.9])
    assert shares == pytest.approx(prior.shares(prior.values(shares)))
    assert prior == Prior.from_json(prior.to_json())
    assert 2 == Prior("x", 1, 3, whole=True).at(0.6)  # a setting of whole numbers gets them


@pytest.mark.parametrize(("text", "rule"), [
    ("2", "not two bounds"), ("1..2..3", "not two bounds"), (5, "not two bounds"),
    ("2..1", "must be less"), ("a..b", "'a' is not a number"), ("1h..b", "duration 'b'"),
    ("log:0..1", "must be more than 0"), ("0..inf", "is not from"), ("0..1e99", "is not from"),
])  # fmt: skip
def test_a_wrong_prior_is_refused(text, rule):
    """In one line, with the parameter, its value and the rule."""
    with pytest.raises(QuantityError, match=rf"free users\.0\.x {text!r}: .*{rule}"):
        Prior.parse("users.0.x", text)


def test_statistics_of_a_small_log():
    """Known by hand; what happens after the days is not seen."""
    jobs, submit, start, end = JobTable(), [9, 12], [9, 14], [11, 30]
    times = {"submit": submit, "start": start, "end": end, "recorded_submit": submit,
             "recorded_start": start, "recorded_end": end, "run_time": [2, 16]}  # fmt: skip
    seconds = {name: np.array(hours) * HOUR for name, hours in times.items()}
    jobs.append(2, user=1, processors=2, state=State.COMPLETED, **seconds)
    measure = Measure(Clock(), DAY - 1, 1.0, 3 * HOUR)
    found = dict(zip(NAMES, measure.of_record(jobs), strict=True))
    expected = {
        "jobs": 2, "users": 1, "sessions": 2, "work_h_per_day": 36, "think_p50_s": HOUR,
        "think_quick_p50_s": HOUR, "think_slow_p50_s": DAY, "breaks": 0,
        "inter_arrival_p50_s": 3 * HOUR, "night": 0, "morning": 0.5, "afternoon": 0.5,
        "weekend": 0, "wait_mean_s": HOUR, "left": 0,
    }  # fmt: skip
    assert expected == {name: found[name] for name in expected}
    early = dict(zip(NAMES, measure(jobs, Clock(), 13 * HOUR), strict=True))
    assert 0.5 * HOUR == early["wait_mean_s"]  # the second has waited for an hour so far
    assert 0 == dict(zip(NAMES, measure(jobs, Clock(), HOUR), strict=True))["jobs"]
    assert np.isfinite(on_scales(np.zeros(len(NAMES)))).all()


def test_weighted_quantiles_are_those_of_repeated_values():
    """A weight of three is like three equal values, between neighbours apart."""
    values, weights = np.arange(101.0), np.ones(101)
    found = regression.weighted_quantiles(values, weights, (0.25, 0.5, 0.75))
    assert [25, 50, 75] == pytest.approx(found.tolist(), abs=0.5)
    weights[50] = 1e6
    assert 50 == pytest.approx(regression.weighted_quantiles(values, weights, (0.5,))[0])


def test_the_posterior_finds_what_statistics_tell():
    """Two parameters are found; one on which nothing depends keeps its prior."""
    table = made_table(400)
    drawn = posterior_of(table.without(0), table.statistics[0])
    found = Posterior("regression", table.priors, drawn)
    assert min(found.shrinkage(0), found.shrinkage(1)) > 0.5
    assert abs(found.shrinkage(2)) < 0.25
    for place in range(2):
        low, high = found.quantiles(place, (0.005, 0.995))
        assert low <= table.values[0, place] <= high
    for place, prior in enumerate(table.priors):
        assert prior.low <= drawn.values[:, place].min()
        assert prior.high >= drawn.values[:, place].max()


def test_a_statistic_that_no_draw_has_is_left_out():
    """It moves nothing; a log of which no draw has all statistics together is noticed."""
    table = made_table(100)
    record = table.statistics[0].copy()
    far = record.copy()
    far[3] = 1e9
    assert [3] == table.outside(far)
    without = replace(table, statistics=table.statistics.copy())
    without.statistics[:, 3] = 1.0
    assert (posterior_of(without, far).values == posterior_of(table, far).values).all()
    with pytest.raises(QuantityError, match="no statistic of the log is among those"):
        posterior_of(table, np.full(len(NAMES), 1e9))
    with pytest.raises(QuantityError, match=f"draws 10: at least {regression.LEAST_DRAWS}"):
        posterior_of(made_table(10), record)
    table = made_table(200)
    assert regression.likeness(table.without(0), table.statistics[0]) > 0.05
    mixed = table.statistics.min(axis=0)
    mixed[::2] = table.statistics.max(axis=0)[::2]
    assert ([], 0) == (table.outside(mixed), regression.likeness(table, mixed))


def test_draws_are_joint_and_go_with_their_number():
    """The same number gives the same draw, which is a line of the posterior."""
    table = made_table(100)
    priors = (*table.priors[:2], replace(table.priors[2], whole=True))
    found = Posterior("regression", priors, posterior_of(table, table.statistics[0]))
    lines = {tuple(line) for line in found.drawn.values[:, :2].tolist()}
    drawn = [found.draw(number) for number in range(30)]
    assert drawn == [found.draw(number) for number in range(30)]
    assert len({one["a"] for one in drawn}) > 5
    assert all((one["a"], one["b"]) in lines for one in drawn)
    assert {one["nothing"] for one in drawn} <= {0, 1}


def test_intervals_cover_known_truths(monkeypatch):
    """Coverage is that of the level, and ranks are even; too narrow intervals are found."""
    found = coverage.check(made_table(200), 100, seed=1)
    for place in range(3):
        for level in (0.5, 0.9):
            error = (level * (1 - level) / 100) ** 0.5
            assert abs(found.share(place, level) - level) < 4 * error
        assert 100 == sum(found.histogram(place))
        assert found.uniform(place) > 1e-4
    assert (0.4, 0.6) == pytest.approx(found.expected(0.5))
    for truths in (0, 101):
        with pytest.raises(QuantityError, match=f"check {truths}: from 1 to"):
            coverage.check(made_table(100), truths)

    def squeezed(table, record):
        drawn = posterior_of(table, record)
        middle = np.median(drawn.values, axis=0)
        return replace(drawn, values=middle + 0.2 * (drawn.values - middle))

    monkeypatch.setattr(coverage, "posterior_of", squeezed)
    found = coverage.check(made_table(100), 60)
    assert found.share(0, 0.9) < 0.5
    assert found.uniform(0) < 1e-4


@pytest.fixture
def path(tmp_path):
    """Return the file of a posterior from a made-up table."""
    table = made_table(60)
    record = table.statistics[0]
    posterior = Posterior(
        "regression", table.priors, posterior_of(table, record),
        tuple(predicted(record, table.statistics)), {"kind": "replay"}, ".", {"trace": "log.swf"},
    )  # fmt: skip
    posterior.write(tmp_path / "p.json")
    return tmp_path / "p.json"


def test_a_posterior_survives_its_file(path):
    """What is read is what was written, byte for byte."""
    read_posterior(path).write(path.with_name("again.json"))
    assert path.read_bytes() == path.with_name("again.json").read_bytes()


@pytest.mark.parametrize(("changes", "rule"), [
    ({"version": 2}, "version 2, but this hpcrowd reads only up to 1"),
    ({"format": "hpcrowd model"}, "not a posterior; make one with hpcrowd calibrate"),
    ({"draws": [[1, 2, 3]]}, "damaged: draws: not lines of 3 parameters"),
    ({"draws": [[1, 2, 0.5, 0.5, 0]]}, "add up to 1"),
    ({"draws": [[9, 2, 0.5, 1, 0]]}, "a outside its prior"),
    ({"parameters": [{"name": "a", "low": 2, "high": 1}]}, "damaged: bounds 2 and 1 of a"),
    ({"parameters": [{"name": 3}]}, "damaged"),
    ({"settings": []}, "damaged: settings"),
    ({"statistics": [{}]}, "damaged"),
])  # fmt: skip
def test_another_file_is_refused(path, changes, rule):
    """In one line, with its name."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ModelFileError, match=rf"p\.json: .*{rule}"):
        read_posterior(path)
