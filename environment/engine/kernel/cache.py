"""Is the compiled code at hand, and is it that of the sources?

Numba keeps compiled code beside the file of each function and makes it anew when that file
changes, but does not look at the other files that the function calls into. Here all of them count.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hpcrowd.environment.engine.kernel import loop


def is_compiled(clusters: int = 1) -> bool:
    """Return whether what so many clusters need is compiled for this Python already."""
    needed = "loop.advance-" if clusters == 1 else "grid_loop.advance_grid-"
    return any(path.name.startswith(needed) for path in _indexes())


def drop_stale() -> None:
    """Throw compiled code away that is older than the sources it was made from."""
    environment = Path(__file__).parents[2]
    names = ("schedulers/estimates.py", "jobs.py", "stops.py")
    sources = [
        *environment.glob("**/kernel/*.py"),
        *(environment / name for name in names),
    ]
    changed = max(path.stat().st_mtime for path in sources)
    indexes = _indexes()
    if any(_written(path) <= changed for path in indexes):
        for path in indexes:
            path.unlink(missing_ok=True)


def _written(path: Path) -> float:
    """Return when a file was written; for ever ahead if another process has just removed it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _indexes() -> list[Path]:
    """Return the files in which numba notes what it has compiled for this Python."""
    folder = Path(loop.advance._cache.cache_path)
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    return list(folder.glob(f"*.{python}.nbi"))
