"""Runs of every kind, and what holds of every run that is inspected."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hpcrowd import views
from hpcrowd.analysis.views.graph import UNIT_STATES
from hpcrowd.analysis.views.users import STATES
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.scenarios.inspector.panels.cluster import queue_with_reasons
from hpcrowd.scenarios.inspector.panels.registry import PANELS, panels_json
from hpcrowd.scenarios.inspector.subjects.course import Course, LiveCourse
from hpcrowd.scenarios.inspector.subjects.subject import subject_of
from hpcrowd.views import Moment
from numpy.typing import NDArray

LOG = 'kind = "replay"\ntrace = "log.swf"\n'

MIXED = (
    LOG
    + """
[[scenario.users.users]]
behaviour = "fluid"
share = 0.4
[[scenario.users.users]]
behaviour = "generative"
share = 0.2
[[scenario.users.users]]
behaviour = "think-time"
share = 0.4
reactions = [
    { do = "switch", to = "backup", when = "recent-waits", wait = "10m" },
    { do = "delay", when = "during", periods = [["2d", "4d"]] },
    { do = "renounce", when = "during", periods = [["9d", "11d"]] },
]
[scenario.users.clusters.backup]
processors = 4
"""
)

PLATFORM = (
    LOG
    + """
users = "{users}"
[scenario.platform]
changes = [
    {{ do = "down", at = 200000, until = 700000, processors = 6, jobs = "{fate}" }},
    {{ do = "fail", mean = "8h", repair_mean = "2h", jobs = "{fate}" }},
    {{ do = "maintain", start = 1300000, end = 1400000, jobs = "{fate}" }},
    {{ do = "resize", at = 2000000, processors = 5 }},
    {{ do = "speed", at = 2500000, factor = 0.5 }},
    {{ do = "switch", at = 3000000, scheduler = "sjf" }},
]
"""
)

GRID = """kind = "grid"
users = "{users}"
broker = "{broker}"
{more}
[scenario.clusters.north]
processors = 8
trace = "log.swf"
grid_share = 0.5
[scenario.clusters.south]
processors = 6
speed = 1.5
trace = "log.swf"
[scenario.grid]
model = "lublin"
days = 1
"""

RESAMPLED = 'kind = "resample"\ntrace = "log.swf"\nusers = "{users}"\nsatisfaction = "{minds}"\n'

#: Scenario files by name.
KINDS = {
    **{
        users: LOG + f'users = "{users}"\n'
        for users in ("rigid", "think-time-windows", "adjusted", "distribution", "fluid")
    },
    **{users: LOG + f'users = "{users}"\n' for users in ("shmueli-feitelson", "generative")},
    "recorded": LOG + 'scheduler = "recorded"\n',
    **{name: LOG + f'scheduler = "{name}"\n' for name in ("fcfs", "conservative", "fair-share")},
    "mixed": MIXED,
    "platform-requeue": PLATFORM.format(users="think-time", fate="requeue"),
    "platform-resubmit": PLATFORM.format(users="fluid", fate="resubmit"),
    "platform-made-up": PLATFORM.format(users="generative", fate="resubmit"),
    "platform-fail": PLATFORM.format(users="rigid", fate="fail"),
    "grid-held": GRID.format(users="rigid", broker="first-fit", more=""),
    "grid-at-once": GRID.format(users="think-time", broker="least-loaded", more=""),
    "grid-components": GRID.format(users="think-time", broker="worst-fit", more="components = 5"),
    "resample": RESAMPLED.format(users="think-time-windows", minds="none"),
    "resample-habit": RESAMPLED.format(users="think-time", minds="habit"),
    "resample-mugm": RESAMPLED.format(users="mugm", minds="requested"),
    "resample-rigid": RESAMPLED.format(users="rigid", minds="none"),
    "populate": 'kind = "populate"\nmodel = "lublin"\ndays = 1\nmodel_processors = 64\n',
}  # fmt: skip

#: Views of a run that make tables.
TABLES = (views.load_table, views.submissions_table, views.gantt_table)


def live(path: Path) -> LiveCourse:
    """Return the course of a log or a scenario that is simulated."""
    course = subject_of(path).begin({})
    assert isinstance(course, LiveCourse)
    return course


def unpacked(values: Any) -> NDArray[Any]:
    """Return an array as the page unpacks it."""
    if isinstance(values, list):
        return np.array(values)
    ((kind, text),) = values.items()
    return np.frombuffer(base64.b64decode(text), {"i32": "<i4", "f64": "<f8"}[kind])


@dataclass
class Watch:
    """Looks at a course now and then, and remembers what must hold later, too."""

    course: Course
    #: Submissions of users who were notified, by number.
    done: dict[int, int] = field(default_factory=dict)
    #: Submissions so far.
    submissions: int = 0

    def look(self, users: Sequence[int] = ()) -> None:
        """Look at everything, and check it."""
        moment = self.course.moment()
        check_moment(moment)
        frame = check_users(moment)
        self._check_done(moment, frame)
        check_queue(self.course, moment)
        for table in TABLES:
            check_numbers(table(moment))
        assert int(was_submitted(moment).sum()) >= self.submissions, "nothing is taken back"
        self.submissions = int(was_submitted(moment).sum())
        for user in users or [None]:
            if user is not None:
                check_user(moment, user)
            check_panels(self.course, user)

    def _check_done(self, moment: Moment, frame: pd.DataFrame) -> None:
        """Check that who was done has done nothing since."""
        mine = moment.jobs.user[was_submitted(moment)]
        for user in frame["user"][frame["state"] == "done"].tolist():
            self.done.setdefault(user, int(np.sum(mine == user)))
        for user, jobs in self.done.items():
            state = frame.loc[frame["user"] == user, "state"].iloc[0]
            assert jobs == int(np.sum(mine == user)), f"user {user} was done, and is {state}"


def was_submitted(moment: Moment) -> NDArray[np.bool_]:
    """Return which jobs were submitted some time, also those to be submitted again."""
    found = moment.submitted.copy()
    found[moment.stopped] = True
    return found


def check_moment(moment: Moment) -> None:
    """Each job is in one state, in which it can be."""
    parts = (moment.waiting, moment.running, moment.ended, moment.never_ran)
    np.testing.assert_array_equal(moment.submitted, np.sum(parts, axis=0))
    jobs = moment.jobs
    assert (jobs.submit[moment.started] <= jobs.start[moment.started]).all()
    assert (jobs.end[moment.ended] <= moment.now).all()
    assert not (moment.foreseen & moment.submitted).any()
    assert 0 <= moment.up <= moment.size


def check_users(moment: Moment) -> pd.DataFrame:
    """The table of users sums up to the jobs, and states go with the numbers."""
    frame = views.users_table(moment)
    jobs = moment.jobs
    assert frame["user"].is_unique
    assert set(frame["state"]) <= set(STATES)
    for column, which in (
        ("jobs_waiting", moment.waiting),
        ("jobs_running", moment.running),
        ("jobs_done", moment.ended),
    ):
        assert (frame[column] >= 0).all()
        assert int(frame[column].sum()) == int(which.sum()), column
    counts = pd.Series(jobs.user[was_submitted(moment)]).value_counts()
    submitted = frame["user"].map(counts).fillna(0)
    state = frame["state"]
    assert ((state == "running") == (frame["jobs_running"] > 0)).all()
    assert ((state == "waiting") == ((frame["jobs_waiting"] > 0) & (state != "running"))).all()
    assert (submitted[state == "not yet"] == 0).all()
    assert not (submitted[state.isin(["thinking", "away"])] == 0).any()
    assert (frame["wait_mean_s"].dropna() >= 0).all()
    following = frame["next_submission_s"].dropna()
    assert (following >= moment.now).all()
    assert not set(frame["user"][state == "done"]) & set(frame["user"][following.index])
    return frame


def check_queue(course: Course, moment: Moment) -> None:
    """Every job that waits has a reason."""
    frame = queue_with_reasons(course, None)
    np.testing.assert_array_equal(np.sort(frame["row"]), np.flatnonzero(moment.waiting))
    assert (frame["waited_s"] >= 0).all()
    if isinstance(course, LiveCourse):
        silent = frame[frame["reason"] == ""]
        assert not len(silent), f"{moment.now} s: nobody knows why {silent['job'].tolist()} wait"


def check_panels(course: Course, user: int | None) -> None:
    """Every panel of the page is JSON without NaN, and none fails."""
    now = course.now
    moment = course.moment()
    job = int(moment.jobs.number[moment.queue[-1]]) if len(moment.queue) else 1
    asked = {"panels": [*PANELS], "from": now - DAY, "to": now + DAY, "user": user, "job": job}
    found = json.loads(panels_json(course, asked), parse_constant=lambda name: name)
    assert {*PANELS, "now"} == set(found)
    for name, panel in found.items():
        unknown = name == "blockers" and job not in moment.jobs.number
        assert name == "now" or unknown or "error" not in panel, panel


def check_user(moment: Moment, user: int) -> None:
    """Views of one user agree with its jobs."""
    rows = moment.rows_of(user)
    week = views.week_table(moment, user)
    assert int(week["simulated"].sum()) == int(np.sum(moment.submitted[rows]))
    graph = views.graph_table(moment, user, None)
    assert set(graph["state"]) <= set(UNIT_STATES)
    busy = graph["state"].isin(["running", "queued"])
    if len(graph):  # not known of users in a folder whose behaviours are mixed
        assert bool((moment.running | moment.waiting)[rows].any()) <= bool(busy.any())
    assert int(graph["jobs"].sum()) <= len(rows)
    assert (graph["due_s"].dropna() >= moment.now).all()
    check_numbers(graph[["jobs", "processors"]])
    pauses = views.pauses_table(moment, user)
    assert (pauses["response_s"] >= 0).all()
    decisions = views.decisions_table(moment, user)
    assert (decisions["time_s"] < moment.now + 1).all()


def check_numbers(frame: pd.DataFrame) -> None:
    """Nothing is negative, nothing infinite; unknown times are -1.

    Only the axis of time may begin before the origin, at the moment 0.
    """
    for name in frame.columns.difference(["begin_s", "end_s", "time_s"]):
        values = frame[name].dropna().to_numpy(float)
        assert np.isfinite(values).all(), name
        assert (values >= UNKNOWN).all(), name


def walk(course: Course, steps: Sequence[int], users: Sequence[int] = ()) -> None:
    """Look, continue by each of the steps, the last one repeated, and look again, to the end."""
    watch, left = Watch(course), list(steps)
    watch.look(users)
    while not course.over:
        course.advance(course.now + (left.pop(0) if left[1:] else left[0]))
        watch.look(users)
    states: Any = views.users_table(course.moment())["state"]
    assert set(states) <= {"done", "not yet", "waiting"}, states.value_counts()
