"""The surroundings of the program: standard streams and the width of the terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

#: Smallest width of tables and help, in characters; terminals break longer lines.
NARROWEST = 40


class Quiet:
    """Standard error whose reader may be gone or full: what cannot be said is left out."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write if that is possible."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush if that is possible."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare_streams() -> str:
    """Make the standard streams safe to use, and return the name of one that is missing.

    A closed descriptor is opened on the null device, as the next file that is opened would get its
    number and what is printed. Characters that the encoding lacks are printed as escapes.
    """
    missing = ""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
            missing = "standard output" if name == "stdout" else missing
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.stderr = Quiet(sys.stderr)
    return missing


@contextmanager
def readable_width() -> Iterator[None]:
    """Make tables and help readable on narrow terminals, and with any value of COLUMNS."""
    before = os.environ.get("COLUMNS")
    width: int | None = None
    if before is not None:
        width = int(before) if before.isdecimal() and len(before) < 6 else 0
        if width == 0:
            del os.environ["COLUMNS"]
            width = None
    if width is None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
    if width is not None and width < NARROWEST:
        os.environ["COLUMNS"] = str(NARROWEST)
    try:
        yield
    finally:
        os.environ.pop("COLUMNS", None)
        if before is not None:
            os.environ["COLUMNS"] = before
