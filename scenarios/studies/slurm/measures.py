"""How far two schedules of one plan are apart.

A requeued job counts with its first try, unless all tries are compared. The figures are those of
the records' own statistics, in the same way: a percentile is the value at that place of the sorted
values, without interpolation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.analysis.features.series import pearson, spearman
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.jobs import UNKNOWN, Float64s
from hpcrowd.scenarios.studies.slurm.records import Key, Submission, Try
from hpcrowd.scenarios.studies.slurm.schedules import At, Schedule, nearest

#: s within which starts count as equal.
WITHIN = (5, 60, 600)

#: A priority is reproduced within this share of it, or this number of points.
PRIORITY_SHARE, PRIORITY_POINTS = 0.01, 2.0


@dataclass(frozen=True)
class Distance:
    """Starts and waits of the same jobs in two schedules."""

    jobs: int  #: Jobs that started in both.
    only: int  #: Jobs that started in one, or in none though one of the schedules knows them.
    #: s between the starts, without the sign; nan without jobs.
    mean: float
    median: float
    p90: float
    most: float
    within: tuple[float, ...]  #: Share of the starts that are at most :data:`WITHIN` apart.
    shift: float  #: s by which the second schedule starts later in the mean.
    #: s from the submission to the start in the first and in the second schedule.
    waits: tuple[float, float]
    median_waits: tuple[float, float]
    #: Correlation of the waits; nan if one has only one value.
    pearson: float
    spearman: float
    #: Share of the jobs that had the same nodes, and the same final state.
    nodes: float
    states: float


@dataclass(frozen=True)
class Comparison:
    """Two schedules of one plan."""

    written: ClassVar = ("first", "second", "starts", "tries", "partitions", "reasons")

    #: Their names.
    first: str
    second: str
    starts: Distance  #: The first tries of all jobs.
    #: All tries of all jobs: first tries with first tries, second with second, and so on.
    tries: Distance
    partitions: Mapping[str, Distance]  #: The first tries by partition.
    reasons: Agreement  #: The pending reasons in the samples.
    starts_of: tuple[tuple[int, int], ...]  #: Both starts of each job's first try, s.


@dataclass
class Agreement:
    """How often two schedules say the same of the same job at the same moment."""

    written: ClassVar = {"compared": "compared", "same": "same", "only_recorded": "others"}

    compared: int = 0  #: Waiting jobs at the samples' moments that waited in both.
    same: int = 0  #: Those of them of which both say the same.
    others: int = 0  #: Jobs that waited only in the second schedule.
    #: How often each pair of words was said.
    pairs: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Share of the compared ones that are the same; nan without any."""
        return self.same / self.compared if self.compared else math.nan


def compare(
    first: Schedule, second: Schedule, plan: Iterable[Submission], only: Collection[Key] = ()
) -> Comparison:
    """Compare two schedules of a plan, or of some of its jobs; the second is usually recorded."""
    partition = {key: line.partition for line in plan for key in line.keys}
    keys = [key for key in partition if not only or key in only]
    mine, theirs = (
        {key: one.jobs[key] for key in keys if key in one.jobs} for one in (first, second)
    )
    firsts = [(ones[0], theirs[key][0]) for key, ones in mine.items() if key in theirs]
    tries = [
        pair for key, ones in mine.items() for pair in zip(ones, theirs.get(key, ()), strict=False)
    ]
    known = len(mine.keys() | theirs.keys())
    most = sum(max(len(mine.get(key, ())), len(theirs.get(key, ()))) for key in keys)
    names = sorted({partition[key] for key in keys})
    return Comparison(
        first.name,
        second.name,
        distance(firsts, known),
        distance(tries, most),
        {
            name: distance([pair for pair in firsts if partition[pair[0].key] == name])
            for name in names
        },
        agreement(first.reasons, second.reasons, only),
        tuple((one.start, other.start) for one, other in firsts if one.started and other.started),
    )


def distance(pairs: Sequence[tuple[Try, Try]], known: int | None = None) -> Distance:
    """Return how far the same tries in two schedules are apart.

    ``known`` is how many tries one of the schedules knows; as many as there are pairs unless given.
    """
    both = [(one, other) for one, other in pairs if one.started and other.started]
    starts = np.array([(one.start, other.start) for one, other in both], float).reshape(-1, 2)
    submits = np.array([(one.submit, other.submit) for one, other in both], float).reshape(-1, 2)
    waits, apart = starts - submits, np.sort(np.abs(starts[:, 0] - starts[:, 1]))
    nodes = [one.nodes == other.nodes for one, other in both]
    states = [one.state == other.state for one, other in both]
    means = [mean(waits[:, place]) for place in (0, 1)]
    medians = [median(waits[:, place]) for place in (0, 1)]
    return Distance(
        jobs=len(both),
        only=(len(pairs) if known is None else known) - len(both),
        mean=mean(apart),
        median=median(apart),
        p90=float(apart[int(0.9 * (len(apart) - 1))]) if len(apart) else math.nan,
        most=float(apart[-1]) if len(apart) else math.nan,
        within=tuple(mean(apart <= most) for most in WITHIN),
        shift=mean(starts[:, 1] - starts[:, 0]),
        waits=(means[0], means[1]),
        median_waits=(medians[0], medians[1]),
        pearson=or_nan(pearson, waits[:, 0], waits[:, 1]),
        spearman=or_nan(spearman, waits[:, 0], waits[:, 1]),
        nodes=mean(nodes),
        states=mean(states),
    )


