"""The command ``hpcrowd generate``: a workload from a model, as a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.commands.options import AsJson, ModelSource, Seed
from hpcrowd.scenarios.kinds.parts.machine import site_of
from hpcrowd.scenarios.outputs import check_writable
from hpcrowd.scenarios.terminal import print_json, progress_bar, say, standard_output
from hpcrowd.scenarios.trace_files import Kept, keep_trace

if TYPE_CHECKING:
    from hpcrowd.analysis.models.generation import Generated
    from hpcrowd.analysis.models.model import WorkloadModel
    from hpcrowd.environment.traces.formats.common.base import Format

#: Formats that a workload can be written in.
FORMATS = ("swf", "csv", "parquet")


Out = Annotated[
    Path,
    typer.Option("--out", "-o", help="Trace to write, .swf, .csv or .parquet; .swf.gz compresses."),
]

Jobs = Annotated[
    int | None, typer.Option(help="How many jobs; as many as the fitted trace has unless given.")
]

Correlation = Annotated[
    float | None,
    typer.Option(
        help="Correlation of run time and processors, -1 to 1 times the largest possible."
    ),
]

Users = Annotated[
    str | None,
    typer.Option(
        metavar="N|Kx", help="How many users, or a multiple such as 10x; the model's unless given."
    ),
]

Machine = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Nodes, partitions and rules of the machine that jobs shall fit on: its files, as "
        "for replay.",
    ),
]


def command(
    source: ModelSource,
    out: Out,
    jobs: Jobs = None,
    days: Annotated[float | None, typer.Option(help="How many days, instead of jobs.")] = None,
    load: Annotated[
        float | None, typer.Option(help="Offered load, such as 0.7; by default the model's.")
    ] = None,
    processors: Annotated[
        int | None, typer.Option(help="Size of the machine; by default the model's.")
    ] = None,
    correlation: Correlation = None,
    users: Users = None,
    machine: Machine = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Generate a workload from a model, as a trace.

    If the fitted trace says what jobs ask of a machine of nodes, so do generated jobs: partition,
    GPUs, memory and more. SWF cannot hold that; write .parquet or .csv.

    \b
    hpcrowd generate M.json --days 30 --load 0.7 -o X.swf.gz
    hpcrowd generate lublin --processors 256 --jobs 10000 -o X.swf.gz
    hpcrowd generate M.json --machine site.toml -o X.parquet
    """
    from hpcrowd.analysis.models.generation import generate
    from hpcrowd.analysis.models.model import model_of

    kind = _format_of(out)
    site = site_of(machine, Path())
    model = model_of(source, site.cores if processors is None and site else processors)
    if jobs is None and days is None:
        jobs = model.provenance.get("jobs")
        if not isinstance(jobs, int):
            raise QuantityError(
                f"{source}: published parameters do not include an amount; give --jobs or --days"
            )
    with progress_bar() as progress:
        progress(f"generating {model.name}", 0, 2)
        made = generate(
            model, jobs=jobs, days=days, load=load, processors=processors,
            correlation=correlation, users=users, seed=seed, machine=site,
        )  # fmt: skip
        progress(f"writing {out.name}", 1, 2)
        kept = keep_trace(made.trace(), str(out), kind)
    wire = _wire(made, model, seed, out)
    if as_json:
        print_json(wire)
        return
    for note in made.notes:
        say(note)
    if made.requests is not None and kind.name == "swf":
        say("SWF cannot hold what the jobs ask of a machine; write .parquet to keep it")
    _show(wire, kept)


def _format_of(out: Path) -> Format:
    """Return the format that the name of a file says, if a workload can be written in it."""
    from hpcrowd.environment.traces.formats.registry import format_by_name

    check_writable(out, "--out")
    kind = format_by_name(out)
    if kind is None or kind.name not in FORMATS:
        raise QuantityError(
            f"--out {out}: a trace ends in .swf, .csv or .parquet, or one of these and .gz"
        )
    return kind


def _wire(made: Generated, model: WorkloadModel, seed: int, out: Path) -> dict[str, Any]:
    """Return what was generated, fit for JSON."""
    span = float(made.drawn.submit[-1] - made.drawn.submit[0])
    return {
        "model": model.name,
        "arrivals": model.arrivals.name,
        "seed": seed,
        "jobs": len(made),
        "span_s": span,
        "processors": made.machine,
        "offered_load": made.load if span else None,
        "notes": list(made.notes),
        "trace": str(out),
    }


def _show(wire: dict[str, Any], kept: Kept) -> None:
    """Print what was generated."""
    console, load = standard_output(), wire["offered_load"]
    console.print(
        f"{plural(wire['jobs'], 'job')} of {wire['model']}, arrivals {wire['arrivals']}, "
        f"seed {wire['seed']}, in {wire['span_s'] / 86400:,.1f} days on {wire['processors']:,} "
        f"processors" + ("" if load is None else f", offered load {load:.3f}")
    )
    console.print(f"The trace is {wire['trace']}")
    if kept.names is not None:
        console.print(f"The names of its queues are in {kept.names}")
