"""The commands ``hpcrowd clean`` and ``hpcrowd window``. They load what they need when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcrowd.scenarios.commands.options import AsJson, TracePath

clean_app = typer.Typer()


@clean_app.command()
def clean(
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
    from hpcrowd.scenarios.commands.clean import clean_command

    rule = None if flurries is None else FlurryRule.parse(flurries)
    rules = CleaningRules(rule, larger, no_run_time, no_user, first, last)
    clean_command(trace, rules, out=out, as_json=as_json)


@clean_app.command()
def window(
    trace: TracePath,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The new trace; the name tells the format."
        ),
    ],
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="WHEN",
            help="Jobs submitted from then on: a date, '2004-01-01 12:00', or 30d since the "
            "origin.",
        ),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="WHEN", help="Jobs submitted before then.")
    ] = None,
    users: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Only these users: 3,17,20-30.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Cut a part out of a trace: the jobs submitted in a window, by some users or all.

    Dates are local times of the log. Submit times are counted from the beginning of the window then
    and the header says so. Python: environment.window.

    \b
    hpcrowd window log.swf.gz --from 2004-01-01 --to 2004-02-01 -o january.swf.gz
    hpcrowd window log.swf.gz --from 30d --to 60d --users 3,17,20-30 -o part.swf.gz
    """
    from hpcrowd.scenarios.commands.window import window_command

    window_command(trace, out=out, begin=begin, end=end, users=users, as_json=as_json)
