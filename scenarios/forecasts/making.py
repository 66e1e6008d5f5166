"""Futures on all cores, on a Dask cluster, and kept in a folder so that none is made twice.

``FOLDER/KEY-0000-SUM.npz`` holds a few futures, see :mod:`hpcrowd.scenarios.unfinished`.
"""

from __future__ import annotations

import io
import pickle
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hpcrowd import __version__
from hpcrowd.analysis.forecast.futures import Future, Outset
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.limits.numbers import MOST_RUNS, check_within
from hpcrowd.scenarios.engines import Engine, Inline, Processes, WorkerDied, cores, each_of
from hpcrowd.scenarios.sweeps.worker import read_shared, write_shared
from hpcrowd.scenarios.unfinished import DIGITS, keep_file, kept_files

#: Futures of one task.
TOGETHER = 5

#: Futures below which one process does everything: others need some seconds to begin.
FEW = 20

#: The outset that this process works on, by its file.
_known: dict[str, Outset] = {}


class Task(NamedTuple):
    """A few futures to make."""

    path: str  #: file of the outset, for :func:`read_shared`
    numbers: tuple[int, ...]
    seed: int


def make_futures(
    outset: Outset,
    count: int,
    seed: int = 0,
    *,
    engine: Engine | None = None,
    folder: Path | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> list[Future]:
    """Return the futures 0 to ``count - 1`` of an outset, in order.

    They are the same on one core and on many, and whatever other futures are made.

    Parameters
    ----------
    outset
        What they have in common.
    count
        How many.
    seed
        Of all of them.
    engine
        What makes them; that of :func:`usual_engine` unless given.
    folder
        Where they are kept, and taken from if they are there.
    progress
        Called with futures done, and all.

    Raises
    ------
    HpcrowdError
        If one cannot be made.
    """
    check_within("futures", count, 1, MOST_RUNS)
    found: dict[int, Future] = {}
    key = key_of(outset, seed) if folder is not None else ""
    if folder is not None:
        found = {one.number: one for one in _kept(folder, key) if one.number < count}
    missing = [number for number in range(count) if number not in found]
    tasks = [tuple(missing[i : i + TOGETHER]) for i in range(0, len(missing), TOGETHER)]
    if progress is not None:
        progress(len(found), count)
    if not tasks:
        return [found[number] for number in range(count)]
    with ExitStack() as stack:
        if engine is None:
            engine = usual_engine(len(missing))
            stack.callback(engine.close)
        if isinstance(engine, Inline):
            path = ""
            _known[path] = outset
            stack.callback(_known.clear)
        else:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hpcrowd-")))
            path = str(place / "outset")
            write_shared(outset, Path(path))
        for task, result in each_of(engine, make, [Task(path, one, seed) for one in tasks]):
            if isinstance(result, WorkerDied):
                raise HpcrowdError(
                    f"future {task.numbers[0]}: its process died {result.times} times; is there "
                    "enough memory?"
                )
            if folder is not None:
                _keep(folder, key, result)
            found |= {one.number: one for one in result}
            if progress is not None:
                progress(len(found), count)
    return [found[number] for number in range(count)]


def usual_engine(count: int) -> Engine:
    """Return what makes futures: a few are made sooner here than other processes begin."""
    return Inline() if count < FEW or cores() == 1 else Processes()


def make(task: Task) -> list[Future]:
    """Return the futures of a task."""
    if task.path not in _known:
        _known.clear()
        _known[task.path] = read_shared(Path(task.path))
    outset = _known[task.path]
    return [outset.simulate(number, task.seed) for number in task.numbers]


def key_of(outset: Outset, seed: int) -> str:
    """Return the checksum of everything that futures depend on.

    Raises
    ------
    QuantityError
        If a policy or predictor of your own cannot be distinguished from others.
    """
    digest = sha256(f"{__version__} {seed}".encode())
    state = outset.state
    jobs = state.jobs
    digest.update(np.ascontiguousarray(jobs.matrix[:, : len(jobs)]))
    digest.update(repr([(name, sorted(of.items())) for name, of in jobs.names.items()]).encode())
    if jobs.requests is not None:
        digest.update(np.ascontiguousarray(jobs.requests.matrix))
        digest.update(repr(jobs.requests.words).encode())
    for one in fields(outset):
        value = getattr(outset, one.name)
        if one.name == "state":
            value = (state.now, state.clock, state.processors, state.down, state.closed,
                     sorted(state.held.items()), sorted(state.placed.items()))  # fmt: skip
        elif one.name == "model":
            value = None if value is None else value.provenance
        elif one.name == "machine":
            value = None if value is None else value.model_dump_json()
        elif one.name in ("scheduler", "estimates") and not isinstance(value, str):
            try:
                value = sha256(pickle.dumps(value)).hexdigest()
            except Exception:  # noqa: BLE001 - whatever your own class raises
                raise QuantityError(
                    f"{one.name} {value}: cannot be kept with --keep; leave that out"
                ) from None
        digest.update(f"\0{one.name}\0{value!r}".encode())
    return digest.hexdigest()[:DIGITS]


def _keep(folder: Path, key: str, futures: Sequence[Future]) -> None:
    """Write futures into a file that is complete or absent."""
    arrays = {
        f"{one.number}-{name.name}": getattr(one, name.name)
        for one in futures
        for name in fields(one)
        if name.name != "number"
    }
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    keep_file(folder, key, f"{futures[0].number:04}", packed.getvalue(), ".npz")


def _kept(folder: Path, key: str) -> list[Future]:
    """Return the futures that a folder keeps; damaged files are made again."""
    found = []
    for _, content in kept_files(folder, key, ".npz"):
        by_number: dict[int, dict[str, Any]] = {}
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            for name in arrays.files:
                number, _, column = name.partition("-")
                by_number.setdefault(int(number), {})[column] = arrays[name]
        found += [Future(number, **one) for number, one in by_number.items()]
    return found
