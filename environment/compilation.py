"""Compiled functions: the decorators that make them, and what numba keeps of them on disk.

Numba keeps compiled code beside the file of each function and makes it anew when that file
changes, but does not look at the other files that the function calls into. Here all of them count.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from numba import njit

#: No reference counting: the functions only work on arrays that their caller holds, and counting
#: at every inner call made a run five times slower (1.0 against 0.2 microseconds a job, KTH-SP2).
compiled = njit(cache=True, _nrt=False)  # type: ignore[call-overload]

#: The same for what is long and may run beside others in threads: it lets Python go meanwhile.
released = njit(cache=True, _nrt=False, nogil=True)  # type: ignore[call-overload]

#: The same for what runs at every event: put into its caller, which then need not hand over a
#: dozen arrays (0.12 against 0.19 microseconds a job, KTH-SP2).
inlined = njit(cache=True, _nrt=False, inline="always")  # type: ignore[call-overload]

#: What compiled functions take from outside the folders called ``kernel``, for their constants.
SOURCES = (
    "compilation.py",
    "jobs.py",
    "stops.py",
    "schedulers/estimates.py",
    "schedulers/fair_share.py",
)


def is_compiled(function: Any) -> bool:
    """Return whether a compiled function is kept for this Python already."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}-"
    return any(path.name.startswith(name) for path in _indexes(function))


def drop_stale(function: Any) -> None:
    """Throw away what is kept of a function and its folder when any source is newer."""
    environment = Path(__file__).parent
    sources = [*environment.glob("**/kernel/*.py"), *(environment / name for name in SOURCES)]
    changed = max(path.stat().st_mtime for path in sources)
    indexes = _indexes(function)
    if any(_written(path) <= changed for path in indexes):
        for path in indexes:
            path.unlink(missing_ok=True)


def _written(path: Path) -> float:
    """Return when a file was written; for ever ahead if another process has just removed it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _indexes(function: Any) -> list[Path]:
    """Return where numba notes what is compiled for this Python, of all files of a folder."""
    folder = Path(function._cache.cache_path)
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    return list(folder.glob(f"*.{python}.nbi"))
