r"""A snapshot: the state of a cluster as a file, with the past that is known.

JSON lines, packed with gzip if the name ends in ``.gz``. The first line is the header, every other
line a job::

    {"format": "hpcrowd state", "version": 1, "now": 827, "origin": 1767600074, "zone": "UTC",
     "known": true, "processors": 80, "jobs": 2}                                       (one line)
    {"number": 1, "id": "12_3", "user": 1, "user_name": "ada", "processors": 16,
     "requested_time": 1200, "submit": 0, "start": 5}
    {"number": 2, "user": 2, "processors": 4, "submit": 30, "held": "Dependency",
     "asks": {"nodes": 1, "features": "a100"}}

A job with an end is over, one with a start and no end runs, and one with neither waits.

=================  ==============================================================================
key                in the header
=================  ==============================================================================
format, version    ``hpcrowd state`` and 1
now                s since the origin; the moment of the state
origin             Unix time of the origin; null if it is unknown, and then a Monday, 00:00
zone, known        time zone of local times, and whether the record gave it; else it is UTC
processors, jobs   size of the machine, and number of lines that follow
down               processors that are down now; 0 unless given
closed             lists of two times, from and to, in which no job may run; none unless given
partitions         names of all partitions; not known unless given
source, notes      where the state comes from, and what its reader dropped, repaired or assumed
requests           true if what the jobs ask of nodes is known
=================  ==============================================================================

Keys of a job are optional but for ``number``, ``processors`` and ``submit``. Missing numbers are
unknown.

=================  ==============================================================================
key                of a job
=================  ==============================================================================
number, id         its number, and its name in the resource manager
user, group, executable, queue
                   numbers; with ``_name`` behind the key the names of these
processors         how many it holds or asks for
requested_time     s
requested_memory   kB per processor
submit, start, end s since the origin
run_time           s; from start to end unless given
session, batch     numbers of its session and batch of jobs
held               why it will not start by itself, in the words of the resource manager
partition, nodes   where it runs: a name, and a host list such as ``n[1-4]``
eligible, reason   s since the origin, when it can start at the earliest; why it waits
asks               what it asks of nodes: see :class:`~hpcrowd.environment.requests.Ask`
=================  ==============================================================================

Version 2 will be what these programs cannot read; they refuse it.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, tzinfo
from typing import Any

import numpy as np

from hpcrowd.environment.clock import LATEST_START, Clock, zone_of
from hpcrowd.environment.errors import ParseError, QuantityError, TraceError, not_one_of
from hpcrowd.environment.files import check_characters
from hpcrowd.environment.jobs import UNKNOWN, Column, JobTable
from hpcrowd.environment.limits.numbers import LATEST_MOMENT, MOST_PROCESSORS
from hpcrowd.environment.machine.hostlists import collapse, expand
from hpcrowd.environment.requests import WORDS, Ask, Requests
from hpcrowd.environment.schedulers.past import Placed
from hpcrowd.environment.state.state import (
    ClusterState,
    NodeLists,
    check_state,
    refuse,
    refuse_first,
)
from hpcrowd.environment.traces.formats.common.files import (
    BYTE_ORDER_MARK,
    LONGEST_LINE,
    read_blocks,
    write_file,
)
from hpcrowd.environment.traces.headers import parse_zone

#: Value of the key ``format``.
FORMAT = "hpcrowd state"

#: The version that is written; it increases when older programs cannot read the file any more.
VERSION = 1

#: Keys of the header, and of these the required ones.
HEADER = ("format", "version", "now", "origin", "zone", "known", "processors", "jobs", "down",
          "closed", "partitions", "source", "notes", "requests")  # fmt: skip
REQUIRED = HEADER[:8]

#: Numbers of a job: the key, the column, the least and the largest value.
NUMBERS: dict[str, tuple[Column, int, int]] = {
    "number": (Column.NUMBER, -LATEST_MOMENT, LATEST_MOMENT),
    "user": (Column.USER, -LATEST_MOMENT, LATEST_MOMENT),
    "group": (Column.GROUP, -LATEST_MOMENT, LATEST_MOMENT),
    "executable": (Column.EXECUTABLE, -LATEST_MOMENT, LATEST_MOMENT),
    "queue": (Column.QUEUE, -LATEST_MOMENT, LATEST_MOMENT),
    "processors": (Column.PROCESSORS, 1, MOST_PROCESSORS),
    "requested_time": (Column.REQUESTED_TIME, 0, LATEST_MOMENT),
    "requested_memory": (Column.REQUESTED_MEMORY, 0, LATEST_MOMENT),
    "submit": (Column.RECORDED_SUBMIT, 0, LATEST_MOMENT),
    "start": (Column.RECORDED_START, 0, LATEST_MOMENT),
    "end": (Column.RECORDED_END, 0, LATEST_MOMENT),
    "run_time": (Column.RUN_TIME, 0, LATEST_MOMENT),
    "session": (Column.SESSION, 0, LATEST_MOMENT),
    "batch": (Column.BATCH, 0, LATEST_MOMENT),
}

#: Keys that every job has.
NEEDED = ("number", "processors", "submit")

#: Names: the key, the field of :attr:`JobTable.names`, and the key of the number.
NAMES = {"id": ("job", "number")} | {
    f"{field}_name": (field, field) for field in ("user", "group", "executable", "queue")
}

#: All keys of a job, in the order in which they are written.
KEYS = ("number", "id", "user", "user_name", "group", "group_name", "executable",
        "executable_name", "queue", "queue_name", "processors", "requested_time",
        "requested_memory", "submit", "start", "end", "run_time", "session", "batch", "held",
        "partition", "nodes", "eligible", "reason", "asks")  # fmt: skip

#: Keys of what is known of a job beyond the table, with the fields of :class:`Placed`.
PLACED = ("partition", "nodes", "eligible", "reason")

#: What a job may ask of nodes, by the key.
ASKS = {ask.name.lower(): ask for ask in Ask}

#: Bytes of the first line in which the format is looked for.
HEAD = 4096

#: What to do about a file that is damaged.
AGAIN = "write the snapshot again"


def write_state(state: ClusterState, path: str | os.PathLike[str]) -> None:
    """Write the state of a cluster; the file is complete or absent.

    The same state gives the same bytes. Of the names those are kept that a job has; of the places
    of jobs the names of nodes, not what they hold in the ledger of a simulation.

    Parameters
    ----------
    state
        The state.
    path
        The file; packed with gzip if its name ends in ``.gz``.

    Raises
    ------
    TraceError
        If the state contradicts itself, or the file cannot be written.
    QuantityError
        If the time zone has no name.
    """
    check_state(state)
    _check_ranges(state)
    lines = [_text(_header_of(state)), *map(_text, _job_lines(state))]
    longest = max(range(len(lines)), key=lambda place: len(lines[place]))
    if len(lines[longest]) > LONGEST_LINE:
        raise TraceError(
            f"{path}: line {longest + 1} would have {len(lines[longest]):,} characters, and "
            f"{LONGEST_LINE:,} can be read; shorten the names in it"
        )
    write_file("".join(lines).encode("ascii"), path)


def read_state(path: str | os.PathLike[str]) -> ClusterState:
    """Return the state of a cluster from a file.

    Its :attr:`~hpcrowd.environment.state.state.ClusterState.source` is the file.

    Parameters
    ----------
    path
        The file, plain or packed with gzip.

    Raises
    ------
    TraceError
        If it cannot be read, is of another format or version, or contradicts itself.
    ParseError
        If a line is broken, or about a job that contradicts something.
    QuantityError
        If the time zone is not known here.
    """
    source = os.fspath(path)
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise TraceError(f"{source}: is empty; {AGAIN}")
    header = _header_in(first, source)
    read = _Reader(source, header)
    for number, line in enumerate(lines, 2):
        read.add(line, number)
    state = read.state()
    check_state(state)
    return state


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, allow_nan=False) + "\n"


def _lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the lines of a file, without their ends."""
    first = True
    for block in read_blocks(path, LONGEST_LINE):
        found = block.removeprefix(BYTE_ORDER_MARK) if first else block
        first = False
        yield from found.removesuffix(b"\n").split(b"\n")


