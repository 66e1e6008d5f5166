"""The command ``hpcrowd grid``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from environment.quantities import format_duration

if TYPE_CHECKING:
    from rich.table import Table

    from analysis.run import Run


def grid_command(
    source: str,
    *,
    broker: str | None,
    share: float | None,
    users: str | None,
    seed: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run a grid, print a summary, and write results if asked for.

    Parameters
    ----------
    source
        TOML file of the grid, or the name of one that is there.
    broker, users, seed
        Take the place of what the file says, unless None.
    share
        Takes the place of ``grid_share`` of every cluster.
    out
        Folder for results.
    as_json
        Print the summary as one JSON object.
    """
    from analysis.results import check_replaceable, write_results
    from scenarios.grid_config import read_grid, with_share
    from scenarios.terminal import (
        print_json,
        say,
        say_if_compiling,
        simulation_progress,
        standard_output,
    )

    if out is not None:
        check_replaceable(out)
    given = {"broker": broker, "users": users, "seed": seed}
    config = read_grid(
        source, **{name: value for name, value in given.items() if value is not None}
    )
    if share is not None:
        config = with_share(config, share)
    say_if_compiling(len(config.clusters) + 1)
    from scenarios.grid import run_grid

    with simulation_progress(1) as progress:
        run = run_grid(config, progress=progress)
    if out is not None:
        write_results(run, out)
        say(f"Results are in {out}")
    if as_json:
        print_json(run.summary())
        return
    console = standard_output(highlight=False, markup=False)
    console.print(f"{run.label}: {len(run.jobs):,} jobs on {run.processors:,} processors")
    console.print(sites_table(run))


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
