"""What several commands have in common: arguments, options, and the course of a single run.

Many options are made from the settings of a kind of run, :func:`takes_settings`; kinds are imported
by the commands that have such options.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import typer

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.limits.numbers import LARGEST_SEED, MOST_WORKERS
from hpcrowd.environment.quantities import duration_text
from hpcrowd.environment.traces.formats.registry import is_collected, trace_path
from hpcrowd.scenarios.terminal import (
    plain_table,
    print_json,
    progress_bar,
    say_where,
    simulation_progress,
    standard_output,
    status,
)

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from rich.table import Table

    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.analysis.run import Run
    from hpcrowd.scenarios.kinds.base import Scenario


def at_hand(paths: list[Path]) -> list[Path]:
    """Return the files that paths mean; logs of the archive are fetched if they are missing."""
    if not any(map(is_collected, paths)):
        return paths
    with progress_bar() as progress:
        return [trace_path(path, progress=progress) for path in paths]


def _one_at_hand(path: Path) -> Path:
    return at_hand([path])[0]


def all_at_hand(paths: list[Path] | None) -> list[Path] | None:
    """Return the files that paths mean, for an argument that may be left out."""
    return at_hand(paths) if paths else paths


def sentence(text: str) -> str:
    """Return the description of a setting as the help of an option."""
    return f"{text[0].upper()}{text[1:]}."


#: Help text of an argument that is a trace.
TRACE_HELP = "Trace in any format (see `hpcrowd convert --list`), or archive:NAME."

TracePath = Annotated[Path, typer.Argument(metavar="TRACE", help=TRACE_HELP, callback=_one_at_hand)]

TraceOrRun = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE",
        help=f"{TRACE_HELP.removesuffix('.')}; or a folder of results.",
        callback=_one_at_hand,
    ),
]

#: A workload model, for :func:`hpcrowd.analysis.models.model.model_of`.
ModelSource = Annotated[
    str,
    typer.Argument(
        metavar="M.json|NAME", help="File of a fitted model, or name of a published one."
    ),
]

WhichJobs = Annotated[
    Literal["completed", "all"],
    typer.Option(help="Jobs of the trace that count: completed (status 1), or all that ran."),
]

Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of everything random.")]

RunFolder = Annotated[
    Path | None, typer.Option(help="Folder for tables, trace, pictures and provenance.")
]

ResultsFolder = Annotated[Path | None, typer.Option(help="Folder for the results.")]

ReportFile = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE.html", help="File for a report.")
]

AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output, and nothing else.")
]

Executor = Annotated[
    str, typer.Option(help="What runs them: processes, dask, or inline (this process alone).")
]

Workers = Annotated[
    int | None,
    typer.Option(
        min=1, max=MOST_WORKERS, help="Processes that share the work; one per core unless given."
    ),
]

Address = Annotated[
    str | None,
    typer.Option(help="Address of the scheduler of a running Dask cluster: tcp://HOST:PORT."),
]

LogDecisions = Annotated[
    bool,
    typer.Option(
        "--log-decisions",
        help="Log what each user decided and why, for `hpcrowd explain`; needs --out.",
    ),
]


# ---- options from settings --------------------------------------------------------------------

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
    from hpcrowd.scenarios.kinds.trace_settings import READING, TraceScenario

    return takes_settings(TraceScenario, READING, into="how")(command)


def _option(name: str, field: FieldInfo, *, given_by_file: bool) -> inspect.Parameter:
    """Return the parameter of a command for a setting."""
    from hpcrowd.scenarios.kinds.fields import OF_DURATION

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


# ---- the course of a run ----------------------------------------------------------------------

#: Metrics with these names are left out where they are 0.
COUNTS = ("jobs_", "runs_", "preempted_")


def carry_out(
    scenario: Scenario,
    read: Callable[[], Any],
    *,
    out: Path | None,
    log_decisions: bool,
    as_json: bool,
    draw: Callable[[Run], Any] | None = None,
) -> None:
    """Run a scenario, print a summary, and write results if asked for.

    ``read`` returns the input of the run, such as a trace, and ``draw`` draws a picture of the run.
    """
    from hpcrowd.environment.traces.trace import Trace

    log = log_for(log_decisions, out)
    if out is not None:
        from hpcrowd.analysis.results import write_results
        from hpcrowd.environment.output.guard import check_replaceable

        check_replaceable(out)
    status.doing("reading")
    begin = read()
    with simulation_progress(len(begin) if isinstance(begin, Trace) else 1) as progress:
        run = scenario.run(begin, progress, log)
    if out is not None:
        status.doing(f"writing {out}")
        write_results(run, out)
        say_where(out)
    if draw is not None:
        status.doing("drawing")
        draw(run)
    status.doing("summarizing")
    tell_run(run, as_json=as_json)


def log_for(asked: bool, out: Path | None) -> DecisionLog | None:
    """Return a log if ``--log-decisions`` is given, which needs a folder; else None."""
    if not asked:
        return None
    if out is None:
        raise QuantityError("--log-decisions: the log is part of the results; give --out FOLDER")
    from hpcrowd.agents.behaviours.decisions import DecisionLog

    return DecisionLog()


def tell_run(run: Run, *, as_json: bool) -> None:
    """Print the summary of a run, as text or as one JSON object."""
    if as_json:
        print_json(run.summary())
        return
    from hpcrowd.analysis.run import headline

    console = standard_output()
    for line in headline(run):
        console.print(line, soft_wrap=True)
    parts = run.parts.values()
    if not any(part.instead for part in parts):
        console.print(summary_table(run))
    for part in parts:
        for table in part.shown():
            if not part.instead:
                console.print()
            console.print(plain_table(*table.heads, rows=table.rows, words=table.words))


def summary_table(run: Run) -> Table:
    """Return the metrics as a table for a terminal."""
    from hpcrowd.analysis.metrics import METRICS, format_metric
    from hpcrowd.analysis.run import recorded_of

    percentiles, recorded = ("p10", "p50", "p90"), recorded_of(run)
    beside = ["recorded"] if recorded else []
    table = plain_table("metric", "whole run", *beside, *(f"users' {p}" for p in percentiles))
    terminal = sys.stdout.isatty()
    if terminal:
        table.add_column("meaning", style="dim", overflow="fold")
    for metric in METRICS:
        value = run.metrics[metric.name]
        if metric.name.startswith(COUNTS) and not value and metric.name != "jobs_completed":
            continue
        if value is None and metric.optional:
            continue
        users = run.metrics["per_user"].get(metric.name, {})
        known = recorded.get(metric.name)
        table.add_row(
            metric.words,
            format_metric(metric.name, value),
            *(format_metric(metric.name, known) if known is not None else "" for _ in beside),
            *(format_metric(metric.name, users[p]) if p in users else "" for p in percentiles),
            *([metric.meaning] if terminal else []),
        )
    for name, text, meaning in (row for part in run.parts.values() for row in part.effects()):
        blank = [""] * (len(beside) + len(percentiles))
        table.add_row(name, text, *blank, *([meaning] if terminal else []))
    return table
