"""The common base of pictures of workloads: colours, names, time axes, remarks on gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from hpcrowd.analysis import curves
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.analysis.pictures.plots import (
    TITLE,
    label_at,
    look_of,
    say_nothing,
    share_axis,
    shortened,
    tidy,
    wrapped,
)
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.quantities import format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


#: Labels of logarithmic time axes, s: for wide and for narrow panels.
TIMES = {
    1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", HOUR: "1 h", 10 * HOUR: "10 h",
    4 * DAY: "4 days", 40 * DAY: "40 days", 365 * DAY: "1 year", 3650 * DAY: "10 years",
}  # fmt: skip
FEW_TIMES = {
    1: "1 s", 60: "1 min", HOUR: "1 h", DAY: "1 day", 30 * DAY: "30 days", 730 * DAY: "2 years",
}  # fmt: skip

#: Inches needed by a label of a horizontal and of a vertical time axis.
ROOM = {"x": 0.52, "y": 0.2}

#: Points of a curve; pictures are about a thousand pixels wide.
POINTS = 500

#: Most letters of a name in a picture, and most names listed with the same reason.
NAME, NAMES = 34, 2

#: Font sizes of axes and remarks; letters of a remark per inch, and its most lines.
LETTERS, SMALL, TO_AN_INCH, LINES = 8.5, 7.5, 16, 2

#: Suffixes of traces that are left out in pictures.
SUFFIXES = (".gz", ".swf")


class Drawn[Found](NamedTuple):
    """A finding of a workload that can be drawn."""

    place: int  #: index of the workload, which determines its colour
    workload: Workload
    found: Found

    @property
    def look(self) -> dict[str, Any]:
        """Colour and dashes of its line, with its name for a legend."""
        return look_of(self.place) | {"label": name_of(self.workload), "linewidth": 1.5}


def plain_name(workload: Workload) -> str:
    """Return the name of a workload without the suffixes of files."""
    name = workload.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def name_of(workload: Workload) -> str:
    """Return the name of a workload in a picture."""
    name = plain_name(workload)
    # matplotlib would read text between two dollars as mathematics.
    return shortened(name, NAME).replace("$", r"\$")


def title_of(axes: Axes, workload: Workload, what: str) -> str:
    """Return a title that fits above a panel: the name of a workload and what is drawn."""
    room = round(TO_AN_INCH * _inches(axes)[0]) - len(what) - 2
    return f"{shortened(name_of(workload), max(room, 8))}: {what}"


def drawable[Found](
    workloads: Sequence[Workload], find: Callable[[Workload], Found]
) -> tuple[list[Drawn[Found]], str]:
    """Return what can be drawn of each workload, and a remark on those left out.

    ``find`` returns what to draw, or raises UnavailableError.

    Raises
    ------
    UnavailableError
        When nothing can be drawn.
    """
    drawn, missing = [], dict[str, list[str]]()
    for place, workload in enumerate(workloads):
        try:
            drawn.append(Drawn(place, workload, find(workload)))
        except UnavailableError as error:
            missing.setdefault(str(error), []).append(name_of(workload))
    told = "; ".join(f"{_some(names)} ({reason})" for reason, names in missing.items())
    told = f"not drawn: {told}" if told else ""
    if not drawn:
        raise UnavailableError(next(iter(missing)) if len(missing) == 1 else told)
    return drawn, told


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMES
    listed = names if more <= 1 else [*names[:NAMES], f"{more} others"]
    return ", ".join(listed)


def begin(axes: Axes, title: str) -> None:
    """Give an empty panel the common style and a title."""
    tidy(axes)
    axes.set_title(title, **TITLE)


@contextmanager
def panel(axes: Axes, title: str) -> Iterator[None]:
    """Draw in a panel with a title; if nothing can be drawn, the panel says why."""
    begin(axes, title)
    try:
        yield
    except UnavailableError as error:
        nothing(axes, str(error))


def nothing(axes: Axes, why: str) -> None:
    """Write into an empty panel why it is empty, in lines that fit."""
    say_nothing(axes, fill(why, round(0.6 * TO_AN_INCH * _inches(axes)[0])))


def label_below(axes: Axes, text: str, missing: str = "") -> None:
    """Label the horizontal axis, with a remark below on what is not drawn."""
    axes.set_xlabel(text, fontsize=LETTERS)
    if missing:
        words = wrapped(missing, round(TO_AN_INCH * _inches(axes)[0]), LINES)
        axes.annotate(
            words, (0.5, 0), (0, -32), "axes fraction", textcoords="offset points",
            ha="center", va="top", fontsize=SMALL, color="#555555",
        )  # fmt: skip


def labels_of_shares(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with labels in percent."""
    from matplotlib.ticker import FuncFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))


def percent(axes: Axes) -> None:
    """Make the vertical axis one of 0 to 1, with labels in percent."""
    share_axis(axes, 1.02)


def logarithmic_times(axes: Axes, first: float, last: float, *, vertical: bool = False) -> None:
    """Make an axis logarithmic, from ``first`` to ``last`` (s, positive), with times as labels."""
    last = max(last, 1.01 * first)
    width, height = _inches(axes)
    length = height / ROOM["y"] if vertical else width / ROOM["x"]
    labels: dict[float, str] = {s: text for s, text in TIMES.items() if first <= s <= last}
    if len(labels) > length:
        labels = {second: text for second, text in FEW_TIMES.items() if first <= second <= last}
    if len(labels) < 2:
        labels = {first: format_duration(first), last: format_duration(last)}
    label_at(_logarithmic(axes, first, last, vertical), labels)


def _logarithmic(axes: Axes, first: float, last: float, vertical: bool) -> Axis:
    """Make an axis logarithmic with these limits, and return it."""
    across, axis = ("y", axes.yaxis) if vertical else ("x", axes.xaxis)
    axes.set(**{f"{across}scale": "log", f"{across}lim": (first, last)})
    return axis


def _inches(axes: Axes) -> tuple[float, float]:
    """Return width and height of a panel in inches."""
    place, figure = axes.get_position(), axes.get_figure(root=True)
    assert figure is not None  # it would be None for a removed panel
    width, height = figure.get_size_inches()
    return float(place.width * width), float(place.height * height)


def logarithmic_counts(axes: Axes, last: float, *, vertical: bool = False) -> None:
    """Make an axis logarithmic, from 1 to ``last``, with whole numbers as labels."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    high = max(1.3 * last, 2.5)
    axis = _logarithmic(axes, 0.8, high, vertical)
    if high < 10:
        axis.set_major_locator(LogLocator(base=2))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))


def exceeding(values: NDArray[Any], above: str = "time above 1 s") -> tuple[Floats, Floats]:
    """Return (x, share of ``values`` larger than x), x in equal ratios from 1 on.

    Raises
    ------
    UnavailableError
        When no value is above 1; ``above`` names what is missing.
    """
    found = curves.exceedance(values, POINTS)
    if found is None:
        raise UnavailableError(f"no {above}")
    return found


def not_exceeding(values: Floats) -> tuple[Floats, Floats]:
    """Return (x, share of ``values`` up to x); otherwise as :func:`exceeding`."""
    x, share = exceeding(values)
    return x, 1 - share
