"""The state of a cluster from its own Slurm: the queue now, and the accounting of the last weeks.

::

    squeue -a -r -o %all > queue.txt        or squeue --json, scontrol -a show job (--json)
    sacct -a -X -P -S now-8weeks -o ALL > past.txt              or sacct -a --json
    scontrol show node > nodes.txt; scontrol show partition > partitions.txt
    scontrol show res > reservations.txt

    state_of_slurm("queue.txt", "past.txt", machine=["nodes.txt", "partitions.txt", ...])

Jobs of the two are joined by the names of users, accounts, programs and partitions. What the queue
lists counts once: its word goes for what waits and runs, that of the accounting for what is over.

Source: man pages of ``squeue`` (JOB REASON CODES, JOB STATE CODES) and ``scontrol``, and what
Slurm 22.05 prints.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import Clock, second_of
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.header import most_in_use
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.limits.numbers import MOST_PROCESSORS, check_within
from hpcrowd.environment.machine.files.reading import AnyPath, read_machine, records_in
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.slurm.records import Kind, Record
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.requests import Ask, Requests
from hpcrowd.environment.schedulers.past import Placed
from hpcrowd.environment.state.state import ClusterState, NodeLists, check_state, refuse
from hpcrowd.environment.traces.formats.common.base import FormatOptions
from hpcrowd.environment.traces.formats.common.files import LONGEST_DOCUMENT, read_file
from hpcrowd.environment.traces.formats.common.names import numbered_fields, worded
from hpcrowd.environment.traces.formats.common.site_columns import site_numbers
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.formats.slurm.accounting import trace_of_queue
from hpcrowd.environment.traces.formats.slurm.json_records import objects
from hpcrowd.environment.traces.formats.slurm.snapshot import (
    ALL,
    NOT_YET,
    WAITING,
    Queued,
    expanded,
    is_queue,
    queued_in,
    row_of_queue,
)
from hpcrowd.environment.traces.formats.slurm.values import ENDED, LAST_TIME, STATES
from hpcrowd.environment.traces.headers import parse_zone, unix_origin
from hpcrowd.environment.traces.requests import requests_of
from hpcrowd.environment.traces.trace import Conversion, Trace, counted, jobs_from_trace

#: Reasons after which a job waits until somebody does something, or another job ends. Others pass
#: by themselves: resources, priority, limits on what runs at once, a time to begin, nodes that are
#: down.
HELD = frozenset((
    "JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue", "launch_failed_requeued_held",
    "job_requeued_in_held_state", "Dependency", "DependencyNeverSatisfied", "BadConstraints",
    "PartitionNodeLimit", "PartitionTimeLimit", "PartitionDown", "PartitionInactive",
    "AccountNotAllowed", "QOSNotAllowed", "InvalidAccount", "InvalidQOS", "ReservationDeleted",
))  # fmt: skip

#: Reasons of jobs that ask for more, or less, than an association or a QOS lets one job have.
_NEVER = re.compile(r"(Assoc|QOS)(Max|Min)\w*(PerJob|NotSatisfied)\w*")

#: States of jobs that wait and are held, whatever the reason.
HELD_STATES = frozenset(("REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"))

#: Words for no reason.
NO_REASON = frozenset(("", "None", "(null)"))

#: State of a job that has started and holds no cores until somebody lets it go on.
SUSPENDED = "SUSPENDED"

#: What Slurm gives a job that is held as its priority.
NO_PRIORITY = "0"

#: States of nodes on which nothing starts, in lower case; what runs on draining ones goes on.
DOWN = frozenset((
    "down", "drain", "drained", "draining", "fail", "failing", "error", "power_down",
    "powering_down", "reboot", "reboot_issued", "inval", "perfctrs",
))  # fmt: skip

#: What the command prints when nothing waits or runs.
NOTHING = b"No jobs in the system"

#: Why jobs are left out.
LISTED = "in the accounting it runs at that moment, and the queue does not list it"
LATER = "submitted after the moment of the state"
AGAIN = "earlier runs of jobs that are back in the queue"
SURELY_OVER = "the queue still lists it, and the accounting has its end"

#: Reasons with these beginnings are of jobs that have not ended: the queue has them.
NOT_ENDED = "state "

_FLAGS = re.compile(r"[+*~#!%$@^,\s-]+")

#: Fields whose numbers are joined by name.
FIELDS = ("user", "group", "executable", "queue")


class _Part(NamedTuple):
    """Some jobs of a record, with times in Unix seconds."""

    #: The record, and the row of each job in it.
    trace: Trace
    row: Int64s
    jobs: JobTable  #: Their table.
    ids: list[str]  #: Their numbers in Slurm, such as ``47_3``.

    def take(self, which: NDArray[np.bool_]) -> _Part:
        """Return some of the jobs."""
        rows = np.flatnonzero(which)
        ids = [self.ids[row] for row in rows.tolist()]
        return _Part(self.trace, self.row[rows], self.jobs.take(rows), ids)

    @property
    def users(self) -> list[str]:
        """The name of the user of each job."""
        return _taken(worded(self.trace, "user", ""), self.row)

    @property
    def states(self) -> list[str]:
        """The state of each job in Slurm's words."""
        found = self.trace.extra.get("final_state")
        return [""] * len(self.row) if found is None else _taken(found.tolist(), self.row)


