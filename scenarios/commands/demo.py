"""The command ``hpcrowd demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcrowd.scenarios.commands.options import (
    AsJson,
)


def command(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("hpcrowd-demo"),
    days: Annotated[int, typer.Option(min=1, help="Days that the users work.")] = 28,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Let a small built-in population work for a month, with and without feedback."""
    from hpcrowd.scenarios.demo import demo_command

    demo_command(out, days=days, seed=seed, as_json=as_json)
