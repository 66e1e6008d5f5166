"""A call for less load: one day, four reactions of the users.

Covers: reactions beyond the submission time in a given period (demand response); work lost and
moved; rigid users compared with users who keep their think times.

Story: electricity is short, and the operator asks all users to submit less for some hours. Users
delay their jobs until the end of the call, degrade them (half the processors), reconfigure them
(half the processors for twice as long) or renounce them, and the table shows how much less the
machine is used, then and on the day after (after Madon et al. 2022, Euro-Par; the rules are
unconfirmed).

Run: ``python -m hpcrowd.scenarios.whatif.demand_response TRACE [PICTURE]``
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.pictures.plots import (
    COLOURS,
    TITLE,
    check_picture,
    new_figure,
    tidy,
    time_axis,
    write_picture,
)
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.scenarios.whatif.scripts import ScriptTable, covered, in_week, runs_of, script

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    from hpcrowd.scenarios.kinds.part_files import reaction_from

    during = {"when": "during", "periods": [period]}
    variants = {do: {"reactions": [reaction_from({"do": do, **during})]} for do in RESPONSES}
    return runs_of(trace, USERS, {"as usual": {}, **variants}, scheduler=SCHEDULER)


def rows(found: dict[str, dict[str, Run]], period: tuple[int, int]) -> list[tuple[str, ...]]:
    """Return the lines of the table: use during the call and on the day after, and the accounts."""
    lines: list[tuple[str, ...]] = []
    for users, by_response in found.items():
        for name, run in by_response.items():
            accounts = run.parts["reactions"].account

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
    """Replay a trace with every reaction, and draw the picture if its file is given."""
    if picture:
        check_picture(picture, "PICTURE")
    clock, name = Clock.of(trace.header), Path(trace.source).name
    period = period_of(clock)
    covered(trace, period[1], f"week {WEEK_OF_CALL}, the week of the call, see WEEK_OF_CALL")
    found = runs(trace, period)
    if picture:
        figure = reaction_figure(
            found, period, "Processors in use around a call for less load",
            f"{name}, {SCHEDULER}, averages over 1 h",
        )  # fmt: skip
        write_picture(figure, picture)
    begin, end = (f"{clock.local(second):%Y-%m-%d %H:%M}" for second in period)
    return [ScriptTable(f"Call from {begin} to {end}: {name}", HEAD, rows(found, period))]


# ---- the picture ------------------------------------------------------------------------------


#: Width of the averages, s.
BIN = HOUR


#: Time shown before and after the period, s.
BEFORE, AFTER = 2 * DAY, 4 * DAY


def mean_use(run: Run, begin: int, end: int) -> float:
    """Return the mean number of processors in use between two seconds of a run."""
    return float(curves.processors_in_use(run.runs, np.array([begin, end]))[0])


def reaction_figure(
    columns: Mapping[str, Mapping[str, Run]],
    period: tuple[int, int],
    title: str,
    subtitle: str = "",
) -> Figure:
    """Return processors in use around a period: users in columns, responses in rows.

    The first run of each kind of users is the one without a response, and is shown with each of the
    others; the period, s of the run, is shaded.
    """
    rows = max(len(runs) for runs in columns.values()) - 1
    height = 0.95 + 1.55 * rows
    figure = new_figure(11, height, title, subtitle)
    grid = figure.add_gridspec(
        rows,
        len(columns),
        left=0.05,
        right=0.985,
        bottom=0.5 / height,
        top=1 - 0.95 / height,
        hspace=0.42,
        wspace=0.12,
    )
    for column, (users, runs) in enumerate(columns.items()):
        (_, without), *others = runs.items()
        for row, (name, run) in enumerate(others):
            axes = figure.add_subplot(grid[row, column])
            _draw(axes, without, run, period)
            axes.set_title(f"{users} users: {name}", **TITLE)
            time_axis(axes, run, *_span(period), named=row == len(others) - 1)
            if not row and not column:
                _explain(axes)
    return figure


def _span(period: tuple[int, int]) -> tuple[int, int]:
    return max(0, period[0] - BEFORE), period[1] + AFTER


def _draw(axes: Axes, without: Run, run: Run, period: tuple[int, int]) -> None:
    first, last = _span(period)
    edges = np.arange(first, last + BIN, BIN, dtype=np.int64)
    tidy(axes)
    axes.axvspan(*period, color=COLOURS["yellow"], alpha=0.35, linewidth=0, zorder=0)
    level = curves.processors_in_use(run.runs, edges)
    axes.stairs(level, edges, fill=True, color=COLOURS["sky"], zorder=1)
    level = curves.processors_in_use(without.runs, edges)
    axes.stairs(level, edges, color="#333333", linewidth=1.0, baseline=None, zorder=2)
    axes.set_ylim(0, 1.14 * run.processors)


def _explain(axes: Axes) -> None:
    """Add a legend of the colours, once, above the panel at the right."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: Sequence[Patch | Line2D] = (
        Patch(color=COLOURS["sky"], label="with the reaction"),
        Line2D([], [], color="#333333", linewidth=1.0, label="without"),
        Patch(color=COLOURS["yellow"], alpha=0.35, label="period of the call"),
    )
    figure = axes.get_figure()
    assert figure is not None
    figure.legend(
        handles=handles,
        loc="upper right",
        bbox_to_anchor=(0.985, 1.0),
        ncols=3,
        fontsize=8.5,
        frameon=False,
        handlelength=1.6,
    )


#: Prints how the reactions change the use of the machine; returns the exit code.
main = script("demand_response", tables, also="PICTURE")

if __name__ == "__main__":
    sys.exit(main())
