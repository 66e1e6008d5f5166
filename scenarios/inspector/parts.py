"""The parts of the page: cluster, users, one user; pictures and tables that can be saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import solara

from hpcrowd.analysis.views import (
    STATES,
    Moment,
    decisions_picture,
    decisions_table,
    gantt_picture,
    gantt_table,
    graph_picture,
    graph_table,
    load_picture,
    load_table,
    pauses_picture,
    pauses_table,
    queue_picture,
    queue_table,
    submissions_picture,
    submissions_table,
    users_picture,
    users_table,
    week_picture,
    week_table,
)
from hpcrowd.analysis.views.users import mood_words
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.clock import moment as local_time
from hpcrowd.environment.quantities import format_duration, plural
from hpcrowd.scenarios.inspector.course import Course
from hpcrowd.scenarios.inspector.desk import Desk, held
from hpcrowd.scenarios.inspector.sharing import TYPES, image_for_browser

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


#: Size of the pictures, inches; those of one user are lower.
WIDE, HIGH, LOW = 8.0, 3.6, 3.4

#: Number of waiting jobs that are shown.
QUEUE_SHOWN = 200

#: Columns of the queue: key and heading.
QUEUE_COLUMNS = {
    "job": "Job",
    "user": "User",
    "processors": "Processors",
    "cluster": "Cluster",
    "requested_time_s": "Requested",
    "waited_s": "Waited",
    "reason": "Why it waits",
}

#: Columns that hold words.
QUEUE_WORDS = ("cluster", "reason")

#: Columns: key, heading, whether it is a number.
USER_COLUMNS = (
    ("user", "User", True),
    ("state", "State", False),
    ("jobs_done", "Jobs done", True),
    ("jobs_running", "Running", True),
    ("jobs_waiting", "Waiting", True),
    ("wait_mean_s", "Mean wait", True),
    ("lateness_mean_s", "Mean lateness", True),
    ("mood", "Mood", True),
    ("next_submission_s", "Next submission", True),
    ("behaviour", "Behaviour", False),
    ("submits_to", "Submits to", False),
)

#: Users on a page of the table.
USER_ROWS = 25

#: Number of decisions that are shown.
DECISIONS_SHOWN = 200

#: Headings of the columns of the log.
DECISION_COLUMNS = {"local_time": "Local time", "decision": "What and why"}

#: Rows of a table on one page of it.
ROWS = 10


@solara.component_vue("panel.vue")
def _Panel(
    name: str,
    title: str,
    alt: str,
    image: str,
    kinds: list[str],
    event_save: Callable[[str], None],
) -> None:
    """Show an image with buttons."""


@solara.component_vue("saved.vue")
def _Saved(file: dict[str, Any]) -> None:
    """Save a file in the browser, when there is another one."""


@solara.component
def Saved(desk: Desk) -> None:
    """Send the saved file to the browser."""
    _Saved(file=desk.file.value)


@solara.component_vue("table.vue")
def _Table(
    name: str,
    title: str,
    headers: list[dict[str, Any]],
    items: list[dict[str, Any]],
    key_name: str,
    chosen: Any,
    rows: int,
    searchable: bool,
    picks: bool,
    nothing: str,
    kinds: list[str],
    event_save: Callable[[str], None],
    event_pick: Callable[[Any], None],
) -> None:
    """Show a table with a search."""


@solara.component
def Picture(
    desk: Desk,
    name: str,
    title: str,
    draw: Callable[[], Figure],
    table: Callable[[], pd.DataFrame],
    version: Hashable,
) -> None:
    """A picture that is drawn again when its version changes.

    Parameters
    ----------
    desk
        Of the page.
    name
        Name of the panel, and of the files that are saved.
    title
        Above the picture.
    draw, table
        Functions that return the picture and its data; called when needed.
    version
        Changes when the picture does.
    """
    image = solara.use_memo(lambda: held(desk, lambda: image_for_browser(draw())), [version])
    _Panel(
        name=name,
        title=title,
        alt=title,
        image=image,
        kinds=list(TYPES),
        event_save=lambda kind: desk.save(name, kind, draw, table),
    )


@solara.component
def Table(
    desk: Desk,
    name: str,
    title: str,
    headers: list[dict[str, Any]],
    items: list[dict[str, Any]],
    draw: Callable[[], Figure],
    table: Callable[[], pd.DataFrame],
    *,
    key_name: str,
    chosen: Any = None,
    rows: int = ROWS,
    searchable: bool = False,
    on_pick: Callable[[Any], None] | None = None,
    nothing: str = "Nothing.",
) -> None:
    """A table that can be sorted.

    Parameters
    ----------
    desk, name, title
        As of :func:`Picture`.
    headers
        Of the columns: ``text`` and ``value``, the key in ``items``.
    items
        The rows; if there is ``KEY_text``, it is shown, and sorted by ``KEY``.
    draw, table
        Functions that return a picture of it and the whole table, for files.
    key_name, chosen
        The key that identifies rows, and its value in the marked row.
    rows
        Number of rows on a page.
    searchable
        Whether it has a field to search.
    on_pick
        Called with the key of a row that is clicked.
    nothing
        Text to show if there are no rows.
    """
    _Table(
        name=name,
        title=title,
        headers=headers,
        items=items,
        key_name=key_name,
        chosen=chosen,
        rows=rows,
        searchable=searchable,
        picks=on_pick is not None,
        nothing=nothing,
        kinds=list(TYPES),
        event_save=lambda kind: desk.save(name, kind, draw, table),
        event_pick=on_pick or (lambda key: None),
    )


@solara.component
def ClusterPart(desk: Desk, course: Course, moment: Moment, place: int) -> None:
    """Pictures and tables of the cluster.

    Parameters
    ----------
    desk
        Of the page.
    course, moment
        The run, and where it is; the part is drawn again when it changes.
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
    frame = solara.use_memo(
        lambda: held(desk, lambda: queue_with_reasons(course, QUEUE_SHOWN)), [moment]
    )
    total = len(moment.queue)
    more = f", the first {QUEUE_SHOWN} shown" if total > QUEUE_SHOWN else ""
    Table(
        desk=desk,
        name=f"queue-{run}",
        title=f"{plural(total, 'waiting job')}{more}",
        headers=[
            {"value": key, "text": text, "align": "start" if key in QUEUE_WORDS else "end"}
            for key, text in QUEUE_COLUMNS.items()
            if key in frame
        ],
        items=[_queue_item(row) for row in frame.to_dict("records")],
        draw=lambda: queue_picture(moment, reasons=course.reasons(moment.queue.tolist())),
        table=lambda: queue_with_reasons(course, None),
        key_name="job",
        nothing="No job waits.",
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


def _queue_item(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row for the table of the page."""
    item: dict[str, Any] = {
        key: row[key] if key in QUEUE_WORDS else int(row[key])
        for key in QUEUE_COLUMNS
        if key in row
    }
    for key in ("requested_time_s", "waited_s"):
        item[f"{key}_text"] = format_duration(item[key]) if item[key] >= 0 else "none"
    if "user_name" in row:
        item["user_text"] = row["user_name"]
    return item


@solara.component
def UsersPart(desk: Desk, course: Course, moment: Moment, place: int) -> None:
    """All users of a run.

    Parameters
    ----------
    desk
        Of the page.
    course, moment
        The run, and where it is; the part is drawn again when it changes.
    place
        0 for the first run, 1 for the second.
    """
    frame = solara.use_memo(lambda: held(desk, lambda: users_table(moment)), [moment])
    names = [one for one in USER_COLUMNS if not frame[one[0]].isna().all()]
    shown = [*(key for key, _, _ in names), *frame.columns.intersection(["user_name"])]
    Table(
        desk=desk,
        name=f"users-{'ab'[place]}",
        title=f"{len(frame):,} users",
        headers=[
            {"value": key, "text": text, "align": "end" if number else "start"}
            for key, text, number in names
        ],
        items=solara.use_memo(
            lambda: [item_of(row, moment.clock) for row in frame[shown].to_dict("records")],
            [moment],
        ),
        draw=lambda: users_picture(moment),
        table=lambda: frame,
        key_name="user",
        chosen=desk.user.value,
        rows=USER_ROWS,
        searchable=True,
        on_pick=lambda user: desk.choose(int(user)),
        nothing="There are no users.",
    )
    there = dict.fromkeys(frame["state"])
    meant = "; ".join(f"{name}: {words}" for name, words in STATES.items() if name in there)
    solara.Text(meant, classes=["hpcrowd-small", "hpcrowd-states"])


def item_of(row: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Return a row for the table of the page: plain values, and text where that differs."""
    item: dict[str, Any] = {}
    for key, value in row.items():
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        if missing:
            item[key], item[f"{key}_text"] = None, ""
        elif key == "user_name":
            item["user_text"] = value
        elif key in ("wait_mean_s", "lateness_mean_s"):
            item[key], item[f"{key}_text"] = float(value), format_duration(value)
        elif key == "next_submission_s":
            item[key], item[f"{key}_text"] = int(value), local_time(clock, int(value))
        elif key == "mood":
            item[key], item[f"{key}_text"] = float(value), mood_words(value)
        else:
            item[key] = value if isinstance(value, str) else int(value)
    return item


@solara.component
def UserPart(desk: Desk, course: Course, moment: Moment, place: int) -> None:
    """The user that is chosen.

    Parameters
    ----------
    desk
        Of the page.
    course, moment
        The run, and where it is; the part is drawn again when it changes.
    place
        0 for the first run, 1 for the second.
    """
    user = desk.user.value
    frame = solara.use_memo(lambda: held(desk, lambda: users_table(moment)), [moment])
    numbers = frame["user"].tolist()
    labels = {moment.jobs.who(number): number for number in numbers}
    name = None if user is None else moment.jobs.who(user)
    solara.Select(
        "User",
        [*labels],
        value=name if user in numbers else None,
        on_value=lambda label: desk.choose(labels.get(label)),
        dense=True,
        style="max-width: 160px",
    )
    if user is None:
        solara.Text("Choose a user here, or in the table of users.")
        return
    if user not in numbers:
        solara.Text(f"User {name} is not in this run.")
        return
    row = item_of(frame[frame["user"] == user].to_dict("records")[0], moment.clock)
    solara.Text(_words(row), classes=["hpcrowd-user-words"])
    version = (moment, user)
    run = "ab"[place]
    with solara.Div(classes=["hpcrowd-grid"]):
        Picture(
            desk=desk,
            name=f"graph-{run}",
            title=f"What user {name} waits for",
            draw=lambda: graph_picture(moment, user, width=WIDE),
            table=lambda: graph_table(moment, user),
            version=version,
        )
        Picture(
            desk=desk,
            name=f"week-{run}",
            title=f"Week of user {name}",
            draw=lambda: week_picture(moment, user, width=WIDE, height=LOW),
            table=lambda: week_table(moment, user),
            version=version,
        )
        Picture(
            desk=desk,
            name=f"pauses-{run}",
            title=f"Think times of user {name}",
            draw=lambda: pauses_picture(moment, user, width=WIDE, height=LOW),
            table=lambda: pauses_table(moment, user),
            version=version,
        )
        _Decisions(desk, course, moment, user, run)


@solara.component
def _Decisions(desk: Desk, course: Course, moment: Moment, user: int, run: str) -> None:
    """The decisions of a user, newest first."""
    frame = solara.use_memo(
        lambda: held(desk, lambda: decisions_table(moment, user, DECISIONS_SHOWN)), [moment, user]
    )
    logged = moment.decisions is not None
    if logged and course.log_full:
        solara.Text("The log is full: later decisions are not in it.")
    items = [
        {"place": place, **{key: row[key] for key in DECISION_COLUMNS}}
        for place, row in enumerate(frame.to_dict("records"))
    ]
    Table(
        desk=desk,
        name=f"decisions-{run}",
        title=f"Decisions of user {moment.jobs.who(user)}, the latest first",
        headers=[{"value": key, "text": text} for key, text in DECISION_COLUMNS.items()],
        items=items,
        draw=lambda: decisions_picture(moment, user),
        table=lambda: decisions_table(moment, user, None),
        key_name="place",
        nothing="Nothing yet." if logged else "This run has no log; make one: --log-decisions.",
    )


def _words(row: dict[str, Any]) -> str:
    """Return a line of text about the user."""
    found = [f"User {row.get('user_text', row['user'])} ({row['state']})"]
    for key, words in (("behaviour", "behaves as"), ("submits_to", "submits to")):
        if row.get(key):  # shown if users differ in it
            found.append(f"{words} {row[key]}")
    for key, words in (
        ("jobs_done", "jobs done"),
        ("jobs_running", "running"),
        ("jobs_waiting", "waiting"),
    ):
        found.append(f"{row[key]:,} {words}")
    for key, words in (
        ("wait_mean_s", "mean wait"),
        ("lateness_mean_s", "mean lateness"),
        ("mood", "mood"),
        ("next_submission_s", "submits next"),
    ):
        if row.get(f"{key}_text"):
            found.append(f"{words} {row[f'{key}_text']}")
    return ", ".join(found)
