"""Commands and the code that files name: who runs something, who only looks, and ``--trust``.

See :mod:`hpcrowd.environment.registry` for the rule. A command is given its trust here, from
its name and what was typed; one that is not named below loads nothing that a file names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcrowd.environment.registry import Trust, place_of, trusting
from hpcrowd.scenarios.outputs import with_flag

#: Commands that simulate what files describe: they load code from the folders of these files.
RUNS = (
    "replay", "resample", "populate", "grid", "forecast", "run", "sweep", "calibrate",
    "validate", "events",
)  # fmt: skip

#: Commands with ``--trust``.
ASKS = (*RUNS, "inspect")

#: Options with which a command runs nothing.
LOOKS = ("show", "status", "methods")

#: Characters between the names in a text such as ``scheduler=FILE.py:CLASS`` or ``a.toml,b.toml``.
BETWEEN = re.compile(r"[=,\s]")

Agreed = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Load all code that the files name (FILE.py:NAME), wherever it is; it can do what "
        "you can.",
    ),
]


def with_trust(command: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Return a command during which no more code is loaded than its files may bring along.

    Parameters
    ----------
    command
        The function behind the command; of :data:`ASKS`, the result has the option ``--trust``.
    name
        Its name.
    """

    @wraps(command)
    def run(*, trust: bool = False, **given: Any) -> Any:
        with trusting(Trust(everything=True) if trust else _trust(given, runs=name in RUNS)):
            return command(**given)

    return with_flag(run, command, "trust", Agreed) if name in ASKS else run


def _trust(given: dict[str, Any], *, runs: bool) -> Trust:
    """Return what is trusted because it was typed, or is next to a file that is run."""
    if any(given.get(option) for option in LOOKS):
        return Trust(looking=True)
    modules: list[str] = []
    folders = [Path(given["path"]).parent.resolve()] if runs and "path" in given else []
    for part in _parts(given):
        place = place_of(part)
        if place is not None and place.file is None:
            modules.append(place.module.partition(".")[0])
        elif place is not None and place.file is not None:
            folders.append(place.file.resolve().parent)
        elif runs and part.endswith(".toml"):
            folders.append(Path(part).parent.resolve())
    return Trust(folders=tuple(folders), modules=tuple(modules))


def _parts(value: Any) -> Iterator[str]:
    """Yield the texts and paths in the arguments of a command, and the parts of texts."""
    if isinstance(value, str | Path):
        yield from dict.fromkeys((str(value), *BETWEEN.split(str(value))))
    elif isinstance(value, dict):
        yield from _parts(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _parts(one)
