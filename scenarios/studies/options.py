"""Options of the commands ``hpcrowd reproduce STUDY``, declared by each study once.

A study's function has a parameter for each option, annotated with what the command line needs::

    def reproduce_zakay2015(
        traces: Annotated[str | os.PathLike[str], TRACES],
        progress: Progress | None = None,
        *,
        seeds: Annotated[int | None, Option("Seeds of each simulation.", least=1)] = None,
        only: Iterable[str] = COLUMNS,
    ) -> Zakay2015: ...

Name, type and default are the parameter's; parameters without an :class:`Option` belong to Python
only. The fields of a plan, a dataclass that is a parameter, are taken likewise.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import typer

from hpcrowd.environment.errors import QuantityError


@dataclass(frozen=True)
class Option:
    """What the command line needs of an option besides its name, type and default.

    Attributes
    ----------
    help
        One line.
    least
        Smallest number; None for any.
    name
        Its name if not the parameter's.
    kind
        Its type on the command line if not the parameter's.
    parse, shown
        Make the value of a text, and the text of the default, where the command line takes a text.
    metavar
        What a text looks like.
    """

    help: str
    least: int | None = None
    name: str = ""
    kind: Any = None
    parse: Callable[[str], Any] | None = None
    shown: Callable[[Any], str] = str
    metavar: str | None = None


#: Where the traces are.
TRACES = Option("Folder with the traces of the Parallel Workloads Archive.", kind=Path)

#: How many processes share the work, and the seed.
SHARED_BY = Option("Processes that share the work.", least=1, name="workers")
SEED = Option("Seed of everything random.", least=0)


def parse_loads(text: str) -> tuple[float, ...]:
    """Return the loads of a list such as ``0.7,0.9``.

    Raises
    ------
    QuantityError
        When one of them is not a number.
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise QuantityError(f"loads {text!r}: not numbers; write for example 0.7,0.9") from None


def loads_option(words: str) -> Option:
    """Return an option that takes loads, numbers between commas."""
    return Option(
        words,
        parse=parse_loads,
        shown=lambda loads: ",".join(map(str, loads)),
        metavar="LOAD[,LOAD...]",
    )


class Given(NamedTuple):
    """An option of a command.

    Attributes
    ----------
    parameter
        The parameter of the study's function that it belongs to.
    field
        The field of that parameter's plan; empty where the parameter is the value itself.
    option, kind, default
        See :class:`Option`; the default is ``inspect.Parameter.empty`` for one that is required.
    """

    parameter: str
    field: str
    option: Option
    kind: Any
    default: Any

    @property
    def name(self) -> str:
        """Its name on the command line, with underscores."""
        return self.option.name or self.field or self.parameter

    def declared(self) -> inspect.Parameter:
        """Return it as Typer takes it."""
        option, kind, default = self.option, self.option.kind or self.kind, self.default
        flags = [f"--{self.name.replace('_', '-')}"]
        if option.parse is not None:
            kind = str
            default = default if default is inspect.Parameter.empty else option.shown(default)
        info = typer.Option(*flags, help=option.help, min=option.least, metavar=option.metavar)
        annotation: Any = Annotated[kind, info]
        return inspect.Parameter(
            self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )


def options_of(run: Callable[..., Any]) -> list[Given]:
    """Return the options that the parameters of a function declare, in their order."""
    hints = get_type_hints(run, include_extras=True)
    found = []
    for name, parameter in inspect.signature(run).parameters.items():
        hint = hints.get(name, Any)
        if (option := _option(hint)) is not None:
            found.append(Given(name, "", option, _kind(hint), parameter.default))
        elif (plan := plan_class(hint)) is not None:
            inside = get_type_hints(plan, include_extras=True)
            for field in fields(plan):
                if (option := _option(inside[field.name])) is not None:
                    default = inspect.Parameter.empty if field.default is MISSING else field.default
                    kind = _kind(inside[field.name])
                    found.append(Given(name, field.name, option, kind, default))
    return found


def arguments_of(
    run: Callable[..., Any], options: Sequence[Given], given: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a function from the values of its options."""
    hints = get_type_hints(run, include_extras=True)
    arguments: dict[str, Any] = {}
    plans: dict[str, dict[str, Any]] = {}
    for one in options:
        value = given[one.name]
        if one.option.parse is not None and value is not None:
            value = one.option.parse(value)
        if one.field:
            plans.setdefault(one.parameter, {})[one.field] = value
        else:
            arguments[one.parameter] = value
    for name, values in plans.items():
        plan = plan_class(hints[name])
        assert plan is not None  # it has fields
        arguments[name] = plan(**values)
    return arguments


def plan_class(hint: Any) -> type[Any] | None:
    """Return the dataclass that a parameter takes, also one that may be None; None for others."""
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else [hint]
    return next((kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind)), None)


def _option(hint: Any) -> Option | None:
    """Return the option in an annotation; None without one."""
    return next((one for one in get_args(hint)[1:] if isinstance(one, Option)), None)


def _kind(hint: Any) -> Any:
    """Return the type that an annotation is about."""
    return get_args(hint)[0]
