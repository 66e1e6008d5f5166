"""The published studies, found by folder, and the commands ``hpcrowd reproduce STUDY``.

A study is a folder with ``study.py`` and in it a function, called ``reproduce_`` and the folder's
name, that runs the study and returns it. Its parameters declare the options of the command, see
:mod:`hpcrowd.scenarios.studies.options`; the class that it returns, see
:class:`~hpcrowd.scenarios.studies.study.PublishedStudy`, declares all the rest. Where the command
takes other options than the function, ``study.py`` has a function ``command`` for it, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.commands.options import AsJson
from hpcrowd.scenarios.studies.options import arguments_of, options_of
from hpcrowd.scenarios.studies.running import run_study

#: Where the folders of the studies are.
FOLDER = Path(__file__).parent

#: Exit code of a study that did not reach a published figure.
NOT_REACHED = 1


class Entry(NamedTuple):
    """A study of the registry.

    Attributes
    ----------
    run
        Its function.
    study
        The class that this returns.
    """

    run: Callable[..., Any]
    study: Any


def study_names() -> list[str]:
    """Return the names of the studies in alphabetical order."""
    return sorted(path.parent.name.replace("_", "-") for path in FOLDER.glob("*/study.py"))


def study_entry(name: str) -> Entry:
    """Return a study by name.

    Raises
    ------
    QuantityError
        When there is no such study.
    """
    if name not in study_names():
        raise QuantityError(f"study {name!r}: not known; choose {', '.join(study_names())}")
    folder = name.replace("-", "_")
    module = import_module(f"{__package__}.{folder}.study")
    run = getattr(module, "command", None) or getattr(module, f"reproduce_{folder}")
    return Entry(run, get_type_hints(run)["return"])


def command_of(name: str) -> Callable[..., None]:
    """Return the function behind a study's command, with its options as Typer takes them."""
    run, study = study_entry(name)
    options = options_of(run)
    taken = inspect.signature(run).parameters

    def command(*, out: Path | None, as_json: bool, **given: Any) -> None:
        arguments = arguments_of(run, options, given)
        if "out" in taken:  # where a study keeps what is done until all is
            arguments["out"] = out

        def reproduce(progress: Any) -> Any:
            return run(progress=progress, **arguments)

        if not run_study(reproduce, out=out, as_json=as_json):
            raise typer.Exit(NOT_REACHED)

    words = "Folder for tables and pictures"
    words += "; a run that was ended goes on from it." if "out" in taken else "."
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
