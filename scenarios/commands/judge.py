"""The command ``hpcrowd judge``: generated workloads beside the trace they come from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hpcrowd.analysis.models.fitting import model_of
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.commands.feature_tables import Reasons, plain_table
from hpcrowd.scenarios.processes import each_in_processes
from hpcrowd.scenarios.terminal import print_json, progress_bar, say, standard_output
from hpcrowd.scenarios.whole_file import check_writable, write_whole

if TYPE_CHECKING:
    from hpcrowd.analysis.models.judgement import Judgement, Replication, Task


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
        As for :func:`hpcrowd.analysis.models.judgement.judge`.
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
    from hpcrowd.analysis.features.stats import read_workload
    from hpcrowd.analysis.models.judgement import judge

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
            from hpcrowd.analysis.models.judgement import judgement_html

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
    from hpcrowd.analysis.features.distance import VARIABLES
    from hpcrowd.analysis.features.report import format_value
    from hpcrowd.analysis.features.stats import GROUPS
    from hpcrowd.analysis.models.judgement import format_spread, within

    console = standard_output(highlight=False, markup=False)
    model, count = found.model, len(found.replications)
    console.print(
        f"{model.name}, arrivals {model.arrivals.name}: {plural(count, 'generated workload')} "
        f"beside {found.trace.workload.name}"
    )
    for note in model.notes:
        console.print(f"  {note}")

    view = plain_table("Distances of distributions", "", "KS", "spread", "Wasserstein / mean")
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
    reasons = Reasons()
    for group in GROUPS:
        view = plain_table(group.title, "", "trace", "generated", "spread", "trace is")
        for one in group.features:
            value, spread = found.trace[one.name], found.spread(one.name)
            mean, sd = format_spread(one, spread)
            cells = [
                format_value(one, value) if not value.reason else reasons.mark(value.reason),
                mean or reasons.mark(found.reason(one.name)),
            ]
            view.add_row(one.title, *cells, sd, within(value.number, spread))
        console.print()
        console.print(view)
    reasons.say(console)
