"""The line on a terminal that says what a command is doing, when nothing else does."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

#: Seconds of silence after which the line appears.
SILENCE = 1.0

#: Seconds between two looks at the clock.
TICK = 0.25


class Status:
    """A line on standard error, if that is a terminal, after :data:`SILENCE`.

    It disappears when anything else is printed on the terminal, and while a progress bar is there.
    """

    def __init__(self) -> None:
        self._label = ""
        self._last = 0.0  # when something was printed
        self._since = 0.0  # when the command began
        self._shown = False
        self._bars = 0
        self._whole = True  # the cursor is at the beginning of a line
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._streams: tuple[Any, Any] | None = None

    def begin(self, label: str) -> None:
        """Watch from now on; ``label`` is what the command is doing unless it says more."""
        if self._streams is not None or not sys.stderr or not sys.stderr.isatty():
            return
        self._label = label
        self._last = self._since = time.monotonic()
        self._over.clear()
        self._streams = sys.stdout, sys.stderr
        sys.stderr = _Watched(sys.stderr, self)
        if sys.stdout and sys.stdout.isatty():
            sys.stdout = _Watched(sys.stdout, self)
        threading.Thread(target=self._tick, daemon=True).start()

    def doing(self, label: str) -> None:
        """Say what the command is doing from now on."""
        self._label = label

    def end(self) -> None:
        """Remove the line, and show none any more."""
        if self._streams is None:
            return
        self._over.set()
        self.clear()
        if isinstance(sys.stdout, _Watched):
            sys.stdout = self._streams[0]
        if isinstance(sys.stderr, _Watched):
            sys.stderr = self._streams[1]
        self._streams = None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Show no line meanwhile: something else is on the terminal."""
        with self._lock:
            self.clear()
            self._bars += 1
        try:
            yield
        finally:
            self._bars -= 1
            self._whole = True
            self._last = time.monotonic() - SILENCE / 2

    def clear(self, text: str = "") -> None:
        """Remove the line, before ``text`` is printed."""
        with self._lock:
            if self._shown:
                self._put("\r\x1b[2K")
                self._shown = False
            self._last = time.monotonic()
            if text:
                self._whole = text.endswith("\n")

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            with self._lock:
                now = time.monotonic()
                quiet = self._shown or now - self._last >= SILENCE
                if quiet and not self._bars and self._whole and not self._over.is_set():
                    self._shown = True
                    line = f"{self._label} ... {now - self._since:.0f} s"
                    self._put(f"\r\x1b[2K{line[: _width() - 1]}")

    def _put(self, text: str) -> None:
        if self._streams is not None:
            with suppress(OSError, ValueError):
                self._streams[1].write(text)
                self._streams[1].flush()


def _width() -> int:
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80


class _Watched:
    """A stream on the terminal: what is printed removes the line first."""

    def __init__(self, stream: TextIO, status: Status) -> None:
        self._stream, self._status = stream, status

    def write(self, text: str) -> int:
        """Write text."""
        self._status.clear(text)
        return self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        """Write lines."""
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)


#: That of the command line.
status = Status()
