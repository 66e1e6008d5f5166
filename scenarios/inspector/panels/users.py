"""The users: a table of all of them, and one user: graph, week, think times, decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hpcrowd.agents.behaviours.user import ReplayUser
from hpcrowd.analysis.metrics import bounded_slowdown
from hpcrowd.analysis.pictures.session_graph import lanes_of
from hpcrowd.analysis.views.graph import STATE_NAMES, unit_states
from hpcrowd.analysis.views.moment import Moment
from hpcrowd.analysis.views.units import OwnUnits, own_units, pauses_table
from hpcrowd.analysis.views.users import (
    STATES,
    behaviour_words,
    decisions_table,
    hours_of,
    means_of,
    mood_words,
    users_table,
    week_table,
)
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.clock import moment as local_time
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.quantities import format_duration
from hpcrowd.scenarios.inspector.panels.jobs import job_stories

if TYPE_CHECKING:
    import pandas as pd

    from hpcrowd.analysis.views.moment import Moment
    from hpcrowd.scenarios.inspector.panels.exchange import Asked
    from hpcrowd.scenarios.inspector.subjects.course import Course


#: Columns of the page and those of :func:`hpcrowd.views.users_table`.
COLUMNS = {
    "user": "user",
    "state": "state",
    "done": "jobs_done",
    "running": "jobs_running",
    "waiting": "jobs_waiting",
    "given_up": "jobs_given_up",
    "wait": "wait_mean_s",
    "slowdown": "slowdown_mean",
    "lateness": "lateness_mean_s",
    "mood": "mood",
    "next": "next_submission_s",
    "behaviour": "behaviour",
    "submits_to": "submits_to",
}


def users_frame(moment: Moment) -> pd.DataFrame:
    """Return the table of users with the mean bounded slowdown of each (``slowdown_mean``)."""
    frame = users_table(moment)
    jobs, rows = moment.jobs, np.flatnonzero(moment.ended)
    numbers = frame["user"].to_numpy(dtype=np.int64)
    place = np.searchsorted(numbers, jobs.user[rows])
    slow = bounded_slowdown(jobs.end[rows] - jobs.submit[rows], jobs.end[rows] - jobs.start[rows])
    count = np.bincount(place, minlength=len(numbers))
    total = np.bincount(place, weights=slow, minlength=len(numbers))
    return frame.assign(slowdown_mean=means_of(total, count))


def users_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return the table of all users, column by column; columns without a value are left out."""
    frame = users_frame(course.moment())
    columns = {
        key: listed(frame[name])
        for key, name in COLUMNS.items()
        if not frame[name].isna().all() or key in ("wait", "slowdown")
    }
    there = dict.fromkeys(frame["state"])
    return {
        "columns": columns,
        "states": {name: words for name, words in STATES.items() if name in there},
    }


def listed(column: pd.Series[Any]) -> list[Any]:
    """Return a column as a list in which missing values are None."""
    return [
        None if missing else value
        for value, missing in zip(column.tolist(), column.isna().tolist(), strict=True)
    ]


#: Decisions that the page shows; a file has all.
DECISIONS_SHOWN = 200

#: Units of the graph that the page shows: those in the time shown, else the closest to now.
UNITS_SHOWN = 4000

#: s; units are drawn at least this long, so that they can be seen and clicked.
SHORTEST = HOUR // 4


