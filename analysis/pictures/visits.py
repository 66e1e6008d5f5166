"""Users of a population who come and go, over the time of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.populations.openness import LEAVING, Happening
from hpcrowd.analysis import curves
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.pictures.over_time import Columns, local_times
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.limits.numbers import check_memory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Events drawn upward and downward: colour and hatch.
VISITS = {
    Happening.ARRIVED: ("blue", ""),
    Happening.CAME_BACK: ("sky", "///"),
    Happening.DONE: ("grey", ""),
    Happening.WENT_AWAY: ("orange", "///"),
    Happening.GAVE_UP: ("vermilion", ""),
}


def comings_and_goings(run: Run) -> Figure:
    """Return a picture of the users present over time, and of arrivals and departures per week."""
    figure = plots.new_figure(12, 4.6, "Users who come and go", plots.run_name(run))
    above, below = plots.panels(figure, 2, 1, bottom=0.1, top=0.82, hspace=0.42)
    times, there = users_there(run)
    first, last = curves.span_of(run.runs) or (0, WEEK)
    last = max(last, int(times[-1]) if len(times) else 0)
    plots.tidy(above, "Users present")
    above.stairs(
        there, np.append(times, max(last, times[-1] + 1)), fill=True, color=plots.COLOURS["sky"]
    )
    above.set_ylim(0, 1.08 * max(1, int(there.max())))
    plots.time_axis(above, run, first, last, named=False)
    plots.tidy(below, "Users per week: arrivals upward, departures downward")
    edges, counts = _by_week(run, first, last)
    up, down = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for what, (colour, hatch) in VISITS.items():
        if not counts[what].any():
            continue
        leaves = what in LEAVING
        base = down if leaves else up
        top = base - counts[what] if leaves else base + counts[what]
        below.stairs(
            top, edges, baseline=base, fill=True, facecolor=plots.COLOURS[colour], hatch=hatch,
            edgecolor="white", linewidth=0.3, label=what.value,
        )  # fmt: skip
        up, down = (up, top) if leaves else (top, down)
    below.axhline(0, color="black", linewidth=0.8)
    plots.time_axis(below, run, first, last)
    kinds = len(below.get_legend_handles_labels()[0])
    if kinds:
        plots.legend_at_right(figure, below, kinds)
    return figure


def users_there(run: Run) -> tuple[Int64s, Int64s]:
    """Return the seconds at which the number of users changes, and the number from then on."""
    present: dict[int, bool] = {}
    changes: dict[int, int] = {}
    for visit in run.parts["population"].rows:
        now = visit.what not in LEAVING
        step = int(now) - int(present.get(visit.user, False))
        present[visit.user] = now
        changes[visit.at] = changes.get(visit.at, 0) + step
    times = np.array(sorted(changes), np.int64)
    return times, np.cumsum([changes[at] for at in times.tolist()], dtype=np.int64)


def visits_data(run: Run) -> Columns:
    """Return the data of :func:`comings_and_goings`, week by week from the first event on."""
    first, last = curves.span_of(run.runs) or (0, WEEK)
    edges, counts = _by_week(run, first, last)
    times, there = users_there(run)
    place = np.searchsorted(times, edges[1:], side="left") - 1
    return {
        "week_begins_s": edges[:-1],
        "week_begins_local_time": local_times(run, edges[:-1]),
        "users_there_at_its_end": there[place],
        **{what.value.replace(" ", "_"): counts[what] for what in VISITS},
    }


def _by_week(run: Run, first: int, last: int) -> tuple[Int64s, dict[Happening, Int64s]]:
    """Return the edges of weeks (7 x 24 h) that cover a span, and the events in each by kind."""
    visits = run.parts["population"].rows
    latest = max([last, *(visit.at for visit in visits)])
    weeks = (latest - min(0, first)) // WEEK
    check_memory(f"{weeks:,} weeks of the run", 64 * weeks, "correct the times in the trace")
    edges = np.arange(min(0, first), latest + WEEK + 1, WEEK, dtype=np.int64)
    return edges, {
        what: np.histogram([visit.at for visit in visits if visit.what is what], edges)[0]
        for what in VISITS
    }
