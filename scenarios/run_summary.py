"""What every command that does one run leaves and tells: results, lines, tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from environment.quantities import format_duration, plural
from scenarios.terminal import print_json, say, standard_output

if TYPE_CHECKING:
    from rich.table import Table

    from analysis.run import Run


def keep_run(run: Run, out: Path | None) -> None:
    """Write the results of a run, if a folder is given, and say where they are."""
    if out is not None:
        from analysis.results import write_results

        write_results(run, out)
        say(f"Results are in {out}{'' if str(out).endswith('/') else '/'}")


def tell_run(run: Run, *, as_json: bool) -> None:
    """Print what came out of a run, for people or as one JSON object."""
    if as_json:
        print_json(run.summary())
        return
    console = standard_output(highlight=False, markup=False)
    for line in headline(run):
        console.print(line, soft_wrap=True)
    console.print(sites_table(run) if run.sites else summary_table(run))


def headline(run: Run) -> list[str]:
    """Return lines that say what was run, what was repaired or dropped, and what users did."""
    from analysis.grid_accounts import component_lines
    from analysis.platform_accounts import platform_lines
    from analysis.population_accounts import account_lines, pool_lines
    from analysis.reaction_accounts import reaction_lines

    size = f"{len(run.jobs):,} jobs on {run.processors:,} processors"
    trace = run.configuration.get("trace") if run.trace is None else Path(run.trace.source).name
    if trace:
        lines = [f"{trace}: {size}, {run.label}"]
    else:
        users = plural(len(np.unique(run.jobs.user)), "user")
        lines = [f"{run.label}: {size.replace('jobs', f'jobs of {users}', 1)}"]
    lines += [f"  {line}" for line in pool_lines(run.population)]
    for what, reasons in (("dropped", run.dropped), ("repaired", run.repaired)):
        lines += [f"  {plural(count, 'job')} {what}: {reason}" for reason, count in reasons.items()]
    if run.sites:
        most = run.configuration.get("components")
        lines += [f"  {line}" for line in component_lines(run.sites, most)]
    lines += [f"  {line}" for line in reaction_lines(run.accounts)]
    lines += [f"  {line}" for line in platform_lines(run.platform)]
    lines += [f"  {line}" for line in account_lines(run.population)]
    if run.trace is not None and run.trace.header.processors is None:
        lines.append("  size of the machine not in the trace: that of its largest job, or --nodes")
    if run.clock.note and (trace or "files_sha256" in run.configuration):
        lines.append(f"  {run.clock.note}")
    return lines


def summary_table(run: Run) -> Table:
    """Return the metrics as a table for a terminal."""
    from rich.table import Table

    from analysis.metrics import METRICS
    from analysis.reaction_accounts import account_rows
    from analysis.report import format_metric

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

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("site")
    for title in ("processors", "in use", "jobs", "by grid", "mean wait", "local", "by grid",
                  "at the broker", "bounded slowdown"):  # fmt: skip
        table.add_column(title, justify="right")
    for name, account in run.sites.items():
        times = [
            "-" if account[key] is None else format_duration(account[key])
            for key in ("wait_s", "wait_local_s", "wait_by_grid_s", "held_s")
        ]
        used, slow = account["utilization"], account["bounded_slowdown"]
        table.add_row(
            name,
            f"{account['processors']:,}",
            "-" if used is None else f"{100 * used:.1f} %",
            f"{account['jobs']:,}",
            f"{account['jobs_by_grid']:,}",
            *times,
            "-" if slow is None else f"{slow:,.1f}",
        )
    return table
