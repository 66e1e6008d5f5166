"""Logs that are another version than those of a paper: found by their numbers of jobs, and marked.

A figure that rests on another version of a log cannot be expected to come out. A study declares how
many jobs each log has here and in the paper; everything that it writes then says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hpcrowd.scenarios.studies.render import Table

#: Up to this part of the jobs a difference changes few figures; beyond it, figures are marked.
NEARLY = 0.001

#: Follows the name of a log whose figures rest on another version.
MARK = "\N{DAGGER}"


@dataclass(frozen=True)
class Version:
    """The number of jobs of a log here and in the paper."""

    log: str  #: Its name in the study.
    #: Jobs that are used here, and the number in the paper.
    jobs: int
    printed: int

    @property
    def differs(self) -> bool:
        """Whether figures on it are marked."""
        return abs(self.jobs - self.printed) > NEARLY * self.printed

    def line(self, where: str) -> str:
        """Return a sentence about the difference, without the full stop."""
        counts = f"{self.log}: {self.jobs:,} jobs, {self.printed:,} in {where}"
        if self.differs:
            return (
                f"{counts}: another version of the log, on which figures of {self.log}{MARK} rest"
            )
        return f"{counts}: nearly the same version of the log"


def version_lines(versions: Iterable[Version], where: str) -> list[str]:
    """Return a sentence for each log whose number of jobs is not that of the paper."""
    return [one.line(where) for one in versions if one.jobs != one.printed]


def marked(table: Table, versions: Iterable[Version]) -> Table:
    """Return a table that marks the names of logs that are another version.

    A name is marked in the columns of words, and at the end of a title, such as ``Waits, SDSC``.
    """
    names = {one.log for one in versions if one.differs}
    if not names:
        return table
    title = table.title
    if title.rpartition(", ")[2] in names:
        title = f"{title}{MARK}"
    rows = [
        [f"{cell}{MARK}" if place < table.left and cell in names else cell
         for place, cell in enumerate(row)]
        for row in table.rows
    ]  # fmt: skip
    heading = [f"{cell}{MARK}" if cell in names else cell for cell in table.heading]
    columns = table.columns and {
        place: f"{name}{MARK}" if name in names else name for place, name in table.columns.items()
    }
    return replace(table, title=title, heading=heading, rows=rows, columns=columns)
