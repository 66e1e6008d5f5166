"""The command ``hpcrowd inspect``: a page that shows users, until it is interrupted."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.commands.options import Reading, all_at_hand, reads_traces
from hpcrowd.scenarios.terminal import say, status

if TYPE_CHECKING:
    from hpcrowd.scenarios.inspector.subjects.subject import Subject

#: Runs that a page shows side by side.
MOST = 2


What = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRACE|SCENARIO.toml|RUN...",
        help="A trace, a scenario, or a folder of results; two to see them side by side.",
        callback=all_at_hand,
    ),
]

Host = Annotated[
    str, typer.Option(help="Address to listen on; any but the default lets other machines in.")
]


@reads_traces
def command(
    what: What,
    how: Reading,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port of the page: 8765 if it is free; 0 for any free one."
        ),
    ] = None,
    host: Host = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Watch users while they work, in a web page.

    \b
    hpcrowd inspect log.swf.gz
    hpcrowd inspect upgrade.toml --port 8000
    hpcrowd inspect runs/rigid runs/think-time
    """
    if len(what) > MOST:
        raise QuantityError(f"{len(what)} runs: a page shows {MOST} at most; give one or two")
    from hpcrowd.scenarios.inspector.service.server import (
        bound_socket,
        check_installed,
        is_loopback,
        serve,
    )

    check_installed()
    subjects = [_subject(path, how) for path in what]
    from hpcrowd.scenarios.inspector.processes.runs import Runs
    from hpcrowd.scenarios.inspector.processes.worker import start_keeper
    from hpcrowd.scenarios.inspector.service.guard import kept_token, new_token

    listening = bound_socket(host, port)
    runs = Runs(what)
    start_keeper(subjects, runs.path, (listening, runs.socket))
    number = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{number}/"

    # A server that is started again at the same port is found by the pages that are open.
    token = new_token() if port == 0 else kept_token(number)

    def ready() -> None:
        complete = f"{address}?token={token}"
        status.end()  # it waits for visitors from now on
        say(f"The page is at {complete}  (Ctrl-C ends it)")
        if browser:
            webbrowser.open(complete)

    if not is_loopback(host):
        say(
            f"Listening on {host}: whoever has the address below can open the page from other "
            "machines, and the connection is not encrypted; leave out --host to allow only this "
            "machine"
        )
    with suppress(KeyboardInterrupt):  # the usual end
        serve([subject.name for subject in subjects], runs, listening, token, ready)
    say("The page is closed.")


def _subject(path: Path, how: dict[str, Any]) -> Subject:
    """Return what a page shows of a trace, a scenario or results."""
    say(f"Reading {path.name} ...")
    # Loading this takes longer than reading most traces.
    from hpcrowd.scenarios.inspector.subjects.subject import subject_of

    return subject_of(path, how)
