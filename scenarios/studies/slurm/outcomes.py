"""How near simulations of a plan come, given how much recorded runs of it differ.

A plan is simulated several times, with other phases each time, see
:mod:`hpcrowd.scenarios.studies.slurm.workload`. Every figure is the median over these draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hpcrowd.scenarios.studies.slurm.differences import Difference, by_cause, differences
from hpcrowd.scenarios.studies.slurm.measures import (
    Comparison,
    Distance,
    Reproduced,
    agreed_order,
    compare,
    mean,
    priorities,
    shares,
    waits_by,
)
from hpcrowd.scenarios.studies.slurm.records import Record
from hpcrowd.scenarios.studies.slurm.schedules import TOTAL, Schedule, schedule_of
from hpcrowd.scenarios.studies.study import Requirement

#: Most that a simulation may differ, as a multiple of what two recorded runs differ by; s that the
#: median may differ in any case; how much less the waits may correlate.
MULTIPLE, MEDIAN, LESS = 1.25, 60.0, 0.03

#: Share by which the range of the recorded mean waits is widened.
WIDER = 0.10

#: Least share of equal pending reasons, and of priorities that are reproduced.
REASONS, PRIORITIES = 0.90, 0.95

#: Limits for an accounting without a second run: correlation of waits, median difference in s.
LOG_PEARSON, LOG_MEDIAN = 0.97, 4.0


class Simulated(NamedTuple):
    """A simulation of a plan."""

    schedule: Schedule  #: Its outcome.
    #: Priorities and fair-share factors at the record's samples if all jobs start and end as
    #: recorded; None if that was not simulated.
    on_record: Schedule | None = None


#: Simulates the plan of a recorded run: the draw with this number.
Simulate = Callable[[Record, int], Simulated]


class Spread(NamedTuple):
    """A figure over the draws: the median, and the range."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return it for the values that are known; nan without any."""
        known = [one for one in values if not math.isnan(one)]
        if not known:
            return cls(math.nan, math.nan, math.nan)
        return cls(float(np.median(known)), min(known), max(known))

    def text(self, form: str = ".0f") -> str:
        """Return it as a text such as ``12 (10 to 15)``; without the range if there is none."""
        middle, low, high = (format(one, form) for one in self)
        return middle if low == high else f"{middle} ({low} to {high})"


@dataclass(frozen=True)
class Waits:
    """Mean wait, s, of a partition's or a user's jobs: in each draw, and in each recorded run."""

    written: ClassVar = ("ours", "draws", "runs")

    draws: tuple[float, ...]
    runs: tuple[float, ...]

    @property
    def spread(self) -> Spread:
        """The simulated waits over the draws."""
        return Spread.of(self.draws)

    @property
    def ours(self) -> float:
        """The median over the draws."""
        return self.spread.median

    @property
    def range(self) -> tuple[float, float]:
        """The range of the recorded runs, widened by :data:`WIDER`."""
        return min(self.runs) * (1 - WIDER), max(self.runs) * (1 + WIDER)


