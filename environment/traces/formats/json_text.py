"""JSON as the standard has it, with the line where something stands that is wrong."""

from __future__ import annotations

import json
import json.scanner
import re
from collections.abc import Callable
from typing import Any

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.traces.formats.files import shown

#: Digits; longer whole numbers are read as floating point numbers, which may be infinite.
LONGEST_INTEGER = 18

_TEXT_OR_CONSTANT = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')


class _Constant(ValueError):
    """NaN or Infinity, which Python's reader takes, stands where JSON has a number."""


def parse_json(data: bytes, source: str) -> Any:
    """Return what JSON text holds.

    Raises
    ------
    ParseError
        When it is malformed; it tells the line.
    TraceError
        When it is nested too deeply.
    """
    try:
        return json.loads(data.decode(), parse_constant=_refuse, parse_int=_integer)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        rule = "not UTF-8, which JSON is written in"
        raise ParseError(source, line, None, shown(data[error.start : error.end]), rule) from None
    except json.JSONDecodeError as error:
        rest = data.decode()[error.pos : error.pos + 80].split("\n")[0]
        rule = f"column {error.colno}: no JSON: {error.msg}"
        value = shown(rest.encode("ascii", "replace"))
        raise ParseError(source, error.lineno, None, value, rule) from None
    except _Constant:
        found = next(match for match in _TEXT_OR_CONSTANT.finditer(data) if match[1])
        line = data.count(b"\n", 0, found.start()) + 1
        rule = "no number; JSON has none that is not finite"
        raise ParseError(source, line, None, shown(found[1]), rule) from None
    except RecursionError:
        raise TraceError(f"{source}: is nested too deeply to be read") from None


def _refuse(constant: str) -> None:
    raise _Constant(constant)


def _integer(text: str) -> float:
    return int(text) if len(text) <= LONGEST_INTEGER else float(text)


def line_of(data: bytes, find: Callable[[Any], Any]) -> int:
    """Return the line in which an object stands; 1 where that cannot be said.

    Parameters
    ----------
    data
        JSON text that :func:`parse_json` could read.
    find
        From what the text holds to the object, a dict.
    """
    begins: dict[int, int] = {}

    class Placed(json.JSONDecoder):
        def __init__(self) -> None:
            super().__init__(parse_int=_integer)
            parse: Any = getattr(self, "parse_object")  # noqa: B009 (not in the stubs)

            def parse_placed(text_and_end: Any, *rest: Any) -> Any:
                value, end = parse(text_and_end, *rest)
                begins[id(value)] = text_and_end[1]
                return value, end

            self.parse_object: Any = parse_placed
            make: Any = json.scanner.py_make_scanner  # type: ignore[attr-defined]
            self.scan_once = make(self)

    text = data.decode()
    try:
        begin = begins[id(find(Placed().decode(text)))]
    except (RecursionError, KeyError, IndexError, TypeError, ValueError):
        return 1
    return text.count("\n", 0, begin) + 1
