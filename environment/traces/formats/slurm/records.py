"""Rows of Slurm's accounting from records of other forms, such as objects of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hpcrowd.environment.errors import ParseError, TraceError
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
