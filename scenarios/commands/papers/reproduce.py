"""Reproduce a published study and compare the figures.

The commands are ``hpcrowd reproduce STUDY``, one for each published study. The studies declare
their own options; a study is loaded when its command is used.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from hpcrowd.scenarios.cli import LazyGroup
from hpcrowd.scenarios.commands.options import AsJson
from hpcrowd.scenarios.outputs import with_force
from hpcrowd.scenarios.studies.options import (
    arguments_of,
    options_of,
    study_about,
    study_entry,
    study_names,
)

#: Exit code of a study that did not reach a published figure.
NOT_REACHED = 1


@cache
def study_command(name: str) -> Any:
    """Return the command of a study."""
    app = typer.Typer(add_completion=False)
    app.command(name=name)(with_force(command_of(name), name))
    return typer.main.get_command(app)


class StudyCommands(Mapping[str, Any]):
    """The commands by the names of the studies; each is imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        if name not in study_names():
            raise KeyError(name)
        return study_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(study_names())

    def __len__(self) -> int:
        return len(study_names())

    def listed(self) -> dict[str, Any]:
        """Return a command without options for each, with its help; nothing is imported."""
        return {name: TyperCommand(name, help=study_about(name)) for name in self}


class Studies(LazyGroup):
    """The group of these commands."""

    files = StudyCommands


def command_of(name: str) -> Callable[..., None]:
    """Return the function behind a study's command, with its options as Typer takes them."""
    run, study = study_entry(name)
    options = options_of(run)
    taken = inspect.signature(run).parameters

    def command(*, out: Path | None, as_json: bool, **given: Any) -> None:
        from hpcrowd.scenarios.studies.running import run_study

        arguments = arguments_of(options, given)
        if "out" in taken:  # the study keeps unfinished results next to it
            arguments["out"] = out

        def reproduce(progress: Any) -> Any:
            return run(progress=progress, **arguments)

        if not run_study(reproduce, out=out, as_json=as_json):
            raise typer.Exit(NOT_REACHED)

    words = "Folder for tables and pictures"
    words += "; an interrupted run continues from there." if "out" in taken else "."
    shared = (("out", Annotated[Path | None, typer.Option(help=words)], None),
              ("as_json", AsJson, False))  # fmt: skip
    parameters = [one.declared() for one in options]
    for option, annotation, default in shared:
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(option, kind, default=default, annotation=annotation))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__doc__ = study.about
    return command


command = typer.Typer(
    cls=Studies, help="Reproduce a published study and compare the figures.", no_args_is_help=True
)


@command.callback()
def _reproduce() -> None:
    """Reproduce a published study and compare the figures."""
