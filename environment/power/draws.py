"""What jobs draw: W per processor, with its share of the idle node, without cooling.

- By table: of a user, a group, a program, a queue, a partition, or a number of processors. Others
  draw what the nodes' constants say.
- Measured: the energy of a job in its log, divided by its processors and its run time. Jobs without
  a plausible energy get what is predicted for them.
- Predicted: from the jobs with a measured energy. The logarithm of their W per processor is the
  sum of a mean of all and of an effect each of the size of the job, of its user, of both, and of
  both and the program. Each effect explains what those before it leave, and is shrunk to 0, the
  more, the fewer jobs it is taken from; without any it is 0.

The model of the prediction is ours; that users' jobs resemble each other in power is known, for
example from Borghesi et al., "Predictive modeling for job power consumption in HPC systems" (ISC
High Performance 2016, unconfirmed).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import ModelFitError, QuantityError, check_choice
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64s, JobTable, numbers_of
from hpcrowd.environment.power.description import NodePower
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace

#: Columns of a trace with the energy of each job, J: ours, and that of Batsim.
ENERGY_COLUMNS = ("energy", "consumed_energy")

#: W per processor: less and more than these are taken for faults of a meter. Our choice.
LEAST_WATTS, MOST_WATTS = 0.1, 3000.0

#: s; the energy of shorter jobs is not used, as meters are read about twice a minute. Our choice.
SHORTEST = 60

#: Pseudo-count of the shrinkage: with this many jobs half of an effect is believed. Our choice.
STRENGTH = 5.0

#: Share of the jobs with a measured energy, the last ones submitted, on which a model is judged.
HELD_OUT = 0.25

#: Fewest jobs with a measured energy that a model is fitted to.
FEWEST = 10

By = Literal["user", "group", "queue", "executable", "partition", "processors"]

#: What a table may go by.
BY: tuple[By, ...] = ("user", "group", "queue", "executable", "partition", "processors")

_RANGE = re.compile(r"(\d{1,15})(?:\s*(-)\s*(\d{1,15})?)?", re.ASCII)


class Draw(Protocol):
    """What jobs draw."""

    def fitted(self, trace: Trace | None) -> Draw:
        """Return the draw to use for the jobs of a log, None for jobs without a log."""

    def watts(self, jobs: JobTable, rows: Int64s, node: NodePower) -> Float64s:
        """Return W per processor of some jobs, shape (rows,).

        Parameters
        ----------
        jobs, rows
            The table of jobs, and which of them.
        node
            What the nodes that they run on draw, for jobs of which nothing else is known.
        """


@dataclass(frozen=True)
class DrawTable:
    """Jobs draw what a table gives.

    Attributes
    ----------
    by
        What the table goes by. Jobs have no partition but what they ask a machine of nodes for;
        without that, their queue is taken, which is the partition in a log of Slurm.
    watts_by
        W per processor by name or number, or, by processors, by ranges such as ``1``, ``2-8`` and
        ``9-``; several names may be given together, separated by commas. Others draw what the
        node's constants say.

    Raises
    ------
    QuantityError
        If a range cannot be read or two overlap, or a number is negative.

    Examples
    --------
    >>> table = DrawTable("processors", {"1-4": 12.0, "5-": 9.5})
    >>> table.watts_of_size(np.array([1, 4, 5, 600]), 10.0).tolist()
    [12.0, 12.0, 9.5, 9.5]
    """

    by: By
    watts_by: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("draw, by", self.by, BY)
        for name, watts in self.watts_by.items():
            if not 0 <= watts < float("inf"):
                raise QuantityError(
                    f"draw of {self.by} {name}: {watts:g} W per processor: must be 0 or more"
                )
        if self.by == "processors":
            ranges = sorted(_range(text) for text in self.watts_by)
            for (_, last), (first, _) in pairwise(ranges):
                if first <= last:
                    raise QuantityError(
                        f"draw by processors: {first} is in two ranges; let them not overlap"
                    )

    def fitted(self, trace: Trace | None) -> DrawTable:
        """Return the table."""
        return self

    def watts(self, jobs: JobTable, rows: Int64s, node: NodePower) -> Float64s:
        """Return W per processor of some jobs, see :meth:`Draw.watts`.

        Raises
        ------
        QuantityError
            If the log has no such user, group and so on.
        """
        if self.by == "processors":
            return self.watts_of_size(jobs.processors[rows], node.busy_processor)
        found = np.full(len(rows), node.busy_processor)
        asked = _partitions(jobs, rows) if self.by == "partition" else None
        if asked is not None:
            for name, watts in self.watts_by.items():
                found[np.isin(asked, [one.strip() for one in name.split(",")])] = watts
            return found
        column = "queue" if self.by == "partition" else self.by
        numbers = getattr(jobs, column)[rows]
        for name, watts in self.watts_by.items():
            for one in numbers_of(jobs.names, column, name):
                found[_is(numbers, one)] = watts
        return found

    def watts_of_size(self, processors: Int64s, otherwise: float) -> Float64s:
        """Return W per processor by number of processors, ``otherwise`` outside the ranges."""
        found = np.full(len(processors), otherwise)
        for text, watts in self.watts_by.items():
            first, last = _range(text)
            found[(processors >= first) & (processors <= last)] = watts
        return found


def _range(text: str) -> tuple[int, float]:
    """Return the first and the last number of a range such as ``2-8``, ``9-`` or ``4``."""
    match = _RANGE.fullmatch(text.strip())
    if not match:
        raise QuantityError(
            f"draw by processors: {text!r}: not a range; write for example 1, 2-8 or 9-"
        )
    first = int(match[1])
    last = float("inf") if match[2] and not match[3] else int(match[3] or first)
    if last < first:
        raise QuantityError(f"draw by processors: {text!r}: a range goes upwards, as in 2-8")
    return first, last


def _is(numbers: Int64s, which: int | range) -> NDArray[np.bool_]:
    if isinstance(which, range):
        return np.asarray((numbers >= which.start) & (numbers < which.stop))
    return np.asarray(numbers == which)


def _partitions(jobs: JobTable, rows: Int64s) -> NDArray[np.object_] | None:
    """Return the partitions that some jobs ask for; None if no job says that."""
    from hpcrowd.environment.requests import Ask

    if jobs.requests is None:
        return None
    numbers = jobs.requests[Ask.PARTITIONS]
    if not np.any(numbers != UNKNOWN):
        return None
    words = np.array([*jobs.requests.words[Ask.PARTITIONS], ""], np.object_)  # the last: UNKNOWN
    found: NDArray[np.object_] = words[numbers[rows]]
    return found


@dataclass(frozen=True)
class MeasuredDraw:
    """Jobs draw what was measured of them; others what a model predicts that is fitted to these.

    Attributes
    ----------
    strength
        Pseudo-count of the shrinkage: with this many jobs half of an effect is believed.
    least, most
        W per processor; other measurements are not used.
    shortest
        s; measurements of shorter jobs are not used.

    Raises
    ------
    QuantityError
        If a number is out of its range.
    """

    strength: float = STRENGTH
    least: float = LEAST_WATTS
    most: float = MOST_WATTS
    shortest: int = SHORTEST

    def __post_init__(self) -> None:
        for name in ("strength", "least", "shortest"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise QuantityError(f"draw: {name} {getattr(self, name):g}: must be 0 or more")
        if not self.most > self.least:
            raise QuantityError(f"draw: most {self.most:g} W: must be more than {self.least:g} W")

    def fitted(self, trace: Trace | None) -> DrawModel:
        """Return the model of the jobs of a log.

        Raises
        ------
        ModelFitError
            Without a log, or if too few of its jobs have a plausible energy.
        """
        if trace is None:
            raise ModelFitError("draw, measured", "no log with energy of jobs to learn from")
        jobs, watts = self.measured_jobs(trace)
        known = np.flatnonzero(watts > 0)
        if len(known) < FEWEST:
            raise ModelFitError(
                "draw, measured",
                f"{plural(len(known), 'job')} of {trace.source} with a plausible energy, at least "
                f"{FEWEST} are needed; give watts instead",
            )
        return fit_draws(jobs.take(known), watts[known], self.strength)

    def judged(self, trace: Trace, held_out: float = HELD_OUT) -> DrawScore:
        """Return how well later jobs of a log are predicted from earlier ones.

        Parameters
        ----------
        trace
            The log.
        held_out
            Share of the jobs with a measured energy that are predicted, the last ones submitted.

        Raises
        ------
        ModelFitError
            If too few jobs have a plausible energy.
        """
        jobs, watts = self.measured_jobs(trace)
        known = np.flatnonzero(watts > 0)
        known = known[np.argsort(jobs.recorded_submit[known], kind="stable")]
        split = len(known) - int(len(known) * held_out)
        if split < FEWEST or split == len(known):
            raise ModelFitError(
                "draw, measured",
                f"{plural(len(known), 'job')} of {trace.source} with a plausible energy: judging "
                f"predictions takes at least {FEWEST} to learn from and one to predict",
            )
        early, late = known[:split], known[split:]
        return fit_draws(jobs.take(early), watts[early], self.strength).score(
            jobs.take(late), watts[late]
        )

    def measured_jobs(self, trace: Trace) -> tuple[JobTable, Float64s]:
        """Return the jobs of a log that can be simulated, and W per processor; -1 if unknown."""
        found = jobs_from_trace(trace)
        return found.jobs, self.measured(trace)[found.source_row]

    def measured(self, trace: Trace) -> Float64s:
        """Return the measured W per processor of all jobs of a log; -1 where not plausible."""
        return measured_watts(trace, self.least, self.most, self.shortest)


def measured_energy(trace: Trace) -> Float64s:
    """Return the measured energy of the jobs of a log, J; -1 where unknown, shape (jobs,)."""
    for name in ENERGY_COLUMNS:
        if name in trace.extra:
            return np.array([_joules(text) for text in trace.extra[name].tolist()], np.float64)
    return np.full(len(trace), float(UNKNOWN))


def _joules(text: str) -> float:
    try:
        joules = float(text)
    except ValueError:
        return UNKNOWN
    return joules if 0 < joules < float("inf") else UNKNOWN


def measured_watts(
    trace: Trace, least: float = LEAST_WATTS, most: float = MOST_WATTS, shortest: int = SHORTEST
) -> Float64s:
    """Return the measured W per processor of the jobs of a log; -1 where there is none.

    Parameters
    ----------
    trace
        The log; allocated processors count, else the requested ones.
    least, most, shortest
        See :class:`MeasuredDraw`.
    """
    energy, run = measured_energy(trace), trace["run"].astype(np.float64)
    held = np.where(
        trace["allocated_processors"] > 0,
        trace["allocated_processors"],
        trace["requested_processors"],
    ).astype(np.float64)
    known = (energy > 0) & (run >= max(shortest, 1)) & (held > 0)
    watts = energy / np.maximum(run, 1) / np.maximum(held, 1)
    return np.where(known & (watts >= least) & (watts <= most), watts, float(UNKNOWN))


#: The effects on the power of a job, in order: what jobs share that have the same effect.
LEVELS: tuple[tuple[str, ...], ...] = (
    ("size",),
    ("user",),
    ("user", "size"),
    ("user", "size", "executable"),
)


@dataclass(frozen=True)
class DrawScore:
    """How well the power of jobs is predicted.

    Attributes
    ----------
    jobs
        Jobs predicted.
    error, error_of_mean
        Mean of |predicted - measured| / measured, and the same if the mean W per processor of
        the earlier jobs is predicted for all.
    energy, energy_of_mean
        Sum of |predicted - measured| energy of the jobs, divided by the measured energy.
    """

    jobs: int
    error: float
    error_of_mean: float
    energy: float
    energy_of_mean: float

    @property
    def better(self) -> bool:
        """Whether the prediction is better than the mean, by its energy."""
        return self.energy < self.energy_of_mean


@dataclass(frozen=True)
class DrawModel:
    """Predicts what jobs draw, see :func:`fit_draws`.

    Attributes
    ----------
    mean
        W per processor of all jobs it was fitted to, weighted by processor-seconds.
    log_mean
        Mean logarithm of W per processor.
    effects
        For each of :data:`LEVELS` the effect on the logarithm, by what jobs share.
    scale
        Factor with which the energy of the jobs it was fitted to is that measured.
    jobs
        How many these were.
    """

    mean: float
    log_mean: float
    effects: tuple[Mapping[tuple[int, ...], float], ...]
    scale: float
    jobs: int

    def fitted(self, trace: Trace | None) -> DrawModel:
        """Return the model."""
        return self

    def watts(self, jobs: JobTable, rows: Int64s, node: NodePower | None = None) -> Float64s:
        """Return W per processor of some jobs, see :meth:`Draw.watts`."""
        logs = np.full(len(rows), self.log_mean)
        for keys, effects in zip(_keys(jobs, rows), self.effects, strict=True):
            logs += [effects.get(key, 0.0) for key in keys]
        found: Float64s = self.scale * np.exp(logs)
        return found

    def score(self, jobs: JobTable, watts: Float64s) -> DrawScore:
        """Return how well the power of other jobs is predicted.

        Parameters
        ----------
        jobs, watts
            The jobs, and their measured W per processor.
        """
        predicted = self.watts(jobs, np.arange(len(jobs)))
        work = _work(jobs)
        error, constant = np.abs(predicted - watts), np.abs(self.mean - watts)
        energy = float(watts @ work)
        return DrawScore(
            len(jobs),
            float(np.mean(error / watts)),
            float(np.mean(constant / watts)),
            float(error @ work) / energy,
            float(constant @ work) / energy,
        )


def fit_draws(jobs: JobTable, watts: Float64s, strength: float = STRENGTH) -> DrawModel:
    """Return a model fitted to jobs.

    An effect is the mean, weighted by processor-seconds, of what the effects before it leave of the
    logarithms, times n / (n + strength), with n the effective number of jobs: (sum of weights)^2 /
    sum of squared weights (Kish 1965, unconfirmed), so that one long job counts as one.

    Parameters
    ----------
    jobs, watts
        The jobs, and their measured W per processor, all positive.
    strength
        See :class:`MeasuredDraw`.
    """
    weights, rows = _work(jobs), np.arange(len(jobs))
    left = np.log(watts)
    log_mean = float(np.average(left, weights=weights))
    left = left - log_mean
    effects = []
    for keys in _keys(jobs, rows):
        places: dict[tuple[int, ...], int] = {}
        group = np.array([places.setdefault(key, len(places)) for key in keys], np.int64)
        total = np.bincount(group, weights)
        count = total**2 / np.bincount(group, weights**2)
        effect = np.bincount(group, weights * left) / total * count / (count + strength)
        left = left - effect[group]
        effects.append(dict(zip(places, effect.tolist(), strict=True)))
    predicted = np.exp(np.log(watts) - left)
    scale = float((watts @ weights) / (predicted @ weights))
    mean = float(np.average(watts, weights=weights))
    return DrawModel(mean, log_mean, tuple(effects), scale, len(jobs))


def _work(jobs: JobTable) -> Float64s:
    """Return the processor-seconds of jobs, at least 1."""
    work: Float64s = np.maximum(jobs.processors * jobs.run_time, 1).astype(np.float64)
    return work


def _keys(jobs: JobTable, rows: Int64s) -> Iterator[list[tuple[int, ...]]]:
    """Yield for each of :data:`LEVELS` what each job shares with others."""
    known: dict[str, Any] = {
        # Classes of sizes end at powers of two: 1, 2-3, 4-7 and so on.
        "size": np.log2(np.maximum(jobs.processors[rows], 1)).astype(np.int64).tolist(),
        "user": jobs.user[rows].tolist(),
        "executable": jobs.executable[rows].tolist(),
    }
    for level in LEVELS:
        yield list(zip(*(known[name] for name in level), strict=True))
