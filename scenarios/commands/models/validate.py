"""The command ``hpcrowd validate``: models fitted on one part of a trace, tested on the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcrowd.environment.errors import QuantityError, check_choice, not_one_of
from hpcrowd.environment.limits.numbers import LARGEST_SEED, MOST_RUNS
from hpcrowd.scenarios.commands.options import AsJson, TracePath
from hpcrowd.scenarios.commands.setting_options import Reading, reads_traces
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.terminal import (
    plain_table,
    print_json,
    progress_bar,
    say,
    standard_output,
)

if TYPE_CHECKING:
    from rich.console import Console

    from hpcrowd.analysis.validation.models import UserModel
    from hpcrowd.analysis.validation.validation import Validation


#: Where pauses in the simulated second part come from.
PAUSES = ("drawn", "recorded")


@reads_traces
def command(
    trace: TracePath,
    how: Reading,
    users: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME...]", help="Behaviours or TOML files; all presets unless given."
        ),
    ] = None,
    origins: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE[,SHARE...]",
            help="Shares of the submissions that models are fitted to; 0.4 to 0.8 unless given.",
        ),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, help="Days that models foresee; 28 unless given.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Policy behind simulated queues and waits; easy unless given."),
    ] = None,
    pauses: Annotated[
        str,
        typer.Option(
            help="Pauses in the simulated days: drawn from before the origin; or recorded, which "
            "is circular for most models."
        ),
    ] = "drawn",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST_RUNS, help="Simulations of each model from each origin; 1 unless given."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of everything random.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results and a page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit user models to what came before several origins, and test them on the days after.

    \b
    hpcrowd validate KTH-SP2-1996-2.1-cln.swf.gz --users learned,adjusted --out validation
    """
    from hpcrowd.agents.presets import PRESETS
    from hpcrowd.analysis.models.users.waits import with_waits
    from hpcrowd.analysis.validation.protocol import protocol
    from hpcrowd.analysis.validation.report import headline, plain, write
    from hpcrowd.analysis.validation.validation import validate
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.output.guard import check_replaceable
    from hpcrowd.environment.schedulers.names import parse_scheduler
    from hpcrowd.environment.traces.formats.registry import read_trace
    from hpcrowd.environment.traces.trace import jobs_from_trace

    check_choice("pauses", pauses, PAUSES)
    given = {"days": days, "seeds": seeds, "scheduler": scheduler}
    rules = replace(
        protocol(),
        **{name: value for name, value in given.items() if value is not None},
        **({} if origins is None else {"origins": parse_shares(origins)}),
    )
    parse_scheduler(rules.scheduler)
    names = list(PRESETS) if users is None else [name.strip() for name in users.split(",")]
    models = models_of(names)
    if out is not None:
        check_replaceable(out)
    log = read_trace(trace, options=reading_options(**how))
    jobs, waits = with_waits(
        jobs_from_trace(log).jobs, log["wait"], log.processors, rules.scheduler
    )
    with progress_bar() as progress:
        found = validate(
            jobs,
            models,
            Clock.of(log.header),
            rules,
            processors=log.processors,
            drawn=pauses == "drawn",
            seed=seed,
            progress=progress,
        )
    name = Path(log.source).name
    source = {"source": name, "sha256": log.sha256}
    if out is not None:
        write(found, out, name, source)
        say(f"Results are in {out}{'' if str(out).endswith('/') else '/'}")
    if as_json:
        print_json({"trace": source, "waits_note": waits, **plain(found)})
        return
    console = standard_output()
    for line in [name, *([waits] if waits else []), *headline(found)]:
        console.print(line, soft_wrap=True)
    show(found, console)


def parse_shares(text: str) -> tuple[float, ...]:
    """Return shares of a trace, ascending, from text such as ``0.4,0.6``.

    Raises
    ------
    QuantityError
        If one is not a number; what else they must be is checked elsewhere.
    """
    try:
        return tuple(sorted(float(part) for part in text.split(",")))
    except ValueError:
        raise QuantityError(
            f"origins {text!r}: shares of the submissions, between 0 and 1, such as 0.4,0.6"
        ) from None


def show(found: Validation, console: Console) -> None:
    """Print the tables."""
    from hpcrowd.analysis.validation.report import TABLES, TITLES, notes, score_rows

    for place, (title, measures) in enumerate(TABLES.items()):
        digits, more = (3, ("simulated jobs", "mean rank")) if place == 0 else (2, ())
        headings = ("model", *(TITLES[measure] for measure in measures), *more)
        table = plain_table(*headings, whole=len(headings), title=title)
        for name, *cells in score_rows(found, measures, digits):
            told = cells[: len(headings) - 1]
            if any(told):
                table.add_row(name, *told, style="" if name in found.scores else "dim")
        console.print(table)
        console.print()
    for line in notes(found):
        console.print(line, highlight=False)


def models_of(users: Iterable[str]) -> list[UserModel]:
    """Return the models by names of presets and TOML files.

    Raises
    ------
    QuantityError
        When one is not known or named twice, or a file is wrong.
    """
    from hpcrowd.agents.presets import PRESETS
    from hpcrowd.analysis.validation.models import BASELINES, UserModel
    from hpcrowd.scenarios.kinds.population_files import read_population

    models: list[UserModel] = []
    for name in users:
        if name.endswith(".toml"):
            population = read_population(name)
            models.append(UserModel(population.name, population.mixture()))
        elif name in PRESETS or name in BASELINES:
            models.append(UserModel.of(name))
        else:
            raise QuantityError(f"users {name!r}: {not_one_of(name, PRESETS)}, or a TOML file")
        if models[-1].name in [model.name for model in models[:-1]]:
            raise QuantityError(f"users {models[-1].name!r}: named twice; remove one")
    return models
