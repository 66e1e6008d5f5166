"""The command ``hpcrowd judge``: generated workloads beside the trace they come from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.commands.options import (
    AsJson,
    ModelSource,
    ReportFile,
    TraceOrRun,
    WhichJobs,
)
from hpcrowd.scenarios.terminal import (
    Reasons,
    plain_table,
    print_json,
    progress_bar,
    say,
    standard_output,
)
from hpcrowd.scenarios.whole_file import check_writable, write_whole

if TYPE_CHECKING:
    from hpcrowd.analysis.models.judgement import Judgement, Replication, Task


def command(
    source: ModelSource,
    trace: TraceOrRun,
    seeds: Annotated[int, typer.Option(help="Workloads to generate, each with its own seed.")] = 20,
    which: WhichJobs = "completed",
    workers: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first workload.")] = 0,
    out: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare a model with a trace: features of generated workloads and of the trace."""
    from hpcrowd.analysis.features.stats import read_workload
    from hpcrowd.analysis.models.judgement import judge, judgement_html
    from hpcrowd.analysis.models.model import model_of
    from hpcrowd.scenarios.sweeps.loop import each_in_processes

    if out is not None:
        check_writable(out)

    def each(task: Task, mine: Sequence[int]) -> Iterator[Replication]:
        for _, found in each_in_processes(task, mine, workers):
            yield found

    workload = read_workload(trace, which)
    largest = int(workload.processors.max(initial=1))
    model = model_of(source, workload.machine or largest)
    with progress_bar() as progress:
        found = judge(model, workload, seeds=seeds, seed=seed, each=each, progress=progress)
        if out is not None:
            words = ["hpcrowd", "judge", source, str(trace), "--out", str(out)]
            write_whole(out, judgement_html(found, again=shlex.join(words)))
    if out is not None:
        say(f"The report is {out}")
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

    console = standard_output()
    model, count = found.model, len(found.replications)
    console.print(
        f"{model.name}, arrivals {model.arrivals.name}: {plural(count, 'generated workload')} "
        f"beside {found.trace.workload.name}"
    )
    for note in model.notes:
        console.print(f"  {note}")

    view = plain_table("", "KS", "spread", "Wasserstein / mean", title="Distances of distributions")
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
        view = plain_table("", "trace", "generated", "spread", "trace is", title=group.title)
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
