"""Compiled functions: the decorators that compile them, and the files that keep what is compiled.

numba's own cache asks for a folder that it can write when a function is defined, believes what it
finds there, and ignores changes in other files with functions or constants that a function uses.
Here a file holds the code of one function for one signature. Its name depends on everything that
the code depends on, its content begins with a checksum, and it appears whole or not at all, so
that any number of processes may share a folder. A file that is damaged is made again, and without
any folder to write in, code is compiled and not kept.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import logging
import multiprocessing
import os
import pickle
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

import llvmlite
import numba
import numpy as np
from numba.core import caching, compiler, event, serialize, types
from numba.misc import appdirs

try:
    import fcntl
except ImportError:  # Windows, where each process compiles
    fcntl = None  # type: ignore[assignment]

#: Modules outside the folders called ``kernel`` that compiled functions take constants from.
SOURCES = (
    "compilation.py",
    "jobs.py",
    "stops.py",
    "schedulers/estimates.py",
    "schedulers/fair_share.py",
    "schedulers/slurm/timing.py",
)

#: First bytes of a file of compiled code; the last one is the version of its form.
MARK = b"hpcrowd code 1\n"

#: End of the names of such files.
ENDING = ".code"

#: Seconds of compilation after which a line says what takes so long.
SILENCE = 1.0

#: Seconds that a process waits for another that compiles the same function.
PATIENCE = 300

#: Age, s, at which an unfinished file is that of a process that was killed.
CUT_OFF_AFTER = 3600

_log = logging.getLogger("hpcrowd")

# Parts of numba that are only partly typed.
_njit: Any = numba.njit
_dumps: Any = serialize.dumps
_result: Any = compiler.CompileResult
_user_cache_dir: Any = appdirs.user_cache_dir
_register: Any = event.register
_general: Any = types.unliteral


class KeptCode(caching.NullCache):
    """The compiled code of a function on disk, in the place of numba's cache.

    Parameters
    ----------
    function
        The Python function.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._file = Path(function.__code__.co_filename)
        self._name = f"{self._file.stem}.{function.__qualname__}.{_python()}"
        self._turns: dict[str, tuple[Path, IO[bytes]]] = {}

    @property
    def cache_path(self) -> str:
        """The first folder that is looked in."""
        return str(next(self._folders()))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature, None if none is kept and nobody else compiles it."""
        target_context.refresh()
        name = self._name_of(sig, target_context.codegen())
        found = self._read(name, target_context)
        if found is None and self._take_turn(name):
            found = self._read(name, target_context)
            if found is not None:
                self._end_turn(name)
        return found

    def _read(self, name: str, target_context: Any) -> Any:
        for folder in self._folders():
            path = folder / name
            with contextlib.suppress(OSError):
                content = _content(path.read_bytes())
                if content is not None:
                    # What other versions of a library make of it cannot be known.
                    with contextlib.suppress(Exception):
                        return _result._rebuild(target_context, *pickle.loads(content))
                path.unlink()
        return None

    def _take_turn(self, name: str) -> bool:
        """Wait while another process compiles this; return whether this process has the lock."""
        if name in self._turns:  # its last compilation failed
            return True
        for folder in self._folders() if fcntl else ():
            path = folder / f".{name}.lock"
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                file = path.open("wb")
                watch.on_start(None)  # waiting takes as long as compiling
                try:
                    limit = time.monotonic() + PATIENCE
                    while not _locked(file) and time.monotonic() < limit:
                        time.sleep(0.05)
                finally:
                    watch.on_end(None)
                self._turns[name] = path, file
                return True
        return False

    def _end_turn(self, name: str) -> None:
        if name in self._turns:
            path, file = self._turns.pop(name)
            path.unlink(missing_ok=True)
            file.close()

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keep code in the first folder that can be written; say once if there is none."""
        name = self._name_of(sig, cres.codegen)
        try:
            if not cres.lifted and not cres.library.has_dynamic_globals:
                self._keep(name, _dumps(cres._reduce()))
        finally:
            self._end_turn(name)

    def _keep(self, name: str, content: bytes) -> None:
        failed = ""
        for folder in self._folders():
            try:
                _write(folder / name, MARK + hashlib.sha256(content).digest() + content)
            except OSError as error:
                failed = failed or f"{folder}: {error.strerror or error}"
            else:
                self._remove_older(folder)
                return
        _say_not_kept(failed)

    def _name_of(self, sig: Any, codegen: Any) -> str:
        """Return the name of the file for a signature on this machine."""
        about = (
            str(sig), codegen.magic_tuple(), self._function.__code__.co_code,
            numba.__version__, llvmlite.__version__, platform.python_version(),
        )  # fmt: skip
        key = hashlib.sha256(repr(about).encode()).hexdigest()[:20]
        return f"{self._name}.{_sources(self._file)}.{key}{ENDING}"

    def _folders(self) -> Iterator[Path]:
        """Yield the folders to look in, the best one first."""
        home = self._file.parent
        apart = f"{home.name}-{hashlib.sha256(str(home).encode()).hexdigest()[:12]}"
        # Not numba's own setting, which a file in the working folder can change.
        if given := os.environ.get("NUMBA_CACHE_DIR"):
            yield Path(given) / "hpcrowd" / apart
            return
        yield home / "__pycache__"
        of_user = Path(_user_cache_dir("hpcrowd", False))
        if of_user.is_absolute():  # else the user has no home
            yield of_user / apart

    def _remove_older(self, folder: Path) -> None:
        """Remove the code of other sources, which nothing finds again, and what was cut off."""
        with contextlib.suppress(OSError):
            for path in folder.glob(f"{self._name}.*{ENDING}"):
                if not path.name.startswith(f"{self._name}.{_sources(self._file)}."):
                    path.unlink(missing_ok=True)
            for path in folder.glob(f".{self._name}.*"):
                if path.stat().st_mtime < time.time() - CUT_OFF_AFTER:
                    path.unlink(missing_ok=True)


