"""Feitelson's models: known probabilities, repetitions that follow, parameters found again."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.features.sizes import is_power_of_two
from hpcrowd.analysis.models import generate
from hpcrowd.analysis.models.jobs.feitelson import (
    Feitelson1996,
    find_runs,
    fit_sizes,
    length_shares,
    size_shares,
)
from hpcrowd.analysis.models.jobs.lublin import Exponentials, fit_linear_mixture
from hpcrowd.analysis.models.model import fit, published
from hpcrowd.analysis.models.parts.users import draw_from
from hpcrowd.environment import Streams
from hpcrowd.environment.errors import QuantityError

from tests.analysis.features.feature_cases import bursty_workload, near

versions = pytest.mark.parametrize("name", ["feitelson96", "feitelson97"])


def test_shares_of_sizes_and_run_lengths() -> None:
    """Of n^-1.5 over 1 to 128, 0.4105 is serial; r^-2.5 has a known beginning and mean."""
    found = size_shares(128, 1.5, 9, 1.0, 1.0)
    assert 0.4105 == pytest.approx(found[0], abs=5e-5)
    assert 1 == pytest.approx(found.sum())
    assert 2**-1.5 == pytest.approx(found[1] / found[0])
    lengths = length_shares(2.5, 100_000)
    assert [0.745, 0.132, 0.048, 0.023, 0.013] == pytest.approx(lengths[:5].tolist(), abs=5e-4)
    mean = length_shares(2.5, 10**6) @ np.arange(1, 10**6 + 1)
    assert 1.9473 == pytest.approx(mean, abs=2e-3)
    assert [1.0] == length_shares(2.5, 1).tolist()
    odds = size_shares(100, 1.5, 4, 2, 3) / size_shares(100, 1.5, 4, 1, 1)
    expected = np.where(np.arange(1, 101) <= 4, 2.0, 1.0)
    expected[[0, 1, 3, 7, 15, 31, 63]] *= 3
    assert (expected * odds[4]).tolist() == pytest.approx(odds.tolist())


@pytest.mark.parametrize("repeats", ["same", "new"])
def test_a_repetition_follows_at_once(repeats: str) -> None:
    """It comes when the one before ends without waiting, and is the same but for a new run time."""
    model = published("feitelson97", 32)
    kind = model.jobs.model_copy(update={"repeats": repeats})
    jobs = kind.draw(5000, model.arrivals, 32, Streams(1))
    after = np.flatnonzero(jobs.follows >= 0)
    before = jobs.follows[after]
    assert len(after) > 1000
    assert (jobs.submit[before] + jobs.run_time[before]).tolist() == jobs.submit[after].tolist()
    for column in (jobs.user, jobs.group, jobs.executable, jobs.processors):
        assert column[before].tolist() == column[after].tolist()
    # All of a series ask for the same time, where they take the same time.
    assert (repeats == "same") == (jobs.bag[before].tolist() == jobs.bag[after].tolist())
    assert (repeats == "same") == (jobs.run_time[before].tolist() == jobs.run_time[after].tolist())
    assert len(np.unique(before)) == len(before)
    assert (before < after).all()
    # Fields 17 and 18 of the trace hold the preceding job and a think time of 0, else -1.
    found = generate(model, jobs=500)
    trace, follows = found.trace(), found.drawn.follows
    assert np.where(follows < 0, -1, follows + 1).tolist() == trace["preceding"].tolist()
    assert np.where(follows < 0, -1, 0).tolist() == trace["think_time"].tolist()


def test_runs_in_a_workload() -> None:
    """A run ends where the user asks for something else; others in between do not matter."""
    columns = {"user": [1, 2, 1, 1, 2, 1, 2, 2], "executable": [1, 1, 1, 1, 1, 1, 1, 2]}
    found = find_runs(Workload.of(np.arange(8), 1, [4, 4, 4, 2, 4, 4, 1, 1], **columns))
    assert [0, 1, 3, 5, 6, 7] == found.first.tolist()
    assert [2, 2, 1, 1, 1, 1] == found.lengths.tolist()


def test_arrivals_are_those_of_first_executions() -> None:
    """A fit takes the rate of first executions: repetitions are not to be counted twice."""
    workload = bursty_workload(3000, 2)
    model = fit("feitelson97", workload, options={"repeats": "new"})
    assert "new" == model.jobs.repeats  # type: ignore[attr-defined]
    submit = workload.submit[find_runs(workload).first]
    expected = (submit[-1] - submit[0]) / (len(submit) - 1)
    assert expected == pytest.approx(model.arrivals.mean_gap_s)  # type: ignore[attr-defined]
    assert len(workload) > 1.5 * len(submit)
    with pytest.raises(QuantityError, match="published_gap_s is unknown"):
        model.jobs.published_arrivals()


def test_generated_jobs_are_as_the_formulas_say() -> None:
    """First executions have the sizes, mean run times and run lengths of the model."""
    model = published("feitelson96", 64)
    jobs = generate(model, jobs=60_000, seed=3).drawn
    first, kind = jobs.follows < 0, model.jobs
    size = jobs.processors[first]
    near(kind.size_shares(64)[0], size == 1)
    near(kind.size_shares(64)[[0, 1, 3, 7, 15, 31, 63]].sum(), is_power_of_two(size))
    for processors in (1, 2, 4):
        expected = float(kind.mean_run_time(np.array([processors]), 64)[0])
        near(expected, jobs.run_time[first & (jobs.processors == processors)])
    serial = float(kind.mean_run_time(np.array([1]), 64)[0])
    assert 1000 * (0.95 + 0.05 * 7 + 6 * 0.2 / 64) == pytest.approx(serial)
    lengths = kind.length_shares
    near(lengths[0], draw_from(lengths, 50_000, np.random.default_rng(1)) == 0)
    assert jobs.run_time[first].std() > jobs.run_time[first].mean()


@versions
def test_a_load_stretches_first_executions_only(name: str) -> None:
    """Series stay the same, and first executions come to the end, without a tail of repetitions."""
    model = published(name, 64)
    assert 0.7 == pytest.approx(model.jobs.work(64) / (64 * model.arrivals.mean_gap_s))
    low, high = (generate(model, jobs=20_000, load=load) for load in (0.4, 0.8))
    assert (0.4, 0.8) == pytest.approx((low.load, high.load), rel=0.01)
    lengths = [
        dict(zip(each.drawn.executable, each.drawn.run_time, strict=True)) for each in (low, high)
    ]
    both = lengths[0].keys() & lengths[1].keys()
    assert len(both) > 0.95 * len(lengths[0])
    assert [] == [series for series in both if lengths[0][series] != lengths[1][series]]
    found = generate(model, days=60, load=0.7)
    assert 0.7 == pytest.approx(found.load, rel=0.1)
    first = found.drawn.submit[found.drawn.follows < 0]
    assert 60 * 86400 == pytest.approx(first[-1], rel=0.05)
    per_week = np.histogram(first, bins=8)[0]
    assert per_week.min() > 0.5 * per_week.mean()


def test_fitted_to_itself() -> None:
    """Parameters are found again in what the model makes up, within what chance leaves."""
    made = Feitelson1996.published(128).model_copy(
        update={"order": 1.2, "small_factor": 2.0, "power_factor": 5.0, "repetitions": 2.2}
    )
    jobs = made.draw(60_000, published("feitelson96", 128).arrivals, 128, Streams(5))
    # Every series has its own user, as where users seldom mix what they do.
    columns = {"user": jobs.bag, "executable": jobs.bag, "machine": 128}
    again = Feitelson1996.fit(Workload.of(jobs.submit, jobs.run_time, jobs.processors, **columns))
    assert made.repetitions == pytest.approx(again.repetitions, abs=0.05)
    # Repetitions have no say of their own: take the model without them for what jobs are like.
    size = draw_from(made.size_shares(128), 60_000, np.random.default_rng(4)) + 1
    found, notes = fit_sizes(size, 128, 9)
    assert [] == notes
    assert made.order == pytest.approx(found["order"], abs=0.05)
    assert made.power_factor == pytest.approx(found["power_factor"], rel=0.1)
    assert made.small_factor == pytest.approx(found["small_factor"], rel=0.15)


def test_stages_are_found_again() -> None:
    """Means of the stages, and shares that are linear in the size."""
    random = np.random.default_rng(6)
    size = random.random(40_000)
    long = random.random(40_000) < 0.1 + 0.6 * size
    times = random.exponential(np.where(long, 5000.0, 100.0))
    found = fit_linear_mixture(times, size, Exponentials(0.5), 2)
    assert found.converged
    assert [100, 5000] == pytest.approx(found.parameters.tolist(), rel=0.05)
    assert [0.9, 0.1] == pytest.approx(found.small.tolist(), abs=0.03)
    assert [0.3, 0.7] == pytest.approx(found.large.tolist(), abs=0.03)
