"""``hpcrowd stats`` from the shell: seconds, and peak memory, for a whole process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: Seconds that each trace may take.
TARGETS = {"HPC2N-2002-2.1-cln": 20, "CEA-Curie-2011-2.1-cln": 40}

#: Runs the command line and prints its peak memory, MB, on standard error.
SCRIPT = """
import resource, sys
sys.path.insert(0, {root!r})
from hpcrowd.__main__ import main
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
"""


@pytest.mark.parametrize("report", [False, True], ids=["json", "report"])
@pytest.mark.parametrize("trace", TARGETS)
def bench_stats(
    trace_path: Any, figure: Callable[..., None], tmp_path: Path, trace: str, report: bool
) -> None:
    """All features of a trace, without and with the report."""
    words = ["stats", str(trace_path(trace)), "--json"]
    words += ["--out", str(tmp_path / "report.html")] if report else []
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(root=str(ROOT)), *words],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    took = time.perf_counter() - began
    name = f"hpcrowd stats{' --out' if report else ''}, {trace}"
    figure(name, took, "s", f"<= {TARGETS[trace]}")
    figure(f"{name}, peak memory", float(done.stderr.split()[-1]), "MB", "<= 2000")
