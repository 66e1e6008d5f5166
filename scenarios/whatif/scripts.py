"""Common parts of the what-if scripts: command line, tables, runs of a trace in several ways.

A script replays a trace in several ways and prints a table. A change of a single setting needs no
script, see :mod:`hpcrowd.scenarios.whatif.change`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.output.guard import written
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.cli import interrupted
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.outputs import check_outputs, writing
from hpcrowd.scenarios.terminal import plain_table, say, standard_output

if TYPE_CHECKING:
    from rich.console import Console

    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.traces.trace import Trace


#: Users that are compared, by the names of ``hpcrowd.scenarios.kinds.replay``.
USERS = ("rigid", "think-time")


@dataclass(frozen=True)
class ScriptTable:
    """A table with its title."""

    title: str  #: above it
    head: Sequence[str]  #: names of the columns, with their units
    rows: Sequence[Sequence[str]]  #: texts, one for each column
    words: int = 2  #: number of columns, from the left, that hold words; the others hold numbers
    note: str = ""  #: A line below it

    def show(self, console: Console | None = None) -> None:
        """Print it on a ``rich`` console; on standard output unless given."""
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape

        head, title = self.head, escape(self.title)
        table = plain_table(*head, rows=self.rows, words=self.words, whole=len(head), title=title)
        table.box = SIMPLE_HEAD
        console = console or standard_output()
        console.print(table)
        if self.note:
            console.print(self.note)


def script(
    name: str,
    make: Callable[..., Sequence[ScriptTable]],
    *,
    also: str = "",
    module: str = "",
    takes: str = "TRACE",
    read: Callable[..., Any] = read_trace,
) -> Callable[..., int]:
    """Return the main function of a script.

    It takes the arguments of the command line, those of this process unless given, prints the
    tables that ``make`` returns for the inputs that they name, and returns the exit code.

    Parameters
    ----------
    name, module
        Of the script; the module of that name here unless given, or your own file.
    also
        Meaning of a last argument, a file to write, which ``make`` gets too; empty for none.
    takes
        The arguments that name inputs, separated by spaces; in brackets if they may be left out.
    read
        Reads the inputs; called with these arguments.
    """
    inputs = takes.count(" ") + 1
    counts = {inputs, inputs + bool(also)} | ({0} if takes.startswith("[") else set())

    def main(arguments: Sequence[str] | None = None) -> int:
        given = list(sys.argv[1:] if arguments is None else arguments)
        force = bool(also) and "--force" in given
        given = [one for one in given if not (force and one == "--force")]
        if len(given) not in counts or any(one.startswith("-") for one in given):
            what = f"{takes} [{also} [--force]]" if also else takes
            run = f"-m {module or f'{__package__}.{name}'}"
            if find_spec(run[3:]) is None:
                run = Path(sys.argv[0]).name  # your own
            form = "the made-up site without" if 0 in counts else "in SWF, plain or gzipped"
            say(f"usage: python {run} {what} ({form})")
            return 2
        written().clear()
        outputs = dict(zip([also], map(Path, given[inputs:]), strict=False))
        try:
            with writing([Path(one) for one in given[:inputs]], force=force):
                check_outputs(outputs)
                tables = make(read(*given[:inputs]), *given[inputs:])
        except HpcrowdError as error:
            say(f"{name}: {error}")
            return 2
        except KeyboardInterrupt:
            say(f"{name}: {interrupted()}")
            return 130
        for table in tables:
            table.show()
        return 0

    return main


def in_week(clock: Clock, week: int, day: int, time: int) -> int:
    """Return the second of the run at a local time of a week of the log.

    Weeks count from 0 at its first Monday, days from 0 on Monday, and ``time`` is that of the day,
    s.
    """
    monday = -(-clock.wall(0) // (7 * DAY)) * 7 * DAY
    return clock.second_at(monday + (7 * week + day) * DAY + time)


def covered(trace: Trace, until: int, what: str) -> None:
    """Check that users still submit at a second of the run.

    ``what`` names the event, and the setting for it.
    """
    if until > int(trace["submit"].max()):
        raise QuantityError(f"{Path(trace.source).name}: ends before {what}; take a longer trace")


def runs_of[Name](
    trace: Trace,
    users: Iterable[str] | Mapping[str, str],
    variants: Mapping[Name, Mapping[str, Any]],
    **common: Any,
) -> dict[str, dict[Name, Run]]:
    """Return the runs of a trace by users, then by variant.

    Parameters
    ----------
    trace
        What was recorded.
    users
        Names of behaviours; or, by name, which work comes next, of users who may have reactions.
    variants
        Fields of :class:`~hpcrowd.scenarios.kinds.replay.ReplayConfig`; and ``reactions``.
    **common
        Fields that all runs have in common.
    """
    from hpcrowd.agents.presets import Recipe

    def run(name: str, change: Mapping[str, Any]) -> Run:
        settings: dict[str, Any] = {**common, **change}
        if isinstance(users, Mapping):
            settings["users"] = Recipe(users[name], reactions=tuple(settings.pop("reactions", ())))
        return replay(trace, **{"users": name, **settings})

    return {
        name: {variant: run(name, change) for variant, change in variants.items()} for name in users
    }
