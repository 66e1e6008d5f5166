"""The command ``hpcrowd calibrate``: parameters of users with uncertainty, from a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hpcrowd.environment.limits.numbers import MOST_RUNS, MOST_WORKERS
from hpcrowd.environment.quantities import format_duration
from hpcrowd.scenarios.commands.options import AsJson, Seed, TracePath, takes_settings
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.scenarios.kinds.trace_settings import READING
from hpcrowd.scenarios.outputs import check_writable
from hpcrowd.scenarios.terminal import (
    plain_table,
    print_json,
    progress_bar,
    say,
    standard_output,
)

if TYPE_CHECKING:
    from rich.console import Console

    from hpcrowd.analysis.calibration.posterior import Coverage, Posterior
    from hpcrowd.scenarios.calibration.calibrate import Calibration

#: Settings of a scenario that are options.
SETTINGS = ("scheduler", "processors", "machine", "requested", "sessions", *READING)

#: A log whose likeness is below this is unlike all draws; of logs of such users one in twenty is.
UNLIKE = 0.05

#: How parameters of a population begin in a scenario; people see them as in the file.
OF_POPULATION = "users.users."


Free = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=LOW..HIGH",
        help="Free parameter and its prior, such as users.0.line.slope=0..2, or log:1h..2d "
        "for any factor alike; repeat it for more.",
    ),
]

Days = Annotated[
    int | None,
    typer.Option(min=1, help="Days of the log, from its first submission; all unless given."),
]

Compare = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[,NAME...]",
        help="Statistics that count, by their names or beginnings: think,session; all unless "
        "given.",
    ),
]

Draws = Annotated[int, typer.Option(min=1, max=MOST_RUNS, help="Draws of the prior to simulate.")]

Method = Annotated[
    Literal["regression", "smc"],
    typer.Option(
        help="regression: draws of the prior, adjusted; smc: a search step by step, by pyabc."
    ),
]

Check = Annotated[
    int,
    typer.Option(min=0, max=MOST_RUNS, help="Known truths that are calibrated to; 0 for no check."),
]

Out = Annotated[Path | None, typer.Option("--out", "-o", help="File for the posterior, .json.")]


@takes_settings(ReplayConfig, SETTINGS)
def command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="POPULATION.toml",
            help="TOML file of a population, or of a scenario, with its free parameters.",
        ),
    ],
    trace: TracePath,
    settings: dict[str, Any],
    free: Free = None,
    days: Days = None,
    compare: Compare = None,
    draws: Draws = 400,
    method: Method = "regression",
    check: Check = 0,
    seed: Seed = 0,
    workers: Annotated[
        int, typer.Option(min=1, max=MOST_WORKERS, help="Processes that share the work.")
    ] = 1,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Find parameters of users, with their uncertainty, from the statistics of a log.

    \b
    hpcrowd calibrate linear.toml log.swf.gz --free users.0.line.slope=0..2 -o posterior.json
    hpcrowd calibrate linear.toml log.swf.gz --free users.0.line.slope=0..2 --check 200
    """
    from hpcrowd.scenarios.calibration.calibrate import calibrate, write_posterior

    if out is not None:
        check_writable(out)
    with progress_bar() as progress:
        found = calibrate(
            source,
            trace,
            free=free or (),
            days=days,
            compare=() if compare is None else [name.strip() for name in compare.split(",")],
            draws=draws,
            method=method,
            truths=check,
            seed=seed,
            workers=workers,
            progress=progress,
            settings=settings,
        )
    if out is not None:
        write_posterior(found.posterior, out, source.parent)
    if as_json:
        checked = None if found.coverage is None else found.coverage.to_json()
        more = {"outside": found.outside, "likeness": found.likeness, "check": checked}
        print_json(found.posterior.to_json() | more)
        return
    console = standard_output()
    show(found, console)
    if out is not None:
        say(f"The posterior is {out}")


