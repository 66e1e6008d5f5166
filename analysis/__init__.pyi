from .metrics import (
    METRICS,
    lateness,
    per_user,
    summarize,
)
from .results import write_results
from .run import Run

__all__ = [
    "METRICS",
    "Run",
    "lateness",
    "per_user",
    "summarize",
    "write_results",
]
