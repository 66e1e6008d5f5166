"""Types of settings: durations, moments, hours of work, names of schedulers."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ModelWrapValidatorHandler,
    PlainSerializer,
    model_validator,
)

from hpcrowd.agents.work.sessions import SessionDefinition
from hpcrowd.environment.errors import QuantityError, one_line
from hpcrowd.environment.limits.numbers import LONGEST_DURATION
from hpcrowd.environment.quantities import parse_duration, parse_processors
from hpcrowd.environment.registry import NotLoaded, located, place_of
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.schedulers.names import own_scheduler, parse_scheduler

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as OneLine

    from hpcrowd.agents.behaviours.activity import ActivityWindow
else:
    OneLine = one_line(type(BaseModel))

Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

#: Names of days, Monday first.
DAYS: tuple[Day, ...] = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def _seconds(value: Any) -> Any:
    if isinstance(value, bool):
        raise QuantityError("a duration is a number of seconds, or text such as 90s, 60m or 1d")
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, int | float) and abs(value) > LONGEST_DURATION:
        raise QuantityError(f"more than {LONGEST_DURATION:,} s, which is 317 years")
    return value


#: What marks a setting as a duration.
OF_DURATION = BeforeValidator(_seconds)

#: Seconds, or a text such as ``30m``.
Duration = Annotated[int, OF_DURATION]


def read_as(parse: Callable[[str], Any]) -> AfterValidator:
    """Return the rule that a text can be parsed; it stays a text."""

    def check(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(check)


#: A definition of sessions, such as ``arrival:60m``.
Sessions = Annotated[str, read_as(SessionDefinition.parse)]

#: Processors: a number, or a multiple such as ``2x`` or ``+20%``.
Processors = Annotated[str, read_as(lambda text: parse_processors(text, original=1_000_000))]


#: Folder of the files that are named by the settings which are being read.
FOLDER: ContextVar[Path] = ContextVar("folder", default=Path())


def _some_scheduler(given: Any) -> Any:
    """Return a policy by its text, with the path of its file, or one of your own as an object."""
    if isinstance(given, str):
        folder = FOLDER.get()
        text = located(given, folder if folder == Path() else folder.absolute())
        with suppress(NotLoaded):
            parse_scheduler(text)
        return text
    return own_scheduler(given)


#: A policy by its name, or your own by its place, with options; or an object or class.
SchedulerChoice = Annotated[
    str | InstanceOf[Scheduler],
    BeforeValidator(_some_scheduler, json_schema_input_type=str),
    PlainSerializer(str, when_used="json"),
]


class Strict(BaseModel, metaclass=OneLine):
    """A part of a configuration: unknown settings are errors, and it cannot be changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _in_folder(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Read the settings, those in tables inside too, with paths relative to their folder."""
        if not isinstance(data, dict) or "folder" not in data:
            return handler(data)
        before = FOLDER.set(Path(data["folder"]))
        try:
            return handler(data)
        finally:
            FOLDER.reset(before)

    @classmethod
    def configure(cls, place: str | Path = "", /, **values: Any) -> Self:
        """Return the configuration with these settings; a mistake is one line with the place."""
        where = f"{place}: " if place else ""
        try:
            return cls(**values)
        except QuantityError as error:
            raise QuantityError(f"{where}{error}") from None


class FileConfig(Strict):
    """Settings that a TOML file, a table or an object gives.

    A subclass has a field ``name``, which is the stem of the file unless the file gives one, and
    says what such a file describes, see ``environment.files.FILE_KINDS``.
    """

    DESCRIBES: ClassVar[str]

    folder: Path = Field(Path(), exclude=True, description="of the files that it names")
    file: Path | None = Field(None, exclude=True, description="from which it was read")
    sha256: str = Field("", exclude=True, description="checksum of the file")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read the settings from a TOML file; a mistake has file, place, value and rule."""
        from hpcrowd.environment.files import read_toml

        place = Path(path)
        values, content = read_toml(place, cls.DESCRIBES)
        found = {"name": place.stem, **values, "folder": place.parent, "file": place}
        return cls.configure(place, **found, sha256=sha256(content).hexdigest())

    @classmethod
    def given(cls, settings: Any, folder: Path) -> Self | None:
        """Return what a setting of a run gives: a TOML file, a table, such an object, or None.

        Files are relative to the folder.
        """
        if settings is None or isinstance(settings, cls):
            return settings
        if isinstance(settings, dict):
            return cls.configure(**{**settings, "folder": folder / settings.get("folder", "")})
        if isinstance(settings, str):
            return cls.read(folder / settings)
        raise ValueError(f"give a TOML file, a table, or a {cls.__name__}")

    def sums(self) -> dict[str, str]:
        """Return the checksums of its file, and of all files that it names, by name."""
        return {} if self.file is None else {self.file.name: self.sha256}

    def plain(self) -> dict[str, Any]:
        """Return its settings as a table, fit for JSON."""
        return self.model_dump(mode="json", exclude_none=True)


class HoursConfig(Strict):
    """The same hours of work for all users, in local time."""

    opens: Duration = Field(description="after midnight, s or a duration such as 8h")
    closes: Duration = Field(description="after midnight; before opens means at night")
    days: tuple[Day, ...] = Field(DAYS[:5], description="days of the week, Mon to Sun")

    def window(self) -> ActivityWindow:
        """Return the window.

        Raises
        ------
        QuantityError
            When it would never open.
        """
        from hpcrowd.agents.behaviours.activity import ActivityWindow

        return ActivityWindow(self.opens, self.closes, tuple(map(DAYS.index, self.days)))


def checked_preset(users: str, folder: Path) -> str:
    """Return ``learned:FILE`` with the path of its file, which is read, so that mistakes show."""
    from hpcrowd.agents.presets import PRESETS

    found = PRESETS.located(users, folder)
    PRESETS[found].check()
    return found


def checked_users(users: Any, folder: Path, known: Collection[str], *base: type) -> Any:
    """Return users by a known name, ``learned:FILE``, or your own by place; None for others.

    Files are relative to a folder and read, so that mistakes show; ``base`` is the class that your
    own must be a subclass of.
    """
    from hpcrowd.agents.presets import PRESETS, own_behaviour

    if users in known:
        return users
    if isinstance(users, str) and PRESETS.file_in(users) is not None:
        return checked_preset(users, folder)
    if place_of(users) is None:
        return None
    text = located(users, folder)
    with suppress(NotLoaded):
        own_behaviour(text, *base)
    return text
