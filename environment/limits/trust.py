"""Whose code is loaded: that of the person at the keyboard, not that which a file names.

A class or function at a place, ``file.py:name`` or ``module:name``, is named by a person, on the
command line or in a script, or by a file, such as a scenario or the results of a run, which may
come from a stranger. So

- what a person typed is loaded;
- what a file names is loaded where that file is run, and from its folder, as by ``make``;
- all else, and everything where a file is only looked at, is loaded with ``--trust`` alone.

:func:`hpcrowd.environment.registry.own`, the one place where such code is loaded, asks here first.
A Python program is code itself, and trusts everything unless it says otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import PathFinder
from itertools import accumulate
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import QuantityError


class NotLoaded(Exception):
    """Code stays as it is named, since the file that names it is only looked at."""


@dataclass(frozen=True)
class Trust:
    """Which code is loaded.

    Attributes
    ----------
    everything
        All that is named.
    folders
        Folders, without links in their paths, whose files are loaded.
    modules
        Packages and modules that a person named.
    looking
        Whether what is not loaded is left as it is named, instead of being an error.
    """

    everything: bool = False
    folders: tuple[Path, ...] = ()
    modules: tuple[str, ...] = ()
    looking: bool = False

    def allows(self, module: str) -> bool:
        """Return whether a module, or a file that ends with .py, is loaded."""
        typed = not module.endswith(".py") and module.partition(".")[0] in self.modules
        if self.everything or typed:
            return True
        file = file_of(module)
        return file is not None and any(file.resolve().is_relative_to(one) for one in self.folders)


#: What is trusted in this process, all its threads, and those that work for it.
_trust = [Trust(everything=True)]


def trust() -> Trust:
    """Return what is trusted now."""
    return _trust[-1]


@contextmanager
def trusting(given: Trust) -> Iterator[None]:
    """Trust this, and nothing else, meanwhile."""
    _trust.append(given)
    try:
        yield
    finally:
        _trust.pop()


def check_trusted(what: str, text: str, module: str) -> None:
    """Check that code may be loaded.

    Parameters
    ----------
    what, text
        The kind of thing and its place, for messages.
    module
        The module, or the file.

    Raises
    ------
    QuantityError
        If it may not.
    NotLoaded
        If it may not, and the file that names it is only looked at.
    """
    if trust().allows(module):
        return
    if trust().looking:
        raise NotLoaded(text)
    raise QuantityError(
        f"{what} {text!r}: code that a file names is loaded only where that file is run, and from "
        f"its folder; read {file_of(module) or module}, and give --trust if you trust it"
    )


def file_of(module: str) -> Path | None:
    """Return the file of a module, or itself, without loading anything; None if there is none."""
    if module.endswith(".py"):
        return Path(module)
    paths: Any = [*sys.path, str(Path.cwd())]
    spec = None
    for name in accumulate(module.split("."), "{}.{}".format):
        spec = None if paths is None else PathFinder.find_spec(name, list(paths))
        if spec is None:
            return None
        paths = spec.submodule_search_locations
    return None if spec is None or not spec.origin else Path(spec.origin)
