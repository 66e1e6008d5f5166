"""Peak memory of a run above the interpreter, per job."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

#: Runs a million jobs in a process of its own and prints the growth of its peak, bytes per job.
SCRIPT = """
import gc, sys
sys.path[:0] = [{root!r}, {here!r}]
from hpcrowd import Work, add_users
from bench_engine import COPIES, repeated
from hpcrowd import Simulation, jobs_from_trace, read_swf

def peak(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return 1024 * int(line.split()[1])

def run(jobs):
    work = Work.of(jobs)
    model = Simulation(jobs, 100)
    add_users(model, work, {users!r})
    model.run()

small = jobs_from_trace(read_swf({trace!r})).jobs
run(small.copy())
gc.collect()
before = peak("VmRSS")
many = repeated(small, COPIES)
run(many)
print((peak("VmHWM") - before) / len(many))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("users", ["rigid", "think-time"])
def bench_memory(trace_path: Any, figure: Callable[..., None], users: str) -> None:
    """One million jobs: the table, sessions, graph and engine together."""
    here = Path(__file__).resolve().parent
    trace = str(trace_path("KTH-SP2-1996-2.1-cln"))
    script = SCRIPT.format(root=str(here.parent), here=str(here), users=users, trace=trace)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    figure(f"peak memory, {users}", float(done.stdout), "bytes/job", "<= 400")
