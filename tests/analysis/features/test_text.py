"""Values of features for people."""

from __future__ import annotations

import pytest
from hpcrowd.analysis.features.feature import Feature, Value
from hpcrowd.analysis.features.report import format_value

CASES = [
    # (name, unit, number, text)
    ("jobs", "", 202871, "202,871"),
    ("processors_max", "", 9216.0, "9,216"),
    ("jobs_per_user_mean", "", 789.4, "789.4"),
    ("span_s", "s", 110_000_000.0, "1,273.1 days"),
    ("interarrival_median_s", "s", 23.0, "23 s"),
    ("interarrival_mean_s", "s", 545.3, "9.1 min"),
    ("interarrival_mean_s", "s", 53.27, "53.3 s"),
    ("interarrival_mean_s", "s", 0.25, "0.25 s"),
    ("bag_interarrival_weibull_scale_s", "s", 0.00021, "0.00021 s"),
    ("jobs_per_hour", "1/h", 6.604, "6.60 per h"),
    ("weekend_share", "", 0.2034, "20.3 %"),
    ("weekend_share", "", 1.0, "100 %"),
    ("weekend_share", "", 0.000002, "0.0002 %"),
    ("run_time_processors_spearman", "", -0.2293, "-0.229"),
    ("interarrival_cv", "", 5.7, "5.70"),
    ("interarrival_cv", "", 10.0031, "10.00"),
    ("jobs_per_user_mean", "", 12345.6, "12,346"),
    ("hurst_sd", "", 0.0, "0"),
]


@pytest.mark.parametrize(("name", "unit", "number", "text"), CASES)
def test_values_are_reported_by_their_unit(name: str, unit: str, number: float, text: str) -> None:
    """Times, shares, counts and other numbers each read as people write them."""
    feature = Feature(name, name, "", "", lambda w: 0.0, unit)
    assert text == format_value(feature, Value(number))


def test_what_is_not_available_is_reported_with_its_reason() -> None:
    """A value that there is not says why, in words."""
    feature = Feature("wait_mean_s", "wait, mean", "", "", lambda w: 0.0, "s")
    told = format_value(feature, Value(None, "no waits recorded"))
    assert "not available: no waits recorded" == told
