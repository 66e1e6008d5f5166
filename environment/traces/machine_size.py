"""The size of the machine of a trace: from its header, else from what it recorded.

A log without a size holds at least what was in use at once. That peak is a lower bound: processors
that were never needed at the same time as the others do not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.header import Header
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import plural

#: Begins each note.
NOT_GIVEN = "the trace does not give the size of the machine"


@dataclass(frozen=True)
class MachineSize:
    """The number of processors of a machine, and where it comes from.

    Attributes
    ----------
    processors
        The number; None if nothing is known.
    note
        What it is if the header does not give it; empty if it does.
    """

    processors: int | None
    note: str = ""


def most_in_use(start: Int64s, end: Int64s, processors: NDArray[Any]) -> int:
    """Return the most processors that jobs held at one time; ends come before starts."""
    times = np.concatenate((end, start))
    order = np.lexsort((np.repeat((0, 1), (len(end), len(start))), times))
    change = np.concatenate((-processors, processors))[order]
    return int(max(np.cumsum(change).max(initial=0), 0))


def machine_size(header: Header, columns: Mapping[str, NDArray[Any]]) -> MachineSize:
    """Return the size of the machine.

    If the header does not give it, it is the peak of the recorded use: the most processors that
    jobs held at once, by their recorded starts and ends, and at least the largest job that ran. If
    no job has a recorded start, each is taken as started when it was submitted, as in a replay; the
    result may then be too large where jobs waited. If no job ran, it is the largest job.

    Parameters
    ----------
    header, columns
        Those of the trace.
    """
    if header.processors is not None:
        return MachineSize(header.processors)
    submit, wait, run, held, asked = (
        columns[name]
        for name in ("submit", "wait", "run", "allocated_processors", "requested_processors")
    )
    most = np.maximum(held, asked)
    ran = (submit >= 0) & (run >= 0) & (most > 0)
    if not ran.any():
        largest = int(np.ceil(most.max(initial=0)))
        if largest < 1:
            return MachineSize(None)
        return MachineSize(
            largest,
            f"{NOT_GIVEN}; {plural(largest, 'processor')}, its largest job, is a lower bound",
        )
    started = ran & (wait >= 0)
    known = bool(started.any())
    counted = started if known else ran
    begin = submit[counted].astype(np.float64) + (wait[counted] if known else 0)
    end = begin + run[counted]
    size = np.ceil(np.where(held > 0, held, asked)[counted]).astype(np.int64)
    peak = max(most_in_use(begin, end, size), int(np.ceil(most[ran].max())))
    number = plural(peak, "processor")
    if not known:
        return MachineSize(
            peak,
            f"{NOT_GIVEN}, nor when jobs started; {number}, the most in use if each started when "
            "it was submitted, is an estimate",
        )
    return MachineSize(
        peak, f"{NOT_GIVEN}; {number}, the peak of its recorded use, is a lower bound"
    )