def _taken(texts: list[str], rows: Int64s) -> list[str]:
    return [texts[row] for row in rows.tolist()]


def state_of_slurm(
    queue: AnyPath,
    past: AnyPath | None = None,
    *,
    now: datetime | int | None = None,
    processors: int | None = None,
    machine: AnyPath | Sequence[AnyPath] | None = None,
    zone: str | None = None,
) -> ClusterState:
    """Return the state of a cluster from what Slurm prints.

    Jobs are numbered by their submissions; ``jobs.names["job"]`` has their numbers in Slurm. Jobs
    that run or are over have the processors that they hold or held. What the queue says of nodes,
    earliest starts and reasons is in ``placed``. What a suspended job waits for is known to nobody:
    it counts as held, with its submission.

    Parameters
    ----------
    queue
        What waits and runs: ``squeue -a -r -o %all``, ``squeue --json``, or ``scontrol show job``.
    past
        What is over: ``sacct``. Without it, the past is what the queue still lists.
    now
        The moment at which the queue was printed: Unix time, or a date and time, local unless it
        has an offset. Unless given, it is exact if a running job shows since when and for how long
        it runs. Otherwise a note says what it is: the time of the file if the queue is empty, or if
        no running job would be over by then; else the latest submission, start or end that the
        queue shows, or the end in the accounting of a job that ran then and is not listed any more.
    processors
        Size of the machine. Unless given, the cores of ``machine``; without one the most that were
        in use at once, and at least what the largest waiting job asks for.
    machine
        Files with nodes, partitions and reservations, as for
        :func:`~hpcrowd.environment.machine.files.reading.read_machine`. Idle cores of nodes that
        are down or drained are down, and reservations of all nodes for maintenance are closed
        times. What runs on nodes that drain goes on.
    zone
        Time zone of the local times in all files; UTC unless given, with a note.

    Raises
    ------
    TraceError
        If a file cannot be read or is something else, or they contradict each other.
    ParseError
        If a line is broken, or its job contradicts something.
    MachineError
        If the machine cannot be read.
    QuantityError
        If the time zone, the moment or the size is wrong.
    """
    options, source = FormatOptions(zone=zone), os.fspath(queue)
    listed = _queued(queue)
    whole, _ = expanded(listed)
    trace = trace_of_queue(listed, source, options) if listed else None
    before = None if past is None else read_trace(past, options=options)
    notes: list[str] = []
    moment = _moment(trace, before, whole, queue, now, zone, notes)
    dropped, repaired = Counter[str](), Counter[str]()
    here = None if trace is None else _queue_part(trace, moment)
    over = _past_parts(trace, before, moment, dropped, repaired)
    here, over = _joined(here, over, moment, dropped)
    parts = [*over, *([] if here is None else [here])]
    if not any(len(part.ids) for part in parts):
        raise TraceError(f"{source}: nothing waits or runs; give what is over, too: sacct -a -X -P")
    jobs, order = _merged(parts)
    origin = int(jobs.recorded_submit.min())
    for times in (jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end):
        times[times != UNKNOWN] -= origin
    clock = _clock(origin, zone)
    described = None if machine is None else read_machine(machine, zone)
    state = ClusterState(
        jobs, moment - origin, clock, 1, source=source, lines=np.zeros(len(jobs), np.int64),
        partitions=() if described is None else tuple(one.name for one in described.partitions),
    )  # fmt: skip
    if here is not None:
        by_id = {one.row["JobID"].partition("+")[0]: one for one in reversed(whole)}
        _describe(state, here, order, [by_id[one] for one in here.ids], notes)
    state.processors = _size(state, processors, described, notes)
    if described is not None and machine is not None:
        state.down = min(_down(records_in(machine)), state.processors)
        state.closed = _closed(described, moment, origin, notes)
    said = dict.fromkeys([*counted(repaired, dropped), *notes])
    state.notes = (*said, *check_state(state), *([clock.note] if clock.note else []))
    return state


