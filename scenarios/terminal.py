"""The terminal: its streams and width, results on standard output, progress on standard error.

A line says what a command is doing, when nothing else is shown (:class:`Status`).
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from hpcrowd.environment.errors import HpcrowdError, harmless

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from hpcrowd.environment.simulation import Simulation


#: Called before each step with its label, the number of steps done, and the number in all.
Progress = Callable[[str, int, int], Any]

#: Characters in a line where the width of the terminal is not known.
WIDTH = 100

#: Seconds of a run after which a file gets a first line, and between two lines.
QUIET, EVERY = 10.0, 60.0

#: Seconds after which a run counts as long and gets a progress bar.
LONG = 1.0


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


def print_json(value: Any) -> None:
    """Print one JSON object on standard output; it has neither infinite numbers nor NaN."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise HpcrowdError(
            "--json: a number of the result is infinite or not a number; is the input damaged?"
        ) from None
    sys.stdout.write(text + "\n")


def standard_output() -> Console:
    """Return a console on standard output; where that is not a terminal, as wide as tables need.

    Text is printed as it is, without markup (names and reasons may contain brackets) and without
    highlighted numbers.
    """
    from rich.console import Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else WIDTH, highlight=False, markup=False)


def plain_table(
    *columns: str,
    rows: Iterable[Sequence[str]] = (),
    words: int = 1,
    whole: int = 0,
    title: str = "",
) -> Table:
    """Return a table without lines.

    ``words`` is the number of columns, from the left, that hold words, the others hold numbers; and
    ``whole`` that of columns which are not wrapped.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", title=title or None)
    table.title_justify, table.title_style = "left", "bold"
    for place, column in enumerate(columns):
        table.add_column(
            column,
            justify="left" if place < words else "right",
            no_wrap=place < whole,
            overflow="ellipsis" if place < whole else "fold",
        )
    for row in rows:
        table.add_row(*row)
    return table


class Reasons:
    """Reasons why features are not available: a mark in the table, the reason below it."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def mark(self, reason: str) -> str:
        """Return the mark of a reason."""
        if reason not in self._found:
            self._found.append(reason)
        return f"n/a ({self._found.index(reason) + 1})"

    def say(self, console: Console) -> None:
        """Print the reasons that were marked."""
        if self._found:
            console.print()
        for place, reason in enumerate(self._found, 1):
            console.print(f"({place}) not available: {reason}")


def say(text: str) -> None:
    """Print lines on standard error; what they repeat of the input is harmless."""
    lines = [harmless(line) for line in text.split("\n")]
    print("\n".join(lines), file=sys.stderr, flush=True)


def say_where(folder: Path) -> None:
    """Say where results are."""
    say(f"Results are in {folder}{'' if str(folder).endswith('/') else '/'}")


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Yield a progress callback that draws on stderr, or does nothing if that is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda label, done, total: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bar

    with status.aside(), Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading")

        def draw(label: str, done: int, total: int) -> None:
            bar.update(task, description=escape(label), completed=done, total=total)

        yield draw


def reading(paths: Sequence[Path], progress: Progress) -> Iterator[Path]:
    """Yield each path to read, and show its name as progress."""
    for place, path in enumerate(paths):
        progress(f"reading {path.name}", place, len(paths))
        yield path


@contextmanager
def simulation_progress(total_jobs: int) -> Iterator[Callable[[Simulation], Any]]:
    """Yield a function to call with a simulation: it shows how far a long run is.

    That is a bar on a terminal; else a line after :data:`QUIET`, and one a minute.
    """
    if not sys.stderr.isatty():
        yield _lines(total_jobs)
        return
    began = time.monotonic()
    status.doing("simulating")
    shown: list[Any] = []
    aside = ExitStack()

    def show(model: Simulation) -> None:
        if time.monotonic() - began < LONG:
            return
        if not shown:
            from rich.console import Console
            from rich.progress import Progress

            aside.enter_context(status.aside())
            bar = aside.enter_context(Progress(console=Console(stderr=True), transient=True))
            shown.extend((bar, bar.add_task("simulating", total=2 * total_jobs)))
        bar, task = shown
        # Users who generate their work add jobs during the run, so the total grows.
        total = 2 * max(total_jobs, len(model.jobs))
        bar.update(task, completed=model.events, total=total)

    try:
        yield show
    finally:
        aside.close()


def _lines(total_jobs: int) -> Callable[[Simulation], Any]:
    """Return what says in lines how far a simulation is, and how long it may still take."""
    from hpcrowd.environment.quantities import format_duration

    began = time.monotonic()
    due = [began + QUIET]

    def show(model: Simulation) -> None:
        now = time.monotonic()
        if now < due[0]:
            return
        due[0] = now + EVERY
        share = model.events / (2 * max(total_jobs, len(model.jobs), 1))
        left = (now - began) * (1 - share) / share if share else math.inf
        about = f", about {format_duration(left)} left" if 0 < left < math.inf else ""
        say(f"simulating: {100 * share:.0f} % after {format_duration(now - began)}{about}")

    return show


# ---- the surroundings of the program --------------------------------------------------------

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
