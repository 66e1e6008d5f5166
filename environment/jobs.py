"""The table of jobs: the single truth about every job of a run.

One int64 matrix of shape (columns, jobs); a column is a contiguous view into it. Rows are jobs in
the order of their job numbers, and ties in time go by row. Agents, schedulers and the compiled
engine hold this table or views of it, never copies.

Times are seconds since the trace's origin. :data:`UNKNOWN` (-1) stands for what is not known or
did not happen; the simulated times of a job that never started stay there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, override

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import FixedError, QuantityError, nearest, not_one_of
from hpcrowd.environment.limits.numbers import check_memory

if TYPE_CHECKING:
    import pandas as pd

    from hpcrowd.environment.requests import Requests  # circle: for its type only


Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]

# The same with two and three dimensions, and with gaps between elements, for compiled modules.
Int64Rows = NDArray[np.int64]
Int64Blocks = NDArray[np.int64]
Int64Steps = NDArray[np.int64]
Float64Rows = NDArray[np.float64]

#: What is not known, or did not happen.
UNKNOWN = -1

#: Names of numbers, by field and number: ``names["user"][3]`` is the name of user 3.
Names = Mapping[str, Mapping[int, str]]

NO_NAMES: Names = MappingProxyType({})

#: The meaning of :attr:`JobTable.slowed_run_time`.
SLOWED = (
    "s; run time at the clocks that a power cap let it have: start + this = end where it "
    "completed; -1 never started"
)

#: Most names that an error message lists.
MOST_NAMES = 20

#: A range of numbers.
_RANGE = re.compile(r"(\d+)-(\d+)", re.ASCII)


def name_of(names: Names, field: str, number: int) -> str:
    """Return the name of a number of a field such as ``user``; the number itself without one."""
    return names.get(field, {}).get(number) or str(number)


def number_of(names: Names, field: str, who: str | int) -> int:
    """Return the number of a user, group, executable, queue or partition.

    Parameters
    ----------
    names
        The names of the log.
    field
        ``user``, ``group``, ``executable``, ``queue`` or ``partition``.
    who
        Its name, or its number. A name that looks like a number is taken as a name.

    Raises
    ------
    QuantityError
        If it is neither a name nor a number, or several have this name.
    """
    if not isinstance(who, str):
        return int(who)
    word, known = who.strip(), names.get(field, {})
    found = [number for number, name in known.items() if name == word]
    if len(found) > 1:
        raise QuantityError(
            f"{field} {who!r}: several have this name; give one of the numbers "
            + ", ".join(map(str, found))
        )
    if found:
        return found[0]
    if word.removeprefix("-").isdecimal():
        return int(word)
    if not known:
        raise QuantityError(f"{field} {who!r}: the log has no names of {field}s; give a number")
    words = list(known.values())
    if len(words) > MOST_NAMES:
        rule = f"not one of the {len(words):,} names in the log; {nearest(word, words)}".rstrip()
        raise QuantityError(f"{field} {who!r}: {rule.removesuffix(';')}")
    raise QuantityError(f"{field} {who!r}: {not_one_of(word, words)}, or a number")


def numbers_of(names: Names, field: str, whom: str) -> list[int | range]:
    """Return the numbers that a text such as ``ada,17,20-30`` names, ranges as ranges.

    Parameters
    ----------
    names, field
        As for :func:`number_of`.
    whom
        Names, numbers and ranges of numbers, separated by commas.

    Raises
    ------
    QuantityError
        If one of them is neither.
    """
    found: list[int | range] = []
    for part in whom.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match and part.strip() not in names.get(field, {}).values():
            first, last = int(match[1]), int(match[2])
            if first > last:
                raise QuantityError(f"{field} {part.strip()!r}: a range goes upwards, as in 20-30")
            found.append(range(first, last + 1))
        else:
            found.append(number_of(names, field, part))
    return found


class MatrixRow(IntEnum):
    """Rows of a matrix: the place of each, with its meaning and unit."""

    meaning: str

    def __new__(cls, place: int, meaning: str) -> Self:
        """Return the member for a place in the matrix."""
        row = int.__new__(cls, place)
        row._value_ = place
        row.meaning = meaning
        return row


class Column(MatrixRow):
    """Rows of the matrix of jobs, one per column of the table.

    ``jobs.parquet`` and the documentation take the meaning from here.
    """

    NUMBER = 0, "job number in the trace, counted from 1 where users are generated"
    USER = 1, "user number; -1 unknown"
    GROUP = 2, "group number; -1 unknown"
    EXECUTABLE = 3, "executable (application) number; -1 unknown"
    QUEUE = 4, "queue number; -1 unknown"
    PROCESSORS = 5, "processors the job occupies"
    RUN_TIME = 6, "s; run time the job needs on the cluster it is submitted to"
    REQUESTED_TIME = 7, "s; run time that the user asked for"
    REQUESTED_MEMORY = 8, "kB per processor; memory that the user asked for; -1 unknown"
    RECORDED_SUBMIT = 9, "s since the origin; submission in the trace; -1 none"
    RECORDED_START = 10, "s since the origin; start in the trace; -1 none"
    RECORDED_END = 11, "s since the origin; end in the trace; -1 none"
    SUBMIT = 12, "s since the origin; simulated submission; -1 never submitted"
    ENQUEUED = (
        13,
        "s since the origin; when it joined the queue of its cluster, later than the submission "
        "where a grid broker held it; -1 never",
    )
    ESTIMATE = 14, "s; run time the scheduler believed when the job arrived; -1 never arrived"
    PROMISED = 15, "s since the origin; the start that was promised first; -1 none"
    START = 16, "s since the origin; simulated start; -1 never started"
    END = (
        17,
        "s since the origin; simulated end, or when a waiting job was taken back; -1 never ended",
    )
    SESSION = 18, "session the job belongs to, counted from 0; -1 none"
    BATCH = 19, "batch the job belongs to, counted from 0 over all users; -1 none"
    UNIT = 20, "unit of work whose completion the user waits for; -1 none"
    CLUSTER = 21, "cluster it was submitted to, 0 home, then the others; -1 never submitted"
    STATE = 22, "the outcome of the job"
    PAUSED = 23, "s; how long it was suspended between start and end; -1 never"


#: What a run fills, beside the state.
OUTCOME = (
    Column.SUBMIT,
    Column.ENQUEUED,
    Column.ESTIMATE,
    Column.PROMISED,
    Column.START,
    Column.END,
    Column.UNIT,
    Column.CLUSTER,
    Column.PAUSED,
)


class State(IntEnum):
    """The outcome of a job. What did not happen is recorded too."""

    UNFINISHED = 0  #: not over when the run ended, or never submitted
    COMPLETED = 1
    KILLED = 2  #: stopped at its requested time
    REJECTED = 3  #: larger than the machine
    CANCELLED = 4  #: taken back by its user, while it waited or ran
    RENOUNCED = 5  #: the user decided not to run it, before it was submitted
    FAILED = 6  #: stopped by a change of the platform, and not run again


class States(np.ndarray[Any, Any]):
    """The states of the jobs of a table; what is computed from them is an ordinary array.

    Writing the state of a job that waits or runs is an error: the cluster would go on with it.
    """

    jobs: JobTable | None

    def __array_finalize__(self, made_from: Any) -> None:
        """Forget the table: only the whole column is guarded."""
        self.jobs = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return results as ordinary arrays."""
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        """Return states as an ordinary number or array."""
        return self.view(np.ndarray)[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write states of jobs that are neither waiting nor running."""
        jobs = self.jobs
        if jobs is not None:
            there = (jobs.enqueued[key] != UNKNOWN) & (self[key] == State.UNFINISHED)
            if np.any(there):
                row = int(np.arange(len(jobs))[key][there].flat[0]) if np.ndim(there) else int(key)
                raise FixedError(
                    f"state of job {jobs.number[row]} (row {row}): it waits or runs, and its "
                    "state is the outcome; cluster.cancel(rows) takes it back"
                )
        self.view(np.ndarray)[key] = value


class _View:
    """A column as an attribute: a view of shape (jobs,), made at each access."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.__doc__ = column.meaning

    def __get__(self, jobs: JobTable, owner: type[JobTable]) -> Int64s:
        return jobs.column(self.column)


class _StateView(_View):
    """The states, guarded."""

    @override
    def __get__(self, jobs: JobTable, owner: type[JobTable]) -> Int64s:
        states = jobs.column(self.column).view(States)
        states.jobs = jobs
        return states


class JobTable:
    """Jobs in columns; each column is also an attribute in lower case, such as ``jobs.run_time``.

    Parameters
    ----------
    size
        Initial number of jobs; every cell is :data:`UNKNOWN`, every state
        :attr:`State.UNFINISHED`.

    Attributes
    ----------
    names
        Names of users, groups and so on, if the trace has them: ``names["user"][3]``.
    requests
        What the jobs ask of a machine of nodes beyond processors; None if that is not known.
    slowed_run_time
        In the results of a run with a power cap that slows jobs: how long each took, shape (jobs,),
        next to the ``run_time`` that it needs at full clock; None in other tables.

    Notes
    -----
    :meth:`append` may move the table to a larger matrix: do not keep columns while jobs are added,
    but access them through the attributes.
    """

    def __init__(self, size: int = 0) -> None:
        _check_room(size)
        self.matrix: Int64s = np.full((len(Column), size), UNKNOWN, np.int64)
        self.matrix[Column.STATE] = State.UNFINISHED
        self._size = size
        self.names: Names = {}
        self.requests: Requests | None = None
        self.slowed_run_time: Int64s | None = None

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<JobTable of {self._size:,} jobs>"

    def column(self, column: Column) -> Int64s:
        """Return a view of one column, shape (jobs,)."""
        return self.matrix[column, : self._size]

    number = _View(Column.NUMBER)
    user = _View(Column.USER)
    group = _View(Column.GROUP)
    executable = _View(Column.EXECUTABLE)
    queue = _View(Column.QUEUE)
    processors = _View(Column.PROCESSORS)
    run_time = _View(Column.RUN_TIME)
    requested_time = _View(Column.REQUESTED_TIME)
    requested_memory = _View(Column.REQUESTED_MEMORY)
    recorded_submit = _View(Column.RECORDED_SUBMIT)
    recorded_start = _View(Column.RECORDED_START)
    recorded_end = _View(Column.RECORDED_END)
    submit = _View(Column.SUBMIT)
    enqueued = _View(Column.ENQUEUED)
    estimate = _View(Column.ESTIMATE)
    promised = _View(Column.PROMISED)
    start = _View(Column.START)
    end = _View(Column.END)
    session = _View(Column.SESSION)
    batch = _View(Column.BATCH)
    unit = _View(Column.UNIT)
    cluster = _View(Column.CLUSTER)
    state = _StateView(Column.STATE)
    paused = _View(Column.PAUSED)

    def append(self, count: int, **columns: Any) -> Int64s:
        """Add ``count`` jobs and return their rows.

        Parameters
        ----------
        count
            Number of jobs.
        **columns
            Values by column name in lower case (a scalar or one per job). Job numbers count from 1
            unless given. They ask for nothing that is in :attr:`requests`.
        """
        first, last = self._size, self._size + count
        if last > self.matrix.shape[1]:
            _check_room(last)
            grown = np.full((len(Column), max(last, 2 * first, 256)), UNKNOWN, np.int64)
            grown[Column.STATE] = State.UNFINISHED
            grown[:, :first] = self.matrix[:, :first]
            self.matrix = grown
        self._size = last
        if self.requests is not None:
            self.requests.append(count)
        rows = np.arange(first, last)
        matrix = self.matrix
        matrix[Column.NUMBER, first:last] = rows + 1
        for name, values in columns.items():
            matrix[Column[name.upper()], first:last] = values
        return rows

    def erase_outcome(self) -> None:
        """Erase the results of a previous run."""
        for column in OUTCOME:
            self.matrix[column] = UNKNOWN
        self.matrix[Column.STATE] = State.UNFINISHED

    def as_recorded(self) -> JobTable:
        """Return an independent table whose simulated times are the recorded ones."""
        other = self.copy()
        other.submit[:], other.start[:] = self.recorded_submit, self.recorded_start
        other.end[:] = self.recorded_end
        return other

    def copy(self) -> JobTable:
        """Return an independent table with the same jobs."""
        other = JobTable()
        other.matrix = self.matrix[:, : self._size].copy()
        other._size = self._size
        other.names = self.names
        other.requests = None if self.requests is None else self.requests.copy()
        if self.slowed_run_time is not None:
            other.slowed_run_time = self.slowed_run_time.copy()
        return other

    def take(self, rows: Int64s) -> JobTable:
        """Return an independent table of some of the jobs, in the order of ``rows``."""
        other = JobTable()
        other.matrix = np.take(self.matrix, rows, axis=1)  # keeps columns contiguous
        other._size = len(rows)
        other.names = self.names
        other.requests = None if self.requests is None else self.requests.take(rows)
        if self.slowed_run_time is not None:
            other.slowed_run_time = self.slowed_run_time[rows]
        return other

    def who(self, number: int, field: str = "user") -> str:
        """Return the name of a user, or of a number of another field; the number without one."""
        return name_of(self.names, field, number)

    def with_names(self, numbers: Int64s, field: str = "user") -> dict[str, Any]:
        """Return columns for tables: the numbers, and ``user_name`` if there are names."""
        names = self.names.get(field)
        if not names:
            return {field: numbers}
        return {field: numbers, f"{field}_name": [self.who(n, field) for n in numbers.tolist()]}

    def count(self, state: State) -> int:
        """Return how many jobs are in ``state``."""
        return int(np.count_nonzero(self.state == state))

    def ended(self, cluster: int) -> Int64s:
        """Return the rows of :attr:`ran` on one cluster, by end, then by row."""
        rows = np.flatnonzero(self.ran & (self.cluster == cluster))
        ordered: Int64s = rows[np.lexsort((rows, self.end[rows]))]
        return ordered

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which jobs ended on the machine (completed or killed)."""
        over: NDArray[np.bool_] = (self.state == State.COMPLETED) | (self.state == State.KILLED)
        return over

    @property
    def waited(self) -> NDArray[np.bool_]:
        """Which jobs were in a queue, for no time at least, whether they have left it or not."""
        waited: NDArray[np.bool_] = (self.submit != UNKNOWN) & (
            (self.start != UNKNOWN)
            | (self.state == State.UNFINISHED)
            | (self.state == State.CANCELLED)
        )
        return waited

    @property
    def lasted(self) -> Int64s:
        """How long each job ran, from start to end without the time it was suspended, s."""
        return self.end - self.start - np.maximum(self.paused, 0)

    @property
    def wait_ended(self) -> Int64s:
        """When each job left the queue, started or taken back, s; -1 not known, shape (jobs,)."""
        return np.where(self.left_queue, self.end, self.start)

    @property
    def left_queue(self) -> NDArray[np.bool_]:
        """Which jobs were taken back before they started, shape (jobs,)."""
        left: NDArray[np.bool_] = (self.start == UNKNOWN) & (self.state == State.CANCELLED)
        return left

    @property
    def ran(self) -> NDArray[np.bool_]:
        """Which jobs ended on the machine, or were taken back while they ran."""
        stopped = self.state == State.CANCELLED
        ran: NDArray[np.bool_] = self.over | (stopped & (self.start != UNKNOWN))
        return ran

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame: column names in lower case, states as words.

        Names of users, groups and others are in columns such as ``user_name``, if the trace has
        them; what jobs ask of a machine of nodes follows, texts as texts.
        """
        import pandas as pd

        frame = pd.DataFrame(
            {column.name.lower(): self.column(column) for column in Column}, copy=True
        )
        words = pd.Index([state.name.lower() for state in State])
        frame["state"] = pd.Categorical.from_codes(self.state, categories=words)
        for field, names in self.names.items():
            if field in frame:
                frame[f"{field}_name"] = frame[field].map(names)
        if self.slowed_run_time is not None:
            frame["slowed_run_time"] = self.slowed_run_time
        if self.requests is None:
            return frame
        asked, told = self.requests.asked(), self.requests.words
        return frame.assign(
            **{
                ask.name.lower(): self.requests.texts(ask) if ask in told else self.requests[ask]
                for ask in asked
            }
        )


def _check_room(jobs: int) -> None:
    """Check that the memory holds a table of so many jobs."""
    check_memory(
        f"a table of {jobs:,} jobs",
        jobs * len(Column) * 8,
        "take a part of the trace, fewer jobs or fewer days",
    )


#: Columns whose numbers are local to each site; later tables get higher numbers.
NAMED = (Column.USER, Column.GROUP, Column.EXECUTABLE)


@dataclass(frozen=True)
class Joined:
    """The job tables of several sites merged into one, to run them together.

    Attributes
    ----------
    jobs
        All jobs by recorded submission, numbered from 1; in the same second those of the first
        table come first. Users, groups and executables of later tables have higher numbers; if
        another site has the same name, it is followed by the place of the table: ``ada (2)``.
    table, row
        The table and row that each job comes from, shape (jobs,).
    first_user
        What was added to the numbers of the users of each table, shape (tables,).
    """

    jobs: JobTable
    table: Int64s
    row: Int64s
    first_user: Int64s


def join(tables: Sequence[JobTable]) -> Joined:
    """Merge tables into one; simulated columns are left out."""
    sizes = [len(table) for table in tables]
    matrix = np.concatenate(
        [table.matrix[:, :size] for table, size in zip(tables, sizes, strict=True)], axis=1
    )
    source = np.repeat(np.arange(len(tables)), sizes)
    row = np.concatenate([np.arange(size) for size in sizes])
    first_user = np.zeros(len(tables), np.int64)
    names: dict[str, dict[int, str]] = {}
    for table in tables:
        for field, known in table.names.items():
            names.setdefault(field, {}).update(known)
    for column in NAMED:
        more, field = 0, column.name.lower()
        names.pop(field, None)  # their numbers change
        for place in range(len(tables)):
            mine = (source == place) & (matrix[column] != UNKNOWN)
            if column == Column.USER:
                first_user[place] = more
            matrix[column, mine] += more
            known = names.setdefault(field, {})
            taken = set(known.values())
            for number, name in tables[place].names.get(field, {}).items():
                known[number + more] = f"{name} ({place + 1})" if name in taken else name
            more = max(more, int(matrix[column, mine].max(initial=UNKNOWN)) + 1)
    order = np.lexsort((row, source, matrix[Column.RECORDED_SUBMIT]))
    jobs = JobTable(len(order))
    jobs.matrix = np.ascontiguousarray(matrix[:, order])
    jobs.erase_outcome()
    jobs.number[:] = np.arange(1, len(order) + 1)
    jobs.names = {field: known for field, known in names.items() if known}
    if any(table.requests is not None for table in tables):
        from hpcrowd.environment.requests import joined  # circle: only if there are any

        parts = [
            size if table.requests is None else table.requests
            for table, size in zip(tables, sizes, strict=True)
        ]
        jobs.requests = joined(parts).take(order)
    return Joined(jobs, source[order], row[order], first_user)