# -------------------------------------------------------------------------------------- the queue


def _queued(path: AnyPath) -> list[Queued]:
    """Return the jobs that wait and run, in the order of the file."""
    source = os.fspath(path)
    data, _ = read_file(path, LONGEST_DOCUMENT)
    head = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"{"):
        found = list(objects([data], source))
        if found and "job_state" not in found[0]:
            raise TraceError(f"{source}: is accounting, not the queue; write it with squeue --json")
        return [row_of_queue(one, source) for one in found]
    if is_queue(data):
        return queued_in(data, source)
    if head.startswith(NOTHING):
        return []
    raise TraceError(
        f"{source}: is not what waits and runs in Slurm; write it with squeue -a -r -o %all, "
        "squeue --json or scontrol -a show job"
    )


def _moment(
    trace: Trace | None,
    past: Trace | None,
    queued: Sequence[Queued],
    path: AnyPath,
    now: datetime | int | None,
    zone: str | None,
    notes: list[str],
) -> int:
    """Return the moment of the queue, Unix time; note what it was taken from."""
    if now is not None:
        clock = Clock(1, parse_zone(zone) or Clock().zone, known=zone is not None)
        found = int(now) if isinstance(now, int) else second_of(now, clock) + clock.unix_start
        check_within("now", found, 1, LAST_TIME, "give Unix time, or a date and time")
        return found
    seen, exact = [one.seen for one in queued], False
    if trace is not None:
        origin = unix_origin(trace.header)
        submit, wait, run = (trace[name].astype(np.int64) for name in ("submit", "wait", "run"))
        start = submit + np.maximum(wait, 0)
        ends = start + np.maximum(run, 0)
        seen += (origin + ends[submit >= 0]).tolist()
        if "elapsed" in trace.extra:
            so_far = site_numbers(trace.extra, "elapsed", len(trace))
            runs = (submit >= 0) & (wait >= 0)
            seen += (origin + start + so_far)[runs].tolist()
            exact = bool(runs.any())
    last = max(seen, default=0)
    if last > LAST_TIME:
        raise TraceError(f"{path}: a time of {last:,} s since 1970, which is not a time of Slurm")
    if exact:
        return last
    try:
        written = int(Path(path).stat().st_mtime)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from None
    if trace is None or not last:
        notes.append("the queue is empty: its moment is the time of the file")
        return written
    last, before = _between(trace, past, last)
    what = "no job shows for how long it runs: the moment is that of"
    how = f"give it with --at, or print all columns with {ALL}"
    if last <= written <= before:
        notes.append(f"{what} the file; if that is wrong, {how}")
        return written
    notes.append(f"{what} what happened last; {how}")
    return last


