"""The command ``hpcrowd resample``: one run, a summary for people or for programs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.commands.options import (
    AsJson,
    LogDecisions,
    TracePath,
)
from hpcrowd.scenarios.commands.summary import keep_run, tell_run
from hpcrowd.scenarios.kinds.resample import ResampleConfig
from hpcrowd.scenarios.terminal import say_if_compiling, simulation_progress

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog


def settings(option: str, text: str | None, known: Iterable[str]) -> dict[str, float]:
    """Return what ``leave=0.1,away=2`` sets, nothing for None.

    Parameters
    ----------
    option, text
        Name of the option, and what was given.
    known
        Names that may be set.

    Raises
    ------
    QuantityError
        When it is not written so, or a name is not known.
    """
    names, found = tuple(known), {}
    for part in (text or "").split(",") if text else []:
        name, equals, value = part.strip().partition("=")
        try:
            if not equals or not name or name in found:
                raise ValueError
            number = float(value)
        except ValueError:
            raise QuantityError(
                f"{option} {text!r}: {part.strip()!r} sets nothing; write NAME=NUMBER, each once, "
                "with commas between them"
            ) from None
        if name not in names:
            raise QuantityError(
                f"{option} {text!r}: no setting {name!r}; there are {', '.join(names)}"
            )
        found[name] = int(number) if number.is_integer() else number
    return found


def resample_command(
    path: Path,
    config: ResampleConfig,
    *,
    out: Path | None,
    as_json: bool,
    log: DecisionLog | None = None,
) -> None:
    """Let the population of the trace at ``path`` work; print a summary, write results."""
    from hpcrowd.analysis.results import check_replaceable

    if out is not None:
        check_replaceable(out)
    trace = read_trace(path)
    from hpcrowd.scenarios.kinds.resample import resample

    say_if_compiling()
    with simulation_progress(len(trace)) as progress:
        run = resample(trace, config, progress=progress, log=log)
    keep_run(run, out)
    tell_run(run, as_json=as_json)


def _field(name: str) -> Any:
    """Return the command-line option of a field of the configuration."""
    return typer.Option(f"--{name}", help=f"{ResampleConfig.model_fields[name].description}.")


def _default(name: str) -> Any:
    return ResampleConfig.model_fields[name].default


def command(
    trace: TracePath,
    weeks: Annotated[int | None, _field("weeks")] = None,
    users: Annotated[str, _field("users")] = _default("users"),
    doing: Annotated[str, _field("doing")] = _default("doing"),
    satisfaction: Annotated[str, _field("satisfaction")] = _default("satisfaction"),
    consequences: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=NUMBER,...",
            help="What users make of it: memory, most, elasticity, absence, tolerance, leave, "
            "returns, away, again.",
        ),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=NUMBER,...", help="Who comes into the pool: edge, long_term, least."
        ),
    ] = None,
    arrivals: Annotated[str, _field("arrivals")] = _default("arrivals"),
    full: Annotated[
        bool,
        typer.Option(
            "--full/--empty",
            help="Who came before the first week and is not done is there at first, or nobody.",
        ),
    ] = _default("full"),
    sessions: Annotated[str, _field("sessions")] = _default("sessions"),
    unit: Annotated[str, _field("unit")] = _default("unit"),
    scheduler: Annotated[str, _field("scheduler")] = _default("scheduler"),
    estimates: Annotated[str, _field("estimates")] = _default("estimates"),
    nodes: Annotated[str, _field("nodes")] = _default("nodes"),
    speed: Annotated[str, _field("speed")] = _default("speed"),
    requested: Annotated[str, _field("requested")] = _default("requested"),
    processors: Annotated[str, _field("processors")] = _default("processors"),
    overrun: Annotated[str, _field("overrun")] = _default("overrun"),
    warmup: Annotated[int, _field("warmup")] = _default("warmup"),
    seed: Annotated[int, _field("seed")] = _default("seed"),
    strict: Annotated[bool, _field("strict")] = _default("strict"),
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables, trace, pictures and provenance.")
    ] = None,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Let a population made from the users of a trace come and go on a cluster.

    Long-term users of the trace are there at a random week of their record, temporary ones arrive;
    day of the week and hour stay. Load is set by the number of users.

    \b
    hpcrowd resample log.swf.gz --users 1.5x
    hpcrowd resample log.swf.gz --speed 2x --satisfaction habit --seed 1 --out runs/faster-1
    hpcrowd resample log.swf.gz --doing rigid --scheduler recorded --out draw
    """
    from hpcrowd.agents.populations.openness import Consequences, PoolRules
    from hpcrowd.scenarios.commands.options import log_for
    from hpcrowd.scenarios.kinds.resample import configure_resample

    config = configure_resample(
        weeks=weeks,
        users=users,
        doing=doing,
        satisfaction=satisfaction,
        consequences=settings("consequences", consequences, vars(Consequences())),
        pool=settings("pool", pool, vars(PoolRules())),
        arrivals=arrivals,
        full=full,
        sessions=sessions,
        unit=unit,
        scheduler=scheduler,
        estimates=estimates,
        nodes=nodes,
        speed=speed,
        requested=requested,
        processors=processors,
        overrun=overrun,
        warmup=warmup,
        seed=seed,
        strict=strict,
    )
    log = log_for(log_decisions, out)
    resample_command(trace, config, out=out, as_json=as_json, log=log)
