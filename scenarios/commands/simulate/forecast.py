"""The command ``hpcrowd forecast``: the future of a cluster from its state now, with bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.commands.options import (
    Address,
    AsJson,
    Executor,
    Reading,
    Seed,
    Workers,
    reads_traces,
    takes_fields,
)
from hpcrowd.scenarios.forecasts.settings import ForecastSettings
from hpcrowd.scenarios.outputs import check_outputs, check_writable
from hpcrowd.scenarios.terminal import (
    plain_table,
    print_json,
    progress_bar,
    say,
    say_where,
    standard_output,
)

if TYPE_CHECKING:
    from hpcrowd.analysis.forecast.answers import Answers
    from hpcrowd.scenarios.forecasts.forecast import Forecast


#: Settings that are options beside those that other commands have, too.
SETTINGS = (
    "at", "past", "machine", "processors", "days", "futures", "jobs", "instead", "changes",
    "users", "scheduler", "estimates", "overrun", "platform", "hindcasts",
)  # fmt: skip

StateSource = Annotated[
    Path,
    typer.Argument(
        metavar="STATE",
        help="A snapshot of --snapshot; the queue of a Slurm (squeue -a -r -o %all, squeue "
        "--json, scontrol -a show job); a trace in any format; or a folder of results.",
    ),
]

Watching = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Read the state again every so often, forecast again, and note in --out how "
        "earlier forecasts fared.",
    ),
]

Record = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Of --judge: only the final bounds of starts, with a record as short as that at each "
        "moment, such as 1d.",
    ),
]

KeepFutures = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Keep futures there, and go on with those that are there."),
]


@reads_traces
@takes_fields(ForecastSettings, SETTINGS, into="settings")
def command(
    source: StateSource,
    how: Reading,
    settings: dict[str, Any],
    judge: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="Forecast a trace at many moments of its second half, and say how good that was.",
        ),
    ] = False,
    moments: Annotated[
        int, typer.Option(min=1, max=10_000, help="How many moments --judge looks at.")
    ] = 200,
    record: Record = None,
    watch: Watching = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the state to a file, and forecast nothing."),
    ] = None,
    keep: KeepFutures = None,
    executor: Executor = "processes",
    workers: Workers = None,
    address: Address = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables, pictures and a page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Foresee starts, load and queue from the cluster as it is now, with error bars.

    Many futures are simulated from the state: run times are drawn from what such jobs did, and
    users go on as they did before in such situations. In Python: hc.forecast.

    \b
    hpcrowd forecast log.swf.gz --at '1997-03-24 15:00' --job '64 processors for 6 h'
    hpcrowd forecast queue.txt --past sacct.txt --machine slurm.conf --out forecast
    hpcrowd forecast now.state.gz --change processors=128 --days 7 --out forecast
    hpcrowd forecast log.swf.gz --judge
    hpcrowd forecast log.swf.gz --judge --record 1d
    """
    from hpcrowd.scenarios.forecasts.forecast import Forecast

    given = Forecast(
        source=source, how=how, keep=keep, executor=executor, workers=workers, address=address,
        seed=seed, **settings,
    )  # fmt: skip
    if record is not None and not judge:
        raise QuantityError("--record: is for --judge; the record of a forecast is what it reads")
    if record is not None:
        _judge_records(given, moments, record, as_json=as_json)
    elif judge:
        _judge(given, moments, out, as_json=as_json)
    elif snapshot is not None:
        _snapshot(given, snapshot, as_json=as_json)
    elif watch is not None:
        _watch(given, watch, out)
    else:
        _forecast(given, out, as_json=as_json)


def _forecast(given: Forecast, out: Path | None, *, as_json: bool) -> None:
    """Make one forecast, and print or write it."""
    from hpcrowd.analysis.forecast.report import write
    from hpcrowd.environment.output.guard import check_replaceable

    if out is not None:
        check_replaceable(out)
    with progress_bar() as progress:
        found = given.run(progress)
    if out is not None:
        write(
            found.answers, out, effects=found.effects, eaten=found.eaten,
            configuration=given.plain(), trace=given.source_account(), again=[given.again(out)],
        )  # fmt: skip
        say_where(out)
    if as_json:
        wire = found.answers.to_dict()
        wire["effects"] = [one.to_dict() for one in found.effects]
        wire["eaten_up"] = None if found.eaten is None else found.eaten.to_dict()
        print_json(wire)
        return
    _show(found.answers, found.effects, found.eaten)


