"""A sweep of 1,000 runs of KTH on two processes: time, and memory that does not grow with it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]

STUDY = """
[scenario]
kind = "replay"
trace = "{trace}"
users = "rigid"
scheduler = "easy"

[axes]
speed = ["1x", "0.8x", "0.85x", "0.9x", "0.95x", "1.05x", "1.1x", "1.15x", "1.2x", "1.25x"]
seed = {seeds}
"""


def peak(pid: int) -> int:
    """Return the most memory that a process has had, kB; 0 if it has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def children(pid: int) -> list[int]:
    """Return the processes that a process, any of its threads, began."""
    try:
        texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(one) for text in texts for one in text.split()]


def swept(study: Path, out: Path, executor: str) -> tuple[float, float, float, float]:
    """Sweep; return s, s of processor time, MB of the first process and of the largest worker."""
    command = [sys.executable, "-m", "hpcrowd", "sweep", study, "--out", out, "--workers", "2"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(
        [*map(str, command), "--executor", executor],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
    )
    first = workers = 0
    while process.poll() is None:
        first = max(first, peak(process.pid))
        workers = max([workers, *map(peak, children(process.pid))])
        time.sleep(0.05)
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ended - began, used, first / 1024, workers / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("executor", ["processes", "dask"])
def bench_sweep(
    trace_path: Any, figure: Callable[..., None], tmp_path: Path, executor: str
) -> None:
    """Rigid users, EASY, ten speeds and a hundred seeds, against ten seeds."""
    if executor == "dask":
        pytest.importorskip("distributed")
    trace = trace_path("KTH-SP2-1996-2.1-cln")
    found = {}
    for runs in (100, 1000):
        study = tmp_path / f"{runs}.toml"
        study.write_text(STUDY.format(trace=trace, seeds=runs // 10))
        found[runs] = swept(study, tmp_path / str(runs), executor)
    for runs, (wall, used, first, worker) in found.items():
        name = f"sweep of {runs:,} KTH runs, {executor}"
        figure(name, wall, "s", "<= 180" if runs == 1000 else "")
        figure(f"{name}, processor time", used, "s", "<= 360" if runs == 1000 else "")
        figure(f"{name}, peak memory, first process", first, "MB")
        figure(f"{name}, peak memory, largest worker", worker, "MB")
    for place, who in ((2, "first process"), (3, "largest worker")):
        ratio = found[1000][place] / found[100][place]
        figure(f"1,000 / 100 runs, {executor}, memory, {who}", ratio, "times", "<= 1.10")
