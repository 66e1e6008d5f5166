"""Resample a trace: a population drawn from its users works on a cluster.

:class:`ResampleConfig` has the settings, checked before anything runs; :func:`resample` is one run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, override

from pydantic import Field, ValidationInfo, field_validator, model_validator

from hpcrowd.agents.populations.openness import FORMULA_NAMES, Consequences, Openness, PoolRules
from hpcrowd.agents.presets import PRESETS, own_behaviour
from hpcrowd.environment.clock import DAY, WEEK
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.limits.numbers import MOST_DAYS, MOST_USERS
from hpcrowd.environment.quantities import format_duration, parse_factor
from hpcrowd.environment.registry import or_your_own
from hpcrowd.environment.traces.trace import Conversions, Trace, jobs_from_trace
from hpcrowd.scenarios.kinds.base import Beginning, Staged, Watch, with_parts, with_settings
from hpcrowd.scenarios.kinds.fields import Duration, checked_users, read_as
from hpcrowd.scenarios.kinds.parts.reactions import ReactionsSettings
from hpcrowd.scenarios.kinds.trace_settings import READING, TraceScenario

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.agents.populations.components import Pool
    from hpcrowd.agents.populations.satisfaction import Formula
    from hpcrowd.agents.populations.semi_open import GroupWork, Living
    from hpcrowd.analysis.models.model import WorkloadModel
    from hpcrowd.analysis.run import Run


# Makes a behaviour from the pool; typed loosely where settings are checked.
if TYPE_CHECKING:
    Users = str | Callable[..., Any]
else:
    Users = Any

#: Behaviours while users are present, in a few words.
DOING = {
    "rigid": "submit at the recorded times, moved by whole weeks",
    "think-time": "wait for the same results as recorded, and think as long",
    "think-time-windows": "the same, and keep their weekly rhythm",
    "learned": "keep the order of their batches; pauses of people in such a situation",
    "mugm": "draw batches of their group (mixed user group model)",
    "shmueli-feitelson": "continue or end a session depending on the response",
    "generative": "the same, with their own working days and habits",
}

#: Users who generate their work, so that they have no recorded responses.
MADE_UP = ("mugm", "shmueli-feitelson", "generative")

#: No formula: satisfaction has no effect.
NONE = "none"


@with_parts
class ResampleConfig(ReactionsSettings, TraceScenario):
    """Simulate a population resampled from a trace."""

    AFTER: ClassVar[Mapping[str, str]] = {
        "unit": "sessions",
        "warm_up": "overrun",
    }
    PREPARED_FROM: ClassVar[tuple[str, ...]] = ("trace", *READING)

    kind: Literal["resample"] = Field("resample", description="a population like that of a trace")
    days: int | None = Field(
        None,
        ge=7,
        le=MOST_DAYS,
        multiple_of=7,
        description="days in which users submit, whole weeks; as long as the log unless given",
    )
    population: Annotated[str, read_as(lambda text: _how_many(text))] = Field(
        "1x", description="how many users: a multiple of the log's, or a number for as long a log"
    )
    users: Users = Field(
        "think-time-windows",
        description=f"how users behave: {', '.join(DOING)}; learned:FILE, a model that you fitted; "
        "or your own as FILE.py:NAME",
    )
    satisfaction: str = Field(
        NONE,
        description="what satisfies users: none (nothing matters), habit (responses compared with "
        "recorded ones), requested (waits compared with requested times), alea (waits that Alea "
        "treats as acceptable)",
    )
    consequences: Consequences = Field(
        Consequences(), description="how satisfaction changes what users do"
    )
    user_arrivals: Literal["poisson", "even"] = Field(
        "poisson",
        description="temporary users who arrive per week: drawn around a mean, or the same number",
    )
    full: bool = Field(
        True,
        description="begin with users present: those who arrived earlier and have not finished",
    )
    pool: PoolRules = Field(
        PoolRules(), description="which users of the log are drawn, and which are long-term"
    )
    unit: Literal["sessions", "batches"] = Field(
        "sessions", description="what users submit together and wait for"
    )
    warm_up: Duration = Field(
        4 * WEEK,
        ge=0,
        description="time at the beginning that does not count for throughput, whole weeks",
    )

    @field_validator("warm_up")
    @classmethod
    def _whole_weeks(cls, warm_up: int) -> int:
        if warm_up % WEEK:
            raise ValueError(
                f"{format_duration(warm_up)} are not whole weeks; write for example 2w"
            )
        return warm_up

    @field_validator("users", mode="before")
    @classmethod
    def _known_users(cls, users: Any, info: ValidationInfo) -> Any:
        from hpcrowd.agents.populations.component_users import ClosedLoop

        if not isinstance(users, str):
            own_behaviour(users, ClosedLoop)
            return users
        found = checked_users(users, info.data["folder"], DOING, ClosedLoop)
        if found is None:
            raise ValueError(f"{not_one_of(users, DOING)}, {or_your_own(users)}")
        return found

    @field_validator("satisfaction")
    @classmethod
    def _known_satisfaction(cls, name: str) -> str:
        if name != NONE and name not in FORMULA_NAMES:
            raise ValueError(not_one_of(name, (NONE, *FORMULA_NAMES)))
        return name

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        """Refuse contradictory settings, before anything runs."""
        if self.satisfaction != NONE and self.users == "rigid":
            raise QuantityError(
                f"satisfaction {self.satisfaction}: has no effect on rigid users; choose "
                "think-time, think-time-windows, or satisfaction none"
            )
        if self.satisfaction == "habit" and self.users in MADE_UP:
            raise QuantityError(
                f"satisfaction habit: {self.users} users generate their work, and have no "
                "recorded responses to compare with; choose requested or alea"
            )
        if self.scheduler == "recorded" and self.users in MADE_UP:
            raise QuantityError(
                f"scheduler recorded: there are no recorded waits of {self.users} users; choose "
                "another, for example easy"
            )
        if self.days is not None:
            self._check_warm_up(self.days, "")
        return self

    def _check_warm_up(self, days: int, why: str) -> None:
        if self.warm_up >= days * DAY:
            raise QuantityError(
                f"warm_up {self.warm_up // DAY}d: must be shorter than the run, {days} days{why}"
            )

    @property
    def learned(self) -> bool:
        """Whether users follow a learned model; then they submit batches."""
        return self.users == "learned" or PRESETS.file_in(self.users) is not None

    def openness(self, pool: Pool) -> Openness:
        """Return the number of users and how they arrive."""
        count, multiple = _how_many(self.population)
        factor = count if multiple else count / len(pool.components)
        return Openness(factor, self.user_arrivals, self.full)

    @override
    def label(self) -> str:
        plain = self.plain()
        words = [f"resampled {plain['users']}"]
        if self.satisfaction != NONE:
            words[0] += f" with satisfaction {self.satisfaction}"
        words.append(str(plain["scheduler"]))
        for name, value in plain.items():
            if name not in ("users", "satisfaction", "scheduler", "strict", *READING):
                words += self.difference(name, value)
        return ", ".join(words)

    @override
    def prepare(self) -> Trace:
        """Read the trace."""
        return self.read()

    @override
    def stage(
        self,
        prepared: Trace,
        log: DecisionLog | None = None,
        *,
        model: WorkloadModel | None = None,
        formula: Formula | None = None,
    ) -> Staged:
        """Draw the population; ``model`` and ``formula`` as for :func:`resample`."""
        from hpcrowd.agents.behaviours.hooks import note_generating
        from hpcrowd.agents.populations.population import units_after
        from hpcrowd.agents.populations.satisfaction import formula_of
        from hpcrowd.agents.populations.semi_open import add_members, draw_roster
        from hpcrowd.analysis.accounts.population import (
            Population,
            dropped_users,
            population_accounts,
        )
        from hpcrowd.analysis.accounts.record import Record
        from hpcrowd.analysis.run import Precedence, Reading
        from hpcrowd.environment.cluster import HOME
        from hpcrowd.environment.jobs import JobTable
        from hpcrowd.environment.streams import Streams

        began = time.perf_counter()
        own = (
            {} if formula is None else {"formula": getattr(formula, "__qualname__", repr(formula))}
        )
        if formula is None and self.satisfaction != NONE:
            formula = formula_of(self.satisfaction)
        if formula is not None and self.users == "rigid":
            raise QuantityError("formula: has no effect on rigid users; choose others")
        pool, converted = pool_of(prepared, self)
        self.ask(pool.work.jobs, prepared, converted.source_row)
        living = _living(prepared, pool, self, model)
        people = living.pool
        weeks = pool.weeks if self.days is None else self.days // 7
        self._check_warm_up(7 * weeks, ", as long as the log")
        openness = self.openness(people)
        roster = draw_roster(people, weeks, openness, Streams(self.seed))
        measured = Record.of(people.work.jobs, thinks=self.users != "rigid")
        jobs = JobTable()
        # Users are drawn anew and get numbers of their own.
        jobs.names = {field: known for field, known in prepared.names.items() if field != "user"}
        if people.work.jobs.requests is not None:
            from hpcrowd.environment.requests import Requests

            jobs.requests = Requests()
        overrun = self.overruns(prepared)
        home = {HOME: self.cluster(prepared)}
        begins = Beginning(jobs, home, people.clock, prepared)
        simulation = self.simulation(begins, overrun=overrun)
        living.visits.log = log
        users = add_members(
            simulation,
            living,
            roster,
            horizon=people.clock.second_at(people.clock.wall(0) + weeks * WEEK),
            formula=formula,
            consequences=self.consequences,
            reactions=[] if self.reactions is None else self.reactions.made(),
        )
        if log is not None:
            note_generating(log, users)

        name = Path(prepared.source).name

        def finish() -> Run:
            outcome = self.outcome(simulation)
            account = population_accounts(
                jobs,
                living.visits,
                people.clock,
                weeks=weeks,
                warmup=self.warm_up // WEEK,
                processors=simulation.cluster.processors,
                speed=parse_factor(self.speed, "speed"),
                expected=openness.factor * people.jobs / people.weeks,
                attempts=simulation.cluster.attempts,
            )
            account = {"pool": pool_accounts(people), **account}
            return self.ended(
                simulation,
                begins._replace(jobs=outcome),
                Population(account, living.visits.notes),
                configuration=self.described(
                    **own, trace=name, sums={name: prepared.sha256} | self.sums()
                ),
                precedence=Precedence(
                    after=None if self.users == "rigid" else units_after(simulation, users)
                ),
                reading=Reading(
                    repaired=converted.repaired,
                    dropped=converted.dropped,
                    size_note=self.size_note(prepared),
                ),
                remarks=[]
                if measured is None
                else measured.remarks(
                    outcome, str(self.plain()["users"]), days=7 * weeks, factor=openness.factor
                ),
            )

        dropped = dropped_users({"pool": pool_accounts(people)})
        notes = [*dropped, *self.notes(prepared, converted)]
        return Staged(simulation, users, finish, None, log, time.perf_counter() - began, notes)


@with_settings(ResampleConfig)
def resample(
    trace: Trace | str | os.PathLike[str],
    config: ResampleConfig | None = None,
    *,
    model: WorkloadModel | None = None,
    formula: Formula | None = None,
    progress: Watch | None = None,
    log: DecisionLog | None = None,
    **choices: Any,
) -> Run:
    """Simulate a population resampled from a trace, and return the run.

    Second 0 of the run is the Monday, 00:00 local time, at or before the first submission of the
    trace. Recorded times in its table are those of the rigid population: moved by whole weeks.

    Parameters
    ----------
    trace
        What was recorded: a trace, the path of one in any format, or ``archive:NAME``.
    config
        The configuration; or give its settings by name.
    model
        For users ``mugm``: the fitted model; it is fitted to the trace unless given.
    formula
        A formula for the satisfaction of users, instead of a named one.
    progress
        Called now and then with the simulation.
    log
        Log for the decisions of users, and for when they come and go.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.
    """
    config = config or ResampleConfig.configure(**choices)
    return config.stage(config.given(trace), log, model=model, formula=formula).run(progress)


def _how_many(population: str) -> tuple[float, bool]:
    """Return the number of users, and whether it is a multiple of the log's."""
    text = population.strip()
    if text.isascii() and text.isdigit():
        if int(text) < 1:
            raise QuantityError(f"population {text!r}: at least 1, or a multiple such as 1.5x")
        if len(text) > len(str(MOST_USERS)) or int(text) > MOST_USERS:
            raise QuantityError(f"population {text!r}: at most {MOST_USERS:,} users")
        return float(text), False
    return parse_factor(text, "population"), True