# ---------------------------------------------------------------------------------------- writing


def _header_of(state: ClusterState) -> dict[str, Any]:
    clock = state.clock
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "now": int(state.now),
        "origin": None if clock.nominal else int(clock.unix_start),
        "zone": _zone_name(clock.zone),
        "known": clock.known,
        "processors": int(state.processors),
        "jobs": len(state.jobs),
    }
    optional: dict[str, Any] = {
        "down": int(state.down),
        "closed": [[int(begin), int(end)] for begin, end in state.closed],
        "partitions": list(state.partitions),
        "source": state.source,
        "notes": list(state.notes),
        "requests": state.jobs.requests is not None,
    }
    return header | {name: value for name, value in optional.items() if value}


def _zone_name(zone: tzinfo) -> str:
    name = str(zone)
    if zone is not UTC and zone_of(name) != zone:
        raise QuantityError(
            f"zone {zone}: has no name that a file can hold; use one such as Europe/Stockholm"
        )
    return name


def _check_ranges(state: ClusterState) -> None:
    """Check that every number of a job can be read back."""
    for name, (column, least, most) in NUMBERS.items():
        values = state.jobs.column(column)
        wrong = (values < least) | (values > most)
        if name not in NEEDED:
            wrong &= values != UNKNOWN
        rule = f"must be from {least:,} to {most:,} to be written; correct it"
        refuse_first(state, np.flatnonzero(wrong), name, values, rule)
    known = (state.jobs.run_time != UNKNOWN) & (state.jobs.recorded_end == UNKNOWN)
    rule = "nobody knows it before the end of the job; leave it out"
    refuse_first(state, np.flatnonzero(known), "run_time", state.jobs.run_time, rule)


