"""The picture of a validation: every model in every measure, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.plots import COLOURS, TITLE, new_figure, tidy
from analysis.validation import RANKED, Validation
from analysis.validation_report import TITLES, UNITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Looks of the distances that no model caused.
LINES = {
    "hindsight": (COLOURS["vermilion"], (0, (4, 2))),
    "first part": ("black", (0, (4, 3))),
    "halves": ("black", (0, (1, 2))),
}

#: What the lines are.
LEGEND = {
    "hindsight": "own pauses of the second part itself",
    "first part": "recorded first part against the second",
    "halves": "halves of the recorded second part",
}


def draw(found: Validation, title: str) -> Figure:
    """Return a picture with one panel for each measure.

    Models stand in the order of their mean rank, the best on top. Full dots: the best, or not
    distinguishable from it.

    Parameters
    ----------
    found
        What came out.
    title
        Name of the trace.
    """
    count = len(found.order)
    height = 2.1 + 2 * (0.75 + 0.27 * count)
    figure = new_figure(
        12,
        height,
        f"Validation: {title}",
        "Smaller is better; bars: 95 % interval, users drawn again; full dots: the best, or not "
        "distinguishable from it",
    )
    grid = figure.add_gridspec(
        2,
        3,
        left=0.135,
        right=0.985,
        bottom=0.95 / height,
        top=1 - 0.95 / height,
        hspace=0.75 / (0.75 + 0.27 * count) * 0.9,
        wspace=0.08,
    )
    for number, measure in enumerate(RANKED):
        axes = figure.add_subplot(grid[number // 3, number % 3])
        _panel(axes, found, measure, named=number % 3 == 0)
    from matplotlib.lines import Line2D

    figure.legend(
        [Line2D([], [], color=colour, linestyle=style) for colour, style in LINES.values()],
        [LEGEND[name] for name in LINES],
        loc="lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    return figure


def _panel(axes: Axes, found: Validation, measure: str, *, named: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    tidy(axes)
    statistic, names = RANKED[measure], found.order
    axes.set_title(f"{TITLES[measure]} ({UNITS[statistic]})", **TITLE)
    for place, name in enumerate(names):
        score = found.scores[name].get(measure)
        if score is None:
            axes.text(0.98, place, "does not say", fontsize=8, va="center", color="#777777",
                      ha="right", transform=axes.get_yaxis_transform())  # fmt: skip
            continue
        value = score.statistics[statistic]
        axes.plot([value.low, value.high], [place, place], color=COLOURS["blue"], linewidth=1.6)
        face = COLOURS["blue"] if score.tied else "white"
        axes.plot(
            [value.value], [place], "o", markersize=6, color=COLOURS["blue"], markerfacecolor=face
        )
    for name, (colour, style) in LINES.items():
        if measure in found.floors[name]:
            at = found.floors[name][measure].statistics[statistic].value
            axes.axvline(at, color=colour, linewidth=1, linestyle=style)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, prune="upper"))
    axes.set_yticks(range(len(names)), names if named else [""] * len(names), fontsize=9)
