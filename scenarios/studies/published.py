"""Figures that papers print, to hold our own against.

Each table is a file of comma-separated values in the folder ``published`` of its study, with the
digits exactly as printed; the study says where each comes from.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from hpcrowd.environment.errors import QuantityError

_MADON = (
    "M. Madon, G. Da Costa, J.-M. Pierson: Replay with Feedback: How does the performance of HPC "
    "system impact user submission behavior? Future Generation Computer Systems 155, 2024, "
    "66-79, doi:10.1016/j.future.2024.01.024"
)

#: The thesis that several studies are about, a chapter or two each.
MINH = (
    "T. N. Minh: Workload modeling and performance evaluation in parallel systems. Thesis, Leiden "
    "University, 2012, https://hdl.handle.net/1887/18620"
)

_SONG = (
    "B. Song, C. Ernemann, R. Yahyapour: User Group-based Workload Analysis and Modelling. "
    "University of Dortmund, Technical Report CI-191/05, 2005"
)

#: Where tables come from whose study does not declare it.
SOURCES = {
    "madon2024_table1": f"{_MADON}, Table 1: makespan and waits, days",
    "madon2024_table2": f"{_MADON}, Table 2: lateness",
    "madon2024_figure5c": f"{_MADON}, Fig. 5c: percentiles over users of additional lateness, s",
    "madon2024_text": f"{_MADON}, ranges given in the text",
    "song2005_table1": f"{_SONG}, Table I: logs, their processors, jobs and users",
    "song2005_table2": f"{_SONG}, Table II: users of KTH by their number of jobs, %",
    "song2005_table3": f"{_SONG}, Table III: groups of users, their shares of area, jobs and "
    "users, %; which block is which log follows from the share of a single user",
    "song2005_tables4_5": f"{_SONG}, Tables IV and V: KS distances, and Pearson's correlation",
}


@dataclass(frozen=True)
class Printed:
    """A number as a paper prints it.

    Attributes
    ----------
    text
        Its digits.
    """

    text: str

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
        """Half a unit of the last digit: how far rounding can have moved it."""
        return 0.5 * 10.0**-self.decimals


def published_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a published table, each a dict of the texts by column.

    Parameters
    ----------
    name
        That of its file, such as ``madon2024_table1``.

    Raises
    ------
    QuantityError
        When there is no such table.
    """
    files = {path.stem: path for path in sorted(Path(__file__).parent.glob("*/published/*.csv"))}
    if name not in files:
        raise QuantityError(f"published table {name!r}: not known; choose {', '.join(files)}")
    return list(csv.DictReader(files[name].read_text("utf-8").splitlines()))
