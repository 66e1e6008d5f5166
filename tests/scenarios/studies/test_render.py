"""What studies share in output: requirements, claims, tables, pictures, marks of other versions."""

import io
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hpcrowd.scenarios.studies import render
from hpcrowd.scenarios.studies.study import PublishedStudy, Requirement, Rule, as_data
from hpcrowd.scenarios.studies.versions import Version, marked, version_lines
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console

from tests.scenarios.studies.study_cases import shown

MET = Requirement("KTH", "mean wait", "5 s", "5 s", True)
MISSED = Requirement("KTH", "jobs <moved>", "3", "none", False)

SP2 = Version("SDSC", 54_044, 67_667)
SAME = Version("KTH", 28_475, 28_475)
NEAR = Version("DS", 66_744, 66_743)

LINE = "SDSC: 54,044 jobs, 67,667 in section 5.1: another version of the log"


@dataclass
class Small(PublishedStudy):
    """A study of three logs and two requirements."""

    name = "small"
    about = "A study."
    title = "A study, reproduced"
    source = "A paper"
    counted_in = "section 5.1"

    traces: dict[str, Any] = field(default_factory=dict)
    requirements = (MET, MISSED)

    def tables(self):
        """Return a table by log, and one of a log."""
        rows = [["SDSC", "12"], ["KTH", "13"], ["DS", "14"]]
        return [
            render.Table("Waits", ("log", "wait"), rows, part="waits"),
            render.Table("Makespans, SDSC", ("users", "days"), [["rigid", "5"]], part="spans"),
        ]

    def summary(self):
        """Return what was reached."""
        return [self.score]

    def pictures(self):
        """Return none."""
        return []

    def data(self):
        """Return none."""
        return {}

    def rows(self):
        """Return none."""
        return [], []

    def versions(self):
        """Return the numbers of jobs."""
        return [SP2, SAME, NEAR]


def test_what_is_missed_is_named_and_counted():
    """One of two is missed, so the study is not reached."""
    study = Small()
    assert ([MISSED], "1 of 2", False) == (study.failures, study.score, study.reached)
    assert "not reached: KTH: jobs <moved>: 3, required none" in shown(study)


@pytest.mark.parametrize(("holds", "expected"), [(np.True_, True), (False, False), (None, None)])
def test_claims_are_plain(holds, expected):
    """What a comparison of arrays gives becomes a bool of Python; open stays open."""
    rule = Rule("name", "VII", "what", lambda ratio: ({"ratio": ratio}, "0.50", holds))
    claim = rule.claim("KTH", 0.5)
    assert expected is claim.holds
    assert ("name", "VII", "what", "KTH", "0.50") == (
        claim.name, claim.section, claim.what, claim.setting, claim.text,
    )  # fmt: skip


def test_settings_are_called_as_the_study_calls_them():
    """The setting is first under the name asked for, or is left out where there is none."""
    (data,) = as_data([MET], "log")
    assert ["log", "what", "ours", "required", "holds"] == list(data)
    (data,) = as_data([replace(MET, setting="")], "log")
    assert ["what", "ours", "required", "holds"] == list(data)


def test_no_stands_out_on_a_page():
    """Words are to the left, text is escaped, and a no is marked, without its Markdown."""
    study = Small()
    required = render.required_table([MET, MISSED], "log")
    rows = [*required.rows, ["CEA", "`a`", "", "", "**no**: 4"]]
    study.tables = lambda: [render.Table("A & B", required.heading, rows, 2)]
    study.requirements = ()
    text = render.study_page(study, [])
    assert "<h2>A &amp; B</h2>" in text
    assert '<th scope="col">what</th><th scope="col" class="number">ours</th>' in text
    assert '<td>jobs &lt;moved&gt;</td><td class="number">3</td>' in text
    assert '<td class="number">yes</td>' in text
    assert 1 == text.count("<strong>no</strong>")
    assert '<td>a</td><td class="number"></td>' in text
    assert "<strong>no: 4</strong>" in text


@pytest.mark.parametrize(("once", "times"), [(True, 1), (False, 2)])
def test_first_column_is_said_once_on_a_terminal(once, times):
    """A log in two rows after each other is named in the first of them only, when asked."""
    console = Console(file=io.StringIO(), width=100)
    rows = render.required_table([MET, MISSED], "log").rows
    console.print(
        render.terminal_table(render.Table("Required", ("log", *"abcd"), rows, 5, once=once))
    )
    assert times == console.file.getvalue().count("KTH")


def test_pictures_are_described_by_who_drew_them(tmp_path):
    """The docstring of the function is heading and alternative text; dots per inch are kept."""

    def draw():
        """Waits & queues."""
        return Figure(figsize=(2, 1))

    picture = render.Picture.of("waits", draw, dpi=50)
    picture.write(tmp_path / "waits.png")
    study, png = Small(), (tmp_path / "waits.png").read_bytes()
    page = render.study_page(study, [(picture.words, png)])
    assert "<h1>A study, reproduced</h1>\n<p>A paper.</p>\n<p>1 of 2.</p>" in page
    words = "Waits &amp; queues."
    assert f'alt="{words}" src="data:image/png;base64,' in page
    assert f"<figcaption>{words}</figcaption>" in page
    with Image.open(tmp_path / "waits.png") as image:
        assert (100, 50) == image.size


def test_generated_parts_are_replaced():
    """Only what is between the marks of a part changes, and a second time nothing does."""
    page = "a\n<!-- generated: x -->\nold\n<!-- end of x -->\nb\n"
    once = render.refresh_page(page, {"x": "new", "elsewhere": "?"})
    assert "a\n<!-- generated: x -->\n\nnew\n\n<!-- end of x -->\nb\n" == once
    assert once == render.refresh_page(once, {"x": "new"})


# ---- other versions of logs ------------------------------------------------------------------


def test_lines_name_both_numbers_of_jobs():
    """A log with other jobs is named with both numbers; one with the same number is not."""
    assert [
        f"{LINE}, on which figures of SDSC† rest",
        "DS: 66,744 jobs, 66,743 in section 5.1: nearly the same version of the log",
    ] == version_lines([SP2, SAME, NEAR], "section 5.1")


def test_figures_on_another_version_are_marked_everywhere():
    """Terminal, HTML page, generated Markdown and data all say it; without one nothing changes."""
    study = Small()
    for text in (shown(study), render.study_page(study, [])):
        assert LINE in " ".join(text.split())
        assert "Makespans, SDSC†" in " ".join(text.split())
        assert "KTH†" not in text
        assert "DS†" not in text
    parts = study.page_parts()
    assert LINE in parts["summary"]
    assert "| SDSC† | 12 |" in parts["waits"]
    assert ["SDSC", "DS"] == [one["log"] for one in study.to_json()["other_versions"]]
    table = study.tables()[0]
    assert table is marked(table, [SAME, NEAR])
