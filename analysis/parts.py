"""What the parts of a run contribute to its results.

A run knows no part by name. Each part declares in one class what it contributes: totals for
``summary.json``, a table in a file of its own, metrics, columns of jobs and of users, notes. Tables
are Parquet files; the metadata of each field has the meaning and unit of the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from hpcrowd.environment.errors import ResultsError, check_choice
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from hpcrowd.analysis.run import Run  # circle: for its type only
    from hpcrowd.environment.traces.trace import Trace


class Shown(NamedTuple):
    """A table of texts for people, the first column of which has names."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""  #: what it shows, for reports
    words: int = 1  #: columns, from the left, that hold words; the others hold numbers


class RunPart:
    """What a part contributes to a run; nothing by default.

    Parameters
    ----------
    account
        Its totals, if they are known; else :meth:`totals` finds them.
    rows
        Its table, such as the decisions of users, if it is known; else :meth:`table` finds it.
    """

    #: Its name in :data:`PARTS`.
    name: ClassVar[str] = ""

    #: The key of its totals in ``summary.json``; empty if it has none.
    key: ClassVar[str] = ""

    #: The file of its table, without ``.parquet``; empty if there is none.
    file: ClassVar[str] = ""

    #: The meaning of each column of this file.
    meaning: ClassVar[Mapping[str, str]] = {}

    #: The heading of its section in reports, and the pictures in it; empty for no section.
    title: ClassVar[str] = ""
    drawn: ClassVar[tuple[str, ...]] = ()

    #: What draws its picture in a folder of results, ``module:function``; empty for none.
    picture: ClassVar[str] = ""

    #: Whether its lines stand at the top of reports.
    leads: ClassVar[bool] = False

    #: Whether its tables take the place of that of all metrics in a printed summary.
    instead: ClassVar[bool] = False

    def __init__(self, account: Mapping[str, Any] | None = None, rows: Any = None) -> None:
        if account is not None:
            self.account = dict(account)
        if rows is not None:
            self.rows = rows

    @cached_property
    def account(self) -> dict[str, Any]:
        """Its totals, fit for JSON; empty if there are none."""
        return self.totals()

    @cached_property
    def rows(self) -> Any:
        """Its table; empty if there is none."""
        return self.table()

    def totals(self) -> dict[str, Any]:
        """Compute its totals."""
        return {}

    def table(self) -> Any:
        """Compute its table."""
        return ()

    def sizes(self) -> Sequence[tuple[int, int, int]]:
        """Return changes of the size of a cluster: s, processors before, processors after."""
        return ()

    def metrics(self, jobs: JobTable, found: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return its metrics of a run with these jobs, of which the others were ``found``."""
        return {}

    def metrics_between(self, jobs: JobTable, begin: int, end: int) -> Mapping[str, Any]:
        """Return its metrics from second ``begin`` to ``end``, in which ``jobs`` came."""
        return {}

    def job_columns(self) -> Mapping[str, Any]:
        """Return its columns of jobs: an array, or values by row."""
        return {}

    def user_sums(self) -> Iterable[str]:
        """Return which of its columns of jobs are summed for each user."""
        return ()

    def lines(self, configuration: Mapping[str, Any]) -> list[str]:
        """Return printed lines on a run with these settings."""
        return []

    def shown(self) -> list[Shown]:
        """Return tables for a printed summary."""
        return []

    def reported(self, run: Run) -> list[Shown]:
        """Return tables for its section in a report on a run."""
        return self.shown()

    def mark(self, panels: Sequence[Axes], run: Run) -> None:
        """Mark what it changed on pictures over time of a run."""

    def effects(self) -> list[tuple[str, str, str]]:
        """Return further rows of the printed metrics: name, value and meaning."""
        return []

    def notes(self) -> list[str]:
        """Return what users of the run should know, one line each."""
        return []

    def numbers(self) -> dict[str, Mapping[str, Any]]:
        """Return its totals as they are named in rows of sweeps."""
        return {self.key: self.account} if self.account else {}

    def rejected_for(self) -> str:
        """Return the most common reason for which it rejects jobs; empty for none."""
        return ""

    def resized(self, jobs: JobTable) -> NDArray[np.bool_] | bool:
        """Return which jobs it gave another number of processors, shape (jobs,); False for none."""
        return False

    @classmethod
    def of(cls, account: Mapping[str, Any], rows: Any = None) -> Self | None:
        """Return the part with its totals and its table; None if both are empty."""
        return cls(account, rows) if account or rows else None

    def write(self, jobs: JobTable, place: Path) -> None:
        """Write its table into the folder of a run with these jobs, if it is not empty."""
        if columns := self.columns(jobs):
            write_table(columns, self.meaning, place / f"{self.file}.parquet")

    @classmethod
    def read_rows(cls, path: Path, jobs: JobTable) -> Any:
        """Return the table in a file of :meth:`write`, for the jobs of the same run."""
        found = read_table(cls.file, path, list(cls.meaning))
        with read_as(cls.file, path):
            return cls.from_columns({name: found.column(name).to_pylist() for name in cls.meaning})

    def columns(self, jobs: JobTable) -> Mapping[str, Any]:
        """Return its table as the columns of its file."""
        return {}

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> Any:
        """Return the table that has these columns."""
        return ()

    @classmethod
    def read(cls, summary: Mapping[str, Any], place: Path, jobs: JobTable) -> Self | None:
        """Return what it contributed to a run that is read from a folder; None for nothing."""
        path = place / f"{cls.file}.parquet"
        there = bool(cls.file) and path.is_file()
        account = dict(summary.get(cls.key, {})) if cls.key else {}
        if not account and not there:
            return None
        found = cls(account)
        found.check()
        if there:
            found.rows = cls.read_rows(path, jobs)
        return found

    @classmethod
    def recorded(cls, trace: Trace, jobs: JobTable, source_row: Int64s) -> Self | None:
        """Return what it contributes to a trace that is read as a run; None for nothing.

        Parameters
        ----------
        trace
            The log, which has columns of its own.
        jobs
            Its jobs, which start as recorded; may be changed.
        source_row
            Row of each job in the log, -1 for none, shape (jobs,).
        """
        return None

    def check(self) -> None:
        """Try what reports and comparisons read of its totals; any error says that they cannot."""


def write_table(
    columns: Mapping[str, Any],
    meaning: Mapping[str, str],
    path: Path,
    metadata: Mapping[bytes, bytes] | None = None,
) -> None:
    """Write columns of equal length, as arrays or anything that pyarrow converts to one.

    Each column has a meaning; ``metadata`` is that of the whole table.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays, fields = [], []
    for name, values in columns.items():
        array = values if isinstance(values, pa.Array) else pa.array(values)
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata={"meaning": meaning[name]}))
    schema = pa.schema(fields, metadata=metadata)
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, compression="zstd")


