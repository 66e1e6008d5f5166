"""Tables of features on a terminal, with the reasons of what is not available below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def plain_table(title: str, *columns: str) -> Table:
    """Return a table without lines; the first column is of words, the others are of numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", title=title)
    table.title_justify, table.title_style = "left", "bold"
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", overflow="fold")
    return table


class Reasons:
    """Why features are not available: a mark in the table, the words below."""

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
