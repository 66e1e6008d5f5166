r"""Slurm's accounting: what ``sacct -P`` writes, read as a trace, and a trace written so.

::

    JobID|User|JobName|Partition|Submit|Start|End|ElapsedRaw|State|AllocCPUS|...   columns by name
    77|ada|relax|long|2024-01-31T12:00:00|2024-01-31T12:05:00|...|CANCELLED by 1000|64|...
    77.batch||batch||2024-01-31T12:05:00|2024-01-31T12:05:00|...                   steps of job 77
    78_5|ada|scan|short|...                                                 task 5 of an array

Columns stand in any order, others are left aside. The fields of a trace come from

    ======================  =====================================================================
    number                  counted in the order of submissions; JobID is kept in ``extra``
    submit                  Submit; of a job that ran again the first
    wait                    Start - Submit; of a job that never started until its End
    run                     ElapsedRaw, Elapsed, else End - Start; -1 if it never started
    allocated_processors    AllocCPUS, NCPUS, or ``cpu=`` of AllocTRES
    average_cpu             TotalCPU / AllocCPUS, to a thousandth of a second
    memory                  the largest MaxRSS (else AveRSS) of the steps, that of one task, kB
    requested_processors    ReqCPUS, or ``cpu=`` of ReqTRES
    requested_time          TimelimitRaw minutes, else Timelimit; none: -1
    requested_memory        ReqMem in kB for each of requested_processors; 0, all there is: -1
    status                  State: COMPLETED 1, CANCELLED 5, other ends 0
    user, group             User, else UID; Account, else Group, else GID
    executable              JobName
    queue, partition        Partition and Cluster, or QOS and Partition, as is asked for
    preceding, think_time   -1
    ======================  =====================================================================

How rows become jobs is told in :mod:`environment.formats.sacct_rows`. Text pairs:
:func:`parse_sacct` and :func:`generate_sacct` on bytes, :func:`read_sacct` and :func:`write_sacct`
on paths.

Source: man page of ``sacct``; the mapping is ours.
"""

from __future__ import annotations

import os

from environment.errors import TraceError
from environment.formats.base import Format, FormatOptions, Losses, as_bytes
from environment.formats.files import read_as, write_file
from environment.formats.headers import parse_zone
from environment.formats.sacct_columns import find_layout
from environment.formats.sacct_fields import Fields, Times, first_told
from environment.formats.sacct_rows import STEPS_ALONE, find_jobs, with_steps
from environment.formats.sacct_table import read_rows
from environment.formats.sacct_values import parse_state
from environment.formats.sacct_written import count_losses, written
from environment.trace import Trace


def read_sacct(path: str | os.PathLike[str], options: FormatOptions | None = None) -> Trace:
    """Read what ``sacct -P`` wrote, plain or gzipped.

    Parameters
    ----------
    path
        The file.
    options
        The time zone of the machine, and what becomes the queue.

    Raises
    ------
    TraceError
        When the file cannot be read, or holds no job that is over.
    ParseError
        When the header lacks columns or a line is malformed; it names line, field and value.
    """
    return read_as(path, lambda data, source: parse_sacct(data, source, options))


def parse_sacct(
    data: bytes | str, source: str = "trace", options: FormatOptions | None = None
) -> Trace:
    """Return the trace that ``data`` holds; ``source`` names it in messages.

    Raises
    ------
    TraceError, ParseError
        As :func:`read_sacct`.
    """
    options = options or FormatOptions()
    zone = parse_zone(options.zone)
    rows = read_rows(as_bytes(data), source)
    states = [parse_state(word) for word in rows.words["state"][1]]
    times = Times(rows, zone)
    memory, alone = with_steps(rows)
    jobs = find_jobs(rows, states, first_told(rows, "user"), times.submit, times.start)
    if alone:
        jobs.dropped[STEPS_ALONE] = alone
    if not len(jobs.row):
        most = jobs.dropped.most_common(3)
        why = ", ".join(f"{count} {reason}" for reason, count in most) or "headers alone"
        raise TraceError(f"{source}: holds no job that is over ({why})")
    return Fields(rows, jobs, times, states, memory).trace(source, zone, options.queue)


def generate_sacct(
    trace: Trace, lost: Losses | None = None, options: FormatOptions | None = None
) -> bytes:
    """Return ``trace`` as ``sacct -P`` would write it.

    Times are local times of the zone that is asked for, else UTC; one that clocks show twice has
    its offset after it. Memory that was used stands in the row of a step, as in Slurm.

    Parameters
    ----------
    trace
        The trace.
    lost
        Counts what Slurm's accounting does not hold: what differs when the text is read again.
    options
        The time zone, and what the queue is.
    """
    options = options or FormatOptions()
    data, order = written(trace, options)
    if lost is not None and len(trace):
        count_losses(trace, parse_sacct(data, trace.source, options), order, lost)
    return data


def write_sacct(
    trace: Trace, path: str | os.PathLike[str], options: FormatOptions | None = None
) -> None:
    """Write ``trace`` to ``path``, gzipped if that ends in ``.gz``; the file is whole or absent.

    Raises
    ------
    TraceError
        When it cannot be written.
    """
    write_file(generate_sacct(trace, options=options), path)


#: What ``sacct -P`` writes.
SACCT = Format(
    "sacct",
    "Slurm's accounting, sacct -P",
    (".sacct",),
    lambda head: find_layout(head) is not None,
    parse_sacct,
    generate_sacct,
    holds_names=True,
)
