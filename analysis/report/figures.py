"""The pictures of a report on a run: which there are, what each shows, and its data.

Most are drawn by :mod:`hpcrowd.analysis.pictures`; those here need more than a picture should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.features.draw import FEWEST, think_quartiles
from hpcrowd.analysis.features.panels import LETTERS, logarithmic_times
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.pictures import over_time, plots, waits
from hpcrowd.analysis.pictures.gantt import busiest_day, find_window, gantt, running_between
from hpcrowd.analysis.pictures.platform_marks import marks_of
from hpcrowd.analysis.results import write_csv
from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.jobs import UNKNOWN, State

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Formats in which :func:`write_figures` draws.
SUFFIXES = (".png", ".svg")


@dataclass(frozen=True)
class RunFigure:
    """A picture of a run.

    Attributes
    ----------
    title
        What it is called.
    caption
        What is to be seen.
    draw
        Returns the picture.
    data
        Returns what it shows, as columns.
    shown
        Whether a run has it.
    more
        What else is to be seen in the picture of a certain run.
    """

    title: str
    caption: str
    draw: Callable[[Run], Figure]
    data: Callable[[Run], over_time.Columns]
    shown: Callable[[Run], bool] = lambda run: len(run.jobs) > 0
    more: Callable[[Run], str] = lambda run: ""

    def told(self, run: Run) -> str:
        """Return what is to be seen in the picture of a run."""
        return " ".join(filter(None, (self.caption, self.more(run))))


def _also_use(run: Run) -> str:
    words = []
    if over_time.has_record(run):
        words.append("Black lines: the same as recorded.")
    if marks_of(run):
        words.append("Boxes with numbers: changes of the platform, told below.")
    return " ".join(words)


def _also_submissions(run: Run) -> str:
    if over_time.is_late(run):
        return "Right, how much later than recorded jobs were submitted; below 0 earlier."
    return "Right, how many were submitted per day."


def _also_users(run: Run) -> str:
    return (
        "Rings, joined by a line: the same user as recorded." if over_time.has_record(run) else ""
    )


def busiest_day_of(run: Run) -> Figure:
    """Return the Gantt picture of the busiest day, coloured by user."""
    return gantt(run, busiest_day(run), title=f"The busiest day, {run.label}")


def busiest_day_data(run: Run) -> over_time.Columns:
    """Return the jobs that :func:`busiest_day_of` shows."""
    jobs = run.jobs
    rows = running_between(jobs, *find_window(run, None))
    return {
        "number": jobs.number[rows],
        "user": jobs.user[rows],
        "processors": jobs.processors[rows],
        "submit_s": jobs.submit[rows],
        "start_s": jobs.start[rows],
        "end_s": jobs.end[rows],
        "state": [State(state).name.lower() for state in jobs.state[rows].tolist()],
    }


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

#: Where the axis of think times is labelled, s.
MARKS = {
    1: "1 s", 5: "5 s", 20: "20 s", 60: "1 min", 120: "2 min", 300: "5 min", 600: "10 min",
    1200: "20 min", 2400: "40 min", 3600: "1 h", 7200: "2 h", 6 * 3600: "6 h", 86400: "1 day",
}  # fmt: skip


def think_against_response(run: Run) -> Figure:
    """Return medians and quartiles of think times by the response time of the batch before.

    A batch is what a user submits without waiting (Zakay and Feitelson 2015); think times are those
    inside of sessions, which end when nothing is submitted for an hour.
    """
    figure = plots.new_figure(12, 3.9, "Think times against response times", run.label)
    axes = figure.add_axes((0.075, 0.13, 0.91, 0.67))
    plots.tidy(axes)
    axes.set_title(
        f"Think time after a batch: median, band from quartile to quartile, {FEWEST} or more "
        "batches a dot", **plots.TITLE
    )  # fmt: skip
    found = think_times_of(run)
    if not found:
        plots.say_nothing(axes, "too few batches that follow others")
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
    axes.set_xlabel("response time of the batch before, from submission to end", fontsize=LETTERS)
    plots.legend_at_right(figure, axes, 2)
    return figure


def think_times_of(run: Run) -> dict[str, Floats]:
    """Return :func:`~hpcrowd.analysis.features.draw.think_quartiles`, recorded and simulated.

    What has too few batches is left out.
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
            continue  # too few: the picture says so
    return found


