"""How near replays of a recorded run come, given how much recorded runs of its plan differ.

A run is replayed several times, with other timers each time, see
:func:`~hpcrowd.environment.schedulers.slurm.timers.drawn_timers`. Every figure is the median over
these draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hpcrowd.environment.machine.model import Machine
from hpcrowd.scenarios.studies.running import run_tasks
from hpcrowd.scenarios.studies.slurm.measures import (
    Comparison,
    Difference,
    Distance,
    Reproduced,
    agreed_order,
    by_cause,
    compare,
    differences,
    mean,
    priorities,
    shares,
    waits_by,
)
from hpcrowd.scenarios.studies.slurm.records import Record
from hpcrowd.scenarios.studies.slurm.schedules import (
    TOTAL,
    Simulated,
    schedule_of,
)
from hpcrowd.scenarios.studies.study import Requirement
from hpcrowd.scenarios.terminal import Progress

#: Most that a simulation may differ, as a multiple of what two recorded runs differ by; s that the
#: median may differ in any case; how much less the waits may correlate.
MULTIPLE, MEDIAN, LESS = 1.25, 60.0, 0.03

#: Least share of equal pending reasons, and of priorities that are reproduced.
REASONS, PRIORITIES = 0.90, 0.95

#: Limits for an accounting without a second run: correlation of waits, median difference in s.
LOG_PEARSON, LOG_MEDIAN = 0.97, 4.0


#: What is required: the figure, ours, the requirement, and whether it is reached.
Need = tuple[str, str, str, bool]

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
    """Mean wait, s, of a partition's or a user's jobs in each draw, and in each recorded run.

    The first recorded run is the one that is replayed, the others had the same plan.
    """

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
    def apart(self) -> float:
        """How far the recorded runs are apart, s; nan for one."""
        return max(self.runs) - min(self.runs) if len(self.runs) > 1 else math.nan

    @property
    def near(self) -> bool:
        """Whether the recorded wait is within the simulated ones, or as near as another run's."""
        low, high = self.spread[1:]
        return low <= self.runs[0] <= high or abs(self.ours - self.runs[0]) <= self.apart


