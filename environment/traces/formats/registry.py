"""All trace formats: recognise the format of a file, read it and write it.

A path is that of a file, or names a trace of a collection, such as ``archive:NAME``. Maps of
published tables come with hpcrowd: the TOML files in ``tables/maps``, by name. The first line of
each, a comment, says what it reads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import QuantityError, TraceError, not_one_of
from hpcrowd.environment.registry import Registry
from hpcrowd.environment.traces.formats.common.base import Format, FormatOptions, Losses
from hpcrowd.environment.traces.formats.common.files import named_json, read_head
from hpcrowd.environment.traces.formats.common.names import anonymised
from hpcrowd.environment.traces.trace import Trace

#: Called during a download with name, bytes so far and bytes in all.
Progress = Callable[[str, int, int], Any]

#: Collections by the word before the colon: functions that return the file of a trace by its name.
COLLECTIONS: Registry[Callable[[str, Progress | None], Path]] = Registry(
    {"archive": "hpcrowd.environment.traces.archive.logs:log_file"}
)

#: The run as a trace, in a folder of results.
RUN_TRACE = "trace.swf.gz"


def is_collected(path: object) -> bool:
    """Return whether a path names a trace of a collection."""
    name, colon, _ = str(path).partition(":")
    return bool(colon) and name in COLLECTIONS


def trace_path(
    path: str | os.PathLike[str],
    *,
    folder: str | os.PathLike[str] = "",
    progress: Progress | None = None,
) -> Path:
    """Return the file of a trace path.

    Parameters
    ----------
    path
        A path, returned as it is; or ``archive:NAME``, the log of that name: from the folder
        ``HPCROWD_TRACES`` if that is set, else from the cache, else downloaded into it.
    folder
        Base of relative paths.
    progress
        Called during a download with name, bytes so far and bytes in all.

    Raises
    ------
    ArchiveError
        If the log is not known, is damaged, or cannot be downloaded.
    """
    text = os.fspath(path)
    if not is_collected(text):
        return Path(folder, text)
    collection, _, name = text.partition(":")
    return COLLECTIONS[collection](name, progress)


def file_of(path: Path) -> Path:
    """Return the file of an input: of a folder with the results of a run, its trace."""
    return path / RUN_TRACE if path.is_dir() else path


#: The folder of the maps.
MAPS = "tables/maps"

#: Their files by name.
READY = {path.stem: path for path in sorted((Path(__file__).parent / MAPS).glob("*.toml"))}


def map_path(name: str | Path, folder: Path | None = None) -> Path:
    """Return the file of a map: one that comes with hpcrowd, else a path relative to a folder."""
    return READY.get(str(name), (folder or Path()) / name)


def map_titles() -> dict[str, str]:
    """Return what each map reads, by name."""
    return {
        name: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("#").strip()
        for name, path in READY.items()
    }


#: Formats by name, in the order in which they are tried.
FORMATS: Registry[Format] = Registry(
    {
        "parquet": "hpcrowd.environment.traces.formats.tables.columns:PARQUET",
        "sacct-json": "hpcrowd.environment.traces.formats.slurm.json_records:SACCT_JSON",
        "batsim": "hpcrowd.environment.traces.formats.batsim.workloads:BATSIM",
        "swf": "hpcrowd.environment.traces.formats.swf:SWF",
        "gwf": "hpcrowd.environment.traces.formats.gwf:GWF",
        "sacct": "hpcrowd.environment.traces.formats.slurm.accounting:SACCT",
        "pbs": "hpcrowd.environment.traces.formats.pbs.accounting:PBS",
        "gridengine": "hpcrowd.environment.traces.formats.gridengine:GRIDENGINE",
        "lsf": "hpcrowd.environment.traces.formats.lsf:LSF",
        "htcondor": "hpcrowd.environment.traces.formats.htcondor:HTCONDOR",
        "batsim-jobs": "hpcrowd.environment.traces.formats.batsim.jobs:BATSIM_JOBS",
        "csv": "hpcrowd.environment.traces.formats.tables.columns:CSV",
        "table": "hpcrowd.environment.traces.formats.tables.mapped:TABLE",
    }
)


def parse_format(name: str) -> Format:
    """Return the format with this name.

    Raises
    ------
    QuantityError
        If there is none.
    """
    try:
        return FORMATS[name.lower()]
    except KeyError:
        raise QuantityError(f"format {name!r}: {not_one_of(name, FORMATS)}") from None


def format_by_name(path: str | os.PathLike[str]) -> Format | None:
    """Return the format that matches the end of a file name, or None."""
    name = Path(path).name.lower().removesuffix(".gz")
    return next((one for one in FORMATS.values() if name.endswith(one.suffixes)), None)


def find_format(path: str | os.PathLike[str]) -> Format:
    """Return the format of a file: by its content, else by its name.

    A message that refuses a file names the formats that it nearly has.

    Raises
    ------
    TraceError
        If it cannot be read, is empty, or its format is not recognised.
    """
    head = read_head(path)
    if not head.strip():
        raise TraceError(f"{path}: is empty; a trace has one line per job")
    found = next((one for one in _candidates(path) if one.looks_like(head)), None)
    if found is not None:
        return found
    if what := named_json(head):
        raise TraceError(f"{path}: is {what}")
    near = "; ".join(f"nearly {one.name}: {why}" for one in FORMATS.values()
                     if (why := one.nearly(head)))  # fmt: skip
    found = format_by_name(path)
    if found is None or near:
        what = f"not in a known format{f' ({near})' if near else ''}"
        raise TraceError(f"{path}: {what}; give it with --input-format ({', '.join(FORMATS)})")
    return found


def _candidates(path: str | os.PathLike[str]) -> Iterator[Format]:
    """Yield all formats, the one that is called like the suffix of the file first.

    For most files that is the right one, and no other format is imported.
    """
    likely = Path(path).name.lower().removesuffix(".gz").rpartition(".")[2]
    if likely in FORMATS:
        yield FORMATS[likely]
    yield from FORMATS.values()


def read_trace(
    path: str | os.PathLike[str], kind: Format | None = None, options: FormatOptions | None = None
) -> Trace:
    """Read a trace in any known format, plain or gzipped.

    Parameters
    ----------
    path
        The file, or ``archive:NAME`` for a log of the archive, see
        :func:`trace_path`.
    kind
        Its format; that of the options unless given, else recognised from the content.
    options
        What the file itself does not say.

    Raises
    ------
    TraceError
        If it cannot be read, or is not in a known format.
    ParseError
        If a line is malformed; the error names line, field and value.
    """
    place = trace_path(path)
    if kind is None and options is not None and options.format is not None:
        kind = parse_format(options.format)
    trace = (kind or find_format(place)).read(place, options)
    return anonymised(trace) if options is not None and options.anonymise else trace


def write_trace(
    trace: Trace,
    path: str | os.PathLike[str],
    kind: Format | None = None,
    options: FormatOptions | None = None,
) -> Losses:
    """Write a trace in any known format, gzipped if the name ends in ``.gz``.

    Parameters
    ----------
    trace
        The trace.
    path
        The file; it is complete or absent.
    kind
        Its format; recognised from the name unless given.
    options
        What is needed besides the trace.

    Returns
    -------
    Losses
        What the format could not hold.

    Raises
    ------
    TraceError
        If it cannot be written.
    QuantityError
        If the name does not imply a format.
    """
    kind = kind or format_by_name(path)
    if kind is None:
        raise QuantityError(f"{path}: no format ends like this; choose one of {', '.join(FORMATS)}")
    return kind.write(trace, path, options)