@dataclass(frozen=True)
class Outcome:
    """A plan."""

    written: ClassVar = {
        "simulated": "compared", "recorded": "own", "simulated_apart": "among",
        "typical": "typical", "recorded_of_other_plans": "borrowed", "partitions": "partitions",
        "users": "users", "users_in_another_order": "disordered", "priorities": "parts",
        "priorities_on_record": "on_record", "causes": "causes", "nearest": "nearest",
        "jobs_that_differ": "differences.__len__",
    }  # fmt: skip

    name: str  #: The names of its runs.
    log: bool  #: Whether the record is an accounting, not runs of a plan.
    draws: tuple[tuple[Comparison, ...], ...]  #: Each simulation compared with each recorded run.
    among: tuple[Distance, ...]  #: How far the starts of each two simulations are apart.
    typical: int  #: The place of the simulation whose mean difference is the median one.
    #: The recorded runs compared with each other; if there is only one, the pairs of other plans.
    own: tuple[Comparison, ...]
    borrowed: bool  #: Whether they are of other plans.
    #: Mean waits by name.
    partitions: Mapping[str, Waits]
    users: Mapping[str, Waits]
    #: Pairs of users in the recorded order, pairs that count, and those in another order.
    order: tuple[int, int, Sequence[tuple[str, str]]]
    #: Priorities and their parts compared with ``sprio``; ``FairShare`` with ``sshare``.
    parts: Mapping[str, Reproduced]
    on_record: bool  #: Whether these are of a simulation in which all jobs start as recorded.
    #: The jobs whose starts in the typical simulation differ from the nearest run.
    differences: Sequence[Difference]
    nearest: str  #: The name of that run.
    facts: Mapping[str, Any]  #: Where the records are from.

    @property
    def ours(self) -> tuple[Comparison, ...]:
        """The typical simulation compared with each recorded run."""
        return self.draws[self.typical]

    @property
    def compared(self) -> list[Comparison]:
        """Each simulation compared with each recorded run, one after the other."""
        return [pair for pairs in self.draws for pair in pairs]

    @property
    def disordered(self) -> Sequence[tuple[str, str]]:
        """The pairs of users in another order."""
        return self.order[2]

    def causes(self) -> dict[str, dict[str, int]]:
        """Return the jobs that differ, and by how many seconds, by cause."""
        found = by_cause(self.differences)
        return {cause: {"jobs": jobs, "seconds": seconds} for cause, jobs, seconds in found}

    def spread(self, of: Callable[[Comparison], float]) -> Spread:
        """Return a figure over the draws; of each, the mean over the recorded runs."""
        return Spread.of([mean([of(pair) for pair in pairs]) for pairs in self.draws])

    @property
    def requirements(self) -> list[Requirement]:
        """The figures that have to be reached."""
        if self.log:
            return self._of_log()
        found = [*self._of_pairs(), *self._of_waits()]
        said = self.spread(lambda one: one.reasons.share)
        if not math.isnan(said.median):
            found.append(self._need(
                "same pending reasons", said.text(".1%"), f"at least {REASONS:.0%}",
                said.median >= REASONS,
            ))  # fmt: skip
        if self.on_record and TOTAL in self.parts:
            near = self.parts[TOTAL].near
            found.append(self._need(
                "priorities reproduced", f"{near:.1%}", f"at least {PRIORITIES:.0%}",
                near >= PRIORITIES,
            ))  # fmt: skip
        return found

    def _need(self, what: str, ours: str, required: str, holds: bool) -> Requirement:
        return Requirement(self.name, what, ours, required, bool(holds))

    def _of_log(self) -> list[Requirement]:
        pearson = self.spread(lambda one: one.starts.pearson)
        middle = self.spread(lambda one: one.starts.median)
        return [
            self._need(
                "Pearson of waits", pearson.text(".3f"), f"above {LOG_PEARSON}",
                pearson.median > LOG_PEARSON,
            ),
            self._need(
                "median difference of starts", f"{middle.text('.1f')} s", f"under {LOG_MEDIAN:g} s",
                middle.median < LOG_MEDIAN,
            ),
        ]  # fmt: skip

    def _of_pairs(self) -> list[Requirement]:
        """Return what is required by what recorded runs differ by; nothing without two of them."""
        if not self.own:
            return []

        def both(of: Callable[[Comparison], float]) -> tuple[Spread, float]:
            return self.spread(of), mean([of(one) for one in self.own])

        found = []
        for what, of, least in (
            ("mean difference of starts", lambda one: one.starts.mean, 0.0),
            ("the same, all tries of requeued jobs", lambda one: one.tries.mean, 0.0),
            ("median difference of starts", lambda one: one.starts.median, MEDIAN),
        ):  # type: str, Callable[[Comparison], float], float
            ours, own = both(of)
            most = max(MULTIPLE * own, least)
            found.append(self._need(
                what, f"{ours.text()} s", f"at most {most:.0f} s", ours.median <= most
            ))  # fmt: skip
        ours, own = both(lambda one: one.starts.pearson)
        found.append(self._need(
            "Pearson of waits", ours.text(".3f"), f"at least {own - LESS:.3f}",
            ours.median >= own - LESS,
        ))  # fmt: skip
        return found

    def _of_waits(self) -> list[Requirement]:
        found = []
        for name, waits in self.partitions.items():
            least, most = waits.range
            found.append(self._need(
                f"mean wait in {name}", f"{waits.spread.text()} s", f"{least:.0f} to {most:.0f} s",
                least <= waits.ours <= most,
            ))  # fmt: skip
        right, counted, wrong = self.order
        found.append(self._need(
            "users' mean waits in order", f"{right} of {counted} pairs", f"{counted} pairs",
            not wrong,
        ))  # fmt: skip
        return found


