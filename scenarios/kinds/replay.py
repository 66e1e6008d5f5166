"""Replay a trace: the users of a log submit again, and react to the cluster.

:class:`ReplayConfig` has the settings, checked before anything runs; :func:`replay` is one run.
:func:`prepare` finds once what several runs may share, such as sessions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, override

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from hpcrowd.agents.presets import PRESETS, own_behaviour
from hpcrowd.environment.errors import not_one_of
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.registry import or_your_own
from hpcrowd.environment.traces.requested_times import RequestedTimes
from hpcrowd.environment.traces.trace import Conversion, Conversions, Trace
from hpcrowd.scenarios.kinds.base import Beginning, Staged, Watch, with_parts, with_settings
from hpcrowd.scenarios.kinds.fields import FileConfig, checked_users
from hpcrowd.scenarios.kinds.trace_settings import READING, TraceScenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.populations.population import Mixture
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.agents.work.units import Units
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.traces.formats.common.base import FormatOptions


#: Behaviours by name.
BEHAVIOURS = tuple(PRESETS)

#: Makes a behaviour from the recorded work, such as a subclass of ThinkTime; see
#: ``agents.populations.population.add_users``. Not imported here, because listing options needs no
#: simulation.
BehaviourFactory = Callable[..., Any]

# What describes users is imported by the validator, where it is given.
if TYPE_CHECKING:
    Users = str | FileConfig | Mixture | BehaviourFactory
else:
    Users = Any


@dataclass
class Prepared:
    """A trace that is ready to be replayed; runs of different speeds and seeds may share it."""

    trace: Trace  #: what was recorded
    converted: Conversions  #: its jobs, on nodes of the recorded speed
    record: Work  #: the sessions of all users


@with_parts
class ReplayConfig(TraceScenario):
    """Replay a trace with users who react to the scheduler."""

    PREPARED_FROM: ClassVar[tuple[str, ...]] = (
        "trace", "job_processors", "requested", "given_up", "unfinished", "sessions", "strict",
        *READING,
    )  # fmt: skip

    kind: Literal["replay"] = Field("replay", description="a recorded trace, with users who react")
    users: Users = Field(
        "think-time",
        description=f"how users behave: {', '.join(BEHAVIOURS)}; learned:FILE, a model that you "
        "fitted; a population from FILE.toml, or your own as FILE.py:NAME. "
        "`hpcrowd behaviours` describes them",
    )

    unfinished: str = Field(
        "typical",
        description="jobs of an accounting that had not ended when it was written: typical (they "
        "use as much of their limits as others that had run as long), limit (they run until then), "
        "a time such as 2h (so long, but not beyond the limit), or drop",
    )

    @field_validator("unfinished")
    @classmethod
    def _known_unfinished(cls, unfinished: str) -> str:
        return Conversion(unfinished=unfinished).unfinished

    @field_validator("users", mode="before")
    @classmethod
    def _known_users(cls, users: Any, info: ValidationInfo) -> Any:
        """Read a file that describes users, so that mistakes are found before anything runs."""
        folder = info.data["folder"]
        found = checked_users(users, folder, BEHAVIOURS)
        if found is None:
            found = cls.users_from(users, folder)
        if found is not None:
            return found
        from hpcrowd.agents.populations.population import Mixture

        if not isinstance(users, str | Mixture):
            own_behaviour(users)
        if not isinstance(users, str):
            return users
        raise ValueError(f"{not_one_of(users, BEHAVIOURS)}, {or_your_own(users)}")

    @override
    def conversion(self) -> Conversion:
        return replace(super().conversion(), unfinished=self.unfinished)

    @override
    def reading(self, folder: Path) -> FormatOptions:
        return replace(super().reading(folder), unfinished=self.unfinished != "drop")

    @override
    def label(self) -> str:
        plain, words = self.plain(), []
        for name, value in plain.items():
            if name in ("users", "scheduler"):
                words.append(_name(value))
            elif name not in ("strict", *READING):
                words += self.difference(name, value)
        return ", ".join(words)

    @override
    def sharing(self) -> dict[str, Any]:
        """Return what the converted trace depends on, or the trace if each run converts it."""
        found = super().sharing()
        if self.draws_requests:
            return {name: found[name] for name in ("kind", "trace", *READING)}
        return found | {"follows": self.users != "rigid"}

    @property
    def draws_requests(self) -> bool:
        """Whether requested times are drawn, so that no two seeds have the same jobs."""
        rule = RequestedTimes.parse(self.requested)
        return rule.fitted or rule.model is not None

    @override
    def prepare(self) -> Trace | Prepared:
        """Read the trace; convert it and find its sessions if that is the same for all seeds."""
        trace = self.read()
        return trace if self.draws_requests else prepare(trace, self, follows=self.users != "rigid")

    @override
    def stage(self, prepared: Trace | Prepared, log: DecisionLog | None = None) -> Staged:
        """Set up the replay.

        Parameters
        ----------
        prepared, log
            As for any scenario; or the trace as it is.
        """
        from hpcrowd.agents.populations.population import Casting, units_after
        from hpcrowd.analysis.accounts.record import Record
        from hpcrowd.analysis.run import Precedence, Reading
        from hpcrowd.environment.clock import Clock
        from hpcrowd.environment.cluster import HOME
        from hpcrowd.environment.streams import Streams

        began = time.perf_counter()
        ready = prepared if isinstance(prepared, Prepared) else prepare(prepared, self)
        trace, converted, record = ready.trace, ready.converted, ready.record
        recorded = record.jobs.recorded_end - record.jobs.recorded_start
        record.jobs.run_time[:] = self.conversion().run_time(recorded)
        self.ask(record.jobs, trace, converted.source_row)
        measured = Record.of(record.jobs, thinks=self.users != "rigid")
        clock = Clock.of(trace.header)
        behaviour, others = self.behaviour_and_clusters()
        casting = Casting.of(record, behaviour, Streams(self.seed))
        jobs, work = casting.jobs, casting.replayed
        clusters = {HOME: self.cluster(trace), **others}
        overrun = self.overruns(trace)
        of = _source_row(converted.source_row[casting.rows], len(jobs))
        begins = Beginning(jobs, clusters, clock, trace, of)
        model = self.simulation(begins, overrun=overrun)
        users, generated = casting.join(model, log=log)

        def finish() -> Run:
            rows = _source_row(converted.source_row[casting.rows], len(jobs))  # users may add jobs
            ended = model.end()
            outcome = self.outcome(model)
            remarks = self.limits(trace, converted.jobs)
            if measured is not None:
                remarks += measured.remarks(outcome, _name(self.plain()["users"]))
            return self.ended(
                model,
                begins._replace(jobs=outcome, rows=rows),
                configuration=self.described(sums=self.sums()) | changed_by_hand(users),
                reading=Reading(trace, rows, converted.repaired, converted.dropped),
                work=work,
                precedence=Precedence(
                    after=units_after(model, generated) if generated else None,
                    waits=[] if work is None else units_waited_for(work, users),
                    depends=ended.get("depends", {})
                    | {row: before for user in users for row, before in user.preceded.items()},
                ),
                remarks=remarks,
            )

        took, notes = time.perf_counter() - began, self.notes(trace, converted)
        return Staged(model, [*users, *generated], finish, work, log, took, notes)


def _name(setting: Any) -> str:
    """Return the name of users or of a scheduler."""
    return str(setting["name"] if isinstance(setting, dict) else setting)


def prepare(trace: Trace, config: ReplayConfig, *, follows: bool = False) -> Prepared:
    """Convert a trace and find its sessions.

    Of the settings, ``processors``, ``requested``, ``sessions`` and ``strict`` count, and ``seed``
    if requested times are drawn. With ``follows``, dependencies are found now; else when first
    needed.
    """
    converted, record = config.recorded(trace, replace(config.conversion(), speed=1.0))
    if follows:
        _ = record.dependencies, record.by_session
        if record.chains is None:
            _ = record.by_batch
    return Prepared(trace, converted, record)


@with_settings(ReplayConfig)
def replay(
    trace: Trace | str | os.PathLike[str],
    config: ReplayConfig | None = None,
    *,
    progress: Watch | None = None,
    prepared: Prepared | None = None,
    log: DecisionLog | None = None,
    **choices: Any,
) -> Run:
    """Replay a trace and return the run.

    Parameters
    ----------
    trace
        What was recorded: a trace, the path of one in any format, or ``archive:NAME``.
    config
        The configuration; or give its settings by name.
    progress
        Called now and then with the simulation.
    prepared
        Result of :func:`prepare` for this trace and these settings; it is changed, and cannot be
        used again. None prepares the trace.
    log
        Log for the decisions of users; the schedule is the same.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.

    Examples
    --------
    >>> from hpcrowd import parse_swf
    >>> trace = parse_swf("1 0 0 60 1 -1 -1 1 60 -1 1 1 -1 -1 -1 -1 -1 -1")
    >>> replay(trace, scheduler="fcfs", processors="4").metrics["jobs_completed"]
    1
    """
    config = config or ReplayConfig.configure(**choices)
    return config.stage(prepared or config.given(trace), log).run(progress)


def _source_row(replayed: Int64s, jobs: int) -> Int64s:
    """Return the rows of the replayed jobs in the trace, then -1 for jobs that users added."""
    return np.concatenate([replayed, np.full(jobs - len(replayed), UNKNOWN)])


def changed_by_hand(users: Sequence[ReplayUser]) -> dict[str, Any]:
    """Return what was changed in the middle of the run, which no setting repeats, if anything.

    That is ``changed_graphs``, the numbers of users whose graphs were changed, and
    ``given_behaviours``, the seconds and names of behaviours by the numbers of users.
    """
    graphs = [user.number for user in users if user.edited]
    given = {str(user.number): [list(one) for one in user.given] for user in users if user.given}
    return ({"changed_graphs": graphs} if graphs else {}) | (
        {"given_behaviours": given} if given else {}
    )


def units_waited_for(
    work: Work, users: Sequence[ReplayUser]
) -> list[tuple[Units, NDArray[np.bool_]]]:
    """Return the units of users who wait, with a mask of the units that were waited for."""
    from hpcrowd.agents.behaviours.composed import Composed

    waiting: dict[int, tuple[Units, NDArray[np.bool_]]] = {}
    changed: dict[int, list[ReplayUser]] = {}
    for user in users:
        behaviour = user.behaviour
        if behaviour.when.reacts if isinstance(behaviour, Composed) else behaviour.reacts:
            units = behaviour.units or work.by_session
            _, which = waiting.setdefault(id(units), (units, np.zeros(len(units), bool)))
            which[user.units.start : user.units.stop] = True
            if user.changed_graph is not None:
                changed.setdefault(id(units), []).append(user)
    for key, holders in changed.items():
        from hpcrowd.agents.populations.population import with_changes

        units, which = waiting[key]
        units = with_changes(units, holders)
        waiting[key] = units, np.append(which, np.ones(len(units) - len(which), bool))
    return list(waiting.values())
