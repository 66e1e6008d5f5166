"""Parts of behaviours in files: their settings, from the declarations of each, and reactions.

See :mod:`hpcrowd.agents.behaviours.parts`. A setting of a file is read as the type that its part
declares: durations, moments, hours of the week, the file of a signal. Reactions come from plain
data, such as an entry of a TOML file::

    { do = "delay", when = "during", periods = [["2d 16h", "2d 20h"]] }
    { do = "renounce", when = "recent-waits", wait = "6h", last = 5, share = 0.3 }
    { do = "switch", to = "backup", when = "signal", file = "carbon.csv", above = 300 }

``do`` is the response and ``when`` the trigger, by the names of
:mod:`hpcrowd.agents.behaviours.parts`; each has its own settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Self, Union, cast, get_args, get_origin, override

from pydantic import BeforeValidator, Field, ValidationError, create_model, model_validator

from hpcrowd.agents.behaviours.activity import ActivityWindow
from hpcrowd.agents.behaviours.parts import (
    RESPONSES,
    TRIGGERS,
    Parameter,
    PartFile,
    Reaction,
    Trigger,
    first_line,
    parameters_of,
    taken_by,
)
from hpcrowd.environment.clock import Moment, parse_moment
from hpcrowd.environment.errors import (
    HpcrowdError,
    QuantityError,
    first_mistake,
    nearest,
    not_one_of,
)
from hpcrowd.environment.limits.inputs import read_bytes
from hpcrowd.environment.limits.numbers import LARGEST_SETTING
from hpcrowd.environment.options import made, made_by_own, options_in
from hpcrowd.environment.registry import NotLoaded, located, or_your_own
from hpcrowd.environment.signals.signal import Signal, read_signal
from hpcrowd.scenarios.kinds.fields import Duration, FileConfig, HoursConfig, Strict

MomentText = Annotated[int | datetime, BeforeValidator(parse_moment)]

#: For types of values: the type in a file, and the function that converts it; paths are relative to
#: the folder that is given.
READ: dict[Any, tuple[Any, Callable[[Any, Path], Any]]] = {
    ActivityWindow: (HoursConfig, lambda hours, folder: hours.window()),
    Signal: (str, lambda file, folder: read_signal(folder / file)),
    PartFile: (str, lambda file, folder: PartFile(folder / file if file else "")),
    Sequence[tuple[Moment, Moment]]: (
        tuple[tuple[MomentText, MomentText], ...],
        lambda periods, folder: periods,
    ),
}


def settings_model(kind: Any) -> type[Strict]:
    """Return the model of a table of settings, from a dataclass whose fields are declared."""
    if kind in READ:
        found: type[Strict] = READ[kind][0]
        return found
    return _settings_model(kind)


@cache  # not above, for the same reason as that of parameters_of
def _settings_model(kind: Any) -> type[Strict]:
    settings: Any = {one.name: (_kind(one), _field(one)) for one in taken_by(kind)}
    return create_model(
        f"{kind.__name__}Config", __base__=Strict, __doc__=first_line(kind), **settings
    )


def optional(parameter: Parameter, of: str = "") -> tuple[Any, Any]:
    """Return a setting that need not be given, for :func:`pydantic.create_model`.

    Its description begins with ``of``, the part that it is a setting of, if there is one.
    """
    meaning = f"{of}: {parameter.meaning}" if of else parameter.meaning
    return _kind(parameter) | None, _field(replace(parameter, meaning=meaning, default=None))


def make(kind: Callable[..., Any], given: Strict, folder: Path) -> Any:
    """Return the object of the class ``kind`` that a table of settings describes."""
    if kind in READ:
        return READ[kind][1](given, folder)
    assert isinstance(kind, type)
    return kind(**values_of(kind, given, folder))


def values_of(kind: type, given: Strict, folder: Path) -> dict[str, Any]:
    """Return the values of a table of settings, by the names of the class."""
    found = {}
    for one in taken_by(kind):
        value, form = getattr(given, one.name), _form(one)
        if value is not None and form in READ:
            value = READ[form][1](value, folder)
        found[one.attribute] = value
    return found


def _form(parameter: Parameter) -> Any:
    """Return the type of a value, without None; of several types the first."""
    if get_origin(parameter.kind) in (Union, UnionType):
        kinds = [one for one in get_args(parameter.kind) if one is not NoneType]
        return next((one for one in kinds if one in READ), kinds[0])
    return parameter.kind


def _kind(parameter: Parameter) -> Any:
    """Return the type of a parameter in a file."""
    form = _form(parameter)
    found = Duration if parameter.unit.partition(" ")[0] == "s" else form
    if form in READ:
        found = READ[form][0]
    return found | None if NoneType in get_args(parameter.kind) else found


def _field(parameter: Parameter) -> Any:
    bounds = {
        "ge": parameter.least,
        "gt": parameter.above,
        "le": parameter.most,
        "lt": parameter.below,
    }
    settings: Any = {name: bound for name, bound in bounds.items() if bound is not None}
    if _form(parameter) in (int, float) and not settings.keys() & {"le", "lt"}:
        settings["le"] = LARGEST_SETTING
        if not settings.keys() & {"ge", "gt"}:
            settings["ge"] = -LARGEST_SETTING
    said = not parameter.unit or parameter.unit in parameter.meaning.split()
    meaning = parameter.meaning if said else f"{parameter.meaning}, {parameter.unit}"
    return Field(parameter.default, description=meaning, **settings)


def trigger_settings(when: str) -> type[Strict]:
    """Return the settings of a trigger; if it has several forms, those of all, each optional."""
    return _settings_of_forms(when, tuple(_forms(when)))


@cache
def _settings_of_forms(when: str, forms: tuple[Any, ...]) -> type[Strict]:
    if len(forms) == 1:
        return settings_model(forms[0])
    settings: Any = {one.name: optional(one) for form in forms for one in taken_by(form)}
    return create_model(
        f"{when.capitalize()}Config", __base__=Strict, __doc__=first_line(forms[0]), **settings
    )


def reaction_from(config: Mapping[str, Any], folder: str | Path = ".") -> Reaction:
    """Return the reaction that plain data describes.

    Parameters
    ----------
    config
        ``do``, ``when``, and the settings of both.
    folder
        Folder that relative paths start from.

    Raises
    ------
    QuantityError
        One line that says which setting is wrong.
    SignalError
        When a signal cannot be used.
    """
    folder = Path(folder)
    values = {
        name: located(value, folder) if name in ("do", "when") and isinstance(value, str) else value
        for name, value in config.items()
    }
    do = _choice(values, "do", RESPONSES)
    response: Any = RESPONSES[do]
    of_response, of_trigger, when = settings_model(response), None, ""
    if getattr(response, "seam", None) != Reaction.seam:  # your own may decide by itself
        when = _choice(values, "when", TRIGGERS)
        of_trigger = trigger_settings(when)
    known = [*(of_trigger.model_fields if of_trigger else ()), *of_response.model_fields]
    for key in values:
        if key not in known:
            takes = f"choose {', '.join(known)}" if known else "it takes none"
            both = f"do = {do!r}" + (f", when = {when!r}" if when else "")
            raise QuantityError(f"{key}: no setting of {both}; {nearest(key, known)}{takes}")
    given: list[Any] = []
    try:
        if of_trigger is not None:
            forms = _forms(when)
            found = _with_options("when", when, forms[0], _of(values, of_trigger))
            given = [_trigger(when, forms, of_trigger(**found), folder)]
        settings = of_response(**_with_options("do", do, response, _of(values, of_response)))
    except ValidationError as error:
        raise QuantityError(first_mistake(error)) from None
    make = partial(made, response, given, values_of(response, settings, folder))
    return cast("Reaction", made_by_own(make, "do", do))


def _with_options(what: str, text: str, kind: type, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings in a table, and those behind the place of your own class."""
    names = {one.attribute: one.name for one in taken_by(kind)}
    found = {names[key]: value for key, value in options_in(what, text, kind).items()}
    for name in found.keys() & values.keys():
        raise QuantityError(f"{what} {text!r}: {name} is also in the table; give it once")
    return {**values, **found}


