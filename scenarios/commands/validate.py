"""The command ``hpcrowd validate``: models fitted on one part of a trace, tested on the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from hpcrowd.analysis.results import check_replaceable
from hpcrowd.analysis.validation.parts import BASELINES, UserModel, check_waits
from hpcrowd.analysis.validation.report import headline, plain, show, write
from hpcrowd.analysis.validation.validation import Progress, Validation, validate
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, first_mistake
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace
from hpcrowd.scenarios.commands.options import AsJson, TracePath
from hpcrowd.scenarios.kinds.population_files import read_population
from hpcrowd.scenarios.kinds.replay import BEHAVIOURS
from hpcrowd.scenarios.terminal import (
    print_json,
    progress_bar,
    say,
    say_if_compiling,
    standard_output,
)


def command(
    trace: TracePath,
    users: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME...]", help="Behaviours, or TOML files; all presets unless given."
        ),
    ] = None,
    split: Annotated[float, typer.Option(help="Share of submissions in the first part.")] = 0.5,
    scheduler: Annotated[
        str, typer.Option(help="Who decides about waits in the second part: recorded, easy, fcfs.")
    ] = "recorded",
    pauses: Annotated[
        str,
        typer.Option(
            help="Pauses in the simulated second part: drawn from the first part; or recorded, "
            "which is circular for most models."
        ),
    ] = "drawn",
    seeds: Annotated[int, typer.Option(help="Simulations of each model.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for data, table, picture and a page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit user models to the first part of a trace, and test them on the second."""
    config = configure_validation(
        users, split=split, scheduler=scheduler, pauses=pauses, seeds=seeds, seed=seed
    )
    if out is not None:
        check_replaceable(out)
    models_of(config.users)  # what is wrong there is told before the trace is read
    log = read_trace(trace)
    say_if_compiling()
    with progress_bar() as progress:
        found = validate_trace(log, config, progress)
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


class ValidateConfig(BaseModel):
    """Everything that a validation is made of, apart from the trace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    users: tuple[str, ...] = Field(
        tuple(BEHAVIOURS), description="behaviours by name, or TOML files, with commas; all presets"
    )
    split: float = Field(0.5, description="share of the submissions in the first part")
    scheduler: str = Field(
        "recorded", description="who decides about waits in the second part: recorded, easy, fcfs"
    )
    pauses: Literal["drawn", "recorded"] = Field(
        "drawn",
        description="pauses in the simulated second part: drawn from the first part, or as "
        "recorded (circular for most models)",
    )
    seeds: int = Field(1, ge=1, description="simulations of each model, with seeds from --seed on")
    seed: int = Field(0, ge=0, description="seed of everything random")

    @field_validator("split")
    @classmethod
    def _parts(cls, split: float) -> float:
        if not 0 < split < 1:
            raise ValueError("share of the submissions in the first part, between 0 and 1")
        return split

    @field_validator("scheduler")
    @classmethod
    def _known(cls, scheduler: str) -> str:
        parse_scheduler(scheduler)
        return scheduler


def configure_validation(users: str | None = None, **choices: object) -> ValidateConfig:
    """Return the configuration; a wrong choice is told in one line.

    Parameters
    ----------
    users
        Names and files with commas between them; None for all presets.
    **choices
        The other fields of :class:`ValidateConfig`.

    Raises
    ------
    QuantityError
        Naming the choice, its value and the rule.
    """
    if users is not None:
        choices["users"] = tuple(name.strip() for name in users.split(","))
    try:
        return ValidateConfig.model_validate(choices)
    except ValidationError as error:
        raise QuantityError(first_mistake(error)) from None


def models_of(users: tuple[str, ...]) -> list[UserModel]:
    """Return the models by names of presets and TOML files.

    Raises
    ------
    QuantityError
        When one is not known or named twice, or a file is wrong.
    """
    models: list[UserModel] = []
    for name in users:
        if name.endswith(".toml"):
            population = read_population(name)
            models.append(UserModel(population.name, population.mixture()))
        elif name in BEHAVIOURS or name in BASELINES:
            models.append(UserModel.of(name))
        else:
            raise QuantityError(
                f"users {name!r}: not known; choose {', '.join(BEHAVIOURS)}, or a TOML file"
            )
        if models[-1].name in [model.name for model in models[:-1]]:
            raise QuantityError(f"users {models[-1].name!r}: named twice; leave one")
    return models


def validate_trace(
    trace: Trace, config: ValidateConfig, progress: Progress | None = None
) -> Validation:
    """Fit models to the first part of a trace and test them on the second.

    Parameters
    ----------
    trace
        What was recorded.
    config
        The configuration.
    progress
        Called before each step with its label, how many are done, and how many there are.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.
    """
    models = models_of(config.users)
    check_waits(trace["wait"], Path(trace.source).name)
    return validate(
        jobs_from_trace(trace).jobs,
        models,
        Clock.of(trace.header),
        split=config.split,
        scheduler=config.scheduler,
        processors=trace.processors,
        drawn=config.pauses == "drawn",
        seeds=config.seeds,
        seed=config.seed,
        progress=progress,
    )
