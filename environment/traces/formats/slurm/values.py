"""Single values of Slurm's accounting: times, durations, counts, memory, limits and states.

Every function takes the text between two delimiters and returns its value; a malformed word raises
``ValueError`` with the rule.

sacct writes ``2024-01-31T12:00:00`` in the time zone of the machine that it runs on, and does not
name the zone. When clocks are put back, an hour occurs twice. Unix times
(``SLURM_TIME_FORMAT=%s``) and times with an offset (``%FT%T%z``) are unambiguous.

Source: man page of ``sacct``, sections "Job Accounting Fields" and "Job state codes", of Slurm's
master branch in August 2026; requested memory per CPU or per node as Slurm wrote it up to 20.11.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import FIRST_MONDAY, QUARTER, Clock, offsets
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.traces.formats.common.names import LARGEST_EXACT

#: Largest number of processors or nodes that is accepted.
MOST = 2**31

#: Words for an unknown value, in lower case.
EMPTY = frozenset((b"", b"unknown", b"none", b"n/a", b"na", b"(null)", b"null", b"invalid"))

#: Words for no time limit, in lower case.
NO_LIMIT = frozenset((b"partition_limit", b"unlimited", b"infinite", b"not_set"))

#: kB in a unit of memory.
KILOBYTES = {b"K": 1, b"M": 2**10, b"G": 2**20, b"T": 2**30, b"P": 2**40, b"E": 2**50}

#: Units of large counts, such as nodes: sacct writes 1K for 1024.
THOUSANDS = {b"": 1, b"K": 2**10, b"M": 2**20, b"G": 2**30}

#: J in a unit of energy: those of ConsumedEnergy are decimal.
JOULES = {b"": 1, b"K": 10**3, b"M": 10**6, b"G": 10**9, b"T": 10**12, b"P": 10**15}

#: J that mean that nothing was measured: NO_VAL and INFINITE of Slurm, in 32 bits; those in 64 bits
#: are larger than any energy.
NO_ENERGY = frozenset((2**32 - 2, 2**32 - 1))


class State(NamedTuple):
    """A state of a job."""

    short: str = ""  #: its short form, empty for none
    status: int | None = None  #: status in the trace; None if the job has not ended
    runs_again: bool = False  #: whether Slurm may run the job again after this state


#: The states. Without a status, the job has not ended, or the record is not that of a run.
STATES = {
    "COMPLETED": State("CD", 1),
    "FAILED": State("F", 0),
    "TIMEOUT": State("TO", 0),
    "NODE_FAIL": State("NF", 0, runs_again=True),
    "OUT_OF_MEMORY": State("OOM", 0),
    "BOOT_FAIL": State("BF", 0, runs_again=True),
    "DEADLINE": State("DL", 0),
    "PREEMPTED": State("PR", 0, runs_again=True),
    "LAUNCH_FAILED": State(status=0, runs_again=True),
    "RECONFIG_FAIL": State(status=0, runs_again=True),
    "CANCELLED": State("CA", 5),
    "PENDING": State("PD"),
    "RUNNING": State("R"),
    "SUSPENDED": State("S"),
    "REQUEUED": State("RQ", runs_again=True),
    "REQUEUE_HOLD": State("RH", runs_again=True),
    "REQUEUE_FED": State("RF", runs_again=True),
    "SPECIAL_EXIT": State("SE", runs_again=True),
    "RESIZING": State("RS", runs_again=True),
    "REVOKED": State("RV"),
    "CONFIGURING": State("CF"),
    "COMPLETING": State("CG"),
    "STOPPED": State("ST"),
    "SIGNALING": State("SI"),
    "STAGE_OUT": State("SO"),
    "RESV_DEL_HOLD": State("RD"),
    "POWER_UP_NODE": State(),
    "UPDATE_DB": State(),
    "EXPEDITING": State(),
}

#: Final states and their status.
ENDED = {name: state.status for name, state in STATES.items() if state.status is not None}

#: States by their short forms.
SHORT = {state.short: name for name, state in STATES.items() if state.short}

#: A missing time.
NO_TIME = -(2**62)

#: Added to Unix times, to distinguish them from local times.
SINCE_1970 = 2**40

#: s since 1970, the day before 1970 (its first hours in zones west of Greenwich), and year 2200.
FIRST_TIME, LAST_TIME = -86400, 7_258_118_400

_DIGITS = re.compile(rb"[0-9]{1,18}")
_COUNT = re.compile(rb"([0-9]{1,18}|[0-9]{1,12}\.[0-9]{1,6})([KMG]?)")
_DURATION = re.compile(
    rb"(?:(?:([0-9]{1,9})-)?([0-9]{1,9}):)?([0-9]{1,9}):([0-5]?[0-9](?:\.[0-9]{1,6})?)"
)
_MEMORY = re.compile(rb"([0-9]{1,18}(?:\.[0-9]{1,20})?)([KMGTPE]?)B?([cn]?)")
_ENERGY = re.compile(rb"([0-9]{1,20}(?:\.[0-9]{1,20})?)([KMGTP]?)")
_ENERGY_OF = re.compile(rb"(?:^|,)energy=([^,]*)")
_CPUS = re.compile(rb"(?:^|,)cpu=([^,]*)")
_TASKS = re.compile(rb"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?")
_ISO = re.compile(
    rb"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})"
    rb"(?:(Z)|([+-])([0-9]{2}):?([0-9]{2}))?"
)
_RULE = (
    "not a time like 2024-01-31T12:00:00, nor seconds since 1970, from 1970 to 2200; "
    "leave SLURM_TIME_FORMAT alone"
)


class RequestedMemory(NamedTuple):
    """Requested memory in kB, and what it is for: ``c`` a CPU, ``n`` a node, else the job."""

    kilobytes: float
    of: str


def parse_whole(word: bytes) -> int:
    """Return a whole number, such as ``ElapsedRaw`` in s; -1 if there is none."""
    if _DIGITS.fullmatch(word) and (value := int(word)) <= LARGEST_EXACT:
        return value
    if word.strip().lower() in EMPTY:
        return -1
    raise ValueError("not a whole number; use Unknown, or nothing, if there is none")


def parse_count(word: bytes) -> int:
    """Return a number of processors or nodes: ``16``, ``1K``; -1 if missing."""
    match = _COUNT.fullmatch(word)
    if match:
        number = float(match[1]) if b"." in match[1] else int(match[1])
        count = number * THOUSANDS[match[2]]
        if count == int(count) and count <= MOST:
            return int(count)
    if word.strip().lower() in EMPTY:
        return -1
    raise ValueError("not a number of processors or nodes, such as 16 or 1K")


def parse_cpus(word: bytes) -> int:
    """Return the processors of trackable resources: ``billing=4,cpu=4,mem=16G,node=1``."""
    match = _CPUS.search(word)
    return parse_count(match[1]) if match else -1


def parse_duration(word: bytes) -> float:
    """Return a duration, ``[DD-[HH:]]MM:SS[.mmm]``, in s; -1 if missing."""
    match = _DURATION.fullmatch(word)
    if match:
        days, hours, minutes, seconds = match.groups()
        told = int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes) * 60
        return told + float(seconds)
    if word.strip().lower() in EMPTY:
        return -1
    raise ValueError("not a duration, such as 1-02:03:04 or 02:03.500")


def parse_seconds(word: bytes) -> int:
    """Return a duration in whole seconds, rounded down; -1 if missing."""
    return int(parse_duration(word))


def parse_limit(word: bytes) -> int:
    """Return a time limit, ``[DD-[HH:]]MM:SS``, in s; -1 where there is none."""
    return -1 if word.strip().lower() in NO_LIMIT else parse_seconds(word)


def parse_limit_minutes(word: bytes) -> int:
    """Return a time limit in minutes, as ``TimelimitRaw`` is, in s; -1 where there is none."""
    if word.strip().lower() in NO_LIMIT:
        return -1
    minutes = parse_whole(word)
    if minutes * 60 > LARGEST_EXACT:
        raise ValueError("more minutes than a trace can hold")
    return minutes * 60 if minutes >= 0 else -1


def parse_used_memory(word: bytes) -> float:
    """Return memory in kB: ``20480K``, ``1.5G``, bytes without a unit; -1 if missing."""
    match = _MEMORY.fullmatch(word)
    if match and not match[3]:
        size = float(match[1]) * (KILOBYTES[match[2]] if match[2] else 1 / 1024)
        if size <= LARGEST_EXACT:
            return size
    if word.strip().lower() in EMPTY:
        return -1
    raise ValueError("not a size of memory, such as 20480K or 1.5G")


def parse_energy(word: bytes) -> int:
    """Return energy in J: ``4290000``, ``4.29M``; -1 if missing, which 0 means as well."""
    match = _ENERGY.fullmatch(word)
    if match:
        number = float(match[1]) if b"." in match[1] else int(match[1])
        joules = int(number * JOULES[match[2]] + 0.5)
        return joules if 0 < joules <= LARGEST_EXACT and joules not in NO_ENERGY else -1
    if word.strip().lower() in EMPTY:
        return -1
    raise ValueError("not an energy in J, such as 4290000 or 4.29M")


def parse_energy_of(word: bytes) -> int:
    """Return the energy of trackable resources, ``cpu=4,energy=4290000``, in J; -1 if missing."""
    match = _ENERGY_OF.search(word)
    return parse_energy(match[1]) if match else -1


def parse_requested_memory(word: bytes) -> RequestedMemory:
    """Return requested memory: ``4G`` per job, ``4Gc`` per CPU, ``4Gn`` per node.

    Without a unit it is in MB. 0 requests all the memory of the nodes, which is not known.
    """
    match = _MEMORY.fullmatch(word)
    if match:
        size = float(match[1]) * KILOBYTES[match[2] or b"M"]
        if size <= LARGEST_EXACT:
            return RequestedMemory(size or -1, match[3].decode())
    if word.strip().lower() in EMPTY:
        return RequestedMemory(-1, "")
    raise ValueError("not a size of memory, such as 4G, 2000Mc (per CPU) or 16Gn (per node)")


def parse_state(word: bytes) -> str:
    """Return a state in its long form: ``CANCELLED by 1000`` and ``CA+`` are ``CANCELLED``."""
    words = word.split(None, 1)
    state = words[0].rstrip(b"+").upper().decode("latin-1") if words else ""
    state = SHORT.get(state, state)
    if state in STATES:
        return state
    raise ValueError("not a known job state, such as COMPLETED or CANCELLED by 1000")


def count_tasks(job_id: str) -> int:
    """Return the number of array tasks in a row: six for ``77_[6-10,12%2]``.

    In a list that sacct has cut short (``...``) only the listed tasks count; at least one.
    """
    listed = job_id.encode().partition(b"_[")[2].partition(b"]")[0].partition(b"%")[0]
    tasks = 0
    for part in listed.split(b","):
        match = _TASKS.fullmatch(part)
        if match:
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            tasks += max((last - first) // max(step, 1) + 1, 0)
    return max(tasks, 1)


def duration_text(milliseconds: int) -> str:
    """Return a duration as sacct writes it: ``02:03.500``, ``01:02:03``, ``4-01:02:03``."""
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    fraction = f".{rest:03}" if rest else ""
    before = f"{days}-{hours:02}:" if days else f"{hours:02}:" if hours or not rest else ""
    return f"{before}{minutes:02}:{seconds:02}{fraction}"


class Moments(NamedTuple):
    """Times as seconds since 1970, all of shape (times,)."""

    unix: Int64s  #: the first moment with this local time; :data:`NO_TIME` if missing
    again: Int64s  #: s from then until clocks show the time again; 0 if they do not
    #: Whether the local time does not exist because clocks are put forward; ``unix`` is then the
    #: moment of the change.
    skipped: NDArray[np.bool_]


def parse_time(word: bytes) -> int:
    """Return a time in s since 1970, local time; with :data:`SINCE_1970` added if it is in UTC.

    :data:`NO_TIME` if missing.
    """
    match = _ISO.fullmatch(word)
    if match:
        try:
            year, month, day, hour, minute, second = map(int, match.groups()[:6])
            moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            raise ValueError(_RULE) from None
        seconds, told = int(moment.timestamp()), 0
        if match[7] or match[8]:
            ahead = int(match[9] or 0) * 3600 + int(match[10] or 0) * 60
            seconds, told = seconds + (ahead if match[8] == b"-" else -ahead), SINCE_1970
    elif word.isdigit() and len(word) <= 12:
        if not int(word):
            return NO_TIME
        seconds, told = int(word), SINCE_1970
    elif word.strip().lower() in EMPTY:
        return NO_TIME
    else:
        raise ValueError(_RULE)
    if not FIRST_TIME <= seconds < LAST_TIME:
        raise ValueError(_RULE)
    return seconds + told


def to_unix(times: Int64s, zone: tzinfo | None) -> Moments:
    """Convert times from :func:`parse_time` to moments; without ``zone`` they are taken as UTC."""
    unix = np.where(times >= SINCE_1970 + FIRST_TIME, times - SINCE_1970, times)
    again, skipped = np.zeros(len(times), np.int64), np.zeros(len(times), bool)
    walls = np.flatnonzero(local(times))
    if zone is None or not len(walls):
        return Moments(unix, again, skipped)
    quarters, where = np.unique(times[walls] // QUARTER, return_inverse=True)
    table = np.array([offsets(zone, int(quarter) * QUARTER) for quarter in quarters], np.int64)
    first, second = table[where].T
    unix[walls] -= first
    again[walls] = np.maximum(first - second, 0)
    gaps = walls[first < second]
    skipped[gaps] = True
    clock = Clock(0, zone)
    for place in gaps:
        unix[place] = clock.second_at(int(times[place]) - FIRST_MONDAY)
    return Moments(unix, again, skipped)


def local(times: Int64s) -> NDArray[np.bool_]:
    """Return which times are local times, shape (times,)."""
    return np.asarray((times != NO_TIME) & (times < SINCE_1970 + FIRST_TIME))


def time_texts(unix: Int64s, zone: tzinfo | None) -> list[str]:
    """Return moments as sacct writes them in ``zone``, else UTC; with an offset if ambiguous."""
    told = unix != NO_TIME
    walls = np.where(told, unix, 0)
    if zone is not None:
        walls = Clock(0, zone).walls(walls) + FIRST_MONDAY
    texts = np.datetime_as_string(walls.astype("datetime64[s]")).tolist()
    for place in np.flatnonzero(~told):
        texts[place] = "Unknown"
    for place in np.flatnonzero(told & (to_unix(walls, zone).again > 0)):
        minutes = int(walls[place] - unix[place]) // 60
        sign = "-" if minutes < 0 else "+"
        texts[place] += f"{sign}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"
    return list(texts)
