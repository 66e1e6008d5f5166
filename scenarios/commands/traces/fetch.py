"""The command ``hpcrowd fetch``: download logs of the archive, and show whom to acknowledge."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcrowd.environment.errors import ArchiveError, QuantityError
from hpcrowd.environment.header import Header
from hpcrowd.environment.quantities import parse_duration
from hpcrowd.environment.traces.archive.logs import (
    ArchiveLog,
    archive_logs,
    cache_folder,
    fetch,
    find_log,
    stored,
)
from hpcrowd.environment.traces.formats.swf import read_swf
from hpcrowd.scenarios.commands.options import AsJson
from hpcrowd.scenarios.terminal import plain_table, print_json, progress_bar, say, standard_output
from hpcrowd.scenarios.unfinished import Interrupted

#: Keys of a header on the owners of a log and the conditions of its use.
TOLD = ("Computer", "Installation", "Acknowledge", "Copyright", "Conversion", "Information")

#: What the archive asks of those who use its logs.
REQUEST = (
    "The Parallel Workloads Archive asks to be acknowledged in publications, together with the "
    "people who provided the log."
)


Folder = Annotated[
    Path | None,
    typer.Option(
        help="Folder to keep them in; HPCROWD_CACHE, or hpcrowd/traces among the user's "
        "caches, unless given.",
        show_default=False,
    ),
]


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Names of logs, or how they begin, such as KTH. Lists all logs unless given.",
            show_default=False,
        ),
    ] = None,
    list_all: Annotated[
        bool, typer.Option("--list", help="List the logs that can be downloaded, and exit.")
    ] = False,
    folder: Folder = None,
    timeout: Annotated[str, typer.Option(help="Longest time without receiving data.")] = "30s",
    as_json: AsJson = False,
) -> None:
    """Download logs of the Parallel Workloads Archive, and check them.

    Logs that are here already are not downloaded again, and interrupted downloads are resumed.
    HPCROWD_ARCHIVE may hold the address of a mirror. In Python: hc.fetch.

    \b
    hpcrowd fetch --list
    hpcrowd fetch KTH-SP2-1996-2.1-cln
    hpcrowd fetch KTH NASA --folder traces
    """
    place = cache_folder() if folder is None else folder
    if list_all or not names:
        _list(names or [], place, as_json=as_json)
        return
    timeout_s = parse_duration(timeout, "--timeout")
    if timeout_s < 1:
        raise QuantityError(f"timeout {timeout_s} s: must be 1 s or more, for example 30s")
    logs = list(dict.fromkeys(find_log(name) for name in names))  # each once, and all known
    rows = []
    for log in logs:
        before = state(log, place)
        try:
            with progress_bar() as progress:
                path = fetch(log.name, folder=place, timeout_s=timeout_s, progress=progress)
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted: the received part of {log.name} is kept; the same command resumes "
                "the download"
            ) from None
        header = read_swf(path).header
        if as_json:
            told = {key: values for key in TOLD if (values := values_of(header, key))}
            row: dict[str, Any] = {"name": log.name, "path": str(path), "fetched": before != "yes"}
            rows.append(row | {"header": told})
            continue
        if before == "damaged":
            say(f"The file of {log.name} was damaged and has been replaced.")
        show(log, path, header, "already here" if before == "yes" else "fetched and checked")
    if as_json:
        print_json({"folder": str(place), "logs": rows, "request": REQUEST})
        return
    standard_output().print(REQUEST)


def _list(names: list[str], folder: Path, *, as_json: bool) -> None:
    """Print the logs of some names, or all, and whether each is in the folder."""
    logs = [find_log(name) for name in names] or archive_logs()
    states = {log.name: state(log, folder) for log in logs}
    if as_json:
        rows = [asdict(log) | {"address": log.address, "state": states[log.name]} for log in logs]
        print_json({"folder": str(folder), "logs": rows})
        return
    table = plain_table("name", "machine", "jobs", "processors", "size", "here", words=2, whole=1)
    table.columns[-1].justify = "left"  # words, not numbers
    for log in logs:
        size = f"{log.bytes / 1e6:.1f} MB"
        table.add_row(
            log.name, log.machine, f"{log.jobs:,}", f"{log.processors:,}", size, states[log.name]
        )
    console = standard_output()
    console.print(table)
    console.print(f"\nThe folder is {folder}; `hpcrowd fetch NAME` fetches NAME.", soft_wrap=True)


def state(log: ArchiveLog, folder: Path) -> str:
    """Return in a word whether a log is in a folder: yes, no, part or damaged."""
    try:
        found = stored(log, folder)
    except ArchiveError:
        return "damaged"
    if found is None:
        return "part" if (folder / f"{log.file}.part").exists() else "no"
    return "yes"


def values_of(header: Header, key: str) -> list[str]:
    """Return all values of a key in a header; of ``Information``, the lines with an address."""
    values = [value for found, value in header.entries() if found.lower() == key.lower()]
    if key == "Information":
        values = [line.strip() for value in values for line in value.splitlines() if "://" in line]
    return [value for value in values if value]


def show(log: ArchiveLog, path: Path, header: Header, how: str) -> None:
    """Print where a log is, and whom to acknowledge according to its header."""
    console = standard_output()
    console.print(f"{path}: {how}", soft_wrap=True)
    console.print(f"  {log.jobs:,} jobs, {log.processors:,} processors")
    for key in TOLD:
        for value in values_of(header, key):
            first, *more = value.splitlines()
            console.print(f"  {key}: {first}", soft_wrap=True)
            for line in more:
                console.print(f"  {'':{len(key) + 1}} {line}", soft_wrap=True)
    console.print()
