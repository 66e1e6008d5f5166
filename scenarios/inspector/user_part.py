"""The part of the page about one user: its graph, its week, its pauses, what it decided and why."""

from __future__ import annotations

from typing import Any

import solara

from hpcrowd.analysis.views import (
    Moment,
    decisions_picture,
    decisions_table,
    graph_picture,
    graph_table,
    pauses_picture,
    pauses_table,
    users_table,
    week_picture,
    week_table,
)
from hpcrowd.scenarios.inspector.course import Course
from hpcrowd.scenarios.inspector.desk import Desk, held
from hpcrowd.scenarios.inspector.panels import Picture, Table
from hpcrowd.scenarios.inspector.users_part import item_of

#: Size of the pictures, inches.
WIDE, HIGH = 8.0, 3.4

#: Decisions that are shown.
DECISIONS = 200

#: Headings of the columns of the log.
HEADINGS = {"local_time": "Local time", "decision": "What and why"}


@solara.component
def UserPart(desk: Desk, course: Course, moment: Moment, place: int) -> None:
    """The user that is chosen.

    Parameters
    ----------
    desk
        Of the page.
    course, moment
        The run, and where it is; another moment draws the part anew.
    place
        0 for the first run, 1 for the second.
    """
    user = desk.user.value
    frame = solara.use_memo(lambda: held(desk, lambda: users_table(moment)), [moment])
    numbers = frame["user"].tolist()
    solara.Select(
        "User",
        numbers,
        value=user if user in numbers else None,
        on_value=desk.choose,
        dense=True,
        style="max-width: 160px",
    )
    if user is None:
        solara.Text("Choose a user here, or in the table of users.")
        return
    if user not in numbers:
        solara.Text(f"User {user} is not in this run.")
        return
    row = item_of(frame[frame["user"] == user].to_dict("records")[0], moment.clock)
    solara.Text(_words(row), classes=["hpcrowd-user-words"])
    version = (moment, user)
    run = "ab"[place]
    with solara.Div(classes=["hpcrowd-grid"]):
        Picture(
            desk=desk,
            name=f"graph-{run}",
            title=f"What user {user} waits for",
            draw=lambda: graph_picture(moment, user, width=WIDE),
            table=lambda: graph_table(moment, user),
            version=version,
        )
        Picture(
            desk=desk,
            name=f"week-{run}",
            title=f"Week of user {user}",
            draw=lambda: week_picture(moment, user, width=WIDE, height=HIGH),
            table=lambda: week_table(moment, user),
            version=version,
        )
        Picture(
            desk=desk,
            name=f"pauses-{run}",
            title=f"Think times of user {user}",
            draw=lambda: pauses_picture(moment, user, width=WIDE, height=HIGH),
            table=lambda: pauses_table(moment, user),
            version=version,
        )
        _Decisions(desk, course, moment, user, run)


@solara.component
def _Decisions(desk: Desk, course: Course, moment: Moment, user: int, run: str) -> None:
    """What a user decided, newest first."""
    frame = solara.use_memo(
        lambda: held(desk, lambda: decisions_table(moment, user, DECISIONS)), [moment, user]
    )
    logged = moment.decisions is not None
    if logged and course.log_full:
        solara.Text("The log is full: later decisions are not in it.")
    items = [
        {"place": place, **{key: row[key] for key in HEADINGS}}
        for place, row in enumerate(frame.to_dict("records"))
    ]
    Table(
        desk=desk,
        name=f"decisions-{run}",
        title=f"What user {user} decided, the latest first",
        headers=[{"value": key, "text": text} for key, text in HEADINGS.items()],
        items=items,
        draw=lambda: decisions_picture(moment, user),
        table=lambda: decisions_table(moment, user, None),
        key_name="place",
        nothing="Nothing yet." if logged else "This run has no log; make one: --log-decisions.",
    )


def _words(row: dict[str, Any]) -> str:
    """Return a line about the user."""
    found = [f"User {row['user']} ({row['state']})"]
    for key, words in (("behaviour", "behaves as"), ("submits_to", "submits to")):
        if row.get(key):  # where users differ in it
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