def _job_lines(state: ClusterState) -> Iterator[dict[str, Any]]:
    """Yield the keys and values of each job, in the order of :data:`KEYS`."""
    jobs = state.jobs
    columns = {name: jobs.column(column).tolist() for name, (column, _, _) in NUMBERS.items()}
    start, end = columns["start"], columns["end"]
    asked = [] if jobs.requests is None else jobs.requests.asked()
    asks = {
        ask.name.lower(): (
            jobs.requests.texts(ask) if ask in WORDS else jobs.requests[ask].tolist()
        )
        for ask in asked
        if jobs.requests is not None
    }
    for row in range(len(jobs)):
        found: dict[str, Any] = {}
        for key in KEYS:
            if key in NUMBERS:
                value = columns[key][row]
                if key == "run_time":
                    lasted = _lasted(start[row], end[row])
                    if value != lasted:
                        found[key] = None if value == UNKNOWN else value
                elif value != UNKNOWN or key in NEEDED:
                    found[key] = value
            elif key in NAMES:
                field, of = NAMES[key]
                name = jobs.names.get(field, {}).get(columns[of][row])
                if name:
                    found[key] = name
        if row in state.held:
            found["held"] = state.held[row]
        if row in state.placed:
            found |= _placed_of(state, row)
        wanted = {key: values[row] for key, values in asks.items()
                  if values[row] not in (UNKNOWN, "")}  # fmt: skip
        if wanted:
            found["asks"] = wanted
        yield found


def _placed_of(state: ClusterState, row: int) -> dict[str, Any]:
    """Return what is known of a job beyond the table, by the keys of :data:`PLACED`."""
    one = state.placed[row]
    nodes = collapse(one.nodes)
    if tuple(expand(nodes)) != one.nodes:
        refuse(state, row, "nodes", nodes, "names that are not a host list; correct them")
    known = {key: getattr(one, key) for key in PLACED} | {"nodes": nodes}
    return {key: value for key, value in known.items() if value not in ("", UNKNOWN)}


def _lasted(start: int, end: int) -> int:
    """Return how long a job ran, s; unknown if it did not, or has not ended."""
    return UNKNOWN if UNKNOWN in (start, end) else end - start


# ---------------------------------------------------------------------------------------- reading


class _Wrong(ValueError):
    """A value is wrong: the key, the value, and the rule with the cure."""

    def __init__(self, field: str | None, value: Any, rule: str) -> None:
        self.field, self.value, self.rule = field, value, rule
        super().__init__(rule)


@contextmanager
def _in_line(source: str, number: int) -> Iterator[None]:
    """Say in which line of a file a value is wrong."""
    try:
        yield
    except _Wrong as wrong:
        value = wrong.value if isinstance(wrong.value, str) else repr(wrong.value)
        raise ParseError(source, number, wrong.field, value, wrong.rule) from None


def _constant(text: str) -> None:
    raise _Wrong(None, text, "not a number; numbers in JSON are finite")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        again = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise _Wrong(None, again, "a key that is there twice; leave one out")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _object(line: bytes) -> dict[str, Any]:
    """Return the object in a line; messages repeat nothing of one whose keys are not known."""
    try:
        text = line.decode("utf-8")
        found = _DECODER.decode(text)
    except _Wrong:
        raise
    except UnicodeDecodeError:
        rule = "not UTF-8"
    except json.JSONDecodeError as error:
        rule = f"column {error.colno}: not JSON: {error.msg}"
    except RecursionError:
        rule = "nested too deeply"
    except ValueError:  # of int()
        rule = "a number with too many digits"
    else:
        try:
            check_characters(text, found)
        except (ValueError, RecursionError) as error:
            rule = str(error)
        else:
            if isinstance(found, dict):
                return found
            rule = "not an object of JSON, {...}"
    raise _Wrong(None, "", f"{rule}; {AGAIN}")


