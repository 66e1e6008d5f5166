"""Replay a trace: one configuration, one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.casting import Casting, units_after
from agents.composed import Composed
from agents.decisions import DecisionLog
from agents.sessions import SessionDefinition
from agents.work import Work
from analysis.platform_accounts import accounts_of, attempts_of
from analysis.reaction_accounts import notes_of
from analysis.run import Run
from environment.clock import Clock
from environment.jobs import UNKNOWN
from environment.quantities import parse_processors
from environment.simulation import RESUBMIT_AFTER, Simulation
from environment.streams import Streams
from environment.trace import Conversions, Trace, jobs_from_trace
from scenarios.config import ReplayConfig, configure
from scenarios.population_config import PopulationConfig
from scenarios.staged import Staged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agents.units import Units
    from agents.user import ReplayUser
    from environment.jobs import Int64s
    from environment.platform import Change


@dataclass
class Prepared:
    """A trace that is ready to be replayed: what runs of different speeds and seeds may share.

    Attributes
    ----------
    trace
        What was recorded.
    converted
        Its jobs, on nodes of the recorded speed.
    record
        The sessions of all users.
    """

    trace: Trace
    converted: Conversions
    record: Work


def prepare(trace: Trace, config: ReplayConfig, *, follows: bool = False) -> Prepared:
    """Convert a trace and find its sessions.

    Parameters
    ----------
    trace
        What was recorded.
    config
        Its ``processors``, ``requested``, ``sessions`` and ``strict`` count, and its ``seed`` where
        requested times are drawn.
    follows
        Find also what waits for what, which is found when first asked for otherwise.

    Raises
    ------
    HpcrowdError
        When the trace cannot be replayed so.
    """
    conversion = replace(config.conversion(), speed=1.0)
    converted = jobs_from_trace(trace, conversion, strict=config.strict)
    definition = SessionDefinition.parse(config.sessions)
    record = Work.recorded(trace, converted, definition, strict=config.strict)
    if follows:
        _ = record.dependencies, record.by_session
        if record.chains is None:
            _ = record.by_batch
    return Prepared(trace, converted, record)


def replay(
    trace: Trace,
    config: ReplayConfig | None = None,
    *,
    compiled: bool = False,
    progress: Callable[[Simulation], Any] | None = None,
    prepared: Prepared | None = None,
    log: DecisionLog | None = None,
    **choices: Any,
) -> Run:
    """Replay a trace and return the run.

    Parameters
    ----------
    trace
        What was recorded.
    config
        The configuration; or give its fields as ``choices``.
    compiled
        Let the engine follow think times by itself; same schedule, but users are not told.
    progress
        Called now and then with the simulation.
    prepared
        What :func:`prepare` made of this trace with these settings; it is used up. None prepares.
    log
        Where users note what they decide; the schedule is the same. Users are called then, also
        with ``compiled``.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.

    Examples
    --------
    >>> from environment import parse_swf
    >>> trace = parse_swf("1 0 0 60 1 -1 -1 1 60 -1 1 1 -1 -1 -1 -1 -1 -1")
    >>> replay(trace, scheduler="fcfs", nodes="4").metrics["jobs_completed"]
    1
    """
    config = config or configure(**choices)
    return stage_replay(trace, config, compiled=compiled, prepared=prepared, log=log).run(progress)


def stage_replay(
    trace: Trace,
    config: ReplayConfig,
    *,
    compiled: bool = False,
    prepared: Prepared | None = None,
    log: DecisionLog | None = None,
) -> Staged:
    """Return the replay of a trace before it begins; parameters and errors as :func:`replay`."""
    population = config.users if isinstance(config.users, PopulationConfig) else None
    began = time.perf_counter()
    prepared = prepared or prepare(trace, config)
    converted, record = prepared.converted, prepared.record
    recorded = record.jobs.recorded_end - record.jobs.recorded_start
    record.jobs.run_time[:] = config.conversion().run_time(recorded)
    clock = Clock.of(trace.header)
    processors = parse_processors(config.nodes, trace.processors if "x" in config.nodes else 1)
    behaviour: Any = population.mixture() if population else config.users
    casting = Casting.of(record, behaviour, Streams(config.seed))
    jobs, work = casting.jobs, casting.replayed
    others = population.others() if population else {}
    platform: list[Change] = []
    if (changes := config.platform) is not None:
        sizes = {name: spec.processors for name, spec in others.items()}
        changes.check(clock, {"home": processors} | sizes)
        platform = changes.of(clock)
        others = {
            name: replace(spec, platform=changes.of(clock, name)) for name, spec in others.items()
        }
    model = Simulation(
        jobs,
        processors,
        config.scheduler,
        estimates=config.estimates,
        overrun=config.overrun,
        clock=clock,
        seed=config.seed,
        others=others or None,
        platform=platform,
        resubmit_after=RESUBMIT_AFTER if changes is None else changes.resubmit_after,
    )
    users, generated = casting.join(model, compiled=compiled, log=log)

    def finish() -> Run:
        return Run(
            jobs=jobs,
            processors=sum(cluster.processors for cluster in model.clusters.values()),
            label=config.label(),
            configuration=_configuration(config),
            clock=clock,
            trace=trace,
            source_row=_source_row(converted.source_row[casting.rows], len(jobs)),
            work=work,
            after=units_after(model, generated) if generated else None,
            waits=[] if work is None else units_waited_for(work, users),
            reactions=notes_of(users),
            platform=accounts_of(model),
            attempts=attempts_of(model),
            repaired=converted.repaired,
            dropped=converted.dropped,
        )

    everybody = [*users, *generated]
    return Staged(model, everybody, finish, work, log, time.perf_counter() - began)


def _source_row(replayed: Int64s, jobs: int) -> Int64s:
    """Return the places of the replayed jobs in the trace, then -1 for those of a user's own."""
    return np.concatenate([replayed, np.full(jobs - len(replayed), UNKNOWN)])


def _configuration(config: ReplayConfig) -> dict[str, Any]:
    """Return all that is needed to run it again, fit for JSON."""
    found = {"kind": "replay", **config.plain()}
    files = config.users.files() if isinstance(config.users, PopulationConfig) else {}
    if config.platform is not None and config.platform.file:
        files[config.platform.file] = config.platform.sha256
    if isinstance(config.estimates, str) and config.estimates.endswith(".json"):
        files[config.estimates] = sha256(Path(config.estimates).read_bytes()).hexdigest()
    if files:
        found["files_sha256"] = files
    return found


def units_waited_for(
    work: Work, users: Sequence[ReplayUser]
) -> list[tuple[Units, NDArray[np.bool_]]]:
    """Return the units of users who waited for the units before, each with which of them did."""
    waiting: dict[int, tuple[Units, NDArray[np.bool_]]] = {}
    for user in users:
        behaviour = user.behaviour
        if behaviour.when.reacts if isinstance(behaviour, Composed) else behaviour.reacts:
            units = behaviour.units or work.by_session
            _, which = waiting.setdefault(id(units), (units, np.zeros(len(units), bool)))
            which[user.units.start : user.units.stop] = True
    return list(waiting.values())
