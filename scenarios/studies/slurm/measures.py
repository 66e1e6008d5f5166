"""How far two schedules of one plan are apart.

A requeued job counts with its first try, unless all tries are compared. The figures are those of
the records' own statistics, in the same way: a percentile is the value at that place of the sorted
values, without interpolation.
"""

from __future__ import annotations

import math
from collections import Counter
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
from hpcrowd.scenarios.studies.slurm.schedules import TOTAL, At, Schedule, nearest

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


# ---- why two schedules differ -----------------------------------------------------------------
# The jobs that differ most, and what both schedules say of them. Each difference gets the first
# cause in :data:`CAUSES` that the schedules show. Causes that reach a job through others, such as a
# dependency, explain where its difference comes from; the last one says that the job was passed
# over although nothing that was recorded about it differs.

#: Causes, the first that applies; the text is for tables.
CAUSES = {
    "parent": "the job that it depends on ended at another time",
    "array": "an earlier task of its array, which has a throttle, ended at another time",
    "priority": "its priority differs at the samples",
    "limit": "a limit held it in one of the two only",
    "preemption": "it started on nodes of preempted jobs in one of the two only",
    "order": "its reason differs between Priority and Resources: another job was first",
    "nodes": "its nodes were in use by other jobs",
    "pass": "the backfill scheduler started it in one, the main scheduler in the other",
    "none": "nothing that was recorded differs",
}

#: Share of a difference that a cause must explain if it is a difference of times itself.
EXPLAINED = 0.8

#: Reasons of limits begin so.
LIMITS = ("QOS", "Assoc", "JobArrayTaskLimit", "Partition")


@dataclass(frozen=True)
class Side:
    """What one schedule did with a job."""

    #: Of its first try.
    start: int
    how: str
    nodes: tuple[str, ...]
    #: How many samples gave each reason, the most frequent first.
    reasons: tuple[tuple[str, int], ...]
    preempted: tuple[Key, ...]  #: How many of its tries were preempted, and for whom.

    def __str__(self) -> str:
        said = ", ".join(f"{reason} {count}" for reason, count in self.reasons) or "no sample"
        away = f"; preempted for {', '.join(map(str, self.preempted))}" if self.preempted else ""
        return f"{self.how or '?'} on {', '.join(self.nodes)}; {said}{away}"


@dataclass(frozen=True)
class Difference:
    """A job whose starts differ."""

    line: Submission  #: What was submitted.
    key: Key  #: The job.
    #: What the two schedules did with it.
    mine: Side
    theirs: Side
    cause: str  #: A name of :data:`CAUSES`.
    detail: str  #: The numbers or jobs behind it.

    @property
    def later(self) -> int:
        """s by which the first schedule starts it later."""
        return self.mine.start - self.theirs.start


def differences(
    mine: Schedule, theirs: Schedule, plan: Sequence[Submission], only: Collection[Key] = ()
) -> list[Difference]:
    """Return the jobs that started in both at different times, the largest difference first."""
    lines = {key: line for line in plan for key in line.keys}
    both = [
        key
        for key in lines
        if key in mine.first and key in theirs.first and (not only or key in only)
        if mine.first[key].start != theirs.first[key].start
    ]
    both.sort(key=lambda key: (-abs(mine.first[key].start - theirs.first[key].start), key))
    said = [_reasons(one.reasons) for one in (mine, theirs)]
    found = []
    for key in both:
        sides = [_side(one, key, words) for one, words in zip((mine, theirs), said, strict=True)]
        cause, detail = _cause(mine, theirs, lines[key], key, sides, lines)
        found.append(Difference(lines[key], key, sides[0], sides[1], cause, detail))
    return found


def parting(found: Iterable[Difference]) -> list[Difference]:
    """Return the differences by the earlier of the two starts: where the schedules part."""
    return sorted(found, key=lambda one: (min(one.mine.start, one.theirs.start), one.key))


def by_cause(found: Iterable[Difference]) -> list[tuple[str, int, int]]:
    """Return, cause by cause, the number of jobs and the sum of their differences, s."""
    jobs, seconds = Counter[str](), Counter[str]()
    for one in found:
        jobs[one.cause] += 1
        seconds[one.cause] += abs(one.later)
    return [(cause, jobs[cause], seconds[cause]) for cause in CAUSES if jobs[cause]]


def _reasons(samples: At[str]) -> dict[Key, Counter[str]]:
    found: dict[Key, Counter[str]] = {}
    for jobs in samples.values():
        for key, word in jobs.items():
            found.setdefault(key, Counter())[word] += 1
    return found


