"""The common base of all pictures: figures, colours, legends, time axes, files.

Pictures are matplotlib ``Figure``s without a window or global state; matplotlib is loaded when the
first one is drawn. The colours are those of Okabe and Ito, which colour-blind people can tell
apart.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from textwrap import wrap
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from hpcrowd.analysis.curves import WEEK_HOURS, time_ticks
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, DAYS, HOUR, Clock
from hpcrowd.environment.errors import HpcrowdError, QuantityError, printable
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.output.guard import WRITER
from hpcrowd.environment.output.whole import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


#: Colours by name (Okabe and Ito 2008, Color Universal Design).
COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermilion": "#D55E00",
    "sky": "#56B4E9",
    "purple": "#CC79A7",
    "yellow": "#F0E442",
    "grey": "#999999",
}

#: Colours of groups, in order; then the same with dashes. Grey is the record.
GROUP_COLOURS = ("vermilion", "blue", "green", "orange", "purple", "sky")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))

#: Styles of axis titles and legends.
TITLE: dict[str, Any] = {"fontsize": 9.5, "loc": "left"}

LEGEND: dict[str, Any] = {"fontsize": 8, "frameon": False, "handlelength": 1.6}

#: Letters that fit into a row of the legend of a picture 12 inches wide.
LEGEND_WIDTH = 165

#: Letters of a title and of a subtitle that fit into an inch.
TITLE_LETTERS, SUBTITLE_LETTERS = 8.3, 13.0

#: Dots per inch of PNG files.
DPI = 100

#: Units of bin widths, s.
UNITS = ((DAY, "days"), (HOUR, "h"), (60, "min"), (1, "s"))

#: Steps between labels, s.
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, *(h * HOUR for h in (1, 2, 3, 6, 12)))

#: Windows longer than this are labelled by days, s.
LONG = 4 * DAY

#: Labels this near to the end, as a part of the window, are aligned right so as not to be cut off.
EDGE = 0.02

#: Labels of the time axis of a distribution, s.
WAIT_LABELS = {1: "1 s", 60: "1 min", HOUR: "1 h", DAY: "1 day", 30 * DAY: "30 days"}

#: Formats by suffix, with metadata fixed that would otherwise change from run to run.
FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"format": "png", "metadata": {"Software": WRITER}},
    ".svg": {"format": "svg", "metadata": {"Date": None, "Creator": WRITER}},
    ".pdf": {"format": "pdf", "metadata": {"CreationDate": None, "Creator": WRITER}},
}

#: Salt of the names inside SVG files, which are random without one.
SALT = "hpcrowd"

# ---- figures ------------------------------------------------------------------------------------


def new_figure(width: float, height: float, title: str, subtitle: str = "") -> Figure:
    """Return an empty figure with a title; width and height in inches.

    A title or subtitle that does not fit is cut off.
    """
    from hpcrowd.analysis.pictures.shown import ShownFigure

    title = shortened(title, int(TITLE_LETTERS * width))
    subtitle = shortened(subtitle, int(SUBTITLE_LETTERS * width))
    figure = ShownFigure(figsize=(width, height), dpi=DPI, facecolor="white")
    figure.text(0.012, 1 - 0.12 / height, title, va="top", fontsize=13, weight="bold")
    if subtitle:
        figure.text(0.012, 1 - 0.40 / height, subtitle, va="top", fontsize=9.5, color="#444444")
    return figure


def trace_name(run: Run) -> str:
    """Return the name of the trace that a run replays or was drawn from; empty if none."""
    source = run.reading.source
    named = source["source"] if source else run.configuration.get("trace")
    return Path(named).name if isinstance(named, str) else ""


def run_name(run: Run) -> str:
    """Return the name of a run for titles: its trace, if it has one, and its label."""
    return ": ".join(filter(None, (trace_name(run), run.label)))


def legend_figure(
    width: float, body: float, title: str, named: Sequence[str], *, record: bool = False
) -> tuple[Figure, float, float]:
    """Return a figure with a legend below its title, and the bottom and top of the free area.

    Its height is that of ``body`` (inches), title and legend together. The ``named`` have the
    colours of :func:`look_of` in order; ``record`` adds a grey line for the record.
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


def margins(
    figure: Figure, left: float, right: float, bottom: float, top: float
) -> dict[str, float]:
    """Return margins in inches as arguments of :func:`panels`."""
    width, height = figure.get_size_inches()
    return {
        "left": left / width, "right": 1 - right / width,
        "bottom": bottom / height, "top": 1 - top / height,
    }  # fmt: skip


def panels(figure: Figure, rows: int, columns: int, **places: Any) -> list[Axes]:
    """Return the panels of a figure, row by row; ``places`` are arguments of ``add_gridspec``."""
    grid = figure.add_gridspec(rows, columns, **({"left": 0.055, "right": 0.985} | places))
    return [figure.add_subplot(grid[place]) for place in range(rows * columns)]


