"""The command ``hpcrowd convert``: one trace from one format into another."""

from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from environment.errors import HpcrowdError
from environment.formats.base import Format, FormatOptions, Losses
from environment.formats.files import write_file
from environment.formats.names import anonymised, names_table
from environment.formats.registry import (
    FORMATS,
    find_format,
    format_by_name,
    parse_format,
    read_trace,
)
from environment.quantities import plural
from environment.trace import Header, Trace
from scenarios.cli_words import at_hand
from scenarios.terminal import print_json, say, standard_output
from scenarios.whole_file import check_writable, write_whole

#: What stands for standard input and output.
STANDARD = "-"

#: Identifiers of jobs in the log that a trace was made from, a column of ``Trace.extra``.
JOB_ID = "job_id"

#: The run as a trace, in a folder of results.
RUN_TRACE = "trace.swf.gz"


@dataclass(frozen=True)
class ConvertRequest:
    """What is asked for on the command line; see ``hpcrowd convert --help``."""

    source: str | None
    target: str | None
    from_format: str | None = None
    to_format: str | None = None
    mapping: Path | None = None
    zone: str | None = None
    queue: Literal["partition", "qos"] = "partition"
    processors: int | None = None
    anonymise: bool = False
    salt: str | None = None
    strict: bool = False


def list_formats(*, as_json: bool) -> None:
    """Print the formats that there are."""
    if as_json:
        print_json({one.name: {"title": one.title, "suffixes": one.suffixes}
                    for one in FORMATS.values()})  # fmt: skip
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("format", "what it is", "names end in"):
        table.add_column(column)
    for one in FORMATS.values():
        table.add_row(one.name, one.title, ", ".join(one.suffixes))
    standard_output(markup=False).print(table)


def convert_command(request: ConvertRequest, *, as_json: bool) -> None:
    """Read, write, and tell what was repaired, dropped and lost.

    Raises
    ------
    HpcrowdError
        When something is wrong with the request or the trace; nothing is written then.
    """
    if request.source is None or request.target is None:
        raise HpcrowdError("convert: needs IN and OUT; `hpcrowd convert --list` shows the formats")
    if as_json and request.target == STANDARD:
        raise HpcrowdError("--json: standard output is OUT already; name a file")
    options = _options(request)
    to_format = _target_format(request)
    if request.target != STANDARD:
        check_writable(Path(request.target), "OUT")
    with _source(request.source) as path:
        from_format = _source_format(request, path, to_format)
        trace = read_trace(path, from_format, options)
    if path != Path(request.source):
        trace.source = request.source
    if request.processors is not None:
        trace.header = _with_processors(trace.header, request.processors)
    if request.anonymise:
        trace = anonymised(trace, request.salt or secrets.token_hex(16))
    lost = Losses()
    data = to_format.generate(trace, lost, options)
    if _keeps_names(trace, request, to_format):
        for key in [key for key in lost.counts if key[0] == JOB_ID]:
            del lost.counts[key]  # it stands beside the trace
    if request.strict:
        _refuse(trace, lost, to_format)
    names = _write(trace, data, request, to_format)
    wire = _wire(trace, from_format, to_format, request.target, lost, names)
    if as_json:
        print_json(wire)
    else:
        _tell(wire)


def _options(request: ConvertRequest) -> FormatOptions:
    mapping = None
    if request.mapping is not None:
        from environment.formats.mapping import read_mapping

        mapping = read_mapping(request.mapping)
    from environment.formats.headers import parse_zone

    parse_zone(request.zone)
    return FormatOptions(zone=request.zone, queue=request.queue, mapping=mapping)


def _target_format(request: ConvertRequest) -> Format:
    if request.to_format is not None:
        return parse_format(request.to_format)
    found = None if request.target == STANDARD else format_by_name(request.target or "")
    if found is None:
        raise HpcrowdError(
            f"{request.target}: the name tells no format; say --to with one of {', '.join(FORMATS)}"
        )
    return found


def _source_format(request: ConvertRequest, path: Path, to_format: Format) -> Format:
    if request.from_format is not None:
        return parse_format(request.from_format)
    if request.mapping is not None and to_format.name != "table":
        return parse_format("table")
    return find_format(path)


