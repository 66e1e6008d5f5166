"""The published studies, found by folder.

A study is a folder with ``study.py``, in which a function, named ``reproduce_`` and the folder's
name, runs the study and returns it. Its parameters declare the options of the command
``hpcrowd reproduce STUDY``, see :mod:`~scenarios.studies.options`; the class that it returns, see
:class:`~hpcrowd.scenarios.studies.study.PublishedStudy`, declares everything else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from hpcrowd.environment.errors import check_choice

#: Where the folders of the studies are.
FOLDER = Path(__file__).parent


class Entry(NamedTuple):
    """A study of the registry."""

    run: Callable[..., Any]  #: Its function.
    study: Any  #: The class that it returns.


def study_names() -> list[str]:
    """Return the names of the studies in alphabetical order."""
    return sorted(path.parent.name.replace("_", "-") for path in FOLDER.glob("*/study.py"))


def study_about(name: str) -> str:
    """Return the line of a study for lists, ``about`` of its class; its file is read, not run."""
    folder = FOLDER / name.replace("-", "_")
    source = ast.parse((folder / "study.py").read_text(encoding="utf-8"))
    found: str = next(
        ast.literal_eval(node.value)
        for node in ast.walk(source)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "about"
    )
    return found


def study_entry(name: str) -> Entry:
    """Return a study by name; QuantityError when there is no such study."""
    check_choice("study", name, study_names())
    folder = name.replace("-", "_")
    module = import_module(f"{__package__}.{folder}.study")
    run = getattr(module, f"reproduce_{folder}")
    return Entry(run, get_type_hints(run)["return"])
