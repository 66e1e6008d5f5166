"""The part of the page about the cluster: load, submissions, who runs, who waits and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import solara

from hpcrowd.analysis.views import (
    Moment,
    gantt_picture,
    gantt_table,
    load_picture,
    load_table,
    queue_picture,
    queue_table,
    submissions_picture,
    submissions_table,
)
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.quantities import format_duration, plural
from hpcrowd.scenarios.inspector.course import Course
from hpcrowd.scenarios.inspector.desk import Desk, held
from hpcrowd.scenarios.inspector.panels import Picture, Table

if TYPE_CHECKING:
    import pandas as pd


#: Size of the pictures, inches.
WIDE, HIGH = 8.0, 3.6

#: Waiting jobs that are shown.
SHOWN = 200

#: Columns of the queue: key and heading.
COLUMNS = {
    "job": "Job",
    "user": "User",
    "processors": "Processors",
    "cluster": "Cluster",
    "requested_time_s": "Requested",
    "waited_s": "Waited",
    "reason": "Why it waits",
}

#: Those that are words.
WORDS = ("cluster", "reason")


@solara.component
def ClusterPart(desk: Desk, course: Course, moment: Moment, place: int) -> None:
    """Pictures and tables of the cluster.

    Parameters
    ----------
    desk
        Of the page.
    course, moment
        The run, and where it is; another moment draws the part anew.
    place
        0 for the first run, 1 for the second.
    """
    span = desk.span.value * DAY or None
    run = "ab"[place]
    with solara.Div(classes=["hpcrowd-grid"]):
        Picture(
            desk=desk,
            name=f"load-{run}",
            title="Processors and queue",
            draw=lambda: load_picture(moment, span, width=WIDE, height=HIGH),
            table=lambda: load_table(moment, span),
            version=(moment, span),
        )
        Picture(
            desk=desk,
            name=f"submissions-{run}",
            title="Submissions, recorded and simulated",
            draw=lambda: submissions_picture(moment, span, width=WIDE, height=HIGH),
            table=lambda: submissions_table(moment, span),
            version=(moment, span),
        )
        Picture(
            desk=desk,
            name=f"gantt-{run}",
            title="Jobs that run and ran, by user",
            draw=lambda: gantt_picture(moment, width=WIDE, height=HIGH + 0.6),
            table=lambda: gantt_table(moment),
            version=(moment, 0),
        )
        _Queue(desk, course, moment, run)


@solara.component
def _Queue(desk: Desk, course: Course, moment: Moment, run: str) -> None:
    """The jobs that wait, first in the queue first, each with its reason."""
    frame = solara.use_memo(lambda: held(desk, lambda: queue_with_reasons(course, SHOWN)), [moment])
    total = len(moment.queue)
    more = f", the first {SHOWN} shown" if total > SHOWN else ""
    Table(
        desk=desk,
        name=f"queue-{run}",
        title=f"{plural(total, 'waiting job')}{more}",
        headers=[
            {"value": key, "text": text, "align": "start" if key in WORDS else "end"}
            for key, text in COLUMNS.items()
            if key in frame
        ],
        items=[_item(row) for row in frame.to_dict("records")],
        draw=lambda: queue_picture(moment, reasons=course.reasons(moment.queue.tolist())),
        table=lambda: queue_with_reasons(course, None),
        key_name="job",
        nothing="Nobody waits.",
        on_pick=lambda job: desk.choose(int(frame.loc[frame["job"] == job, "user"].iloc[0])),
    )


def queue_with_reasons(course: Course, most: int | None) -> pd.DataFrame:
    """Return the jobs that wait with the reason of each, in words.

    Parameters
    ----------
    course
        The run.
    most
        Most jobs; None for all.
    """
    frame = queue_table(course.moment(), most)
    reasons = course.reasons(frame["row"].tolist())
    return frame.assign(reason=[reasons.get(row, "") for row in frame["row"].tolist()])


def _item(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as the table of the page has it."""
    item: dict[str, Any] = {
        key: row[key] if key in WORDS else int(row[key]) for key in COLUMNS if key in row
    }
    for key in ("requested_time_s", "waited_s"):
        item[f"{key}_text"] = format_duration(item[key]) if item[key] >= 0 else "none"
    return item
