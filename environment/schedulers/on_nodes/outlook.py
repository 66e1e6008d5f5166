"""What users may see of a machine of nodes under a policy that knows only processors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hpcrowd.environment.engine.passes.slurm.book import SlurmBook
from hpcrowd.environment.engine.passes.slurm.snapshot import Snapshot, snapshot_with
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.schedulers.slurm.outlook import SlurmOutlook
from hpcrowd.environment.schedulers.slurm.rules import SiteRules
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.on_nodes.nodes import Nodes


class QueueOutlook(SlurmOutlook):
    """A machine of nodes at one second; a start is the place in a conservative plan.

    That is behind all that wait, each as early as it can without delaying one before it, with
    requested times. No start is foretold for jobs at a limit.
    """

    has_shares = False


def outlook_of(nodes: Nodes, now: int, waiting: Int64s, running: Int64s) -> QueueOutlook:
    """Return what there is to see.

    Parameters
    ----------
    nodes
        The nodes, with what waits and runs; they are not changed.
    now
        The present second.
    waiting, running
        Rows of the jobs that wait and run.
    """
    return QueueOutlook(partial(_plan, nodes, now, waiting, running), nodes.admission, now)


def _plan(nodes: Nodes, now: int, waiting: Int64s, running: Int64s) -> Snapshot:
    """Return a controller that plans the whole queue in the order in which it waits."""
    admission = nodes.admission
    here, runs = set(waiting.tolist()), set(running.tolist())
    if nodes.planner is None:
        rules = SiteRules(_planned(nodes.layout.machine))
        rules.shares = nodes.shares
        nodes.planner = SlurmBook(rules, admission, "slurm", admission.jobs)
    return snapshot_with(
        nodes.planner,
        now,
        [job for row, job in nodes.running.items() if row in runs],
        [job for row, job in nodes.waiting.items() if row in here],
        [admission.accepted(row, now) for row in waiting.tolist() if row not in nodes.waiting],
    )


def _planned(machine: Machine) -> Machine:
    """Return a machine on which a cycle of backfilling plans the whole queue in its order."""
    scheduling = machine.scheduling.model_copy(
        update={
            "bf_window": FOREVER // 4, "bf_max_job_test": FOREVER, "bf_resolution": 1,
            "bf_max_job_user": 0, "bf_max_job_part": 0, "bf_max_job_assoc": 0,
            "bf_max_job_start": 0, "bf_min_age_reserve": 0, "preempt_type": "none",
        }
    )  # fmt: skip
    partitions = [one.model_copy(update={"priority_tier": 1}) for one in machine.partitions]
    basic = machine.priority.model_copy(update={"kind": "basic"})
    return machine.model_copy(
        update={"scheduling": scheduling, "partitions": tuple(partitions), "priority": basic}
    )
