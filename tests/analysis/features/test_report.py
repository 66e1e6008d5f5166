"""The report on workloads: one file with everything in it, that loads nothing."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest
from hpcrowd.analysis.features.feature import Feature, Value, measure
from hpcrowd.analysis.features.report import PICTURES, features_html, format_value
from hpcrowd.analysis.features.stats import FEATURES, GROUPS
from hpcrowd.analysis.features.workload import Settings, Workload
from hpcrowd.environment.clock import DAY, HOUR, WEEK

from tests.support.reports import Page

NEARLY_NOTHING = Workload.of([0, 70, DAY], [60, 60, 61], name='a & <b> "c"')


@pytest.fixture(scope="module")
def report() -> str:
    """The report on a workload of which nearly everything is known, and on one of nothing."""
    random = np.random.default_rng(7)
    known = Workload.of(
        np.sort(random.integers(0, 3 * WEEK, 1500)),
        random.integers(0, HOUR, 1500),
        random.integers(1, 9, 1500),
        name="known.swf.gz",
        wait=random.integers(0, HOUR, 1500),
        requested_time=2 * HOUR,
        user=random.integers(0, 20, 1500),
        machine=64,
        notes=("a note < that is > told",),
    )
    known.left_out["no run time"] = 1234
    measured = [measure(workload, FEATURES.values()) for workload in (known, NEARLY_NOTHING)]
    return features_html(measured, again="hpcrowd stats a <b>")


def test_report_is_one_file_that_loads_nothing(report: str) -> None:
    """Pictures are part of the file; there are no scripts and no references to elsewhere."""
    page = Page(report)
    assert set() == {tag for tag, _ in page.seen} & {"script", "link", "iframe", "object"}
    assert len(PICTURES) == len(page.pictures())
    links = [given["href"] for _, given in page.seen if "href" in given]
    places = {given["id"] for _, given in page.seen if "id" in given}
    assert [] == [link for link in links if link.removeprefix("#") not in places]
    assert re.search("https?://|//cdn|url\\(", re.sub('src="[^"]*"', "", report)) is None


def test_report_has_every_feature_and_caption(report: str) -> None:
    """Title, name, definition and source of each feature, and how to read each picture."""
    text = unescape(report)
    wanted = [words for one in FEATURES.values() for words in (
        one.title.strip(), one.name, one.definition, one.source)]  # fmt: skip
    wanted += [group.title for group in GROUPS] + [one.caption for one in PICTURES.values()]
    assert [] == [words for words in wanted if not words or words not in text]
    units = {name: name.endswith("_s") == (one.unit == "s") for name, one in FEATURES.items()}
    assert {True} == set(units.values()), units
    assert {group.name for group in GROUPS} == {picture.group for picture in PICTURES.values()}


def test_report_tells_reasons_origin_and_what_was_left_out(report: str) -> None:
    """What is not available says why; jobs left out, notes and names are there, as text."""
    text = unescape(report)
    for words in (
        "not available: no waits recorded", "left out: no run time</th><td>1,234</td><td>0</td>",
        "a note < that is > told", "its origin counts as Monday 00:00",
        "Arrivals counted per 15.0 min", "numpy", "scipy",
        "Again: <code>hpcrowd stats a <b></code>",
    ):  # fmt: skip
        assert words in text
    assert "nan" not in re.sub("<[^>]*>", " ", text).lower().split()
    assert "a &amp; &lt;b&gt;" in report
    assert "<b>" not in report


def test_reports_of_hardly_anything() -> None:
    """The same workload makes the same bytes; scales that differ, and no jobs, are reported."""
    first, second = (features_html([measure(NEARLY_NOTHING, [])]) for _ in range(2))
    assert first == second
    other = Workload.of([0, 9], [1, 1], name="hourly", settings=Settings(time_scale_s=7200))
    text = features_html([measure(one, []) for one in (NEARLY_NOTHING, other)])
    assert "hourly: Arrivals counted per 2.0 h" in text
    text = features_html([measure(Workload.of([], [], name="empty"), FEATURES.values())])
    assert "empty: 0 jobs." in text
    assert "not available: " in text


@pytest.mark.parametrize(
    ("name", "unit", "number", "text"),
    [
        ("jobs", "", 202871, "202,871"),
        ("span_s", "s", 110_000_000.0, "1,273.1 days"),
        ("interarrival_median_s", "s", 23.0, "23 s"),
        ("interarrival_mean_s", "s", 545.3, "9.1 min"),
        ("interarrival_mean_s", "s", 0.25, "0.25 s"),
        ("bag_interarrival_weibull_scale_s", "s", 0.00021, "0.00021 s"),
        ("jobs_per_hour", "1/h", 6.604, "6.60 per h"),
        ("weekend_share", "", 0.2034, "20.3 %"),
        ("weekend_share", "", 0.000002, "0.0002 %"),
        ("run_time_processors_spearman", "", -0.2293, "-0.229"),
        ("interarrival_cv", "", 5.7, "5.70"),
        ("jobs_per_user_mean", "", 12345.6, "12,346"),
        ("hurst_sd", "", 0.0, "0"),
    ],
)
def test_values_are_reported_by_their_unit(name: str, unit: str, number: float, text: str) -> None:
    """Times, shares, counts and other numbers each read as people write them."""
    feature = Feature(name, name, "", "", lambda w: 0.0, unit)
    assert text == format_value(feature, Value(number))
    assert "not available: because" == format_value(feature, Value(None, "because"))
