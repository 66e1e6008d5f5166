"""The command ``hpcrowd inspect``. It loads what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcrowd.scenarios.commands.options import all_at_hand

inspect_app = typer.Typer()


@inspect_app.command()
def inspect(
    what: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRACE|SCENARIO.toml|RUN...",
            help="A trace, a scenario, or a folder of results; two to see them side by side.",
            callback=all_at_hand,
        ),
    ],
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Where the page listens: 8765 if it is free; 0 for any."
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; any but the default lets other machines in."),
    ] = "127.0.0.1",
    browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser of this machine.")
    ] = False,
) -> None:
    """Look at users while they work, in a web page.

    \b
    hpcrowd inspect log.swf.gz
    hpcrowd inspect upgrade.toml --port 8000
    hpcrowd inspect runs/rigid runs/think-time
    """
    from hpcrowd.scenarios.commands.inspect import inspect_command

    inspect_command(what, host=host, port=port, browser=browser)
