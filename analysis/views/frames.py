"""The common base of pictures of a moment: titles, the line at now, tables as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.pictures.plots import COLOURS, new_figure
from hpcrowd.environment.clock import moment as local_moment

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.curves import Floats
    from hpcrowd.analysis.views.moment import Moment
    from hpcrowd.environment.jobs import Int64s


#: Height of a table line and of the space above the table, inches.
LINE, HEAD = 0.18, 0.85

#: Width of a letter of a drawn table, inches, and the line spacing to match the height of lines.
LETTER, SPACING = 0.082, 1.44


def figure_at(moment: Moment, what: str, width: float, height: float, words: str = "") -> Figure:
    """Return an empty figure titled with the view, the run and the local time of the moment.

    ``words`` is the line below the title.
    """
    title = f"{what}: {moment.label}" if moment.label else what
    zone = "" if moment.clock.nominal else f" ({moment.clock.zone})"
    figure = new_figure(width, height, title, f"{local_moment(moment.clock, moment.now)}{zone}")
    if words:
        figure.text(0.012, 1 - 0.60 / height, words, va="top", fontsize=9.5, color="#444444")
    return figure


def fill_steps(axes: Axes, edges: Int64s, level: Floats, colour: str, **look: Any) -> None:
    """Fill the area below a stepped level; faster than matplotlib's ``stairs``."""
    shown = np.append(level, level[-1:])
    axes.fill_between(edges, shown, step="post", color=COLOURS[colour], linewidth=0, **look)


def where_known(values: Int64s, known: Any) -> pd.api.extensions.ExtensionArray:
    """Return numbers as a table column in which unknown ones are missing."""
    import pandas as pd

    return pd.arrays.IntegerArray(np.where(known, values, 0), ~known)


def by_name(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table for a picture: names of users instead of their numbers, if there are any."""
    if "user_name" not in frame:
        return frame
    return frame.assign(user=frame["user_name"]).drop(columns="user_name")


def table_picture(
    moment: Moment,
    what: str,
    frame: pd.DataFrame,
    words: Sequence[Sequence[str]],
    *,
    note: str = "",
) -> Figure:
    """Return a picture of a table, as large as needed; ``note`` is next to the time.

    The headings are the column names of the frame; ``words`` are the texts of the cells, column by
    column. Numbers are aligned right.
    """
    from pandas.api.types import is_numeric_dtype

    heads = [name.removesuffix("_s").replace("_", " ") for name in frame.columns]
    wide = [
        LETTER * max(map(len, (head, *column))) + 0.25
        for head, column in zip(heads, words, strict=True)
    ]
    width = max(4.5, sum(wide) + 0.3)
    height = HEAD + LINE * (len(frame) + 2)
    figure = figure_at(moment, what, width, height, note)
    left = 0.12
    for name, head, column, size in zip(frame.columns, heads, words, wide, strict=True):
        right = is_numeric_dtype(frame[name])
        x = (left + size - 0.2 if right else left) / width
        look: dict[str, Any] = {"va": "top", "ha": "right" if right else "left", "fontsize": 9}
        figure.text(x, 1 - HEAD / height, head, weight="bold", **look)
        # One text per column is many times faster than one per cell.
        cells = "\n".join(column)
        figure.text(x, 1 - (HEAD + 1.3 * LINE) / height, cells, linespacing=SPACING, **look)
        left += size
    return figure
