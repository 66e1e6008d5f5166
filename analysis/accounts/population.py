"""Totals of a population with arrivals and departures: users who came and left, jobs per week."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, override

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.agents.populations.openness import VISIT_MEANING, Happening, Visit, Visits
from hpcrowd.analysis.curves import processors_in_use
from hpcrowd.analysis.parts import RunPart
from hpcrowd.environment.clock import HOUR, WEEK, Clock
from hpcrowd.environment.engine.attempts import runs_of
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from hpcrowd.environment.engine.attempts import Attempt

#: A machine counts as empty if, in the last part of the weeks, fewer jobs are submitted than this
#: share of what recorded waits would give; both numbers are our choice.
LAST_PART, EMPTY = 0.25, 0.05

#: The meaning of each key.
ACCOUNTS = {
    "weeks": "weeks in which users submitted",
    "warmup_weeks": "first weeks, left out of throughput",
    "users_there": "users present at the beginning",
    "users_arrived": "users who arrived",
    "users_done": "users who left because their work was done",
    "users_gave_up": "users who left unsatisfied for good",
    "users_went_away": "times that a user left unsatisfied for a while",
    "users_came_back": "times that a user came back",
    "users_went_on": "times that a satisfied user finished and began again",
    "users_remaining": "users present at the end",
    "jobs_per_week_mean": "jobs submitted per week",
    "jobs_per_week_sd": "standard deviation of that over weeks",
    "throughput_jobs_per_week": "jobs that ended per week, after the warm-up",
    "throughput_jobs_per_week_sd": "standard deviation of that over weeks",
    "throughput_node_h_per_week": "processors times hours in use per week, after the warm-up",
    "throughput_node_h_per_week_sd": "standard deviation of that over weeks",
    "work_recorded_node_h_per_week": "the same in hours of the recorded machine: times the speed",
    "utilization_weeks": "share of processors in use, after the warm-up",
    "notes": "remarks on the population, one line each",
}


class Population(RunPart):
    """A population that comes and goes; ``rows`` has each arrival and departure, by time."""

    name, key, file, meaning = "population", "population", "visits", VISIT_MEANING
    title, drawn = "Users who come and go", ("visits",)

    @override
    def lines(self, configuration: Mapping[str, Any]) -> list[str]:
        if not self.account:
            return []
        pool = self.account["pool"]
        return [
            f"pool: {plural(pool['users_long_term'], 'long-term user')}, "
            f"{pool['users_temporary']:,} temporary ({pool['arrivals_per_week']:.2f} arrive per "
            f"week), {pool['jobs']:,} jobs in {plural(pool['weeks'], 'week')}",
            *dropped_users(self.account),
            *account_lines(self.account),
        ]

    @override
    def notes(self) -> list[str]:
        return dropped_users(self.account)

    @override
    def check(self) -> None:
        self.lines({})

    @override
    def columns(self, jobs: JobTable) -> dict[str, Any]:
        if not self.rows:
            return {}
        import pyarrow as pa

        return {
            "at": pa.array([visit.at for visit in self.rows], pa.int64()),
            "user": pa.array([visit.user for visit in self.rows], pa.int64()),
            "what": pa.array([visit.what.value for visit in self.rows]).dictionary_encode(),
        }

    @override
    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> list[Visit]:
        rows = zip(columns["at"], columns["user"], columns["what"], strict=True)
        return [Visit(at, user, Happening(what)) for at, user, what in rows]


def week_edges(clock: Clock, weeks: int) -> Int64s:
    """Return the second at which each week of a run begins, and the end, shape (weeks + 1,)."""
    origin = clock.wall(0)
    return np.array([clock.second_at(origin + week * WEEK) for week in range(weeks + 1)])


def population_accounts(
    jobs: JobTable,
    visits: Visits,
    clock: Clock,
    *,
    weeks: int,
    warmup: int,
    processors: int,
    speed: float = 1.0,
    expected: float = 0.0,
    attempts: Iterable[Attempt] = (),
) -> dict[str, Any]:
    """Return the totals of :data:`ACCOUNTS`.

    Parameters
    ----------
    jobs, visits, clock
        Jobs, visits and clock of the run.
    weeks, warmup
        For how long users submitted, and how many of the first weeks throughput leaves out.
    processors, speed
        Of the machine; the speed is a multiple of the recorded machine's.
    expected
        Jobs per week if waits were as recorded, where that is known.
    attempts
        Runs that were stopped, whose processors were in use as well.

    Raises
    ------
    QuantityError
        When no week is left, or no user submitted anything.
    """
    if not 0 <= warmup < weeks:
        raise QuantityError(
            f"warm-up of {warmup} weeks: none of {plural(weeks, 'week')} is left; take fewer"
        )
    if not len(jobs):
        raise QuantityError(
            f"no jobs submitted in {plural(weeks, 'week')}: give more users or more weeks"
        )
    edges = week_edges(clock, weeks)
    submitted = np.histogram(jobs.submit, edges)[0]
    ended = np.histogram(jobs.end[jobs.over], edges)[0][warmup:]
    used = processors_in_use(runs_of(jobs, attempts).table, edges)[warmup:]
    hours = used * np.diff(edges)[warmup:] / HOUR
    counts = visits.counts()
    found: dict[str, Any] = {"weeks": weeks, "warmup_weeks": warmup}
    for what in Happening:
        found[f"users_{what.value.replace(' ', '_')}"] = counts[what.value]
    found |= {
        "users_remaining": visits.remaining,
        "jobs_per_week_mean": float(submitted.mean()),
        "jobs_per_week_sd": _sd(submitted),
        "throughput_jobs_per_week": float(ended.mean()),
        "throughput_jobs_per_week_sd": _sd(ended),
        "throughput_node_h_per_week": float(hours.mean()),
        "throughput_node_h_per_week_sd": _sd(hours),
        "work_recorded_node_h_per_week": float(hours.mean() * speed),
        "utilization_weeks": float(used.mean() / processors),
        "notes": notes_on(submitted, visits, expected),
    }
    return found


def notes_on(submitted: Int64s, visits: Visits, expected: float) -> list[str]:
    """Return a warning if the population left the machine empty.

    ``submitted`` has the jobs of each week; ``expected`` are those if waits were as recorded.
    """
    weeks = len(submitted)
    last = submitted[-max(1, round(LAST_PART * weeks)) :]
    if last.mean() >= EMPTY * expected:
        return []
    counts = visits.counts()
    if counts["gave up"] + counts["went away"]:
        leaving = (Happening.GAVE_UP, Happening.WENT_AWAY)
        when = max(visit.at for visit in visits.notes if visit.what in leaving) // WEEK + 1
        why = (
            f"{plural(counts['gave up'], 'user')} gave up and {counts['went away']} went away, the "
            f"last in week {when}; a better machine, fewer users or a higher tolerance keeps them"
        )
    else:
        why = "few users are left; give more users or fewer weeks"
    return [
        f"the machine runs empty: {last.mean():.1f} jobs per week in the last "
        f"{plural(len(last), 'week')}, {expected:.1f} expected with recorded waits: {why}"
    ]


def _sd(values: ArrayLike) -> float | None:
    numbers = np.asarray(values, np.float64)
    return float(numbers.std(ddof=1)) if len(numbers) > 1 else None


def dropped_users(found: dict[str, Any]) -> list[str]:
    """Return printed lines on users of the log that are not in the pool, one for each reason."""
    if not found:
        return []
    pool = found["pool"]
    return [
        f"{plural(count, 'user')} dropped ({plural(pool['jobs_dropped'][why], 'job')}): {why}"
        for why, count in pool["users_dropped"].items()
    ]


def account_lines(found: dict[str, Any]) -> list[str]:
    """Return the totals as printed lines; none if there are no totals."""
    if not found:
        return []

    def spread(name: str, digits: int = 0) -> str:
        sd = found[f"{name}_sd"]
        mean = found.get(name, found.get(f"{name}_mean"))
        more = "" if sd is None else f" (sd over weeks {sd:,.{digits}f})"
        return f"{mean:,.{digits}f}{more}"

    return [
        f"users: {found['users_there']:,} at the beginning, {found['users_arrived']:,} arrived, "
        f"{found['users_done']:,} left when done, {found['users_gave_up']:,} left unsatisfied for "
        f"good, {found['users_went_away']:,} for a while, {found['users_came_back']:,} came back, "
        f"{found['users_went_on']:,} began again; {found['users_remaining']:,} at the end",
        f"submitted per week: {spread('jobs_per_week', 1)} jobs in {found['weeks']} weeks",
        f"throughput per week, without the first {found['warmup_weeks']} weeks: "
        f"{spread('throughput_jobs_per_week', 1)} jobs; "
        f"{spread('throughput_node_h_per_week')} node-hours, "
        f"{found['work_recorded_node_h_per_week']:,.0f} on the recorded machine; "
        f"{found['utilization_weeks']:.1%} of the processors in use",
        *found["notes"],
    ]
