"""Who does the runs makes no difference, nor how many, nor if some are killed."""

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
import warnings
from concurrent.futures import BrokenExecutor, CancelledError, Future, ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hpcrowd import HpcrowdError, read_study, sweep
from hpcrowd.environment.limits.numbers import raise_floating_errors
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.engines import Dask, Engine, Inline, Processes, each_in_processes, engine_of

from tests.scenarios.sweeps.sweep_cases import SCENARIO, STUDY, landed, results, write_study

needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="no distributed")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return the file of a study of 20 runs that keeps jobs."""
    return write_study(tmp_path_factory.mktemp("engines"), f'keep = "jobs"\n{SCENARIO}{STUDY}')


@pytest.fixture(scope="module")
def alone(study):
    """Return the folder of the sweep in this process."""
    sweep(read_study(study), study.parent / "alone", engine=Inline())
    return study.parent / "alone"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workers"),
    [("processes", 1), ("processes", 2), pytest.param("dask", 2, marks=needs_dask)],
)
def test_results_are_the_same_whoever_does_the_runs(study, alone, tmp_path, name, workers):
    """Tables, pictures and the files of every run are the same bytes."""
    engine = engine_of(name, workers=workers)
    try:
        found = sweep(read_study(study), tmp_path / "out", engine=engine)
    finally:
        engine.close()
    assert (20, 0, 0) == (found.over, found.kept, found.failed)
    assert results(alone) == results(tmp_path / "out")
    for kind in ("runs", "jobs"):
        one, other = (
            {path.name: path.read_bytes() for path in (folder / kind).iterdir()}
            for folder in (alone, tmp_path / "out")
        )
        assert 20 == len(one)
        assert one == other


class Late(Inline):
    """Results come only when four tasks are there."""

    def __init__(self):
        super().__init__()
        self.flying: list[tuple[Future[Any], Any, Any]] = []

    def room(self):
        """Four at once."""
        return 4

    def submit(self, function, task):
        """Keep tasks back until four are there."""
        self.flying.append((Future(), function, task))
        assert len(self.flying) <= 4
        future = self.flying[-1][0]
        if len(self.flying) == 4:
            for one, does, what in self.flying:
                one.set_result(does(what))
            self.flying.clear()
        return future


def test_any_executor_will_do(study, alone, tmp_path):
    """Whatever has ``submit`` and returns futures can do the runs, only a few at once."""
    with ThreadPoolExecutor(1) as threads:
        for place, engine in enumerate((Engine(threads), Late())):
            sweep(read_study(study), tmp_path / str(place), engine=engine)
            assert results(alone) == results(tmp_path / str(place))


class Broken(Inline):
    """The fourth run ends in an error of the engine, not of the run, or in Ctrl-C."""

    def __init__(self, error):
        super().__init__()
        self.left, self.error = 3, error

    def submit(self, function, task):
        """Do three tasks, and fail at the fourth."""
        self.left -= 1
        if self.left >= 0:
            return super().submit(function, task)
        if isinstance(self.error, KeyboardInterrupt):
            raise self.error
        future: Future[Any] = Future()
        future.set_exception(self.error)
        return future


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModuleNotFoundError("No module named 'scenarios'"), "workers need the same environment"),
        (CancelledError(), "the cluster has ended, .* continue with --resume"),
        (BrokenExecutor(), "its executor is broken; continue with --resume"),
        (KeyboardInterrupt(), "3 of 20 runs are done and kept .* --resume"),
    ],
)
def test_engine_that_breaks_down_is_reported(study, alone, tmp_path, error, message):
    """Where runs cannot be done at all one line says so; what was done stays."""
    with pytest.raises(HpcrowdError, match=message) as caught:
        sweep(read_study(study), tmp_path / "out", engine=Broken(error))
    code = 130 if isinstance(error, KeyboardInterrupt) else 2
    assert code == getattr(caught.value, "exit_code", 2)
    assert 3 == len(landed(tmp_path / "out"))
    assert 3 == sweep(read_study(study), tmp_path / "out", resume=True).kept
    assert results(alone) == results(tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("slurm", {}, "--executor 'slurm': not known; choose processes, dask, inline"),
        ("inline", {"workers": 2}, "--workers 2: --executor inline has none"),
        ("processes", {"address": "tcp://a:1"}, "is for --executor dask"),
        ("dask", {"address": "tcp://a:1", "workers": 2}, "leave out --workers"),
    ],
)
def test_wrong_engines_are_reported(name, more, message):
    """An engine that is not known, or has no such option, is reported in one line."""
    with pytest.raises(QuantityError, match=message):
        engine_of(name, **more)


@needs_dask
def test_missing_dask_is_reported(monkeypatch):
    """Where no scheduler answers its address is named; without the library its extra is."""
    monkeypatch.setattr("hpcrowd.scenarios.engines.PATIENCE", "100ms")
    with pytest.raises(HpcrowdError, match=r"--address tcp://127\.0\.0\.1:9: no Dask scheduler"):
        engine_of("dask", address="tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(HpcrowdError, match=r"distributed is not installed; .*hpcrowd\[dask\]"):
        engine_of("dask")


def million_over(number):
    """Return a million divided by a number, as numpy does."""
    return float(np.float64(1e6) / np.float64(number))


@pytest.mark.slow
def test_floating_errors_raise_in_workers_too():
    """A division by zero is an error in a worker if it is in the process that began it."""
    engine = Processes(1)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        raise_floating_errors()
        try:
            with pytest.raises(RuntimeWarning, match="divide by zero"):
                engine.submit(million_over, 0.0).result(60)
        finally:
            engine.close()


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """Return the file of a study of 88 runs, and its results if nobody disturbs it."""
    text = SCENARIO + STUDY.replace("seed = 5", "seed = 22")
    path = write_study(tmp_path_factory.mktemp("killed"), text)
    sweep(read_study(path), path.parent / "undisturbed", engine=Inline())
    return path, results(path.parent / "undisturbed")


def test_torn_index_is_made_again(study, alone, tmp_path):
    """An index that ends in half a line, lacks runs or is gone is made again from their files."""
    out = shutil.copytree(alone, tmp_path / "torn")
    index = out / "index.jsonl"
    lines = index.read_bytes().splitlines(keepends=True)
    for left in (b"".join(lines[:4]) + lines[4][:40], b"", b"".join(lines) + b"\0\0\0"):
        index.write_bytes(left)
        before = landed(out)
        found = sweep(read_study(study), out, resume=True)
        assert (20, 20, 0) == (found.kept, found.over, found.failed)
        assert (before, results(alone)) == (landed(out), results(out))
        assert 20 == len(index.read_bytes().splitlines())
    next(iter((out / "runs").glob("*.parquet"))).unlink()
    assert 19 == sweep(read_study(study), out, resume=True).kept
    assert results(alone) == results(out)


def pids_of(engine):
    """Return the processes of an engine."""
    if isinstance(engine, Dask):
        return [one.pid for one in engine.cluster.workers.values() if one.pid is not None]
    return list(getattr(engine._executor, "_processes", None) or ())


@pytest.mark.endurance
@pytest.mark.parametrize(
    ("made", "times"), [(Processes, 2), pytest.param(Dask, 3, marks=needs_dask)]
)
def test_workers_may_die(longer, tmp_path, made, times):
    """Workers that are killed now and then are replaced; no run is lost or failed for it."""
    engine = made(workers=2)
    chance, killed = random.Random(11), []

    def tell(over, total, failed):
        time.sleep(0.03)  # a longer sweep, so that there is something to kill
        if len(killed) < times and chance.random() < 0.2:
            # They come and go while we look.
            with contextlib.suppress(ProcessLookupError, RuntimeError, IndexError):
                os.kill(chance.choice(pids_of(engine)), signal.SIGKILL)
                killed.append(over)

    try:
        found = sweep(read_study(longer[0]), tmp_path / "out", engine=engine, progress=tell)
    finally:
        engine.close()
    assert (0, 88) == (found.failed, found.over)
    assert killed
    assert longer[1] == results(tmp_path / "out")


def divided(by):
    """Return 12 over a number, rounded down."""
    if by == 0:
        raise QuantityError("by 0: must not be 0")
    return 12 // by


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2, 9])
def test_every_task_is_done_once(processes):
    """However many share it, each task comes with its result, and errors come as they are."""
    found = dict(each_in_processes(divided, [1, 2, 3, 4], processes))
    assert {1: 12, 2: 6, 3: 4, 4: 3} == found
    assert [] == list(each_in_processes(divided, [], processes))
    with pytest.raises(QuantityError, match="by 0: must not be 0"):
        list(each_in_processes(divided, [1, 0, 2], processes))
    assert [] == multiprocessing.active_children()


def end_process(task):
    """Return the task; 0 kills the process, as a lack of memory does."""
    if task == 0:
        os._exit(1)
    return task


@pytest.mark.slow
def test_a_killed_process_is_named():
    """A task that kills its process again and again ends the loop instead of making it wait."""
    with pytest.raises(HpcrowdError, match="0: its process died 3 times"):
        list(each_in_processes(end_process, [1, 0, 2], 2))
    assert [] == multiprocessing.active_children()
    results = each_in_processes(divided, list(range(1, 100)), 2)
    next(results)
    with pytest.raises(KeyboardInterrupt):
        results.throw(KeyboardInterrupt)
    assert [] == multiprocessing.active_children()
