"""The work of a sweep's worker: one run, and its file, which is complete or absent.

``runs/KEY.parquet`` holds the row of a run; its metadata ``hpcrowd`` is JSON with all settings,
checksums and versions. ``jobs/KEY.parquet``, if jobs are kept, is written before it.
"""

from __future__ import annotations

import gc
import json
import mmap
import multiprocessing
import os
import pickle
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.errors import HpcrowdError, ResultsError
from hpcrowd.environment.output.guard import checksum_of, checksum_of_values
from hpcrowd.environment.output.whole import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

    from hpcrowd.environment.jobs import JobTable


#: Offsets of arrays are multiples of this, for fast loops.
ALIGNMENT = 64


def write_shared(value: Any, path: Path) -> None:
    """Write a value for :func:`read_shared` into a file that is complete or absent.

    The file holds a pickle of anything made of arrays, such as a table of jobs with its sessions,
    and the arrays apart from it (pickle protocol 5 with buffers out of band, PEP 574)::

        8 bytes   offset of the pickle at the end, little endian
        arrays    each from a multiple of 64 bytes on
        pickle    of a tuple: offsets and lengths of the arrays, and the pickle of the rest
    """
    buffers: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    arrays = [buffer.raw() for buffer in buffers]
    places, end = [], 8
    for array in arrays:
        begin = -(-end // ALIGNMENT) * ALIGNMENT
        places.append((begin, array.nbytes))
        end = begin + array.nbytes
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(end.to_bytes(8, "little"))
        for (begin, _), array in zip(places, arrays, strict=True):
            file.write(bytes(begin - file.tell()))
            file.write(array)
        file.write(pickle.dumps((places, rest), protocol=5))
        file.flush()
        os.fsync(file.fileno())


def read_shared(path: Path) -> Any:
    """Return the value in a file; changes of its arrays are private to this process.

    The file is mapped privately: nothing is copied until it is written to, page by page. The system
    keeps one copy of the file in memory for all processes.

    Only for files of :func:`write_shared` that the same user wrote: a pickle can run code.
    """
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: shared inputs cannot be read: {error}") from error
    view = memoryview(mapped)
    places, rest = pickle.loads(view[int.from_bytes(view[:8], "little") :])
    return pickle.loads(rest, buffers=[view[begin : begin + size] for begin, size in places])


#: Columns of the jobs that are kept; the others can be joined from the trace by number.
JOB_COLUMNS = ("number", "user", "submit", "start", "end", "state")

#: States of a run.
DONE, FAILED = "done", "failed"

#: Whether this process has frozen its permanent objects.
_frozen: list[bool] = []

#: Characters of an error message that are kept.
LONGEST_ERROR = 2000


@dataclass(frozen=True)
class Task:
    """One run, small enough to be sent to another machine."""

    key: str  #: name of its files
    settings: dict[str, Any]  #: settings of its scenario
    files: Path  #: folder of the files that the settings name
    shared: Path  #: file with its inputs
    out: Path  #: folder of the sweep
    keep: str  #: ``metrics`` or ``jobs``
    #: Times that are not counted, s.
    warm_up: int
    cool_down: int
    told: dict[str, Any]  #: the provenance in its file, fit for JSON


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    key: str  #: name of its files
    state: str  #: :data:`DONE` or :data:`FAILED`
    row: dict[str, int | float | None]  #: its numbers by name, empty if it failed
    error: str = ""  #: why it failed, one line
    wall_s: float = 0.0  #: how long it took
    files: str = ""  #: checksum of its files, see :func:`files_sum`; empty if it failed


def work(task: Task) -> Outcome:
    """Run a task and write its files; an error becomes its outcome, and stops no other run."""
    began = time.perf_counter()
    try:
        row = _run(task)
    except Exception as error:  # noqa: BLE001 - whatever fails in a run, the others continue
        told = str(error) if isinstance(error, HpcrowdError) else f"{type(error).__name__}: {error}"
        return failed(task.key, told, time.perf_counter() - began)
    finally:
        _clean_up()
    wall_s = round(time.perf_counter() - began, 3)
    return Outcome(task.key, DONE, row, wall_s=wall_s, files=files_sum(task.out, task.key))


def _clean_up() -> None:
    """Free the last run at once: model and users refer to each other until they are collected."""
    if multiprocessing.parent_process() is None:
        return  # not a worker but a program of a user, whose memory is left alone
    gc.collect()
    if not _frozen:
        gc.freeze()  # objects that exist after the first run stay, and are not scanned again
        _frozen.append(True)


def failed(key: str, error: str, wall_s: float = 0.0) -> Outcome:
    """Return the outcome of a run that failed."""
    return Outcome(key, FAILED, {}, " ".join(error.split())[:LONGEST_ERROR], round(wall_s, 3))


def _run(task: Task) -> dict[str, int | float | None]:
    from hpcrowd.analysis.comparison.sweeps import row_of
    from hpcrowd.scenarios.kinds.files import scenario_of

    kept = kept_row(task.out, task.key)
    if kept is not None:  # by a worker that died before it reported
        return kept
    scenario = scenario_of(task.settings, task.files)
    run = scenario.run(read_shared(task.shared))
    row = row_of(run, task.warm_up, task.cool_down)
    about, (row_file, jobs_file) = dict(task.told), files_of(task.out, task.key)
    if task.keep == "jobs":
        _land(jobs_table(run.jobs), jobs_file, about)
        about["jobs_sha256"] = checksum_of(jobs_file)
    about = json.loads(json.dumps(about, default=str))
    checksum = checksum_of_values([row, about])
    _land(row_table(task.key, row), row_file, about | {"sum": checksum})
    return row


def files_of(out: Path, key: str) -> tuple[Path, Path]:
    """Return the files of a run: its row, and its jobs if they are kept."""
    return out / "runs" / f"{key}.parquet", out / "jobs" / f"{key}.parquet"


def files_sum(out: Path, key: str) -> str:
    """Return the checksum of the files of a run."""
    return " ".join(checksum_of(path)[:16] for path in files_of(out, key) if path.is_file())


def row_table(key: str, row: Mapping[str, int | float | None]) -> pa.Table:
    """Return a row as an Arrow table; its numbers keep their types."""
    import pyarrow as pa

    kinds = {
        name: pa.int64() if isinstance(value, int) else pa.float64() for name, value in row.items()
    }
    columns: dict[str, Any] = {"key": pa.array([key])}
    columns |= {name: pa.array([value], kinds[name]) for name, value in row.items()}
    return pa.table(columns)


def kept_row(out: Path, key: str) -> dict[str, int | float | None] | None:
    """Return the row that the file of a run holds; None without one, or if a file is damaged."""
    import pyarrow.parquet as pq

    row_file, jobs_file = files_of(out, key)
    row: dict[str, int | float | None]
    try:
        table = pq.read_table(row_file)
        row = table.drop_columns("key").to_pylist()[0]
        about = json.loads(table.schema.metadata[b"hpcrowd"])
        # None: of earlier versions
        whole = about.pop("sum", None) in (None, checksum_of_values([row, about]))
        if "jobs_sha256" in about:
            whole = whole and checksum_of(jobs_file) == about["jobs_sha256"]
        return row if whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None  # errors of Arrow are among these


def jobs_table(jobs: JobTable) -> pa.Table:
    """Return :data:`JOB_COLUMNS` of all jobs, each in the smallest type that holds it."""
    import pyarrow as pa

    from hpcrowd.environment.jobs import State
    from hpcrowd.environment.traces.trace import smallest

    words = pa.array([state.name.lower() for state in State])
    columns: dict[str, Any] = {
        name: pa.array(smallest(getattr(jobs, name))) for name in JOB_COLUMNS[:-1]
    }
    states = pa.array(jobs.state, pa.int8())
    return pa.table({**columns, "state": pa.DictionaryArray.from_arrays(states, words)})


def _land(table: pa.Table, path: Path, told: Mapping[str, Any]) -> None:
    import pyarrow.parquet as pq

    metadata = {
        **(table.schema.metadata or {}),
        "hpcrowd": json.dumps(told, sort_keys=True, default=str),
    }
    with whole_file(path) as temporary, temporary.open("wb") as file:
        table = table.replace_schema_metadata(metadata)
        pq.write_table(table, file, compression="zstd", use_dictionary=["state"])
        file.flush()
        os.fsync(file.fileno())
