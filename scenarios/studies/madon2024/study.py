"""Madon et al. 2024: the study, its output, and how it is run.

Madon, Da Costa and Pierson replay two logs of the Parallel Workloads Archive under six platforms,
each with rigid users, with think times between jobs (a0) and between sessions (a60).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.metrics import PERCENTILES, per_user
from hpcrowd.analysis.pictures.plots import COLOURS as PALETTE
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.studies.madon2024.measures import (
    EXPERIMENTS,
    NAMES,
    QUANTITIES,
    REPLAYS,
    ROUNDING,
    TITLES,
    WINDOW_MONTHS,
    Cell,
    LogRuns,
    Reading,
    figure5c_readings,
    name_of,
    sensitivity_parts,
    simulate,
    statements,
    window_of,
)
from hpcrowd.scenarios.studies.options import TRACES
from hpcrowd.scenarios.studies.render import Picture, Table, Version
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs, trace_facts
from hpcrowd.scenarios.studies.study import PublishedStudy, Requirement, plain
from hpcrowd.scenarios.terminal import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.run import Run


# ---- pictures --------------------------------------------------------------------------------
# Each function takes the simulations of one log and returns a figure; :data:`FIGURES` names them.
# Colours are those of Okabe and Ito, which people with colour vision deficiencies can tell apart.

BLACK = "#000000"
BLUE, ORANGE, GREEN, VERMILION, SKY = (
    PALETTE[name] for name in ("blue", "orange", "green", "vermilion", "sky")
)

#: Colour of each replay; rigid is blue and feedback orange, as in the paper.
COLOURS = {"rigid": BLUE, "a0": GREEN, "a60": ORANGE}

#: Resolution of the files, dots per inch.
DPI = 150

#: Fonts and lines for a column of print at 100 % or a page at half size.
STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
}


def _figure(width: float, height: float, title: str) -> Figure:
    """Return an empty figure, in inches, without touching any global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, fontsize=10)
    return figure


def _panels(figure: Any, rows: int, columns: int, **sharing: Any) -> list[Axes]:
    axes = figure.subplots(rows, columns, squeeze=False, **sharing)
    for one in axes.flat:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(True)
    return list(axes.flat)


def _styled(draw: Callable[[LogRuns], Figure]) -> Callable[[LogRuns], Figure]:
    """Draw with :data:`STYLE`, and leave matplotlib's settings as they were."""

    def drawn(log: LogRuns) -> Figure:
        from matplotlib import rc_context

        with rc_context(STYLE):  # type: ignore[arg-type]
            return draw(log)

    drawn.__name__, drawn.__doc__ = draw.__name__, draw.__doc__
    return drawn


def _submissions(run: Run) -> NDArray[Any]:
    """Return the submissions in days since the beginning of the log, sorted."""
    jobs = run.jobs
    return np.sort((jobs.submit - jobs.recorded_submit.min()) / DAY)


def figure2(log: LogRuns) -> Figure:
    """Jobs submitted per week, rigid and a60, by experiment (Fig. 2)."""
    figure = _figure(7.2, 6.4, f"Submissions over time, {log.log}")
    axes = _panels(figure, 3, 2, sharex=True, sharey=True)
    for panel, experiment in zip(axes, EXPERIMENTS, strict=True):
        for users in ("rigid", "a60"):
            days = _submissions(log.runs[experiment, users])
            edges = np.arange(0, days[-1] + 7, 7)
            edges = edges if len(edges) > 1 else np.array([0, 7])
            counts, _ = np.histogram(days, edges)
            panel.stairs(counts, edges, fill=True, color=COLOURS[users], alpha=0.25)
            panel.stairs(counts, edges, color=COLOURS[users], linewidth=1.1, label=users)
        panel.set_title(NAMES[experiment])
        panel.set_ylim(bottom=0)
    axes[1].legend(loc="upper right")
    figure.supxlabel("days since the beginning of the log", fontsize=9)
    figure.supylabel("jobs submitted per week", fontsize=9)
    return figure


