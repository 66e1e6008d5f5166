"""Studies say which logs are another version than those of the paper, and mark their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hpcrowd.scenarios.studies.madon2024.study import JOBS, STUDIED
from hpcrowd.scenarios.studies.registry import study_entry, study_names
from hpcrowd.scenarios.studies.render import Picture, Rows, Table, study_page
from hpcrowd.scenarios.studies.study import PublishedStudy
from hpcrowd.scenarios.studies.versions import Version, marked, version_lines

from tests.scenarios.studies.study_cases import shown

#: Studies of papers that count no jobs, or whose figures are of generated work.
UNCOUNTED = {"zakay2015", "minh2012-arrivals", "minh2012-correlation", "slurm"}

SP2 = Version("SDSC", 54_044, 67_667)
SAME = Version("KTH", 28_475, 28_475)
NEAR = Version("DS", 66_744, 66_743)


@dataclass
class Small(PublishedStudy):
    """A study of three logs."""

    name = "small"
    about = "A study."
    title = "A study, reproduced"
    source = "A paper"
    counted_in = "section 5.1"

    traces: dict[str, Any] = field(default_factory=dict)
    requirements = ()

    def tables(self) -> Sequence[Table]:
        """Return a table by log, and one of a log."""
        rows = [["SDSC", "12"], ["KTH", "13"], ["DS", "14"]]
        return [
            Table("Waits", ("log", "wait"), rows, part="waits"),
            Table("Makespans, SDSC", ("users", "days"), [["rigid", "5"]], part="spans"),
        ]

    def summary(self) -> list[str]:
        """Return nothing special."""
        return ["3 figures compared"]

    def pictures(self) -> Sequence[Picture]:
        """Return none."""
        return []

    def data(self) -> dict[str, Any]:
        """Return none."""
        return {}

    def rows(self) -> Rows:
        """Return none."""
        return [], []

    def versions(self) -> Sequence[Version]:
        """Return the numbers of jobs."""
        return [SP2, SAME, NEAR]


LINE = "SDSC: 54,044 jobs, 67,667 in section 5.1: another version of the log"


def test_lines_name_both_numbers_of_jobs() -> None:
    """A log with other jobs is named with both numbers; one with the same number is not."""
    lines = version_lines([SP2, SAME, NEAR], "section 5.1")
    assert [f"{LINE}, on which figures of SDSC† rest"] == lines[:1]
    assert ["DS: 66,744 jobs, 66,743 in section 5.1: nearly the same version of the log"] == lines[
        1:
    ]


def test_figures_on_another_version_are_marked_everywhere() -> None:
    """Terminal, HTML page, generated Markdown and data all say it."""
    study = Small()
    for text in (shown(study), study_page(study, [])):
        assert LINE in " ".join(text.split())
        assert "Makespans, SDSC†" in " ".join(text.split())
        assert "KTH†" not in text
        assert "DS†" not in text
    parts = study.page_parts()
    assert LINE in parts["summary"]
    assert "| SDSC† | 12 |" in parts["waits"]
    assert ["SDSC", "DS"] == [one["log"] for one in study.to_json()["other_versions"]]


def test_tables_on_the_same_version_are_as_they_were() -> None:
    """Without another version nothing changes."""
    table = Small().tables()[0]
    assert table is marked(table, [SAME, NEAR])


@pytest.mark.parametrize("name", sorted(set(study_names()) - UNCOUNTED))
def test_every_study_declares_the_jobs_of_its_paper(name: str) -> None:
    """A study of a paper that counts jobs compares them."""
    assert study_entry(name).study.versions is not PublishedStudy.versions


def test_madon_has_the_numbers_of_the_paper() -> None:
    """Both logs of Madon et al. have their number of jobs, section 5.1."""
    assert set(STUDIED) == set(JOBS)
    assert 67_667 == JOBS["SDSC"]
