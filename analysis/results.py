"""Folders of results: written whole or not at all, and read back; recorded traces as runs.

=================== ==============================================================================
jobs.parquet        every job, the columns of :class:`hpcrowd.environment.jobs.Column`
reactions.parquet   what reactions did to jobs, if there were any, the columns of
                    :data:`hpcrowd.analysis.accounts.reactions.MEANING`
attempts.parquet    runs that the platform stopped or that were preempted, if there were any, the
                    columns of :data:`hpcrowd.environment.engine.attempts.MEANING`
rejections.parquet  jobs that can never run on a machine of nodes, if there were any, the columns
                    of :data:`hpcrowd.analysis.accounts.nodes.REJECTION_MEANING`
given_up.parquet    which jobs have an imputed run time, if users have patience and any ran that had
                    been given up, the columns of :data:`hpcrowd.analysis.accounts.given_up.MEANING`
components.parquet  which rows are components of one job, if a grid split any, the columns of
                    :data:`hpcrowd.analysis.accounts.grid.COMPONENT_MEANING`
energy.parquet      energy, carbon and cost of every job, with a description of power, the columns
                    of :data:`hpcrowd.analysis.energy.account.JOB_MEANING`
visits.parquet      arrivals and departures of users, if there are any, the columns of
                    :data:`hpcrowd.agents.populations.openness.VISIT_MEANING`
trace.swf.gz        the run as a trace, see :meth:`hpcrowd.analysis.run.Run.to_trace`
trace.names.csv     names of users, groups and so on, if the replayed trace has them
summary.json        the metrics, see :meth:`hpcrowd.analysis.run.Run.summary`
provenance.json     configuration, seed, versions, checksums, wall times: enough to repeat it; and
                    which files hpcrowd wrote, see :mod:`hpcrowd.environment.output.guard`
overview.png        a picture, see :func:`hpcrowd.analysis.pictures.over_time.overview`
power.png           power over time, with a description of power, see
                    :mod:`hpcrowd.analysis.pictures.power`
=================== ==============================================================================

Additions of later versions to a folder (columns, keys, files) are ignored.
"""

from __future__ import annotations

import csv
import json
import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.metrics import as_recorded
from hpcrowd.analysis.parts import PARTS, RunParts, read_table, write_table
from hpcrowd.analysis.run import Reading, Run, check_run
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.engine.attempts import MEANING as ATTEMPT_MEANING
from hpcrowd.environment.engine.attempts import RECORDED, Attempt
from hpcrowd.environment.errors import ResultsError
from hpcrowd.environment.files import json_of
from hpcrowd.environment.jobs import SLOWED, UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.limits.inputs import read_text
from hpcrowd.environment.output.guard import WRITTEN
from hpcrowd.environment.output.whole import whole_folder
from hpcrowd.environment.registry import Registry
from hpcrowd.environment.requests import WORDS as REQUESTED_WORDS
from hpcrowd.environment.requests import Ask, Requests
from hpcrowd.environment.traces.formats.common.base import FormatOptions
from hpcrowd.environment.traces.formats.common.names import names_table, parse_names
from hpcrowd.environment.traces.formats.common.site_columns import of_jobs
from hpcrowd.environment.traces.formats.registry import read_trace, trace_path
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.headers import parse_zone
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace

if TYPE_CHECKING:
    import pyarrow as pa

#: Format of a folder; it is raised when older versions can no longer read it, or the reverse.
FORMAT = 1

#: Packages whose versions affect the bytes of a run.
VERSIONS_OF = ("hpcrowd", "mesa", "numpy", "networkx", "pyarrow")

#: File of the names of users, groups and so on: what ``hpcrowd convert`` writes next to a trace.
NAMES = "trace.names.csv"

#: What draws the picture of each run; parts of a run have theirs.
OVERVIEW = "hpcrowd.analysis.pictures.over_time:write_overview"

#: Files that every folder of results has.
FILES = ("jobs.parquet", "summary.json", "provenance.json")

#: Required columns of a table of jobs; others may be missing and stay unknown.
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

#: Names of states in the file.
STATES = {state.name.lower(): state for state in State}


def write_results(run: Run, folder: str | os.PathLike[str], *, plots: bool = True) -> None:
    """Write the results of a run to a folder that appears only when it is complete."""
    check_run(run)
    with whole_folder(folder) as place:
        write_run(run, place, plots=plots)


