"""Who comes and goes in a population that is open at both ends, week by week."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.populations.openness import LEAVING, Happening
from hpcrowd.analysis import curves
from hpcrowd.analysis.pictures.over_time import Columns, local_times
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, TITLE, new_figure, tidy, time_axis
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.jobs import Int64s

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: What is drawn upward and downward: colour and hatch.
LOOKS = {
    Happening.ARRIVED: ("blue", ""),
    Happening.CAME_BACK: ("sky", "///"),
    Happening.DONE: ("grey", ""),
    Happening.WENT_AWAY: ("orange", "///"),
    Happening.GAVE_UP: ("vermilion", ""),
}


def comings_and_goings(run: Run) -> Figure:
    """Return how many users are there over time, and who came and left in each week."""
    figure = new_figure(12, 4.6, "Users who come and go", run.label)
    grid = figure.add_gridspec(2, 1, left=0.055, right=0.985, bottom=0.1, top=0.82, hspace=0.42)
    above, below = (figure.add_subplot(grid[row]) for row in (0, 1))
    times, there = users_there(run)
    first, last = curves.span_of(run.jobs) or (0, WEEK)
    last = max(last, int(times[-1]) if len(times) else 0)
    tidy(above)
    above.stairs(there, np.append(times, max(last, times[-1] + 1)), fill=True, color=COLOURS["sky"])
    above.set_ylim(0, 1.08 * max(1, int(there.max())))
    above.set_title("Users who are there", **TITLE)
    time_axis(above, run, first, last, named=False)
    tidy(below)
    edges, counts = _by_week(run, first, last)
    up, down = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for what, (colour, hatch) in LOOKS.items():
        if not counts[what].any():
            continue
        leaves = what in LEAVING
        base = down if leaves else up
        top = base - counts[what] if leaves else base + counts[what]
        below.stairs(
            top, edges, baseline=base, fill=True, facecolor=COLOURS[colour], hatch=hatch,
            edgecolor="white", linewidth=0.3, label=what.value,
        )  # fmt: skip
        up, down = (up, top) if leaves else (top, down)
    below.axhline(0, color="black", linewidth=0.8)
    below.set_title("Users per week: upward who come, downward who leave", **TITLE)
    time_axis(below, run, first, last)
    handles, labels = below.get_legend_handles_labels()
    if handles:
        figure.legend(
            handles, labels, loc="upper right", bbox_to_anchor=(0.985, 0.99), ncols=len(handles),
            **LEGEND,
        )  # fmt: skip
    return figure


def users_there(run: Run) -> tuple[Int64s, Int64s]:
    """Return the seconds at which the users who are there change, and how many there are then."""
    present: dict[int, bool] = {}
    changes: dict[int, int] = {}
    for visit in run.visits:
        now = visit.what not in LEAVING
        step = int(now) - int(present.get(visit.user, False))
        present[visit.user] = now
        changes[visit.at] = changes.get(visit.at, 0) + step
    times = np.array(sorted(changes), np.int64)
    return times, np.cumsum([changes[at] for at in times.tolist()], dtype=np.int64)


def visits_data(run: Run) -> Columns:
    """Return what :func:`comings_and_goings` shows, week by week from the first event on."""
    first, last = curves.span_of(run.jobs) or (0, WEEK)
    edges, counts = _by_week(run, first, last)
    times, there = users_there(run)
    place = np.searchsorted(times, edges[1:], side="left") - 1
    return {
        "week_begins_s": edges[:-1],
        "week_begins_local_time": local_times(run, edges[:-1]),
        "users_there_at_its_end": there[place],
        **{what.value.replace(" ", "_"): counts[what] for what in LOOKS},
    }


def _by_week(run: Run, first: int, last: int) -> tuple[Int64s, dict[Happening, Int64s]]:
    """Return weeks of 7 times 24 hours that cover a span, and how often what happened in each."""
    latest = max([last, *(visit.at for visit in run.visits)])
    edges = np.arange(min(0, first), latest + WEEK + 1, WEEK, dtype=np.int64)
    return edges, {
        what: np.histogram([visit.at for visit in run.visits if visit.what is what], edges)[0]
        for what in LOOKS
    }
