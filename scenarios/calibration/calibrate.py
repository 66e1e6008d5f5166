"""Calibrate free parameters to a log: simulations, posterior, check and predictive intervals.

What is calibrated is a population or a scenario in a TOML file, with the parameters that are free.
A population is that of a replay; ``[free]`` names settings of its file, as the axes of a sweep do::

    [[users]]
    behaviour = "linear"

    [free]
    users.0.line.slope = "0..2"
    users.0.line.intercept = "log:1m..2h"

A file with a table ``[scenario]`` is a scenario of any of :data:`KINDS_TO_CALIBRATE`; ``[free]``
then names settings of the scenario, such as ``consequences.leave``.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from hpcrowd.analysis.calibration.posterior import Coverage, Posterior, check, predicted
from hpcrowd.analysis.calibration.priors import Prior
from hpcrowd.analysis.calibration.regression import (
    LEAST_DRAWS,
    Table,
    Weighted,
    likeness,
    posterior_of,
)
from hpcrowd.analysis.calibration.statistics import NAMES, Measure, chosen
from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.results import versions
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.errors import HpcrowdError, QuantityError, check_choice
from hpcrowd.environment.limits.numbers import LARGEST_SEED, MOST_RUNS, check_within
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.environment.traces.window import window
from hpcrowd.scenarios.engines import each_in_processes
from hpcrowd.scenarios.kinds.base import Scenario, takes_settings
from hpcrowd.scenarios.kinds.files import KINDS, Source, scenario_of
from hpcrowd.scenarios.kinds.replay import ReplayConfig, prepare
from hpcrowd.scenarios.terminal import Progress

if TYPE_CHECKING:
    from hpcrowd.scenarios.kinds.trace_settings import TraceScenario

#: Methods by name.
METHODS = ("regression", "smc")

#: Simulations of draws of the prior, unless given.
DRAWS = 400

#: Simulations of draws of the posterior, for predictive intervals.
PREDICTIVE = 60

#: Share of the budget of ``smc`` that shows how much each statistic varies over the prior.
SCALING = 0.2


@dataclass(frozen=True)
class Calibration:
    """The outcome of a calibration.

    Attributes
    ----------
    posterior
        The posterior.
    table
        Simulations of draws of the prior.
    jobs, days
        Of the log that it was calibrated to.
    outside
        Statistics of the log that no draw of the prior comes up to.
    likeness
        Whether draws of the prior are like the log, see
        :func:`hpcrowd.analysis.calibration.regression.likeness`.
    coverage
        The check; None unless wanted.
    """

    posterior: Posterior
    table: Table
    jobs: int
    days: float
    outside: list[str]
    likeness: float
    coverage: Coverage | None = None


def calibrate(
    source: str | os.PathLike[str],
    trace: str | os.PathLike[str],
    *,
    free: Mapping[str, str] | Sequence[str] = (),
    days: int | None = None,
    compare: Sequence[str] = (),
    draws: int = DRAWS,
    method: Literal["regression", "smc"] = "regression",
    truths: int = 0,
    predictive: int = PREDICTIVE,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Calibration:
    """Find which parameters of users make simulations like a log, with their uncertainty.

    Parameters
    ----------
    source
        TOML file of a population, or of a scenario.
    trace
        The log, in any format.
    free
        Free parameters with their priors, such as ``{"users.0.line.slope": "0..2"}``, in addition
        to those in the table ``[free]`` of the file.
    days
        How many days of the log, from its first submission; all unless given.
    compare
        Statistics that count, by their names or beginnings, such as ``think``; all unless given.
    draws
        Simulations of draws of the prior; with ``smc`` about the number of all simulations.
    method
        ``regression`` (see :mod:`hpcrowd.analysis.calibration.regression`) or ``smc`` (ABC-SMC by
        pyabc).
    truths
        Truths of the check, see :mod:`hpcrowd.analysis.calibration.posterior`; 0 for none.
    predictive
        Simulations of draws of the posterior, for predictive intervals of the statistics.
    seed
        Seed of everything random.
    workers
        Processes that share the work.
    progress
        Called with a label, the steps done and all steps.
    settings
        Further settings of the scenario, such as ``{"scheduler": "fcfs"}``.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.
    """
    check_choice("method", method, METHODS)
    names = chosen(compare)
    check_within("draws", draws, LEAST_DRAWS, MOST_RUNS)
    if method == "smc" and truths:
        raise QuantityError(
            f"check {truths}: tests the method regression, which needs no further simulations; "
            "leave out one of the two"
        )
    if method == "smc":
        from hpcrowd.analysis.calibration.regression import check_available

        check_available()
    given = [f"{name}={text}" for name, text in free.items()] if isinstance(free, Mapping) else free
    subject = read_subject(Path(source), given, Path(trace), settings)
    log = Days.of(subject.scenario([prior.at(0.5) for prior in subject.priors]).read(), days)
    progress = progress or (lambda label, done, total: None)
    simulations = Simulations.of(subject, log)
    streams = Streams(seed).within("calibration")
    first = draws if method == "regression" else max(LEAST_DRAWS, round(SCALING * draws))
    table = replace(_table(simulations, first, streams, workers, progress), names=names)
    if method == "regression":
        drawn = posterior_of(table, simulations.record)
    else:
        drawn = _searched(simulations, table, draws - first, streams.seed, progress)
    posterior = Posterior(
        method=method,
        priors=subject.priors,
        drawn=drawn,
        settings=subject.settings,
        provenance={
            "trace": Path(log.trace.source).name,
            "sha256": log.trace.sha256,
            "days": days,
            "compare": list(compare),
            "jobs": simulations.jobs,
            "draws": draws,
            "seed": seed,
            "versions": versions(),
        },
    )
    lines = [list(posterior.draw(number).values()) for number in range(predictive)]
    again = simulations.all(
        np.array(lines), range(predictive), workers, progress, "simulating the posterior"
    )
    posterior = replace(posterior, statistics=tuple(predicted(simulations.record, again)))
    coverage = check(table, truths, seed, progress) if truths else None
    outside = [NAMES[place] for place in table.outside(simulations.record)]
    like = likeness(table, simulations.record)
    return Calibration(posterior, table, simulations.jobs, log.days, outside, like, coverage)


def _table(
    simulations: Simulations, draws: int, streams: Streams, workers: int, progress: Progress
) -> Table:
    """Simulate draws of the prior."""
    priors = simulations.subject.priors
    shares = streams.generator("prior").random((draws, len(priors)))
    values = np.array(
        [[prior.at(one) for prior, one in zip(priors, line, strict=True)] for line in shares]
    )
    seeds = streams.generator("seeds").integers(LARGEST_SEED, size=draws).tolist()
    statistics = simulations.all(values, seeds, workers, progress, "simulating the prior")
    return Table(priors, values, statistics)


def _searched(
    simulations: Simulations, table: Table, budget: int, seed: int, progress: Progress
) -> Weighted:
    """Return the posterior by a search with about as many simulations as the budget."""
    from hpcrowd.analysis.calibration.regression import sample

    numbers = count()

    def counted(values: Sequence[float], seed: int) -> Floats:
        progress("searching", min(next(numbers), budget), budget)
        return simulations((0, tuple(values), seed))

    priors = simulations.subject.priors
    return sample(priors, simulations.record, table, counted, budget, seed)


def write_posterior(
    posterior: Posterior, path: str | os.PathLike[str], folder: str | os.PathLike[str]
) -> None:
    """Write a posterior; files that its settings name are found from where it lies.

    Parameters
    ----------
    posterior
        The posterior.
    path
        Its file.
    folder
        Folder of the files that its settings name.

    Raises
    ------
    ModelFileError
        When it cannot be written.
    """
    relative = os.path.relpath(Path(folder).absolute(), Path(path).absolute().parent)
    replace(posterior, folder=Path(relative).as_posix()).write(path)


# ---- what is calibrated -------------------------------------------------------------------------

#: Kinds of scenarios whose users come from the log itself.
KINDS_TO_CALIBRATE = ("replay", "resample")

#: The table of free parameters in a file.
FREE = "free"

#: Settings that a calibration sets itself.
SET_HERE = ("trace", "seed")

#: Shares of a prior at which a scenario is made before anything runs; the last is not round.
TRIED = (0.0, 1.0, 0.4142)


@dataclass(frozen=True)
class Subject:
    """A scenario with free parameters."""

    settings: dict[str, Any]  #: Settings of the scenario without its trace and seed.
    folder: Path  #: Folder of the files that it names.
    priors: tuple[Prior, ...] = ()  #: The free parameters, by their dotted names in the scenario.
    trace: Path = Path()  #: File of the log.

    @property
    def kind(self) -> type[Scenario]:
        """The kind of scenario."""
        return KINDS[self.settings["kind"]]

    def scenario(self, values: Sequence[float], seed: int = 0) -> TraceScenario:
        """Return the scenario with values of the free parameters, in the order of the priors.

        A QuantityError is raised when a setting is wrong, or settings contradict each other.
        """
        given = {prior.name: value for prior, value in zip(self.priors, values, strict=True)}
        settings = takes_settings(self.settings, given)
        settings |= {"seed": seed, "trace": str(self.trace.absolute())}
        return cast("TraceScenario", scenario_of(settings, self.folder))


def read_subject(
    path: Path, free: Sequence[str], trace: Path, settings: Mapping[str, Any] | None = None
) -> Subject:
    """Return what the file of a population or a scenario describes, with its free parameters.

    Further free parameters are NAME=LOW..HIGH and replace those of the file; further settings are
    those of the scenario, such as its scheduler. A QuantityError is raised when the file cannot be
    read, nothing is free, or a parameter cannot be.
    """
    source = Source.read(path, "a scenario", "a population")
    rest = {name: value for name, value in source.values.items() if name != FREE}
    if "scenario" in rest:
        source.only(["scenario", FREE])
        base, before = rest["scenario"], ""
        if not isinstance(base, dict):
            raise source.mistake("scenario: must be a table to be calibrated", ["scenario"])
        base = {name: value for name, value in base.items() if name not in SET_HERE}
    else:
        from hpcrowd.scenarios.kinds.population_files import PopulationConfig

        PopulationConfig.read(path)  # its mistakes are said with their places
        base, before = {"kind": "replay", "users": {"name": path.stem, **rest}}, "users."
    kind = base.get("kind")
    if kind not in KINDS_TO_CALIBRATE:
        raise source.mistake(
            f"kind {kind!r}: cannot be calibrated; choose {', '.join(KINDS_TO_CALIBRATE)}",
            ["scenario", "kind"],
        )
    table = source.values.get(FREE, {})
    if not isinstance(table, dict):
        raise source.mistake(f'{FREE} {table!r}: must be a table of NAME = "LOW..HIGH"', [FREE])
    priors = {}
    for name, value, place in _flat(table):
        try:
            priors[name] = Prior.parse(name, value)
        except QuantityError as error:
            raise source.mistake(str(error), [FREE, *place]) from None
    priors |= {prior.name: prior for prior in map(_option, free)}
    if not priors:
        raise QuantityError(
            f"{path}: nothing is free; add a table [{FREE}], or give --free NAME=LOW..HIGH, such "
            "as --free users.0.line.slope=0..2"
        )
    found = Subject(base | dict(settings or {}), path.parent, (), trace)
    named = [replace(prior, name=before + name) for name, prior in priors.items()]
    return replace(found, priors=tuple(_checked(found, named)))


def _option(text: str) -> Prior:
    name, equals, bounds = text.partition("=")
    if not equals or not name.strip():
        raise QuantityError(
            f"--free {text!r}: write NAME=LOW..HIGH, such as users.0.line.slope=0..2"
        )
    return Prior.parse(name.strip(), bounds.strip())


def _flat(
    table: Mapping[str, Any], way: Sequence[str] = ()
) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield names and values; a nested table is the beginning of a dotted name."""
    for part, value in table.items():
        place = [*way, part]
        if isinstance(value, dict):
            yield from _flat(value, place)
        else:
            yield ".".join(place), value, place


