"""Times, memory and moments as people write them in descriptions of machines.

===========  ============================================================  =====================
value        texts                                                          number
===========  ============================================================  =====================
time         ``90s``, ``30m``, ``12h``, ``2d``, ``1-12:00:00``, ``08:30:00``  seconds
memory       ``500MB``, ``32GB``, ``1.5TB``; 1 GB = 1024 MB as in Slurm       MB
moment       ``2026-01-05T08:00:00Z``                                       seconds since 1970
no limit     ``unlimited``; shares of the account above: ``parent``         none
===========  ============================================================  =====================
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BeforeValidator
from pydantic.fields import FieldInfo

from hpcrowd.environment.errors import QuantityError, echo, without_secrets
from hpcrowd.environment.limits.numbers import LONGEST_DURATION
from hpcrowd.environment.machine.hostlists import LONGEST_NAME
from hpcrowd.environment.quantities import duration_text, parse_duration

#: MB in each unit of memory.
MEGABYTES = {"M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}

#: Words for no limit.
UNLIMITED, PARENT = "unlimited", "parent"

#: Times from the year 2000 on are written as dates; earlier ones are seconds of a run.
FIRST_DATE = 946_684_800

_CLOCK = re.compile(r"(?:(\d{1,6})-)?(\d{1,6}):([0-5]?\d)(?::([0-5]?\d))?", re.ASCII)
_DAYS = re.compile(r"(\d{1,6})-(\d{1,6})", re.ASCII)
_MEMORY = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([MGTP])i?B?", re.IGNORECASE | re.ASCII)


def parse_time(text: str) -> int:
    """Return the seconds that a text means, such as ``12h`` or ``1-12:00:00``.

    Raises
    ------
    QuantityError
        When it is not a duration with a unit, nor days-hours:minutes:seconds.
    """
    clock, days = _CLOCK.fullmatch(text.strip()), _DAYS.fullmatch(text.strip())
    if clock and (clock[1] or clock[4]):
        day, hour, minute, second = (int(part or 0) for part in clock.groups())
        seconds = day * 86400 + hour * 3600 + minute * 60 + second
    elif days:
        seconds = int(days[1]) * 86400 + int(days[2]) * 3600
    else:
        return parse_duration(text)
    if seconds > LONGEST_DURATION:
        raise QuantityError(f"duration {text!r}: more than {LONGEST_DURATION:,} s")
    return seconds


def parse_memory(text: str) -> int:
    """Return the MB that a text means, such as ``32GB``.

    Raises
    ------
    QuantityError
        When it is not a number with a unit.
    """
    match = _MEMORY.fullmatch(text.strip())
    if not match:
        raise QuantityError(
            f"memory {echo(text)}: not a number with a unit; write for example 32GB"
        )
    unit = MEGABYTES[match[2].upper()]
    return int(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit


def memory_text(megabytes: int) -> str:
    """Return the shortest text that :func:`parse_memory` reads as ``megabytes``."""
    unit = next(
        (unit for unit in "PTG" if megabytes and megabytes % MEGABYTES[unit] == 0), "M"
    )  # fmt: skip
    return f"{megabytes // MEGABYTES[unit]}{unit}B"


def _time(value: Any) -> Any:
    return parse_time(value) if isinstance(value, str) else value


def _memory(value: Any) -> Any:
    return parse_memory(value) if isinstance(value, str) else value


def _moment(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise QuantityError(
                f"time {echo(value)}: not a moment; write for example 2026-01-05T08:00:00Z"
            ) from None
    if isinstance(value, datetime):
        return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
    return value


def _resources(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("mem"), str):
        return value | {"mem": parse_memory(value["mem"])}
    return value


def _name(value: str) -> str:
    if len(value) > LONGEST_NAME or not value.isprintable() or without_secrets(value) != value:
        raise ValueError(f"a name has at most {LONGEST_NAME} characters, all of them printable")
    return value


#: Name of one thing, such as an account.
Name = Annotated[str, AfterValidator(_name)]

#: Seconds, or a text such as ``12h``.
Seconds = Annotated[int, BeforeValidator(_time)]

#: MB, or a text such as ``32GB``.
Megabytes = Annotated[int, BeforeValidator(_memory)]

#: Seconds since 1970 or of the run, or a date with a time.
Moment = Annotated[int, BeforeValidator(_moment)]

#: Resources by name, as in Slurm's TRES: ``cpu``, ``mem`` (MB), ``node``, ``gres/gpu`` and
#: ``gres/gpu:TYPE``, ``billing``; others such as ``energy`` may be read, and are not modelled.
Tres = Annotated[dict[Name, int], BeforeValidator(_resources)]


def is_optional(field: FieldInfo) -> bool:
    """Return whether a field of a model may be None."""
    return type(None) in get_args(field.annotation)


def written(field: FieldInfo, value: Any) -> Any:
    """Return a value of a field as a TOML file shows it."""
    if value is None:
        return UNLIMITED
    marks = [*field.metadata, *(one for part in get_args(field.annotation) for one in
                                getattr(part, "__metadata__", ()))]  # fmt: skip
    kinds = {mark.func for mark in marks if isinstance(mark, BeforeValidator)}
    if _time in kinds and value >= 0:
        return duration_text(value)
    if _memory in kinds:
        return memory_text(value)
    if _moment in kinds and value >= FIRST_DATE:
        return datetime.fromtimestamp(value, UTC)
    if _resources in kinds and "mem" in value:
        return value | {"mem": memory_text(value["mem"])}
    return value
