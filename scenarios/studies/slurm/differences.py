"""Why two schedules of a plan differ: the jobs that differ most, and what both say of them.

Each difference gets the first cause in :data:`CAUSES` that the schedules show. Causes that reach a
job through others, such as a dependency, explain where its difference comes from; the last one says
that the job was passed over although nothing that was recorded about it differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.scenarios.studies.slurm.records import Key, Submission, Try
from hpcrowd.scenarios.studies.slurm.schedules import TOTAL, At, Schedule, nearest

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
        return f"{self.how or '?'} on {','.join(self.nodes)}; {said}{away}"


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
