"""Paths of traces: files, and traces of a collection by name, such as ``archive:NAME``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hpcrowd.environment.registry import Registry

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
