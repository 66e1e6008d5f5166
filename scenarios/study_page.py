"""What the commands that keep pages on studies up to date share.

Each is run as ``python -m scenarios.NAME TRACES PAGE``, some with a third word for a folder of
pictures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from environment.errors import HpcrowdError


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