def plans_of(records: Sequence[Record]) -> list[list[Record]]:
    """Return recorded runs by plan; runs of one plan have the same content of ``plan.csv``."""
    found: list[list[Record]] = []
    for record in records:
        for group in found:
            if group[0].is_log == record.is_log and group[0].same_plan(record):
                group.append(record)
                break
        else:
            found.append([record])
    return found


def pairs_of(runs: Sequence[Record]) -> list[Comparison]:
    """Return each pair of recorded runs of one plan, compared."""
    return [
        compare(schedule_of(one), schedule_of(other), one.plan, one.compared)
        for one, other in combinations(runs, 2)
    ]


def outcome(
    runs: Sequence[Record],
    simulated: Sequence[Simulated],
    others: Sequence[Comparison] = (),
) -> Outcome:
    """Return what simulations of a plan reached, of which the first may be on the record, too.

    Pairs of recorded runs of other plans are for a plan with a single run.
    """
    first, schedules = runs[0], [one.schedule for one in simulated]
    plan, only = first.plan, first.compared
    recorded = [schedule_of(run) for run in runs]
    draws = [tuple(compare(one, run, plan, only) for run in recorded) for one in schedules]
    own = pairs_of(runs)
    apart = [mean([pair.starts.mean for pair in pairs]) for pairs in draws]
    typical = sorted(range(len(draws)), key=apart.__getitem__)[(len(draws) - 1) // 2]
    best = min(range(len(runs)), key=lambda place: draws[typical][place].starts.mean)

    def waits(of: str) -> dict[str, Waits]:
        mine = [waits_by(one, plan, of, only) for one in schedules]
        theirs = [waits_by(run, plan, of, only) for run in recorded]
        known = [name for name in mine[0] if all(name in one for one in [*mine, *theirs])]
        return {
            name: Waits(tuple(one[name] for one in mine), tuple(one[name] for one in theirs))
            for name in known
        }

    users = waits("user")
    along = simulated[0].on_record or schedules[typical]
    parts = priorities(along.priorities, recorded[0].priorities)
    factor = shares(along.shares, recorded[0].shares)
    return Outcome(
        name=", ".join(run.name for run in runs),
        log=first.is_log,
        draws=tuple(draws),
        among=tuple(
            compare(one, other, plan, only).starts for one, other in combinations(schedules, 2)
        ),
        typical=typical,
        own=tuple(own or others),
        borrowed=not own and bool(others),
        partitions=waits("partition"),
        users=users,
        order=agreed_order(
            {name: one.ours for name, one in users.items()},
            [{name: one.runs[place] for name, one in users.items()} for place in range(len(runs))],
        ),
        parts=parts | ({factor.name: factor} if factor.compared else {}),
        on_record=simulated[0].on_record is not None,
        differences=differences(schedules[typical], recorded[best], plan, only),
        nearest=runs[best].name,
        facts={
            "runs": {run.name: {"jobs": len(run.jobs), "tries": len(run.tries),
                                "factor": run.factor, "sha256": run.checksum} for run in runs},
            "submissions": len(plan),
        },
    )  # fmt: skip
