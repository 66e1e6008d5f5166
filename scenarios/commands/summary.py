"""The common part of commands that do one run: run, write results, print a summary."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.status import status
from hpcrowd.scenarios.terminal import (
    plain_table,
    print_json,
    say,
    simulation_progress,
    standard_output,
)

if TYPE_CHECKING:
    from rich.table import Table

    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.analysis.run import Run
    from hpcrowd.scenarios.kinds.base import Scenario

#: Metrics with these names are left out where they are 0.
COUNTS = ("jobs_", "runs_", "preempted_")


def carry_out(
    scenario: Scenario,
    read: Callable[[], Any],
    *,
    out: Path | None,
    log_decisions: bool,
    as_json: bool,
    draw: Callable[[Run], Any] | None = None,
) -> None:
    """Run a scenario, print a summary, and write results if asked for.

    Parameters
    ----------
    scenario
        The run.
    read
        Returns the input of the run, such as a trace.
    out
        Folder for results.
    log_decisions
        Log the decisions of users.
    as_json
        Print the summary as one JSON object.
    draw
        Draws a picture of the run.
    """
    log = log_for(log_decisions, out)
    if out is not None:
        from hpcrowd.analysis.results import write_results
        from hpcrowd.environment.output.guard import check_replaceable

        check_replaceable(out)
    status.doing("reading")
    begin = read()
    with simulation_progress(len(begin) if isinstance(begin, Trace) else 1) as progress:
        run = scenario.run(begin, progress, log)
    if out is not None:
        status.doing(f"writing {out}")
        write_results(run, out)
        say(f"Results are in {out}{'' if str(out).endswith('/') else '/'}")
    if draw is not None:
        status.doing("drawing")
        draw(run)
    status.doing("summarizing")
    tell_run(run, as_json=as_json)


def log_for(asked: bool, out: Path | None) -> DecisionLog | None:
    """Return a log if ``--log-decisions`` is given, else None.

    Raises
    ------
    QuantityError
        When there is no folder to keep it in.
    """
    if not asked:
        return None
    if out is None:
        raise QuantityError("--log-decisions: the log is part of the results; give --out FOLDER")
    from hpcrowd.agents.behaviours.decisions import DecisionLog

    return DecisionLog()


def tell_run(run: Run, *, as_json: bool) -> None:
    """Print the summary of a run, as text or as one JSON object."""
    if as_json:
        print_json(run.summary())
        return
    from hpcrowd.analysis.run import headline

    console = standard_output()
    for line in headline(run):
        console.print(line, soft_wrap=True)
    parts = run.parts.values()
    if not any(part.instead for part in parts):
        console.print(summary_table(run))
    for part in parts:
        for table in part.shown():
            if not part.instead:
                console.print()
            console.print(plain_table(*table.heads, rows=table.rows, words=table.words))


def summary_table(run: Run) -> Table:
    """Return the metrics as a table for a terminal."""
    from hpcrowd.analysis.metrics import METRICS, format_metric

    percentiles = ("p10", "p50", "p90")
    table = plain_table("metric", "whole run", *(f"users' {p}" for p in percentiles))
    terminal = sys.stdout.isatty()
    if terminal:
        table.add_column("meaning", style="dim", overflow="fold")
    for metric in METRICS:
        value = run.metrics[metric.name]
        if metric.name.startswith(COUNTS) and not value and metric.name != "jobs_completed":
            continue
        if value is None and metric.optional:
            continue
        users = run.metrics["per_user"].get(metric.name, {})
        table.add_row(
            metric.name,
            format_metric(metric.name, value),
            *(format_metric(metric.name, users[p]) if p in users else "" for p in percentiles),
            *([metric.meaning] if terminal else []),
        )
    for name, text, meaning in (row for part in run.parts.values() for row in part.effects()):
        table.add_row(name, text, "", "", "", *([meaning] if terminal else []))
    return table
