"""The header of a trace: its comment lines, and the description of the machine in them.

A log without a size of the machine holds at least what was in use at once. That peak is a lower
bound: processors that were never needed at the same time as the others do not show. Formats that
record no size put the peak into the header that they make, with a note that sets it apart from a
size that was given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import plural

_KEY = re.compile(r";\s*([A-Za-z][A-Za-z0-9]*)\s*:(?!//)\s?(.*)")

#: A whole number of at most 18 digits, which may be in groups of three, and what may follow it.
_NUMBER = re.compile(
    r"([+-]?(?:[0-9]{1,18}|[0-9]{1,3}(?:,[0-9]{3}){1,5}))(?:\.0+)?"
    r"(?:[ \t]+([A-Za-z]+))?(?:\s*[(\[#;\n].*)?",
    re.DOTALL,
)

#: Units that may follow the number of a key.
UNITS = {
    "maxprocs": ("processors", "processor", "procs", "cpus", "cores", "slots"),
    "maxnodes": ("nodes", "node", "hosts", "machines"),
    "unixstarttime": ("seconds", "s"),
}

#: Values that mean unknown, in lower case.
UNKNOWN_VALUES = frozenset(("", "-", "-1", "?", "unknown", "n/a", "na", "none", "null"))


@dataclass
class Header:
    """The comment lines before the first job, byte for byte, and their values.

    Attributes
    ----------
    lines
        The lines without their line feed.
    """

    lines: list[bytes] = field(default_factory=list)

    def entries(self) -> list[tuple[str, str]]:
        """Return (key, value) pairs in order; a continued line is joined to the value before it."""
        return [(key, value) for _, key, value in self._entries()]

    def _entries(self) -> list[tuple[int, str, str]]:
        """Return (line, key, value), lines counted from 1."""
        found: list[tuple[int, str, str]] = []
        for number, raw in enumerate(self.lines, start=1):
            text = decode(raw).rstrip()
            match = _KEY.match(text)
            if match:
                found.append((number, match[1], match[2].strip()))
            elif found and re.match(r";\s+\S", text):
                line, key, value = found[-1]
                found[-1] = line, key, f"{value}\n{text.lstrip('; \t')}".strip()
        return found

    def get(self, key: str) -> str | None:
        """Return the first value of ``key`` (upper and lower case alike), or None."""
        return next((v for k, v in self.entries() if k.lower() == key.lower()), None)

    def integer(self, key: str) -> int | None:
        """Return the whole number that a value is, or None.

        It has at most 18 digits, which commas may group by three: ``93312``, ``93,312``, ``64.0``.
        Behind it may be a unit of :data:`UNITS`, and a note in brackets, after ``#`` or ``;``, or
        on further lines: ``1664 (72, 1368, 224)``. Anything else, such as ``16 x 64``, is None.
        """
        match = _NUMBER.fullmatch(self.get(key) or "")
        if match is None or (match[2] and match[2].lower() not in UNITS.get(key.lower(), ())):
            return None
        return int(match[1].replace(",", ""))

    def line(self, key: str) -> int:
        """Return the line of the first value of ``key``, counted from 1; 0 without one."""
        return next((n for n, k, _ in self._entries() if k.lower() == key.lower()), 0)

    def unread(self, key: str) -> bool:
        """Return whether the value of ``key`` is neither a whole number nor a word for unknown."""
        value = self.get(key)
        told = value is not None and value.lower() not in UNKNOWN_VALUES
        return told and self.integer(key) is None

    @property
    def processors(self) -> int | None:
        """Processors of the machine: ``MaxProcs``, else ``MaxNodes``, else None."""
        for key in ("MaxProcs", "MaxNodes"):
            count = self.integer(key)
            if count is not None and count > 0:
                return count
        return None

    def overrun(self, choice: str = "given") -> str:
        """Return a choice of ``keep`` or ``kill`` for jobs that exceed their requested time.

        ``given`` is ``kill`` where ``AllowOveruse`` says No, and ``keep`` otherwise.
        """
        if choice != "given":
            return choice
        return "kill" if (self.get("AllowOveruse") or "").lower() in ("no", "false") else "keep"


def decode(line: bytes) -> str:
    """Return a header line as text: UTF-8, else Latin-1, which never fails."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


