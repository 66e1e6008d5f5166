"""What HTML reports are made of: a page, pictures, tables, where numbers come from.

Pages are single files without scripts that load nothing. :mod:`analysis.report.runs` has the report
on runs.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from hpcrowd.analysis.metrics import METRICS, PERCENTILES, format_metric
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import Clock

#: Metrics whose distribution over users the report shows.
OVER_USERS = ("wait_mean_s", "response_mean_s", "bounded_slowdown_mean")

STYLE = """
:root { color-scheme: light; }
html { font-size: 16px; }
body { font: 1rem/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; color: #1a1a1a;
  background: white; max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin-bottom: .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .6rem; border-bottom: 1px solid #bbb; }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
p, li { max-width: 46rem; }
a { color: #00507d; }
nav { border: 1px solid #ccc; padding: .5rem 1rem; margin: 1.2rem 0; font-size: .92rem; }
nav ul { list-style: none; margin: 0; padding: 0; columns: 14rem auto; }
.quiet { color: #555; font-size: .9rem; break-after: avoid; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; margin-bottom: 1.2rem; }
caption { text-align: left; color: #555; padding-bottom: .4rem; }
th, td { padding: .28rem .9rem .28rem 0; text-align: left; vertical-align: top; }
thead th { border-bottom: 1.5px solid #1a1a1a; vertical-align: bottom; }
tbody tr { border-bottom: 1px solid #e3e3e3; }
tbody th { font-weight: 400; font-family: ui-monospace, Consolas, monospace; font-size: .82rem;
  white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
thead .number { white-space: normal; min-width: 4.5rem; }
tbody th.name { font: inherit; }
tbody th.title { font: inherit; font-size: .88rem; white-space: normal; min-width: 13rem; }
.reason { text-align: right; color: #777; font-size: .8rem; min-width: 6.5rem; }
.meaning { color: #555; min-width: 14rem; }
figure { margin: 1.2rem 0 2rem; }
figure img { width: 100%; height: auto; }
figcaption { color: #555; font-size: .9rem; max-width: 46rem; }
code { font-family: ui-monospace, Consolas, monospace; font-size: .85em; overflow-wrap: anywhere; }
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
  figure img { max-height: 235mm; object-fit: contain; object-position: left; }
  .quiet, .meaning, caption, figcaption { color: #333; }
  .wide { overflow-x: visible; }
}
"""


#: Tables with at most so many rows are not divided between pages.
SHORT = 25

#: Longer settings are cut where a page tells them.
MOST_LETTERS = 600

#: What the head of a page says made it; files that say so may be replaced by another report.
GENERATOR = '<meta name="generator" content="hpcrowd">'


class Picture(NamedTuple):
    """A picture of a report."""

    png: bytes
    caption: str  #: what is to be seen
    title: str = ""  #: what the picture is called, for those who cannot see it


class Section(NamedTuple):
    """A part of a page with a heading of its own."""

    name: str  #: for links to it
    title: str
    parts: list[str]  #: HTML


def html_page(title: str, lead: Iterable[str], parts: Iterable[str]) -> str:
    """Return a page with a heading, paragraphs of text, and parts that are HTML already."""
    text = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(words)}</p>" for words in lead)]
    body = "\n".join([*text, *parts])
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
        f"{GENERATOR}\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def sections_of(sections: Sequence[Section]) -> list[str]:
    """Return a table of contents, then the sections."""
    entries = "".join(f'<li><a href="#{one.name}">{escape(one.title)}</a></li>' for one in sections)
    found = [f'<nav aria-label="Contents"><ul>{entries}</ul></nav>']
    for one in sections:
        body = "\n".join(one.parts)
        found.append(f'<section id="{one.name}">\n<h2>{escape(one.title)}</h2>\n{body}\n</section>')
    return found


def paragraphs(sentences: Iterable[str]) -> list[str]:
    """Return plain text as paragraphs."""
    return [f"<p>{escape(text)}</p>" for text in sentences]


def list_of(lines: Iterable[str]) -> str:
    """Return lines of plain text as a list."""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def figure_of(picture: Picture) -> str:
    """Return a picture with its caption as HTML."""
    data = b64encode(picture.png).decode("ascii")
    caption = escape(picture.caption)
    alt = f"{escape(picture.title)}. {caption}" if picture.title else caption
    return (
        f'<figure><img alt="{alt}" src="data:image/png;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def rows_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: int = 1,
    remark: bool = False,
    caption: str = "",
) -> str:
    """Return a table of plain text.

    Parameters
    ----------
    head, rows
        What it holds; the first cell of a row names it.
    words
        Columns of words at the left; those behind them are numbers, to the right.
    remark
        Whether the last column holds words, too.
    caption
        What it shows.
    """
    kinds = ["" if place < words else ' class="number"' for place in range(len(head))]
    if remark:
        kinds[-1] = ' class="meaning"'
    names = "".join(
        f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(head, kinds, strict=True)
    )
    lines = []
    for first, *others in rows:
        cells = "".join(
            f"<td{kind}>{escape(text)}</td>" for text, kind in zip(others, kinds[1:], strict=True)
        )
        lines.append(f'<tr><th scope="row" class="name">{escape(first)}</th>{cells}</tr>')
    short = ' class="short"' if len(lines) <= SHORT else ""
    told = f'<p class="quiet">{escape(caption)}</p>\n' if caption else ""
    named = f' aria-label="{escape(caption)}"' if caption else ""
    body = "\n".join(lines)
    return (
        f'{told}<div class="wide"><table{short}{named}>\n<thead><tr>{names}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def table_of(head: Sequence[str], rows: Iterable[tuple[str, Sequence[str], str]], last: str) -> str:
    """Return a table: names, one number per run, and a remark headed ``last``."""
    names = "".join(f'<th scope="col" class="number">{escape(name)}</th>' for name in head)
    lines = [
        f'<div class="wide"><table>\n<thead><tr><th></th>{names}'
        f'<th scope="col">{escape(last)}</th></tr></thead>\n<tbody>'
    ]
    for name, values, remark in rows:
        cells = "".join(f'<td class="number">{escape(value)}</td>' for value in values)
        lines.append(
            f'<tr><th scope="row">{escape(name)}</th>{cells}'
            f'<td class="meaning">{escape(remark)}</td></tr>'
        )
    return "\n".join([*lines, "</tbody></table></div>"])


def metrics_table(runs: Sequence[Run]) -> str:
    """Return the metrics, without those that no run has and counts that are 0 everywhere."""
    rows = []
    for metric in METRICS:
        values = [run.metrics[metric.name] for run in runs]
        if any(values) or metric.name in ("jobs_in", "jobs_completed", "wait_mean_s"):
            shown = [format_metric(metric.name, value) for value in values]
            rows.append((metric.name, shown, metric.meaning))
    return table_of([run.label for run in runs], rows, "meaning")


def users_table(runs: Sequence[Run]) -> str:
    """Return percentiles over users of :data:`OVER_USERS`, a column for each run."""
    meanings = {metric.name: metric.meaning for metric in METRICS}
    rows = [
        (
            f"{name} p{p}",
            [format_metric(name, run.metrics["per_user"][name][f"p{p}"]) for run in runs],
            f"{p} % of the users have less" + ("" if place else f"; {meanings[name]}"),
        )
        for name in OVER_USERS
        for place, p in enumerate(PERCENTILES)
    ]
    return table_of([run.label for run in runs], rows, "")


def origin_of(
    labels: Sequence[str],
    found: Sequence[Mapping[str, Any]],
    clock: Clock,
    again: str | Sequence[str] = "",
) -> str:
    """Return configuration, versions and clock: what the runs share once, what differs by run.

    Parameters
    ----------
    labels, found
        Name and :func:`~hpcrowd.analysis.results.provenance` of each run.
    clock
        Of the first.
    again
        Command that makes the same again, or several.
    """
    keys = list(dict.fromkeys(key for one in found for key in one["configuration"]))
    values = {key: [_plain(one["configuration"].get(key)) for one in found] for key in keys}
    shared = {key: _cut(texts[0]) for key, texts in values.items() if len(set(texts)) == 1}
    lines = [f"{key} <code>{escape(text)}</code>" for key, text in shared.items()]
    traces = {one["trace"]["source"]: one["trace"]["sha256"] for one in found if one["trace"]}
    lines += [f"trace {escape(name)}, SHA-256 <code>{sha}</code>" for name, sha in traces.items()]
    lines.append(
        f"Local times are those of {escape(str(clock.zone))}; second 0 is "
        + f"{clock.local(0):%A %Y-%m-%d %H:%M}"
        + (f" ({clock.note})." if clock.note else ".")
    )
    versions = ", ".join(f"{name} {text}" for name, text in found[0]["versions"].items())
    lines.append(f"Versions: {escape(versions)}.")
    commands = [again] if isinstance(again, str) else again
    lines += [f"Again: <code>{escape(command)}</code>" for command in commands if command]
    parts = ["<p class='quiet'>" + "<br>\n".join(lines) + "</p>"]
    if len(shared) < len(keys):
        rows = [(key, [*map(_cut, values[key])], "") for key in keys if key not in shared]
        parts.append(table_of(labels, rows, ""))
    return "\n".join(parts)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    """Return a setting without the rest of long ones, such as whole models."""
    if len(text) <= MOST_LETTERS:
        return text
    return f"{text[:MOST_LETTERS]}… ({len(text):,} characters, whole in provenance.json)"
