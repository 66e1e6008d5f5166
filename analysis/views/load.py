"""The load until now, and where it comes from: processors in use, the queue, submissions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.pictures.over_time import TIME_BINS
from hpcrowd.analysis.views.frames import figure_at, fill_steps, table_picture
from hpcrowd.analysis.views.moment import at_second, averages
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.views.moment import Moment
    from hpcrowd.environment.jobs import Int64s


#: s; how far back a view looks unless told otherwise.
WINDOW = 7 * DAY

#: Colours of clusters, again and again where there are more.
STACKED = ("sky", "green", "purple", "yellow", "blue", "grey")

#: Clusters that are told one by one.
MOST_NAMED = 5


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
        A row for each bin: ``begin_s`` and ``end_s`` since the origin, ``processors`` of the
        machine, ``processors_up`` that are neither down nor closed for maintenance,
        ``processors_in_use``, ``jobs_waiting``, ``processors_asked`` by the waiting jobs; where
        there are several clusters, ``in_use_`` and the name of each, too.
    """
    import pandas as pd

    edges = load_edges(moment, window)
    jobs = moment.seen(moment.since(int(edges[0])))
    stopped = stopped_runs(moment)
    size, up = averages(moment.steps, edges)
    frame = pd.DataFrame(
        {
            "begin_s": edges[:-1],
            "end_s": edges[1:],
            "processors": size,
            "processors_up": up,
            "processors_in_use": curves.processors_in_use(jobs, edges)
            + curves.processors_in_use(stopped, edges),
            "jobs_waiting": curves.jobs_waiting(jobs, edges),
            "processors_asked": curves.jobs_waiting(jobs, edges, jobs.processors),
        }
    )
    if len(moment.clusters) > 1:
        for number, name in enumerate(moment.clusters):
            frame[f"in_use_{name}"] = sum(
                curves.processors_in_use(some.take(np.flatnonzero(some.cluster == number)), edges)
                for some in (jobs, stopped)
            )
    return frame


def stopped_runs(moment: Moment) -> JobTable:
    """Return the runs that the platform had stopped by then as jobs, of which their time tells."""
    attempts = [one for one in moment.attempts if one.end <= moment.now]
    table = JobTable(len(attempts))
    for name in ("cluster", "submit", "start", "end", "processors"):
        getattr(table, name)[:] = [getattr(one, name) for one in attempts]
    return table


def load_picture(
    moment: Moment, window: int | None = WINDOW, *, width: float = 9.0, height: float = 4.8
) -> Figure:
    """Return a picture of :func:`load_table`; sizes in inches.

    The machine is a dashed line, what of it is down or closed for maintenance is hatched; what is
    in use and what waits now stands in the titles. Where there are several clusters, what is in use
    stands on each other by cluster, and a line says how each is used and who waits where.
    """
    frame = load_table(moment, window)
    edges = np.append(frame["begin_s"].to_numpy(), frame["end_s"].iloc[-1])
    jobs = moment.jobs
    used = int(jobs.processors[moment.running].sum())
    asked = int(jobs.processors[moment.waiting].sum())
    over = plots.averaged(edges[1:] if len(edges) > 2 else edges)  # the first bin may be cut
    broken = bool((frame["processors_up"] < frame["processors"]).any())
    dashed = "dashed: all; hatched: down or closed" if broken else "dashed: all"
    down = moment.size - moment.up
    now = f"now {used:,}" + (f", {down:,} of {moment.size:,} down or closed" if down else "")
    titles = (
        ("processors_in_use", "sky", f"Processors in use, {over}; {dashed}; {now}"),
        ("jobs_waiting", "orange", f"Jobs in the queue; now {np.sum(moment.waiting):,}"),
        ("processors_asked", "vermilion", f"Processors that the queue asks for; now {asked:,}"),
    )
    several = len(moment.clusters) > 1
    figure = figure_at(moment, "Load", width, height, places_words(moment) if several else "")
    grid = figure.add_gridspec(
        3, 1, left=0.65 / width, right=1 - 0.15 / width, bottom=0.5 / height,
        top=1 - (1.05 if several else 0.8) / height, hspace=0.45, height_ratios=(2, 1, 1),
    )  # fmt: skip
    for place, (column, colour, title) in enumerate(titles):
        axes = figure.add_subplot(grid[place])
        level = frame[column].to_numpy()
        plots.tidy(axes, title)
        fill_steps(axes, edges, level, colour)
        axes.set_ylim(0, max(1.0, 1.08 * float(level.max())))
        plots.count_axis(axes)
        plots.label_hours(
            axes, moment.clock, int(edges[0]), moment.now,
            named=column == "processors_asked", most=int(1.3 * width),
        )  # fmt: skip
        if column == "processors_in_use":
            _draw_machine(axes, moment, edges)
            if several:
                _draw_clusters(axes, moment, frame, edges)
            axes.set_ylim(0, 1.08 * max(float(frame["processors"].max()), float(level.max())))
    return figure


