"""The simulations of a calibration: days of a log with drawn parameters, and their statistics."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcrowd.analysis.calibration.statistics import Measure
from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.environment.traces.window import window
from hpcrowd.scenarios.calibration.subject import Subject
from hpcrowd.scenarios.engines import each_in_processes
from hpcrowd.scenarios.kinds.replay import ReplayConfig, prepare
from hpcrowd.scenarios.terminal import Progress

#: A simulation to do: its place, the values of the free parameters, and its seed.
Task = tuple[int, tuple[float, ...], int]


@dataclass(frozen=True)
class Days:
    """The calibrated days of a log.

    Attributes
    ----------
    trace
        Their jobs.
    begin, end
        s since its origin; the last second counts.
    """

    trace: Trace
    begin: int
    end: int

    @classmethod
    def of(cls, trace: Trace, days: int | None) -> Days:
        """Return the first days of a log, from its first submission on; all unless given.

        Raises
        ------
        HpcrowdError
            When there are no jobs.
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
    """Simulates draws of the free parameters; it can be sent to other processes.

    Attributes
    ----------
    subject
        What is simulated.
    prepared
        The inputs that all simulations share, pickled.
    until
        End of the days in a simulation, s.
    measure
        Measures it.
    record
        Statistics of the log.
    jobs
        Jobs of the log in these days.
    """

    subject: Subject
    prepared: bytes
    until: int
    measure: Measure
    record: Floats
    jobs: int

    @classmethod
    def of(cls, subject: Subject, log: Days) -> Simulations:
        """Prepare the inputs, and measure the log.

        Raises
        ------
        HpcrowdError
            When the log cannot be simulated with these settings.
        """
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
        """Return the statistics of a simulation.

        Raises
        ------
        QuantityError
            When it cannot be done, with its parameters.
        """
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

        Parameters
        ----------
        values
            Parameters of each, shape (simulations, parameters).
        seeds
            Of each.
        workers
            Processes that share the work.
        progress, label
            Called before each simulation, with this label.
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
        for count, ((place, *_), statistics) in enumerate(done, 1):
            found[place] = statistics
            progress(label, count, len(tasks))
        return found
