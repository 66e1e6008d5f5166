"""Public names, each loaded when it is first used.

The modules next to this one declare them once, as imports under ``if TYPE_CHECKING:``. Editors and
type checkers read these lines, and so does :func:`lazy` when the module is imported.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def declared(name: str) -> dict[str, str]:
    """Return the public names that a module declares, and the place in hpcrowd of each."""
    loader: Any = import_module(name).__loader__
    return {
        alias.name: node.module or ""
        for block in ast.parse(loader.get_source(name)).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def namespaces() -> list[str]:
    """Return ``hpcrowd`` and the modules in it, each of which has public names."""
    return [
        "hpcrowd",
        *(f"hpcrowd.{one}" for one, place in declared("hpcrowd").items() if not place),
    ]


def lazy(name: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of the module ``name``.

    Raises
    ------
    AttributeError
        A name that the module does not declare; the message says which module does, if one does.
    """
    module = sys.modules[name]
    places = declared(name)

    def load(attribute: str) -> object:
        if attribute not in places:
            message = f"module {name!r} has no attribute {attribute!r}{_elsewhere(attribute)}"
            raise AttributeError(message, name=attribute, obj=module)
        if not places[attribute]:
            return import_module(f"hpcrowd.{attribute}")
        value = getattr(import_module(f"hpcrowd.{places[attribute]}"), attribute)
        setattr(module, attribute, value)
        return value

    names = sorted(places)
    return load, lambda: [*names, *(own for own in vars(module) if own.startswith("__"))], names


def _elsewhere(name: str) -> str:
    """Return where a name is public, as the end of a message."""
    for place in namespaces():
        if not name.startswith("__") and name in declared(place):
            return f"; it is {place}.{name}"
    return ""
