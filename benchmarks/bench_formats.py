"""Reading and writing formats of traces: seconds, and peak memory of a process that reads."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcrowd.formats import Losses, generate_sacct

ROOT = Path(__file__).resolve().parent.parent

#: Rows of the accounting that is read.
ROWS = 1_000_000

#: Columns of it: those that are used and others that people ask for.
COLUMNS = (
    *("JobID", "JobIDRaw", "User", "UID", "Account", "Group", "GID", "JobName", "Partition"),
    *("QOS", "Cluster", "Submit", "Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "State"),
    *("AllocCPUS", "ReqCPUS", "NNodes", "Timelimit", "TimelimitRaw", "ReqMem", "MaxRSS"),
    *("AveRSS", "TotalCPU", "ExitCode"),
)

STATES = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1234", "OUT_OF_MEMORY")

#: Reads a trace and prints jobs, seconds and the peak of memory, MB.
SCRIPT = """
import sys, time
sys.path.insert(0, {root!r})
from hpcrowd import read_trace
from hpcrowd.formats import FormatOptions
began = time.perf_counter()
trace = read_trace({path!r}, options=FormatOptions(zone={zone!r}))
took = time.perf_counter() - began
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(len(trace), took, int(peak.split()[1]) / 1024)
"""


def accounting(jobs: int, steps: int) -> Iterator[str]:
    """Yield the lines of made-up accounting: jobs, and after each of them so many steps."""
    rng = np.random.default_rng(1)
    submit = 1704067200 + np.cumsum(rng.integers(0, 60, jobs))
    run = rng.integers(0, 86400, jobs)
    start = submit + rng.integers(0, 20000, jobs)
    texts = [
        np.datetime_as_string(moment.astype("datetime64[s]")).tolist()
        for moment in (submit, start, start + run)
    ]
    clock = np.datetime_as_string(run.astype("datetime64[s]")).tolist()  # the time of day
    cpus = 2 ** rng.integers(0, 8, jobs)
    states, users = rng.integers(0, len(STATES), jobs), rng.integers(0, 800, jobs)
    names, sizes = rng.integers(0, 20000, jobs), rng.integers(1000, 30_000_000, (jobs, 3))
    told = zip(*texts, clock, *(column.tolist() for column in (run, cpus, states, users, names)),
               sizes.tolist(), strict=True)  # fmt: skip
    yield f"{'|'.join(COLUMNS)}\n"
    for job, (a, b, c, time_of_day, took, cpu, state, user, name, size) in enumerate(told, 1):
        elapsed = time_of_day[11:]
        yield (
            f"{job}|{job}|user{user}|{10000 + user}|project{user % 90}|staff|50|job_{name}.sh|"
            f"part{user % 7}|normal|hal|{a}|{a}|{b}|{c}|{elapsed}|{took}|{STATES[state]}|{cpu}|"
            f"{cpu}|{cpu // 32 + 1}|1-00:00:00|1440|{cpu * 4}G|||{elapsed}.{took % 1000:03}|0:0\n"
        )
        for step, called in enumerate(("batch", "extern", "0")[:steps]):
            yield (
                f"{job}.{called}|{job}.{called}|||project{user % 90}|||{called}|||hal|{b}|{b}|{b}|"
                f"{c}|{elapsed}|{took}|COMPLETED|{cpu}|{cpu}|1||||{size[step]}K|{size[step]}K|"
                f"{elapsed}|0:0\n"
            )


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def bench_sacct_read(
    tmp_path: Path, figure: Callable[..., None], steps: int, zone: str | None
) -> None:
    """A million rows of 28 columns: jobs alone, and jobs with three steps each."""
    path = tmp_path / "jobs.txt"
    jobs = ROWS // (steps + 1)
    with path.open("w") as file:
        file.writelines(accounting(jobs, steps))
    script = SCRIPT.format(root=str(ROOT), path=str(path), zone=zone)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    count, took, peak = done.stdout.split()
    assert jobs == int(count)
    name = f"sacct, {ROWS:,} rows, {steps} steps a job, {zone or 'no zone'}"
    figure(name, float(took), "s", "<= 8")
    figure(f"{name}, peak memory", float(peak), "MB", "<= 1500")


def bench_sacct_written(load: Any, figure: Callable[..., None]) -> None:
    """HPC2N as accounting, without and with what is lost, which is found by reading it back."""
    trace, _ = load("HPC2N-2002-2.2-cln")
    for what, lost in (("written", None), ("written, losses counted", Losses())):
        began = time.perf_counter()
        generate_sacct(trace, lost)
        figure(f"sacct, HPC2N (202,871 jobs), {what}", time.perf_counter() - began, "s", "<= 10")