def _whole(field: str, value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise _Wrong(field, value, f"not a whole number from {least:,} to {most:,}; correct it")
    return value


#: What a value is that is not of a kind.
NOT = {
    str: "not a text, or an empty one",
    list: "not a list",
    bool: "neither true nor false",
    dict: "not an object of JSON, {...}",
}


def _of[T: (str, list[Any], bool, dict[str, Any])](kind: type[T], field: str, value: Any) -> T:
    """Return a value of a kind that is not an empty text."""
    if not isinstance(value, kind) or value == "":
        raise _Wrong(field, value, f"{NOT[kind]}; correct it")
    return value


def _header_in(line: bytes, source: str) -> dict[str, Any]:
    """Return the header with its values checked, and those that are optional."""
    if FORMAT.encode() not in line[:HEAD]:
        raise TraceError(
            f'{source}: is not a snapshot of hpcrowd; its first line has no "format": "{FORMAT}". '
            "Give a file that hpcrowd.environment.state.files.write_state wrote"
        )
    with _in_line(source, 1):
        return _checked(_object(line))


def _checked(header: dict[str, Any]) -> dict[str, Any]:
    if header.get("format") != FORMAT:
        raise _Wrong("format", header.get("format"), f"must be {FORMAT!r}")
    version = header.get("version")
    if type(version) is not int or version != VERSION:
        later = type(version) is int and version > VERSION
        cure = "install a newer hpcrowd" if later else AGAIN
        raise _Wrong("version", version, f"this hpcrowd reads version {VERSION}; {cure}")
    for name in header:
        if name not in HEADER:
            raise _Wrong(name, "", f"key {not_one_of(name, HEADER)}")
    for name in REQUIRED:
        if name not in header:
            raise _Wrong(name, "", f"is missing; {AGAIN}")
    for name, most in (("now", LATEST_MOMENT), ("processors", MOST_PROCESSORS),
                       ("jobs", LATEST_MOMENT), ("down", MOST_PROCESSORS)):  # fmt: skip
        _whole(name, header.get(name, 0), int(name == "processors"), most)
    if header["origin"] is not None:
        _whole("origin", header["origin"], 1, LATEST_START)
    _of(str, "zone", header["zone"])
    _of(bool, "known", header["known"])
    _of(bool, "requests", header.get("requests", False))
    if header["origin"] is None and header["known"]:
        raise _Wrong("known", True, "the origin is not known; give it, or false")
    for pair in _of(list, "closed", header.get("closed", [])):
        if not isinstance(pair, list) or len(pair) != 2:
            raise _Wrong("closed", pair, "not a list of two times, from and to; correct it")
        for time in pair:
            _whole("closed", time, -LATEST_MOMENT, LATEST_MOMENT)
    for name in ("partitions", "notes"):
        for text in _of(list, name, header.get(name, [])):
            _of(str, name, text)
    _of(str, "source", header.get("source", "state"))
    try:
        parse_zone(header["zone"])
    except QuantityError as error:
        rule = str(error).partition(": ")[2]
        raise _Wrong("zone", header["zone"], rule) from None
    return header


class _Reader:
    """The jobs of a file, line by line, after its checked header."""

    def __init__(self, source: str, header: dict[str, Any]) -> None:
        self.source, self.header = source, header
        self.columns = {name: array("q") for name in NUMBERS}
        self.names: dict[str, dict[int, str]] = {}
        self.held: dict[int, str] = {}
        self.placed: dict[int, Placed] = {}
        self.lists = NodeLists()
        self.asked: list[tuple[int, dict[str, Any]]] = []
        self.rows = 0

    def add(self, line: bytes, number: int) -> None:
        """Add the job in a line; a ParseError says why if it is broken."""
        with _in_line(self.source, number):
            if not line.strip():
                raise _Wrong(None, "", f"an empty line, where a job belongs; {AGAIN}")
            if self.rows == self.header["jobs"]:
                raise _Wrong(None, "", f"more jobs than the {self.rows:,} of the header; {AGAIN}")
            self._add(_object(line))
        self.rows += 1

    def _add(self, job: dict[str, Any]) -> None:
        for key in job:
            if key not in KEYS:
                raise _Wrong(key, "", f"key {not_one_of(key, KEYS)}")
        for key in NEEDED:
            if key not in job:
                raise _Wrong(key, "", f"is missing; every job has {', '.join(NEEDED)}")
        for key, (_, least, most) in NUMBERS.items():
            if key == "run_time":
                value = self._run_time(job)
            elif key in job:
                value = _whole(key, job[key], least, most)
            else:
                value = UNKNOWN
            self.columns[key].append(value)
        for key, (field, of) in NAMES.items():
            if key in job:
                name, number = _of(str, key, job[key]), self.columns[of][-1]
                if number == UNKNOWN and of not in job:
                    raise _Wrong(key, name, f"a name without {of}; give the number, too")
                before = self.names.setdefault(field, {}).setdefault(number, name)
                if before != name:
                    rule = f"{of} {number} is {before!r} in an earlier line; correct one of them"
                    raise _Wrong(key, name, rule)
        if "held" in job:
            self.held[self.rows] = _of(str, "held", job["held"])
        if any(key in job for key in PLACED):
            self.placed[self.rows] = self._placed(job)
        if "asks" in job:
            self.asked.append((self.rows, self._asks(job["asks"])))

    def _run_time(self, job: dict[str, Any]) -> int:
        given = job.get("run_time", _lasted(self.columns["start"][-1], self.columns["end"][-1]))
        if given is None or ("run_time" not in job and given < 0):
            return UNKNOWN
        if "end" not in job:
            raise _Wrong("run_time", given, "not known of a job that has no end; leave it out")
        return _whole("run_time", given, 0, LATEST_MOMENT)

    def _placed(self, job: dict[str, Any]) -> Placed:
        """Return what is known of a job beyond the table."""
        words = {key: _of(str, key, job[key]) for key in PLACED if key in job and key != "eligible"}
        eligible = UNKNOWN
        if "eligible" in job:
            eligible = _whole("eligible", job["eligible"], 0, LATEST_MOMENT)
        try:
            nodes = self.lists.names(words.get("nodes", ""))
        except QuantityError as error:
            rule = str(error).partition(": ")[2]
            raise _Wrong("nodes", words["nodes"], rule) from None
        return Placed(words.get("partition", ""), nodes, (), eligible, words.get("reason", ""))

    def _asks(self, asks: Any) -> dict[str, Any]:
        if not self.header.get("requests", False):
            raise _Wrong("asks", asks, 'the header does not say "requests": true; add it')
        found: dict[str, Any] = _of(dict, "asks", asks)
        for key, value in found.items():
            ask = ASKS.get(key)
            if ask is None:
                raise _Wrong("asks", key, f"key {not_one_of(key, ASKS)}")
            if ask in WORDS:
                _of(str, f"asks {key}", value)
            else:
                least = -LATEST_MOMENT if ask is Ask.NICE else 0
                _whole(f"asks {key}", value, least, LATEST_MOMENT)
        return found

    def state(self) -> ClusterState:
        """Return the state, when all lines are read; a TraceError if some are missing."""
        header = self.header
        if self.rows != header["jobs"]:
            raise TraceError(
                f"{self.source}: {self.rows:,} lines of jobs, and its header says "
                f"{header['jobs']:,}; the file is cut short or was changed: {AGAIN}"
            )
        jobs = JobTable(self.rows)
        for name, (column, _, _) in NUMBERS.items():
            jobs.column(column)[:] = self.columns[name]
        jobs.names = self.names
        if header.get("requests", False):
            jobs.requests = _requests(self.rows, self.asked)
        return ClusterState(
            jobs,
            header["now"],
            _clock(header),
            header["processors"],
            header.get("down", 0),
            tuple((begin, end) for begin, end in header.get("closed", [])),
            self.source,
            np.arange(self.rows) + 2,
            self.held,
            self.placed,
            tuple(header.get("partitions", [])),
            tuple(header.get("notes", [])),
        )


def _clock(header: Mapping[str, Any]) -> Clock:
    if header["origin"] is None:
        return Clock()
    if header["zone"] == "UTC" and not header["known"]:
        return Clock(header["origin"])
    return Clock(header["origin"], parse_zone(header["zone"]) or UTC, header["known"])


def _requests(size: int, asked: list[tuple[int, dict[str, Any]]]) -> Requests:
    """Return what jobs ask for, from their rows and keys."""
    found = Requests(size)
    texts: dict[Ask, list[str]] = {}
    for row, asks in asked:
        for key, value in asks.items():
            ask = ASKS[key]
            if ask in WORDS:
                texts.setdefault(ask, [""] * size)[row] = value
            else:
                found[ask][row] = value
    for ask, words in texts.items():
        found.set_texts(ask, words)
    return found
