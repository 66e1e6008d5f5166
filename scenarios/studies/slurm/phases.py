"""What nobody can know of a run of Slurm: where in their rhythms the controller's clocks were.

Passes over the whole queue come every 60 s, time limits are checked every 30 s, priorities are
computed every few minutes, and a submission reaches the controller at some moment while sbatch
runs. Backfill cycles come every 30 s; the first submission to an idle controller, which looks for
work every second, sets their rhythm, within that second. None of this is in a plan or a
configuration, two runs of one plan differ in it, and a second more or less
decides who gets a node that has just become free. A simulated run with phases drawn at random is
one draw of what Slurm could have done; the study looks at several.
"""

from __future__ import annotations

from typing import NamedTuple

from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.schedulers.slurm.timing import LOOK_EVERY
from hpcrowd.environment.streams import Streams
from hpcrowd.scenarios.studies.slurm.workload import ARRIVED

#: Half the width of the range around :data:`ARRIVED` in which a submission arrives.
AROUND = 1 - ARRIVED


class Phases(NamedTuple):
    """The phases of a run."""

    backfill: float  #: s before the first look of the backfill scheduler
    limit_check: int  #: second of the first check of time limits
    calculation: int  #: s until priorities are first computed anew; 0 for a whole period
    arrived: float  #: share of the time that sbatch takes until the controller has a job
    full_pass: int  #: s from the first submission to the first pass over the whole queue

    def on(self, machine: Machine) -> Machine:
        """Return a machine whose controller has these phases."""
        scheduling = machine.scheduling.model_copy(
            update={
                "backfill_phase": self.backfill,
                "limit_check_phase": self.limit_check,
                "calculation_phase": self.calculation,
                "full_pass_phase": self.full_pass,
            }
        )
        return machine.model_copy(update={"scheduling": scheduling})


def drawn_phases(machine: Machine, number: int, seed: int = 0) -> Phases:
    """Return the phases of a draw: each is anywhere in its period, all equally likely.

    Parameters
    ----------
    machine
        Its settings are the periods.
    number
        The number of the draw, from 0; a draw is the same however many there are.
    seed
        Seed of the study.
    """
    random = Streams(seed).generator("slurm", "phases", number)
    scheduling, priority = machine.scheduling, machine.priority
    return Phases(
        backfill=round(random.uniform(0, LOOK_EVERY), 3),
        limit_check=int(random.integers(scheduling.time_limit_period)),
        calculation=int(random.integers(priority.calculation_period)),
        arrived=round(random.uniform(ARRIVED - AROUND, ARRIVED + AROUND), 3),
        full_pass=int(random.integers(max(scheduling.sched_interval, 1))),
    )
