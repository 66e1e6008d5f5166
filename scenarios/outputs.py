"""Files and folders that commands write: checked before anything is computed.

Every command with an output gets the option ``--force``, and is refused an output that is one of
its inputs or another output, or that hpcrowd did not write. A folder of results says what was asked
for: without ``--force``, only the same command with the same settings and inputs replaces them.
"""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, wraps
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.output.guard import (
    NEVER_READ,
    PROVENANCE,
    UNKNOWN,
    Request,
    check_not_input,
    check_replaceable,
    check_replaceable_file,
    current,
    guarded,
    is_stream,
)
from hpcrowd.environment.output.whole import remove_killed, whole_file

#: Parameters of commands that name a file or folder to write.
OUTPUTS = ("out", "target", "gantt", "dot", "png", "figures", "snapshot")

#: Commands that add to their folder, and check it themselves.
ADDING = ("sweep",)

#: The name of standard input and output.
STANDARD = "-"

#: Characters between the parts of a text such as ``mean:FILE``.
BETWEEN = re.compile(r"[:=,\s]")

#: Parameters of commands that make no difference to results.
SAME_RESULTS = {
    *OUTPUTS, "as_json", "keep", "workers", "executor", "address", "resume", "trust",
}  # fmt: skip

Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace other results, and a file named here that hpcrowd did not write; your files "
        "in a folder stay.",
    ),
]


