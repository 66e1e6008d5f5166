"""The building blocks of HTML reports: page, pictures, tables, origin of the numbers.

A page is a single file that loads nothing, and has no scripts unless it is interactive. It follows
the light or dark colours of the reader's system; pictures stay on a light card. The report on runs
is in :mod:`analysis.report.runs`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from hpcrowd.environment.clock import Clock

#: Colours as they are on paper and light screens, and on dark ones; text has a contrast of at least
#: 4.5 to 1 to the ground.
LIGHT = {
    "ground": "#ffffff", "ink": "#1a1a1a", "quiet": "#555555", "line": "#e3e3e3",
    "rule": "#bbbbbb", "link": "#00507d", "card": "#ffffff", "head": "#f6f7f8",
}  # fmt: skip
DARK = {
    "ground": "#15181b", "ink": "#e6e7e8", "quiet": "#b3b9bf", "line": "#2d3237",
    "rule": "#555c63", "link": "#7cc4f5", "card": "#f4f4f2", "head": "#1e2226",
}  # fmt: skip


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


STYLE = (
    f"""
:root {{ color-scheme: light dark; {_variables(LIGHT)} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
"""
    + """
html { font-size: 16px; }
body { font: 1rem/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; color: var(--ink);
  background: var(--ground); max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin-bottom: .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .6rem; border-bottom: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
p, li { max-width: 46rem; overflow-wrap: break-word; }
a { color: var(--link); }
nav { border: 1px solid var(--rule); border-radius: 4px; padding: .5rem 1rem; margin: 1.2rem 0;
  font-size: .92rem; background: var(--head); }
nav ul { list-style: none; margin: 0; padding: 0; columns: 14rem auto; }
.quiet { color: var(--quiet); font-size: .9rem; break-after: avoid; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; margin-bottom: 1.2rem; }
caption { text-align: left; color: var(--quiet); padding-bottom: .4rem; }
th, td { padding: .28rem .9rem .28rem 0; text-align: left; vertical-align: top; }
thead th { border-bottom: 1.5px solid var(--ink); vertical-align: bottom; }
tbody tr { border-bottom: 1px solid var(--line); }
tbody th { font-weight: 400; white-space: nowrap; position: sticky; left: 0;
  background: var(--ground); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
thead .number { white-space: normal; min-width: 4.5rem; }
tbody th.name { font: inherit; }
tbody th.title { font: inherit; font-size: .88rem; white-space: normal; min-width: 13rem; }
.reason { text-align: right; color: var(--quiet); font-size: .8rem; min-width: 6.5rem; }
.meaning { color: var(--quiet); min-width: 14rem; }
figure { margin: 1.2rem 0 2rem; }
.card { overflow-x: auto; }
figure img { display: block; width: 100%; height: auto; }
figure.chart noscript { color: var(--quiet); }
.chart-title { margin: .8rem 0 0; font-size: .92rem; max-width: none; }
figcaption { color: var(--quiet); font-size: .9rem; max-width: 46rem; margin-top: .3rem; }
code { font-family: ui-monospace, Consolas, monospace; font-size: .85em; overflow-wrap: anywhere; }
@media screen and (prefers-color-scheme: dark) {
  .card { background: var(--card); border-radius: 6px; padding: .5rem; }
  .card img { mix-blend-mode: multiply; }
}
@media screen and (max-width: 48rem) {
  body { margin: 1rem auto; }
  .card img { min-width: 44rem; }
  td.meaning { min-width: 18rem; }
}
@page { margin: 15mm; }
@media print {
  html { font-size: 10.5px; }
  body { max-width: none; margin: 0; padding: 0; color: black; }
  figure, tr, nav { break-inside: avoid; }
  table.short { break-inside: avoid; }
  thead { display: table-header-group; }
  h1, h2, h3, caption { break-after: avoid; }
  h2 { margin-top: 1.6rem; }
  p, li { orphans: 3; widows: 3; }
  a { color: black; text-decoration: none; }
  nav { background: none; }
  figure img { max-height: 235mm; object-fit: contain; object-position: left; }
  .quiet, .meaning, caption, figcaption { color: #333; }
  .wide, .card { overflow-x: visible; }
}
"""
)

#: Tables with at most this many rows are not split across printed pages.
SHORT = 25

#: Names of rows are wrapped in tables in which one is longer.
LONG = 60

#: Longer settings are cut off on a page.
MOST_LETTERS = 600

#: Marks a page as written by hpcrowd; only such files may be replaced by another report.
GENERATOR = '<meta name="generator" content="hpcrowd">'


class Section(NamedTuple):
    """A part of a page with its own heading."""

    name: str  #: anchor for links
    title: str
    parts: list[str]  #: HTML


def html_page(
    title: str, lead: Iterable[str], parts: Iterable[str], scripts: Iterable[str] = ()
) -> str:
    """Return a page: a heading, paragraphs of plain text, and parts that already are HTML.

    ``scripts`` are put at its end; without any, the page forbids the browser to run scripts.
    """
    text = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(words)}</p>" for words in lead)]
    ends = [f"<script>{script}</script>" for script in scripts]
    body = "\n".join([*text, *parts, *ends])
    may = "; script-src 'unsafe-inline'" if ends else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        f"content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'{may}\">\n"
        f"{GENERATOR}\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def sections_of(sections: Sequence[Section]) -> list[str]:
    """Return a table of contents and the sections."""
    entries = "".join(f'<li><a href="#{one.name}">{escape(one.title)}</a></li>' for one in sections)
    found = [f'<nav aria-label="Contents"><ul>{entries}</ul></nav>']
    for one in sections:
        body = "\n".join(one.parts)
        found.append(f'<section id="{one.name}">\n<h2>{escape(one.title)}</h2>\n{body}\n</section>')
    return found


def paragraphs(sentences: Iterable[str]) -> list[str]:
    """Return sentences of plain text as paragraphs."""
    return [f"<p>{escape(text)}</p>" for text in sentences]


def list_of(lines: Iterable[str]) -> str:
    """Return lines of plain text as a list."""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def figure_of(png: bytes, caption: str, title: str = "") -> str:
    """Return a picture with its caption as HTML; ``title`` is a short name, for screen readers."""
    data = b64encode(png).decode("ascii")
    caption = escape(caption)
    alt = f"{escape(title)}. {caption}" if title else caption
    return (
        f'<figure><div class="card"><img alt="{alt}" src="data:image/png;base64,{data}"></div>'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def table_html(head: str, lines: Iterable[str], attributes: str = "") -> str:
    """Return a table; ``head`` and ``lines`` already are HTML."""
    body = "\n".join(lines)
    return (
        f'<div class="wide"><table{attributes}>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def small_print(
    lines: Iterable[str], versions: Mapping[str, str], commands: Iterable[str] = ()
) -> str:
    """Return lines of HTML, the versions, and the commands that make the page again."""
    told = ", ".join(f"{name} {text}" for name, text in versions.items())
    again = [f"Again: <code>{escape(command)}</code>" for command in commands if command]
    body = "<br>\n".join([*lines, f"Versions: {escape(told)}.", *again])
    return f"<p class='quiet'>{body}</p>"


def rows_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: int = 1,
    remark: bool = False,
    caption: str = "",
    cell: Callable[[str], str] = escape,
) -> str:
    """Return a table of plain text; the first cell of a row is its name.

    The ``words`` leading columns hold words, the others numbers, aligned right; with a ``remark``
    the last one holds words as well. ``cell`` makes HTML of the text of a cell.
    """
    kinds = ["" if place < words else ' class="number"' for place in range(len(head))]
    if remark:
        kinds[-1] = ' class="meaning"'
    names = "".join(
        f'<th scope="col"{kind}>{cell(name)}</th>' for name, kind in zip(head, kinds, strict=True)
    )
    rows, lines = list(rows), []
    wraps = "title" if any(len(row[0]) > LONG for row in rows) else "name"
    for first, *others in rows:
        cells = "".join(
            f"<td{kind}>{cell(text)}</td>" for text, kind in zip(others, kinds[1:], strict=True)
        )
        lines.append(f'<tr><th scope="row" class="{wraps}">{cell(first)}</th>{cells}</tr>')
    short = ' class="short"' if len(lines) <= SHORT else ""
    told = f'<p class="quiet">{escape(caption)}</p>\n' if caption else ""
    named = f' aria-label="{escape(caption)}"' if caption else ""
    return told + table_html(names, lines, f"{short}{named}")


def table_of(head: Sequence[str], rows: Iterable[tuple[str, Sequence[str], str]], last: str) -> str:
    """Return a table with a name, one number per run, and a remark in each row.

    ``last`` is the heading of the remarks; without it and without remarks there is no such column.
    """
    names = "".join(f'<th scope="col" class="number">{escape(name)}</th>' for name in head)
    found = list(rows)
    remarked = bool(last) or any(remark for *_, remark in found)
    lines = []
    for name, values, remark in found:
        cells = "".join(f'<td class="number">{escape(value)}</td>' for value in values)
        end = f'<td class="meaning">{escape(remark)}</td>' if remarked else ""
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{cells}{end}</tr>')
    end = f'<th scope="col">{escape(last)}</th>' if remarked else ""
    return table_html(f"<th></th>{names}{end}", lines)


def origin_of(
    labels: Sequence[str],
    found: Sequence[Mapping[str, Any]],
    clock: Clock,
    again: str | Sequence[str] = "",
) -> str:
    """Return configuration, versions and clock: shared settings once, the others for each run.

    Of each run there are the label and the :func:`~hpcrowd.analysis.results.provenance`; the clock
    is that of the first; ``again`` are commands that make the page again.
    """
    keys = list(dict.fromkeys(key for one in found for key in one["configuration"]))
    values = {key: [_plain(one["configuration"].get(key)) for one in found] for key in keys}
    shared = {key: _cut(texts[0]) for key, texts in values.items() if len(set(texts)) == 1}
    lines = [f"{key} <code>{escape(text)}</code>" for key, text in shared.items()]
    traces = {one["trace"]["source"]: one["trace"]["sha256"] for one in found if one["trace"]}
    lines += [f"trace {escape(name)}, SHA-256 <code>{sha}</code>" for name, sha in traces.items()]
    lines.append(
        f"Time zone: {escape(str(clock.zone))}; second 0 is "
        + f"{clock.local(0):%A %Y-%m-%d %H:%M}"
        + (f" ({clock.note})." if clock.note else ".")
    )
    commands = [again] if isinstance(again, str) else again
    parts = [small_print(lines, found[0]["versions"], commands)]
    if len(shared) < len(keys):
        rows = [(key, [*map(_cut, values[key])], "") for key in keys if key not in shared]
        parts.append(table_of(labels, rows, ""))
    return "\n".join(parts)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    """Return a setting; long ones, such as whole models, are cut off."""
    if len(text) <= MOST_LETTERS:
        return text
    return f"{text[:MOST_LETTERS]}… ({len(text):,} characters, in full in provenance.json)"
