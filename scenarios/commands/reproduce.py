"""Run a published study again and compare.

The commands are ``hpcrowd reproduce STUDY``, one for each published study. The studies declare
their options themselves; a study is loaded when its command is asked for.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import typer
from typer.core import TyperGroup


@cache
def study_command(name: str) -> Any:
    """Return the command of a study."""
    from hpcrowd.scenarios.studies.registry import command_of

    app = typer.Typer(add_completion=False)
    app.command(name=name)(command_of(name))
    return typer.main.get_command(app)


class Studies(TyperGroup):
    """The group of these commands, which finds the studies by their folders."""

    @property  # type: ignore[override]
    def commands(self) -> dict[str, Any]:
        """All commands by name."""
        return {name: study_command(name) for name in self.list_commands(None)}

    @commands.setter
    def commands(self, value: Any) -> None:
        """There is nothing to set: the folders decide."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the studies."""
        from hpcrowd.scenarios.studies.registry import study_names

        return study_names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a study; None where there is no such study."""
        return study_command(cmd_name) if cmd_name in self.list_commands(ctx) else None


command = typer.Typer(
    cls=Studies, help="Run a published study again and compare.", no_args_is_help=True
)


@command.callback()
def _reproduce() -> None:
    """Run a published study again and compare."""
