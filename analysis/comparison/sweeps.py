"""Runs of a sweep: one row per run, means with intervals, differences paired by seed.

A run begins with an empty machine and ends when its users have left. Trimming a run leaves out both
ends: only jobs submitted in a window count, from a warm-up after the first submission to a
cool-down before the last one. Utilization and throughput are measured over that window, whichever
jobs were on the machine.

Runs with the same seed draw the same random numbers, whatever the other settings (common random
numbers). The effect of a setting is therefore the mean over seeds of the difference between the two
runs of a seed; its interval is much narrower than that of the difference of two means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import processor_seconds, processors_in_use
from hpcrowd.analysis.metrics import METRICS, PER_USER, PERCENTILES, summarize, words_of
from hpcrowd.analysis.numbers import time_unit
from hpcrowd.analysis.paired import CONFIDENCE, Estimate, over_seeds, ratio_over_seeds
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.output.whole import whole_file
from hpcrowd.environment.quantities import (
    MOST_SHOWN,
    format_duration,
    notebook_table,
    parse_factor,
    plural,
)
from hpcrowd.environment.traces.trace import jobs_in

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Per-user metrics of a row: metric and percentile by name.
USER_METRICS = {f"{name}_users_p{p}": (name, f"p{p}") for name in PER_USER for p in PERCENTILES}

#: The numbers that every row has, in order.
ROW_METRICS = (*(metric.name for metric in METRICS), *USER_METRICS)


def window_of(jobs: JobTable, warm_up: int, cool_down: int) -> tuple[int, int]:
    """Return the first and last second in which a submission counts.

    That is from ``warm_up`` s after the first submission to ``cool_down`` s before the last one. A
    QuantityError says that nothing was submitted, or that the window is empty.
    """
    times = jobs.submit[jobs.submit != UNKNOWN]
    if not len(times):
        raise QuantityError("trim: nothing was submitted in the run, so there is no window")
    first, last = int(times.min()), int(times.max())
    if first + warm_up > last - cool_down:
        raise QuantityError(
            f"trim: warm_up {format_duration(warm_up)} and cool_down {format_duration(cool_down)} "
            f"leave nothing of the {format_duration(last - first)} of submissions; take less"
        )
    return first + warm_up, last - cool_down


def trimmed_metrics(run: Run, warm_up: int = 0, cool_down: int = 0) -> dict[str, Any]:
    """Return the metrics of a trimmed run, see :func:`hpcrowd.analysis.metrics.summarize`.

    Wasted and idle energy are not known of a trimmed run, and costs are without monthly peaks.
    ``warm_up`` and ``cool_down`` are s to leave out, see :func:`window_of`; if both are 0, all jobs
    count.
    """
    if not warm_up and not cool_down:
        return run.metrics
    jobs = run.jobs
    begin, end = window_of(jobs, warm_up, cool_down)
    sizes = run.parts.sizes
    rows = np.flatnonzero((jobs.submit >= begin) & (jobs.submit <= end))
    inside = jobs.take(rows)
    found = summarize(inside, run.processors, jobs_in(run.reading.dropped), sizes)
    for part in run.parts.values():
        found |= part.metrics_between(inside, begin, end)
    span = end - begin
    if span:
        over = jobs.end[jobs.over]
        ended = np.count_nonzero((over > begin) & (over <= end))
        held = processors_in_use(jobs.take(np.flatnonzero(jobs.ran)), np.array([begin, end]))
        there = processor_seconds(run.processors, sizes, begin, end)
        found["utilization"] = float(held[0]) * span / there
        found["throughput_jobs_per_day"] = float(ended * DAY / span)
    else:
        found["utilization"] = found["throughput_jobs_per_day"] = None
    return found


def row_of(run: Run, warm_up: int = 0, cool_down: int = 0) -> dict[str, int | float | None]:
    """Return a run as one row: :data:`ROW_METRICS`, then the totals of its parts.

    The metrics are those of :func:`trimmed_metrics`; the totals cover the whole run.
    """
    found = trimmed_metrics(run, warm_up, cool_down)
    row: dict[str, int | float | None] = {metric.name: found[metric.name] for metric in METRICS}
    row |= {name: found["per_user"][one][p] for name, (one, p) in USER_METRICS.items()}
    accounts = {name: one for part in run.parts.values() for name, one in part.numbers().items()}
    for part, numbers in accounts.items():
        for name, value in numbers.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                row[f"{part}.{name}"] = value
    return row


#: The axis whose values are replications.
SEED = "seed"

#: Seeds below which the percentile bootstrap is too narrow: with 8 normal values a 95 % interval
#: holds the mean in 89 of 100 cases, with 5 in 85 (our measurement).
FEW_SEEDS = 8

#: Columns of ``summary.csv`` after those of the axes, and their meaning.
MEANING = {
    "metric": "name of the metric",
    "of": "value: the mean over the seeds; minus AXIS = VALUE: the difference to the runs with "
    "this value of the axis and the same seed and other settings; over AXIS = VALUE: the ratio",
    "mean": "in the unit of the metric; of ratios the geometric mean",
    "low": "lower end of the interval; empty with fewer than two seeds; of predictive intervals a "
    "quantile of the runs",
    "high": "upper end of the interval",
    "runs": "number of runs, or pairs of runs, in the mean",
}


@dataclass(frozen=True)
class Line:
    """One line of the summary."""

    point: dict[str, Any]  #: value of each axis except the seed
    metric: str  #: name of the metric
    #: For a difference: the axis and its first value. None for the value itself.
    against: tuple[str, Any] | None
    estimate: Estimate  #: mean and interval
    ratio: bool = False  #: whether it is a ratio to the runs of ``against``, not a difference
    symmetric: bool = True  #: whether the interval is symmetric about the mean

    @property
    def of(self) -> str:
        """What is averaged, in words."""
        if self.against is None:
            return "value"
        return f"{'over' if self.ratio else 'minus'} {self.against[0]} = {self.against[1]}"

    @property
    def row(self) -> dict[str, Any]:
        """Settings, then the columns of :data:`MEANING`."""
        estimate = self.estimate
        numbers = (estimate.mean, estimate.low, estimate.high, estimate.count)
        return self.point | dict(zip(MEANING, (self.metric, self.of, *numbers), strict=True))

    def text(self, scale: float) -> str:
        """Return mean and interval as text, in units of ``scale``; ratios have none."""
        sign = "" if self.against is None or self.ratio else "+"
        scale = 1.0 if self.ratio else scale
        found = self.estimate
        shown = _number(found.mean / scale, sign)
        if found.low is None or found.high is None or found.half_width is None:
            return shown
        if self.symmetric and not self.ratio:
            return f"{shown} ± {_number(found.half_width / scale)}"
        ends = (_number(end / scale, sign) for end in (found.low, found.high))
        return f"{shown} [{', '.join(ends)}]"


@dataclass(frozen=True)
class Reporting:
    """How the results of a sweep are reported."""

    metrics: tuple[str, ...]  #: metrics in the summary and the pictures
    confidence: float = CONFIDENCE  #: of the intervals
    interval: str = "student"  #: ``student``, ``bootstrap`` or ``predictive``, over the seeds
    #: ``difference`` or ``ratio``, paired by seed, to the first value of an axis.
    effects: str = "difference"
    across: str = ""  #: the axis across the pictures; empty for the first one
    pictures: str = "png"  #: format of the pictures: ``png``, ``pdf`` or ``svg``


@dataclass(frozen=True, repr=False)
class SweepResult:
    """The results of a sweep."""

    name: str  #: name of the study
    axes: dict[str, list[Any]]  #: values by setting, as text or numbers
    #: One row per run in the order of the design: the axes, ``key``, ``state``, every metric,
    #: ``error``.
    frame: pd.DataFrame
    reporting: Reporting  #: how they are reported

    def __repr__(self) -> str:
        return f"<SweepResult {self.name}: {plural(len(self.frame), 'run')}>"

    def _repr_html_(self) -> str:
        """Return the first means, for notebooks."""
        rows = [
            (", ".join(map(str, one.point.values())), words_of(one.metric), one.of,
             f"{one.estimate.mean:,.6g}")
            for one in self.lines[:MOST_SHOWN]
        ]  # fmt: skip
        return notebook_table(repr(self), rows)

    @classmethod
    def of(
        cls,
        name: str,
        axes: Mapping[str, Sequence[Any]],
        rows: Sequence[tuple[Mapping[str, Any], str, str, Mapping[str, Any], str]],
        reporting: Reporting,
    ) -> SweepResult:
        """Make the frame.

        The rows are, for each run: its settings on the axes, key, state, numbers and error.
        """
        import pandas as pd

        more = {*reporting.metrics, *(name for *_, row, _ in rows for name in row)}
        names = [*ROW_METRICS, *sorted(more - set(ROW_METRICS))]
        cells = {axis: _cell_of(values) for axis, values in axes.items()}
        columns: dict[str, Any] = {
            axis: pd.Series([cell(point[axis]) for point, *_ in rows])
            for axis, cell in cells.items()
        }
        columns["key"] = pd.Series([key for _, key, *_ in rows], dtype="str")
        columns["state"] = pd.Series([state for _, _, state, *_ in rows], dtype="str")
        for one in names:
            counted = one.startswith("jobs_")
            values = [row.get(one) for *_, row, _ in rows]
            columns[one] = pd.Series(values, dtype="Int64" if counted else "float64")
        columns["error"] = pd.Series([error for *_, error in rows], dtype="str")
        shown = {axis: [cells[axis](value) for value in values] for axis, values in axes.items()}
        return cls(name, shown, pd.DataFrame(columns), reporting)

    @property
    def varied(self) -> list[str]:
        """The axes except the seed."""
        return [axis for axis in self.axes if axis != SEED]

    @cached_property
    def lines(self) -> list[Line]:
        """The summary by metric, then in the order of the design, without failed runs."""
        how, found = self.reporting, list[Line]()
        kinds = how.interval, how.confidence
        ratio, symmetric = how.effects == "ratio", how.interval == "student"

        def add(
            point: tuple[Any, ...], against: tuple[str, Any] | None, estimate: Estimate | None
        ) -> None:
            if estimate is not None:
                settings = dict(zip(self.varied, point, strict=True))
                of_ratio = ratio and against is not None
                found.append(Line(settings, metric, against, estimate, of_ratio, symmetric))

        for metric in how.metrics:
            values = self._values(metric)
            for point, by_seed in values.items():
                add(point, None, over_seeds(list(by_seed.values()), *kinds))
            for place, axis in enumerate(self.varied):
                first = self.axes[axis][0]
                for point, by_seed in values.items():
                    base = values.get((*point[:place], first, *point[place + 1 :]), {})
                    pairs = [(by_seed[seed], base[seed]) for seed in by_seed if seed in base]
                    if point[place] == first or not pairs:
                        continue
                    if ratio:
                        effect = ratio_over_seeds(pairs, *kinds)
                    else:
                        effect = over_seeds([one - other for one, other in pairs], *kinds)
                    add(point, (axis, first), effect)
        return found

    def _values(self, metric: str) -> dict[tuple[Any, ...], dict[Any, float]]:
        """Return the values of a metric by settings, then by seed."""
        found: dict[tuple[Any, ...], dict[Any, float]] = {}
        known = self.frame[self.frame[metric].notna()]
        seeds = known[SEED].tolist() if SEED in self.axes else [None] * len(known)
        points = zip(*(known[axis].tolist() for axis in self.varied), strict=True)
        settings = list(points) if self.varied else [()] * len(known)
        for point, seed, value in zip(settings, seeds, known[metric].tolist(), strict=True):
            found.setdefault(point, {})[seed] = float(value)
        return found

    @property
    def summary(self) -> pd.DataFrame:
        """:attr:`lines` as a frame: axes except the seed, then the columns of :data:`MEANING`."""
        import pandas as pd

        rows = [list(line.row.values()) for line in self.lines]
        return pd.DataFrame(rows, columns=[*self.varied, *MEANING])

    @property
    def notes(self) -> list[str]:
        """Remarks for the reader of the numbers."""
        if len(self.axes.get(SEED, ())) < 2:
            return ["one seed: no intervals; run several seeds to see what is chance"]
        values = [line.estimate for line in self.lines if line.against is None]
        if values and all(one.low == one.high and one.count > 1 for one in values):
            return ["the seed has no effect: nothing in these runs is random"]
        runs, beyond = len(self.axes[SEED]), 2 / (1 - self.reporting.confidence)
        if self.reporting.interval == "predictive" and runs < beyond:
            return [
                f"{runs} seeds: too few for {100 * self.reporting.confidence:g} % predictive "
                f"intervals, whose ends are those of single runs; take at least {beyond:.0f}"
            ]
        if self.reporting.interval == "bootstrap" and len(self.axes[SEED]) < FEW_SEEDS:
            return [
                f"{len(self.axes[SEED])} seeds: intervals by bootstrap are too narrow with fewer "
                f"than {FEW_SEEDS}"
            ]
        return []

    def to_json(self) -> dict[str, Any]:
        """Return the summary fit for JSON."""
        return {
            "study": self.name,
            "runs": len(self.frame),
            "failed": int((self.frame["state"] != "done").sum()),
            "confidence": self.reporting.confidence,
            "interval": self.reporting.interval,
            "notes": self.notes,
            "summary": [line.row for line in self.lines],
        }

    def write(self, folder: Path) -> None:
        """Write ``frame.parquet``, ``frame.csv``, ``summary.csv`` and a picture of each metric."""
        from hpcrowd.analysis.pictures.plots import write_picture

        for name, table in (("frame", self.frame), ("summary", self.summary)):
            with whole_file(folder / f"{name}.csv") as temporary:
                table.to_csv(temporary, index=False, lineterminator="\n")
        with whole_file(folder / "frame.parquet") as temporary:
            self.frame.to_parquet(temporary, index=False)
        for metric in self.reporting.metrics:
            path = folder / f"{metric}.{self.reporting.pictures}"
            write_picture(sweep_figure(self, metric), path)


def scale_of(metric: str, values: Sequence[float]) -> tuple[float, str]:
    """Return the size and the name of the unit that tables and pictures use for a metric.

    The largest of the values to show determines the unit of times.
    """
    name = metric.rsplit(".", 1)[-1].split("_users_")[0]
    if name in ("utilization", "utilization_weeks"):
        return 0.01, "%"
    if not name.endswith("_s"):
        return 1.0, ""
    return time_unit(max((abs(value) for value in values), default=0.0))


def _number(value: float, sign: str = "") -> str:
    """Return a number with about three digits; a number shown as 0 has no sign."""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    value = round(value, digits) + 0.0
    return f"{value:{sign if value else ''},.{digits}f}"


def _cell_of(values: Sequence[Any]) -> Callable[[Any], Any]:
    """Return a function that makes cells of an axis's values: text if they are of mixed kinds."""
    kinds = {type(_plain(value)) for value in values}
    if len(kinds) == 1 or kinds == {int, float}:
        return _plain
    return lambda value: str(_plain(value))