def _between(queue: Trace, past: Trace | None, last: int) -> tuple[int, int]:
    """Return the earliest and the latest moment at which a queue was printed, Unix time.

    It was after what happened last in it, and before its running jobs reach their limits. With the
    accounting it was also after the ends of jobs that ran then and that it does not list, and
    before the first end of a running job that it lists. The second is 0 if nothing says it.
    """
    before = _latest(queue)
    if past is None or "job_id" not in past.extra:
        return last, before
    origin = unix_origin(past.header)
    submit, wait, run = (past[name].astype(np.int64) for name in ("submit", "wait", "run"))
    ran = (submit >= 0) & (wait >= 0) & (run >= 0)
    start = origin + (submit + wait)[ran]
    end = start + run[ran]
    listed = np.isin(past.extra["job_id"][ran], queue.extra["job_id"])
    first = end[listed & (start <= last) & (end > last)]
    before = min([before, *first.tolist()]) if before else int(first.min(initial=0))
    for row in np.argsort(start, kind="stable").tolist():
        if start[row] > last:
            break
        if not listed[row]:
            last = max(last, int(end[row]))
    return last, before


def _latest(trace: Trace) -> int:
    """Return when the first running job reaches its time limit, Unix time; 0 if none has one."""
    submit, wait, limit = (trace[name] for name in ("submit", "wait", "requested_time"))
    runs = (submit >= 0) & (wait >= 0) & (trace["run"] < 0) & (limit > 0)
    ends = (submit + wait + limit)[runs]
    return unix_origin(trace.header) + int(ends.min()) if len(ends) else 0


def _queue_part(trace: Trace, now: int) -> _Part:
    """Return the jobs of the queue that are not over."""
    states = trace.extra["final_state"].tolist()
    row = np.array([place for place, name in enumerate(states) if name not in ENDED], np.int64)
    waits = np.array(
        [states[place] in WAITING or states[place] == SUSPENDED for place in row], bool
    )
    jobs = JobTable(len(row))
    origin = unix_origin(trace.header)
    held, asked = (trace[f"{name}_processors"][row] for name in ("allocated", "requested"))
    jobs.processors[:] = np.where(held > 0, held, asked)
    submit, wait = trace["submit"][row].astype(np.int64), trace["wait"][row].astype(np.int64)
    so_far = site_numbers(trace.extra, "elapsed", len(trace))[row]
    start = np.where(wait >= 0, origin + submit + wait, now - so_far)
    jobs.recorded_start[:] = np.where(waits, UNKNOWN, start)
    first = np.where(waits, now, start)
    jobs.recorded_submit[:] = np.where(submit >= 0, origin + submit, first)
    jobs.requested_time[:] = trace["requested_time"][row]
    jobs.requested_memory[:] = np.floor(trace["requested_memory"][row])
    return _Part(trace, row, jobs, _taken(trace.extra["job_id"].tolist(), row))


# ---------------------------------------------------------------------------------------- the past


def _past_parts(
    queue: Trace | None,
    past: Trace | None,
    now: int,
    dropped: Counter[str],
    repaired: Counter[str],
) -> list[_Part]:
    """Return the jobs that are over: of the accounting, and others that the queue still lists."""
    parts: list[_Part] = []
    for trace in (past, queue):
        if trace is None:
            continue
        part, mended, left_out = _over_in(trace)
        if trace is queue:  # what has not ended is not left out
            mended, left_out = trace.repaired, trace.dropped
        repaired.update(mended)
        dropped.update({why: count for why, count in left_out.items()
                        if not why.startswith(NOT_ENDED)})  # fmt: skip
        if part is None:
            continue
        later = part.jobs.recorded_submit > now
        if later.any():
            dropped[LATER] += int(later.sum())
        known = set(parts[0].ids) if parts else set()
        fresh = np.array([one not in known for one in part.ids], bool)
        parts.append(part.take(~later & fresh))
    return parts


def _over_in(trace: Trace) -> tuple[_Part | None, Counter[str], Counter[str]]:
    """Return the jobs of a record that ran, None without any; what was repaired, and dropped."""
    if not np.any((trace["submit"] >= 0) & (trace["run"] >= 0)):
        return None, trace.repaired, trace.dropped
    found = jobs_from_trace(trace, Conversion(job_processors="allocated"))
    jobs, origin = found.jobs, unix_origin(trace.header)
    for times in (jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end):
        times += origin
    texts = trace.extra.get("job_id")
    names = [""] * len(trace) if texts is None else texts.tolist()
    part = _Part(trace, found.source_row, jobs, _taken(names, found.source_row))
    return part, found.repaired, found.dropped


