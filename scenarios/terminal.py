"""Output on a terminal: results on standard output; messages and progress on standard error."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.errors import HpcrowdError, harmless
from hpcrowd.scenarios.status import status

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from hpcrowd.environment.simulation import Simulation


#: Called before each step with its label, the number of steps done, and the number in all.
Progress = Callable[[str, int, int], Any]

#: Characters in a line where the width of the terminal is not known.
WIDTH = 100

#: Seconds after which a run counts as long and gets a progress bar.
LONG = 1.0


def print_json(value: Any) -> None:
    """Print one JSON object on standard output.

    Raises
    ------
    HpcrowdError
        When a number is infinite or NaN, which JSON does not have.
    """
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

    Parameters
    ----------
    *columns
        The headings.
    rows
        The texts, row by row.
    words
        Number of columns, from the left, that hold words; the others hold numbers.
    whole
        Number of columns, from the left, that are not wrapped.
    title
        Above the table.
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
def simulation_progress(total_jobs: int) -> Iterator[Callable[[Simulation], Any] | None]:
    """Yield a function to call with a simulation: it shows a bar once the run takes long.

    Parameters
    ----------
    total_jobs
        Expected number of jobs.
    """
    if not sys.stderr.isatty():
        yield None
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
