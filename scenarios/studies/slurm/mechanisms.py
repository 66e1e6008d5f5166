"""What each mechanism of Slurm is worth: one of them switched off, the plan simulated again.

A mechanism that matters moves the schedule away from the recorded one when it is off. One that
moves it nearer is not modelled well; one that changes nothing is not used by the plan, or is worth
less than the phases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from hpcrowd.environment.holds.rules import Rules
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.scenarios.studies.running import run_tasks
from hpcrowd.scenarios.studies.slurm.measures import compare, mean
from hpcrowd.scenarios.studies.slurm.outcomes import Spread, plans_of
from hpcrowd.scenarios.studies.slurm.records import Record
from hpcrowd.scenarios.studies.slurm.schedules import schedule_of
from hpcrowd.scenarios.studies.slurm.workload import Workload, drawn_phases, workload_of
from hpcrowd.scenarios.terminal import Progress

#: Headings of the table.
EFFECT_TABLE = ("plan", "mechanism", "mean apart (s)", "median", "Pearson", "mean wait (s)")


class Mechanism(NamedTuple):
    """A mechanism, and how it is switched off."""

    name: str  #: What tables call the run without it.
    #: Settings of the machine that switch it off.
    scheduling: Mapping[str, object] = {}
    priority: Mapping[str, object] = {}
    #: Returns the machine without it, for what is not a setting.
    machine: Callable[[Machine], Machine] | None = None
    workload: Callable[[Workload], Workload] | None = None  #: Returns the jobs without it.
    placement: str = "slurm"  #: The rule of placement.

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


def without_throttles(workload: Workload) -> Workload:
    """Return the jobs with arrays of which any number of tasks may run at a time."""
    return _asking(workload, Ask.THROTTLE, UNKNOWN)


def without_dependencies(workload: Workload) -> Workload:
    """Return the jobs without dependencies."""
    rules, jobs = workload.rules, len(workload.jobs)
    free = Rules(delay=np.zeros(jobs, np.int64), failed=rules.failed, parents={})
    return _changed(workload, rules=free)


def _asking(workload: Workload, ask: Ask, value: int) -> Workload:
    requests = workload.requests.copy()
    for row in range(len(workload.jobs)):
        requests.set(row, ask, value)
    return _changed(workload, requests=requests)


def _changed(workload: Workload, **values: object) -> Workload:
    known = {name: getattr(workload, name) for name in Workload.__dataclass_fields__}
    return Workload(**{**known, **values})


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
    Mechanism("placement: least loaded nodes first", placement="spread"),
    Mechanism("placement: best fit", placement="best-fit"),
    Mechanism("no throttles of arrays", workload=without_throttles),
    Mechanism("one planned task of an array", {"bf_max_job_array_resv": 1}),
    Mechanism("no dependencies", workload=without_dependencies),
    Mechanism("plans exact to the second", {"bf_resolution": 1}),
    Mechanism("no pass every minute", {"sched_interval": -1}),
    Mechanism("no delay between passes", {"batch_sched_delay": 0.0}),
    Mechanism("limits checked every second", {"time_limit_period": 1}),
    Mechanism("requeued jobs eligible after 1 s", {"requeue_delay": 1}),
    Mechanism("no latency at starts", {"start_latency": 0.0}),
    Mechanism("backfill cycles take no time", {"cycle_time": 0.0}),
)


@dataclass(frozen=True)
class Effect:
    """What a plan's schedule is with a mechanism switched off, over several draws of phases."""

    plan: str  #: The names of the plan's recorded runs.
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
    """Return what each mechanism does to each plan, with the study's draws of phases.

    Progress is called before the first simulation and after each.
    """
    plans = plans_of(records)
    tasks = [
        (plan, place, number)
        for plan in range(len(plans))
        for place in range(len(mechanisms))
        for number in range(phases)
    ]
    work = partial(_figures, plans, mechanisms, seed)
    done = dict(run_tasks(work, tasks, workers, progress, lambda task: mechanisms[task[1]].name))
    found = []
    for plan, runs in enumerate(plans):
        for place, one in enumerate(mechanisms):
            figures = [done[plan, place, number] for number in range(phases)]
            spreads = [Spread.of(values) for values in zip(*figures, strict=True)]
            found.append(Effect(", ".join(run.name for run in runs), one.name, *spreads))
    return found


def _figures(
    plans: Sequence[Sequence[Record]],
    mechanisms: Sequence[Mechanism],
    seed: int,
    task: tuple[int, int, int],
) -> tuple[float, ...]:
    """Return the figures of a simulation, the mean over the recorded runs of the plan."""
    from hpcrowd.scenarios.studies.slurm.simulated import machine_of, schedule_on

    runs, mechanism, number = plans[task[0]], mechanisms[task[1]], task[2]
    first = runs[0]
    machine = machine_of(first)
    phases = drawn_phases(machine, number, seed)
    workload = workload_of(first, phases.arrived)
    if mechanism.workload is not None:
        workload = mechanism.workload(workload)
    machine = mechanism.without(phases.on(machine))
    found = schedule_on(first, workload, machine, mechanism.placement)
    starts = [compare(found, schedule_of(run), first.plan, first.compared).starts for run in runs]
    return (
        mean([one.mean for one in starts]),
        mean([one.median for one in starts]),
        mean([one.pearson for one in starts]),
        mean([one.waits[0] for one in starts]),
    )


def effect_rows(effects: Sequence[Effect]) -> list[list[str]]:
    """Return the effects as the texts of :data:`EFFECT_TABLE`."""
    return [
        [one.plan, one.mechanism, one.mean.text(), one.median.text(), one.pearson.text(".3f"),
         one.wait.text()]
        for one in effects
    ]  # fmt: skip