def figure3(log: LogRuns) -> Figure:
    """Cumulative number of jobs submitted and finished, rigid and a60 (Fig. 3)."""
    figure = _figure(7.2, 7.6, f"Jobs submitted and finished, {log.log}")
    parts = figure.subfigures(2, 1, squeeze=False).flat
    for part, word in zip(parts, ("submitted", "finished"), strict=True):
        axes = _panels(part, 2, 3, sharex=True, sharey=True)
        for panel, experiment in zip(axes, EXPERIMENTS, strict=True):
            for users, dashes in (("rigid", "-"), ("a60", (0, (4, 1.5)))):
                run = log.runs[experiment, users]
                days = _submissions(run)
                if word == "finished":
                    begin = run.jobs.recorded_submit.min()
                    days = np.sort((run.jobs.end[run.jobs.over] - begin) / DAY)
                thousands = np.arange(1, len(days) + 1) / 1000
                panel.plot(
                    days, thousands, color=COLOURS[users], linestyle=dashes, lw=1.4, label=users
                )
            panel.set_title(NAMES[experiment])
            panel.set_ylim(bottom=0)
        axes[0].legend(loc="lower right")
        part.supylabel(f"thousand jobs {word}", fontsize=9)
    figure.supxlabel("days since the beginning of the log", fontsize=9)
    return figure


def _users(log: LogRuns, metric: str, scale: float, small: float) -> tuple[Figure, list[Axes]]:
    """Draw a metric of each user against its number of jobs under a60, by experiment."""
    figure = _figure(7.2, 6.6, "")
    axes = _panels(figure, 3, 2, sharex=True, sharey=True)
    largest = small
    for panel, experiment in zip(axes, EXPERIMENTS, strict=True):
        run = log.runs[experiment, "a60"]
        users, values = per_user(run.jobs)[metric]
        numbers, jobs = np.unique(run.jobs.user, return_counts=True)
        of_user = jobs[np.searchsorted(numbers, users)]
        scaled = values / scale
        panel.scatter(of_user, scaled, s=11, color=BLUE, alpha=0.55, linewidths=0)
        panel.axhline(0, color=BLACK, linewidth=0.8)
        panel.set_title(NAMES[experiment])
        panel.set_xscale("log")
        panel.set_xlim(0.8, max(1.25 * int(jobs.max()), 10))
        largest = max(largest, float(np.abs(scaled).max(initial=0)))
    decades = np.arange(np.floor(np.log10(small)), np.ceil(np.log10(largest)) + 1)
    for panel in axes:
        panel.set_yscale("symlog", linthresh=small, linscale=0.9)
        step = 2 if len(decades) > 4 else 1
        ticks = 10.0 ** decades[::step]
        panel.set_yticks(np.concatenate([-ticks[::-1], [0], ticks]))
        panel.set_ylim(-1.5 * largest, 1.5 * largest)
        panel.minorticks_off()
    for panel in axes[-2:]:
        panel.set_xlabel("jobs of the user")
    return figure, axes


def figure4(log: LogRuns) -> Figure:
    """Mean lateness of each user under a60 against its number of jobs (Fig. 4)."""
    figure, _ = _users(log, "lateness_mean_s", DAY, 0.01)
    figure.suptitle(f"Mean lateness of each user, a60, {log.log}", fontsize=10)
    figure.supylabel("mean lateness (days; linear within ± 0.01)", fontsize=9)
    return figure


def figure5(log: LogRuns) -> Figure:
    """Additional lateness of each user under a60, with percentiles over users (Fig. 5)."""
    figure, axes = _users(log, "additional_lateness_s", 1, 10)
    for panel, experiment in zip(axes, EXPERIMENTS, strict=True):
        _, values = per_user(log.runs[experiment, "a60"].jobs)["additional_lateness_s"]
        styles = zip(PERCENTILES, (":", "-", "--"), strict=True)
        for percentile, style in styles if len(values) else ():
            at = float(np.percentile(values, percentile))
            label = "median" if percentile == 50 else f"{percentile}th percentile"
            panel.axhline(at, color=VERMILION, linestyle=style, linewidth=1.3, label=label)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(f"Additional lateness of each user, a60, {log.log}", fontsize=10)
    figure.supylabel("additional lateness (s per job; linear within ± 10)", fontsize=9)
    return figure