def _show(answers: Answers, effects: Any, eaten: Any) -> None:
    """Print tables."""
    from hpcrowd.analysis.forecast import report
    from hpcrowd.environment.errors import printable

    console = standard_output()
    for line in report.headline(answers):
        console.print(line, soft_wrap=True)
    for note in answers.notes:
        console.print(f"  {printable(note)}", soft_wrap=True, markup=False)
    rows = report.job_rows(answers)
    waiting = sum(one.number is not None for one in answers.jobs)
    asked = [[row[0], *row[3:]] for row in rows[waiting:]]
    _table(("if you submit now", *report.JOB_HEADING[3:]), asked, reasons=True)
    _table(report.JOB_HEADING, rows[: min(waiting, MOST_LINES)], reasons=True)
    if waiting > MOST_LINES:
        console.print(f"and {waiting - MOST_LINES:,} more waiting jobs, in jobs.csv of --out")
    heading, waits = report.wait_rows(answers)
    days = min(MOST_DAYS, len(heading) - 2)
    _table(
        [*heading[: 1 + days], *heading[-1:]], [[*row[: 1 + days], row[-1]] for row in waits],
        words=1,
    )  # fmt: skip
    for one in effects:
        of_asked = report.start_rows(one)[waiting:]
        _table(report.EFFECT_HEADING, [*report.effect_rows(one), *of_asked], one.label, words=1)
    if eaten is not None:
        for line in report.eaten_words(eaten):
            console.print(line, soft_wrap=True)


def _table(
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    title: str = "",
    *,
    words: int | None = None,
    reasons: bool = False,
) -> None:
    """Print a table after an empty line, and nothing without rows; of reasons the first words."""
    if not rows:
        return
    if reasons:
        rows = [[*row[:-1], re.split(r"[;(]|: requests", row[-1])[0].strip()] for row in rows]
    words = len(heading) if words is None else words
    console = standard_output()
    console.print()
    console.print(plain_table(*heading, rows=rows, words=words, title=title))


#: Most waiting jobs in a printed table, those that were submitted first.
MOST_LINES = 30

#: Most days in a printed table of waits, the first ones.
MOST_DAYS = 3


def _snapshot(given: Forecast, path: Path, *, as_json: bool) -> None:
    """Write the state to a file."""
    from hpcrowd.environment.state.files import write_state

    check_writable(path, "--snapshot")
    check_outputs({"--snapshot": path})
    state = given.state()
    write_state(state, path)
    for note in state.notes:
        say(f"note: {note}")
    if as_json:
        print_json(
            {
                "snapshot": str(path), "now_s": state.now, "processors": state.processors,
                "running": len(state.running), "waiting": len(state.waiting),
                "over": len(state.over),
            }
        )  # fmt: skip
    else:
        print(f"{path}: {state!r}".replace("<ClusterState", "state").rstrip(">"))


def _judge(given: Forecast, moments: int, out: Path | None, *, as_json: bool) -> None:
    """Judge forecasts of a trace."""
    from hpcrowd.environment.output.guard import check_replaceable
    from hpcrowd.scenarios.forecasts.making import judge, show, write

    if out is not None:
        check_replaceable(out)
    with progress_bar() as progress:
        found = judge(
            given.subject(progress), moments, processes=given.workers,
            progress=lambda done, total: progress("moments", done, total),
        )  # fmt: skip
    if out is not None:
        write(found, out, given.plain() | {"moments": moments})
        say_where(out)
    if as_json:
        print_json(found.to_dict())
    else:
        show(found, standard_output())


def _judge_records(given: Forecast, moments: int, record: str, *, as_json: bool) -> None:
    """Judge bounds of starts with records of a length."""
    from dataclasses import asdict

    from hpcrowd.environment.quantities import parse_duration
    from hpcrowd.scenarios.forecasts.records import recorded, scores, show

    length = parse_duration(record, "--record")
    with progress_bar() as progress:
        cases = recorded(
            given.subject(progress), length, moments, given.hindcasts, processes=given.workers,
            progress=lambda done, total: progress("moments", done, total),
        )  # fmt: skip
    found = scores(cases)
    if as_json:
        print_json({"record_s": length, **{kind: asdict(one) for kind, one in found.items()}})
    else:
        show(found, length, standard_output())


def _watch(given: Forecast, every: str, out: Path | None) -> None:
    """Forecast again and again."""
    from hpcrowd.environment.quantities import parse_duration
    from hpcrowd.scenarios.forecasts.watching import watch

    if out is None:
        raise QuantityError("--watch: give a folder for the forecasts, --out DIR")
    watch(given, parse_duration(every, "--every"), out)
