"""Compiled code is kept, and thrown away when any of its sources changes."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hpcrowd.environment import compilation
from hpcrowd.environment.compilation import SOURCES

ROOT = Path(__file__).resolve().parents[1]

#: Runs two jobs and prints whether the loop was compiled before and after it was imported and at
#: the end, how often numba found it, and the jobs' starts.
SCRIPT = """
import numpy as np
from hpcrowd.environment.compilation import is_compiled
from hpcrowd.environment import JobTable
from hpcrowd.environment.engine.kernel import loop
before = is_compiled(loop.advance)
from hpcrowd.environment.engine.compiled import CompiledEngine
kept = is_compiled(loop.advance)
jobs = JobTable(2)
jobs.processors[:] = jobs.run_time[:] = jobs.requested_time[:] = 1
engine = CompiledEngine(jobs, 1, "easy")
engine.submit(np.arange(2), 0)
engine.advance()
found = sum(loop.advance.stats.cache_hits.values())
print(before, kept, is_compiled(loop.advance), found, *jobs.start)
"""

#: The same of the predictors, whose compiled code is in another folder.
PREDICTORS = """
import numpy as np
from hpcrowd.environment.compilation import is_compiled
from hpcrowd.environment import JobTable
from hpcrowd.environment.schedulers.predictors.kernel.prediction import meet_all
before = is_compiled(meet_all)
from hpcrowd.environment.schedulers.predictors.last_two import LastTwo
kept = is_compiled(meet_all)
predictor = LastTwo()
predictor.begin(JobTable(2))
predictor.arrived(np.arange(2), 0)
print(before, kept, is_compiled(meet_all), sum(meet_all.stats.cache_hits.values()))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, whose sources a test may change."""
    package = tmp_path / "hpcrowd"
    shutil.copytree(
        ROOT / "src/hpcrowd", package, ignore=shutil.ignore_patterns("__pycache__"), symlinks=False
    )
    return tmp_path


def run(folder: Path, script: str = SCRIPT) -> list[str]:
    """Run a script on the copy in its own process."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.slow
def test_code_is_compiled_once(copy: Path) -> None:
    """The first process compiles, the second finds the code."""
    assert ["False", "False", "True", "0", "0", "1"] == run(copy)
    assert ["True", "True", "True", "1", "0", "1"] == run(copy)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["engine/kernel/heap.py", "engine/kernel/places.py", "jobs.py"])
def test_changed_sources_are_compiled_again(copy: Path, source: str) -> None:
    """A change in a file that the loop only calls into counts too, which numba would not see."""
    run(copy)
    change(copy, source)
    assert ["True", "False", "True", "0", "0", "1"] == run(copy)


@pytest.mark.slow
def test_predictors_are_compiled_again(copy: Path) -> None:
    """A change counts for the compiled code in other folders as well."""
    assert ["False", "False", "True", "0"] == run(copy, PREDICTORS)
    assert ["True", "True", "True", "1"] == run(copy, PREDICTORS)
    change(copy, "schedulers/predictors/kernel/experience.py")
    assert ["True", "False", "True", "0"] == run(copy, PREDICTORS)


def change(folder: Path, source: str) -> None:
    """Let a file be newer than everything else."""
    later = time.time() + 3600
    os.utime(folder / "hpcrowd/environment" / source, (later, later))


def test_all_sources_count() -> None:
    """What compiled code imports is among the sources of which a change is noticed."""
    imported = set()
    for path in (ROOT / "environment").glob("**/kernel/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hpcrowd"):
                base = (node.module or "").removeprefix("hpcrowd.environment.").replace(".", "/")
                names = [f"{base}/{alias.name}.py" for alias in node.names]
                modules = [name for name in names if (ROOT / "environment" / name).exists()]
                imported.update(modules or [f"{base}.py"])
    assert set(SOURCES) == {name for name in imported if "/kernel/" not in name}


def test_removed_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that another process throws away at the same time is not an error."""
    gone = [tmp_path / "loop.advance-1.py312.nbi"]
    monkeypatch.setattr(compilation, "_indexes", lambda function: gone)
    compilation.drop_stale(None)
    assert not gone[0].exists()
