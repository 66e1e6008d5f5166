"""The command ``hpcrowd judge``: generated workloads beside the trace they come from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from environment.quantities import plural
from scenarios.models_command import model_of
from scenarios.processes import each_in_processes
from scenarios.terminal import print_json, progress_bar, say, standard_output
from scenarios.whole_file import check_writable, write_whole

if TYPE_CHECKING:
    from analysis.models.judge import Judgement, Replication, Task


def judge_command(
    source: str,
    trace: Path,
    *,
    replications: int,
    which: Literal["completed", "all"],
    processes: int,
    seed: int,
    html: Path | None,
    as_json: bool,
) -> None:
    """Hold a model against a trace and print what was found.

    Parameters
    ----------
    source
        File of a fitted model, or the name of a model with published parameters.
    trace
        Trace, or folder of results.
    replications, seed
        As for :func:`analysis.models.judge.judge`.
    which
        Jobs of the trace that count.
    processes
        How many share the work.
    html
        File for a report with pictures.
    as_json
        Print one JSON object instead of tables.
    """
    if html is not None:
        check_writable(html)
    from analysis.features.stats import read_workload
    from analysis.models.judge import judge

    def each(task: Task, seeds: Sequence[int]) -> Iterator[Replication]:
        for _, found in each_in_processes(task, seeds, processes):
            yield found

    workload = read_workload(trace, which)
    largest = int(workload.processors.max(initial=1))
    model = model_of(source, workload.machine or largest)
    with progress_bar() as progress:
        found = judge(
            model, workload, replications=replications, seed=seed, each=each, progress=progress
        )
        if html is not None:
            from analysis.models.judge_report import judgement_html

            words = ["hpcrowd", "judge", source, str(trace), "--html", str(html)]
            write_whole(html, judgement_html(found, again=shlex.join(words)))
    if html is not None:
        say(f"The report is {html}")
    if as_json:
        print_json(found.to_json())
    else:
        show(found)


def show(found: Judgement) -> None:
    """Print distances, then features of trace and generated workloads."""
    from rich.table import Table

    from analysis.features.catalogue import GROUPS
    from analysis.features.distance import VARIABLES
    from analysis.features.text import format_value
    from analysis.models.judge_report import format_spread, within

    console = standard_output(highlight=False, markup=False)
    model, count = found.model, len(found.replications)
    console.print(
        f"{model.name}, arrivals {model.arrivals.name}: {plural(count, 'generated workload')} "
        f"beside {found.trace.workload.name}"
    )
    for note in model.notes:
        console.print(f"  {note}")

    def table(title: str, *columns: str) -> Table:
        made = Table(box=None, pad_edge=False, header_style="bold", title=title)
        made.title_justify, made.title_style = "left", "bold"
        for place, column in enumerate(columns):
            made.add_column(column, justify="right" if place else "left")
        return made

    view = table("Distances of distributions", "", "KS", "spread", "Wasserstein / mean")
    for name, variable in VARIABLES.items():
        ks, moved = found.ks(name), found.wasserstein(name)
        view.add_row(
            variable.title,
            "n/a" if ks is None else f"{ks.mean:.3f}",
            "" if ks is None or ks.sd is None else f"{ks.sd:.3f}",
            "" if moved is None else f"{100 * moved.mean:,.1f} %",
        )
    console.print()
    console.print(view)
    reasons: list[str] = []
    for group in GROUPS:
        view = table(group.title, "", "trace", "generated", "spread", "trace is")
        for one in group.features:
            value, spread = found.trace[one.name], found.spread(one.name)
            mean, sd = format_spread(one, spread)
            cells = [
                format_value(one, value) if not value.reason else _noted(value.reason, reasons),
                mean or _noted(found.reason(one.name), reasons),
            ]
            view.add_row(one.title, *cells, sd, within(value.number, spread))
        console.print()
        console.print(view)
    if reasons:
        console.print()
    for place, reason in enumerate(reasons, 1):
        console.print(f"({place}) not available: {reason}")


def _noted(reason: str, reasons: list[str]) -> str:
    """Return a short mark for a reason, which is told below the tables."""
    if reason not in reasons:
        reasons.append(reason)
    return f"n/a ({reasons.index(reason) + 1})"
