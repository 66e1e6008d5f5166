"""Sweeps with a posterior: each seed has a draw of all parameters, and intervals are predictive."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd import HpcrowdError
from hpcrowd.analysis.calibration.priors import Prior
from hpcrowd.analysis.calibration.regression import Weighted
from hpcrowd.analysis.paired import over_seeds
from hpcrowd.calibration import Posterior
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.sweeps.runs import methods_text, planned, sweep
from hpcrowd.scenarios.sweeps.study import DRAWS, read_study, study_toml

from tests.analysis.calibration.calibration_cases import NAMES
from tests.scenarios.sweeps.sweep_cases import write_study

#: A study of a posterior.
STUDY = """posterior = "p.json"

[scenario]
kind = "replay"
trace = "busy.swf"

[axes]
processors = ["1x", "2x"]
seed = 6

[result]
metrics = ["wait_mean_s", "utilization"]
"""


def write_posterior(folder):
    """Write a posterior of two parameters that go together."""
    slope = np.linspace(0, 1.9, 20)
    values = np.column_stack([slope, 3600 - 1800 * slope])
    found = Posterior(
        method="regression",
        priors=(Prior(NAMES[0], 0, 2), Prior(NAMES[1], 0, 7200, whole=True, unit="s")),
        drawn=Weighted(values, np.full(20, 1 / 20), np.zeros(20)),
        settings={"kind": "replay", "users": {"users": [{"behaviour": "linear"}]}},
        folder=".",
        provenance={"trace": "busy.swf"},
    )
    found.write(folder / "p.json")
    return found


def test_each_seed_has_a_draw_of_all_parameters(tmp_path):
    """Runs with the same seed have the same draw, whatever the other settings."""
    posterior = write_posterior(tmp_path)
    study = read_study(write_study(tmp_path, STUDY))
    assert (12, "predictive") == (len(study), study.result.interval)
    for point in study.points():
        line = study.settings(point)["users"]["users"][0]["line"]
        assert posterior.draw(point["seed"]) == dict(zip(NAMES, line.values(), strict=True))
        population = study.scenario_at(point).users
        assert line["slope"] == population.users[0].line.slope
    assert 12 == len({run.key for run in planned(study)})
    result = sweep(study, tmp_path / "out").result
    assert result is not None
    waits = result.frame.query("processors == '1x'")["wait_mean_s"].to_numpy()
    line = result.lines[0]
    assert ("wait_mean_s", None, 6) == (line.metric, line.against, line.estimate.count)
    expected = np.quantile(waits, (0.025, 0.975))
    assert expected == pytest.approx((line.estimate.low, line.estimate.high))
    assert "[" in line.text(1)
    assert "6 seeds: too few for 95 % predictive intervals" in result.notes[0]
    text = methods_text(study)
    assert "Each seed took a draw of users.users.0.line.slope (0 to 2 a priori)" in text
    assert "predictive (quantiles of the runs)" in text


def test_a_predictive_interval_does_not_shrink_with_more_runs():
    """Of a normal distribution it is that of the distribution; that of the mean is narrower."""
    values = np.random.default_rng(0).standard_normal(4000)
    found = over_seeds(list(values), "predictive", 0.9)
    assert (-1.645, 1.645) == pytest.approx((found.low, found.high), abs=0.1)
    assert over_seeds([3.0], "predictive").low is None


def test_a_study_without_seeds_gets_some(tmp_path):
    """Without seeds it gets some, the same if read again; another posterior is another study."""
    write_posterior(tmp_path)
    study = read_study(write_study(tmp_path, STUDY.replace("seed = 6\n", "")))
    assert 2 * DRAWS == len(study)
    again = read_study(write_study(tmp_path, study_toml(study)))
    assert [run.key for run in planned(study)][:5] == [run.key for run in planned(again)][:5]
    posterior = write_posterior(tmp_path)
    path = write_study(tmp_path, STUDY.replace('"1x", "2x"', '"1x"').replace("6", "2"))
    sweep(read_study(path), tmp_path / "out")
    replace(posterior, provenance={}).write(tmp_path / "p.json")
    with pytest.raises(HpcrowdError, match=r"posterior p\.json has changed since the sweep began"):
        sweep(read_study(path), tmp_path / "out", resume=True)


@pytest.mark.parametrize(
    ("change", "by", "rule"),
    [
        ('trace = "busy.swf"', 'trace = "busy.swf"\nusers = "fluid"', "users 'fluid': come from"),
        ('kind = "replay"', 'kind = "resample"', "the posterior is of 'replay' scenarios"),
        ("seed = 6", "users.users.0.line.slope = [0, 1]", "line 1: axes.*is drawn from the post"),
        ("p.json", "q.json", "q.json: cannot be read"),
        ("p.json", "busy.swf", "busy.swf: damaged, not JSON"),
    ],
)
def test_what_contradicts_a_posterior_is_refused(tmp_path, change, by, rule):
    """In one line, before anything runs."""
    write_posterior(tmp_path)
    with pytest.raises(QuantityError, match=rule):
        read_study(write_study(tmp_path, STUDY.replace(change, by)))
