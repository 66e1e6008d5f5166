"""``hpcrowd report`` from the shell: seconds, peak memory and size, for a whole process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_statistics import ROOT, SCRIPT

#: Seconds that a report on a run of each trace may take, and MB that it may have.
TARGETS = {"KTH-SP2-1996-2.1-cln": (15, 3), "CEA-Curie-2011-2.1-cln": (60, 5)}


@pytest.mark.parametrize("trace", TARGETS)
def bench_report(trace_path: Any, figure: Callable[..., None], tmp_path: Path, trace: str) -> None:
    """The report on a replay in a folder."""
    from hpcrowd import read_swf, write_results
    from hpcrowd.scenarios.kinds.replay import replay

    write_results(replay(read_swf(trace_path(trace))), tmp_path / "run", plots=False)
    words = ["report", str(tmp_path / "run"), "-o", str(tmp_path / "report.html")]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(root=str(ROOT)), *words],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    took = time.perf_counter() - began
    longest, largest = TARGETS[trace]
    figure(f"hpcrowd report, {trace}", took, "s", f"<= {longest}")
    memory = float(done.stderr.split()[-1])
    figure(f"hpcrowd report, {trace}, peak memory", memory, "MB", "<= 2000")
    size = (tmp_path / "report.html").stat().st_size / 1e6
    figure(f"hpcrowd report, {trace}, size", size, "MB", f"<= {largest}")
