"""Run a population that is resampled from a trace: one configuration, one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.casting import units_after
from agents.component_users import AsRecorded, ClosedLoop
from agents.components import Pool
from agents.decision_hooks import note_generating
from agents.decisions import DecisionLog
from agents.made_up import ComponentWork, GroupWork, Living, SiteWork
from agents.presets import PRESETS
from agents.satisfaction import Formula, formula_of
from agents.semi_open import add_members, draw_roster
from agents.sessions import SessionDefinition
from agents.shmueli import SiteModel
from agents.work import Work
from analysis.population_accounts import population_accounts
from analysis.run import Run
from environment.clock import DAY, WEEK, Clock
from environment.errors import QuantityError
from environment.jobs import JobTable
from environment.quantities import parse_factor, parse_processors
from environment.simulation import Simulation
from environment.streams import Streams
from environment.trace import Conversions, Trace, jobs_from_trace
from scenarios.resample_config import NONE, ResampleConfig, configure_resample
from scenarios.staged import Staged

if TYPE_CHECKING:
    from analysis.models.model import WorkloadModel


def resample(
    trace: Trace,
    config: ResampleConfig | None = None,
    *,
    model: WorkloadModel | None = None,
    formula: Formula | None = None,
    progress: Callable[[Simulation], Any] | None = None,
    log: DecisionLog | None = None,
    **choices: Any,
) -> Run:
    """Let a population resampled from a trace work on a cluster, and return the run.

    Second 0 of the run is the Monday, 00:00 local time, at or before the first submission of the
    trace. Recorded times in its table are those of the rigid population: moved by whole weeks.

    Parameters
    ----------
    trace
        What was recorded.
    config
        The configuration; or give its fields as ``choices``.
    model
        For users who do ``mugm``: the model, fitted already; fitted to the trace unless given.
    formula
        How satisfied users are, instead of one that has a name.
    progress
        Called now and then with the simulation.
    log
        Where users note what they decide, and when they come and go.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.
    """
    config = config or configure_resample(**choices)
    return stage_resample(trace, config, model=model, formula=formula, log=log).run(progress)


def stage_resample(
    trace: Trace,
    config: ResampleConfig,
    *,
    model: WorkloadModel | None = None,
    formula: Formula | None = None,
    log: DecisionLog | None = None,
) -> Staged:
    """Return a resampled population before it begins; parameters and errors as :func:`resample`."""
    began = time.perf_counter()
    own = {} if formula is None else {"formula": getattr(formula, "__qualname__", repr(formula))}
    if formula is None and config.satisfaction != NONE:
        formula = formula_of(config.satisfaction)
    if formula is not None and config.doing == "rigid":
        raise QuantityError("formula: rigid users mind nothing; choose think-time or another")
    pool, converted = pool_of(trace, config)
    living = _living(trace, pool, config, model)
    people = living.pool
    weeks = pool.weeks if config.weeks is None else config.weeks
    if config.warmup >= weeks:
        raise QuantityError(
            f"warmup {config.warmup} weeks: less than the {weeks} of the run, as long as the log"
        )
    openness = config.openness(people)
    roster = draw_roster(people, weeks, openness, Streams(config.seed))
    size = trace.processors if "x" in config.nodes else 1
    jobs = JobTable()
    simulation = Simulation(
        jobs,
        parse_processors(config.nodes, size),
        config.scheduler,
        estimates=config.estimates,
        overrun=config.overrun,
        clock=people.clock,
        seed=config.seed,
    )
    living.visits.log = log
    users = add_members(
        simulation,
        living,
        roster,
        horizon=people.clock.second_at(people.clock.wall(0) + weeks * WEEK),
        formula=formula,
        consequences=config.consequences,
    )
    if log is not None:
        note_generating(log, users)

    def finish() -> Run:
        return Run(
            jobs=jobs,
            processors=simulation.cluster.processors,
            label=config.label(),
            configuration={
                "kind": "resample",
                **config.plain(),
                **own,
                "trace": Path(trace.source).name,
                "files_sha256": {Path(trace.source).name: trace.sha256},
            },
            clock=people.clock,
            after=None if config.doing == "rigid" else units_after(simulation, users),
            population={
                "pool": pool_accounts(people),
                **population_accounts(
                    jobs,
                    living.visits,
                    people.clock,
                    weeks=weeks,
                    warmup=config.warmup,
                    processors=simulation.cluster.processors,
                    speed=parse_factor(config.speed, "speed"),
                    expected=openness.factor * people.jobs / people.weeks,
                ),
            },
            visits=living.visits.notes,
            repaired=converted.repaired,
            dropped=converted.dropped,
        )

    return Staged(simulation, users, finish, None, log, time.perf_counter() - began)


def pool_of(trace: Trace, config: ResampleConfig) -> tuple[Pool, Conversions]:
    """Return the pool of a trace, and how the trace was read.

    Raises
    ------
    TraceError
        When the trace cannot be used, is too short, or has too few users.
    """
    converted = jobs_from_trace(trace, config.conversion(), strict=config.strict)
    definition = SessionDefinition.parse(config.sessions)
    work = Work.recorded(trace, converted, definition, strict=config.strict)
    name = Path(trace.source).name
    clock = Clock.of(trace.header)
    return Pool.of(work, clock, config.pool, unit=config.unit, source=name), converted


def pool_accounts(pool: Pool) -> dict[str, Any]:
    """Return what is in a pool and what was dropped, fit for JSON."""
    return {
        "weeks": pool.weeks,
        "users_long_term": len(pool.long_term),
        "users_temporary": len(pool.temporary),
        "arrivals_per_week": pool.arrivals_per_week,
        "jobs": pool.jobs,
        "users_dropped": dict(pool.dropped_users),
        "jobs_dropped": dict(pool.dropped_jobs),
    }


def _living(
    trace: Trace, pool: Pool, config: ResampleConfig, model: WorkloadModel | None
) -> Living:
    """Return what users do."""
    if config.doing == "rigid":
        return ComponentWork(pool, AsRecorded())
    if config.doing == "think-time":
        return ComponentWork(pool, ClosedLoop())
    if config.doing == "think-time-windows":
        return ComponentWork(pool, ClosedLoop(pool.profiles))
    if config.doing == "mugm":
        return _group_work(trace, pool, config, model)
    preset = PRESETS[config.doing]
    assert isinstance(preset, SiteModel)
    return SiteWork(pool, preset)


def _group_work(
    trace: Trace, pool: Pool, config: ResampleConfig, model: WorkloadModel | None
) -> GroupWork:
    """Return the groups of a mixed user group model, with the users of a workload it generates."""
    from analysis.features.workload import Workload
    from analysis.models.fit import fit
    from analysis.models.generate import generate
    from analysis.models.population import population

    model = model or fit("mugm", Workload.from_trace(trace), cycle="weekly")
    made = generate(model, days=pool.weeks * WEEK / DAY, seed=config.seed)
    users = population(made)
    invented = made.trace()
    jobs = jobs_from_trace(invented, config.conversion()).jobs
    work = Work.of(jobs, SessionDefinition.parse(config.sessions))
    people = Pool.of(work, Clock(known=True), config.pool, unit=config.unit, source=model.name)
    speed = parse_factor(config.speed, "speed")
    return GroupWork(people, users.members, {g: b.at_speed(speed) for g, b in users.pools.items()})
