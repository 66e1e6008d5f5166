"""Processes that are started from a script and do not run it again.

A process that Python starts afresh first runs the program it comes from, as its tasks may need what
is defined there. A script without ``if __name__ == "__main__":`` would do all its work again in
each process. Few tasks need it, so the program is hidden while processes are started, unless a task
has a class or a function of it.
"""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, override

from hpcrowd.environment.errors import HpcrowdError

#: The name of the module of a program.
MAIN = "__main__"

_GUARD = re.compile(r"""^if\s+(__name__\s*==\s*['"]__main__['"]|['"]__main__['"]\s*==)""", re.M)


class _Defined(pickle.Pickler):
    """Finds a class or a function of the program in what is sent to a process."""

    def __init__(self) -> None:
        # Tables are not copied.
        super().__init__(_Nowhere(), protocol=5, buffer_callback=lambda _: None)
        self.found = ""

    @override
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type | FunctionType) and obj.__module__ == MAIN:
            self.found = self.found or obj.__qualname__
        return NotImplemented


class _Nowhere:
    """A file that forgets what is written."""

    def write(self, text: bytes) -> int:
        return len(text)


def is_needed(sent: Any, workers: int) -> bool:
    """Return whether processes that receive something need the program for it.

    Raises
    ------
    HpcrowdError
        When they need it, and would do its work again or cannot find it.
    """
    finder = _Defined()
    # What cannot be sent is reported where it is sent.
    with suppress(pickle.PicklingError, TypeError, AttributeError, RecursionError):
        finder.dump(sent)
    if finder.found:
        _check_guarded(finder.found, getattr(sys.modules[MAIN], "__file__", None), workers)
    return bool(finder.found)


@contextmanager
def hidden() -> Iterator[None]:
    """Hide the program from processes that start meanwhile."""
    program = sys.modules[MAIN]
    sys.modules[MAIN] = ModuleType(MAIN)  # it has no file that could be run
    try:
        yield
    finally:
        sys.modules[MAIN] = program


def _check_guarded(name: str, file: str | None, workers: int) -> None:
    """Check that a program can be imported for what it defines, without doing its work."""
    source = ""
    if file is not None:
        with suppress(OSError, UnicodeDecodeError):
            source = Path(file).read_text("utf-8")
        if _GUARD.search(source) or not source:
            return
    where = "the notebook or session" if file is None else Path(file).name
    cure = "" if file is None else ', write `if __name__ == "__main__":` above its work'
    raise HpcrowdError(
        f"{where}: {name} is defined in it, which {workers} processes need and cannot import; move "
        f"it into a module of its own{cure}, or use one process"
    )
