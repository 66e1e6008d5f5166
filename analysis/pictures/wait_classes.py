"""Who waits: mean waits and slowdowns of jobs by their size and by the time they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.metrics import bounded_slowdown
from hpcrowd.analysis.pictures.plots import TITLE, new_figure, say_nothing
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.pictures.over_time import Columns


#: Each class of sizes reaches to this multiple of the one before, from one processor on.
STEP = 4

#: Upper ends of classes of times, s, and their names.
TIMES = (
    (600, "to 10 min"),
    (HOUR, "to 1 h"),
    (4 * HOUR, "to 4 h"),
    (12 * HOUR, "to 12 h"),
    (DAY, "to 1 day"),
    (3 * DAY, "to 3 days"),
    (None, "longer"),
)

#: Name of what holds all classes of one kind.
ALL = "all"

#: A cell with fewer jobs is pale and hatched: its mean says little.
FEW = 10

#: Share of white in such a cell.
PALE = 0.55


@dataclass(frozen=True)
class WaitClasses:
    """Means by class of size (rows, small to large, last all) and of time (columns, last all).

    Attributes
    ----------
    sizes, times
        Names of the classes.
    by
        ``requested time``; ``run time`` where no job asked for a time.
    jobs
        How many, shape (sizes, times).
    wait
        s; mean wait, NaN without jobs.
    slowdown
        Mean bounded slowdown, NaN without jobs.
    """

    sizes: list[str]
    times: list[str]
    by: str
    jobs: Int64s
    wait: Floats
    slowdown: Floats


def wait_classes(run: Run) -> WaitClasses:
    """Return the means of the jobs that ran; classes without jobs are left out."""
    jobs = run.jobs.take(np.flatnonzero(run.jobs.over))
    told = bool((jobs.requested_time != UNKNOWN).any())
    time = jobs.requested_time if told else jobs.end - jobs.start
    ends = np.array([end for end, _ in TIMES if end is not None])
    column = np.searchsorted(ends, time)
    names = [name for _, name in TIMES]
    if (time == UNKNOWN).any():
        column = np.where(time == UNKNOWN, len(TIMES), column)
        names.append("not told")
    largest = int(jobs.processors.max(initial=1))
    count = next(n for n in range(64) if STEP**n >= largest) + 1
    row = np.searchsorted(STEP ** np.arange(count), jobs.processors)
    wait = jobs.start - jobs.submit
    slow = bounded_slowdown(jobs.end - jobs.submit, jobs.end - jobs.start)
    shape = (count, len(names))
    cells = row * len(names) + column
    sums = [
        _with_all(np.bincount(cells, weight, count * len(names)).reshape(shape))
        for weight in (np.ones(len(row)), wait, slow)
    ]
    rows = np.flatnonzero(np.append(sums[0][:-1, -1] > 0, True))
    columns = np.flatnonzero(np.append(sums[0][-1, :-1] > 0, True))
    number, waits, slows = (one[np.ix_(rows, columns)] for one in sums)
    with np.errstate(invalid="ignore"):
        means = waits / number, slows / number
    sizes = [*(_size(place) for place in range(count)), ALL]
    return WaitClasses(
        [sizes[place] for place in rows],
        [[*names, ALL][place] for place in columns],
        "requested time" if told else "run time",
        number.astype(np.int64),
        *means,
    )


def waits_by_class(run: Run) -> Figure:
    """Return mean waits and mean bounded slowdowns by class, each cell with its jobs."""
    found = wait_classes(run)
    height = 1.65 + 0.43 * len(found.sizes)
    figure = new_figure(12, height, "Who waits", run.label)
    grid = figure.add_gridspec(1, 2, left=0.11, right=0.99, wspace=0.04)
    grid.update(bottom=0.62 / height, top=1 - 0.95 / height)
    for place, (values, title, colours) in enumerate(
        (
            (found.wait, "Mean wait (jobs)", "Blues"),
            (found.slowdown, "Mean bounded slowdown (jobs)", "Oranges"),
        )
    ):
        axes = figure.add_subplot(grid[place])
        axes.set_title(title, **TITLE)
        if not found.jobs.any():
            say_nothing(axes, "no job ran")
            continue
        form = _short_time if place == 0 else _short_number
        _draw_cells(axes, found, values, colours, form)
        axes.set_xlabel(found.by, fontsize=8.5)
        if place:
            axes.set_yticks([])
        else:
            axes.set_ylabel("processors", fontsize=8.5)
    return figure


def classes_data(run: Run) -> Columns:
    """Return what :func:`waits_by_class` shows, a row for each cell."""
    found = wait_classes(run)
    rows, columns = np.indices(found.jobs.shape).reshape(2, -1)
    return {
        "processors": [found.sizes[row] for row in rows],
        found.by.replace(" ", "_"): [found.times[column] for column in columns],
        "jobs": found.jobs.ravel(),
        "wait_mean_s": found.wait.ravel(),
        "bounded_slowdown_mean": found.slowdown.ravel(),
    }


def _draw_cells(axes: Axes, found: WaitClasses, values: Floats, colours: str, form: Any) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    scale = np.log10(np.maximum(values, 60 if form is _short_time else 1))
    low, high = float(np.nanmin(scale)), float(np.nanmax(scale))
    shade = 0.85 * (scale - low) / (high - low) if high > low else 0.3 * np.ones_like(scale)
    for (row, column), count in np.ndenumerate(found.jobs):
        if not count:
            continue
        red, green, blue, _ = colormaps[colours](float(shade[row, column]))
        few = count < FEW
        if few:
            red, green, blue = (PALE + (1 - PALE) * part for part in (red, green, blue))
        look: dict[str, Any] = {"facecolor": (red, green, blue), "edgecolor": "white"}
        axes.add_patch(
            Rectangle((column, row), 1, 1, linewidth=1, hatch="///" if few else None, **look)
        )
        is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        ink: dict[str, Any] = {"color": "white" if is_dark else "black"}
        ink |= {"ha": "center", "va": "center"}
        middle = column + 0.5
        axes.text(middle, row + 0.33, form(values[row, column]), fontsize=8.5, **ink)
        axes.text(middle, row + 0.73, f"({count:,})", fontsize=7, **ink)
    rows, columns = found.jobs.shape
    axes.set(xlim=(0, columns), ylim=(rows, 0))
    axes.axhline(rows - 1, color="black", linewidth=1)
    axes.axvline(columns - 1, color="black", linewidth=1)
    axes.set_xticks(np.arange(columns) + 0.5, found.times, fontsize=8)
    axes.set_yticks(np.arange(rows) + 0.5, found.sizes, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _with_all(sums: Floats) -> Floats:
    """Return sums with one more row and column, which hold those of all."""
    wider = np.hstack([sums, sums.sum(axis=1, keepdims=True)])
    return np.vstack([wider, wider.sum(axis=0, keepdims=True)])


def _size(place: int) -> str:
    """Return the name of a class of sizes."""
    if not place:
        return "1"
    low, high = STEP ** (place - 1) + 1, STEP**place
    return f"{low:,} to {high:,}"


def _short_time(seconds: float) -> str:
    """Return a time that has room in a cell."""
    for least, size, unit in ((2 * DAY, DAY, "d"), (2 * HOUR, HOUR, "h"), (120, 60, "min")):
        if seconds >= least:
            count = seconds / size
            return f"{count:.{1 if count < 100 else 0}f} {unit}"
    return f"{seconds:.0f} s"


def _short_number(value: float) -> str:
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"
