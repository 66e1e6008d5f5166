"""The command ``hpcrowd validate``: models fitted on one part of a trace, tested on the rest."""

from __future__ import annotations

from collections.abc import Iterable
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

    from hpcrowd.analysis.validation.parts import UserModel
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
    split: Annotated[float, typer.Option(help="Share of the submissions in the first part.")] = 0.5,
    scheduler: Annotated[
        str, typer.Option(help="Scheduling policy in the second part: recorded, easy, fcfs.")
    ] = "recorded",
    pauses: Annotated[
        str,
        typer.Option(
            help="Pauses in the simulated second part: drawn from the first part; or recorded, "
            "which is circular for most models."
        ),
    ] = "drawn",
    seeds: Annotated[int, typer.Option(max=MOST_RUNS, help="Simulations of each model.")] = 1,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of everything random.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results and a page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit user models to the first part of a trace and test them on the rest."""
    from hpcrowd.agents.presets import PRESETS
    from hpcrowd.analysis.validation.parts import check_waits
    from hpcrowd.analysis.validation.report import headline, plain, write
    from hpcrowd.analysis.validation.validation import validate
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.output.guard import check_replaceable
    from hpcrowd.environment.schedulers.names import parse_scheduler
    from hpcrowd.environment.traces.formats.registry import read_trace
    from hpcrowd.environment.traces.trace import jobs_from_trace

    if not 0 < split < 1:
        raise QuantityError(
            f"split {split}: share of the submissions in the first part, between 0 and 1"
        )
    check_choice("pauses", pauses, PAUSES)
    if seeds < 1 or seed < 0:
        raise QuantityError(f"seeds {seeds}, seed {seed}: at least 1, and at least 0")
    parse_scheduler(scheduler)
    names = list(PRESETS) if users is None else [name.strip() for name in users.split(",")]
    models = models_of(names)
    if out is not None:
        check_replaceable(out)
    log = read_trace(trace, options=reading_options(**how))
    check_waits(log["wait"], Path(log.source).name)
    with progress_bar() as progress:
        found = validate(
            jobs_from_trace(log).jobs,
            models,
            Clock.of(log.header),
            split=split,
            scheduler=scheduler,
            processors=log.processors,
            drawn=pauses == "drawn",
            seeds=seeds,
            seed=seed,
            progress=progress,
        )
    name = Path(log.source).name
    source = {"source": name, "sha256": log.sha256}
    if out is not None:
        write(found, out, name, source)
        say(f"Results are in {out}{'' if str(out).endswith('/') else '/'}")
    if as_json:
        print_json({"trace": source, **plain(found)})
        return
    console = standard_output()
    for line in [name, *headline(found)]:
        console.print(line, soft_wrap=True)
    show(found, console)


def show(found: Validation, console: Console) -> None:
    """Print the tables."""
    from hpcrowd.analysis.validation.evidence import MEASURES
    from hpcrowd.analysis.validation.report import TITLES, notes, score_rows
    from hpcrowd.analysis.validation.validation import FORECASTS

    forecasts = "Forecasts: CRPS of the pause in decades, mean over users; 0 is perfect"
    simulated = "Simulated second part: distance from the recorded one, 0 to 1"
    for title, measures, digits, more in (
        (forecasts, FORECASTS, 3, ("jobs", "mean rank of all")),
        (simulated, tuple(MEASURES), 2, ()),
    ):
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
    from hpcrowd.analysis.validation.parts import BASELINES, UserModel
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
