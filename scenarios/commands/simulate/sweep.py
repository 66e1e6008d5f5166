"""The command ``hpcrowd sweep``: every run of a study, in parallel, then means and differences."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcrowd.analysis.comparison.sweeps import SweepResult, scale_of
from hpcrowd.analysis.metrics import words_of
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.quantities import format_duration, plural
from hpcrowd.scenarios.commands.options import Address, AsJson, Executor, Workers
from hpcrowd.scenarios.engines import engine_of
from hpcrowd.scenarios.sweeps.folder import SweepFolder
from hpcrowd.scenarios.sweeps.runs import Sweep, Tell, methods_text, sweep
from hpcrowd.scenarios.sweeps.runs import status as status_of
from hpcrowd.scenarios.sweeps.study import Study, read_study, study_toml
from hpcrowd.scenarios.terminal import (
    plain_table,
    print_json,
    say,
    standard_output,
    status,
)

if TYPE_CHECKING:
    from rich.console import Console


#: s between two lines of progress if standard error is not a terminal.
TELL_EVERY = 30.0

#: Largest number of lines of a table; the rest is in summary.csv.
MOST_LINES = 60


class RunsFailed(HpcrowdError):
    """Some runs of a sweep failed; the results of the others are written."""

    exit_code = 1


PathOption = Annotated[
    Path, typer.Argument(metavar="STUDY", help="TOML file with a scenario and the axes to vary.")
]

Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted sweep.")]

Show = Annotated[bool, typer.Option("--show", help="Print the completed study as TOML, and exit.")]

Methods = Annotated[
    bool, typer.Option("--methods", help="Print the methods section of a paper about it, and exit.")
]


def command(
    path: PathOption,
    out: Annotated[Path | None, typer.Option(help="Folder for runs, tables and pictures.")] = None,
    executor: Executor = "processes",
    workers: Workers = None,
    address: Address = None,
    resume: Resume = False,
    show: Show = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show the progress of the sweep in --out, and exit.")
    ] = False,
    methods: Methods = False,
    as_json: AsJson = False,
) -> None:
    """Run a scenario with many settings and seeds in parallel, and compare the results.

    \b
    hpcrowd sweep study.toml --out sweeps/speed
    hpcrowd sweep study.toml --out sweeps/speed --resume
    hpcrowd sweep study.toml --out sweeps/speed --executor dask --address tcp://node1:8786
    """
    if out is not None and not (show or methods or status or resume):
        SweepFolder(out).check_new()  # before anything that takes its time
    study = read_study(path)
    if show:
        sys.stdout.write(study_toml(study))
        return
    if methods:
        print(methods_text(study))
        return
    if out is None:
        raise QuantityError("sweep: give a folder for the runs, --out DIR")
    if status:
        _tell_status(study, out, as_json=as_json)
        return
    engine = engine_of(executor, address=address, workers=workers)
    try:
        with _progress(len(study)) as progress:
            found = sweep(study, out, engine=engine, resume=resume, progress=progress)
    finally:
        engine.close()
    for note in found.notes:
        say(f"note: {note}")
    if found.result is None:
        return
    if as_json:
        print_json(found.result.to_json())
    else:
        _show(study, found, found.result, out)
    if found.failed:
        first = found.result.frame.query("state != 'done'")["error"].iloc[0]
        raise RunsFailed(
            f"{plural(found.failed, 'run')} of {found.total:,} failed; the first: {first}; all "
            f"errors are in {out / 'frame.csv'}, and --resume tries these runs again"
        )


def _tell_status(study: Study, out: Path, *, as_json: bool) -> None:
    if not out.is_dir():
        raise QuantityError(f"--out {out}: no such folder, so nothing is done yet")
    found = status_of(study, out)
    if as_json:
        print_json(found)
        return
    print(f"{found['study']}: {found['done']:,} of {found['runs']:,} runs done", end="")
    print(f", {found['failed']:,} failed" if found["failed"] else "")
    for error in found["errors"]:
        print(f"  {error}")


@contextmanager
def _progress(total: int) -> Iterator[Tell]:
    """Yield a function that shows runs done and the time left: a bar on a terminal, else lines."""
    if not sys.stderr.isatty():
        yield _Lines(total).tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Left())
    console = Console(stderr=True)
    with status.aside(), Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("runs", total=total)

        def show(over: int, _total: int, failed: int) -> None:
            name = f"runs, {failed:,} failed" if failed else "runs"
            bar.update(task, completed=over, description=name)

        yield show


class _Lines:
    """Prints a line of progress now and then, as for a log file."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.began = self.told = time.monotonic()
        self.first: int | None = None

    def tell(self, over: int, total: int, failed: int) -> None:
        """Print how many runs have finished and how long the rest takes."""
        now = time.monotonic()
        if self.first is None:
            self.first, self.began = over - 1, now
        if now - self.told < TELL_EVERY:
            return
        self.told = now
        left = (now - self.began) / max(1, over - self.first - 1) * (total - over)
        wrong = f", {failed:,} failed" if failed else ""
        say(f"{over:,} of {total:,} runs{wrong}, {format_duration(left)} left")


def _show(study: Study, found: Sweep, result: SweepResult, out: Path) -> None:
    """Print means, and differences to the first value of each axis."""
    console = standard_output()
    done = found.total - found.failed
    kept = f", {found.kept:,} of them before" if found.kept else ""
    console.print(f"{study.name}: {done:,} of {plural(found.total, 'run')} done{kept}")
    for note in result.notes:
        console.print(note)
    if study.trim.text:
        console.print(f"without {study.trim.text} of submissions")
    seeds = len(study.axes.get("seed", ()))
    if seeds > 1:
        share = f"{100 * result.reporting.confidence:g} %"
        shown = {
            "student": f"± {share} interval",
            "bootstrap": f"[{share} interval by bootstrap]",
            "predictive": f"[{share} of the runs]",
        }[result.reporting.interval]
        of = "" if study.posterior is None else ", each with a draw of the posterior,"
        console.print(f"means over {seeds} seeds{of} {shown}", markup=False)
    kinds = dict.fromkeys(line.against for line in result.lines)
    for against in kinds:
        console.print()
        if against is not None:
            paired = ", paired by seed" if seeds > 1 else ""
            console.print(f"{study.result.effects} to {against[0]} = {against[1]}{paired}")
        _table(result, against, console)
    console.print(f"Frame, summary and pictures are in {out}", soft_wrap=True)


def _table(result: SweepResult, against: tuple[str, object] | None, console: Console) -> None:
    scales: dict[str, float] = {}
    columns = list(result.varied)
    for metric in result.reporting.metrics:
        lines = [line for line in result.lines if line.metric == metric and not line.ratio]
        scales[metric], unit = scale_of(metric, [line.estimate.mean for line in lines])
        ratio = against is not None and result.reporting.effects == "ratio"
        columns.append(words_of(metric) if ratio else f"{words_of(metric)}\n{unit}")
    table = plain_table(*columns, words=len(result.varied))
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for line in result.lines:
        if line.against == against:
            place = tuple(str(value) for value in line.point.values())
            cells.setdefault(place, {})[line.metric] = line.text(scales[line.metric])
    for place, texts in list(cells.items())[:MOST_LINES]:
        table.add_row(*place, *(texts.get(metric, "-") for metric in result.reporting.metrics))
    console.print(table)
    if len(cells) > MOST_LINES:
        console.print(f"... and {len(cells) - MOST_LINES:,} more, in summary.csv")
