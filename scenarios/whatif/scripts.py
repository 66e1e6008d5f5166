"""What the scripts share: the command line, and tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.terminal import standard_output

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    note
        A line below it.
    figure
        Draws a picture of what it is about.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 2
    note: str = ""
    figure: Callable[[], Figure] | None = None

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
        console = standard_output()
        console.print(table)
        if self.note:
            console.print(self.note)


def run_script(
    name: str,
    make: Callable[[Trace], ScriptTable | Iterable[ScriptTable]],
    arguments: Sequence[str] | None = None,
    *,
    pictures: bool = False,
) -> int:
    """Make the tables of a script of the trace that the command line names; return the exit code.

    Parameters
    ----------
    name
        Of the script.
    make
        Runs the trace and returns a table or several.
    arguments
        Of the command line; those of this process unless given.
    pictures
        Whether a second argument may name a file for the figure of the table, a PNG.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) not in ((1, 2) if pictures else (1,)) or arguments[0].startswith("-"):
        picture = " [PICTURE]" if pictures else ""
        print(
            f"usage: python -m hpcrowd.scenarios.whatif.{name} TRACE{picture} "
            "(in SWF, plain or gzipped)",
            file=sys.stderr,
        )
        return 2
    try:
        made = make(read_trace(arguments[0]))
    except HpcrowdError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    for table in [made] if isinstance(made, ScriptTable) else made:
        table.show()
        if table.figure is not None and len(arguments) > 1:
            from hpcrowd.analysis.pictures.plots import figure_png

            Path(arguments[1]).write_bytes(figure_png(table.figure()))
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
