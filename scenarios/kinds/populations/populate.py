"""Populate a cluster: users made from a workload model work on it, and wait for results."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, override

from pydantic import Field, ValidationInfo, field_validator, model_validator

from hpcrowd.agents.presets import PRESETS
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.limits.numbers import (
    LEAST_DAYS,
    LEAST_LOAD,
    MOST_DAYS,
    MOST_LOAD,
    MOST_PROCESSORS,
)
from hpcrowd.environment.quantities import parse_processors
from hpcrowd.scenarios.kinds.base import Beginning, Staged, Watch, with_parts, with_settings
from hpcrowd.scenarios.kinds.fields import Processors, SchedulerChoice, checked_preset
from hpcrowd.scenarios.kinds.parts.machine import MachineSettings
from hpcrowd.scenarios.kinds.parts.power import PowerSettings

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.analysis.models.model import WorkloadModel
    from hpcrowd.analysis.run import Run

#: Users as the workload model makes them, and those who follow a learned model.
MODEL, LEARNED = "model", "learned"


@with_parts
class PopulateConfig(PowerSettings, MachineSettings):
    """Simulate users made from a workload model, each waiting for its results."""

    INPUT: ClassVar[str] = "model"
    PREPARED_FROM: ClassVar[tuple[str, ...]] = ("model", "model_processors", "machine")

    kind: Literal["populate"] = Field("populate", description="users made from a workload model")
    model: str | None = Field(
        None,
        description="file of a fitted model (`hpcrowd fit`), or the name of one with published "
        "parameters (`hpcrowd models`)",
    )
    days: float = Field(28, ge=LEAST_DAYS, le=MOST_DAYS, description="days in which users submit")
    load: float | None = Field(
        None,
        ge=LEAST_LOAD,
        le=MOST_LOAD,
        description="offered load of the generated workload; the model's unless given",
    )
    model_processors: int | None = Field(
        None,
        ge=1,
        le=MOST_PROCESSORS,
        description="size of the machine that the model is for; its own unless given",
    )
    processors: Processors = Field(
        "1x", description="size of the machine: a number, or a multiple of the model's"
    )
    scheduler: SchedulerChoice = Field("easy", description="scheduling policy, as for replay")
    users: str = Field(
        MODEL,
        description="how users behave: model (as in the workload model: they pause after each "
        "batch), or learned, or learned:FILE (a model that you fitted)",
    )
    oblivious: bool = Field(
        False,
        description="users do not wait for results, but act as if each job had started at once",
    )

    @field_validator("users")
    @classmethod
    def _known_users(cls, users: str, info: ValidationInfo) -> str:
        if users in (MODEL, LEARNED):
            return users
        if PRESETS.file_in(users) is None:
            raise ValueError(f"{not_one_of(users, (MODEL, LEARNED))}, or learned:FILE")
        return checked_preset(users, info.data["folder"])

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.oblivious and self.users != MODEL:
            raise QuantityError(
                f"oblivious: users {self.users} look at the ends of their jobs; choose users "
                f"{MODEL}"
            )
        return self

    @override
    def check(self) -> None:
        super().check()
        if "model" not in self.files():
            self.prepare()

    @override
    def files(self) -> dict[str, Path]:
        """Return the file of the model, if it is in one, and those of the machine."""
        found = super().files()
        if self.model is None:
            return found
        place = self.folder / self.model
        in_file = self.model.endswith(".json") or place.is_file()
        return {"model": place, **found} if in_file else found

    def read(self, model: str) -> WorkloadModel:
        """Return a model by its file or name; a published one is for the machine, if there is one.

        Raises
        ------
        QuantityError
            If there is none, or a published one lacks the size of the machine.
        """
        from hpcrowd.analysis.models.model import model_of

        size = self.model_processors
        if size is None and (site := self.site()) is not None:
            size = site.cores
        return model_of(model, size)

    @override
    def prepare(self) -> WorkloadModel:
        """Read the model."""
        return self.read(str(self.files().get("model", self.model)))

    @override
    def stage(self, prepared: WorkloadModel, log: DecisionLog | None = None) -> Staged:
        """Generate the users."""
        from hpcrowd.agents.behaviours.hooks import note_generating
        from hpcrowd.agents.generative.pool_users import add_pool_users
        from hpcrowd.agents.populations.population import units_after
        from hpcrowd.analysis.accounts.record import OBLIVIOUS, Record
        from hpcrowd.analysis.models.generation import generate, population
        from hpcrowd.analysis.run import Precedence
        from hpcrowd.environment.clock import DAY, Clock
        from hpcrowd.environment.cluster import HOME, ClusterSpec
        from hpcrowd.environment.jobs import JobTable

        began = time.perf_counter()
        site = self.site()
        made = generate(
            prepared,
            days=self.days,
            load=self.load,
            processors=self.model_processors,
            seed=self.seed,
            machine=site,
        )
        users = population(made)
        if site is None:
            processors = parse_processors(self.processors, made.machine)
        else:
            processors = self.cores(site)
        drawn = made.drawn
        measured = Record.of_columns(drawn.submit, drawn.processors, drawn.run_time)
        if measured is not None:
            measured = replace(measured, name="the model's workload", cure=OBLIVIOUS)
        jobs = JobTable()
        if site is not None and made.requests is not None:
            from hpcrowd.environment.requests import Requests

            jobs.requests = Requests()
        home = ClusterSpec(processors, self.scheduler)
        begins = Beginning(jobs, {HOME: home}, Clock())
        simulation = self.simulation(begins)
        behaviour = None
        if self.users != MODEL:
            from hpcrowd.agents.learned.model import LearnedModel
            from hpcrowd.agents.populations.learned import FromPool

            behaviour = FromPool(users.members, users.pools, LearnedModel.named(self.users))
        agents = add_pool_users(
            simulation,
            users.members,
            users.pools,
            horizon=round(self.days * DAY),
            hears=not self.oblivious,
            behaviour=behaviour,
        )
        if log is not None:
            note_generating(log, agents)

        def finish() -> Run:
            told = "oblivious users" if self.oblivious else "users who wait"
            outcome = self.outcome(simulation)
            return self.ended(
                simulation,
                begins._replace(jobs=outcome),
                label=f"{prepared.name}, {told}, {self.label()}",
                configuration=self.described(
                    model=prepared.to_json(), model_processors=made.machine
                ),
                precedence=Precedence(
                    after=None if self.oblivious else units_after(simulation, agents)
                ),
                remarks=[]
                if measured is None
                else measured.remarks(outcome, prepared.name, days=round(self.days)),
            )

        return Staged(simulation, agents, finish, None, log, time.perf_counter() - began)

    @override
    def label(self) -> str:
        if self.machine is None:
            return f"{self.scheduler}, processors {self.processors}"
        name = self.machine if isinstance(self.machine, str) else self.machine.name
        return f"{self.scheduler}, machine {name}"

    @override
    def title(self) -> str:
        return f"{Path(str(self.model)).stem}, {self.label()}"


@with_settings(PopulateConfig)
def populate(
    model: WorkloadModel | str | os.PathLike[str],
    config: PopulateConfig | None = None,
    *,
    progress: Watch | None = None,
    log: DecisionLog | None = None,
    **choices: Any,
) -> Run:
    """Simulate users made from a workload model on a cluster, and return the run.

    A workload is generated from the model; its users become agents who draw each batch from those
    of their group, wait for it, pause and continue
    (:func:`hpcrowd.analysis.models.generation.population`). No user submits after ``days``.

    Parameters
    ----------
    model
        Source of users and batches: a model, the file of one, or the name of a published one.
    config
        The configuration; or give its settings by name.
    progress
        Called with the simulation now and then.
    log
        Log for the decisions of users.

    Raises
    ------
    QuantityError
        When a number is out of range, or the model has no users.
    """
    config = config or PopulateConfig.configure(**choices)
    if isinstance(model, str | os.PathLike):
        model = config.read(os.fspath(model))
    return config.stage(model, log).run(progress)