def mean(values: Sequence[float] | NDArray[np.generic]) -> float:
    """Return the mean; nan of none."""
    return float(np.asarray(values, np.float64).mean()) if len(values) else math.nan


def median(values: Float64s) -> float:
    """Return the median; nan of none."""
    return float(np.median(values)) if len(values) else math.nan


def or_nan(
    find: Callable[[ArrayLike, ArrayLike], float], one: ArrayLike, other: ArrayLike
) -> float:
    """Return a correlation of two series; nan where it is not available."""
    try:
        return find(one, other)
    except UnavailableError:
        return math.nan


def agreement(first: At[str], second: At[str], only: Collection[Key] = ()) -> Agreement:
    """Compare what two schedules say of each job, or some, at the moments of the second."""
    found = Agreement()
    for moment, theirs in second.items():
        near = nearest(first, moment)
        mine = first.get(near, {}) if near != UNKNOWN else {}
        for key, word in theirs.items():
            if only and key not in only:
                continue
            if key in mine:
                pair = mine[key], word
                found.compared += 1
                found.same += pair[0] == pair[1]
                found.pairs[pair] = found.pairs.get(pair, 0) + 1
            else:
                found.others += 1
    return found


@dataclass(frozen=True)
class Reproduced:
    """How well a number of waiting jobs is reproduced, such as a part of their priority."""

    name: str  #: The number, as in ``sprio``.
    compared: int  #: Jobs at the samples' moments.
    near: float  #: Share within :data:`PRIORITY_SHARE` or :data:`PRIORITY_POINTS`.
    #: Difference, without the sign.
    mean: float
    most: float


def priorities(
    mine: At[Mapping[str, float]], theirs: At[Mapping[str, float]]
) -> dict[str, Reproduced]:
    """Compare priorities, and each of their parts, with those of a recorded run.

    A row of tasks that wait together is compared with the first of these tasks.
    """
    pairs: dict[str, list[tuple[float, float]]] = {}
    for moment, jobs in theirs.items():
        near = nearest(mine, moment)
        here = dict(mine.get(near, {})) if near != UNKNOWN else {}
        for key, parts in sorted(here.items(), reverse=True):
            here[Key(key.plan, UNKNOWN)] = parts
        for key, parts in jobs.items():
            for name, value in parts.items() if key in here else ():
                if name in here[key]:
                    pairs.setdefault(name, []).append((here[key][name], value))
    found = {}
    for name, ones in pairs.items():
        one, other = np.array(ones).T
        apart = np.abs(one - other)
        near = apart <= np.maximum(PRIORITY_SHARE * np.abs(other), PRIORITY_POINTS)
        found[name] = Reproduced(name, len(ones), mean(near), mean(apart), float(apart.max()))
    return found


def shares(
    mine: Mapping[int, Mapping[tuple[str, str], float]],
    theirs: Mapping[int, Mapping[tuple[str, str], float]],
) -> Reproduced:
    """Compare the fair-share factors of users, each within :data:`PRIORITY_SHARE` of 1."""
    apart = []
    for moment, users in theirs.items():
        here = mine.get(nearest(mine, moment), {})
        apart += [abs(here[who] - factor) for who, factor in users.items() if who in here]
    found = np.array(apart, float)
    most = float(found.max()) if apart else math.nan
    return Reproduced("FairShare", len(apart), mean(found <= PRIORITY_SHARE), mean(found), most)


# ---- groups of jobs --------------------------------------------------------------------------


def waits_by(
    schedule: Schedule, plan: Iterable[Submission], of: str, only: Collection[Key] = ()
) -> dict[str, float]:
    """Return the mean wait, s, of the jobs that started, by ``user`` or ``partition``."""
    found: dict[str, list[float]] = {}
    for line in plan:
        for key in line.keys:
            one = schedule.first.get(key)
            if one is not None and (not only or key in only):
                found.setdefault(getattr(line, of), []).append(one.start - one.submit)
    return {name: mean(values) for name, values in sorted(found.items())}


def agreed_order(
    mine: Mapping[str, float], runs: Sequence[Mapping[str, float]]
) -> tuple[int, int, list[tuple[str, str]]]:
    """Return how many pairs of users have the order of the recorded runs.

    Pairs in which the recorded runs differ among each other are not counted. Returned are the
    number of pairs in the same order, that of pairs that count, and those in the other order, the
    user who waits longer in the recorded runs first.
    """
    names = sorted(set(mine).intersection(*runs)) if runs else []
    counted, wrong = 0, []
    for pair in combinations(names, 2):
        for one, other in (pair, pair[::-1]):
            if all(run[one] > run[other] for run in runs):
                counted += 1
                if mine[one] <= mine[other]:
                    wrong.append((one, other))
    return counted - len(wrong), counted, wrong