def _trigger(when: str, forms: Sequence[type[Trigger]], settings: Strict, folder: Path) -> Trigger:
    """Return the trigger in the form whose settings are given."""
    if len(forms) > 1:
        names = {form: [one.name for one in parameters_of(form)] for form in forms}
        given = settings.model_dump(exclude_none=True)
        forms = [form for form in forms if set(names[form]) & set(given)]
        if len(forms) != 1:
            every = " or ".join(name for mine in names.values() for name in mine)
            raise QuantityError(f"when {when!r}: give either {every}")
    make = partial(made, forms[0], (), values_of(forms[0], settings, folder))
    return cast("Trigger", made_by_own(make, "when", when))


def _forms(when: str) -> Sequence[type[Trigger]]:
    """Return the forms of a trigger; your own has one."""
    found: Any = TRIGGERS[when]
    return cast("Sequence[type[Trigger]]", (found,) if inspect.isclass(found) else found)


def _choice(values: dict[str, Any], key: str, known: Mapping[str, Any]) -> str:
    if key not in values:
        raise QuantityError(f"reaction without {key}: choose {', '.join(known)}")
    value = values.pop(key)
    if not isinstance(value, str) or value not in known:
        raise QuantityError(f"{key} {value!r}: {not_one_of(value, known)}, {or_your_own(value)}")
    return value


def _of(values: Mapping[str, Any], settings: type[Strict]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in settings.model_fields}


class ReactionsConfig(FileConfig):
    """Reactions of users, one table each; a TOML file has them as ``[[reactions]]``."""

    DESCRIBES: ClassVar[str] = "reactions"

    name: str = Field("reactions", description="for tables and pictures")
    reactions: tuple[dict[str, Any], ...] = Field(
        min_length=1, description="what users do instead: do, when, and settings of both"
    )

    @model_validator(mode="after")
    def _can_be_made(self) -> Self:
        with suppress(NotLoaded):
            self.made()
        return self

    def made(self) -> list[Reaction]:
        """Return the reactions; a mistake names the place of its table."""
        return list(reactions_from(self.reactions, self.folder))

    @override
    def sums(self) -> dict[str, str]:
        names = [str(one["file"]) for one in self.reactions if "file" in one]
        found = {name: sha256(read_bytes(self.folder / name)).hexdigest() for name in names}
        return super().sums() | found


def reactions_from(tables: Iterable[Mapping[str, Any]], folder: Path) -> Iterator[Reaction]:
    """Yield the reactions that tables describe; a mistake names the place of its table."""
    for place, reaction in enumerate(tables):
        try:
            yield reaction_from(reaction, folder)
        except HpcrowdError as error:
            raise QuantityError(f"reactions[{place}]: {error}") from None
