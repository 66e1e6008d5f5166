"""Minh 2012, chapter 6: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.scenarios.studies.minh2012_arrivals.data import runs_to_json
from hpcrowd.scenarios.studies.minh2012_arrivals.figures import FIGURES, write_figures
from hpcrowd.scenarios.studies.minh2012_arrivals.statements import claims_of, grid_load_name
from hpcrowd.scenarios.studies.minh2012_arrivals.study import (
    LEIDEN,
    MEASURES,
    POLICIES,
    Experiments,
    Floats,
    interval,
)
from hpcrowd.scenarios.studies.minh2012_correlation.statements import load_name, number
from hpcrowd.scenarios.studies.pages import markdown_table
from hpcrowd.scenarios.studies.published import MINH
from hpcrowd.scenarios.studies.report import (
    VERDICTS,
    Rows,
    StudyReport,
    console_table,
    html_page,
    html_section,
    html_table,
    required_rows,
    show_statements,
)
from hpcrowd.scenarios.studies.study import Claim, as_data
from hpcrowd.scenarios.unfinished import Unfinished

if TYPE_CHECKING:
    from rich.console import Console


#: Headings of what is required, and of all simulations.
REQUIRED = ("where", "slowdown", "ours", "required", "reached")
SIMULATION = ("experiment", "policy", "load", "grid", "background", "measure", "replication",
              "slowdown")  # fmt: skip

#: Titles of the tables on the grid, with the measures they show.
GRID_TABLES = {
    "Slowdown of local jobs of the LU": LEIDEN,
    "Slowdown of grid jobs": "grid",
    "Slowdown of local jobs of the LU, all of them": "LU all",
    "Slowdown of all jobs on the LU, since they joined its queue": "LU shared",
}

#: The source, without the table.
SOURCE = MINH


def cluster_table(study: Experiments) -> tuple[list[str], list[list[str]]]:
    """Return the mean slowdown of each policy with each pattern, with half its interval."""
    runs = study.cluster
    rows = [
        [
            f"{POLICIES[policy].label}, b_{pattern}",
            *(_mean(runs.of(policy, load, pattern)) for load in runs.loads),
        ]
        for policy in runs.policies
        for pattern in runs.patterns
    ]
    return ["policy, pattern", *map(load_name, runs.loads)], rows


def grid_table(study: Experiments, measure: str) -> tuple[list[str], list[list[str]]]:
    """Return the mean of a measure by both patterns, with half its interval."""
    runs = study.grid
    rows = [
        [
            f"g_{own}, b_{behind}",
            *(_mean(runs.of(measure, load, own, behind)) for load in runs.loads),
        ]
        for own in runs.patterns
        for behind in runs.patterns
    ]
    return ["grid, background", *map(grid_load_name, runs.loads)], rows


def _mean(values: Floats) -> str:
    estimate = interval(values)
    half = estimate.half_width
    if half is None:
        return number(estimate.mean)
    return f"{number(estimate.mean)} ± {number(half) if half >= 10 else f'{half:.2g}'}"


def claim_tables(study: Experiments) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Return the statements as tables with a column for each load: cluster, and grid."""
    groups = {
        "cluster": [load_name(load) for load in study.cluster.loads],
        "grid": [grid_load_name(load) for load in study.grid.loads],
    }
    claims, found = claims_of(study), {}
    for group, settings in groups.items():
        rows: dict[str, dict[str, str]] = {}
        for claim in claims:
            if claim.setting in settings:
                row = rows.setdefault(f"{claim.what} ({claim.section})", {})
                row[claim.setting] = f"{VERDICTS[claim.holds]}: {claim.text}"
        table = [[what, *(row.get(one, "-") for one in settings)] for what, row in rows.items()]
        found[group] = (["statement: measure; rule", *settings], table)
    return found


def verdict_table(study: Experiments) -> tuple[list[str], list[list[str]]]:
    """Return how often each statement holds, does not, and stays open, over loads."""
    counts: dict[str, Counter[bool | None]] = {}
    for claim in claims_of(study):
        what = f"{claim.what.rpartition(': ')[0] or claim.what} ({claim.section})"
        counts.setdefault(what, Counter())[claim.holds] += 1
    rows = [
        [what, *(str(verdicts[verdict]) for verdict in (True, False, None))]
        for what, verdicts in counts.items()
    ]
    return ["statement", "loads at which it holds", "does not", "open"], rows