@dataclass(frozen=True)
class Outcome:
    """A recorded run, replayed."""

    written: ClassVar = {
        "simulated": "draws", "recorded": "own", "simulated_apart": "among",
        "typical": "typical", "recorded_of_other_plans": "borrowed", "partitions": "partitions",
        "users": "users", "users_in_another_order": "disordered", "priorities": "parts",
        "priorities_on_record": "on_record", "causes": "causes",
        "jobs_that_differ": "differences.__len__",
    }  # fmt: skip

    name: str  #: The name of the run.
    log: bool  #: Whether the record is an accounting, not runs of a plan.
    draws: tuple[Comparison, ...]  #: Each simulation compared with the run.
    among: tuple[Distance, ...]  #: How far the starts of each two simulations are apart.
    typical: int  #: The place of the simulation whose mean difference is the median one.
    #: It compared with other runs of its plan; if there are none, the pairs of other plans.
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
    #: The jobs whose starts differ in the typical simulation.
    differences: Sequence[Difference]
    facts: Mapping[str, Any]  #: Where the record is from.

    @property
    def ours(self) -> Comparison:
        """The typical simulation compared with the run."""
        return self.draws[self.typical]

    @property
    def disordered(self) -> Sequence[tuple[str, str]]:
        """The pairs of users in another order."""
        return self.order[2]

    def causes(self) -> dict[str, dict[str, int]]:
        """Return the jobs that differ, and by how many seconds, by cause."""
        found = by_cause(self.differences)
        return {cause: {"jobs": jobs, "seconds": seconds} for cause, jobs, seconds in found}

    def spread(self, of: Callable[[Comparison], float]) -> Spread:
        """Return a figure over the draws."""
        return Spread.of([of(pair) for pair in self.draws])

    @cached_property
    def requirements(self) -> list[Requirement]:
        """The figures that have to be reached."""
        needs = self._of_log() if self.log else self._of_plan()
        return [Requirement(self.name, *need[:-1], bool(need[-1])) for need in needs]

    def _of_log(self) -> Iterator[Need]:
        pearson = self.spread(lambda one: one.starts.pearson)
        required = f"above {LOG_PEARSON}"
        yield "Pearson of waits", pearson.text(".3f"), required, pearson.median > LOG_PEARSON
        middle = self.spread(lambda one: one.starts.median)
        ours, required = f"{middle.text('.1f')} s", f"under {LOG_MEDIAN:g} s"
        yield "median difference of starts", ours, required, middle.median < LOG_MEDIAN

    def _of_plan(self) -> Iterator[Need]:
        if self.own:
            yield from self._of_pairs()
        for name, waits in self.partitions.items():
            required = f"{waits.runs[0]:.0f} s"
            if len(waits.runs) > 1:
                required += f", runs {waits.apart:.0f} s apart"
            yield f"mean wait in {name}", f"{waits.spread.text()} s", required, waits.near
        right, counted, wrong = self.order
        pairs = f"{counted} pairs"
        yield "users' mean waits in order", f"{right} of {pairs}", pairs, not wrong
        said = self.spread(lambda one: one.reasons.share)
        if not math.isnan(said.median):
            required = f"at least {REASONS:.0%}"
            yield "same pending reasons", said.text(".1%"), required, said.median >= REASONS
        if self.on_record and TOTAL in self.parts:
            near = self.parts[TOTAL].near
            required = f"at least {PRIORITIES:.0%}"
            yield "priorities reproduced", f"{near:.1%}", required, near >= PRIORITIES

    def _of_pairs(self) -> Iterator[Need]:
        """Yield what is required by what recorded runs, at least two of them, differ by."""

        def own(of: Callable[[Comparison], float]) -> float:
            return mean([of(one) for one in self.own])

        for what, of, least in (
            ("mean difference of starts", lambda one: one.starts.mean, 0.0),
            ("the same, all tries of requeued jobs", lambda one: one.tries.mean, 0.0),
            ("median difference of starts", lambda one: one.starts.median, MEDIAN),
        ):  # type: str, Callable[[Comparison], float], float
            ours, most = self.spread(of), max(MULTIPLE * own(of), least)
            yield what, f"{ours.text()} s", f"at most {most:.0f} s", ours.median <= most
        ours = self.spread(lambda one: one.starts.pearson)
        least = own(lambda one: one.starts.pearson) - LESS
        yield "Pearson of waits", ours.text(".3f"), f"at least {least:.3f}", ours.median >= least


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
    record: Record,
    others: Sequence[Record],
    simulated: Sequence[Simulated],
    pairs: Sequence[Comparison] = (),
) -> Outcome:
    """Return what replays of a run reached, of which the first may be on the record, too.

    The others had the same plan; pairs of runs of other plans are for a run without any.
    """
    schedules = [one.schedule for one in simulated]
    plan, only = record.plan, record.compared
    recorded = [schedule_of(run) for run in (record, *others)]
    draws = tuple(compare(one, recorded[0], plan, only) for one in schedules)
    own = tuple(compare(recorded[0], other, plan, only) for other in recorded[1:])
    typical = sorted(range(len(draws)), key=lambda place: draws[place].starts.mean)[
        (len(draws) - 1) // 2
    ]

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
        name=record.name,
        log=record.is_log,
        draws=draws,
        among=tuple(
            compare(one, other, plan, only).starts for one, other in combinations(schedules, 2)
        ),
        typical=typical,
        own=own or tuple(pairs),
        borrowed=not own and bool(pairs),
        partitions=waits("partition"),
        users=users,
        order=agreed_order(
            {name: one.ours for name, one in users.items()},
            [{name: one.runs[place] for name, one in users.items()}
             for place in range(len(recorded))],
        ),
        parts=parts | ({factor.name: factor} if factor.compared else {}),
        on_record=simulated[0].on_record is not None,
        differences=differences(schedules[typical], recorded[0], plan, only),
        facts={"jobs": len(record.jobs), "tries": len(record.tries), "factor": record.factor,
               "sha256": record.checksum, "submissions": len(plan)},
    )  # fmt: skip


# ---- mechanisms switched off one by one -------------------------------------------------------
# What each is worth: one of them switched off, the run replayed again. A mechanism that matters
# moves the schedule away from the recorded one when it is off. One that moves it nearer is not
# modelled well; one that changes nothing is not used by the plan, or is worth less than the phases.


class Mechanism(NamedTuple):
    """A mechanism, and how it is switched off."""

    name: str  #: What tables call the run without it.
    #: Settings of the machine that switch it off.
    scheduling: Mapping[str, object] = {}
    priority: Mapping[str, object] = {}
    #: Returns the machine without it, for what is not a setting.
    machine: Callable[[Machine], Machine] | None = None
    columns: tuple[str, ...] = ()  #: Columns of the log that are left out.
    settings: Mapping[str, str] = {}  #: Settings of the replay.

    def without(self, machine: Machine) -> Machine:
        """Return a machine without it."""
        changed = machine.model_copy(
            update={
                "scheduling": machine.scheduling.model_copy(update=dict(self.scheduling)),
                "priority": machine.priority.model_copy(update=dict(self.priority)),
            }
        )
        return changed if self.machine is None else self.machine(changed)


