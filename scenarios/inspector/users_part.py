"""The part of the page about all users: a table to sort, to search, and to pick one from."""

from __future__ import annotations

import math
from typing import Any

import solara

from hpcrowd.analysis.views import STATES, Moment, users_picture, users_table
from hpcrowd.analysis.views.users import mood_words
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.clock import moment as local_moment
from hpcrowd.environment.quantities import format_duration
from hpcrowd.scenarios.inspector.course import Course
from hpcrowd.scenarios.inspector.desk import Desk, held
from hpcrowd.scenarios.inspector.panels import Table

#: Columns: key, heading, whether it is a number.
COLUMNS = (
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
ROWS = 25


@solara.component
def UsersPart(desk: Desk, course: Course, moment: Moment, place: int) -> None:
    """All users of a run.

    Parameters
    ----------
    desk
        Of the page.
    course, moment
        The run, and where it is; another moment draws the part anew.
    place
        0 for the first run, 1 for the second.
    """
    frame = solara.use_memo(lambda: held(desk, lambda: users_table(moment)), [moment])
    names = [one for one in COLUMNS if not frame[one[0]].isna().all()]
    Table(
        desk=desk,
        name=f"users-{'ab'[place]}",
        title=f"{len(frame):,} users",
        headers=[
            {"value": key, "text": text, "align": "end" if number else "start"}
            for key, text, number in names
        ],
        items=solara.use_memo(
            lambda: [
                item_of(row, moment.clock)
                for row in frame[[key for key, _, _ in names]].to_dict("records")
            ],
            [moment],
        ),
        draw=lambda: users_picture(moment),
        table=lambda: frame,
        key_name="user",
        chosen=desk.user.value,
        rows=ROWS,
        searchable=True,
        on_pick=lambda user: desk.choose(int(user)),
        nothing="Nobody is there.",
    )
    there = dict.fromkeys(frame["state"])
    meant = "; ".join(f"{name}: {words}" for name, words in STATES.items() if name in there)
    solara.Text(meant, classes=["hpcrowd-small", "hpcrowd-states"])


def item_of(row: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Return a row as the table of the page has it: plain values, and words where they differ."""
    item: dict[str, Any] = {}
    for key, value in row.items():
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        if missing:
            item[key], item[f"{key}_text"] = None, ""
        elif key in ("wait_mean_s", "lateness_mean_s"):
            item[key], item[f"{key}_text"] = float(value), format_duration(value)
        elif key == "next_submission_s":
            item[key], item[f"{key}_text"] = int(value), local_moment(clock, int(value))
        elif key == "mood":
            item[key], item[f"{key}_text"] = float(value), mood_words(value)
        else:
            item[key] = value if isinstance(value, str) else int(value)
    return item
