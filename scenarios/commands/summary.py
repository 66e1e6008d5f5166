"""What every command that does one run leaves and tells: results, lines, tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hpcrowd.scenarios.terminal import print_json, say, standard_output

if TYPE_CHECKING:
    from rich.table import Table

    from hpcrowd.analysis.run import Run


def keep_run(run: Run, out: Path | None) -> None:
    """Write the results of a run, if a folder is given, and say where they are."""
    if out is not None:
        from hpcrowd.analysis.results import write_results

        write_results(run, out)
        say(f"Results are in {out}{'' if str(out).endswith('/') else '/'}")


def tell_run(run: Run, *, as_json: bool) -> None:
    """Print what came out of a run, for people or as one JSON object."""
    if as_json:
        print_json(run.summary())
        return
    from hpcrowd.analysis.report.words import headline

    console = standard_output()
    for line in headline(run):
        console.print(line, soft_wrap=True)
    console.print(sites_table(run) if run.sites else summary_table(run))


def summary_table(run: Run) -> Table:
    """Return the metrics as a table for a terminal."""
    from rich.table import Table

    from hpcrowd.analysis.accounts.reactions import account_rows
    from hpcrowd.analysis.metrics import METRICS
    from hpcrowd.analysis.report.html import format_metric

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric")
    table.add_column("whole run", justify="right")
    for p in ("p10", "p50", "p90"):
        table.add_column(f"users' {p}", justify="right")
    terminal = sys.stdout.isatty()
    if terminal:
        table.add_column("meaning", style="dim", overflow="fold")
    for metric in METRICS:
        value = run.metrics[metric.name]
        if metric.name.startswith("jobs_") and not value and metric.name != "jobs_completed":
            continue
        users = run.metrics["per_user"].get(metric.name, {})
        table.add_row(
            metric.name,
            format_metric(metric.name, value),
            *(
                format_metric(metric.name, users[p]) if p in users else ""
                for p in ("p10", "p50", "p90")
            ),
            *([metric.meaning] if terminal else []),
        )
    for name, text, meaning in account_rows(run.accounts):
        table.add_row(name, text, "", "", "", *([meaning] if terminal else []))
    return table


def sites_table(run: Run) -> Table:
    """Return what became of the jobs, a line for each cluster and one for those of the grid."""
    from rich.table import Table

    from hpcrowd.analysis.accounts.grid import SITE_COLUMNS, site_rows

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("site")
    for title in SITE_COLUMNS:
        table.add_column(title, justify="right")
    for row in site_rows(run.sites):
        table.add_row(*row)
    return table
