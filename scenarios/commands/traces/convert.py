"""The command ``hpcrowd convert``: one trace from one format into another."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.header import Header, without_found_size
from hpcrowd.environment.limits.inputs import Unreadable, check_readable, read_all
from hpcrowd.environment.limits.numbers import MOST_PROCESSORS
from hpcrowd.environment.output.guard import is_stream
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.common.base import Format, FormatOptions
from hpcrowd.environment.traces.formats.common.names import anonymised, parse_names
from hpcrowd.environment.traces.formats.registry import (
    FORMATS,
    RUN_TRACE,
    find_format,
    format_by_name,
    map_titles,
    parse_format,
    read_trace,
)
from hpcrowd.environment.traces.formats.tables.text import listed
from hpcrowd.environment.traces.headers import with_values
from hpcrowd.environment.traces.trace import Trace, assumed
from hpcrowd.scenarios.commands.options import AsJson, Reading, at_hand, reads_traces
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.outputs import STANDARD, check_writable
from hpcrowd.scenarios.terminal import plain_table, print_json, progress_bar, say, standard_output
from hpcrowd.scenarios.trace_files import Kept, keep_trace, names_beside, reading_lines

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="IN", help="Trace, folder of results, or - for standard input.", show_default=False
    ),
]

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="OUT", help="File, or - for standard output; .gz compresses.", show_default=False
    ),
]

Salt = Annotated[
    str | None,
    typer.Option(
        envvar="HPCROWD_SALT",
        help="Secret behind the pseudonyms; the same salt gives the same pseudonyms.",
    ),
]

Strict = Annotated[
    bool, typer.Option("--strict", help="Fail instead of repairing, dropping or losing anything.")
]

ListAll = Annotated[bool, typer.Option("--list", help="List the formats and maps, and exit.")]


@reads_traces
def command(
    context: typer.Context,
    source: Source = None,
    target: Target = None,
    *,
    how: Reading,
    output_format: Annotated[
        str | None, typer.Option(help="Format of OUT; decided by its name unless given.")
    ] = None,
    processors: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_PROCESSORS, help="Size of the machine, for the header."),
    ] = None,
    salt: Salt = None,
    strict: Strict = False,
    list_all: ListAll = False,
    as_json: AsJson = False,
) -> None:
    """Convert a trace to another format, and report what that format cannot hold.

    Users, groups and queues become numbers where a format has no names; OUT.names.csv keeps them.

    \b
    sacct -aDP -S 2024-01-01 --format=ALL | hpcrowd convert - jobs.swf.gz --zone Europe/Paris
    hpcrowd convert jobs.swf.gz jobs.json --output-format batsim
    hpcrowd convert runs/fluid jobs.csv --output-format batsim-jobs
    hpcrowd convert mine.csv jobs.swf.gz --map mine.toml
    hpcrowd convert job_table.parquet jobs.swf.gz --map pm100
    """

    if list_all:
        _list_formats(as_json=as_json)
        return
    if source is None or target is None:
        raise HpcrowdError("convert: needs IN and OUT; `hpcrowd convert --list` shows the formats")
    if as_json and target == STANDARD:
        raise HpcrowdError("--json: standard output is used for OUT; name a file")
    anonymise = how.pop("anonymise", False)  # here by pseudonyms
    options = reading_options(**how, strict=strict)
    kind = _target_format(target, output_format)
    if target != STANDARD:
        check_writable(Path(target), "OUT")
    mapped = options.mapping is not None and kind.name != "table"
    trace, from_kind = _read(source, how.get("input_format"), options, mapped=mapped)
    if processors is not None:
        trace.header = _with_processors(trace.header, processors)
    left_out: list[str] = []
    # A salt that is only in the environment does not request pseudonyms.
    salted = getattr(context.get_parameter_source("salt"), "name", "") == "COMMANDLINE"
    if anonymise or salted:
        texts = trace.extra
        trace = anonymised(trace, salt or secrets.token_hex(16))
        left_out = [name for name in texts if name not in trace.extra]
    with _shown(f"writing {target}", 1):
        kept = keep_trace(trace, target, kind, options, strict=strict)
    wire = _wire(trace, from_kind, kind, target, kept) | {"left_out": left_out}
    if as_json:
        print_json(wire)
    else:
        _tell(trace, wire, kept)


def _list_formats(*, as_json: bool) -> None:
    """Print the known formats, and the maps that come with hpcrowd."""
    maps = map_titles()
    if as_json:
        found: dict[str, Any] = {
            one.name: {"title": one.title, "suffixes": one.suffixes} for one in FORMATS.values()
        }
        found["table"]["maps"] = maps
        print_json(found)
        return
    console = standard_output()
    rows = [(one.name, one.title, ", ".join(one.suffixes)) for one in FORMATS.values()]
    console.print(plain_table("format", "what it is", "names end in", rows=rows, words=3))
    console.print()
    console.print(plain_table("--map", "what it reads", rows=maps.items(), words=2))


@contextmanager
def _shown(step: str, done: int) -> Iterator[None]:
    """Show one of the two steps on a terminal: millions of jobs take a minute."""
    with progress_bar() as progress:
        progress(step, done, 2)
        yield


def _target_format(target: str, name: str | None) -> Format:
    if name is not None:
        return parse_format(name)
    found = None if target == STANDARD else format_by_name(target)
    if found is None:
        raise HpcrowdError(
            f"{target}: unknown format; give --output-format with one of {', '.join(FORMATS)}"
        )
    return found


def _source_format(path: Path, name: str | None, *, mapped: bool) -> Format:
    if name is not None:
        return parse_format(name)
    return parse_format("table") if mapped else find_format(path)


@contextmanager
def _source(source: str) -> Iterator[Path]:
    """Yield the file to read: the trace of a run, or a copy of what comes through a pipe."""
    if source != STANDARD:
        path = at_hand([Path(source)])[0]
        if path.is_dir():
            if not (path / RUN_TRACE).is_file():
                raise HpcrowdError(f"{path}: no {RUN_TRACE} in it; it is not a folder of results")
            path /= RUN_TRACE
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard input"
        try:
            if sys.stdin is None:
                raise Unreadable("is closed")
            if sys.stdin.isatty():
                raise Unreadable("is a terminal; pipe a trace into it")
            check_readable(os.fstat(sys.stdin.fileno()).st_mode)
            path.write_bytes(read_all(sys.stdin.buffer))
        except OSError as error:
            reason = error.strerror or error
            raise HpcrowdError(f"-: standard input cannot be read: {reason}") from None
        yield path


def _read(
    source: str, name: str | None, options: FormatOptions, *, mapped: bool
) -> tuple[Trace, Format]:
    """Return the trace of a source, and its format."""
    with _source(source) as path:
        try:
            kind = _source_format(path, name, mapped=mapped)
            with _shown(f"reading {source}", 0):
                trace = read_trace(path, kind, options)
        except HpcrowdError as error:  # name the pipe, not its copy
            raise HpcrowdError(str(error).replace(str(path), source)) from None
    if path != Path(source):
        trace.source = source
        if (names := names_beside(path)).is_file():
            trace.names = parse_names(names.read_text(encoding="utf-8"), str(names))
    return trace, kind


def _with_processors(header: Header, processors: int) -> Header:
    """Return a header with another size of the machine."""
    lines = with_values(without_found_size(header), {"MaxProcs": str(processors)}).lines
    told = header.get("MaxProcs") is not None
    return Header(lines if told else [*lines, f"; MaxProcs: {processors}".encode()])


def _wire(
    trace: Trace, from_format: Format, to_format: Format, target: str, kept: Kept
) -> dict[str, Any]:
    return {
        "source": trace.source,
        "from": from_format.name,
        "target": target,
        "to": to_format.name,
        "jobs": len(trace),
        "dropped": dict(trace.dropped),
        "repaired": dict(trace.repaired),
        "not_read": list(trace.not_read),
        "lost": [
            {"field": field, "reason": reason, "count": count}
            for (field, reason), count in kept.lost.counts.items()
        ],
        "names": None if kept.names is None else str(kept.names),
        "named": kept.named,
    }


def _tell(trace: Trace, wire: dict[str, Any], kept: Kept) -> None:
    """Print what was done, on standard error if standard output is the trace."""
    piped = wire["target"] == STANDARD or is_stream(wire["target"])
    tell = say if piped else print
    tell(f"{wire['source']} ({wire['from']}): {plural(wire['jobs'], 'job')}")
    for line in (*reading_lines(trace), *assumed(trace.size.note)):
        tell(f"  {line}")
    if wire["left_out"]:
        tell(f"  left out, as they may identify people: {listed(wire['left_out'])}")
    target = "standard output" if wire["target"] == STANDARD else wire["target"]
    some = kept.lost or trace.dropped or trace.not_read or wire["left_out"]
    tell(f"{target} ({wire['to']}): {'written' if some else 'nothing is lost'}")
    for line in kept.lines():
        tell(line)
