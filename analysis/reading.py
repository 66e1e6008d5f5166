"""What was read for a run: the trace that it replays, or the folder that it comes from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.traces.trace import Trace, counted


@dataclass
class Reading:
    """What was read for a run.

    Attributes
    ----------
    trace, rows
        The replayed trace, and the row of each job in it, -1 for generated jobs; None without a
        trace.
    repaired, dropped
        Number of jobs repaired and dropped when the trace was read, by reason.
    size_note
        What the size of the machine is if the trace does not give it; empty if it does, or if the
        run sets its own.
    stored
        The provenance in the folder that the run was read from; None otherwise.
    """

    trace: Trace | None = None
    rows: Int64s | None = None
    repaired: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    size_note: str = ""
    stored: dict[str, Any] | None = None

    @property
    def source(self) -> dict[str, str] | None:
        """Name and SHA-256 checksum of the replayed trace; None for generated users."""
        if self.stored is not None:
            source: dict[str, str] | None = self.stored.get("trace")
            return source
        if self.trace is None:
            return None
        return {"source": Path(self.trace.source).name, "sha256": self.trace.sha256}

    @property
    def counted(self) -> list[str]:
        """What was repaired and dropped, one line each."""
        return counted(self.repaired, self.dropped)

    def made_up(self, jobs: int) -> NDArray[np.bool_]:
        """Return which of the jobs are not in the trace, shape (jobs,)."""
        if self.trace is None or self.rows is None:
            return np.ones(jobs, bool)
        made: NDArray[np.bool_] = self.rows == UNKNOWN
        return made

    def recorded(self, name: str, jobs: int) -> NDArray[Any]:
        """Return a field of the trace for each of the jobs, -1 if it is not in it."""
        made = self.made_up(jobs)
        if self.trace is None or self.rows is None or made.all():
            return np.full(jobs, UNKNOWN)
        values: NDArray[Any] = np.where(made, UNKNOWN, self.trace[name][self.rows])
        return values
