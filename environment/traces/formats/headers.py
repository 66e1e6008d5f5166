"""Headers for logs that have none: what the Standard Workload Format wants to know of a machine."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.header import Header
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.traces.truth import header_date

#: Fields whose names the header lists: its keys for how many, and for each.
LISTED = {"queue": ("MaxQueues", "Queue"), "partition": ("MaxPartitions", "Partition")}

#: Unix time of the end of 2199, s: later moments in a log are mistakes.
LATEST = 7_258_118_399


def made_header(
    *,
    jobs: int,
    notes: list[str],
    unix_start: int | None = None,
    last: int = 0,
    zone: tzinfo | None = None,
    processors: int | None = None,
    computer: str = "",
    names: dict[str, dict[int, str]] | None = None,
) -> Header:
    """Return the header of a log that was read from another format.

    Parameters
    ----------
    jobs
        How many there are.
    notes
        How it was made: each becomes a ``Note``.
    unix_start, last
        Unix time of the origin, None if unknown, and of the last event.
    zone
        Time zone of the machine; None if unknown.
    processors
        Processors of the machine; None if unknown.
    computer
        What it is called.
    names
        As :attr:`hpcrowd.environment.traces.trace.Trace.names`; queues and partitions are listed.
    """
    found: list[tuple[str, Any]] = [("Version", "2.2")]
    if computer:
        found.append(("Computer", computer))
    found += [("MaxJobs", jobs), ("MaxRecords", jobs)]
    if unix_start is not None:
        found.append(("UnixStartTime", unix_start))
        if zone is not None:
            found.append(("TimeZoneString", zone))
        if 0 <= unix_start <= last <= LATEST:
            clock = Clock(unix_start, zone or UTC, known=True)
            found.append(("StartTime", header_date(clock, 0)))
            found.append(("EndTime", header_date(clock, last - unix_start)))
    if processors is not None:
        found.append(("MaxProcs", processors))
    for field, (how_many, each) in LISTED.items():
        listed = (names or {}).get(field, {})
        if listed:
            found.append((how_many, len(listed)))
            found += [(each, f"{number} {listed[number]}") for number in sorted(listed)]
    found += [("Note", note) for note in notes]
    return Header([f"; {key}: {_one_line(str(value))}".encode() for key, value in found])


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def unix_origin(header: Header) -> int:
    """Return the Unix time of the origin of a log; 0 where it does not tell."""
    return header.integer("UnixStartTime") or 0


def parse_zone(name: str | None) -> tzinfo | None:
    """Return a time zone by its name; None where there is none.

    Raises
    ------
    QuantityError
        When it is not known.
    """
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise QuantityError(
            f"zone {name!r}: not known; say a place, for example Europe/Stockholm, or UTC"
        ) from None


def most_in_use(start: Int64s, end: Int64s, processors: NDArray[Any]) -> int:
    """Return the most processors that jobs held at one time; ends come before starts."""
    times = np.concatenate((end, start))
    order = np.lexsort((np.repeat((0, 1), (len(end), len(start))), times))
    change = np.concatenate((-processors, processors))[order]
    return int(max(np.cumsum(change).max(initial=0), 0))
