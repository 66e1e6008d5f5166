"""Compiled functions: the decorators that compile them, and numba's cache on disk.

Numba caches compiled code next to the file of each function and compiles it again when that file
changes, but ignores changes in other files with functions that it calls. Here all of them count.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from numba import njit

#: No reference counting: the functions only work on arrays that their caller holds, and counting
#: at every inner call made a run five times slower (1.0 against 0.2 microseconds a job, KTH-SP2).
compiled = njit(cache=True, _nrt=False)  # type: ignore[call-overload]

#: The same for long functions that may run in threads: they release the GIL.
released = njit(cache=True, _nrt=False, nogil=True)  # type: ignore[call-overload]

#: The same for functions that run at every event: inlined, so that the caller need not pass a dozen
#: arrays (0.12 instead of 0.19 microseconds per job, KTH-SP2).
inlined = njit(cache=True, _nrt=False, inline="always")  # type: ignore[call-overload]

#: Modules outside the folders called ``kernel`` that compiled functions take constants from.
SOURCES = (
    "compilation.py",
    "jobs.py",
    "stops.py",
    "schedulers/estimates.py",
    "schedulers/fair_share.py",
)


def is_compiled(function: Any) -> bool:
    """Return whether a compiled function is in the cache for this Python."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}-"
    return any(path.name.startswith(name) for path in _indexes(function))


def drop_stale(function: Any) -> None:
    """Delete the cache of a function and its folder if any source is newer."""
    environment = Path(__file__).parent
    sources = [*environment.glob("**/kernel/*.py"), *(environment / name for name in SOURCES)]
    changed = max(path.stat().st_mtime for path in sources)
    indexes = _indexes(function)
    if any(_written(path) <= changed for path in indexes):
        for path in indexes:
            path.unlink(missing_ok=True)


def _written(path: Path) -> float:
    """Return when a file was written; infinity if another process has just removed it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _indexes(function: Any) -> list[Path]:
    """Return numba's index files for this Python, of all modules in a folder."""
    folder = Path(function._cache.cache_path)
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    return list(folder.glob(f"*.{python}.nbi"))
