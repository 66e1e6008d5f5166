r"""Rows of ``sacct`` whose cells do not fit the header: names with delimiters or line ends in them.

``sacct -P`` protects nothing: a ``|`` in a job name adds a cell to its row, a line end breaks the
row in two. Columns are of known kinds (numbers of jobs, times, states, sizes, words without
blanks), so the cells of a row are assigned to the columns from both ends, and the surplus belongs
to the columns of free text, such as ``JobName``. A row is repaired if that can be done in one way
only, as far as the columns that are used are concerned; otherwise it is left out. Comments are
taken as empty if they can be. Only the header decides, never other rows: a row is read alike in
every file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

from hpcrowd.environment.header import decode
from hpcrowd.environment.traces.formats.common.files import LONGEST_LINE
from hpcrowd.environment.traces.trace import LINES

#: Columns that people or programs write anything into.
FREE_TEXT = frozenset((
    "jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "container",
    "wckey", "extra", "stdin", "stdout", "stderr", "licenses", "mcslabel", "constraints",
))  # fmt: skip

#: Those that few sites fill: empty, if the rest of a row of one line then has one reading.
COMMENTS = ("comment", "admincomment", "systemcomment", "container", "extra", "mcslabel")

#: Columns that are filled in every row.
NEVER_EMPTY = ("state", "submit")

#: Lines that one row may be broken into, and cells that it may have too many; a name has at most
#: 1,024 characters.
MOST_LINES, MOST_SURPLUS = 200, 300

#: Rows that cannot be repaired, after which no more lines are joined: the file is malformed.
MOST_FAILED = 50

#: Ways to assign the cells of a row that are compared before the row is left out.
MOST_WAYS = 5_000

#: Lines of rows that were left out which a message lists.
LISTED = 5

#: Reasons.
SURPLUS = "delimiters or line ends inside a name: cells assigned by the kinds of the columns"
UNCLEAR = f"{LINES}cells that cannot be assigned to the columns"

_WORD = re.compile(rb"[^\s]*(?: [^\s]+)*")
_NODES = re.compile(rb"[\w.,\[\]-]*|None assigned")
_TRES = re.compile(rb"(?:[\w/:.-]+=[^,]*(?:,[\w/:.-]+=[^,]*)*)?")
_CODE = re.compile(rb"(?:[0-9]+:[0-9]+)?")
_NUMBER = re.compile(rb"-?[0-9]*|[Uu]nknown")
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1e]")
_SIZE = re.compile(rb"(?:[0-9.:-]+[KMGTPE]?)?")
_LAYOUT = re.compile(rb"(?:Unknown|Block|Cyclic|Plane|Arbitrary|Explicit)?", re.IGNORECASE)
_SPAN = re.compile(rb"[0-9:.-]*|UNLIMITED|Partition_Limit|INVALID")

#: What is measured of tasks, of which the largest and the mean have columns.
_MEASURED = ("cpu", "cpufreq", "diskread", "diskwrite", "pages", "rss", "vmsize")

#: Forms of columns that are not used, and of words without blanks at their ends.
_FORMS = {
    **dict.fromkeys(("nodelist", "reqnodes"), _NODES),
    **dict.fromkeys(("alloctres", "reqtres"), _TRES),
    **dict.fromkeys(
        (f"tresusage{way}{what}{of}" for way in ("in", "out") for what, of in (
            *product(("max", "min"), ("", "node", "task")), ("ave", ""), ("tot", ""))), _TRES),
    **dict.fromkeys(
        (f"{most}{what}{of}" for most, what in product(("max", "min"), _MEASURED)
         for of in ("node", "task")), _NODES),
    **dict.fromkeys(
        (f"{most}{what}" for most, what in product(("max", "min", "ave"), _MEASURED)), _SIZE),
    "layout": _LAYOUT,
    **dict.fromkeys(("exitcode", "derivedexitcode"), _CODE),
    **dict.fromkeys(
        ("uid", "gid", "priority", "cputimeraw", "dbindex", "associd", "qosraw", "reservationid",
         "wckeyid", "jobidraw", "ntasks", "resvcpuraw", "consumedenergyraw"), _NUMBER),
    **dict.fromkeys(
        ("cputime", "suspended", "reserved", "planned", "resvcpu", "systemcpu", "usercpu",
         "plannedcpu"), _SPAN),
}  # fmt: skip


@dataclass
class Mended:
    """The outcome of :func:`mend`."""

    rows: list[bytes]  #: with other bytes for delimiters and line ends inside cells
    lines: list[int]  #: number of the line where each row begins
    back: dict[bytes, bytes]  #: these bytes and what they stand for
    #: Numbers of the lines where repaired rows begin.
    repaired: list[int] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)  #: lines, from 1, that belong to no row
    given_up: int = 0  #: the line from which on lines are not joined any more; 0 if there is none

    def add(self, row: bytes, line: int) -> None:
        """Add a row that begins in a line."""
        self.rows.append(row)
        self.lines.append(line)

    def lengthen(self, more: bytes, broken: bytes) -> None:
        """Add a line to the free text at the end of the last row, and blank lines before it."""
        while not self.rows[-1].strip():
            more = self.rows.pop() + broken + more
            self.lines.pop()
        self.rows[-1] += broken + more
        if self.repaired[-1:] != self.lines[-1:]:
            self.repaired.append(self.lines[-1])

    @property
    def unclear(self) -> str:
        """The reason for lines that were left out, with the first of them."""
        listed = ", ".join(map(str, self.left_out[:LISTED]))
        more = ", ..." if len(self.left_out) > LISTED else ""
        noun = "line" if len(self.left_out) == 1 else "lines"
        end = f"; from line {self.given_up} on none are joined" if self.given_up else ""
        return f"{UNCLEAR} ({noun} {listed}{more}{end})"


class Columns:
    """What the cells of a row may be.

    Parameters
    ----------
    names
        Columns in lower case.
    used
        Those whose values matter.
    checks
        Parsers of columns, which raise ``ValueError``.
    is_id
        Whether a word is the number of a job or step.
    id_name
        The column of these numbers.
    is_read
        Whether cells, one for each column, are read as they are.
    """

    def __init__(
        self,
        names: Sequence[str],
        used: Sequence[str],
        checks: dict[str, Callable[[bytes], Any]],
        is_id: Callable[[bytes], Any],
        id_name: str,
        is_read: Callable[[Sequence[bytes]], bool],
    ) -> None:
        self.count = len(names)
        self.names = names
        self.used = [place for place, name in enumerate(names) if name in used]
        self.free = [name in FREE_TEXT for name in names]
        self.tests = [self._test(name, checks, is_id, id_name) for name in names]
        self.id, self.id_name = names.index(id_name), id_name.encode()
        self.is_read = is_read

    def _test(
        self, name: str, checks: dict[str, Callable[[bytes], Any]],
        is_id: Callable[[bytes], Any], id_name: str,
    ) -> Callable[[bytes], bool]:  # fmt: skip
        """Return whether a cell may be of a column; all steps may lack anything but a number."""
        if name in FREE_TEXT:
            return lambda word: True
        if name == id_name:
            return lambda word: is_id(word) is not None
        if name == "":  # what -p leaves at the end
            return lambda word: not word
        form = _FORMS.get(name, _WORD)
        if name not in checks or checks[name] is decode:
            return cache(lambda word: form.fullmatch(word) is not None)
        check = checks[name]

        def fine(word: bytes) -> bool:
            if not word:
                return name not in NEVER_EMPTY
            try:
                check(word)
            except ValueError:
                return False
            return True

        return cache(fine)

    def keeps(self, line: bytes, delimiter: bytes) -> bool:
        """Return whether a line stays as it is: blank, as many cells as columns, a header."""
        if line.count(delimiter) == self.count - 1 or not line.strip():
            return True
        return len(line) > LONGEST_LINE or self.id_name in line.lower().split(delimiter)

    def reads(self, line: bytes, delimiter: bytes) -> bool:
        """Return whether a line that stays as it is can be read so."""
        cells = line.split(delimiter)
        row = len(cells) == self.count and cells[self.id].lower() != self.id_name
        return not row or self.is_read(cells)

    def goes_on(self, line: bytes, delimiter: bytes) -> bool:
        """Return whether a line belongs to the free text at the end of the row before it."""
        begin, delimited, _ = line.partition(delimiter)
        starts = not self.tests[0](begin) if self.id == 0 else not delimited
        return self.free[-1] and starts

    def fit(self, cells: Sequence[bytes]) -> bool:
        """Return whether as many cells as columns may be a row."""
        return all(test(cell) for test, cell in zip(self.tests, cells, strict=True))

    def assigned(self, cells: Sequence[bytes], joint: bytes) -> list[bytes] | None:
        """Return cells joined to the columns, if there is one way to do so; else None.

        There are at least as many as columns; ``joint`` goes between cells of one column.
        """
        found: list[bytes] | None = None
        broken = any(map(_CONTROL.search, cells))  # the next line may be another row
        for commented in (True,) if broken else (False, True):
            kept: set[tuple[bytes, ...]] = set()
            for ways, row in enumerate(self._ways(cells, joint, commented=commented)):
                kept.add(tuple(row[place] for place in self.used))
                found = found or row
                if len(kept) > 1 or ways > MOST_WAYS:
                    return None
            if found:
                break
        return found

    def _ways(
        self, cells: Sequence[bytes], joint: bytes, *, commented: bool
    ) -> Iterator[list[bytes]]:
        """Yield the ways to assign cells to columns, each free column taking one or more."""
        surplus = len(cells) - self.count
        empty = [name in COMMENTS and not commented for name in self.names]
        free = [one and not two for one, two in zip(self.free, empty, strict=True)]

        def fits(column: int, cell: bytes) -> bool:
            if empty[column]:
                return not cell
            whole = free[column] or not _CONTROL.search(cell)  # no line ends inside
            return whole and self.tests[column](cell)

        # Whether the columns from one on can take the cells from one on: worked out from the
        # right, so that no way is a dead end.
        ends = [[False] * (surplus + 1) for _ in range(self.count + 1)]
        ends[self.count][surplus] = True
        for column in range(self.count - 1, -1, -1):
            reached = False
            for extra in range(surplus, -1, -1):
                reached = ends[column + 1][extra] or (reached and free[column])
                ends[column][extra] = reached and fits(column, cells[column + extra])

        def walk(column: int, extra: int) -> Iterator[list[bytes]]:
            if column == self.count:
                yield []
                return
            for one in range(extra, surplus + 1) if free[column] else (extra,):
                if ends[column + 1][one]:
                    cell = joint.join(cells[column + extra : column + one + 1])
                    for rest in walk(column + 1, one):
                        yield [cell, *rest]

        if ends[0][0]:
            yield from walk(0, 0)


def mend(
    body: bytes, first: int, delimiter: bytes, columns: Columns, *, thorough: bool = False
) -> Mended | None:
    """Return rows that fit the header; None if all do already.

    The text behind the header begins in line ``first``. A ``thorough`` look is also into rows with
    as many cells as columns: a name with a delimiter and a line end can leave that many in its
    first line.
    """
    wanted = columns.count - 1
    lines = body.splitlines()
    if not thorough and all(line.count(delimiter) == wanted or not line.strip() for line in lines):
        return None
    unused = (bytes([byte]) for byte in (1, 2, 3, 4, 5, 6, 7, 14, 15, 16, 17, 18, 19, 20))
    free = (byte for byte in unused if byte not in body and byte != delimiter)
    inside, broken = next(free, b""), next(free, b"")
    if not broken:
        return None
    mended = Mended([], [], {inside: delimiter, broken: b"\n"})
    place = failed = 0
    while place < len(lines):
        line, taken = lines[place], 1
        keeps = columns.keeps(line, delimiter)
        if keeps and not (thorough and line.strip() and not columns.reads(line, delimiter)):
            mended.add(line, first + place)
            place += 1
            continue
        most = 1 if mended.given_up else MOST_LINES
        taken, row = _joined(lines[place : place + most], delimiter, columns, inside, broken)
        failed += row is None
        if failed > MOST_FAILED and not mended.given_up:
            mended.given_up = first + place + 1
        if thorough and failed > MOST_FAILED and not mended.repaired:
            return None  # malformed altogether
        if row is None and keeps:
            mended.add(line, first + place)  # malformed, and not broken
        elif row is not None:
            mended.add(delimiter.join(row), first + place)
            mended.repaired.append(first + place)
        elif columns.goes_on(line, delimiter) and any(map(bytes.strip, mended.rows)):
            mended.lengthen(line.replace(delimiter, inside), broken)
        else:
            mended.left_out.append(first + place)
        place += taken
    return mended


def _joined(
    lines: Sequence[bytes], delimiter: bytes, columns: Columns, inside: bytes, broken: bytes
) -> tuple[int, list[bytes] | None]:
    """Return how many lines the first row has, and its cells; 1 and None if that is unclear."""
    whole = b""
    for taken, line in enumerate(lines, 1):
        if taken > 1 and _is_row(line, delimiter, columns):
            break
        whole = whole + broken + line if taken > 1 else line
        cells = whole.split(delimiter)
        if len(cells) > columns.count + MOST_SURPLUS:
            break
        if len(cells) >= columns.count:
            row = columns.assigned(cells, inside)
            if row is not None:
                return taken, row
    return 1, None


def _is_row(line: bytes, delimiter: bytes, columns: Columns) -> bool:
    cells = line.split(delimiter)
    return len(cells) == columns.count and columns.fit(cells)