#: Begins each note.
NOT_GIVEN = "the trace does not give the size of the machine"

#: Notes in headers that say that ``MaxProcs`` was found in the record of a log without a size.
MOST_HELD = "MaxProcs is the most processors that jobs held at one time"
MOST_IN_USE = "MaxProcs is the most processors in use at one time"
AS_JOBS_TELL = "MaxProcs is as many as the resources that jobs were on tell"

#: What the size is, by the beginning of the note.
FOUND = {
    MOST_HELD: "the peak of its recorded use",
    MOST_IN_USE: "the peak of its recorded use",
    AS_JOBS_TELL: "as many as jobs were seen on",
}


#: Fields that the peak is found from.
MEASURED = ("submit", "wait", "run", "allocated_processors", "requested_processors")


@dataclass(frozen=True)
class MachineSize:
    """The number of processors of a machine, and where it comes from."""

    processors: int | None  #: the number; None if nothing is known
    note: str = ""  #: what it is if the header does not give it; empty if it does


def most_in_use(start: Int64s, end: Int64s, processors: NDArray[Any]) -> int:
    """Return the most processors that jobs held at one time; ends come before starts."""
    times = np.concatenate((end, start))
    order = np.lexsort((np.repeat((0, 1), (len(end), len(start))), times))
    change = np.concatenate((-processors, processors))[order]
    return int(max(np.cumsum(change).max(initial=0), 0))


def machine_size(header: Header, columns: Mapping[str, NDArray[Any]]) -> MachineSize:
    """Return the size of the machine from the header, or from the columns of the trace.

    If nothing gives it, it is the peak of the recorded use: the most processors that jobs held at
    once, by their recorded starts and ends, and at least the largest job that ran. If no job has a
    recorded start, each is taken as started when it was submitted, as in a replay; the result may
    then be too large where jobs waited. If no job ran, it is the largest job.
    """
    if (given := header.processors) is not None:
        found = [what for note in _notes(header) for what in _found_as(note)]
        return MachineSize(given, _lower_bound(given, found[0]) if found else "")
    submit, wait, run, held, asked = (columns[name] for name in MEASURED)
    most = np.maximum(held, asked)
    ran = (submit >= 0) & (run >= 0) & (most > 0)
    if not ran.any():
        largest = int(np.ceil(most.max(initial=0)))
        if largest < 1:
            return MachineSize(None)
        return MachineSize(largest, _lower_bound(largest, "its largest job"))
    started = ran & (wait >= 0)
    known = bool(started.any())
    counted = started if known else ran
    begin = submit[counted].astype(np.float64) + (wait[counted] if known else 0)
    end = begin + run[counted]
    size = np.ceil(np.where(held > 0, held, asked)[counted]).astype(np.int64)
    peak = max(most_in_use(begin, end, size), int(np.ceil(most[ran].max())))
    if not known:
        return MachineSize(
            peak,
            f"{NOT_GIVEN}, nor when jobs started; {plural(peak, 'processor')}, the most in use if "
            "each started when it was submitted, is an estimate",
        )
    return MachineSize(peak, _lower_bound(peak, FOUND[MOST_IN_USE]))


def without_found_size(header: Header) -> Header:
    """Return a header without the note that its size was found in the record."""
    found = {f"; Note: {note}" for note in _notes(header) if _found_as(note)}
    return Header([line for line in header.lines if decode(line).rstrip() not in found])


def _notes(header: Header) -> list[str]:
    return [value for key, value in header.entries() if key == "Note"]


def _found_as(note: str) -> list[str]:
    """Return what the size is that a note is about; nothing for other notes."""
    return [what for begin, what in FOUND.items() if note.startswith(begin)]


def _lower_bound(processors: int, what: str) -> str:
    return f"{NOT_GIVEN}; {plural(processors, 'processor')}, {what}, is a lower bound"
