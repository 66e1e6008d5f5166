"""The command ``hpcrowd fit``: a model of a workload or of users from traces, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hpcrowd.analysis.features.stats import read_workload
from hpcrowd.analysis.models.model import MODELS, fit, job_model, parse_model, write_model
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.registry import file_of
from hpcrowd.scenarios.commands.options import (
    TRACE_HELP,
    AsJson,
    Reading,
    Seed,
    WhichJobs,
    all_at_hand,
    reads_traces,
)
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.outputs import check_writable
from hpcrowd.scenarios.terminal import plain_table, print_json, progress_bar, standard_output

if TYPE_CHECKING:
    from hpcrowd.analysis.features.workload import Workload
    from hpcrowd.analysis.models.model import WorkloadModel
    from hpcrowd.environment.traces.formats.common.base import FormatOptions

#: Names of the model of users, and of how long they wait.
LEARNED, PATIENCE = "learned", "patience"


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Name of the model, with options such as mugm:groups=2; learned for users; "
        "patience for how long they wait.",
    ),
]

Traces = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRACE...",
        help=f"{TRACE_HELP.removesuffix('.')}; or a folder of results. Several for learned "
        "and patience.",
        callback=all_at_hand,
    ),
]

Out = Annotated[
    Path, typer.Option("--out", "-o", help="File of the model: .json, of learned users .parquet.")
]

Arrivals = Annotated[
    str | None, typer.Option(help="Model of arrivals; the model's own unless given.")
]

Cycle = Annotated[
    Literal["weekly", "daily"] | None,
    typer.Option(help="Impose the trace's weekly or daily rhythm."),
]


@reads_traces
def command(
    model: Model,
    traces: Traces,
    how: Reading,
    out: Out,
    arrivals: Arrivals = None,
    cycle: Cycle = None,
    which: WhichJobs = "completed",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fit a workload model to a trace, or learned users or their patience to one or more.

    \b
    hpcrowd models
    hpcrowd fit comprehensive log.swf.gz -o M.json
    hpcrowd generate M.json --load 0.7 -o synthetic.swf.gz
    hpcrowd fit learned log.swf.gz other.swf.gz -o users.parquet
    hpcrowd replay log.swf.gz --users learned:users.parquet
    hpcrowd fit patience log.swf.gz -o patience.json
    """
    check_writable(out, "--out")
    if (name := model.partition(":")[0]) in (LEARNED, PATIENCE):
        for option, given in (("--arrivals", arrivals), ("--cycle", cycle)):
            if given is not None:
                raise QuantityError(f"{option} {given}: for models of workloads; leave it out")
        fit_people = _fit_users if name == LEARNED else _fit_patience
        return fit_people(model, traces, reading_options(**how), seed, out, as_json)
    trace, *others = traces
    if others:
        raise QuantityError(
            f"trace {others[0]}: {model} is fitted to one trace; give one, or fit {LEARNED}"
        )
    name, options = parse_model(model)
    job_model(name)
    with progress_bar() as progress:
        progress(f"reading {trace.name}", 0, 2)
        workload = read_workload(trace, which, options=reading_options(**how))
        progress(f"fitting {name}, arrivals {arrivals or MODELS[name].arrivals}", 1, 2)
        found = fit(name, workload, arrivals=arrivals, cycle=cycle, options=options)
    write_model(found, out)
    if as_json:
        return print_json(found.to_json())
    show_fitted(found, workload, out)
    return None


def show_fitted(found: WorkloadModel, workload: Workload, out: Path) -> None:
    """Print what a workload model was fitted to."""
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


def _fit_users(
    text: str,
    paths: list[Path],
    reading: FormatOptions,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    """Fit a learned model of users, and say what it was fitted to."""
    from hpcrowd.analysis.models.learned import Settings, fit_traces
    from hpcrowd.environment.options import parse_options
    from hpcrowd.environment.traces.formats.registry import read_trace

    options = parse_options("model", text, Settings, filter(None, text[8:].split(",")))
    with progress_bar() as progress:
        found = fit_traces(
            (read_trace(file_of(path), options=reading) for path in paths),
            Settings(**options),
            seed=seed,
            progress=lambda label, done: progress(label, done, len(paths) + 1),
        )
    found.save(out)
    if as_json:
        print_json(found.provenance)
        return
    console = standard_output()
    for log in found.provenance["logs"]:
        console.print(
            f"{log['name']}: {plural(log['pauses'], 'pause')} of {plural(log['users'], 'user')}"
        )
        if log["note"]:
            console.print(f"  {log['note']}", soft_wrap=True)
    console.print(
        f"The model is {out}; hpcrowd replay TRACE --users {LEARNED}:{out} uses it",
        soft_wrap=True,
    )


def _fit_patience(
    text: str, paths: list[Path], reading: FormatOptions, _seed: int, out: Path, as_json: bool
) -> None:
    """Fit patience to traces, in which nothing is random, and print what was found."""
    from hpcrowd.analysis.patience.fit import fit_patience
    from hpcrowd.environment.quantities import format_duration
    from hpcrowd.environment.traces.formats.registry import read_trace

    if text != PATIENCE:
        raise QuantityError(f"model {text}: {PATIENCE} has no options; leave out what follows it")
    with progress_bar() as progress:
        found = fit_patience(
            (read_trace(file_of(path), options=reading) for path in paths),
            progress=lambda label, done: progress(label, done, len(paths) + 1),
        )
    found.save(out)
    about = found.provenance
    if as_json:
        print_json(about)
        return
    console = standard_output()
    for log in about["logs"]:
        given, jobs = log["given_up"], plural(log["jobs"], "job")
        console.print(
            f"{log['name']}: {given:,} of {jobs} given up ({100 * given / log['jobs']:.1f} %)"
        )
        if not given:
            continue
        console.print(
            f"  by {log['users_who_gave_up']:,} of {plural(log['users'], 'user')}; half of them "
            f"within {format_duration(log['wait_median_s'])}\n"
            f"  {100 * log['changed_minds']:.0f} % replaced by another like it in 10 minutes (of "
            f"jobs that started, of the same users: {100 * log['followed_after_starts']:.0f} % "
            "followed by one)",
            soft_wrap=True,
        )
    rows = [
        (format_duration(int(wait)), f"{100 * share:.1f} %")
        for wait, share in about["given_up_within_s"].items()
    ]
    console.print("Given up, if none started", style="bold")
    console.print(plain_table("within", "jobs", rows=rows))
    rows = [(name, f"{times:.1f}") for name, times in about["times_as_often"].items()]
    console.print("How much more often users give up who did so before", style="bold")
    console.print(plain_table("rate", "times", rows=rows))
    console.print(
        "Times: at the 90th percentile of jobs against the 10th. own: of the user; alike: of the "
        "user's jobs of that size; then: at such waits.\n"
        f"The model is {out}",
        soft_wrap=True,
    )
