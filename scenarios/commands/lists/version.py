"""The command ``hpcrowd version``."""

from __future__ import annotations

import typer

from hpcrowd import __version__


def command() -> None:
    """Print the version."""
    typer.echo(f"hpcrowd {__version__}")
