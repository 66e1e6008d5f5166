"""Repeated executions: the same user runs the same job again and again (Feitelson 1996)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.features.locality import zipf_exponent
from analysis.features.workload import Workload
from analysis.models.part import Drawn, Floats
from analysis.models.shares import draw_from
from environment.errors import UnavailableError
from environment.jobs import UNKNOWN, Int64s


@dataclass(frozen=True)
class RunLengths:
    """How often a job is executed: P(r) proportional to r^-exponent, for r from 1 to ``most``.

    Attributes
    ----------
    exponent
        Of the Zipf distribution.
    most
        The longest run, jobs.
    """

    exponent: float
    most: int

    @property
    def probability(self) -> Floats:
        """Probability of 1, 2, ..., ``most`` executions, shape (most,)."""
        weight = np.arange(1, self.most + 1) ** -self.exponent
        found: Floats = weight / weight.sum()
        return found

    @property
    def mean(self) -> float:
        """Mean number of executions."""
        return float(self.probability @ np.arange(1, self.most + 1))

    def draw(self, count: int, random: np.random.Generator) -> Int64s:
        """Return run lengths, shape (count,)."""
        return draw_from(self.probability, count, random) + 1


@dataclass(frozen=True)
class Found:
    """Repeated executions in a workload.

    Attributes
    ----------
    first
        Place of each first execution, rising, shape (runs,).
    lengths
        Its executions, shape (runs,).
    """

    first: Int64s
    lengths: Int64s

    def exponent(self, otherwise: float) -> tuple[float, list[str]]:
        """Return the likeliest exponent of the lengths, and what is to be said of it."""
        try:
            found = zipf_exponent(self.lengths, "run lengths")
        except UnavailableError:
            return otherwise, ["no job is repeated"]
        return found.exponent, []


def find_runs(workload: Workload) -> Found:
    """Return the repeated executions of a workload.

    A repetition is a job that asks for as many processors and has the same executable as the job
    before it of the same user, whenever it comes. Unknown executables count as the same; jobs of
    unknown users as those of one.
    """

    def find() -> Found:
        order = np.argsort(workload.user, kind="stable")
        begins = np.ones(len(order), bool)
        begins[1:] = False
        for column in (workload.user, workload.executable, workload.processors):
            begins[1:] |= np.diff(column[order]) != 0
        first = np.flatnonzero(begins)
        lengths = np.diff(first, append=len(order))
        place = order[first]
        by_arrival = np.argsort(place, kind="stable")
        return Found(place[by_arrival], lengths[by_arrival])

    # Arrivals and jobs are fitted to the same runs.
    return workload.once("repeated executions", find)


def cut_runs(start: Int64s, lengths: Int64s, run_time: Int64s, jobs: int) -> Int64s:
    """Return run lengths without what comes too late to be among the first ``jobs`` submissions.

    Parameters
    ----------
    start
        s; first submission of each run, rising, shape (runs,); as many runs as jobs, or more.
    lengths, run_time
        Executions of each run, and s that each takes, shape (runs,).
    jobs
        How many are wanted; at least as many are left.
    """

    def by(second: int) -> Int64s:
        """Return how many executions of each run are submitted by then."""
        since = second - start
        passed = np.where(run_time > 0, since // np.maximum(run_time, 1) + 1, lengths)
        found: Int64s = np.where(since < 0, 0, np.minimum(passed, lengths))
        return found

    low, high = 0, len(start) - 1
    while low < high:
        middle = (low + high) // 2
        if by(int(start[middle])).sum() >= jobs:
            high = middle
        else:
            low = middle + 1
    return by(int(start[low]))


def repeated(
    start: Int64s,
    lengths: Int64s,
    run_time: Int64s,
    processors: Int64s,
    user: Int64s,
    group: Int64s,
) -> Drawn:
    """Return runs as a flat list, as if no job ever waited.

    Each repetition is submitted in the second in which the execution before it ends.

    Parameters
    ----------
    start
        s; first submission of each run, shape (runs,).
    lengths
        Executions of each run, 0 for none, shape (runs,).
    run_time
        s; of each execution, run by run, shape (jobs,).
    processors, user, group
        Of each run, shape (runs,).
    """
    run = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    before = np.cumsum(run_time) - run_time
    submit = start[run] + before - before[first[run]]
    # Stable: who ends in the second of its submission stays ahead of its own repetition.
    order = np.argsort(submit, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    follows = np.full(len(order), UNKNOWN)
    follows[1:] = place[:-1]
    follows[first[lengths > 0]] = UNKNOWN
    return Drawn.of(
        submit[order].astype(np.float64),
        run_time[order].astype(np.float64),
        processors[run[order]],
        user=user[run[order]],
        group=group[run[order]],
        executable=run[order] + 1,
        bag=run[order],
        follows=follows[order],
    )
