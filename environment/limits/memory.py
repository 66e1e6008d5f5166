"""Memory: how much is free, and a refusal before more than that is allocated."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hpcrowd.environment.errors import QuantityError

#: Bytes that need no look at the free memory.
SMALL = 64 * 2**20

#: Share of the free memory that one allocation may take; copies are made on the way.
SHARE = 0.8

#: A megabyte and a gigabyte, for messages.
MB, GB = 10**6, 10**9


def free_memory() -> int | None:
    """Return how many bytes this process can still use; None where the system does not say.

    The least of what the machine has free (``/proc/meminfo``), what the group of processes
    (cgroup, as in containers and batch jobs) may still use, and what ``ulimit -v`` leaves.
    """
    found = [one for one in (_machine(), _group(), _process()) if one is not None]
    return max(0, min(found)) if found else None


def check_memory(what: str, need: float, cure: str) -> None:
    """Check that memory is free for something, before it is allocated.

    Parameters
    ----------
    what
        What needs the memory, with its number, such as ``jobs 10,000,000,000``.
    need
        Estimated bytes.
    cure
        What to do about it.

    Raises
    ------
    QuantityError
        When more is needed than is free.
    """
    if need <= SMALL:
        return
    free = free_memory()
    if free is None:
        return
    if need > SHARE * free:
        raise QuantityError(
            f"{what}: needs about {_size(need)} of memory, {_size(free)} are free; {cure}"
        )


def _size(count: float) -> str:
    return f"{count / GB:,.1f} GB" if count >= GB else f"{count / MB:,.0f} MB"


def _machine() -> int | None:
    """Return what the machine has free."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _group() -> int | None:
    """Return what the groups of processes that this one is in may still use."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        root = Path("/sys/fs/cgroup") / ("memory" if controllers else "")
        names = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes")
            if controllers
            else ("memory.max", "memory.current")
        )
        place = root / path.strip("/")
        # A limit holds for all groups below it.
        for folder in (place, *place.parents):
            left = _left(folder / names[0], folder / names[1])
            if left is not None:
                found.append(left)
            if folder == root:
                break
    return min(found) if found else None


def _left(limit: Path, used: Path) -> int | None:
    try:
        most = limit.read_text(encoding="ascii").strip()
        return None if most == "max" else int(most) - int(used.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _process() -> int | None:
    """Return what the limit of this process's address space leaves."""
    if sys.platform == "win32":
        return None
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return most - pages * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return most
