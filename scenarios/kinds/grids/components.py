"""Components: wide jobs of a grid, split over several clusters, where they start together.

A component is a row of the table of jobs. Components of one job are consecutive rows with the same
user, times and recorded submission, and are in the same session and batch, so that a user who waits
for the job waits for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.work.recorded import Work
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.grid.policies import fits, parts_of
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.quantities import plural


@dataclass(frozen=True)
class Split:
    """Jobs with components."""

    work: Work  #: the same work, in a table in which components are rows
    #: Row of the first component and number of components, of each job that was split.
    first: Int64s
    count: Int64s

    @property
    def jobs(self) -> JobTable:
        """The table."""
        return self.work.jobs

    @property
    def any(self) -> bool:
        """Whether a job was split."""
        return len(self.first) > 0

    @property
    def rows(self) -> list[Int64s]:
        """Rows of the components of each job that was split."""
        ends = self.first + self.count
        return [np.arange(*bounds) for bounds in zip(self.first, ends, strict=True)]

    @property
    def first_of(self) -> Int64s:
        """Row of the first component of each row's job; its own if not split, shape (rows,)."""
        found = np.arange(len(self.jobs))
        for rows in self.rows:
            found[rows] = rows[0]
        return found


def split_wide(
    work: Work,
    by_grid: NDArray[np.bool_],
    most: int,
    sizes: Sequence[int],
    whose: Callable[[int], str] = "row {}".format,
) -> Split:
    """Split the jobs of the grid that are wider than ``most`` processors.

    Jobs too wide for the clusters however they are split stay whole; the broker rejects them. It is
    an error if the components of a job could never start together, though those of another size
    could.

    Parameters
    ----------
    work
        Jobs and sessions; not changed.
    by_grid
        Whether the user of a job submits to the grid, shape (jobs,).
    most
        Largest number of processors of a component.
    sizes
        Processors of each cluster.
    whose
        Returns the owner of a row's job, for messages.
    """
    jobs = work.jobs
    widths = np.unique(jobs.processors[by_grid])
    able = [width for width in widths.tolist() if _fitting(width, sizes)]
    parts = {width: parts_of(width, most) for width in able if width > most}
    for width, components in parts.items():
        if not fits(components, sizes):
            place = int(np.flatnonzero(by_grid & (jobs.processors == width))[0])
            others = [size for size in _limits(able, sizes) if _all_fit(able, size, sizes)]
            near = min(others, key=lambda size: abs(size - most), default=0)
            cure = f"give {near}, or leave the setting out" if near else "leave the setting out"
            raise QuantityError(
                f"components {most}: a job of {plural(width, 'processor')}, {whose(place)}, "
                f"makes {len(components)} of up to {components[0]}, and each "
                f"needs one of the clusters of {', '.join(map(str, sizes))} processors for itself; "
                f"{cure}"
            )
    wide = by_grid & np.isin(jobs.processors, list(parts))
    count = np.ones(len(jobs), np.int64)
    count[wide] = [len(parts[width]) for width in jobs.processors[wide].tolist()]
    begin = np.cumsum(count) - count
    if not wide.any():
        return Split(work, begin[wide], count[wide])
    table = jobs.take(np.repeat(np.arange(len(jobs)), count)).copy()
    table.number[:] = np.arange(1, len(table) + 1)
    for row in np.flatnonzero(wide).tolist():
        table.processors[begin[row] : begin[row] + count[row]] = parts[int(jobs.processors[row])]
    return Split(_with_components(work, table, begin, count), begin[wide], count[wide])


def _fitting(width: int, sizes: Sequence[int]) -> list[int]:
    """Return the numbers of equal components into which a job may be split so that they fit."""
    most = min(width, len(sizes))
    return [n for n in range(1, most + 1) if fits(parts_of(width, -(-width // n)), sizes)]


def _limits(widths: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the widths of the widest component, for all splits that fit, ascending."""
    return sorted({-(-width // n) for width in widths for n in _fitting(width, sizes)})


def _all_fit(widths: Sequence[int], most: int, sizes: Sequence[int]) -> bool:
    return all(fits(parts_of(width, most), sizes) for width in widths)


def _with_components(work: Work, table: JobTable, begin: Int64s, count: Int64s) -> Work:
    """Return the work with the same sessions and batches, over the rows of components."""
    sessions = work.sessions
    mine = count[sessions.rows]
    first = np.append(0, np.cumsum(mine))  # where each job of the sessions begins now
    inside = np.arange(first[-1]) - np.repeat(first[:-1], mine)
    return Work(
        table,
        replace(
            sessions,
            rows=np.repeat(begin[sessions.rows], mine) + inside,
            session_first=first[sessions.session_first],
            batch_first=first[sessions.batch_first],
        ),
    )
