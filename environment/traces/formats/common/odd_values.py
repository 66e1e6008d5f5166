"""Odd values of accounting logs: unknown and counted, or refused.

Logs of years have a few rows that nobody can read: a negative time, ``16?`` for a size, a line that
was cut. Such a value is unknown, and its row is kept; what cannot be a job is left out. Both are
counted by reason with the first line, or are refused (:attr:`FormatOptions.strict
<hpcrowd.environment.traces.formats.common.base.FormatOptions>`). A log is refused either way if
many values of a field are odd and none can be read: it has another notation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.traces.formats.common.files import shown
from hpcrowd.environment.traces.trace import LINES

#: Odd values of a field, none of which can be read, after which the log is refused.
MANY = 10


class LeftOut(Exception):
    """Raised for a record that cannot be a job; it has been counted."""


class _Kind(NamedTuple):
    """A reason: the field, None for the whole line, and the rule."""

    name: str | None
    rule: str
    left_out: bool


@dataclass
class OddValues:
    """What could not be read of a log so far.

    Attributes
    ----------
    source
        The file, for messages.
    strict
        Whether to refuse the first odd value.
    lines
        Whether records are lines; else they are objects of a list of jobs, which begin in line 2.
    """

    source: str
    strict: bool
    lines: bool = True
    _first: dict[_Kind, ParseError] = field(default_factory=dict)
    _count: Counter[_Kind] = field(default_factory=Counter)
    _fine: set[str] = field(default_factory=set)

    def read(
        self, line: int, name: str, text: str, convert: Callable[[str], Any], unknown: Any = None
    ) -> Any:
        """Return a value of a field; ``unknown`` if it is odd.

        Parameters
        ----------
        line
            Its line, from 1.
        name, text
            The field, and its text.
        convert
            Returns the value, or raises ``ValueError`` with the rule.
        unknown
            What is returned for an odd value.

        Raises
        ------
        ParseError
            If it is odd, and odd values are refused.
        """
        try:
            value = convert(text)
        except ValueError as error:
            self.add(line, name, text, str(error))
            return unknown
        self._fine.add(name)
        return value

    def needed(self, line: int, name: str, text: str, convert: Callable[[str], Any]) -> Any:
        """Return a value without which a record is not a job, as :meth:`read` does.

        Raises
        ------
        LeftOut
            If it is odd.
        ParseError
            If it is odd, and odd values are refused.
        """
        try:
            return convert(text)
        except ValueError as error:
            self.add(line, name, text, str(error), left_out=True)
            raise LeftOut from None

    @property
    def why(self) -> str:
        """The first record that was left out and the rule, as the end of a message; or empty."""
        found = [error for kind, error in self._first.items() if kind.left_out]
        first = min(found, key=lambda error: error.line, default=None)
        return "" if first is None else f"; line {first.line} is {first.rule}"

    def fine(self, name: str) -> None:
        """Note that a value of a field can be read."""
        self._fine.add(name)

    def add(
        self, line: int, name: str | None, text: str | bytes, rule: str, *, count: int = 1,
        left_out: bool = False,
    ) -> None:  # fmt: skip
        """Count what cannot be read.

        Parameters
        ----------
        line
            The line of the first one.
        name
            The field; None for a whole line.
        text, rule
            What is there, and what should be.
        count
            How many there are.
        left_out
            Whether the record is left out.

        Raises
        ------
        ParseError
            If odd values are refused.
        """
        text = text.encode("ascii", "replace") if isinstance(text, str) else text
        error = ParseError(self.source, line, name, shown(text), rule)
        if self.strict:
            raise error
        kind = _Kind(name, rule, left_out)
        if kind not in self._first or line < self._first[kind].line:
            self._first[kind] = error
        self._count[kind] += count

    def error(self, first: ParseError) -> TraceError:
        """Return the error for a value; objects are counted in the list of jobs."""
        if self.lines:
            return first
        value = shown(str(first.value).encode())
        what = f"job {first.line - 1:,} of the list, {first.field} {value!r}"
        return TraceError(f"{self.source}: {what}: {first.rule}")

    def count_into(self, repaired: Counter[str], dropped: Counter[str]) -> None:
        """Count the values that are unknown, and the records left out, by reason and first line.

        Raises
        ------
        TraceError
            If a field has :data:`MANY` odd values and none that can be read.
        """
        values = Counter({k: n for k, n in self._count.items() if k.name and not k.left_out})
        for name in {str(kind.name) for kind in values} - self._fine:
            kinds = [kind for kind in values if kind.name == name]
            if sum(values[kind] for kind in kinds) >= MANY:
                raise self.error(
                    min((self._first[kind] for kind in kinds), key=lambda one: one.line)
                )
        for kind, count in self._count.items():
            first = self._first[kind]
            where = f"line {first.line}" if self.lines else f"job {first.line - 1} of the list"
            what = f"{kind.name}: {kind.rule}" if kind.name else kind.rule
            end = "left out" if kind.left_out else "taken as unknown"
            reason = f"{LINES * self.lines}{end}: {what} (first: {where})"
            (dropped if kind.left_out else repaired)[reason] += count
