"""What studies share: requirements and claims as data, and tables on a terminal and on a page."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hpcrowd.scenarios.studies.render import (
    Picture,
    Table,
    html_page,
    html_table,
    required_rows,
    terminal_table,
)
from hpcrowd.scenarios.studies.study import PublishedStudy, Requirement, Rule, as_data
from rich.console import Console

MET = Requirement("KTH", "mean wait", "5 s", "5 s", True)
MISSED = Requirement("KTH", "jobs <moved>", "3", "none", False)


class Made(PublishedStudy):
    """A study of two requirements, with nothing else to show."""

    requirements = (MET, MISSED)

    def tables(self) -> tuple[()]:
        """Return no tables."""
        return ()

    def summary(self) -> list[str]:
        """Return what was reached."""
        return [self.score]

    def pictures(self) -> tuple[()]:
        """Return no pictures."""
        return ()

    def data(self) -> dict[str, int]:
        """Return one number."""
        return {"number": 1}

    def rows(self) -> tuple[tuple[str], list[tuple[int]]]:
        """Return it as a table."""
        return ("number",), [(1,)]

    def origin(self) -> dict[str, str]:
        """Return nothing that it comes from."""
        return {}


def test_what_is_missed_is_named_and_counted() -> None:
    """One of two is missed, so the study is not reached."""
    study = Made()
    assert [MISSED] == study.failures
    assert "1 of 2" == study.score
    assert not study.reached


@pytest.mark.parametrize(("holds", "expected"), [(np.True_, True), (False, False), (None, None)])
def test_claims_are_plain(holds: bool | None, expected: bool | None) -> None:
    """What a comparison of arrays gives becomes a bool of Python; open stays open."""
    rule = Rule("name", "VII", "what", lambda ratio: ({"ratio": ratio}, "0.50", holds))
    claim = rule.claim("KTH", 0.5)
    assert expected is claim.holds
    assert ("name", "VII", "what", "KTH", "0.50") == (
        claim.name, claim.section, claim.what, claim.setting, claim.text,
    )  # fmt: skip


def test_settings_are_called_as_the_study_calls_them() -> None:
    """The setting is first under the name asked for, or is left out."""
    (data,) = as_data([MET], "log")
    assert ["log", "what", "ours", "required", "holds"] == list(data)
    assert "KTH" == data["log"]
    (data,) = as_data([MET], None)
    assert ["what", "ours", "required", "holds"] == list(data)


def test_no_stands_out_on_a_page() -> None:
    """Words are to the left, text is escaped, and a no is marked, without its Markdown."""
    rows = [*required_rows([MET, MISSED]), ["CEA", "`a`", "", "", "**no**: 4"]]
    text = html_table(("log", "what", "ours", "required", "reached"), rows, 2)
    assert "<th class=word>what</th><th>ours</th>" in text
    assert "<td class=word>jobs &lt;moved&gt;</td><td>3</td>" in text
    assert "<td>yes</td>" in text
    assert 1 == text.count("<td class=failed>no</td>")
    assert "<td class=word>a</td><td></td><td></td><td class=failed>no: 4</td>" in text


def test_first_column_is_said_once_on_a_terminal() -> None:
    """A log in two rows after each other is named in the first of them only, when asked."""
    for once, times in ((True, 1), (False, 2)):
        console = Console(file=io.StringIO(), width=100)
        rows = required_rows([MET, MISSED])
        console.print(terminal_table(Table("Required", ("log", *"abcd"), rows, 5, once=once)))
        assert times == console.file.getvalue().count("KTH")  # type: ignore[attr-defined]


def test_pictures_are_described_by_who_drew_them() -> None:
    """The docstring of the function is heading and alternative text of its picture."""

    def draw() -> None:
        """Waits & queues."""

    page = html_page("Title", ["one", "a < b"], ["<h2>x</h2>"], [Picture.of("waits", draw)])
    assert "<p>one.</p>\n<p>a &lt; b.</p>\n<h2>x</h2>" in page
    words = "Waits &amp; queues."
    assert f'<h3>{words}</h3>\n<img src="waits.png" alt="{words}">' in page
