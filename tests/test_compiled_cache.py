"""Compiled code is kept, and thrown away when any of its sources changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: Runs two jobs and prints how often numba compiled and found the loop, and the jobs' starts.
SCRIPT = """
import numpy as np
from hpcrowd.environment.engine.kernel.cache import is_compiled
from hpcrowd.environment import JobTable
before = is_compiled()
from hpcrowd.environment.engine.compiled import CompiledEngine
from hpcrowd.environment.engine.kernel import loop
kept = is_compiled()
jobs = JobTable(2)
jobs.processors[:] = jobs.run_time[:] = jobs.requested_time[:] = 1
engine = CompiledEngine(jobs, 1, "easy")
engine.submit(np.arange(2), 0)
engine.advance()
print(before, kept, is_compiled(), sum(loop.advance.stats.cache_hits.values()), *jobs.start)
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, whose sources a test may change."""
    source = ROOT / "src" / "hpcrowd"
    shutil.copytree(source, tmp_path / "hpcrowd", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(folder: Path) -> list[str]:
    """Run the script on the copy in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_code_is_compiled_once(copy: Path) -> None:
    """The first process compiles, the second finds the code."""
    assert ["False", "False", "True", "0", "0", "1"] == run(copy)
    assert ["True", "True", "True", "1", "0", "1"] == run(copy)


@pytest.mark.parametrize("source", ["engine/kernel/heap.py", "engine/kernel/places.py", "jobs.py"])
def test_changed_sources_are_compiled_anew(copy: Path, source: str) -> None:
    """A change in a file that the loop only calls into counts too, which numba would not see."""
    run(copy)
    path = copy / "hpcrowd" / "environment" / source
    later = time.time() + 3600
    os.utime(path, (later, later))
    assert ["True", "False", "True", "0", "0", "1"] == run(copy)


def test_removed_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that another process throws away at the same time is no error."""
    from hpcrowd.environment.engine.kernel import cache

    gone = [tmp_path / "loop.advance-1.py312.nbi"]
    monkeypatch.setattr(cache, "_indexes", lambda: gone)
    cache.drop_stale()
    assert not gone[0].exists()
