"""The command ``hpcrowd replay``: one run, a summary for people or for programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from environment.quantities import plural
from environment.swf import read_swf
from scenarios.config import ReplayConfig
from scenarios.population_config import PopulationConfig
from scenarios.terminal import (
    print_json,
    say,
    say_if_compiling,
    simulation_progress,
    standard_output,
)

if TYPE_CHECKING:
    from rich.table import Table

    from analysis.run import Run
    from scenarios.gantt_option import GanttOption


def replay_command(
    path: Path,
    config: ReplayConfig,
    *,
    out: Path | None,
    as_json: bool,
    picture: GanttOption | None = None,
) -> None:
    """Replay the trace at ``path``; print a summary, write results to ``out`` if given."""
    from analysis.results import check_replaceable, write_results

    if out is not None:
        check_replaceable(out)
    trace = read_swf(path)
    if picture is not None:
        from environment.clock import Clock

        picture.check(Clock.of(trace.header))
    from scenarios.replay import replay

    population = config.users if isinstance(config.users, PopulationConfig) else None
    say_if_compiling(1 + len(population.clusters) if population else 1)
    # The same schedule as with users that are called one by one, at a fraction of the time.
    compiled = config.users == "think-time"
    with simulation_progress(len(trace)) as progress:
        run = replay(trace, config, compiled=compiled, progress=progress)
    if out is not None:
        write_results(run, out)
        say(f"Results are in {out}{'' if str(out).endswith('/') else '/'}")
    if picture is not None:
        picture.draw(run)
    if as_json:
        print_json(run.summary())
    else:
        console = standard_output()
        for line in headline(run):
            console.print(line, highlight=False, soft_wrap=True)
        console.print(summary_table(run))


def headline(run: Run) -> list[str]:
    """Return lines that say what was run, what was repaired or dropped, and what users changed."""
    from analysis.platform_accounts import platform_lines
    from analysis.reaction_accounts import reaction_lines

    lines = []
    if run.trace is not None:
        lines.append(
            f"{Path(run.trace.source).name}: {len(run.jobs):,} jobs on {run.processors:,} "
            f"processors, {run.label}"
        )
    for what, reasons in (("dropped", run.dropped), ("repaired", run.repaired)):
        lines += [f"  {plural(count, 'job')} {what}: {reason}" for reason, count in reasons.items()]
    lines += [f"  {line}" for line in reaction_lines(run.accounts)]
    lines += [f"  {line}" for line in platform_lines(run.platform)]
    if run.trace is not None and run.trace.header.processors is None:
        lines.append("  size of the machine not in the trace: that of its largest job, or --nodes")
    if run.clock.note:
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
