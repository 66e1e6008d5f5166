"""The common look of pictures of groups of runs: colours, legend, lengths of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis import curves
from hpcrowd.analysis.comparison.groups import Group
from hpcrowd.analysis.pictures.plots import COLOURS, new_figure
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import Clock

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Colours of groups, in their order; then again, with dashes. Grey is the record.
GROUP_COLOURS = ("vermilion", "blue", "green", "orange", "purple", "sky")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))

#: Letters that fit side by side into the legend of a picture 12 inches wide.
LEGEND_WIDTH = 165


def shortened(text: str, width: int) -> str:
    """Return at most ``width`` letters of a text."""
    return text if len(text) <= width else text[: width - 1].rstrip(" ,") + "…"


def wrapped(text: str, width: int, lines: int) -> str:
    """Return a text in at most ``lines`` lines of at most ``width`` letters."""
    found = wrap(text, width)
    if len(found) > lines:
        found = [*found[: lines - 1], shortened(" ".join(found[lines - 1 :]), width)]
    return "\n".join(found)


def headed_figure(
    width: float, body: float, title: str, groups: Sequence[Group], *, record: bool = False
) -> tuple[Figure, float, float]:
    """Return a figure with a legend of the groups below its title, and where its body may be."""
    return legend_figure(width, body, title, [group.title for group in groups], record=record)


def legend_figure(
    width: float, body: float, title: str, named: Sequence[str], *, record: bool = False
) -> tuple[Figure, float, float]:
    """Return a figure with a legend of these names below its title, and where its body may be.

    Parameters
    ----------
    width, body
        Inches; the height is that of the body, title and legend.
    title
        Of the figure.
    named
        In the order of :func:`look_of`.
    record
        Whether a grey line stands for what was recorded.
    """
    from matplotlib.lines import Line2D

    labels = list(named)
    handles = [Line2D([], [], **look_of(place), linewidth=2) for place in range(len(labels))]
    if record:
        labels.append("recorded")
        handles.append(Line2D([], [], color=COLOURS["grey"], linewidth=3))
    columns = min(len(labels), 4, max(1, LEGEND_WIDTH // (8 + max(map(len, labels)))))
    rows = -(-len(labels) // columns)
    height = body + 0.75 + 0.2 * rows
    figure = new_figure(width, height, title)
    figure.legend(
        handles,
        [shortened(label, LEGEND_WIDTH) for label in labels],
        loc="upper left",
        bbox_to_anchor=(0.005, 1 - 0.36 / height),
        ncols=columns,
        frameon=False,
        fontsize=9,
        labelspacing=0.3,
    )
    return figure, 0.55 / height, 1 - (0.75 + 0.2 * rows) / height


def look_of(place: int) -> dict[str, Any]:
    """Return colour and dashes of the group at ``place``."""
    again, which = divmod(place, len(GROUP_COLOURS))
    return {
        "color": COLOURS[GROUP_COLOURS[which]],
        "linestyle": DASHES[again % len(DASHES)],
    }


def span_of_groups(groups: Sequence[Group]) -> tuple[int, int] | None:
    """Return the first and the last second of all runs; None if nothing happened."""
    spans = [curves.span_of(run.jobs) for group in groups for run in group.runs]
    known = [span for span in spans if span is not None]
    if not known:
        return None
    return min(first for first, _ in known), max(last for _, last in known)


def with_shared_clock(groups: Sequence[Group]) -> Run:
    """Return a run with the clock of all groups: the nominal one where their origins differ."""
    first = groups[0].first
    same = all(group.first.clock == first.clock for group in groups)
    return first if same else replace(first, clock=Clock())
