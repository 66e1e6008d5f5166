"""Read a finished run back: a folder of results, or a recorded trace taken as a run.

:func:`read_results` is the pair of :func:`analysis.results.write_results`. What later versions add
to a folder (columns, keys, files) is passed over.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from hpcrowd.analysis.accounts.platform import read_attempts
from hpcrowd.analysis.accounts.reactions import read_reactions
from hpcrowd.analysis.record_files import read_decisions, read_visits
from hpcrowd.analysis.results import FORMAT
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import ResultsError
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.traces.archive.logs import trace_path
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import jobs_from_trace

if TYPE_CHECKING:
    import pyarrow as pa


#: Files that make a folder one of results.
FILES = ("jobs.parquet", "summary.json", "provenance.json")

#: Columns without which a table of jobs says nothing; others may be missing and stay unknown.
NEEDED = (
    Column.NUMBER,
    Column.USER,
    Column.PROCESSORS,
    Column.RECORDED_SUBMIT,
    Column.SUBMIT,
    Column.START,
    Column.END,
    Column.STATE,
)

#: Words of states, as in the file.
STATES = {state.name.lower(): state for state in State}


def read_run(path: str | os.PathLike[str]) -> Run:
    """Read a folder of results, or a trace: :func:`read_results`, :func:`read_recorded`."""
    place = trace_path(path)
    if not place.exists():
        raise ResultsError(f"{path}: no such folder of results, and no such trace")
    return read_results(place) if place.is_dir() else read_recorded(place)


def read_results(folder: str | os.PathLike[str]) -> Run:
    """Read what ``hpcrowd replay --out`` or :func:`hpcrowd.analysis.results.write_results` wrote.

    Parameters
    ----------
    folder
        The folder.

    Returns
    -------
    Run
        With the same jobs, metrics, clock and configuration; ``stored`` holds what
        ``provenance.json`` says, ``reactions`` what reactions did,
        ``decisions`` what users decided if that was logged, ``visits`` who came and went,
        ``attempts`` runs that the platform stopped. The
        recorded trace and its sessions are not in the folder: ``trace`` and ``work`` are None, and
        the run as a trace is the folder's ``trace.swf.gz``.

    Raises
    ------
    ResultsError
        When it is no folder of results, or one of another format, or a file is broken.
    """
    place = Path(folder)
    _check_files(place)
    stored = _read_json(place / "provenance.json")
    written = stored.get("format", FORMAT)
    if written != FORMAT:
        raise ResultsError(
            f"{place}: results of format {written!r}; this version of hpcrowd reads format "
            f"{FORMAT}: run it again, or read it with the version that wrote it"
        )
    summary = _read_json(place / "summary.json")
    try:
        run = Run(
            jobs=read_parquet(place / "jobs.parquet"),
            processors=int(summary["processors"]),
            label=str(stored["label"]),
            configuration=dict(stored["configuration"]),
            clock=_clock(summary["clock"]),
            platform=dict(summary.get("platform", {})),
            sites=dict(summary.get("sites", {})),
            population=dict(summary.get("population", {})),
            repaired=Counter(stored["jobs_repaired"]),
            dropped=Counter(stored["jobs_dropped"]),
            wall_s=dict(stored.get("wall_s", {})),
            stored=stored | {"trace": _source(stored["trace"])},
        )
        run.accounts = dict(summary.get("reactions", {}))
        if (place / "reactions.parquet").is_file():
            run.reactions = read_reactions(place / "reactions.parquet", run.jobs)
        if (place / "decisions.parquet").is_file():
            run.decisions = read_decisions(place / "decisions.parquet")
        if (place / "attempts.parquet").is_file():
            run.attempts = read_attempts(place / "attempts.parquet")
        if (place / "visits.parquet").is_file():
            run.visits = read_visits(place / "visits.parquet")
        return run
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ResultsError):
            raise
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ResultsError(
            f"{place}: {what} in summary.json or provenance.json; the folder is not as hpcrowd "
            "wrote it: run it again"
        ) from None


def read_recorded(path: str | os.PathLike[str]) -> Run:
    """Read a trace as the run that was recorded: its submissions and waits stand for simulated.

    Jobs without a recorded wait count as if they had started at once; ``repaired`` says how many.

    Raises
    ------
    TraceError
        When it is no trace.
    """
    trace = read_trace(path)
    found = jobs_from_trace(trace)
    jobs = found.jobs
    jobs.submit[:] = jobs.enqueued[:] = jobs.recorded_submit
    jobs.start[:] = jobs.recorded_start
    jobs.end[:] = jobs.recorded_end
    jobs.state[:] = State.COMPLETED
    return Run(
        jobs=jobs,
        processors=trace.processors,
        label="recorded",
        configuration={"kind": "recorded"},
        clock=Clock.of(trace.header),
        trace=trace,
        source_row=found.source_row,
        repaired=found.repaired,
        dropped=found.dropped,
    )


def read_parquet(path: Path) -> JobTable:
    """Return the table of jobs in a file of :func:`hpcrowd.analysis.results.write_parquet`.

    Raises
    ------
    ResultsError
        When it is no such table.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        told = str(error).splitlines()[0]
        raise ResultsError(f"{path}: cannot be read as Parquet: {told}") from None
    missing = [c.name.lower() for c in NEEDED if c.name.lower() not in table.column_names]
    if missing:
        raise ResultsError(f"{path}: no column {missing[0]!r}; a table of jobs has one")
    jobs = JobTable(table.num_rows)
    for column in Column:
        name = column.name.lower()
        if name not in table.column_names:
            continue
        values = table.column(name).combine_chunks()
        if values.null_count:
            raise ResultsError(f"{path}, column {name}: empty cells; -1 stands for unknown")
        if column is Column.STATE:
            jobs.state[:] = _states(values, path)
        elif pa.types.is_integer(values.type):
            jobs.column(column)[:] = values.to_numpy(zero_copy_only=False)
        else:
            raise ResultsError(f"{path}, column {name}: {values.type} instead of whole numbers")
    return jobs


