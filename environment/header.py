"""The header of a trace: its comment lines, and the description of the machine in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