def _plain(value: Any) -> Any:
    """Return a value of an axis as a cell: a table by its name, or as JSON."""
    if isinstance(value, dict):
        return str(value["name"]) if "name" in value else json.dumps(value, default=str)
    return json.dumps(value, default=str) if isinstance(value, list) else value


#: Most lines of a picture, so that readers can distinguish them.
MOST_LINES = 24

#: Offset between lines, as a share of the distance of two values, so that none hides another.
APART = 0.12

_NUMBER = re.compile(r"\d+(\.\d+)?(?=x?$)")


def sweep_figure(result: SweepResult, metric: str) -> Figure:
    """Return a picture of a metric over an axis, with a line per combination of the others."""
    lines = [line for line in result.lines if line.metric == metric and line.against is None]
    scale, unit = scale_of(metric, [line.estimate.mean for line in lines])
    words = words_of(metric)
    title = f"{result.name}: {words}{f', {unit}' if unit else ''}"
    axis = result.reporting.across or next(iter(result.varied), "runs")
    others = [other for other in result.varied if other != axis]
    groups: dict[str, list[Line]] = {}
    for line in lines:
        name = ", ".join(f"{other} {line.point[other]}" for other in others)
        groups.setdefault(name, []).append(line)
    if len(groups) > 1:
        figure, bottom, top = plots.legend_figure(
            9, 3.6, plots.shortened(title, 100), list(groups)[:MOST_LINES]
        )
    else:
        figure, bottom, top = plots.new_figure(9, 4.2, plots.shortened(title, 100)), 0.12, 0.88
    axes = figure.add_axes((0.08, bottom, 0.9, top - bottom))
    plots.tidy(axes)
    if not lines:
        plots.say_nothing(axes, "no run has this metric")
        return figure
    places = _places(result.axes[axis] if result.varied else [result.name])
    gaps = [after - before for before, after in pairwise(sorted(places.values()))]
    nearest = min(gaps, default=1.0)
    for number, members in enumerate(list(groups.values())[:MOST_LINES]):
        shift = APART * (number - (min(len(groups), MOST_LINES) - 1) / 2) / len(groups)
        _draw(axes, members, axis, places, shift * nearest, scale, plots.look_of(number))
    axes.set_xticks(list(places.values()), [plots.shortened(str(value), 24) for value in places])
    seeds = len(result.axes.get(SEED, ()))
    share = 100 * result.reporting.confidence
    bars = f"bars: {share:g} % interval of the mean over {seeds} seeds"
    if result.reporting.interval == "predictive":
        bars = f"bars: {share:g} % of the {seeds} runs"
    axes.set_xlabel(f"{axis}; {bars}" if seeds > 1 else axis, fontsize=9)
    axes.margins(x=0.04 if len(places) > 1 else 0.5, y=0.08)
    if len(groups) > MOST_LINES:
        axes.set_title(
            f"the first {MOST_LINES} of {len(groups)} settings; all are in summary.csv",
            fontsize=8.5, loc="left", color=plots.COLOURS["grey"],
        )  # fmt: skip
    return figure


