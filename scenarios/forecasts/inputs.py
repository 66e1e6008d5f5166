"""Where the state of a forecast comes from: a snapshot, Slurm's own queue, or a second of a log."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis.forecast.futures import Asked
from hpcrowd.environment.clock import DAY, Clock, second_of
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.quantities import parse_duration
from hpcrowd.environment.state.checks import check_state
from hpcrowd.environment.state.files import FORMAT, read_state
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.environment.traces.formats.common.base import FormatOptions
from hpcrowd.environment.traces.formats.common.files import read_file
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.formats.slurm.snapshot import is_queue
from hpcrowd.environment.traces.paths import file_of
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace

if TYPE_CHECKING:
    from hpcrowd.environment.machine.model import Machine

#: Bytes at the beginning of a file that say what it is.
HEAD = 200_000

#: Days of a trace before the state that it knows: what is longer ago says little of the next weeks.
KNOWN_DAYS = 180

#: Most jobs that one would submit at once.
MOST_ASKED = 1000

#: Characters of a job in words that messages repeat.
LONGEST = 100

_JOB = re.compile(
    r"\s*(?:(?P<count>\d{1,9})\s*x\s*)?(?P<processors>\d{1,12})\s*(?:processors?|cores?|cpus?)?\s*"
    r"(?:for|x)\s+(?P<time>[^,]+?)\s*(?:,\s*user\s+(?P<user>[^,]+?))?"
    r"(?:,\s*(?:in|queue|partition)\s+(?P<queue>[^,]+?))?\s*",
    re.IGNORECASE,
)

#: A unit of time as people write it: the first letter is the one that is read.
_UNIT = re.compile(r"(?<=\d)\s*(?:(s)ec\w*|(m)in\w*|(h)(?:ours?|rs?)|(d)ays?|([smhdw]))$", re.I)


def state_from(
    path: Path,
    *,
    at: int | datetime | None = None,
    past: Path | None = None,
    machine: Sequence[Path] = (),
    processors: int | None = None,
    options: FormatOptions | None = None,
) -> ClusterState:
    """Return the state that a forecast begins with.

    Parameters
    ----------
    path
        A snapshot of :func:`~hpcrowd.environment.state.files.write_state`; the queue of a Slurm; a
        trace in any format; or a folder with the results of a run.
    at
        Of a trace: the moment, a second since its origin or a date; its last submission unless
        given. Of a queue of Slurm: when it was printed.
    past
        Of a queue of Slurm: its accounting of the last weeks.
    machine
        Of a queue of Slurm: files with nodes, partitions and reservations.
    processors
        Size of the machine; as known from the input unless given.
    options
        How traces are read.

    Raises
    ------
    HpcrowdError
        In one line, where something is wrong, with the line of the file.
    """
    path = file_of(path)
    head = read_file(path)[0][:HEAD]
    if is_state(head):
        if past is not None:
            raise QuantityError(f"--past {past}: {path} is a state and has its own; leave it out")
        if at is not None:
            raise QuantityError(
                f"--at {at}: {path} is a state, with its own moment; leave it out, or give a trace"
            )
        state = read_state(path)
        if processors is not None:
            state.processors = processors
        check_state(state)
        return state
    if is_queue(head) or b'"job_state"' in head:
        from hpcrowd.environment.state.slurm import state_of_slurm

        zone = None if options is None else options.zone
        return state_of_slurm(
            path, past, now=at, processors=processors, machine=list(machine) or None, zone=zone
        )
    if past is not None:
        raise QuantityError(
            f"--past {past}: is for a queue of Slurm, and {path} is a trace, which has its own past"
        )
    trace = read_trace(path, options=options)
    return state_of_trace(trace, at, processors)


def is_state(content: bytes) -> bool:
    """Return whether a file that begins like this is a snapshot."""
    return FORMAT.encode() in content[:200]


def state_of_trace(
    trace: Trace, at: int | datetime | None = None, processors: int | None = None
) -> ClusterState:
    """Return the state at a moment of a trace; at its last submission unless given.

    If more processors are in use then than the trace says that there are, the machine is as large.
    """
    jobs = known_jobs(trace)
    clock = Clock.of(trace.header)
    now = int(jobs.recorded_submit.max()) if at is None else second_of(at, clock)
    recent = np.flatnonzero(
        (jobs.recorded_submit > now - KNOWN_DAYS * DAY) | (jobs.recorded_end > now)
    )
    if len(recent):  # else whoever makes the state says what is wrong
        jobs = jobs.take(recent)
    state = ClusterState.of(jobs, now, clock, processors or trace.processors, source=trace.source)
    if processors is None:
        used = int(state.jobs.processors[state.running].sum())
        state.processors = max(state.processors, used)
    check_state(state)
    return state


def known_jobs(trace: Trace) -> JobTable:
    """Return the jobs of a trace; requested times that it lacks are -1, not the run times."""
    converted = jobs_from_trace(trace)
    lacks = np.asarray(trace["requested_time"])[converted.source_row] <= 0
    converted.jobs.requested_time[lacks] = UNKNOWN
    return converted.jobs


def parse_job(text: str, state: ClusterState, option: str = "--job") -> Asked:
    """Return a job that one would submit, from text such as ``64 processors for 6 h``.

    Parameters
    ----------
    text
        ``[COUNT x] PROCESSORS [processors] for TIME[, user NAME][, in QUEUE]``, or shorter
        ``32 x 12 h``, processors and time.
    state
        Knows the names.
    option
        Where the text is from, for messages.

    Raises
    ------
    QuantityError
        If the text has another form, or a name is not known.
    """
    what = f"{option} {text if len(text) <= LONGEST else text[:LONGEST] + '...'!r}"
    match = _JOB.fullmatch(text)
    if match is None:
        raise QuantityError(
            f"{what}: write '64 processors for 6 h', '4 x 16 processors for 6 h', "
            "and if you like ', user NAME' and ', in QUEUE'"
        )
    processors, count = int(match["processors"]), int(match["count"] or 1)
    words = match["time"].strip()
    try:
        time = parse_duration(_UNIT.sub(lambda unit: unit[unit.lastindex or 0].lower(), words))
    except QuantityError as error:
        raise QuantityError(f"{what}: {error}") from None
    if not 0 < processors <= state.processors:
        raise QuantityError(
            f"{what}: asks {processors:,} processors, and the machine has "
            f"{state.processors:,}; ask for 1 to {state.processors:,}"
        )
    if not 0 < count <= MOST_ASKED:
        raise QuantityError(f"{what}: {count:,} jobs; ask for 1 to {MOST_ASKED:,}")
    if time <= 0:
        raise QuantityError(f"{what}: a time of {time} s; give a longer one")
    user = _number(state, "user", match["user"], what)
    queue = _number(state, "queue", match["queue"], what)
    return Asked(processors, time, user, queue, count)


def _number(state: ClusterState, field: str, name: str | None, what: str) -> int:
    """Return the number of a name."""
    if name is None:
        return UNKNOWN
    for number, known in state.jobs.names.get(field, {}).items():
        if known == name:
            return number
    column = state.jobs.user if field == "user" else state.jobs.queue
    if name.isdecimal() and len(name) < 10 and int(name) in column:
        return int(name)
    raise QuantityError(
        f"{what}: no {field} {name!r} in {state.source}; give one with jobs there, or none"
    )


def site_of_files(paths: Sequence[Path], zone: str | None = None) -> Machine | None:
    """Return the machine that files describe, with local times of a zone; None for no files."""
    if not paths:
        return None
    from hpcrowd.environment.machine.files.reading import read_machine

    found: list[str | os.PathLike[str]] = list(paths)
    return read_machine(found, zone)
