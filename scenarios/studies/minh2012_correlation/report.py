"""Minh 2012, chapter 7: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.scenarios.studies.minh2012_correlation.data import runs_to_json
from hpcrowd.scenarios.studies.minh2012_correlation.figures import figures_of, write_figures
from hpcrowd.scenarios.studies.minh2012_correlation.statements import claims_of, load_name, number
from hpcrowd.scenarios.studies.minh2012_correlation.study import POLICIES, Experiments, interval
from hpcrowd.scenarios.studies.pages import markdown_table
from hpcrowd.scenarios.studies.published import SOURCES
from hpcrowd.scenarios.studies.report import (
    VERDICTS,
    Rows,
    StudyReport,
    console_table,
    html_page,
    html_section,
    html_table,
    show_statements,
)
from hpcrowd.scenarios.studies.study import Claim, as_data

if TYPE_CHECKING:
    from rich.console import Console


#: Headings of Table 7.1 with ours.
TABLE = ("workload", "degree", "ours", "published")

#: Degrees whose slowdowns are told: the ends, the middle, and what real workloads have.
TOLD = (-1.0, -0.2, 0.0, 0.4, 1.0)

#: Headings of the weeks.
WEEKS = ("log", "weeks", "foretold", "share", "share if always the commoner sign")

#: Headings of all simulations.
SIMULATION = ("workload", "policy", "load", "locality", "replication", "correlation", "slowdown")

#: The source, without the table.
SOURCE = SOURCES["minh2012_table7_1"].partition(", Table")[0]


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


def tables(study: Experiments) -> dict[str, Rows]:
    """Return the tables by their titles on a terminal and on a page in HTML."""
    return {
        "Table 7.1: Spearman's correlation": (TABLE, table_rows(study)),
        "Slowdown, no locality": slowdown_table(study),
        "Signs of weekly correlations foretold": (WEEKS, week_rows(study)),
    }


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
    verdicts = Counter(claim.holds for claim in claims)
    lines = [
        f"{study.score} required figures reached; "
        f"of {len(claims)} statements, each in each setting, {verdicts[True]} hold, "
        f"{verdicts[False]} do not, and {verdicts[None]} stay open"
    ]
    if study.absent:
        lines.append(f"Logs of the study that are not there: {', '.join(study.absent)}")
    return lines


def simulation_rows(study: Experiments) -> Iterator[tuple[Any, ...]]:
    """Yield every simulation as a row of :data:`SIMULATION`."""
    runs = study.correlation
    for policy in runs.policies:
        for load in runs.loads:
            for degree, correlations, values in zip(
                runs.degrees, runs.correlation, runs.of(policy, load), strict=True
            ):
                for r, pair in enumerate(zip(correlations, values, strict=True)):
                    yield (f"HPC2N, {degree:+.1f}", policy, load, "off", r, *pair)
    for case in study.locality:
        for policy in case.policies:
            for locality, by_load in zip(("on", "off"), case.of(policy), strict=True):
                for load, values in zip(case.loads, by_load, strict=True):
                    for r, pair in enumerate(zip(case.correlation, values, strict=True)):
                        yield (case.name, policy, load, locality, r, *pair)


class Reproduction(Experiments, StudyReport):
    """The whole study: data, tables, and a folder with both and the pictures."""

    name = "minh2012-correlation"

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        return {
            "study": self.name,
            "sources": {"minh2012_table7_1": SOURCES["minh2012_table7_1"]},
            **runs_to_json(self),
            "table7_1": [
                {
                    "workload": one.workload,
                    "degree": one.degree,
                    "correlation_mean": one.mean,
                    "correlation_deviation": one.deviation,
                    "published_mean": one.published.text,
                    "published_deviation": one.published_deviation.text,
                }
                for one in self.table
            ],
            "statements": as_data(claims_of(self), "setting"),
            "required": as_data(self.requirements, None),
            "reached": self.reached,
        }

    def show(self, console: Console) -> None:
        """Print the tables and the statements on a ``rich`` console."""
        for title, (heading, rows) in tables(self).items():
            console.print(console_table(title, heading, rows, 1, wrap=True))
        claims = claims_of(self)
        show_statements(console, claims, self.failures, summary(self, claims))

    def rows(self) -> Rows:
        """Return every simulation."""
        return SIMULATION, simulation_rows(self)

    def origin(self) -> dict[str, Any]:
        """Return the traces, and the settings of the simulations."""
        runs = self.correlation
        settings = {
            "replications": self.replications,
            "jobs": self.jobs,
            "seed": self.seed,
            "loads": runs.loads,
            "policies": {policy: POLICIES[policy].scheduler for policy in runs.policies},
        }
        return {"traces": self.logs, "settings": settings}

    def write_pictures(self, place: Path) -> list[str]:
        """Write the pictures into a folder and return the names of the files."""
        return write_figures(self, place)

    def page(self, pictures: Sequence[str]) -> str:
        """Return a page in HTML with the tables and the pictures beside it."""
        draw = figures_of(self)
        return html_page(
            "Correlation, locality and schedulers, reproduced",
            [f"{SOURCE}, chapter 7", *summary(self, claims_of(self))],
            [
                *(html_section(title, *table, 1) for title, table in tables(self).items()),
                "<h2>Statements of the text</h2>",
                *(html_table(heading, rows, 1) for heading, rows in claim_tables(self).values()),
            ],
            [(file, draw[file.removesuffix(".png")]) for file in pictures],
        )
