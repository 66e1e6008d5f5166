"""What a scenario is: everything that one run is made of, typed, fit for a TOML file.

A kind of scenario is a subclass of :class:`Scenario` that stands in
:data:`scenarios.kinds.files.KINDS`. Its fields are plain values, tables and names of files, which
are looked for beside the file that names them. A run has two steps, so that many runs can share the
first: :meth:`Scenario.prepare` reads and converts inputs, :meth:`Scenario.run` simulates;
:meth:`Scenario.stage` leaves the simulation to whoever wants to look on while it runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.archive.logs import ARCHIVE_PREFIX, trace_path
from hpcrowd.scenarios.kinds.fields import Strict

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.scenarios.kinds.staged import Staged


#: What stands in a TOML file as it is.
Plain = str | int | float | bool | None

#: Called with the simulation now and then.
Watch = Callable[["Simulation"], Any]


def same(config: type[BaseModel], name: str) -> Any:
    """Return default and meaning of a field of a configuration, for one of a scenario.

    A field that is a part with settings of its own is a table, empty unless given.
    """
    field = config.model_fields[name]
    default: Any = field.default if isinstance(field.default, Plain) else {}
    return Field(default, description=field.description)


class Scenario(Strict):
    """Everything that one run is made of.

    Attributes
    ----------
    folder
        Where the files are that it names; not part of the file.
    """

    # A number where the setting is text, such as nodes = 200, is what it looks like.
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    #: Fields in which :meth:`prepare` looks; runs that agree in them share what it returns.
    PREPARED_FROM: ClassVar[tuple[str, ...]] = ()

    folder: Path = Field(Path(), exclude=True, description="where files that it names are")
    kind: str = Field(description="what is run")
    seed: int = Field(0, ge=0, description="seed of everything random")

    @model_validator(mode="after")
    def _files_are_there(self) -> Self:
        for name, path in self.files().items():
            if not path.is_file():
                raise QuantityError(f"{name} {str(path)!r}: no such file")
        return self

    def files(self) -> dict[str, Path]:
        """Return the files that the run reads, by the field or place that names each."""
        return {}

    def trace_file(self, trace: str | os.PathLike[str]) -> Path:
        """Return the file of a trace: in the folder, or a log of the archive."""
        return trace_path(trace, folder=self.folder)

    def completed(self) -> dict[str, Any]:
        """Return every setting that has a value, fit for TOML; files by their absolute paths.

        Logs of the archive keep their names, which mean the same everywhere.
        """
        values = self.model_dump(mode="json", exclude_none=True)
        values |= {
            name: str(path.absolute())
            for name, path in self.files().items()
            if name in values and not str(values[name]).startswith(ARCHIVE_PREFIX)
        }
        return values

    def identity(self) -> dict[str, Any]:
        """Return what decides about the results, fit for JSON: settings and contents of files."""
        found = {name: checksum(path) for name, path in self.files().items()}
        return {**self.completed(), **found}

    def sharing(self) -> dict[str, Any]:
        """Return what decides about :meth:`prepare`, fit for JSON."""
        identity = self.identity()
        return {name: identity.get(name) for name in ("kind", *self.PREPARED_FROM)}

    def prepare(self) -> Any:
        """Return what :meth:`run` needs beside the settings; it can be pickled."""
        raise NotImplementedError(f"{type(self).__name__} has to define prepare()")

    def stage(
        self, prepared: Any, log: DecisionLog | None = None, *, watched: bool = False
    ) -> Staged:
        """Return the simulation before it begins.

        Parameters
        ----------
        prepared
            What :meth:`prepare` returned, of this or of a scenario that shares it; it is used up.
        log
            Where users note what they decide.
        watched
            Somebody looks at the users while it runs, so that each is told what happens, also where
            the schedule is the same without.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define stage()")

    def run(
        self, prepared: Any, progress: Watch | None = None, log: DecisionLog | None = None
    ) -> Run:
        """Simulate to the end.

        Parameters
        ----------
        prepared, log
            As for :meth:`stage`.
        progress
            Called with the simulation now and then.
        """
        return self.stage(prepared, log).run(progress)

    def label(self) -> str:
        """Return a short name."""
        return self.kind


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits.

    Raises
    ------
    QuantityError
        When it cannot be read.
    """
    try:
        stat = path.stat()
        return _checksum(path.resolve(), stat.st_mtime_ns, stat.st_size)
    except OSError as error:
        raise QuantityError(f"{path}: cannot be read: {error.strerror or error}") from error


@lru_cache(maxsize=256)
def _checksum(path: Path, _written: int, _size: int) -> str:
    """Return the checksum of a file as it was written then; designs of many runs ask often."""
    with path.open("rb") as file:
        digest = sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def with_settings(values: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of nested ``values`` with other ``settings``, by dotted name.

    Parameters
    ----------
    values
        Tables and lists as a TOML file has them; not changed.
    settings
        Values by name, such as ``scheduler`` or ``platform.changes.0.processors``; a number is an
        element of a list.

    Raises
    ------
    QuantityError
        When the way to a setting does not lead through tables and lists.
    """
    changed: dict[str, Any] = _copied(values)
    for name, value in settings.items():
        *way, last = name.split(".")
        place: Any = changed
        for done, part in enumerate(way):
            place = _below(place, part, name, ".".join(way[: done + 1]))
        if isinstance(place, list):
            _below(place, last, name, name)
            place[int(last)] = value
        else:
            place[last] = value
    return changed


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(one) for name, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list) else value


def _below(place: Any, part: str, name: str, so_far: str) -> Any:
    """Return the table or list below another, making tables that are not there yet."""
    if isinstance(place, list):
        if not part.isdigit() or int(part) >= len(place):
            raise QuantityError(
                f"{name}: {so_far}: no such element; there are {len(place)}, counted from 0"
            )
        return place[int(part)]
    below = place.setdefault(part, {})
    if not isinstance(below, dict | list):
        raise QuantityError(
            f"{name}: {so_far} is {below!r} and has no settings below it; write it as a table"
        )
    return below
