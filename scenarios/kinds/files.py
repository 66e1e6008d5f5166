"""Scenarios in TOML files: the settings of one run, checked before anything runs.

    [scenario]
    kind = "replay"
    trace = "log.swf.gz"
    users = "think-time"
    processors = "2x"

``kind`` says what is run; :data:`KINDS` has the settings of each kind. Paths are relative to the
TOML file. An error message gives file, line, setting, value, rule and cure.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from hpcrowd.environment.errors import (
    HpcrowdError,
    QuantityError,
    first_mistake,
    nearest,
    not_one_of,
)
from hpcrowd.environment.files import line_of, read_toml
from hpcrowd.environment.registry import Registry
from hpcrowd.scenarios.kinds.base import Scenario

if TYPE_CHECKING:
    from tomlkit.items import Table


#: Kinds of scenarios by their names in files; a new kind is a class and an entry here.
KINDS: Registry[type[Scenario]] = Registry(
    {
        "replay": "hpcrowd.scenarios.kinds.replay:ReplayConfig",
        "populate": "hpcrowd.scenarios.kinds.populations.populate:PopulateConfig",
        "resample": "hpcrowd.scenarios.kinds.populations.resample:ResampleConfig",
        "grid": "hpcrowd.scenarios.kinds.grids.grid:GridConfig",
    }
)

#: Characters in a line of a file that is written.
WIDTH = 100


class SettingError(QuantityError):
    """A setting is wrong; ``place`` has the keys and positions that lead to it."""

    def __init__(self, message: str, place: Sequence[str | int]) -> None:
        super().__init__(message)
        self.place = tuple(place)


@dataclass(frozen=True)
class Source:
    """A TOML file, for error messages with the line of a mistake."""

    path: Path  #: its name
    values: dict[str, Any]  #: its contents
    text: str  #: its text

    @classmethod
    def read(cls, path: str | os.PathLike[str], *kinds: str) -> Source:
        """Read a TOML file that describes one of these, see ``environment.files.FILE_KINDS``."""
        path = Path(path)
        values, content = read_toml(path, *kinds)
        return cls(path, values, content.decode("utf-8"))

    def mistake(self, message: str, place: Sequence[str | int]) -> QuantityError:
        """Return the error for a mistake at a place in this file."""
        line = line_of(self.text, place)
        where = str(self.path) if line is None else f"{self.path}, line {line}"
        return QuantityError(f"{where}: {message}")

    def only(self, known: Sequence[str]) -> None:
        """Check that the file has no other settings and tables than these."""
        for name in self.values:
            if name not in known:
                raise self.mistake(f"{name}: no such setting; there are {', '.join(known)}", [name])


def scenario_of(values: Mapping[str, Any], folder: Path) -> Scenario:
    """Return the scenario with these settings, as in a TOML file in a folder.

    A setting that is wrong is a SettingError, with its place.
    """
    kind = values.get("kind")
    if kind is None:
        raise SettingError(f"kind: missing; choose {', '.join(KINDS)}", ["kind"])
    if not isinstance(kind, str) or kind not in KINDS:
        raise SettingError(f"kind {kind!r}: {not_one_of(kind, KINDS)}", ["kind"])
    settings = KINDS[kind]
    for name in values:
        if name not in settings.in_file():
            known = settings.in_file()
            message = f"{name}: {kind} has no such setting; {nearest(name, known)}it has "
            raise SettingError(message + ", ".join(known), [name])
    try:
        scenario = settings.model_validate({"folder": folder, **values})
        scenario.check()
        return scenario
    except ValidationError as error:
        place: list[str | int] = list(error.errors()[0]["loc"])
        message = first_mistake(error)
        name = str(place[0]) if place else ""
        if name and not message.startswith(name):
            message = f"{name}: {message}"
        raise SettingError(message, place or _named_first(message)) from None
    except QuantityError as error:
        raise SettingError(str(error), _named_first(str(error))) from None
    except HpcrowdError as error:
        raise SettingError(str(error), []) from None


def _named_first(message: str) -> list[str | int]:
    """Return the setting that the message of a mistake begins with."""
    return [message.split(maxsplit=1)[0].strip(":")]


def read_scenario(path: str | os.PathLike[str]) -> Scenario:
    """Read a scenario from a TOML file.

    Raises
    ------
    QuantityError
        When it cannot be read or something in it is wrong; with file, line, value and rule.
    """
    source = Source.read(path, "a scenario")
    source.only(["scenario"])
    return scenario_in(source)


def scenario_in(source: Source) -> Scenario:
    """Return the scenario in the table ``[scenario]`` of a file."""
    values = source.values.get("scenario")
    if not isinstance(values, dict):
        raise source.mistake(
            f"scenario {values!r}: must be a table; write [scenario] and its settings below",
            ["scenario"],
        )
    try:
        return scenario_of(values, source.path.parent)
    except SettingError as error:
        raise source.mistake(str(error), ["scenario", *error.place]) from None


def scenario_toml(scenario: Scenario) -> str:
    """Return a scenario as TOML with every setting and its meaning; it can be read again."""
    import tomlkit

    document = tomlkit.document()
    document.add("scenario", scenario_table(scenario))
    return tomlkit.dumps(document)


def scenario_table(scenario: Scenario) -> Table:
    """Return the table of a scenario, each setting with a comment."""
    import tomlkit

    table, values = tomlkit.table(), scenario.completed()
    fields = type(scenario).model_fields
    # In TOML, tables stand below the plain values.
    for name in sorted(scenario.in_file(), key=lambda name: isinstance(values.get(name), dict)):
        meaning = f"{name}: {fields[name].description}"
        if name not in values:
            meaning += " (not given)"
        for line in textwrap.wrap(meaning, WIDTH - 2, break_on_hyphens=False):
            table.add(tomlkit.comment(line))
        if name in values:
            table.add(name, values[name])
    return table