def think_data(run: Run) -> over_time.Columns:
    """Return what :func:`think_against_response` shows."""
    found = think_times_of(run)
    names = ("response_s", "think_p25_s", "think_p50_s", "think_p75_s")
    columns: over_time.Columns = {
        "of": [name for name, table in found.items() for _ in range(table.shape[1])]
    }
    every = np.hstack(list(found.values())) if found else np.zeros((len(names), 0))
    return columns | dict(zip(names, every, strict=True))


#: Pictures of a run by the names of their files, in the order of the report.
RUN_FIGURES = {
    "use": RunFigure(
        "Processors in use and the queue over time",
        "Above, how many processors were in use; below, how many jobs waited.",
        over_time.use_over_time,
        over_time.use_data,
        more=_also_use,
    ),
    "submissions": RunFigure(
        "Submissions and lateness over time",
        "Left, how many jobs had been submitted by when.",
        over_time.submissions_over_time,
        over_time.submissions_data,
        more=_also_submissions,
    ),
    "waits": RunFigure(
        "Distribution of waits, over jobs and over users",
        "Left, the share of jobs that waited longer than a time; right, the share of users who "
        "did so on average: there a user with many jobs counts as much as one with few.",
        waits.waits_apart,
        waits.waits_data,
    ),
    "classes": RunFigure(
        "Waits and slowdowns by size and requested time of jobs",
        "Rows: processors of a job; columns: the time that its user asked for (the run time, if "
        "none asked). In brackets the jobs of a cell; darker is worse, in equal ratios. Pale and "
        f"hatched: fewer than {waits.FEW} jobs.",
        waits.waits_by_class,
        waits.classes_data,
    ),
    "week": RunFigure(
        "Weekly profile of submissions", "In which hours of the week jobs are submitted.",
        over_time.week_of, over_time.week_data,
    ),
    "day": RunFigure(
        "Gantt picture of the busiest day",
        "The day with the most processors in use: who held how many of them when, coloured by "
        "user; below, who waited.",
        busiest_day_of,
        busiest_day_data,
    ),
    "users": RunFigure(
        "Mean waits of users by their work",
        "A dot is a user: to the right those with more work, above those who wait longer. "
        "The users with the most work have their numbers at the right.",
        waits.users_waits,
        waits.users_data,
        lambda run: bool((run.jobs.user != UNKNOWN).any()),
        _also_users,
    ),
    "think": RunFigure(
        "Think times against response times, all users",
        "How long users think before their next batch, by how long they waited for the last: "
        "medians and quartiles over the whole population.",
        think_against_response,
        think_data,
        lambda run: bool((run.jobs.user != UNKNOWN).any()),
    ),
    "visits": RunFigure(
        "Users who come and go",
        "Above, how many users are there; below, who comes and who leaves in each week, and why.",
        over_time.comings_and_goings,
        over_time.visits_data,
        lambda run: len(run.visits) > 0 and curves.span_of(run.jobs) is not None,
    ),
}  # fmt: skip


def figures_of(run: Run) -> Iterator[tuple[str, RunFigure]]:
    """Yield the pictures that a run has, by name."""
    for name, one in RUN_FIGURES.items():
        if one.shown(run):
            yield name, one


def write_figures(run: Run, folder: str | Path) -> list[str]:
    """Write every picture of a run into an existing folder: PNG, SVG, and its data as CSV.

    Returns
    -------
    list of str
        Names of the files.
    """
    place, names = Path(folder), []
    for name, one in figures_of(run):
        figure = one.draw(run)
        for suffix in SUFFIXES:
            plots.write_picture(figure, place / f"{name}{suffix}")
        write_columns(one.data(run), place / f"{name}.csv")
        names += [f"{name}{suffix}" for suffix in (*SUFFIXES, ".csv")]
    return names


def write_columns(columns: over_time.Columns, path: Path) -> None:
    """Write columns as comma-separated values; what is not known is empty."""
    values = [np.asarray(column).tolist() for column in columns.values()]
    rows = zip(*values, strict=True)
    clean = ([None if cell != cell else cell for cell in row] for row in rows)
    write_csv(path, list(columns), clean)
