"""The report on workloads: one file with everything in it, that loads nothing."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from hpcrowd.analysis.features.feature import measure
from hpcrowd.analysis.features.report import PICTURES, features_html
from hpcrowd.analysis.features.stats import FEATURES, GROUPS
from hpcrowd.analysis.features.workload import Settings, Workload
from hpcrowd.environment.clock import DAY, HOUR, WEEK

ODD = 'a & <b> "c"'


@pytest.fixture(scope="module")
def workloads() -> list[Workload]:
    """One of which nearly everything is known, and one of which nearly nothing is."""
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
    return [known, Workload.of([0, 70, DAY], [60, 60, 61], name=ODD)]


@pytest.fixture(scope="module")
def report(workloads: list[Workload]) -> str:
    """The report on both."""
    measured = [measure(workload, FEATURES.values()) for workload in workloads]
    return features_html(measured, again="hpcrowd stats a <b>")


class Reader(HTMLParser):
    """Collects tags, and complains about those that are not closed."""

    ALONE = ("meta", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in self.ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost tag, which it must be."""
        assert self.open.pop() == tag


def test_report_is_one_file_that_loads_nothing(report: str) -> None:
    """Pictures are part of the file; there are no scripts and no references to elsewhere."""
    reader = Reader()
    reader.feed(report)
    assert [] == reader.open
    tags = {tag for tag, _ in reader.tags}
    assert set() == tags & {"script", "link", "iframe", "object"}
    sources = [given["src"] or "" for tag, given in reader.tags if tag == "img"]
    assert len(PICTURES) == len(sources)
    assert {"data:image/png;base64"} == {source.partition(",")[0] for source in sources}
    links = [given["href"] or "" for tag, given in reader.tags if "href" in given]
    places = {given["id"] for _, given in reader.tags if "id" in given}
    assert [] == [link for link in links if link.removeprefix("#") not in places]
    assert re.search("https?://|//cdn|url\\(", re.sub('src="[^"]*"', "", report)) is None


def test_report_has_every_feature_and_caption(report: str) -> None:
    """Title, name, definition and source of each feature, and how to read each picture."""
    text = unescape(report)
    wanted = [words for one in FEATURES.values() for words in (
        one.title.strip(), one.name, one.definition, one.source)]  # fmt: skip
    wanted += [group.title for group in GROUPS] + [one.caption for one in PICTURES.values()]
    assert [] == [words for words in wanted if words not in text]


def test_pictures_belong_to_groups() -> None:
    """Every picture is shown: its group is one of the features'."""
    assert {group.name for group in GROUPS} == {picture.group for picture in PICTURES.values()}


def test_report_tells_reasons_and_what_was_left_out(report: str) -> None:
    """What is not available says why; jobs left out are counted by reason, notes are reported."""
    text = unescape(report)
    assert "not available: no waits recorded" in text
    assert re.search("left out: no run time</th><td>1,234</td><td>0</td>", text)
    assert "a note < that is > told" in text
    assert "its origin counts as Monday 00:00" in text
    assert "nan" not in re.sub("<[^>]*>", " ", text).lower().split()


def test_report_escapes_names(report: str) -> None:
    """Names with special characters are text, not tags."""
    assert "a &amp; &lt;b&gt;" in report
    assert "<b>" not in report
    assert "Again: <code>hpcrowd stats a &lt;b&gt;</code>" in report


def test_report_names_what_it_was_made_by(report: str, workloads: list[Workload]) -> None:
    """The scales of the measurement and the versions are reported; scales that differ, for each."""
    assert "Arrivals counted per 15.0 min" in report
    assert "numpy" in report
    assert "scipy" in report
    other = Workload.of([0, 9], [1, 1], name="hourly", settings=Settings(time_scale_s=7200))
    text = features_html([measure(one, []) for one in (workloads[1], other)])
    assert "hourly: Arrivals counted per 2.0 h" in text


def test_reports_of_the_same_are_the_same(workloads: list[Workload]) -> None:
    """The same workloads make the same bytes."""
    first, second = (features_html([measure(workloads[1], FEATURES.values())]) for _ in range(2))
    assert first == second


def test_report_on_an_empty_workload() -> None:
    """Even of no jobs there is a report, which says that there are none."""
    text = features_html([measure(Workload.of([], [], name="empty"), FEATURES.values())])
    assert "empty: 0 jobs." in text
    assert "not available: " in text
