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
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any
from urllib.parse import quote

import numpy as np

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
    LeftOut,
    Losses,
    OddValues,
)
from hpcrowd.environment.traces.formats.common.files import mostly, rows_in
from hpcrowd.environment.traces.formats.common.names import NOTHING, known, plain, worded
from hpcrowd.environment.traces.formats.common.site_columns import (
    RUNS,
    EarlierRun,
    in_order,
    text_of,
)
from hpcrowd.environment.traces.formats.pbs.records import (
    COLUMNS,
    KEYS,
    LAST_TIME,
    NO_LINE,
    ODD_LINE,
    OF_A_RUN,
    OURS,
    SERVER,
    asked_of,
    header_lines,
    local_time,
    memory_of_chunks,
    quoted,
    understood,
    words_of,
)
from hpcrowd.environment.traces.headers import parse_zone, unix_origin
from hpcrowd.environment.traces.trace import LINES, Trace

#: Characters of a header line that are not escaped; ``=`` and ``;`` are.
PLAIN = " !\"#$&'()*+,/:<>?@[\\]^`{|}~"

#: Fields that no record has.
UNHELD = ("partition", "preceding", "think_time")

#: Why words are written differently.
ODD = "characters that a line cannot hold"

#: Keys of words, by field.
WRITTEN_KEYS = {"user": "user", "group": "group", "executable": "jobname", "queue": "queue"}

#: Columns beyond the fields that records hold.
HELD = ("eligible", "exit_code", "restarts", "dependency", "exclusive", "node_list", "nodes")

_HOST = re.compile(r"[A-Za-z0-9_.-]+")
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
        words = {name: said.get(name, "") for name in WRITTEN_KEYS}
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


def _told(line: bytes) -> str:
    """Return a header line, without its semicolon, as the message of a record."""
    line = line[1:] if line.startswith(b";") else ODD_LINE + line
    text = quote(line, safe=PLAIN)
    kept = text.rstrip(" ")
    return kept + "%20" * (len(text) - len(kept))


def record_lines(
    trace: Trace, lost: Losses, zone: tzinfo | None
) -> tuple[list[str], list[str], Any]:
    """Return the records of a trace.

    Returns
    -------
    lines, identifiers, submit
        The lines, by time if jobs are ordered by submission, else job by job; and the identifier
        and submission of each job as they are read back, shape (jobs,).
    """
    origin = unix_origin(trace.header)
    origin = origin if 0 <= origin < LAST_TIME else 0
    held = _held(trace, origin)
    lost.unheld(trace, UNHELD, "no record holds it")
    lost.add("comments", len(trace.comments), "no record holds them")
    reason = "times and sizes must be whole and not negative, states those of PBS"
    for name, values in held.items():
        lost.add(name, values != trace[name], reason)
    words = {name: _words(trace, name, lost) for name in WRITTEN_KEYS}
    projects = [""] * len(trace)
    for name, texts in trace.extra.items():
        if name == "project":
            projects = lost.respelled(name, texts.tolist(), plain, ODD, _read_back)
        elif name not in ("job_id", *HELD, *COLUMNS):
            lost.add(name, known(texts), "no record holds it")
    site = _site(trace, held, lost)
    resources = _resources(trace, held["requested_processors"].tolist(), lost)
    identifiers = _identifiers(trace, lost)
    rows = {name: values.tolist() for name, values in held.items()}
    records: list[tuple[int, str, str, str]] = []
    for place, identifier in enumerate(identifiers):
        row = {name: column[place] for name, column in rows.items()}
        said = [f"{key}={quoted(words[name][place])}" for name, key in WRITTEN_KEYS.items()
                if words[name][place]]  # fmt: skip
        if projects[place]:
            said.append(f"account={quoted(projects[place])}")
        mine = {name: texts[place] for name, texts in site.items()}
        if mine["dependency"]:
            said.append(f"depend={mine['dependency']}")
        asked = resources[place]
        if mine["exclusive"]:
            asked = asked | {"place": f"{asked['place']}:excl" if "place" in asked else "excl"}
        said += [f"Resource_List.{name}={text}" for name, text in asked.items()]
        records += _records(row, origin, said, identifier, mine)
    if np.all(held["submit"] != -1) and np.all(np.diff(held["submit"]) >= 0):
        records.sort(key=lambda record: record[0])
    begin = records[0][0] if records else 0
    header = [_told(line) for line in trace.header.lines] or [quote(NO_LINE)]
    lines = [f"{_date(begin, zone)};L;{OURS};{line}" for line in header]
    lines += [f"{_date(t, zone)};{kind};{job};{message}" for t, kind, job, message in records]
    return lines, identifiers, held["submit"]


