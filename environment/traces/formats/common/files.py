"""Trace files as bytes and lines, plain or gzipped; lines that are too long are refused.

Of JSON that cannot be read as a log of jobs, :func:`named_json` says what it is, and what to
read instead. Source: man pages of ``qstat``, ``pbsnodes``, ``condor_history``, ``bjobs``,
``oarstat``, ``flux jobs`` and ``sinfo``, and what they print.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from typing import IO

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.limits.inputs import opened, room
from hpcrowd.environment.output.whole import whole_file
from hpcrowd.environment.traces.formats.common.names import LARGEST_EXACT, is_large, is_number
from hpcrowd.environment.traces.trace import LINES, Trace

#: Longest line of a trace, in bytes. Comments in accounting logs take a few thousand.
LONGEST_LINE = 2**20

#: The same for formats whose files may be a single line, such as JSON.
LONGEST_DOCUMENT = 2**28

#: Bytes from the beginning of a file, unpacked, that are used to recognise its format.
HEAD = 2**16

#: Lines by which the format of a text is recognised.
LOOKED_AT = 50

#: The byte order mark that some UTF-8 texts begin with.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: Bytes that are read at a time; at most the longest line.
PIECE = 2**20

#: Bytes of whole lines that are parsed at a time.
BLOCK = 2**22

#: Why a first line with the names of the fields is passed over.
TITLES = f"{LINES}names of the fields, no job"

#: Bytes of a file that a message shows.
SHOWN = 80

#: First bytes of files in other packings, and the commands that unpack them.
OTHER_PACKING = {b"\xfd7zXZ\x00": "xz -d", b"BZh": "bunzip2", b"\x28\xb5\x2f\xfd": "zstd -d",
                 b"PK\x03\x04": "unzip"}  # fmt: skip


def read_head(path: str | os.PathLike[str]) -> bytes:
    """Return the beginning of a file, unpacked, to recognise its format.

    Raises TraceError if it cannot be read, is damaged, or is packed with something other than gzip.
    """
    with _opened(path) as file:
        head = file.read(HEAD)
        while head and not head.strip():  # empty lines before the trace
            head = file.read(HEAD)
    for magic, command in OTHER_PACKING.items():
        if head.startswith(magic):
            raise TraceError(f"{path}: is compressed; unpack it first ({command}), or use gzip")
    return head.removeprefix(BYTE_ORDER_MARK)


def read_file(path: str | os.PathLike[str], longest_line: int = LONGEST_LINE) -> tuple[bytes, str]:
    """Return the content of a file, unpacked, and the SHA-256 of the file as it is.

    Raises TraceError if it cannot be read, or the gzip file is damaged, and ParseError if a line is
    longer than ``longest_line`` bytes; it is not read to its end.
    """
    blocks = list(read_blocks(path, longest_line))
    data = blocks[0] if len(blocks) == 1 else b"".join(blocks)
    return data, checksum(path)


def checksum(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file as it is, packed or not."""
    with opened(path) as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()  # type: ignore[arg-type]


def read_blocks(path: str | os.PathLike[str], longest_line: int = LONGEST_LINE) -> Iterator[bytes]:
    """Yield the content of a file, unpacked, in blocks of whole lines of about 4 MB.

    Raises TraceError if it cannot be read, or the gzip file is damaged, and ParseError if a line is
    longer than ``longest_line`` bytes; it is not read to its end.
    """
    pieces: list[bytes] = []
    line, length, begin = 1, 0, b""  # current line, its bytes so far, its beginning
    size, fits = 0, room()
    with _opened(path) as file:
        while piece := file.read(PIECE):
            size += len(piece)
            fits(size)
            begin = begin if length else piece[:SHOWN]
            end = piece.find(b"\n")
            if length + (len(piece) if end < 0 else end) > longest_line:
                rule = f"longer than {longest_line:,} bytes, the limit for a line of a trace"
                raise ParseError(os.fspath(path), line, None, shown(begin), rule)
            if end < 0:
                length += len(piece)
                pieces.append(piece)
                continue
            last = piece.rfind(b"\n") + 1
            line += piece.count(b"\n")
            length, begin = len(piece) - last, piece[last : last + SHOWN]
            pieces.append(piece[:last])
            if sum(map(len, pieces)) >= BLOCK:
                yield b"".join(pieces)
                pieces.clear()
            if length:
                pieces.append(piece[last:])
    if pieces:
        yield b"".join(pieces)


