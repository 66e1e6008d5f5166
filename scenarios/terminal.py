"""What a terminal shows: JSON on standard output; news and progress on standard error."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from hpcrowd.environment.simulation import Simulation


#: Called before each step with its label, how many are done, and how many there are.
Progress = Callable[[str, int, int], Any]

#: Characters in a line where nobody says how many fit.
WIDTH = 100

#: Seconds after which a run counts as long and gets a progress bar.
LONG = 1.0


def print_json(value: Any) -> None:
    """Print one JSON object on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def standard_output(*, highlight: bool = True, markup: bool = True) -> Console:
    """Return a console on standard output; where that is no terminal, as wide as tables need.

    Parameters
    ----------
    highlight
        Whether numbers and names in what is printed are coloured on a terminal.
    markup
        Whether words in brackets, such as ``[red]``, are commands; names and reasons may hold some.
    """
    from rich.console import Console

    told = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if told else WIDTH, highlight=highlight, markup=markup)


def say(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def say_if_compiling(clusters: int = 1) -> None:
    """Tell that the first run on a machine compiles the engine, for one cluster or for several."""
    from hpcrowd.environment.compilation import is_compiled
    from hpcrowd.environment.engine.kernel.loop import advance
    from hpcrowd.environment.grid.kernel.loop import advance_grid

    if not is_compiled(advance if clusters == 1 else advance_grid):
        say("Compiling the cluster engine, once on this machine (some seconds) ...")


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """Give a progress callback that draws on stderr; None when that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading")

        def draw(label: str, done: int, total: int) -> None:
            bar.update(task, description=escape(label), completed=done, total=total)

        yield draw


@contextmanager
def simulation_progress(total_jobs: int) -> Iterator[Callable[[Simulation], Any] | None]:
    """Give a function to call with a simulation: it shows a bar once the run turns out long.

    Parameters
    ----------
    total_jobs
        Jobs that are to end, as far as is known.
    """
    if not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()
    shown: list[Any] = []

    def show(model: Simulation) -> None:
        if time.monotonic() - began < LONG:
            return
        if not shown:
            from rich.console import Console
            from rich.progress import Progress

            bar = Progress(console=Console(stderr=True), transient=True)
            bar.start()
            shown.extend((bar, bar.add_task("simulating", total=2 * total_jobs)))
        bar, task = shown
        # Users who make up their work add jobs as they go: the end moves with them.
        total = 2 * max(total_jobs, len(model.jobs))
        bar.update(task, completed=model.events, total=total)

    try:
        yield show
    finally:
        if shown:
            shown[0].stop()