def one_tier(machine: Machine) -> Machine:
    """Return the machine with all partitions in one tier."""
    tiers = [one.model_copy(update={"priority_tier": 1}) for one in machine.partitions]
    return machine.model_copy(update={"partitions": tuple(tiers)})


#: The scheduler with another rule of placement.
PLACED = "slurm:placement="

#: All as it is, then each mechanism off.
MECHANISMS = (
    Mechanism("as recorded"),
    Mechanism("no backfilling", {"backfill": False}),
    Mechanism("no fair share", priority={"weight_fair_share": 0}),
    Mechanism("no age in priorities", priority={"weight_age": 0}),
    Mechanism("no job size in priorities", priority={"weight_size": 0}),
    Mechanism("no QOS in priorities", priority={"weight_qos": 0}),
    Mechanism("no partition in priorities", priority={"weight_partition": 0}),
    Mechanism("first come, first served", priority={"kind": "basic"}),
    Mechanism("no tiers of partitions", machine=one_tier),
    Mechanism("no limits of users and QOS", {"enforce_limits": False}),
    Mechanism("no preemption", {"preempt_type": "none"}),
    Mechanism("memory not counted", {"memory_counts": False}),
    Mechanism(
        "placement: least loaded nodes first", settings={"scheduler": "slurm:placement=spread"}
    ),
    Mechanism("placement: best fit", settings={"scheduler": "slurm:placement=best-fit"}),
    Mechanism("no throttles of arrays", columns=("throttle", "eligible")),
    Mechanism("one planned task of an array", {"bf_max_job_array_resv": 1}),
    Mechanism("no dependencies", settings={"holds": "none"}),
    Mechanism("plans exact to the second", {"bf_resolution": 1}),
    Mechanism("no pass every minute", {"sched_interval": -1}),
    Mechanism("no delay between passes", {"batch_sched_delay": 0.0}),
    Mechanism("limits checked every second", {"time_limit_period": 1}),
    Mechanism("requeued jobs eligible after 1 s", {"requeue_delay": 1}),
)


@dataclass(frozen=True)
class Effect:
    """What a run's schedule is with a mechanism switched off, over several draws of timers."""

    run: str  #: The name of the recorded run.
    mechanism: str  #: The name of the run.
    #: s between starts, as in :class:`~hpcrowd.scenarios.studies.slurm.measures.Distance`.
    mean: Spread
    median: Spread
    pearson: Spread  #: Correlation of waits.
    wait: Spread  #: Simulated mean wait, s.


def effects_of(
    records: Sequence[Record],
    phases: int,
    seed: int = 0,
    progress: Progress | None = None,
    workers: int = 1,
    mechanisms: Sequence[Mechanism] = MECHANISMS,
) -> list[Effect]:
    """Return what each mechanism does to the first run of each plan, with the study's draws.

    Progress is called before the first simulation and after each.
    """
    runs = [group[0] for group in plans_of(records)]
    tasks = [
        (place, which, number)
        for place in range(len(runs))
        for which in range(len(mechanisms))
        for number in range(phases)
    ]
    work = partial(_figures, runs, mechanisms, seed)
    done = dict(run_tasks(work, tasks, workers, progress, lambda task: mechanisms[task[1]].name))
    found = []
    for place, run in enumerate(runs):
        for which, one in enumerate(mechanisms):
            figures = [done[place, which, number] for number in range(phases)]
            spreads = [Spread.of(values) for values in zip(*figures, strict=True)]
            found.append(Effect(run.name, one.name, *spreads))
    return found


def _figures(
    runs: Sequence[Record],
    mechanisms: Sequence[Mechanism],
    seed: int,
    task: tuple[int, int, int],
) -> tuple[float, ...]:
    """Return the figures of a simulation."""
    from hpcrowd.scenarios.studies.slurm.simulated import machine_of, replayed, schedule_on

    record, mechanism = runs[task[0]], mechanisms[task[1]]
    machine = mechanism.without(machine_of(record))
    run = replayed(record, seed + task[2], machine, mechanism.columns, **mechanism.settings)
    found = schedule_on(record, run)
    starts = compare(found, schedule_of(record), record.plan, record.compared).starts
    return starts.mean, starts.median, starts.pearson, starts.waits[0]


def effect_rows(effects: Sequence[Effect]) -> list[list[str]]:
    """Return the effects."""
    return [
        [one.run, one.mechanism, one.mean.text(), one.median.text(), one.pearson.text(".3f"),
         one.wait.text()]
        for one in effects
    ]  # fmt: skip
