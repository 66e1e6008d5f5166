"""Records of PBS and Torque: the values in one line of an accounting log.

Every function that reads a value takes its text and returns the value; malformed text raises
``ValueError`` with the rule.

What jobs ask of a machine, their chunks and nodes, become columns of a trace. A chunk of PBS
Professional, ``select=2:ncpus=8:ngpus=1``, is on one node as a task of Slurm is: two tasks of 8
cores and one GPU each. Torque asks for nodes, ``nodes=2:ppn=4:gpus=1:bigmem``: two of them, with
four tasks and one GPU on each. Of chunks that differ only the sums can be held.

Source: qsub(1B) and pbs_resources(7B) of PBS Professional; Torque Administrator Guide (Requesting
resources).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from hpcrowd.environment.traces.formats.common.accounting import whole
from hpcrowd.environment.traces.formats.common.base import OddValues
from hpcrowd.environment.traces.formats.common.names import LARGEST_EXACT

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

#: Prefix of a header line that does not begin with a semicolon; and the mark for an empty line.
ODD_LINE, NO_LINE = b"\0", b"\0\0"

_LINE = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d):(\d\d)", re.ASCII)
_PAIR = re.compile(r"""(?:^|\s)([A-Za-z_][^\s=]*)=("[^"]*"(?=\s|$)|'[^']*'(?=\s|$)|\S*)""")
_CLOCK = re.compile(r"(?:(\d{1,9}):)??(?:(\d{1,9}):)?(\d{1,15})(?:\.\d{0,9})?", re.ASCII)
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([bw]|[kmgtp][bw]?|)", re.ASCII)

#: Columns that requests become, see ``SITE_COLUMNS`` of
#: :mod:`hpcrowd.environment.traces.formats.common.site_columns`.
COLUMNS = ("tasks", "cores_per_task", "tasks_per_node", "asked_nodes", "asked_max_nodes", "gpus",
           "gpus_per_node", "gpus_per_task", "constraints")  # fmt: skip

#: The word for a GPU in chunks of PBS Professional, and in nodes of Torque.
GPUS = {"ncpus": "ngpus", "ppn": "gpus"}

#: Words of nodes of Torque that are no properties of nodes.
SHARING = frozenset(("shared", "exclusive_process", "exclusive", "default", "reseterr"))

_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_WORD = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)


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
    try:
        seconds = whole(text)
    except ValueError:
        seconds = LAST_TIME + 1
    if seconds > LAST_TIME:
        raise ValueError("not a Unix time in whole seconds up to the year 9998")
    return seconds


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
    return sum(whole(one) for one in re.findall(r"ncpus=([^:+)]*)", text))


def of_chunks(text: str, per_chunk: str) -> int:
    """Return the number of requested processors.

    With ``ncpus`` as ``per_chunk`` of ``2:ncpus=8:mem=4gb+1:ncpus=4``, and with ``ppn`` of
    ``2:ppn=4+n17:ppn=2``.
    """
    total = 0
    for chunk in text.split("+"):
        first, *rest = chunk.split(":")
        chunks = int(first) if first.isascii() and first.isdigit() and len(first) < 10 else 1
        each = [whole(word.partition("=")[2]) for word in rest if word.startswith(per_chunk + "=")]
        total += chunks * (each[0] if each else 1)
    return total


class Chunks(NamedTuple):
    """The chunks, or nodes, that a job asks for."""

    processors: int
    text: str


class Chunk(NamedTuple):
    """A kind of chunk: what one of them has."""

    cores: int
    gpus: int
    features: tuple[str, ...]
    memory: str  #: as PBS writes it; empty if it asks for none


def kinds(text: str, per_chunk: str) -> list[tuple[int, Chunk]]:
    """Return how many chunks of each kind there are.

    In ``2:ncpus=8:mem=4gb+1:ncpus=4``, with ``ncpus`` as ``per_chunk``, or in nodes such as
    ``2:ppn=4+n17:ppn=2``, with ``ppn``.
    """
    found: dict[Chunk, int] = {}
    for part in text.split("+"):
        first, *rest = part.split(":")
        told = dict(word.partition("=")[::2] for word in rest)
        if per_chunk == "ppn":
            features = [word for word, value in told.items() if not value and word not in SHARING]
        else:
            features = [word for word, value in told.items() if value.lower() == "true"]
        cores, gpus = (
            int(value) if _COUNT.fullmatch(value) else usual
            for value, usual in ((told.get(per_chunk, ""), 1), (told.get(GPUS[per_chunk], ""), 0))
        )
        one = Chunk(cores, gpus, tuple(filter(_WORD.fullmatch, features)), told.get("mem", ""))
        found[one] = found.get(one, 0) + (int(first) if _COUNT.fullmatch(first) else 1)
    return [(count, one) for one, count in found.items() if count]