def legend_above(figure: Figure, panel: Axes, below: float = 0.56) -> None:
    """Put a panel's legend under the title of the figure, ``below`` inches from the top."""
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="upper left", ncols=len(handles),
        bbox_to_anchor=(0.0, 1 - below / figure.get_figheight()), **LEGEND,
    )  # fmt: skip


def legend_at_right(figure: Figure, panel: Axes, columns: int = 1) -> None:
    """Put the legend of a panel into the upper right corner of its figure."""
    handles, labels = panel.get_legend_handles_labels()
    corner = (0.985, 0.99)
    figure.legend(
        handles, labels, loc="upper right", bbox_to_anchor=corner, ncols=columns, **LEGEND
    )


def is_dark(colour: Any) -> bool:
    """Return whether a colour needs light text on it."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.5


def paler(colour: Any, white: float) -> Any:
    """Return a colour mixed with a share of white."""
    from matplotlib.colors import to_rgb

    return tuple(white + (1 - white) * part for part in to_rgb(colour))


def look_of(place: int) -> dict[str, Any]:
    """Return colour and dashes of the group at ``place``."""
    again, which = divmod(place, len(GROUP_COLOURS))
    return {
        "color": COLOURS[GROUP_COLOURS[which]],
        "linestyle": DASHES[again % len(DASHES)],
    }


def shortened(text: str, width: int) -> str:
    """Return a text, cut to at most ``width`` letters."""
    return text if len(text) <= width else text[: width - 1].rstrip(" ,") + "…"


def wrapped(text: str, width: int, lines: int) -> str:
    """Return a text in at most ``lines`` lines of at most ``width`` letters."""
    found = wrap(text, width)
    if len(found) > lines:
        found = [*found[: lines - 1], shortened(" ".join(found[lines - 1 :]), width)]
    return "\n".join(found)


# ---- panels and their axes ----------------------------------------------------------------------


def tidy(axes: Axes, title: str = "") -> None:
    """Give axes the common style; the title names what the vertical axis counts."""
    if title:
        axes.set_title(title, **TITLE)
    axes.tick_params(labelsize=8, length=3, color="#888888")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#888888")
    axes.grid(visible=True, color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.yaxis.set_major_formatter("{x:,.10g}")


def draw_size(
    axes: Axes, steps: Sequence[tuple[int, int]], last: int, linewidth: float = 0.8
) -> None:
    """Draw the number of processors as a dashed line, from each second of ``steps`` to ``last``."""
    times, sizes = zip(*steps, (last, steps[-1][1]), strict=True)
    dashes: Any = (0, (4, 3))
    axes.step(times, sizes, where="post", color="black", linewidth=linewidth, linestyle=dashes)


def say_nothing(axes: Axes, why: str) -> None:
    """Write into an empty picture why it is empty."""
    axes.set(xticks=[], yticks=[])
    axes.text(
        0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color=COLOURS["grey"]
    )


def count_axis(axes: Axes) -> None:
    """Label an axis at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))


def share_axis(axes: Axes, top: float = 1.0) -> None:
    """Make the vertical axis one of shares from 0 to ``top``, with labels in percent."""
    from matplotlib.ticker import PercentFormatter

    axes.set_ylim(0, top)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def wait_axes(axes: Axes, longest: float) -> None:
    """Make axes for the shares of jobs that waited longer than a time, up to ``longest`` s."""
    axes.set_xscale("log")
    axes.set_xlim(1, longest)
    label_at(axes.xaxis, {s: text for s, text in WAIT_LABELS.items() if s <= longest})
    share_axis(axes)


