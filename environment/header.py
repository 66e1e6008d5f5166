"""The header of a trace: its comment lines, and the description of the machine in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_KEY = re.compile(r";\s*([A-Za-z][A-Za-z0-9]*)\s*:(?!//)\s?(.*)")


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
        found: list[tuple[str, str]] = []
        for raw in self.lines:
            text = decode(raw).rstrip()
            match = _KEY.match(text)
            if match:
                found.append((match[1], match[2].strip()))
            elif found and re.match(r";\s+\S", text):
                key, value = found[-1]
                found[-1] = key, f"{value}\n{text.lstrip('; \t')}".strip()
        return found

    def get(self, key: str) -> str | None:
        """Return the first value of ``key`` (upper and lower case alike), or None."""
        return next((v for k, v in self.entries() if k.lower() == key.lower()), None)

    def integer(self, key: str) -> int | None:
        """Return the number, of at most 18 digits, at the beginning of a value, or None."""
        match = re.match(r"-?[0-9]{1,18}(?![0-9])", self.get(key) or "")
        return int(match[0]) if match else None

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