def _checked(subject: Subject, priors: Sequence[Prior]) -> list[Prior]:
    """Return priors with what their settings want: whole numbers or any.

    A QuantityError is raised when a scenario cannot be made with them.
    """
    first: list[Prior] = []
    for prior in priors:
        head = prior.name.split(".")[0]
        if head in (*SET_HERE, *subject.kind.PREPARED_FROM):
            raise QuantityError(
                f"free {prior.name}: is used before users are simulated, so it cannot be free"
            )
        first.append(replace(prior, whole=True))
    middle = [prior.at(0.5) for prior in first]
    _try(replace(subject, priors=tuple(first)), middle, "")
    found = []
    for place, prior in enumerate(first):
        free = replace(prior, whole=False)
        values = list(middle)
        values[place] = free.at(TRIED[-1])
        try:
            _try(replace(subject, priors=tuple(first)), values, free.name)
            found.append(free)
        except QuantityError:
            found.append(prior)
    for place, prior in enumerate(found):
        for share in TRIED[:-1]:
            values = list(middle)
            values[place] = prior.at(share)
            _try(replace(subject, priors=tuple(found)), values, prior.name)
    return found


def _try(subject: Subject, values: Sequence[float], name: str) -> None:
    """Make a scenario, and say with which values it cannot be made."""
    try:
        subject.scenario(values)
    except HpcrowdError as error:
        shown = ", ".join(
            f"{prior.name} = {value:g}"
            for prior, value in zip(subject.priors, values, strict=True)
            if name in ("", prior.name)
        )
        raise QuantityError(f"free {shown}: {error}") from None


