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
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.scenarios.whatif.scripts import ScriptTable, covered, in_week, script

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
    begin, end = (in_week(clock, WEEK_OF_CALL, DAY_OF_CALL, time) for time in HOURS)
    return begin, end


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
    from hpcrowd.scenarios.whatif.response_pictures import mean_use

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


def tables(trace: Trace, picture: str = "") -> list[ScriptTable]:
    """Replay a trace with every answer, and draw the picture if its file is given."""
    clock, name = Clock.of(trace.header), Path(trace.source).name
    period = period_of(clock)
    covered(trace, period[1], f"week {WEEK_OF_CALL}, the week of the call, see WEEK_OF_CALL")
    found = runs(trace, period)
    if picture:
        from hpcrowd.analysis.pictures.plots import figure_png
        from hpcrowd.scenarios.whatif.response_pictures import reaction_figure

        figure = reaction_figure(
            found, period, "Processors in use around a call for less load",
            f"{name}, {SCHEDULER}, averages over 1 h",
        )  # fmt: skip
        Path(picture).write_bytes(figure_png(figure))
    begin, end = (f"{clock.local(second):%Y-%m-%d %H:%M}" for second in period)
    return [ScriptTable(f"Call from {begin} to {end}: {name}", HEAD, rows(found, period))]


#: Prints what the answers take off the machine; returns the exit code.
main = script("demand_response", tables, also="PICTURE")

if __name__ == "__main__":
    sys.exit(main())