def write_run(run: Run, place: Path, *, plots: bool = True) -> None:
    """Write the files of a run into an existing folder."""
    write_jobs(run.jobs, place / "jobs.parquet")
    if run.attempts:
        columns = {name: [getattr(one, name) for one in run.attempts] for name in ATTEMPT_MEANING}
        write_table(columns, ATTEMPT_MEANING, place / "attempts.parquet")
    for part in run.parts.values():
        part.write(run.jobs, place)
    trace = run.to_trace()
    write_swf(trace, place / "trace.swf.gz")
    if trace.names:
        (place / NAMES).write_text(names_table(trace), encoding="utf-8")
    write_json(run.summary(), place / "summary.json")
    if plots:
        drawn = (OVERVIEW, *(part.picture for part in run.parts.values() if part.picture))
        for write in Registry[Any]({at: at for at in drawn}).installed():
            write(run, place)
    write_json(provenance(run), place / "provenance.json")


def write_json(value: Any, path: Path) -> None:
    """Write ``value`` as indented JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def version_of(name: str) -> str:
    """Return the version of a package, or ``not installed``."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that affect the bytes of a run."""
    return {"python": platform.python_version()} | {name: version_of(name) for name in VERSIONS_OF}


def write_origin(place: Path, configuration: Mapping[str, Any], **more: Any) -> None:
    """Write ``provenance.json`` of other results than runs, with ``more`` and the versions."""
    found = {"configuration": dict(configuration), **more, "versions": versions()}
    write_json(found, place / "provenance.json")


def provenance(run: Run) -> dict[str, Any]:
    """Return the provenance of a run: enough to repeat it."""
    read = run.reading
    if read.stored is not None:
        return read.stored
    return {
        "format": FORMAT,
        "label": run.label,
        "configuration": run.configuration,
        "trace": read.source,
        "jobs_repaired": dict(read.repaired),
        "jobs_dropped": dict(read.dropped),
        "versions": versions(),
        "wall_s": run.wall_s,
    }


def write_csv(path: Path, heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as comma-separated values, floats in full precision; None is empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heading)
        writer.writerows(rows)


def read_run(path: str | os.PathLike[str], options: FormatOptions | None = None) -> Run:
    """Read a folder of results, or a trace: :func:`read_results`, :func:`read_recorded`."""
    place = trace_path(path)
    if not place.exists():
        raise ResultsError(f"{path}: no such folder of results or trace")
    return read_results(place, options) if place.is_dir() else read_recorded(place, options)


def read_results(folder: str | os.PathLike[str], options: FormatOptions | None = None) -> Run:
    """Read what ``hpcrowd replay --out`` or :func:`hpcrowd.analysis.results.write_results` wrote.

    Parameters
    ----------
    folder
        The folder.
    options
        How the trace would be read, of which nothing can be done any more.

    Returns
    -------
    Run
        It has the same jobs, metrics, clock and configuration. ``reading`` holds the contents of
        ``provenance.json``, ``attempts`` the runs that were stopped, ``parts`` the totals and
        tables of parts. The recorded trace and its sessions are not in the folder, so there is no
        ``reading.trace`` nor ``work``; the run as a trace is the folder's ``trace.swf.gz``.

    Raises
    ------
    ResultsError
        When it is not a folder of results, has another format, or a file is damaged.
    """
    place = Path(folder)
    _check_files(place)
    if options is not None and options.anonymise:
        raise ResultsError(f"{place}: results have the names of their trace; run it with anonymise")
    stored = _read_json(place / "provenance.json")
    stored.pop(WRITTEN, None)  # which is about the folder
    written = stored.get("format", FORMAT)
    if written != FORMAT:
        raise ResultsError(
            f"{place}: results of format {written!r}, but this version of hpcrowd reads format "
            f"{FORMAT}; run it again, or read it with the version that wrote it"
        )
    summary = _read_json(place / "summary.json")
    try:
        source = stored["trace"]  # name and checksum of the replayed trace
        if source is not None:
            source = {name: str(source[name]) for name in ("source", "sha256")}
        jobs = read_jobs(place / "jobs.parquet")
        attempts, stopped = place / "attempts.parquet", []
        if attempts.is_file():
            stopped = [Attempt(**row) for row in read_table("attempts", attempts).to_pylist()]
        run = Run(
            jobs=jobs,
            processors=int(summary["processors"]),
            label=str(stored["label"]),
            configuration=dict(stored["configuration"]),
            clock=_clock(summary["clock"]),
            attempts=stopped,
            parts=RunParts(*(part.read(summary, place, jobs) for part in PARTS.values())),
            reading=Reading(
                repaired=Counter(stored["jobs_repaired"]),
                dropped=Counter(stored["jobs_dropped"]),
                size_note=str(summary.get("size_note", "")),
                metrics=dict(summary.get("recorded", {})),
                stored=stored | {"trace": source},
            ),
            remarks=[str(line) for line in summary.get("remarks", [])],
            wall_s=dict(stored.get("wall_s", {})),
        )
        _check_written(run)
        if (place / NAMES).is_file():
            run.jobs.names = _names(place / NAMES)
        return run
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        if isinstance(error, ResultsError):
            raise
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ResultsError(
            f"{place}: {what} in summary.json or provenance.json; the folder was changed or "
            "damaged: run it again"
        ) from None


