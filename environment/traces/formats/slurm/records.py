"""Rows of Slurm's accounting from records of other forms, such as objects of JSON.

Such is the log of Slurm's plugin jobcomp/filetxt: a line of ``KEY=VALUE`` for each job that has
ended ::

    JobId=501 UserId=ann(1001) GroupId=grp(100) Name=two words JobState=COMPLETED Partition=p
        TimeLimit=60 StartTime=2024-01-31T08:00:10 EndTime=2024-01-31T08:10:10 NodeList=n1
        NodeCnt=1 ProcCnt=4 ... SubmitTime=2024-01-31T08:00:00 ... ExitCode=0:0   (in one line)

It has neither steps nor what jobs used. Names may have blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.header import decode
from hpcrowd.environment.traces.formats.common.odd_values import OddValues
from hpcrowd.environment.traces.formats.slurm.table import Rows, read_rows

#: The columns of the rows that records become.
COLUMNS = (
    "JobID", "User", "Account", "JobName", "Partition", "QOS", "Cluster", "Submit", "Eligible",
    "Start", "End", "ElapsedRaw", "Suspended", "State", "AllocCPUS", "ReqCPUS", "NNodes",
    "TimelimitRaw", "ReqMem", "MaxRSS", "NTasks", "TotalCPU", "AllocTRES", "ReqTRES", "NodeList",
    "Reservation", "Constraints", "ExitCode", "Priority", "SubmitLine", "ConsumedEnergyRaw",
)  # fmt: skip

#: Between cells, and what stands for it and for line ends inside a cell.
DELIMITER, INSIDE, BROKEN = "\x1f", "\x01", "\x02"

#: Smallest Unix time that means unknown.
NEVER = 2**32 - 2

BACK = {INSIDE.encode(): DELIMITER.encode(), BROKEN.encode(): b"\n"}

_SAFE = str.maketrans({DELIMITER: INSIDE, "\n": BROKEN, "\r": " ", "\0": ""})


def part_of(record: Any, *way: str) -> Any:
    """Return what is at the end of a way through objects; None if a part is missing."""
    for name in way:
        record = record.get(name) if isinstance(record, dict) else None
    return record


def number_in(value: Any) -> int | None:
    """Return a whole number, plain or in an object; None if it is not set."""
    if isinstance(value, dict):
        known = value.get("set", True) and not value.get("infinite")
        value = value.get("number") if known else None
    if isinstance(value, str) and value.isdecimal():
        value = int(value[:19])
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return int(value) if abs(value) < 2**62 else None


def count_in(value: Any) -> str:
    """Return the text of a whole number that is not negative; empty if it is not set."""
    number = number_in(value)
    return "" if number is None or number < 0 else str(number)


def time_in(value: Any) -> str:
    """Return the text of a Unix time; ``Unknown`` if it is not set."""
    number = number_in(value)
    return str(number) if number is not None and 0 < number < NEVER else "Unknown"


def word_in(value: Any) -> str:
    """Return a text that a cell can hold; empty if it is none."""
    text = value if isinstance(value, str) else ""
    return text.translate(_SAFE)


def rows_of(records: Iterable[Mapping[str, str]], odd: OddValues) -> Rows:
    """Return records with all of :data:`COLUMNS`, in that order, as rows.

    Raises
    ------
    TraceError
        If there are none, or a value is malformed and that is refused.
    """
    lines = [DELIMITER.join(COLUMNS)]
    lines += [DELIMITER.join(record.values()) for record in records]
    if len(lines) == 1:
        raise TraceError(f"{odd.source}: contains no jobs")
    text = "\n".join(lines).encode("utf-8", "replace") + b"\n"
    del lines
    try:
        return read_rows(text, odd).restored(BACK)
    except ParseError as error:
        raise odd.error(error) from None


#: Columns of sacct and the keys of their values.
KEYS = {
    "Account": "Account", "Partition": "Partition", "QOS": "QOS", "Cluster": "Cluster",
    "Submit": "SubmitTime", "Eligible": "EligibleTime", "Start": "StartTime", "End": "EndTime",
    "State": "JobState", "AllocCPUS": "ProcCnt", "ReqCPUS": "ProcCnt", "NNodes": "NodeCnt",
    "TimelimitRaw": "TimeLimit", "AllocTRES": "Tres", "NodeList": "NodeList",
    "Reservation": "ReservationName", "ExitCode": "ExitCode",
}  # fmt: skip

_BEGIN = re.compile(rb"\s*JobId=\d+ UserId=\S+ GroupId=\S+ Name=")
_LINE = re.compile(r"JobId=(\S+) UserId=(\S*?)(?:\(\d+\))? GroupId=\S* Name=(.*?) (JobState=.*)")
_PAIR = re.compile(r"(\w+)=(.*?)(?= \w+=|$)")
_MEMORY = re.compile(r"(?:^|,)mem=([^,]+)")


def is_completions(head: bytes) -> bool:
    """Return whether a text is a log of jobcomp/filetxt."""
    return _BEGIN.match(head) is not None


def completions_in(data: bytes, odd: OddValues) -> Iterator[dict[str, str]]:
    """Yield the rows of ``sacct`` that the lines of a log become."""
    for line, raw in enumerate(data.splitlines(), start=2):  # as the rows of a list of jobs
        text = decode(raw).strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            odd.add(line, None, raw, "not JobId, UserId, GroupId, Name and JobState", left_out=True)
            continue
        known = dict(_PAIR.findall(match[4]))
        row = dict.fromkeys(COLUMNS, "")
        row |= {name: word_in(known.get(key, "")) for name, key in KEYS.items()}
        memory = _MEMORY.search(row["AllocTRES"])
        row |= {"JobID": match[1], "User": word_in(match[2]), "JobName": word_in(match[3]),
                "ReqMem": memory[1] if memory else ""}  # fmt: skip
        if row["NodeList"] in ("", "(null)"):
            row["NodeList"] = "None assigned"
        yield row
