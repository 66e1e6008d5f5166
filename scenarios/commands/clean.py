"""The command ``hpcrowd clean``: what rules take out of a trace, and the trace without it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.cleaning import Cleaned, CleaningRules, Removed, clean, judge
from hpcrowd.environment.traces.formats.common.base import Format
from hpcrowd.environment.traces.formats.registry import format_by_name, read_trace
from hpcrowd.environment.traces.formats.swf import SWF
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.commands.options import (
    AsJson,
    TracePath,
)
from hpcrowd.scenarios.terminal import print_json, standard_output
from hpcrowd.scenarios.trace_files import keep_trace, reading_lines
from hpcrowd.scenarios.whole_file import check_writable


def clean_command(path: Path, rules: CleaningRules, *, out: Path | None, as_json: bool) -> None:
    """Print what the rules take out, all with their defaults unless some are asked for.

    Raises
    ------
    HpcrowdError
        When the trace cannot be read or written, or nothing is left of it.
    """
    if out is not None:
        if not rules:
            raise QuantityError(
                f"-o {out}: no rule is asked for; choose --flurries 500/1h, --larger, "
                "--no-run-time, --no-user, --first DAYS or --last DAYS"
            )
        check_target(path, out)
    trace = read_trace(path)
    asked = rules or CleaningRules.every(trace)
    if out is None:
        _, cleaned = judge(trace, asked)
    else:
        left, cleaned = clean(trace, asked)
        kept = keep_trace(left, str(out), format_of(out))
    if as_json:
        print_json(
            {"trace": path.name, "out": None if out is None else str(out), **asdict(cleaned)}
        )
        return
    _show(path.name, trace, cleaned)
    console = standard_output(highlight=False, markup=False)
    if not rules and not asked.larger:
        console.print("No MaxProcs in the header: which jobs are larger cannot be told.")
    if out is None:
        how = "-o FILE writes what is left" if rules else "ask for rules, and -o FILE"
        console.print(f"Nothing is written; {how}.")
        return
    cut = f"; {plural(cleaned.cut, 'reference')} to jobs taken out made -1" if cleaned.cut else ""
    console.print(f"{out}: {plural(len(left), 'job')}{cut}", soft_wrap=True)
    for line in kept.lines():
        console.print(line, soft_wrap=True)


def format_of(out: Path) -> Format:
    """Return the format of a new trace: what its name tells, else the usual one."""
    return format_by_name(out) or SWF


def check_target(path: Path, out: Path) -> None:
    """Make sure that a new trace may be written, and that it is not the one it is made from.

    Raises
    ------
    HpcrowdError
        When it is, or may not.
    """
    check_writable(out, "-o")
    if out.exists() and path.exists() and out.samefile(path):
        raise QuantityError(f"-o {out}: is the trace itself; name another file")


def _show(name: str, trace: Trace, cleaned: Cleaned) -> None:
    from rich.table import Table

    console = standard_output(highlight=False, markup=False)
    console.print(f"{name}: {plural(cleaned.jobs, 'job')}, {plural(cleaned.users, 'user')}")
    for line in reading_lines(trace):
        console.print(f"  {line}", soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("rule", no_wrap=True)
    table.add_column("takes out jobs", no_wrap=True)
    for title in ("jobs", "users", "of jobs", "of processor-seconds"):
        table.add_column(title, justify="right")
    for each in cleaned.rules:
        table.add_row(each.rule, each.what, *_numbers(each))
    if len(cleaned.rules) > 1:
        table.add_row("together", "", *_numbers(cleaned.together))
    console.print(table)


def _numbers(each: Removed) -> tuple[str, ...]:
    shares = (f"{share:.1%}".replace("%", " %") for share in (each.job_share, each.work_share))
    return f"{each.jobs:,}", f"{each.users:,}", *shares


def command(
    trace: TracePath,
    flurries: Annotated[
        str | None,
        typer.Option(
            metavar="JOBS/TIME",
            help="Bursts: jobs of a user in a stretch of time with more than so many, 500/1h.",
        ),
    ] = None,
    larger: Annotated[
        bool, typer.Option("--larger", help="Jobs larger than the machine: MaxProcs of the header.")
    ] = False,
    no_run_time: Annotated[
        bool, typer.Option("--no-run-time", help="Jobs with a run time of 0 or less, or none.")
    ] = False,
    no_user: Annotated[bool, typer.Option("--no-user", help="Jobs without a user.")] = False,
    first: Annotated[
        float | None,
        typer.Option(metavar="DAYS", help="Jobs within so many days of the first submission."),
    ] = None,
    last: Annotated[
        float | None,
        typer.Option(metavar="DAYS", help="Jobs within so many days of the last submission."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write what is left; the name tells the format."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take jobs out of a trace by rules, and count what each takes; without -o, only show it.

    Without a rule, show what each takes with its default. What is written has a true header.
    Python: environment.clean.

    \b
    hpcrowd clean log.swf.gz
    hpcrowd clean log.swf.gz --flurries 500/1h --larger --no-run-time
    hpcrowd clean log.swf.gz --flurries 500/1h --first 7 -o clean.swf.gz
    """
    from hpcrowd.environment.traces.cleaning import CleaningRules, FlurryRule

    rule = None if flurries is None else FlurryRule.parse(flurries)
    rules = CleaningRules(rule, larger, no_run_time, no_user, first, last)
    clean_command(trace, rules, out=out, as_json=as_json)