def pool_of(trace: Trace, config: ResampleConfig) -> tuple[Pool, Conversions]:
    """Return the pool of a trace, and how the trace was read."""
    from hpcrowd.agents.populations.components import Pool
    from hpcrowd.environment.clock import Clock

    converted, work = config.recorded(trace, config.conversion())
    name = Path(trace.source).name
    clock = Clock.of(trace.header)
    unit: Literal["sessions", "batches"] = "batches" if config.learned else config.unit
    return Pool.of(work, clock, config.pool, unit=unit, source=name), converted


def pool_accounts(pool: Pool) -> dict[str, Any]:
    """Return the contents of a pool and what was dropped, fit for JSON."""
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
    """Return the behaviour of users while they are present."""
    from hpcrowd.agents.generative.shmueli import SiteModel
    from hpcrowd.agents.populations.component_users import AsRecorded, ClosedLoop
    from hpcrowd.agents.populations.semi_open import ComponentWork, SiteWork

    if config.users == "rigid":
        return ComponentWork(pool, AsRecorded())
    if config.users == "think-time":
        return ComponentWork(pool, ClosedLoop())
    if config.users == "think-time-windows":
        return ComponentWork(pool, ClosedLoop(pool.profiles))
    if config.users == "mugm":
        return _group_work(trace, pool, config, model)
    if config.learned:
        from hpcrowd.agents.learned.model import LearnedModel
        from hpcrowd.agents.populations.learned import InOrder

        return ComponentWork(pool, InOrder(pool, LearnedModel.named(str(config.users))))
    if config.users not in DOING:
        return ComponentWork(pool, own_behaviour(config.users, ClosedLoop)(pool))
    preset = PRESETS[config.users]
    assert isinstance(preset, SiteModel)
    return SiteWork(pool, preset)


def _group_work(
    trace: Trace, pool: Pool, config: ResampleConfig, model: WorkloadModel | None
) -> GroupWork:
    """Return the groups of a mixed user group model, with the users of a workload it generates."""
    from hpcrowd.agents.populations.components import Pool
    from hpcrowd.agents.populations.semi_open import GroupWork
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.agents.work.sessions import SessionDefinition
    from hpcrowd.analysis.features.workload import Workload
    from hpcrowd.analysis.models.generation import generate, population
    from hpcrowd.analysis.models.model import fit
    from hpcrowd.environment.clock import Clock

    model = model or fit("mugm", Workload.from_trace(trace), cycle="weekly")
    made = generate(model, days=pool.weeks * WEEK / DAY, seed=config.seed)
    users = population(made)
    invented = made.trace()
    jobs = jobs_from_trace(invented, config.conversion()).jobs
    work = Work.of(jobs, SessionDefinition.parse(config.sessions))
    people = Pool.of(work, Clock(known=True), config.pool, unit=config.unit, source=model.name)
    speed = parse_factor(config.speed, "speed")
    return GroupWork(people, users.members, {g: b.at_speed(speed) for g, b in users.pools.items()})
