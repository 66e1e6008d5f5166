"""Arguments and options that several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hpcrowd.environment.limits.numbers import LARGEST_SEED, MOST_WORKERS
from hpcrowd.environment.traces.formats.registry import is_collected, trace_path
from hpcrowd.scenarios.terminal import progress_bar


def at_hand(paths: list[Path]) -> list[Path]:
    """Return the files that paths mean; logs of the archive are fetched if they are missing."""
    if not any(map(is_collected, paths)):
        return paths
    with progress_bar() as progress:
        return [trace_path(path, progress=progress) for path in paths]


def _one_at_hand(path: Path) -> Path:
    return at_hand([path])[0]


def all_at_hand(paths: list[Path] | None) -> list[Path] | None:
    """Return the files that paths mean, for an argument that may be left out."""
    return at_hand(paths) if paths else paths


def sentence(text: str) -> str:
    """Return the description of a setting as the help of an option."""
    return f"{text[0].upper()}{text[1:]}."


#: Help text of an argument that is a trace.
TRACE_HELP = "Trace in any format (see `hpcrowd convert --list`), or archive:NAME."

TracePath = Annotated[Path, typer.Argument(metavar="TRACE", help=TRACE_HELP, callback=_one_at_hand)]

TraceOrRun = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE",
        help=f"{TRACE_HELP.removesuffix('.')}; or a folder of results.",
        callback=_one_at_hand,
    ),
]

#: A workload model, for :func:`hpcrowd.analysis.models.model.model_of`.
ModelSource = Annotated[
    str,
    typer.Argument(
        metavar="M.json|NAME", help="File of a fitted model, or name of a published one."
    ),
]

WhichJobs = Annotated[
    Literal["completed", "all"],
    typer.Option(help="Jobs of the trace that count: completed (status 1), or all that ran."),
]

Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of everything random.")]

RunFolder = Annotated[
    Path | None, typer.Option(help="Folder for tables, trace, pictures and provenance.")
]

ResultsFolder = Annotated[Path | None, typer.Option(help="Folder for the results.")]

ReportFile = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE.html", help="File for a report.")
]

AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output, and nothing else.")
]

Executor = Annotated[
    str, typer.Option(help="What runs them: processes, dask, or inline (this process alone).")
]

Workers = Annotated[
    int | None,
    typer.Option(
        min=1, max=MOST_WORKERS, help="Processes that share the work; one per core unless given."
    ),
]

Address = Annotated[
    str | None,
    typer.Option(help="Address of the scheduler of a running Dask cluster: tcp://HOST:PORT."),
]

LogDecisions = Annotated[
    bool,
    typer.Option(
        "--log-decisions",
        help="Log what each user decided and why, for `hpcrowd explain`; needs --out.",
    ),
]
