"""The parts of a report on one run, as HTML: numbers, pictures, users, accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hpcrowd.analysis.accounts.grid import SITE_COLUMNS, site_rows
from hpcrowd.analysis.accounts.platform import platform_lines
from hpcrowd.analysis.accounts.population import account_lines, pool_lines
from hpcrowd.analysis.accounts.reactions import account_rows, reaction_lines
from hpcrowd.analysis.html import Picture, Section, figure_of, list_of, rows_table
from hpcrowd.analysis.metrics import METRICS, PERCENTILES, format_metric
from hpcrowd.analysis.pictures.platform_marks import MOST, marks_of
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.analysis.pictures.waits import users_data
from hpcrowd.analysis.report.figures import RUN_FIGURES
from hpcrowd.analysis.report.words import MOST_DECISIONS, decision_rows
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import moment
from hpcrowd.environment.quantities import format_duration, plural

#: Users in the table, those with the most work.
MOST_USERS = 12

#: Pixels of pictures for each of the screen: sharp on paper, too.
SCALE = 2

#: Called before each picture with its title.
Tell = Callable[[str], Any]


def picture(name: str, run: Run, tell: Tell) -> list[str]:
    """Return a picture of :data:`RUN_FIGURES` as HTML, if the run has it."""
    one = RUN_FIGURES[name]
    if not one.shown(run):
        return []
    tell(f"{run.label}: {one.title}")
    png = figure_png(one.draw(run), SCALE)
    return [figure_of(Picture(png, one.told(run), f"{one.title}, {run.label}"))]


def sections_of_run(run: Run, tell: Tell) -> Iterator[Section]:
    """Yield the parts of a report on one run."""
    yield Section("numbers", "Key numbers", [metric_table(run)])
    if len(run.jobs):
        parts = [*picture("use", run, tell), *marks(run), *picture("submissions", run, tell)]
        yield Section("time", "Over time", parts)
        parts = [*picture("waits", run, tell), *picture("classes", run, tell)]
        yield Section("waits", "Who waits", parts)
        yield Section(
            "rhythm", "Week and day", [*picture("week", run, tell), *picture("day", run, tell)]
        )
        parts = [*picture("users", run, tell), *users_part(run), *picture("think", run, tell)]
        yield Section("users", "Users", parts)
    yield from accounts(run, tell)


def metric_table(run: Run) -> str:
    """Return the metrics of a run, their percentiles over users, and what they mean."""
    rows = []
    for metric in METRICS:
        value = run.metrics[metric.name]
        counted = metric.name.startswith("jobs_") and metric.name != "jobs_completed"
        # A record is never late against itself.
        if value is None or (counted and not value) or (run.is_record and "late" in metric.name):
            continue
        users = run.metrics["per_user"].get(metric.name, {})
        spread = [format_metric(metric.name, users[f"p{p}"]) if users else "" for p in PERCENTILES]
        meaning = metric.meaning[0].upper() + metric.meaning[1:]
        rows.append([meaning, format_metric(metric.name, value), *spread, metric.name])
    shares = ", ".join(f"{p}" for p in PERCENTILES)
    return rows_table(
        ["", "whole run", *(f"users' p{p}" for p in PERCENTILES), "name in summary.json"],
        rows,
        remark=True,
        caption=f"{shares} % of the users have less than their p10, p50 and p90, each counting "
        "once. The last letters of a name tell the unit in summary.json: s for seconds.",
    )


def marks(run: Run) -> list[str]:
    """Return the changes of the platform that are marked on pictures, as a table."""
    found = marks_of(run)
    rows = [
        [
            str(number),
            moment(run.clock, mark.begin),
            format_duration(mark.end - mark.begin) if mark.end > mark.begin else "",
            mark.text,
        ]
        for number, mark in enumerate(found[:MOST], 1)
    ]
    if not rows:
        return []
    more = f"; {len(found) - MOST:,} later ones are not marked" if len(found) > MOST else ""
    return [
        rows_table(
            ["mark", "from (local time)", "for", "what"],
            rows,
            words=4,
            caption=f"Changes of the platform, as numbered in the picture{more}",
        )
    ]


def users_part(run: Run) -> list[str]:
    """Return the users with the most work as a table."""
    found = users_data(run)
    shown = range(min(MOST_USERS, len(found["user"])))
    columns: dict[str, list[str]] = {
        "user": [str(found["user"][n]) for n in shown],
        "jobs": [f"{found['jobs'][n]:,}" for n in shown],
        "processor-hours": [f"{found['work_processor_h'][n]:,.0f}" for n in shown],
        "share of work": [f"{100 * found['share_of_work'][n]:.1f} %" for n in shown],
    }
    for name, title in (
        ("wait_mean_s", "mean wait"),
        ("recorded_wait_mean_s", "as recorded"),
        ("bounded_slowdown_mean", "mean bounded slowdown"),
        ("lateness_mean_s", "mean lateness"),
    ):
        if name in found:
            columns[title] = [_known(name, found[name][n]) for n in shown]
    if "behaviour" in found:
        columns["behaviour"] = [found["behaviour"][n] for n in shown]
    rest = 100 * (1 - float(found["share_of_work"][: len(shown)].sum()))
    others = len(found["user"]) - len(shown)
    told = f"; {plural(others, 'other')} have {rest:.1f} % of the work" if others else ""
    return [
        rows_table(
            list(columns),
            list(zip(*columns.values(), strict=True)),
            remark="behaviour" in columns,
            caption=f"Users with the most work{told}",
        )
    ]


def accounts(run: Run, tell: Tell) -> Iterator[Section]:
    """Yield what a run has beyond jobs and users: platform, reactions, population, sites, log."""
    if run.sites:
        table = rows_table(["site", *SITE_COLUMNS], site_rows(run.sites))
        yield Section("sites", "Sites of the grid", [table])
    if run.platform:
        yield Section(
            "platform", "Changes of the platform", [list_of(platform_lines(run.platform))]
        )
    if run.accounts:
        rows = [
            [meaning[0].upper() + meaning[1:], value, name]
            for name, value, meaning in account_rows(run.accounts)
        ]
        table = rows_table(["", "all reactions", "name in summary.json"], rows, remark=True)
        parts = [list_of(reaction_lines(run.accounts)), table]
        yield Section("reactions", "Reactions of users", parts)
    if run.population or run.visits:
        lines = [*pool_lines(run.population), *account_lines(run.population)]
        parts = [list_of(lines)] if lines else []
        yield Section("population", "Comings and goings", [*parts, *picture("visits", run, tell)])
    if run.decisions is not None:
        yield Section("decisions", "Decisions of users", _decisions(run))


def _decisions(run: Run) -> list[str]:
    assert run.decisions is not None
    table = rows_table(
        ["what", "why", "decisions"],
        decision_rows(run),
        words=2,
        caption=f"{plural(len(run.decisions), 'decision')}; at most the {MOST_DECISIONS} most "
        "frequent kinds. hpcrowd explain tells those of one user in words.",
    )
    dropped = run.decisions.dropped
    lost = f"The log was full: {plural(dropped, 'later decision')} not kept."
    return [table, *([list_of([lost])] if dropped else [])]


def _known(name: str, value: float) -> str:
    """Return a number of a user for people; a dash where there is none."""
    return format_metric(name, None if np.isnan(value) else float(value))
