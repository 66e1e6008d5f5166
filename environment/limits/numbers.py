"""The largest and smallest numbers that hpcrowd computes with, and why; and the free memory.

Settings, models and traces are checked against these before anything is computed, so that a slip of
the keyboard is one line and not a machine without memory. Other limits are next to what they limit:
those of a behaviour's parameters in their declaration, those of lines of a trace with its readers.
More memory than is free is refused before it is allocated.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from hpcrowd.environment.errors import QuantityError

#: Processors of a cluster. The largest machines have ten million cores.
MOST_PROCESSORS = 100_000_000

#: Seconds of a duration in settings: 317 years, longer than any log.
LONGEST_DURATION = 10_000_000_000

#: Seconds of a run, for its changes and for windows: what a trace can hold exactly.
LATEST_MOMENT = 2**53

#: Days that are simulated or generated: a century, longer than any machine runs.
MOST_DAYS = 36_525

#: The least part of a day that is generated, a second.
LEAST_DAYS = 1 / 86400

#: Jobs of a generated workload; more do not fit into the memory of most machines.
MOST_JOBS = 100_000_000

#: Users of a population.
MOST_USERS = 10_000_000

#: Runs of a sweep; each of them takes a fraction of a second at least.
MOST_RUNS = 1_000_000

#: Processes that share the work, more than a machine has cores; each takes :data:`PROCESS_BYTES`.
MOST_WORKERS = 1024

#: Bytes of its own of a process that replays KTH-SP2, measured on Linux.
PROCESS_BYTES = 150 * 10**6

#: Searches for the parameters of a predictor, each of which takes a minute.
MOST_SEARCHES = 10_000

#: Speeds relative to another machine: times of a second to centuries stay exact.
LEAST_SPEED, MOST_SPEED = 1e-6, 1e6

#: Offered loads; beyond them, times between arrivals are stretched until nothing is left of them.
LEAST_LOAD, MOST_LOAD = 1e-6, 1e6

#: Factors such as ``2x`` of sizes, times and populations.
LEAST_FACTOR, MOST_FACTOR = 1e-9, 1e9

#: Seconds in traces, and every sum of times: sums of two of these do not overflow int64.
LARGEST_TIME = 2**61

#: Any other number of a setting: sums and products of several remain exact.
LARGEST_SETTING = 1e12

#: Seeds; these are written in files as 64 bits.
LARGEST_SEED = 2**63 - 1

#: How numpy's warnings of floating-point errors begin.
FLOATING_ERRORS = "(divide by zero|overflow|invalid value) encountered"

#: Largest power usage effectiveness that is not taken for a mistake.
MOST_PUE = 10.0


def raise_floating_errors() -> None:
    """Make numpy's warnings of divisions by zero, overflows and invalid values errors."""
    warnings.filterwarnings("error", FLOATING_ERRORS, RuntimeWarning)


def floating_errors_raise() -> bool:
    """Return whether :func:`raise_floating_errors` was called in this process."""
    return any(
        action == "error" and message is not None and message.pattern == FLOATING_ERRORS
        for action, message, *_ in warnings.filters
    )


def check_within(what: str, value: float, least: float, most: float, cure: str = "") -> None:
    """Check that a number is in a range, ends included; one that is not a number never is.

    Raises QuantityError with what it is, such as the name of a setting, its value, the range, and a
    cure.
    """
    if not least <= value <= most:
        more = f"; {cure}" if cure else ""
        first, last = (f"{one:,}" if one == int(one) else f"{one:g}" for one in (least, most))
        raise QuantityError(f"{what} {value!r}: must be from {first} to {last}{more}")


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

    Raises QuantityError when more is needed, in bytes, than is free, with what needs it and its
    number, such as ``jobs 10,000,000,000``, and the cure.
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
