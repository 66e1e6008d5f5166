"""The load until now: processors in use, and what waits in the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis import curves
from analysis.gantt import count_axis
from analysis.hours_axis import label_hours
from analysis.plots import TIME_BINS, TITLE, averaged, tidy
from analysis.views.frames import figure_at, fill_steps
from environment.clock import DAY, HOUR

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from analysis.views.moment import Moment
    from environment.jobs import Int64s

#: s; how far back a view looks unless told otherwise.
WINDOW = 7 * DAY


def load_edges(moment: Moment, window: int | None = WINDOW) -> Int64s:
    """Return the edges of bins over a window that ends at the moment, s.

    Parameters
    ----------
    moment
        The moment.
    window
        s; None for the whole run so far. It does not begin before the first submission, but is an
        hour at least.
    """
    begin = moment.first if window is None else max(moment.first, moment.now - window)
    begin = min(begin, moment.now - HOUR)
    edges = curves.time_edges(begin, moment.now, TIME_BINS)
    return np.unique(np.clip(edges, begin, moment.now))


def load_table(moment: Moment, window: int | None = WINDOW) -> pd.DataFrame:
    """Return the load over a window that ends at the moment, averaged over bins of time.

    Parameters
    ----------
    moment, window
        See :func:`load_edges`.

    Returns
    -------
    frame
        A row for each bin: ``begin_s`` and ``end_s`` since the origin, ``processors_in_use``,
        ``jobs_waiting``, ``processors_asked`` by the waiting jobs.
    """
    import pandas as pd

    edges = load_edges(moment, window)
    jobs = moment.seen(moment.since(int(edges[0])))
    return pd.DataFrame(
        {
            "begin_s": edges[:-1],
            "end_s": edges[1:],
            "processors_in_use": curves.processors_in_use(jobs, edges),
            "jobs_waiting": curves.jobs_waiting(jobs, edges),
            "processors_asked": curves.processors_asked(jobs, edges),
        }
    )


def load_picture(
    moment: Moment, window: int | None = WINDOW, *, width: float = 9.0, height: float = 4.8
) -> Figure:
    """Return a picture of :func:`load_table`; sizes in inches.

    The machine is a dashed line, what is in use and what waits now stands in the titles.
    """
    frame = load_table(moment, window)
    edges = np.append(frame["begin_s"].to_numpy(), frame["end_s"].iloc[-1])
    jobs = moment.jobs
    used = int(jobs.processors[moment.running].sum())
    asked = int(jobs.processors[moment.waiting].sum())
    over = averaged(edges[1:] if len(edges) > 2 else edges)  # the first bin may be cut
    titles = (
        ("processors_in_use", "sky", f"Processors in use, {over}; dashed: all; now {used:,}"),
        ("jobs_waiting", "orange", f"Jobs in the queue; now {np.sum(moment.waiting):,}"),
        ("processors_asked", "vermilion", f"Processors that the queue asks for; now {asked:,}"),
    )
    figure = figure_at(moment, "Load", width, height)
    grid = figure.add_gridspec(
        3, 1, left=0.65 / width, right=1 - 0.15 / width, bottom=0.5 / height,
        top=1 - 0.8 / height, hspace=0.45, height_ratios=(2, 1, 1),
    )  # fmt: skip
    for place, (column, colour, title) in enumerate(titles):
        axes = figure.add_subplot(grid[place])
        level = frame[column].to_numpy()
        tidy(axes)
        fill_steps(axes, edges, level, colour)
        axes.set_title(title, **TITLE)
        axes.set_ylim(0, max(1.0, 1.08 * float(level.max())))
        count_axis(axes)
        label_hours(
            axes, moment.clock, int(edges[0]), moment.now,
            named=column == "processors_asked", most=int(1.3 * width),
        )  # fmt: skip
        if column == "processors_in_use":
            axes.axhline(moment.processors, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
            axes.set_ylim(0, 1.08 * max(moment.processors, float(level.max())))
    return figure
