"""Sweeps that are killed: what was done stays, and the end is that of an undisturbed sweep."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hpcrowd.scenarios.sweeps.engines import Dask, Inline, Processes
from hpcrowd.scenarios.sweeps.runs import sweep
from hpcrowd.scenarios.sweeps.study import read_study

from tests.scenarios.sweeps.sweep_cases import SCENARIO, STUDY, landed, results, write_study

needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="no distributed")

#: How often the sweep is killed.
KILLS = 10

#: More seeds than other tests have, so that every kill finds something to disturb.
LONGER = SCENARIO + STUDY.replace("seed = 5", "seed = 22")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a study of 88 runs."""
    return write_study(tmp_path_factory.mktemp("killed"), LONGER)


@pytest.fixture(scope="module")
def undisturbed(study: Path) -> dict[str, bytes]:
    """Return the results of a sweep that nobody disturbs, in one process."""
    sweep(read_study(study), study.parent / "undisturbed", engine=Inline())
    return results(study.parent / "undisturbed")


def begin(study: Path, out: Path, root: Path, workers: int) -> subprocess.Popen[bytes]:
    """Begin a sweep in its own process, or continue with it; errors go to a file next to it."""
    command = [sys.executable, "-W", "error", "-m", "hpcrowd", "sweep", study, "--out", out]
    with out.with_suffix(".err").open("wb") as errors:
        return subprocess.Popen(
            [*map(str, command), "--resume", "--workers", str(workers)],
            env=os.environ | {"PYTHONPATH": str(root / "src")},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


@pytest.mark.endurance
def test_killed_ten_times_the_results_are_the_same(
    study: Path, undisturbed: dict[str, bytes], root: Path, tmp_path: Path
) -> None:
    """A sweep killed at random moments and resumed repeats nothing and ends as if undisturbed."""
    chance = random.Random(7)
    known: dict[str, tuple[int, int]] = {}
    out = tmp_path / "out"
    for _ in range(KILLS):
        process = begin(study, out, root, chance.randint(1, 2))
        goal = len(known) + chance.randint(1, 6)
        deadline = time.monotonic() + 60
        while len(landed(out)) < goal and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(chance.random() * 0.02)
        assert process.poll() is None, out.with_suffix(".err").read_text()
        process.kill()
        process.wait()
        assert not (out / "frame.parquet").exists()
        known = landed(out)
    assert KILLS <= len(known) < 88
    process = begin(study, out, root, 2)
    assert (0, "") == (process.wait(), out.with_suffix(".err").read_text())
    assert undisturbed == results(out)
    finished = landed(out)
    assert 88 == len(finished)
    assert known == {name: finished[name] for name in known}


@pytest.mark.slow
def test_torn_index_is_made_again(study: Path, undisturbed: dict[str, bytes]) -> None:
    """An index that ends in half a line, lacks runs or is gone is made again from their files.

    A run whose file is gone is done again, whatever the index says.
    """
    out = study.parent / "torn"
    sweep(read_study(study), out)
    index = out / "index.jsonl"
    lines = index.read_bytes().splitlines(keepends=True)
    for left in (b"".join(lines[:50]) + lines[50][:40], b"", b"".join(lines) + b"\0\0\0"):
        index.write_bytes(left)
        before = landed(out)
        found = sweep(read_study(study), out, resume=True)
        assert (88, 88, 0) == (found.kept, found.over, found.failed)
        assert before == landed(out)
        assert undisturbed == results(out)
        assert 88 == len(index.read_bytes().splitlines())
    next(iter((out / "runs").glob("*.parquet"))).unlink()
    assert 87 == sweep(read_study(study), out, resume=True).kept
    assert undisturbed == results(out)


class Killer(threading.Thread):
    """Kills one of the workers now and then."""

    def __init__(self, workers: Any, times: int) -> None:
        super().__init__(daemon=True)
        self.workers, self.times, self.killed = workers, times, 0
        self.chance = random.Random(11)

    def run(self) -> None:
        """Kill."""
        while self.killed < self.times:
            time.sleep(0.05 + 0.2 * self.chance.random())
            # They come and go while we look.
            with contextlib.suppress(ProcessLookupError, RuntimeError, IndexError):
                os.kill(self.chance.choice(self.workers()), signal.SIGKILL)
                self.killed += 1


def pids_of(engine: Any) -> list[int]:
    """Return the processes of an engine."""
    if isinstance(engine, Dask):
        return [one.pid for one in engine.cluster.workers.values() if one.pid is not None]
    return list(getattr(engine._executor, "_processes", None) or ())


@pytest.mark.endurance
@pytest.mark.parametrize(
    ("made", "times"), [(Processes, 2), pytest.param(Dask, 3, marks=needs_dask)]
)
def test_workers_may_die(
    study: Path, undisturbed: dict[str, bytes], tmp_path: Path, made: Any, times: int
) -> None:
    """Workers that are killed are replaced, and no run is lost or failed for it."""
    engine = made(2) if made is Processes else made(workers=2)
    killer = Killer(lambda: pids_of(engine), times)
    try:
        found = sweep(read_study(study), tmp_path / "out", engine=engine, progress=_once(killer))
    finally:
        engine.close()
    assert (0, 88) == (found.failed, found.over)
    assert killer.killed > 0
    assert undisturbed == results(tmp_path / "out")


def _once(killer: Killer) -> Any:
    """Return a progress function that starts the killer with the first run."""

    def tell(over: int, total: int, failed: int) -> None:
        if not killer.is_alive() and not killer.killed:
            killer.start()
        time.sleep(0.03)  # a longer sweep, so that there is something to kill

    return tell
