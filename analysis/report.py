"""A report on one or several runs: a single HTML file without scripts and without the network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from analysis.metrics import METRICS, PERCENTILES
from analysis.results import provenance
from analysis.run import Run
from environment.clock import Clock
from environment.quantities import format_duration

#: Metrics whose distribution over users the report shows.
OVER_USERS = ("wait_mean_s", "response_mean_s", "bounded_slowdown_mean")

STYLE = """
:root { color-scheme: light; }
html { font-size: 16px; }
body { font: 1rem/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; color: #1a1a1a;
  background: white; max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin-bottom: .3rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p { max-width: 46rem; }
.quiet { color: #555; font-size: .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; }
caption { text-align: left; color: #555; padding-bottom: .4rem; }
th, td { padding: .28rem .9rem .28rem 0; text-align: left; vertical-align: top; }
thead th { border-bottom: 1.5px solid #1a1a1a; vertical-align: bottom; }
tbody tr { border-bottom: 1px solid #e3e3e3; }
tbody th { font-weight: 400; font-family: ui-monospace, Consolas, monospace; font-size: .82rem;
  white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
thead .number { white-space: normal; min-width: 4.5rem; }
tbody th.title { font: inherit; font-size: .88rem; white-space: normal; min-width: 13rem; }
.reason { text-align: right; color: #777; font-size: .8rem; min-width: 6.5rem; }
.meaning { color: #555; min-width: 14rem; }
figure { margin: 1.2rem 0 2rem; }
figure img { width: 100%; height: auto; }
figcaption { color: #555; font-size: .9rem; max-width: 46rem; }
code { font-family: ui-monospace, Consolas, monospace; font-size: .85em; overflow-wrap: anywhere; }
@media print {
  html { font-size: 11px; }
  body { max-width: none; margin: 0; padding: 0; }
  figure, tr { break-inside: avoid; }
  h2 { break-after: avoid; }
  .wide { overflow-x: visible; }
}
"""


class Picture(NamedTuple):
    """A picture of a report."""

    png: bytes
    caption: str  #: what is to be seen


def html_report(
    runs: Sequence[Run],
    *,
    title: str,
    lead: Iterable[str] = (),
    pictures: Iterable[Picture] = (),
    again: str = "",
) -> str:
    """Return the report: what is to be seen, the metrics side by side, pictures, where it is from.

    Parameters
    ----------
    runs
        At least one.
    title
        Heading.
    lead
        Paragraphs that say what is to be seen.
    pictures
        Pictures, which become part of the file.
    again
        Command that makes the same again.
    """
    parts = [figure_of(picture) for picture in pictures]
    parts += ["<h2>Metrics</h2>", _metrics_table(runs)]
    parts += ["<h2>From user to user</h2>", _users_table(runs)]
    labels, found = [run.label for run in runs], [provenance(run) for run in runs]
    parts += ["<h2>Where this comes from</h2>", origin_of(labels, found, runs[0].clock, again)]
    return html_page(title, lead, parts)


def html_page(title: str, lead: Iterable[str], parts: Iterable[str]) -> str:
    """Return a page with a heading, paragraphs of text, and parts that are HTML already."""
    text = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(words)}</p>" for words in lead)]
    body = "\n".join([*text, *parts])
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def format_metric(name: str, value: float | None) -> str:
    """Return the value of a metric for people, by the unit in its name."""
    if value is None:
        return "-"
    if name.startswith("jobs_"):
        return f"{value:,.0f}"
    if name.endswith("_s"):
        return format_duration(value)
    if name == "utilization":
        return f"{100 * value:.1f} %"
    return f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}"


def figure_of(picture: Picture) -> str:
    """Return a picture with its caption as HTML."""
    data = b64encode(picture.png).decode("ascii")
    caption = escape(picture.caption)
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
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


def _metrics_table(runs: Sequence[Run]) -> str:
    """Return the metrics, without those that no run has and counts that are 0 everywhere."""
    rows = []
    for metric in METRICS:
        values = [run.metrics[metric.name] for run in runs]
        if any(values) or metric.name in ("jobs_in", "jobs_completed", "wait_mean_s"):
            shown = [format_metric(metric.name, value) for value in values]
            rows.append((metric.name, shown, metric.meaning))
    return table_of([run.label for run in runs], rows, "meaning")


def _users_table(runs: Sequence[Run]) -> str:
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
    labels: Sequence[str], found: Sequence[Mapping[str, Any]], clock: Clock, again: str = ""
) -> str:
    """Return configuration, versions and clock: what the runs share once, what differs by run.

    Parameters
    ----------
    labels, found
        Name and :func:`~analysis.results.provenance` of each run.
    clock
        Of the first.
    again
        Command that makes the same again.
    """
    keys = list(dict.fromkeys(key for one in found for key in one["configuration"]))
    values = {key: [_plain(one["configuration"].get(key)) for one in found] for key in keys}
    shared = {key: texts[0] for key, texts in values.items() if len(set(texts)) == 1}
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
    if again:
        lines.append(f"Again: <code>{escape(again)}</code>")
    parts = ["<p class='quiet'>" + "<br>\n".join(lines) + "</p>"]
    if len(shared) < len(keys):
        rows = [(key, values[key], "") for key in keys if key not in shared]
        parts.append(table_of(labels, rows, ""))
    return "\n".join(parts)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
