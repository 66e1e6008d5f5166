"""The command ``hpcrowd fetch``. It loads what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcrowd.scenarios.commands.options import AsJson

fetch_app = typer.Typer()


@fetch_app.command()
def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Logs, or how their names begin: KTH. Without one, the logs are listed.",
            show_default=False,
        ),
    ] = None,
    list_all: Annotated[
        bool, typer.Option("--list", help="List the logs that can be fetched, and end.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Folder to keep them in; HPCROWD_CACHE, or hpcrowd/traces among the user's "
            "caches, unless given.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[str, typer.Option(help="Longest time without a byte.")] = "30s",
    as_json: AsJson = False,
) -> None:
    """Fetch logs of the Parallel Workloads Archive, check them, and tell whom to acknowledge.

    What is there already is not fetched again; what broke off goes on. The address of a mirror can
    stand in HPCROWD_ARCHIVE. Python: environment.fetch.

    \b
    hpcrowd fetch --list
    hpcrowd fetch KTH-SP2-1996-2.1-cln
    hpcrowd fetch KTH NASA --folder traces
    """
    from hpcrowd.scenarios.commands.fetch import fetch_command, list_command

    if list_all or not names:
        list_command(names or [], folder=folder, as_json=as_json)
        return
    from hpcrowd.environment.quantities import parse_duration

    fetch_command(names, folder=folder, timeout_s=parse_duration(timeout), as_json=as_json)