def read_recorded(path: str | os.PathLike[str], options: FormatOptions | None = None) -> Run:
    """Read a trace as a run: its recorded submissions and waits take the place of simulated ones.

    Jobs without a recorded wait count as started at once; ``repaired`` has their number. The
    options are what the file itself does not say.

    Raises
    ------
    TraceError
        When it is not a trace.
    """
    return run_of_record(read_trace(path, options=options))


def run_of_record(trace: Trace) -> Run:
    """Return a trace that has been read as a run, see :func:`read_recorded`."""
    found = jobs_from_trace(trace)
    jobs = as_recorded(found.jobs)
    parts, attempts = RunParts(), []
    if trace.extra:
        rows = found.source_row
        parts = RunParts(*(one.recorded(trace, jobs, rows) for one in PARTS.installed()))
        attempts = recorded_attempts(trace, jobs, found.source_row)
    return Run(
        jobs=jobs,
        processors=trace.processors,
        label="recorded",
        configuration={"kind": "recorded"},
        clock=Clock.of(trace.header),
        reading=Reading(trace, found.source_row, found.repaired, found.dropped),
        attempts=attempts,
        parts=parts,
    )


def recorded_attempts(trace: Trace, jobs: JobTable, source_row: Int64s) -> list[Attempt]:
    """Return the earlier runs of jobs of a log that begin and end as recorded.

    ``source_row`` is the row of each job in the log, -1 for none.
    """
    found = []
    for row, runs in of_jobs(trace, source_row).items():
        number, submit = int(jobs.number[row]), int(jobs.recorded_submit[row])
        since = 0
        for run in runs:
            times = (submit + since, submit + run.start, submit + run.end)
            found.append(Attempt(row, number, 0, *times, run.processors, RECORDED, "requeue"))
            since = run.again
    return found


def _check_files(place: Path) -> None:
    """Check that the files exist; if not, say what the folder may be instead."""
    if not place.is_dir():
        raise ResultsError(f"{place}: no such folder; --out writes results")
    missing = [name for name in FILES if not (place / name).is_file()]
    if not missing:
        return
    inside = sorted(path.parent.name for path in place.glob(f"*/{FILES[0]}"))
    if inside:
        raise ResultsError(
            f"{place}: contains several runs; give one of its folders: {', '.join(inside)}"
        )
    if len(missing) == len(FILES):
        raise ResultsError(f"{place}: not a folder of results (it has none of {', '.join(FILES)})")
    raise ResultsError(f"{place}: has no {missing[0]}; run it again with --out")


def _check_written(run: Run) -> None:
    """Try what reports and comparisons read of ``provenance.json``.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError, IndexError
        When something in it is missing or has another form.
    """
    dict((run.reading.stored or {})["versions"])
    int(run.configuration.get("seed", 0))
    for part in ("users", "platform"):
        asked = run.configuration.get(part)
        entries = asked if isinstance(asked, dict) else {}
        for entry in (*entries.get("users", ()), *entries.get("changes", ())):
            for name in ("users", "groups"):
                if not isinstance(entry.get(name, []), list | tuple):
                    raise TypeError(f"{name} of the configuration: not a list")
            int(entry.get("processors") or 1)
            str.strip(entry.get("cluster", ""))


def _names(path: Path) -> dict[str, dict[int, str]]:
    try:
        return parse_names(read_text(path), str(path))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: cannot be read as names: {error}; run it again") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json_of(read_text(path), finite=True)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ResultsError(f"{path}: not JSON ({error}); run it again with --out") from None
    if not isinstance(found, dict):
        raise ResultsError(f"{path}: not a JSON object; run it again with --out")
    return found


