"""Records of PBS and Torque: read and write one line of an accounting log.

Every function that reads a value takes its text and returns the value; malformed text raises
``ValueError`` with the rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_to_bytes

import numpy as np

from hpcrowd.environment.traces.formats.common.base import Losses
from hpcrowd.environment.traces.formats.common.names import (
    LARGEST_EXACT,
    NOTHING,
    known,
    plain,
    worded,
)
from hpcrowd.environment.traces.formats.common.odd_values import OddValues
from hpcrowd.environment.traces.formats.pbs.requests import (
    COLUMNS,
    Chunks,
    asked_of,
    kinds,
    words_of,
)
from hpcrowd.environment.traces.headers import unix_origin
from hpcrowd.environment.traces.trace import Trace

#: Unix time of the end of the year 9998: years in records have four digits.
LAST_TIME = 253_370_764_800

#: KB of the units of memory; a word of PBS has 8 bytes.
MEMORY_UNITS = {"k": 1, "m": 1024, "g": 1024**2, "t": 1024**3, "p": 1024**4,
                "b": 1 / 1024, "w": 8 / 1024, "kb": 1, "kw": 8, "mb": 1024, "mw": 8 * 1024,
                "gb": 1024**2, "gw": 8 * 1024**2, "tb": 1024**3, "tw": 8 * 1024**3,
                "pb": 1024**4, "pw": 8 * 1024**4, "": 1 / 1024}  # fmt: skip

#: Owner of the records of type L that hold the header of a trace.
OURS = "hpcrowd"

#: Server of jobs in traces that name no server.
SERVER = "hpcrowd"

#: Characters of a header line that are not escaped; ``=`` and ``;`` are.
PLAIN = " !\"#$&'()*+,/:<>?@[\\]^`{|}~"

#: Prefix of a header line that does not begin with a semicolon; and the mark for an empty line.
ODD_LINE, NO_LINE = b"\0", b"\0\0"

#: Fields that no record has.
UNHELD = ("partition", "preceding", "think_time")

#: Why words are written differently.
ODD = "characters that a line cannot hold"

#: Keys of words, by field.
WRITTEN_KEYS = {"user": "user", "group": "group", "executable": "jobname", "queue": "queue"}

#: Columns beyond the fields that records hold.
HELD = ("eligible", "exit_code", "restarts", "dependency", "exclusive", "node_list", "nodes")

_HOST = re.compile(r"[A-Za-z0-9_.-]+")
_LINE = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d):(\d\d)", re.ASCII)
_PAIR = re.compile(r"""(?:^|\s)([A-Za-z_][^\s=]*)=("[^"]*"(?=\s|$)|'[^']*'(?=\s|$)|\S*)""")
_WHOLE = re.compile(r"-?\d{1,15}", re.ASCII)
_CLOCK = re.compile(r"(?:(\d{1,9}):)??(?:(\d{1,9}):)?(\d{1,15})(?:\.\d{0,9})?", re.ASCII)
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([bw]|[kmgtp][bw]?|)", re.ASCII)


def pairs(message: str) -> list[tuple[str, str]]:
    """Return the ``key=value`` pairs of a message in order.

    A value in quotes may hold blanks; without quotes, words without ``=`` belong to the value
    before them, as in ``jobname=my job queue=batch``.
    """
    if '"' in message or "'" in message:
        return [(key, _unquoted(value)) for key, value in _PAIR.findall(message)]
    found: list[tuple[str, str]] = []
    for word in message.split():
        key, equals, value = word.partition("=")
        if equals:
            found.append((key, value))
        elif found:
            found[-1] = found[-1][0], f"{found[-1][1]} {word}"
    return found


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def quoted(text: str) -> str:
    """Return a text as :func:`pairs` reads it; of the two kinds of quotes only one can be kept."""
    if not any(character in text for character in " \"'"):
        return text
    return f"'{text}'" if '"' in text and "'" not in text else '"' + text.replace('"', "'") + '"'


def unix_time(text: str) -> int:
    """Return a Unix time."""
    if not _WHOLE.fullmatch(text) or int(text) > LAST_TIME:
        raise ValueError("not a Unix time in whole seconds up to the year 9998")
    return int(text)


@lru_cache(maxsize=2**16)  # few distinct, short texts
def duration(text: str) -> int:
    """Return s of ``HH:MM:SS``, ``MM:SS`` or s."""
    match = _CLOCK.fullmatch(text)
    if not match:
        raise ValueError("not a duration, such as 01:00:00")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


@lru_cache(maxsize=2**16)
def memory(text: str) -> float:
    """Return KB of a size such as ``2gb``, or ``12.27M``."""
    match = _MEMORY.fullmatch(text.lower())
    if not match:
        raise ValueError("not a size, such as 2gb")
    number = float(match[1]) if "." in match[1] else int(match[1])
    return number * MEMORY_UNITS[match[2]]


