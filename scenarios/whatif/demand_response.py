"""A call for less load: one day, four answers of the users.

Covers: reactions beyond the submission time in a given period (demand response); work lost and
moved; rigid users beside users who keep their think times.

Story: electricity is short, and the operator asks everybody to submit less for some hours. Users
delay their jobs until it is over, degrade them (half the processors), reconfigure them (half the
processors for twice as long) or renounce them, and the table says what that takes off the machine,
then and on the day after (after Madon et al. 2022, Euro-Par; the rules are unconfirmed).

Run: ``python -m hpcrowd.scenarios.whatif.demand_response TRACE [PICTURE]``
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.terminal import standard_output

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.traces.trace import Trace


WEEK_OF_CALL = 16  # counted from 0 at the first Monday of the trace
DAY_OF_CALL = 2  # Wednesday
HOURS = (8 * HOUR, 20 * HOUR)  # local time
RESPONSES = ("delay", "degrade", "reconfigure", "renounce")
USERS = {"rigid": "recorded", "adjusted": "batches"}  # which work comes next, by kind of users
SCHEDULER = "easy"


def period_of(clock: Clock) -> tuple[int, int]:
    """Return when the call begins and ends, s of the run."""
    monday = -(-clock.wall(0) // (7 * DAY)) * 7 * DAY
    day = monday + (7 * WEEK_OF_CALL + DAY_OF_CALL) * DAY
    return clock.second_at(day + HOURS[0]), clock.second_at(day + HOURS[1])


def runs(trace: Trace, period: tuple[int, int]) -> dict[str, dict[str, Run]]:
    """Return the runs by users and response; ``as usual`` comes first."""
    from hpcrowd.agents.presets import Recipe
    from hpcrowd.scenarios.kinds.part_files import reaction_from
    from hpcrowd.scenarios.kinds.replay import replay

    found: dict[str, dict[str, Run]] = {}
    for users, when in USERS.items():
        plain: Callable[..., Any] = Recipe(when)
        found[users] = {"as usual": replay(trace, users=plain, scheduler=SCHEDULER)}
        for do in RESPONSES:
            reaction = reaction_from({"do": do, "when": "during", "periods": [period]})
            recipe: Callable[..., Any] = Recipe(when, reactions=(reaction,))
            found[users][do] = replay(trace, users=recipe, scheduler=SCHEDULER)
    return found


def rows(found: dict[str, dict[str, Run]], period: tuple[int, int]) -> list[tuple[str, ...]]:
    """Return the lines of the table: what is in use then and on the day after, and the accounts."""
    from hpcrowd.analysis.pictures.reactions import mean_use

    lines: list[tuple[str, ...]] = []
    for users, by_response in found.items():
        for name, run in by_response.items():
            accounts = run.accounts

            def hours(what: str, accounts: dict[str, Any] = accounts) -> str:
                return f"{accounts.get(f'work_{what}_processor_s', 0) / HOUR:,.0f}"

            lines.append(
                (
                    users,
                    name,
                    f"{mean_use(run, *period):.1f}",
                    f"{mean_use(run, period[1], period[1] + DAY):.1f}",
                    f"{accounts.get('jobs', 0):,}",
                    hours("lost"),
                    hours("moved"),
                    f"{run.metrics['wait_mean_s'] / HOUR:.2f}",
                )
            )
    return lines


#: What the table shows: mean processors in use during the call and on the day after, jobs that the
#: reaction changed, processor-hours lost and moved, the mean wait of the whole run.
HEAD = (
    "users",
    "answer",
    "in use",
    "day after",
    "jobs",
    "lost (h)",
    "moved (h)",
    "mean wait (h)",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay a trace with every answer; print the table, draw the picture; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) not in (1, 2):
        print(
            "usage: python -m hpcrowd.scenarios.whatif.demand_response TRACE [PICTURE]",
            file=sys.stderr,
        )
        return 2
    try:
        trace = read_trace(arguments[0])
        period = period_of(Clock.of(trace.header))
        if period[1] > int(trace["submit"].max()):
            raise QuantityError(
                f"{arguments[0]}: ends before week {WEEK_OF_CALL}, the week of the call; take a "
                "longer trace, or change WEEK_OF_CALL"
            )
        found = runs(trace, period)
    except HpcrowdError as error:
        print(f"demand_response: {error}", file=sys.stderr)
        return 2
    _show(found, period, arguments[0])
    if len(arguments) == 2:
        from hpcrowd.analysis.pictures.plots import figure_png
        from hpcrowd.analysis.pictures.reactions import reaction_figure

        figure = reaction_figure(
            found, period, "Processors in use around a call for less load",
            f"{Path(arguments[0]).name}, {SCHEDULER}, averages over 1 h",
        )  # fmt: skip
        Path(arguments[1]).write_bytes(figure_png(figure))
    return 0


def _show(found: dict[str, dict[str, Run]], period: tuple[int, int], path: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    clock = next(iter(found["rigid"].values())).clock
    begin, end = (f"{clock.local(second):%Y-%m-%d %H:%M}" for second in period)
    title = f"Call from {begin} to {end}: {Path(path).name}"
    table = Table(box=SIMPLE_HEAD, title=escape(title), pad_edge=False)
    table.title_justify, table.title_style = "left", "bold"
    for place, name in enumerate(HEAD):
        table.add_column(name, justify="left" if place < 2 else "right")
    for line in rows(found, period):
        table.add_row(*line)
    standard_output().print(table)


if __name__ == "__main__":
    sys.exit(main())
