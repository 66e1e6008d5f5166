"""How alike two workloads are: nothing apart from itself, known distances, reasons told."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.analysis.features import FEATURES, distance_of, measure
from hpcrowd.analysis.features.distance import VARIABLES, Apart, Difference, apart
from hpcrowd.environment.errors import UnavailableError

from tests.analysis.features.feature_cases import bursty_workload, poisson_workload


def test_a_workload_is_not_apart_from_itself() -> None:
    """Every distance and every difference is 0."""
    one = measure(bursty_workload(500, 1), FEATURES.values())
    found = distance_of(one, one)
    assert set(VARIABLES) == set(found.distributions)
    for name, distribution in found.distributions.items():
        assert Apart(0, 0, 0) == distribution, name
    known = [d for d in found.differences.values() if isinstance(d, Difference)]
    assert len(known) > 80
    assert {0} == {one.difference for one in known}


def test_distances_of_shifted_values_are_known() -> None:
    """A shift moves everything by itself; exponentials are apart as theory says."""
    values = np.arange(100.0)
    for shift, ks in ((10, 0.1), (1000, 1)):
        found = apart(values, values + shift)
        assert found.ks == pytest.approx(ks)
        assert found.wasserstein == pytest.approx(shift)
        assert found.wasserstein_relative == pytest.approx(shift / 49.5)
    assert apart([0, 0], [1]).wasserstein_relative is None
    with pytest.raises(UnavailableError, match="no values"):
        apart([], [1])
    random, n = np.random.default_rng(3), 40_000
    found = apart(random.exponential(1, n), random.exponential(0.5, n))
    assert found.ks == pytest.approx(0.25, abs=4 / np.sqrt(n))
    assert found.wasserstein == pytest.approx(0.5, abs=4 / np.sqrt(n))


def test_what_one_side_lacks_is_reported() -> None:
    """The second workload has no waits: no distance of waits, and it is said whose they are."""
    first = measure(poisson_workload(500, 300, 1), FEATURES.values())
    second = measure(poisson_workload(500, 300, 1, wait=-1), FEATURES.values())
    found = distance_of(first, second)
    assert "no waits recorded" == found.distributions["wait"]
    assert "second: no waits recorded" == found.differences["wait_mean_s"]
    wire = found.to_json()
    assert "no waits recorded" == wire["not_available"]["wait (distribution)"]
    assert {"ks": 0.0, "wasserstein": 0.0, "wasserstein_relative": 0.0, "unit": "s"} == wire[
        "distributions"
    ]["run_time"]


def test_differences_are_against_the_first() -> None:
    """Difference and relative difference; none relative to 0."""
    assert (1, 0.5) == (Difference(2, 3).difference, Difference(2, 3).relative)
    assert (1, 0.5) == (Difference(-2, -1).difference, Difference(-2, -1).relative)
    assert Difference(0, 3).relative is None