def user_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return everything about the chosen user."""
    moment, user = course.moment(), asked.user
    if user is None:
        return {"words": "No user is chosen."}
    frame = users_table(moment)
    if user not in frame["user"].to_numpy():
        return {"words": f"User {moment.jobs.who(user)} is not in this run."}
    agent = moment.users.get(user)
    own = own_units(moment, user)
    return {
        "words": _words(frame[frame["user"] == user].iloc[0].to_dict(), moment),
        "user": user,
        "can_change": isinstance(agent, ReplayUser),
        "behaviour": "" if agent is None else behaviour_words(agent.behaviour),
        "graph": graph_data(own, agent, asked),
        "week": _week(moment, user),
        "pauses": _pauses(moment, user),
        **job_stories(course, own, user),
        **_decisions(course, user),
    }


def _words(row: Mapping[Any, Any], moment: Moment) -> str:
    """Return a line of text about the user."""
    found = [f"User {row.get('user_name', row['user'])} ({row['state']})"]
    for key, words in (("behaviour", "behaves as"), ("submits_to", "submits to")):
        if isinstance(row[key], str):  # shown if users differ in it
            found.append(f"{words} {row[key]}")
    for key, words in (
        ("jobs_done", "jobs done"),
        ("jobs_running", "running"),
        ("jobs_waiting", "waiting"),
    ):
        found.append(f"{row[key]:,} {words}")
    for key, words in (("wait_mean_s", "mean wait"), ("lateness_mean_s", "mean lateness")):
        if row[key] == row[key]:
            found.append(f"{words} {format_duration(row[key])}")
    if row["mood"] == row["mood"]:
        found.append(f"mood {mood_words(row['mood'])}")
    due = row["next_submission_s"]
    if not pd.isna(due):
        found.append(f"submits next {local_time(moment.clock, int(due))}")
    return ", ".join(found)


def graph_data(own: OwnUnits, agent: object, asked: Asked) -> dict[str, Any]:
    """Return the units of a user and what they wait for, with places to draw them at.

    A unit lies from its first submission to its end. One that is still to come lies where its
    submission is foreseen, else where the record has it, but not before now.
    """
    moment, jobs = own.moment, own.moment.jobs
    state = unit_states(own)
    begin, end = own.begin.copy(), own.end.copy()
    if not len(own):
        return {"kind": own.name, "total": 0, "unit": [], "states": STATE_NAMES.tolist()}
    recorded = np.minimum.reduceat(jobs.recorded_submit[own.rows], own.first[:-1])
    left = np.where(begin != UNKNOWN, begin, np.maximum(recorded, moment.now))
    length = np.maximum.reduceat(np.maximum(jobs.run_time[own.rows], 0), own.first[:-1])
    unfinished = np.where(own.submitted, np.maximum(moment.now, left), left + length)
    right = np.where(end != UNKNOWN, end, unfinished)
    right = np.maximum(right, left + SHORTEST)
    shown = np.flatnonzero((right >= asked.first) & (left <= asked.last))
    if len(shown) > UNITS_SHOWN:
        near = np.abs(left[shown] - min(asked.last, moment.now))
        shown = np.sort(shown[np.argsort(near, kind="stable")[:UNITS_SHOWN]])
    place = np.full(len(own), -1)
    place[shown] = np.arange(len(shown))
    inside = (place[own.before] >= 0) & (place[own.after] >= 0)
    before, after = own.before[inside], own.after[inside]
    processors = np.maximum.reduceat(jobs.processors[own.rows], own.first[:-1])
    return {
        "kind": own.name,
        "total": len(own),
        "waits": own.waits,
        "unit": own.numbers[shown],
        "state": state[shown],
        "states": STATE_NAMES.tolist(),
        "jobs": np.diff(own.first)[shown],
        "first_job": jobs.number[own.rows[own.first[:-1]]][shown],
        "processors": processors[shown],
        "begin": np.where(begin == UNKNOWN, np.nan, begin)[shown],
        "end": np.where(end == UNKNOWN, np.nan, end)[shown],
        "submitted": own.submitted[shown].astype(np.int64),
        "lane": lanes(left[shown], right[shown]),
        "x0": left[shown],
        "x1": right[shown],
        "before": place[before],
        "after": place[after],
        "think": _think_times(own, agent, before, after),
    }


def _think_times(own: OwnUnits, agent: object, before: Int64s, after: Int64s) -> list[Any]:
    """Return the think time of each edge, s; None where the run does not know it."""
    numbers = own.numbers
    if isinstance(agent, ReplayUser) and own.waits:
        edges = agent.graph.edges
        found = []
        for one, other in zip(numbers[before].tolist(), numbers[after].tolist(), strict=True):
            known = (one, other) in edges
            found.append(edges[one, other].get("think_time") if known else None)
        return found
    return [None] * len(before)


def lanes(left: Int64s, right: Int64s) -> Int64s:
    """Return a line for each unit, so that none overlap on the same one, shape (units,)."""
    order = np.lexsort((right, left))
    found = np.zeros(len(left), np.int64)
    found[order] = lanes_of(zip(left[order].tolist(), right[order].tolist(), strict=True))
    return found


def _week(moment: Moment, user: int) -> dict[str, Any]:
    frame = week_table(moment, user)
    hours = hours_of(moment.users.get(user))
    return {
        "recorded": frame["recorded"].to_numpy(),
        "simulated": frame["simulated"].to_numpy(),
        "open": None if hours.pieces is None else frame["open"].to_numpy(),
        "activity": None if hours.weights is None else frame["activity"].to_numpy(),
    }


def _pauses(moment: Moment, user: int) -> dict[str, Any]:
    frame = pauses_table(moment, user)
    return {
        "unit": frame["unit"].to_numpy(),
        "response": frame["response_s"].to_numpy(),
        "pause": frame["pause_s"].to_numpy(),
        "recorded_response": frame["recorded_response_s"].to_numpy(float),
        "recorded_pause": frame["recorded_pause_s"].to_numpy(float),
    }


def _decisions(course: Course, user: int) -> dict[str, Any]:
    moment = course.moment()
    frame = decisions_table(moment, user, DECISIONS_SHOWN)
    return {
        "decisions": [
            {"at": int(at), "text": text}
            for at, text in zip(frame["time_s"].tolist(), frame["decision"].tolist(), strict=True)
        ],
        "logged": moment.decisions is not None,
        "log_full": course.log_full,
    }