def short(name: str) -> str:
    """Return the name of a parameter as in the file of its population."""
    return name.removeprefix("users.") if name.startswith(OF_POPULATION) else name


def show(found: Calibration, console: Console) -> None:
    """Print the posterior, the statistics, and the check."""
    posterior = found.posterior
    by = {"regression": "draws of the prior, adjusted", "smc": "ABC-SMC by pyabc"}
    provenance = posterior.provenance or {}
    console.print(
        f"{provenance['trace']}: {found.jobs:,} jobs in {found.days:,.1f} days; "
        f"{provenance['draws']:,} simulations, {len(posterior)} draws kept "
        f"({by[posterior.method]})",
        soft_wrap=True,
    )
    console.print()
    _parameters(posterior, console)
    console.print()
    _statistics(found, console)
    if found.coverage is not None:
        console.print()
        _check(found.coverage, console)


def _parameters(posterior: Posterior, console: Console) -> None:
    from hpcrowd.analysis.calibration.posterior import LITTLE

    table = plain_table(
        "parameter", "prior", "median", "50 % interval", "90 % interval", "shrinkage",
        words=2, whole=1,
    )  # fmt: skip
    little = []
    for place, prior in enumerate(posterior.priors):
        low, lower, median, upper, high = map(
            prior.shown, posterior.quantiles(place, (0.05, 0.25, 0.5, 0.75, 0.95))
        )
        shrinkage = posterior.shrinkage(place)
        if shrinkage < LITTLE:
            little.append(short(prior.name))
        table.add_row(
            short(prior.name), prior.text, median, f"{lower} to {upper}", f"{low} to {high}",
            f"{100 * shrinkage:.0f} %",
        )  # fmt: skip
    console.print(table)
    for name in little:
        console.print(f"The log says little about {name}: its spread is nearly that of the prior.")


def _statistics(found: Calibration, console: Console) -> None:
    from hpcrowd.analysis.calibration.statistics import STATISTICS

    table = plain_table("statistic", "log", "median", "50 % interval", "90 % interval", "", whole=1)
    known = {one.name: one for one in STATISTICS}
    for line in found.posterior.statistics:
        seconds = known[line.name].unit == "s"

        def text(value: float, seconds: bool = seconds) -> str:
            if seconds:
                return format_duration(value)
            return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

        table.add_row(
            line.name, text(line.record), text(line.median),
            f"{text(line.low_50)} to {text(line.high_50)}",
            f"{text(line.low_90)} to {text(line.high_90)}",
            "" if line.inside else "outside",
            style="" if line.name in found.table.names else "dim",
        )  # fmt: skip
    console.print(table)
    if found.outside:
        console.print(
            f"Left out, as no draw of the prior has what the log has: {', '.join(found.outside)}",
            soft_wrap=True,
        )
    if found.likeness < UNLIKE:
        console.print(
            "No draw of the prior is like the log in all statistics together: intervals say too "
            "much. Choose other users, or compare fewer statistics (--compare).",
            soft_wrap=True,
        )


def _check(coverage: Coverage, console: Console) -> None:
    from hpcrowd.analysis.calibration.posterior import LEVELS

    console.print(f"check: {len(coverage)} logs simulated with known parameters")
    heads = [f"in {100 * level:.0f} %" for level in LEVELS]
    rows = []
    for place, name in enumerate(coverage.names):
        shares = [f"{100 * coverage.share(place, level):.0f} %" for level in LEVELS]
        ranks = " ".join(map(str, coverage.histogram(place)))
        rows.append((short(name), *shares, ranks, f"{coverage.uniform(place):.2f}"))
    heads += ["ranks, in tenths", "p of even ranks"]
    console.print(plain_table("parameter", *heads, rows=rows, whole=1))
    expected = " and ".join(
        f"{100 * low:.0f} to {100 * high:.0f} %" for low, high in map(coverage.expected, LEVELS)
    )
    console.print(f"If intervals are right, {expected} are expected by chance.")
