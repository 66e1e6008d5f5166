"""Traces that commands write: in any format, with a file of names if the format has none."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.output.guard import NAMES_HEAD, check_not_input, forced, is_stream
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.common.base import Format, FormatOptions, Losses
from hpcrowd.environment.traces.formats.common.files import write_file
from hpcrowd.environment.traces.formats.common.names import names_table
from hpcrowd.environment.traces.formats.registry import FORMATS, format_by_name
from hpcrowd.environment.traces.formats.swf import SWF
from hpcrowd.environment.traces.trace import Trace, counted, not_read
from hpcrowd.scenarios.outputs import STANDARD, write_whole

if TYPE_CHECKING:
    from rich.console import Console


#: Column of ``Trace.extra``: identifiers of the jobs in the log that a trace was made from.
JOB_ID = "job_id"

#: Why names are lost.
NO_NAMES = "names are kept in a file next to OUT, and OUT is not a file"


@dataclass(frozen=True)
class Kept:
    """The outcome of writing a trace."""

    lost: Losses  #: what the format could not hold
    names: Path | None  #: file of names next to the trace; None if there is none
    named: dict[str, int]  #: number of names in it, by field

    def lines(self) -> list[str]:
        """Return the lines to print about it."""
        found = [f"  lost: {line}" for line in self.lost.lines()]
        if self.names is not None:
            named = ", ".join(plural(count, field) for field, count in self.named.items())
            found.append(f"{self.names}: names of {named}")
        return found


def keep_part(trace: Trace, out: Path) -> Kept:
    """Write a part of a trace in the format that the name of the file decides, else as SWF."""
    return keep_trace(trace, str(out), format_by_name(out) or SWF)


def keep_trace(
    trace: Trace,
    target: str,
    kind: Format,
    options: FormatOptions | None = None,
    *,
    strict: bool = False,
) -> Kept:
    """Write a trace, and next to it the names that the format does not hold.

    ``target`` is a file, or ``-`` for standard output. With ``strict``, nothing is written and an
    HpcrowdError says why if reading repaired or dropped anything, or the format cannot hold all.
    """
    lost = Losses()
    data = kind.generate(trace, lost, options or FormatOptions())
    named = {field: len(told) for field, told in trace.names.items() if told}
    if JOB_ID in trace.extra:
        named["job"] = len(trace)
    beside = None
    if named and not kind.holds_names:
        if target != STANDARD and not is_stream(target):
            beside = _beside(Path(target))
            for key in [key for key in lost.counts if key[0] == JOB_ID]:
                del lost.counts[key]  # it is in the file of names
        else:
            for field, told in trace.names.items():
                lost.add(field, np.isin(trace[field], list(told)), NO_NAMES)
    if strict:
        refuse(trace, lost, kind)
    if target == STANDARD:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        write_file(data, target)
    if beside is not None:
        write_whole(beside, names_table(trace))
    return Kept(lost, beside, named if beside else {})


def _beside(target: Path) -> Path:
    """Return the file for the names of a trace; another file of that name is not overwritten."""
    path = names_beside(target)
    check_not_input(path)
    if forced():
        return path
    try:
        with path.open("rb") as file:
            begin = file.read(len(NAMES_HEAD))
    except FileNotFoundError:
        return path
    except OSError as error:
        raise HpcrowdError(f"{path}: cannot be read: {error.strerror or error}") from None
    if begin != NAMES_HEAD:
        raise HpcrowdError(
            f"{path}: exists and is not a table of names, which would overwrite it; move it away, "
            "name another OUT, or replace it with --force"
        )
    return path


def refuse(trace: Trace, lost: Losses, kind: Format) -> None:
    """Raise the first reason not to write the trace, if there is one."""
    found = [f"{trace.source}: {line}" for line in counted(trace.repaired, trace.dropped)]
    found += [f"{trace.source}: {kind.name} cannot hold {line}" for line in lost.lines()]
    if found:
        raise HpcrowdError(f"{found[0]}; leave out --strict to accept that")


def reading_lines(trace: Trace) -> list[str]:
    """Return what reading a trace dropped, repaired, did not read and guessed, one line each."""
    return [*counted(trace.repaired, trace.dropped), *not_read(trace.not_read), *trace.doubts]


def show_reading(console: Console, trace: Trace) -> None:
    """Print what reading a trace dropped, repaired and did not read, indented."""
    for line in reading_lines(trace):
        console.print(f"  {line}", soft_wrap=True)


def names_beside(target: Path) -> Path:
    """Return the file that keeps the names of a trace: ``jobs.names.csv`` for ``jobs.swf.gz``."""
    name = target.name.removesuffix(".gz")
    for one in FORMATS.values():
        for suffix in one.suffixes:
            if name.endswith(suffix):
                return target.with_name(f"{name.removesuffix(suffix)}.names.csv")
    return target.with_name(f"{name}.names.csv")