def _held(trace: Trace, origin: int) -> dict[str, Any]:
    """Return the fields as they will be read back, shape (jobs,)."""

    def whole(name: str, least: int) -> Any:
        values = np.floor(trace[name].astype(np.float64))
        return np.where((values >= least) & (values < LAST_TIME), values, -1)

    submit = np.floor(trace["submit"].astype(np.float64))
    good = (submit != -1) & (submit >= -origin) & (submit < LAST_TIME - origin)
    submit = np.where(good, submit, -1)
    wait, run = whole("wait", 0), whole("run", 0)
    wait = np.where((submit != -1) & (submit + wait < LAST_TIME - origin), wait, -1)
    begin = submit + np.maximum(wait, 0)
    run = np.where(begin + run < LAST_TIME - origin, run, -1)
    allocated, requested = whole("allocated_processors", 1), whole("requested_processors", 1)
    processors = np.maximum(np.where(allocated > 0, allocated, requested), 1)

    def per_processor(name: str) -> Any:
        total = np.round(trace[name].astype(np.float64) * processors)
        least = 0 if name == "average_cpu" else 1  # no memory means unknown
        return np.where((total >= least) & (total < LAST_TIME), total / processors, -1)

    status = trace["status"]
    return {
        "submit": submit, "wait": wait, "run": run,
        "allocated_processors": allocated, "requested_processors": requested,
        "average_cpu": per_processor("average_cpu"), "memory": per_processor("memory"),
        "requested_time": whole("requested_time", 0),
        "requested_memory": whole("requested_memory", 0),
        "status": np.where(np.isin(status, (0, 1, 5)), status, -1),
    }  # fmt: skip


def _site(trace: Trace, held: dict[str, Any], lost: Losses) -> dict[str, list[str]]:
    """Return the columns of :data:`HELD` as they will be read back."""
    found = {}
    submit, status = held["submit"].tolist(), held["status"].tolist()
    processors = held["allocated_processors"].tolist()
    for name in HELD:
        if name not in trace.extra:
            found[name] = [""] * len(trace)
            continue
        texts = trace.extra[name].tolist()
        kept = [
            text if _fits(name, text, submit[row] != -1, status[row]) else ""
            for row, text in enumerate(texts)
        ]
        if name == "node_list":
            kept = [
                text if text and text.count(",") < processors[row] else ""
                for row, text in enumerate(kept)
            ]
        elif name == "nodes":
            count = [len(text.split(",")) if text else 0 for text in found["node_list"]]
            kept = [text if text == str(count[row]) else "" for row, text in enumerate(texts)]
        other = [one != two for one, two in zip(texts, kept, strict=True)]
        lost.add(name, known(trace.extra[name]) & np.array(other, bool), "no record holds it so")
        found[name] = kept
    return found


def _resources(trace: Trace, processors: list[float], lost: Losses) -> list[dict[str, str]]:
    """Return the resources of each job that hold its columns of requests."""
    nothing = [""] * len(trace)
    texts = {
        name: trace.extra[name].tolist() if name in trace.extra else nothing for name in COLUMNS
    }
    found, kept = [], []
    for place, asked in enumerate(processors):
        mine = {name: column[place] for name, column in texts.items()}
        words = words_of(mine, asked) if any(mine.values()) else {}
        said = {name: KEYS[f"Resource_List.{name}"][1](text) for name, text in words.items()}
        found.append(words)
        kept.append(asked_of(said))
    for name, column in texts.items():
        if name in trace.extra:
            other = [one != back.get(name, "") for one, back in zip(column, kept, strict=True)]
            lost.add(name, np.array(other, bool), "no record holds it so")
    return found


def _fits(name: str, text: str, submitted: bool, status: float) -> bool:
    """Return whether a text of a column of :data:`HELD` is read back as it is."""
    if name == "dependency":
        return re.fullmatch(r"[!-:<>-~]+", text) is not None and not set(text) & set("\"'=")
    if name == "exclusive":
        return text == "yes"
    if name == "node_list":
        names = text.split(",")
        plain_names = all(_HOST.fullmatch(one) and one != SERVER for one in names)
        return plain_names and len(set(names)) == len(names)
    whole = re.fullmatch(r"-?[1-9]\d{0,8}", text, re.ASCII) is not None
    if name == "exit_code":
        return whole and status in (0, 5)
    return whole and text[0] != "-" and (submitted or name != "eligible")