@contextmanager
def read_as(what: str, path: Path) -> Iterator[None]:
    """Turn errors in reading a file into a message of one line."""
    try:
        yield
    except (OSError, ValueError) as error:  # pyarrow's errors are subclasses of these
        told = str(error).splitlines()[0]
        raise ResultsError(f"{path}: cannot be read as {what}: {told}") from None


def read_table(what: str, path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the table in a file, all of its columns or some.

    Raises
    ------
    ResultsError
        When it cannot be read as ``what``.
    """
    import pyarrow.parquet as pq

    with read_as(what, path):
        return pq.read_table(path, columns=columns)


#: What each part contributes, by name, in the order of ``summary.json``.
PARTS: Registry[type[RunPart]] = Registry(
    {
        "reactions": "hpcrowd.analysis.accounts.reactions:Reactions",
        "platform": "hpcrowd.analysis.accounts.platform:PlatformChanges",
        "nodes": "hpcrowd.analysis.accounts.nodes:Nodes",
        "power": "hpcrowd.analysis.energy.part:Energy",
        "not simulated": "hpcrowd.analysis.accounts.not_simulated:NotSimulated",
        "rejections": "hpcrowd.analysis.accounts.nodes:Rejections",
        "grid": "hpcrowd.analysis.accounts.grid:Sites",
        "population": "hpcrowd.analysis.accounts.population:Population",
        "holds": "hpcrowd.analysis.accounts.holds:Held",
        "given up": "hpcrowd.analysis.accounts.given_up:GaveUp",
        "decisions": "hpcrowd.analysis.accounts.decisions:LoggedDecisions",
    }
)


class RunParts(dict[str, RunPart]):
    """What the parts of a run contributed, by name, in the order of :data:`PARTS`.

    A part that the run did not have has neither totals nor rows.
    """

    def __init__(self, *parts: RunPart | None) -> None:
        there = {one.name: one for one in parts if one is not None}
        super().__init__({name: there[name] for name in PARTS if name in there})

    def __missing__(self, name: str) -> RunPart:
        check_choice("part of a run", name, list(PARTS))
        return RunPart()

    @property
    def sizes(self) -> list[tuple[int, int, int]]:
        """Changes of the size of clusters, see :meth:`RunPart.sizes`."""
        return [one for part in self.values() for one in part.sizes()]
