"""The load until now: processors in use, the queue, submissions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.pictures.over_time import TIME_BINS
from hpcrowd.analysis.views.frames import by_name, figure_at, fill_steps, table_picture
from hpcrowd.analysis.views.moment import at_second, averages
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.views.moment import Moment
    from hpcrowd.environment.jobs import Int64s


#: s; how far back a view looks by default.
WINDOW = 7 * DAY

#: Colours of clusters, repeated if there are more.
STACKED = ("sky", "green", "purple", "yellow", "blue", "grey")

#: Most clusters listed one by one.
MOST_NAMED = 5


def load_edges(moment: Moment, window: int | None = WINDOW, *, until: int | None = None) -> Int64s:
    """Return the bin edges of a window, s; None is the whole run so far.

    It does not begin before the first submission, but is at least an hour, and ends at the moment
    or before, at ``until`` s since the origin.
    """
    last = moment.now if until is None else max(min(until, moment.now), moment.first + HOUR)
    begin = moment.first if window is None else max(moment.first, last - window)
    begin = min(begin, last - HOUR)
    edges = curves.time_edges(begin, last, TIME_BINS)
    return np.unique(np.clip(edges, begin, last))


def load_table(
    moment: Moment, window: int | None = WINDOW, *, until: int | None = None
) -> pd.DataFrame:
    """Return the load in a window, averaged over bins.

    Parameters
    ----------
    moment, window, until
        See :func:`load_edges`.

    Returns
    -------
    frame
        A row for each bin: ``begin_s`` and ``end_s`` since the origin, ``processors`` of the
        machine, ``processors_up`` (neither down nor in maintenance), ``processors_in_use``,
        ``jobs_waiting``, ``processors_asked`` by the waiting jobs; with several clusters also
        ``in_use_NAME`` for each.
    """
    import pandas as pd

    edges = load_edges(moment, window, until=until)
    runs = moment.by_run
    jobs = runs.seen(runs.since(int(edges[0])))
    size, up = averages(moment.steps, edges)
    frame = pd.DataFrame(
        {
            "begin_s": edges[:-1],
            "end_s": edges[1:],
            "processors": size,
            "processors_up": up,
            "processors_in_use": curves.processors_in_use(jobs, edges),
            "jobs_waiting": curves.jobs_waiting(jobs, edges),
            "processors_asked": curves.jobs_waiting(jobs, edges, jobs.processors),
        }
    )
    if len(moment.clusters) > 1:
        for number, name in enumerate(moment.clusters):
            here = jobs.take(np.flatnonzero(jobs.cluster == number))
            frame[f"in_use_{name}"] = curves.processors_in_use(here, edges)
    return frame


def load_picture(
    moment: Moment,
    window: int | None = WINDOW,
    *,
    until: int | None = None,
    width: float = 9.0,
    height: float = 4.8,
) -> Figure:
    """Return a picture of :func:`load_table`, see there; sizes in inches.

    The size of the machine is a dashed line, processors that are down or in maintenance are
    hatched, and the titles give the values now. With several clusters, use is stacked by cluster,
    and a line gives the use and the queue of each.
    """
    frame = load_table(moment, window, until=until)
    edges = np.append(frame["begin_s"].to_numpy(), frame["end_s"].iloc[-1])
    runs = moment.by_run
    used = int(runs.jobs.processors[runs.running].sum())
    asked = int(runs.jobs.processors[runs.waiting].sum())
    over = plots.averaged(edges[1:] if len(edges) > 2 else edges)  # the first bin may be shorter
    broken = bool((frame["processors_up"] < frame["processors"]).any())
    dashed = "dashed: all; hatched: down or closed" if broken else "dashed: all"
    down = moment.size - moment.up
    now = f"now {used:,}" + (f", {down:,} of {moment.size:,} down or closed" if down else "")
    titles = (
        ("processors_in_use", "sky", f"Processors in use, {over}; {dashed}; {now}"),
        ("jobs_waiting", "orange", f"Jobs in the queue; now {np.sum(runs.waiting):,}"),
        ("processors_asked", "vermilion", f"Processors requested by the queue; now {asked:,}"),
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
            axes, moment.clock, int(edges[0]), int(edges[-1]),
            named=column == "processors_asked", most=int(1.3 * width),
        )  # fmt: skip
        if column == "processors_in_use":
            _draw_machine(axes, moment, edges)
            if several:
                _draw_clusters(axes, moment, frame, edges)
            axes.set_ylim(0, 1.08 * max(float(frame["processors"].max()), float(level.max())))
    return figure


def places_words(moment: Moment) -> str:
    """Return the processors in use and the jobs waiting on each cluster, in words."""
    moment = moment.by_run
    jobs, held = moment.jobs, moment.held
    found = []
    for number, (name, size) in enumerate(moment.clusters.items()):
        here = jobs.cluster == number
        used = int(jobs.processors[moment.running & here].sum())
        waits = int(np.sum(moment.waiting & here & ~held))
        found.append(f"{name} {used:,} of {size:,} in use, {waits:,} waiting")
    if held.any():
        where = "with the broker" if len(moment.clusters) > 1 else "not eligible yet"
        found.append(f"{int(held.sum()):,} {where}")
    if len(found) > MOST_NAMED:
        found = [*found[:MOST_NAMED], "..."]
    return "; ".join(found)


def _draw_machine(axes: Axes, moment: Moment, edges: Int64s) -> None:
    """Draw the number of processors, and those that are down or closed."""
    first, last = int(edges[0]), int(edges[-1])
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
    """Draw the processors in use on each cluster, stacked."""
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

#: Place of grid jobs that are not in a queue.
BROKER = "broker"


def queue_table(moment: Moment, most: int | None = None) -> pd.DataFrame:
    """Return the waiting jobs, in the order of the queue.

    Parameters
    ----------
    moment
        The moment; ``len(moment.queue)`` is the number of all waiting jobs.
    most
        Most rows; None for all.

    Returns
    -------
    frame
        ``row`` in the table of jobs, ``job`` number, ``user``, ``user_name`` if the trace has
        names, ``processors``, ``requested_time_s``, ``submitted_s`` since the origin, ``waited_s``
        so far; with several clusters the name of the ``cluster``, or ``broker`` for grid jobs that
        are not in a queue.
    """
    import pandas as pd

    jobs, rows = moment.jobs, moment.queue[:most]
    submit = jobs.submit[rows]
    frame = pd.DataFrame(
        {
            "row": rows,
            "job": jobs.number[rows],
            **jobs.with_names(jobs.user[rows]),
            "processors": jobs.processors[rows],
            "requested_time_s": jobs.requested_time[rows],
            "submitted_s": submit,
            "waited_s": moment.now - submit,
        }
    )
    if len(moment.clusters) > 1:
        names = np.array([*moment.clusters, BROKER])
        where = names[np.where(moment.held[rows], len(moment.clusters), jobs.cluster[rows])]
        frame.insert(
            frame.columns.tolist().index("processors") + 1,
            "cluster",
            pd.Series(where.tolist(), dtype="str"),
        )
    return frame


def _word(name: str, value: Any) -> str:
    """Return the text of a cell."""
    if name.endswith("_s"):
        return format_duration(value) if value >= 0 else "none"
    return f"{value:,}" if name == "processors" else str(value)


def queue_picture(
    moment: Moment, most: int = MOST_ROWS, *, reasons: Mapping[int, str] | None = None
) -> Figure:
    """Return a picture of :func:`queue_table` with at most ``most`` jobs.

    Parameters
    ----------
    moment, most
        See :func:`queue_table`.
    reasons
        Why jobs wait, in words by row; None leaves the reasons out.
    """
    frame = queue_table(moment, most)
    if reasons is not None:
        told = [reasons.get(row, "") for row in frame["row"].tolist()]
        frame = frame.assign(why_it_waits=told)
    frame = by_name(frame.drop(columns=["row", "submitted_s"]))
    words = [[_word(str(name), value) for value in frame[name].tolist()] for name in frame.columns]
    total = len(moment.queue)
    shown = f"the first {len(frame):,} of " if len(frame) < total else ""
    return table_picture(
        moment, "Queue", frame, words, note=f"{shown}{plural(total, 'waiting job')}"
    )


#: How far the record is shown into the future, as a part of the past that is shown.
AHEAD = 0.25


class Lateness(NamedTuple):
    """Simulated minus recorded submission, s; None if no such job was submitted."""

    mean: float | None  #: of all jobs submitted so far
    recent: float | None  #: of jobs submitted in the last day


def lateness_now(moment: Moment) -> Lateness:
    """Return the mean lateness, for jobs with a record."""
    jobs = moment.jobs
    rows = np.flatnonzero(moment.submitted & (jobs.recorded_submit != UNKNOWN))
    submit = jobs.submit[rows]
    late = submit - jobs.recorded_submit[rows]
    last = late[submit >= moment.now - DAY]
    return Lateness(*(float(some.mean()) if len(some) else None for some in (late, last)))


def lateness_words(late: Lateness) -> str:
    """Return the mean lateness in words."""
    if late.mean is None:
        return "no record to compare with"
    words = f"mean lateness so far {format_duration(late.mean)}"
    if late.recent is not None:
        words += f", in the last day {format_duration(late.recent)}"
    return words


def submissions_table(
    moment: Moment, window: int | None = None, *, until: int | None = None
) -> pd.DataFrame:
    """Return the number of jobs submitted over time.

    Parameters
    ----------
    moment
        The moment.
    window
        s before the moment; None for the whole run so far.
    until
        s since the origin, the end of the window; what was recorded is shown until then, also
        after the moment. By default a quarter of the window after the moment.

    Returns
    -------
    frame
        A row for each second shown: ``time_s`` since the origin, jobs ``recorded`` and
        ``simulated`` as submitted up to and including that second; ``simulated`` is missing after
        now, and at now it is the number so far.
    """
    import pandas as pd

    jobs, now = moment.jobs, moment.now
    recorded = jobs.recorded_submit
    begin = moment.first
    known = recorded != UNKNOWN
    if known.any():
        begin = min(begin, int(np.min(recorded, where=known, initial=begin)))
    end = now if until is None else min(until, now)
    if window is not None:
        begin = max(begin, end - window)
    begin = min(begin, end - HOUR)
    last = now + int(AHEAD * (now - begin)) if until is None else max(end, until)
    last = max(end, min(last, int(recorded.max(initial=end)))) if known.any() else end
    times = np.union1d(curves.time_edges(begin, last, TIME_BINS // 2), [begin, end, last])
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
    until: int | None = None,
    width: float = 6.5,
    height: float = 3.4,
) -> Figure:
    """Return a picture of :func:`submissions_table`, see there; sizes in inches."""
    frame = submissions_table(moment, window, until=until)
    figure = figure_at(moment, "Submissions", width, height, lateness_words(lateness_now(moment)))
    axes = figure.add_axes((0.7 / width, 0.5 / height, 1 - 0.85 / width, 1 - 1.6 / height))
    plots.tidy(axes, "Jobs submitted so far")
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
    if times[0] <= moment.now <= times[-1]:
        axes.axvline(moment.now, color="black", linewidth=1.0)
    axes.legend(**plots.LEGEND, loc="upper left")
    return figure
