"""The command ``hpcrowd compare``: runs side by side, for people or for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcrowd.analysis.comparison.given_up import WORDS
from hpcrowd.analysis.comparison.numbers import Comparison, compare
from hpcrowd.analysis.comparison.report import (
    OF_USERS,
    format_difference,
    format_estimate,
    format_users,
    given_up_cells,
    headline,
    shown_metrics,
    signed,
)
from hpcrowd.analysis.metrics import words_of
from hpcrowd.analysis.numbers import letter
from hpcrowd.analysis.results import read_run
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.commands.options import AsJson, Reading, all_at_hand, reads_traces
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.outputs import check_folder
from hpcrowd.scenarios.terminal import (
    plain_table,
    print_json,
    progress_bar,
    reading,
    say,
    standard_output,
)

if TYPE_CHECKING:
    from rich.table import Table


@reads_traces
def command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN", help="Folders of results, or recorded traces.", callback=all_at_hand
        ),
    ],
    how: Reading,
    out: Annotated[Path | None, typer.Option(help="Folder for the tables and pictures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two or more runs: metrics, and users one by one.

    The first run is the baseline. Runs that differ only in their seed are averaged, with a
    confidence interval. `hpcrowd report` writes the same as a page.

    \b
    hpcrowd compare runs/rigid runs/fluid
    hpcrowd compare runs/adjusted-* runs/fluid-* --out comparison
    hpcrowd compare log.swf.gz runs/fluid --json
    """
    if len(runs) < 2:
        raise QuantityError("compare: give two or more runs; one cannot be compared")
    if out is not None:
        check_folder(out, runs)
    with progress_bar() as progress:
        options = reading_options(**how)
        comparison = compare([read_run(path, options) for path in reading(runs, progress)])
    if out is not None:
        from hpcrowd.analysis.comparison.report import write_comparison

        write_comparison(comparison, out)
        say(f"Tables and pictures are in {out}; hpcrowd report makes a page")
    if as_json:
        print_json(comparison.to_json())
        return
    console = standard_output()
    for place, group in enumerate(comparison.groups):
        console.print(f"{letter(place)}  {group.title}, on {group.first.processors:,} processors")
        if note := group.first.reading.size_note:
            console.print(f"   {note}", soft_wrap=True)
    for sentence in (*headline(comparison), *comparison.notes):
        console.print(sentence)
    for table in tables(comparison):
        console.print()
        console.print(table)


def tables(comparison: Comparison) -> list[Table]:
    """Return the tables for a terminal: metrics, differences to the first, partitions, users."""
    found = [_metrics_table(comparison)]
    if len(comparison.groups) > 2:
        found.append(_differences_table(comparison))
    if comparison.partition_waits:
        found.append(_partitions_table(comparison))
    if comparison.given_up:
        found.append(_given_up_table(comparison))
    if any(one is not None for one in comparison.user_differences["wait_mean_s"]):
        found.append(_users_table(comparison))
    return found


def _metrics_table(comparison: Comparison) -> Table:
    """Return each group's metrics; of two groups also their difference."""
    two = len(comparison.groups) == 2
    letters = map(letter, range(len(comparison.groups)))
    table = plain_table("metric", *letters, *(["B - A"] if two else []))
    for name in shown_metrics(comparison):
        cells = [format_estimate(name, one) for one in comparison.estimates[name]]
        if two:
            cells.append(format_difference(name, comparison.seed_differences[name][0]))
        table.add_row(words_of(name), *cells)
    return table


def _differences_table(comparison: Comparison) -> Table:
    table = plain_table("difference to A", *map(letter, range(1, len(comparison.groups))))
    for name in shown_metrics(comparison):
        found = comparison.seed_differences[name]
        table.add_row(words_of(name), *(format_difference(name, one) for one in found))
    return table


def _partitions_table(comparison: Comparison) -> Table:
    """Return the mean wait in each partition of machines of nodes; of two groups the difference."""
    two = len(comparison.groups) == 2
    letters = map(letter, range(len(comparison.groups)))
    table = plain_table("mean wait by partition", *letters, *(["B - A"] if two else []))
    for name, waits in comparison.partition_waits.items():
        cells = [format_estimate("wait_mean_s", one) for one in waits]
        if two:
            a, b = waits
            cells.append("-" if a is None or b is None else signed("wait_mean_s", b.mean - a.mean))
        table.add_row(name, *cells)
    return table


def _given_up_table(comparison: Comparison) -> Table:
    """Return what users gave up in the queue, what is recovered, and who stays."""
    letters = map(letter, range(len(comparison.groups)))
    table = plain_table("given up in the queue", *letters)
    for name, cells in given_up_cells(comparison):
        table.add_row(WORDS[name], *cells)
    return table


def _users_table(comparison: Comparison) -> Table:
    columns = ("users", "mean difference", "95 % interval", "better off", "worse off")
    title = "Users who are in both runs, each counted once; less is better"
    table = plain_table("metric of a user", "", *columns, words=2, title=title)
    for name in OF_USERS:
        for place, one in enumerate(comparison.user_differences[name], 1):
            if one is not None:
                shown = (f"{one.estimate.count:,}", *format_users(name, one))
                table.add_row(words_of(name), f"{letter(place)} - A", *shown)
    return table
