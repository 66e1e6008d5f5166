"""Formats of one job a line, with comment lines before the jobs and among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from environment.errors import ParseError, TraceError
from environment.formats.files import shown
from environment.trace import Header, Trace

#: What comment lines begin with in a :class:`~environment.trace.Trace`.
MARK = b";"


@dataclass(frozen=True)
class CommentedLines:
    """The lines of a file, told apart.

    Attributes
    ----------
    header
        Lines before the first job.
    comments
        Lines among the jobs and after them: (job they stand before, line).
    jobs
        Lines of jobs, without their line feed.
    newline
        Line end of the job lines.
    line_number
        From the place of a job to its line in the file, counted from 1.
    """

    header: Header
    comments: list[tuple[int, bytes]]
    jobs: list[bytes]
    newline: bytes
    line_number: Callable[[int], int]


def split_lines(data: bytes, source: str, title: str, mark: bytes = MARK) -> CommentedLines:
    """Tell comments and blank lines from lines of jobs.

    Parameters
    ----------
    data
        The file; ``title`` is the format that it should be of, for messages.
    mark
        What its comment lines begin with. They stand with :data:`MARK` instead in what is
        returned, so that the header of a trace reads the same whatever the file was.

    Raises
    ------
    TraceError
        When there is no job, or the file is no text.
    """
    if not data.strip():
        raise TraceError(f"{source}: is empty; a trace has one line a job")
    if b"\0" in data[:4096]:
        raise TraceError(f"{source}: is a binary file, not a trace in the {title}")
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    is_job = [not (line[:1] == mark or line.lstrip()[:1] in (mark, b"")) for line in lines]
    if b"\0" in data:  # in a job it is told with its field
        for number, (line, job) in enumerate(zip(lines, is_job, strict=True), start=1):
            if not job and b"\0" in line:
                raise ParseError(source, number, None, shown(line), "a zero byte; text holds none")
    if not any(is_job):
        raise TraceError(f"{source}: holds no job; not a trace in the {title}?")
    first = is_job.index(True)

    def comment(line: bytes) -> bytes:
        return line if mark == MARK else line.replace(mark, MARK, 1)

    header = Header([comment(line) for line in lines[:first]])
    comments: list[tuple[int, bytes]] = []
    if all(is_job[first:]):
        jobs = lines[first:]
        newline = b"\r\n" if jobs[0].endswith(b"\r") else b"\n"
        return CommentedLines(header, comments, jobs, newline, lambda job: first + job + 1)
    line_numbers = np.flatnonzero(is_job) + 1
    jobs_before = np.cumsum(is_job)
    jobs = [line for line, job in zip(lines, is_job, strict=True) if job]
    comments = [
        (int(jobs_before[i]), comment(lines[i])) for i in range(first, len(lines)) if not is_job[i]
    ]
    newline = b"\r\n" if jobs[0].endswith(b"\r") else b"\n"
    return CommentedLines(header, comments, jobs, newline, lambda job: int(line_numbers[job]))


def join_lines(trace: Trace, jobs: list[bytes], mark: bytes = MARK) -> bytes:
    """Return lines of jobs with the header and the comments of their trace in their places."""

    def comment(line: bytes) -> bytes:
        return line if mark == MARK else line.replace(MARK, mark, 1)

    tail = b"\r" if trace.newline == b"\r\n" else b""
    parts = [comment(line) for line in trace.header.lines]
    position = 0
    for before, line in trace.comments:
        parts += [job + tail for job in jobs[position:before]]
        parts.append(comment(line))
        position = before
    parts += [job + tail for job in jobs[position:]]
    return b"\n".join(parts) + b"\n"
