"""The command ``hpcrowd inspect``: a page that shows users, until it is interrupted."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path

from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.terminal import say, say_if_compiling

#: Runs that a page shows side by side.
MOST = 2


def inspect_command(
    paths: Sequence[Path], *, host: str, port: int | None, browser: bool = False
) -> None:
    """Serve the page.

    Parameters
    ----------
    paths
        What is inspected: traces, TOML files of scenarios, folders of results; one or two.
    host, port
        Where to listen; see :func:`hpcrowd.scenarios.inspector.server.bound_socket`.
    browser
        Open the page in a browser of this machine.

    Raises
    ------
    HpcrowdError
        When something cannot be inspected, or nobody can listen there.
    """
    if len(paths) > MOST:
        raise QuantityError(f"{len(paths)} runs: a page shows {MOST} at most; give one or two")
    from hpcrowd.scenarios.inspector.server import bound_socket, check_installed, is_loopback, serve

    check_installed()
    from hpcrowd.scenarios.inspector.subject import subject_of

    say_if_compiling()
    subjects = [subject_of(path) for path in paths]
    listening = bound_socket(host, port)
    number = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{number}/"

    def ready() -> None:
        say(f"The page is at {address}  (Ctrl-C ends it)")
        if browser:
            webbrowser.open(address)

    if not is_loopback(host):
        say(
            f"Listening on {host}: whoever reaches this machine can open the page, without a "
            "password; leave out --host to keep it to yourself"
        )
    try:
        serve(subjects, listening, ready)
    except KeyboardInterrupt:
        say("The page is closed.")  # the way it ends