def _side(schedule: Schedule, key: Key, said: Mapping[Key, Counter[str]]) -> Side:
    first = schedule.first[key]
    away = tuple(
        schedule.preempted_for[key, one.trial]
        for one in schedule.jobs[key]
        if (key, one.trial) in schedule.preempted_for
    )
    reasons = tuple(said.get(key, Counter[str]()).most_common())
    return Side(first.start, first.how, first.nodes, reasons, away)


def _cause(
    mine: Schedule,
    theirs: Schedule,
    line: Submission,
    key: Key,
    sides: Sequence[Side],
    lines: Mapping[Key, Submission],
) -> tuple[str, str]:
    """Return the first cause that the schedules show, and what is behind it."""
    later = sides[0].start - sides[1].start
    parents = [other for other in lines if other.plan == line.parent]
    moved = _last_end(mine, parents) - _last_end(theirs, parents)
    if line.condition is not None and moved * later > 0 and abs(moved) >= EXPLAINED * abs(later):
        return "parent", f"{line.parent} ended {moved:+} s"
    moved = _room(mine, line, key) - _room(theirs, line, key) if line.throttle else 0
    if moved * later > 0 and abs(moved) >= EXPLAINED * abs(later):
        return "array", f"room for it {moved:+} s"
    if apart := _priority(mine, theirs, key):
        return "priority", apart
    words = [{word for word, _ in side.reasons} for side in sides]
    limits = [sorted(word for word in one if word.startswith(LIMITS)) for one in words]
    if bool(limits[0]) != bool(limits[1]):
        return "limit", (limits[0] or limits[1])[0]
    victims = [[str(gone[0]) for gone, by in one.preempted_for.items() if by == key]
               for one in (mine, theirs)]  # fmt: skip
    if bool(victims[0]) != bool(victims[1]):
        return "preemption", f"of {', '.join(victims[0] or victims[1])}"
    if ("Resources" in words[0]) != ("Resources" in words[1]):
        return "order", "Resources " + (
            "in the first" if "Resources" in words[0] else "in the second"
        )
    late, early = (mine, 1) if later > 0 else (theirs, 0)
    users = _users_of(late, sides[early].nodes, sides[early].start) - {key}
    others = _users_of((theirs, mine)[early == 0], sides[early].nodes, sides[early].start)
    if more := sorted(users - others):
        return "nodes", ", ".join(map(str, more[:5]))
    if sides[0].how != sides[1].how:
        return "pass", f"{sides[0].how or '?'}, {sides[1].how or '?'}"
    return "none", ""


def _last_end(schedule: Schedule, keys: Iterable[Key]) -> int:
    """Return when the last of some jobs ended; 0 if none has."""
    return max((one.end for key in keys for one in schedule.jobs.get(key, ())), default=0)


def _room(schedule: Schedule, line: Submission, key: Key) -> int:
    """Return when earlier tasks of an array left room for one under the throttle; 0 at once."""
    earlier = [Key(line.plan, task) for task in line.array if task < key.task]
    ends = sorted(schedule.jobs[one][-1].end for one in earlier if one in schedule.jobs)
    place = len(ends) - line.throttle
    return ends[place] if place >= 0 else 0


def _priority(mine: Schedule, theirs: Schedule, key: Key) -> str:
    """Return the part of a job's priority that differs most at a sample; empty for none."""
    for moment, jobs in theirs.priorities.items():
        here = mine.priorities.get(nearest(mine.priorities, moment), {})
        row = next(
            (one for one in (key, Key(key.plan, UNKNOWN)) if one in here and one in jobs), None
        )
        if row is None:
            continue
        one, other = here[row], jobs[row]
        if abs(one[TOTAL] - other[TOTAL]) > max(2.0, 0.01 * abs(other[TOTAL])):
            parts = {
                name: one[name] - other[name] for name in one if name in other and name != TOTAL
            }
            name = max(parts, key=lambda part: abs(parts[part]), default=TOTAL)
            return f"{name} {parts.get(name, one[TOTAL] - other[TOTAL]):+.0f} at {moment} s"
    return ""


def _users_of(schedule: Schedule, nodes: Collection[str], moment: int) -> set[Key]:
    """Return the jobs that run on some of the nodes at a moment."""

    def there(one: Try) -> bool:
        over = one.end != UNKNOWN and one.end <= moment
        return one.started and one.start <= moment and not over and bool({*one.nodes} & {*nodes})

    return {one.key for one in schedule.tries if there(one)}