def label_at(axis: Axis, labels: Mapping[Any, str], **look: Any) -> None:
    """Label an axis at these places only, such as round times on a logarithmic axis."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(list(labels)))
    axis.set_minor_locator(NullLocator())
    axis.set_ticklabels(list(labels.values()), **look)


def label_week(axes: Axes, clock: Clock, *, named: bool = True) -> None:
    """Label the hours of a week in local time; ``named`` adds the time zone."""
    axes.set_xlim(0, WEEK_HOURS)
    axes.set_xticks(range(0, WEEK_HOURS, 24), DAYS)
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("left")
    zone = "the origin counts as Monday" if clock.nominal else f"local time, {clock.zone}"
    if named:
        axes.set_xlabel(zone, fontsize=8.5)


def time_axis(
    axes: Axes, run: Run, first: int, last: int, labels: int | None = None, named: bool = True
) -> None:
    """Label a time axis in local time, with at most ``labels``; ``named`` adds the time zone."""
    places, texts, name = time_ticks(run.clock, first, last)
    every = 1 if labels is None else max(1, -(-len(places) // labels))
    axes.set_xlim(min([first, *places]), max(last, first + 1))
    axes.set_xticks(places[::every], texts[::every])
    if named:
        axes.set_xlabel(name, fontsize=8.5)


def averaged(edges: Int64s) -> str:
    """Return the averaging interval of a curve in words."""
    width = int(edges[1] - edges[0])
    size, unit = next((size, unit) for size, unit in UNITS if width % size == 0)
    return f"averages over {width // size} {'day' if width == DAY else unit}"


def label_hours(
    axes: Axes, clock: Clock, first: int, last: int, *, named: bool, most: int = 13
) -> None:
    """Label the time axis of a window in local time; a short one by hours, minutes or seconds.

    Windows longer than :data:`LONG` get the labels of :func:`~hpcrowd.analysis.curves.time_ticks`.
    ``named`` shows the labels, of which there are ``most`` at most, and the time zone.
    """
    places, texts, name = hour_ticks(clock, first, last, most)
    every = max(1, -(-len(places) // most))
    places, texts = places[::every], texts[::every]
    if len(places) > 0.7 * most and last - places[-1] < EDGE * (last - first):
        texts[-1] = ""  # aligned right it would cover the one before
    axes.set_xlim(first, last)
    axes.set_xticks(places, texts if named else [""] * len(places))
    if not named:
        return
    axes.set_xlabel(name, fontsize=8.5)
    for label, place in zip(axes.get_xticklabels(), places, strict=True):
        if last - place < EDGE * (last - first):
            label.set_horizontalalignment("right")


def hour_ticks(
    clock: Clock, first: int, last: int, most: int = 13
) -> tuple[list[int], list[str], str]:
    """Return the ticks of a time axis (s), ``most`` labels at most, and the name of the axis.

    If the trace does not give its start, times count from its origin.
    """
    if last - first > LONG:
        return time_ticks(clock, first, last)
    step = next((s for s in STEPS if (last - first) / s <= most), STEPS[-1])
    if clock.nominal:
        size, unit = next((size, unit) for size, unit in UNITS if step % size == 0)
        places = list(range(-(-first // step) * step, last + 1, step))
        return places, [f"{place // size:,}" for place in places], f"{unit} since the origin"
    walls = range(-(-clock.wall(first) // step) * step, clock.wall(last) + 1, step)
    places, texts, day = [], [], None
    for wall in walls:
        second = clock.second_at(wall)
        if not first <= second <= last or clock.wall(second) != wall:
            continue  # a local time skipped by daylight saving
        local = clock.local(second)
        text = f"{local:%H:%M:%S}" if step < 60 else f"{local:%H:%M}"
        if local.date() != day:
            day = local.date()
            text += f"\n{local:%a} {local.day} {local:%b}"
        places.append(second)
        texts.append(text)
    return places, texts, f"local time {clock.local(first).year}, {clock.zone}"


# ---- files --------------------------------------------------------------------------------------


def figure_png(figure: Figure, scale: float = 1) -> bytes:
    """Return a figure as the bytes of a PNG file, without date and program name.

    Its size in inches times :data:`DPI` is its size on a screen; ``scale`` is file pixels per
    screen pixel, and 2 is sharp in print, too.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(
        buffer,
        format="png",
        dpi=scale * DPI,
        metadata={"Software": None},
        pil_kwargs={"compress_level": 4},
    )
    return buffer.getvalue()


def check_picture(path: str | os.PathLike[str], option: str = "picture") -> None:
    """Check that a picture can be written, before anything is computed.

    ``option`` is its name in the message. An HpcrowdError says that the suffix is not known, that
    it is a folder, or that its folder is missing or cannot be written.
    """
    file = Path(path)
    if file.suffix.lower() not in FORMATS:
        raise QuantityError(
            f"{option} {file}: give the file one of the suffixes {', '.join(FORMATS)}"
        )
    if file.is_dir():
        raise HpcrowdError(f"{option} {file} is a folder; give the name of a file")
    if not file.parent.is_dir():
        raise HpcrowdError(f"{option} {file}: no folder {file.parent} to write it in")
    try:
        with TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise HpcrowdError(f"{option} {file}: cannot be written: {error.strerror}") from error


def write_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file that appears only when it is complete.

    Parameters
    ----------
    figure
        A figure without a window.
    path
        The file; its suffix determines the format.

    Raises
    ------
    HpcrowdError
        When the suffix is not known, or the file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    check_picture(path)
    file = Path(path)
    FigureCanvasAgg(figure)
    for text in figure.findobj(Text):  # names of the input can hold control characters
        lines = str(text.get_text()).split("\n")
        text.set_text("\n".join(map(printable, lines)))
    with (
        whole_file(file) as temporary,
        rc_context({"svg.hashsalt": SALT}),
        catch_warnings(),
    ):
        filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(temporary, **FORMATS[file.suffix.lower()])