def asked_of(said: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns of :data:`COLUMNS` that a job has.

    They follow from values of its records, by our names: ``select``, ``nodes``, ``place``,
    ``ngpus``.
    """
    select, nodes = said.get("select"), said.get("nodes")
    found: dict[str, Any] = {}
    if select is not None:
        found = _of_chunks(kinds(select.text, "ncpus"), said.get("place", "").split(":"))
    elif nodes is not None:
        found = _of_nodes(kinds(nodes.text, "ppn"))
    if not any(name.startswith("gpus") for name in found):
        found["gpus"] = said.get("ngpus", 0)
    return {name: str(value) for name, value in found.items() if value}


def _of_chunks(chunks: list[tuple[int, Chunk]], place: list[str]) -> dict[str, Any]:
    count = sum(number for number, _ in chunks)
    found: dict[str, Any] = {}
    if len(chunks) == 1 and chunks[0][1].cores:
        one = chunks[0][1]
        found = {"tasks": count, "cores_per_task": one.cores, "gpus_per_task": one.gpus,
                 "constraints": "&".join(one.features)}  # fmt: skip
    else:
        found["gpus"] = sum(number * one.gpus for number, one in chunks)
    if "scatter" in place:
        found |= {"asked_nodes": count, "asked_max_nodes": count}
        found |= {"tasks_per_node": 1} if "tasks" in found else {}
    elif "pack" in place:
        found |= {"asked_nodes": 1, "asked_max_nodes": 1}
    return found


def _of_nodes(nodes: list[tuple[int, Chunk]]) -> dict[str, Any]:
    count = sum(number for number, _ in nodes)
    found: dict[str, Any] = {"asked_nodes": count, "asked_max_nodes": count}
    if len(nodes) != 1:
        return found | {"gpus": sum(number * one.gpus for number, one in nodes)}
    one = nodes[0][1]
    return found | {
        "tasks": count * one.cores, "tasks_per_node": one.cores, "gpus_per_node": one.gpus,
        "constraints": "&".join(one.features),
    }  # fmt: skip


def words_of(columns: Mapping[str, str], processors: float) -> dict[str, str]:
    """Return the resources that hold columns of :data:`COLUMNS` of a job, as far as any do.

    Those that are needed of ``select``, ``nodes``, ``place`` and ``ngpus``. What gives another
    number of processors than it asks for is left out.
    """
    count = {name: int(text) if _COUNT.fullmatch(text) else 0 for name, text in columns.items()}
    tasks, cores, each = (count[name] for name in COLUMNS[:3])
    nodes = count["asked_nodes"] if columns["asked_nodes"] == columns["asked_max_nodes"] else 0
    features = columns["constraints"].split("&") if columns["constraints"] else []
    if not all(map(_WORD.fullmatch, features)):
        features = []
    if tasks and cores and tasks * cores == processors:
        words = [str(tasks), f"ncpus={cores}"]
        words += [f"ngpus={count['gpus_per_task']}"] if count["gpus_per_task"] else []
        found = {"select": ":".join([*words, *(f"{one}=True" for one in features)])}
        if each == 1 and nodes == tasks:
            return found | {"place": "scatter"}
        return found | {"place": "pack"} if nodes == 1 and not each else found
    if nodes and each and nodes * each == tasks == processors:
        words = [str(nodes), f"ppn={each}"]
        words += [f"gpus={count['gpus_per_node']}"] if count["gpus_per_node"] else []
        return {"nodes": ":".join([*words, *features])}
    return {"ngpus": str(count["gpus"])} if count["gpus"] else {}


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
    "Exit_status": ("exit", whole),
    "run_count": ("runs", whole),
    "depend": ("depend", str),
    "resvname": ("reservation", str),
    "Resource_List.place": ("place", str),
    "Resource_List.select": ("select", partial(asked_chunks, per_chunk="ncpus")),
    "Resource_List.nodes": ("nodes", partial(asked_chunks, per_chunk="ppn")),
    "Resource_List.ngpus": ("ngpus", whole),
    "Resource_List.ncpus": ("ncpus", whole),
    "Resource_List.procs": ("procs", whole),
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

    Raises ParseError if a value is malformed, and that is refused.
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
