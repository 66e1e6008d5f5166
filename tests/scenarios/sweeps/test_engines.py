"""Who does the runs makes no difference, nor how many; sweeps take any executor."""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import BrokenExecutor, CancelledError, Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.limits.numbers import raise_floating_errors
from hpcrowd.scenarios.sweeps.engines import Engine, Inline, Processes, engine_of
from hpcrowd.scenarios.sweeps.runs import sweep
from hpcrowd.scenarios.sweeps.study import read_study

from tests.scenarios.sweeps.sweep_cases import landed, results, write_study

needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="no distributed")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a study of 20 runs that keeps jobs."""
    folder = tmp_path_factory.mktemp("engines")
    path = write_study(folder)
    path.write_text('keep = "jobs"\n' + path.read_text())
    return path


@pytest.fixture(scope="module")
def alone(study: Path) -> Path:
    """Return the folder of the sweep in this process."""
    sweep(read_study(study), study.parent / "alone", engine=Inline())
    return study.parent / "alone"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workers"),
    [("processes", 1), ("processes", 2), pytest.param("dask", 2, marks=needs_dask)],
)
def test_results_are_the_same_whoever_does_the_runs(
    study: Path, alone: Path, tmp_path: Path, name: str, workers: int
) -> None:
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


class Counting(Inline):
    """Counts futures that are not finished: results come only when room is full."""

    def __init__(self) -> None:
        super().__init__()
        self.flying: list[tuple[Future[Any], Any, Any]] = []
        self.most = 0

    def room(self) -> int:
        """Four at once."""
        return 4

    def submit(self, function: Any, task: Any) -> Future[Any]:
        """Keep tasks back until four are there, or it is the last."""
        future: Future[Any] = Future()
        self.flying.append((future, function, task))
        self.most = max(self.most, len(self.flying))
        if len(self.flying) == 4:
            for one, does, what in self.flying:
                one.set_result(does(what))
            self.flying.clear()
        return future


def test_any_executor_will_do(study: Path, alone: Path, tmp_path: Path) -> None:
    """Whatever has ``submit`` and returns futures can do the runs, only a few at once."""
    counting = Counting()
    with ThreadPoolExecutor(1) as threads:
        for place, engine in enumerate((Engine(threads), counting)):
            sweep(read_study(study), tmp_path / str(place), engine=engine)
            assert results(alone) == results(tmp_path / str(place))
    assert 4 == counting.most


class Broken(Inline):
    """The fourth run ends in an error of the engine, not of the run, or in Ctrl-C."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.left, self.error = 3, error

    def submit(self, function: Any, task: Any) -> Future[Any]:
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
def test_engine_that_breaks_down_is_reported(
    study: Path, alone: Path, tmp_path: Path, error: BaseException, message: str
) -> None:
    """Where runs cannot be done at all one line says so; what was done stays."""
    with pytest.raises(HpcrowdError, match=message) as caught:
        sweep(read_study(study), tmp_path / "out", engine=Broken(error))
    assert isinstance(error, KeyboardInterrupt) == (caught.value.exit_code == 130)
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
def test_wrong_engines_are_reported(name: str, more: dict[str, Any], message: str) -> None:
    """An engine that is not known, or has no such option, is reported in one line."""
    with pytest.raises(QuantityError, match=message):
        engine_of(name, **more)


@needs_dask
def test_missing_dask_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no scheduler answers its address is named; without the library its extra is."""
    monkeypatch.setattr("hpcrowd.scenarios.sweeps.engines.PATIENCE", "100ms")
    with pytest.raises(HpcrowdError, match=r"--address tcp://127\.0\.0\.1:9: no Dask scheduler"):
        engine_of("dask", address="tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(HpcrowdError, match=r"distributed is not installed; .*hpcrowd\[dask\]"):
        engine_of("dask")


def divided(number: float) -> float:
    """Return a million divided by a number, as numpy does."""
    return float(np.float64(1e6) / np.float64(number))


@pytest.mark.slow
def test_floating_errors_raise_in_workers_too() -> None:
    """A division by zero is an error in a worker if it is in the process that began it."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        raise_floating_errors()
        engine = Processes(1)
        try:
            with pytest.raises(RuntimeWarning, match="divide by zero"):
                engine.submit(divided, 0.0).result(60)
        finally:
            engine.close()
