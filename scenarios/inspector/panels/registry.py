"""The list of all panels, and of what is saved of them.

A panel is a function of a run and of what the page asks to see. What it returns is turned to JSON
by :mod:`.exchange`. A file of a panel is its table (CSV), or its picture (PNG, SVG).
"""

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
from hpcrowd.analysis.views.users import (
    decisions_picture,
    decisions_table,
    users_picture,
    week_picture,
    week_table,
)
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import HpcrowdError, QuantityError, not_one_of
from hpcrowd.scenarios.inspector.panels.cluster import (
    load_panel,
    picture_of_power,
    power_panel,
    power_table,
    queue_panel,
    queue_with_reasons,
    submissions_panel,
)
from hpcrowd.scenarios.inspector.panels.exchange import SAVED_TYPES, Asked, to_json
from hpcrowd.scenarios.inspector.panels.forecast import forecast_panel
from hpcrowd.scenarios.inspector.panels.gantt import gantt_panel
from hpcrowd.scenarios.inspector.panels.jobs import blockers_panel, delays_panel, job_stories
from hpcrowd.scenarios.inspector.panels.overview import energy_numbers, numbers
from hpcrowd.scenarios.inspector.panels.users import user_panel, users_frame, users_panel
from hpcrowd.scenarios.inspector.subjects.course import Course

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcrowd.scenarios.inspector.subjects.course import Course


#: What each panel shows, by the name that the page uses.
PANELS: Mapping[str, Callable[[Course, Asked], dict[str, Any]]] = {
    "numbers": lambda course, asked: numbers(course.moment(), more=energy_numbers(course)),
    "load": load_panel,
    "power": power_panel,
    "submissions": submissions_panel,
    "gantt": gantt_panel,
    "queue": queue_panel,
    "users": users_panel,
    "user": user_panel,
    "blockers": blockers_panel,
    "delays": delays_panel,
    "forecast": forecast_panel,
}


def panels_json(course: Course, message: Mapping[str, Any]) -> bytes:
    """Return the panels that a message names in ``panels`` as a JSON object, each by its name."""
    asked = Asked.of(message, course.now)
    parts = [b'"now":%d' % course.now]
    for name in message["panels"]:
        try:
            content = to_json(PANELS[name](course, asked))
        except HpcrowdError as error:
            content = to_json({"error": str(error)})
        parts.append(b'"%s":%s' % (name.encode(), content))
    return b"{" + b",".join(parts) + b"}"


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


def _over_time(table: Callable[..., pd.DataFrame], picture: Callable[..., Figure]) -> Saved:
    """Return what is saved of the time that the page shows."""
    return Saved(
        lambda c, a: table(c.moment(), a.window(c.now), until=a.last),
        lambda c, a: picture(c.moment(), a.window(c.now), until=a.last, width=WIDE, height=HIGH),
    )


def _of_user(
    table: Callable[..., pd.DataFrame], picture: Callable[..., Figure], *most: None, **size: float
) -> Saved:
    """Return what is saved of the chosen user; ``most`` is None for the rows of a table of all."""
    return Saved(
        lambda c, a: table(c.moment(), _user(a), *most),
        lambda c, a: picture(c.moment(), _user(a), **size),
    )


#: What is saved of each panel, by the name that the page uses.
SAVED: Mapping[str, Saved] = {
    "load": _over_time(load_table, load_picture),
    "power": Saved(power_table, picture_of_power),
    "submissions": _over_time(submissions_table, submissions_picture),
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
    "graph": _of_user(graph_table, graph_picture, None, width=WIDE),
    "week": _of_user(week_table, week_picture, width=WIDE, height=HIGH),
    "pauses": _of_user(pauses_table, pauses_picture, width=WIDE, height=HIGH),
    "jobs": Saved(_jobs_table),
    "delays": Saved(lambda c, a: delays_table(c.moment(), a.since(c.now))),
    "decisions": _of_user(decisions_table, decisions_picture, None),
}


def figure_svg(figure: Figure) -> bytes:
    """Return a figure as the bytes of an SVG file, the same for the same figure."""
    import matplotlib

    buffer = BytesIO()
    # Otherwise the names of parts are random.
    with matplotlib.rc_context({"svg.hashsalt": "hpcrowd"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def saved_panel(course: Course, message: Mapping[str, Any]) -> bytes:
    """Return a panel as the bytes of a file.

    The message has ``panel``, one of :data:`SAVED`; ``kind``, one of :data:`SAVED_TYPES`; and what
    is shown, see :class:`Asked`. A QuantityError says that there is no such panel, or no picture.
    """
    name, kind = message["panel"], message["kind"]
    if name not in SAVED or kind not in SAVED_TYPES:
        known = (name, SAVED) if name not in SAVED else (kind, SAVED_TYPES)
        raise QuantityError(f"save {known[0]!r}: {not_one_of(*known)}")
    saved, asked = SAVED[name], Asked.of(message, course.now)
    if kind == "csv":
        text: str = saved.table(course, asked).to_csv(index=False, lineterminator="\n")
        return text.encode()
    if saved.picture is None:
        raise QuantityError(f"save {name} as {kind}: there is no picture of it; choose csv")
    figure = saved.picture(course, asked)
    return figure_svg(figure) if kind == "svg" else figure_png(figure)
