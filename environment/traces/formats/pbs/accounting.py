r"""Accounting logs of PBS, PBS Professional and Torque: one record per line.

::

    04/18/2009 00:00:15;Q;123.server;queue=batch
    04/18/2009 00:01:00;S;123.server;user=alice group=chem jobname=STDIN queue=batch ...
    04/18/2009 00:21:00;E;123.server;user=alice ... ctime=1240012815 start=1240012860
        exec_host=n1/0*8 Resource_List.ncpus=8 Resource_List.walltime=01:00:00 end=1240014060
        Exit_status=0 resources_used.cput=00:10:00                        (in one line)

Time of the record, its type, the job, and a message. The records of a job are merged; if two
differ, the later one counts. A job runs from ``start`` to ``end``; ``resources_used.walltime`` is
taken where these are unknown or backward, and counted where it differs. Used memory of 0 is
unknown.

===== ==================================================================================
E     the job has ended: status 1 if ``Exit_status`` is 0, else 0; 5 if there is also a D
D     it was deleted: status 5, ended even without an E
A     it was aborted by the server: status 0, ended even without an E
R     it is run again: the previous run is kept in the column of earlier runs
Q, S  submitted, started: a job with no other record is dropped, as its outcome is unknown
===== ==================================================================================

Other records are not about jobs. The array itself, ``123[].server``, is dropped: its jobs, such as
``123[4].server``, count one by one. A written trace has its header in records of type ``L`` (which
PBS uses for licences) of ``hpcrowd``.

Source: Torque Administrator Guide (Accounting records), and logs of PBS Professional.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import partial
from typing import Any

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.header import decode
from hpcrowd.environment.traces.formats.common.accounting import (
    RAN_AGAIN,
    Job,
    job_numbers,
    run_time,
    trace_of,
)
from hpcrowd.environment.traces.formats.common.base import (
    BEFORE_SUBMIT,
    Format,
    FormatOptions,
    Losses,
)
from hpcrowd.environment.traces.formats.common.files import mostly, rows_in
from hpcrowd.environment.traces.formats.common.odd_values import LeftOut, OddValues
from hpcrowd.environment.traces.formats.common.site_columns import (
    RUNS,
    EarlierRun,
    in_order,
    text_of,
)
from hpcrowd.environment.traces.formats.pbs.records import (
    OF_A_RUN,
    OURS,
    SERVER,
    header_lines,
    local_time,
    memory_of_chunks,
    record_lines,
    understood,
)
from hpcrowd.environment.traces.formats.pbs.requests import asked_of
from hpcrowd.environment.traces.headers import parse_zone
from hpcrowd.environment.traces.trace import LINES, Trace

#: Fields with names, and the keys of records.
WORDS = {"user": "user", "group": "group", "executable": "executable", "queue": "queue"}

_RECORD = re.compile(rb"[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2};[A-Za-z];")


@dataclass
class _Job:
    """The merged records of a job."""

    said: dict[str, Any] = field(default_factory=dict)
    queued: int | None = None  # s since 1970, of the first record of the type Q
    deleted: int | None = None
    aborted: int | None = None
    ended: bool = False
    again: int = 0  # how often it was run again
    runs: list[EarlierRun] = field(default_factory=list)  # in s since 1970
    unclear: bool = False  # an earlier run is not known


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    """Return the trace of the jobs that have ended.

    The zone matters for jobs that never started, for which only the local times of their records
    are known. Logs of several days may be concatenated.
    """
    if not data.strip():
        raise TraceError(f"{source}: is empty; an accounting log has one record per line")
    zone = parse_zone(options.zone)
    odd = OddValues(source, options.strict)
    jobs, lines = _jobs(data, odd, zone)
    dropped: Counter[str] = Counter()
    over = {}
    for identifier, job in jobs.items():
        if "[]" in identifier:
            dropped[f"{LINES}job array: its jobs count one by one"] += 1
        elif not (job.ended or job.deleted is not None or job.aborted is not None):
            dropped["not ended when the log ends"] += 1
        else:
            over[identifier] = job
    if not over:
        raise TraceError(f"{source}: contains no jobs that have ended{odd.why}")
    kept = [line for text in lines for line in header_lines(text)] if lines else None
    trace = _trace(over, kept, zone)
    odd.count_into(trace.repaired, dropped)
    trace.source, trace.repaired, trace.dropped = source, +trace.repaired, dropped
    return trace


def _jobs(data: bytes, odd: OddValues, zone: tzinfo | None) -> tuple[dict[str, _Job], list[str]]:
    """Return the merged records of each job, and the lines of a header that hpcrowd wrote."""
    jobs: dict[str, _Job] = {}
    header = []
    for line, raw in enumerate(data.split(b"\n"), start=1):
        if not (record := raw.strip()):
            continue
        parts = decode(record).split(";", 3)
        if len(parts) < 3 or not _RECORD.match(record) or b"\0" in record:
            rule = "not a record of the form time;type;job;message"
            odd.add(line, None, record, rule, left_out=True)
            continue
        time, kind, identifier = parts[0], parts[1], parts[2].strip()
        message = parts[3] if len(parts) > 3 else ""
        if kind == "L" and identifier == OURS:
            header.append(message)
        if kind not in "QSEDAR":
            continue
        when = None
        if kind in "QDAR":
            try:
                when = odd.needed(line, "time", time, partial(local_time, zone=zone))
            except LeftOut:
                continue
        job = jobs.setdefault(identifier, _Job())
        if kind == "R":
            job.again += 1
            job.ended = False
            earlier = job.said | understood(message, odd, line)
            start, now = earlier.get("start"), when
            end = earlier.get("end", now)
            if start is None or end is None:
                job.unclear = True
            else:
                held = max(_allocated(earlier), 0)
                job.runs.append(EarlierRun(start, end, max(end, now or 0), held, ""))
            for name in OF_A_RUN:
                job.said.pop(name, None)
            continue
        job.said |= understood(message, odd, line)
        if kind == "Q" and job.queued is None:
            job.queued = when
        elif kind == "D":
            job.deleted = when
        elif kind == "A":
            job.aborted = when
        elif kind == "E":
            job.ended = True
    return jobs, header


def _trace(jobs: dict[str, _Job], lines: list[bytes] | None, zone: tzinfo | None) -> Trace:
    """Return the trace of the jobs that have ended, in the order of their first records."""
    repaired: Counter[str] = Counter()
    rows = []
    for identifier, job in jobs.items():
        said = job.said
        words = {name: said.get(key, "") for name, key in WORDS.items()}
        account = said.get("account") or said.get("project", "")
        row = _row(job, repaired)
        extra = {"project": account} | _extra(job)
        rows.append(Job(identifier, fields=row, words=words, extra=extra))
    notes = () if zone else ("local times of records taken as UTC, as no time zone was given",)
    trace = trace_of(rows, "an accounting log of PBS", zone, lines, notes)
    trace.repaired = repaired
    return trace


def _extra(job: _Job) -> dict[str, str]:
    """Return the columns beyond the fields."""
    said = job.said
    hosts = said["hosts"].names if "hosts" in said else ()
    submit = said.get("ctime", said.get("qtime", job.queued))
    later = max(said.get("etime", 0) - submit, 0) if submit is not None and submit >= 0 else 0
    runs = in_order(job.runs, submit) if submit is not None and submit >= 0 else ()
    again = max(said.get("runs", 1) - 1, job.again)
    exclusive = not {"excl", "exclhost"}.isdisjoint(re.split("[:,]", said.get("place", "")))
    found = {
        "eligible": str(later or ""),
        "exit_code": str(said.get("exit") or ""),
        "restarts": str(again or ""),
        "lost_work": str(sum(one.processor_seconds for one in in_order(job.runs)) or ""),
        RUNS: text_of(runs),
        "nodes": str(len(hosts) or ""),
        "node_list": ",".join(hosts),
        "reservation": said.get("reservation", ""),
        "dependency": said.get("depend", ""),
        "exclusive": "yes" if exclusive else "",
    } | asked_of(said)
    return {name: text for name, text in found.items() if text}


def _allocated(said: dict[str, Any]) -> int:
    """Return the processors that a job held, 0 if that is not known."""
    hosts: int = said["hosts"].processors if "hosts" in said else 0
    vnodes: int = said.get("vnodes", 0)
    return vnodes or hosts


def _requested(said: dict[str, Any]) -> int:
    """Return the processors that a job asked for, 0 if that is not known."""
    chunks, nodes = (said[name].processors if name in said else 0 for name in ("select", "nodes"))
    return chunks or max(nodes, said.get("ncpus", 0), said.get("procs", 0))


def _row(job: _Job, repaired: Counter[str]) -> dict[str, float]:
    """Return the known fields of a job; its submission as a Unix time."""
    said = job.said
    row: dict[str, float] = {}
    submit = said.get("ctime", said.get("qtime", job.queued))
    start, end = said.get("start"), said.get("end")
    if submit is not None and submit >= 0:
        row["submit"] = submit
        if start is not None:
            row["wait"] = max(start - submit, 0)
            repaired[BEFORE_SUBMIT] += start < submit
    if start is not None and end is None and not job.ended and "used_walltime" not in said:
        end = job.deleted if job.deleted is not None else job.aborted
        repaired["no end record: deletion or abort taken as the end"] += 1
    if (run := run_time(start, end, said.get("used_walltime"), repaired)) is not None:
        row["run"] = run
    if job.unclear:
        repaired[RAN_AGAIN] += 1
    allocated = _allocated(said)
    requested = _requested(said)
    processors = max(allocated if allocated > 0 else requested, 1)
    for name, value in (("allocated_processors", allocated), ("requested_processors", requested)):
        if value > 0:
            row[name] = value
    if "walltime" in said:
        row["requested_time"] = said["walltime"]
    if "used_cput" in said:
        row["average_cpu"] = said["used_cput"] / processors
    if said.get("used_mem"):
        row["memory"] = said["used_mem"] / processors
    if "pmem" in said:
        row["requested_memory"] = said["pmem"]
    elif "mem" in said:
        row["requested_memory"] = said["mem"] / max(requested, 1)
    elif "select" in said and (memory := memory_of_chunks(said["select"].text)) > 0:
        row["requested_memory"] = memory / max(requested, 1)
    if job.deleted is not None:
        row["status"] = 5
    elif "exit" in said:
        row["status"] = 1 if said["exit"] == 0 else 0
    elif job.aborted is not None:
        row["status"] = 0
    return row


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    lines, identifiers, submit = record_lines(trace, lost, parse_zone(options.zone))
    numbers = job_numbers(identifiers, submit)
    lost.add("number", numbers != trace["number"], f"job ids at {SERVER} give another number")
    return "".join(line + "\n" for line in lines).encode()


def _looks_like(head: bytes) -> bool:
    return mostly(rows_in(head), _RECORD.match)


def _nearly(head: bytes) -> str:
    """Return that it is what PBS shows of jobs."""
    shown = head.lstrip().startswith(b"Job Id: ")
    return (
        "output of qstat; read the accounting log, PBS_HOME/server_priv/accounting" if shown else ""
    )


#: Accounting logs of PBS and Torque.
PBS = Format(
    "pbs",
    "accounting log of PBS or Torque",
    (".pbs",),
    _looks_like,
    _parse,
    _generate,
    nearly=_nearly,
)

parse_pbs, generate_pbs = PBS.parse, PBS.generate
read_pbs, write_pbs = PBS.read, PBS.write
