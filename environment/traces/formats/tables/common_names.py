"""Names that columns of jobs commonly have, in any case and with any marks between words.

A table of your own whose first line has such names needs no mapping; what was read as what is said
in a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.traces.formats.tables.values import Columns

if TYPE_CHECKING:  # pydantic is slow to import
    from hpcrowd.environment.traces.formats.tables.mapping import TableMapping

#: Common names of each field, without marks and in small letters (our choice).
COMMON = {
    "number": "jobid job id jobnumber number",
    "submit": "submit submitted submittime submittedat submission submissiontime arrival "
    "arrivaltime queuedat",
    "start": "start started starttime startedat begin begintime",
    "end": "end ended endtime endedat finish finished finishtime",
    "run": "run runtime elapsed elapsedtime duration",
    "allocated_processors": "cores cpus processors procs slots ncores ncpus nprocs numcores "
    "numcpus numprocs alloccpus allocatedprocessors allocatedcores",
    "requested_time": "requestedtime requestedwalltime timelimit walltimelimit limit",
    "user": "user username userid owner",
    "group": "group groupname account project",
    "queue": "queue queuename partition",
}

_FIELD_OF = {name: field for field, names in COMMON.items() for name in names.split()}

#: Seconds since 1970 from here on (1973) are not those of a log that begins with 0.
LEAST_UNIX = 100_000_000

#: Milliseconds since 1970 from here on.
LEAST_UNIX_MS = 100_000_000_000


def fields_of(names: Iterable[str]) -> dict[str, str]:
    """Return the columns of a table by the fields that their names commonly mean.

    It is empty without a submission, or without a run time or a start and an end.
    """
    found: dict[str, str] = {}
    for name in names:
        field = _FIELD_OF.get(re.sub(r"[\W_]", "", name).lower())
        if field:
            found.setdefault(field, name)
    if "run" in found:
        found.pop("end", None)
    lasts = "run" in found or {"start", "end"} <= found.keys()
    return found if "submit" in found and lasts else {}


def guessed_mapping(table: Columns) -> TableMapping | None:
    """Return what the columns of a table mean by their names; None if they have others."""
    from hpcrowd.environment.traces.formats.tables.mapping import TableMapping

    columns: dict[str, Any] = {}
    for field, name in fields_of(table.names).items():
        columns[field] = column = {"column": name}
        first = next((word for word in table.words(name) if word), "")
        if field in ("submit", "start", "end"):
            time = _notation(first)
            if time is None:
                return None
            column["time"] = time
        elif field in ("run", "requested_time") and ":" in first:
            column["unit"] = "clock"
    return TableMapping(columns=columns) if columns else None


def _notation(word: str) -> str | None:
    """Return how a moment is written; None if it is unknown."""
    try:
        number = float(word)
    except ValueError:
        try:
            datetime.fromisoformat(word)
        except ValueError:
            return None
        return "iso"
    return "unix-ms" if number >= LEAST_UNIX_MS else "unix" if number >= LEAST_UNIX else "seconds"


def read_as(mapping: TableMapping) -> str:
    """Return what was read as what, in a line."""
    words = (
        f"{one.name} as {field}" + (f" ({one.time})" if field in ("submit", "start", "end") else "")
        for field, one in mapping.columns.items()
    )
    return f"columns read by their names: {', '.join(words)}; --map describes others"
