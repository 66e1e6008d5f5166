"""Registries: things by name, of which only those that are used are imported; and your own code.

Wherever a name of the library is taken, such as ``easy``, the place of your own class or function
is taken too: ``module:name`` or ``file.py:name``, with options behind another colon. A file is
loaded once, as a module of its own; it may import its neighbours.

Such a place is named by a person, on the command line or in a script, or by a file, such as a
scenario or the results of a run, which may come from a stranger. So

- what a person typed is loaded;
- what a file names is loaded where that file is run, and from its folder, as by ``make``;
- all else, and everything where a file is only looked at, is loaded with ``--trust`` alone.

:func:`own`, the one place where such code is loaded, asks :func:`check_trusted` first. A Python
program is code itself, and trusts everything unless it says otherwise.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
import zlib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import PathFinder
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast, override

from hpcrowd.environment.errors import QuantityError, echo, not_one_of, shortened


class NotLoaded(Exception):
    """Code stays as it is named, since the file that names it is only looked at."""


@dataclass(frozen=True)
class Trust:
    """Which code is loaded."""

    everything: bool = False  #: all that is named
    folders: tuple[Path, ...] = ()  #: folders, without links in their paths, whose files are loaded
    modules: tuple[str, ...] = ()  #: packages and modules that a person named
    #: Whether what is not loaded is left as it is named, instead of being an error.
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
    """Check that the code of a module or file may be loaded; else a message gives ``what`` it is.

    Raises QuantityError if it may not; NotLoaded, if the file that names it is only looked at.
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


