"""A population of users made from a workload model works on a cluster, and waits for results."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from hpcrowd.agents.behaviours.decisions import DecisionLog
from hpcrowd.agents.behaviours.hooks import note_generating
from hpcrowd.agents.generative.pool_users import add_pool_users
from hpcrowd.agents.populations.casting import units_after
from hpcrowd.analysis.models.generation import generate
from hpcrowd.analysis.models.model import WorkloadModel
from hpcrowd.analysis.models.population import population
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.quantities import parse_processors
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.environment.simulation import Simulation
from hpcrowd.scenarios.kinds.base import Scenario
from hpcrowd.scenarios.kinds.staged import Staged


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
        Of the generated workload, as for :func:`generate`. Nobody submits
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
    from hpcrowd.analysis.models.fitting import model_of
    from hpcrowd.analysis.results import check_replaceable
    from hpcrowd.scenarios.commands.summary import keep_run, tell_run
    from hpcrowd.scenarios.terminal import say_if_compiling, simulation_progress

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


class PopulateScenario(Scenario):
    """Let users made from a workload model work on a cluster, each waiting for its results."""

    PREPARED_FROM: ClassVar[tuple[str, ...]] = ("model", "machine")

    kind: Literal["populate"] = Field(description="users made from a workload model")
    model: str = Field(
        description="file of a fitted model (`hpcrowd fit`), or the name of one with published "
        "parameters (`hpcrowd models`)"
    )
    days: float = Field(28, gt=0, description="days in which users submit")
    load: float | None = Field(
        None, gt=0, description="offered load of the generated workload; the model's unless given"
    )
    machine: int | None = Field(
        None, ge=1, description="processors the model is meant for; its own unless given"
    )
    nodes: str = Field("1x", description="processors of the machine: a number, or a multiple")
    scheduler: str = Field("easy", description="policy, as for replay")
    hears: bool = Field(True, description="false: users act as if each job had started at once")

    @field_validator("nodes", "scheduler")
    @classmethod
    def _makes_sense(cls, value: str, info: Any) -> str:
        if info.field_name == "nodes":
            parse_processors(value, original=1_000_000)
        else:
            parse_scheduler(value)
        return value

    @model_validator(mode="after")
    def _model_is_known(self) -> Self:
        if not self._is_file:
            self.prepare()
        return self

    @property
    def _is_file(self) -> bool:
        return self.model.endswith(".json") or (self.folder / self.model).is_file()

    def files(self) -> dict[str, Path]:
        """Return the file of the model, if it is in one."""
        return {"model": self.folder / self.model} if self._is_file else {}

    def prepare(self) -> WorkloadModel:
        """Read the model."""
        from hpcrowd.analysis.models.fitting import model_of

        return model_of(str(self.files().get("model", self.model)), self.machine)

    def stage(
        self, prepared: WorkloadModel, log: DecisionLog | None = None, *, watched: bool = False
    ) -> Staged:
        """Generate the users."""

        return stage_populate(
            prepared,
            days=self.days,
            load=self.load,
            machine=self.machine,
            nodes=self.nodes,
            scheduler=self.scheduler,
            hears=self.hears,
            seed=self.seed,
            log=log,
        )

    def label(self) -> str:
        """Return the model, the policy and the machine."""
        return f"{Path(self.model).stem}, {self.scheduler}, nodes {self.nodes}"
