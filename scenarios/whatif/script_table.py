"""What scripts share that replay one trace in several ways: the command line, and one table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.terminal import standard_output

if TYPE_CHECKING:
    from hpcrowd.environment.traces.trace import Trace


@dataclass(frozen=True)
class ScriptTable:
    """A table with its title.

    Attributes
    ----------
    title
        Above it.
    head
        Names of the columns, with their units.
    rows
        Texts, one for each column.
    words
        Columns from the left that hold words; the others hold numbers.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 2

    def show(self) -> None:
        """Print it on standard output."""
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, title=escape(self.title), pad_edge=False)
        table.title_justify, table.title_style = "left", "bold"
        for place, name in enumerate(self.head):
            table.add_column(name, justify="left" if place < self.words else "right", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        standard_output().print(table)


def run_table_script(
    name: str, make: Callable[[Trace], ScriptTable], arguments: Sequence[str] | None = None
) -> int:
    """Make a script's table of the trace that the command line names; return the exit code.

    Parameters
    ----------
    name
        Of the script.
    make
        Replays the trace and returns the table.
    arguments
        Of the command line; those of this process unless given.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(
            f"usage: python -m scenarios.{name} TRACE (in SWF, plain or gzipped)", file=sys.stderr
        )
        return 2
    try:
        table = make(read_trace(arguments[0]))
    except HpcrowdError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    table.show()
    return 0


def covered(trace: Trace, until: int, what: str) -> None:
    """Make sure that users still submit at a second of the run.

    Raises
    ------
    QuantityError
        When the trace ends before; ``what`` names what is to happen, and the setting.
    """
    if until > int(trace["submit"].max()):
        raise QuantityError(f"{Path(trace.source).name}: ends before {what}; take a longer trace")
