"""How reproductions of published studies are told: on a terminal, as a page, in a folder."""

from __future__ import annotations

import html
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hpcrowd.analysis.results import versions, whole_folder, write_csv, write_json
from hpcrowd.scenarios.studies.study import Claim, Requirement, Rule

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


#: A table: its headings and its rows.
Rows = tuple[Sequence[str], Iterable[Sequence[Any]]]

#: Head of an HTML page with tables and pictures; give it a title.
HTML_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 16px/1.5 sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; font-size: 14px; margin: 0.5rem 0 2rem; }}
td, th {{ padding: 0.1rem 0.6rem; text-align: right; border-bottom: 1px solid #ddd; }}
th {{ vertical-align: bottom; }} td.word, th.word {{ text-align: left; }}
td.failed {{ color: #D55E00; font-weight: bold; }} img {{ max-width: 100%; }}
</style></head><body>
<h1>{title}</h1>
"""


#: What becomes of a statement, in tables and on a terminal.
VERDICTS = {True: "yes", False: "**no**", None: "open"}

#: The same on a terminal.
SHOWN = {True: "holds", False: "[yellow]does not hold[/yellow]", None: "open"}


class StudyReport(ABC):
    """A study that has been run: data, tables, and a folder with both and the pictures."""

    #: What the study is called, also in the names of its files.
    name: ClassVar[str]

    @property
    @abstractmethod
    def reached(self) -> bool:
        """Whether every required figure was reached."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""

    @abstractmethod
    def show(self, console: Console) -> None:
        """Print the tables on a console."""

    @abstractmethod
    def rows(self) -> Rows:
        """Return every figure in long form, as headings and rows; unknown is None."""

    @abstractmethod
    def origin(self) -> dict[str, Any]:
        """Return where the figures come from: traces, and settings where there are any."""

    @abstractmethod
    def write_pictures(self, place: Path) -> list[str]:
        """Write the pictures into a folder and return the names of the files."""

    @abstractmethod
    def page(self, pictures: Sequence[str]) -> str:
        """Return a page in HTML with the tables and the pictures beside it."""

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write data, pictures and a page into a folder that is whole or absent."""
        with whole_folder(folder) as place:
            write_json(self.to_json(), place / f"{self.name}.json")
            write_csv(place / f"{self.name}.csv", *self.rows())
            pictures = self.write_pictures(place)
            (place / "report.html").write_text(self.page(pictures), encoding="utf-8")
            provenance = {"study": self.name, **self.origin(), "versions": versions()}
            write_json(provenance, place / "provenance.json")


def show_statements(
    console: Console,
    claims: Iterable[Claim],
    failures: Iterable[Requirement],
    lines: Iterable[str],
) -> None:
    """Print statements of a text with what was found, what was not reached, and a summary.

    Parameters
    ----------
    console
        Where to.
    claims
        The statements, those that say the same in other settings behind each other.
    failures
        Required figures that were not reached.
    lines
        The summary.
    """
    console.print("[bold]Statements of the text[/bold]")
    last = None
    for claim in claims:
        if claim.what != last:
            last = claim.what
            console.print(f"\n{claim.what} ({claim.section})", highlight=False)
        console.print(f"  {claim.setting}: {SHOWN[claim.holds]}: {claim.text}", highlight=False)
    console.print()
    for one in failures:
        where = f"{one.setting}: " if one.setting else ""
        console.print(
            f"[red]not reached[/red]: {where}{one.what}: {one.ours}, required {one.required}"
        )
    for line in lines:
        console.print(line, highlight=False)


def plain_numbers(values: Any, digits: int | None = None) -> Any:
    """Return an array, or nested lists, as lists of numbers fit for JSON; nan becomes None.

    Parameters
    ----------
    values
        The numbers.
    digits
        Significant digits that stay; all unless given.
    """
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, list):
        return [plain_numbers(one, digits) for one in values]
    if values != values:
        return None
    return values if digits is None else float(f"{values:.{digits}g}")


def required_rows(requirements: Iterable[Requirement]) -> list[list[str]]:
    """Return what was required as texts: setting, what, ours, required, and yes or no."""
    return [
        [one.setting, one.what, one.ours, one.required, "yes" if one.holds else "no"]
        for one in requirements
    ]


def claim_table(
    claims: Iterable[Claim], rules: Iterable[Rule], settings: Iterable[str]
) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows: what was found for every statement, a column for each setting."""
    found, columns = {(one.name, one.setting): one for one in claims}, list(settings)

    def text(name: str, setting: str) -> str:
        if (name, setting) not in found:
            return "-"
        claim = found[name, setting]
        return ("**no**: " if claim.holds is False else "") + claim.text

    rows = [
        [rule.what, rule.section, *(text(rule.name, setting) for setting in columns)]
        for rule in rules
        if any((rule.name, setting) in found for setting in columns)
    ]
    return ["statement: measure; rule", "section", *columns], rows


def claim_grid(
    claims: Iterable[Claim], rules: Iterable[Rule], settings: Iterable[str]
) -> tuple[list[str], list[list[str]]]:
    """Return the statements as a grid for a terminal: a line each, a column for each setting."""
    words = {True: "yes", False: "no", None: "open"}
    found = {(claim.name, claim.setting): words[claim.holds] for claim in claims}
    columns, known = list(settings), {name for name, _ in found}
    rows = [
        [rule.name, *(found.get((rule.name, setting), "-") for setting in columns)]
        for rule in rules
        if rule.name in known
    ]
    return ["statement", *columns], rows


# ---- on a terminal ---------------------------------------------------------------------------


def console_table(
    title: str,
    heading: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: int,
    *,
    once: bool = False,
    wrap: bool = False,
) -> Table:
    """Return a table for a ``rich`` console; a "no" at the end of a row stands out.

    Parameters
    ----------
    title, heading, rows
        What it holds; what the paper printed, headed ``paper``, is dim.
    left
        Columns of words; the others are numbers, to the right.
    once
        Whether the first column says only once what stands in several rows after each other.
    wrap
        Whether numbers may be broken into lines.
    """
    from rich.table import Table

    view = Table(title=title, **console_look())
    for place, name in enumerate(heading):
        number: dict[str, Any] = {"justify": "right", "no_wrap": not wrap} if place >= left else {}
        view.add_column(name, style="dim" if name == "paper" else None, **number)
    before = None
    for row in rows:
        first = "" if once and row[0] == before else row[0]
        before = row[0]
        view.add_row(first, *row[1:-1], "[red]no[/red]" if row[-1] == "no" else row[-1])
    return view


def console_look() -> dict[str, Any]:
    """Return the look of tables on a ``rich`` console."""
    from rich.box import SIMPLE_HEAD

    return {
        "box": SIMPLE_HEAD,
        "title_justify": "left",
        "title_style": "bold",
        "pad_edge": False,
        "padding": 0,
    }


# ---- as a page -------------------------------------------------------------------------------


def says_no(text: str) -> bool:
    """Return whether a cell tells that something was not reached or does not hold."""
    return text == "no" or "**no**" in text


def html_table(
    heading: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: int,
    failed: Callable[[str], bool] = says_no,
) -> str:
    """Return a table in HTML.

    Parameters
    ----------
    heading, rows
        What it holds; marks of Markdown are dropped.
    left
        Columns of words; the others are numbers, to the right.
    failed
        Which cells stand out.
    """

    def cell(kind: str, place: int, text: str) -> str:
        mark = " class=word" if place < left else ""
        if kind == "td" and place and failed(text):
            mark = " class=failed"
        return f"<{kind}{mark}>{html.escape(text.replace('**', '').strip('`'))}</{kind}>"

    lines = [
        "<tr>" + "".join(cell(kind, place, text) for place, text in enumerate(row)) + "</tr>"
        for kind, row in (("th", heading), *(("td", row) for row in rows))
    ]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def html_page(
    title: str,
    paragraphs: Iterable[str],
    parts: Iterable[str],
    pictures: Iterable[tuple[str, Callable[..., Any]]],
) -> str:
    """Return a page in HTML.

    Parameters
    ----------
    title, paragraphs
        Plain text, paragraphs without the full stop.
    parts
        Headings and tables in HTML.
    pictures
        Each file with the function that drew it, whose docstring tells what it shows.
    """
    lines = [
        HTML_HEAD.format(title=title),
        *(f"<p>{html.escape(text)}.</p>" for text in paragraphs),
        *parts,
    ]
    for file, draw in pictures:
        words = html.escape((draw.__doc__ or file).strip())
        lines.append(f'<h3>{words}</h3>\n<img src="{file}" alt="{words}">')
    return "\n".join([*lines, "</body></html>\n"])


def html_section(
    title: str, heading: Sequence[str], rows: Iterable[Sequence[str]], left: int, **options: Any
) -> str:
    """Return a table in HTML under its title; see :func:`html_table`."""
    return f"<h2>{title}</h2>\n{html_table(heading, rows, left, **options)}"
