"""Records of PBS and Torque: what one line of an accounting log says."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any

from environment.errors import ParseError
from environment.formats.base import LARGEST_EXACT
from environment.formats.files import shown

#: s since 1970, the end of the year 9998: times of records have four digits for the year.
LAST_TIME = 253_370_764_800

#: KB of the units of memory; a word of PBS has 8 bytes.
MEMORY_UNITS = {"b": 1 / 1024, "w": 8 / 1024, "kb": 1, "kw": 8, "mb": 1024, "mw": 8 * 1024,
                "gb": 1024**2, "gw": 8 * 1024**2, "tb": 1024**3, "tw": 8 * 1024**3,
                "pb": 1024**4, "pw": 8 * 1024**4, "": 1 / 1024}  # fmt: skip

_LINE = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d):(\d\d)", re.ASCII)
_PAIR = re.compile(r"""(?:^|\s)([A-Za-z_][^\s=]*)=("[^"]*"(?=\s|$)|'[^']*'(?=\s|$)|\S*)""")
_WHOLE = re.compile(r"-?\d{1,15}", re.ASCII)
_CLOCK = re.compile(r"(?:(\d{1,9}):)??(?:(\d{1,9}):)?(\d{1,15})(?:\.\d{0,9})?", re.ASCII)
_MEMORY = re.compile(r"(\d{1,15})([bw]|[kmgtp][bw]|)", re.ASCII)


def pairs(message: str) -> list[tuple[str, str]]:
    """Return the ``key=value`` of a message in order.

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
    """Return a text as :func:`pairs` reads it; of both kinds of quotes only one can be kept."""
    if not any(character in text for character in " \"'"):
        return text
    return f"'{text}'" if '"' in text and "'" not in text else '"' + text.replace('"', "'") + '"'


def unix_time(text: str) -> int:
    """Return s since 1970.

    Raises
    ------
    ValueError
        When it is no whole number, or after :data:`LAST_TIME`.
    """
    if not _WHOLE.fullmatch(text) or int(text) > LAST_TIME:
        raise ValueError("no whole number of s since 1970, up to the year 9998")
    return int(text)


@lru_cache(maxsize=2**16)  # few different ones, of short texts
def duration(text: str) -> int:
    """Return s of ``HH:MM:SS``, ``MM:SS`` or s.

    Raises
    ------
    ValueError
        When it is none.
    """
    match = _CLOCK.fullmatch(text)
    if not match:
        raise ValueError("no duration, such as 01:00:00")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


@lru_cache(maxsize=2**16)
def memory(text: str) -> float:
    """Return KB of a size such as ``2gb``.

    Raises
    ------
    ValueError
        When it is none.
    """
    match = _MEMORY.fullmatch(text.lower())
    if not match:
        raise ValueError("no size, such as 2gb")
    return int(match[1]) * MEMORY_UNITS[match[2]]


def count(text: str) -> int:
    """Return a number of processors.

    Raises
    ------
    ValueError
        When it is none.
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError("no whole number")
    return int(text)


def of_hosts(text: str) -> int:
    """Return how many processors ``n1/0+n1/1``, ``n1/0*8+n2/0*8`` or ``n1/0-7,9`` are.

    Raises
    ------
    ValueError
        When it is none of these.
    """
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
                raise ValueError("no hosts, such as n1/0+n1/1 or n1/0*8") from None
    return total


def of_vnodes(text: str) -> int:
    """Return how many processors ``(n1:ncpus=8:mem=4gb)+(n2:ncpus=8)`` are, 0 if it tells none.

    Raises
    ------
    ValueError
        When a number of them is none.
    """
    return sum(count(one) for one in re.findall(r"ncpus=([^:+)]*)", text))


def of_select(text: str) -> int:
    """Return how many processors ``2:ncpus=8:mem=4gb+1:ncpus=4`` asks for.

    Raises
    ------
    ValueError
        When a number is none.
    """
    return _of_chunks(text, "ncpus")


def of_nodes(text: str) -> int:
    """Return how many processors ``2:ppn=4+n17:ppn=2`` asks for.

    Raises
    ------
    ValueError
        When a number is none.
    """
    return _of_chunks(text, "ppn")


def _of_chunks(text: str, per_chunk: str) -> int:
    total = 0
    for chunk in text.split("+"):
        first, *rest = chunk.split(":")
        chunks = int(first) if first.isascii() and first.isdigit() and len(first) < 10 else 1
        each = [count(word.partition("=")[2]) for word in rest if word.startswith(per_chunk + "=")]
        total += chunks * (each[0] if each else 1)
    return total


#: What is read of a message: names of ours, and how values are understood, by key.
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
    "exec_host": ("hosts", of_hosts),
    "exec_vnode": ("vnodes", of_vnodes),
    "Exit_status": ("exit", count),
    "Resource_List.select": ("select", of_select),
    "Resource_List.nodes": ("nodes", of_nodes),
    "Resource_List.ncpus": ("ncpus", count),
    "Resource_List.procs": ("procs", count),
    "Resource_List.walltime": ("walltime", duration),
    "Resource_List.mem": ("mem", memory),
    "Resource_List.pmem": ("pmem", memory),
    "resources_used.cput": ("used_cput", duration),
    "resources_used.mem": ("used_mem", memory),
    "resources_used.walltime": ("used_walltime", duration),
}

#: What of a run is forgotten when a job is run again.
OF_A_RUN = ("start", "end", "hosts", "vnodes", "exit", "used_cput", "used_mem", "used_walltime")


def understood(message: str, source: str, line: int) -> dict[str, Any]:
    """Return what a message says, under the names of :data:`KEYS`.

    Raises
    ------
    ParseError
        When a value is malformed.
    """
    found = {}
    for key, value in pairs(message):
        if key in KEYS and value:
            name, convert = KEYS[key]
            try:
                found[name] = convert(value)
                good = convert is str or abs(found[name]) <= LARGEST_EXACT
            except ValueError as error:
                raise ParseError(source, line, key, _shown(value), str(error)) from None
            if not good:
                raise ParseError(source, line, key, _shown(value), "too large")
    return found


def local_time(text: str, zone: tzinfo | None, source: str, line: int) -> int:
    """Return when a record was written, s since 1970.

    Raises
    ------
    ParseError
        When it is no date and time.
    """
    match = _LINE.fullmatch(text)
    try:
        month, day, year, *clock = map(int, match.groups() if match else ["0"] * 6)
        local = datetime(year, month, day, clock[0], clock[1], clock[2], tzinfo=zone or UTC)
        return int(local.timestamp())
    except (ValueError, OverflowError):
        rule = "no time, such as 04/18/2009 00:00:15"
        raise ParseError(source, line, "time", _shown(text), rule) from None


def _shown(text: str) -> str:
    return shown(text.encode("ascii", "replace"))