def _records(
    row: dict[str, float], origin: int, said: list[str], identifier: str, site: dict[str, str]
) -> list[tuple[int, str, str, str]]:
    """Return the records of a job: time, type, identifier, message."""
    submit, wait, run = int(row["submit"]), int(row["wait"]), int(row["run"])
    created = origin + submit if submit != -1 else 0
    start = created + wait if wait != -1 else created
    end = min(start + max(run, 0), LAST_TIME)
    if submit != -1:
        said += [f"{key}={created}" for key in ("ctime", "qtime")]
        said.append(f"etime={created + int(site['eligible'] or 0)}")
    if row["requested_processors"] > 0:
        said.append(f"Resource_List.ncpus={row['requested_processors']:.0f}")
    if row["requested_time"] != -1:
        said.append(f"Resource_List.walltime={_clock(row['requested_time'])}")
    if row["requested_memory"] != -1:
        said.append(f"Resource_List.pmem={row['requested_memory']:.0f}kb")
    ran = []
    if wait != -1:
        ran.append(f"start={start}")
    processors = row["allocated_processors"]
    if processors > 0:
        first, *others = (site["node_list"] or SERVER).split(",")
        hosts = [f"{first}/0*{processors - len(others):.0f}", *(f"{one}/0" for one in others)]
        ran.append(f"exec_host={'+'.join(hosts)}")
    processors = max(processors if processors > 0 else row["requested_processors"], 1)
    asked = " ".join(said)
    found = [(created, "Q", identifier, asked)] if submit != -1 else []
    used = []
    if wait != -1 and run != -1:
        used.append(f"end={end}")
    if row["average_cpu"] != -1:
        used.append(f"resources_used.cput={_clock(round(row['average_cpu'] * processors))}")
    if row["memory"] != -1:
        used.append(f"resources_used.mem={round(row['memory'] * processors)}kb")
    if run != -1:
        used.append(f"resources_used.walltime={_clock(run)}")
    status = row["status"]
    never = not ran and not used and not (site["exit_code"] or site["restarts"])
    if never and status in (0, 5):
        return [*found, (end, "D" if status == 5 else "A", identifier, asked)]
    if ran:
        found.append((start, "S", identifier, " ".join([*said, *ran])))
    if status == 5:
        found.append((end, "D", identifier, f"requestor={SERVER}"))
    if status == 1 or site["exit_code"]:
        used.append(f"Exit_status={site['exit_code'] or 0}")
    if site["restarts"]:
        used.append(f"run_count={int(site['restarts']) + 1}")
    found.append((end, "E", identifier, " ".join([*said, *ran, *used])))
    if status == 0 and not site["exit_code"]:
        found.append((end, "A", identifier, ""))
    return found


def _words(trace: Trace, name: str, lost: Losses) -> list[str]:
    """Return the names of a field as records can hold them, "" for none."""
    words = worded(trace, name, "")
    written = lost.respelled(name, words, plain, ODD, _read_back)
    nothing = NOTHING - {"", "-1"}
    lost.add(name, sum(word in nothing for word in words), "a word that means unknown")
    return written


def _read_back(text: str) -> str:
    """Return a text as it is read back: of the two kinds of quotes only one is kept."""
    return text.replace('"', "'") if '"' in text and "'" in text else text


def _identifiers(trace: Trace, lost: Losses) -> list[str]:
    """Return the identifiers of jobs: those in the trace, else numbers at our server."""
    given = trace.extra.get("job_id")
    texts = [""] * len(trace) if given is None else given.tolist()
    used: set[str] = set()
    found = []
    for text, number in zip(texts, trace["number"].tolist(), strict=True):
        good = re.fullmatch(r"[!-:<-~]+", text) and "[]" not in text and text not in used
        if not good:
            whole = number == int(number) and number >= 0
            text = first = f"{int(number)}.{SERVER}" if whole else f"x{number:.0f}.{SERVER}"
            while text in used:
                text = f"{first}.{len(used)}"
        used.add(text)
        found.append(text)
    if given is not None:
        other = [one != two for one, two in zip(texts, found, strict=True)]
        lost.add("job_id", known(given) & np.array(other, bool), "not an identifier of PBS")
    return found


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def _date(unix: int, zone: tzinfo | None) -> str:
    return f"{datetime.fromtimestamp(unix, zone or UTC):%m/%d/%Y %H:%M:%S}"


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
