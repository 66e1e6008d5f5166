"""What is known when a simulation begins in the middle: jobs, their places, and Slurm's rhythm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hpcrowd.environment.jobs import UNKNOWN, Int64s


class Placed(NamedTuple):
    """What is known of a job on a machine of nodes, beyond the table; all of it may be unknown."""

    #: name of the partition that it runs in; empty for the first of its own in which it fits
    partition: str = ""
    #: names of the nodes that it runs on; empty if the rule of placement is to choose
    nodes: tuple[str, ...] = ()
    #: exactly what it holds (or held, if it is over), which goes before ``nodes``: a
    #: ``machine.selection.Holding``
    holding: tuple[Any, ...] = ()
    #: s since the origin; when it could start at the earliest, -1 for its submission or begin time
    eligible: int = UNKNOWN
    #: why it waits, in Slurm's words
    reason: str = ""


class Phases(NamedTuple):
    """When Slurm's controller did what last, and when it is to do it next; s since the origin."""

    #: until when usage and priorities have been computed
    calculated: int
    #: the last pass of the main scheduler, and the next one over the whole queue (-1: not known)
    last_main: int
    next_full: int
    #: the second of the last pass if that was over the whole queue, else -1
    looked_at_all: int
    #: the last cycle of backfilling, and when the next one may come
    last_backfill: int
    next_backfill: float
    #: the last change of a job or node
    changed: int
    #: whether the last cycle marked nodes as planned
    planned: bool = False
    #: whether a pass of the main scheduler is wanted, and wanted at once
    wanted: bool = True
    urgent: bool = False


class Past(NamedTuple):
    """The state that a simulation goes on from; the simulated columns of the table are filled."""

    now: int  #: s since the origin
    running: Int64s  #: rows of the running jobs, in the order of their starts
    waiting: Int64s  #: rows of the waiting jobs, by submission
    over: Int64s  #: rows of the jobs that ran, by end
    placed: Mapping[int, Placed]  #: what is known of jobs on a machine of nodes, by row
    phases: Phases | None = None  #: of Slurm's controller; None if they are not known
