"""What the commands that keep pages on studies up to date share.

Each is run as ``python -m scenarios.NAME TRACES PAGE``, some with a third word for a folder of
pictures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from environment.errors import HpcrowdError


def stored_runs_command(
    name: str,
    store: Callable[[Path], None],
    refresh: Callable[[], None],
    arguments: Sequence[str] | None,
) -> int:
    """Store the runs of a study if they are given, refresh its page, and return the exit code.

    Parameters
    ----------
    name
        Name of the module that is run.
    store
        Called with the file of the runs.
    refresh
        Makes what is generated of the page, from what is stored.
    arguments
        Those after the name; None takes those of the command line.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) > 1:
        print(f"usage: python -m scenarios.{name} [RUNS]", file=sys.stderr)
        return 2
    for results in arguments:
        store(Path(results))
    refresh()
    return 0


def refresh_command(
    name: str,
    refresh: Callable[..., None],
    arguments: Sequence[str] | None,
    *,
    pictures: bool = False,
) -> int:
    """Read the arguments, refresh a page, and return the exit code.

    Parameters
    ----------
    name
        Name of the module that is run.
    refresh
        Called with the folder of traces, the page and, where one is given, the folder of pictures.
    arguments
        Those after the name; None takes those of the command line.
    pictures
        Whether a folder of pictures may be given.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if not 2 <= len(arguments) <= 2 + pictures:
        folder = " [FOLDER]" if pictures else ""
        print(f"usage: python -m scenarios.{name} TRACES PAGE{folder}", file=sys.stderr)
        return 2
    try:
        refresh(*map(Path, arguments))
    except HpcrowdError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    return 0
