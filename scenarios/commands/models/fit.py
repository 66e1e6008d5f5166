"""The command ``hpcrowd fit``: a workload model from a trace, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hpcrowd.analysis.features.stats import read_workload
from hpcrowd.analysis.models.model import MODELS, fit, job_model, parse_model, write_model
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.commands.options import AsJson, TraceOrRun, WhichJobs
from hpcrowd.scenarios.commands.setting_options import Reading, reads_traces
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.outputs import check_writable
from hpcrowd.scenarios.terminal import print_json, progress_bar, standard_output


@reads_traces
def command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Name of the model, with options such as mugm:groups=2."
        ),
    ],
    trace: TraceOrRun,
    how: Reading,
    out: Annotated[Path, typer.Option("--out", "-o", help="File of the model, .json.")],
    arrivals: Annotated[
        str | None, typer.Option(help="Model of arrivals; the model's own unless given.")
    ] = None,
    cycle: Annotated[
        Literal["weekly", "daily"] | None,
        typer.Option(help="Impose the trace's weekly or daily rhythm."),
    ] = None,
    which: WhichJobs = "completed",
    as_json: AsJson = False,
) -> None:
    """Fit a workload model to a trace.

    \b
    hpcrowd models
    hpcrowd fit comprehensive log.swf.gz -o M.json
    hpcrowd generate M.json --load 0.7 -o synthetic.swf.gz
    """
    check_writable(out, "--out")
    name, options = parse_model(model)
    job_model(name)
    with progress_bar() as progress:
        progress(f"reading {trace.name}", 0, 2)
        workload = read_workload(trace, which, options=reading_options(**how))
        progress(f"fitting {name}, arrivals {arrivals or MODELS[name].arrivals}", 1, 2)
        found = fit(name, workload, arrivals=arrivals, cycle=cycle, options=options)
    write_model(found, out)
    if as_json:
        print_json(found.to_json())
        return
    console = standard_output()
    console.print(
        f"{found.name}, arrivals {found.arrivals.name}, fitted to "
        f"{plural(len(workload), 'job')} of {workload.name}, on {found.machine:,} processors"
    )
    for reason, count in workload.left_out.items():
        console.print(f"  {plural(count, 'job')} left out: {reason}")
    for note in (*workload.notes, *found.notes):
        console.print(f"  {note}", soft_wrap=True)
    if found.requests is None:
        console.print("  no requested times to fit: generated jobs request their run times")
    if (asked := found.machine_requests) is not None:
        console.print(
            f"  requests to a machine of {plural(len(asked.profiles), 'kind')} go with size and "
            "run time"
        )
    console.print(f"The model is {out}; hpcrowd generate {out} -o X.swf.gz makes a workload")
