"""The command ``hpcrowd version``."""

from __future__ import annotations

import typer


def command() -> None:
    """Print the version."""
    from hpcrowd import __version__

    typer.echo(f"hpcrowd {__version__}")
