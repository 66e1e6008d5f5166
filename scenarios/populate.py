"""A population of users made from a workload model works on a cluster, and waits for results."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.casting import units_after
from agents.decision_hooks import note_generating
from agents.decisions import DecisionLog
from agents.pool_users import add_pool_users
from analysis.models.generate import generate
from analysis.models.model import WorkloadModel
from analysis.models.population import population
from analysis.run import Run
from environment.clock import DAY
from environment.jobs import JobTable
from environment.quantities import parse_processors
from environment.simulation import Simulation
from scenarios.staged import Staged


def populate(
    model: WorkloadModel,
    *,
    days: float = 28,
    load: float | None = None,
    machine: int | None = None,
    nodes: str = "1x",
    scheduler: str = "easy",
    hears: bool = True,
    seed: int = 0,
    progress: Callable[[Simulation], Any] | None = None,
    log: DecisionLog | None = None,
) -> Run:
    """Let users made from a workload model work on a cluster, and return the run.

    A workload is generated from the model; its users become agents who draw each batch from those
    of their group, wait for it, pause and go on (:func:`analysis.models.population.population`).

    Parameters
    ----------
    model
        Where users and batches come from.
    days, load, machine, seed
        Of the generated workload, as for :func:`analysis.models.generate.generate`. Nobody submits
        after ``days``.
    nodes
        Processors of the simulated machine, or a multiple of the model's, such as ``2x``.
    scheduler
        Its policy.
    hears
        False makes users oblivious: they act as if each job had started at once.
    progress
        Called with the simulation now and then.
    log
        Where users note what they decide.

    Raises
    ------
    QuantityError
        When a number makes no sense, or the model has no users.
    """
    staged = stage_populate(
        model,
        days=days,
        load=load,
        machine=machine,
        nodes=nodes,
        scheduler=scheduler,
        hears=hears,
        seed=seed,
        log=log,
    )
    return staged.run(progress)


def stage_populate(
    model: WorkloadModel,
    *,
    days: float = 28,
    load: float | None = None,
    machine: int | None = None,
    nodes: str = "1x",
    scheduler: str = "easy",
    hears: bool = True,
    seed: int = 0,
    log: DecisionLog | None = None,
) -> Staged:
    """Return a population before it begins; parameters and errors as :func:`populate`."""
    began = time.perf_counter()
    made = generate(model, days=days, load=load, machine=machine, seed=seed)
    users = population(made)
    processors = parse_processors(nodes, made.machine)
    jobs = JobTable()
    simulation = Simulation(jobs, processors, scheduler, seed=seed)
    agents = add_pool_users(
        simulation, users.members, users.pools, horizon=round(days * DAY), hears=hears
    )
    if log is not None:
        note_generating(log, agents)

    def finish() -> Run:
        told = "users who wait" if hears else "oblivious users"
        return Run(
            jobs=jobs,
            processors=processors,
            label=f"{model.name}, {told}, {scheduler}, nodes {nodes}",
            configuration={
                "kind": "populate",
                "model": model.to_json(),
                "days": days,
                "load": load,
                "machine": made.machine,
                "nodes": nodes,
                "scheduler": scheduler,
                "hears": hears,
                "seed": seed,
            },
            clock=simulation.clock,
            after=units_after(simulation, agents) if hears else None,
        )

    return Staged(simulation, agents, finish, None, log, time.perf_counter() - began)


def populate_command(
    source: str,
    *,
    days: float,
    load: float | None,
    machine: int | None,
    nodes: str,
    scheduler: str,
    hears: bool,
    seed: int,
    out: Path | None,
    as_json: bool,
    log: DecisionLog | None = None,
) -> None:
    """Let a population work, print a summary, and write results if asked for.

    Parameters
    ----------
    source
        File of a fitted model, or the name of a model with published parameters.
    days, load, machine, nodes, scheduler, hears, seed
        As for :func:`populate`.
    out
        Folder for results.
    as_json
        Print the summary as one JSON object.
    log
        Where users note what they decide.
    """
    from analysis.results import check_replaceable
    from scenarios.models_command import model_of
    from scenarios.run_summary import keep_run, tell_run
    from scenarios.terminal import say_if_compiling, simulation_progress

    if out is not None:
        check_replaceable(out)
    model = model_of(source, machine)
    say_if_compiling()
    with simulation_progress(1) as progress:
        run = populate(
            model,
            days=days,
            load=load,
            machine=machine,
            nodes=nodes,
            scheduler=scheduler,
            hears=hears,
            seed=seed,
            progress=progress,
            log=log,
        )
    keep_run(run, out)
    tell_run(run, as_json=as_json)
