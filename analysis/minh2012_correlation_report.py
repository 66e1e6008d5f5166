"""Minh 2012, chapter 7: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

import csv
import html
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.minh2012_correlation import POLICIES, Experiments, interval
from analysis.minh2012_correlation_claims import Claim, claims_of, load_name, number
from analysis.minh2012_correlation_data import runs_to_json
from analysis.minh2012_correlation_figures import figures_of, write_figures
from analysis.pages import HTML_HEAD, PLAIN_TABLE, markdown_table
from analysis.published import SOURCES
from analysis.results import versions, whole_folder, write_json

if TYPE_CHECKING:
    from rich.console import Console

#: Headings of Table 7.1 with ours.
TABLE = ("workload", "degree", "ours", "published")

#: Degrees whose slowdowns are told: the ends, the middle, and what real workloads have.
TOLD = (-1.0, -0.2, 0.0, 0.4, 1.0)

#: Headings of the weeks.
WEEKS = ("log", "weeks", "foretold", "share", "share if always the commoner sign")

#: What becomes of a statement, in tables and on a terminal.
VERDICTS = {True: "yes", False: "**no**", None: "open"}
SHOWN = {True: "holds", False: "[yellow]does not hold[/yellow]", None: "open"}

#: The source, without the table.
SOURCE = SOURCES["minh2012_table7_1"].partition(", Table")[0]


class Reproduction(Experiments):
    """The whole study: data, tables, and a folder with both and the pictures."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        return plain(self)

    def show(self, console: Console) -> None:
        """Print the tables on a console."""
        show(self, console)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write data, pictures and a page into a folder that is whole or absent."""
        write(self, folder)


def table_rows(study: Experiments) -> list[list[str]]:
    """Return Table 7.1 with ours."""
    return [
        [
            one.workload,
            f"{one.degree:+.1f}",
            f"{one.mean:+.3f} ± {one.deviation:.3f}",
            f"{one.published.value:+.3f} ± {one.published_deviation.text}",
        ]
        for one in study.table
    ]


def slowdown_table(study: Experiments) -> tuple[list[str], list[list[str]]]:
    """Return the mean slowdown of each policy at each load, with half its interval, as a table."""
    runs = study.correlation
    degrees = [degree for degree in TOLD if degree in runs.degrees]
    rows = []
    for policy in runs.policies:
        for load in runs.loads:
            values = [runs.of(policy, load)[runs.degrees.index(degree)] for degree in degrees]
            rows.append([POLICIES[policy].label, f"{load:g}", *map(_mean, map(interval, values))])
    told = [f"at {degree:+.2g}" if degree else "at 0" for degree in degrees]
    return ["policy", "load", *told], rows


def _mean(estimate: Any) -> str:
    half = estimate.half_width
    return number(estimate.mean) + ("" if half is None else f" ± {half:.2g}")


def week_rows(study: Experiments) -> list[list[str]]:
    """Return how well the sign of the correlation is foretold on each log."""
    return [
        [
            log,
            str(signs.compared),
            str(signs.right),
            "-" if signs.share is None else f"{100 * signs.share:.0f} %",
            "-" if signs.commoner is None else f"{100 * signs.commoner:.0f} %",
        ]
        for log, signs in study.weeks.items()
    ]


def claim_tables(study: Experiments) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Return the statements as tables: by load, by kind of workload, and over all logs."""
    groups = {
        "correlation": [load_name(load) for load in study.correlation.loads],
        "locality": [runs.name for runs in study.locality],
        "weeks": ["all logs"],
    }
    claims = claims_of(study)
    found = {}
    for group, settings in groups.items():
        own = [claim for claim in claims if claim.setting in settings]
        rows: dict[str, list[str]] = {}
        for claim in own:
            row = rows.setdefault(claim.name, [f"{claim.what} ({claim.section})"])
            row.append(f"{VERDICTS[claim.holds]}: {claim.text}")
        if rows:
            found[group] = (["statement: measure; rule", *settings], list(rows.values()))
    return found


def page_parts(study: Experiments) -> dict[str, str]:
    """Return the generated parts of the page on the study."""
    parts = {
        "table 7.1": markdown_table(TABLE, table_rows(study), 1),
        "slowdowns": markdown_table(*slowdown_table(study), 1),
        "weeks": markdown_table(WEEKS, week_rows(study), 1),
        "summary": "\n".join(f"- {line}." for line in summary(study, claims_of(study))),
    }
    for group, (heading, rows) in claim_tables(study).items():
        parts[f"statements on {group}"] = markdown_table(heading, rows, 1)
    return parts


def summary(study: Experiments, claims: Sequence[Claim]) -> list[str]:
    """Return what was reached, what holds, and which logs were not there, a line each."""
    required = study.requirements
    verdicts = Counter(claim.holds for claim in claims)
    lines = [
        f"{sum(one.holds for one in required)} of {len(required)} required figures reached; "
        f"of {len(claims)} statements, each in each setting, {verdicts[True]} hold, "
        f"{verdicts[False]} do not, and {verdicts[None]} stay open"
    ]
    if study.absent:
        lines.append(f"Logs of the study that are not there: {', '.join(study.absent)}")
    return lines