def _joined(
    here: _Part | None, over: list[_Part], now: int, dropped: Counter[str]
) -> tuple[_Part | None, list[_Part]]:
    """Return the jobs of the queue and of the past, each job once."""
    place = {} if here is None else {one: row for row, one in enumerate(here.ids)}
    users = [] if here is None else here.users
    start = [] if here is None else here.jobs.recorded_start.tolist()
    submit = [] if here is None else here.jobs.recorded_submit.tolist()
    gone: set[int] = set()
    kept: list[_Part] = []
    for part in over:
        keep = np.ones(len(part.ids), bool)
        begins, ends = part.jobs.recorded_start.tolist(), part.jobs.recorded_end.tolist()
        rows = zip(part.ids, part.users, part.states, begins, ends, strict=True)
        for row, (one, user, state, begin, end) in enumerate(rows):
            there = place.get(one) if one else None
            if there is None or user != users[there]:
                keep[row] = end <= now
                dropped[LISTED] += int(end > now)
            elif end > now:
                keep[row] = False
            elif begin == start[there]:
                gone.add(there)
                dropped[SURELY_OVER] += 1
            elif STATES.get(state, STATES["COMPLETED"]).runs_again or end >= submit[there]:
                keep[row] = False
                dropped[AGAIN] += 1
        kept.append(part.take(keep))
    for why in (LISTED, SURELY_OVER, AGAIN):
        if not dropped[why]:
            del dropped[why]
    if here is not None and gone:
        left = np.array([row not in gone for row in range(len(here.ids))], bool)
        here = here.take(left)
    return here, kept


# --------------------------------------------------------------------------------------- together


def _merged(parts: Sequence[_Part]) -> tuple[JobTable, Int64s]:
    """Return the jobs of all parts by submission, and their order among the parts."""
    size = sum(len(part.ids) for part in parts)
    jobs = JobTable(size)
    jobs.matrix = np.concatenate([part.jobs.matrix for part in parts], axis=1)
    words = {
        field: [word for part in parts for word in _taken(worded(part.trace, field, ""), part.row)]
        for field in FIELDS
    }
    columns, names = numbered_fields(words)
    for field, numbers in columns.items():
        getattr(jobs, field)[:] = numbers
    jobs.requests = Requests(size)
    first = 0
    for part in parts:
        found = requests_of(part.trace, part.row, always=True)
        if found is not None:
            last = first + len(found)
            jobs.requests.matrix[:, first:last] = found.translated(jobs.requests)
        first += len(part.ids)
    order = np.argsort(jobs.recorded_submit, kind="stable")
    merged = jobs.take(order)
    merged.erase_outcome()
    merged.number[:] = np.arange(1, size + 1)
    ids = [one for part in parts for one in part.ids]
    named = {number: ids[row] for number, row in enumerate(order.tolist(), 1) if ids[row]}
    merged.names = names | ({"job": named} if named else {})
    return merged, order


def _clock(origin: int, zone: str | None) -> Clock:
    named = parse_zone(zone)
    return Clock(origin) if named is None else Clock(origin, named, known=True)


