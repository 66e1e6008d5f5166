"""The picture of one metric of a sweep: means with intervals over the first axis."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from analysis.comparison_style import legend_figure, look_of, shortened
from analysis.metrics import METRICS
from analysis.plots import COLOURS, new_figure, say_nothing, tidy
from analysis.sweep_summary import scale_of
from analysis.trimmed import USER_METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.sweep_summary import Line, SweepResult

#: Most lines that a picture can tell apart.
MOST_LINES = 24

#: Share of the distance of two values by which lines are moved apart, so that none hides another.
APART = 0.12

_NUMBER = re.compile(r"\d+(\.\d+)?(?=x?$)")


def sweep_figure(result: SweepResult, metric: str) -> Figure:
    """Return the picture of a metric: its first axis to the right, a line for all other settings.

    Parameters
    ----------
    result
        The sweep.
    metric
        One of its metrics.
    """
    lines = [line for line in result.lines if line.metric == metric and line.against is None]
    scale, unit = scale_of(metric, [line.estimate.mean for line in lines])
    meaning = _meaning(metric)
    title = f"{result.name}: {meaning}{f', {unit}' if unit else ''}"
    axis, *others = result.varied or ["runs"]
    groups: dict[str, list[Line]] = {}
    for line in lines:
        name = ", ".join(f"{other} {line.point[other]}" for other in others)
        groups.setdefault(name, []).append(line)
    if len(groups) > 1:
        figure, bottom, top = legend_figure(
            9, 3.6, shortened(title, 100), list(groups)[:MOST_LINES]
        )
    else:
        figure, bottom, top = new_figure(9, 4.2, shortened(title, 100)), 0.12, 0.88
    axes = figure.add_axes((0.08, bottom, 0.9, top - bottom))
    tidy(axes)
    if not lines:
        say_nothing(axes, "no run has this metric")
        return figure
    places = _places(result.axes[axis] if result.varied else [result.name])
    for number, members in enumerate(list(groups.values())[:MOST_LINES]):
        shift = APART * (number - (min(len(groups), MOST_LINES) - 1) / 2) / len(groups)
        _draw(axes, members, axis, places, shift * _step(places), scale, look_of(number))
    axes.set_xticks(list(places.values()), [shortened(str(value), 24) for value in places])
    axes.set_xlabel(_axis_title(axis, result), fontsize=9)
    axes.margins(x=0.04 if len(places) > 1 else 0.5, y=0.08)
    if len(groups) > MOST_LINES:
        axes.set_title(
            f"the first {MOST_LINES} of {len(groups)} settings; all are in summary.csv",
            fontsize=8.5, loc="left", color=COLOURS["grey"],
        )  # fmt: skip
    return figure


def _draw(
    axes: Axes, lines: list[Line], axis: str, places: dict[Any, float], shift: float,
    scale: float, look: dict[str, Any],
) -> None:  # fmt: skip
    lines = sorted(lines, key=lambda line: places.get(line.point.get(axis), 0.0))
    at = [places.get(line.point.get(axis), 0.0) for line in lines]
    means = [line.estimate.mean / scale for line in lines]
    halves = [(line.estimate.half_width or 0) / scale for line in lines]
    moved = [place + shift for place in at]
    joined = look if all(map(_size, places)) else {**look, "linestyle": "none"}
    axes.plot(moved, means, marker="o", markersize=4, linewidth=1.4, **joined)
    axes.errorbar(moved, means, halves, fmt="none", ecolor=look["color"], elinewidth=1.4, capsize=3)


def _places(values: list[Any]) -> dict[Any, float]:
    """Return where values stand: numbers and multiples at their size, words side by side."""
    sizes = {value: _size(value) for value in values}
    found = {value: size for value, size in sizes.items() if size is not None}
    if len(values) > 1 and len(set(found.values())) == len(values):
        return found
    return {value: float(place) for place, value in enumerate(values)}


def _size(value: Any) -> float | None:
    """Return the number that a value is, also as a multiple such as 2x; None for a word."""
    found = _NUMBER.match(str(value))
    return None if found is None else float(found[0])


def _step(places: dict[Any, float]) -> float:
    """Return the smallest distance of two values."""
    ordered = sorted(places.values())
    gaps = [after - before for before, after in pairwise(ordered)]
    return min(gaps, default=1.0)


def _axis_title(axis: str, result: SweepResult) -> str:
    seeds = len(result.axes.get("seed", ()))
    if seeds > 1:
        return (
            f"{axis}; bars: {100 * result.confidence:g} % interval of the mean over {seeds} seeds"
        )
    return axis


def _meaning(metric: str) -> str:
    name, share = USER_METRICS.get(metric, (metric, ""))
    meaning = next((one.meaning for one in METRICS if one.name == name), name)
    return f"{meaning}; {share[1:]}th percentile of users" if share else meaning
