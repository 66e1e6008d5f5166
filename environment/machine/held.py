"""What a run of a job held, as a scheduler's ledger shows it to checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class HeldShare(Protocol):
    """What a job held on one node, as :class:`~.stock.Share`."""

    @property
    def node(self) -> int:
        """Place among the nodes in the order of their names."""

    @property
    def cores(self) -> int:
        """Cores."""

    @property
    def memory(self) -> int:
        """MB."""

    @property
    def gpus(self) -> tuple[int, ...]:
        """GPUs by type, in the order of the types' names."""


class HeldRun(Protocol):
    """One run of a job in a ledger, as ``schedulers.slurm.queue.Tenure``."""

    @property
    def row(self) -> int:
        """Of the table of jobs."""

    @property
    def submitted(self) -> int:
        """When it was queued for this run, s since the origin."""

    @property
    def eligible(self) -> int:
        """When it could start, s since the origin."""

    @property
    def start(self) -> int:
        """Start, s since the origin."""

    @property
    def end(self) -> int:
        """When it was preempted, s since the origin; -1 if it was not."""

    @property
    def holding(self) -> Sequence[HeldShare]:
        """What it held, node by node."""

    @property
    def partition(self) -> str:
        """Where it ran."""

    @property
    def pauses(self) -> Sequence[tuple[int, int]]:
        """When it was suspended, from and to, s since the origin; -1 if it still is."""