def imported(place: str) -> Any:
    """Return what is at ``module:attribute``."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _is_at(place: str) -> bool:
    """Return whether there is the module of ``module:attribute``."""
    try:
        return importlib.util.find_spec(place.partition(":")[0]) is not None
    except ModuleNotFoundError:
        return False


class Registry[T](MutableMapping[str, T]):
    """Things by name, in the order of lists. Each is imported when it is first looked up.

    Parameters
    ----------
    entries
        By name: the thing itself, or ``module:attribute``, where it is.
    own
        The kind of thing, for messages, if places of your own code count as names; their options
        are left to the caller.
    of
        The class, ``module:class``, that your own classes must be subclasses of.
    from_files
        By name: where the function is that makes such a thing from a file, for texts ``name:FILE``.
    """

    def __init__(
        self,
        entries: Mapping[str, str | T],
        own: str = "",
        of: str = "",
        from_files: Mapping[str, str] | None = None,
    ) -> None:
        self._entries = dict(entries)
        self._own, self._of = own, of
        self._from_files = dict(from_files or {})

    def installed(self) -> list[T]:
        """Return all things whose modules are installed, in order."""
        entries = [*self._entries.items()]
        return [self[name] for name, at in entries if not isinstance(at, str) or _is_at(at)]

    def file_in(self, text: object) -> tuple[str, str] | None:
        """Return the name and the file in a text ``name:FILE``; None if it is none."""
        if not isinstance(text, str):
            return None
        name, _, file = text.partition(":")
        return (name, file) if file and name in self._from_files else None

    def located(self, text: str, folder: Path) -> str:
        """Return a text with the path of its file relative to a folder; others unchanged."""
        found = self.file_in(text)
        return located(text, folder) if found is None else f"{found[0]}:{folder / found[1]}"

    def __getitem__(self, name: str) -> T:
        if (found_in := self.file_in(name)) is not None:
            return cast("T", imported(self._from_files[found_in[0]])(found_in[1]))
        if name not in self._entries and self._own and place_of(name) is not None:
            return cast("T", own(self._own, name, imported(self._of) if self._of else None))
        found = self._entries[name]
        if isinstance(found, str):
            found = self._entries[name] = cast("T", imported(found))
        return found

    def __setitem__(self, name: str, thing: str | T) -> None:
        self._entries[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    @override
    def __contains__(self, name: object) -> bool:
        if name in self._entries or self.file_in(name) is not None:
            return True
        return bool(self._own) and place_of(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


#: Modules loaded from files, by path and time of writing.
_LOADED: dict[tuple[str, int], ModuleType] = {}

#: Files of all modules that were loaded by a place.
_OWN_FILES: set[str] = set()


class Place(NamedTuple):
    """The parts of such a text."""

    module: str  #: a module, or the path of a file that ends with .py
    name: str  #: of the class or function in it
    options: str  #: behind the next colon

    @property
    def file(self) -> Path | None:
        """The file; None for a module."""
        return Path(self.module) if self.module.endswith(".py") else None

    @property
    def text(self) -> str:
        """The text again."""
        return ":".join(part for part in self if part)


class Seam(NamedTuple):
    """What kind of class a setting takes; an attribute of the base class of that kind."""

    kind: str  #: its name, such as Think
    written: str  #: how it is given, ``{0}`` for its place
    given: int = 0  #: arguments of the constructor that are not options and come first


def place_of(text: object) -> Place | None:
    """Return the place in a text; None if it is none."""
    if not isinstance(text, str):
        return None
    module, _, rest = text.partition(":")
    name, _, options = rest.partition(":")
    dotted = all(part.isidentifier() for part in module.split("."))
    if not name.isidentifier() or not (dotted or module.endswith(".py")):
        return None
    return Place(module, name, options)


def located(text: str, folder: Path) -> str:
    """Return a text with the path of its file relative to a folder; others unchanged."""
    place = place_of(text)
    if place is None or place.file is None:
        return text
    return place._replace(module=str(folder / place.file)).text


def own(what: str, text: str, of: type | None = None) -> Any:
    """Return the class or function at a place, whose options are left to the caller.

    ``what`` is the kind of thing, for messages, such as ``scheduler``, and ``of`` the class that it
    must be a subclass of. Raises QuantityError in one line if the file, module or name does not
    exist, is not trusted, cannot be loaded, or is something else, and NotLoaded if the file that
    names it is only looked at.
    """
    place = place_of(text)
    assert place is not None
    file = place.file
    if file is not None and not file.is_file():
        raise QuantityError(f"{what} {text!r}: no such file")
    check_trusted(what, text, place.module)
    try:
        module = _module(place.module) if file is None else _module_of(file)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        if isinstance(error, ModuleNotFoundError) and file is None and error.name == place.module:
            raise QuantityError(
                f"{what} {text!r}: there is no module {place.module}; give the path of a file, "
                f"such as ./{place.module}.py:{place.name}"
            ) from None
        raise QuantityError(
            f"{what} {text!r}: cannot be loaded: {said(error)}; correct it"
        ) from error
    _OWN_FILES.add(str(getattr(module, "__file__", "")))
    if not hasattr(module, place.name):
        there = [
            name
            for name, thing in vars(module).items()
            if callable(thing) and getattr(thing, "__module__", "") == module.__name__
        ]
        raise QuantityError(f"{what} {text!r}: {not_one_of(place.name, there)}")
    found = getattr(module, place.name)
    if of is not None:
        check_kind(what, text, found, of)
    return found


def check_kind(what: str, text: str, thing: Any, of: type) -> None:
    """Check that your own class is of the kind that a setting takes.

    Parameters
    ----------
    what, text
        The setting, and what was given for it, for the message: what it is, what was wanted, and
        the line to write.
    thing, of
        What is there, and the base class of the kind; it has a :class:`Seam`.
    """
    wanted: Seam = of.seam  # type: ignore[attr-defined]
    kind, place = thing if inspect.isclass(thing) else type(thing), place_of(text)
    found: Seam | None = getattr(kind, "seam", None)
    is_one = found is not None and issubclass(kind, of) and found.kind == wanted.kind
    if is_one and inspect.isclass(thing):
        return
    name = kind.__name__ if place is None else place.name
    cure = f"write class {name}({wanted.kind})"
    if not inspect.isclass(thing):
        cure = "give a subclass of it"
    if found is not None:
        where = f"FILE.py:{name}" if place is None else text
        cure = f"write {found.written.format(where)}"
    if is_one:
        cure = "give the class, or a function that makes one" if wanted.given else "give the class"
        cure = cure if place is None else f"{cure}: {place._replace(name=kind.__name__).text}"
        raise QuantityError(f"{what} {text!r}: an object, not a class; {cure}")
    a_kind = articled(found.kind) if found is not None and inspect.isclass(thing) else is_a(thing)
    raise QuantityError(f"{what} {text!r}: {a_kind}, not {articled(wanted.kind)}; {cure}")


def check_objects(what: str, things: Iterable[Any], of: type) -> None:
    """Check that parts that Python gives are objects of the right kind.

    Raises QuantityError if one is a class, or something else: what it is, and what to write.
    """
    for thing in things:
        if isinstance(thing, of):
            continue
        wanted: Seam = of.seam  # type: ignore[attr-defined]
        cure = f"give an object of a subclass of {wanted.kind}"
        if inspect.isclass(thing) and issubclass(thing, of):
            cure = f"write {thing.__name__}()"
        raise QuantityError(f"{what}: {is_a(thing)}, not {articled(wanted.kind)}; {cure}")


def is_a(thing: Any) -> str:
    """Return what a thing is, in the words of messages: an object of a Think, the class Tired."""
    if thing is None:
        return "None"
    if inspect.isclass(thing):
        return f"the class {thing.__name__}"
    seam: Seam | None = getattr(type(thing), "seam", None)
    return articled(type(thing).__name__) if seam is None else f"an object of {articled(seam.kind)}"


def name_of(thing: Any) -> str:
    """Return the name of a class or function; of an object of one, that of its class."""
    kind = thing if hasattr(thing, "__name__") else type(thing)
    return kind.__name__ if callable(thing) or hasattr(thing, "seam") else echo(thing)


def or_your_own(text: object) -> str:
    """Return the end of a list of names: how your own is given, here one in a file."""
    file = text if isinstance(text, str) and text.endswith(".py") else "FILE.py"
    return f"or your own as {file}:NAME"


def articled(word: str) -> str:
    """Return a word with its article."""
    return f"{'an' if word[0] in 'AEIOaeio' else 'a'} {word}"


def raised_by(error: BaseException) -> str:
    """Return the name of your own function or class that an exception comes from; else empty.

    That is a function loaded by its place; or, where the library fails on what your own class has
    returned or left out, that class.
    """
    found, frames, frame = "", [], error.__traceback__
    while frame is not None:
        frames.append(frame.tb_frame)
        if frame.tb_frame.f_code.co_filename in _OWN_FILES:
            found = f"{frame.tb_frame.f_code.co_qualname}()"
        frame = frame.tb_next
    if found or "hpcrowd" not in frames[-1].f_globals.get("__name__", ""):
        return found
    for one in reversed(frames):
        holder = one.f_locals.get("self")
        for part in (holder, *(getattr(holder, name, None) for name in _PARTS)):
            if hasattr(part, "seam") and not type(part).__module__.startswith("hpcrowd."):
                return f"{type(part).__name__}, used by {one.f_code.co_qualname}(),"
    return ""


#: Attributes of objects of the library that may be your own.
_PARTS = ("think", "window", "when", "trigger", "behaviour")


def source_of(thing: object) -> Path | None:
    """Return the file with the source of what is at a place, or of an object; None if unknown.

    What belongs to hpcrowd has none: its version says what it is.
    """
    place = place_of(thing)
    if place is not None:
        if place.file is not None or not trust().allows(place.module):
            return file_of(place.module)
        thing = own("source", place.text)
    kind = thing if inspect.isclass(thing) or inspect.isroutine(thing) else type(thing)
    if getattr(kind, "__module__", "").partition(".")[0] in ("hpcrowd", "builtins"):
        return None
    try:
        found = inspect.getsourcefile(kind)
    except (TypeError, OSError):  # made where there is no file, such as in a shell
        return None
    return None if found is None or not Path(found).is_file() else Path(found)


def said(error: BaseException) -> str:
    """Return an exception of foreign code in one line, with its file and line."""
    text = shortened(" ".join(str(error).split()), 200)
    named = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{named} (line {error.lineno})" if "line" not in text else named
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if not any(one in frame.filename for one in ("importlib", "hpcrowd/", "/mesa/"))
    ]  # fmt: skip
    if not frames:
        return named
    return f"{named} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def _module(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # as for `python -m`
    return importlib.import_module(name)


def _module_of(file: Path) -> ModuleType:
    path = file.resolve()
    key = str(path), path.stat().st_mtime_ns
    if key in _LOADED:
        return _LOADED[key]
    name = f"own_{path.stem}_{zlib.crc32(str(key).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    sys.modules[name] = module  # so that its classes can be pickled
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    _LOADED[key] = module
    return module


def text_of(what: str, thing: Any) -> Any:
    """Return the place of a class, function or object as text; what is no such thing unchanged.

    Other processes make the same from it. An object is described by its options. Raises
    QuantityError if another process could not find or make it.
    """
    kind = thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing)
    if kind.__module__ == "builtins" or isinstance(thing, Path):
        return thing
    name = kind.__qualname__
    if not name.isidentifier():
        raise QuantityError(
            f"{what} {name}: is defined inside a function or class, where other processes do not "
            "find it; define it at the top level of a file"
        )
    file = source_of(kind)
    if kind.__module__.partition(".")[0] == "hpcrowd" and getattr(kind, "seam", None):
        return str(thing)
    options = ""
    if thing is not kind:
        seam = getattr(kind, "seam", None)
        if seam is None or seam.kind != "Scheduler":
            raise QuantityError(
                f"{what}: {is_a(thing)}, which other processes cannot make again; give a class or "
                "function at the top level of a file, or FILE.py:NAME:option=value"
            )
        options = str(thing).partition(":")[2]
    if file is None:
        raise QuantityError(
            f"{what} {name}: has no source file, which other processes need; put it into a file"
        )
    return Place(str(file.resolve()), name, options).text