def show(study: Experiments, console: Console) -> None:
    """Print the tables and the statements on a ``rich`` console."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    look: dict[str, Any] = {**PLAIN_TABLE, "box": SIMPLE_HEAD}

    def print_table(title: str, heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        view = Table(title=title, **look)
        for place, words in enumerate(heading):
            view.add_column(words, justify="right" if place else "left")
        for row in rows:
            view.add_row(*row)
        console.print(view)

    print_table("Table 7.1: Spearman's correlation", TABLE, table_rows(study))
    print_table("Slowdown, no locality", *slowdown_table(study))
    print_table("Signs of weekly correlations foretold", WEEKS, week_rows(study))
    console.print("[bold]Statements of the text[/bold]")
    last = None
    for claim in claims_of(study):
        if claim.what != last:
            last = claim.what
            console.print(f"\n{claim.what} ({claim.section})", highlight=False)
        verdict = SHOWN[claim.holds]
        console.print(f"  {claim.setting}: {verdict}: {claim.text}", highlight=False)
    console.print()
    for one in study.requirements:
        if not one.holds:
            console.print(
                f"[red]not reached[/red]: {one.what}: {one.ours}, required {one.required}"
            )
    for line in summary(study, claims_of(study)):
        console.print(line, highlight=False)


def plain(study: Experiments) -> dict[str, Any]:
    """Return everything as plain data, fit for JSON."""
    claims = claims_of(study)
    return {
        "study": "minh2012-correlation",
        "sources": {name: text for name, text in SOURCES.items() if name == "minh2012_table7_1"},
        **runs_to_json(study),
        "table7_1": [
            {
                "workload": one.workload,
                "degree": one.degree,
                "correlation_mean": one.mean,
                "correlation_deviation": one.deviation,
                "published_mean": one.published.text,
                "published_deviation": one.published_deviation.text,
            }
            for one in study.table
        ],
        "statements": [asdict(claim) for claim in claims],
        "required": [asdict(one) for one in study.requirements],
        "reached": study.reached,
    }


def write(study: Experiments, folder: str | os.PathLike[str]) -> None:
    """Write ``minh2012-correlation.json``, ``.csv``, pictures, ``report.html``; whole or absent."""
    with whole_folder(folder) as place:
        write_json(plain(study), place / "minh2012-correlation.json")
        write_csv(study, place / "minh2012-correlation.csv")
        pictures = write_figures(study, place)
        (place / "report.html").write_text(report(study, pictures), encoding="utf-8")
        runs = study.correlation
        settings = {
            "replications": study.replications,
            "jobs": study.jobs,
            "seed": study.seed,
            "loads": runs.loads,
            "policies": {policy: POLICIES[policy].scheduler for policy in runs.policies},
        }
        origin = {"study": "minh2012-correlation", "traces": study.logs, "settings": settings}
        write_json({**origin, "versions": versions()}, place / "provenance.json")


def write_csv(study: Experiments, path: Path) -> None:
    """Write every simulation in long form, one a line."""
    runs = study.correlation
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ("workload", "policy", "load", "locality", "replication", "correlation", "slowdown")
        )
        for policy in runs.policies:
            for load in runs.loads:
                for degree, correlations, values in zip(
                    runs.degrees, runs.correlation, runs.of(policy, load), strict=True
                ):
                    for r, pair in enumerate(zip(correlations, values, strict=True)):
                        writer.writerow((f"HPC2N, {degree:+.1f}", policy, load, "off", r, *pair))
        for case in study.locality:
            for policy in case.policies:
                for locality, by_load in zip(("on", "off"), case.of(policy), strict=True):
                    for load, values in zip(case.loads, by_load, strict=True):
                        for r, pair in enumerate(zip(case.correlation, values, strict=True)):
                            writer.writerow((case.name, policy, load, locality, r, *pair))


def report(study: Experiments, pictures: Sequence[str]) -> str:
    """Return a page with the tables and the pictures beside it."""
    parts = [
        HTML_HEAD.format(title="Correlation, locality and schedulers, reproduced"),
        f"<p>{html.escape(SOURCE)}, chapter 7.</p>",
        *(f"<p>{html.escape(line)}.</p>" for line in summary(study, claims_of(study))),
        "<h2>Table 7.1: Spearman's correlation</h2>",
        html_table(TABLE, table_rows(study)),
        "<h2>Slowdown, no locality</h2>",
        html_table(*slowdown_table(study)),
        "<h2>Signs of weekly correlations foretold</h2>",
        html_table(WEEKS, week_rows(study)),
        "<h2>Statements of the text</h2>",
        *(html_table(heading, rows) for heading, rows in claim_tables(study).values()),
    ]
    draw = figures_of(study)
    for file in pictures:
        words = html.escape((draw[file.removesuffix(".png")].__doc__ or file).strip())
        parts.append(f'<h3>{words}</h3>\n<img src="{file}" alt="{words}">')
    return "\n".join([*parts, "</body></html>\n"])


def html_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first column is words; what does not hold stands out."""

    def cell(kind: str, place: int, text: str) -> str:
        mark = " class=word" if place == 0 else " class=failed" if "**no**" in text else ""
        return f"<{kind}{mark}>{html.escape(text.replace('**', ''))}</{kind}>"

    lines = [
        "<tr>" + "".join(cell(kind, place, text) for place, text in enumerate(row)) + "</tr>"
        for kind, row in (("th", heading), *(("td", row) for row in rows))
    ]
    return "<table>\n" + "\n".join(lines) + "\n</table>"
