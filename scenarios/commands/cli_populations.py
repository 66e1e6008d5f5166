"""The command ``hpcrowd resample``. It loads what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hpcrowd.scenarios.commands.options import AsJson, LogDecisions, TracePath
from hpcrowd.scenarios.kinds.resample import ResampleConfig

populations_app = typer.Typer()


def _field(name: str, **more: Any) -> Any:
    """Return the command-line option of a field of the configuration."""
    return typer.Option(
        f"--{name}", help=f"{ResampleConfig.model_fields[name].description}.", **more
    )


def _default(name: str) -> Any:
    return ResampleConfig.model_fields[name].default


@populations_app.command()
def resample(
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
    from hpcrowd.scenarios.commands.explain import log_for
    from hpcrowd.scenarios.commands.resample import resample_command, settings
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