def _locked(file: IO[bytes]) -> bool:
    """Lock a file; return False if another process has."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _python() -> str:
    return f"py{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"


@cache
def _sources(file: Path) -> str:
    """Return a checksum of the sources that compiled functions of a file depend on."""
    found = hashlib.sha256()
    for part in (_shared_sources(), _bytes_of(file)):
        found.update(hashlib.sha256(part).digest())
    return found.hexdigest()[:12]


@cache
def _shared_sources() -> bytes:
    """Return a checksum of the kernels and :data:`SOURCES`."""
    environment = Path(__file__).parent
    kernels = sorted(environment.glob("**/kernel/**/*.py"))
    found = hashlib.sha256()
    for path in (*kernels, *(environment / name for name in SOURCES)):
        found.update(hashlib.sha256(_bytes_of(path)).digest())
    return found.digest()


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # installed without sources
        return b""


def _content(read: bytes) -> bytes | None:
    """Return what a file holds behind its checksum; None if it is damaged."""
    begin = len(MARK) + hashlib.sha256().digest_size
    content = read[begin:]
    whole = read[:begin] == MARK + hashlib.sha256(content).digest()
    return content if whole and content else None


def _write(path: Path, content: bytes) -> None:
    """Write a file that appears only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


#: Whether a message said that code cannot be kept.
_said: list[bool] = []


def _say_not_kept(reason: str) -> None:
    """Say once, in the main process, that code is compiled in each process."""
    if not _said and multiprocessing.parent_process() is None:
        _said.append(True)
        _log.warning(
            "hpcrowd: compiled code cannot be kept (%s), so each run compiles anew, which takes "
            "some seconds; set NUMBA_CACHE_DIR to a folder that can be written",
            reason,
        )


class Watch(event.Listener):
    """What happens while numba compiles: a line says so, and no garbage is looked for.

    The line comes once a process, of several that work for another only from the first. A sixth
    of the time of compilation went into looking for garbage among objects that all are in use.
    """

    def __init__(self) -> None:
        self.said = False
        self._depth = 0
        self._collected = False
        self._timer = threading.Timer(0, self._say)

    def on_start(self, event: Any) -> None:
        """Begin to count the seconds of the outermost function."""
        self._depth += 1
        if self._depth == 1:
            self._collected = gc.isenabled()
            gc.disable()
            process = multiprocessing.current_process().name  # as in SpawnProcess-1
            if not self.said and process.partition("-")[2] in ("", "1"):
                self._timer = threading.Timer(SILENCE, self._say)
                self._timer.daemon = True
                self._timer.start()

    def on_end(self, event: Any) -> None:
        """Go back to what was before when the outermost function is compiled."""
        self._depth -= 1
        if self._depth == 0:
            self._timer.cancel()
            if self._collected:
                gc.enable()

    def _say(self) -> None:
        self.said = True
        if sys.stderr is not None:  # a windowed program has none
            print(
                "Compiling the simulation, once on this machine (a minute or two at most) ...",
                file=sys.stderr,
                flush=True,
            )


#: Watches all compilation of this process.
watch = Watch()
_register("numba:compile", watch)


def _decorator(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles, and keeps the code.

    No reference counting: the functions only work on arrays that their caller holds, and counting
    at every inner call made a run five times slower (1.0 against 0.2 microseconds a job, KTH-SP2).
    """

    def decorate(function: Any) -> Any:
        made = _njit(_nrt=False, **options)(function)
        if made is function:  # with NUMBA_DISABLE_JIT; compiled code lets hashes overflow too
            return np.errstate(over="ignore")(function)
        made._cache = KeptCode(function)
        template = made.get_call_template

        def of_types(arguments: Any, keywords: Any) -> Any:
            """Compile once for all numbers of a type, not once for each literal one."""
            named = {name: _general(value) for name, value in keywords.items()}
            return template([_general(value) for value in arguments], named)

        made.get_call_template = of_types
        return made

    return decorate


#: Compiles a function.
compiled = _decorator()

#: The same for long functions that may run in threads: they release the GIL.
released = _decorator(nogil=True)

#: The same for functions that run at every event: inlined, so that the caller need not pass a dozen
#: arrays (0.12 instead of 0.19 microseconds per job, KTH-SP2).
inlined = _decorator(inline="always")
