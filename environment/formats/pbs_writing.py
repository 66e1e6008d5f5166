"""A trace as records of PBS: what these can hold of it, and the lines."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import numpy as np

from environment.formats.base import Losses
from environment.formats.names import NOTHING, known, worded
from environment.formats.pbs_records import LAST_TIME, quoted
from environment.formats.words import plain
from environment.trace import Trace

#: Who the records of the type L are of that hold the header of a trace.
OURS = "hpcrowd"

#: Server of jobs whose trace names none.
SERVER = "hpcrowd"

#: Characters of a line of the header that stand for themselves; ``=`` and ``;`` mean something.
PLAIN = " !\"#$&'()*+,/:<>?@[\\]^`{|}~"

#: What a line of the header begins with that does not begin with a semicolon; and no line at all.
ODD_LINE, NO_LINE = b"\0", b"\0\0"

#: Fields that no record has.
UNHELD = ("partition", "preceding", "think_time")

#: Keys of words, by field.
KEYS = {"user": "user", "group": "group", "executable": "jobname", "queue": "queue"}


def header_lines(text: str) -> list[bytes]:
    """Return the lines of a header that the message of a record holds, see :func:`_told`."""
    line = unquote_to_bytes(text).replace(b"\n", b" ")
    if line == NO_LINE:
        return []
    if not line.startswith(ODD_LINE):
        return [b";" + line]
    line = line.removeprefix(ODD_LINE)
    return [line if line.lstrip()[:1] in (b";", b"") else b"; " + line]


def _told(line: bytes) -> str:
    """Return a line of a header, without its semicolon, as the message of a record."""
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
        The lines, by time where jobs stand by submission, else job by job; and what is read back
        of each job's identifier and submission, shape (jobs,).
    """
    origin = trace.header.integer("UnixStartTime") or 0
    origin = origin if 0 <= origin < LAST_TIME else 0
    held = _held(trace, origin)
    lost.unheld(trace, UNHELD, "no record tells it")
    lost.add("comments", len(trace.comments), "no place for it")
    reason = "times and sizes are whole and not negative, states those of PBS"
    for name, values in held.items():
        lost.add(name, values != trace[name], reason)
    words = {name: _words(trace, name, lost) for name in KEYS}
    projects = [""] * len(trace)
    for name, texts in trace.extra.items():
        if name == "project":
            projects = [plain(text) for text in texts]
            changed = [_back(new) != old for new, old in zip(projects, texts, strict=True)]
            lost.add(name, known(texts) & np.array(changed, bool), "characters that no line has")
        elif name != "job_id":
            lost.add(name, known(texts), "no record tells it")
    identifiers = _identifiers(trace, lost)
    rows = {name: values.tolist() for name, values in held.items()}
    records: list[tuple[int, str, str, str]] = []
    for place, identifier in enumerate(identifiers):
        row = {name: column[place] for name, column in rows.items()}
        said = [f"{key}={quoted(words[name][place])}" for name, key in KEYS.items()
                if words[name][place]]  # fmt: skip
        if projects[place]:
            said.append(f"account={quoted(projects[place])}")
        records += _records(row, origin, said, identifier)
    if np.all(held["submit"] != -1) and np.all(np.diff(held["submit"]) >= 0):
        records.sort(key=lambda record: record[0])
    begin = records[0][0] if records else 0
    header = [_told(line) for line in trace.header.lines] or [quote(NO_LINE)]
    lines = [f"{_date(begin, zone)};L;{OURS};{line}" for line in header]
    lines += [f"{_date(t, zone)};{kind};{job};{message}" for t, kind, job, message in records]
    return lines, identifiers, held["submit"]


def _held(trace: Trace, origin: int) -> dict[str, Any]:
    """Return the fields as they are read back, shape (jobs,)."""

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
        return np.where((total >= 0) & (total < LAST_TIME), total / processors, -1)

    status = trace["status"]
    return {
        "submit": submit, "wait": wait, "run": run,
        "allocated_processors": allocated, "requested_processors": requested,
        "average_cpu": per_processor("average_cpu"), "memory": per_processor("memory"),
        "requested_time": whole("requested_time", 0),
        "requested_memory": whole("requested_memory", 0),
        "status": np.where(np.isin(status, (0, 1, 5)), status, -1),
    }  # fmt: skip


def _records(
    row: dict[str, float], origin: int, said: list[str], identifier: str
) -> list[tuple[int, str, str, str]]:
    """Return the records of a job: time, type, identifier, message."""
    submit, wait, run = int(row["submit"]), int(row["wait"]), int(row["run"])
    created = origin + submit if submit != -1 else 0
    start = created + wait if wait != -1 else created
    end = min(start + max(run, 0), LAST_TIME)
    if submit != -1:
        said += [f"{key}={created}" for key in ("ctime", "qtime", "etime")]
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
        ran.append(f"exec_host={SERVER}/0*{processors:.0f}")
    processors = max(processors if processors > 0 else row["requested_processors"], 1)
    first = " ".join(said)
    found = [(created, "Q", identifier, first)] if submit != -1 else []
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
    if not ran and not used and status in (0, 5):  # it never started
        return [*found, (end, "D" if status == 5 else "A", identifier, first)]
    if ran:
        found.append((start, "S", identifier, " ".join([*said, *ran])))
    if status == 5:
        found.append((end, "D", identifier, f"requestor={SERVER}"))
    if status in (0, 1, 5):
        used.append(f"Exit_status={ {1: 0, 0: 1, 5: 271}[int(status)] }")
    found.append((end, "E", identifier, " ".join([*said, *ran, *used])))
    return found


def _words(trace: Trace, name: str, lost: Losses) -> list[str]:
    """Return the names of a field as records can hold them, "" for none."""
    words = worded(trace, name, "")
    table = {word: plain(word) for word in set(words)}
    changed = {word for word, text in table.items() if _back(text) != word and word != "-1"}
    nothing = {word for word in table if word in NOTHING - {"", "-1"}} - changed
    lost.add(name, sum(word in changed for word in words), "characters that no line has")
    lost.add(name, sum(word in nothing for word in words), "a word that stands for unknown")
    return [table[word] for word in words]


def _back(text: str) -> str:
    """Return what is read back of a text: of both kinds of quotes only one is kept."""
    return text.replace('"', "'") if '"' in text and "'" in text else text


def _identifiers(trace: Trace, lost: Losses) -> list[str]:
    """Return the identifiers of jobs: those that the trace has, else numbers at our server."""
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
        lost.add("job_id", known(given) & np.array(other, bool), "no identifier of PBS")
    return found


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def _date(unix: int, zone: tzinfo | None) -> str:
    return f"{datetime.fromtimestamp(unix, zone or UTC):%m/%d/%Y %H:%M:%S}"
