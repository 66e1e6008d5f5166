"""Bags of tasks: which jobs form one, what they are like, and the distributions fitted between."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.analysis.features import FEATURES, Settings, Workload
from hpcrowd.analysis.features.bags import (
    NO_GAP_S,
    PARAMETERS,
    SAME,
    bags,
    fit,
    same_job_gaps,
)
from hpcrowd.analysis.features.feature import value_of
from hpcrowd.environment.errors import QuantityError, UnavailableError
from scipy import stats


def test_a_gap_of_a_hundred_seconds_is_still_a_bag() -> None:
    """Like neighbours within 100 s form a bag; a second more, or another's job, ends it."""
    times = [0, 100, 201, 250]
    assert [2, 2] == bags(Workload.of(times, 10)).size.tolist()
    assert [1, 1, 2] == bags(Workload.of(times, 10, settings=Settings(bag_gap_s=99))).size.tolist()
    assert [4] == bags(Workload.of(times, 10, settings=Settings(bag_gap_s=101))).size.tolist()
    assert [1, 1, 1] == bags(Workload.of([0, 0, 0], 10, user=[1, 2, 1])).size.tolist()


#: Arrivals, run times and other columns, and what features of bags are: a number or a reason.
TINY: list[tuple[Workload, dict[str, float | str]]] = [
    (
        Workload.of([0, 10, 1000], [60, 120, 20], [2, 2, 5], requested_time=[200, 200, 20],
                    wait=[30, 10, 0]),
        {
            "jobs_in_bags_share": 2 / 3, "bag_size_mean": 2, "bag_size_max": 2,
            "bag_run_time_cv_mean": 1 / 3, "bag_duration_mean_s": 10,
            "bag_duration_short_share": 1, "bag_use_of_estimates": 180 / 400,
            "bag_interarrival_mean_s": "1 value, at least 2 are needed",
            "bag_occupation_share": 360 / 460, "bag_job_run_time_mean_s": 90, "bag_wait_share": 1,
            "bag_same_job_gap_share": 1,
        },
    ),
    # Bags that took no time have no CV, and are left out of the mean.
    (Workload.of([0, 1, 500, 501], [0, 0, 10, 30]), {"bag_run_time_cv_mean": 0.5}),
    (Workload.of([0, 1], 0), {"bag_run_time_cv_mean": "all run times are 0"}),
    # Single jobs alone: no bag to measure, but bags of one do arrive.
    (
        Workload.of([0, 1000, 2000], 10),
        {
            "jobs_in_bags_share": 0, "bag_interarrival_mean_s": 1000,
            "bag_size_mean": "no bag of two jobs or more",
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize("column", SAME)
def test_another_value_ends_a_bag(column: str) -> None:
    """User, group, queue, executable, request and processors have to agree (section 2.3.3)."""
    workload = Workload.of([0, 1, 2, 3], 10, **{column: [1, 1, 2, 2]})
    assert [2, 2] == bags(workload).size.tolist()


@pytest.mark.parametrize(("workload", "expected"), TINY)
def test_features_of_bags_of_a_tiny_workload(
    workload: Workload, expected: dict[str, float | str]
) -> None:
    """Shares, means and occupation, worked out by hand; what is missing says why."""
    for name, one in expected.items():
        found = value_of(FEATURES[name], workload)
        if isinstance(one, str):
            assert one == found.reason
        else:
            assert found.number == pytest.approx(one), name


def test_a_pair_whose_first_has_ended_is_not_a_pair() -> None:
    """Who knows the result may have reacted to it (section 3.4); unknown waits say nothing."""
    assert [50] == same_job_gaps(Workload.of([0, 50, 300], [60, 10, 5], wait=0)).tolist()
    assert [50, 250] == same_job_gaps(Workload.of([0, 50, 300], [60, 10, 5])).tolist()


#: Samples with known parameters: distribution, frozen scipy distribution, parameters.
KNOWN = {
    "generalized_pareto": (stats.genpareto(0.8, scale=40), {"shape": 0.8, "scale_s": 40}),
    "weibull": (stats.weibull_min(0.6, scale=90), {"shape": 0.6, "scale_s": 90}),
    "lognormal": (stats.lognorm(1.5, scale=np.exp(3)), {"mu": 3, "sigma": 1.5}),
    "gamma": (stats.gamma(0.5, scale=400), {"shape": 0.5, "scale_s": 400}),
    "exponential": (stats.expon(scale=180), {"mean_s": 180}),
}


@pytest.mark.parametrize("distribution", PARAMETERS)
def test_a_fit_finds_known_parameters(distribution: str) -> None:
    """On several samples the mean of each parameter is the true one, within chance."""
    frozen, truth = KNOWN[distribution]
    fits = [
        fit(frozen.rvs(3000, random_state=np.random.default_rng(seed)), distribution)
        for seed in range(12)
    ]
    for name, true in truth.items():
        found = np.array([one.parameters[name] for one in fits])
        chance = 4 * found.std(ddof=1) / np.sqrt(len(found))
        assert found.mean() == pytest.approx(true, abs=chance), name
    assert np.mean([one.ks for one in fits]) < 1.5 / np.sqrt(3000)


def test_what_cannot_be_fitted_is_said() -> None:
    """Too few or equal times have no fit; a gap of 0 s stands for 1e-7 s."""
    with pytest.raises(UnavailableError, match="2 times between bags"):
        fit([1, 2], "gamma")
    with pytest.raises(UnavailableError, match="all times between bags are equal"):
        fit([5, 5, 5], "gamma")
    with pytest.raises(QuantityError, match="-1 s; must not be negative"):
        fit([1, 2, -1], "gamma")
    with pytest.raises(QuantityError, match="'zipf': choose generalized_pareto"):
        fit([1, 2, 3], "zipf")
    found = fit([0, 10, 1000], "lognormal").parameters
    logs = np.log([NO_GAP_S, 10, 1000])
    assert found["mu"] == pytest.approx(logs.mean())
    assert found["sigma"] == pytest.approx(logs.std())