def figure7(log: LogRuns) -> Figure:
    """How much later jobs are submitted: a60 than rigid, and a0 than a60 (Fig. 7)."""
    note = "line: median; outer 0.5 % not shown"
    figure = _figure(7.2, 6.4, f"Differences in submission times, {log.log} ({note})")
    axes = _panels(figure, len(EXPERIMENTS), 2, sharex="col")
    for column, (later, earlier) in enumerate((("a60", "rigid"), ("a0", "a60"))):
        differences = [
            (log.runs[experiment, later].jobs.submit - log.runs[experiment, earlier].jobs.submit)
            / DAY
            for experiment in EXPERIMENTS
        ]
        low = min(float(np.percentile(values, 0.5)) for values in differences)
        high = max(float(np.percentile(values, 99.5)) for values in differences)
        bin_days = max((high - low) / 80, 0.05)
        edges = bin_days * np.arange(np.floor(low / bin_days) - 2, np.ceil(high / bin_days) + 3)
        for row, experiment in enumerate(EXPERIMENTS):
            panel, values = axes[2 * row + column], differences[row]
            counts, _ = np.histogram(values, edges)
            panel.stairs(100 * counts / len(values), edges, fill=True, color=SKY)
            panel.stairs(100 * counts / len(values), edges, color=BLUE, linewidth=0.8)
            panel.axvline(0, color=BLACK, linewidth=0.8)
            panel.axvline(float(np.median(values)), color=VERMILION, linewidth=1.4)
            panel.set_ylim(bottom=0)
            panel.margins(x=0)
            if column == 0:
                name = NAMES[experiment]
                panel.set_ylabel(name, rotation=0, ha="right", va="center", labelpad=8)
        axes[column].set_title(f"{later} minus {earlier}")
        axes[-2 + column].set_xlabel("days later")
    figure.supylabel("share of jobs (%)", fontsize=9)
    return figure


