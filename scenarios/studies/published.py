"""Figures printed in papers, for comparison with ours.

Each table is a file of comma-separated values in the folder ``published`` of its study, with the
digits exactly as printed; the study lists the source of each.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from hpcrowd.environment.errors import check_choice


@dataclass(frozen=True)
class Printed:
    """A number as printed in a paper."""

    text: str  #: Its digits.

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    @property
    def decimals(self) -> int:
        """Digits after the point."""
        return len(self.text.partition(".")[2])

    @property
    def half_unit(self) -> float:
        """Half a unit of the last digit: the largest rounding error."""
        return 0.5 * 10.0**-self.decimals


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file of comma-separated values, each a dict of the texts by column."""
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def study_name(file: Path) -> str:
    """Return the name of the study in a file: of its folder, and its own unless it is ``study``."""
    folder = file.parent.name
    return folder if file.stem == "study" else f"{folder}-{file.stem}"


def published_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a published table, each a dict of the texts by column.

    Parameters
    ----------
    name
        Name of its file, such as ``madon2024_table1``.

    Raises
    ------
    QuantityError
        When there is no such table.
    """
    files = {path.stem: path for path in sorted(Path(__file__).parent.glob("*/published/*.csv"))}
    check_choice("published table", name, files)
    return csv_rows(files[name])
