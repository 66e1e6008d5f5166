"""The pictures of a report on a run: a list, what each shows, and its data.

Most are drawn by :mod:`hpcrowd.analysis.pictures`. The ones here also need
:mod:`hpcrowd.analysis.features`, or the populations whose users come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.populations.openness import LEAVING, Happening
from hpcrowd.analysis import curves
from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.energy.part import over_time_of
from hpcrowd.analysis.features.draw import FEWEST, think_quartiles
from hpcrowd.analysis.features.panels import LETTERS, logarithmic_times
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.html import figure_of
from hpcrowd.analysis.pictures import over_time, plots, power, waits
from hpcrowd.analysis.pictures.density import density_of
from hpcrowd.analysis.pictures.gantt import (
    busiest_day,
    find_window,
    fitting_style,
    gantt,
    running_between,
)
from hpcrowd.analysis.pictures.platform_marks import marks_of
from hpcrowd.analysis.results import write_csv
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, State
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


def visits_data(run: Run) -> over_time.Columns:
    """Return the data of :func:`comings_and_goings`, week by week from the first event on."""
    first, last = curves.span_of(run.runs) or (0, WEEK)
    edges, counts = _by_week(run, first, last)
    times, there = users_there(run)
    place = np.searchsorted(times, edges[1:], side="left") - 1
    return {
        "week_begins_s": edges[:-1],
        "week_begins_local_time": over_time.local_times(run, edges[:-1]),
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


#: Formats that :func:`write_figures` writes.
SUFFIXES = (".png", ".svg")

#: Called before each picture with its title.
Tell = Callable[[str], Any]

#: Picture pixels per screen pixel; 2 is sharp in print, too.
SCALE = 2


@dataclass(frozen=True)
class RunFigure:
    """A picture of a run."""

    title: str  #: heading
    caption: str  #: what the picture shows
    draw: Callable[[Run], Figure]  #: returns the picture
    data: Callable[[Run], over_time.Columns]  #: returns the data behind it, as columns
    #: Whether the picture makes sense for a run.
    shown: Callable[[Run], bool] = lambda run: len(run.jobs) > 0
    more: Callable[[Run], str] = lambda run: ""  #: words added to the caption for a particular run

    def told(self, run: Run) -> str:
        """Return the caption for a run."""
        return " ".join(filter(None, (self.caption, self.more(run))))


def _some_ran(run: Run) -> bool:
    return bool(run.jobs.over.any())


def _some_started(run: Run) -> bool:
    return bool((run.jobs.start != UNKNOWN).any())


def _some_of_users(run: Run) -> bool:
    return _some_ran(run) and bool((run.jobs.user != UNKNOWN).any())


def _also_use(run: Run) -> str:
    words = []
    if over_time.has_record(run):
        words.append("Black lines: as recorded.")
    if marks_of(run):
        words.append("Numbered boxes: changes of the platform, listed below.")
    return " ".join(words)


def _also_submissions(run: Run) -> str:
    if over_time.is_late(run):
        return "Right: how much later than recorded jobs were submitted; below 0 means earlier."
    return "Right: jobs submitted per day."


def _also_users(run: Run) -> str:
    return (
        "Rings: the same user as recorded, joined by a line." if over_time.has_record(run) else ""
    )


#: The window of a whole run.
WHOLE = (None, None)


def busiest_day_of(run: Run) -> Figure:
    """Return a Gantt chart of the busiest day, coloured by user."""
    return gantt(run, busiest_day(run), title=f"Busiest day, {plots.run_name(run)}")


def busiest_day_data(run: Run) -> over_time.Columns:
    """Return the jobs that :func:`busiest_day_of` shows."""
    jobs = run.runs
    rows = running_between(jobs, *find_window(run, None))
    return {
        "number": jobs.number[rows],
        **jobs.with_names(jobs.user[rows]),
        "processors": jobs.processors[rows],
        "submit_s": jobs.submit[rows],
        "start_s": jobs.start[rows],
        "end_s": jobs.end[rows],
        "state": [State(state).name.lower() for state in jobs.state[rows].tolist()],
    }


def whole_run_of(run: Run) -> Figure:
    """Return who used the machine when over the whole run, job by job or as density."""
    return gantt(run, WHOLE, title=f"Who used the machine when, {plots.run_name(run)}")


def whole_run_data(run: Run) -> over_time.Columns:
    """Return the data of :func:`whole_run_of`: shares of the machine, a row per user and time."""
    found = density_of(run, *find_window(run, WHOLE))
    rows, columns = (index.ravel() for index in np.indices(found.share.shape))
    return {
        "user": [found.names[row].removeprefix("user ") for row in rows.tolist()],
        "begin_s": found.edges[:-1][columns],
        "begin_local_time": over_time.local_times(run, found.edges[:-1][columns]),
        "share_of_machine": found.share.ravel(),
    }


def _also_whole(run: Run) -> str:
    if fitting_style(run, *find_window(run, WHOLE)) == "jobs":
        return "Above: the running jobs, coloured by user; below: the queue."
    return (
        "A row per user, those with the most work first, then all others: the darker, the larger "
        "the share of the machine that the user held. Below: processors in use and the queue."
    )


def _is_long(run: Run) -> bool:
    """Return whether a run is longer than its busiest day."""
    return _some_started(run) and busiest_day(run) != find_window(run, WHOLE)


#: Colour, dashes, marker and width of the record and of the simulation.
LOOKS: dict[str, dict[str, Any]] = {
    "recorded": {"color": "#666666", "linestyle": "--", "marker": "s", "linewidth": 1.3},
    "simulated": {
        "color": plots.COLOURS["blue"],
        "linestyle": "-",
        "marker": "o",
        "linewidth": 1.5,
    },
}

#: Labels of the think-time axis, s.
MARKS = {
    1: "1 s", 5: "5 s", 20: "20 s", 60: "1 min", 120: "2 min", 300: "5 min", 600: "10 min",
    1200: "20 min", 2400: "40 min", 3600: "1 h", 7200: "2 h", 6 * 3600: "6 h", 86400: "1 day",
}  # fmt: skip


def think_against_response(run: Run) -> Figure:
    """Return a picture of think times (median, quartiles) by the previous batch's response time.

    A batch is what a user submits without waiting (Zakay and Feitelson 2015). Only think times
    inside sessions count; a session ends when nothing is submitted for an hour.
    """
    figure = plots.new_figure(12, 3.9, "Think times against response times", plots.run_name(run))
    axes = figure.add_axes((0.075, 0.13, 0.91, 0.67))
    plots.tidy(axes)
    axes.set_title(
        f"Think time after a batch: median, band between the quartiles, at least {FEWEST} "
        "batches per dot", **plots.TITLE
    )  # fmt: skip
    found = think_times_of(run)
    if not found:
        plots.say_nothing(axes, "too few batches that follow another")
        return figure
    for name, (middle, low, median, high) in found.items():
        look = LOOKS[name]
        axes.plot(middle, median, markersize=4.5, label=name, **look)
        band: dict[str, Any] = {"facecolor": look["color"], "alpha": 0.2, "linewidth": 0}
        if name == "recorded" and len(found) > 1:
            band = {"facecolor": "none", "edgecolor": "#999999", "hatch": "....", "linewidth": 0.6}
        axes.fill_between(middle, low, high, **band)
    every = np.hstack(list(found.values()))
    logarithmic_times(axes, every[0].min() / 1.8, every[0].max() * 1.8)
    low, high = max(every[1].min() / 1.4, 0.8), every[3].max() * 1.4
    axes.set(yscale="log", ylim=(low, high))
    plots.label_at(
        axes.yaxis, {second: text for second, text in MARKS.items() if low <= second <= high}
    )
    axes.set_ylabel("think time", fontsize=LETTERS)
    axes.set_xlabel("response time of the previous batch, from submission to end", fontsize=LETTERS)
    plots.legend_at_right(figure, axes, 2)
    return figure


def think_times_of(run: Run) -> dict[str, Floats]:
    """Return :func:`~hpcrowd.analysis.features.draw.think_quartiles`, recorded and simulated.

    A side with too few batches is left out.
    """
    tables = {"recorded": over_time.recorded_jobs(run)}
    if not run.is_record and tables["recorded"] is None:
        del tables["recorded"]
    tables["recorded" if run.is_record else "simulated"] = run.jobs.take(
        np.flatnonzero(run.jobs.over)
    )
    found = {}
    for name, jobs in tables.items():
        if jobs is None or not len(jobs):
            continue
        try:
            found[name] = think_quartiles(Workload.from_jobs(jobs, name=name))
        except HpcrowdError:
            continue  # too few batches: the picture says so
    return found


def think_data(run: Run) -> over_time.Columns:
    """Return the data of :func:`think_against_response`."""
    found = think_times_of(run)
    names = ("response_s", "think_p25_s", "think_p50_s", "think_p75_s")
    columns: over_time.Columns = {
        "of": [name for name, table in found.items() for _ in range(table.shape[1])]
    }
    every = np.hstack(list(found.values())) if found else np.zeros((len(names), 0))
    return columns | dict(zip(names, every, strict=True))


#: Pictures of a run by file name, in the order of the report.
RUN_FIGURES = {
    "use": RunFigure(
        "Processors in use and the queue over time",
        "Above: processors in use; below: jobs waiting.",
        over_time.use_over_time,
        over_time.use_data,
        more=_also_use,
    ),
    "submissions": RunFigure(
        "Submissions and lateness over time",
        "Left: jobs submitted so far.",
        over_time.submissions_over_time,
        over_time.submissions_data,
        more=_also_submissions,
    ),
    "waits": RunFigure(
        "Distribution of waits, over jobs and over users",
        "Left: the share of jobs that waited longer than a given time. Right: the share of users "
        "whose mean wait was longer; every user counts once, however many jobs they have.",
        waits.waits_apart,
        waits.waits_data,
        _some_ran,
    ),
    "classes": RunFigure(
        "Waits and slowdowns by size and requested time of jobs",
        "Rows: processors of a job; columns: requested time (run time if no job has one). In "
        "brackets: number of jobs. Darker is worse, on a logarithmic scale. Pale and hatched: "
        f"fewer than {waits.FEW} jobs.",
        waits.waits_by_class,
        waits.classes_data,
        _some_ran,
    ),
    "week": RunFigure(
        "Weekly profile of submissions", "The hours of the week in which jobs are submitted.",
        over_time.week_of, over_time.week_data,
    ),
    "whole": RunFigure(
        "Who used the machine when",
        "The whole run.",
        whole_run_of,
        whole_run_data,
        _is_long,
        _also_whole,
    ),
    "day": RunFigure(
        "Gantt chart of the busiest day",
        "The day with the most processors in use. Above: the running jobs, coloured by user; "
        "below: the queue.",
        busiest_day_of,
        busiest_day_data,
        _some_started,
    ),
    "users": RunFigure(
        "Mean waits of users by their work",
        "Each dot is a user: the further right, the more work; the higher, the longer the wait. "
        "The users with the most work are named at the right.",
        waits.users_waits,
        waits.users_data,
        _some_of_users,
        _also_users,
    ),
    "think": RunFigure(
        "Think times against response times, all users",
        "How long users think before their next batch, by the response time of the previous one: "
        "median and quartiles over all users.",
        think_against_response,
        think_data,
        _some_of_users,
    ),
    "visits": RunFigure(
        "Users who come and go",
        "Above: users present; below: arrivals and departures in each week, with the reason.",
        comings_and_goings,
        visits_data,
        lambda run: len(run.parts["population"].rows) > 0 and curves.span_of(run.jobs) is not None,
    ),
    "power": RunFigure(
        "Power over time",
        "The power of the machine, cooling included. The mean and the highest power are of the "
        "whole run.",
        power.power_over_time,
        power.power_data,
        lambda run: over_time_of(run.parts) is not None,
    ),
}  # fmt: skip


def figures_of(run: Run) -> Iterator[tuple[str, RunFigure]]:
    """Yield the names and pictures that apply to a run."""
    for name, one in RUN_FIGURES.items():
        if one.shown(run):
            yield name, one


class Images:
    """How a report shows its pictures: each as an image; ``tell`` is called before each."""

    lead: tuple[str, ...] = ()  #: sentences for the top of the page

    def __init__(self, tell: Tell) -> None:
        self.tell = tell

    def of(self, name: str, run: Run) -> list[str]:
        """Return a picture of :data:`RUN_FIGURES` as HTML; empty if it does not apply."""
        one = RUN_FIGURES[name]
        if not one.shown(run):
            return []
        self.tell(f"{run.label}: {one.title}")
        png = plots.figure_png(one.draw(run), SCALE)
        return [figure_of(png, one.told(run), f"{one.title}, {plots.run_name(run)}")]

    def scripts(self) -> list[str]:
        """Return the scripts that the pictures need."""
        return []


def write_figures(run: Run, folder: str | Path) -> list[str]:
    """Write every picture of a run into a folder, as PNG, SVG and CSV data; return the names."""
    place, names = Path(folder), []
    for name, one in figures_of(run):
        figure = one.draw(run)
        for suffix in SUFFIXES:
            plots.write_picture(figure, place / f"{name}{suffix}")
        write_columns(one.data(run), place / f"{name}.csv")
        names += [f"{name}{suffix}" for suffix in (*SUFFIXES, ".csv")]
    return names


def write_columns(columns: over_time.Columns, path: Path) -> None:
    """Write columns as comma-separated values; unknown cells are empty."""
    values = [np.asarray(column).tolist() for column in columns.values()]
    rows = zip(*values, strict=True)
    clean = ([None if cell != cell else cell for cell in row] for row in rows)
    write_csv(path, list(columns), clean)
