"""Song et al. 2005: tables on the terminal, in Markdown and in a folder of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.scenarios.studies.pages import markdown_table
from hpcrowd.scenarios.studies.published import SOURCES, published_rows
from hpcrowd.scenarios.studies.report import (
    Rows,
    StudyReport,
    claim_grid,
    claim_table,
    console_table,
    html_page,
    html_section,
    required_rows,
)
from hpcrowd.scenarios.studies.song2005.figures import groups_figure, write_figures
from hpcrowd.scenarios.studies.song2005.measures import COUNTS, GROUPED, ONE, SHUFFLED
from hpcrowd.scenarios.studies.song2005.statements import RULES
from hpcrowd.scenarios.studies.song2005.study import (
    BORDER_MET,
    DISTANCES,
    GROUPS_OF,
    GROUPS_ON,
    POINTS,
    SHARES,
    TITLES,
    Comparison,
    TraceOutcomes,
    published_groups,
    published_log,
    published_quality,
)
from hpcrowd.scenarios.studies.study import as_data

if TYPE_CHECKING:
    from rich.console import Console


#: Headings.
LOG_TABLE = ("log", "file", "jobs", "Table I", "users", "Table I")
USER_TABLE = ("jobs of a user", "users (%)", "published", f"ours, {BORDER_MET} for 500")
GROUP_TABLE = (
    "log", "groups", "group", "area (%)", "samples", "published", "jobs (%)", "samples",
    "published", "users (%)", "samples", "published",
)  # fmt: skip
SHORT_GROUPS = ("log", "groups", "group", "area, jobs, users (%)", "paper")
STAY_TABLE = ("log", "groups", "jobs whose group stays (%)")
KS_TABLE = ("log", "what", "ours", "spread", SHUFFLED, ONE, "published")
CORRELATION_TABLE = ("log", "original", "published", "generated", "spread", "published")
REQUIRED = ("log", "what", "ours", "required", "reached")

#: The tables of published figures.
PUBLISHED = tuple(f"song2005_{name}" for name in ("table1", "table2", "table3", "tables4_5"))


def log_rows(study: Comparison) -> list[list[str]]:
    """Return which file each log is as the texts of :data:`LOG_TABLE`."""
    rows = []
    for name, one in study.traces.items():
        line = published_log(name)
        rows.append(
            [
                name,
                str(one.facts.get("source", one.workload.name)),
                f"{len(one.workload):,}",
                f"{int(line['jobs']):,}",
                f"{len(one.groupings[COUNTS[0]].label):,}",
                line["users"],
            ]
        )
    return rows


def user_rows(study: Comparison) -> list[list[str]]:
    """Return Table II as the texts of :data:`USER_TABLE`; none where KTH is not there."""
    if "KTH" not in study.traces:
        return []
    one = study.traces["KTH"]
    lines = zip(
        published_rows("song2005_table2"),
        one.users_percent(),
        one.users_percent(BORDER_MET),
        strict=True,
    )
    return [
        [row["jobs"], f"{ours:.2f}", row["users_percent"], f"{moved:.2f}"]
        for row, ours, moved in lines
    ]


def _range(found: tuple[float, float] | None) -> str:
    if found is None:
        return "-"
    low, high = (f"{number:.1f}" for number in found)
    return f"{low} to {high}" if low != high else low


def group_rows(study: Comparison) -> list[list[str]]:
    """Return Table III as the texts of :data:`GROUP_TABLE`."""
    rows = []
    for name, one in study.traces.items():
        for count, grouping in one.groupings.items():
            printed = published_groups(name, count)
            for group, shares in enumerate(grouping.shares):
                row = [name, str(count), str(group + 1)]
                for share in SHARES:
                    row += [
                        f"{getattr(shares, share):.1f}",
                        _range(grouping.ranges(group, share)),
                        f"{printed[group][share].value:.1f}",
                    ]
                rows.append(row)
    return rows


def short_group_rows(study: Comparison) -> list[list[str]]:
    """Return Table III as the texts of :data:`SHORT_GROUPS`, for a terminal."""
    return [
        [*row[:3], *(" ".join(f"{row[place + k]:>4}" for place in (3, 6, 9)) for k in (0, 2))]
        for row in group_rows(study)
    ]


def stay_rows(study: Comparison) -> list[list[str]]:
    """Return how many jobs stay in their group, as the texts of :data:`STAY_TABLE`."""
    return [
        [name, str(count), "-" if grouping.staying is None else f"{grouping.staying:.1f}"]
        for name, one in study.traces.items()
        for count, grouping in one.groupings.items()
    ]


def _spread(values: Sequence[float], digits: int) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def ks_rows(study: Comparison) -> list[list[str]]:
    """Return Table IV as the texts of :data:`KS_TABLE`."""
    return [
        [
            name,
            TITLES[distance],
            f"{one.mean(distance):.4f}",
            _spread(one.values(distance), 3),
            f"{one.mean(distance, SHUFFLED):.4f}",
            f"{one.mean(distance, ONE):.4f}",
            published_quality(name)[column].text,
        ]
        for name, one in study.traces.items()
        for distance, column in DISTANCES.items()
    ]


def correlation_rows(study: Comparison) -> list[list[str]]:
    """Return Table V as the texts of :data:`CORRELATION_TABLE`."""
    return [
        [
            name,
            f"{one.jobs.correlation:.3f}",
            published_quality(name)["correlation_original"].text,
            f"{one.mean('correlation'):.3f}",
            _spread(one.values("correlation"), 2),
            published_quality(name)["correlation_synthetic"].text,
        ]
        for name, one in study.traces.items()
    ]


def summary(study: Comparison) -> list[str]:
    """Return what was reached, what holds, and which logs were not there, a line each."""
    checked = [claim for claim in study.claims if claim.holds is not None]
    hold = sum(bool(claim.holds) for claim in checked)
    lines = [
        f"{study.score} required figures reached",
        f"{hold} of {len(checked)} checked statements hold",
        f"Means are over {study.seeds} seeds of fits, of what is generated and of shuffled users",
    ]
    if GROUPS_ON in study.traces:
        one = study.traces[GROUPS_ON]
        lines.append(
            f"{GROUPS_ON}, {GROUPS_OF} groups: shares from {one.samples_within()} of "
            f"{study.seeds} random samples of run times are within {POINTS:g} points of the "
            "published ones, too"
        )
    if study.absent:
        lines.append(f"Not there: {', '.join(study.absent)}")
    for name, one in study.traces.items():
        jobs = int(published_log(name)["jobs"])
        if len(one.workload) != jobs:
            lines.append(
                f"{name}: {len(one.workload):,} jobs, {jobs:,} in Table I: another version of the "
                "log"
            )
        if others := one.facts.get("other_versions"):
            lines.append(f"{name}: {one.facts['source']} is measured, not {', '.join(others)}")
    return lines


def page_parts(study: Comparison) -> dict[str, str]:
    """Return the generated parts of the page."""
    return {
        "summary": "\n".join(f"- {line}." for line in summary(study)),
        "required": markdown_table(REQUIRED, required_rows(study.requirements), 2),
        "logs": markdown_table(LOG_TABLE, log_rows(study), 2),
        "users": markdown_table(USER_TABLE, user_rows(study), 1),
        "groups": markdown_table(GROUP_TABLE, group_rows(study), 1),
        "staying": markdown_table(STAY_TABLE, stay_rows(study), 1),
        "ks": markdown_table(KS_TABLE, ks_rows(study), 2),
        "correlation": markdown_table(CORRELATION_TABLE, correlation_rows(study), 1),
        "claims": markdown_table(*claim_table(study.claims, RULES, study.traces), 2),
    }


def _plain_trace(one: TraceOutcomes) -> dict[str, Any]:
    return {
        **one.facts,
        "jobs": len(one.workload),
        "jobs_published": int(published_log(one.trace)["jobs"]),
        "jobs_left_out": dict(one.workload.left_out),
        "jobs_with_run_time_0": len(one.workload) - len(one.jobs.user),
        "users_percent": one.users_percent(),
        "correlation": one.jobs.correlation,
        "groups": {
            str(count): {
                "shares_percent": [asdict(shares) for shares in grouping.shares],
                "samples_percent": [[asdict(s) for s in one] for one in grouping.samples],
                "jobs_staying_percent": grouping.staying,
            }
            for count, grouping in one.groupings.items()
        },
        "generated": {kind: list(map(asdict, found)) for kind, found in one.qualities.items()},
    }


class Reproduction(Comparison, StudyReport):
    """The whole study: data, tables, and a folder with both and the pictures."""

    name = "song2005"
    about = (
        "Song et al. 2005: groups of users, Tables II to V, Figures 8 to 11, on KTH and LANL-CM5."
    )

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        return {
            "study": self.name,
            "sources": {name: SOURCES[name] for name in PUBLISHED},
            "seeds": self.seeds,
            "traces": {name: _plain_trace(one) for name, one in self.traces.items()},
            "absent": self.absent,
            "required": as_data(self.requirements, "log"),
            "claims": as_data(self.claims, "log"),
            "reached": self.reached,
        }

    def show(self, console: Console) -> None:
        """Print the tables on a ``rich`` console."""
        rows = user_rows(self)
        if rows:
            title = "Table II: users of KTH by their number of jobs"
            console.print(console_table(title, USER_TABLE, rows, 1, wrap=True))
        parts: tuple[tuple[str, Sequence[str], list[list[str]], int], ...] = (
            ("Table III: groups of users", SHORT_GROUPS, short_group_rows(self), 1),
            ("Groups in random samples of run times", STAY_TABLE, stay_rows(self), 1),
            (f"Table IV: KS distances, {GROUPED} and others", KS_TABLE, ks_rows(self), 2),
            ("Table V: correlation", CORRELATION_TABLE, correlation_rows(self), 1),
            ("Required", REQUIRED, required_rows(self.requirements), 2),
        )
        for title, names, lines, left in parts:
            if lines:
                console.print(console_table(title, names, lines, left, once=True, wrap=True))
        heading, lines = claim_grid(self.claims, RULES, self.traces)
        console.print(console_table("Statements of the text", heading, lines, 1))
        for line in summary(self):
            console.print(line, highlight=False)

    def rows(self) -> Rows:
        """Return every figure in long form."""
        rows: list[list[Any]] = []
        for name, one in self.traces.items():
            for count, grouping in one.groupings.items():
                printed = published_groups(name, count)
                for group, shares in enumerate(grouping.shares):
                    for share in SHARES:
                        what = f"{count} groups, group {group + 1}, {share} (%)"
                        low, high = grouping.ranges(group, share) or (None, None)
                        ours = getattr(shares, share)
                        value = printed[group][share].value
                        rows.append(["III", name, what, ours, low, high, value])
            values = published_quality(name)
            for kind, found in one.qualities.items():
                for distance, column in {
                    **DISTANCES, "correlation": "correlation_synthetic",
                }.items():  # fmt: skip
                    numbers = [getattr(quality, distance) for quality in found]
                    table = "IV" if distance in DISTANCES else "V"
                    printed_value = values[column].value if kind == GROUPED else None
                    what, mean = f"{distance}, {kind}", one.mean(distance, kind)
                    rows.append(
                        [table, name, what, mean, min(numbers), max(numbers), printed_value]
                    )
            original = values["correlation_original"].value
            ours = one.jobs.correlation
            rows.append(["V", name, "correlation, original", ours, None, None, original])
        return ("table", "log", "figure", "ours", "least", "most", "published"), rows

    def origin(self) -> dict[str, Any]:
        """Return the logs, and how many seeds."""
        return {
            "seeds": self.seeds,
            "traces": {name: one.facts for name, one in self.traces.items()},
        }

    def write_pictures(self, place: Path) -> list[str]:
        """Write the pictures into a folder and return the names of the files."""
        return write_figures(self.traces.values(), place)

    def page(self, pictures: Sequence[str]) -> str:
        """Return a page in HTML with the tables and the pictures beside it."""
        source = SOURCES["song2005_table1"].partition(", Table")[0]
        return html_page(
            "User groups and MUGM, reproduced",
            [source, *summary(self)],
            [
                html_section("Logs", LOG_TABLE, log_rows(self), 2),
                html_section("Table II", USER_TABLE, user_rows(self), 1),
                html_section("Table III", GROUP_TABLE, group_rows(self), 1),
                html_section("In random samples", STAY_TABLE, stay_rows(self), 1),
                html_section("Table IV", KS_TABLE, ks_rows(self), 2),
                html_section("Table V", CORRELATION_TABLE, correlation_rows(self), 1),
                html_section(
                    "Statements of the text", *claim_table(self.claims, RULES, self.traces), 2
                ),
                html_section("Required", REQUIRED, required_rows(self.requirements), 2),
            ],
            [(file, groups_figure) for file in pictures],
        )