def count(text: str) -> int:
    """Return a number of processors."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("not a whole number")
    return int(text)


def of_hosts(text: str) -> int:
    """Return the number of processors in ``n1/0+n1/1``, ``n1/0*8+n2/0*8`` or ``n1/0-7,9``."""
    total = 0
    for entry in text.split("+"):
        _, slash, places = entry.partition("/")
        if not slash:
            total += 1
            continue
        for place in places.split(","):
            slot, times, copies = place.partition("*")
            first, dash, last = slot.partition("-")
            try:
                total += int(copies) if times else int(last) - int(first) + 1 if dash else 1
            except ValueError:
                raise ValueError("not a list of hosts, such as n1/0+n1/1 or n1/0*8") from None
    return total


class Hosts(NamedTuple):
    """The hosts that a job held."""

    processors: int
    names: tuple[str, ...]


def held_hosts(text: str) -> Hosts:
    """Return the processors in a list of hosts as :func:`of_hosts`, and their names in order."""
    names = dict.fromkeys(entry.partition("/")[0] for entry in text.split("+"))
    return Hosts(of_hosts(text), tuple(name for name in names if name not in ("", SERVER)))


def of_vnodes(text: str) -> int:
    """Return the number of processors in ``(n1:ncpus=8:mem=4gb)+(n2:ncpus=8)``, 0 if not given."""
    return sum(count(one) for one in re.findall(r"ncpus=([^:+)]*)", text))


def of_chunks(text: str, per_chunk: str) -> int:
    """Return the number of requested processors.

    With ``ncpus`` as ``per_chunk`` of ``2:ncpus=8:mem=4gb+1:ncpus=4``, and with ``ppn`` of
    ``2:ppn=4+n17:ppn=2``.
    """
    total = 0
    for chunk in text.split("+"):
        first, *rest = chunk.split(":")
        chunks = int(first) if first.isascii() and first.isdigit() and len(first) < 10 else 1
        each = [count(word.partition("=")[2]) for word in rest if word.startswith(per_chunk + "=")]
        total += chunks * (each[0] if each else 1)
    return total


def asked_chunks(text: str, per_chunk: str) -> Chunks:
    """Return chunks and their processors, which are counted as in :func:`of_chunks`."""
    return Chunks(of_chunks(text, per_chunk), text)


def memory_of_chunks(text: str) -> float:
    """Return the memory of all chunks, KB; 0 if it is not known of each of them."""
    chunks = kinds(text, "ncpus")
    if not all(_MEMORY.fullmatch(one.memory.lower()) for _, one in chunks):
        return 0
    return sum(count * memory(one.memory) for count, one in chunks)


#: The keys of a message that are read: our name and the parser of each.
KEYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "user": ("user", str),
    "group": ("group", str),
    "jobname": ("executable", str),
    "queue": ("queue", str),
    "account": ("account", str),
    "project": ("project", str),
    "ctime": ("ctime", unix_time),
    "qtime": ("qtime", unix_time),
    "start": ("start", unix_time),
    "end": ("end", unix_time),
    "exec_host": ("hosts", held_hosts),
    "exec_vnode": ("vnodes", of_vnodes),
    "etime": ("etime", unix_time),
    "Exit_status": ("exit", count),
    "run_count": ("runs", count),
    "depend": ("depend", str),
    "resvname": ("reservation", str),
    "Resource_List.place": ("place", str),
    "Resource_List.select": ("select", partial(asked_chunks, per_chunk="ncpus")),
    "Resource_List.nodes": ("nodes", partial(asked_chunks, per_chunk="ppn")),
    "Resource_List.ngpus": ("ngpus", count),
    "Resource_List.ncpus": ("ncpus", count),
    "Resource_List.procs": ("procs", count),
    "Resource_List.walltime": ("walltime", duration),
    "Resource_List.mem": ("mem", memory),
    "Resource_List.pmem": ("pmem", memory),
    "resources_used.cput": ("used_cput", duration),
    "resources_used.mem": ("used_mem", memory),
    "resources_used.walltime": ("used_walltime", duration),
}

#: The values that are forgotten when a job is run again.
OF_A_RUN = ("start", "end", "hosts", "vnodes", "exit", "used_cput", "used_mem", "used_walltime")


def understood(message: str, odd: OddValues, line: int) -> dict[str, Any]:
    """Return the values in a message, under the names of :data:`KEYS`, but for odd ones.

    Raises
    ------
    ParseError
        If a value is malformed, and that is refused.
    """
    found = {}
    for key, text in pairs(message):
        if key in KEYS and text:
            name, convert = KEYS[key]
            if convert is str:
                found[name] = text
            elif (value := odd.read(line, key, text, partial(_exact, convert=convert))) is not None:
                found[name] = value
    return found


def _exact(text: str, convert: Callable[[str], Any]) -> Any:
    """Return a value whose number is exact."""
    value = convert(text)
    if abs(getattr(value, "processors", value)) > LARGEST_EXACT:
        raise ValueError("too large")
    return value


def local_time(text: str, zone: tzinfo | None) -> int:
    """Return the Unix time at which a record was written."""
    match = _LINE.fullmatch(text)
    try:
        month, day, year, *clock = map(int, match.groups() if match else ["0"] * 6)
        local = datetime(year, month, day, clock[0], clock[1], clock[2], tzinfo=zone or UTC)
        return int(local.timestamp())
    except (ValueError, OverflowError):
        raise ValueError("not a time, such as 04/18/2009 00:00:15") from None


def header_lines(text: str) -> list[bytes]:
    """Return the header lines in the message of a record, see :func:`_told`."""
    line = unquote_to_bytes(text).replace(b"\n", b" ")
    if line == NO_LINE:
        return []
    if not line.startswith(ODD_LINE):
        return [b";" + line]
    line = line.removeprefix(ODD_LINE)
    return [line if line.lstrip()[:1] in (b";", b"") else b"; " + line]


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
