"""Tables, pictures and statements of studies, rendered: terminal, HTML, Markdown, CSV, a folder.

A study declares them once, see :class:`~hpcrowd.scenarios.studies.study.PublishedStudy`; this
module does not depend on any study.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.html import figure_of, html_page, rows_table
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.analysis.results import versions, write_csv, write_json
from hpcrowd.environment.output.whole import whole_file, whole_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    from hpcrowd.scenarios.studies.study import Claim, PublishedStudy, Requirement


#: A table: its headings and its rows.
Rows = tuple[Sequence[str], Iterable[Sequence[Any]]]

#: Marks around the generated parts of a page.
BEGIN, END = "<!-- generated: {} -->", "<!-- end of {} -->"

#: The outcome of a statement, in tables and on a terminal.
VERDICTS = {True: "yes", False: "**no**", None: "open"}
SHOWN = {True: "holds", False: "[yellow]does not hold[/yellow]", None: "open"}


def record_rows(records: Sequence[Mapping[str, Any]]) -> Rows:
    """Return the headings and rows of records with the same names, at least one record."""
    return list(records[0]), [list(record.values()) for record in records]


@dataclass(frozen=True)
class Table:
    """A table of a study."""

    title: str  #: Its title on a terminal and on an HTML page.
    #: Texts, perhaps in Markdown; bold ones and a ``no`` in the last column are highlighted.
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1  #: Number of columns of words at the left; the others are numbers, aligned right.
    #: The generated part of the study's page that contains it; empty if the page does not. If
    #: several tables share one, each has its title.
    part: str = ""
    #: Whether a terminal and the HTML page show it.
    terminal: bool = True
    html: bool = True
    #: On a terminal: numbers of the columns to show, with their headings; all by default.
    columns: Mapping[int, str] | None = None
    once: bool = False  #: On a terminal, whether the first column shows repeated values only once.
    wrap: bool = False  #: On a terminal, whether numbers may be broken into lines.


@dataclass(frozen=True)
class Picture:
    """A picture of a study."""

    name: str  #: Its file, without ``.png``.
    words: str  #: A sentence that describes it.
    draw: Callable[[], Figure]  #: Draws it.
    #: Dots per inch of its file, which matplotlib then writes directly; None writes it like all
    #: other pictures, see :func:`~hpcrowd.analysis.pictures.plots.figure_png`.
    dpi: int | None = None

    @classmethod
    def of(
        cls, name: str, draw: Callable[..., Figure], *arguments: Any, dpi: int | None = None
    ) -> Picture:
        """Return the picture that a function draws of its arguments; its docstring describes it."""
        return cls(name, (draw.__doc__ or name).strip(), lambda: draw(*arguments), dpi)

    def write(self, path: Path) -> None:
        """Draw it into a PNG file."""
        figure = self.draw()
        if self.dpi is None:
            path.write_bytes(figure_png(figure))
        else:
            figure.savefig(path, dpi=self.dpi, format="png")


def pictures_of(figures: Iterable[Callable[..., Figure]], *arguments: Any) -> list[Picture]:
    """Return the pictures of several functions, named like them, all with the same arguments."""
    return [Picture.of(draw.__name__, draw, *arguments) for draw in figures]


# ---- all of a study --------------------------------------------------------------------------


def show_study(study: PublishedStudy, console: Console) -> None:
    """Print tables, statements and a summary on a ``rich`` console."""
    for table in study.marked_tables():
        if table.terminal and table.rows:
            console.print(terminal_table(table))
    if study.claims:
        console.print("Statements of the text", style="bold")
    last = None
    for claim in study.claims:
        if claim.what != last:
            last = claim.what
            console.print(f"\n{claim.what} ({claim.section})", highlight=False)
        console.print(f"  {claim.setting}: {SHOWN[claim.holds]}: {claim.text}", highlight=False)
    console.print()
    for one in study.failures:
        where = f"{one.setting}: " if one.setting else ""
        console.print("not reached", style="red", end="")
        console.print(f": {where}{one.what}: {one.ours}, required {one.required}")
    for line in study.sentences():
        console.print(line, highlight=False)


def study_page(study: PublishedStudy, pictures: Iterable[tuple[str, bytes]]) -> str:
    """Return the HTML page of a study with tables, and pictures: what describes each, and a PNG."""
    tables = [
        f"<h2>{html.escape(table.title)}</h2>\n"
        + rows_table(table.heading, table.rows, words=table.left, cell=_in_html)
        for table in study.marked_tables()
        if table.html and table.rows
    ]
    return html_page(
        study.title,
        [f"{line}." for line in (study.source, *study.sentences())],
        [*tables, *(figure_of(png, words) for words, png in pictures)],
    )


def page_parts(summary: Iterable[str], tables: Iterable[Table]) -> dict[str, str]:
    """Return the generated parts of a page in Markdown, by name.

    The summary has no full stops. Tables with a part are on the page; several of one part have
    their titles.
    """
    texts: dict[str, dict[str, str]] = {}
    for table in tables:
        if table.part:
            text = markdown_table(table.heading, table.rows, table.left)
            texts.setdefault(table.part, {})[table.title] = text
    parts = {
        part: "\n\n".join(f"**{title}**\n\n{text}" for title, text in found.items())
        if len(found) > 1
        else "".join(found.values())
        for part, found in texts.items()
    }
    return {"summary": "\n".join(f"- {line}." for line in summary), **parts}


def write_study(study: PublishedStudy, folder: Path) -> None:
    """Write data, pictures and a page into a folder that is complete or absent."""
    with whole_folder(folder) as place:
        write_json(study.to_json(), place / f"{study.name}.json")
        write_csv(place / f"{study.name}.csv", *study.rows())
        pictures = study.pictures()
        write_pictures(pictures, place)
        drawn = [(one.words, (place / f"{one.name}.png").read_bytes()) for one in pictures]
        (place / "report.html").write_text(study_page(study, drawn), encoding="utf-8")
        provenance = {"study": study.name, **study.origin(), "versions": versions()}
        write_json(provenance, place / "provenance.json")


def write_pictures(pictures: Iterable[Picture], folder: Path, colours: int | None = None) -> None:
    """Write pictures as PNG into an existing folder.

    With a number of colours to keep, the files of pictures of lines, which need few, are a third as
    large.
    """
    for picture in pictures:
        with whole_file(folder / f"{picture.name}.png") as path:
            picture.write(path)
            if colours is not None:
                _reduce_colours(path, colours)


def _reduce_colours(path: Path, colours: int) -> None:
    from PIL import Image

    with Image.open(path) as image:
        small = image.convert("RGB").quantize(colours)
    small.save(path, "PNG", optimize=True)


# ---- requirements and statements -------------------------------------------------------------


def required_table(requirements: Sequence[Requirement], setting: str) -> Table:
    """Return the requirements as a table; ``setting`` heads their settings, if any has one."""
    first = 0 if any(one.setting for one in requirements) else 1
    heading = (setting, "what", "ours", "required", "reached")[first:]
    rows = [
        [one.setting, one.what, one.ours, one.required, VERDICTS[one.holds]][first:]
        for one in requirements
    ]
    return Table("Required", heading, rows, len(heading), "required")


def statement_table(claims: Iterable[Claim], settings: Iterable[str], about: str = "") -> Table:
    """Return statements as a table for pages: a row each, verdict and text for each setting.

    Those in other settings are left out; ``about`` says what they are about, if there are several
    tables.
    """
    columns = list(settings)
    rows: dict[str, dict[str, str]] = {}
    for claim in claims:
        if claim.setting in columns:
            row = rows.setdefault(f"{claim.what} ({claim.section})", {})
            row[claim.setting] = f"{VERDICTS[claim.holds]}: {claim.text}"
    return Table(
        f"Statements on {about}" if about else "Statements of the text",
        ["statement: measure; rule", *columns],
        [[what, *(row.get(one, "-") for one in columns)] for what, row in rows.items()],
        part=f"statements on {about}" if about else "statements",
        terminal=False,
    )


# ---- on a terminal ---------------------------------------------------------------------------


def terminal_table(table: Table) -> RichTable:
    """Return a table for a ``rich`` console, without Markdown; "no" and bold cells stand out.

    Published figures, in the columns ``paper``, are dim.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as View

    view = View(
        title=_plain(table.title), title_justify="left", title_style="bold", box=SIMPLE_HEAD,
        pad_edge=False, padding=0,
    )  # fmt: skip
    columns = table.columns or dict(enumerate(table.heading))
    for place, name in enumerate(columns.values()):
        dim = "dim" if name == "paper" else None
        if place < table.left:
            view.add_column(_plain(name), style=dim)
        else:
            view.add_column(_plain(name), style=dim, justify="right", no_wrap=not table.wrap)
    before = None
    for row in table.rows:
        cells = [_shown(row[place]) for place in columns]
        before, repeated = cells[0], table.once and cells[0] == before
        view.add_row("" if repeated else cells[0], *cells[1:])
    return view


