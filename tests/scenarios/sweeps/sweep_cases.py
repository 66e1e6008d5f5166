"""What the tests of sweeps share: a small busy log, and studies on it."""

from pathlib import Path

import numpy as np
from hpcrowd import write_swf
from hpcrowd.environment.traces.trace import FIELDS, Trace
from hpcrowd.traces import Header

#: Files that are the same however a sweep came to its end.
RESULTS = ("frame.parquet", "frame.csv", "summary.csv", "utilization.png")

SCENARIO = '[scenario]\nkind = "replay"\ntrace = "busy.swf"\nusers = "fluid"\n'

#: Axes and what is reported, in addition to the scenario.
STUDY = """
[axes]
speed = ["1x", "0.7x"]
scheduler = ["easy", "fcfs"]
seed = 5

[result]
metrics = ["utilization", "wait_mean_s"]
"""


def write_busy(
    folder: Path, jobs: int = 250, *, name: str = "busy.swf", gap: int = 1000, size: int = 8
) -> Path:
    """Write a log of six users, jobs ``gap`` s apart, on a machine nearly always in use."""
    random = np.random.default_rng(3)
    submit = np.sort(random.integers(0, max(gap * jobs, 1), jobs))
    run = random.integers(60, 3600, jobs)
    processors = random.integers(1, size, jobs)
    columns = {name: np.full(jobs, -1) for name in FIELDS}
    columns |= {
        "number": np.arange(1, jobs + 1),
        "submit": submit,
        "wait": random.integers(0, 600, jobs),
        "run": run,
        "allocated_processors": processors,
        "requested_time": 3 * run,
        "status": np.ones(jobs, np.int64),
        "user": random.integers(1, 7, jobs),
    }
    path = folder / name
    write_swf(Trace(Header([f"; MaxProcs: {size}".encode()]), columns), path)
    return path


def write_study(folder: Path, text: str = SCENARIO + STUDY, *, name: str = "study.toml") -> Path:
    """Write a study next to the busy log, and the log if it is not there; return its path."""
    if not (folder / "busy.swf").exists():
        write_busy(folder)
    path = folder / name
    path.write_text(text)
    return path


def results(folder: Path) -> dict[str, bytes]:
    """Return the bytes of what a sweep tells."""
    return {name: (folder / name).read_bytes() for name in RESULTS}


def landed(folder: Path) -> dict[str, tuple[int, int]]:
    """Return which runs have landed, each with what would change if it were done again."""
    found = {}
    for path in (folder / "runs").glob("*.parquet"):
        stat = path.stat()
        found[path.name] = (stat.st_ino, stat.st_mtime_ns)
    return found
