"""The meaning and units of the columns of your own table, from a TOML file.

::

    delimiter = ";"
    decimal = ","               # decimal mark; a point unless given
    thousands = "."             # mark between groups of three digits; none unless given
    zone = "Europe/Paris"       # of local times
    processors = 512            # of the machine

    [columns]
    number = "Job"
    submit = { column = "Submitted", time = "%d/%m/%Y %H:%M:%S" }
    start  = { column = "Started", time = "%d/%m/%Y %H:%M:%S" }
    run    = { column = "Elapsed", unit = "h" }
    allocated_processors = "Cores"
    requested_time = { column = "Limit", unit = "clock" }
    requested_memory = { column = "Memory", unit = "GB", per = "job" }
    energy = { column = "Consumption", unit = "kWh" }
    status = { column = "State", values = { done = 1, killed = 0, withdrawn = 5 } }
    user = "Who"

Columns of a table without a line of names are given by number, from 1: ``submit = 6``. With a blank
as ``delimiter``, columns are aligned. Maps of published tables come with hpcrowd, see
:data:`~hpcrowd.environment.traces.formats.registry.READY`.

The fields are those of :data:`hpcrowd.environment.traces.trace.FIELDS`; ``start`` and ``end`` may
replace ``wait`` and ``run``. What jobs asked of a machine of nodes is named as in
:data:`hpcrowd.environment.traces.requests.REQUEST_COLUMNS`, such as ``gpus_per_node``. ``energy``
is what was measured of a job, without cooling.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hpcrowd.environment.errors import QuantityError, first_mistake, not_one_of
from hpcrowd.environment.files import read_toml
from hpcrowd.environment.quantities import JOULES
from hpcrowd.environment.traces.formats.registry import READY
from hpcrowd.environment.traces.formats.tables.mapped import (
    ENERGY,
    KILOBYTES,
    LASTING,
    MOMENTS,
    OF_MEMORY,
    REQUESTED_MEMORY,
    SECONDS,
)
from hpcrowd.environment.traces.headers import parse_zone
from hpcrowd.environment.traces.requests import REQUEST_COLUMNS
from hpcrowd.environment.traces.trace import FIELDS

#: Units of durations, of memory and of energy.
Unit = Literal["ns", "us", "ms", "s", "min", "h", "d", "clock", "B", "kB", "MB", "GB", "TB",
               "J", "kJ", "MJ", "Wh", "kWh", "MWh"]  # fmt: skip

#: Notations of times other than ``seconds`` since the origin.
TIMES = ("seconds", "unix", "unix-ms", "iso")


class ColumnMapping(BaseModel):
    """One column of your own table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    column: Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=1, strict=True)] = Field(
        description="its name in the first line; or its number, from 1, if no line has names"
    )
    unit: Unit | None = Field(
        None,
        description="unit of durations and times (s unless given), of memory (kB unless given; "
        "MB of memory_per_node and memory_per_core) and of energy (J unless given)",
    )
    time: str = Field(
        "seconds",
        description="notation of times: seconds (since the origin), unix, unix-ms, iso, or a "
        "pattern with % as for strptime",
    )
    per: Literal["processor", "job"] = Field(
        "processor", description="memory is given per processor or per job"
    )
    values: dict[str, int] | None = Field(None, description="the number of each word")
    optional: bool = Field(False, description="whether a table may lack the column")

    @property
    def name(self) -> str:
        """The name of the column; its number, if no line has names."""
        return str(self.column)

    @field_validator("time")
    @classmethod
    def _is_known(cls, time: str) -> str:
        if time not in TIMES and "%" not in time:
            raise QuantityError(
                f"time {time!r}: {not_one_of(time, TIMES)}, or a pattern such as %d/%m/%Y %H:%M:%S"
            )
        return time


class TableMapping(BaseModel):
    """The meaning of the columns of your own table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    delimiter: str = Field(
        ",", min_length=1, max_length=1, description="between values; a blank is one or several"
    )
    decimal: Literal[".", ","] = Field(".", description="decimal mark")
    thousands: Literal[".", ",", " ", "_", "'"] | None = Field(
        None, description="mark between groups of three digits"
    )
    zone: str | None = Field(
        None, description="time zone of local times; that of --zone, or UTC, unless given"
    )
    processors: int | None = Field(None, gt=0, description="processors of the machine")
    columns: dict[str, ColumnMapping] = Field(description="column of each field")

    @field_validator("zone")
    @classmethod
    def _is_a_zone(cls, zone: str | None) -> str | None:
        parse_zone(zone)
        return zone

    @field_validator("columns", mode="before")
    @classmethod
    def _names_alone(cls, columns: Any) -> Any:
        """Take a bare name as a column without further settings."""
        if not isinstance(columns, dict):
            return columns
        return {
            field: {"column": value} if isinstance(value, str | int) else value
            for field, value in columns.items()
        }

    @property
    def numbered(self) -> bool:
        """Whether columns are given by number, as the table has no line of names."""
        return any(isinstance(column.column, int) for column in self.columns.values())

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.decimal == self.delimiter:
            raise QuantityError(f"decimal {self.decimal!r}: also the delimiter; choose another one")
        if self.decimal == self.thousands:
            other = "," if self.decimal == "." else "."
            raise QuantityError(
                f"thousands {self.thousands!r}: also the decimal mark; give decimal = {other!r}"
            )
        if self.numbered and any(isinstance(one.column, str) for one in self.columns.values()):
            raise QuantityError("columns: some by name, some by number; give all in one way")
        known = (*FIELDS, "start", "end", ENERGY, *REQUEST_COLUMNS.values())
        for field, column in self.columns.items():
            if field not in known:
                raise QuantityError(f"columns.{field}: no such field; choose {', '.join(known)}")
            memory = field in OF_MEMORY + REQUESTED_MEMORY
            units = KILOBYTES if memory else {**SECONDS, "clock": 0}
            units = JOULES if field == ENERGY else units
            moment = field in MOMENTS and column.time in ("seconds", "unix")
            has_unit = memory or field in LASTING or field == ENERGY
            if moment and column.unit in SECONDS:
                continue
            if column.unit is not None and not (has_unit and column.unit in units):
                raise QuantityError(f"columns.{field}.unit {column.unit!r}: not a unit of {field}")
            if column.time != "seconds" and field not in MOMENTS:
                raise QuantityError(f"columns.{field}.time: {field} is not a point in time")
        for needed, instead in (("submit", ()), ("run", ("start", "end"))):
            if needed not in self.columns and not (
                instead and all(field in self.columns for field in instead)
            ):
                hint = f", nor {' and '.join(instead)}" if instead else ""
                raise QuantityError(f"columns: no {needed}{hint}; a trace needs it")
        return self


def read_mapping(path: str | os.PathLike[str]) -> TableMapping:
    """Read the mapping of a table's columns from a TOML file.

    Raises
    ------
    QuantityError
        If it cannot be read, or something in it is wrong.
    """
    path = Path(path)
    if not path.suffix and not path.exists():
        raise QuantityError(f"map {path}: no such file; of those with hpcrowd {path.name!r} is "
                            f"{not_one_of(path.name, READY)}")  # fmt: skip
    values, _ = read_toml(path)
    try:
        return TableMapping(**values)
    except ValidationError as error:
        raise QuantityError(f"{path}: {first_mistake(error)}") from None
