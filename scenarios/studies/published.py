"""Figures that papers print, to hold our own against.

Each table is a file of comma-separated values in the folder ``published`` of its study, with the
digits exactly as printed; the study says where each comes from.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from hpcrowd.environment.errors import QuantityError

#: The thesis that several studies are about, a chapter or two each.
MINH = (
    "T. N. Minh: Workload modeling and performance evaluation in parallel systems. Thesis, Leiden "
    "University, 2012, https://hdl.handle.net/1887/18620"
)

#: Where tables come from whose study does not declare it.
SOURCES = {
    "minh2012_table3_1": f"{MINH}, Table 3.1: traces, and how many of their jobs completed",
    "minh2012_chapter3": f"{MINH}, Tables 3.2 to 3.8 and 3.11 to 3.20: figures of traces",
    "minh2012_bag_fits": f"{MINH}, Tables 3.9 and 3.10: distributions fitted to the times between "
    "bags of tasks, their parameters and KS distances",
    "minh2012_arrivals": f"{MINH}, Tables 4.1 to 4.3: coefficients of variation, empty intervals "
    "(%) and Hurst parameters of traces and models at four time scales (s)",
    "minh2012_comprehensive": f"{MINH}, Tables 5.1 and 5.2: normalized entropy and Spearman's "
    "correlation of traces and models",
    "minh2012_tables8": f"{MINH}, Tables 8.1 and 8.4 to 8.7: jobs, underestimated jobs (%), mean "
    "absolute and weighted absolute error (min) by predictor, mean run time (min)",
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