def _shown(text: str) -> Text | str:
    """Return a cell without marks of Markdown; one that stands out is red."""
    from rich.text import Text

    return Text(_plain(text), "red") if _stands_out(text) else _plain(text)


def _in_html(text: str) -> str:
    """Return a cell in HTML; one that stands out is bold."""
    shown = html.escape(_plain(text))
    return f"<strong>{shown}</strong>" if _stands_out(text) else shown


def _stands_out(text: str) -> bool:
    return text == "no" or text.startswith("**")


def _plain(text: str) -> str:
    return text.replace("**", "").replace("`", "")


def range_text(values: Iterable[float | None], form: str, *, once: bool = True) -> str:
    """Return the range of the known values, such as ``1 to 3``; ``-`` without any.

    Two ends that are the same text are there once, unless ``once`` is false.
    """
    known = [one for one in values if one is not None and one == one]
    if not known:
        return "-"
    low, high = (format(one, form) for one in (min(known), max(known)))
    return low if once and low == high else f"{low} to {high}"


# ---- in Markdown -----------------------------------------------------------------------------


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> str:
    """Return a table in Markdown, the first ``left`` columns left-aligned."""
    ruler = [":---"] * left + ["---:"] * (len(heading) - left)
    lines = [heading, ruler, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def refresh_page(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with its generated parts, by name, replaced; others are left out."""
    for name, text in parts.items():
        begin, end = BEGIN.format(name), END.format(name)
        if begin not in page:
            continue
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page


# ---- other versions of logs -------------------------------------------------------------------
# A figure that rests on another version of a log cannot be expected to come out. A study declares
# how many jobs each log has here and in the paper; everything that it writes then says so.

#: Up to this part of the jobs a difference changes few figures; beyond it, figures are marked.
NEARLY = 0.001

#: Follows the name of a log whose figures rest on another version.
MARK = "\N{DAGGER}"


@dataclass(frozen=True)
class Version:
    """The number of jobs of a log here and in the paper."""

    log: str  #: Its name in the study.
    #: Jobs that are used here, and the number in the paper.
    jobs: int
    printed: int

    @property
    def differs(self) -> bool:
        """Whether figures on it are marked."""
        return abs(self.jobs - self.printed) > NEARLY * self.printed

    def line(self, where: str) -> str:
        """Return a sentence about the difference, without the full stop."""
        counts = f"{self.log}: {self.jobs:,} jobs, {self.printed:,} in {where}"
        if self.differs:
            return (
                f"{counts}: another version of the log, on which figures of {self.log}{MARK} rest"
            )
        return f"{counts}: nearly the same version of the log"


def version_lines(versions: Iterable[Version], where: str) -> list[str]:
    """Return a sentence for each log whose number of jobs is not that of the paper."""
    return [one.line(where) for one in versions if one.jobs != one.printed]


def marked(table: Table, versions: Iterable[Version]) -> Table:
    """Return a table that marks the names of logs that are another version.

    A name is marked in the columns of words, and at the end of a title, such as ``Waits, SDSC``.
    """
    names = {one.log for one in versions if one.differs}
    if not names:
        return table
    title = table.title
    if title.rpartition(", ")[2] in names:
        title = f"{title}{MARK}"
    rows = [
        [f"{cell}{MARK}" if place < table.left and cell in names else cell
         for place, cell in enumerate(row)]
        for row in table.rows
    ]  # fmt: skip
    heading = [f"{cell}{MARK}" if cell in names else cell for cell in table.heading]
    columns = table.columns and {
        place: f"{name}{MARK}" if name in names else name for place, name in table.columns.items()
    }
    return replace(table, title=title, heading=heading, rows=rows, columns=columns)