def write_file(data: bytes, path: str | os.PathLike[str]) -> None:
    """Write a file, gzipped if its name ends in ``.gz``; it is complete or absent.

    Pipes and devices are written to directly. A symbolic link stays, and its target is written.
    Raises TraceError if it cannot be written.
    """
    if os.fspath(path).endswith(".gz"):
        data = gzip.compress(data, compresslevel=6, mtime=0)
    with whole_file(path, TraceError) as temporary:
        temporary.write_bytes(data)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file to read it unpacked; errors name what is wrong."""
    name = os.fspath(path)
    try:
        with opened(path) as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield unpacked  # type: ignore[misc]
            else:
                yield raw
    except EOFError:
        raise TraceError(f"{name}: the gzip file is cut short; download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{name}: the gzip file is damaged ({error}); download it again") from None
    except OSError as error:
        raise TraceError(f"{name}: cannot be read: {error.strerror or error}") from None


def shown(text: bytes) -> str:
    """Return a piece of a file for a one-line message; bytes that are not UTF-8 as ``\\xff``."""
    words = text[: 4 * SHOWN].decode("utf-8", "backslashreplace")
    return words if len(words) < SHOWN else f"{words[: SHOWN - 3]}..."


def first_line(head: bytes, comments: bytes = b"") -> bytes:
    """Return the first line that is neither blank nor a comment (``comments``), stripped."""
    return next(iter(rows_in(head, comments)), b"")


def rows_in(head: bytes, comments: bytes = b"") -> list[bytes]:
    """Return the first lines that are neither blank nor comments, stripped; not one that is cut."""
    lines = head.splitlines()
    if len(lines) > 1 and len(head) >= HEAD:
        lines.pop()
    rows = (line.strip() for line in lines)
    return list(islice((row for row in rows if row and row[:1] not in comments), LOOKED_AT))


def is_title(line: bytes, fields: int) -> bool:
    """Return whether a line names the fields: as many words or more, none of them a number."""
    words = line.split()
    return len(words) >= fields and not any(map(is_number, words))


def without_title(rows: list[bytes]) -> list[bytes]:
    """Return the rows of :func:`rows_in` without a first one of words only."""
    return rows[1:] if rows and is_title(rows[0], 0) else rows


def mostly[Row](rows: Sequence[Row], test: Callable[[Row], object]) -> bool:
    """Return whether more than half of some rows pass a test; False without any."""
    return 2 * sum(bool(test(row)) for row in rows) > len(rows)


_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]')


@lru_cache(maxsize=4)
def json_keys(head: bytes) -> dict[str, frozenset[str]]:
    """Return the keys of the objects in JSON text that may be cut; empty if it is something else.

    They are listed by the key that leads to them: ``""`` for the outermost object, or the objects
    in the outermost list, ``"jobs"`` for all objects in the list of that key.
    """
    text = head.decode("utf-8", "replace").lstrip()
    if text[:1] not in ("{", "["):
        return {}
    found: dict[str, set[str]] = {}
    inside: list[str] = []
    key = ""
    for token in _TOKEN.finditer(text):
        if token[0] in ("{", "["):
            inside.append(key)
        elif token[0] in ("}", "]"):
            key = inside.pop() if inside else ""
        elif token[2] and inside:
            key = token[1]
            found.setdefault(inside[-1], set()).add(key)
    return {way: frozenset(keys) for way, keys in found.items()}


#: The mark of comment lines in a :class:`~hpcrowd.environment.traces.trace.Trace`.
MARK = b";"


def explain(
    rows: Sequence[Sequence[bytes]],
    fields: Sequence[str],
    numeric: Collection[str],
    line_number: Callable[[int], int],
    source: str,
    title: str,
) -> None:
    """Raise the error of the first malformed job, if there is one.

    ``rows`` are the words of the jobs, which have these fields, some of them ``numeric``, and
    ``line_number`` returns the line of each; ``title`` is that of the format. Raises ParseError if
    a numeric field is not a number, a word holds a zero byte, or the number of words is wrong.
    """
    for job, words in enumerate(rows):
        line = line_number(job)
        for name, word in zip(fields, words, strict=False):
            if name in numeric and not is_number(word):
                rule = "not a number; use -1 for unknown"
                if is_large(word):
                    rule = f"too large; numbers of a trace are exact up to {LARGEST_EXACT:,}"
                raise ParseError(source, line, name, shown(word), rule)
            if b"\0" in word:
                rule = "holds a NUL byte; a trace is plain text"
                raise ParseError(source, line, name, shown(word), rule)
        if len(words) != len(fields):
            rule = f"{len(words)} fields; a job in the {title} has {len(fields)}"
            raise ParseError(source, line, None, shown(b" ".join(words)), rule)


def separate(
    data: bytes, source: str, mark: bytes = MARK, before: int = 0
) -> tuple[list[bytes], list[bool]]:
    """Return the lines of a text, which are whole, and whether each is one of a job.

    There are ``before`` lines of the file before these. Raises ParseError if a comment has a zero
    byte; for a job, another message names the field.
    """
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    is_job = [not (line[:1] == mark or line.lstrip()[:1] in (mark, b"")) for line in lines]
    if b"\0" in data:
        for number, (line, job) in enumerate(zip(lines, is_job, strict=True), start=before + 1):
            if not job and b"\0" in line:
                raise ParseError(source, number, None, shown(line), "holds a zero byte; not text")
    return lines, is_job


def join_lines(trace: Trace, jobs: Iterable[bytes], mark: bytes = MARK) -> bytes:
    """Return the lines of a trace: its header, and ``jobs`` with the comments in their places."""

    def comment(line: bytes) -> bytes:
        return line if mark == MARK else line.replace(MARK, mark, 1)

    end = trace.newline  # only lines of jobs: others have kept their own
    text = bytearray()  # grows, so that lines need not be in memory all at once
    for line in trace.header.lines:
        text += comment(line) + b"\n"
    position, coming = 0, iter(jobs)
    for before, line in trace.comments:
        for job in islice(coming, before - position):
            text += job + end
        position = before
        text += comment(line) + b"\n"
    for job in coming:
        text += job + end
    return bytes(text)


#: Keys of the outermost object, or of the objects in the outermost list, and what has them.
BY_KEYS = (
    (("ClusterId", "ProcId"),
     "a history of HTCondor as JSON; write it with condor_history -long"),
    (("pbs_version", "Jobs"),
     "output of qstat; read the accounting log, PBS_HOME/server_priv/accounting"),
    (("pbs_version", "nodes"),
     "output of pbsnodes: nodes, not jobs; read PBS_HOME/server_priv/accounting"),
    (("COMMAND", "RECORDS"),
     "output of LSF as JSON; read lsb.acct, which bacct reads, in the log folder of mbatchd"),
    (("cells", "nbformat"), "a Jupyter notebook, not a log of jobs; read the file that it reads"),
    (("type", "features"), "GeoJSON, a map, not a log of jobs"),
    (("jobs_in", "makespan_s"),
     "a result of hpcrowd; its jobs are in trace.swf.gz in the same folder"),
    (("label", "configuration"),
     "a result of hpcrowd; its jobs are in trace.swf.gz in the same folder"),
)  # fmt: skip

#: Lists of what Slurm prints about a machine, without a list of jobs.
OF_MACHINES = frozenset(("sinfo", "nodes", "partitions", "reservations"))

#: Times that only jobs of Flux have.
OF_FLUX = frozenset(("t_depend", "t_submit", "t_cleanup"))

FLUX = ("output of flux jobs; print columns, flux jobs -A -o '{id},{userid},{t_submit},{t_run},"
        "{t_cleanup},{ncores},{duration}', and read them with --map")  # fmt: skip

#: Keys that are shown of objects of unknown kind.
KEYS_SHOWN = 4


def named_json(head: bytes) -> str:
    """Return what JSON that begins with ``head`` is, and the cure; empty if it is not known."""
    keys = json_keys(head)
    top = keys.get("", frozenset())
    for wanted, what in BY_KEYS:
        if top.issuperset(wanted):
            return what
    if "jobs" not in top and "meta" in top and not OF_MACHINES.isdisjoint(top):
        return "what Slurm prints about a machine; hpcrowd machine reads it, jobs: sacct --json"
    if not OF_FLUX.isdisjoint(top | keys.get("jobs", frozenset())):
        return FLUX
    if any({"owner", "state"} <= one and ("submissionTime" in one or "submission_time" in one)
           for one in keys.values()):  # fmt: skip
        return "output of oarstat; make a table of its jobs, such as CSV, and read it with --map"
    if not top or (not (lines := _is_lines(head)) and head.lstrip()[:1] != b"["):
        return ""
    given = "FILE, lines=True" if lines else "FILE"
    return (
        f"{'lines' if lines else 'a list'} of JSON objects with "
        f"{', '.join(sorted(top)[:KEYS_SHOWN])}; "
        f"make a table of it, pandas.read_json({given}).to_csv('jobs.csv'), and read it with --map"
    )


def _is_lines(head: bytes) -> bool:
    """Return whether the first line is an object, and the next one begins like one."""
    first, _, rest = head.strip().partition(b"\n")
    if rest and not rest.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(first), dict) and bool(rest)
    except (ValueError, RecursionError):
        return False