def places_words(moment: Moment) -> str:
    """Return how much of each cluster is in use, and how many jobs wait there, in words."""
    jobs, held = moment.jobs, moment.held
    found = []
    for number, (name, size) in enumerate(moment.clusters.items()):
        here = jobs.cluster == number
        used = int(jobs.processors[moment.running & here].sum())
        waits = int(np.sum(moment.waiting & here & ~held))
        found.append(f"{name} {used:,} of {size:,} in use, {waits:,} waiting")
    if held.any():
        found.append(f"{int(held.sum()):,} with the broker")
    if len(found) > MOST_NAMED:
        found = [*found[:MOST_NAMED], "..."]
    return "; ".join(found)


def _draw_machine(axes: Axes, moment: Moment, edges: Int64s) -> None:
    """Draw how many processors there are, and what of them is down or closed."""
    first, last = int(edges[0]), moment.now
    steps = [at_second(moment.steps, first)._replace(at=first)]
    steps += [one for one in moment.steps if first < one.at < last]
    steps.append(steps[-1]._replace(at=last))
    times, sizes, up = (list(column) for column in zip(*steps, strict=True))
    axes.step(times, sizes, where="post", color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.fill_between(
        times, up, sizes, step="post", facecolor="#dddddd", edgecolor=plots.COLOURS["grey"],
        hatch="////", linewidth=0, alpha=0.6, zorder=0.5,
    )  # fmt: skip


def _draw_clusters(axes: Axes, moment: Moment, frame: pd.DataFrame, edges: Int64s) -> None:
    """Draw what is in use on each cluster, one on the other."""
    below = np.zeros(len(edges))
    for place, name in enumerate(moment.clusters):
        level = frame[f"in_use_{name}"].to_numpy()
        above = below + np.append(level, level[-1:])
        colour = plots.COLOURS[STACKED[place % len(STACKED)]]
        axes.fill_between(edges, below, above, step="post", color=colour, linewidth=0, label=name)
        below = above
    axes.legend(
        **plots.LEGEND, loc="lower right", bbox_to_anchor=(1.0, 0.985), ncols=len(moment.clusters),
        borderaxespad=0.2, columnspacing=1.0,
    )  # fmt: skip


#: Most rows of a picture.
MOST_ROWS = 25

#: Where jobs of a grid are that are in no queue.
BROKER = "broker"


def queue_table(moment: Moment, most: int | None = None) -> pd.DataFrame:
    """Return the jobs that wait, first in the queue first.

    Parameters
    ----------
    moment
        The moment; ``len(moment.queue)`` is the number of all jobs that wait.
    most
        Most rows; None for all.

    Returns
    -------
    frame
        ``row`` in the table of jobs, ``job`` number, ``user``, ``processors``,
        ``requested_time_s``, ``submitted_s`` since the origin, ``waited_s`` so far; where there
        are several clusters, ``cluster`` by name, or ``broker`` for jobs of a grid that are in no
        queue.
    """
    import pandas as pd

    jobs, rows = moment.jobs, moment.queue[:most]
    submit = jobs.submit[rows]
    frame = pd.DataFrame(
        {
            "row": rows,
            "job": jobs.number[rows],
            "user": jobs.user[rows],
            "processors": jobs.processors[rows],
            "requested_time_s": jobs.requested_time[rows],
            "submitted_s": submit,
            "waited_s": moment.now - submit,
        }
    )
    if len(moment.clusters) > 1:
        names = np.array([*moment.clusters, BROKER])
        where = names[np.where(moment.held[rows], len(moment.clusters), jobs.cluster[rows])]
        frame.insert(4, "cluster", pd.Series(where.tolist(), dtype="str"))
    return frame


def _word(name: str, value: Any) -> str:
    """Return a cell as people read it."""
    if name.endswith("_s"):
        return format_duration(value) if value >= 0 else "none"
    return f"{value:,}" if name == "processors" else str(value)


def queue_picture(
    moment: Moment, most: int = MOST_ROWS, *, reasons: Mapping[int, str] | None = None
) -> Figure:
    """Return a picture of :func:`queue_table`, at most ``most`` jobs.

    Parameters
    ----------
    moment, most
        See :func:`queue_table`.
    reasons
        Why jobs wait, in words by row; None leaves them out.
    """
    frame = queue_table(moment, most)
    if reasons is not None:
        told = [reasons.get(row, "") for row in frame["row"].tolist()]
        frame = frame.assign(why_it_waits=told)
    frame = frame.drop(columns=["row", "submitted_s"])
    words = [[_word(str(name), value) for value in frame[name].tolist()] for name in frame.columns]
    total = len(moment.queue)
    shown = f"the first {len(frame):,} of " if len(frame) < total else ""
    return table_picture(
        moment, "Queue", frame, words, note=f"{shown}{plural(total, 'waiting job')}"
    )


#: How far the record is shown ahead of now, as a part of what lies behind.
AHEAD = 0.25


class Lateness(NamedTuple):
    """Simulated minus recorded submission, s; None where no such job was submitted."""

    mean: float | None  #: of all jobs submitted so far
    recent: float | None  #: of those submitted in the last day


def lateness_now(moment: Moment) -> Lateness:
    """Return how late users are, as far as there is a record."""
    jobs = moment.jobs
    rows = np.flatnonzero(moment.submitted & (jobs.recorded_submit != UNKNOWN))
    submit = jobs.submit[rows]
    late = submit - jobs.recorded_submit[rows]
    last = late[submit >= moment.now - DAY]
    return Lateness(*(float(some.mean()) if len(some) else None for some in (late, last)))


def submissions_table(moment: Moment, window: int | None = None) -> pd.DataFrame:
    """Return how many jobs were submitted until when.

    Parameters
    ----------
    moment
        The moment.
    window
        s before the moment; None for the whole run so far.

    Returns
    -------
    frame
        A row for each second that is shown: ``time_s`` since the origin, jobs ``recorded`` and
        ``simulated`` as submitted until then, also in that second; ``simulated`` is missing at and
        after now, but for the number so far.
    """
    import pandas as pd

    jobs, now = moment.jobs, moment.now
    recorded = jobs.recorded_submit
    begin = moment.first
    known = recorded != UNKNOWN
    if known.any():
        begin = min(begin, int(np.min(recorded, where=known, initial=begin)))
    if window is not None:
        begin = max(begin, now - window)
    begin = min(begin, now - HOUR)
    last = now + int(AHEAD * (now - begin)) if known.any() else now
    last = max(now, min(last, int(recorded.max(initial=now))))
    times = np.union1d(curves.time_edges(begin, last, TIME_BINS // 2), [begin, now, last])
    times = times[(times >= begin) & (times <= last)]
    simulated = curves.cumulative(jobs.submit[moment.submitted], times)
    return pd.DataFrame(
        {
            "time_s": times,
            "recorded": curves.cumulative(recorded, times),
            "simulated": pd.arrays.IntegerArray(simulated, times > now),
        }
    )


def submissions_picture(
    moment: Moment,
    window: int | None = None,
    *,
    width: float = 6.5,
    height: float = 3.4,
) -> Figure:
    """Return a picture of :func:`submissions_table`; sizes in inches."""
    frame = submissions_table(moment, window)
    late = lateness_now(moment)
    words = "nothing of it is on record"
    if late.mean is not None:
        words = f"mean lateness so far {format_duration(late.mean)}"
        if late.recent is not None:
            words += f", of the last day {format_duration(late.recent)}"
    figure = figure_at(moment, "Submissions", width, height, words)
    axes = figure.add_axes((0.7 / width, 0.5 / height, 1 - 0.85 / width, 1 - 1.6 / height))
    plots.tidy(axes, "Jobs submitted until then")
    times, past = frame["time_s"].to_numpy(), frame["time_s"].to_numpy() <= moment.now
    if not frame["recorded"].any() and not frame["simulated"].any():
        plots.say_nothing(axes, "nothing was submitted")
        return figure
    if frame["recorded"].any():
        recorded = frame["recorded"].to_numpy()
        axes.plot(
            times[past], recorded[past], color=plots.COLOURS["grey"], lw=2.8, label="recorded"
        )
        axes.plot(times[~past], recorded[~past], color=plots.COLOURS["grey"], lw=1.0)
    simulated = frame["simulated"].to_numpy(dtype=float, na_value=np.nan)
    axes.plot(times, simulated, color=plots.COLOURS["blue"], lw=1.3, label="simulated")
    axes.set_ylim(bottom=0 if window is None else None)
    plots.count_axis(axes)
    plots.label_hours(
        axes, moment.clock, int(times[0]), int(times[-1]), named=True, most=int(1.3 * width)
    )
    axes.axvline(moment.now, color="black", linewidth=1.0)
    axes.legend(**plots.LEGEND, loc="upper left")
    return figure