def _states(values: pa.Array, path: Path) -> Int64s:
    """Return numbers of states, whatever their order in the file."""
    import pyarrow as pa

    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    words = [str(word) for word in values.dictionary.to_pylist()]
    codes = values.indices.to_numpy(zero_copy_only=False)
    used = {words[code] for code in np.unique(codes)}
    unknown = sorted(used - set(STATES))
    if unknown:
        raise ResultsError(
            f"{path}, column state: {unknown[0]!r} is no state of jobs; known are "
            + ", ".join(STATES)
        )
    states: Int64s = np.array([STATES.get(word, UNKNOWN) for word in words], np.int64)[codes]
    return states


def _check_files(place: Path) -> None:
    """Make sure that the files are there; say what the folder may be instead."""
    if not place.is_dir():
        raise ResultsError(f"{place}: no such folder; results are written with --out")
    missing = [name for name in FILES if not (place / name).is_file()]
    if not missing:
        return
    inside = sorted(path.parent.name for path in place.glob(f"*/{FILES[0]}"))
    if inside:
        raise ResultsError(
            f"{place}: holds several runs; name one of its folders: {', '.join(inside)}"
        )
    if len(missing) == len(FILES):
        raise ResultsError(f"{place}: no folder of results (it has none of {', '.join(FILES)})")
    raise ResultsError(f"{place}: no {missing[0]} in it; run it again with --out")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ResultsError(f"{path}: no JSON ({error}); run it again with --out") from None
    if not isinstance(found, dict):
        raise ResultsError(f"{path}: no JSON object; run it again with --out")
    return found


def _source(written: dict[str, Any] | None) -> dict[str, str] | None:
    """Return name and checksum of the trace that a run replays."""
    if written is None:
        return None
    return {name: str(written[name]) for name in ("source", "sha256")}


def _clock(written: dict[str, Any]) -> Clock:
    """Return the clock that a summary describes; without a note the trace told everything."""
    known = not written["note"]
    return Clock(int(written["unix_start_s"]), _zone(str(written["zone"]), known), known)


def _zone(name: str, known: bool) -> tzinfo:
    if name == "UTC" and not known:
        return UTC
    if name.startswith(("UTC+", "UTC-")):
        zone = datetime.strptime(name, "UTC%z").tzinfo
        assert zone is not None
        return zone
    return ZoneInfo(name)
