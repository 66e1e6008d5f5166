"""Which job was waited for before each job was submitted: fields 17 and 18 of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.work.units import Units
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable


@dataclass
class Precedence:
    """What jobs waited for before they were submitted.

    Attributes
    ----------
    after
        For users who generate work: the unit that triggered each unit, shape (units,), -1 for
        none; None if users did not react.
    waits
        Sessions and batches, each with a mask of the units whose users waited for earlier units,
        shape (units,); only for these do think times hold in the run.
    depends
        The job that each job waited for last of those that it depends on, by row.
    """

    after: Int64s | None = None
    waits: Sequence[tuple[Units, NDArray[np.bool_]]] = ()
    depends: Mapping[int, int] = field(default_factory=dict)

    def fill(
        self, columns: dict[str, NDArray[Any]], jobs: JobTable, made: NDArray[np.bool_]
    ) -> None:
        """Put preceding jobs and think times into the columns of a trace.

        Parameters
        ----------
        columns
            Columns by name, in the order of the jobs.
        jobs
            The simulated jobs.
        made
            Which jobs are not in the replayed trace, shape (jobs,).
        """
        found = [] if self.after is None else [(made, preceding_of_units(jobs, self.after))]
        for units, which in self.waits:
            mine = np.zeros(len(jobs), bool)
            mine[units.rows] = np.repeat(which, np.diff(units.first))
            found.append((mine, preceding_jobs(jobs, units, which)))
        for mine, both in found:
            for name, values in zip(("preceding", "think_time"), both, strict=True):
                columns[name] = np.where(mine, values, columns[name])
        for row, before in self.depends.items():
            if columns["preceding"][row] == UNKNOWN:
                columns["preceding"][row] = jobs.number[before]
                columns["think_time"][row] = max(0, int(jobs.submit[row] - jobs.end[before]))


def preceding_jobs(jobs: JobTable, units: Units, which: NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Return for each job the number of the job whose end released its unit, and the think time.

    Only the first job of a unit with predecessors has them; others get -1. The think time counts
    from the end of the preceding job, or from its submission if it never ran.

    Parameters
    ----------
    jobs
        The simulated jobs.
    units
        Sessions or batches.
    which
        The units whose users waited, shape (units,).
    """
    dependencies = units.dependencies
    over = np.where(jobs.end != UNKNOWN, jobs.end, jobs.submit)
    rows = units.rows
    # The last job of each unit to finish: the last in an order by unit, end and row.
    unit = np.repeat(np.arange(len(units)), np.diff(units.first))
    order = np.lexsort((rows, over[rows], unit))
    last = rows[order[units.first[1:] - 1]]
    ready = over[last][dependencies.predecessor] + dependencies.think
    # The edge that releases each unit: the last in an order by unit and time.
    decisive = np.lexsort((ready, dependencies.successor))
    successor = dependencies.successor[decisive]
    ends = np.append(successor[1:] != successor[:-1], True)[: len(successor)]
    edges = decisive[ends]
    edges = edges[which[dependencies.successor[edges]]]
    first = rows[units.first[dependencies.successor[edges]]]
    before = last[dependencies.predecessor[edges]]
    return _preceded(jobs, over, first, before)


def preceding_of_units(jobs: JobTable, after: Int64s) -> tuple[Int64s, Int64s]:
    """Return the same as :func:`preceding_jobs` for units of work.

    Parameters
    ----------
    jobs
        The jobs; each belongs to a unit.
    after
        The unit that triggered each unit, shape (units,), -1 for none.
    """
    over = np.where(jobs.end != UNKNOWN, jobs.end, jobs.submit)
    units = np.arange(len(after))
    # A job that was never submitted is not the first of its unit.
    by_submit = np.lexsort((jobs.submit, jobs.submit == UNKNOWN, jobs.unit))
    by_end = np.lexsort((over, jobs.unit))
    first = by_submit[np.searchsorted(jobs.unit[by_submit], units, side="left")]
    last = by_end[np.searchsorted(jobs.unit[by_end], units, side="right") - 1]
    known = after != UNKNOWN
    first, before = first[known], last[after[known]]
    return _preceded(jobs, over, first, before)


def _preceded(jobs: JobTable, over: Int64s, first: Int64s, before: Int64s) -> tuple[Int64s, Int64s]:
    """Return numbers and think times for all jobs, given the jobs ``before`` the ``first`` ones."""
    known = (jobs.submit[first] != UNKNOWN) & (over[before] != UNKNOWN)
    first, before = first[known], before[known]
    number, think = (np.full(len(jobs), UNKNOWN) for _ in range(2))
    number[first] = jobs.number[before]
    think[first] = jobs.submit[first] - over[before]
    return number, think
