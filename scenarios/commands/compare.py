"""The command ``hpcrowd compare``: runs side by side, for people or for programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcrowd.analysis.comparison.report import letter
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.commands.options import (
    AsJson,
    all_at_hand,
)
from hpcrowd.scenarios.terminal import LONG, print_json, say, standard_output

if TYPE_CHECKING:
    from rich.table import Table

    from hpcrowd.analysis.comparison.numbers import Comparison


def compare_command(paths: Sequence[Path], *, out: Path | None, as_json: bool) -> None:
    """Compare the runs at ``paths``; print tables, keep tables and pictures if asked for.

    Parameters
    ----------
    paths
        Folders of results, or recorded traces.
    out
        Folder for tables and pictures; None for none.
    as_json
        Print one JSON object on standard output instead of the tables.
    """
    from hpcrowd.analysis.comparison.numbers import compare
    from hpcrowd.analysis.results import check_replaceable

    if len(paths) < 2:
        raise QuantityError("compare: give two or more runs; one has nothing to be set against")
    if out is not None:
        check_replaceable(out)
        inside = [path for path in paths if path.resolve().is_relative_to(out.resolve())]
        if inside:
            raise QuantityError(f"--out {out}: would replace {inside[0]}; choose another folder")
    from hpcrowd.analysis.results import read_run

    comparison = compare([read_run(path) for path in _told(paths)])
    if out is not None:
        from hpcrowd.analysis.comparison.report import write_comparison

        write_comparison(comparison, out)
        say(f"Tables and pictures are in {out}; hpcrowd report makes a page")
    if as_json:
        print_json(comparison.to_json())
    else:
        show(comparison)


def show(comparison: Comparison) -> None:
    """Print what is compared, then the tables."""

    from hpcrowd.analysis.comparison.report import headline

    console = standard_output(highlight=False)
    for place, group in enumerate(comparison.groups):
        console.print(f"{letter(place)}  {group.title}, on {group.first.processors:,} processors")
    for sentence in (*headline(comparison), *comparison.notes):
        console.print(sentence)
    for table in tables(comparison):
        console.print()
        console.print(table)


def tables(comparison: Comparison) -> list[Table]:
    """Return the tables for a terminal: metrics, differences to the first, users."""
    found = [_metrics_table(comparison)]
    if len(comparison.groups) > 2:
        found.append(_differences_table(comparison))
    if any(one is not None for one in comparison.user_differences["wait_mean_s"]):
        found.append(_users_table(comparison))
    return found


def _table(title: str = "") -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", title=title or None)
    table.title_justify, table.title_style = "left", ""
    return table


def _metrics_table(comparison: Comparison) -> Table:
    """Return each group's metrics; of two groups also their difference."""
    from hpcrowd.analysis.comparison.report import format_difference, format_estimate, shown_metrics

    table = _table()
    table.add_column("metric", overflow="fold")
    for place in range(len(comparison.groups)):
        table.add_column(letter(place), justify="right")
    two = len(comparison.groups) == 2
    if two:
        table.add_column("B - A", justify="right")
    for name in shown_metrics(comparison):
        cells = [format_estimate(name, one) for one in comparison.estimates[name]]
        if two:
            cells.append(format_difference(name, comparison.seed_differences[name][0]))
        table.add_row(name, *cells)
    return table


def _differences_table(comparison: Comparison) -> Table:
    from hpcrowd.analysis.comparison.report import format_difference, shown_metrics

    table = _table()
    table.add_column("difference to A", overflow="fold")
    for place in range(1, len(comparison.groups)):
        table.add_column(letter(place), justify="right")
    for name in shown_metrics(comparison):
        found = comparison.seed_differences[name]
        table.add_row(name, *(format_difference(name, one) for one in found))
    return table


def _users_table(comparison: Comparison) -> Table:
    from hpcrowd.analysis.comparison.report import OF_USERS, format_users

    table = _table("Users, the same on both sides, each counting once; less is better")
    table.add_column("metric of a user", overflow="fold")
    table.add_column("")
    for name in ("users", "mean difference", "95 % interval", "better off", "worse off"):
        table.add_column(name, justify="right")
    for name in OF_USERS:
        for place, one in enumerate(comparison.user_differences[name], 1):
            if one is not None:
                shown = (f"{one.estimate.count:,}", *format_users(name, one))
                table.add_row(name, f"{letter(place)} - A", *shown)
    return table


def _told(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the paths; on a terminal, show how far it is once reading turns out long."""
    if not sys.stderr.isatty():
        yield from paths
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    began, shown = time.monotonic(), False
    task = bar.add_task("reading", total=len(paths))
    try:
        for place, path in enumerate(paths):
            if not shown and time.monotonic() - began > LONG:
                bar.start()
                shown = True
            bar.update(task, completed=place)
            yield path
    finally:
        if shown:
            bar.stop()


def command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN", help="Folders of results, or recorded traces.", callback=all_at_hand
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for the tables and pictures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Set two or more runs side by side: metrics, users one by one.

    The others are set against the first. Runs that differ only in their seed become one line with a
    confidence interval. hpcrowd report writes the same as a page.

    \b
    hpcrowd compare runs/rigid runs/fluid
    hpcrowd compare runs/adjusted-* runs/fluid-* --out comparison
    hpcrowd compare log.swf.gz runs/fluid --json
    """

    compare_command(runs, out=out, as_json=as_json)
