"""Where the state of a forecast comes from: a snapshot, Slurm's own queue, or a second of a log.

What the machine of a forecast makes of it is here, too: jobs that could never start, unknown QOS.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis.forecast.futures import Asked, Outset
from hpcrowd.environment.clock import DAY, Clock, second_of
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.jobs import State as Outcome
from hpcrowd.environment.quantities import parse_duration, plural
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.state.files import FORMAT, read_state
from hpcrowd.environment.state.state import ClusterState, check_state
from hpcrowd.environment.traces.formats.common.base import FormatOptions
from hpcrowd.environment.traces.formats.common.files import read_file
from hpcrowd.environment.traces.formats.registry import file_of, read_trace
from hpcrowd.environment.traces.formats.slurm.snapshot import is_queue
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
    """Return the state that a forecast begins with, of a machine as known unless its size is given.

    The path is a snapshot of :func:`~hpcrowd.environment.state.files.write_state`; the queue of a
    Slurm, with its accounting of the last weeks, ``past``, and files with nodes, partitions and
    reservations, ``machine``; a trace in any format, read as the options say; or a folder with the
    results of a run. The moment ``at`` of a trace is a second since its origin or a date, its last
    submission unless given; of a queue, when it was printed. An HpcrowdError says in one line what
    is wrong, with the line of the file.
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
        state.processors = max(state.processors, state.used)
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

    It is ``[COUNT x] PROCESSORS [processors] for TIME[, user NAME][, in QUEUE]``, or shorter ``32 x
    12 h``, processors and time, with names that the state knows. A QuantityError, which names the
    option, is raised if the text has another form, or a name is not known.
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


# ---- the machine --------------------------------------------------------------------------------

#: Why a job is rejected on a machine without nodes.
TOO_LARGE = "more processors than are up"


def with_known_qos(site: Machine, state: ClusterState) -> tuple[Machine, tuple[str, ...]]:
    """Return the machine with all QOS of the jobs, and a note about those that it lacked.

    Slurm has accepted these jobs, so their QOS exist: only the description lacks them. They get no
    priority and no limits.
    """
    from hpcrowd.environment.machine.model import Qos

    requests = state.jobs.requests
    if requests is None:
        return site, ()
    known = {one.name for one in site.qos}
    missing = sorted(set(requests.texts(Ask.QOS)) - known - {""})
    if not missing:
        return site, ()
    added = tuple(Qos(name=name) for name in missing)
    note = (
        f"QOS {', '.join(missing)}: not described, so without priority and limits; describe them "
        "with --machine qos.txt, from sacctmgr -P show qos"
    )
    return site.model_copy(update={"qos": (*site.qos, *added)}), (note,)


def without_impossible_jobs(outset: Outset) -> Outset:
    """Return the same with waiting jobs that the machine can never start as held, and a note."""
    reasons = never_start(outset)
    if not reasons:
        return outset
    state = outset.state
    counts = Counter(reasons.values()).most_common()
    shown = ", ".join(f"{count:,} {reason}" for reason, count in counts)
    note = (
        f"{plural(len(reasons), 'waiting job')} can never start on the machine as it is described: "
        f"{shown}"
    )
    held = state.held | {row: f"never starts: {reason}" for row, reason in reasons.items()}
    notes = tuple(dict.fromkeys((*state.notes, note)))
    return replace(outset, state=replace(state, held=held, notes=notes))


def never_start(outset: Outset) -> dict[int, str]:
    """Return why waiting jobs that are not held can never start, by row of the state."""
    state = outset.state
    free = np.setdiff1d(state.waiting, list(state.held))
    if outset.machine is None:
        up = outset.processors or state.processors - state.down
        return dict.fromkeys(free[state.jobs.processors[free] > up].tolist(), TOO_LARGE)
    seen: list[object] = []
    replace(outset, horizon=1, users="none", asked=()).simulate(0, watch=seen.append)
    (simulation,) = seen
    jobs, scheduler = simulation.jobs, simulation.cluster.engine.scheduler  # type: ignore[attr-defined]
    return {
        row: scheduler.turns_away(place) or TOO_LARGE
        for place, row in enumerate(outset.rows.tolist())
        if jobs.state[place] == Outcome.REJECTED and row in free
    }
