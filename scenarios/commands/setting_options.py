"""Options of a command made from the settings of a kind of run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field, fields, is_dataclass
from typing import Annotated, Any, get_args, get_type_hints

import typer
from pydantic.fields import FieldInfo

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import duration_text
from hpcrowd.scenarios.commands.options import sentence
from hpcrowd.scenarios.kinds.base import Scenario
from hpcrowd.scenarios.kinds.fields import OF_DURATION
from hpcrowd.scenarios.kinds.trace_settings import READING, TraceScenario

#: Types that options may have; settings of other types are given as text.
PLAIN = (bool, int, float)

Command = Callable[..., None]


def takes_settings(
    kind: type[Scenario], only: Sequence[str] = (), into: str = "settings"
) -> Callable[[Command], Command]:
    """Give a command an option for each setting of a kind of run, or only for those named.

    The options take the place of the command's parameter ``into``, which receives a dictionary of
    the settings that have a value. Those that are named have no defaults, because a file gives the
    values of those left out.
    """
    names = only or tuple(kind.settings())
    chosen = {name: kind.model_fields[name] for name in names}

    options = [_option(name, field, given_by_file=bool(only)) for name, field in chosen.items()]

    def collected(given: dict[str, Any]) -> dict[str, Any]:
        settings = {}
        for name, field in chosen.items():
            value = given.pop(name)
            if is_dataclass(field.default):
                parts = [one.name for one in fields(field.default)]
                settings[name] = named_numbers(name, value, parts)
            elif value is not None:
                settings[name] = value
        return settings

    return lambda command: _expanded(command, into, options, collected)


def takes_fields(settings: type, names: Sequence[str], into: str) -> Callable[[Command], Command]:
    """Give a command an option for each of some fields of a dataclass.

    The options take the place of the command's parameter ``into``, which receives a dictionary of
    the values of all these fields. The metadata of a field has ``about``, its meaning; and, if it
    needs them, ``option``, the option if it is not called like the field, and ``metavar``, ``min``
    and ``max`` as for ``typer.Option``.
    """
    known = {one.name: one for one in fields(settings)}
    kinds = get_type_hints(settings)
    options = [_field_option(known[name], kinds[name]) for name in names]

    def collected(given: dict[str, Any]) -> dict[str, Any]:
        values = {name: given.pop(name) for name in names}
        return {
            name: tuple(value or ()) if known[name].default == () else value
            for name, value in values.items()
        }

    return lambda command: _expanded(command, into, options, collected)


def _field_option(field: Field[Any], kind: Any) -> inspect.Parameter:
    """Return the parameter of a command for a field of a dataclass."""
    more = dict(field.metadata)
    about, default = more.pop("about"), field.default
    option = more.pop("option", f"--{field.name}")
    if default == ():
        kind, default = list[get_args(kind)[0]] | None, None  # type: ignore[misc]
    elif kind is Any:
        kind = str | None
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, typer.Option(option, help=sentence(about), **more)],
    )


def _expanded(
    command: Command,
    into: str,
    options: Sequence[inspect.Parameter],
    collected: Callable[[dict[str, Any]], dict[str, Any]],
) -> Command:
    """Return a command that has options instead of the parameter ``into``.

    ``collected`` takes their values out of those of all parameters, and returns that of ``into``.
    """

    def run(**given: Any) -> None:
        settings = collected(given)
        command(**{into: settings}, **given)

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if parameter.name == into:
            parameters += options
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    run.__doc__ = command.__doc__
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


#: How traces are read: settings that have a value, for :func:`reading_options`.
Reading = dict[str, Any]


def reads_traces(command: Command) -> Command:
    """Give a command the options of how traces are read; its parameter ``how`` receives them."""
    return takes_settings(TraceScenario, READING, into="how")(command)


def _option(name: str, field: FieldInfo, *, given_by_file: bool) -> inspect.Parameter:
    """Return the parameter of a command for a setting."""
    option = f"--{name.replace('_', '-')}"
    about, metavar, default = str(field.description), None, field.default
    types = get_args(field.annotation) or (field.annotation,)
    kind: Any = next((one for one in types if one in PLAIN), str)
    if OF_DURATION in field.metadata:
        kind, metavar, default = str, "DURATION", duration_text(default)
    if is_dataclass(default):
        about += ": " + ", ".join(one.name for one in fields(default))
        metavar, default = "NAME=NUMBER,...", None
    if given_by_file:
        default = None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[
            kind | None if default is None else kind,
            typer.Option(
                f"{option}/--no-{option[2:]}" if default is True else option,
                help=sentence(about),
                metavar=metavar,
            ),
        ],
    )


def named_numbers(option: str, text: str | None, known: Iterable[str]) -> dict[str, float]:
    """Return the numbers that a text such as ``leave=0.1,away=2`` sets; none for None.

    Only the names ``known`` may be set; ``option`` is for messages.
    """
    names, found = tuple(known), {}
    for part in (text or "").split(",") if text else []:
        name, equals, value = part.strip().partition("=")
        try:
            if not equals or not name or name in found:
                raise ValueError
            number = float(value)
        except ValueError:
            raise QuantityError(
                f"{option} {text!r}: cannot read {part.strip()!r}; write NAME=NUMBER, each name "
                "once, separated by commas"
            ) from None
        if name not in names:
            raise QuantityError(
                f"{option} {text!r}: no setting {name!r}; there are {', '.join(names)}"
            )
        found[name] = int(number) if number.is_integer() else number
    return found