# ---- simulations --------------------------------------------------------------------------------

#: A simulation to do: its place, the values of the free parameters, and its seed.
Task = tuple[int, tuple[float, ...], int]


@dataclass(frozen=True)
class Days:
    """The calibrated days of a log."""

    trace: Trace  #: Their jobs.
    #: s since its origin; the last second counts.
    begin: int
    end: int

    @classmethod
    def of(cls, trace: Trace, days: int | None) -> Days:
        """Return the first days of a log, from its first submission on; all unless given.

        An HpcrowdError is raised when there are no jobs.
        """
        submit = trace["submit"][trace["submit"] >= 0]
        if not len(submit):
            raise QuantityError(f"{trace.source}: no job has a submit time")
        if days is not None:
            first = int(submit.min())
            trace, _ = window(trace, first, first + days * DAY)
            submit = trace["submit"]
        begin = int(submit.min())
        end = int(submit.max()) if days is None else begin + days * DAY - 1
        return cls(trace, begin, max(end, begin + 1))

    @property
    def days(self) -> float:
        """How many."""
        return (self.end + 1 - self.begin) / DAY


@dataclass(frozen=True)
class Simulations:
    """Simulates draws of the free parameters; it can be sent to other processes."""

    subject: Subject  #: What is simulated.
    prepared: bytes  #: The inputs that all simulations share, pickled.
    until: int  #: End of the days in a simulation, s.
    measure: Measure  #: Measures it.
    record: Floats  #: Statistics of the log.
    jobs: int  #: Jobs of the log in these days.

    @classmethod
    def of(cls, subject: Subject, log: Days) -> Simulations:
        """Prepare the inputs, and measure the log; an HpcrowdError if it cannot be simulated."""
        config = subject.scenario([prior.at(0.5) for prior in subject.priors])
        converted, _ = config.recorded(log.trace, config.conversion())
        clock = Clock.of(log.trace.header)
        measure = Measure.of_log(converted.jobs, clock, log.end, log.days)
        record = measure.of_record(converted.jobs)
        prepared: Any = log.trace
        until = log.end - log.begin
        if isinstance(config, ReplayConfig):
            until = log.end
            if not config.draws_requests:
                prepared = prepare(log.trace, config, follows=config.users != "rigid")
        return cls(subject, pickle.dumps(prepared), until, measure, record, len(converted.jobs))

    def __call__(self, task: Task) -> Floats:
        """Return the statistics of a simulation; if it fails, an error names the parameters."""
        _, values, seed = task
        try:
            staged = self.subject.scenario(values, seed).stage(pickle.loads(self.prepared))
            staged.model.run(self.until + 1)
        except HpcrowdError as error:
            pairs = zip(self.subject.priors, values, strict=True)
            shown = ", ".join(f"{prior.name} = {value:g}" for prior, value in pairs)
            raise QuantityError(f"simulation with {shown}: {error}; narrow the priors") from None
        return self.measure(staged.model.jobs, staged.model.clock, self.until)

    def all(
        self,
        values: Floats,
        seeds: Sequence[int],
        workers: int,
        progress: Progress,
        label: str,
    ) -> Floats:
        """Return the statistics of many simulations, shape (simulations, statistics).

        Values are the parameters of each, shape (simulations, parameters). The workers are
        processes that share the work; ``progress`` is called before each simulation, with the
        label.
        """
        rounded = [
            tuple(
                prior.rounded(value) for prior, value in zip(self.subject.priors, line, strict=True)
            )
            for line in values.tolist()
        ]
        tasks = [(place, line, seeds[place]) for place, line in enumerate(rounded)]
        found = np.empty((len(tasks), len(self.record)))
        progress(label, 0, len(tasks))
        done = each_in_processes(self, tasks, workers)
        for ended, ((place, *_), statistics) in enumerate(done, 1):
            found[place] = statistics
            progress(label, ended, len(tasks))
        return found