def _describe(
    state: ClusterState, here: _Part, order: Int64s, queued: Sequence[Queued], notes: list[str]
) -> None:
    """Add to a state what the queue says of its jobs beyond the table, and note suspended ones.

    The order has the jobs of the state as places among all parts; those of the queue are the last.
    """
    jobs, lines = state.jobs, state.lines
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows = place[len(order) - len(here.ids) :]
    after = site_numbers(here.trace.extra, "eligible", len(here.trace))[here.row]
    partitions = _taken(worded(here.trace, "queue", ""), here.row)
    places = here.trace.extra.get("node_list")
    nodes = [""] * len(rows) if places is None else _taken(places.tolist(), here.row)
    lists, asleep = NodeLists(), 0
    for row, one, later, partition, where, status in zip(
        rows.tolist(), queued, after.tolist(), partitions, nodes, here.states, strict=True
    ):
        if lines is not None:
            lines[row] = one.line
        eligible = int(jobs.recorded_submit[row]) + later if later > 0 else UNKNOWN
        if jobs.recorded_start[row] != UNKNOWN:
            try:
                names = lists.names(where)
            except QuantityError as error:
                rule = str(error).partition(": ")[2]
                refuse(state, row, "nodes", where, rule)
            state.placed[row] = Placed(partition, names, (), eligible)
            continue
        reason = "" if one.reason in NO_REASON else one.reason
        if eligible > state.now and jobs.requests is not None:
            jobs.requests[Ask.BEGIN][row] = eligible
        if reason or eligible != UNKNOWN:
            state.placed[row] = Placed(eligible=eligible, reason=reason)
        held = SUSPENDED if status == SUSPENDED else _held(one, status)
        asleep += held == SUSPENDED
        if held:
            state.held[row] = held
    if asleep:
        notes.append(f"{plural(asleep, 'suspended job')}: taken as held, with no processors")


def _held(queued: Queued, status: str) -> str:
    """Return why a waiting job will not start by itself; empty if it may."""
    reason = queued.reason
    if reason.replace(" ", "_") in HELD or _NEVER.fullmatch(reason):
        return reason
    if status in HELD_STATES:
        return status
    if queued.row["Priority"] == NO_PRIORITY and reason != NOT_YET:
        return "priority 0" if reason in NO_REASON else reason
    return ""


# ------------------------------------------------------------------------------------- the machine


def _size(state: ClusterState, given: int | None, machine: Machine | None, notes: list[str]) -> int:
    """Return the number of processors."""
    if given is not None:
        check_within("processors", given, 1, MOST_PROCESSORS)
        return given
    if machine is not None:
        return machine.cores
    jobs = state.jobs
    ran = np.flatnonzero(jobs.recorded_start != UNKNOWN)
    start, end = jobs.recorded_start[ran], jobs.recorded_end[ran]
    end = np.where(end == UNKNOWN, np.maximum(state.now, start) + 1, end)
    most = most_in_use(start, end, jobs.processors[ran])
    free = np.setdiff1d(state.waiting, np.fromiter(state.held, np.int64, len(state.held)))
    size = max(most, int(jobs.processors[free].max(initial=0)))
    if size < 1:
        raise QuantityError(f"{state.source}: no job has run; give the size with --processors")
    notes.append(
        f"the size of the machine is not given: {plural(size, 'processor')}, the most in use at "
        "once or asked for by a waiting job; set it with --processors"
    )
    return size


def _down(records: Iterable[Record]) -> int:
    """Return the cores that are idle on nodes that are down or drained."""
    from hpcrowd.environment.machine.slurm.nodes import nodes_of
    from hpcrowd.environment.machine.slurm.records import hosts

    idle: dict[str, int] = {}  # of each node; what scontrol shows goes before slurm.conf
    for record in sorted(records, key=lambda one: one.source):
        state, name = record.values.get("state"), record.values.get("nodename")
        if record.kind is not Kind.NODES or state is None or name is None:
            continue
        used = record.values.get("cpualloc")
        busy = int(used.text) if used is not None and used.text.isdecimal() else 0
        types = nodes_of([record], []).types
        starts = DOWN.isdisjoint(_FLAGS.split(state.text.lower())) or not types
        for one in hosts(name):
            idle[one] = 0 if starts else max(types[0].cores - busy, 0)
    return sum(idle.values())


def _closed(
    machine: Machine, now: int, origin: int, notes: list[str]
) -> tuple[tuple[int, int], ...]:
    """Return when all nodes are reserved for maintenance; note other reservations."""
    found = []
    everywhere = len(machine.places(("ALL",)))
    for one in machine.reservations:
        if one.end <= now:
            continue
        whole = one.cores_per_node is None and len(machine.places(one.nodes)) == everywhere
        if one.maintenance and whole:
            found.append((one.start - origin, one.end - origin))
        else:
            notes.append(f"reservation {one.name}: of part of the machine, or for some; not closed")
    return tuple(sorted(found))
