"""Madon et al. 2024: what ``hpcrowd reproduce madon2024`` gives back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from analysis.madon2024 import Comparison
from analysis.madon2024_report import plain, show, write

if TYPE_CHECKING:
    from rich.console import Console


class Reproduction(Comparison):
    """The whole study: data, tables, and a folder with both and the pictures."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, fit for JSON."""
        return plain(self)

    def show(self, console: Console) -> None:
        """Print the tables on a console."""
        show(self, console)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write data, pictures and a page into a folder that is whole or absent."""
        write(self, folder)
