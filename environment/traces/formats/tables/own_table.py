"""Tables of somebody's own as a format among the others; pydantic is loaded when one is used."""

from __future__ import annotations

from typing import Any

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.base import Format, FormatOptions, Losses
from hpcrowd.environment.traces.trace import Trace


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    from hpcrowd.environment.traces.formats.tables.mapped import parse_mapped

    return parse_mapped(data, _mapping(options), source)


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    from hpcrowd.environment.traces.formats.tables.mapped import generate_mapped

    return generate_mapped(trace, _mapping(options), lost)


def _mapping(options: FormatOptions) -> Any:
    if options.mapping is None:
        raise QuantityError("format table: needs --map FILE, which says what its columns mean")
    return options.mapping


#: A table of somebody's own.
TABLE = Format(
    "table",
    "any table in text, with --map",
    (),
    lambda head: False,
    _parse,
    _generate,
    holds_names=True,
)