def _draw(
    axes: Axes, lines: list[Line], axis: str, places: dict[Any, float], shift: float,
    scale: float, look: dict[str, Any],
) -> None:  # fmt: skip
    lines = sorted(lines, key=lambda line: places.get(line.point.get(axis), 0.0))
    at = [places.get(line.point.get(axis), 0.0) for line in lines]
    means = [line.estimate.mean / scale for line in lines]
    ends = [(line.estimate.low, line.estimate.mean, line.estimate.high) for line in lines]
    below = [0.0 if low is None else (mean - low) / scale for low, mean, _ in ends]
    above = [0.0 if high is None else (high - mean) / scale for _, mean, high in ends]
    moved = [place + shift for place in at]
    joined = look if all(map(_size, places)) else {**look, "linestyle": "none"}
    axes.plot(moved, means, marker="o", markersize=4, linewidth=1.4, **joined)
    axes.errorbar(
        moved, means, [below, above], fmt="none", ecolor=look["color"], elinewidth=1.4, capsize=3
    )


def _places(values: list[Any]) -> dict[Any, float]:
    """Return positions on an axis: numbers and multiples by size, words side by side."""
    sizes = {value: _size(value) for value in values}
    found = {value: size for value, size in sizes.items() if size is not None}
    if len(values) > 1 and len(set(found.values())) == len(values):
        return found
    return {value: float(place) for place, value in enumerate(values)}


def _size(value: Any) -> float | None:
    """Return the number of a value or of a multiple such as 2x or +20%; None for a word."""
    if (text := str(value)).endswith("%"):
        return parse_factor(text)
    found = _NUMBER.match(text)
    return None if found is None else float(found[0])
