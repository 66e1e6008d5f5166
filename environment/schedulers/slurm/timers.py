"""When the timers of Slurm's controller go off.

Passes over the whole queue come every 60 s, time limits are checked every 30 s, priorities are
computed every few minutes. Backfill cycles come every 30 s; the first submission to an idle
controller, which looks for work every second, sets their rhythm, within that second. None of this
is in a log or a configuration, two runs of one plan differ in it, and a second more or less decides
who gets a node that has just become free. A run with timers drawn at random is one draw of what
Slurm could have done; look at several.
"""

from __future__ import annotations

from typing import NamedTuple

from hpcrowd.environment.engine.kernel.nodes.site import LOOK_EVERY
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.streams import Streams


class Timers(NamedTuple):
    """The phases of the timers of a run."""

    backfill: float  #: s after the origin when the backfill scheduler looks; it did so before, too
    limit_check: int  #: second of the first check of time limits
    calculation: int  #: s until priorities are first computed anew; 0 for a whole period
    full_pass: int  #: s from the first submission to the first pass over the whole queue

    def on(self, machine: Machine) -> Machine:
        """Return a machine whose controller has these timers, but for those that it sets itself."""
        drawn = {
            "backfill_phase": self.backfill,
            "limit_check_phase": self.limit_check,
            "calculation_phase": self.calculation,
            "full_pass_phase": self.full_pass,
        }
        given = machine.scheduling.model_fields_set
        scheduling = machine.scheduling.model_copy(
            update={name: phase for name, phase in drawn.items() if name not in given}
        )
        return machine.model_copy(update={"scheduling": scheduling})


def drawn_timers(machine: Machine, number: int, seed: int = 0) -> Timers:
    """Return the timers of a draw: each is anywhere in its period, all equally likely.

    The settings of the machine are the periods. A draw, by its number from 0, is the same however
    many there are.
    """
    random = Streams(seed).generator("slurm", "phases", number)
    scheduling, priority = machine.scheduling, machine.priority
    backfill = round(random.uniform(0, LOOK_EVERY) - LOOK_EVERY, 3)
    limit_check = int(random.integers(scheduling.time_limit_period))
    calculation = int(random.integers(priority.calculation_period))
    random.random()  # nothing uses it; without it a seed would mean another full pass
    return Timers(
        backfill=backfill,
        limit_check=limit_check,
        calculation=calculation,
        full_pass=int(random.integers(max(scheduling.sched_interval, 1))),
    )
