"""The queue of a Slurm for those who need more of it than a trace: the state of a cluster."""

from __future__ import annotations

from hpcrowd.environment.traces.formats.slurm.accounting import trace_of_queue
from hpcrowd.environment.traces.formats.slurm.json_records import objects

__all__ = ["objects", "trace_of_queue"]