def tables(study: Experiments) -> dict[str, Rows]:
    """Return the tables by their titles on a terminal and on a page in HTML."""
    return {
        "Slowdown on a single cluster": cluster_table(study),
        **{title: grid_table(study, measure) for title, measure in GRID_TABLES.items()},
    }


def page_parts(study: Experiments) -> dict[str, str]:
    """Return the generated parts of the page on the study."""
    required = required_rows(study.requirements)
    parts = {
        "summary": "\n".join(f"- {line}." for line in summary(study, claims_of(study))),
        "required": markdown_table(REQUIRED, required, 2),
        "verdicts": markdown_table(*verdict_table(study), 1),
        "slowdowns on the cluster": markdown_table(*cluster_table(study), 1),
    }
    for title, measure in GRID_TABLES.items():
        parts[title] = markdown_table(*grid_table(study, measure), 1)
    for group, (heading, rows) in claim_tables(study).items():
        parts[f"statements on the {group}"] = markdown_table(heading, rows, 1)
    return parts


def summary(study: Experiments, claims: Sequence[Claim]) -> list[str]:
    """Return what was reached and what holds."""
    verdicts = Counter(claim.holds for claim in claims)
    return [
        f"{study.score} required orders reached; "
        f"of {len(claims)} statements, each at each load, {verdicts[True]} hold, "
        f"{verdicts[False]} do not, and {verdicts[None]} stay open"
    ]


def simulation_rows(study: Experiments) -> Iterator[tuple[Any, ...]]:
    """Yield every slowdown as a row of :data:`SIMULATION`."""
    cluster, grid = study.cluster, study.grid
    for policy in cluster.policies:
        for load in cluster.loads:
            for pattern in cluster.patterns:
                for r, value in enumerate(cluster.of(policy, load, pattern)):
                    yield ("cluster", policy, load, "", pattern, "all jobs", r, value)
    for measure in MEASURES:
        for load in grid.loads:
            for own in grid.patterns:
                for behind in grid.patterns:
                    for r, value in enumerate(grid.of(measure, load, own, behind)):
                        yield ("grid", "easy", load, own, behind, measure, r, value)


class Reproduction(Experiments, StudyReport):
    """The whole study: data, tables, and a folder with both and the pictures."""

    name = "minh2012-arrivals"
    about = "Minh 2012, chapter 6: what arrivals do to a cluster and to the grid DAS-3."

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        return {
            "study": self.name,
            "source": f"{SOURCE}, chapter 6",
            **runs_to_json(self),
            "statements": as_data(claims_of(self), "setting"),
            "required": as_data(self.requirements, "setting"),
            "reached": self.reached,
        }

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write everything, after which what was kept next to the folder can go."""
        super().write(folder)
        Unfinished.remove_beside(Path(folder))

    def show(self, console: Console) -> None:
        """Print the tables and the statements on a ``rich`` console."""
        for title, (heading, rows) in tables(self).items():
            console.print(console_table(title, heading, rows, 1, wrap=True))
        claims = claims_of(self)
        show_statements(console, claims, self.failures, summary(self, claims))

    def rows(self) -> Rows:
        """Return every slowdown."""
        return SIMULATION, simulation_rows(self)

    def origin(self) -> dict[str, Any]:
        """Return the log of the arrivals, and the settings of the simulations."""
        return {"log": dict(self.log), "settings": dict(self.settings)}

    def write_pictures(self, place: Path) -> list[str]:
        """Write the pictures into a folder and return the names of the files."""
        return write_figures(self, place)

    def page(self, pictures: Sequence[str]) -> str:
        """Return a page in HTML with the tables and the pictures beside it."""
        return html_page(
            "Arrivals, clusters and grids, reproduced",
            [f"{SOURCE}, chapter 6", *summary(self, claims_of(self))],
            [
                html_section("Required orders", REQUIRED, required_rows(self.requirements), 2),
                *(html_section(title, *table, 1) for title, table in tables(self).items()),
                "<h2>Statements of the text</h2>",
                *(html_table(heading, rows, 1) for heading, rows in claim_tables(self).values()),
            ],
            [(file, FIGURES[file.removesuffix(".png")]) for file in pictures],
        )
