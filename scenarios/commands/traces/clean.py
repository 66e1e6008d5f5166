"""The command ``hpcrowd clean``: remove jobs from a trace by rules."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcrowd.analysis.numbers import share_text
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.cleaning import (
    Cleaned,
    CleaningRules,
    FlurryRule,
    Removed,
    clean,
    judge,
)
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.commands.options import AsJson, Reading, TracePath, reads_traces
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.outputs import check_writable
from hpcrowd.scenarios.terminal import plain_table, print_json, standard_output
from hpcrowd.scenarios.trace_files import keep_part, show_reading

if TYPE_CHECKING:
    from rich.console import Console


Flurries = Annotated[
    str | None,
    typer.Option(
        metavar="JOBS/TIME",
        help="Flurries: more jobs of one user than JOBS within TIME, such as 500/1h.",
    ),
]

NoRunTime = Annotated[bool, typer.Option("--no-run-time", help="Jobs without a positive run time.")]

Last = Annotated[
    float | None, typer.Option(metavar="DAYS", help="Jobs in the last DAYS of the log.")
]

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="File for the remaining jobs; its name decides the format.",
    ),
]


@reads_traces
def command(
    trace: TracePath,
    how: Reading,
    flurries: Flurries = None,
    larger: Annotated[
        bool, typer.Option("--larger", help="Jobs larger than the machine: MaxProcs of the header.")
    ] = False,
    no_run_time: NoRunTime = False,
    no_user: Annotated[bool, typer.Option("--no-user", help="Jobs without a user.")] = False,
    first: Annotated[
        float | None, typer.Option(metavar="DAYS", help="Jobs in the first DAYS of the log.")
    ] = None,
    last: Last = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Remove jobs from a trace by rules. Without --out, only count what each rule removes.

    Without a rule, every rule is tried with its defaults. The header of the new trace is updated.
    In Python: hc.clean.

    \b
    hpcrowd clean log.swf.gz
    hpcrowd clean log.swf.gz --flurries 500/1h --larger --no-run-time
    hpcrowd clean log.swf.gz --flurries 500/1h --first 7 -o clean.swf.gz
    """
    burst = None if flurries is None else FlurryRule.parse(flurries)
    rules = CleaningRules(burst, larger, no_run_time, no_user, first, last)
    if out is not None:
        if not rules:
            raise QuantityError(
                f"-o {out}: no rule is given; choose --flurries 500/1h, --larger, "
                "--no-run-time, --no-user, --first DAYS or --last DAYS"
            )
        check_writable(out, "-o")
    log = read_trace(trace, options=reading_options(**how))
    asked = rules or CleaningRules.every(log)
    if out is None:
        _, cleaned = judge(log, asked)
    else:
        left, cleaned = clean(log, asked)
        kept = keep_part(left, out)
    if as_json:
        print_json(
            {"trace": trace.name, "out": None if out is None else str(out), **asdict(cleaned)}
        )
        return
    console = standard_output()
    _show(console, log, cleaned)
    if not rules and not asked.larger:
        console.print("No MaxProcs in the header: jobs too large for the machine cannot be found.")
    if out is None:
        cure = "-o FILE writes the remaining jobs" if rules else "give rules, and -o FILE"
        console.print(f"Nothing is written; {cure}.")
        return
    cut = f"; {plural(cleaned.cut, 'reference')} to removed jobs set to -1" if cleaned.cut else ""
    console.print(f"{out}: {plural(len(left), 'job')}{cut}", soft_wrap=True)
    for line in kept.lines():
        console.print(line, soft_wrap=True)


def _show(console: Console, trace: Trace, cleaned: Cleaned) -> None:
    """Print what was read, and what each rule removes."""
    name = Path(trace.source).name
    console.print(f"{name}: {plural(cleaned.jobs, 'job')}, {plural(cleaned.users, 'user')}")
    show_reading(console, trace)
    columns = ("rule", "removes jobs", "jobs", "users", "of jobs", "of processor-seconds")
    rows = [(each.rule, each.what, *_numbers(each)) for each in cleaned.rules]
    if len(cleaned.rules) > 1:
        rows.append(("together", "", *_numbers(cleaned.together)))
    console.print(plain_table(*columns, rows=rows, words=2, whole=2))


def _numbers(each: Removed) -> tuple[str, ...]:
    shares = map(share_text, (each.job_share, each.work_share))
    return f"{each.jobs:,}", f"{each.users:,}", *shares
