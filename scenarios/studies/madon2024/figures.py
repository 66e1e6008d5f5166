"""The figures of Madon et al. 2024 drawn from our own simulations.

Each function takes the simulations of one log and returns a figure; :data:`FIGURES` names them.
Colours are those of Okabe and Ito, which people with colour vision deficiencies can tell apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.metrics import PERCENTILES, per_user
from hpcrowd.analysis.pictures.plots import COLOURS as PALETTE
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.scenarios.studies.madon2024.measures import (
    EXPERIMENTS,
    REPLAYS,
    WINDOW_MONTHS,
    LogRuns,
    window_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.run import Run


BLACK = "#000000"
BLUE, ORANGE, GREEN, VERMILION, SKY = (
    PALETTE[name] for name in ("blue", "orange", "green", "vermilion", "sky")
)

#: Colour of each replay; rigid is blue and feedback orange, as in the paper.
COLOURS = {"rigid": BLUE, "a0": GREEN, "a60": ORANGE}

#: Names of the experiments as printed.
NAMES = {
    "easy": "EASY",
    "fcfs": "FCFS",
    "perf*2": "perf \u00d7 2",
    "perf/2": "perf / 2",
    "infra*2": "infra \u00d7 2",
    "infra/2": "infra / 2",
}

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
