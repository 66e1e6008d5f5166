"""Panels as files: the table of each (CSV), or its picture (PNG, SVG)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcrowd.analysis.pictures.gantt import gantt
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.analysis.views.delays import delays_table
from hpcrowd.analysis.views.gantt import gantt_table
from hpcrowd.analysis.views.graph import graph_picture, graph_table
from hpcrowd.analysis.views.load import (
    load_picture,
    load_table,
    queue_picture,
    submissions_picture,
    submissions_table,
)
from hpcrowd.analysis.views.units import own_units, pauses_picture, pauses_table
from hpcrowd.analysis.views.users import decisions_picture, decisions_table, users_picture
from hpcrowd.analysis.views.week import week_picture, week_table
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.scenarios.inspector.panels.asked import SAVED_TYPES, Asked
from hpcrowd.scenarios.inspector.panels.cluster import queue_with_reasons
from hpcrowd.scenarios.inspector.panels.job_stories import job_stories
from hpcrowd.scenarios.inspector.panels.power import picture_of_power, power_table
from hpcrowd.scenarios.inspector.panels.users import users_frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcrowd.scenarios.inspector.subjects.course import Course

#: Size of a saved picture, inches.
WIDE, HIGH = 12.0, 5.5


class Saved(NamedTuple):
    """What is saved of a panel: its table and, if it has one, its picture."""

    table: Callable[[Course, Asked], pd.DataFrame]
    picture: Callable[[Course, Asked], Figure] | None = None


def _user(asked: Asked) -> int:
    if asked.user is None:
        raise QuantityError("no user is chosen: choose one to save what concerns them")
    return asked.user


def _jobs_table(course: Course, asked: Asked) -> pd.DataFrame:
    import pandas as pd

    own = own_units(course.moment(), _user(asked))
    return pd.DataFrame(job_stories(course, own, _user(asked), None)["jobs"])


def _gantt_table(course: Course, asked: Asked) -> pd.DataFrame:
    frame = gantt_table(course.moment(), asked.since(course.now))
    return frame[frame["start_s"] < asked.last]


SAVED: Mapping[str, Saved] = {
    "load": Saved(
        lambda c, a: load_table(c.moment(), a.window(c.now), until=a.last),
        lambda c, a: load_picture(
            c.moment(), a.window(c.now), until=a.last, width=WIDE, height=HIGH
        ),
    ),
    "power": Saved(power_table, picture_of_power),
    "submissions": Saved(
        lambda c, a: submissions_table(c.moment(), a.window(c.now), until=a.last),
        lambda c, a: submissions_picture(
            c.moment(), a.window(c.now), until=a.last, width=WIDE, height=HIGH
        ),
    ),
    "gantt": Saved(
        _gantt_table,
        lambda c, a: gantt(c.moment().run(), (a.first, max(min(a.last, c.now), a.first + HOUR))),
    ),
    "queue": Saved(
        lambda c, a: queue_with_reasons(c, None),
        lambda c, a: queue_picture(c.moment(), reasons=c.reasons(c.moment().queue[:200].tolist())),
    ),
    "users": Saved(
        lambda c, a: users_frame(c.moment()),
        lambda c, a: users_picture(c.moment()),
    ),
    "graph": Saved(
        lambda c, a: graph_table(c.moment(), _user(a), None),
        lambda c, a: graph_picture(c.moment(), _user(a), width=WIDE),
    ),
    "week": Saved(
        lambda c, a: week_table(c.moment(), _user(a)),
        lambda c, a: week_picture(c.moment(), _user(a), width=WIDE, height=HIGH),
    ),
    "pauses": Saved(
        lambda c, a: pauses_table(c.moment(), _user(a)),
        lambda c, a: pauses_picture(c.moment(), _user(a), width=WIDE, height=HIGH),
    ),
    "jobs": Saved(_jobs_table),
    "delays": Saved(lambda c, a: delays_table(c.moment(), a.since(c.now))),
    "decisions": Saved(
        lambda c, a: decisions_table(c.moment(), _user(a), None),
        lambda c, a: decisions_picture(c.moment(), _user(a)),
    ),
}


def figure_svg(figure: Figure) -> bytes:
    """Return a figure as the bytes of an SVG file, the same for the same figure."""
    import matplotlib

    buffer = BytesIO()
    # Otherwise the names of parts are random.
    with matplotlib.rc_context({"svg.hashsalt": "hpcrowd"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def frame_csv(frame: pd.DataFrame) -> bytes:
    """Return a table as the bytes of a CSV file."""
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text.encode()


def saved_panel(course: Course, message: Mapping[str, Any]) -> bytes:
    """Return a panel as the bytes of a file.

    Parameters
    ----------
    course
        The run.
    message
        The request of the page: ``panel``, one of :data:`SAVED`; ``kind``, one of
        :data:`SAVED_TYPES`; and what is shown, see :class:`Asked`.

    Raises
    ------
    QuantityError
        When there is no such panel, or no picture of it.
    """
    name, kind = message["panel"], message["kind"]
    if name not in SAVED or kind not in SAVED_TYPES:
        known = (name, SAVED) if name not in SAVED else (kind, SAVED_TYPES)
        raise QuantityError(f"save {known[0]!r}: {not_one_of(*known)}")
    saved, asked = SAVED[name], Asked.of(message, course.now)
    if kind == "csv":
        return frame_csv(saved.table(course, asked))
    if saved.picture is None:
        raise QuantityError(f"save {name} as {kind}: there is no picture of it; choose csv")
    figure = saved.picture(course, asked)
    return figure_svg(figure) if kind == "svg" else figure_png(figure)
