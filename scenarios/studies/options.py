"""The published studies, and the options of their commands ``hpcrowd reproduce STUDY``.

A study's function has a parameter for each option, annotated with what the command line needs::

    def reproduce_zakay2015(
        traces: Annotated[str | os.PathLike[str], TRACES],
        progress: Progress | None = None,
        *,
        seeds: Annotated[int | None, Option("Seeds of each simulation.", least=1)] = None,
        only: Iterable[str] = COLUMNS,
    ) -> Zakay2015: ...

Name, type and default are the parameter's; parameters without an :class:`Option` are for Python
only. If a parameter is a plan, a dataclass, its fields become options in the same way.
"""

from __future__ import annotations

import inspect
import tomllib
import types
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import typer

from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.scenarios.studies.published import study_name


@dataclass(frozen=True)
class Option:
    """Details of an option on the command line, in addition to its name, type and default."""

    help: str  #: One line.
    least: int | None = None  #: Smallest number; None for any.
    name: str = ""  #: Its name, if not that of the parameter.
    kind: Any = None  #: Its type on the command line, if not that of the parameter.
    #: Convert a text to a value, and the default to a text, if the command line takes a text.
    parse: Callable[[str], Any] | None = None
    shown: Callable[[Any], str] = str
    metavar: str | None = None  #: Form of the text.


#: Folder of the traces.
TRACES = Option("Folder with the traces of the Parallel Workloads Archive.", kind=Path)

#: Default number of processes that share the work.
PROCESSES = 2

#: Options for the number of processes that share the work, and for the seed.
SHARED_BY = Option("Processes that share the work.", least=1)
SEED = Option("Seed of everything random.", least=0)


def parse_loads(text: str) -> tuple[float, ...]:
    """Return the loads of a list such as ``0.7,0.9``; QuantityError when one is not a number."""
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
    """An option of a command."""

    parameter: str  #: The parameter of the study's function that it belongs to.
    #: The class of the plan that the parameter takes; None if the option is the parameter.
    plan: type[Any] | None
    field: str  #: The field of that plan; empty without a plan.
    #: See :class:`Option`; the default is ``inspect.Parameter.empty`` if it is required.
    option: Option
    kind: Any
    default: Any

    @property
    def name(self) -> str:
        """Its name on the command line, with underscores."""
        return self.option.name or self.field or self.parameter

    def declared(self) -> inspect.Parameter:
        """Return it as a parameter for Typer."""
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
        declared: list[tuple[type[Any] | None, str, Any, Any]]
        declared = [(None, "", hint, parameter.default)]
        if (plan := plan_class(hint)) is not None:
            inside = get_type_hints(plan, include_extras=True)
            declared = [(plan, one.name, inside[one.name], one.default) for one in fields(plan)]
        for plan, field, annotation, default in declared:
            kind, *extras = get_args(annotation) or (annotation,)
            default = inspect.Parameter.empty if default is MISSING else default
            options = [one for one in extras if isinstance(one, Option)]
            found += [Given(name, plan, field, one, kind, default) for one in options]
    return found


def arguments_of(options: Sequence[Given], given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function from the values of its options."""
    arguments: dict[str, Any] = {}
    plans: dict[str, tuple[type[Any], dict[str, Any]]] = {}
    for one in options:
        value = given[one.name]
        if one.option.parse is not None and value is not None:
            value = one.option.parse(value)
        if one.plan is not None:
            plans.setdefault(one.parameter, (one.plan, {}))[1][one.field] = value
        else:
            arguments[one.parameter] = value
    return arguments | {name: plan(**values) for name, (plan, values) in plans.items()}


def plan_class(hint: Any) -> type[Any] | None:
    """Return the dataclass of a parameter, which may be optional; None for other types."""
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else [hint]
    return next((kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind)), None)


# ---- the studies ------------------------------------------------------------------------------
# A study is a module with a file of the same name that ends in ``.toml``: ``study`` in a folder, or
# one of several in a folder. In it a function, named ``reproduce_`` and the name of the study, runs
# the study and returns it; the class that it returns, see
# :class:`~hpcrowd.scenarios.studies.study.PublishedStudy`, declares everything else.

#: Where the folders of the studies are.
FOLDER = Path(__file__).parent


class Entry(NamedTuple):
    """A study of the registry."""

    run: Callable[..., Any]  #: Its function.
    study: Any  #: The class that it returns.


def study_files() -> dict[str, Path]:
    """Return the files that declare the studies, by their names in alphabetical order."""
    files = [path for path in FOLDER.glob("*/*.toml") if path.with_suffix(".py").exists()]
    return dict(sorted((study_name(path), path) for path in files))


def study_names() -> list[str]:
    """Return the names of the studies in alphabetical order."""
    return list(study_files())


def study_about(name: str) -> str:
    """Return the line of a study for lists; nothing is imported."""
    return str(tomllib.loads(study_files()[name].read_text("utf-8"))["about"])


def study_entry(name: str) -> Entry:
    """Return a study by name; QuantityError when there is no such study."""
    check_choice("study", name, study_names())
    file = study_files()[name]
    module = import_module(f"{__package__}.{file.parent.name}.{file.stem}")
    run = getattr(module, f"reproduce_{name.replace('-', '_')}")
    return Entry(run, get_type_hints(run)["return"])
