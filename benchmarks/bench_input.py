"""Reading a trace, finding sessions and their dependencies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpcrowd import SessionDefinition, find_sessions, read_swf
from hpcrowd.graphs import find_dependencies

HPC2N = "HPC2N-2002-2.2-cln"


def bench_read(benchmark: Any, trace_path: Any, figure: Callable[..., None]) -> None:
    """Read 202,871 jobs, gzipped."""
    benchmark.pedantic(read_swf, args=(trace_path(HPC2N),), rounds=5, warmup_rounds=1)
    figure("read HPC2N (202,871 jobs)", float(benchmark.stats.stats.median), "s", "<= 1")


def bench_dependencies(benchmark: Any, load: Any, figure: Callable[..., None]) -> None:
    """Sessions of one job each and their 9.7 million dependencies."""
    jobs = load(HPC2N)[1].copy()
    definition = SessionDefinition.parse("arrival:job")
    benchmark.pedantic(
        lambda: find_dependencies(find_sessions(jobs, definition)), rounds=5, warmup_rounds=1
    )
    figure("HPC2N, one-job sessions and graph", float(benchmark.stats.stats.median), "s", "<= 5")