@contextmanager
def _source(source: str) -> Iterator[Path]:
    """Give the file to read: the trace of a run, or what standard input holds."""
    if source != STANDARD:
        path = at_hand([Path(source)])[0]
        if path.is_dir():
            if not (path / RUN_TRACE).is_file():
                raise HpcrowdError(f"{path}: no {RUN_TRACE} in it; it is no folder of results")
            path /= RUN_TRACE
        yield path
        return
    if sys.stdin.isatty():
        raise HpcrowdError("-: standard input is a terminal; pipe a trace into it")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard input"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def _with_processors(header: Header, processors: int) -> Header:
    """Return a header with another size of the machine."""
    line = f"; MaxProcs: {processors}".encode()
    lines = [line if raw.lower().lstrip(b"; \t").startswith(b"maxprocs:") else raw
             for raw in header.lines]  # fmt: skip
    return Header(lines if line in lines else [*lines, line])


def _refuse(trace: Trace, lost: Losses, to_format: Format) -> None:
    """Raise the first reason why nothing may be written."""
    for what, reasons in (("dropped", trace.dropped), ("repaired", trace.repaired)):
        for reason, count in reasons.items():
            raise HpcrowdError(
                f"{trace.source}: {plural(count, 'job')} {what}: {reason}; leave out --strict to "
                "accept that"
            )
    for line in lost.lines():
        raise HpcrowdError(
            f"{trace.source}: {to_format.name} cannot hold {line}; leave out --strict to accept"
        )


def _keeps_names(trace: Trace, request: ConvertRequest, to_format: Format) -> bool:
    """Return whether names, or identifiers of jobs, are written beside the trace."""
    if to_format.holds_names or request.target == STANDARD:
        return False
    return any(trace.names.values()) or JOB_ID in trace.extra


def _write(trace: Trace, data: bytes, request: ConvertRequest, to_format: Format) -> str | None:
    """Write the trace, and beside it what numbers stand for; return the name of that file."""
    if request.target == STANDARD:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return None
    target = Path(request.target or "")
    write_file(data, target)
    if not _keeps_names(trace, request, to_format):
        return None
    beside = names_beside(target)
    write_whole(beside, names_table(trace))
    return str(beside)


def names_beside(target: Path) -> Path:
    """Return the file that keeps the names of a trace: ``jobs.names.csv`` for ``jobs.swf.gz``."""
    name = target.name.removesuffix(".gz")
    for one in FORMATS.values():
        for suffix in one.suffixes:
            if name.endswith(suffix):
                return target.with_name(f"{name.removesuffix(suffix)}.names.csv")
    return target.with_name(f"{name}.names.csv")


def _wire(
    trace: Trace,
    from_format: Format,
    to_format: Format,
    target: str,
    lost: Losses,
    names: str | None,
) -> dict[str, Any]:
    return {
        "source": trace.source,
        "from": from_format.name,
        "target": target,
        "to": to_format.name,
        "jobs": len(trace),
        "dropped": dict(trace.dropped),
        "repaired": dict(trace.repaired),
        "lost": [
            {"field": field, "reason": reason, "count": count}
            for (field, reason), count in lost.counts.items()
        ],
        "lost_lines": lost.lines(),
        "names": names,
        "named": {field: len(told) for field, told in trace.names.items() if told}
        | ({"job": len(trace)} if JOB_ID in trace.extra else {}),
    }


def _tell(wire: dict[str, Any]) -> None:
    """Tell people what was done; on standard error where standard output is the trace."""
    piped = wire["target"] == STANDARD
    tell = say if piped else print
    tell(f"{wire['source']} ({wire['from']}): {plural(wire['jobs'], 'job')}")
    for what in ("dropped", "repaired"):
        for reason, count in wire[what].items():
            tell(f"  {plural(count, 'job')} {what}: {reason}")
    target = "standard output" if piped else wire["target"]
    tell(f"{target} ({wire['to']}): {'lost:' if wire['lost'] else 'nothing is lost'}")
    for line in wire["lost_lines"]:
        tell(f"  {line}")
    if wire["names"] is not None:
        named = ", ".join(plural(count, field) for field, count in wire["named"].items())
        tell(f"{wire['names']}: names of {named}")
