"""A forecast with all its settings: from its input to what it says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.forecast.answers import (
    Answers,
    Recalibrates,
    Submissions,
    answers_of,
    reasons_now,
)
from hpcrowd.analysis.forecast.effects import EatenUp, Effects, eaten_up, effects_of
from hpcrowd.analysis.forecast.futures import Future, Outset
from hpcrowd.analysis.forecast.site_bounds import (
    Learned,
    Withheld,
    promise_of,
)
from hpcrowd.environment.clock import HOUR, parse_moment
from hpcrowd.environment.cluster import HOME, ClusterSpec
from hpcrowd.environment.errors import QuantityError, check_choice, not_one_of
from hpcrowd.environment.quantities import MOST_SHOWN, format_duration, notebook_table, plural
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.environment.state.fitted import FITTING, Fitted
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.environment.traces.formats.common.names import forget_names
from hpcrowd.environment.traces.formats.registry import file_of
from hpcrowd.environment.traces.trace import Trace, as_trace
from hpcrowd.scenarios.engines import Engine, engine_of
from hpcrowd.scenarios.forecasts.inputs import (
    is_state,
    known_jobs,
    parse_job,
    site_of_files,
    state_from,
    state_of_trace,
    with_known_qos,
    without_impossible_jobs,
)
from hpcrowd.scenarios.forecasts.making import make_futures, site_bounds_of, usual_engine
from hpcrowd.scenarios.forecasts.settings import ForecastSettings
from hpcrowd.scenarios.kinds.base import checksum
from hpcrowd.scenarios.kinds.parts.machine import check_nameless
from hpcrowd.scenarios.kinds.trace_settings import reading_options, reading_words
from hpcrowd.scenarios.terminal import Progress

if TYPE_CHECKING:
    from hpcrowd.agents.learned.model import LearnedModel
    from hpcrowd.analysis.forecast.judge import Subject

#: Shortest record with bounds of starts, s (our choice): what other logs show is of records of two
#: hours and more, whose first job ended some time after their begin.
SHORTEST_RECORD = HOUR

#: What is said of bounds that are not corrected.
RAW = (
    "Bounds of starts are those of the futures, as --hindcasts 0 asks: on other logs such 90 % "
    "bounds held 11 to 27 % of starts"
)


@dataclass(frozen=True, repr=False)
class Found:
    """What a forecast says."""

    answers: Answers  #: Starts, load, queue and waits.
    effects: tuple[Effects, ...]  #: Of each change, and of what one would submit instead.
    #: How much of the effect of the first change users who react eat up; None if users do not.
    eaten: EatenUp | None
    futures: list[Future]  #: The futures.

    def __repr__(self) -> str:
        found = self.answers
        return f"<Forecast of {plural(len(found.jobs), 'job')} by {len(self.futures)} futures>"

    def _repr_html_(self) -> str:
        """Return until when it goes, and when the first jobs start, for notebooks."""
        found = self.answers
        ahead = found.until - found.now
        rows = [("futures", f"{found.futures:,}", f"{format_duration(ahead)} ahead")]
        rows += [
            (one.name, f"starts within {format_duration(ahead)}: {100 * one.within:.0f} %",
             one.reason)
            for one in found.jobs[:MOST_SHOWN]
        ]  # fmt: skip
        if len(found.jobs) > MOST_SHOWN:
            rows.append(("...", f"{len(found.jobs) - MOST_SHOWN:,} more", "in answers.jobs"))
        return notebook_table(repr(self), rows)


class Forecast(ForecastSettings):
    """The settings of a forecast; see the options of ``hpcrowd forecast``."""

    def state(self) -> ClusterState:
        """Return the state that the futures begin with.

        Raises
        ------
        HpcrowdError
            In one line, where something is wrong.
        """
        at = None if self.at is None else parse_moment(self.at)
        if isinstance(self.source, ClusterState):
            return self.source
        if isinstance(self.source, Path):
            nameless = self.how.get("anonymise")
            check_nameless(nameless, self.machine)
            state = state_from(
                self.source, at=at, past=self.past, machine=self.machine,
                processors=self.processors, options=reading_options(**self.how),
            )  # fmt: skip
            if nameless:
                forget_names(state.jobs)
            return state
        return state_of_trace(self.source, at, self.processors)

    @cached_property
    def model(self) -> LearnedModel | None:
        """The learned model of the users, if they follow one."""
        if not self.users.startswith("learned"):
            return None
        from hpcrowd.agents.learned.model import LearnedModel

        return LearnedModel.named(self.users)

    def scheduler_of(self, text: str, state: ClusterState, say: Progress | None = None) -> Any:
        """Return a scheduler for futures of a state: its text, or ``fitted`` to what came before.

        Raises
        ------
        QuantityError
            If there is no such scheduler, or the record before the state is too short for a fit.
        """
        made = parse_scheduler(text) if text.partition(":")[0] == "fitted" else None
        if not isinstance(made, Fitted):
            return text
        if self.machine:
            raise QuantityError(
                "scheduler fitted: fits rules of a pool of processors, and not of a machine of "
                "nodes; leave out --machine, or choose slurm"
            )
        known: dict[Any, Any] = vars(self).setdefault("_fitted", {})
        if (text, state.now) not in known:
            made.fit_to(
                state.jobs, state.clock, self.processors or state.processors,
                progress=say and partial(say, FITTING),
            )  # fmt: skip
            known[text, state.now] = made
        return known[text, state.now]

    def outset(self, state: ClusterState, jobs: tuple[str, ...] | None = None) -> Outset:
        """Return what all futures of a state have in common; ``jobs`` instead of those of --job."""
        site = site_of_files(self.machine, self.how.get("zone"))
        changes: list[Any] = []
        if self.platform is not None:
            from hpcrowd.scenarios.kinds.platform_files import PlatformConfig

            home = ClusterSpec(state.processors)
            platform = PlatformConfig.read(self.platform)
            changes = [*platform.parts({HOME: home}, state.clock)[0].changes]
        if site is not None and state.jobs.requests is None:
            from hpcrowd.environment.requests import Requests

            state.jobs.requests = Requests(len(state.jobs))
        if site is not None:
            site, notes = with_known_qos(site, state)
            state = replace(state, notes=tuple(dict.fromkeys((*state.notes, *notes))))
        option, wanted = ("--job", self.jobs) if jobs is None else ("--instead", jobs)
        outset = Outset(
            state, self.horizon,
            scheduler=self.scheduler_of(
                self.scheduler or ("easy" if site is None else "slurm"), state
            ),
            users=self.users.partition(":")[0], processors=self.processors, overrun=self.overrun,
            estimates=self.estimates, platform=changes, machine=site, model=self.model,
            asked=[parse_job(one, state, option) for one in wanted],
        )  # fmt: skip
        return without_impossible_jobs(outset)

    def changed(self, outset: Outset, change: str) -> Outset:
        """Return the outset under a change."""
        name, _, value = change.partition("=")
        if name == "processors":
            if not value.isdecimal() or len(value) > 12 or int(value) < 1:
                raise QuantityError(f"--change {change!r}: a number of processors, at least 1")
            used = outset.state.used
            if int(value) < used:
                raise QuantityError(
                    f"--change {change!r}: the jobs that run now hold {used:,}; give that at "
                    "least, or let processors leave later, with --platform"
                )
            return replace(outset, processors=int(value))
        if name == "machine":
            site = site_of_files([Path(value)], self.how.get("zone"))
            assert site is not None
            return replace(outset, machine=with_known_qos(site, outset.state)[0])
        if name == "overrun":
            check_choice("overrun", value, ("keep", "kill"))
        settings: dict[str, Any] = {name: value}
        if name == "scheduler":
            settings[name] = self.scheduler_of(value, outset.state)
        return replace(outset, **settings)

    def run(self, progress: Progress | None = None, state: ClusterState | None = None) -> Found:
        """Make the forecast.

        Parameters
        ----------
        progress
            Called now and then.
        state
            The state, if it is known already.
        """
        say = progress or (lambda label, done, total: None)
        state = state or self.state()
        if self.scheduler:
            self.scheduler_of(self.scheduler, state, say)
        outset = self.outset(state)
        rigid = "rigid" if self.users not in ("rigid", "none") else None
        plans = {change: self.changed(outset, change) for change in self.changes}
        engine, aside = self._engine(), ThreadPoolExecutor(1)
        try:
            # While other processes begin and work.
            reasons = aside.submit(reasons_now, replace(outset))

            def make(one: Outset, what: str) -> list[Future]:
                return make_futures(
                    one, self.futures, self.seed, engine=engine, folder=self.keep,
                    progress=lambda done, total: say(what, done, total),
                )  # fmt: skip

            base = make(outset, "futures")
            Submissions.of(outset, base).check(outset, len(base))
            effects, eaten = [], None
            for change, plan in plans.items():
                effects.append(effects_of(outset, plan, base, make(plan, change), change))
            if plans and rigid:
                change, plan = next(iter(plans.items()))
                still, moved = replace(outset, users=rigid), replace(plan, users=rigid)
                fixed = effects_of(
                    still, moved, make(still, "rigid users"), make(moved, f"rigid, {change}"),
                    f"{change}, rigid users",
                )  # fmt: skip
                eaten = eaten_up(fixed, effects[0], seed=self.seed)
            if self.instead:
                other = self.outset(outset.state, self.instead)
                words = f"{', '.join(self.instead)} instead of {', '.join(self.jobs)}"
                effects.append(effects_of(outset, other, base, make(other, "instead"), words))
        finally:
            engine.close()
            aside.shutdown()
        learned, promise = self.learned(outset, say)
        answers = answers_of(outset, base, recalibration=learned, reasons=reasons.result())
        if isinstance(outset.scheduler, Fitted) and outset.scheduler.fit is not None:
            lines = outset.scheduler.fit.lines()
            answers = replace(answers, notes=(*answers.notes, *lines))
        answers = replace(answers, promise=promise, track=getattr(learned, "track", None))
        return Found(answers, tuple(effects), eaten, base)

    def _engine(self) -> Engine:
        """Return what makes all futures of all outsets."""
        if (self.executor, self.workers, self.address) == ("processes", None, None):
            return usual_engine(self.futures)
        return engine_of(self.executor, address=self.address, workers=self.workers)

    def learned(self, outset: Outset, say: Progress) -> tuple[Recalibrates | None, str]:
        """Return the bounds of starts in place of those of futures, and what they promise."""
        state = outset.state
        if not (len(state.waiting) + len(outset.asked)):
            return None, ""
        if not self.hindcasts:
            return None, RAW
        record = state.now - state.record_begin
        if record < SHORTEST_RECORD:
            return Withheld(), (
                f"No bounds of starts, only medians of the futures: the record of what is over, "
                f"{format_duration(record)}, says too little. Give one of "
                f"{format_duration(SHORTEST_RECORD)} or more, with --past"
            )
        site = site_bounds_of(
            outset, self.hindcasts, self.seed, processes=self.workers,
            progress=lambda done, total: say("hindcasts", done, total),
        )  # fmt: skip
        learned = Learned(site, outset, self.seed)
        promise = promise_of(site, state.now, record)
        return Withheld(learned) if learned.track.broken else learned, promise

    def subject(self, say: Progress | None = None) -> Subject:
        """Return the log to judge forecasts of; a scheduler is fitted to its first half.

        Raises
        ------
        QuantityError
            If the input is not a trace.
        """
        from hpcrowd.analysis.forecast.judge import Subject
        from hpcrowd.environment.clock import Clock
        from hpcrowd.environment.traces.formats.common.files import read_file
        from hpcrowd.environment.traces.formats.registry import read_trace

        if isinstance(self.source, ClusterState):
            raise QuantityError("--judge: give a trace, not a state")
        if isinstance(self.source, Path) and is_state(read_file(file_of(self.source))[0]):
            raise QuantityError(f"--judge: {self.source} is a state; give a trace")
        trace = (
            read_trace(file_of(self.source), options=reading_options(**self.how))
            if isinstance(self.source, Path)
            else self.source
        )
        jobs, clock, size = known_jobs(trace), Clock.of(trace.header), self.processors
        size = size or trace.processors
        middle = int(np.median(jobs.recorded_submit))
        before = ClusterState.of(jobs, middle, clock, size, source=trace.source)
        return Subject(
            jobs, clock, size,
            scheduler=self.scheduler_of(self.scheduler or "easy", before, say),
            users=self.users.partition(":")[0], model=self.model, overrun=self.overrun,
            estimates=self.estimates, seed=self.seed,
        )  # fmt: skip

    def plain(self) -> dict[str, Any]:
        """Return the settings, fit for JSON."""
        found: dict[str, Any] = {"kind": "forecast"}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "source":
                value = value.name if isinstance(value, Path) else value.source
            elif isinstance(value, Path):
                value = value.name
            elif isinstance(value, tuple):
                value = [one.name if isinstance(one, Path) else one for one in value]
            elif isinstance(value, Mapping):
                value = {name: str(given) for name, given in value.items()}
            elif value is not None and not isinstance(value, str | int | float):
                value = str(value)
            found[one.name] = value
        return found

    def source_account(self) -> dict[str, Any]:
        """Return where the state comes from, fit for JSON: files and their checksums."""
        paths = [one for one in (self.source, self.past, self.platform, *self.machine) if one]
        return {
            "files_sha256": {
                path.name: checksum(path)
                for path in paths
                if isinstance(path, Path) and path.is_file()
            }
        }

    def again(self, out: Path) -> str:
        """Return the command that makes the forecast again."""
        import shlex

        words = ["hpcrowd", "forecast", self.plain()["source"]]
        for name, option in (("at", "--at"), ("past", "--past")):
            if getattr(self, name) is not None:
                words += [option, str(self.plain()[name])]
        for name, option in (
            ("machine", "--machine"), ("jobs", "--job"), ("instead", "--instead"),
            ("changes", "--change"),
        ):  # fmt: skip
            for value in self.plain()[name]:
                words += [option, str(value)]
        words += reading_words(self.how)
        default = Forecast(self.source)
        for name in (
            "processors", "days", "futures", "seed", "users", "scheduler", "estimates", "overrun",
            "platform", "hindcasts",
        ):  # fmt: skip
            if getattr(self, name) != getattr(default, name):
                words += [f"--{name}", str(self.plain()[name])]
        return shlex.join([*words, "--out", out.name])


def forecast(
    source: ClusterState | Trace | str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    **choices: Any,
) -> Found:
    """Foresee starts, load and queue from the cluster as it is at one second.

    Parameters
    ----------
    source
        A :class:`~hpcrowd.environment.state.state.ClusterState`, such as that of a running
        simulation; a trace; or a file: a snapshot, the queue of a Slurm, or a trace in any format.
    progress
        Called now and then with what is done, how much of it, and of how much.
    **choices
        Settings of :class:`Forecast`, such as ``at``, ``days``, ``futures``, ``jobs``, ``changes``,
        ``users``, ``scheduler`` and ``seed``.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.
    """
    known = {one.name for one in fields(Forecast)} - {"source"}
    for name in choices:
        if name not in known:
            raise QuantityError(f"{name}: {not_one_of(name, sorted(known))}")
    given: Any = Path(source) if isinstance(source, str | os.PathLike) else source
    if not isinstance(given, Path | ClusterState):
        given = as_trace(given)
    return Forecast(given, **choices).run(progress)
