"""Settings of the parts of behaviours in files: made from what each part declares.

See :mod:`hpcrowd.agents.behaviours.declared`. A setting of a file is read as what its part asks
for: durations, moments, hours of the week, the file of a signal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BeforeValidator, Field, create_model

from hpcrowd.agents.behaviours.activity import ActivityWindow
from hpcrowd.agents.behaviours.declared import Parameter, first_line, parameters_of
from hpcrowd.environment.clock import Moment
from hpcrowd.environment.platform.signals import Signal, read_signal
from hpcrowd.scenarios.kinds.fields import Duration, HoursConfig, Strict, parse_moment

MomentText = Annotated[int | datetime, BeforeValidator(parse_moment)]

#: What files have instead of a value of some kind, and what makes the value of it; files are looked
#: for in the folder that is given.
READ: dict[Any, tuple[Any, Callable[[Any, Path], Any]]] = {
    ActivityWindow: (HoursConfig, lambda hours, folder: hours.window()),
    Signal: (str, lambda file, folder: read_signal(folder / file)),
    Sequence[tuple[Moment, Moment]]: (
        tuple[tuple[MomentText, MomentText], ...],
        lambda periods, folder: periods,
    ),
}


def settings_model(kind: Any) -> type[Strict]:
    """Return the model of a table of settings.

    Parameters
    ----------
    kind
        Dataclass whose fields say what they are.
    """
    if kind in READ:
        found: type[Strict] = READ[kind][0]
        return found
    settings: Any = {one.name: (_kind(one), _field(one)) for one in parameters_of(kind)}
    return create_model(
        f"{kind.__name__}Config", __base__=Strict, __doc__=first_line(kind), **settings
    )


def optional(parameter: Parameter, of: str = "") -> tuple[Any, Any]:
    """Return a setting that need not be given, for :func:`pydantic.create_model`.

    Parameters
    ----------
    parameter
        What it sets.
    of
        What it is a setting of, if that is to be said.
    """
    meaning = f"{of}: {parameter.meaning}" if of else parameter.meaning
    return _kind(parameter) | None, _field(replace(parameter, meaning=meaning, default=None))


def make(kind: Callable[..., Any], given: Strict, folder: Path) -> Any:
    """Return what a table of settings describes: an object of the class ``kind``."""
    if kind in READ:
        return READ[kind][1](given, folder)
    assert isinstance(kind, type)
    return kind(**values_of(kind, given, folder))


def values_of(kind: type, given: Strict, folder: Path) -> dict[str, Any]:
    """Return what a table of settings means, by the names that the class has for it."""
    found = {}
    for one in parameters_of(kind):
        value, form = getattr(given, one.name), _form(one)
        if value is not None and form in READ:
            value = READ[form][1](value, folder)
        found[one.attribute] = value
    return found


def _form(parameter: Parameter) -> Any:
    """Return the kind of a value, of several forms the first; without None."""
    if get_origin(parameter.kind) in (Union, UnionType):
        kinds = [one for one in get_args(parameter.kind) if one is not NoneType]
        return next((one for one in kinds if one in READ), kinds[0])
    return parameter.kind


def _kind(parameter: Parameter) -> Any:
    """Return what a file has for a parameter."""
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
    said = not parameter.unit or parameter.unit in parameter.meaning.split()
    meaning = parameter.meaning if said else f"{parameter.meaning}, {parameter.unit}"
    return Field(parameter.default, description=meaning, **settings)