def _clock(written: dict[str, Any]) -> Clock:
    """Return the clock that a summary describes; without a note the trace gave all of it."""
    known = not written["note"]
    zone = UTC if written["zone"] == "UTC" and not known else parse_zone(str(written["zone"]))
    return Clock(int(written["unix_start_s"]), zone or UTC, known)


def write_jobs(jobs: JobTable, path: Path) -> None:
    """Write the table of jobs."""
    import pyarrow as pa

    columns: dict[str, Any] = {column.name.lower(): jobs.column(column) for column in Column}
    columns["state"] = pa.DictionaryArray.from_arrays(
        pa.array(jobs.state, pa.int8()), pa.array(list(STATES))
    )
    meaning = {column.name.lower(): column.meaning for column in Column}
    if jobs.slowed_run_time is not None:
        columns["slowed_run_time"], meaning["slowed_run_time"] = jobs.slowed_run_time, SLOWED
    if jobs.requests is not None:
        for ask in jobs.requests.asked():
            name, values = ask.name.lower(), jobs.requests[ask]
            if ask in REQUESTED_WORDS:
                values = pa.array(jobs.requests.texts(ask), pa.string()).dictionary_encode()
            columns[name], meaning[name] = values, ask.meaning
    write_table(columns, meaning, path)


def read_jobs(path: Path) -> JobTable:
    """Return the table of jobs in a file of :func:`write_jobs`.

    Raises
    ------
    ResultsError
        When it is not such a table.
    """

    found = read_table("Parquet", path)
    missing = [c.name.lower() for c in NEEDED if c.name.lower() not in found.column_names]
    if missing:
        raise ResultsError(f"{path}: no column {missing[0]!r}, which a table of jobs must have")
    jobs = JobTable(found.num_rows)
    for column in Column:
        name = column.name.lower()
        if name not in found.column_names:
            continue
        if column is Column.STATE:
            jobs.column(Column.STATE)[:] = _states(_full(found, name, path), path)
        else:
            jobs.column(column)[:] = _whole_numbers(found, name, path)
    if "slowed_run_time" in found.column_names:
        jobs.slowed_run_time = _whole_numbers(found, "slowed_run_time", path)
    jobs.requests = _requests(found, path)
    return jobs


def _full(found: pa.Table, name: str, path: Path) -> pa.Array:
    """Return a column, all of whose cells must have a value."""
    values = found.column(name).combine_chunks()
    if values.null_count:
        raise ResultsError(f"{path}, column {name}: empty cells; -1 stands for unknown")
    return values


def _whole_numbers(found: pa.Table, name: str, path: Path) -> Int64s:
    """Return a column of whole numbers."""
    import pyarrow as pa

    values = _full(found, name, path)
    if not pa.types.is_integer(values.type):
        raise ResultsError(f"{path}, column {name}: {values.type} instead of whole numbers")
    numbers: Int64s = values.to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64)


def _requests(found: pa.Table, path: Path) -> Requests | None:
    """Return what the jobs of a table ask for; None if it has no column of requests."""
    import pyarrow as pa

    asks = [ask for ask in Ask if ask.name.lower() in found.column_names]
    if not asks:
        return None
    requests = Requests(found.num_rows)
    for ask in asks:
        values = found.column(ask.name.lower()).combine_chunks()
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        fits = pa.types.is_string if ask in REQUESTED_WORDS else pa.types.is_integer
        if values.null_count or not fits(values.type):
            what = "texts" if ask in REQUESTED_WORDS else "whole numbers"
            raise ResultsError(
                f"{path}, column {ask.name.lower()}: {values.type} instead of {what} without "
                "empty cells"
            )
        if ask in REQUESTED_WORDS:
            requests.set_texts(ask, values.to_pylist())
        else:
            requests[ask][:] = values.to_numpy(zero_copy_only=False)
    return requests


def _states(values: pa.Array, path: Path) -> Int64s:
    """Return the numbers of states, whatever their order in the file."""
    import pyarrow as pa

    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    words = [str(word) for word in values.dictionary.to_pylist()]
    codes = values.indices.to_numpy(zero_copy_only=False)
    used = {words[code] for code in np.unique(codes)}
    unknown = sorted(used - set(STATES))
    if unknown:
        raise ResultsError(
            f"{path}, column state: {unknown[0]!r} is not a state of jobs; choose "
            + ", ".join(STATES)
        )
    states: Int64s = np.array([STATES.get(word, UNKNOWN) for word in words], np.int64)[codes]
    return states
