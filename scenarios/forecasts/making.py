"""Futures and judgements on all cores; futures also on a Dask cluster.

Futures can be kept in a folder, so that none is made twice: ``FOLDER/KEY-0000-SUM.npz`` holds a
few futures, see :mod:`hpcrowd.scenarios.unfinished`.
"""

from __future__ import annotations

import io
import pickle
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcrowd import __version__
from hpcrowd.analysis.forecast.futures import Future, Outset
from hpcrowd.analysis.forecast.judge import Case, Subject, case_at, hindcast_at, in_order
from hpcrowd.analysis.forecast.site_bounds import SiteBounds
from hpcrowd.environment.clock import HOUR, WEEK
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.limits.numbers import MOST_RUNS, check_within
from hpcrowd.scenarios.engines import (
    Engine,
    Inline,
    Processes,
    WorkerDied,
    cores,
    each_in_processes,
    each_of,
)
from hpcrowd.scenarios.sweeps.worker import read_shared, write_shared
from hpcrowd.scenarios.unfinished import DIGITS, keep_file, kept_files

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console

    from hpcrowd.analysis.forecast.verdict import Verdict

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

    They are the same on one core and on many, and whatever other futures are made. The engine is
    that of :func:`usual_engine` unless given; the folder keeps futures, and those that are there
    are taken from it; ``progress`` is called with futures done, and all. An HpcrowdError is raised
    if one cannot be made.
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
            engine.reads = outset
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

    A QuantityError is raised if a policy or predictor of your own cannot be distinguished from
    others.
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


# ---- judgements of a log, hindcasts of the past of a state ---------------------------------------

#: Most moments of a judgement, and of hindcasts.
MOST_MOMENTS = 10_000

#: Moments that corrections learn from first (our choice).
WARM_UP = 80

#: Shortest log that is judged, s: three weeks of past, and a week to foresee.
SHORTEST = 6 * WEEK

#: Weeks before now from which hindcasts are made.
BACK = 8

#: Begin of a record without hindcasts: at most, s, and as a share of it. Too little of the past is
#: known there (our choice).
BLIND, BLIND_SHARE = 2 * HOUR, 1 / 12

#: Hindcasts below which one process does everything.
FEW_HINDCASTS = 40


def judge(
    subject: Subject,
    moments: int = 200,
    warm_up: int | None = None,
    *,
    processes: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Verdict:
    """Judge forecasts of a log at moments of its second half, a QuantityError if it is too short.

    Corrections learn first from the moments of the warm-up before them: :data:`WARM_UP` unless
    given, but no more than twice the others, so that a quick look is quick. Processes, one for each
    core unless given, share the work; ``progress`` is called with moments done, and all.
    """
    from hpcrowd.analysis.forecast.verdict import verdict

    check_within("moments", moments, 1, MOST_MOMENTS)
    warm_up = min(WARM_UP, 2 * moments) if warm_up is None else warm_up
    check_within("warm_up", warm_up, 0, MOST_MOMENTS)
    length = int(np.ptp(subject.jobs.recorded_submit)) if len(subject.jobs) else 0
    if length < SHORTEST:
        raise QuantityError(
            f"judge: a log of {length / WEEK:.1f} weeks; forecasts are judged in its second half, "
            f"a week ahead, which needs {SHORTEST // WEEK} weeks: give a longer one"
        )
    rows = subject.moments(moments, warm_up).tolist()
    cases = _cases(partial(case_at, subject), rows, processes or cores(), progress)
    return verdict(subject, cases, warm_up)


def _cases[Found](
    at: Callable[[int], Found],
    rows: Sequence[int],
    processes: int,
    progress: Callable[[int, int], Any] | None,
) -> list[Found]:
    """Return the cases at the submissions of some jobs, as they come."""
    cases: list[Found] = []
    for _, case in each_in_processes(at, rows, processes):
        cases.append(case)
        if progress is not None:
            progress(len(cases), len(rows))
    return cases


def site_bounds_of(outset: Outset, hindcasts: int = 100, seed: int = 0, **more: Any) -> SiteBounds:
    """Return the bounds of starts that hindcasts teach; parameters as of :func:`hindcasts_of`."""
    found = SiteBounds(seed=seed)
    found.learn(hindcasts_of(outset, hindcasts, seed, **more))
    return found


def hindcasts_of(
    outset: Outset,
    hindcasts: int = 100,
    seed: int = 0,
    *,
    processes: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> list[Case]:
    """Return forecasts at earlier seconds of the record of a state, and what came.

    These are at a number of submissions of the last :data:`BACK` weeks; other parameters as of
    :func:`judge`. Jobs that are held now are left out, and moments at which the running jobs find
    no room on the machine of the outset: where they ran then is not known.
    """
    subject, state = Subject.of(outset, seed), outset.state
    submit, begin = state.jobs.recorded_submit, state.record_begin
    first = max(begin + min(BLIND, BLIND_SHARE * (state.now - begin)), state.now - BACK * WEEK)
    held = np.fromiter(state.held, np.int64, len(state.held))
    recent = np.setdiff1d(np.flatnonzero((submit > first) & (submit < state.now)), held)
    recent = recent[np.argsort(submit[recent], kind="stable")]
    if not len(recent):
        return []
    rows = np.unique(recent[np.linspace(0, len(recent) - 1, hindcasts).astype(np.int64)]).tolist()
    count = 1 if len(rows) < FEW_HINDCASTS else processes or cores()
    cases = _cases(partial(_possible_hindcast, subject), rows, count, progress)
    return in_order([_without(case, held) for case in cases if case is not None])


def _possible_hindcast(subject: Subject, row: int) -> Case | None:
    """Return the case at the submission of a job; None if the machine has no room for it."""
    try:
        return hindcast_at(subject, row)
    except QuantityError:
        return None


def _without(case: Case, held: NDArray[np.int64]) -> Case:
    """Return a case without some jobs."""
    keep = ~np.isin(case.rows, held)
    return Case(case.now, case.rows[keep], case.fresh[keep], case.features[keep], case.start[keep])


def show(found: Verdict, console: Console) -> None:
    """Print what a judge finds."""
    from hpcrowd.analysis.forecast.verdict import tables
    from hpcrowd.scenarios.terminal import plain_table

    for title, heading, rows in tables(found):
        console.print(plain_table(*heading, rows=rows, title=title))
        console.print()


def write(found: Verdict, folder: Path, configuration: dict[str, Any]) -> None:
    """Write what a judge finds: ``judgement.json``, and ``provenance.json``."""
    from hpcrowd.analysis.results import write_json, write_origin
    from hpcrowd.environment.output.whole import whole_folder

    with whole_folder(folder) as place:
        write_json(found.to_dict(), place / "judgement.json")
        write_origin(place, configuration)