def with_force(command: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Return a command that leaves its inputs and the files of others as they are.

    If it has a parameter of :data:`OUTPUTS`, the result has the option ``--force``, too.
    """
    signature = inspect.signature(command, eval_str=True)
    outputs = [one for one in OUTPUTS if one in signature.parameters]
    if not outputs:
        return command

    @wraps(command)
    def run(*, force: bool, **given: Any) -> Any:
        named = {
            f"--{one}" if one != "target" else "OUT": Path(given[one])
            for one in outputs
            if given.get(one) is not None and str(given[one]) != STANDARD
        }
        rest = {one: value for one, value in given.items() if one not in (*outputs, "keep")}
        inputs = inputs_of(rest)
        adding = name in ADDING or given.get("watch") is not None

        @cache
        def request() -> dict[str, str] | None:
            return None if adding else request_of(name, given, inputs)

        with writing(inputs, force=force, request=request):
            check_outputs(named, adding=adding)
            return command(**given)

    return with_flag(run, command, "force", Force)


def with_flag(
    run: Callable[..., Any], command: Callable[..., Any], name: str, annotation: Any
) -> Callable[..., Any]:
    """Give ``run`` the signature of a command and one more option, which is off by default."""
    signature, kind = inspect.signature(command, eval_str=True), inspect.Parameter.KEYWORD_ONLY
    parameters = [one.replace(kind=kind) for one in signature.parameters.values()]
    place = next((i for i, one in enumerate(parameters) if one.name == "as_json"), len(parameters))
    parameters.insert(place, inspect.Parameter(name, kind, default=False, annotation=annotation))
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


@contextmanager
def writing(
    inputs: Iterable[Path], *, force: bool, request: Request = lambda: None
) -> Iterator[None]:
    """Guard what a command reads until it ends, and say then what it has replaced."""
    from hpcrowd.scenarios.terminal import say

    with guarded(inputs, force=force, request=request) as guard:
        try:
            yield
        finally:
            for line in guard.replaced:
                say(line)


def request_of(command: str, given: Mapping[str, Any], inputs: Iterable[Path]) -> dict[str, str]:
    """Return what a command is asked for: its name, its settings, and checksums of its inputs.

    The same results are asked for by the same request. What comes through a pipe is unknown.
    """
    found = {"command": command}
    for name, value in given.items():
        if name not in SAME_RESULTS and value not in (None, False, [], (), {}):
            found[name.replace("_", "-")] = _as_text(value)
            if _as_text(value) == STANDARD:
                found[f"contents of {name}"] = UNKNOWN
    sums: dict[str, list[str]] = {}
    for path in inputs:
        sums.setdefault(f"sha256 of {path.name}", []).append(_checksum(path))
    return found | {name: " ".join(sorted(several)) for name, several in sums.items()}


def _as_text(value: Any) -> str:
    """Return a setting as a text; of a file its name, as a moved one is the same."""
    if isinstance(value, Path):
        return value.name
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_as_text(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_as_text, value))
    return str(value)


def _checksum(path: Path) -> str:
    """Return the SHA-256 of a file; of a folder that of the names and sizes of its files."""
    from hpcrowd.scenarios.kinds.base import checksum

    if path.is_file():
        return checksum(path)  # kept, as the provenance has it, too
    if not path.is_dir():
        return UNKNOWN
    about = sorted(
        (one.name, one.stat().st_size)
        for one in path.iterdir()
        if one.is_file() and one.suffix not in NEVER_READ and not one.name.startswith(".")
    )
    provenance = path / PROVENANCE
    return sha256(
        repr(about).encode() + (provenance.read_bytes() if provenance.is_file() else b"")
    ).hexdigest()


def check_outputs(outputs: Mapping[str, Path], *, adding: bool = False) -> None:
    """Check what a command is to write, before it computes anything.

    Outputs, by the options that name them, must be writable, and neither inputs, other outputs, nor
    of somebody else; ``adding`` says that the command adds to an existing folder.
    """
    seen: dict[Path, str] = {}
    for option, path in outputs.items():
        what = f"{option} {path}"
        real = Path(os.path.realpath(path))
        for other, before in seen.items():
            if real == other and not is_stream(real):
                raise HpcrowdError(f"{what}: is what {before} writes; name another file")
            if other.is_relative_to(real):
                raise HpcrowdError(f"{what}: would replace {before}; name another place")
        seen[real] = what
        if not adding and not path.is_dir():  # a command that writes a folder checks that
            check_not_input(path, what)
            check_replaceable_file(path, what)
            current().outputs.add(real)
        check_place(real, what)
        remove_killed(path)


def check_place(real: Path, what: str) -> None:
    """Check that a file or folder may be created or replaced, or a device be written."""
    if is_stream(real):
        if not os.access(real, os.W_OK):
            raise HpcrowdError(f"{what}: cannot be written: permission denied")
        return
    folder = real.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise HpcrowdError(f"{what}: cannot be written: {folder} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise HpcrowdError(f"{what}: cannot be written: no permission to write in {folder}")


def inputs_of(values: Mapping[str, Any]) -> list[Path]:
    """Return the files and folders that the arguments of a command name, directly or in files."""
    found: dict[Path, None] = {}
    for name, value in values.items():
        for path in _paths(Path(value) if name == "source" and value else value):
            if path in found:
                continue
            found[path] = None
            if path.suffix == ".toml":
                found |= dict.fromkeys(_named_in(path, seen={path}))
    return list(found)


def _paths(value: Any, folder: Path | None = None) -> Iterator[Path]:
    """Yield the existing files and folders that a value names."""
    if isinstance(value, Path):
        if _exists(value):
            yield value
    elif isinstance(value, str):
        for text in dict.fromkeys((value, *BETWEEN.split(value))):
            if "." in text or os.sep in text:  # else it is a name, such as easy
                for path in (Path(text), *([] if folder is None else [folder / text])):
                    if _exists(path):
                        yield path
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _paths(one, folder)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _paths(one, folder)


def _named_in(path: Path, seen: set[Path]) -> Iterator[Path]:
    """Yield the files that a TOML file names, and those that they name."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return  # whoever reads it says what is wrong
    for one in _paths(values, path.parent):
        if one not in seen and one.is_file():
            seen.add(one)
            yield one
            if one.suffix == ".toml":
                yield from _named_in(one, seen)


def _exists(path: Path) -> bool:
    with suppress(OSError, ValueError):
        return path.is_file() or (path.is_dir() and path.name not in ("", ".."))
    return False


def check_writable(path: Path, option: str = "--out") -> None:
    """Check, before anything is computed, that the file of an option can be written."""
    if path.is_dir():
        raise HpcrowdError(f"{path}: is a folder; {option} names a file")
    if not path.parent.is_dir():
        raise HpcrowdError(f"{path}: no folder {path.parent} to write it in")


def check_folder(folder: Path, inputs: Iterable[Path], option: str = "--out") -> None:
    """Check that the folder of an option can be written and that no input is in it.

    ``inputs`` are files that are read, or written by another option, and would be lost.
    """
    check_replaceable(folder, option)
    for path in inputs:
        if path.resolve().is_relative_to(folder.resolve()):
            raise HpcrowdError(f"{option} {folder}: would replace {path}; choose another folder")


def write_whole(path: Path, text: str) -> None:
    """Write a file that appears only when it is complete."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def land_bytes(path: Path, content: bytes) -> None:
    """Write a file that is complete or absent, even if the machine crashes."""
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