def figure8(log: LogRuns) -> Figure:
    """Submissions in each hour of the week, local time, under EASY (Fig. 8)."""
    figure = _figure(7.2, 5.0, f"Submissions in the week under EASY, {log.log}, local time")
    axes = _panels(figure, len(REPLAYS), 1, sharex=True, sharey=True)
    for panel, users in zip(axes, REPLAYS, strict=True):
        run = log.runs["easy", users]
        submit = run.jobs.submit
        weeks = max((int(submit.max()) - int(submit.min())) / WEEK, 1)
        hours = run.clock.second_of_week(submit) // HOUR
        counts = np.bincount(hours, minlength=WEEK // HOUR) / weeks
        panel.stairs(counts, np.arange(len(counts) + 1) / 24, fill=True, color=COLOURS[users])
        panel.set_title(users, loc="left")
        panel.set_xlim(0, 7)
        panel.set_xticks(np.arange(8), labels=[])
        panel.set_ylim(bottom=0)
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    axes[-1].set_xticks(np.arange(7) + 0.5, labels=days, minor=True)
    for panel in axes:
        panel.tick_params(axis="x", which="minor", length=0)
    figure.supylabel("submissions per hour, mean over weeks", fontsize=9)
    return figure


def figure9(log: LogRuns) -> Figure:
    """Throughput and utilization in windows of 4, 6 and 8 months (Fig. 9)."""
    lengths = ", ".join(str(months) for months in WINDOW_MONTHS)
    windows = f"windows of {lengths} months (left to right) from two weeks after the beginning"
    figure = _figure(7.2, 5.6, f"Throughput and utilization, {log.log}\n{windows}")
    axes = _panels(figure, 2, 1, sharex=True)
    width = 0.26
    for index, users in enumerate(REPLAYS):
        for window, months in enumerate(WINDOW_MONTHS):
            found = [window_of(log.runs[experiment, users], months) for experiment in EXPERIMENTS]
            at = np.arange(len(EXPERIMENTS)) + (index - 1) * 1.1 * width
            at = at + (window - 1) * width / len(WINDOW_MONTHS)
            heights = (
                [one.throughput_jobs_per_day for one in found],
                [100 * one.utilization for one in found],
            )
            for panel, values in zip(axes, heights, strict=True):
                panel.bar(
                    at,
                    values,
                    width / len(WINDOW_MONTHS),
                    color=COLOURS[users],
                    alpha=(0.45, 0.7, 1.0)[window],
                    label=users if window == len(WINDOW_MONTHS) - 1 else None,
                )
    axes[0].set_ylabel("jobs ended per day")
    axes[1].set_ylabel("processors in use (%)")
    axes[1].set_ylim(0, 100)
    for panel in axes:
        panel.grid(False, axis="x")
    axes[1].set_xticks(np.arange(len(EXPERIMENTS)), [NAMES[name] for name in EXPERIMENTS])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def figure10(log: LogRuns) -> Figure:
    """When each user submits its first job, with the ends of the log (Fig. 10)."""
    figure = _figure(7.2, 1.7, f"First job of each user, {log.log}")
    (panel,) = _panels(figure, 1, 1)
    jobs = log.baseline.jobs
    begin = int(jobs.recorded_submit.min())
    order = np.argsort(jobs.recorded_submit, kind="stable")
    _, first = np.unique(jobs.user[order], return_index=True)
    days = (jobs.recorded_submit[order][first] - begin) / DAY
    end = (int(jobs.recorded_end.max()) - begin) / DAY
    panel.vlines(days, 0, 1, color=BLUE, linewidth=0.9, label="first job of a user")
    panel.vlines([0, end], 0, 1, color=VERMILION, linewidth=2.2, label="start and end of the log")
    panel.set_yticks([])
    panel.grid(False)
    panel.spines["left"].set_visible(False)
    panel.set_ylim(0, 1)
    panel.set_xlabel("days since the beginning of the log")
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


#: Every figure by its name in the paper.
FIGURES: dict[str, Callable[[LogRuns], Figure]] = {
    draw.__name__: _styled(draw)
    for draw in (figure2, figure3, figure4, figure5, figure7, figure8, figure9, figure10)
}


# ---- the study -------------------------------------------------------------------------------

#: The logs of the study (section 5.1).
STUDIED = {"KTH": LOGS["KTH"], "SDSC": LOGS["SDSC-SP2"]}

#: Readings of Fig. 5c that are shown: the nearest ones, and the best of each other kind.
NEAREST = 6

#: Jobs of each log (section 5.1).
JOBS = {"KTH": 28_475, "SDSC": 67_667}


@dataclass
class Madon2024(PublishedStudy):
    """Our simulations compared with the published figures."""

    logs: dict[str, LogRuns]  #: The simulations by log, KTH first.

    @cached_property
    def cells(self) -> list[Cell]:
        """Every published figure with ours."""
        return [cell for log in self.logs.values() for cell in log.cells()]

    @cached_property
    def readings(self) -> list[Reading]:
        """Every reading of Fig. 5c on every log, nearest to the published one first."""
        return figure5c_readings(self.logs.values())

    @cached_property
    def requirements(self) -> list[Requirement]:
        """The cells that have a bound."""
        return [
            Requirement(
                cell.log,
                f"{name_of(cell.experiment)} {cell.replay} {cell.quantity}",
                str(cell.ours),
                f"{cell.printed}, within {cell.tolerance}",
                cell.holds,
            )
            for cell in self.cells
            if cell.holds is not None
        ]

    def tables(self) -> Sequence[Table]:
        """Return the published tables with ours, ranges of the text, and readings of Fig. 5c."""
        return (
            *(self._table(table, log) for table in TITLES for log in self.logs),
            *self.tables_of({"ranges": self._range_rows(), "readings": self._reading_rows()}),
        )

    def _table(self, table: str, log: str) -> Table:
        """Return a published table with our figures of a log; those out of bounds are bold."""
        short = table.partition("_")[2]
        cells = [cell for cell in self.cells if (cell.table, cell.log) == (short, log)]
        rows = []
        for (experiment, users), group in groupby(cells, lambda one: (one.experiment, one.replay)):
            row, held = [name_of(experiment), users], []
            for cell in group:
                ours, *others = texts(cell)
                row += [f"**{ours}**" if cell.holds is False else ours, *others]
                held += [] if cell.holds is None else [cell.holds]
            rows.append([*row, "-" if not held else "yes" if all(held) else "no"])
        heading, narrow = ["experiment", "users"], ["experiment", "users"]
        for quantity in QUANTITIES:
            if quantity.table == table:
                heading += [quantity.heading, "published", "deviation"]
                narrow += [quantity.narrow, "paper", "off by"]
        if any(cell.holds is not None for cell in cells):
            narrow.append("holds")
        return Table(
            f"{TITLES[table]}, {log}", [*heading, "bounds hold"], rows, 2, "tables",
            columns=dict(enumerate(narrow)), once=True,
        )  # fmt: skip

    def _range_rows(self) -> list[list[str]]:
        """Return our ranges and the published ones as printed."""
        return [
            [
                found.what,
                f"{found.our_low:.1f} to {found.our_high:.1f} {found.unit}",
                f"{found.low:g} to {found.high:g} {found.unit}",
                found.place,
            ]
            for found in statements(self.logs["KTH"])
        ]

    def _reading_rows(self) -> list[list[str]]:
        """Return the nearest readings of Fig. 5c and the best of each other kind."""
        readings = [reading for reading in self.readings if reading.log == "KTH"]
        shown = readings[:NEAREST]
        for kind in ("singles", "divisor", "jobs", "method"):
            seen = {getattr(reading, kind) for reading in shown}
            for reading in readings:
                if getattr(reading, kind) not in seen:
                    seen.add(getattr(reading, kind))
                    shown.append(reading)
        shown.sort(key=lambda reading: reading.distance)
        return [
            [one.singles, one.divisor, one.jobs, one.method, f"{one.distance:.3f}", str(one.exact)]
            for one in shown
        ]

    def summary(self) -> list[str]:
        """Return how many bounds hold, and how rounding is treated."""
        return [
            f"{self.score} bounds hold; {len(self.cells)} figures compared",
            ROUNDING[0].upper() + ROUNDING[1:],
        ]

    def versions(self) -> Sequence[Version]:
        """Return the jobs of each log."""
        return [
            Version(name, len(log.baseline.jobs), JOBS[name]) for name, log in self.logs.items()
        ]

    def pictures(self) -> Sequence[Picture]:
        """Return the figures of the paper, of each log."""
        return [
            Picture.of(f"{name}_{log.log.lower()}", draw, log, dpi=DPI)
            for log in self.logs.values()
            for name, draw in FIGURES.items()
        ]

    def data(self) -> dict[str, Any]:
        """Return every figure, range and reading, and the simulations with their metrics."""
        return {
            **self.origin(),
            "rounding": ROUNDING,
            "cells": plain(self.cells),
            "ranges": plain(statements(self.logs["KTH"])),
            "figure5c_readings": plain(self.readings),
            "runs": [
                {
                    "log": log.log,
                    "experiment": experiment,
                    "replay": replay,
                    "processors": run.processors,
                    "configuration": run.configuration,
                    "metrics": run.metrics,
                    "windows": plain([window_of(run, months) for months in WINDOW_MONTHS]),
                }
                for log in self.logs.values()
                for (experiment, replay), run in log.runs.items()
            ],
        }

    def origin(self) -> dict[str, Any]:
        """Return the traces."""
        return {"traces": {name: trace_facts(log.baseline) for name, log in self.logs.items()}}

    def page_parts(self) -> dict[str, str]:
        """Return the generated parts of its page; the tables end with how many bounds hold."""
        parts = super().page_parts()
        return parts | {"tables": f"{parts['tables']}\n\n{self.summary()[0]}."}

    def more_parts(self, traces: Path) -> dict[str, str]:
        """Return the spread under small changes of the log, and the results of other readings."""
        return sensitivity_parts(read_trace(find_logs(traces, STUDIED, ["KTH"])["KTH"]))


def texts(cell: Cell) -> tuple[str, str, str]:
    """Return ours, published and the deviation of a cell as printed.

    Ours has the digits of the published one. The deviation is in percent of the published figure
    where that has a unit and is at least a hundred units of its last digit, else in its unit.
    """
    decimals = len(cell.printed.partition(".")[2])
    if cell.ours is None or cell.deviation is None:
        return "-", cell.printed, "-"
    ours = f"{round(cell.ours, decimals) + 0.0:.{decimals}f}"
    large = cell.unit and abs(cell.published) >= 100 * 10**-decimals
    if cell.relative_deviation is not None and large:
        percent = 100 * cell.relative_deviation
        places = 1 if abs(percent) < 100 else 0
        deviation = f"{round(percent, places) + 0.0:+.{places}f} %"
    else:
        places = decimals + 1 if decimals else 0
        deviation = f"{round(cell.deviation, places) + 0.0:+.{places}f}"
    return ours, cell.printed, deviation


def reproduce_madon2024(
    traces: Annotated[str | os.PathLike[str], TRACES], progress: Progress | None = None
) -> Madon2024:
    """Run the 18 simulations on KTH, and on SDSC if its trace is available.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    progress
        Called before each step.

    Raises
    ------
    TraceError
        When the KTH trace is missing or cannot be read.
    """
    paths = find_logs(traces, STUDIED, ["KTH"])
    steps = Steps(len(paths) * (1 + len(EXPERIMENTS) * len(REPLAYS)), progress)
    logs = {}
    for log, path in paths.items():
        steps.begin(f"{log}: reading {path.name}")
        trace = read_trace(path)
        runs: dict[tuple[str, str], Run] = {}
        for experiment in EXPERIMENTS:
            for users in REPLAYS:
                steps.begin(f"{log}: {experiment} {users}")
                runs[experiment, users] = simulate(trace, experiment, users)
        logs[log] = LogRuns(log, runs)
    steps.end()
    return Madon2024(logs)
